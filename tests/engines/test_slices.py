"""A batch that comes in slices: push(more=True) ... push() is one push of all rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import CLOCKWORKS, Row, Scene, Taste, cells, check, examples, queries_of, row, rows_of, same_rows
from skyband import Last, Monitor, TopK

Draw = Callable[[st.SearchStrategy[Any]], Any]

_TASTE = Taste(rows=14, queries=3, clockworks=("int64", "us", "date32"))


@st.composite
def sliced(draw: Draw, emit: str) -> tuple[Scene, list[tuple[list[list[Row]], int | None]]]:
    """A scene without events, and batches as lists of slices, each with the instant of `to`."""
    clockwork = CLOCKWORKS[draw(st.sampled_from(_TASTE.clockworks))]
    timed = draw(st.booleans())
    queries = queries_of(draw, _TASTE, "auto", timed, draw(st.sampled_from(_TASTE.per)), clockwork)
    timed = any(query.window.sort == "time" for query in queries.values())
    options = {
        "id": draw(st.sampled_from([None, "i"])),
        "time": "t" if timed or draw(st.booleans()) else None,
        "keep": draw(st.sampled_from([(), ("z", "w")])),
        "emit": emit,
        "late": draw(st.sampled_from(["accept", "drop"])),
    }
    lateness, clock, batches = draw(st.sampled_from([0, 3, 8])), 0, []
    for _ in range(draw(st.integers(1, 4))):
        rows, clock = rows_of(draw, _TASTE, draw(st.integers(0, 14)), clock, lateness, clockwork)
        if draw(st.integers(0, 9)) == 0:
            rows = [{**one, "x": None, "y": None} for one in rows]  # no query accepts them
        cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
        slices = [rows[left:right] for left, right in pairwise([0, *cuts, len(rows)])]
        to = clock + draw(st.integers(0, 4)) if options["time"] and draw(st.integers(0, 2)) == 0 else None
        clock = clock if to is None else to
        batches.append((slices, to))
    return Scene(queries, [], options, clockwork), batches


def push_slices(monitor: Monitor, scene: Scene, slices: list[list[Row]], to: Any) -> list[list[Row]]:
    return [
        cells(monitor.push(scene.table(rows), to=None if more else to, more=more))
        for rows, more in zip(slices, [*[True] * (len(slices) - 1), False], strict=True)
    ]


@pytest.mark.parametrize("emit", ["batch", "arrival"])
@examples(80)
@given(st.data())
def test_slices_of_a_batch_are_one_push(emit: str, data: st.DataObject) -> None:
    scene, batches = data.draw(sliced(emit))
    whole, sliced_ = (Monitor(scene.queries, **scene.options) for _ in range(2))
    for number, (slices, ticks) in enumerate(batches):
        to = None if ticks is None else scene.clockwork.value(ticks)
        expected = cells(whole.push(scene.table([one for rows in slices for one in rows]), to=to))
        found = push_slices(sliced_, scene, slices, to)
        if emit == "batch":
            assert not any(found[:-1]), "net changes wait for the batch's end"
        same_rows([change for part in found for change in part], expected, f"batch {number}")
        check(sliced_)
        for name in scene.queries:
            same_rows(cells(sliced_.answer(name)), cells(whole.answer(name)), f"batch {number}, answer of {name}")
        for figure in ("arrivals", "late", "rejected"):
            assert sliced_.stats()[figure] == whole.stats()[figure], f"batch {number}: {figure}"
        if data.draw(st.booleans()):
            sliced_ = Monitor.restore(sliced_.snapshot())


def test_a_last_slice_without_columns() -> None:
    """As Spark's shards do when no rows came for a family: the batch ends all the same."""
    query = {"q": TopK(1, by="x", window=Last(3), per="g"), "t": TopK(1, by="x", window=Last(span=3), per="g")}
    monitor = Monitor(query, id="i", time="t", emit="batch")
    scene = Scene(query, [])
    rows = [row(i=str(g), t=g, x=float(g), g=g) for g in range(3)]
    assert monitor.push(scene.table(rows[:2]), more=True).num_rows == 0
    assert monitor.push({}, more=True).num_rows == 0
    assert monitor.push(scene.table(rows[2:]), more=True).num_rows == 0
    changes = monitor.push({}, to=3).to_pylist()
    assert sorted((change["query"], change["id"], change["at"], change["time"]) for change in changes) == [
        *[("q", str(g), 0, g) for g in range(3)],
        *[("t", str(g), 0, 3) for g in range(1, 3)],
    ]
    assert monitor.push({}).num_rows == 0


def test_what_leaves_in_an_early_slice_is_reported_at_the_end_even_after_a_sweep() -> None:
    """Thousands of objects enter and leave in between: the kept columns are swept, but not what is yet to report."""
    scene = Scene({"q": TopK(2, by="x", window=Last(3000)), "r": TopK(1, by="x", window=Last(3000))}, [])
    monitor = Monitor(scene.queries, id="i", keep="z", emit="batch")
    assert monitor.push(scene.table([row(i="first", x=5.0, z="u"), row(i="second", x=4.0, z="v")])).num_rows == 3
    falling = [row(i=str(i), x=-float(i), z="w") for i in range(2998)]
    assert monitor.push(scene.table(falling), more=True).num_rows == 0
    assert len(monitor._loop.state.adapters["q"].kept_columns) == 3000
    best = [row(i="third", x=3.0), row(i="fourth", x=2.0)]
    assert monitor.push(scene.table(best), more=True).num_rows == 0
    assert len(monitor._loop.state.adapters["q"].kept_columns) < 10
    changes = monitor.push({}).to_pylist()
    left = [(change["query"], change["id"], change["z"], change["at"]) for change in changes if change["diff"] < 0]
    assert sorted(left) == [("q", "first", "u", 3001), ("q", "second", "v", 3001), ("r", "first", "u", 3001)]
    check(monitor)
