"""The thread that owns a board: it reads the stream, handles requests between two pushes, and publishes frames, at most
`limits.RATE` a second. A frame replaces the one before: a slow client sees the newest.

Whatever fails is counted in `health` and shown, and the thread goes on: a request fails alone, a stream that fails
stops alone. A supervisor starts the loop again if it should end all the same.

Memory does not grow with the stream: only the Monitor's state, rows since its last snapshot and a few bounded samples
are kept.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, BinaryIO

from skyband.dashboard import limits
from skyband.dashboard.boards import MonitorBoard
from skyband.dashboard.delivery import Delivery, Listener
from skyband.dashboard.frames import Frame, Programs, Watched
from skyband.dashboard.health import Health, text_of
from skyband.dashboard.intake import carry
from skyband.dashboard.pace import Pace
from skyband.dashboard.page_state import Board, State
from skyband.dashboard.readers import KAFKA, Queued
from skyband.dashboard.root import Root
from skyband.dashboard.spark_output import AnswersBoard, follow
from skyband.dashboard.streams import open_stream, roles_of
from skyband.dashboard.values import encoded
from skyband.datasets.streams import STREAMS
from skyband.errors import QueryError, RunError, SkybandError
from skyband.monitor.monitor import Monitor
from skyband.query.kinds import Query

PATIENCE = 60.0  # seconds that a request waits for the thread (kernels may compile)
_PAUSES = (0.0, 0.1, 0.5, 2.0)  # seconds before the loop is started again, and the stream is read again


class Busy(RunError):
    """The thread has no time for a request now."""


class Watch:
    """The thread: `start` it, `call` a function on it, `listen` to its frames, `stop` it."""

    def __init__(
        self,
        root: Path,
        pipe: BinaryIO | None = None,
        topic: str | None = None,
        settings: limits.Settings | None = None,
    ) -> None:
        self.settings = settings or limits.Settings()
        self.root, self.pipe, self.topic = Root(root), pipe, topic  # topic: the only Kafka topic that may be chosen
        self.health = Health()
        self.turned = time.monotonic()  # when the loop last turned
        self.frame = Frame(0, b"{}", {})
        self._now = State()
        self._requests: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue(1000 + self.settings.listeners)
        self._wake: list[Callable[[], None]] = []  # called after each frame
        self._watched: dict[object, Watched] = {}
        self._lock = threading.Lock()  # of the two above
        self.programs, self.delivery = Programs(self.health), Delivery(self.settings)
        self._stopping = False
        self.closing = False  # listeners must leave
        self._thread = threading.Thread(target=self._supervise, daemon=True, name="skyband watch")

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
            wake = list(self._wake)
        for call in (*wake, *(one.wake for one in self.programs.all())):
            call()
        self.delivery.close()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have a function called on the thread."""
        future: Future[Any] = Future()
        try:
            self._requests.put_nowait((lambda: function(*arguments), future))
        except queue.Full:
            raise Busy("too many requests are waiting. Try again in a moment.") from None
        return future

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on the thread; returns its result or raises its error."""
        future = self.submit(function, *arguments)
        try:
            return future.result(PATIENCE)
        except TimeoutError:
            future.cancel()
            raise Busy("the stream is busy (the first use of an engine compiles it). Try again.") from None

    def report(self) -> dict[str, Any]:
        """What /api/health says. It does not wait for the thread."""
        now, alive, silent = self._now, self._thread.is_alive(), time.monotonic() - self.turned
        stream = {"name": now.chosen.get("stream"), "rows": now.pace.rows, "ended": now.ended, "error": now.error}
        status = "stuck" if not alive or silent > PATIENCE else "stopped" if now.error is not None else "ok"
        with self._lock:
            listeners = {"pages": len(self._wake), "programs": len(self.programs.all())}
        return {
            "status": status,
            "thread": {"alive": alive, "busy_s": round(silent, 1)},
            "stream": None if now.board is None else stream,
            "listeners": listeners | {"subscribers": self.delivery.count},
            **self.health.report(),
        }

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

    @property
    def watched(self) -> set[Watched]:
        with self._lock:
            return set(self._watched.values())

    # --- on the thread, through `call`

    def choose(self, given: dict[str, Any], queries: dict[str, Query]) -> None:
        """Switch to another stream, with these queries. On an error everything stays as it was."""
        name, now = given["stream"], self._now
        outside = name.startswith(("-", KAFKA)) or name in STREAMS
        followed = None if outside else follow(self.root.find(name), self.root)
        board: Board
        if followed is not None:
            stream, board = None, followed
        else:
            stream = open_stream(self.root, name, self.pipe, self.topic)
            columns = None if stream.columns is None else stream.columns.names
            try:
                monitor = Monitor({}, **roles_of(given, stream.columns))
                board = MonitorBoard(monitor, columns, self.health, self.settings)
                for query_name, query in queries.items():
                    board.add(query_name, query)
                if queries and isinstance(now.board, MonitorBoard):
                    carry(now.board.monitor, board.monitor)
            except Exception:
                if name != "-":  # stdin can be opened once
                    stream.close()
                raise
        if now.stream is not None:
            now.stream.close()
        if isinstance(stream, Queued):
            stream.failed = lambda error: self.health.restarted("reader", error)
        if name == "-":
            self.pipe = None
        pace = Pace(given.get("rate"), paused=bool(given.get("paused")))
        self._now = State(stream, board, dict(given), pace, number=now.number)
        self.delivery.restart()

    def control(self, *, paused: bool | None = None, rate: float | str | None = "") -> None:
        self._now.pace.set(paused=paused, rate=rate)
        self._now.dirty = True

    def board(self) -> Board:
        if self._now.board is None:
            raise QueryError("no stream is chosen yet. Choose one first: PUT /api/stream.")
        return self._now.board

    def add(self, name: str, query: Query) -> None:
        self.board().add(name, query)
        self._again()

    def replace(self, name: str, query: Query) -> None:
        self._publish([self.board().replace(name, query)])
        self.delivery.renew(name)
        self._again()

    def drop(self, name: str) -> None:
        self.board().drop(name)
        self.delivery.renew(name)
        self._again()

    def subscribe(self, name: str, table: Any, id: str) -> int:
        """Take subscriptions, whose listeners begin anew; returns how many there are."""
        board = self._monitored()
        ids, changes = board.subscribed.subscribe(name, table, id)
        board.note(name, changes.num_rows)
        self._now.pace.restart()
        self.delivery.renew(name, ids)
        self._publish([changes])
        return board.subscribed.count(name)

    def unsubscribe(self, name: str, ids: Any) -> tuple[int, int]:
        """End subscriptions; returns how many there were, and how many there are."""
        board = self._monitored()
        before = board.subscribed.count(name)
        self.delivery.renew(name, board.subscribed.unsubscribe(name, ids))
        board.note(name)
        return before, board.subscribed.count(name)

    def follow(self, listener: Listener) -> bool:
        """Let a listener follow its subscriber; False: there is no such one."""
        subscribed = self._monitored().subscribed
        subscribed.known(listener.key.query)
        if (value := subscribed.find(*listener.key)) is None:
            return False
        self.delivery.join(listener, value)
        return True

    def _monitored(self) -> MonitorBoard:
        board = self.board()
        if not isinstance(board, MonitorBoard):
            raise QueryError("the answers of a Spark pipeline take no subscriptions here: change its file.")
        return board

    def _again(self) -> None:
        """Try the rows again that could not be pushed, after the queries have changed."""
        self._now.error, self._now.dirty = None, True

    def look(self) -> dict[str, Any]:
        """All that a page shows except the details."""
        return self._now.look(self.health)

    # --- the thread

    def _supervise(self) -> None:
        """Run the loop, and again if it ends by an error."""
        failed = 0
        while not self._stopping:
            begin = time.monotonic()
            try:
                self._run()
            except BaseException as error:  # nothing may end the thread
                self.health.restarted("watch", error)
                failed = failed + 1 if time.monotonic() - begin < 10 else 0
                time.sleep(_PAUSES[min(failed, len(_PAUSES) - 1)])

    def _run(self) -> None:
        while not self._stopping:
            self.turned = time.monotonic()
            idle = not self._step()
            self._deliver()
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
        except BaseException as error:  # goes to the caller
            future.set_exception(error)

    def _step(self) -> bool:
        """Read and push once; False: there is nothing to do now."""
        now = self._now
        if now.board is None or now.pace.paused or now.ended:
            return False
        if isinstance(now.board, AnswersBoard):
            self._follow(now.board)
            return False
        if now.error is not None:
            return False
        try:
            assert now.stream is not None
            table, now.waiting = now.waiting, None
            if table is None and (rows := now.pace.allowed(now.stream.paced)):
                table = now.stream.read(rows)
            if table is None:
                now.ended = now.stream.ended
                now.dirty |= now.ended
                return False
            now.waiting, begin = table, time.monotonic()
            pushed = now.board.push(table, self.watched)
            now.waiting = None
        except Exception as error:  # shown on the page; the server keeps running
            now.error, now.dirty = text_of(error), True
            self.health.failed("stream", error)
            return False
        now.pace.read(table.num_rows, time.monotonic() - begin)
        now.dirty = True
        self._publish(pushed)
        return True

    def _publish(self, pushed: list[Any]) -> None:
        """Give changes to programs, and to those that follow a subscriber."""
        try:
            board = self._now.board
            if isinstance(board, MonitorBoard) and board.intake.breaks != self._now.breaks:
                self._now.breaks = board.intake.breaks
                self.delivery.restart()
            for changes in pushed:
                self.programs.publish(changes)
                self.delivery.publish(changes)
        except Exception as error:  # listeners get their whole answers instead
            self.health.failed("delivery", error)
            self.delivery.restart()

    def _deliver(self) -> None:
        if time.monotonic() < self.delivery.due:
            return
        try:
            self.delivery.turn(self._now.board)
        except Exception as error:
            self.health.failed("delivery", error)
            self.delivery.restart()

    def _follow(self, board: AnswersBoard) -> None:
        """Look at the file four times a second; an error may be gone the next time."""
        now, at = self._now, time.monotonic()
        if at - now.looked < 0.25:
            return
        now.looked, before = at, now.error
        try:
            now.dirty |= board.look()
            now.error = None
        except Exception as error:  # of any reader
            now.error = text_of(error)
            if now.error != before:
                self.health.failed("stream", error)
        now.dirty |= now.error != before

    def _frame(self, *, at_once: bool = False) -> None:
        """Publish a frame, if there is anything new and a page that listens."""
        now, at = self._now, time.monotonic()
        try:
            if at - now.sampled > 1.0 and now.board is not None:
                now.sampled, now.dirty = at, True
                kept = [one["kept"] for one in now.board.summaries()]
                now.history.append((now.speed(), None if None in kept else sum(kept)))
                now.error = now.error or now.board.oversized()
            with self._lock:
                wake, watched = list(self._wake), set(self._watched.values())
            if not wake or not now.dirty or (not at_once and at - now.framed < 1 / limits.RATE):
                return
            now.dirty, now.framed = False, min(at, max(now.framed + 1 / limits.RATE, at - 1 / limits.RATE))
            now.number += 1
            details = {what: encoded(self._detail(what)) for what in watched}
            self.frame = Frame(now.number, encoded(self.look()), details)
        except Exception as error:  # the frame before stays
            self.health.failed("frame", error)
            return
        for call in wake:
            try:
                call()
            except Exception as error:  # a listener that has just gone
                self.health.failed("listener", error)

    def _detail(self, what: Watched) -> dict[str, Any]:
        board, (name, group) = self._now.board, what
        if board is None or name not in board.names:
            return {"name": name, "gone": True}
        try:
            return board.detail(name, group)
        except Exception as error:
            if not isinstance(error, SkybandError):
                self.health.failed("frame", error)
            return {"name": name, "error": text_of(error)}
