"""What goes out to those who listen: whole frames for pages, changes for programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Watched = tuple[str, int | None]  # a query, and which of its groups


@dataclass(frozen=True)
class Frame:
    """What is shown at one moment, as JSON: the same head for all, and the details that somebody looks at."""

    number: int
    head: bytes
    details: dict[Watched, bytes]


@dataclass
class Told:
    """A program that listens to the changes of a query. `push` is called by the watch's thread."""

    query: str
    push: Callable[[list[dict[str, Any]]], None]
