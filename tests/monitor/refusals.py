"""Queries, and assertions about errors and answers, shared by the tests of bad input."""

from typing import Any

import pytest

import skyband as sb
from skyband.errors import SkybandError

Row = dict[str, Any]
TOP = sb.TopK(k=2, by="x", window=sb.Last(3))
TIMED = sb.TopK(k=2, by="x", window=sb.Last(span=10))


def brief(changes: Any) -> list[str]:
    """'+3' when the object with score 3 enters, '-3' when it leaves."""
    return [f"{'+' if row['diff'] > 0 else '-'}{row['score']:g}" for row in changes.to_pylist()]


def scores(monitor: sb.Monitor, name: str | None = None) -> list[float]:
    listed: list[float] = monitor.answer(name).column("score").to_pylist()
    return listed


def says(error: BaseException, *words: str) -> None:
    """The error is one of skyband's own, and its message holds these words."""
    text = str(error)
    assert isinstance(error, SkybandError)
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"


def refused(monitor: sb.Monitor, batch: Any, kind: type[SkybandError], *words: str) -> None:
    """The batch is refused with these words, and leaves no trace."""
    before = monitor.snapshot()
    with pytest.raises(kind) as caught:
        monitor.push(batch)
    says(caught.value, *words)
    assert monitor.snapshot() == before, "a refused batch changes nothing"
