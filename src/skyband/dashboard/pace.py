"""The pace of a stream: the rows that may be read now, and the rows that were read recently.

A push should take at most a tenth of a second, so that requests do not wait: batches shrink where pushes are slow, as
far as that makes them shorter. (With 100,000 subscriptions a push of one row takes as long as one of a hundred.)
"""

from __future__ import annotations

import time
from collections import deque

from skyband.dashboard import limits

_PUSH = 0.1  # seconds that a push may take
_FIRST = 50  # rows of a push after many have subscribed


class Pace:
    """Rows a second as asked for (`rate`, None: as fast as possible) and as measured."""

    def __init__(self, rate: float | None = None, *, paused: bool = False) -> None:
        self.rate, self.paused = rate, paused
        self.rows = 0  # read so far
        self._owed = 0.0  # rows that may be read now
        self._last = time.monotonic()
        self._batch = limits.BATCH  # rows of a push, at most
        self._least = 1e9  # seconds of a push that fewer rows do not make shorter, about
        self._recent: deque[tuple[float, int]] = deque(maxlen=100)

    def set(self, *, paused: bool | None = None, rate: float | str | None = "") -> None:
        if paused is not None:
            self.paused = paused
        if not isinstance(rate, str):
            self.rate = rate
        self._owed, self._last = 0.0, time.monotonic()

    def restart(self) -> None:
        """Begin with small pushes: the first rows change the answers of all that have just subscribed."""
        self._batch = min(self._batch, _FIRST)

    def allowed(self, paced: bool) -> int:
        """The number of rows that may be read now, of a stream that can be read at any rate or not."""
        at = time.monotonic()
        if self.rate is None or not paced:
            return self._batch
        self._owed = min(self._owed + (at - self._last) * self.rate, max(1.0, self.rate / 2))
        self._last = at
        if self._owed < 1 or (self._owed < self.rate / 40 and self.rate > 40):  # some 40 pushes a second
            return 0
        return min(int(self._owed), self._batch)

    def read(self, rows: int, seconds: float) -> None:
        """Note that rows were read and pushed within so many seconds."""
        self.rows += rows
        self._owed = max(0.0, self._owed - rows)
        self._least = min(seconds, 1.05 * self._least)
        if seconds > 2 * max(_PUSH, 2 * self._least) and rows > 1:
            self._batch = max(1, rows // 2)
        elif seconds < max(_PUSH / 2, 1.5 * self._least):
            self._batch = min(limits.BATCH, 2 * self._batch)
        at = time.monotonic()
        if not self._recent or at - self._recent[-1][0] > 0.03:
            self._recent.append((at, self.rows))

    def speed(self) -> float:
        """Rows a second, recently."""
        at = time.monotonic()
        first = next((point for point in self._recent if at - point[0] < 2.0), None)
        return 0.0 if first is None or self.paused else round((self.rows - first[1]) / max(at - first[0], 0.05), 1)
