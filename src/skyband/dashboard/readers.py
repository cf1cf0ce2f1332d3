"""Rows that arrive one by one: lines of JSON or CSV through a pipe, and messages of a Kafka topic.

A thread waits for them; `read` returns what has arrived. The columns are those of the first lines, and each has the
type of its first values (texts like 2013-07-01T06:30:00 are times; integers may become floats later). A line that does
not fit is rejected and counted, and the first few are named on stderr.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import numpy as np

from skyband.errors import QueryError, RunError
from skyband.tables.csv_lines import CsvLines
from skyband.tables.json_lines import JsonLines
from skyband.tables.lines import LONGEST, NEWLINE, Labels, LineParser, Malformed, blocks, bytes_of, plain_lines

KAFKA = "kafka://"
_WAITING, _WAITING_BYTES = 1000, 64 << 20  # pieces, and bytes of them; then the writer waits
_REASON = {
    JsonLines: "not a line of JSON with the columns of the first",
    CsvLines: "not a line of CSV with the columns of the header",
}
_PAUSE = 1.0  # seconds between attempts to read on
Piece = tuple[bytes, Labels]  # whole lines, and the number or name of each


class Queued:
    """Lines that a thread puts into a queue, several at a time."""

    paced = False
    attempts = 0  # to go on after an error, where nothing is lost by it

    def __init__(self, title: str) -> None:
        self.title = title
        self.failed: Callable[[Exception], None] = lambda error: None  # called before each further attempt
        self.ended = False
        self.malformed = Malformed(lambda what: print(f"{title}: {what} (rejected)", file=sys.stderr))
        self._parser: LineParser = JsonLines(self.malformed, live=True)
        self._queue: queue.Queue[Piece | Exception | None] = queue.Queue(_WAITING)
        self._put_bytes = self._got_bytes = 0  # since the beginning; each is written by one thread
        self._rest: Piece | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._listen, daemon=True, name=f"skyband {title}")
        self._thread.start()

    @property
    def columns(self) -> Any:
        """The schema; None: not known yet."""
        return self._parser.columns

    @property
    def rejected(self) -> dict[str, int]:
        """The number of lines that could not be read, by reason."""
        return {_REASON[type(self._parser)]: self.malformed.count} if self.malformed.count else {}

    def _pieces(self) -> Iterator[Piece]:
        """The lines; runs on the thread, and waits for them."""
        raise NotImplementedError

    def _listen(self) -> None:
        attempts = self.attempts
        while True:
            try:
                for piece in self._pieces():
                    attempts = self.attempts
                    while self._put_bytes - self._got_bytes > _WAITING_BYTES and not self._closed:
                        time.sleep(0.05)
                    self._put_bytes += len(piece[0])
                    self._put(piece)
                self._put(None)
                return
            except Exception as error:
                attempts -= 1
                if attempts < 0 or self._closed:
                    self._put(error)  # raised again by `read`
                    return
                self.failed(error)
                time.sleep(_PAUSE)

    def _put(self, piece: Piece | Exception | None) -> None:
        while not self._closed:
            try:
                self._queue.put(piece, timeout=0.5)
                return
            except queue.Full:
                continue

    def read(self, rows: int) -> Any:
        blocks: list[bytes] = []
        labels: list[int | str] = []
        while len(labels) < rows and (piece := self._next(rows - len(labels))) is not None:
            blocks.append(piece[0])
            labels += piece[1]
        return self._table(b"".join(blocks), labels) if blocks or self.ended else None

    def _next(self, lines: int) -> Piece | None:
        """At most so many lines; None: there are none at the moment, or it was the end."""
        try:
            piece = self._rest or self._queue.get_nowait()
        except queue.Empty:
            return None
        if isinstance(piece, Exception):
            raise RunError(f"{self.title}: {piece}")
        if piece is None:
            self.ended = True
            return None
        (block, labels), self._rest = piece, None
        if len(labels) > lines:
            end = int(np.flatnonzero(bytes_of(block) == NEWLINE)[lines - 1]) + 1
            self._rest, block, labels = (block[end:], labels[lines:]), block[:end], labels[:lines]
        self._got_bytes += len(block)
        return block, labels

    def _table(self, block: bytes, labels: Labels) -> Any:
        return self._parser.table(block, labels) if labels else None

    def close(self) -> None:
        self._closed = True


class Lines(Queued):
    """Lines of JSON, or CSV with a header, as they come through a pipe: the first two lines tell which."""

    def __init__(self, pipe: BinaryIO, title: str = "stdin") -> None:
        self._pipe = pipe
        self._first: Piece | None = (b"", [])  # until it is known what the lines are
        super().__init__(title)

    def _pieces(self) -> Iterator[Piece]:
        def read(size: int) -> bytes:
            return os.read(self._pipe.fileno(), min(size, 65_536))  # a buffered reader would block the end of Python

        for block, numbers in blocks(read, self.malformed):
            yield plain_lines(block, numbers), numbers

    def _table(self, block: bytes, labels: Labels) -> Any:
        if self._first is not None:
            block, labels = self._first[0] + block, [*self._first[1], *labels]
            places = [place for place, line in enumerate(block.split(b"\n")) if line.strip()]
            if len(places) < 2 and not self.ended:
                self._first = (block, labels) if places else (b"", [])
                return None
            self._first, lines = None, block.split(b"\n", 1 + max(places[:2], default=0))
            if places and not any(lines[place].lstrip().startswith(b"{") for place in places[:2]):
                self._parser = CsvLines(self.malformed, lines[places[0]], live=True)
                block, labels = b"\n".join(lines[places[0] + 1 :]), labels[places[0] + 1 :]
        return super()._table(block, labels)


class Topic(Queued):
    """A topic of Kafka: the JSON objects in the values of its messages, from the first that is kept."""

    attempts = 30  # the consumer knows where it is

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

    def _pieces(self) -> Iterator[Piece]:
        while not self._closed:
            for records in self._consumer.poll(timeout_ms=200).values():
                lines, labels = [], []
                for record in records:
                    label, value = f"{record.topic}-{record.partition}-{record.offset}", record.value or b"null"
                    if len(value) > LONGEST:
                        self.malformed.add(label, f"longer than {LONGEST:,} bytes")
                    else:
                        lines.append(value.replace(b"\n", b" ") + b"\n")
                        labels.append(label)
                if lines:
                    yield b"".join(lines), labels
        self._consumer.close()

    def close(self) -> None:
        """Wait for the thread, which closes the consumer."""
        super().close()
        self._thread.join(10)
