"""Many queries of one scoring read one run: they report what single engines report, and what the oracle says.

Any number of queries can be readers: most tests here make readers of a few, so that scenes of the contract suite reach
them; the others have more queries than an engine has bits for.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import KILL, Restore, Taste, check, examples, play, scenes
from engines.suite import TASTES
from skyband import Last, Monitor, TopK
from skyband.engines.topk import adapter as adapters
from skyband.engines.topk.kernels.reader_state import LOWEST
from skyband.engines.topk.readers import ReaderBLOCK

Rng = np.random.Generator
ROWS = 120 if KILL else 300


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One query is a reader too."""
    monkeypatch.setattr(adapters, "CROWD", 0)


def engines_of(monitor: Monitor) -> list[Any]:
    return [one.engine for one in monitor._loop.state.standing()]


# --- the oracle


@pytest.mark.parametrize("taste", [one for one in TASTES if not one.startswith("families")])
@pytest.mark.usefixtures("alone")
@examples(16)
@given(data=st.data())
def test_readers_equal_the_oracle(taste: str, data: st.DataObject) -> None:
    play(data.draw(scenes("BLOCK", TASTES[taste])), strict=True)


@pytest.mark.usefixtures("alone")
@examples(25)
@given(data=st.data())
def test_readers_restored_between_any_two_events(data: st.DataObject) -> None:
    scene = data.draw(scenes("BLOCK", dataclasses.replace(Taste(), by=("x",), restores=False)))
    events = [event for one in scene.events for event in (one, Restore())]
    monitor = play(dataclasses.replace(scene, events=events), strict=True)
    stored = monitor.snapshot()
    assert Monitor.restore(stored, trusted=False).snapshot() == stored
    assert stored == play(scene).snapshot(), "a snapshot depends on what happened, not on restores"


# --- SA, whose engines take 32 queries each


def rows_of(table: Any) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


def a_stream(rng: Rng, shape: str, timed: bool) -> dict[str, Any]:
    scores = {
        "ties": rng.integers(0, 6, ROWS).astype(float),
        "random": rng.random(ROWS),
        "rising": np.arange(ROWS) / 3,
        "falling": -np.arange(ROWS) / 3,
        "infinite": rng.choice([np.inf, -np.inf, 0.0, -0.0, -1.0], ROWS),
    }[shape]
    times = np.cumsum(rng.integers(0, 4, ROWS)) - 200
    times -= np.where(rng.random(ROWS) < 0.2, rng.integers(0, 15, ROWS), 0) if timed else 0
    return {"x": scores, "t": times, "id": np.arange(ROWS), "g": rng.integers(0, 4, ROWS)}


class Twins:
    """A Monitor with readers, and one whose queries have engines of bits."""

    def __init__(self, rng: Rng, timed: bool, count: int = 40, **options: Any) -> None:
        self.timed, self.per = timed, options.pop("per", None)
        asked = {f"q{i}": self.query(rng) for i in range(count)}
        self.readers = Monitor(asked, id="id", time="t", **options)
        self.plain = Monitor({name: self.other(query) for name, query in asked.items()}, id="id", time="t", **options)

    def query(self, rng: Rng, k: int = 9, n: int = 70) -> TopK:
        k, n = int(rng.integers(1, k)), int(rng.integers(1, n))
        return TopK(k, by="x", window=Last(span=n) if self.timed else Last(n), per=self.per)

    def other(self, query: TopK) -> TopK:
        return dataclasses.replace(query, algorithm="SA")

    def push(self, rows: dict[str, Any]) -> None:
        assert rows_of(self.readers.push(rows)) == rows_of(self.plain.push(rows))
        check(self.readers)

    def replace(self, name: str, query: TopK) -> None:
        got, expected = self.readers.replace(name, query), self.plain.replace(name, self.other(query))
        assert rows_of(got) == rows_of(expected)

    def drop(self, name: str) -> None:
        self.readers.drop(name)
        self.plain.drop(name)

    def compare(self) -> None:
        for name, query in self.readers.queries.items():
            assert self.readers.answer(name).equals(self.plain.answer(name))
            smaller: dict[str, Any] = {"k": 1, "window": query.window}
            assert self.readers.answer(name, **smaller).equals(self.plain.answer(name, **smaller))


@pytest.mark.parametrize("shape", ["ties", "random", "rising", "falling", "infinite"])
@pytest.mark.parametrize("emit", ["arrival", "batch"])
@pytest.mark.parametrize("per", [None, "g"])
@pytest.mark.parametrize("timed", [False, True], ids=["count", "time"])
def test_readers_report_what_engines_of_bits_report(timed: bool, per: str | None, emit: Any, shape: str) -> None:
    rng = np.random.default_rng([len(shape), timed, len(emit)])
    stream = a_stream(rng, shape, timed)
    twins = Twins(rng, timed, per=per, emit=emit)
    low = 0
    while low < ROWS:
        high = low + int(rng.integers(1, 50))
        twins.push({name: column[low:high] for name, column in stream.items()})
        if rng.random() < 0.3:
            twins.readers = Monitor.restore(twins.readers.snapshot(), trusted=False)
        names = list(twins.readers.queries)
        if rng.random() < 0.3:
            twins.drop(names[rng.integers(0, len(names))])
        names = list(twins.readers.queries)
        if rng.random() < 0.4:  # often one that the shared run is enough for
            twins.replace(names[rng.integers(0, len(names))], twins.query(rng, 5, 30))
        twins.compare()
        low = high
    assert any(isinstance(one, ReaderBLOCK) for one in engines_of(twins.readers))


@pytest.mark.parametrize("per", [None, "g"])
def test_so_many_queries_of_one_scoring_have_one_engine(per: str | None) -> None:
    asked = {f"q{i}": TopK(1 + i % 5, by="x", window=Last(3 + i), per=per) for i in range(33)}
    monitor = Monitor(asked)
    monitor.push({"x": [1.0, 2.0], "g": [0, 1]})
    (engine,) = engines_of(monitor)
    assert isinstance(engine, ReaderBLOCK)
    few = Monitor(dict(list(asked.items())[:32]))
    few.push({"x": [1.0, 2.0], "g": [0, 1]})
    assert not any(isinstance(one, ReaderBLOCK) for one in engines_of(few))


def test_they_stay_readers_when_few_are_left() -> None:
    monitor = Monitor({f"q{i}": TopK(2, by="x", window=Last(3 + i)) for i in range(33)})
    monitor.push({"x": [1.0, 2.0, 0.0]})
    for i in range(30):
        monitor.drop(f"q{i}")
    monitor = Monitor.restore(monitor.snapshot(), trusted=False)
    assert isinstance(engines_of(monitor)[0], ReaderBLOCK)
    changes = monitor.push({"x": [3.0]}).to_pylist()
    assert [(one["query"], one["id"], one["diff"]) for one in changes] == [
        (name, id_, diff) for name in ("q30", "q31", "q32") for id_, diff in ((0, -1), (3, 1))
    ]


def test_a_run_is_cut_down_when_its_largest_query_leaves() -> None:
    monitor = Monitor({f"q{i}": TopK(9 if i == 0 else 2, by="x", window=Last(90 if i == 0 else 40)) for i in range(34)})
    monitor.push({"x": -np.arange(90.0) % 7})
    (engine,) = engines_of(monitor)
    before = int(engine.kept[0])
    monitor.drop("q0")
    check(monitor)
    assert engine.kept[0] < before


def test_a_query_begins_with_the_window_of_readers() -> None:
    monitor = Monitor({f"q{i}": TopK(1 + i % 4, by="x", window=Last(5 + i)) for i in range(40)})
    monitor.push({"x": np.arange(30.0)})
    before = len(engines_of(monitor))
    entered = monitor.add("late", TopK(3, by="x", window=Last(11)), from_window=True)
    assert entered is not None
    assert entered["id"].to_pylist() == [29, 28, 27] and entered["first"].to_pylist() == [True] * 3
    assert len(engines_of(monitor)) == before
    check(monitor)


def test_queries_that_nothing_touches_are_not_looked_at() -> None:
    """The best object of a long window stays: a page says so without a look at its queries."""
    monitor = Monitor({f"q{i}": TopK(1, by="x", window=Last(1000 + i)) for i in range(64)}, emit="batch")
    monitor.push({"x": [9.0, 1.0]})
    (engine,) = engines_of(monitor)
    engine.floors[:], engine.readings["stamp"] = LOWEST, -1  # spoils what is known of queries, but not of pages
    assert monitor.push({"x": [2.0, 3.0]}).num_rows == 0
    assert (engine.readings["stamp"] == -1).all()
