"""Many queries of one scoring with other k and n, and what came after the five papers, rebuilt (Numba, per slide).

`same_scoring` is a Monitor. `min_topk` is MinTopK (Yang, Shastri, Rundensteiner and Ward, EDBT 2011), one query.
`shared_band` keeps the objects that any of the queries can still need, and no others: the minimal set of MTopBand
(Shastri, Yang, Rundensteiner and Ward, 2011). A slide is a push of `batch` rows; both report net changes of a slide.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import skyband as sb
from benchmarks import checks
from benchmarks.checks import Answer
from benchmarks.contestants import Outcome, Ready
from benchmarks.workloads import Stream

Ints = NDArray[np.int64]


def queries_of(p: Mapping[str, Any]) -> tuple[Ints, Ints]:
    """K and n of each query: the largest ones first, the others uniform from the least on."""
    rng = np.random.default_rng(p["queries"])
    ks = rng.integers(p.get("least_k", p["k"]), p["k"] + 1, p["queries"])
    ns = rng.integers(p.get("least_n", p["n"]), p["n"] + 1, p["queries"])
    ks[0], ns[0] = p["k"], p["n"]
    return ks, ns


def same_scoring(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor with `queries` TopK of one scoring."""
    ks, ns = queries_of(p)
    monitor = sb.Monitor(
        {
            f"{q}": sb.TopK(k, by="score", window=sb.Last(n))
            for q, (k, n) in enumerate(zip(ks.tolist(), ns.tolist(), strict=True))
        },
        emit="batch" if p.get("net") else "arrival",
    )
    before = [monitor.push(table) for table in _tables(stream, 0, p["fill"], p["batch"])]
    tables = _tables(stream, p["fill"], len(stream["score"]), p["batch"])

    def work() -> list[Any]:
        return [monitor.push(table) for table in tables]

    def after(changes: list[Any]) -> Outcome:
        whole = pa.concat_tables(before + changes).unify_dictionaries()
        name = whole["query"].combine_chunks()
        group = np.array([int(one) for one in name.dictionary.to_pylist()], np.int64)[name.indices.to_numpy()]
        diffs = {"group": group, "id": whole["id"].to_numpy(), "diff": whole["diff"].to_numpy()}
        answers = [monitor.answer(f"{q}") for q in range(len(ks))]
        sizes = [table.num_rows for table in answers]
        table = pa.concat_tables(answers)
        answer = Answer(np.repeat(np.arange(len(ks)), sizes), table["id"].to_numpy(), table["score"].to_numpy())

        def check(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
            return is_each_topk(stream, p, answer) and checks.adds_up(diffs, answer)

        return Outcome(answer, check, {"rows": p["rows"], "changes": sum(one.num_rows for one in changes)})

    return Ready(work, after)


def min_topk(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """MinTopK: one query, whose n is a whole number of slides."""
    score, k, slide = stream["score"], p["k"], p["batch"]
    windows = p["n"] // slide
    assert windows * slide == p["n"], "n is a whole number of slides"
    state = new_predictions(k, windows)
    slides = [(at, min(at + slide, len(score))) for at in range(0, len(score), slide)]
    found = [predict(state, k, score[a:b], a) for a, b in slides if a < p["fill"]]
    rest = [(a, b) for a, b in slides if a >= p["fill"]]

    def work() -> list[tuple[Ints, int]]:
        return [predict(state, k, score[a:b], a) for a, b in rest]

    def after(answers: list[tuple[Ints, int]]) -> Outcome:
        ids, kept = answers[-1]
        all_ids = [found[-1][0] if found else np.empty(0, np.int64), *(one for one, _ in answers)]
        changes = sum(len(np.setxor1d(a, b)) for a, b in itertools.pairwise(all_ids))
        answer = Answer(np.zeros(len(ids), np.int64), ids, score[ids])
        counters = {"rows": p["rows"], "changes": changes, "objects": float(kept)}
        return Outcome(answer, checks.is_topk, counters)

    return Ready(work, after)


def shared_band(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """One sorted run for all queries; every answer is read from it at the end of a slide, and compared."""
    ks, ns = queries_of(p)
    score, slide = stream["score"], p["batch"]
    reach = reaches(ks, ns)
    state = Band(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    last = np.full((len(ks), int(ks.max())), -1, np.int64)
    held, marks = np.zeros(len(ks), np.int64), np.full((2, len(score)), -1)

    def take(begin: int, end: int) -> Any:
        nonlocal state
        state = band_of(state, score[begin:end], begin, reach)
        return read_answers(state.numbers, ks, ns, end, last, held, marks)

    slides = [(at, min(at + slide, len(score))) for at in range(0, len(score), slide)]
    before = [take(a, b) for a, b in slides if a < p["fill"]]
    rest = [(a, b) for a, b in slides if a >= p["fill"]]

    def work() -> list[Any]:
        return [take(a, b) for a, b in rest]

    def after(changes: list[Any]) -> Outcome:
        parts = before + changes
        names = ("group", "id", "diff")
        diffs = {name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(names)}
        ids = np.concatenate([last[q, : held[q]] for q in range(len(ks))])
        answer = Answer(np.repeat(np.arange(len(ks)), held), ids, score[ids])

        def check(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
            return is_each_topk(stream, p, answer) and checks.adds_up(diffs, answer)

        counters = {"rows": p["rows"], "changes": sum(len(part[0]) for part in changes), "objects": len(state.keys)}
        return Outcome(answer, check, counters)

    return Ready(work, after)


def is_each_topk(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
    """Are these the k best of the last n of the queries, with their own k and n? Of a hundred, spread evenly."""
    ks, ns = queries_of(p)
    starts = np.searchsorted(answer.group, np.arange(len(ks) + 1))
    for q in range(0, len(ks), max(1, len(ks) // 100)):
        score = stream["score"][-ns[q] :]
        best = np.flatnonzero(score >= np.partition(score, -min(ks[q], len(score)))[-min(ks[q], len(score))])
        wanted = best[np.lexsort((-best, -score[best]))[: ks[q]]] + len(stream["score"]) - len(score)
        if not np.array_equal(answer.id[starts[q] : starts[q + 1]], wanted):
            return False
    return True


def _tables(stream: Stream, begin: int, end: int, size: int) -> list[Any]:
    return [pa.table({"score": stream["score"][at : min(at + size, end)]}) for at in range(begin, end, size)]


# ---- MTopBand's minimal set, in arrays


class Band(NamedTuple):
    """Objects best first."""

    keys: Any
    numbers: Ints
    above: Ints  # how many newer ones rank above each


def reaches(ks: Ints, ns: Ints) -> Ints:
    """By the number of newer objects above it: up to which age an object can be in an answer of any query."""
    reach = np.zeros(int(ks.max()), np.int64)
    for k, n in zip(ks.tolist(), ns.tolist(), strict=True):
        reach[:k] = np.maximum(reach[:k], n)
    return reach


def band_of(band: Band, scores: Any, first: int, reach: Ints) -> Band:
    keys, numbers, above = fresh_ones(scores, first, len(reach))
    order = np.lexsort((-numbers, -keys))
    return Band(*merged(band, Band(keys[order], numbers[order], above[order]), first + len(scores), reach))


@numba.njit(cache=True)
def fresh_ones(scores: Any, first: int, most: int) -> Any:
    """Those of a slide that fewer than `most` newer ones of it outrank, and how many do."""
    keys, numbers = np.empty(len(scores)), np.empty(len(scores), np.int64)
    above = np.empty(len(scores), np.int64)
    best = np.empty(most)  # of the newer ones, ascending
    size = n = 0
    for i in range(len(scores) - 1, -1, -1):
        key = scores[i]
        if size == most and best[0] >= key:
            continue
        place = np.searchsorted(best[:size], key)  # those from here on rank above: the newer of equals too
        keys[n], numbers[n], above[n] = key, first + i, size - place
        n += 1
        if size < most:
            best[place + 1 : size + 1] = best[place:size].copy()
            best[place] = key
            size += 1
        else:
            best[: place - 1] = best[1:place].copy()
            best[place - 1] = key
    return keys[:n], numbers[:n], above[:n]


@numba.njit(cache=True)
def merged(old: Any, new: Any, end: int, reach: Any) -> Any:
    """Both runs as one, without what no query can need again."""
    keys, numbers, above = old
    new_keys, new_numbers, new_above = new
    out_keys = np.empty(len(keys) + len(new_keys))
    out_numbers, out_above = np.empty(len(out_keys), np.int64), np.empty(len(out_keys), np.int64)
    i = j = n = 0
    while i < len(keys) or j < len(new_keys):
        if j < len(new_keys) and (i == len(keys) or new_keys[j] >= keys[i]):
            key, number, more = new_keys[j], new_numbers[j], new_above[j]
            j += 1
        else:
            key, number, more = keys[i], numbers[i], above[i] + j
            i += 1
        if more < len(reach) and end - number <= reach[more]:
            out_keys[n], out_numbers[n], out_above[n] = key, number, more
            n += 1
    return out_keys[:n], out_numbers[:n], out_above[:n]


@numba.njit(cache=True)
def read_answers(numbers: Any, ks: Any, ns: Any, end: int, last: Any, held: Any, marks: Any) -> Any:
    """The changes of all answers since the last slide, as (query, number, diff); `last` and `held` go on.

    marks: two for each number of the stream, the last query that had it before and after a slide.
    """
    out = np.empty((3, 1024), np.int64)
    now, n = np.empty(last.shape[1], np.int64), 0
    for q in range(len(ks)):
        mark, size, bound = end * len(ks) + q, 0, end - ns[q]
        for number in numbers:
            if size == ks[q]:
                break
            if number >= bound:
                now[size] = number
                marks[1, number] = mark
                size += 1
        if n + size + held[q] > out.shape[1]:
            longer = np.empty((3, 2 * (n + size + held[q])), np.int64)
            longer[:, :n] = out[:, :n]
            out = longer
        for number in last[q, : held[q]]:
            marks[0, number] = mark
            if marks[1, number] != mark:
                out[0, n], out[1, n], out[2, n] = q, number, -1
                n += 1
        for number in now[:size]:
            if marks[0, number] != mark:
                out[0, n], out[1, n], out[2, n] = q, number, 1
                n += 1
        last[q, :size], held[q] = now[:size], size
    return out[:, :n].copy()


# ---- MinTopK in arrays


class Predictions(NamedTuple):
    """The predicted answers of this window and those to come, as one list, best first (MinTopK's integrated list).

    An object is in the predictions of the windows `start` to `end`.
    """

    keys: Any
    numbers: Ints
    start: Ints
    end: Ints
    size: Ints  # of the list, and the present window
    counts: Ints  # by window, in a ring: objects predicted
    lowest: Ints  # by window, in a ring: the place of the k-th of them, once there are k


def new_predictions(k: int, windows: int) -> Predictions:
    room = k * windows + 1
    return Predictions(
        keys=np.empty(room),
        numbers=np.zeros(room, np.int64),
        start=np.zeros(room, np.int64),
        end=np.zeros(room, np.int64),
        size=np.zeros(2, np.int64),
        counts=np.zeros(windows, np.int64),
        lowest=np.full(windows, -1, np.int64),
    )


@numba.njit(cache=True)
def drop_unpredicted(state: Any) -> int:
    """Drop what no window predicts; returns how many stay."""
    keys, numbers, start, end, size, _, lowest = state
    n = gone = 0
    for j in range(size[0]):
        if start[j] > end[j]:
            gone += 1
            for v in range(len(lowest)):
                if lowest[v] > n:
                    lowest[v] -= 1
            continue
        if n < j:
            keys[n], numbers[n], start[n], end[n] = keys[j], numbers[j], start[j], end[j]
        n += 1
    size[0] = n
    return n


@numba.njit(cache=True)
def predict(state: Any, k: int, scores: Any, first: int) -> Any:
    """Take a slide; returns the numbers of the answer, best first, and how many objects are kept."""
    keys, numbers, start, end, size, counts, lowest = state
    windows, w = len(counts), size[1]
    for i in range(len(scores)):
        key = scores[i]
        wanted = False  # by any window that it lives to see
        for v in range(w, w + windows):
            at = lowest[v % windows]
            if counts[v % windows] < k or keys[at] <= key:
                wanted = True
                break
        if not wanted:
            continue
        low, high = 0, size[0]
        while low < high:  # above its equals: it is newer
            middle = (low + high) // 2
            low, high = (middle + 1, high) if keys[middle] > key else (low, middle)
        for j in range(size[0], low, -1):
            keys[j], numbers[j], start[j], end[j] = keys[j - 1], numbers[j - 1], start[j - 1], end[j - 1]
        size[0] += 1
        keys[low], numbers[low], end[low] = key, first + i, w + windows - 1
        start[low] = end[low] + 1
        for v in range(w, w + windows):
            if lowest[v % windows] >= low:
                lowest[v % windows] += 1
        for v in range(w + windows - 1, w - 1, -1):  # it is in the prediction of a window if it is in an earlier one's
            slot = v % windows
            if counts[slot] < k:
                counts[slot] += 1
                start[low] = v
                if counts[slot] == k:
                    at = size[0] - 1
                    while not start[at] <= v <= end[at]:
                        at -= 1
                    lowest[slot] = at
            elif lowest[slot] > low:
                start[low] = v
                at = lowest[slot]
                start[at] = max(start[at], v + 1)
                at -= 1
                while not start[at] <= v <= end[at]:
                    at -= 1
                lowest[slot] = at
            else:
                break
        drop_unpredicted(state)
    answer = np.empty(k, np.int64)
    n = 0
    for j in range(size[0]):
        if start[j] <= w <= end[j] and n < k:
            answer[n] = numbers[j]
            n += 1
    size[1], counts[w % windows], lowest[w % windows] = w + 1, 0, -1  # its place is that of a new window
    for j in range(size[0]):
        start[j] = max(start[j], w + 1)
    kept = drop_unpredicted(state)
    return answer[:n], kept
