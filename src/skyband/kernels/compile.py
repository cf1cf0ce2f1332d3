"""The one place for compile flags, and the line that says so when a cold compile keeps a person waiting.

No fastmath: a score must equal itself. Compiled code is cached on disk, so only the first process pays.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from skyband.errors import StateError


def _started() -> Any:
    """Numba, with its tables of types loaded: without the garbage collector, which finds nothing there and takes 40 %
    of the time. Every worker of Spark pays this in its first trigger.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        import numba
        from numba.core.registry import cpu_target

        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
    finally:
        if collects:
            gc.enable()
    return numba


numba = _started()
F = TypeVar("F", bound=Callable[..., Any])
_FLAGS: dict[str, Any] = {"fastmath": False, "error_model": "numpy", "nogil": True}


def kernel(function: F) -> F:
    """Compile at the first call, keep on disk."""
    try:
        compiled: Any = numba.njit(cache=True, **_FLAGS)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        raise StateError(
            f"skyband is imported from {__file__}, where compiled kernels cannot be kept: every process would compile "
            "them anew. Install it where it can write (or name a folder with NUMBA_CACHE_DIR); on Spark ship it "
            "unpacked, as skyband.spark.shipping does."
        ) from error
    return cast(F, compiled)


def part(function: F) -> F:
    """A part of kernels, called by them only and stored with them: without the wrapper that calls from Python need."""
    return _bare(function)


def _bare(function: F, **more: Any) -> F:
    """A number that stands in a call is a type of its own to Numba: the part would be compiled once for each, and once
    more for a variable that begins as one. Here a number is a number.
    """
    bare: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **more}
    compiled: Any = numba.njit(**bare, **_FLAGS)(function)
    typed = getattr(compiled, "get_call_template", None)  # without NUMBA_DISABLE_JIT
    if typed is not None:

        def widened(args: Any, kws: Any) -> Any:
            number = numba.core.types.unliteral
            return typed(tuple(map(number, args)), {name: number(one) for name, one in dict(kws).items()})

        compiled.get_call_template = widened
    return cast(F, compiled)


def inlined(function: F) -> F:
    """A small part that is compiled into its callers, since passing many arrays costs more than its work."""
    compiled: Any = numba.njit(inline="always", **_FLAGS)(function)
    return cast(F, compiled)


def uncounted(function: F) -> F:
    """As `part`, for one that makes no arrays: without counting who refers to those it is given.

    Numba counts references with atomic operations, for each array of a tuple and each call; that can cost more than
    the work. `_nrt` is an option that Numba keeps to itself: without it the same code would only be slower.
    """
    return _bare(function, _nrt=False)


def close(function: F) -> F:
    """As `uncounted`, and always within its caller: handing over many arrays costs more than a small part does."""
    return _bare(function, _nrt=False, forceinline=True)


def uncounted_kernel(function: F) -> F:
    """As `kernel`, for one that makes no arrays."""
    bare: dict[str, Any] = {"cache": True, "_nrt": False}
    compiled: Any = numba.njit(**bare, **_FLAGS)(function)
    return cast(F, compiled)


@contextmanager
def announced() -> Iterator[None]:
    """Say on stderr that kernels are being compiled, if the block takes long enough to be new_rejections."""
    line = "skyband: compiling kernels, once for this version and machine (10 to 30 s) ...\n"
    timer = threading.Timer(1.5, sys.stderr.write, [line])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
