"""Uncertain queries against the oracle: every synopsis, all four semantics, by one suite.

Scenes are small enough for the oracle (windows up to 12), and DOM sweeps after a few tuples instead of 64, blocks are
of a few arrivals: what is rare in practice is frequent here. Changes, answers and probabilities are compared to
the last bit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import Draw, Row, cells, check, examples, same_changes, same_rows
from skyband import Ever, Last, Monitor, QueryError, TopKUncertain
from skyband.engines.uncertain.front_engine import FrontEngine
from skyband.oracle import Oracle

SYNOPSES = ("DOM", "BS", "CSQ", "CCSQ", "SCSQ", "SCSQ-BUFFER")
SEMANTICS = ("pk-topk", "pt-k", "u-kranks", "u-topk")
TYPES = {
    "i": pa.string(),
    "t": pa.int64(),
    "x": pa.float64(),
    "y": pa.int64(),
    "p": pa.float64(),
    "r": pa.string(),
    "g": pa.int64(),
}
SURE = [1.0, 0.5, 0.5, 0.25, 0.9, 0.99, 1e-12, 0.3]
ODD = [*SURE, 0.0, -0.5, 1.5, float("nan"), None]
ALTERNATIVES = [0.5, 0.25, 0.25, 0.5, 0.3, 0.4, 0.6, 1.0, 1e-12]


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    was = FrontEngine.block, FrontEngine.least
    FrontEngine.block, FrontEngine.least = 5, 2
    yield
    FrontEngine.block, FrontEngine.least = was


@dataclass(frozen=True)
class Taste:
    """What a scene may hold."""

    timed: tuple[bool, ...] = (True, False)
    k: int = 4
    n: int = 9
    queries: int = 2
    per: tuple[Any, ...] = (None, None, "g")
    where: tuple[Any, ...] = (None, None, "y > 0")
    emit: tuple[str, ...] = ("arrival", "arrival", "batch")
    late: tuple[str, ...] = ("accept", "accept", "drop")
    lateness: tuple[int, ...] = (0, 0, 3, 8)
    scores: tuple[Any, ...] = (0.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, float("inf"), float("nan"), None)
    chances: tuple[Any, ...] = tuple(ODD)
    alternatives: bool = False
    edits: bool = True
    rows: int = 12
    events: int = 6


def table(rows: list[Row]) -> Any:
    return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in TYPES.items()})


def _window(draw: Draw, taste: Taste, timed: bool) -> Last:
    length = draw(st.integers(1, taste.n))
    return Last(span=length) if timed else Last(length)


def _rows(draw: Draw, taste: Taste, clock: int, lateness: int) -> tuple[list[Row], int]:
    rows = []
    for _ in range(draw(st.integers(0, taste.rows))):
        clock += draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
        back = draw(st.integers(0, lateness)) if lateness and draw(st.booleans()) else 0
        rows.append(
            {
                "i": draw(st.sampled_from(["a", "b", "c"])),
                "t": max(0, clock - back) if draw(st.integers(0, 30)) else None,
                "x": draw(st.sampled_from(taste.scores)),
                "y": draw(st.integers(0, 2)),
                "p": draw(st.sampled_from(taste.chances)),
                "r": draw(st.sampled_from(["m", "m", "n", None])),
                "g": draw(st.sampled_from([1, 1, 2, None])),
            }
        )
    return rows, clock


@dataclass(frozen=True)
class Scene:
    queries: dict[str, TopKUncertain]
    events: list[tuple[str, Any]]
    options: dict[str, Any]


@st.composite
def scenes(draw: Draw, algorithm: str, semantics: Any, taste: Taste) -> Scene:
    timed, k = draw(st.sampled_from(taste.timed)), draw(st.integers(1, taste.k))
    first = TopKUncertain(
        k,
        draw(st.sampled_from(["x", "x", "x + y"])),
        _window(draw, taste, timed),
        semantics=semantics,
        threshold=draw(st.sampled_from([0.0, 0.1, 0.3, 0.5])) if semantics == "pt-k" else None,
        group="r" if taste.alternatives else None,
        largest=draw(st.sampled_from([None, False])),
        where=draw(st.sampled_from(taste.where)),
        per=draw(st.sampled_from(taste.per)),
        algorithm=algorithm,
    )

    def like(query: TopKUncertain, most: int | None = None) -> TopKUncertain:
        window = (
            query.window if taste.alternatives else _window(draw, dataclasses.replace(taste, n=most or taste.n), timed)
        )
        return dataclasses.replace(query, k=draw(st.integers(1, taste.k)), window=window)

    queries = {"a": first} | {name: like(first) for name in "bc"[: draw(st.integers(0, taste.queries - 1))]}
    lateness = draw(st.sampled_from(taste.lateness))
    options = {
        "id": draw(st.sampled_from([None, "i"])),
        "time": "t" if timed or draw(st.booleans()) else None,
        "keep": draw(st.sampled_from([(), ("y",)])),
        "emit": draw(st.sampled_from(taste.emit)),
        "late": draw(st.sampled_from(taste.late)),
    }
    standing, clock = dict(queries), 0
    events: list[tuple[str, Any]] = []
    kinds = ["push"] * 6 + ["restore"] * 3 + ["advance"] * (options["time"] is not None)
    kinds += ["replace", "replace", "add", "drop"] * taste.edits
    for number in range(draw(st.integers(1, taste.events))):
        kind = draw(st.sampled_from(kinds)) if number else "push"
        if kind == "push":
            rows, clock = _rows(draw, taste, clock, lateness)
            events.append(("push", rows))
        elif kind == "advance":
            events.append(("advance", draw(st.integers(0, 5))))
        elif kind == "replace":
            name = draw(st.sampled_from(sorted(standing)))
            old: Any = standing[name].window
            most = old.span if lateness and timed else None  # a longer one may find late rows that the shorter dropped
            standing[name] = like(standing[name], most)
            events.append(("replace", (name, standing[name])))
        elif kind == "add":
            standing[f"n{number}"] = like(first)
            events.append(("add", (f"n{number}", standing[f"n{number}"])))
        elif kind == "drop" and len(standing) > 1:
            name = draw(st.sampled_from(sorted(standing)))
            del standing[name]
            events.append(("drop", name))
        elif kind == "restore":
            events.append(("restore", None))
    return Scene(queries, events, options)


def endless(scene: Scene) -> Scene:
    """The same scene over windows without end."""

    def lasting(query: TopKUncertain) -> TopKUncertain:
        return dataclasses.replace(query, window=Ever())

    events = [
        (kind, (what[0], lasting(what[1])) if kind in ("add", "replace") else what) for kind, what in scene.events
    ]
    return Scene({name: lasting(query) for name, query in scene.queries.items()}, events, scene.options)


def play(scene: Scene) -> Monitor:
    monitor, oracle = Monitor(scene.queries, **scene.options), Oracle(scene.queries, **scene.options)
    net_changes = scene.options["emit"] == "batch"
    for number, (kind, what) in enumerate(scene.events):
        where = f"event {number}, {kind}"
        if kind == "push":
            same_changes(cells(monitor.push(table(what))), oracle.push(what), where, net_changes=net_changes)
        elif kind == "advance" and oracle.clock is not None:
            to = oracle.clock + what
            same_changes(cells(monitor.advance(to)), oracle.advance(to), where, net_changes=net_changes)
        elif kind == "restore":
            monitor = Monitor.restore(monitor.snapshot(), trusted=False)
        elif kind == "add":
            monitor.add(*what)
            oracle.add(*what)
        elif kind == "replace":
            same_rows(cells(monitor.replace(*what)), oracle.replace(*what), where)
        elif kind == "drop":
            monitor.drop(what)
            oracle.drop(what)
        assert monitor.stats()["arrivals"] == oracle.arrivals, where
        assert monitor.stats()["late"] == oracle.late, where
        passes = "probabilities of a group pass 1"
        assert monitor.stats()["rejected"].get(passes, 0) == oracle.rejected[passes], where
        check(monitor)
        for name, query in oracle.queries.items():
            assert isinstance(query, TopKUncertain)
            _same_answer(monitor, oracle, name, {}, where)
            asked: dict[str, Any] = {"k": number % query.k + 1}
            if isinstance(own := query.window, Last):
                length = number % (own.count or own.span or 1) + 1
                asked["window"] = Last(length) if own.count else Last(span=length)
            _same_answer(monitor, oracle, name, asked, where)
            for key in [(1,), (None,)] if query.per else []:
                _same_answer(monitor, oracle, name, {"key": key}, where)
    return monitor


def _same_answer(monitor: Monitor, oracle: Oracle, name: str, asked: dict[str, Any], where: str) -> None:
    got, expected = cells(monitor.answer(name, **asked)), oracle.answer(name, **asked)
    same_rows(got, expected, f"{where}, answer of {name} for {asked}")
    for group in {row.get("g") for row in got}:
        ranks = [row["rank"] for row in got if row.get("g") == group]
        assert ranks == sorted(ranks), f"{where}: best first"


TASTES = {
    "anything": Taste(),
    "late rows": Taste(timed=(True,), late=("accept",), lateness=(4, 8), edits=False, scores=(0.0, 1.0, 2.0, 3.0, 4.0)),
    "ties": Taste(scores=(1.0, 1.0, 2.0), chances=(0.5, 0.25, 0.25, 1.0), edits=False, lateness=(0, 2)),
    "one batch": Taste(rows=40, events=1, k=2, n=12, edits=False, chances=(0.5, 0.9, 0.7, 1.0)),
    "improbable": Taste(chances=(0.01, 0.01, 0.02, 0.005, 1e-12, 0.3), rows=20, events=4, edits=False, k=2),
    "queries come and go": Taste(rows=6, events=10, queries=3, chances=tuple(SURE)),
}


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("algorithm", SYNOPSES)
@examples(12)
@given(data=st.data())
def test_equals_the_oracle(algorithm: str, semantics: str, taste: str, data: st.DataObject) -> None:
    play(data.draw(scenes(algorithm, semantics, TASTES[taste])))


RIVALS = Taste(alternatives=True, chances=tuple(ALTERNATIVES))
AMONG_RIVALS = [(name, one) for name in ("BS", "DOM") for one in SEMANTICS if (name, one) != ("DOM", "u-topk")]


@pytest.mark.parametrize(("algorithm", "semantics"), AMONG_RIVALS)
@examples(60)
@given(data=st.data())
def test_alternatives_exclude_each_other(algorithm: str, semantics: str, data: st.DataObject) -> None:
    play(data.draw(scenes(algorithm, semantics, RIVALS)))


@pytest.mark.parametrize(("algorithm", "semantics"), AMONG_RIVALS)
@examples(25)
@given(data=st.data())
def test_alternatives_in_long_batches(algorithm: str, semantics: str, data: st.DataObject) -> None:
    """Prefixes with several groups of several members, windows that drop tuples; ties of scores and of choices."""
    taste = dataclasses.replace(
        RIVALS, rows=40, events=2, k=3, n=12, edits=False, chances=(0.25, 0.25, 0.5, 0.3, 0.9), lateness=(0, 0, 4)
    )
    play(data.draw(scenes(algorithm, semantics, taste)))


@pytest.mark.parametrize(("algorithm", "semantics"), AMONG_RIVALS)
@examples(10)
@given(data=st.data())
def test_alternatives_restored_between_any_two_events(algorithm: str, semantics: str, data: st.DataObject) -> None:
    scene = data.draw(scenes(algorithm, semantics, RIVALS))
    events = [event for one in scene.events for event in (one, ("restore", None))]
    stored = play(dataclasses.replace(scene, events=events)).snapshot()
    assert Monitor.restore(stored).snapshot() == stored


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("algorithm", SYNOPSES)
@examples(10)
@given(data=st.data())
def test_restored_between_any_two_events(algorithm: str, semantics: str, data: st.DataObject) -> None:
    scene = data.draw(scenes(algorithm, semantics, Taste()))
    events = [event for one in scene.events for event in (one, ("restore", None))]
    stored = play(dataclasses.replace(scene, events=events)).snapshot()
    assert Monitor.restore(stored).snapshot() == stored


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("semantics", SEMANTICS)
@examples(15)
@given(data=st.data())
def test_windows_without_end(semantics: str, taste: str, data: st.DataObject) -> None:
    monitor = play(endless(data.draw(scenes("auto", semantics, TASTES[taste]))))
    assert {one["algorithm"] for one in monitor.stats()["queries"].values()} == {"COMPACT"}


@pytest.mark.parametrize("semantics", SEMANTICS)
@examples(25)
@given(data=st.data())
def test_alternatives_of_windows_without_end(semantics: str, data: st.DataObject) -> None:
    taste = Taste(alternatives=True, chances=tuple(ALTERNATIVES), rows=8, events=4)
    play(endless(data.draw(scenes("auto", semantics, taste))))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("semantics", ["pk-topk", "pt-k", "u-kranks"])
def test_what_dom_drops_among_alternatives_bs_does_not_need(semantics: Any, k: int) -> None:
    """Longer windows than the oracle's, where prefixes that are nearly enough come before one that is."""
    rng = np.random.default_rng(k)
    threshold = 0.3 if semantics == "pt-k" else None
    query = TopKUncertain(k, "x", Last(40), semantics=semantics, threshold=threshold, group="r", algorithm="BS")
    bs, dom = Monitor(query), Monitor(dataclasses.replace(query, algorithm="DOM"))
    dropped = 0
    for size in rng.integers(1, 25, 25).tolist():
        p = rng.choice([0.05, 0.2, 0.3, 0.45, 0.9], size)
        batch = {"x": rng.integers(0, 60, size).astype(float), "p": p, "r": rng.integers(0, 30, size)}
        same_rows(cells(dom.push(batch)), cells(bs.push(batch)), "changes")
        check(dom)
        dropped += bs.stats()["queries"]["q0"]["objects"] - dom.stats()["queries"]["q0"]["objects"]
    assert dropped > 100


@pytest.mark.parametrize("semantics", ["pk-topk", "u-kranks"])
def test_what_dom_drops_below_one_large_probability_is_not_the_second(semantics: Any) -> None:
    """One newer tuple is better than the oldest, and none of the many small ones between them is: it is the second."""
    query = TopKUncertain(2, "x", Last(2000), semantics=semantics, group="r", algorithm="BS")
    bs, dom = Monitor(query), Monitor(dataclasses.replace(query, algorithm="DOM"))
    for low in range(0, 1300, 50):
        x, p = np.arange(low, low + 50.0), np.full(50, 0.004)
        x[0], p[0] = {0: (0, 0.9), 100: (9999, 0.6)}.get(low, (low, 0.004))
        batch = {"x": x, "p": p, "r": np.arange(low, low + 50) // 2}  # pairs of alternatives
        same_rows(cells(dom.push(batch)), cells(bs.push(batch)), "changes")
        check(dom)
    assert dom.answer()["id"].to_pylist() == bs.answer()["id"].to_pylist() == [100, 0]


def test_times_are_never_too_far_apart_for_a_window_without_end() -> None:
    rows = [
        {"i": "a", "t": t, "x": x, "y": 1, "p": 0.4, "r": "m", "g": 1}
        for x, t in enumerate((-(2**62) + 1, 2**62 - 1, 0, -(2**62) + 1, 5))
    ]
    for group in (None, "r"):
        query = TopKUncertain(2, "x", Ever(), group=group)
        play(Scene({"q": query}, [("push", rows), ("restore", None), ("push", rows)], {"time": "t", "emit": "arrival"}))


def test_only_the_compact_set_is_kept() -> None:
    """One tuple is sure, so no tuple below it is ever among the first 1; names that keep more are refused."""
    monitor = Monitor(TopKUncertain(1, "x", Ever()))
    monitor.push({"x": [float(x) for x in range(1000)], "p": [1.0] * 1000})
    assert monitor.stats()["queries"]["q0"]["objects"] == 1
    for name in SYNOPSES:
        with pytest.raises(QueryError, match="COMPACT"):
            Monitor(TopKUncertain(1, "x", Ever(), algorithm=name))
    with pytest.raises(QueryError, match="for Ever\\(\\) only"):
        Monitor(TopKUncertain(1, "x", Last(3), algorithm="COMPACT"))
    with pytest.raises(QueryError, match="BS"):
        Monitor(TopKUncertain(1, "x", Ever(), group="r", algorithm="COMPACT"))
