"""What leaves the state: groups that are silent for `forget`, groups of time windows without objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import Clockwork, Row, cells, examples, net, same_rows
from skyband import Last, Monitor, TopK
from skyband.spark.plan import QuerySet
from spark.shard_streams import Stream, sizes, streams
from spark.shards import CLOCKWORKS, Shards, Sizes, as_text, pushed, rows, table_of

Draw = Callable[[st.SearchStrategy[Any]], Any]

SECONDS = CLOCKWORKS["TIMESTAMP"]


def groups_in(shards: Shards, query_set: QuerySet) -> int:
    return sum(
        int(one.directories[query_set].groups.sum()) for one in shards.shards_now() if query_set in one.directories
    )


# --------------------------------------------------------------------------------- model


@dataclass
class Model:
    """`forget` as it is told: a Monitor for each life of a group."""

    queries: dict[str, TopK]
    options: dict[str, Any]
    forget: Any  # what is added to a time
    lives: dict[tuple[Any, ...], Monitor] = field(default_factory=dict)
    last: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    clock: Any = None

    def trigger(self, table: Any) -> list[Row]:
        """Rows in order."""
        changes: list[Row] = []
        for place, row in enumerate(table.to_pylist()):
            if isinstance(row["t"], datetime):
                row["t"] = row["t"].astimezone(UTC)  # Python adds an hour to a clock on the wall
            for per in {query.per_columns for query in self.queries.values()}:
                changes += self._take(per, row, table.slice(place, 1))
        for group in list(self.last):
            if self.last[group] + self.forget <= self.clock:
                changes += self._leave(group)
        return changes

    def _take(self, per: tuple[str, ...], row: Row, piece: Any) -> list[Row]:
        group, changes = (per, *(row[name] for name in per)), list[Row]()
        mine = {name: query for name, query in self.queries.items() if query.per_columns == per}
        if not any(_accepts(query, row) for query in mine.values()):
            return []
        if group in self.last and self.last[group] + self.forget <= row["t"]:
            changes = self._leave(group)
        monitor = self.lives.setdefault(group, Monitor(mine, **{**self.options, "emit": "arrival"}))
        self.last[group] = row["t"]
        self.clock = row["t"] if self.clock is None else max(row["t"], self.clock)
        return changes + cells(monitor.push(piece))

    def _leave(self, group: tuple[Any, ...]) -> list[Row]:
        monitor, last = self.lives.pop(group), self.last.pop(group)
        changes = []
        for name in monitor.queries:
            at = monitor.stats()["queries"][name]["arrivals"] - 1
            for row in cells(monitor.answer(name)):
                del row["rank"]
                changes.append({**row, "query": name, "at": at, "time": last + self.forget, "diff": -1, "first": False})
        return changes

    def answer(self, name: str) -> list[Row]:
        return [row for one in self.lives.values() if name in one.queries for row in cells(one.answer(name))]


def _accepts(query: TopK, row: Row) -> bool:
    value = row[str(query.by)]
    return value is not None and value == value


def columns(changes: list[Row], per: list[str]) -> list[Row]:
    """With all columns, in one order."""
    names = ["query", *per, "at", "time", "id", "score", "diff", "first", "z"]
    return [{name: row.get(name) for name in names} for row in changes]


@dataclass(frozen=True)
class Silence:
    queries: dict[str, TopK]
    clockwork: Clockwork
    forget: int  # ticks
    drawn: list[Row]
    shards: int
    sizes: Sizes

    @property
    def span(self) -> Any:
        """As it is given to `monitor`."""
        tick = self.clockwork.tick
        return self.forget if tick is None else f"{self.forget * int(tick.total_seconds() * 10**6)} us"

    @property
    def per(self) -> list[str]:
        return list(dict.fromkeys(name for query in self.queries.values() for name in query.per_columns))

    def start(self, **more: Any) -> tuple[Shards, Model]:
        options = {"id": "i", "time": "t", "keep": ("z",), **more}
        whole = options.pop("whole", False)
        shards = Shards(self.queries, options, self.shards, sizes=self.sizes, forget=self.span, whole=whole)
        return shards, Model(self.queries, options, self.forget * (self.clockwork.tick or 1))

    def triggers(self, cuts: list[int]) -> list[Any]:
        table = table_of(self.drawn, self.clockwork)
        return [table.slice(left, right - left) for left, right in zip([0, *cuts], [*cuts, len(table)], strict=True)]


@st.composite
def silences(draw: Draw, *, late: bool) -> Silence:
    """Count windows of groups that fall silent now and then; in order, some rows are arrivals of some queries only."""
    clockwork = CLOCKWORKS[draw(st.sampled_from(["integer", "TIMESTAMP", "TIMESTAMP in Paris", "date"]))]
    queries = {}
    for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        by, per = (
            draw(st.sampled_from(["x"] if late else ["x", "y"])),
            draw(st.sampled_from(["g", "g", "g", ("g", "h")])),
        )
        where = draw(st.sampled_from([None, None, "x > 0"]))
        queries[name] = TopK(draw(st.integers(1, 2)), by, Last(draw(st.integers(1, 4))), per=per, where=where)
    step = st.sampled_from([0, 0, 1, 1, 2, 7])
    score, other = st.sampled_from([0.0, 1.0, 2.0, None]), st.sampled_from([1, 0, None])
    group, part = st.sampled_from([1, 2, 3, None]), st.sampled_from(["m", None])
    late_by = st.sampled_from([0, 0, 3, 12]) if late else st.just(0)
    drawn, clock = list[Row](), 0
    for i, (more, x, y, g, h, ago) in enumerate(
        draw(st.lists(st.tuples(step, score, other, group, part, late_by), min_size=1, max_size=30))
    ):
        clock += more
        time = clockwork.value(max(0, clock - ago))
        drawn.append({"i": i, "t": time, "x": x, "y": y, "z": "uvw"[i % 3], "g": g, "h": h})
    return Silence(queries, clockwork, draw(st.integers(1, 9)), drawn, draw(st.sampled_from([1, 3])), draw(sizes()))


def draw_cuts(data: st.DataObject, silence: Silence) -> list[int]:
    return sorted(data.draw(st.lists(st.integers(0, len(silence.drawn)), max_size=5)))


# --------------------------------------------------------------------------------- forget


@examples(50)
@given(silences(late=False), st.data())
def test_forgetting_is_a_restart_however_the_stream_is_cut(silence: Silence, data: st.DataObject) -> None:
    outcomes = []
    for _ in range(2):
        (shards, model), found = silence.start(), list[Row]()
        for number, table in enumerate(silence.triggers(draw_cuts(data, silence))):
            changes = shards.trigger([table])
            same_rows(columns(changes, silence.per), columns(model.trigger(table), silence.per), f"trigger {number}")
            found += changes
            for per in {query.per_columns for query in silence.queries.values()}:
                kept = sum(group[0] == per for group in model.last)
                assert groups_in(shards, QuerySet(per, timed=False)) == kept, (
                    f"trigger {number}: what is forgotten is gone"
                )
            for name in silence.queries:
                same_rows(shards.answer(name), model.answer(name), f"trigger {number}, answer of {name}")
        outcomes.append(found)
    same_rows(outcomes[0], outcomes[1], "two cuts")


@examples(35)
@given(silences(late=True), st.sampled_from(["arrival", "batch"]), st.data())
def test_forgetting_with_late_rows_and_net_changes(silence: Silence, emit: str, data: st.DataObject) -> None:
    shards, model = silence.start(emit=emit)
    for number, table in enumerate(silence.triggers(draw_cuts(data, silence))):
        found, expected = (
            shards.trigger([table]),
            model.trigger(table.sort_by([("t", "ascending"), ("i", "ascending")])),
        )
        assert net(found) == net(expected), f"trigger {number}"
        for name in silence.queries:
            same_rows(shards.answer(name), model.answer(name), f"trigger {number}, answer of {name}")


@examples(35)
@given(silences(late=True), st.data())
def test_answers_know_what_is_forgotten(silence: Silence, data: st.DataObject) -> None:
    shards, model = silence.start(emit="batch", whole=True)
    for number, table in enumerate(silence.triggers(draw_cuts(data, silence))):
        found, changes = shards.trigger([table]), model.trigger(table.sort_by([("t", "ascending"), ("i", "ascending")]))
        changed = {(row["query"], row.get("g"), row.get("h")) for row in changes}
        moved = {(row["query"], row["id"]): 0 for row in changes}
        for row in changes:
            moved[row["query"], row["id"]] += row["diff"]
        must = {(row["query"], row.get("g"), row.get("h")) for row in changes if moved[row["query"], row["id"]]}
        expected = []
        for name in silence.queries:
            for row in model.answer(name):
                who = (name, row.get("g"), row.get("h"))
                if who in must or (who in changed and who in {(o["query"], o.get("g"), o.get("h")) for o in found}):
                    expected.append({"query": name, **row})
        same_rows(
            [{key: value for key, value in row.items() if value is not None} for row in found],
            [{key: row[key] for key in found[0] if row.get(key) is not None} for row in expected]
            if found
            else expected,
            f"trigger {number}",
        )


def test_forget_at_the_very_moment() -> None:
    shards = Shards({"q": TopK(1, by="x", window=Last(5), per="g")}, {"id": "i", "time": "t"}, 1, forget=10)
    assert as_text(shards.trigger([rows((1, 0, 9.0, 1), (2, 0, 9.0, 2))])) == ["0 1 +1", "0 2 +2"]
    assert as_text(shards.trigger([rows((3, 9, 1.0, 1))])) == []
    assert as_text(shards.trigger([rows((4, 10, 1.0, 3))])) == ["10 2 -2", "10 3 +4"]
    # the group's own next arrival, ten later, finds nothing
    assert as_text(shards.trigger([rows((5, 19, 1.0, 1))])) == ["19 1 +5", "19 1 -1"]


@pytest.mark.parametrize("emit", ["arrival", "batch"])
@pytest.mark.parametrize("slice_", [1, 2, 100])
def test_who_returns_after_a_silence_takes_nobody_along(emit: str, slice_: int) -> None:
    """Of four groups two fall silent and return, one of them twice; the others are never silent for ten."""
    options = {"id": "i", "time": "t", "emit": emit}
    sizes = Sizes(slice=slice_)
    shards = Shards({"q": TopK(1, by="x", window=Last(9), per="g")}, options, 1, forget=10, sizes=sizes)
    assert net(shards.trigger([rows(*[(g, 0, 9.0, g) for g in (1, 2, 3, 4)])]))
    steady = [(100 + t, t, 1.0, g) for t, g in zip(range(4, 48, 4), [2, 4] * 6, strict=False)]
    returning = [(200, 20, 1.0, 1), (201, 40, 2.0, 1), (202, 45, 1.0, 3)]
    changes = shards.trigger([rows(*steady, *returning)])
    assert {row["g"] for row in changes} == {1, 3}
    assert sum(row["diff"] for row in changes) == 0
    assert {(row["g"], row["id"]) for row in shards.answer("q")} == {(1, 201), (2, 2), (3, 202), (4, 4)}


def test_forgetting_is_for_count_windows_with_per() -> None:
    queries = {
        "all": TopK(1, by="x", window=Last(5)),
        "time": TopK(1, by="x", window=Last(span=1000), per="g"),
        "count": TopK(1, by="x", window=Last(5), per="g"),
    }
    shards = Shards(queries, {"id": "i", "time": "t"}, 3, forget=10)
    shards.trigger([rows((1, 0, 9.0, 1))])
    left = shards.trigger([rows((2, 500, 1.0, 2))])
    assert [(row["query"], row["id"]) for row in left if row["diff"] < 0] == [("count", 1)]


def test_forgetting_times_before_1970_with_a_query_that_came_later() -> None:
    first = {"a": TopK(1, by="x", window=Last(5), per="g")}
    both = {**first, "b": TopK(1, by="y", window=Last(5), per="g")}
    shards = Shards(first, {"id": "i", "time": "t"}, 1, forget=10)
    shards.trigger([rows((1, -100, 9.0, 1))])
    shards.restart(both)
    assert shards.trigger([rows()]) == []
    assert as_text(shards.trigger([rows((2, -99, 1.0, 2), y=None)])) == ["-99 2 +2"]
    assert as_text(shards.trigger([rows((3, -89, 1.0, 3), y=None)])) == ["-89 2 -2", "-89 3 +3", "-90 1 -1"]


def test_groups_that_only_dropped_queries_knew_are_forgotten_at_once() -> None:
    shards = Shards({"a": TopK(1, by="x", window=Last(5), per="g")}, {"id": "i", "time": "t"}, 1, forget=10)
    shards.trigger([rows((1, 0, 9.0, 1), (2, 0, 9.0, 2))])
    shards.restart({"b": TopK(1, by="x", window=Last(6), per="g")})
    assert as_text(shards.trigger([rows((3, 1, 9.0, 2))])) == ["1 2 +3"]
    assert groups_in(shards, QuerySet(("g",), timed=False)) == 1


# ------------------------------------------------------------------------- groups that die


@examples(40)
@given(streams(emit=("arrival", "batch"), lateness=(0, 4)))
def test_the_state_is_what_a_monitor_keeps(stream: Stream) -> None:
    """Objects exactly; of time windows only groups that have some."""
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        shards.trigger(trigger)
        pushed(monitor, trigger, stream.order)
        objects = sum(
            int(adapter.engine.kept.sum()) for adapter in monitor._loop.state.standing() if adapter.engine is not None
        )
        assert sum(one.totals()["objects"] for one in shards.shards_now()) == objects, f"trigger {number}"
        for query_set in shards.plan.query_sets:
            if query_set.per:
                alive: set[int] = set()
                for adapter in monitor._loop.state.standing():
                    if (
                        adapter.groups.names == query_set.per
                        and adapter.timed == query_set.timed
                        and adapter.engine is not None
                    ):
                        kept = adapter.engine.kept > 0 if query_set.timed else adapter.numbering.counts.max(axis=0) > 0
                        alive |= set(kept.nonzero()[0].tolist())
                assert groups_in(shards, query_set) == len(alive), f"trigger {number}, {query_set}"
