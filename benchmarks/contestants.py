"""Contestants: a function of the stream and the parameters that gets ready and never times itself.

It returns two functions. `work` is what the harness times; `after`, not timed, turns what `work` returned
into an answer, the check that it must pass (checks.py), and counters of the work done, `rows` among them.
Parameters: n (window), k, rows (timed), fill (rows taken before the clock starts), batch (rows of a push).
queries (so many Nearest ones, gathered or not by the Monitor itself), algorithm, its tuning, net (emit="batch").
Those of mouratidis2006 are in preferences.py, those of haghani2009 in incomplete.py, and those on Spark in
spark/contestants.py; they are loaded when one takes part.
"""

from __future__ import annotations

import collections
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import sortedcontainers

import skyband as sb
from benchmarks import checks, fresh, yardsticks
from benchmarks.checks import Answer, Check
from benchmarks.workloads import Stream, sites
from skyband.engines.arena import runs
from skyband.engines.topk.odds import false_ones, misses, strict_size
from skyband.engines.topk.slots import Slots

TUNING = ("index", "cells", "buffer", "gamma", "sigma", "additional")  # passed on to TopK where they are given


@dataclass(frozen=True)
class Outcome:
    answer: Any
    check: Check
    counters: dict[str, float]
    triggers: list[dict[str, float]] = field(default_factory=list)  # on Spark: rows, and milliseconds by phase


@dataclass(frozen=True)
class Ready:
    work: Callable[[], Any]
    after: Callable[[Any], Outcome]


Contestant = Callable[[Stream, Mapping[str, Any]], Ready]


def skyband_push(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor with one TopK over the last n, or `ever` over all (then n is rows), per `key` where there are keys."""
    keyed = "key" in stream
    query = sb.TopK(
        p["k"],
        by="score",
        window=sb.Ever() if p.get("ever") else sb.Last(p["n"]),
        per="key" if keyed else None,
        algorithm=p.get("algorithm", "auto"),
    )
    monitor = sb.Monitor(query)
    before = [monitor.push(batch) for batch in _batches(stream, 0, p.get("fill", 0), p["batch"])]
    batches = _batches(stream, p.get("fill", 0), len(stream["score"]), p["batch"])

    def work() -> list[Any]:
        return [monitor.push(batch) for batch in batches]

    def after(changes: list[Any]) -> Outcome:
        stats = monitor.stats()["queries"]["q0"]
        counters = {
            "rows": p["rows"],
            "changes": sum(table.num_rows for table in changes),
            "objects": stats["objects"],
            "bytes": stats["bytes"],
        }
        whole = pa.concat_tables(before + changes)
        group = whole["key"].to_numpy() if keyed else np.zeros(whole.num_rows, np.int64)
        diffs = {"group": group, "id": whole["id"].to_numpy(), "diff": whole["diff"].to_numpy()}

        def check(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
            return checks.is_topk(stream, p, answer) and checks.adds_up(diffs, answer)

        return Outcome(_answer(monitor.answer(), keyed), check, counters)

    return Ready(work, after)


def nearest(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor with `queries` Nearest queries over the last n, pushed as Arrow tables."""
    monitor = _near(stream, p)
    fill, end = p.get("fill", 0), p.get("fill", 0) + p["rows"]
    before = [monitor.push(table) for table in _tables(stream, 0, fill, p["batch"])]
    tables = _tables(stream, fill, end, p["batch"])
    approximate = p["algorithm"] == "PA"

    def work() -> list[Any]:
        return [monitor.push(table) for table in tables]

    def after(changes: list[Any]) -> Outcome:
        answer, diffs = _near_answer(monitor, p["queries"]), _changes_of(before + changes)
        stats = monitor.stats()["queries"]
        kept = [stats[str(number)]["objects"] for number in range(p["queries"])]
        counters = {
            "rows": p["rows"],
            "changes": sum(table.num_rows for table in changes),
            "objects": float(np.mean(kept)),
            "most_objects": max(kept),
            "objects_over_curve": float(np.mean(kept)) / strict_size(p["n"], p["k"]),
            "buffer": stats["0"].get("buffer", 0),
        }
        if approximate:
            counters["lacking"] = checks.lacking(stream, p, answer)
        if p.get("distinct"):
            counters["distinct_objects"] = _distinct(monitor) / p["queries"]

        def check(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
            is_right = checks.is_near if approximate else checks.is_nearest
            return is_right(stream, p, answer) and checks.adds_up(diffs, answer)

        return Outcome(answer, check, counters)

    return Ready(work, after)


def _distinct(monitor: sb.Monitor) -> int:
    """How many objects the queries keep, each once however many keep it; without the buffer that they share."""
    engines: list[Any] = [adapter.engine for adapter in monitor._loop.state.standing()]
    if isinstance(engines[0], Slots):  # one engine for all queries
        return sum(one.shared_objects for one in engines)
    kept = [runs(one.objects, one.groups, np.arange(len(one.groups)))["serial"] for one in engines]
    return len(np.unique(np.concatenate(kept)))


def pa_errors(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """PA, and afterwards BLOCK, which is exact: objects that only one of them ever reports, per query."""
    approximate = nearest(stream, {**p, "algorithm": "PA"})
    exact = nearest(stream, {**p, "algorithm": "BLOCK"})

    def after(changes: list[Any]) -> Outcome:
        true = exact.work()
        outcome, other = approximate.after(changes), exact.after(true)
        ours, theirs = _reported(changes), _reported(true)
        missed = len(np.setdiff1d(theirs, ours, assume_unique=True)) / p["queries"]
        false = len(np.setdiff1d(ours, theirs, assume_unique=True)) / p["queries"]
        counters = outcome.counters | {
            "reported": len(theirs) / p["queries"],
            "missed": missed,
            "false": false,
            "missed_of_bound": missed / misses(p["sigma"], p["rows"], p["n"]),
            "false_of_bound": false / false_ones(p["sigma"], p["rows"], p["n"]),
        }

        def check(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
            return outcome.check(stream, p, answer) and other.check(stream, p, other.answer)

        return Outcome(outcome.answer, check, counters)

    return Ready(approximate.work, after)


def all_scores(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A yardstick: every object's squared distance to every query's point, compared with a constant."""
    data = np.stack([column[p.get("fill", 0) :] for column in stream.values()])
    points, limit = sites(stream, p), 1e-4
    yardsticks.count_near(data[:, :10], points, limit)  # compiled before the clock starts

    def check(stream: Stream, p: Mapping[str, Any], count: int) -> bool:
        some = points[:3]
        wanted = sum(int((((data - point[:, None]) ** 2).sum(axis=0) < limit).sum()) for point in some)
        return bool(yardsticks.count_near(data, some, limit) == wanted and count >= wanted)

    return Ready(
        lambda: yardsticks.count_near(data, points, limit),
        lambda count: Outcome(count, check, {"rows": data.shape[1]}),
    )


def sortedcontainers_window(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """What one writes in plain Python: a sorted list of the window, its best k read at each event."""
    n, k = p["n"], p["k"]
    window: collections.deque[tuple[float, int]] = collections.deque()
    ranked = sortedcontainers.SortedList()
    # best first, the newer first among equals; the front of a SortedList is read faster than its end
    objects = [(-score, -number) for number, score in enumerate(stream["score"].tolist())]

    def take(arrivals: list[tuple[float, int]]) -> list[tuple[float, int]]:
        best = []
        for arrival in arrivals:
            if len(window) == n:
                ranked.remove(window.popleft())
            window.append(arrival)
            ranked.add(arrival)
            best = ranked[:k]
        return best

    fill = p.get("fill", 0)
    take(objects[:fill])

    def work() -> list[tuple[float, int]]:
        return take(objects[fill:])

    def after(best: list[tuple[float, int]]) -> Outcome:
        answer = Answer(
            group=np.zeros(len(best), np.int64),
            id=np.array([-number for _, number in best]),
            score=np.array([-score for score, _ in best]),
        )
        return Outcome(answer, checks.is_topk, {"rows": p["rows"], "objects": len(ranked)})

    return Ready(work, after)


def numpy_argsort(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A yardstick: one np.argsort of the scores, or of another `column`, all timed rows at once."""
    column = stream[p.get("column", "score")][p.get("fill", 0) :]
    check = checks.sorts(column, stable=False)
    return Ready(lambda: np.argsort(column), lambda order: Outcome(order, check, {"rows": len(order)}))


def numpy_argsort_keys(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A yardstick: one stable np.argsort of the keys, the least that grouping costs."""
    column = stream["key"][p.get("fill", 0) :]
    check = checks.sorts(column, stable=True)
    return Ready(lambda: np.argsort(column, kind="stable"), lambda order: Outcome(order, check, {"rows": len(order)}))


def fresh_process(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A new Python that imports skyband and pushes the stream; `cold`: with no compiled code on disk."""

    def after(printed: dict[str, Any]) -> Outcome:
        answer = Answer(*(np.array(printed["answer"][name]) for name in ("group", "id", "score")))
        check = checks.is_nearest if "queries" in p else checks.is_topk
        return Outcome(answer, check, {"rows": p["rows"], **printed["counters"]})

    return Ready(lambda: fresh.start(stream, p), after)


def _batches(stream: Stream, begin: int, end: int, size: int) -> list[Stream]:
    return [
        {name: column[at : min(at + size, end)] for name, column in stream.items()} for at in range(begin, end, size)
    ]


def _answer(table: Any, keyed: bool) -> Answer:
    group = table["key"].to_numpy() if keyed else np.zeros(table.num_rows, np.int64)
    return Answer(group, table["id"].to_numpy(), table["score"].to_numpy())


def _near(stream: Stream, p: Mapping[str, Any]) -> Any:
    """The Monitor of `nearest`; a query's name is its number."""
    tuning = {name: p[name] for name in TUNING if name in p}
    return sb.Monitor(
        {
            str(number): sb.TopK(
                p["k"],
                by=sb.Nearest(dict(zip(stream, point, strict=True))),
                window=sb.Last(p["n"]),
                algorithm=p["algorithm"],
                **tuning,
            )
            for number, point in enumerate(sites(stream, p).tolist())
        },
        emit="batch" if p.get("net") else "arrival",
    )


def _tables(stream: Stream, begin: int, end: int, size: int) -> list[Any]:
    return [pa.table(batch) for batch in _batches(stream, begin, end, size)]


def _near_answer(monitor: Any, queries: int) -> Answer:
    tables = [monitor.answer(str(number)) for number in range(queries)]
    group = np.repeat(np.arange(queries), [table.num_rows for table in tables])
    whole = pa.concat_tables(tables)
    return Answer(group, whole["id"].to_numpy(), whole["score"].to_numpy())


def _changes_of(changes: list[Any]) -> Stream:
    """All changes of `nearest` as arrays; a group is a query."""
    whole = pa.concat_tables(changes).unify_dictionaries()
    name = whole["query"].combine_chunks()
    group = np.array([int(one) for one in name.dictionary.to_pylist()], np.int64)[name.indices.to_numpy()]
    return {"group": group, "id": whole["id"].to_numpy(), "diff": whole["diff"].to_numpy()}


def _reported(changes: list[Any]) -> Any:
    """Query and object of everything that was ever in an answer."""
    found = _changes_of(changes)
    return np.unique(found["group"] << 32 | found["id"])


def _elsewhere(module: str, name: str) -> Contestant:
    def enter(stream: Stream, p: Mapping[str, Any]) -> Ready:
        there: Any = importlib.import_module(f"benchmarks.{module}")
        ready: Ready = getattr(there, name)(stream, p)
        return ready

    return enter


STANDING = ("standing_push", "registering", "one_more", "plain_push", "linear_products")
ON_SPARK = ("spark_identity", "spark_monitor", "spark_pairs", "spark_max_by", "spark_idle")
SUBSCRIBERS = ("subscriptions_push", "spark_subscriptions", "spark_rows_alone")  # spark/subscribers.py
PEERS = ("embedded", "flink", "duckdb_panes", "spark_windows")  # peers/contestants.py
STEPS = ("push", "whole", "polars", "pandas", "duckdb", "spark")  # peers/latency.py: seconds of each step
FRAMES = ("polars_dynamic", "polars_rolling", "pandas_windows", "whole_window")
PREFERENCES = ("preferences", "deletions")
DOUBTS = ("uncertain", "compact_sets")
HEAVY = ("sketch_push",)
COUPLES = ("pairs", "pairs_push", "supreme", "reads", "again")
CONTESTANTS: dict[str, Contestant] = {
    enter.__name__: enter
    for enter in (
        skyband_push,
        nearest,
        pa_errors,
        all_scores,
        sortedcontainers_window,
        numpy_argsort,
        numpy_argsort_keys,
        fresh_process,
    )
}
CONTESTANTS |= {name: _elsewhere("preferences", name) for name in PREFERENCES}
CONTESTANTS |= {name: _elsewhere("doubts", name) for name in DOUBTS}
CONTESTANTS |= {name: _elsewhere("couples", name) for name in COUPLES}
CONTESTANTS |= {name: _elsewhere("heavy", name) for name in HEAVY}
CONTESTANTS |= {name: _elsewhere("incomplete", name) for name in ("incomplete", "endless", "totals", "skylines")}
CONTESTANTS |= {name: _elsewhere("groups", name) for name in ("groups_push", "factorize", "plain_python")}
CONTESTANTS |= {name: _elsewhere("keys", name) for name in ("ordered_push", "arrow_rank")}
CONTESTANTS |= {name: _elsewhere("vectors", name) for name in ("similar_push", "bare_products", "faiss_flat")}
CONTESTANTS |= {name: _elsewhere("standing", name) for name in STANDING}
CONTESTANTS |= {name: _elsewhere("shared", name) for name in ("same_scoring", "shared_band", "min_topk")}
CONTESTANTS |= {name: _elsewhere("spark.contestants", name) for name in ON_SPARK}
CONTESTANTS |= {"spark_session": _elsewhere("spark.connect", "spark_session")}
CONTESTANTS |= {name: _elsewhere("spark.subscribers", name) for name in SUBSCRIBERS}
CONTESTANTS |= {name: _elsewhere("peers.contestants", name) for name in PEERS}
CONTESTANTS |= {name: _elsewhere("peers.frames", name) for name in FRAMES}
CONTESTANTS |= {f"{name}_steps": _elsewhere("peers.latency", f"{name}_steps") for name in STEPS}
