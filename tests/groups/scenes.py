"""Streams of rows of groups, and how they are played against the oracle."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from engines.streams import (
    CLOCKWORKS,
    Add,
    Advance,
    Clockwork,
    Delete,
    Drop,
    Push,
    Replace,
    Restore,
    Scene,
    _shorter,
    cells,
    same_changes,
    same_rows,
)
from skyband import Ever, Last, Monitor, Session, TopKGroups, UntilDeleted
from skyband.oracle import Oracle

Draw = Callable[[st.SearchStrategy[Any]], Any]
SUMS = ("sum(x)", "sum(x)", "count(*)", "avg(x)", "sum(x) / count(*) + 1", "sum(x * y)", "2*sum(x) - sum(y)")
PICKS = ("max(x)", "min(x)", "-max(y)", "first(x)", "last(x)", "max(x) - min(x)", "last(x) - first(y)", "max(abs(x))")
OTHERS = ("count(distinct x)", "count(distinct z) + max(y)", "count(distinct x + y)", "ln(sum(x))", "sqrt(last(x))")
HAVING = (None, None, None, "count(*) > 1", "sum(x) > 0", "max(x) > min(x)", "last(z) = 'm'", "first(y) > 0")
SELECT: tuple[Any, ...] = ((), (), {"n": "count(*)"}, {"s": "sum(x)", "l": "last(z)", "f": "first(y > 1)"}, ("max(y)",))
#: keys of an order: of many types, some null
KEYS = ("sum(x)", "count(*)", "max(x)", "min(x)", "last(z)", "first(z)", "id", "id", "max(x) > 1", "ln(sum(x))")
NULLS = ("case when count(*) > 1 then sum(x) end", "case when max(x) > 0 then last(z) end", "sqrt(last(x))")
FEW = (0.0, 1.0, 1.0, 2.0, -1.0)
#: numbers whose sums are wrong when they are rounded on the way, or that have far exponents
HARD = (1e15, 0.1, -1e15, 0.1, 0.2, 0.3, 1e308, -1e308, 5e-324, -5e-324, 2.0**-1022, 3.0, 1e16, 1.0, -1e16, 2.0**53)
BAD = (None, float("nan"), float("inf"), -float("inf"))
TYPES = {
    "i": pa.string(),
    "x": pa.float64(),
    "y": pa.int64(),
    "z": pa.string(),
    "g": pa.int64(),
    "h": pa.string(),
    "o": pa.string(),
    "v": pa.int32(),
}


@dataclasses.dataclass(frozen=True)
class GroupsScene(Scene):
    def table(self, rows: Any) -> Any:
        types = {**TYPES, "t": self.clockwork.type}
        return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()})


@dataclasses.dataclass(frozen=True)
class Taste:
    """What scenes are made of."""

    windows: tuple[str, ...] = ("count", "count", "time", "time", "time", "until deleted", "ever", "ever")
    by: tuple[str, ...] = (*SUMS, *PICKS, *OTHERS)
    numbers: tuple[Any, ...] = FEW
    lateness: tuple[int, ...] = (0, 0, 3, 8)
    rows: int = 14
    events: int = 7
    orders: bool = False  # several keys, nulls, ties both ways, offsets


@st.composite
def scenes(draw: Draw, taste: Taste) -> GroupsScene:
    clockwork = CLOCKWORKS[draw(st.sampled_from(["int64", "int64", "us", "date32"]))]
    sort = draw(st.sampled_from(taste.windows))
    of = draw(st.sampled_from(["o", "o", "v", ("o", "v")] if sort == "until deleted" else [None, "o", "v", ("o", "v")]))
    asked = {
        "by": draw(st.sampled_from(taste.by)),
        "of": of,
        "having": draw(st.sampled_from(HAVING)),
        "largest": draw(st.sampled_from([None, None, False])),
        "where": draw(st.sampled_from([None, None, "y > 0", "x >= 0 and z is not null"])),
        "per": draw(st.sampled_from([None, None, "g", ("g", "h")])),
        "select": draw(st.sampled_from(SELECT)),
    }
    if taste.orders:
        asked |= _order(draw, of)
    queries = {
        name: TopKGroups(draw(st.integers(1, 4)), window=_window(draw, sort, clockwork), **asked)
        for name in ("p", "q", "r")[: draw(st.integers(1, 3))]
    }
    needs_id = of is None or sort == "until deleted"
    options = {
        "id": "i" if needs_id or (of == "o" and draw(st.booleans())) else None,
        "time": "t" if sort in ("time", "session") or draw(st.booleans()) else None,
        "keep": draw(st.sampled_from([(), ("z",), ("x", "i")])),
        "emit": draw(st.sampled_from(["arrival", "arrival", "batch"])),
        "late": draw(st.sampled_from(["accept", "accept", "drop"])),
    }
    events = _events(draw, taste, queries, options, sort, clockwork)
    return GroupsScene(queries, events, options, clockwork, keyed=("i", "o", "z"))


def _order(draw: Draw, of: Any) -> dict[str, Any]:
    """What ranks objects."""
    keys = (*KEYS, *NULLS, *(("id.v", "id.o") if isinstance(of, tuple) else ()))
    by: Any = tuple(draw(st.lists(st.sampled_from(keys), max_size=3)))
    largest = draw(st.one_of(st.sampled_from([None, True, False]), st.tuples(*[st.booleans()] * len(by))))
    if draw(st.integers(0, 3)) == 0:  # one key alone
        by, largest = draw(st.sampled_from((*KEYS, NULLS[0]))), draw(st.sampled_from([None, False]))
    offset = draw(st.sampled_from([0, 0, 1, 2]))
    return {
        "by": by,
        "largest": largest,
        "nulls": draw(st.sampled_from(["reject", "first", "last"])),
        "ties": draw(st.sampled_from(["newest", "oldest"])),
        "offset": offset,
        "with_ties": not offset and draw(st.booleans()),
    }


def _events(
    draw: Draw, taste: Taste, queries: dict[str, Any], options: dict[str, Any], sort: str, clockwork: Clockwork
) -> list[Any]:
    lateness, numbers = draw(st.sampled_from(taste.lateness)), taste.numbers
    kinds = ["push"] * 6 + ["restore"] * 2 + ["replace", "add", "drop"]
    kinds += ["advance"] * (options["time"] is not None) + ["delete"] * 3 * (sort == "until deleted")
    standing, happened, clock = dict(queries), list[Any](), 0
    for number in range(draw(st.integers(1, taste.events))):
        kind = draw(st.sampled_from(kinds)) if number else "push"
        if kind == "push":
            pushed, clock = _rows(draw, draw(st.integers(0, taste.rows)), clock, lateness, clockwork, numbers)
            happened.append(Push(pushed))
        elif kind == "restore":
            happened.append(Restore())
        elif kind == "advance":
            by = draw(st.integers(0, 5))
            clock += by
            happened.append(Advance(by))
        elif kind == "delete":
            happened.append(Delete(draw(st.lists(st.sampled_from("abcdef"), max_size=3, unique=True))))
        elif kind == "replace":
            name = draw(st.sampled_from(sorted(standing)))
            standing[name] = _other(draw, standing, name)
            happened.append(Replace(name, standing[name]))
        elif kind == "add":
            like = standing[draw(st.sampled_from(sorted(standing)))]
            name = f"n{number}"
            standing[name] = dataclasses.replace(like, k=draw(st.integers(1, 4)))
            happened.append(Add(name, standing[name]))
        elif len(standing) > 1:
            name = draw(st.sampled_from(sorted(standing)))
            del standing[name]
            happened.append(Drop(name))
    return happened


def _other(draw: Draw, standing: dict[str, Any], name: str) -> Any:
    """The same query for less, or another one."""
    old = standing[name]
    window = old.window
    if isinstance(window, Last) and draw(st.booleans()):
        window = _shorter(window, draw(st.integers(0, 8)))
    if draw(st.integers(0, 3)) == 0:
        return dataclasses.replace(old, by="count(*)", largest=None, window=window)
    return dataclasses.replace(old, k=draw(st.integers(1, old.k)), window=window)


def _window(draw: Draw, sort: str, clockwork: Clockwork) -> Any:
    if sort == "until deleted":
        return UntilDeleted()
    if sort == "ever":
        return Ever()
    if sort == "session":
        size = draw(st.integers(1, 4))
        return Session(span=size) if clockwork.tick is None else Session(size * clockwork.tick)
    size = draw(st.integers(1, 9))
    return clockwork.window(size) if sort == "time" else Last(size)


def _rows(
    draw: Draw, size: int, clock: int, lateness: int, clockwork: Clockwork, numbers: tuple[Any, ...]
) -> tuple[Any, int]:
    clean = size % 3 != 0
    names = ["a", "b", "c", "d", "e", "f"]
    row = st.tuples(
        st.sampled_from([0, 0, 1, 1, 2, 5]),
        st.integers(0, lateness),
        st.sampled_from(names if clean else [*names, None]),
        st.sampled_from(numbers if clean else [*numbers, *BAD]),
        st.sampled_from([0, 1, 2, -1] if clean else [0, 1, 2, None, 2**53 + 1]),
        st.sampled_from(["m", "n"] if clean else ["m", None]),
        st.sampled_from([1, 1, 2, None]),
        st.sampled_from(["m", None]),
        st.sampled_from(["u", "v", "w"] if clean else ["u", "v", "w", None]),
        st.sampled_from([1, 2, 3]),
    )
    rows = []
    for step, late, i, x, y, z, g, h, o, v in draw(st.lists(row, min_size=size, max_size=size)):
        clock += step
        ticks = max(0, clock - late)
        values = {"x": x, "y": y, "z": z, "g": g, "h": h, "o": o, "v": v}
        rows.append({"i": i, "t": clockwork.value(ticks), **values})
    return rows, clock


def play(scene: Scene, *, trusted: bool = False) -> Monitor:
    """Play a scene to a Monitor and to the oracle, hold them against each other after each event."""
    monitor, oracle = Monitor(scene.queries, **scene.options), Oracle(scene.queries, **scene.options, keyed=scene.keyed)
    for place, event in enumerate(scene.events):
        where = f"event {place}, {type(event).__name__}"
        match event:
            case Push(rows):
                changes, expected = monitor.push(scene.table(rows)), oracle.push(rows)
                same_changes(cells(changes), expected, where, net_changes=scene.net_changes)
            case Advance(by):
                if oracle.clock is None:
                    continue
                to = oracle.clock + by * (scene.clockwork.tick or 1)
                same_changes(cells(monitor.advance(to)), oracle.advance(to), where, net_changes=scene.net_changes)
            case Delete(ids):
                changes, expected = monitor.delete(ids), oracle.delete(ids)
                same_changes(cells(changes), expected, where, net_changes=scene.net_changes)
            case Restore():
                monitor = Monitor.restore(monitor.snapshot(), trusted=trusted)
            case Add(name, query):
                monitor.add(name, query)
                oracle.add(name, query)
            case Replace(name, query):
                same_rows(cells(monitor.replace(name, query)), oracle.replace(name, query), where)
            case Drop(name):
                monitor.drop(name)
                oracle.drop(name)
        stats = monitor.stats()
        assert (stats["arrivals"], stats["late"]) == (oracle.arrivals, oracle.late), where
        monitor._loop.check()
        _same_answers(monitor, oracle, place, where)
    return monitor


def _same_answers(monitor: Monitor, oracle: Oracle, place: int, where: str) -> None:
    for name, query in oracle.queries.items():
        asked: Any = query
        same_rows(cells(monitor.answer(name)), oracle.answer(name), f"{where}, answer of {name}")
        k, window = place % asked.k + 1, None
        if isinstance(query.window, Last):
            window = _shorter(query.window, place)
        same_rows(
            cells(monitor.answer(name, k=k, window=window)),
            oracle.answer(name, k=k, window=window),
            f"{where}, answer of {name} for k={k}, window={window}",
        )
