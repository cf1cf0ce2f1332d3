"""Messages to clients: whole frames for pages, changes for programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Watched = tuple[str, int | None]  # a query, and the number of a group


@dataclass(frozen=True)
class Frame:
    """The content at one moment, as JSON: the same head for all pages, and the details that some page shows."""

    number: int
    head: bytes
    details: dict[Watched, bytes]


@dataclass
class Subscriber:
    """A program that receives the changes of a query. `push` is called by the watch's thread."""

    query: str
    push: Callable[[list[dict[str, Any]]], None]
