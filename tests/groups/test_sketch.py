"""SKETCH: its error bound on any stream, the same changes for any cut and restore, and what it refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import cells, check, examples, same_rows
from skyband.engines.groups import adapter
from skyband.engines.groups.sketch import SKETCH

SPAN, PANES, COUNTERS = 24, 6, 5
WIDTH = SPAN // PANES


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    was = SKETCH.panes, SKETCH.counters
    SKETCH.panes, SKETCH.counters = PANES, COUNTERS
    yield
    SKETCH.panes, SKETCH.counters = was


def monitor_of(by: str = "sum(x)", k: int = 3, **options: Any) -> sb.Monitor:
    query = sb.TopKGroups(k, by, sb.Last(span=SPAN), of="o", algorithm="SKETCH", where=options.pop("where", None))
    return sb.Monitor(query, time="t", **options)


def table(rows: list[tuple[int, str, float]]) -> dict[str, Any]:
    return {
        "t": np.array([t for t, _, _ in rows], np.int64),
        "o": [o for _, o, _ in rows],
        "x": [x for _, _, x in rows],
    }


def counted(rows: list[tuple[int, str, float]], clock: int, by: str) -> Any:
    """What each object has in the live panes: those whose end + span is after the start of the clock's pane."""
    last = clock // WIDTH * WIDTH
    found: Any = Counter()
    for t, o, x in rows:
        if t // WIDTH * WIDTH + WIDTH + SPAN > last:
            found[o] += 1 if by == "count(*)" else x
    return found


streams = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 1, 3, 30]), st.integers(0, 6), st.integers(0, 11), st.integers(0, 4)),
    min_size=1,
    max_size=80,
)


def rows_of(drawn: list[tuple[int, int, int, int]], late: bool) -> list[tuple[int, str, float]]:
    clock, rows = -20, []  # before 1970 too
    for step, back, o, x in drawn:
        clock += step
        rows.append((clock - back * late, f"o{o * o // 12}", float(x)))
    return rows


@pytest.mark.parametrize("by", ["sum(x)", "count(*)"])
@examples(60)
@given(drawn=streams, late=st.booleans())
def test_the_bound_holds_after_every_row(by: str, drawn: Any, late: bool) -> None:
    """A score is at most what the object has in the live panes, and lacks at most 1/c of all that is there."""
    rows, monitor = rows_of(drawn, late), monitor_of(by)
    clock = rows[0][0]
    arrived: list[tuple[int, str, float]] = []
    for row in rows:
        monitor.push(table([row]))
        clock = max(clock, row[0])
        if clock - row[0] < SPAN:
            arrived.append(row)
        has = counted(arrived, clock, by)
        slack = sum(has.values()) / COUNTERS
        answer = cells(monitor.answer())
        for member in answer:
            assert has[member["id"]] - slack <= member["score"] <= has[member["id"]]
        heavy = {o for o, size in has.items() if size > slack}
        summary = monitor._loop.state.adapters["q0"].engine.summary  # type: ignore[union-attr]
        known = {o for column in monitor._loop.state.adapters["q0"].objects.columns for o in column.all().to_pylist()}  # type: ignore[attr-defined]
        assert heavy <= known, "an object that has more than 1/c of all has a counter"
        assert len(answer) == min(3, int((summary.objects["panes"] > 0).sum())) or len(answer) == 3
        check(monitor)


def test_the_bound_holds_on_a_stream_against_space_saving() -> None:
    """Heavy objects at first, then each object once: every arrival takes a counter over."""
    rows = [(0, f"h{i % 4}", 1.0) for i in range(40)] + [(1, f"n{i}", 1.0) for i in range(400)]
    monitor = monitor_of("count(*)", k=4)
    monitor.push(table(rows))
    has, slack = counted(rows, 1, "count(*)"), len(rows) / COUNTERS
    for _ in range(2):  # and when all are added up anew, at the end of the pane
        for member in cells(monitor.answer()):
            assert has[member["id"]] - slack <= member["score"] <= has[member["id"]]
        check(monitor)
        monitor.advance(WIDTH)


def test_codes_of_objects_that_are_gone_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 objects few have a counter; pushes of any size give the same changes."""
    monkeypatch.setattr(adapter, "FEWEST", 8)
    rng, found = np.random.default_rng(4), []
    ids = np.where(rng.random(400) < 0.3, rng.zipf(1.5, 400) % 300, rng.integers(0, 300, 400))
    rows = [(n // 12, f"o{o}", 1.0) for n, o in enumerate(ids.tolist())]
    for cut in (400, 40, 2):
        monitor, changes = monitor_of("count(*)"), []
        for begin in range(0, len(rows), cut):
            changes += cells(monitor.push(table(rows[begin : begin + cut])))
            check(monitor)
        mine: Any = monitor._loop.state.adapters["q0"]
        assert mine.objects.total <= 8 + 2 * mine.engine.objects < 100
        found.append(changes)
    for other in found[1:]:
        same_rows(other, found[0], "all changes")


def who(changes: list[Any]) -> dict[str, int]:
    """By object, what its changes add up to."""
    found: Counter[str] = Counter()
    for row in changes:
        found[row["id"]] += row["diff"]
    return {o: total for o, total in found.items() if total}


@pytest.mark.parametrize("by", ["sum(x)", "count(*)"])
@examples(60)
@given(drawn=streams, late=st.booleans(), data=st.data())
def test_cuts_and_restores_change_nothing(by: str, drawn: Any, late: bool, data: Any) -> None:
    rows = rows_of(drawn, late)
    where = data.draw(st.sampled_from([None, "x > 1"]))
    one, other, total = (
        monitor_of(by, where=where),
        monitor_of(by, where=where),
        monitor_of(by, where=where, emit="batch"),
    )
    expected = cells(one.push(table(rows)))
    assert who(cells(total.push(table(rows)))) == who(expected), "net changes are the sum of all; scores move"
    got, begin = [], 0
    for end in sorted({*data.draw(st.lists(st.integers(0, len(rows)), max_size=6)), len(rows)}):
        if begin < end:
            got += cells(other.push(table(rows[begin:end])))
        other = sb.Monitor.restore(other.snapshot(), trusted=False)
        check(other)
        begin = end
    same_rows(got, expected, "all changes")
    assert other.answer().equals(one.answer())
    assert other.snapshot() == sb.Monitor.restore(one.snapshot()).snapshot()
    later = table([(rows[-1][0] + 500, "z", 1.0)])
    same_rows(cells(one.push(later)), cells(other.push(later)), "later")
    assert [row["id"] for row in cells(one.answer())] == ["z"] or where


@examples(25)
@given(drawn=streams)
def test_few_objects_are_counted_exactly(drawn: Any) -> None:
    """Up to c objects every count is right but for the pane before the window, and its answers say so."""
    rows = [(t, f"o{int(o[1:]) % COUNTERS}", x) for t, o, x in rows_of(drawn, late=False)]
    monitor = monitor_of()
    monitor.push(table(rows))
    has = counted(rows, rows[-1][0], "sum(x)")
    for member in cells(monitor.answer()):
        assert member["score"] == has[member["id"]]


@pytest.mark.parametrize("cut", [1, 2, 6])
def test_ties_go_to_the_object_with_the_newest_row(cut: int) -> None:
    """Of equal totals: the later time, then the later row; also when all are ranked anew at the end of a pane."""
    rows = [(0, "a", 1.0), (0, "b", 1.0), (1, "c", 1.0), (1, "d", 1.0), (0, "e", 1.0), (0, "f", 1.0)]
    monitor = monitor_of(k=4)
    for begin in range(0, len(rows), cut):
        monitor.push(table(rows[begin : begin + cut]))
    assert [row["id"] for row in cells(monitor.answer())] == ["d", "c", "f", "e"], "f takes a's counter over"
    monitor.advance(WIDTH)
    assert [row["id"] for row in cells(monitor.answer())][:2] == ["d", "c"]
    two = monitor_of(k=2)
    two.push(table(rows))
    assert [row["id"] for row in cells(two.answer())] == ["d", "c"], "late rows of equal totals are older"


def test_time_alone_empties_it() -> None:
    monitor = monitor_of()
    monitor.push(table([(0, "a", 1.0), (5, "b", 2.0)]))
    left = cells(monitor.advance(WIDTH + SPAN))
    assert [(row["id"], row["diff"], row["time"], row["score"]) for row in left] == [("a", -1, WIDTH + SPAN, 1.0)]
    left = cells(monitor.advance(10**12))
    assert [(row["id"], row["diff"], row["time"]) for row in left] == [("b", -1, 2 * WIDTH + SPAN)]
    assert monitor.answer().num_rows == 0 and monitor.stats()["queries"]["q0"]["objects"] == 0


def test_its_precision_is_of_answers_that_are_surely_right() -> None:
    monitor = monitor_of("count(*)", k=2)
    rows = [(t, "ab"[t % 2] if i < 6 else f"n{t}", 1.0) for t in range(200) for i in range(7)]
    monitor.push(table(rows))
    stats = monitor.stats()["queries"]["q0"]
    assert stats["algorithm"] == "SKETCH" and stats["looked"] > 50
    assert stats["precision"] > 0.9
    assert monitor.stats()["queries"]["q0"]["shortfall"] == sum(counted(rows, 199, "count(*)").values()) / COUNTERS
    even = monitor_of("count(*)", k=2)
    even.push(table([(t, f"n{i}", 1.0) for t in range(200) for i in range(40)]))
    assert even.stats()["queries"]["q0"]["precision"] == 0, "nothing is sure where all are alike"
    whole = monitor_of("count(*)", k=COUNTERS)
    whole.push(table([(t, f"n{i}", 1.0) for t in range(0, 200, WIDTH) for i in range(40)]))
    assert whole.stats()["queries"]["q0"]["precision"] == 0, "nor where objects without a counter may have as much"


def test_negative_rows_are_rejected() -> None:
    monitor = monitor_of()
    monitor.push(table([(0, "a", 1.0), (0, "b", 3.0), (0, "a", -1.0)]))
    assert monitor.stats()["rejected"] == {"x is negative": 1}
    assert [row["score"] for row in cells(monitor.answer())] == [3.0, 1.0]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"by": "max(x)"}, "Use that, or TALLY"),
        ({"by": "sum(x) / count(*)"}, "Use that, or TALLY"),
        ({"having": "count(*) > 1"}, "Use that, or TALLY"),
        ({"offset": 1}, "Use that, or TALLY"),
        ({"window": sb.Session(span=5)}, "Use that, or TALLY"),
        ({"largest": False}, "Use that, or TALLY"),
        ({"window": sb.Last(9)}, "Use TALLY"),
        ({"window": sb.Ever()}, "TALLY"),
        ({"per": "g"}, "or use TALLY"),
    ],
)
def test_what_it_refuses(more: dict[str, Any], says: str) -> None:
    asked = {"by": "sum(x)", "window": sb.Last(span=SPAN), "of": "o", "algorithm": "SKETCH", **more}
    with pytest.raises(sb.QueryError, match=says):
        sb.Monitor(sb.TopKGroups(3, **asked), time="t")
    with pytest.raises(sb.QueryError, match="TALLY"):
        monitor_of().answer(window=sb.Last(span=5))
