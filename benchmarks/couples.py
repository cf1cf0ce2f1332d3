"""Contestants over pairs (shen2012): the engines by name, and the baselines that only a benchmark needs.

SUPREME knows by an oracle which pairs last and computes only the scores (Alg. 3, lines 2 and 3), with the engines' own
code; SUPREME for reading copies k rows of a sorted array; for continuous queries it applies the changes it is told.
naive++ and supreme++ know the query's k and n in advance: they are NAIVE and SUPREME with these.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import pyarrow as pa

import skyband as sb
from benchmarks.contestants import Outcome, Ready
from benchmarks.workloads import Stream
from skyband.engines.contract import Arrivals, Spec
from skyband.engines.pairs.base import Pairs
from skyband.engines.pairs.given_scores import Given
from skyband.engines.pairs.kernels.answers import read_slots
from skyband.engines.pairs.kernels.records import GIVEN, PRODUCT, SIZE, SUM, Scoring
from skyband.engines.pairs.kernels.scores import fill
from skyband.engines.pairs.kernels.search_tree import HEIGHT, build_tree, empty_tree, top_pairs
from skyband.engines.pairs.programs import no_program
from skyband.engines.pairs.size_model import expected_pairs
from skyband.engines.registry import load
from skyband.query.expressions import Operand, parse
from skyband.query.tuning import Tuning

AXES = ("x0", "x1", "x2", "x3", "x4", "x5")
INTEL = "abs(a.time - b.time) / (abs(a.temp - b.temp) * abs(a.hum - b.hum))"
PATIENCE = Pairs.patience
HOW = ("tree", "linear", "supreme", "pst")  # snapshot answers are read
LOOKED = 1500  # objects whose pairs are checked one by one


def scoring_of(p: Mapping[str, Any]) -> tuple[Any, Any]:
    """s1 to s4 (section VI-A) as the engines take them; that of the real data is computed by NumPy."""
    s = p.get("s", 1)
    if s == "intel":
        expression = parse(INTEL, members=("a", "b"))

        def scores(one: Any, other: Any) -> Any:
            both = {"a": one, "b": other}
            columns = {name: Operand(both[name[0]][name[2:]]) for name in expression.columns}
            return expression.evaluate(columns, len(one["time"])).values

        return Scoring(GIVEN, np.empty(0, np.int8), -1.0, np.inf, no_program(), np.empty(0)), scores
    if s == "luck":  # scores that depend on nothing
        return Scoring(GIVEN, np.empty(0, np.int8), -1.0, np.inf, no_program(), np.empty(0)), _luck
    d = p["d"]
    form, sign = (SUM if s in (1, 2) else PRODUCT), (-1.0 if s in (1, 3) else 1.0)
    return Scoring(form, np.zeros(d, np.int8), sign, 1e300 ** (1 / d) / 4, no_program(), np.empty(0)), None


def _luck(one: Any, other: Any) -> Any:
    mixed = (one["x0"].view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ (
        other["x0"].view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    )
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(11)).astype(np.float64)


def spec_of(p: Mapping[str, Any]) -> tuple[Spec, ...]:
    """The largest first: it decides what is kept. Then so many of random k and n, or one of a given k and n."""
    largest = Spec(p["K"], p["n"])
    rng = np.random.default_rng(7)
    more = [
        Spec(int(rng.integers(1, p["K"] + 1)), int(rng.integers(1, p["n"] + 1))) for _ in range(p.get("queries", 1) - 1)
    ]
    if "asked_k" in p or "asked_n" in p:
        more.append(Spec(p.get("asked_k", p["K"]), p.get("asked_n", p["n"])))
    return (largest, *more)


def pairs(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """An engine over the last n, fed directly: arrays in, changes out."""
    engine, feed = _engine(stream, p)
    fill_, size = p.get("fill", 0), len(stream["x0"])
    for begin in range(0, fill_, 5000):
        feed(begin, min(fill_, begin + 5000))
    edges = [(at, min(at + p["batch"], size)) for at in range(fill_, size, p["batch"])]

    def work() -> list[Any]:
        return [feed(begin, end) for begin, end in edges]

    def after(changes: list[Any]) -> Outcome:
        engine.snapshot(np.array([0]))  # what is stored is pruned
        kept = engine.pairs
        counters = {
            "rows": p["rows"],
            "cycles": p["rows"],
            "changes": sum(len(one.query) for one in changes),
            "pairs": kept,
            "over expected": kept / expected_pairs(p["n"], p["K"]),
            "bytes": engine.nbytes,
        }
        one = engine.specs[0]
        looked = Spec(one.k, min(one.length, LOOKED))
        best = engine.answer(0, looked, np.array([size - 1]), None)
        return Outcome((best.key, best.older, best.serial, looked), is_best, counters)

    return Ready(work, after)


def pair_query(p: Mapping[str, Any], algorithm: str = "SCASE") -> sb.TopKPairs:
    """s1: the sum of distances, the smallest is best."""
    return sb.TopKPairs(
        p["K"], sb.Global(dict.fromkeys(AXES[: p["d"]], "absdiff")), sb.Last(p["n"]), algorithm=algorithm
    )


def pairs_push(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A Monitor that is pushed the tables that Spark gets as files."""
    monitor, fill_, size = sb.Monitor(pair_query(p)), p["fill"], len(stream["x0"])
    cuts = [*range(0, fill_, p["fill_file"]), *range(fill_, size, p["file"]), size]
    tables = [pa.table({name: stream[name][begin:end] for name in stream}) for begin, end in pairwise(cuts)]
    first = len(range(0, fill_, p["fill_file"]))
    before = [monitor.push(table) for table in tables[:first]]

    def work() -> list[Any]:
        return [monitor.push(table) for table in tables[first:]]

    def after(changes: list[Any]) -> Outcome:
        told = pa.concat_tables(before + changes)
        diff, a, b = (told[name].to_numpy().astype(np.int64) for name in ("diff", "id_a", "id_b"))
        sums = {"pairs": int(diff.sum()), "older": int((diff * a).sum()), "newer": int((diff * b * b).sum())}
        return Outcome(sums, sums_to_best_pairs, {"rows": p["rows"], "changes": told.num_rows})

    return Ready(work, after)


def sums_to_best_pairs(stream: Stream, p: Mapping[str, Any], sums: Mapping[str, int]) -> bool:
    """All that was told adds up to the answer that TA finds in the last window alone."""
    begin = len(stream["x0"]) - p["n"]
    monitor = sb.Monitor(pair_query(p, "TA"), emit="batch")
    for at in range(begin, len(stream["x0"]), 10_000):
        monitor.push({name: column[at : at + 10_000] for name, column in stream.items()})
    best = monitor.answer()
    a, b = (begin + best[name].to_numpy() for name in ("id_a", "id_b"))
    return dict(sums) == {"pairs": len(a), "older": int(a.sum()), "newer": int((b * b).sum())}


def supreme(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """All N scores of each arrival, into an array; nothing else."""
    scoring, scores = scoring_of(p)
    n, begin = p.get("asked_n", p["n"]), p.get("fill", 0)
    data = np.stack([stream[name] for name in AXES[: p["d"]]]) if scores is None else np.empty((0, 0))
    out, size = np.empty(n), len(stream["x0"])
    if scores is None:
        _supreme(data, scoring, n, begin, begin + 1, out)  # compiled

    def work() -> Any:
        if scores is None:
            return _supreme(data, scoring, n, begin, size, out)
        for at in range(begin, size):
            columns = {name: stream[name][at - n : at] for name in ("time", "temp", "hum")}
            one = {name: stream[name][at : at + 1].repeat(n) for name in columns}
            out[:] = scores(columns, one)
        return 0.0

    def after(total: Any) -> Outcome:
        counters = {"rows": p["rows"], "cycles": p["rows"], "bytes": out.nbytes}
        return Outcome(total, lambda stream, p, answer: bool(np.isfinite(answer)), counters)

    return Ready(work, after)


def reads(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """Snapshot answers for k and n from one skyband, many times: by `how`, tree (SCASE's), linear, supreme or pst.

    "pst" is the paper's priority search tree, built before.
    """
    engine, feed = _engine(stream, p)
    size = len(stream["x0"])
    feed(0, size)
    group = engine.groups[0]
    engine._flush(group)
    now, k, n = size - 1, p["k"], p["asked_n"]
    how = HOW.index(p["how"])
    out = np.empty(k, group.band.pairs.dtype)
    places = np.empty(k + 2 * HEIGHT, np.int32)
    rows = group.pairs  # a sorted array to copy from
    band = (group.facts, group.band, (engine.lists, _tree(group, how)), p["n"])
    _read(*band, rows, k, now - n, places, out, how, 1)

    def work() -> int:
        return int(_read(*band, rows, k, now - n, places, out, how, p["rows"]))

    def after(found: int) -> Outcome:
        counters = {"rows": p["rows"], "cycles": p["rows"], "pairs": int(group.facts[SIZE]), "found": found}
        expected = rows[:k] if p["how"] == "supreme" else rows[rows["old"] > now - n][:k]
        return Outcome(out[:found].copy(), lambda stream, p, answer: bool((answer == expected).all()), counters)

    return Ready(work, after)


def again(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """Continuous queries answered from scratch after each arrival, by `how`; or supreme: the changes are applied."""
    single = {**p, "queries": 1}
    engine, feed = _engine(stream, single)
    fill_, size = p["fill"], len(stream["x0"])
    feed(0, fill_)
    asked = spec_of(p)
    k, length = np.array([one.k for one in asked]), np.array([one.length for one in asked])
    how = HOW.index(p["how"])
    places = np.empty(p["K"], np.int32)
    out = np.empty(p["K"], engine.groups[0].band.pairs.dtype)
    told = []
    if how == 2:  # what an oracle would say: how many pairs change with each arrival
        _, give = _engine(stream, p)
        give(0, fill_)
        told = [len(give(at, at + 1).query) for at in range(fill_, size)]
    rows = np.zeros(max([1, *told]), out.dtype)
    group = engine.groups[0]
    trees = (engine.lists, _tree(group, how))
    _answer_all(group.facts, group.band, trees, p["n"], k, length, 0, places, out, how)

    def work() -> int:
        found = 0
        for at in range(fill_, size):
            if how == 2:
                rows[: told[at - fill_]] = rows[0]
                continue
            feed(at, at + 1)
            engine._flush(group)
            band = (group.facts, group.band, trees, p["n"])
            found += int(_answer_all(*band, k, length, at, places, out, how))
        return found

    def after(found: int) -> Outcome:
        counters = {"rows": p["rows"], "cycles": p["rows"], "found": found}
        return Outcome(found, lambda stream, p, answer: answer >= 0, counters)

    return Ready(work, after)


def is_best(stream: Stream, p: Mapping[str, Any], answer: Any) -> bool:
    """Against all pairs of the last objects, score by score."""
    keys, older, newer, looked = answer
    size = len(stream["x0"])
    scoring, scores = scoring_of(p)
    first = size - looked.length
    best: list[float] = []
    for at in range(first + 1, size):
        if scores is not None:
            some = {name: stream[name][first:at] for name in stream}
            one = {name: stream[name][at : at + 1].repeat(at - first) for name in some}
            found = scores(some, one)
        else:
            terms = [abs(stream[name][first:at] - stream[name][at]) for name in AXES[: p["d"]]]
            found = terms[0]
            for term in terms[1:]:
                found = found + term if scoring.form == SUM else found * term
        found = scoring.sign * found
        best += np.sort(found[~np.isnan(found)])[-looked.k :].tolist()
    return sorted(best, reverse=True)[: looked.k] == keys.tolist() and bool((older < newer).all())


def _engine(stream: Stream, p: Mapping[str, Any]) -> tuple[Any, Any]:
    scoring, scores = scoring_of(p)
    asked = spec_of(p)
    if p.get("only") == "asked":  # naive++: it knows k and n
        asked = asked[-1:]
    more = {} if scores is None else {"given": Given(scores, None)}
    engine: Any = load("TopKPairs", p["algorithm"])(
        asked, Tuning(), timed=False, net=False, scoring=scoring, **more
    )  # fmt: skip
    names = AXES[: p["d"]] if scores is None or p["s"] == "luck" else ("time", "temp", "hum")

    def feed(begin: int, end: int) -> Any:
        numbers = np.arange(begin, end)
        columns = {name: stream[name][begin:end] for name in names}
        return engine.take(
            Arrivals(
                rows=np.arange(end - begin),
                groups=np.zeros(end - begin, np.int64),
                keys=np.empty(0),
                stamps=numbers,
                now=numbers,
                eligible=None,
                serial=begin,
                size=end - begin,
                clock=0,
                clocks=None,
                total=1,
                attributes=tuple(columns.values()),
                wants_alive=False,
                columns=columns,
            )
        )

    return engine, feed


def _tree(group: Any, how: int) -> Any:
    """The paper's priority search tree of a group's pairs, or an empty one."""
    tree = empty_tree(int(group.facts[SIZE]))
    if HOW[how] == "pst":
        build_tree(group.facts, group.band, tree)
    return tree


@numba.njit(error_model="numpy")
def _supreme(data: Any, scoring: Any, n: int, begin: int, end: int, out: Any) -> float:
    total = 0.0
    for at in range(begin, end):
        fill(out, n, scoring, data, at - n, data[:, at])
        total += out[0]
    return total


@numba.njit
def _read(
    facts: Any,
    band: Any,
    trees: Any,
    longest: int,
    rows: Any,
    k: int,
    low: int,
    places: Any,
    out: Any,
    how: int,
    times: int,
) -> int:
    found = 0
    for _ in range(times):
        if how == 2:
            found = min(k, len(rows))
            for i in range(found):
                out[i] = rows[i]
            continue
        if how == 0:
            found = read_slots(facts, band, trees[0], longest, PATIENCE, k, low, places)
        elif how == 3:
            found = top_pairs(facts, band, trees[1], k, low, places)
        else:
            found = 0
            for i in range(facts[SIZE]):
                if band.old[i] > low:
                    places[found] = band.slot[i]
                    found += 1
                    if found == k:
                        break
        for i in range(found):
            out[i] = band.pairs[places[i]]
    return found


@numba.njit
def _answer_all(
    facts: Any,
    band: Any,
    trees: Any,
    longest: int,
    k: Any,
    length: Any,
    now: int,
    places: Any,
    out: Any,
    how: int,
) -> int:
    found = 0
    for q in range(len(k)):
        found += _read(facts, band, trees, longest, out, k[q], now - length[q], places, out, how, 1)
    return found
