"""The thread that owns a board: it reads the stream, handles requests between two pushes, and publishes frames, at most
`limits.RATE` a second. A frame replaces the one before: a slow client sees the newest.

Memory does not grow with the stream: only the Monitor's state and a few bounded samples are kept.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from skyband.dashboard import limits
from skyband.dashboard.boards import MonitorBoard, plain
from skyband.dashboard.frames import Frame, Subscriber, Watched
from skyband.dashboard.readers import KAFKA
from skyband.dashboard.spark_output import AnswersBoard, follow
from skyband.dashboard.streams import Stream, inside, open_stream
from skyband.datasets.streams import STREAMS
from skyband.errors import QueryError, SkybandError
from skyband.monitor.monitor import Monitor
from skyband.query.kinds import Query
from skyband.tables.files import only_time

Board = MonitorBoard | AnswersBoard
_HISTORY = 120  # samples of throughput and objects kept
_PATIENCE = 60.0  # seconds that a request waits for the thread (kernels may compile)


@dataclass
class _State:
    """State that only the thread touches."""

    stream: Stream | None = None
    board: Board | None = None
    chosen: dict[str, Any] = field(default_factory=dict)
    paused: bool = False
    rate: float | None = None  # rows a second; None: as fast as possible
    owed: float = 0.0  # rows that may be read now
    last: float = 0.0
    error: str | None = None
    ended: bool = False
    rows: int = 0
    waiting: Any = None  # rows that could not be pushed
    recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=100))
    history: deque[tuple[float, int | None]] = field(default_factory=lambda: deque(maxlen=_HISTORY))
    sampled: float = 0.0
    number: int = 0
    dirty: bool = True
    framed: float = 0.0


class Watch:
    """The thread: `start` it, `call` a function on it, `listen` to its frames, `stop` it."""

    def __init__(self, root: Path, pipe: BinaryIO | None = None, topic: str | None = None) -> None:
        self.root, self.pipe, self.topic = root, pipe, topic  # topic: the only Kafka topic that may be chosen
        self.frame = Frame(0, b"{}", {})
        self._now = _State()
        self._requests: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue(1000)
        self._wake: list[Callable[[], None]] = []  # called after each frame
        self._watched: dict[object, Watched] = {}
        self._subscribers: list[Subscriber] = []
        self._lock = threading.Lock()  # of the three above
        self._stopping = False
        self.closing = False  # listeners must leave
        self._thread = threading.Thread(target=self._run, daemon=True, name="skyband watch")

    # --- from any thread

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._thread.join(10)
        if self._now.stream is not None:
            self._now.stream.close()

    def close(self) -> None:
        """Wake all listeners, so that they leave."""
        self.closing = True
        with self._lock:
            wake, subscribers = list(self._wake), list(self._subscribers)
        for call in wake:
            call()
        for one in subscribers:
            one.push([])

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on the thread; returns its result or raises its error."""
        future: Future[Any] = Future()
        try:
            self._requests.put_nowait((lambda: function(*arguments), future))
        except queue.Full:
            raise QueryError("too many requests are waiting. Try again in a moment.") from None
        try:
            return future.result(_PATIENCE)
        except TimeoutError:
            future.cancel()
            raise QueryError("the stream is busy (the first use of an engine compiles it). Try again.") from None

    def listen(self, wake: Callable[[], None], watched: Watched | None = None) -> object:
        """Call `wake` after each frame, which has the detail of `watched`; returns what `leave` takes."""
        with self._lock:
            if len(self._wake) >= limits.CLIENTS:
                raise QueryError(f"{limits.CLIENTS} pages are connected already, the most that one server takes.")
            self._wake.append(wake)
            if watched is not None:
                self._watched[wake] = watched
        self._now.dirty = True
        return wake

    def leave(self, handle: object) -> None:
        with self._lock:
            self._wake = [wake for wake in self._wake if wake is not handle]
            self._watched.pop(handle, None)

    def subscribe(self, subscriber: Subscriber) -> None:
        with self._lock:
            if len(self._subscribers) >= limits.CLIENTS:
                raise QueryError(f"{limits.CLIENTS} programs are connected already, the most that one server takes.")
            self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        with self._lock:
            self._subscribers = [one for one in self._subscribers if one is not subscriber]

    @property
    def watched(self) -> set[Watched]:
        with self._lock:
            return set(self._watched.values())

    # --- on the thread, through `call`

    def choose(self, given: dict[str, Any], queries: dict[str, Query]) -> None:
        """Switch to another stream, with these queries. On an error everything stays as it was."""
        name, now = given["stream"], self._now
        outside = name.startswith(("-", KAFKA)) or name in STREAMS
        followed = None if outside else follow(inside(self.root, name))
        board: Board
        if followed is not None:
            stream, board = None, followed
        else:
            stream = open_stream(self.root, name, self.pipe, self.topic)
            columns = None if stream.columns is None else stream.columns.names
            board = MonitorBoard(Monitor({}, **self._roles(given, stream.columns)), columns)
            for query_name, query in queries.items():
                board.add(query_name, query)
        if now.stream is not None:
            now.stream.close()
        if name == "-":
            self.pipe = None
        fresh = _State(stream, board, dict(given), given.get("paused", False), given.get("rate"), number=now.number)
        fresh.last = time.monotonic()
        self._now = fresh

    def _roles(self, given: dict[str, Any], columns: Any) -> dict[str, Any]:
        """The roles of columns; `time` defaults to the only column of times."""
        roles = {role: given.get(role) for role in ("id", "time")} | {"keep": given.get("keep") or ()}
        roles |= {role: given[role] for role in ("part", "value") if given.get(role)}
        if columns is None:
            return roles
        if roles["time"] is None:
            roles["time"] = given["time"] = only_time(columns)
        for role in ("id", "time"):
            if roles[role] is not None and roles[role] not in columns.names:
                raise QueryError(
                    f"{role}: the stream has no column {roles[role]!r}. It has: {', '.join(columns.names)}."
                )
        return roles

    def control(self, *, paused: bool | None = None, rate: float | str | None = "") -> None:
        if paused is not None:
            self._now.paused = paused
        if not isinstance(rate, str):
            self._now.rate = rate
        self._now.owed, self._now.last, self._now.dirty = 0.0, time.monotonic(), True

    def board(self) -> Board:
        if self._now.board is None:
            raise QueryError("no stream is chosen yet. Choose one first: PUT /api/stream.")
        return self._now.board

    def add(self, name: str, query: Query) -> None:
        self.board().add(name, query)
        self._again()

    def replace(self, name: str, query: Query) -> None:
        self.board().replace(name, query)
        self._again()

    def drop(self, name: str) -> None:
        self.board().drop(name)
        self._again()

    def _again(self) -> None:
        """Try the rows again that could not be pushed, after the queries have changed."""
        self._now.error, self._now.dirty = None, True

    def look(self) -> dict[str, Any]:
        """All that a page shows except the details."""
        now = self._now
        found: dict[str, Any] = {"stream": None, "queries": []}
        if now.board is not None:
            found["stream"] = self._stream()
            found["queries"] = now.board.summaries()
        return found

    def _stream(self) -> dict[str, Any]:
        now, board = self._now, self.board()
        columns = now.stream.columns if now.stream is not None else None
        return {
            "name": now.chosen["stream"],
            "title": now.stream.title if now.stream is not None else now.chosen["stream"],
            "roles": {role: now.chosen.get(role) for role in ("id", "time", "keep", "part", "value")},
            "columns": None if columns is None else [[one.name, str(one.type)] for one in columns],
            "fixed": board.fixed,
            "paced": now.stream is not None and now.stream.paced,
            "paused": now.paused,
            "rate": now.rate,
            "ended": now.ended,
            "error": now.error,
            "rows": now.rows,
            "speed": self._speed(),
            "history": [plain(list(sample)) for sample in now.history],
            **self._head(board),
        }

    def _head(self, board: Board) -> dict[str, Any]:
        """The counts of the board, and of the lines that the stream rejected."""
        head, rejected = board.head(), getattr(self._now.stream, "rejected", {})
        return head | {"rejected": {**head["rejected"], **rejected}}

    def _speed(self) -> float:
        """Rows a second, recently."""
        recent, at = self._now.recent, time.monotonic()
        first = next((point for point in recent if at - point[0] < 2.0), None)
        if first is None or self._now.paused or self._now.ended:
            return 0.0
        return round((self._now.rows - first[1]) / max(at - first[0], 0.05), 1)

    # --- the thread

    def _run(self) -> None:
        while not self._stopping:
            idle = not self._step()
            self._frame()
            try:
                function, future = self._requests.get(timeout=self._rest() if idle else 0.0001)
            except queue.Empty:
                continue
            self._do(function, future)
            while not self._requests.empty():
                self._do(*self._requests.get_nowait())
            self._frame(at_once=True)

    def _rest(self) -> float:
        """Seconds to wait: until the next frame, or until there may be rows."""
        now = self._now
        due = now.framed + 1 / limits.RATE - time.monotonic() if now.dirty and self._wake else 1.0
        return min(0.02, max(due, 0.0001))

    def _do(self, function: Callable[[], Any], future: Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(function())
        except Exception as error:  # goes to the caller
            future.set_exception(error)

    def _step(self) -> bool:
        """Read and push once; False: there is nothing to do now."""
        now = self._now
        if now.board is None or now.paused or now.ended:
            return False
        if isinstance(now.board, AnswersBoard):
            self._follow(now.board)
            return False
        if now.error is not None:
            return False
        try:
            assert now.stream is not None
            table, now.waiting = now.waiting, None
            if table is None and (rows := self._allowed(now.stream)):
                table = now.stream.read(rows)
            if table is None:
                now.ended = now.stream.ended
                now.dirty |= now.ended
                return False
            now.waiting = table
            changes = now.board.push(table, self.watched)
            now.waiting = None
        except SkybandError as error:
            now.error, now.dirty = str(error), True
            return False
        except Exception as error:  # a bug is shown on the page, and the server keeps running
            now.error, now.dirty = f"{type(error).__name__}: {error}", True
            return False
        now.rows += table.num_rows
        now.owed = max(0.0, now.owed - table.num_rows)
        now.dirty = True
        at = time.monotonic()
        if not now.recent or at - now.recent[-1][0] > 0.03:
            now.recent.append((at, now.rows))
        self._share(changes)
        return True

    def _follow(self, board: AnswersBoard) -> None:
        """Look at the file four times a second; an error may be gone the next time."""
        now, at = self._now, time.monotonic()
        if at - now.last < 0.25:
            return
        now.last, before = at, now.error
        try:
            now.dirty |= board.look()
            now.error = None
        except SkybandError as error:
            now.error = str(error)
        now.dirty |= now.error != before

    def _allowed(self, stream: Stream) -> int:
        """The number of rows that may be read now."""
        now, at = self._now, time.monotonic()
        if now.rate is None or not stream.paced:
            return limits.BATCH
        now.owed = min(now.owed + (at - now.last) * now.rate, max(1.0, now.rate / 2))
        now.last = at
        if now.owed < 1 or (now.owed < now.rate / 40 and now.rate > 40):  # some 40 pushes a second
            return 0
        return min(int(now.owed), limits.BATCH)

    def _share(self, changes: Any) -> None:
        with self._lock:
            subscribers = list(self._subscribers)
        if not subscribers or not changes.num_rows:
            return
        rows: dict[str, list[dict[str, Any]]] = {}
        wanted = {one.query for one in subscribers}
        for row in changes.to_pylist():
            if row["query"] in wanted:
                rows.setdefault(row["query"], []).append(plain(row))
        for one in subscribers:
            if one.query in rows:
                one.push(rows[one.query])

    def _frame(self, *, at_once: bool = False) -> None:
        now, at = self._now, time.monotonic()
        if at - now.sampled > 1.0 and now.board is not None:
            now.sampled = at
            kept = [one["kept"] for one in now.board.summaries()]
            now.history.append((self._speed(), None if None in kept else sum(kept)))
            now.dirty = True
        if not now.dirty or (not at_once and at - now.framed < 1 / limits.RATE):
            return
        with self._lock:
            wake, watched = list(self._wake), set(self._watched.values())
        if not wake:
            return
        now.dirty, now.framed = False, min(at, max(now.framed + 1 / limits.RATE, at - 1 / limits.RATE))
        now.number += 1
        try:
            head = self.look()
            details = {what: _json(self._detail(what)) for what in watched}
            self.frame = Frame(now.number, _json(head), details)
        except SkybandError as error:
            now.error = str(error)
        for call in wake:
            call()

    def _detail(self, what: Watched) -> dict[str, Any]:
        board, (name, group) = self._now.board, what
        if board is None or name not in board.names:
            return {"name": name, "gone": True}
        try:
            return board.detail(name, group)
        except SkybandError as error:
            return {"name": name, "error": str(error)}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
