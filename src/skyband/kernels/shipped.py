"""The pack: kernels compiled ahead of time, one file beside this one, from which each is read at its first call.

Reading a kernel costs milliseconds, compiling it seconds. Code is for one level of processors (x86-64-v3: those since
2013 to 2015), one version of Numba and one state of the sources; where one of these is another, nothing of it is used.

The file holds machine code and pickles, so it is trusted as the package itself is: it is read by the loader that this
module was imported by, from the same folder or archive, and from nowhere else. Hashes find what has been damaged.

    line of identification | SHA-256 of the index | length of the index | index (JSON, zlib) | kernels (zlib)

The index says what the code was made for, and for each kernel and signature where it lies and its hash.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skyband.errors import StateError
from skyband.kernels.sources import stamp

FILE = "shipped.pack"
MODES = ("shipped", "native", "only")
_FIRST_LINE = b"skyband kernels 1\n"
_HEAD = len(_FIRST_LINE) + 32 + 8
#: For each machine the levels of its processors, as LLVM calls them, with the features that one must have; best first.
_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
LEVELS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "x86_64": (
        ("x86-64-v3", (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")),
        ("x86-64-v2", _V2),
    ),
    "aarch64": (("generic", ("neon",)),),
}
PYTHONS = ((3, 11), (3, 13))  # from, to: a pack made by one of them was tried with the others
_AHEAD = "run `skyband compile` once, such as when an image is built"


class Unfit(NamedTuple):
    """Why kernels of the pack are not used, and what would avoid compiling them."""

    reason: str
    remedy: str


def mode() -> str:
    """The choice of SKYBAND_KERNELS: `shipped` (the pack where it fits), `native` (never it), `only` (nothing else)."""
    chosen = os.environ.get("SKYBAND_KERNELS", "") or MODES[0]
    if chosen not in MODES:
        raise StateError(f"SKYBAND_KERNELS={chosen}: that is none of {', '.join(MODES)}.")
    return chosen


def target() -> dict[str, Any]:
    """The kind of process that code is made for, but for its processor."""
    import llvmlite.binding as llvm
    import numba._dynfunc

    return {
        "numba": numba.__version__,
        "triple": llvm.get_process_triple(),
        "python": sys.implementation.name + getattr(sys, "abiflags", ""),
        "layout": dict(sorted(numba._dynfunc._impl_info.items())),
    }


def _unfit_process(made_for: Mapping[str, Any]) -> Unfit | None:
    """Why this process cannot run the code of a pack."""
    import llvmlite.binding as llvm
    from numba.core import config

    here = target()
    if made_for["numba"] != here["numba"]:
        said = f"the shipped kernels are for Numba {made_for['numba']}, here is {here['numba']}"
        return Unfit(said, f"pip install numba=={made_for['numba']}")
    pythons = (made_for["made by"], made_for["made by"]), PYTHONS
    tried = any(list(first) <= list(sys.version_info[:2]) <= list(last) for first, last in pythons)
    if not tried or any(made_for[name] != value for name, value in here.items()):
        said = f"the shipped kernels are for {made_for['triple']}, CPython 3.{PYTHONS[0][1]} to 3.{PYTHONS[1][1]}"
        return Unfit(said, _AHEAD)
    features = llvm.get_host_cpu_features()
    allowed = {name for name, there in features.items() if there and (config.ENABLE_AVX or "avx" not in name)}
    missing = [name for name in made_for["features"] if name not in allowed]
    if missing:
        said = f"the shipped kernels are for {made_for['level']}, which this processor is not"
        return Unfit(f"{said} (no {', '.join(missing)})", _AHEAD)
    if (config.CPU_NAME, config.CPU_FEATURES) != (None, None):
        return Unfit("NUMBA_CPU_NAME or NUMBA_CPU_FEATURES is set", "leave them out")
    return None


class Pack:
    """The kernels of one file, by name and signature."""

    def __init__(self, data: bytes) -> None:
        head, size = data[: len(_FIRST_LINE)], int.from_bytes(data[_HEAD - 8 : _HEAD], "big")
        index = data[_HEAD : _HEAD + size]
        if head != _FIRST_LINE or hashlib.sha256(index).digest() != data[len(_FIRST_LINE) : _HEAD - 8]:
            raise StateError(f"{FILE} is damaged.")
        self.index: dict[str, Any] = json.loads(zlib.decompress(index))
        self._body = memoryview(data)[_HEAD + size :]

    def read(self, kernel: str, signature: str) -> bytes | None:
        """A pickled kernel; None if it is not there."""
        found = self.index["kernels"].get(kernel, {}).get(signature)
        if found is None:
            return None
        begin, end, expected = found
        stored = self._body[begin:end]
        if hashlib.sha256(stored).hexdigest() != expected:
            raise StateError(f"{FILE} is damaged: {kernel}.")
        return zlib.decompress(stored)


def pack_of(facts: Mapping[str, Any], kernels: Mapping[str, Mapping[str, bytes]]) -> bytes:
    """The bytes of a pack; `facts`: those of `target()`, with `level` and `features`."""
    places: dict[str, dict[str, tuple[int, int, str]]] = {}
    body = bytearray()
    for kernel, overloads in sorted(kernels.items()):
        for signature, code in sorted(overloads.items()):
            stored, begin = zlib.compress(code, 9), len(body)
            body += stored
            places.setdefault(kernel, {})[signature] = (begin, len(body), hashlib.sha256(stored).hexdigest())
    stamps = {module: stamp(module) for module in sorted({kernel.rpartition(".")[0] for kernel in kernels})}
    index = zlib.compress(json.dumps({**facts, "stamps": stamps, "kernels": places}).encode(), 9)
    return _FIRST_LINE + hashlib.sha256(index).digest() + len(index).to_bytes(8, "big") + index + bytes(body)


def place() -> Path:
    """The file of the pack, beside this module."""
    return Path(__file__).with_name(FILE)


def _read() -> bytes:
    """The pack, by the loader of this module; an archive knows its files by their names as written."""
    loader: Any = __spec__.loader
    return bytes(loader.get_data(os.path.join(os.path.dirname(__file__), FILE)))


@functools.cache
def installed() -> Pack | Unfit:
    """The pack of this installation, if it fits this process."""
    from numba.core import config

    if mode() == "native":
        return Unfit("SKYBAND_KERNELS=native", "leave it out")
    if config.BOUNDSCHECK:
        return Unfit("NUMBA_BOUNDSCHECK is set", "leave it out")
    try:
        data = _read()
    except OSError:
        return Unfit("this installation has no compiled kernels", _AHEAD)
    try:
        pack = Pack(data)
    except StateError as error:
        return Unfit(str(error), "install skyband again")
    return _unfit_process(pack.index) or pack


def find(module: str, kernel: str, signature: str) -> bytes | Unfit:
    """A pickled kernel of the pack, or why there is none."""
    pack = installed()
    if isinstance(pack, Unfit):
        return pack
    if stamp(module) is None or stamp(module) != pack.index["stamps"].get(module):
        return Unfit(f"the source of {module} is not the one that was compiled ahead", "`make pack` in a checkout")
    try:
        found = pack.read(f"{module}.{kernel}", signature)
    except StateError as error:
        return Unfit(str(error), "install skyband again")
    return found or Unfit(f"{module}.{kernel} was not compiled ahead for these arguments", "please report it")
