"""Bad rows, a Monitor that breaks and a thread that dies: the stream goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from dashboard.browser import wait
from dashboard.served import Client, ask, parts, table
from skyband.dashboard import limits
from skyband.dashboard.boards import MonitorBoard
from skyband.dashboard.health import Health
from skyband.dashboard.intake import Intake
from skyband.dashboard.readers import Queued
from skyband.dashboard.watch import Watch
from skyband.engines.adapter import Adapter
from skyband.errors import BatchError, RunError, StateError
from skyband.monitor.monitor import Monitor

# --- rows, and a Monitor that breaks

QUERY = sb.TopK(3, by="x", window=sb.Last(50))


class Poisoned(Monitor):
    """Breaks at x = 13, for ever, as a Monitor after a commit that failed."""

    broken = False

    def push(self, batch: Any, **options: Any) -> Any:
        if not self.broken and 13.0 in batch["x"].to_pylist():
            super().push(batch.slice(0, batch.num_rows // 2))  # half of it is in
            self.broken = True
        if self.broken:
            raise StateError("this Monitor is broken. Restore it.")
        return super().push(batch, **options)


def test_a_broken_monitor_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is that of a Monitor which never saw the row that breaks it."""
    monkeypatch.setattr("skyband.dashboard.intake.Monitor", Poisoned)
    health = Health()
    intake = Intake(Poisoned({"q": QUERY}), health)
    values = np.random.default_rng(1).permutation(600) + 0.5
    values[321] = 13.0
    for start in range(0, 600, 100):
        intake.push(pa.table({"x": values[start : start + 100]}))
        if start == 100:
            intake.change(lambda monitor: monitor.add("late", sb.TopK(2, by="-x", window=sb.Last(20))))
    expected = sb.Monitor({"q": QUERY})
    expected.push({"x": values[:200]})
    expected.add("late", sb.TopK(2, by="-x", window=sb.Last(20)))
    expected.push({"x": np.delete(values[200:], 121)})
    for name in ("q", "late"):
        assert intake.monitor.answer(name).equals(expected.answer(name))
    assert intake.rejected.total() == 1 and intake.lost == 0
    report = health.report()["parts"]
    assert report["monitor"]["restarts"] >= 1 and "is broken" in report["monitor"]["last_reason"]
    assert report["rows"]["failures"] == 1


@pytest.mark.parametrize("where", ["push", "replace"])
def test_a_commit_that_fails(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Out of memory in the middle of a commit: the Monitor is broken, and the next thing is asked of a restored one."""
    rows = table(300)
    intake = Intake(sb.Monitor({"q": sb.TopK(3, by="delay", window=sb.Last(50))}, id="flight"), Health())
    intake.push(rows.slice(0, 100))
    failures = [1]

    def fail(real: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            if failures[0]:
                failures[0] -= 1
                raise MemoryError("no memory")
            return real(*given, **named)

        return call

    other = sb.TopK(2, by="delay", window=sb.Last(40), where="delay < 100")
    if where == "push":
        monkeypatch.setattr(Adapter, "take", fail(Adapter.take))
        intake.push(rows.slice(100, 200))
    else:
        monkeypatch.setattr(Adapter, "leave", fail(Adapter.leave))
        with pytest.raises(RunError, match="Everything is as before"):
            intake.change(lambda monitor: monitor.replace("q", other))
        intake.push(rows.slice(100, 200))
    expected = sb.Monitor({"q": sb.TopK(3, by="delay", window=sb.Last(50))}, id="flight")
    expected.push(rows)
    assert intake.monitor.answer("q").equals(expected.answer("q"))
    assert intake.rejected.total() == 0 and intake.lost == 0
    assert intake.health.report()["parts"]["monitor"]["restarts"] == 1


def test_changes_come_once_when_a_row_is_left_out() -> None:
    class Strict(Monitor):
        def push(self, batch: Any, **options: Any) -> Any:
            if 13.0 in batch["x"].to_pylist():
                raise BatchError("row 3 is bad. Leave it out.")
            return super().push(batch, **options)

    intake, expected = Intake(Strict({"q": QUERY}), Health()), sb.Monitor({"q": QUERY})
    values = [1.0, 13.0, 5.0, 2.0, 13.0, 13.0, 9.0, 4.0]
    found = [row for changes in intake.push(pa.table({"x": values})) for row in changes.to_pylist()]
    assert found == expected.push({"x": [value for value in values if value != 13.0]}).to_pylist()
    assert intake.rejected == {"row 3 is bad. Leave it out.": 3}


def test_too_many_bad_rows_are_rejected_together(monkeypatch: pytest.MonkeyPatch) -> None:
    class Strict(Monitor):
        pushes = 0

        def push(self, batch: Any, **options: Any) -> Any:
            Strict.pushes += 1
            if batch.num_rows:
                raise BatchError("all are bad. Leave them out.")
            return super().push(batch, **options)

    intake = Intake(Strict({"q": QUERY}), Health())
    assert intake.push(pa.table({"x": np.arange(20_000.0)})) == [] and Strict.pushes < 400
    assert intake.rejected.total() == 20_000


def test_without_a_snapshot_it_starts_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unsaved(Monitor):
        def snapshot(self) -> bytes:
            raise MemoryError

        def push(self, batch: Any, **options: Any) -> Any:
            if 13.0 in batch["x"].to_pylist():
                raise MemoryError
            return super().push(batch, **options)

    intake, health = Intake(Unsaved({"q": QUERY}), health := Health()), health
    intake.push(pa.table({"x": [1.0, 2.0]}))
    intake.push(pa.table({"x": [13.0]}))
    intake.push(pa.table({"x": [3.0]}))
    assert intake.monitor.answer("q")["score"].to_pylist() == [3.0] and intake.lost == 2
    assert health.report()["parts"]["snapshot"]["failures"] >= 2


def test_a_large_state_has_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SNAPSHOT_BYTES", 100)
    board = MonitorBoard(sb.Monitor({"q": QUERY}))
    for start in range(0, 60, 20):
        board.intake._due = 0.0
        board.push(pa.table({"x": np.arange(start, start + 20.0)}), set())
    assert board.intake._snapshot is None
    monkeypatch.setattr(board.monitor, "push", lambda rows: 1 / 0)
    board.push(pa.table({"x": [1.0, 2.0]}), set())
    assert board.answer("q", None, 9)["rows"] == [[1, 1, 2.0], [2, 0, 1.0]]
    assert board.head()["rejected"] == {"lost when the Monitor was restored": 60}


# --- the supervisor


def test_the_supervisor_starts_the_loop_again(fresh: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    client, watch = fresh
    step, left = watch._step, [3]

    def fail() -> bool:
        left[0] -= 1
        if left[0] >= 0:
            raise SystemExit("a library ends the thread")
        return step()

    monkeypatch.setattr(watch, "_step", fail)
    wait(lambda: left[0] < 0, 20)
    assert client.get("/api/state") == {"stream": None, "queries": []}
    found = parts(client)["watch"]
    assert found["restarts"] == found["failures"] == 3 and "a library ends the thread" in found["last_reason"]


def test_health_does_not_wait(fresh: tuple[Client, Watch]) -> None:
    """While the thread is busy with something long, and says for how long."""
    client, watch = fresh
    future = watch.submit(time.sleep, 3)
    time.sleep(0.5)
    begin = time.monotonic()
    report = client.get("/api/health")
    assert time.monotonic() - begin < 2 and report["thread"]["busy_s"] > 0.3 and not future.done()
    future.result(20)


def test_a_listener_that_fails(fresh: tuple[Client, Watch]) -> None:
    client, watch = fresh
    handle = watch.listen(lambda: 1 / 0)  # type: ignore[arg-type]
    with client.events("/api/events") as events:
        assert next(events)[0] == "frame"
    watch.leave(handle)
    assert parts(client)["listener"]["failures"] >= 1


def test_a_reader_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a Kafka topic, which knows where it is; a pipe cannot."""
    monkeypatch.setattr("skyband.dashboard.readers._PAUSE", 0.01)

    class Unsteady(Queued):
        attempts, place = 2, 0

        def _pieces(self) -> Iterator[Any]:
            while self.place < 6:
                self.place += 1
                if self.place % 2:
                    raise OSError(f"no broker at {self.place}")
                yield b'{"x": %d}\n' % self.place, [self.place]

    health = Health()
    stream = Unsteady("unsteady")
    stream.failed = lambda error: health.restarted("reader", error)
    found: list[Any] = []
    while not stream.ended:
        rows = stream.read(10)
        found += rows["x"].to_pylist() if rows is not None else []
    assert found == [2, 4, 6]
    Unsteady.attempts = 0
    broken = Unsteady("broken")
    with pytest.raises(RunError, match="no broker at 1"):
        wait(lambda: broken.read(1), 10)


def test_queries_that_keep_too_much(fresh: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing more is read, until one is dropped."""
    client, _ = fresh
    monkeypatch.setattr(limits, "STATE", 1_000_000)
    client.send("PUT", "/api/stream", {"stream": "uniform", "rate": 50_000, "paused": True})
    ask(client, "all", "SELECT * FROM s ABOVE -1 BY x1 WINDOW 500000 ROWS")
    ask(client, "few", "SELECT * FROM s ORDER BY x1 LIMIT 2 WINDOW 100 ROWS")
    client.send("PATCH", "/api/stream", {"paused": False})
    assert "'all' keeps most" in wait(lambda: client.get("/api/state")["stream"]["error"])
    client.send("DELETE", "/api/queries/all")
    rows = client.get("/api/state")["stream"]["rows"]
    wait(lambda: client.get("/api/state")["stream"]["rows"] > rows)
    time.sleep(1.5)
    assert client.get("/api/state")["stream"]["error"] is None
