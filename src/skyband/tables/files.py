"""Files as streams of tables: parquet, csv and lines of JSON, row after row, a bounded piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from skyband.errors import BatchError, QueryError
from skyband.tables.csv_lines import CsvLines
from skyband.tables.json_lines import JsonLines
from skyband.tables.lines import LineParser, Malformed, blocks, plain_lines

ENDINGS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
ROWS = 65_536
MALFORMED = "malformed line"  # the reason by which such lines are counted
Open = Callable[[Path], BinaryIO]  # opens a path that was checked


def format_of(path: Path) -> str:
    """What a file is, by its ending (`.csv.gz` too)."""
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if ending.lower() not in ENDINGS:
        raise QueryError(f"{path}: the ending says the format. Use one of {', '.join(ENDINGS)}.")
    return ENDINGS[ending.lower()]


def tables(
    path: Path, rows: int = ROWS, malformed: Malformed | None = None, open: Open | None = None
) -> Generator[Any, None, None]:
    """The rows of a file as tables of at most so many. Types of csv and JSON are those of the first megabyte.

    malformed: where lines are counted that are no rows; open: how the file is opened, if not by its path.
    """
    format_ = format_of(path)
    try:
        if format_ == "parquet":
            from pyarrow import parquet

            with _opened(path, open) as source, parquet.ParquetFile(source) as file:
                for batch in file.iter_batches(rows):
                    yield pa.Table.from_batches([batch])
            return
        for table in _of_lines(path, format_, Malformed() if malformed is None else malformed, open):
            for start in range(0, max(table.num_rows, 1), rows):
                yield table.slice(start, rows)
    except FileNotFoundError:
        raise QueryError(f"{path}: there is no such file.") from None
    except (pa.ArrowException, OSError) as error:
        raise BatchError(f"{path} cannot be read as {format_}: {error}") from None


@contextmanager
def _opened(path: Path, open: Open | None) -> Iterator[Any]:
    """What Arrow reads: the path, or the file as `open` returns it."""
    if open is None:
        yield str(path)
        return
    with open(path) as file:
        yield file


def _of_lines(path: Path, format_: str, malformed: Malformed, open: Open | None) -> Iterator[Any]:
    parser: LineParser | None = JsonLines(malformed) if format_ == "json" else None
    before, read = malformed.count, 0
    compression = "gzip" if path.suffix == ".gz" else None
    with _opened(path, open) as source, pa.input_stream(source, compression=compression) as file:
        for block, numbers in blocks(file.read, malformed):
            block = plain_lines(block, numbers)
            if parser is None:
                header, _, block = block.partition(b"\n")
                parser = CsvLines(malformed, header, delimiter="\t" if ".tsv" in path.suffixes else ",")
                numbers = numbers[1:]
            table = parser.table(block, numbers) if block else None
            if table is not None:
                read += table.num_rows
                yield table
    if isinstance(parser, CsvLines) and not read and malformed.count == before:
        yield pa.table([pa.nulls(0) for _ in parser.names], parser.names)
    if not read and malformed.count > before:
        begins = "does not begin with a JSON object" if format_ == "json" else "has no row of CSV"
        raise BatchError(f"{path} {begins}, and no line of it can be read ({malformed}). Write one row on each line.")


def schema(path: Path, open: Open | None = None) -> Any:
    """The columns of a file; of csv and JSON as its first rows tell."""
    if format_of(path) == "parquet" and path.is_file():
        from pyarrow import parquet

        try:
            with _opened(path, open) as source:
                return parquet.read_schema(source)
        except (pa.ArrowException, OSError) as error:
            raise BatchError(f"{path} cannot be read as parquet: {error}") from None
    first = next(tables(path, open=open), None)
    return pa.schema([]) if first is None else first.schema


def only_time(columns: Any) -> str | None:
    """The one column that holds times; None: there is none, or several."""
    times = [field.name for field in columns if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)]
    return times[0] if len(times) == 1 else None
