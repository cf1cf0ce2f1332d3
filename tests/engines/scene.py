"""Scenes: queries of a Monitor and the events that happen to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from skyband import Above, Last, TopK

Row: TypeAlias = dict[str, Any]
TopKQuery: TypeAlias = TopK | Above


@dataclass(frozen=True)
class Push:
    rows: list[Row]


@dataclass(frozen=True)
class Advance:
    by: int  # ticks from the last time seen


@dataclass(frozen=True)
class Restore:
    pass


@dataclass(frozen=True)
class Delete:
    ids: list[Any]


@dataclass(frozen=True)
class Add:
    name: str
    query: TopKQuery
    donor: str | None = None  # the query whose kept window it starts from


@dataclass(frozen=True)
class Replace:
    name: str
    query: TopKQuery


@dataclass(frozen=True)
class Drop:
    name: str


Event: TypeAlias = Push | Advance | Delete | Restore | Add | Replace | Drop


@dataclass(frozen=True)
class Clockwork:
    """A type of time column and the length of one tick in it."""

    type: Any
    tick: timedelta | None = None  # None: integers

    def value(self, ticks: int | None) -> Any:
        if ticks is None or self.tick is None:
            return ticks
        if pa.types.is_date(self.type):
            return date(2024, 2, 27) + ticks * self.tick
        return datetime(2024, 3, 31, 0, 59, 58, tzinfo=UTC if self.type.tz else None) + ticks * self.tick

    def window(self, ticks: int) -> Last:
        return Last(span=ticks) if self.tick is None else Last(ticks * self.tick)


_SECOND, _MILLI, _MICRO, _DAY = (
    timedelta(seconds=1),
    timedelta(milliseconds=1),
    timedelta(microseconds=1),
    timedelta(days=1),
)
INTEGERS = Clockwork(pa.int64())
CLOCKWORKS = {
    "int64": INTEGERS,
    "int16": Clockwork(pa.int16()),
    "uint64": Clockwork(pa.uint64()),
    "s": Clockwork(pa.timestamp("s"), _SECOND),
    "ms": Clockwork(pa.timestamp("ms"), _MILLI),
    "us": Clockwork(pa.timestamp("us"), _MICRO),
    "ns": Clockwork(pa.timestamp("ns"), _MICRO),
    "s, UTC": Clockwork(pa.timestamp("s", "UTC"), _SECOND),
    "ns, Paris": Clockwork(pa.timestamp("ns", "Europe/Paris"), _SECOND),
    "us, hours": Clockwork(pa.timestamp("us", "Europe/Paris"), timedelta(hours=1)),  # summer time begins
    "date32": Clockwork(pa.date32(), _DAY),
    "date64": Clockwork(pa.date64(), _DAY),
}

_TYPES = {
    "i": pa.string(),
    "x": pa.float64(),
    "y": pa.int64(),
    "z": pa.string(),
    "w": pa.list_(pa.int64()),
    "u": pa.timestamp("ns"),
    "e": pa.list_(pa.float64()),
    "g": pa.int64(),
    "h": pa.string(),
}


@dataclass(frozen=True)
class Scene:
    """Queries, the events that happen to their Monitor, and its options."""

    queries: Mapping[str, Any]
    events: Sequence[Any]
    options: dict[str, Any] = field(default_factory=dict)
    clockwork: Clockwork = INTEGERS
    ids: Any = _TYPES["i"]
    keyed: tuple[str, ...] = ("z", "u", "h")  # columns that hold no numbers

    @property
    def net_changes(self) -> bool:
        return self.options.get("emit") == "batch"

    def table(self, rows: Sequence[Row]) -> Any:
        """Rows as a table, in one type whatever they hold."""
        types = {**_TYPES, "t": self.clockwork.type, "i": self.ids}
        return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()})


def row(**values: Any) -> Row:
    """A row of a scene: columns that are not given are null, `w`, `u` and `e` follow from `x`, `y` and `z`."""
    made: Row = {"i": None, "t": None, "x": None, "y": 0, "z": None, "g": None, "h": None, **values}
    made["w"] = None if made["z"] is None else [made["y"], 7]
    made["u"] = None if made["z"] is None else datetime(2020, 1, 1) + timedelta(seconds=made["y"])
    made["e"] = [made["x"], float(made["y"])] if made["z"] != "v" else [1.0] if made["y"] > 0 else None
    return made
