"""Checks of answers, outside the timed part: from the whole stream, with NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.workloads import Stream, query_points, sites, weights

Ints = NDArray[np.int64]
Check = Callable[[Stream, Mapping[str, Any], Any], bool]
PRIME = 1_000_003  # squares of numbers are summed modulo this: those of ten million overflow in Spark


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


# ---- many Nearest queries: a group is a query


def is_nearest(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
    """Are these the k nearest of the last n of each query's point?"""
    wanted = nearest_of_last(stream, p)
    return (
        np.array_equal(answer.group, wanted.group)
        and np.array_equal(answer.id, wanted.id)
        and np.allclose(answer.score, wanted.score, rtol=1e-12, atol=0)
    )


def is_near(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
    """What an approximate answer must be too: valid objects with their own scores, best first, at most k.

    How many of the true ones it lacks is a counter (`lacking`), not an error.
    """
    data, total = np.stack(list(stream.values())), len(next(iter(stream.values())))
    points = sites(stream, p)[answer.group].T
    squares = _squares(data[:, answer.id], points)  # which rank; two of them may have one root
    score = np.sqrt(squares)
    ordered = np.lexsort((-answer.id, squares, answer.group))
    return (
        bool((answer.id >= total - p["n"]).all())
        and np.allclose(answer.score, score, rtol=1e-12, atol=0)
        and np.array_equal(ordered, np.arange(len(ordered)))
        and bool((np.bincount(answer.group, minlength=p["queries"]) <= p["k"]).all())
        and len(np.unique(answer.group << 32 | answer.id)) == len(answer.id)
    )


def lacking(stream: Stream, p: Mapping[str, Any], answer: Answer) -> int:
    """How many objects of the true answers an approximate one lacks."""
    wanted = nearest_of_last(stream, p)
    return len(np.setdiff1d(wanted.group << 32 | wanted.id, answer.group << 32 | answer.id))


def nearest_of_last(stream: Stream, p: Mapping[str, Any]) -> Answer:
    """The k nearest of the last n for each query; the newer first among equals."""
    data = np.stack(list(stream.values()))
    begin = max(0, data.shape[1] - p["n"])
    valid, k = data[:, begin:], min(p["k"], data.shape[1] - begin)
    found = []
    for point in sites(stream, p):
        far = _squares(valid, point[:, None])
        near = np.flatnonzero(far <= np.partition(far, k - 1)[k - 1])
        best = near[np.lexsort((-near, far[near]))[:k]]
        found.append((begin + best, np.sqrt(far[best])))
    ids, scores = (np.concatenate(column) for column in zip(*found, strict=True))
    return Answer(np.repeat(np.arange(len(found)), k), ids, scores)


def is_preferred(stream: Stream, p: Mapping[str, Any], answer: Answer, valid: Ints) -> bool:
    """Are these the k best of the valid objects? Of fifty queries at most, spread evenly; `valid` rises with age."""
    rows, k = weights(p), min(p["k"], len(valid))
    data = [stream[f"x{j + 1}"][valid] for j in range(rows.shape[1])]
    for number in range(0, len(rows), max(1, len(rows) // 50)):
        score = _preference(p.get("form", "linear"), data, rows[number])
        good = np.flatnonzero(score >= np.partition(score, len(score) - k)[len(score) - k])
        best = good[np.lexsort((-good, -score[good]))[:k]]
        mine = answer.group == number
        if not (np.array_equal(answer.id[mine], valid[best]) and np.array_equal(answer.score[mine], score[best])):
            return False
    return bool((np.bincount(answer.group, minlength=len(rows)) == k).all())


def _preference(form: str, data: list[NDArray[np.float64]], row: NDArray[np.float64]) -> NDArray[np.float64]:
    """Term after term, as the library does: ties must be the same."""
    total = np.ones(len(data[0])) if form == "product" else np.zeros(len(data[0]))
    for column, weight in zip(data, row, strict=True):
        if form == "product":
            total *= weight + column
        else:
            total += weight * (column * column if form == "quadratic" else column)
    return total


def _squares(data: NDArray[np.float64], point: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squares of distances, summed column after column as the library does: ties must be the same."""
    total = np.zeros(data.shape[1])
    for column, at in zip(data, point, strict=True):
        total += (column - at) ** 2
    return total


def sorts(column: NDArray[Any], *, stable: bool) -> Check:
    """Does this permutation sort the column; equal values in their old order, if stable?"""

    def check(stream: Stream, p: Mapping[str, Any], order: Ints) -> bool:
        values = column[order]
        equals = (values[1:] == values[:-1]) & ((order[1:] > order[:-1]) | (not stable))
        rises = bool(((values[1:] > values[:-1]) | equals).all())
        return rises and np.array_equal(np.bincount(order), np.ones(len(column)))

    return check


# ---- on Spark: sums over all changes, since no process holds the rows


def sums_to_best(stream: Stream, p: Mapping[str, Any], sums: Mapping[str, int]) -> bool:
    """Are the sums of diff, diff·id and diff·(id² mod PRIME) over all changes those of the last answers?"""
    ids = stream["id"][nearest_rows(stream, p)] if "queries" in p else best_ids(stream, p)
    return dict(sums) == {"objects": len(ids), "ids": int(ids.sum()), "squares": int((ids * ids % PRIME).sum())}


def best_rows(stream: Stream, p: Mapping[str, Any]) -> Ints:
    """The rows that are the k best of each key in the window as the last row leaves it; the newer first of equals."""
    group = _codes(stream["key"])
    rows = np.flatnonzero(_in_time(stream, p))
    if _span(p) is None:
        order = np.argsort(group, kind="stable")
        number, size = _numbered(group[order])
        rows = order[number >= size - p["window"]]
    rank = np.lexsort((-rows, -stream["score"][rows], group[rows]))
    best: Ints = rows[rank[_numbered(group[rows][rank])[0] < p["k"]]]
    return best


def best_ids(stream: Stream, p: Mapping[str, Any]) -> NDArray[Any]:
    """The ids of `best_rows`; with `items` the k keys with the most rows, the one with the newest first of equals."""
    if not p.get("items"):
        return stream["id"][best_rows(stream, p)]
    rows = np.flatnonzero(_in_time(stream, p))
    keys, newest, counts = np.unique(stream["key"][rows][::-1], return_index=True, return_counts=True)
    return keys[np.lexsort((newest, -counts))[: p["k"]]]


def nearest_rows(stream: Stream, p: Mapping[str, Any]) -> Ints:
    """The rows that are the k nearest of each query's point, query after query."""
    rows = np.flatnonzero(_in_time(stream, p))
    x, y = stream["x1"][rows], stream["x2"][rows]
    far = [(x - point[0]) ** 2 + (y - point[1]) ** 2 for point in query_points(p)]
    return np.concatenate([rows[np.argpartition(one, p["k"] - 1)[: p["k"]]] for one in far])


def closes_windows(stream: Stream, p: Mapping[str, Any], mark: Any, sums: Mapping[str, int]) -> bool:
    """Is there an answer of min(k, rows) objects for each key and sliding window with rows that ends by `mark`?

    With `items`: of min(k, keys) objects for each window.
    """
    slide, size = _micros(p["slide"]), _micros(p["window"])
    slot = stream["time"].astype("M8[us]").astype(np.int64) // slide
    first, wide = int(slot.min()), size // slide
    group = _codes(stream["key"])
    slots = int(slot.max()) - first + 1
    counts = np.bincount(group * slots + slot - first, minlength=(group.max() + 1) * slots).reshape(-1, slots)
    # a window that begins at slot s holds slots s to s + wide - 1
    total = np.pad(counts, ((0, 0), (wide, wide))).cumsum(axis=1)
    held = total[:, wide:] - total[:, :-wide]
    ends = (first + 1 + np.arange(held.shape[1])) * slide
    held = held[:, ends <= mark.astype(np.int64)]
    if p.get("items"):  # a window has one answer, of keys
        held = (held > 0).sum(axis=0, keepdims=True)
    return dict(sums) == {"windows": int((held > 0).sum()), "objects": int(np.minimum(held, p["k"]).sum())}


def _in_time(stream: Stream, p: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Which rows are valid at the last row's time, in a time window."""
    span, time = _span(p), stream["time"]
    valid: NDArray[np.bool_] = np.ones(len(time), np.bool_) if span is None else time > time.max() - span
    return valid


def _span(p: Mapping[str, Any]) -> Any:
    if "span" in p:
        return p["span"]
    return None if isinstance(p["window"], int) else np.timedelta64(_micros(p["window"]), "us")


def _micros(said: str) -> int:
    number, unit = said.split()
    return int(number) * {"minute": 60_000_000, "hour": 3_600_000_000}[unit.rstrip("s")]


def _codes(key: NDArray[Any]) -> Ints:
    codes: Ints = pa.array(key).dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes
