"""Rows that arrive one by one: lines of JSON or CSV through a pipe, and messages of a Kafka topic.

A thread waits for them; `read` returns what has arrived. The columns are those of the first lines, and each has the
type of its first values (texts like 2013-07-01T06:30:00 are times; integers may become floats later). A line that does
not fit is rejected and counted.
"""

from __future__ import annotations

import io
import os
import queue
import re
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import pyarrow as pa

from skyband.errors import BatchError, QueryError, RunError

KAFKA = "kafka://"
_WAITING = 20_000  # lines; then the writer waits
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_ZONE = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
_REASON = "not a line of JSON with the columns of the first"
_BROKEN = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


class Queued:
    """Lines that a thread puts into a queue."""

    paced = False

    def __init__(self, title: str) -> None:
        self.title = title
        self.ended = False
        self.columns: Any = None
        self.rejected: dict[str, int] = {}
        self._raw: dict[str, Any] = {}  # the types as JSON is read: times are texts
        self._queue: queue.Queue[bytes | Exception | None] = queue.Queue(_WAITING)
        self._closed = False
        self._thread = threading.Thread(target=self._listen, daemon=True, name=f"skyband {title}")
        self._thread.start()

    def _lines(self) -> Iterator[bytes]:
        """The lines; runs on the thread, and waits for each."""
        raise NotImplementedError

    def _listen(self) -> None:
        try:
            for line in self._lines():
                if line.strip():
                    self._put(line)
            self._put(None)
        except Exception as error:  # raised again by `read`
            self._put(error)

    def _put(self, line: bytes | Exception | None) -> None:
        while not self._closed:
            try:
                self._queue.put(line, timeout=0.5)
                return
            except queue.Full:
                continue

    def read(self, rows: int) -> Any:
        lines: list[bytes] = []
        try:
            while len(lines) < rows:
                line = self._queue.get_nowait()
                if isinstance(line, Exception):
                    raise RunError(f"{self.title}: {line}")
                if line is None:
                    self.ended = True
                    break
                lines.append(line.strip() + b"\n")
        except queue.Empty:
            pass
        return self._table(lines) if lines else None

    def _table(self, lines: list[bytes]) -> Any:
        objects = [line for line in lines if _is_object(line)]
        self._reject(len(lines) - len(objects))
        return self._rows(objects) if objects else None

    def _rows(self, lines: list[bytes]) -> Any:
        table = self._fitting(lines)
        if table is not None or len(lines) == 1:
            return table
        good = [table for line in lines if (table := self._fitting([line])) is not None]
        return pa.concat_tables(good, promote_options="permissive") if good else None

    def _fitting(self, lines: list[bytes]) -> Any:
        """These lines as a table; None: they do not fit the columns."""
        for attempt in (self._json, self._widened):
            try:
                return attempt(lines)
            except _BROKEN:
                continue
        self._reject(len(lines) == 1)
        return None

    def _reject(self, count: int) -> None:
        if count:
            self.rejected[_REASON] = self.rejected.get(_REASON, 0) + count

    def _widened(self, lines: list[bytes]) -> Any:
        """The same with floats where only integers were seen so far."""
        found = _parsed(lines, {})
        wider = {
            name: pa.float64()
            for name, type_ in self._raw.items()
            if pa.types.is_integer(type_) and name in found.column_names and pa.types.is_floating(found[name].type)
        }
        return self._json(lines, self._raw | wider)

    def _json(self, lines: list[bytes], raw: dict[str, Any] | None = None) -> Any:
        known = dict(self._raw if raw is None else raw)
        table = _parsed(lines, known)
        names = table.column_names if self.columns is None else self.columns.names
        fresh = {one.name: one.type for one in table.schema if one.name in names and one.name not in known}
        fresh = {name: type_ for name, type_ in fresh.items() if not pa.types.is_null(type_)}
        if fresh:
            known |= {name: pa.string() if pa.types.is_timestamp(type_) else type_ for name, type_ in fresh.items()}
            table = _parsed(lines, known)
        types = dict(zip(names, self.columns.types, strict=True)) if self.columns is not None else {}
        types |= {name: _type(table[name]) for name in fresh}
        types |= {name: type_ for name, type_ in known.items() if pa.types.is_floating(type_)}
        columns = pa.schema([pa.field(name, types.get(name, pa.null())) for name in names])
        cast = table.select(names).cast(columns)
        self._raw, self.columns = known, columns
        return cast

    def close(self) -> None:
        self._closed = True


def _is_object(line: bytes) -> bool:
    """Arrow's reader ends the process at a lone null, and where brackets nest too deeply for its stack."""
    return line.startswith(b"{") and line.count(b"{") + line.count(b"[") < 5_000


def _parsed(lines: list[bytes], types: dict[str, Any]) -> Any:
    from pyarrow import json

    options = json.ParseOptions(explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="infer")
    table = json.read_json(io.BytesIO(b"".join(lines)), parse_options=options)
    if not table.num_columns:
        raise pa.ArrowInvalid("no columns")
    return table


def _type(column: Any) -> Any:
    """The type of a column by its first values: texts may be times."""
    if not pa.types.is_string(column.type):
        return column.type
    known = [text for text in column.slice(0, 100).to_pylist() if text is not None]
    if not known or not all(_TIME.match(text) for text in known):
        return column.type
    return pa.timestamp("us", "UTC") if _ZONE.search(known[0]) else pa.timestamp("us")


class Lines(Queued):
    """Lines of JSON, or CSV with a header, as they come through a pipe."""

    def __init__(self, pipe: BinaryIO, title: str = "stdin") -> None:
        self._pipe, self._header = pipe, b""
        super().__init__(title)

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        while piece := os.read(self._pipe.fileno(), 65_536):  # a buffered reader would block the end of Python
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
        yield rest

    def _table(self, lines: list[bytes]) -> Any:
        if self.columns is None and not self._header and not lines[0].startswith(b"{"):
            self._header = lines.pop(0)
        if not self._header:
            return super()._table(lines)
        return self._csv(lines) if lines else None

    def _csv(self, lines: list[bytes]) -> Any:
        from pyarrow import csv

        types = None if self.columns is None else {field.name: field.type for field in self.columns}
        data = io.BytesIO(self._header + b"".join(lines))
        try:
            table = csv.read_csv(data, convert_options=csv.ConvertOptions(column_types=types))
        except _BROKEN as error:
            raise BatchError(f"{self.title}: {error}. Write lines of JSON, or CSV with a header.") from None
        self.columns = table.schema
        return table


class Topic(Queued):
    """A topic of Kafka: the JSON objects in the values of its messages, from the first that is kept."""

    def __init__(self, url: str) -> None:
        try:
            from kafka import KafkaConsumer
        except ImportError as error:
            raise QueryError(f'{KAFKA} needs a Kafka client: pip install "skyband[kafka]" ({error})') from None
        parts = urlsplit(url)
        topic = parts.path.strip("/")
        if not parts.netloc or not topic or "/" in topic:
            raise QueryError(f"{url!r} names no topic. Write kafka://host:9092/topic")
        try:
            self._consumer = KafkaConsumer(
                topic, bootstrap_servers=parts.netloc, auto_offset_reset="earliest", group_id=None
            )
            known = topic in self._consumer.topics()
        except Exception as error:  # of many kinds: no host, no broker, no permission
            raise RunError(f"{url}: Kafka cannot be reached ({type(error).__name__}: {error}).") from None
        if not known:
            self._consumer.close()
            raise QueryError(f"{url}: there is no topic {topic!r}.")
        super().__init__(url)

    def _lines(self) -> Iterator[bytes]:
        while not self._closed:
            for records in self._consumer.poll(timeout_ms=200).values():
                for record in records:
                    yield b" ".join((record.value or b"null").split(b"\n"))
        self._consumer.close()

    def close(self) -> None:
        """Wait for the thread, which closes the consumer."""
        super().close()
        self._thread.join(10)
