"""Hypothesis strategies for scenes: queries, rows and events within a `Taste`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

from engines.scene import (
    CLOCKWORKS,
    Add,
    Advance,
    Clockwork,
    Delete,
    Drop,
    Event,
    Push,
    Replace,
    Restore,
    Row,
    Scene,
    TopKQuery,
    row,
)
from skyband import Above, Ever, Last, Linear, Nearest, Product, Quadratic, Similar, TopK, UntilDeleted
from skyband.query.algorithms import names

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

APPROXIMATE = names("TopK", lambda row: not row.exact)

_SCORES = [0.0, 1.0, 1.0, 2.0, 2.0, 3.0]
_ODD_SCORES = [*_SCORES, 1.5, -0.0, float("inf"), float("-inf"), float("nan"), None]
_SCORINGS: list[Any] = [
    "x + y",
    "abs(x - 1) * 2",
    Linear({"x": 1, "y": 0.5}),
    Product({"x": 1, "y": 2}),
    Quadratic({"x": 1, "y": -1}),
    Nearest({"x": 1, "y": 0}),
    Nearest({"x": 2}, metric="manhattan"),
]


@dataclass(frozen=True)
class Taste:
    """The choices that the strategies draw from."""

    timed: tuple[bool, ...] = (True, False)
    k: int = 4
    n: int = 9
    queries: int = 3
    per: tuple[Any, ...] = (None, None, "g", ("g", "h"))
    by: tuple[Any, ...] = ("x", "x", *_SCORINGS)
    where: tuple[Any, ...] = (None, None, "y > 0")
    emit: tuple[str, ...] = ("arrival", "arrival", "batch")
    late: tuple[str, ...] = ("accept", "drop")
    lateness: tuple[int, ...] = (0, 0, 3, 8)
    scores: tuple[Any, ...] = tuple(_ODD_SCORES)
    edits: bool = True
    restores: bool = True
    rows: int = 12
    events: int = 7
    clockworks: tuple[str, ...] = ("int64",)
    thresholds: tuple[float, ...] = ()  # of Above queries, if there are any
    above: tuple[bool, ...] = (False,)
    deletable: bool = False  # UntilDeleted instead of windows
    ever: bool = False  # Ever instead of windows
    ids: tuple[Any, ...] = ("p", "q", None)


def queries_of(
    draw: Draw, taste: Taste, algorithm: str, timed: bool, per: Any, clockwork: Clockwork
) -> dict[str, TopKQuery]:
    by, where, largest = draw(st.sampled_from(taste.by)), draw(st.sampled_from(taste.where)), None
    queries: dict[str, TopKQuery] = {}
    family = isinstance(taste.by[0], Nearest | Similar)
    size = (draw(st.integers(1, taste.k)), _window(draw, taste, timed, clockwork))
    for name in ("a", "b", "c", "d", "e")[: draw(st.integers(1, taste.queries))]:
        if queries and family:
            by = draw(st.sampled_from(taste.by))
            if draw(st.integers(0, 3)) == 0:
                size = (draw(st.integers(1, taste.k)), _window(draw, taste, timed, clockwork))
        elif queries and draw(st.integers(0, 3)) == 0:  # else it shares with those before
            by, where = draw(st.sampled_from(taste.by)), draw(st.sampled_from(taste.where))
            largest = draw(st.sampled_from([None, True, False]))
            per = draw(st.sampled_from([per, None]))
            timed = timed and draw(st.integers(0, 3)) > 0
        if not family:
            size = (draw(st.integers(1, taste.k)), _window(draw, taste, timed, clockwork))
        if _is_above(draw, taste):
            queries[name] = Above(
                draw(st.sampled_from(taste.thresholds)),
                by=by,
                window=size[1],
                where=where,
                per=per,
                algorithm=algorithm,
            )
            continue
        queries[name] = TopK(
            size[0],
            by=by,
            window=size[1],
            largest=largest,
            where=where,
            per=per,
            algorithm=algorithm,
        )
    return queries


def _is_above(draw: Draw, taste: Taste) -> bool:
    return taste.above[0] if len(taste.above) == 1 else draw(st.sampled_from(taste.above))


def _window(draw: Draw, taste: Taste, timed: bool, clockwork: Clockwork, most: int | None = None) -> Any:
    if taste.deletable:
        return UntilDeleted()
    if taste.ever:
        return Ever()
    size = draw(st.integers(1, min(taste.n, most or taste.n)))
    return clockwork.window(size) if timed else Last(size)


def rows_of(
    draw: Draw, taste: Taste, size: int, clock: int, lateness: int, clockwork: Clockwork
) -> tuple[list[Row], int]:
    """`size` rows from `clock` on, and the clock after them."""
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from([0, 0, 1, 1, 2, 5]),
                st.integers(0, lateness),
                st.sampled_from(taste.scores),
                st.sampled_from([1, 0, -1, 2, None]),
                st.sampled_from([None, "u", "v"]),
                st.sampled_from([1, 2, None]),
                st.sampled_from(["m", None]),
                st.sampled_from(taste.ids),
            ),
            min_size=size,
            max_size=size,
        )
    )
    rows = []
    for step, late, x, y, z, g, h, i in drawn:
        clock += step
        ticks = None if y is None and z == "v" else max(0, clock - late)
        y = 0 if y is None else y
        rows.append(row(i=i, t=clockwork.value(ticks), x=x, y=y, z=z, g=g, h=h))
    return rows, clock


@st.composite
def scenes(draw: Draw, algorithm: str, taste: Taste) -> Scene:
    """Scenes: standing queries and the events that happen to them."""
    clockwork = CLOCKWORKS[draw(st.sampled_from(taste.clockworks))]
    timed = not taste.deletable and draw(st.sampled_from(taste.timed)) and algorithm not in APPROXIMATE
    per = draw(st.sampled_from(taste.per))
    queries = queries_of(draw, taste, algorithm, timed, per, clockwork)
    timed = any(query.window.sort == "time" for query in queries.values()) or (taste.ever and timed)
    options = {
        "id": "i" if taste.deletable else draw(st.sampled_from([None, "i"])),
        "time": "t" if timed or draw(st.booleans()) else None,
        "keep": draw(st.sampled_from([(), ("z",), ("z", "w", "u")])),
        "emit": draw(st.sampled_from(taste.emit)),
        "late": draw(st.sampled_from(taste.late)),
    }
    lateness = draw(st.sampled_from(taste.lateness))
    kinds = ["push"] * 6 + ["restore"] * 3 * taste.restores + ["advance"] * (options["time"] is not None)
    kinds += ["replace", "replace", "add", "drop"] * taste.edits + ["delete"] * 4 * taste.deletable
    standing, events, clock = dict(queries), list[Event](), 0
    for number in range(draw(st.integers(1, taste.events))):
        kind = draw(st.sampled_from(kinds)) if number else "push"
        if kind == "push":
            rows, clock = rows_of(draw, taste, draw(st.integers(0, taste.rows)), clock, lateness, clockwork)
            events.append(Push(rows))
        elif kind == "restore":
            events.append(Restore())
        elif kind == "advance":
            by = draw(st.integers(0, 5))
            clock += by
            events.append(Advance(by))
        elif kind == "delete":
            events.append(Delete(draw(st.lists(st.sampled_from(taste.ids), max_size=4))))
        elif kind == "replace":
            name = draw(st.sampled_from(sorted(standing)))
            old = standing[name]
            # a longer time window that still fits may find late rows that the shorter one had dropped
            dated = old.window.sort == "time"
            capped = lateness and dated
            most = _ticks(old.window, clockwork) if capped and isinstance(old.window, Last) else None
            window = draw(st.booleans()) and _window(draw, taste, dated, clockwork, most)
            standing[name] = _like(draw, taste, dataclasses.replace(old, window=window or old.window))
            events.append(Replace(name, standing[name]))
        elif kind == "add":
            like = standing[draw(st.sampled_from(sorted(standing)))]
            name = f"n{number}"
            standing[name] = _like(draw, taste, like)
            events.append(Add(name, standing[name]))
        elif len(standing) > 1:
            name = draw(st.sampled_from(sorted(standing)))
            del standing[name]
            events.append(Drop(name))
    return Scene(queries, events, options, clockwork, pa.array(taste.ids).type)


def _like(draw: Draw, taste: Taste, query: TopKQuery) -> TopKQuery:
    """The same query with another k or threshold."""
    if isinstance(query, Above):
        return dataclasses.replace(query, threshold=draw(st.sampled_from(taste.thresholds)))
    return dataclasses.replace(query, k=draw(st.integers(1, taste.k)))


def _ticks(window: Any, clockwork: Clockwork) -> int:
    if window.count is not None:
        return int(window.count)
    if clockwork.tick is None:
        return int(window.span)
    return int(timedelta(microseconds=window.nanoseconds // 1000) / clockwork.tick)
