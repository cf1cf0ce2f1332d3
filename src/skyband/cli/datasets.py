"""`skyband datasets`: the example streams, listed or written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skyband.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa


def _complete(incomplete: str) -> list[tuple[str, str]]:
    from skyband.datasets import describe

    return [(entry.name, entry.about) for entry in describe() if entry.name.startswith(incomplete)]


def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", autocompletion=_complete, help="Left out: list them all.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=0, metavar="N", help="How many rows (generators: 1000).")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="For generators: the same seed, the same rows.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="A file ending in .parquet or .csv.")] = None,
) -> None:
    """List the example streams, or write one.

    To a file (--out), or as CSV to a pipe; at a terminal its columns are shown.

    Example: skyband datasets flights_like --rows 100000 --out flights.parquet
    """
    if name is not None:
        table = _dataset(name, rows, seed)
        _write(table, out) if out is not None or not sys.stdout.isatty() else _preview(name, table)
    elif rows is not None or seed is not None or out is not None:
        raise QueryError("name the dataset to write, such as: skyband datasets uniform --rows 1000")
    else:
        _list()


def _list() -> None:
    from skyband.datasets import describe

    lines = [
        (
            entry.name,
            "any" if entry.rows is None else entry.rows,
            "yes" if entry.available else "no",
            entry.about,
        )
        for entry in describe()
    ]
    if not sys.stdout.isatty():
        for line in [("name", "rows", "here", "what for"), *lines]:
            typer.echo("\t".join(map(str, line)))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "rows", "here", "what for", box=None, pad_edge=False, header_style="bold")
    table.columns[0].no_wrap = True
    table.columns[1].justify = "right"
    for name, rows, here, about in lines:
        shown = f"{rows:,}" if isinstance(rows, int) else rows
        table.add_row(name, shown, here, about, style=None if here == "yes" else "dim")
    Console(markup=False).print(table)
    if any(here == "no" for _, _, here, _ in lines):
        typer.echo("Not here: set SKYBAND_DATA to the folder that holds the data.", err=True)


def _dataset(name: str, rows: int | None, seed: int | None) -> pa.Table:
    from difflib import get_close_matches

    from skyband import datasets as available

    kinds = {entry.name: entry.kind for entry in available.describe()}
    if name not in kinds:
        near = get_close_matches(name, kinds)
        instead = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(kinds)}."
        raise QueryError(f"{name!r} is not a dataset. {instead}")
    if name == "shuffled":
        raise QueryError("shuffled reorders a table of yours: use it in Python, skyband.datasets.shuffled(table).")
    make = getattr(available, name)
    if kinds[name] == "generator":
        return make(1000 if rows is None else rows, seed=seed or 0)
    if seed is not None:
        raise QueryError(f"{name} is a real stream: --seed means nothing. Leave it out, or use a generator.")
    table = make()
    return table if rows is None else table.slice(0, rows)


def _write(table: pa.Table, out: Path | None) -> None:
    """Write to a file by its ending, or to stdout as CSV."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    if out is None:
        for start in range(0, max(table.num_rows, 1), 65_536):
            chunk = pa.BufferOutputStream()  # stdout itself would be closed by pyarrow
            csv.write_csv(table.slice(start, 65_536), chunk, csv.WriteOptions(include_header=start == 0))
            typer.echo(chunk.getvalue().to_pybytes(), nl=False)
        return
    writers = {".parquet": parquet.write_table, ".csv": csv.write_csv}
    if out.suffix not in writers:
        raise QueryError(f"--out {out}: the ending says the format. Use a name that ends in .parquet or .csv.")
    if not out.parent.is_dir():
        raise QueryError(f"--out {out}: there is no folder {out.parent}. Make it first.")
    writers[out.suffix](table, out)
    typer.echo(f"{table.num_rows:,} rows written to {out}", err=True)


def _preview(name: str, table: pa.Table) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table("column", "type", "first values", box=None, pad_edge=False, header_style="bold")
    first = table.slice(0, 5)
    for field in table.schema:
        values = (f"{v:.4g}" if isinstance(v, float) else v for v in first[field.name].to_pylist())
        shown.add_row(field.name, str(field.type), ", ".join("null" if v is None else str(v) for v in values))
    Console(markup=False).print(shown)
    typer.echo(f"{table.num_rows:,} rows. To write them: skyband datasets {name} --out {name}.parquet", err=True)
