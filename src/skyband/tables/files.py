"""Files as streams of tables: parquet, csv and lines of JSON, row after row, a bounded piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from skyband.errors import BatchError, QueryError

ENDINGS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
ROWS = 65_536


def format_of(path: Path) -> str:
    """What a file is, by its ending (`.csv.gz` too)."""
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if ending.lower() not in ENDINGS:
        raise QueryError(f"{path}: the ending says the format. Use one of {', '.join(ENDINGS)}.")
    return ENDINGS[ending.lower()]


def tables(path: Path, rows: int = ROWS) -> Iterator[Any]:
    """The rows of a file as tables of at most so many. Types of csv and JSON are those of the first megabyte."""
    format_ = format_of(path)
    try:
        if format_ == "parquet":
            from pyarrow import parquet

            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(rows):
                    yield pa.Table.from_batches([batch])
            return
        for table in _csv(path) if format_ == "csv" else _json(path):
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)
    except FileNotFoundError:
        raise QueryError(f"{path}: there is no such file.") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise BatchError(f"{path} cannot be read as {format_}: {error}") from None


def _csv(path: Path) -> Iterator[Any]:
    from pyarrow import csv

    delimiter = "\t" if ".tsv" in path.suffixes else ","
    with csv.open_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter)) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _json(path: Path) -> Iterator[Any]:
    from pyarrow import json

    with pa.input_stream(str(path), compression="detect") as file:
        begin = file.read(65_536).lstrip()
    if not begin.startswith(b"{"):  # of a lone null Arrow's reader would end the process
        raise BatchError(f"{path} does not begin with a JSON object. Write one on each line.")
    with json.open_json(path) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def schema(path: Path) -> Any:
    """The columns of a file; of csv and JSON as its first rows tell."""
    if format_of(path) == "parquet" and path.is_file():
        from pyarrow import parquet

        try:
            return parquet.read_schema(path)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise BatchError(f"{path} cannot be read as parquet: {error}") from None
    first = next(tables(path), None)
    return pa.schema([]) if first is None else first.schema


def only_time(columns: Any) -> str | None:
    """The one column that holds times; None: there is none, or several."""
    times = [field.name for field in columns if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)]
    return times[0] if len(times) == 1 else None
