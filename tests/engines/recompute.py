"""One group recomputed fast, for streams that are too long for the oracle."""

from __future__ import annotations

import functools
import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Step: TypeAlias = tuple[int, int, int, int, bool]  # at, time, serial of the object, diff, first


def reference(
    keys: NDArray[np.float64],
    k: int,
    length: int,
    *,
    times: NDArray[np.int64] | None = None,
    clocks: NDArray[np.int64] | None = None,
    end: int | None = None,
) -> tuple[Step, ...]:
    """The changes of one group, `in_order`; computed once in a process, since every engine gets the same stream.

    times: for a time window; clocks: the clock after each row; end: the clock at the end. For count windows the
    time of a step is the number of its arrival.
    """
    moments = (None if column is None else tuple(column.tolist()) for column in (times, clocks))
    return _kept(tuple(keys.tolist()), k, length, *moments, end)


def recomputed(
    keys: Sequence[float],
    k: int,
    length: int,
    times: Sequence[int] | None = None,
    clocks: Sequence[int] | None = None,
    end: int | None = None,
) -> tuple[Step, ...]:
    """The changes, from the window as one sorted list whose last k are read after each step."""
    window: list[tuple[float, int, int]] = []
    ages: list[tuple[int, float, int]] = []  # a heap, the oldest first
    shown: set[int] = set()
    ever: set[int] = set()
    steps: list[Step] = []
    number = 0

    def step(at: int, time: int) -> None:
        nonlocal shown
        answer = {serial for _, _, serial in window[-k:]}
        steps.extend((at, time, serial, -1, False) for serial in sorted(shown - answer))
        steps.extend((at, time, serial, 1, serial not in ever) for serial in sorted(answer - shown))
        shown = answer
        ever.update(answer)

    def expire(now: int, apart: bool) -> None:
        while ages and ages[0][0] + length <= now:
            instant = ages[0][0] + length
            while ages and ages[0][0] + length == instant:
                stamp, key, serial = heapq.heappop(ages)
                del window[bisect_left(window, (key, stamp, serial))]
            if apart:
                step(number - 1, instant)

    for place, key in enumerate(keys):
        if times is None or clocks is None:
            stamp = now = number
            expire(now, False)
        else:
            stamp, now = times[place], clocks[place]
            expire(now, True)
            if stamp + length <= now:
                continue
        insort(window, (key, stamp, number))
        heapq.heappush(ages, (stamp, key, number))
        number += 1
        step(number - 1, now)
    if end is not None:
        expire(end, True)
    return tuple(in_order(steps))


_kept = functools.lru_cache(maxsize=128)(recomputed)


def steps_of(changes: Any) -> list[Step]:
    """A table of changes of one query and one group, with ids that are numbers, as `reference` has them."""
    time = changes.column("time" if "time" in changes.column_names else "at").to_pylist()
    columns = [changes.column(name).to_pylist() for name in ("at", "id", "diff", "first")]
    return [
        (at, now, serial, diff, first)
        for now, (at, serial, diff, first) in zip(time, zip(*columns, strict=True), strict=True)
    ]


def in_order(steps: Iterable[Step]) -> list[Step]:
    """The steps sorted: within a step the order of the objects that leave, or enter, is free."""
    return sorted(steps, key=lambda step: (step[1], step[0], step[3], step[2]))


def cuts(size: int, rng: np.random.Generator, mean: int) -> NDArray[np.int64]:
    """Random places to cut a stream of so many rows, pieces of about `mean`."""
    inside = np.flatnonzero(rng.random(size) < 1 / mean)
    return np.unique(np.concatenate([[0], inside, [size]]))
