"""`skyband sql`: one query over files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from skyband.errors import QueryError
from skyband.monitor.monitor import Monitor
from skyband.query.kinds import Query, TopKGroups
from skyband.query.sql.parser import columns_after_select, sql
from skyband.query.validation import RESERVED
from skyband.query.windows import Last
from skyband.tables.files import only_time, schema, tables
from skyband.tables.lines import Malformed


def ask(
    question: str,
    files: Iterable[Path],
    *,
    id: str | None = None,
    time: str | None = None,
    keep: Sequence[str] | Mapping[str, str] | None = None,
    part: str = "part",
    value: str = "value",
    changes: bool = False,
) -> Iterator[pa.Table]:
    """The answer after the last row of the files, or all changes as several tables."""
    query, paths = sql(question), [Path(file) for file in files]
    columns = schema(paths[0])
    if time is None and (query.window.sort == "time" or getattr(query, "decay", None) is not None):
        time = _time(query, columns)
    taken = {*RESERVED, *query.per_columns, id, time}
    grouped = isinstance(query, TopKGroups)  # what comes with a group is said after SELECT
    if keep is None:
        wanted = columns_after_select(question) or [(name, name) for name in ([] if grouped else columns.names)]
        keep = {name: column for name, column in wanted if name not in taken}
    monitor = Monitor(query, id=id, time=time, keep=keep, part=part, value=value)
    malformed = Malformed()
    for path in paths:
        for table in tables(path, malformed=malformed):
            pushed = monitor.push(table)
            if changes:
                yield pushed
    if not changes:
        yield monitor.answer()
    if malformed.count:
        print(f"malformed: {malformed.count:,} of the lines ({malformed})", file=sys.stderr)
    stats = monitor.stats()
    for what in ("late", "rejected"):
        if stats[what]:
            print(f"{what}: {stats[what]}", file=sys.stderr)


def _time(query: Query, columns: Any) -> str:
    """The time column, if it is not named."""
    if isinstance(query.window, Last) and query.window.span is not None:
        raise QueryError(f"{query.window!r} is over an integer time column: name it, --time COLUMN.")
    found = only_time(columns)
    if found is None:
        raise QueryError(
            f"{query.window!r} goes by time, and the file has no, or more than one, column of times: name it, "
            f"--time COLUMN. Columns: {', '.join(columns.names)}."
        )
    print(f"time: {found}", file=sys.stderr)
    return found


def show(answers: Iterable[Any], *, as_json: bool = False) -> None:
    """Print tables at a terminal, CSV in a pipe; or lines of JSON."""
    for number, answer in enumerate(answers):
        if as_json:
            import json

            for row in answer.to_pylist():
                print(json.dumps(row, default=str, ensure_ascii=False))
            continue
        table = answer.flatten()  # of a struct each field is a column
        if not sys.stdout.isatty():
            from pyarrow import csv

            out = pa.BufferOutputStream()
            csv.write_csv(_plain(table), out, csv.WriteOptions(include_header=number == 0))
            sys.stdout.write(out.getvalue().to_pybytes().decode())
        else:
            _print(table)


def _plain(table: pa.Table) -> pa.Table:
    """The table without dictionaries, which CSV cannot hold."""
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def _print(table: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    numbers = [pa.types.is_integer(field.type) or pa.types.is_floating(field.type) for field in table.schema]
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name, right in zip(table.column_names, numbers, strict=True):
        shown.add_column(name, justify="right" if right else "left")
    for row in table.to_pylist():
        shown.add_row(*("" if v is None else f"{v:g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(markup=False).print(shown)
