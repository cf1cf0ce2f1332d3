"""The cache of an entry point's dispatcher: the pack, then code that this machine has kept, else the compiler.

Kept code is Numba's own cache, with another stamp (`sources`) and more places to keep it: the folder that
NUMBA_CACHE_DIR names, `__pycache__` beside the kernel, the user's cache folder, a private folder under the temporary
directory. Where none of them can be written, each process compiles for itself, with a warning.

Uses Numba's cache protocol (`numba.core.caching`), which it does not document; `compile.kernel` uses `njit(cache=True)`
where a version of Numba does not have it.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import inspect
import os
import pickle
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core import caching, config
from numba.core.compiler import CompileResult
from numba.core.runtime import _nrt_python, rtsys

from skyband.errors import SkybandWarning, StateError
from skyband.kernels import shipped
from skyband.kernels.shipped import Pack, Unfit
from skyband.kernels.sources import PACKAGE, stamp


@contextmanager
def without_collector() -> Iterator[None]:
    """Leave the garbage collector out: it takes 40 % of the time in which Numba makes many objects that stay."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def signature_key(types: tuple[Any, ...]) -> str:
    """The types of arguments, as the pack names them."""
    return hashlib.sha256("; ".join(one.name for one in types).encode()).hexdigest()[:24]


def folders(source: str) -> Iterator[str]:
    """Where code of a source file may be kept, best first; none of them has been tried."""
    beside = os.path.dirname(os.path.abspath(source))
    own = caching._CacheLocator.get_suitable_cache_subpath(source)
    if config.CACHE_DIR:
        yield os.path.join(config.CACHE_DIR, own)
    if os.path.isdir(beside):
        yield os.path.join(beside, "__pycache__")
    yield os.path.join(caching.AppDirs(appname="numba", appauthor=False).user_cache_dir, own)
    with suppress(OSError):
        yield os.path.join(_private_folder(), own)


def _private_folder() -> str:
    """A folder under the temporary directory that this user made and no other can use; OSError if there is none."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    path = os.path.join(tempfile.gettempdir(), f"skyband-kernels-{user}")
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o077)):
        raise PermissionError(f"{path} is another user's, or others can use it.")
    return path


@functools.cache
def writable_folder(source: str) -> str | None:
    """The first folder that can be written."""
    for folder in folders(source):
        with suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Tells Numba where code is kept, and the hash of what it was made from."""

    def __init__(self, function: Callable[..., Any], source: str) -> None:
        self._function, self._py_file = function, source

    def get_cache_path(self) -> str | None:
        return writable_folder(self._py_file)

    def get_source_stamp(self) -> str:
        known = stamp(self._function.__module__)  # a script has none
        return known or hashlib.sha256(Path(self._py_file).read_bytes()).hexdigest()

    def get_disambiguator(self) -> str:
        return f"{self._function.__code__.co_firstlineno}{'-checked' if config.BOUNDSCHECK else ''}"

    @classmethod
    def from_function(cls, function: Callable[..., Any], source: str) -> _Locator | None:
        return cls(function, source) if writable_folder(source) else None


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Kept(caching.FunctionCache):  # type: ignore[misc]
    """Code that this machine has compiled before."""

    _impl_class = _Implementation


class Recording:
    """Collects every kernel that a process calls, to be packed; takes from an older pack what is still right."""

    def __init__(self, older: Pack | None = None) -> None:
        self.kernels: dict[str, dict[str, bytes]] = {}
        self._older = older

    def find(self, module: str, kernel: str, signature: str) -> bytes | None:
        if self._older is None or self._older.index["stamps"].get(module) != stamp(module):
            return None
        found = self._older.read(f"{module}.{kernel}", signature)
        if found is not None:
            self.add(module, kernel, signature, found)
        return found

    def add(self, module: str, kernel: str, signature: str, code: bytes) -> None:
        self.kernels.setdefault(f"{module}.{kernel}", {})[signature] = code


class KernelCache(caching._Cache):  # type: ignore[misc]
    """The cache of one dispatcher. What it does not find Numba compiles, and gives it to keep."""

    recording: Recording | None = None  # set by the builder of packs: nothing else is read or kept then

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._name = function.__module__, function.__qualname__

    @functools.cached_property
    def _kept(self) -> Any:
        source = inspect.getfile(self._function)
        if writable_folder(source) is None:
            _warn_once(
                "skyband can keep compiled kernels nowhere, so every process compiles them: no folder can be written, "
                f"neither {', nor '.join(folders(source))}. Name one with NUMBA_CACHE_DIR."
            )
            return caching.NullCache()
        return _Kept(self._function)

    @property
    def cache_path(self) -> str | None:
        return writable_folder(inspect.getfile(self._function))

    def enable(self) -> None:
        """Always enabled."""

    def disable(self) -> None:
        """Always enabled."""

    def flush(self) -> None:
        self._kept.flush()

    def load_overload(self, sig: tuple[Any, ...], target_context: Any) -> Any:
        """The compiled kernel for these types; None if it must be compiled."""
        module, name = self._name
        found: bytes | Unfit | None = None
        if self.recording is not None:
            found = self.recording.find(module, name, signature_key(sig))
        elif module.partition(".")[0] == PACKAGE:
            found = shipped.find(module, name, signature_key(sig))
        if isinstance(found, bytes):
            return restore(found, sig, target_context)
        if found is not None and shipped.mode() == "only":
            raise StateError(
                f"SKYBAND_KERNELS=only, but {found.reason}; {found.remedy}. It is {module}.{name} with "
                f"({', '.join(one.name for one in sig)})."
            )
        with without_collector():
            target_context.typing_context.refresh()
            target_context.refresh()
        if self.recording is not None:
            return None
        kept = self._kept.load_overload(sig, target_context)
        if kept is None and found is not None:
            _announce(found, self.cache_path)
        return kept

    def save_overload(self, sig: tuple[Any, ...], data: Any) -> None:
        if self.recording is not None:
            self.recording.add(*self._name, signature_key(sig), reduce(data))
            return
        try:
            self._kept.save_overload(sig, data)
        except OSError as error:
            _warn_once(f"skyband could not keep a compiled kernel, the next process compiles it again: {error}")


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, SkybandWarning, stacklevel=2)


_announced = False


def _announce(unfit: Unfit, folder: str | None) -> None:
    """Say on stderr, once, that kernels are being compiled, why, and what would avoid it."""
    global _announced
    if not _announced:
        _announced = True
        kept = f", and kept in {folder}" if folder else ""
        line = f"skyband: kernels are compiled for this machine (10 to 30 s{kept}), since {unfit.reason}. "
        sys.stderr.write(f"{line}To avoid it: {unfit.remedy}.\n")


def reduce(result: Any) -> bytes:
    """A compiled kernel as bytes, without LLVM's bitcode: it can be called from Python, not by other kernels."""
    from numba.core.serialize import dumps

    library, description, environment, signature, object_mode, lifted, _, reload_init, environments = result._reduce()
    assert not (object_mode or lifted or reload_init), f"{description.qualname} needs more than its code"
    name, kind, (code, _) = library
    assert kind == "object"
    return bytes(dumps((name, code, description, environment, signature, environments)))


def restore(data: bytes, types: tuple[Any, ...], target_context: Any) -> Any:
    """The compiled kernel that `reduce` stored."""
    _provide_runtime()
    name, code, description, environment, signature, environments = pickle.loads(data)  # noqa: S301 (our own pack)
    assert tuple(signature.args) == tuple(types), f"{name} was packed for {signature}"
    codegen = target_context.codegen()
    library = codegen.create_library(name)
    library.enable_object_caching()
    library._set_compiled_object(code)
    library._finalize_final_module()
    codegen._engine._defined_symbols.add(description.llvm_cpython_wrapper_name)
    called = target_context.get_executable(library, description, environment)
    for one in environments:
        codegen.set_env(one.env_name, one)
    return CompileResult(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=environment,
        entry_point=called,
        fndesc=description,
        type_annotation="",
        signature=signature,
        objectmode=False,
        lifted=(),
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=(),
        referenced_envs=environments,
    )


@functools.cache
def _provide_runtime() -> None:
    """Make Numba's functions for arrays known to the linker, as its `rtsys.initialize` does, which also compiles."""
    import llvmlite.binding as llvm

    if not rtsys._init:
        for name, address in _nrt_python.c_helpers.items():
            llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def attach(dispatcher: Any) -> Any:
    """Give a dispatcher this cache. Extensions of Numba are loaded only when something is compiled."""
    dispatcher._cache = KernelCache(dispatcher.py_func)
    dispatcher._compilation_chain_init_hook = _nothing
    return dispatcher


def _nothing() -> None:
    pass
