"""Loops that a worker keeps between triggers, and lends to the other workers of its machine.

Spark gives a shard to any of its workers, and only one of them has the loop as the last trigger left it. That one
listens under the loop's version, which is random and new after every trigger. A worker that has the task and not the
loop sends it what the trigger takes, and gets what there is to report and to store: it stores that itself, so a loop is
never ahead of the store but by a version that no list names. Where nobody answers the loop is read from the store.

What comes over the socket are archives and Arrow tables, never code, and only between processes of one user. Linux
only: elsewhere there are no sockets without a file. Cost: the changes of a trigger cross a socket once more.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.taskcontext import TaskContext

from skyband.errors import StateError
from skyband.monitor.archive import pack, unpack
from skyband.spark.forget import SetLoop
from skyband.spark.journal import Left, leave, take_again
from skyband.spark.mappers import from_bytes, to_bytes
from skyband.spark.runs import with_runs

_MOST = 8  # loops that a worker keeps
_PATIENCE = 600  # seconds without a byte: a worker that does not answer is given up, and the store is read
_SIZE = struct.Struct("<q")
_LENDS = hasattr(socket, "SO_PEERCRED")  # Linux: who is at the other end, and sockets without a file

Place = tuple[Any, ...]  # of a loop: its Spark query, shard and query set


@dataclass
class Kept:
    """A loop as some trigger left it."""

    version: str
    loop: SetLoop
    listener: socket.socket | None

    def close(self) -> None:
        """Let nobody ask for it any more."""
        if self.listener is not None:
            with suppress(OSError):
                self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits
            self.listener.close()


class Worker:
    """The loops of one process. Each is with one trigger at a time: who takes it away has it alone."""

    def __init__(self) -> None:
        self.kept: OrderedDict[Place, Kept] = OrderedDict()
        self.lent = 0  # triggers that were taken for other workers
        self._lock = threading.Lock()

    def version(self, place: Place) -> str | None:
        """The version of the loop that is here."""
        kept = self.kept.get(place)
        return None if kept is None else kept.version

    def take_away(self, place: Place, version: str | None = None) -> Kept | None:
        """The loop that is here, if it has this version (None: any); it is here no longer."""
        with self._lock:
            kept = self.kept.get(place)
            if kept is None or version not in (None, kept.version):
                return None
            del self.kept[place]
        kept.close()
        return kept

    def keep(self, place: Place, version: str, loop: SetLoop) -> None:
        """Keep a loop for the next trigger, and lend it until then."""
        listener = _listen(version)
        gone = []
        with self._lock:
            if place in self.kept:
                gone.append(self.kept.pop(place))
            self.kept[place] = Kept(version, loop, listener)
            if len(self.kept) > _MOST:
                gone.append(self.kept.popitem(last=False)[1])
        for one in gone:
            one.close()
        if listener is not None:
            threading.Thread(target=self._serve, args=(place, version, listener), daemon=True).start()

    def clear(self) -> None:
        """Keep nothing."""
        for place in list(self.kept):
            self.take_away(place)

    def _serve(self, place: Place, version: str, listener: socket.socket) -> None:
        """Wait for whoever needs this loop; where this worker needs it itself, the listener is closed."""
        while self.version(place) == version:
            try:
                other, _ = listener.accept()
            except OSError:  # the listener is closed
                return
            with other:
                try:
                    if _is_mine(other):
                        self._lend(place, version, other)
                except (OSError, EOFError, StateError):  # the other one is gone, or was never one of us
                    pass

    def _lend(self, place: Place, version: str, other: socket.socket) -> None:
        """Take a trigger for another worker. Where that fails it reads the store, and finds out why."""
        facts, _ = unpack(bytes(_receive(other)))
        step = _receive(other)
        kept = self.take_away(place, version)
        if kept is None:
            return
        try:
            tables = [changes for changes in take_again(kept.loop, bytes(step)) if changes.num_rows]
            tables = list(kept.loop.answers(tables)) if facts["whole"] else tables
            left = leave(kept.loop, copies=facts["copies"])
        except Exception:  # whatever the rows led to, the worker whose trigger it is raises it
            return
        self.lent += 1
        self.keep(place, facts["next"], kept.loop)
        _send(other, pack({"tables": len(tables), **left.facts()}, {}))
        for table in tables:
            _send(other, to_bytes(with_runs(table)))
        for part in left.copy or ():
            _send(other, part)


#: That of this process.
worker = Worker()


def place_of(shard: int, number: int) -> Place:
    """The place of the loop of a query set in this task."""
    task = TaskContext.get()
    return task and task.getLocalProperty("sql.streaming.queryId"), shard, number


def is_followed() -> bool:
    """Whether other triggers may follow this one: not in a batch query."""
    task = TaskContext.get()
    return task is None or task.getLocalProperty("sql.streaming.queryId") is not None


def borrow(
    version: str, following: str, step: bytes, *, copies: bool, whole: bool = False
) -> tuple[list[pa.Table], Left] | None:
    """Let the worker with the loop of this version take a step; what there is to report and to store.

    following: the version of the loop after it. whole: report answers, not changes. None: no worker has it.
    """
    if not _LENDS:
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.settimeout(_PATIENCE)
            other.connect(_address(version))
            if not _is_mine(other):
                return None
            _send(other, pack({"next": following, "copies": copies, "whole": whole}, {}))
            _send(other, step)
            facts, _ = unpack(bytes(_receive(other)))
            tables = [from_bytes(_receive(other)) for _ in range(facts.pop("tables"))]
            copy = (bytes(_receive(other)), bytes(_receive(other))) if copies else None
    except (OSError, EOFError):
        return None
    return tables, Left.of(facts, copy)


def _address(version: str) -> str:
    return f"\0skyband-{version}"


def _listen(version: str) -> socket.socket | None:
    if not _LENDS:
        return None
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(_address(version))
        listener.listen(1)
    except OSError:  # not lent, then
        listener.close()
        return None
    return listener


def _is_mine(other: socket.socket) -> bool:
    """Whether the process at the other end is of this user."""
    _, user, _ = struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(user == os.geteuid())


def _send(other: socket.socket, data: bytes) -> None:
    other.sendall(_SIZE.pack(len(data)))
    other.sendall(data)


def _receive(other: socket.socket) -> bytearray:
    (size,) = _SIZE.unpack(_read(other, _SIZE.size))
    return _read(other, size)


def _read(other: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    rest = memoryview(data)
    while len(rest):
        count = other.recv_into(rest)
        if not count:
            raise EOFError("the other worker has closed the connection.")
        rest = rest[count:]
    return data
