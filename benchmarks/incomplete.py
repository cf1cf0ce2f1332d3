"""Contestants of haghani2009: one query over objects whose parts arrive in separate rows.

Parameters: parts (streams), xi, C (of the generator), n, k, algorithm, rows, fill, batch, and share: BUDGET gets this
share of the items that EAA (or another, `like`) keeps, its shadows among them. every: after so many rows the answer is
held against an exact one, and what is kept is counted (haghani2009, 6.1.3: precision; the "relative" error is the mean
absolute difference of scores, rank by rank).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from benchmarks.contestants import Outcome, Ready
from benchmarks.workloads import Stream


def incomplete(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor that is pushed the rows; precision and sizes are measured apart, on the same stream."""
    table = pa.table({**stream, "part": pa.array(stream["part"]).dictionary_encode()})
    fill, end, every = p.get("fill", 0), p.get("fill", 0) + p["rows"], p.get("every", 0)
    more: dict[str, Any] = {}
    if p.get("share"):
        kept, _, _ = _watch(table, {**p, "algorithm": p.get("like", "EAA")}, fill, end, every, {})
        more = {"budget": max(p["k"], round(p["share"] * float(np.mean(kept))))}
    monitor = _monitor(p, more)
    tables = [table.slice(begin, min(p["batch"], end - begin)) for begin in range(fill, end, p["batch"])]
    monitor.push(table.slice(0, fill))

    def work() -> list[Any]:
        return [monitor.push(one) for one in tables]

    def after(changes: list[Any]) -> Outcome:
        stats = monitor.stats()["queries"]["q0"]
        counters = {"rows": p["rows"], "objects": stats["objects"], "bytes": stats["bytes"]}
        if every:
            kept, answers, scores = _watch(table, p, fill, end, every, more)
            other = "SLA" if p["algorithm"] == "SWEEP" else "SWEEP"
            _, right, best = _watch(table, {**p, "algorithm": other}, fill, end, every, {})
            found = [len(one & two) / max(1, len(two)) for one, two in zip(answers, right, strict=True)]
            away = [np.abs(one - two[: len(one)]).sum() / p["k"] for one, two in zip(scores, best, strict=True)]
            counters |= {
                "objects": float(np.mean(kept)),
                "precision": float(np.mean(found)),
                "error": float(np.mean(away)),
            }
            if "halved" in p:
                counters |= _after_halving(np.array(found), p, fill, every)
        if "precision" in stats:  # not known yet: NaN
            precision = stats["precision"]
            counters |= {"told": float("nan") if precision is None else precision, "shadows": stats["shadows"]}
        return Outcome(monitor.answer(), _is_sound, counters)

    return Ready(work, after)


def _after_halving(found: Any, p: Mapping[str, Any], fill: int, every: int) -> dict[str, float]:
    """Precision before values are halved, and of the worst of the windows that begin a window later."""
    per, begin = p["n"] // every, (p["halved"] - fill) // every
    windows = [float(found[i : i + per].mean()) for i in range(begin + per, len(found) - per + 1)]
    before = float(found[:begin].mean())
    return {"before": before, "worst": min(windows), "lost": before - min(windows)}


def endless(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """The same rows again and again, with other ids: what is kept after the first round, and the most ever after."""
    table = pa.table({**stream, "part": pa.array(stream["part"]).dictionary_encode()})
    monitor, seen = _monitor(p, {}), []
    monitor.push(table.slice(0, p["fill"]))

    def work() -> None:
        for number in range(p["rounds"]):
            ids = pa.array(stream["id"] + (number + 1) * (int(stream["id"].max()) + 1))
            again = table.set_column(0, "id", ids)
            for begin in range(0, p["rows"], p["batch"]):
                monitor.push(again.slice(begin, p["batch"]))
            seen.append(monitor.stats()["queries"]["q0"])

    def after(_: None) -> Outcome:
        first, rest = seen[0], seen[1:]
        counters = {"rows": p["rounds"] * p["rows"], "objects": first["objects"], "bytes": first["bytes"]}
        counters |= {f"{name} later": max(one[name] for one in rest) for name in ("objects", "bytes")}
        counters["growth"] = counters["bytes later"] / counters["bytes"]
        return Outcome(monitor.answer(), lambda *_: True, counters)

    return Ready(work, after)


def totals(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """Sums of the rows of each `key` over the last n, pushed `batch` at a time.

    repeat: "max", of values that fall where there is one key; "last" of any parts, as many as there are rows.
    """
    repeat, size, fill = p.get("repeat", "sum"), len(stream["key"]), p["fill"]
    values = np.sort(stream["score"])[::-1] if repeat == "max" and p["keys"] == 1 else stream["score"]
    parts = np.arange(size) if repeat == "last" else ["a"] * size
    table = pa.table({"id": stream["key"], "part": parts, "value": values})
    named: Any = "*" if repeat == "last" else ["a"]
    monitor = sb.Monitor(
        sb.TopKIncomplete(p["k"], named, sb.Last(p["n"]), repeat=repeat, algorithm=p.get("algorithm", "auto")), id="id"
    )
    monitor.push(table.slice(0, fill))
    tables = [table.slice(begin, p["batch"]) for begin in range(fill, fill + p["rows"], p["batch"])]

    def work() -> list[Any]:
        return [monitor.push(one) for one in tables]

    def check(stream: Stream, p: Mapping[str, Any], answer: Any) -> bool:
        values: dict[int, list[float]] = {}
        for key, value in zip(*(table[name][-p["n"] :].to_pylist() for name in ("id", "value")), strict=True):
            values.setdefault(key, []).append(value)
        best = sorted(map(max if repeat == "max" else math.fsum, values.values()), reverse=True)[: p["k"]]
        return bool(answer["score"].to_pylist() == best)

    def after(changes: list[Any]) -> Outcome:
        counters = {"rows": p["rows"], "changes": sum(one.num_rows for one in changes)}
        return Outcome(monitor.answer(), check, counters)

    return Ready(work, after)


def skylines(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """Figure 4: of n objects with a uniform score, those that no newer one exceeds by `interval`; mean of 100."""
    rng = np.random.default_rng(int(stream["value"][0] * 2**32))

    def work() -> float:
        total = 0
        for _ in range(100):
            scores = rng.random(p["n"])
            newer = np.append(np.maximum.accumulate(scores[::-1])[::-1][1:], -1.0)
            total += int((newer <= scores + p["interval"]).sum())
        return total / 100

    def after(size: float) -> Outcome:
        return Outcome(None, lambda *_: True, {"rows": p["n"], "objects": size})

    return Ready(work, after)


def _is_sound(stream: Stream, p: Mapping[str, Any], answer: Any) -> bool:
    """The scores of an exact answer, from all valid rows."""
    if p["algorithm"] in ("APPROX", "BUDGET"):
        return bool(answer.num_rows <= p["k"])
    valid = slice(max(0, p.get("fill", 0) + p["rows"] - p["n"]), p.get("fill", 0) + p["rows"])
    total: dict[Any, dict[str, float]] = {}
    columns = (stream[name][valid].tolist() for name in ("id", "part", "value"))
    for name, part, value in zip(*columns, strict=True):
        total.setdefault(name, {})[part] = value
    parts = sorted(set(stream["part"].tolist()))
    scores = sorted((sum(one.get(part, 0.0) for part in parts) for one in total.values()), reverse=True)
    return bool(np.allclose(answer["score"].to_numpy(), scores[: p["k"]], rtol=1e-12, atol=0))


def _monitor(p: Mapping[str, Any], more: Mapping[str, Any], emit: Any = "arrival") -> sb.Monitor:
    names = [f"p{number + 1}" for number in range(p["parts"])]
    query = sb.TopKIncomplete(p["k"], names, sb.Last(p["n"]), algorithm=p["algorithm"], **more)
    return sb.Monitor(query, id="id", emit=emit)


def _watch(
    table: Any, p: Mapping[str, Any], fill: int, end: int, every: int, more: Mapping[str, Any]
) -> tuple[list[int], list[set[Any]], list[Any]]:
    """What is kept and what is answered, every so many rows."""
    monitor, kept, answers, scores = _monitor(p, more, "batch"), [], [], []
    monitor.push(table.slice(0, fill))
    for begin in range(fill, end, every):
        monitor.push(table.slice(begin, min(every, end - begin)))
        answer = monitor.answer()
        kept.append(monitor.stats()["queries"]["q0"]["objects"])
        answers.append(set(answer["id"].to_pylist()))
        scores.append(answer["score"].to_numpy())
    return kept, answers, scores
