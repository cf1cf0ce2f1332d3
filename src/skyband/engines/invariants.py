"""Invariants over whole arrays: what engines require of stored arrays before kernels, which know no bounds, read them.

Cost: O(n log n) for n entries, without a loop over them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import NEVER, Bools, Ints
from skyband.errors import StateError

Numbers = NDArray[Any]
FAR = 2**62  # numbers of arrivals and times stay below: a window's length can be added


def require(fits: Any, what: str) -> None:
    """Raise a StateError unless it fits; also where Python leaves out assertions."""
    if not fits:
        raise StateError(f"the stored state does not fit together: not so: {what}. Use an intact copy.")


def within(values: Numbers, low: float, high: float) -> bool:
    """Whether all values lie between the two, both included; NaN does not."""
    return not len(values) or bool(values.min() >= low and values.max() <= high)


def near(stamps: Numbers) -> bool:
    """Whether no stamp is so far out that a window's length added to it overflows."""
    return within(stamps, 1 - FAR, FAR - 1)


def rising(sizes: Ints, *keys: Numbers) -> bool:
    """Whether runs of these sizes rise strictly by these keys, the most significant first; with NaN they do not."""
    inner = np.ones(len(keys[0]), np.bool_)
    inner[(np.cumsum(sizes) - sizes)[sizes > 0]] = False  # the first of a run follows nothing
    later = np.flatnonzero(inner)
    above = np.zeros(len(later), np.bool_)
    for key in reversed(keys):
        one, other = key[later - 1], key[later]
        above = (one < other) | ((one == other) & above)
    return bool(above.all())


def distinct(*columns: Numbers) -> bool:
    """Whether no two entries are equal in all columns."""
    if (codes := _codes(*columns)) is not None:
        codes.sort()
        return bool((codes[1:] != codes[:-1]).all())
    order = np.lexsort(columns)
    same = np.ones(max(0, len(order) - 1), np.bool_)
    for column in columns:
        same &= column[order[1:]] == column[order[:-1]]
    return not same.any()


def _codes(*columns: Numbers) -> Ints | None:
    """One number for each entry, equal just where all columns are; None: 63 bits are too few."""
    codes, total = np.zeros(len(columns[0]), np.int64), 1
    for column in columns if len(codes) else ():
        low, high = int(column.min()), int(column.max())
        total *= high - low + 1
        if total >= 2**63:
            return None
        codes = codes * (high - low + 1) + (column.astype(np.int64) - low)
    return codes


def owners(sizes: Ints) -> Ints:
    """The run that each entry belongs to."""
    return np.repeat(np.arange(len(sizes)), sizes)


def by_run(ufunc: Any, values: Numbers, sizes: Ints, none: Any) -> Numbers:
    """The smallest (np.minimum) or largest (np.maximum) value of each run; `none` where a run is empty."""
    found = np.full(len(sizes), none, values.dtype)
    filled = np.flatnonzero(sizes)
    if len(filled):
        found[filled] = ufunc.reduceat(values, (np.cumsum(sizes) - sizes)[filled])
    return found


def check_ages(stamps: Ints, sizes: Ints, now: Ints | None, length: int) -> None:
    """No object of a run is newer than its group's last arrival (or the clock), or has left the longest window."""
    if now is not None:
        require(len(now) == len(sizes), "every group is in its engine")
        require((by_run(np.maximum, stamps, sizes, -NEVER) <= now).all(), "objects have arrived")
        left = now - min(length, FAR)  # UntilDeleted(): nothing leaves
        require((by_run(np.minimum, stamps, sizes, NEVER) > left).all(), "objects have not expired")


def are_counts(sizes: Numbers, total: int) -> bool:
    """Whether these are sizes of runs that have so many entries together; none is so large that a sum overflows."""
    return within(sizes, 0, total) and int(sizes.sum()) == total


def are_known(serials: Ints, groups: Ints, known: Ints, of: Ints) -> Bools:
    """Which (serial, group) pairs are among the known ones; these are (known, of)."""
    both = np.concatenate([groups, of]), np.concatenate([serials, known])
    codes = _codes(*both)
    if codes is None:
        _, codes = np.unique(np.stack(both), axis=1, return_inverse=True)
        codes = codes.reshape(-1)
    found: Bools = np.isin(codes[: len(serials)], codes[len(serials) :])
    return found
