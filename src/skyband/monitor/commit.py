"""Commit: the part of a call that changes state. It happens whole, or the state says that it is broken.

A call first does everything that can fail (conversion, validation, scores), which changes nothing. While it commits,
signals wait until its end (a second Ctrl-C does not). If it fails all the same (out of memory, an interrupt from
elsewhere), the state cannot be trusted, and every later call is a StateError.
"""

from __future__ import annotations

# `signal` itself turns every number into an enum, which costs 15 us a push instead of 2
import _signal as signal  # type: ignore[import-not-found]
import threading
from types import TracebackType
from typing import Any

from skyband.errors import StateError

#: Those that a program may answer by an exception, if it has set a handler; Python itself does for SIGINT.
_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
]


class Commit:
    """A context in which state changes; within another one it is part of that."""

    def __init__(self) -> None:
        self.broken: str | None = None  # what failed half way; while a commit runs: what runs
        self.number = 0  # of commits so far
        self._depth = 0
        self._holds = False  # whether signals wait for the end of this one
        self._handlers: dict[int, Any] = {}  # of the signals that wait, before
        self._arrived: list[int] = []

    def __enter__(self) -> None:
        if not self._depth:
            self._hold_signals()
            self.broken = "a call that never ended"
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._depth > 1:
            self._depth -= 1
            return
        self._depth = 0  # first: an interrupt from here on leaves no commit that seems to go on
        self.number += 1
        self.broken = None if kind is None else f"{kind.__name__}: {error}" if str(error) else kind.__name__
        self._release_signals()

    def require_whole(self) -> None:
        """Raise a StateError if a commit has failed."""
        if self.broken is not None:
            raise StateError(
                f"an earlier call failed after it had begun to change this Monitor's state ({self.broken}), so the "
                "state cannot be trusted. Go on from the last snapshot, Monitor.restore(data), and push again what "
                "came after it."
            )

    def forked(self) -> None:
        """In a new process: no thread of it is in this commit, so signals do not wait for its end."""
        self._arrived = []
        self._release_signals()

    def _hold_signals(self) -> None:
        """Let the signals with a handler in Python wait. Only the main thread runs such handlers."""
        self._holds = threading.current_thread() is threading.main_thread()
        if not self._holds:
            return
        found = {number: signal.getsignal(number) for number in _SIGNALS}
        held = {number for number, handler in found.items() if handler == self._wait}  # an interrupt left them behind
        known = {number: self._handlers[number] if number in held else found[number] for number in found}
        self._handlers = {number: handler for number, handler in known.items() if callable(handler)}
        for number in self._handlers:
            signal.signal(number, self._wait)

    def _wait(self, number: int, frame: Any) -> None:
        """Note a signal; the second of its kind does not wait: then the commit ends here, and the state is broken."""
        if self._depth and self._holds and number not in self._arrived:
            self._arrived.append(number)
            return
        handler = self._handlers[number]
        signal.signal(number, handler)
        handler(number, frame)

    def _release_signals(self) -> None:
        if not self._holds:
            return
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        arrived, self._arrived, self._holds = self._arrived, [], False
        _raise_all(arrived)


def _raise_all(numbers: list[int]) -> None:
    """Raise these signals, each whatever the handlers of those before it raise."""
    if numbers:
        try:
            signal.raise_signal(numbers[0])
        finally:
            _raise_all(numbers[1:])
