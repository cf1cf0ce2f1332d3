"""Files as streams of tables: parquet, csv and lines of JSON, row after row, a bounded piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from skyband.errors import BatchError, QueryError

ENDINGS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
ROWS = 65_536
Open = Callable[[Path], BinaryIO]  # opens a path that was checked


def format_of(path: Path) -> str:
    """What a file is, by its ending (`.csv.gz` too)."""
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if ending.lower() not in ENDINGS:
        raise QueryError(f"{path}: the ending says the format. Use one of {', '.join(ENDINGS)}.")
    return ENDINGS[ending.lower()]


def tables(path: Path, rows: int = ROWS, open: Open | None = None) -> Generator[Any, None, None]:
    """The rows of a file as tables of at most so many. Types of csv and JSON are those of the first megabyte."""
    format_ = format_of(path)
    try:
        if format_ == "parquet":
            from pyarrow import parquet

            with _opened(path, open) as source, parquet.ParquetFile(source) as file:
                for batch in file.iter_batches(rows):
                    yield pa.Table.from_batches([batch])
            return
        for table in _csv(path, open) if format_ == "csv" else _json(path, open):
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)
    except FileNotFoundError:
        raise QueryError(f"{path}: there is no such file.") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise BatchError(f"{path} cannot be read as {format_}: {error}") from None


@contextmanager
def _opened(path: Path, open: Open | None) -> Iterator[Any]:
    """What Arrow reads: the path, or the file as `open` returns it, uncompressed by its ending."""
    if open is None:
        yield path
        return
    with open(path) as file:
        yield pa.input_stream(file, compression="gzip") if path.suffix == ".gz" else file


def _csv(path: Path, open: Open | None) -> Iterator[Any]:
    from pyarrow import csv

    delimiter = "\t" if ".tsv" in path.suffixes else ","
    with (
        _opened(path, open) as source,
        csv.open_csv(source, parse_options=csv.ParseOptions(delimiter=delimiter)) as reader,
    ):
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _json(path: Path, open: Open | None) -> Iterator[Any]:
    from pyarrow import json

    with _opened(path, open) as source, pa.input_stream(source, compression="detect") as file:
        begin = file.read(65_536).lstrip()
    if not begin.startswith(b"{"):  # of a lone null Arrow's reader would end the process
        raise BatchError(f"{path} does not begin with a JSON object. Write one on each line.")
    with _opened(path, open) as source, json.open_json(source) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def schema(path: Path, open: Open | None = None) -> Any:
    """The columns of a file; of csv and JSON as its first rows tell."""
    if format_of(path) == "parquet" and path.is_file():
        from pyarrow import parquet

        try:
            with _opened(path, open) as source:
                return parquet.read_schema(source)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise BatchError(f"{path} cannot be read as parquet: {error}") from None
    first = next(tables(path, open=open), None)
    return pa.schema([]) if first is None else first.schema


def only_time(columns: Any) -> str | None:
    """The one column that holds times; None: there is none, or several."""
    times = [field.name for field in columns if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)]
    return times[0] if len(times) == 1 else None
