"""Every Arrow type as every column, in every kind of query, in the first batch and in a later one.

Each cell ends in one of two ways: a BatchError or QueryError that leaves the snapshot as it was, or the oracle's
changes and answers, also after a restore. A column that only labels (ids, groups, kept columns) goes to the oracle as
the text of its values, so that the oracle needs no types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from monitor.column_types import COLUMNS, MOMENTS, TEXTS
from skyband.errors import BatchError, QueryError
from skyband.oracle import Oracle
from skyband.query.kinds import Query

SIZES = (6, 4)  # rows of the pushes; the second begins in the middle of the typed column
LABELS = {"id": "i", "per": "g", "keep": "z", "group": "u", "input": "z"}
OTHERS = {"score": "x", "where": "w", "time": "t", "value": "value", "probability": "p", "part": "part", "op": "op"}
REPORTED = {"id": ("id", "id_a", "id_b"), "per": ("g",), "keep": ("z", "z_a", "z_b"), "input": ("z_a", "z_b")}
EVERY = ("topk", "above", "pairs", "incomplete", "uncertain")
ROLES = {
    **dict.fromkeys(("score", "where"), ("topk", "above", "pairs", "uncertain")),
    **dict.fromkeys(("id", "time", "per", "keep"), EVERY),
    **dict.fromkeys(("part", "value"), ("incomplete",)),
    "op": ("topk", "above"),
    **dict.fromkeys(("probability", "group"), ("uncertain",)),
    "input": ("pairs",),
}
PLACES = [(kind, role, first) for role, kinds in ROLES.items() for kind in kinds for first in (True, False)]
Row = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where a typed column is put."""

    kind: str
    role: str
    first: bool  # it is there from the first batch on
    integers: bool  # the other times are integers
    keyed: bool = False  # the score is no number: it is a key, reported with its type

    @property
    def column(self) -> str:
        return {**LABELS, **OTHERS}[self.role]

    def query(self) -> Query:
        window: Any = sb.Last(span=5) if self.integers else sb.Last("5 days")
        if self.role == "op":
            window = sb.UntilDeleted()
        options: dict[str, Any] = {"window": window, "per": "g"}
        if self.role == "where":
            options["where"] = "w is not null and x > 1"
        match self.kind:
            case "topk":
                return sb.TopK(2, "x", **options)
            case "above":
                return sb.Above(2.5, "x", **options)
            case "pairs":
                return sb.TopKPairs(2, gap if self.role == "input" else "abs(a.x - b.x)", **options)
            case "incomplete":
                return sb.TopKIncomplete(2, ["a", "b"], **options)
        return sb.TopKUncertain(2, "x", group="u" if self.role == "group" else None, **options)

    def monitor(self) -> sb.Monitor:
        return sb.Monitor(self.query(), id="i", time="t", keep="z", op="op" if self.role == "op" else None)

    def batches(self, typed: Any) -> Iterator[Any]:
        start = 0
        for number, size in enumerate(SIZES):
            columns = base(start, size, integers=self.integers)
            if number or self.first:
                columns[self.column] = typed.slice(number, size)
            yield pa.table(columns)
            start += size


def gap(one: Any, other: Any) -> Any:
    return abs(one["x"] - other["x"])


def base(start: int, size: int, *, integers: bool) -> dict[str, Any]:
    rows = range(start, start + size)
    return {
        "x": [float(7 * n % 5 + 1) for n in rows],
        "w": [float(n % 3) for n in rows],
        "t": list(rows) if integers else pa.array([MOMENTS[0].replace(day=1 + n) for n in rows], pa.timestamp("us")),
        "i": [TEXTS[n % 4] for n in rows],
        "g": [TEXTS[n % 2] for n in rows],
        "z": [TEXTS[n % 5] for n in rows],
        "u": [TEXTS[n % 5] for n in rows],
        "p": [0.25 * (1 + n % 3) for n in rows],
        "part": [TEXTS[n % 2] for n in rows],
        "value": [n % 5 / 4 for n in rows],
        "op": ["insert"] * size,
    }


class Labels:
    """Values of a column as v0, v1, ... by first appearance, so that equal streams look the same whatever the type."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def __call__(self, value: Any) -> str | None:
        return None if value is None else self.known.setdefault(repr(value), f"v{len(self.known)}")


def text(row: Row) -> str:
    return repr([(name, plain(value)) for name, value in sorted(row.items())])


def plain(value: Any) -> Any:
    """Times of pandas as Python's."""
    return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


def for_oracle(place: Place, rows: list[Row], labels: Labels) -> list[Row]:
    """The rows as the oracle reads them: labels for labels, and what is no instant is no time."""
    for row in rows:
        if place.role in LABELS:
            row[place.column] = labels(row[place.column])
        elif place.role == "time":
            row["t"] = None if isinstance(row["t"], str) else plain(row["t"])
    return rows


@cache
def specified(place: Place, pushes: tuple[str, ...]) -> tuple[Counter[str], Counter[str]]:
    """The oracle's changes of the last of these pushes, and its answer after it."""
    oracle = Oracle(place.query(), id="i", time="t", keep="z", keyed=["x"] if place.keyed else ())
    changes: list[Row] = []
    for rows in pushes:
        changes = oracle.push(RESTING[rows])
    return Counter(map(text, changes)), Counter(map(text, oracle.answer()))


RESTING: dict[str, list[Row]] = {}  # rows by their text, since they cannot be hashed


@cache
def empty(place: Place) -> bytes:
    """The snapshot of a Monitor that has seen nothing."""
    return place.monitor().snapshot()


def outcome(place: Place, typed: Any) -> str:
    """Push the batches; "refused" or "answered", or an AssertionError."""
    monitor, labels, pushes = place.monitor(), Labels(), []  # type: tuple[sb.Monitor, Labels, list[str]]
    for number, batch in enumerate(place.batches(typed)):
        before = monitor.snapshot() if number else empty(place)
        try:
            got = monitor.push(batch).to_pylist()
        except (BatchError, QueryError):
            return "refused" if monitor.snapshot() == before else "refused, but not without a trace"
        if place.role == "op":  # the oracle has none: rows that name no operation do nothing
            assert not got or (not place.first and not pushes), "an unknown operation"
            pushes.append("")
            continue
        rows = for_oracle(place, batch.to_pylist(), labels)
        pushes.append(repr(rows))
        RESTING[pushes[-1]] = rows
        changes, answer = specified(place, tuple(pushes))
        assert seen(place, got, labels) == changes, "changes"
        assert seen(place, monitor.answer().to_pylist(), labels) == answer, "answer"
    if place.role == "per":
        whole = monitor.answer().to_pylist()
        for value in {repr(row["g"]): row["g"] for row in whole}.values():
            mine = [row for row in whole if repr(row["g"]) == repr(value)]
            assert repr(monitor.answer(key=(value,)).to_pylist()) == repr(mine), "answer of a group"
    stored = monitor.snapshot()
    restored = sb.Monitor.restore(stored, callables={"gap": gap})
    assert repr(restored.answer().to_pylist()) == repr(monitor.answer().to_pylist()), "restored"
    assert restored.snapshot() == stored, "restored"
    return "answered"


def seen(place: Place, rows: list[Row], labels: Labels) -> Counter[str]:
    """Rows of changes or answers, with labels as the oracle has them."""
    for row in rows:
        for name in REPORTED.get(place.role, ()):
            if name in row:
                row[name] = labels(row[name])
    return Counter(map(text, rows))


def is_key(place: tuple[str, str, bool], typed: Any) -> bool:
    """Whether a TopK ranks by the column as a key: its values are no numbers."""
    values = [value for value in typed.to_pylist() if value is not None]
    numbers = all(isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in values)
    return place == ("topk", "score", True) and not numbers


def is_moment(name: str, type_: Any) -> bool:
    return pa.types.is_timestamp(type_) or pa.types.is_date(type_) or name == "dictionary of times"


@pytest.mark.parametrize(("kind", "role", "first"), PLACES)
def test_every_type_of_column_is_answered_or_refused(kind: str, role: str, first: bool) -> None:
    outcomes: Counter[str] = Counter()
    wrong = []
    for name, typed in COLUMNS.items():
        integers = role != "time" or not is_moment(name, typed.type)
        place = Place(kind, role, first, integers, keyed=is_key((kind, role, first), typed))
        try:
            outcomes[outcome(place, typed)] += 1
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    assert not wrong, "\n".join(wrong)
    assert outcomes.total() == outcomes["answered"] + outcomes["refused"] == len(COLUMNS), outcomes
    assert outcomes["answered"] >= (50 if (kind, role, first) == ("topk", "score", True) else 1)


def test_how_many_places_are_tried() -> None:
    assert len(COLUMNS) >= 66 and len(ROLES) >= 10 and len(EVERY) == 5
    assert len(PLACES) * len(COLUMNS) == 70 * 73 == 5110


def damaged() -> dict[str, Any]:
    """Columns whose bytes are not what their type says, as no Arrow library makes them and any C interface may."""
    ends = pa.py_buffer(np.array([0, 1, 2, 3, 4, 5, 6], np.int32))
    backwards = pa.py_buffer(np.array([0, 5, 2, 3, 4, 5, 6], np.int32))
    words, bytes_ = pa.array(["a", "b"]), pa.py_buffer(b"ab\xffdef")
    codes = pa.array([0, 1, 0, 1, 0, 7])
    return {
        "UTF-8": pa.Array.from_buffers(pa.string(), 6, [None, ends, bytes_]),
        "UTF-8 in a dictionary": pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 0, 1, 2]), pa.Array.from_buffers(pa.string(), 3, [None, ends, bytes_])
        ),
        "UTF-8 in a list": pa.ListArray.from_arrays(
            pa.array([0, 1, 2, 3, 4, 5, 6], pa.int32()), pa.Array.from_buffers(pa.string(), 6, [None, ends, bytes_])
        ),
        "codes beyond the dictionary": pa.DictionaryArray.from_arrays(codes, words, safe=False),
        "offsets that fall": pa.Array.from_buffers(pa.string(), 6, [None, backwards, bytes_]),
        "a decimal of too many digits": pa.Array.from_buffers(pa.decimal128(3), 6, [None, pa.py_buffer(b"\x7f" * 96)]),
    }


@pytest.mark.parametrize(("kind", "role", "first"), PLACES)
def test_damaged_columns_are_refused(kind: str, role: str, first: bool) -> None:
    for name, typed in damaged().items():
        place = Place(kind, role, first, integers=True)
        monitor = place.monitor()
        batches = iter(
            pa.table({**base(6 * number, 6, integers=True), **({place.column: typed} if number or first else {})})
            for number in range(2)
        )
        if not first:
            monitor.push(next(batches))
        before = monitor.snapshot()
        with pytest.raises(BatchError, match="damaged"):
            monitor.push(next(batches))
        assert monitor.snapshot() == before, name
        monitor.push(base(12, 6, integers=True))
        monitor.answer()
