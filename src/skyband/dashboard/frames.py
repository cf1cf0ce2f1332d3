"""Messages to clients: whole frames for pages, changes for programs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyband.dashboard import limits
from skyband.dashboard.health import Health
from skyband.dashboard.values import encoded, listed
from skyband.errors import QueryError

Watched = tuple[str, int | None]  # a query, and the number of a group


@dataclass(frozen=True)
class Frame:
    """The content at one moment, as JSON: the same head for all pages, and the details that some page shows."""

    number: int
    head: bytes
    details: dict[Watched, bytes]


class Program:
    """A program that receives the changes of a query: at most `limits.WAITING` bytes wait for it.

    `offer` is called by the watch's thread, `take` by the event loop; `wake` is called when there is something to take.
    """

    def __init__(self, query: str, wake: Callable[[], None]) -> None:
        self.query, self.wake = query, wake
        self._pieces: deque[bytes] = deque()
        self._size = self._missed = 0
        self._lock = threading.Lock()

    @property
    def full(self) -> bool:
        return self._size >= limits.WAITING

    def miss(self, rows: int) -> None:
        """Count rows that it does not get."""
        with self._lock:
            self._missed += rows

    def offer(self, piece: bytes) -> None:
        with self._lock:
            self._pieces.append(piece)
            self._size += len(piece)

    def take(self) -> tuple[bytes | None, int]:
        """The next piece; where there is none, the rows that were missed since the last time."""
        with self._lock:
            if self._pieces:
                piece = self._pieces.popleft()
                self._size -= len(piece)
                return piece, 0
            missed, self._missed = self._missed, 0
            return None, missed


class Programs:
    """The programs that listen to changes. `join` and `leave` are called from any thread."""

    def __init__(self, health: Health) -> None:
        self.health = health
        self._programs: list[Program] = []
        self._lock = threading.Lock()

    def all(self) -> list[Program]:
        with self._lock:
            return list(self._programs)

    def join(self, program: Program) -> None:
        with self._lock:
            if len(self._programs) >= limits.CLIENTS:
                raise QueryError(f"{limits.CLIENTS} programs are connected already, the most that one server takes.")
            self._programs.append(program)

    def leave(self, program: Program) -> None:
        with self._lock:
            self._programs = [one for one in self._programs if one is not program]

    def publish(self, changes: Any) -> None:
        """Give a table of changes to all that listen to their queries."""
        programs = self.all()
        try:
            share(changes, programs)
        except Exception as error:
            self.health.failed("changes", error)
            for one in programs:
                one.miss(changes.num_rows)


def share(changes: Any, programs: Iterable[Program]) -> None:
    """Give a table of changes to programs, in pieces; a piece is encoded once for all that listen to its query."""
    by_query: dict[str, list[Program]] = {}
    for one in programs:
        by_query.setdefault(one.query, []).append(one)
    for query, listening in by_query.items() if changes.num_rows else ():
        rows = changes.filter(pc.equal(changes["query"].cast(pa.string()), query))
        size = max(1, min(limits.PIECE, rows.num_rows * limits.PIECE_BYTES // max(rows.nbytes, 1)))
        for start in range(0, rows.num_rows, size):
            part = rows.slice(start, size)
            able = [one for one in listening if not one.full]
            piece = _event(part) if able else b""
            for one in listening:
                one.offer(piece) if one in able else one.miss(part.num_rows)
        for one in listening if rows.num_rows else ():
            one.wake()


def _event(changes: Any) -> bytes:
    names = changes.column_names
    columns = [listed(column) for column in changes.columns]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    return b"event: changes\ndata: " + encoded(rows) + b"\n\n"
