"""One query's ranking of the objects of a view: the k best of each group, as last reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skyband.engines.contract import Bools, Changes, Floats, Ints
from skyband.engines.groups.kernels.ranks import CHANGE, HEAD, INSIDE, RANK, members, rebuild, take_events
from skyband.engines.groups.kernels.state import Events, Live, Records
from skyband.engines.groups.measures import Scores, best
from skyband.engines.groups.store import chosen, longer
from skyband.query.expressions import Operand


@dataclass(frozen=True)
class Moves:
    """Changes as records, with the values of `select`."""

    records: Records
    shown: tuple[Operand, ...]


class Ranking:
    """The k best of each group."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.ranks, self.heads = np.zeros(0, RANK), np.zeros(0, HEAD)
        self.log = np.zeros(1, np.int64)
        self.held: list[Operand] = []  # by slot: the values of `select` as last ranked

    def grow(self, slots: int, groups: int) -> None:
        """Make room for so many objects and groups."""
        more = slots - len(self.ranks)
        if more > 0:
            self.ranks = longer(self.ranks, more)
            self.log = np.concatenate([self.log[:1], np.zeros(len(self.ranks), np.int64)])
            self.held = [_wider(one, more) for one in self.held]
        more = groups - len(self.heads)
        if more > 0:
            heads = np.zeros(more, HEAD)
            heads["inside"] = heads["outside"] = -1
            self.heads = np.concatenate([self.heads, heads])

    def live(self, slots: Records, room: Records, measure: int = -1, sign: float = 1.0) -> Live:
        """The ranking as kernels keep it up, with room for changes."""
        return Live(self.ranks, self.heads, slots, self.log, room, self.k, measure, sign)

    def take(self, slots: Records, events: Events, size: int, scores: Scores, room: Records) -> Moves:
        """Rank objects anew, event by event; returns the changes, which are written into `room` first."""
        count = take_events(self.live(slots, room), events, scores.keys)
        records = room[:count].copy()
        return Moves(records, self._shown(records, events.slot[:size], scores.shown))

    def _shown(self, records: Records, slots: Any, shown: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """The values of `select` for these changes; those of the events are held for later ones."""
        if not shown or not len(slots):  # without an event nothing tells what a column holds
            return shown
        self._hold_kinds(shown)
        found = tuple(
            _either(held, new, records["slot"], records["event"]) for held, new in zip(self.held, shown, strict=True)
        )
        for held, new in zip(self.held, shown, strict=True):
            _store(held, slots, new)
        self.ranks["event"][slots] = -1
        return found

    def _hold_kinds(self, shown: tuple[Operand, ...]) -> None:
        if not self.held:
            size = len(self.ranks)
            self.held = [Operand(np.zeros(size, one.values.dtype), np.zeros(size, np.bool_)) for one in shown]

    # --- from keys alone

    def set_keys(self, slots: Ints, events: Events, scores: Scores) -> None:
        """Know these objects with these keys, and no others; nothing is inside. What has been shown stays."""
        shown = self.ranks["shown"].copy()
        self.ranks = np.zeros(len(self.ranks), RANK)
        self.ranks["shown"], self.ranks["key"], self.ranks["event"] = shown, np.nan, -1
        for name in ("stamp", "serial", "decider"):
            self.ranks[name][slots] = getattr(events, name)[: len(slots)]
        self.ranks["key"][slots] = scores.keys
        self.held = []
        if scores.shown and len(slots):
            self._hold_kinds(scores.shown)
            for held, new in zip(self.held, scores.shown, strict=True):
                _store(held, slots, new)

    def rebuild(self, slots: Records) -> None:
        """Build the heaps again; the best take free places inside."""
        self.log[0] = 0
        rebuild(self.ranks, self.heads, slots, self.k, self.log)

    def keep(self, kept: Ints, slots: Records, groups: int) -> None:
        """Know only these slots, under the numbers 0, 1, ..., and so many groups; all others are no answers."""
        self.ranks = chosen(self.ranks, kept)
        self.log = np.zeros(1 + len(self.ranks), np.int64)
        self.held = [taken(one, kept) for one in self.held]
        self.heads = np.zeros(groups, self.heads.dtype)
        self.rebuild(slots)

    # --- answers

    def members(self, groups: Ints) -> tuple[Ints, Ints]:
        """The objects inside the answers of these groups, in any order, and their groups."""
        size = int(self.heads["size"][groups].sum())
        found, owners = np.empty(size, np.int64), np.empty(size, np.int64)
        members(self.ranks, self.heads, groups, found, owners)
        return found, owners

    def best(self, groups: Ints, events: Events, scores: Scores, k: int, *, whole: bool) -> tuple[Ints, Ints]:
        """The answer of each of these groups for a smaller k, best first, and its ranks; whole: of all objects."""
        return best(groups, scores.keys, events.stamp, events.serial, k)

    @property
    def inside(self) -> Bools:
        """By slot: is the object in the answer?"""
        inside: Bools = self.ranks["place"] == INSIDE
        return inside

    def reported(self, slots: Ints) -> tuple[Floats, Ints, tuple[Operand, ...]]:
        """Keys, deciding rows and `select` of objects, as last reported."""
        return self.ranks["key"][slots], self.ranks["decider"][slots], tuple(taken(one, slots) for one in self.held)

    @property
    def nbytes(self) -> int:
        held = sum(int(one.values.nbytes) for one in self.held)
        return int(self.ranks.nbytes + self.heads.nbytes + self.log.nbytes) + held


def no_changes(size: int) -> Records:
    """Room for the changes of so many events: each makes at most one object leave and one enter."""
    return np.empty(2 * size, CHANGE)


def joined(moves: list[Moves]) -> Moves:
    """Moves one after another."""
    moves = [one for one in moves if len(one.records)] or moves[:1]
    if len(moves) == 1:
        return moves[0]
    records = np.concatenate([one.records for one in moves]) if moves else np.empty(0, CHANGE)
    filled = [one.shown for one in moves if one.shown]
    return Moves(records, tuple(whole(list(columns)) for columns in zip(*filled, strict=True)))


def whole(columns: list[Operand]) -> Operand:
    """Columns one after another."""
    valid = None
    if any(one.valid is not None for one in columns):
        valid = np.concatenate([_valid(one) for one in columns])
    return Operand(np.concatenate([one.values for one in columns]), valid)


def _valid(one: Operand) -> Bools:
    return np.ones(len(one.values), np.bool_) if one.valid is None else one.valid


def _wider(one: Operand, more: int) -> Operand:
    valid = np.concatenate([_valid(one), np.zeros(more, np.bool_)])
    return Operand(np.concatenate([one.values, np.zeros(more, one.values.dtype)]), valid)


def taken(one: Operand, places: Ints) -> Operand:
    """A column at these places."""
    return Operand(one.values[places], None if one.valid is None else one.valid[places])


def _store(held: Operand, slots: Any, new: Operand) -> None:
    """Write values by slot; the last of a slot stays."""
    assert held.valid is not None
    held.values[slots] = new.values
    held.valid[slots] = True if new.valid is None else new.valid


def _either(held: Operand, new: Operand, slots: Any, events: Any) -> Operand:
    """The values of events, and held ones where there is no event (-1)."""
    assert held.valid is not None
    fresh = events >= 0
    values, valid = held.values[slots], held.valid[slots]
    values[fresh] = new.values[events[fresh]]
    valid[fresh] = True if new.valid is None else new.valid[events[fresh]]
    return Operand(values, valid)


def changes_of(out: Any, query: Ints, shown: list[Operand], alive: Bools) -> Changes:
    """Changes as columns."""
    return Changes(
        query=query,
        group=out["group"].astype(np.int64),
        row=out["row"],
        instant=out["instant"],
        stamp=np.zeros(len(out), np.int64),
        serial=out["decider"],
        key=out["key"],
        diff=out["diff"],
        first=out["first"].astype(np.bool_),
        alive=alive,
        object=out["slot"].astype(np.int64),
        shown=tuple(shown),
    )
