"""Rows and changes compared, with differences that can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from engines.scene import Row


def cells(table: Any) -> list[Row]:
    """A table as rows of plain Python values (nanoseconds as microseconds: no scene is finer)."""
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            coarse = table.column(place).cast(pa.timestamp("us", column.type.tz))
            table = table.set_column(place, column.name, coarse)
    rows: list[Row] = table.to_pylist()
    return rows


def plain(value: Any) -> str:
    """A value as text that is equal for equal values only."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=UTC)
    return repr(value)


def line(row: Mapping[str, Any]) -> str:
    return "  ".join(f"{name}={plain(value)}" for name, value in row.items())


def same_rows(got: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]], where: str) -> None:
    """Equal as multisets of rows, columns in the same order; else say which rows are missing and which too many."""
    found, wanted = Counter(map(line, got)), Counter(map(line, expected))
    if found != wanted:
        missing = [f"  missing   {text}" for text in (wanted - found).elements()]
        surplus = [f"  surplus   {text}" for text in (found - wanted).elements()]
        raise AssertionError("\n".join([f"{where}:", *missing, *surplus]))


def same_changes(got: Sequence[Row], expected: Sequence[Row], where: str, *, net_changes: bool = False) -> None:
    """Equal as multisets, and in the order of the contract as far as it fixes one.

    net_changes: they are those of emit="batch", whose order within a group is only leaving before entering.
    """
    same_rows(got, expected, where)
    if net_changes:
        assert [change["query"] for change in got] == [change["query"] for change in expected], where
        for group, steps in by_group(got).items():
            assert [diff for _, _, diff in steps] == sorted(diff for _, _, diff in steps), f"{where}: {group}"
        return
    order = [(change["query"], plain(change.get("time"))) for change in got]
    assert order == [(change["query"], plain(change.get("time"))) for change in expected], f"{where}: order of steps"
    assert by_group(got) == by_group(expected), f"{where}: order of steps within a group"


def by_group(changes: Iterable[Row]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    """The steps of each query and group, in order."""
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for change in changes:
        group = (change["query"], change.get("g"), change.get("h"))
        groups.setdefault(group, []).append((change["at"], plain(change.get("time")), change["diff"]))
    return groups


def net(changes: Iterable[Row]) -> Counter[str]:
    """The net changes: by query, group and object, how often it has entered less how often it has left."""
    total: Counter[str] = Counter()
    for change in changes:
        total[line({name: change.get(name) for name in ("query", "g", "h", "id", "score", "z")})] += change["diff"]
    return Counter({text: diff for text, diff in total.items() if diff})


def joined(tables: Iterable[Any]) -> Any:
    return pa.concat_tables(tables, promote_options="permissive")
