"""Compile flags, in one place. Kernels are compiled ahead (`shipped`) or at their first call, and kept (`cache`).

No fastmath: a score must equal itself.

Four things here are not in Numba's documentation: the option `_nrt`, a dispatcher's `get_call_template`, its `_cache`,
and the `refresh` of its contexts. Each makes something faster and changes no result. Where a version of Numba does not
have one, or with SKYBAND_PLAIN_NUMBA=1, the documented way is used instead: slower, and tested
(tests/kernels/test_compile.py).
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

PLAIN = os.environ.get("SKYBAND_PLAIN_NUMBA", "") not in ("", "0")  # only what Numba documents


def _load_numba() -> Any:
    """Numba without the garbage collector, which takes 40 % of that time; every Spark worker pays it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        import numba
    finally:
        if collects:
            gc.enable()
    return numba


numba = _load_numba()
F = TypeVar("F", bound=Callable[..., Any])
_FLAGS: dict[str, Any] = {"fastmath": False, "error_model": "numpy", "nogil": True}
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _njit(function: Callable[..., Any], **options: Any) -> Any:
    return numba.njit(**options, **_FLAGS)(function)


def _has_nrt_option() -> bool:
    """Whether this Numba takes `_nrt`."""
    if PLAIN:
        return False
    try:
        _njit(lambda: None, _nrt=False)
    except (KeyError, TypeError, ValueError):
        return False
    return True


#: Numba counts references to arrays by atomic operations, for each array of a tuple and each call, which can cost more
#: than the work. A function that makes no arrays does not need that.
_UNCOUNTED: dict[str, Any] = {"_nrt": False} if _has_nrt_option() else {}


#: Every entry point that has been loaded.
ENTRY_POINTS: list[Any] = []


def kernel(function: F, **options: Any) -> F:
    """An entry point: taken from the pack, from disk or from the compiler at its first call."""
    if PLAIN or numba.config.DISABLE_JIT:
        return cast(F, _documented(function, **options))
    try:
        from skyband.kernels.cache import attach
    except (ImportError, AttributeError):
        return cast(F, _documented(function, **options))
    ENTRY_POINTS.append(attach(_njit(function, **options)))
    return cast(F, ENTRY_POINTS[-1])


def _documented(function: Callable[..., Any], **options: Any) -> Any:
    try:
        return _njit(function, cache=True, **options)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        warnings.warn(f"{error}: every process compiles it. Name a folder with NUMBA_CACHE_DIR.", stacklevel=3)
        return _njit(function, **options)


def uncounted_kernel(function: F) -> F:
    """As `kernel`, for one that makes no arrays."""
    return kernel(function, **_UNCOUNTED)


def part(function: F, **options: Any) -> F:
    """A part of kernels: called by them only, compiled and stored with them.

    A number that stands in a call is a type of its own to Numba: a part would be compiled once for each, and once more
    for a variable that begins as one. Here a number is a number.
    """
    compiled = _njit(function, **_NO_WRAPPERS, **options)
    typed = None if PLAIN else getattr(compiled, "get_call_template", None)  # absent with NUMBA_DISABLE_JIT
    if typed is not None:

        def widened(args: Any, kws: Any) -> Any:
            number = numba.core.types.unliteral
            return typed(tuple(map(number, args)), {name: number(one) for name, one in dict(kws).items()})

        compiled.get_call_template = widened
    return cast(F, compiled)


def uncounted(function: F) -> F:
    """As `part`, for one that makes no arrays."""
    return part(function, **_UNCOUNTED)


def close(function: F) -> F:
    """As `uncounted`, and always compiled into its caller: passing many arrays costs more than a small part does."""
    return part(function, forceinline=True, **_UNCOUNTED)


def inlined(function: F) -> F:
    """A small part whose source is put into its callers, since passing many arrays costs more than its work."""
    return cast(F, _njit(function, inline="always"))
