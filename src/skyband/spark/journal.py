"""The journal of subscriptions: a large state of which every trigger changes everything, stored as what has happened.

The state store has a copy of a query set's state as some trigger left it, and what the triggers since then took, which
is much smaller. A worker keeps its loop between triggers, and lends it to the others (loans.py), if its version is the
last that the store lists. If nobody has that one, a worker takes again what its own loop has missed, or reads the copy.
Versions are random, so that whatever a failed attempt of a task has left in a worker is in no list. A trigger
costs what its rows cost, whatever the size of the state.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.monitor.archive import pack, unpack
from skyband.monitor.snapshot import cut, describe
from skyband.monitor.state import State
from skyband.monitor.subscriptions import close_gaps
from skyband.query.algorithms import algorithm
from skyband.query.kinds import Query
from skyband.spark.compression import compressed
from skyband.spark.directory import NEVER, inventory
from skyband.spark.forget import SetLoop
from skyband.spark.plan import QuerySet
from skyband.spark.subscriptions import follow

FACTS = -1  # the cell with the facts of the copy
_STEPS = -2  # of the first step; then -3, ...
AGAIN = 4  # steps that a worker may take again before the state is copied, and that are kept for other workers
MOST = 64  # steps since the copy
_SMALL = 4  # a state less than so many times as large as a step is copied instead


@dataclass
class Step:
    """A trigger that the state has taken."""

    version: str  # of the state after it
    cell: int | None  # what it took is stored there; None: nowhere, the copy is later
    bytes: int = 0


@dataclass
class Journal:
    """The list of versions, as the head of a shard has it."""

    steps: list[Step] = field(default_factory=list)
    copy: str = ""  # the version of the copy
    size: int = 0  # its bytes
    has_cell: bool = False  # or only facts

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Journal:
        return cls([Step(*step) for step in stored["steps"]], stored["copy"], stored["size"], stored["has_cell"])

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        steps = [[step.version, step.cell, step.bytes] for step in self.steps]
        return {"steps": steps, "copy": self.copy, "size": self.size, "has_cell": self.has_cell}

    @property
    def version(self) -> str:
        return self.steps[-1].version

    def since(self, version: str) -> list[Step] | None:
        """The steps after a version; None: it is not, or no longer, listed."""
        place = next((i for i, step in enumerate(self.steps) if step.version == version), None)
        return None if place is None else self.steps[place + 1 :]

    def needs(self, size: int, again: int) -> tuple[bool, bool]:
        """How a step of so many bytes is stored, where so many were taken again: only as a copy; with a copy."""
        alone = not self.steps or self.is_small(size)
        return alone, alone or self.is_full(size, again)

    def is_full(self, size: int, again: int) -> bool:
        """Whether the state is to be copied after a step of so many bytes, where so many were taken again."""
        since = self.since(self.copy) or []
        return again > AGAIN or len(since) >= MOST or sum(step.bytes for step in since) + size > self.size

    def is_small(self, size: int) -> bool:
        """Whether the state is too small for steps of so many bytes."""
        return _SMALL * size > self.size

    def add(self, version: str, size: int) -> int:
        """List a step of so many bytes; returns its cell."""
        used = {step.cell for step in self.steps}
        cell = next(place for place in count(_STEPS, -1) if place not in used)
        self.steps.append(Step(version, cell, size))
        return cell

    def begin(self, version: str) -> list[int]:
        """List a version that only a copy has; returns the cells of the steps before it."""
        old, self.steps = self.steps, [Step(version, None)]
        return _cells(old)

    def copied(self, cell: int, facts: int) -> list[int]:
        """The last version has been copied, in so many bytes; returns the cells of steps that nobody needs any more."""
        self.copy, self.size, self.has_cell = self.version, cell + facts, cell > 0
        old, self.steps = self.steps[: -AGAIN - 1], self.steps[-AGAIN - 1 :]
        return _cells(old)


def new_version() -> str:
    """A name that no other state has."""
    return secrets.token_hex(8)


def _cells(steps: list[Step]) -> list[int]:
    return [step.cell for step in steps if step.cell is not None]


def has_journal(query_set: QuerySet, queries: Mapping[str, Query]) -> bool:
    """Whether a journal is kept: for subscriptions without `per`, if a step that is taken again has the same effect."""
    if query_set.per or query_set.blocks or query_set.root or not any(query.each for query in queries.values()):
        return False
    return all(_repeats(query) for query in queries.values())


def _repeats(query: Query) -> bool:
    """Whether the same rows always have the same effect: an exact algorithm, and no function of the user's."""
    called = getattr(query, "by", None) is not None and "by" not in query.reads
    return not called and (query.algorithm == "auto" or algorithm(query.kind, query.algorithm).exact)


def step_bytes(rows: Any, clock: Any, joining: Mapping[str, Any], order: Mapping[str, tuple[str, ...]]) -> bytes:
    """What a trigger takes: rows (an empty dict: none), the clock (a table of one row, or None), and subscriptions."""
    parts = {f"join.{name}": table for name, table in joining.items()}
    if isinstance(rows, pa.Table):
        parts["rows"] = rows
    if clock is not None:
        parts["clock"] = clock
    return pack({"joining": {name: order[name] for name in joining}}, parts)


def take_again(loop: SetLoop, data: bytes) -> list[Any]:
    """Bring a loop to where it is after a step; returns the changes, which may have been reported already."""
    facts, parts = unpack(data)
    tables = []
    for name, order in facts["joining"].items():
        tables += follow(loop.loop, name, tuple(order), [parts[f"join.{name}"]])
    clock = parts["clock"].column("clock")[0] if "clock" in parts else None
    return [*tables, *loop.push(parts.get("rows", {}), clock, more=False)]


def summary(state: State) -> dict[str, Any]:
    """What metrics need of the facts of a state."""
    late = [{"late": adapter.numbering.late.tolist()} for adapter in state.standing()]
    return {"order": list(state.adapters), "homes": late, "counters": state.counters, "serial": state.serial}


@dataclass(frozen=True)
class Left:
    """What a trigger leaves of a loop for the store, besides the step."""

    summary: dict[str, Any]
    due: int  # nothing expires before this
    groups: int
    objects: int
    bytes: int = 0  # of the copy, uncompressed
    copy: tuple[bytes, bytes] | None = None  # its facts and its cell

    @classmethod
    def of(cls, facts: dict[str, Any], copy: tuple[bytes, bytes] | None) -> Left:
        """The inverse of `facts`."""
        return cls(**facts, copy=copy)

    def facts(self) -> dict[str, Any]:
        """All but the copy, for JSON."""
        return {name: getattr(self, name) for name in ("summary", "due", "groups", "objects", "bytes")}


def leave(loop: SetLoop, *, copies: bool) -> Left:
    """What is to be stored of a loop; copies: all of it."""
    state = loop.state
    if copies:
        close_gaps(state)
    (groups,) = state.groups.values()
    kept, dues, sizes = inventory(state, groups, loop.query_set)
    figures = int(dues[kept].min(initial=NEVER)), int(kept.sum()), int(sizes[kept].sum())
    if not copies:
        return Left(summary(state), *figures)
    chosen = np.flatnonzero(kept)
    (cell,) = cut(state, groups, chosen, np.array([0, len(chosen)]))
    facts = pack(*describe(state))
    return Left(summary(state), *figures, bytes=len(cell), copy=(facts, compressed(cell)))
