"""Threads: calls of one Monitor take turns, and an answer is of the state before or after a push."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import skyband as sb
from faults.ledger import note
from faults.subjects import SUBJECTS, rows, started, subscribers
from skyband.errors import QueryError, StateError

SECONDS = 60 if int(os.environ.get("SKYBAND_FUZZ", "1")) > 1 else 2


@pytest.mark.parametrize("kind", SUBJECTS)
def test_eight_threads_on_one_monitor(kind: str) -> None:
    """Each pushes, asks, counts and takes snapshots as it likes; nothing is lost, and the state stays whole."""
    monitor = started(kind, late="accept")
    batch, end, failures = rows(0, 400), time.monotonic() + SECONDS, []
    monitor.push(batch)
    pushed = [1] * 8

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        names = list(monitor.queries)
        asked = [name for name, query in monitor.queries.items() if query.each]
        try:
            while time.monotonic() < end:
                match rng.integers(5):
                    case 0 | 1:
                        monitor.push(batch)
                        pushed[number] += 1
                    case 2:
                        monitor.answer(names[rng.integers(len(names))])
                    case 3:
                        monitor.stats()
                        for name in asked:
                            monitor.unsubscribe(name, [number])
                            monitor.subscribe(name, subscribers(number, 1))
                    case 4:
                        sb.Monitor.restore(monitor.snapshot())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert min(pushed) > 0
    note({"threads": kind, "seconds": SECONDS, "pushes": sum(pushed)})
    assert monitor._loop.state.serial == 400 * (1 + sum(pushed) - 8)
    monitor._loop.check()


def slow(entered: threading.Event, leave: threading.Event) -> Any:
    """A scoring function that waits in the middle of a push."""

    def score(columns: Any) -> Any:
        entered.set()
        assert leave.wait(30)
        return columns["x"]

    return score


def test_an_answer_waits_for_the_end_of_a_push() -> None:
    entered, leave = threading.Event(), threading.Event()
    monitor = sb.Monitor(sb.TopK(1, slow(entered, leave), sb.Last(5)))
    with ThreadPoolExecutor(2) as pool:
        pushed = pool.submit(monitor.push, {"x": [3.0, 7.0]})
        assert entered.wait(30)
        answer = pool.submit(monitor.answer)
        time.sleep(0.05)
        assert not answer.done()
        leave.set()
        assert answer.result(30)["score"].to_pylist() == [7.0]
        assert pushed.result(30).num_rows > 0


def test_calls_that_do_not_wait_raise() -> None:
    entered, leave = threading.Event(), threading.Event()
    monitor = sb.Monitor(sb.TopK(1, slow(entered, leave), sb.Last(5)), threads="raise")
    with ThreadPoolExecutor(1) as pool:
        pushed = pool.submit(monitor.push, {"x": [3.0]})
        assert entered.wait(30)
        for call in (monitor.answer, monitor.snapshot, lambda: monitor.push({"x": [1.0]})):
            with pytest.raises(StateError, match=r"another thread.*wait"):
                call()
        leave.set()
        pushed.result(30)
    assert monitor.answer()["score"].to_pylist() == [3.0]


def test_an_unknown_way_with_threads() -> None:
    with pytest.raises(QueryError, match=r"threads is 'wait' or 'raise'; got 'fast'"):
        sb.Monitor(sb.TopK(1, "x", sb.Last(5)), threads="fast")  # type: ignore[arg-type]


def test_a_scoring_function_may_read_answers_but_not_push() -> None:
    monitor: sb.Monitor
    seen: list[int] = []

    def reads(columns: Any) -> Any:
        seen.append(monitor.answer().num_rows)
        return columns["x"]

    monitor = sb.Monitor(sb.TopK(1, reads, sb.Last(5)))
    monitor.push({"x": [3.0]})
    monitor.push({"x": [4.0]})
    assert seen == [0, 1]

    def pushes(columns: Any) -> Any:
        if len(columns["x"]) > 1:
            monitor.push({"x": [9.0]})
        return columns["x"]

    monitor = sb.Monitor(sb.TopK(1, pushes, sb.Last(5)))
    with pytest.raises(StateError, match="scoring function"):
        monitor.push({"x": [1.0, 2.0]})
    assert monitor.answer()["score"].to_pylist() == [9.0]  # what the function pushed was whole


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(("during", "code"), [("scores", 1), ("commit", 2)])
def test_a_process_forked_during_a_push(during: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child has no thread that would free the lock; if state was being changed, it says so."""
    entered, leave = threading.Event(), threading.Event()
    wait = slow(entered, leave)
    monitor = sb.Monitor(sb.TopK(1, wait if during == "scores" else "x", sb.Last(5)))
    if during == "commit":
        take = monitor._loop._take
        monkeypatch.setattr(monitor._loop, "_take", lambda *args: (wait({"x": 1}), take(*args))[1])
    with ThreadPoolExecutor(1) as pool:
        pushed = pool.submit(monitor.push, {"x": [3.0]})
        assert entered.wait(30)
        if not (child := os.fork()):
            signal.alarm(20)  # a child that waits for ever is killed
            try:
                monitor.answer()
                os._exit(1)
            except StateError:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code
        leave.set()
        assert pushed.result(30).num_rows == 1
    assert monitor.answer()["score"].to_pylist() == [3.0]


def test_asyncio() -> None:
    """A push in a thread of its own leaves the event loop free."""
    monitor = sb.Monitor(sb.TopK(2, "x", sb.Last(100)))

    async def producer(number: int) -> int:
        total = 0
        for i in range(10):
            changes = await asyncio.to_thread(monitor.push, {"x": [float(100 * number + i)]})
            total += changes.num_rows
        return total

    async def main() -> list[int]:
        return await asyncio.gather(*(producer(number) for number in range(4)))

    assert sum(asyncio.run(main())) >= 2
    assert monitor.answer()["score"].to_pylist() == [309.0, 308.0]
