"""Counts of failures and restarts, for /api/health and for the page. Safe to use from any thread."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

_LONGEST = 500  # characters of a reason


class Health:
    """Failures by part of the server, and the last reason of each. No part ends because of one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin = time.monotonic()
        self._failures: Counter[str] = Counter()
        self._restarts: Counter[str] = Counter()
        self._last: dict[str, tuple[str, float]] = {}

    def failed(self, part: str, reason: object, *, count: int = 1) -> None:
        """Count a failure of a part of the server."""
        with self._lock:
            self._failures[part] += count
            self._last[part] = (text_of(reason), time.time())

    def restarted(self, part: str, reason: object) -> None:
        """Count a failure after which the part was started again."""
        self.failed(part, reason)
        with self._lock:
            self._restarts[part] += 1

    def summary(self) -> dict[str, Any]:
        """The number of failures, and the last reason, for the page. (Rejected rows have counts of their own.)"""
        with self._lock:
            parts = [part for part in self._failures if part not in ("rows", "connection")]
            last = max((self._last[part] for part in parts), key=lambda reason: reason[1], default=(None, 0.0))
            return {"count": sum(self._failures[part] for part in parts), "last": last[0]}

    def report(self) -> dict[str, Any]:
        with self._lock:
            parts = {
                part: {
                    "failures": count,
                    "restarts": self._restarts[part],
                    "last_reason": self._last[part][0],
                    "last_at": datetime.fromtimestamp(self._last[part][1], UTC).isoformat(" ", "seconds"),
                }
                for part, count in sorted(self._failures.items())
            }
        return {"uptime_s": round(time.monotonic() - self._begin, 1), "parts": parts}


def text_of(reason: object) -> str:
    """An error as one line: messages of our own as they are, others with their type."""
    from skyband.errors import SkybandError

    text = str(reason)
    if isinstance(reason, BaseException) and not isinstance(reason, SkybandError):
        text = f"{type(reason).__name__}: {text}"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
