"""Contestants of mouratidis2006: many preference queries over one window, and over objects that are deleted.

Parameters: those of contestants.py; a push of `batch` rows is a processing cycle (`emit`: "batch", as in the paper).
form: "linear", "product" or "quadratic"; cells, view: passed on to TopK where they are given.
start: "stream" (the queries stand from the beginning, and the first `fill` rows come in pushes of n/100), or "window"
(one stands, the others are added on the full window, as in the paper; for engines that keep it).
every: after so many cycles the sizes of all runs are read, within the timed part.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from benchmarks import checks
from benchmarks.checks import Answer
from benchmarks.contestants import Outcome, Ready
from benchmarks.workloads import Stream, weights


def _typed(weights: Mapping[str, float]) -> str:
    """The same sum, to the last bit, as an expression that no form fits: it is bounded by intervals."""
    return " + ".join(f"{weight!r} * {name}" for name, weight in weights.items()) + " + 0"


FORMS: dict[str, Any] = {"linear": sb.Linear, "product": sb.Product, "quadratic": sb.Quadratic, "typed": _typed}
ANSWER_BYTES = 16  # an object's number and its score
INDEX = ("slots", "data", "order", "cells", "lists", "edges", "state", "unlisted", "sorted", "recent", "marks")


def preferences(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """`queries` preferences over the last n, in cycles."""
    fill, end = p["fill"], p["fill"] + p["rows"]
    queries = _queries(p, sb.Last(p["n"]))
    at_once = dict(list(queries.items())[:1]) if p.get("start") == "window" else queries
    monitor = sb.Monitor(at_once, emit=p.get("emit", "batch"))
    before = [monitor.push(table) for table in _tables(stream, 0, fill, max(30, p["n"] // 100))]
    before += [monitor.add(name, one, from_window=True) for name, one in queries.items() if name not in at_once]
    tables = _tables(stream, fill, end, p["batch"])
    every, sizes = p.get("every", 0), []
    done = _work(monitor)

    def work() -> list[Any]:
        changes = []
        for number, table in enumerate(tables, start=1):
            changes.append(monitor.push(table))
            if every and number % every == 0:
                sizes.append(_objects(monitor))
        return changes

    def after(changes: list[Any]) -> Outcome:
        answer, reported = _answers(monitor, p["queries"]), _changes_of(before + changes)
        counters = {
            "rows": p["rows"],
            "cycles": len(tables),
            "changes": sum(table.num_rows for table in changes),
            "objects": float(np.mean(sizes)) if sizes else _objects(monitor),
            **_space(monitor, p, min(p["n"], end)),
            **{name: count - done[name] for name, count in _work(monitor).items()},
        }

        def check(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
            valid = np.arange(max(0, end - p["n"]), end)
            return checks.is_preferred(stream, p, answer, valid) and checks.adds_up(reported, answer)

        return Outcome(answer, check, counters)

    return Ready(work, after)


def deletions(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """`rows` inserts and deletes in turn, `batch` of each at a time, over `fill` live objects; deleted at random."""
    live, batch, pairs = p["fill"], p["batch"], p["rows"] // 2 // p["batch"]
    named = {"id": np.arange(len(stream["x1"])), **stream}
    monitor = sb.Monitor(_queries(p, sb.UntilDeleted()), id="id", emit=p.get("emit", "batch"))
    before = [monitor.push(table) for table in _tables(named, 0, live, max(1, live // 10))]
    inserts = _tables(named, live, live + pairs * batch, batch)
    left, rng, deleted = np.arange(live), np.random.default_rng(0), []
    for number in range(pairs):
        places = rng.choice(live, batch, replace=False)
        deleted.append(pa.array(left[places]))
        left[places] = live + number * batch + np.arange(batch)

    spent = [0.0, 0.0]  # processor time of pushes and of deletions

    def work() -> list[Any]:
        changes = []
        for table, ids in zip(inserts, deleted, strict=True):
            began = time.process_time()
            changes.append(monitor.push(table))
            pushed = time.process_time()
            changes.append(monitor.delete(ids))
            spent[0] += pushed - began
            spent[1] += time.process_time() - pushed
        return changes

    def after(changes: list[Any]) -> Outcome:
        answer, reported = _answers(monitor, p["queries"]), _changes_of(before + changes)
        counters = {
            "rows": 2 * pairs * batch,
            "insert_seconds": spent[0],
            "delete_seconds": spent[1],
            "changes": sum(table.num_rows for table in changes),
            "objects": _objects(monitor),
            **_space(monitor, p, live),
            **_work(monitor),
        }

        def check(stream: Stream, p: Mapping[str, Any], answer: Answer) -> bool:
            return checks.is_preferred(stream, p, answer, np.sort(left)) and checks.adds_up(reported, answer)

        return Outcome(answer, check, counters)

    return Ready(work, after)


def _queries(p: Mapping[str, Any], window: Any) -> dict[str, Any]:
    """By number; the coefficients are the same in every repeat."""
    form, tuning = FORMS[p.get("form", "linear")], {name: p[name] for name in ("cells", "view") if name in p}
    algorithm = p.get("algorithm", "auto")
    return {
        str(number): sb.TopK(
            p["k"],
            by=form({f"x{j + 1}": float(weight) for j, weight in enumerate(row)}),
            window=window,
            algorithm=algorithm,
            **tuning,
        )
        for number, row in enumerate(weights(p))
    }


def _tables(stream: Stream, begin: int, end: int, size: int) -> list[Any]:
    cuts = [(at, min(at + size, end)) for at in range(begin, end, size)]
    return [pa.table({name: column[a:b] for name, column in stream.items()}) for a, b in cuts]


def _answers(monitor: Any, queries: int) -> Answer:
    tables = [monitor.answer(str(number)) for number in range(queries)]
    whole = pa.concat_tables(tables)
    group = np.repeat(np.arange(queries), [table.num_rows for table in tables])
    return Answer(group, whole["id"].to_numpy(), whole["score"].to_numpy())


def _changes_of(changes: list[Any]) -> Stream:
    whole = pa.concat_tables(changes).unify_dictionaries()
    name = whole["query"].combine_chunks()
    group = np.array([int(one) for one in name.dictionary.to_pylist()], np.int64)[name.indices.to_numpy()]
    return {"group": group, "id": whole["id"].to_numpy(), "diff": whole["diff"].to_numpy()}


def _objects(monitor: Any) -> float:
    """Objects of a query's run, view or skyband, on average."""
    return float(np.mean([one["objects"] for one in monitor.stats()["queries"].values()]))


def _space(monitor: Any, p: Mapping[str, Any], valid: int) -> dict[str, float]:
    """Bytes of everything, each adapter once, and of the index: shares of 2.5 times the attributes and the answers."""
    stats = monitor.stats()["queries"]
    firsts = [next(iter(adapter.queries)) for adapter in monitor._loop.state.standing()]
    raw, answers = valid * p["d"] * 8, p["queries"] * min(p["k"], valid) * ANSWER_BYTES
    whole = float(sum(stats[name]["bytes"] for name in firsts))
    stores = [store for adapter in monitor._loop.state.standing() for store in getattr(adapter.engine, "stores", ())]
    index = float(sum(getattr(store, name).nbytes for store in stores for name in INDEX))
    limit = 2.5 * raw + answers
    shares = {"index_bytes": index, "index_share": index / limit} if stores else {}
    return {"bytes": whole, "space_share": whole / limit, **shares}


def _work(monitor: Any) -> dict[str, int]:
    """Counters of engines that keep the window: scored, visited, searches."""
    total: dict[str, int] = {}
    for adapter in monitor._loop.state.standing():
        for name, count in adapter.engine.work.items() if hasattr(adapter.engine, "stores") else ():
            total[name] = total.get(name, 0) + count
    return total
