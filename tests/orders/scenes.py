"""Scenes of orders: rows with keys of many types, and queries that rank by them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from engines.scene import CLOCKWORKS, Advance, Delete, Push, Replace, Restore, Row, Scene
from engines.strategies import Draw
from skyband import Above, Last, Nearest, Session, TopK, UntilDeleted

BIG = 2**53
VALUES: dict[str, tuple[Any, list[Any]]] = {  # by column: its type, and few values, so that there are ties
    "x": (pa.float64(), [0.0, -0.0, 1.0, 1.5, float("inf"), float("nan"), None]),
    "n": (pa.int64(), [BIG, BIG + 1, -BIG - 1, 0, 1, None]),
    "u": (pa.uint64(), [2**64 - 1, 0, 2**63, None]),
    "s": (pa.string(), ["", "a", "ab", "b", "é", "z", "𝄞", "\uffff", None]),
    "d": (pa.date32(), [date(2024, 1, 1), date(2023, 12, 31), None]),
    "b": (pa.bool_(), [True, False, None]),
    "w": (pa.timestamp("us", "UTC"), [datetime(2024, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC), None]),
    "m": (
        pa.decimal128(30, 2),
        [Decimal("1.10"), Decimal("-3.00"), Decimal(f"{2**60}.01"), Decimal(f"{2**60}.02"), None],
    ),
}
KEYS: list[Any] = [*VALUES, "x * 2", Nearest({"x": 1}), "x"]


@dataclass(frozen=True)
class OrderScene(Scene):
    """A scene whose rows have keys of many types."""

    def table(self, rows: Sequence[Row]) -> Any:
        types = {name: type_ for name, (type_, _) in VALUES.items()}
        types |= {"t": self.clockwork.type, "i": pa.string(), "y": pa.int64(), "g": pa.int64(), "l": pa.int64()}
        return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()})


def directions(draw: Draw, keys: int) -> Any:
    if draw(st.booleans()):
        return draw(st.sampled_from([None, True, False]))
    return tuple(draw(st.booleans()) for _ in range(keys))


def order_of(draw: Draw, ranks: bool) -> dict[str, Any]:
    """The arguments of a query that rank."""
    by = tuple(draw(st.lists(st.sampled_from(KEYS), max_size=3)))
    more: dict[str, Any] = {
        "largest": directions(draw, len(by)),
        "nulls": draw(st.sampled_from(["reject", "first", "last"])),
        "ties": draw(st.sampled_from(["newest", "oldest"])),
    }
    if ranks:
        kind = draw(st.sampled_from(["offset", "ties", "plain"]))
        more |= {"offset": draw(st.integers(0, 3))} if kind == "offset" else {"with_ties": kind == "ties"}
        more["distinct"] = draw(st.sampled_from([None, "best", "last"]))
    if draw(st.integers(0, 2)) == 0:  # one key alone
        one = draw(st.sampled_from(["x", "s", "d", "b", "w", "n"]))
        by, more["largest"] = one, draw(st.sampled_from([None, True, False]))
    return {"by": by, **more}


@st.composite
def scenes(draw: Draw, *, ranks: bool, window: str) -> OrderScene:
    """Scenes of one query; window: "count", "time", "session" or "until deleted"."""
    clockwork = CLOCKWORKS[draw(st.sampled_from(["int64", "us", "date32"]))]

    def some_window() -> Any:
        size = draw(st.integers(1, 8))
        if window == "count":
            return Last(size)
        if window == "until deleted":
            return UntilDeleted()
        if window == "time":
            return clockwork.window(size)
        size = 1 + size // 3
        return Session(span=size) if clockwork.tick is None else Session(size * clockwork.tick)

    k: dict[str, Any] = {"k": draw(st.integers(1, 4))}
    if ranks and draw(st.integers(0, 3)) == 0:
        k = {"k": "l", "k_max": draw(st.integers(1, 3))}
    where, per = draw(st.sampled_from([None, None, "y > 0"])), draw(st.sampled_from([None, "g", {"h": "g"}]))
    query: Any = TopK(**k, **order_of(draw, ranks), window=some_window(), where=where, per=per)
    if window == "session" and draw(st.integers(0, 4)) == 0:
        query = Above(0.5, by="x", window=query.window, where=where, per=per)
    options = {
        "id": "i",
        "time": "t" if query.window.timed or draw(st.booleans()) else None,
        "keep": draw(st.sampled_from([(), ("s", "m"), {"text": "s", "score_of": "x"}])),
        "emit": draw(st.sampled_from(["arrival", "arrival", "batch"])),
        "late": draw(st.sampled_from(["accept", "accept", "drop"])),
    }
    lateness, clock, events, original = draw(st.sampled_from([0, 0, 3, 8])), 0, list[Any](), query
    kinds = ["push"] * 5 + ["restore"] * 2 + ["advance"] * (options["time"] is not None) + ["replace"]
    kinds += ["delete"] * 3 * (window == "until deleted")
    for number in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(kinds)) if number else "push"
        if kind == "push":
            rows, clock = rows_of(draw, draw(st.integers(0, 12)), clock, lateness, clockwork)
            events.append(Push(rows))
        elif kind == "restore":
            events.append(Restore())
        elif kind == "advance":
            by = draw(st.integers(0, 5))
            clock += by
            events.append(Advance(by))
        elif kind == "delete":
            events.append(Delete(draw(st.lists(st.sampled_from(["p", "q", "r", "none"]), max_size=4))))
        elif isinstance(query, TopK) and isinstance(query.k, int) and not lateness:
            query = dataclasses.replace(query, k=draw(st.integers(1, 4)), window=_shorter(draw, query.window))
            events.append(Replace("q0", query))
    return OrderScene(
        {"q0": original},
        events,
        options,
        clockwork,
        keyed=("s", "d", "b", "w"),
    )


def _shorter(draw: Draw, window: Any) -> Any:
    """The window, or a shorter one of its kind."""
    if isinstance(window, Last) and window.count:
        return Last(draw(st.integers(1, window.count)))
    if isinstance(window, Last) and window.span:
        return Last(span=draw(st.integers(1, window.span)))
    return window


def rows_of(draw: Draw, size: int, clock: int, lateness: int, clockwork: Any) -> tuple[list[Row], int]:
    rows = []
    for _ in range(size):
        clock += draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
        ticks = max(0, clock - draw(st.integers(0, lateness)))
        row = {name: draw(st.sampled_from(values)) for name, (_, values) in VALUES.items()}
        row |= {"t": clockwork.value(ticks), "i": draw(st.sampled_from(["p", "q", "r"])), "y": draw(st.integers(0, 1))}
        rows.append(
            row | {"g": draw(st.sampled_from([1, None])), "l": draw(st.sampled_from([0, 1, 2, 3, 4, -1, None]))}
        )
    return rows, clock
