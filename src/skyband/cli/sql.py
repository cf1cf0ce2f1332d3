"""`skyband sql`: one query over files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import QueryError
from skyband.monitor.monitor import Monitor
from skyband.query.kinds import Query, TopKGroups
from skyband.query.options import named
from skyband.query.sql.parser import columns_after_select, sql
from skyband.query.validation import RESERVED
from skyband.query.windows import Last, UntilDeleted
from skyband.tables.files import only_time, schema, tables
from skyband.tables.lines import Malformed

ASKED = "q0"  # the name of the question, beside those that it asks over


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
    queries, paths = named(sql(question)), [Path(file) for file in files]
    columns = schema(paths[0])
    for query in queries.values():
        _check(query, id, columns)
        if time is None and (query.window.sort == "time" or getattr(query, "decay", None) is not None):
            time = _time(query, columns)
    taken = {*RESERVED, *(name for query in queries.values() for name in query.per_columns), id, time}
    grouped = isinstance(queries[ASKED], TopKGroups)  # what comes with a group is said after SELECT
    if keep is None:
        wanted = columns_after_select(question) or [(name, name) for name in ([] if grouped else columns.names)]
        _say_hidden([name for name, column in wanted if column in columns.names and column not in (id, time)])
        over = [query for query in queries.values() if query.source is not None]  # they read what is kept
        read = {name for query in over for names in query.reads.values() for name in names} & {*columns.names}
        wanted += [(name, name) for name in sorted(read - {name for name, _ in wanted})]
        keep = {name: column for name, column in wanted if name not in taken}
    monitor = Monitor(queries, id=id, time=time, keep=keep, part=part, value=value)
    malformed = Malformed()
    for path in paths:
        for table in tables(path, malformed=malformed):
            pushed = monitor.push(table)
            if changes:
                mine = pushed.filter(pc.equal(pushed.column("query").cast(pa.string()), ASKED))
                types = {field.name: field.type for field in monitor.answer(ASKED).schema}
                yield mine if len(queries) == 1 else _in_types(mine, types)
    if not changes:
        yield monitor.answer(ASKED)
    if malformed.count:
        print(f"malformed: {malformed.count:,} of the lines ({malformed})", file=sys.stderr)
    stats = monitor.stats()
    for what in ("late", "rejected"):
        if stats[what]:
            print(f"{what}: {stats[what]}", file=sys.stderr)


def _check(query: Query, id: str | None, columns: Any) -> None:
    """What a question over files cannot be."""
    if query.each:
        raise QueryError(
            f":{query.each[0]} stands for what each subscription brings, and a question over files has none. Write a "
            "value in its place."
        )
    by_id = query.source is None and (query.needs_id is not None or isinstance(query.window, UntilDeleted))
    if by_id and id is None:
        raise QueryError(
            f"{query.kind} over {query.window!r} goes by ids: name their column, --id COLUMN. Columns: "
            f"{', '.join(columns.names)}."
        )


def _say_hidden(names: list[str]) -> None:
    """Columns of the file that give way to what an answer says under their names."""
    if hidden := [name for name in names if name in RESERVED]:
        role = next((f", or --{name} {name}" for name in hidden if name in ("id", "time")), "")
        print(
            f"not shown: {', '.join(hidden)} (of the file; answers have columns of these names. "
            f"Write SELECT {hidden[0]} AS my_{hidden[0]}{role})",
            file=sys.stderr,
        )


def _in_types(table: pa.Table, types: dict[str, Any]) -> pa.Table:
    """Changes of one query, whose ids and keys may have been put into one column with those of others."""
    columns = {
        name: pa.array(column.to_pylist(), types[name]) if pa.types.is_union(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)


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
