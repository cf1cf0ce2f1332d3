"""Contestants over uncertain objects: a Monitor with a synopsis by name, and the compact sets themselves (jin2008)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np

import skyband as sb
from benchmarks.contestants import Outcome, Ready
from benchmarks.workloads import Stream
from skyband.engines.uncertain.semantics import SEMANTICS, Prefix
from skyband.oracle.objects import Arrival
from skyband.oracle.uncertain import most_probable_top_k, top_k_uncertain


def uncertain(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor with one TopKUncertain over the last n."""
    threshold = 0.3 if p["semantics"] == "pt-k" else None
    query = sb.TopKUncertain(
        p["k"],
        by="score",
        window=sb.Last(p["n"]),
        semantics=p["semantics"],
        threshold=threshold,
        algorithm=p["algorithm"],
        group="name" if "name" in stream else None,
    )
    monitor = sb.Monitor(query)
    fill = p.get("fill", 0)
    for batch in _batches(stream, 0, fill, p["batch"]):
        monitor.push(batch)
    batches = _batches(stream, fill, len(stream["score"]), p["batch"])
    (adapter,) = monitor._loop.state.standing()
    before = getattr(adapter.engine, "work", 0)

    def work() -> list[Any]:
        return [monitor.push(batch) for batch in batches]

    def after(changes: list[Any]) -> Outcome:
        stats = monitor.stats()["queries"]["q0"]
        counters = {
            "rows": p["rows"],
            "cycles": p["rows"],
            "changes": sum(table.num_rows for table in changes),
            "objects": stats["objects"],
            "stored": stats["objects"] + stats["buffer"],
            "bytes": stats["bytes"],
            "passed": getattr(adapter.engine, "work", 0) - before,
        }
        return Outcome(monitor.answer().to_pylist(), is_answer, counters)

    return Ready(work, after)


def compact_sets(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """The compact set of a window of n, some times over (Figure 3)."""
    semantics = SEMANTICS[p["semantics"]](p["k"], 0.3 if p["semantics"] == "pt-k" else None)
    windows = [slice(begin, begin + p["n"]) for begin in range(0, p["rows"], p["n"])]

    def work() -> list[int]:
        found = []
        for window in windows:
            order = np.argsort(-stream["score"][window], kind="stable")
            found.append(semantics.read(stream["p"][window][order].tolist())[0])
        return found

    def after(found: list[int]) -> Outcome:
        counters = {"rows": p["rows"], "cycles": len(found), "objects": statistics.fmean(found)}
        return Outcome(found, lambda stream, p, answer: min(answer) >= p["k"], counters)

    return Ready(work, after)


def is_answer(stream: Stream, p: Mapping[str, Any], answer: list[dict[str, Any]]) -> bool:
    """Against the dynamic program over the best of the last n: far more of them than can matter."""
    numbers = np.arange(len(stream["score"]))[-p["n"] :]
    order = numbers[np.lexsort((-numbers, -stream["score"][numbers]))]
    enough = int(6 * p["k"] / stream["p"][numbers].mean()) + 200
    if "name" in stream:
        return is_answer_of_rivals(stream, p, answer, order[:enough])
    semantics = SEMANTICS[p["semantics"]](p["k"], 0.3 if p["semantics"] == "pt-k" else None)
    prefix = Prefix(p["k"])
    for chance in stream["p"][order[:enough]].tolist():
        prefix.add(chance)
    expected = sorted((int(order[place.at]), place.probability) for place in semantics.answer(prefix))
    return _is_same(answer, expected)


def _is_same(answer: list[dict[str, Any]], expected: list[tuple[int, float]]) -> bool:
    got = sorted((row["id"], row["probability"]) for row in answer)
    same = [one for one, _ in got] == [one for one, _ in expected]
    return same and all(abs(a - b) < 1e-9 for (_, a), (_, b) in zip(got, expected, strict=True))


def is_answer_of_rivals(stream: Stream, p: Mapping[str, Any], answer: list[dict[str, Any]], best: Any) -> bool:
    """Against the oracle over the best of the last n, of which some exclude each other."""
    ranking = [Arrival({}, int(i), None, probability=float(stream["p"][i]), rival=int(stream["name"][i])) for i in best]
    if p["semantics"] == "u-topk":
        members = most_probable_top_k(ranking, p["k"])
    else:
        query = sb.TopKUncertain(
            p["k"], "score", sb.Last(1), semantics=p["semantics"], threshold=0.3 if p["semantics"] == "pt-k" else None
        )
        for one, i in zip(ranking, best.tolist(), strict=True):
            one.key = one.score = float(stream["score"][i])
            one.age = (i,)
        members = top_k_uncertain(query, ranking)
    return _is_same(answer, sorted((one.objects[0].id, one.probability or 0.0) for one in members))


def _batches(stream: Stream, begin: int, end: int, size: int) -> list[Stream]:
    return [
        {name: column[at : min(at + size, end)] for name, column in stream.items()} for at in range(begin, end, size)
    ]
