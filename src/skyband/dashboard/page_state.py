"""The state of a watch: the stream, its board and pace, and what a page shows of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from skyband.dashboard.boards import MonitorBoard
from skyband.dashboard.health import Health
from skyband.dashboard.pace import Pace
from skyband.dashboard.spark_output import AnswersBoard
from skyband.dashboard.streams import Stream
from skyband.dashboard.values import plain

Board = MonitorBoard | AnswersBoard
_COLUMNS = 500  # that a page shows
_HISTORY = 120  # samples of throughput and objects kept


@dataclass
class State:
    """State that only the watch's thread touches."""

    stream: Stream | None = None
    board: Board | None = None
    chosen: dict[str, Any] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    looked: float = 0.0  # when the output of a pipeline was last looked at
    error: str | None = None
    ended: bool = False
    waiting: Any = None  # rows that could not be pushed
    history: deque[tuple[float, int | None]] = field(default_factory=lambda: deque(maxlen=_HISTORY))
    sampled: float = 0.0
    breaks: int = 0  # of the board's Monitor, as far as listeners know
    number: int = 0
    dirty: bool = True
    framed: float = 0.0

    def look(self, health: Health) -> dict[str, Any]:
        """All that a page shows except the details."""
        found: dict[str, Any] = {"stream": None, "queries": []}
        if self.board is not None:
            found["stream"] = self._stream(self.board, health)
            found["queries"] = self.board.summaries()
        return found

    def _stream(self, board: Board, health: Health) -> dict[str, Any]:
        columns = self.stream.columns if self.stream is not None else None
        return {
            "name": self.chosen["stream"],
            "title": self.stream.title if self.stream is not None else self.chosen["stream"],
            "roles": {role: self.chosen.get(role) for role in ("id", "time", "keep", "part", "value")},
            "columns": None if columns is None else [[one.name, str(one.type)] for one in list(columns)[:_COLUMNS]],
            "fixed": board.fixed,
            "paced": self.stream is not None and self.stream.paced,
            "paused": self.pace.paused,
            "rate": self.pace.rate,
            "ended": self.ended,
            "error": self.error,
            "failures": health.summary(),
            "rows": self.pace.rows,
            "speed": self.speed(),
            "history": [plain(list(sample)) for sample in self.history],
            **self._head(board),
        }

    def _head(self, board: Board) -> dict[str, Any]:
        """The counts of the board, and of the lines that the stream rejected."""
        head, rejected = board.head(), {} if self.stream is None else self.stream.rejected
        return head | {"rejected": {**head["rejected"], **rejected}}

    def speed(self) -> float:
        return 0.0 if self.ended else self.pace.speed()
