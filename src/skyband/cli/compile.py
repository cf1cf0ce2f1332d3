"""`skyband compile`: all kernels compiled ahead into the package, for every processor of this machine's level.

The builder plays the samples in two processes and packs what was compiled in them. Symbols of machine code carry
numbers that Numba counts in each process: these start high, in a range of their own for each state of the sources,
so that code of the pack never meets code of the same name.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import itertools
import os
import pickle
import pkgutil
import platform
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import skyband
from skyband.errors import RunError, SkybandWarning, StateError
from skyband.kernels import shipped
from skyband.kernels.shipped import LEVELS, Pack, pack_of, target
from skyband.kernels.sources import stamp

_PROCESSES = 2


def compile(
    check: Annotated[bool, typer.Option("--check", help="Only say whether the kernels of the package fit.")] = False,
) -> None:
    """Compile all kernels ahead, into the package.

    No process compiles then, on any machine whose processor is of the same level. For images: run it once after
    installing, as the user who may write there. What is there and right is not compiled again.

    Example: pip install skyband && skyband compile
    """
    if check:
        found = shipped.installed()
        if isinstance(found, shipped.Unfit):
            raise RunError(f"{found.reason}. To avoid compiling at first calls: {found.remedy}.")
        typer.echo(f"The kernels fit: {found.index['level']}, Numba {found.index['numba']}.", err=True)
    elif not os.access(shipped.place().parent, os.W_OK):
        raise RunError(f"{shipped.place().parent} cannot be written: run it as the user who installed skyband.")
    else:
        write(shipped.place())


def level() -> tuple[str, tuple[str, ...]]:
    """The highest level that this processor has, and its features."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    for name, needed in LEVELS.get(platform.machine(), ()):
        if all(features.get(one) for one in needed):
            return name, needed
    raise RunError(f"{platform.machine()}: kernels are not compiled ahead for it, but at their first calls.")


def write(path: Path) -> None:
    """Write a pack to `path`. Of the pack that is there, what is still right is taken."""
    facts = _facts()
    older = _older(path)
    if older is not None and older.index["checked"] == facts["checked"]:
        return
    typer.echo(f"skyband: compiling kernels into {path} (all of them: 2 to 4 minutes) ...", err=True)
    env = {
        **os.environ,
        "NUMBA_CPU_NAME": facts["level"],
        "NUMBA_CPU_FEATURES": "",  # those of the level
        "NUMBA_DISABLE_INTEL_SVML": "1",
        "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1",  # nothing shows the colours: a twentieth of the time
        "SKYBAND_KERNELS": "native",
    }
    for unwanted in ("NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT", "NUMBA_OPT", "SKYBAND_PLAIN_NUMBA"):
        env.pop(unwanted, None)
    kernels: dict[str, dict[str, bytes]] = {}
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder, str(number)) for number in range(_PROCESSES)]
        code = f"from {__name__} import record; record"
        calls = [f"{code}({number}, {str(part)!r}, {str(path)!r})" for number, part in enumerate(parts)]
        runs = [subprocess.Popen([sys.executable, "-c", call], env=env) for call in calls]  # noqa: S603 (this module)
        ended = [run.wait() for run in runs]
        if any(ended):
            raise RunError("kernels could not be compiled: the error stands above.")
        for part in parts:
            for kernel, overloads in pickle.loads(part.read_bytes()).items():  # noqa: S301 (just written)
                kernels.setdefault(kernel, {}).update(overloads)
    missing = sorted(set(entry_points()) - set(kernels))
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(pack_of({**facts, "checked": "" if missing else facts["checked"]}, kernels))
    os.replace(temporary, path)
    if missing:
        raise RunError(f"no sample calls these kernels: {', '.join(missing)}. Add one to {__package__}.samples.")


def _facts() -> dict[str, Any]:
    """What a pack made here is for, and a hash of all sources that it was checked with."""
    name, features = level()
    whole = hashlib.sha256()
    for file in sorted(Path(skyband.__file__).parent.rglob("*.py")):
        whole.update(file.read_bytes())
    here = {"made by": list(sys.version_info[:2]), "level": name, "features": list(features)}
    return {**target(), **here, "checked": whole.hexdigest()}


def _older(path: Path) -> Pack | None:
    """The pack at `path` if it was made for the same processors, Numba and Python."""
    try:
        older = Pack(path.read_bytes())
    except (OSError, StateError):
        return None
    same = all(older.index.get(name) == value for name, value in _facts().items() if name != "checked")
    return older if same else None


GPU_ONLY = ("torch", "triton")  # what modules for a GPU import: these have no kernels of Numba


def entry_points() -> list[str]:
    """The names of all entry points of the package."""
    import skyband.engines
    import skyband.kernels
    from skyband.kernels.cache import KernelCache

    found: list[Any] = []
    for package in (skyband.kernels, skyband.engines):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            try:
                found += vars(importlib.import_module(module.name)).values()
            except ModuleNotFoundError as missing:
                if missing.name not in GPU_ONLY:
                    raise
    kernels = (one for one in found if isinstance(getattr(one, "_cache", None), KernelCache))
    return [f"{one.__module__}.{one.__qualname__}" for one in kernels]


def record(number: int, to: str, older: str) -> None:
    """Play one list of samples and write the kernels that it called, some from an older pack; a process of its own."""
    from numba.core import bytecode

    from skyband.cli.samples import TASKS
    from skyband.kernels.cache import KernelCache, Recording

    stamps = sorted({str(stamp(name.rpartition(".")[0])) for name in entry_points()})
    state = int(hashlib.sha256("".join(stamps).encode()).hexdigest()[:8], 16)
    bytecode.FunctionIdentity._unique_ids = itertools.count((state * _PROCESSES + number + 1) * 1_000_000)
    KernelCache.recording = recording = Recording(_older(Path(older)))
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", SkybandWarning)  # samples have rows that are rejected
    gc.disable()  # the compiler makes many objects and keeps them: a tenth of its time
    for task in TASKS[number]:
        task()
    Path(to).write_bytes(pickle.dumps(recording.kernels))
