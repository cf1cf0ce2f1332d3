"""The contract that every engine keeps, whatever its algorithm: found in the registry, nothing to add here.

Oracle tests recompute from scratch (`play`, `reference`); differential tests compare two Monitors.
A new engine of a known kind is picked up by itself; a new kind needs a strategy in SCENES (suite.py).
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband
from engines.streams import (
    CLOCKWORKS,
    KILL,
    STRICT,
    Push,
    Restore,
    Scene,
    Taste,
    by_group,
    cells,
    check,
    examples,
    in_order,
    joined,
    net,
    play,
    queries_of,
    reference,
    rows_of,
    same_changes,
    same_rows,
    scenes,
    steps_of,
)
from engines.suite import (  # noqa: F401
    ENGINES,
    FAMILY,
    FEW,
    LONG,
    PLAIN,
    SCENES,
    TASTES,
    equal_steps,
    pytest_generate_tests,
    shaped,
    stamped,
)
from skyband import Last, Monitor, TopK
from skyband.query.algorithms import algorithms


def test_every_engine_of_the_registry_is_here() -> None:
    assert skyband.__file__.startswith(os.environ.get("MUTANT", "")), "tests/mutation.py runs over a copy"
    assert ("TopK", "SA") in ENGINES
    others = {"Above", "TopKPairs", "TopKIncomplete", "TopKUncertain"}
    assert {kind for row in algorithms() for kind in row.kinds} == {*SCENES, *others}, (
        "other kinds have suites of their own"
    )


@examples(30 if KILL else 16)
@given(data=st.data())
def test_equals_the_oracle(algorithm: str, taste: str, data: st.DataObject) -> None:
    play(data.draw(scenes(algorithm, TASTES[taste])), strict=algorithm in STRICT)


@examples(40 if KILL else 25)
@given(data=st.data())
def test_restored_between_any_two_events(algorithm: str, data: st.DataObject) -> None:
    """A Monitor that is stored and restored after each event reports the same, and stores the same bytes."""
    scene = data.draw(scenes(algorithm, dataclasses.replace(Taste(), restores=False)))
    events = [event for one in scene.events for event in (one, Restore())]
    monitor = play(dataclasses.replace(scene, events=events), strict=algorithm in STRICT)
    stored = monitor.snapshot()
    assert Monitor.restore(stored).snapshot() == stored
    assert stored == play(scene).snapshot(), "a snapshot depends on what happened, not on restores"


@pytest.mark.parametrize("clockwork", CLOCKWORKS)
@examples(12)
@given(data=st.data())
def test_every_type_of_time(algorithm: str, clockwork: str, data: st.DataObject) -> None:
    taste = Taste(timed=(True,), clockworks=(clockwork,), by=("x",), scores=FEW, per=(None, "g"), events=5)
    scene = data.draw(scenes(algorithm, taste))
    monitor = play(scene, strict=algorithm in STRICT)
    if any(row["t"] is not None and row["x"] is not None for event in scene.events[:1] for row in event.rows):
        assert monitor.push(scene.table([])).schema.field("time").type == scene.clockwork.type


@examples(60)
@given(data=st.data())
def test_cuts_do_not_matter(algorithm: str, data: st.DataObject) -> None:
    """The same rows, cut in two ways, with a restore at each cut of the second."""
    taste = Taste(lateness=(0, 4), scores=FEW)
    queries = queries_of(
        data.draw,
        taste,
        algorithm,
        data.draw(st.booleans()),
        data.draw(st.sampled_from([None, "g"])),
        CLOCKWORKS["int64"],
    )
    rows, _ = rows_of(
        data.draw, taste, data.draw(st.integers(0, 40)), 0, data.draw(st.sampled_from([0, 4])), CLOCKWORKS["int64"]
    )
    options: dict[str, Any] = {"time": "t", "keep": ("z",)}
    scene = Scene(queries, [], options)
    one, other = Monitor(queries, **options), Monitor(queries, **options)
    expected = cells(one.push(scene.table(rows)))
    got, begin = [], 0
    for end in sorted({*data.draw(st.lists(st.integers(0, len(rows)), max_size=6)), len(rows)}):
        got += cells(other.push(scene.table(rows[begin:end])))
        other = Monitor.restore(other.snapshot())
        begin = end
    same_rows(got, expected, "all changes")
    assert by_group(got) == by_group(expected)
    for name in queries:
        assert other.answer(name).equals(one.answer(name)) or not rows


@examples(40)
@given(data=st.data())
def test_net_changes_are_the_sum_of_all(algorithm: str, data: st.DataObject) -> None:
    scene = data.draw(scenes(algorithm, dataclasses.replace(Taste(), emit=("arrival",), edits=False)))
    each = Monitor(scene.queries, **scene.options)
    whole = Monitor(scene.queries, **{**scene.options, "emit": "batch"})
    for event in scene.events:
        if isinstance(event, Push):
            table = scene.table(event.rows)
            assert net(cells(whole.push(table))) == net(cells(each.push(table)))


@examples(30)
@given(data=st.data())
def test_sharing_changes_nothing(algorithm: str, data: st.DataObject) -> None:
    """Queries that share a skyband report what each reports alone."""
    taste = dataclasses.replace(Taste(), edits=False, emit=("arrival",))
    scene = data.draw(scenes(algorithm, taste))
    together = Monitor(scene.queries, **scene.options)
    # a row that one query rejects must not move another's clock, so each stays with a query that takes them all
    lone = {name: Monitor({name: query}, **scene.options) for name, query in scene.queries.items()}
    rows = [row for event in scene.events if isinstance(event, Push) for row in event.rows]
    valid = [row for row in rows if row["x"] is not None and np.isfinite(row["x"]) and row["t"] is not None]
    changes = cells(together.push(scene.table(valid)))
    for name, alone in lone.items():
        own = [
            {column: change[column] for column in alone.push(scene.table([])).column_names}
            for change in changes
            if change["query"] == name
        ]
        same_changes(own, cells(alone.push(scene.table(valid))), name)


def test_more_queries_than_one_engine_takes(algorithm: str) -> None:
    """Forty queries of one family: more than there are bits in a word."""
    rng = np.random.default_rng(1)
    queries = {f"q{i}": TopK(1 + i % 7, by="x", window=Last(1 + i), algorithm=algorithm) for i in range(40)}
    scores = rng.integers(0, 9, 300).astype(float)
    together = Monitor(queries)
    changes = joined(together.push({"x": scores[begin : begin + 100]}) for begin in (0, 100, 200))
    check(together)
    names = np.array(changes.column("query").to_pylist())
    for name, query in queries.items():
        length = query.window.count  # type: ignore[union-attr]
        assert length is not None
        own = changes.filter(pa.array(names == name))
        assert in_order(steps_of(own)) == list(reference(scores, int(query.k), length)), name
    restored = Monitor.restore(together.snapshot())
    more = {"x": rng.integers(0, 9, 50).astype(float)}
    assert restored.push(more).equals(together.push(more))
