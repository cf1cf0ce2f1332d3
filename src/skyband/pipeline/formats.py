"""Formats of sources and sinks: one registry row holds all that the file's checks and the run know about a format.

A row is read without Spark; `runs` names the class in `skyband.spark.run` that does the work, imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from skyband.pipeline.table import Table

BROKERS = "kafka.bootstrap.servers"
Reader = Callable[[Table, str], Any]  # reads and checks one key of a table


@dataclass(frozen=True, kw_only=True)
class Format:
    """What sources and sinks have in common.

    runs: "module:class" of the class that reads or writes. keys: the other keys of the [source] or [sink] table, each
    with the function that reads and checks it.
    """

    runs: str
    keys: Mapping[str, Reader] = field(default_factory=dict)

    def load(self) -> Any:
        """Import the class that does the work."""
        module, _, name = self.runs.partition(":")
        return getattr(import_module(module), name)


def read_format(table: Table, rows: Mapping[str, Format]) -> tuple[str | None, dict[str, Any]]:
    """The name of a table's format (None: missing or unknown), and the values of its keys."""
    name = table.one_of("format", rows, needed=f"Use one of {', '.join(rows)}.")
    if name is None:
        return None, {}  # the other keys depend on the format
    row = rows[name]
    values = {key: read(table, key) for key, read in row.keys.items()}
    others = dict.fromkeys(key for other in rows.values() for key in other.keys if key not in row.keys)
    table.end({key: f"is for {_formats(rows, key)}. The format is {name!r}." for key in others})
    return name, values


def _formats(rows: Mapping[str, Format], key: str) -> str:
    """The formats that have this key, as `a, b and c`."""
    *most, last = [name for name, row in rows.items() if key in row.keys]
    return f"{', '.join(most)} and {last}" if most else last


def text(default: str | None = None, *, needed: str = "") -> Reader:
    """A key that is a text."""
    return lambda table, key: table.text(key, default, needed=needed)


def whole(least: int) -> Reader:
    """A key that is a whole number."""
    return lambda table, key: table.whole(key, least)


def options(*, needed: Mapping[str, str] | None = None, instead: Mapping[str, str] | None = None) -> Reader:
    """A key that is a table of Spark's own options.

    needed: options that must be there, with an example each. instead: options that have a key of their own.
    """

    def read(table: Table, key: str) -> dict[str, str]:
        found = table.settings(key)
        for name, example in (needed or {}).items():
            if name not in found:
                table.mistake(key, f"{name!r} is missing, such as {example}.")
        for name, other in (instead or {}).items():
            if name in found:
                table.mistake(f"{key}.{name}", f"say {other} instead.")
        return found

    return read
