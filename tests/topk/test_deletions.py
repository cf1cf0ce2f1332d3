"""Objects that are valid until they are deleted, against the oracle: ids repeat, are unknown, null or no number."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import Delete, Push, Restore, Scene, Taste, check, examples, play, row, scenes
from skyband import Above, Linear, Monitor, Nearest, Product, TopK, TopKGroups, TopKPairs, UntilDeleted
from skyband.oracle import Oracle

WORDS = ("p", "q", "r", "s", "", "t", None)
SUMS = ("x", "x - y", Linear({"x": 1, "y": 0.5}), Product({"x": 1, "y": -1}))
MIXED = Taste(
    by=SUMS,
    deletable=True,
    above=(False, False, True),
    thresholds=(0.0, 1.0, 2.0, -math.inf),
    where=(None, None, "y > 0", "x <= 2", "z is null"),
    ids=WORDS,
    k=3,
    events=9,
)
PLACES = (Nearest({"x": 1, "y": 0}), Nearest({"x": 1, "y": 0}, metric="manhattan"), Nearest({"x": 2}))
TASTES = {
    "everything": MIXED,
    "few ids": dataclasses.replace(MIXED, ids=("p", "q", "r"), queries=2, rows=20),
    "numbers": dataclasses.replace(MIXED, ids=(1, 2, 3, 4, 2**60), per=(None,), where=(None,)),
    "no numbers": dataclasses.replace(MIXED, ids=(0.5, math.nan, -0.0, 0.0, math.inf, None), restores=True),
    "net changes": dataclasses.replace(MIXED, emit=("batch",), rows=20),
    "queries come and go": dataclasses.replace(MIXED, rows=6, events=14),
    "expressions": dataclasses.replace(
        MIXED, by=("x * y", "y - x * x", "coalesce(y, 1) + sqrt(x)", "least(x, y)"), rows=20
    ),
}


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("algorithm", ["TMA", "TSL", "auto", "CPM/W"])
@examples(6)
@given(data=st.data())
def test_equals_the_oracle(algorithm: str, taste: str, data: st.DataObject) -> None:
    kind = TASTES[taste]
    if algorithm == "auto":
        kind = dataclasses.replace(kind, by=("x", "x * y", "abs(x - 1) * y"))
    if algorithm == "CPM/W":
        kind = dataclasses.replace(kind, by=PLACES, above=(False,))
    play(data.draw(scenes(algorithm, kind)))


@pytest.mark.parametrize("algorithm", ["TMA", "TSL"])
@examples(6)
@given(data=st.data())
def test_restored_between_any_two_events(algorithm: str, data: st.DataObject) -> None:
    scene = data.draw(scenes(algorithm, dataclasses.replace(MIXED, restores=False)))
    events = [event for one in scene.events for event in (one, Restore())]
    monitor = play(dataclasses.replace(scene, events=events))
    stored = monitor.snapshot()
    assert Monitor.restore(stored).snapshot() == stored


@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_an_id_in_several_groups_is_deleted_in_all_of_them(emit: Any) -> None:
    queries = {
        "each": TopK(1, "x", UntilDeleted(), per="g"),
        "all": TopK(2, "x", UntilDeleted()),
        "high": Above(1, "x", UntilDeleted(), per="g", where="y = 0"),
    }
    rows = [row(i=i, g=g, x=float(x), y=y) for i, g, x, y in (
        ("p", 1, 3, 0), ("p", 2, 4, 0), ("q", 1, 2, 1), ("q", None, 5, 0), ("p", 1, 2, 1), ("r", 2, 9, 0),
    )]  # fmt: skip
    events = [Push(rows), Delete(["p", "z", "p", "q"]), Push(rows[:3]), Delete(["r"]), Restore(), Delete(["q", "p"])]
    play(Scene(queries, events, {"id": "i", "emit": emit, "keep": ("z",)}))


@pytest.mark.parametrize("algorithm", ["TMA", "TSL"])
def test_many_insertions_and_deletions(algorithm: str) -> None:
    """Places are used again, grids are built anew, ids are forgotten: the oracle's answer after each batch."""
    rng = np.random.default_rng(11)
    queries = {
        "sum": TopK(5, Linear({"x": 1, "y": -0.5}), UntilDeleted(), algorithm=algorithm),
        "box": TopK(3, Linear({"x": -1, "y": 2}), UntilDeleted(), where="x between 2 and 9", algorithm=algorithm),
        "high": Above(25, Linear({"x": 1, "y": 1}), UntilDeleted(), algorithm=algorithm),
    }
    monitor, oracle = Monitor(queries, id="i"), Oracle(queries, id="i")
    for turn in range(25):
        low = 60 * turn  # old ids go, most for good
        ids = rng.integers(low, low + 200, 120)
        columns = {"i": ids, "x": np.round(rng.gamma(2.0, 4.0, 120)), "y": np.round(rng.normal(size=120) * 9)}
        gone = rng.integers(low - 100, low + 220, 100)
        monitor.push(columns)
        rows = [
            dict(zip(columns, values, strict=True))
            for values in zip(*(c.tolist() for c in columns.values()), strict=True)
        ]
        oracle._emit = "batch"  # only its answers are asked for
        oracle.push(rows)
        monitor.delete(gone.tolist())
        oracle.delete(gone.tolist())
        check(monitor)
        for name in queries:
            assert monitor.answer(name).to_pylist() == oracle.answer(name)
    adapter = monitor._loop.state.standing()[0]
    assert adapter.ids is not None and adapter.ids.total < 2500, "ids of objects that are gone are forgotten"
    assert monitor.stats()["rejected"]["unknown id"] == oracle.rejected["unknown id"]


@pytest.mark.parametrize(
    "query",
    [
        TopK(2, by="x", window=UntilDeleted()),
        TopK(2, by=("x",), window=UntilDeleted(), with_ties=True),
        Above(0, by="x", window=UntilDeleted()),
        TopKPairs(2, by="a.x + b.x", window=UntilDeleted()),
        TopKGroups(2, by="sum(x)", window=UntilDeleted(), of="of"),
    ],
)
def test_a_row_that_deletes_nothing_is_no_step(query: Any) -> None:
    """Net changes are told by the last step, and unknown ids are ignored; what does delete is at the clock."""
    monitor = Monitor(query, id="id", time="t", op="op", emit="batch")
    batch = {"id": [1, 2, 9], "t": [3, 4, 7], "x": [1.0, 2.0, None], "of": ["a", "b", "a"]}
    came = monitor.push(batch | {"op": ["insert", "insert", "delete"]})
    assert set(came.column("time").to_pylist()) == {4}
    gone = monitor.push({"id": [1, 9], "t": [8, 9], "x": [None, None], "of": ["a", "a"], "op": ["delete", "delete"]})
    assert gone.num_rows
    assert set(gone.column("time").to_pylist()) == {8}
