"""Interrupts: they wait for the end of a commit, all of them come, and none leaves a commit or a lock behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

import skyband as sb
from faults.subjects import rows
from faults.test_injection import Fault
from kinds import KINDS
from skyband.errors import StateError
from skyband.monitor.commit import Commit


def test_an_interrupt_waits_for_the_end_of_a_commit(monkeypatch: pytest.MonkeyPatch, usual_interrupts: None) -> None:
    """Ctrl-C while state changes: the push is taken whole, then the interrupt comes."""
    monitor = KINDS["topk"].monitor()
    monitor.push(rows(0, 40))
    whole = sb.Monitor.restore(monitor.snapshot())
    whole.push(rows(40, 20))
    commit = monitor._loop.state.commit
    taken = monitor._loop._take

    def interrupted(*args: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return taken(*args)

    monkeypatch.setattr(monitor._loop, "_take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        monitor.push(rows(40, 20))
    assert commit.broken is None
    assert monitor.snapshot() == whole.snapshot()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.fixture
def usual_interrupts() -> Iterator[None]:
    """Ctrl-C as in a new process: a Spark session of another test has a handler of its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_second_interrupt_does_not_wait(monkeypatch: pytest.MonkeyPatch, usual_interrupts: None) -> None:
    monitor = KINDS["topk"].monitor()
    monitor.push(rows(0, 40))

    def interrupted(*args: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the second should have ended it")

    monkeypatch.setattr(monitor._loop, "_take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        monitor.push(rows(40, 20))
    with pytest.raises(StateError, match=r"KeyboardInterrupt.*restore\("):
        monitor.answer()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_all_signals_that_waited_come(usual_interrupts: None, heard: list[int]) -> None:
    """The handler of the first may raise."""

    def both() -> None:
        with Commit():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGUSR1)

    with pytest.raises(KeyboardInterrupt):
        both()
    assert heard == [signal.SIGUSR1]


def test_signals_come_after_an_interrupt_at_any_line_of_a_commit(usual_interrupts: None, heard: list[int]) -> None:
    """One may wait for the end of a commit that an interrupt ended in its last lines, and that says so."""
    with Fault(0, KeyboardInterrupt) as fault, Commit():
        pass
    assert fault.lines > 20
    for at in range(1, fault.lines + 1):
        commit = Commit()
        with suppress(KeyboardInterrupt), Fault(at, KeyboardInterrupt), commit:
            pass
        with suppress(ZeroDivisionError), commit:
            raise ZeroDivisionError
        assert commit.broken is not None
        heard.clear()
        for _ in range(3):
            signal.raise_signal(signal.SIGUSR1)
        assert len(heard) >= 3 - (commit.broken == "a call that never ended"), at


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """The signals that a handler for SIGUSR1 has been called with."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_during_a_commit_hears_signals(usual_interrupts: None) -> None:
    monitor, codes = KINDS["topk"].monitor(), []

    def fork() -> None:
        if not (child := os.fork()):
            with suppress(BaseException):
                try:
                    signal.raise_signal(signal.SIGINT)
                except KeyboardInterrupt:
                    os._exit(3)
            os._exit(1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with monitor._loop.state.commit:
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert codes == [3]


class Interrupting:
    """A lock during whose first `acquire` Ctrl-C comes."""

    def __init__(self, lock: Any) -> None:
        self.acquired, self.lock = 0, lock
        self.release, self._is_owned = lock.release, lock._is_owned

    def acquire(self, blocking: bool) -> bool:
        self.acquired += 1
        found: bool = self.lock.acquire(blocking=blocking)
        if self.acquired == 1:
            raise KeyboardInterrupt
        return found


def test_an_interrupt_leaves_no_lock_behind() -> None:
    """Where calls raise instead of waiting, too."""
    monitor = KINDS["topk"].monitor(threads="raise")
    monitor._lock = Interrupting(monitor._lock)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        monitor.stats()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(monitor.stats).result(30)["arrivals"] == 0


def test_a_commit_in_another_thread_leaves_signals_alone(usual_interrupts: None) -> None:
    monitor = KINDS["topk"].monitor()
    thread = threading.Thread(target=lambda: monitor.push(rows(0, 40)))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert monitor.stats()["arrivals"] == 40
