"""Streams of incomplete objects, and how they are played against the oracle."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from engines.streams import (
    CLOCKWORKS,
    Add,
    Advance,
    Clockwork,
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
from skyband import Ever, Last, Linear, Monitor, TopKIncomplete
from skyband.oracle import Oracle

Draw = Callable[[st.SearchStrategy[Any]], Any]
EXACT = ("SWEEP", "EAA", "SLA")
UNIT = ("a", "b", "c")
OPEN = {"a": (0, math.inf), "b": (-2, 3), "c": (1, math.inf)}
WIDE = {"a": (0, 4), "b": (-2, 3), "c": (1, 2.5)}
COMBINES: list[Any] = [
    "sum",
    "sum",
    "mean",
    "min",
    "max",
    Linear({"b": 2, "a": 0.5}),
    "a + 2*b + exp(c)",
    "greatest(a, b - 1) + least(b, c)*0.5",
    "ln(a) + power(b, 3)",
    "sqrt(b) + c",
]
TYPES = {
    "i": pa.string(),
    "part": pa.string(),
    "value": pa.float64(),
    "z": pa.string(),
    "g": pa.int64(),
    "h": pa.string(),
}


@dataclasses.dataclass(frozen=True)
class IncompleteScene(Scene):
    def table(self, rows: Any) -> Any:
        types = {**TYPES, "t": self.clockwork.type}
        return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()})


@st.composite
def scenes(draw: Draw, algorithm: str, rows: int = 14, events: int = 7) -> IncompleteScene:
    clockwork = CLOCKWORKS[draw(st.sampled_from(["int64", "int64", "us", "date32"]))]
    timed, per = draw(st.booleans()), draw(st.sampled_from([None, None, "g", ("g", "h")]))
    repeat = draw(st.sampled_from([None, None, "last", "max", "sum"]))
    wide = draw(st.booleans())
    asked = {
        "parts": draw(st.sampled_from([WIDE, OPEN])) if wide and algorithm in EXACT else WIDE if wide else UNIT,
        "combine": draw(st.sampled_from(COMBINES)),
        "repeat": repeat,
        "largest": draw(st.sampled_from([None, True, False])) if algorithm in EXACT else None,
        "where": draw(st.sampled_from([None, None, "z = 'm'", "value > 0.25 or g = 1"])),
        "per": per,
        "algorithm": algorithm,
    }
    if algorithm in ("SWEEP", "EAA") and draw(st.integers(0, 3)) == 3:
        asked |= _any_parts(draw, wide)
        repeat = asked["repeat"]
    first = _window(draw, timed, clockwork)
    queries = {}
    for name in ("p", "q", "r")[: draw(st.integers(1, 3))]:
        window = first if repeat is None or draw(st.booleans()) else _window(draw, timed, clockwork)
        queries[name] = TopKIncomplete(draw(st.integers(1, 4)), window=window, **asked)
    options = {
        "id": "i",
        "time": "t" if timed or draw(st.booleans()) else None,
        "keep": draw(st.sampled_from([(), ("z",)])),
        "emit": draw(st.sampled_from(["arrival", "arrival", "batch"])),
        "late": draw(st.sampled_from(["accept", "accept", "drop"])),
    }
    lateness = draw(st.sampled_from([0, 0, 3, 8]))
    kinds = ["push"] * 6 + ["restore"] * 2 + ["advance"] * (options["time"] is not None) + ["replace", "add", "drop"]
    standing, happened, clock = dict(queries), list[Any](), 0
    for number in range(draw(st.integers(1, events))):
        kind = draw(st.sampled_from(kinds)) if number else "push"
        if kind == "push":
            pushed, clock = _rows(draw, draw(st.integers(0, rows)), clock, lateness, clockwork, wide)
            happened.append(Push(pushed))
        elif kind == "restore":
            happened.append(Restore())
        elif kind == "advance":
            by = draw(st.integers(0, 5))
            clock += by
            happened.append(Advance(by))
        elif kind == "replace":
            name = draw(st.sampled_from(sorted(standing)))
            standing[name] = _other(draw, standing, name, clockwork)
            happened.append(Replace(name, standing[name]))  # type: ignore[arg-type]
        elif kind == "add":
            like = standing[draw(st.sampled_from(sorted(standing)))]
            name = f"n{number}"
            standing[name] = dataclasses.replace(like, k=draw(st.integers(1, 4)))
            happened.append(Add(name, standing[name]))  # type: ignore[arg-type]
        elif len(standing) > 1:
            name = draw(st.sampled_from(sorted(standing)))
            del standing[name]
            happened.append(Drop(name))
    return IncompleteScene(queries, happened, options, clockwork)


def _any_parts(draw: Draw, wide: bool) -> dict[str, Any]:
    """Parts that are not named in advance."""
    combine = draw(st.sampled_from(["sum", "max"]))
    low = draw(st.sampled_from([0.0, -2.0])) if combine == "max" else 0.0
    parts = draw(st.sampled_from(["*", {"*": (low, 3)}, {"*": (low, math.inf)}])) if wide else "*"
    return {"parts": parts, "combine": combine, "repeat": draw(st.sampled_from([None, "last", combine]))}


def _other(draw: Draw, standing: dict[str, Any], name: str, clockwork: Clockwork) -> Any:
    """The same query for less, in the cases where an engine goes on as the oracle does (see sweep.md)."""
    old = standing[name]
    k = draw(st.integers(1, old.k))
    window = old.window
    if len(standing) == 1 and draw(st.booleans()):
        window = _shorter(window, draw(st.integers(0, 8)))
    return dataclasses.replace(old, k=k, window=window)


def _window(draw: Draw, timed: bool, clockwork: Clockwork) -> Last:
    size = draw(st.integers(1, 9))
    return clockwork.window(size) if timed else Last(size)


def _rows(draw: Draw, size: int, clock: int, lateness: int, clockwork: Clockwork, wide: bool) -> tuple[Any, int]:
    values = [0.0, 1.0, 0.5, 0.5, 0.25, 0.75, 2.0, -0.0, -1.0, None, float("nan")]
    row = st.tuples(
        st.sampled_from([0, 0, 1, 1, 2, 5]),
        st.integers(0, lateness),
        st.sampled_from(["u", "v", "w", "x", "y", None] if size % 3 else ["u", "v", "w", "x", "y", "z"]),
        st.sampled_from([*UNIT, *UNIT, *UNIT, "d", None] if size % 3 else UNIT),
        st.sampled_from(values if size % 2 else values[:6]),
        st.sampled_from([None, "m"]),
        st.sampled_from([1, 1, 2, None]),
        st.sampled_from(["m", None]),
    )
    rows = []
    for step, late, i, part, value, z, g, h in draw(st.lists(row, min_size=size, max_size=size)):
        clock += step
        ticks = max(0, clock - late)
        value = value + 1 if wide and value is not None else value
        rows.append({"i": i, "t": clockwork.value(ticks), "part": part, "value": value, "z": z, "g": g, "h": h})
    return rows, clock


@st.composite
def streams(
    draw: Draw, algorithm: str, repeat: Any = None, *, counted: bool = False, turns: bool = False
) -> IncompleteScene:
    """One query over one longer stream in order, where many are dominated."""
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.integers(0, 8), st.integers(0, 2)),
            min_size=30,
            max_size=90,
        )
    )
    timed, clock, made = not counted and draw(st.booleans()), 0, []
    fresh = draw(st.booleans())  # ids change with time: then few are rejected
    for number, (i, part, value, step) in enumerate(rows):
        clock += step
        name = f"{i + number // 4 * fresh}"
        made.append({"i": name, "t": clock, "part": part, "value": value / 8, "z": name, "g": None, "h": None})
    window = Last(span=draw(st.integers(5, 40))) if timed else Last(draw(st.integers(5, 40)))
    query = TopKIncomplete(
        draw(st.integers(1, 3)),
        ["a", "b"],
        window,
        combine=draw(st.sampled_from(["sum", "max", "min", "power(a, 3) + b"])),
        repeat=repeat,
        largest=draw(st.sampled_from([None, None, False])) if turns else None,
        where=draw(st.sampled_from([None, "z <> '3'"])),
        algorithm=algorithm,
    )
    events: list[Any] = []
    most = draw(st.sampled_from([2, 5, 30]))  # a sweep comes at the end of a push
    while made:
        size = draw(st.integers(1, most))
        events.append(Push(made[:size]))
        made = made[size:]
        events += [Restore()] * draw(st.booleans())
    return IncompleteScene({"p": query}, events, {"id": "i", "time": "t", "keep": ("z",)})


def endless(scene: IncompleteScene) -> IncompleteScene:
    """The same scene over windows without end, without -0.0: which zero is the largest of several is not fixed."""

    def lasting(query: Any) -> Any:
        return dataclasses.replace(query, window=Ever())

    def positive(row: Any) -> Any:
        return {**row, "value": None if row["value"] is None else row["value"] + 0.0}

    events: list[Any] = []
    for event in scene.events:
        if isinstance(event, Add | Replace):
            events.append(dataclasses.replace(event, query=lasting(event.query)))
        else:
            events.append(Push([positive(row) for row in event.rows]) if isinstance(event, Push) else event)
    queries = {name: lasting(query) for name, query in scene.queries.items()}
    return dataclasses.replace(scene, queries=queries, events=events)


def scene_of(query: TopKIncomplete, rows: Any, cut: int) -> IncompleteScene:
    named = [
        dict(zip(("i", "part", "value", "t"), row, strict=True)) | {"z": None, "g": None, "h": None} for row in rows
    ]
    pushes = [Push(named[begin : begin + cut]) for begin in range(0, len(named), cut)]
    return IncompleteScene({"p": query}, pushes, {"id": "i", "time": "t"})


def play(scene: IncompleteScene) -> Monitor:
    monitor, oracle = Monitor(scene.queries, **scene.options), Oracle(scene.queries, **scene.options)
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
            case Restore():
                monitor = Monitor.restore(monitor.snapshot())
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
        assert sum(stats["rejected"].values()) == oracle.rejected.total(), where
        monitor._loop.check()
        asked: dict[str, Any] = dict(oracle.queries)
        for name, standing in asked.items():
            same_rows(cells(monitor.answer(name)), oracle.answer(name), f"{where}, answer of {name}")
            k, own = place % standing.k + 1, standing.window
            window = _shorter(own, place) if isinstance(own, Last) else None
            same_rows(
                cells(monitor.answer(name, k=k, window=window)),
                oracle.answer(name, k=k, window=window),
                f"{where}, answer of {name} for k={k}, window={window}",
            )
    return monitor
