"""Rows of sessions: which of them arrive, by the sessions of their groups that the engine knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.contract import NEVER
from skyband.engines.numbering import Numbered
from skyband.query.windows import Session
from skyband.tables.push import Push
from skyband.tables.scores import Validated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class SessionRows(Adapter):
    """The part of an adapter that numbers rows of sessions; its engine says which are too late."""

    def number(self, push: Push, validated: Validated, codes: Ints) -> Numbered:
        """Rows that are too late for the sessions of their groups are no arrivals."""
        if not isinstance(self.example.window, Session) or push.times is None or not len(codes):
            return super().number(push, validated, codes)
        assert push.clocks is not None
        rows, late = np.flatnonzero(validated.accepted), np.zeros(len(codes), np.bool_)
        if self.options.late == "drop":
            late[rows] = push.times[rows] < push.clocks[rows]
            rows = rows[~late[rows]]
        machine: Any = self.engine
        total = self.groups.total
        late[rows] = machine.late(codes[rows], push.times[rows], push.clocks[rows], total)
        return self.numbering.number(push, validated.accepted, codes, accept_late=True, late=late)

    def timely(self, accepted: Bools, ages: Ints, unit: int | None) -> Bools:
        return accepted if isinstance(self.example.window, Session) else super().timely(accepted, ages, unit)

    def remembered(self) -> Ints:
        """By group: until when what is known of it, even without an object, decides about a late row.

        The session that is open ends one gap after its last row, and a row that belongs to one that has ended is too
        late in any case one gap after the end.
        """
        until = np.full(self.groups.total, -NEVER)
        if isinstance(self.example.window, Session) and self.engine is not None:
            machine: Any = self.engine
            sessions, gap = machine.sessions, machine.gap
            ends = np.where(sessions["last"] < NEVER, sessions["last"] + gap, sessions["ended"])
            until[: len(sessions)] = np.minimum(ends, NEVER - gap) + gap
        return until
