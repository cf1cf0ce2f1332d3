"""Was the answer right? Computed outside the timed part, from the whole stream, with NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import Stream

Ints = NDArray[np.int64]
Check = Callable[[Stream, Mapping[str, Any], Any], bool]


@dataclass(frozen=True)
class Answer:
    """Objects by group, best first within each: their number within the group, and their score."""

    group: Ints
    id: Ints
    score: NDArray[np.float64]


def is_topk(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
    """Are these the k best of the last n of each group?"""
    by_group = np.argsort(answer.group, kind="stable")
    wanted = best_of_last(stream, p["n"], p["k"])
    return (
        np.array_equal(answer.group[by_group], wanted.group)
        and np.array_equal(answer.id[by_group], wanted.id)
        and np.array_equal(answer.score[by_group], wanted.score)
    )


def best_of_last(stream: Stream, n: int, k: int) -> Answer:
    """The k best of the last n of each group; the newer first among equals."""
    score = stream["score"]
    group = stream.get("key", np.zeros(len(score), np.int64))
    order = np.argsort(group, kind="stable")
    group, score = group[order], score[order]
    number, size = _numbered(group)
    valid = number >= size - n
    group, score, number = group[valid], score[valid], number[valid]
    rank = np.lexsort((-number, -score, group))
    best = rank[_numbered(group[rank])[0] < k]
    return Answer(group[best], number[best], score[best])


def _numbered(group: Ints) -> tuple[Ints, Ints]:
    """Per row of a sorted column: its number within its group, and the group's size."""
    starts = np.flatnonzero(np.diff(group, prepend=group[:1] - 1))
    sizes = np.diff(np.append(starts, len(group)))
    return np.arange(len(group)) - np.repeat(starts, sizes), np.repeat(sizes, sizes)


def adds_up(changes: Mapping[str, NDArray[Any]], answer: Answer) -> bool:
    """Do the changes from the very first push on (group, id, diff) sum to the answer?"""
    label = changes["group"].astype(np.int64) << 32 | changes["id"].astype(np.int64)
    objects, place = np.unique(label, return_inverse=True)
    held = np.bincount(place, weights=changes["diff"], minlength=len(objects))
    wanted = np.sort(answer.group << 32 | answer.id)
    return bool(np.isin(held, (0, 1)).all()) and np.array_equal(objects[held == 1], wanted)


def sorts(column: NDArray[Any], *, stable: bool) -> Check:
    """Does this permutation sort the column; equal values in their old order, if stable?"""

    def check(stream: Stream, p: Mapping[str, Any], order: Ints) -> bool:
        values = column[order]
        equals = (values[1:] == values[:-1]) & ((order[1:] > order[:-1]) | (not stable))
        rises = bool(((values[1:] > values[:-1]) | equals).all())
        return rises and np.array_equal(np.bincount(order), np.ones(len(column)))

    return check
