"""One query's ranking of the objects of a view by an order: keys, ties, offsets (kernels/ordered.py)."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.contract import Bools, Ints
from skyband.engines.groups.kernels.ordered import NODE, ROOT, Sorted, rebuild_sorted, sorted_members, take_sorted
from skyband.engines.groups.kernels.state import SLOT, Events, Records
from skyband.engines.groups.measures import Scores
from skyband.engines.groups.order import Order
from skyband.engines.groups.ranks import Moves, Ranking
from skyband.engines.groups.store import chosen, longer


class OrderedRanking(Ranking):
    """Ranks offset + 1 to offset + k of each group."""

    def __init__(self, k: int, order: Order) -> None:
        super().__init__(k)
        self.order = order
        self.heads = np.zeros(0, ROOT)
        self.nodes, self.keys = np.zeros(0, NODE), np.zeros((0, order.width), np.int64)
        self.edges, self.touched = np.zeros((0, order.width), np.int64), np.zeros(1, np.int64)

    def grow(self, slots: int, groups: int) -> None:
        more = groups - len(self.heads)
        if more > 0:
            heads = np.zeros(more, ROOT)
            heads["root"] = heads["first"] = heads["last"] = heads["step"] = -1
            self.heads = np.concatenate([self.heads, heads])
            self.edges, self.touched = longer(self.edges, 2 * more), np.zeros(groups + 1, np.int64)
        if slots > len(self.nodes):
            self.nodes = longer(self.nodes, slots - len(self.nodes))
            self.keys = longer(self.keys, slots - len(self.keys))
        super().grow(slots, groups)

    def sorted(self, slots: Records) -> Sorted:
        """The ranking as kernels keep it up."""
        rule = np.array([self.k, self.order.offset, self.order.with_ties], np.int64)
        return Sorted(
            *(self.ranks, self.heads, slots, self.log, self.touched, self.nodes, self.keys, self.edges),
            *(self.order.flags, self.order.labels, rule),
        )

    def take(self, slots: Records, events: Events, size: int, scores: Scores, room: Records) -> Moves:
        keys = self.order.ranks(scores.columns, events.stamp[:size], events.serial[:size])
        out, count = take_sorted(self.sorted(slots), events, keys, ~np.isnan(scores.keys), room)
        records = out[:count].copy()
        return Moves(records, self._shown(records, events.slot[:size], scores.shown))

    def set_keys(self, slots: Ints, events: Events, scores: Scores) -> None:
        super().set_keys(slots, events, scores)
        self.keys[slots] = self.order.ranks(scores.columns, events.stamp[: len(slots)], events.serial[: len(slots)])

    def rebuild(self, slots: Records) -> None:
        self.log[0] = 0
        rebuild_sorted(self.sorted(slots))

    def keep(self, kept: Ints, slots: Records, groups: int) -> None:
        self.nodes, self.keys = chosen(self.nodes, kept), chosen(self.keys, kept)
        self.edges, self.touched = np.zeros((2 * groups, self.order.width), np.int64), np.zeros(groups + 1, np.int64)
        super().keep(kept, slots, groups)

    def members(self, groups: Ints) -> tuple[Ints, Ints]:
        room = int(np.count_nonzero(self.inside))
        found, owners = np.empty(room, np.int64), np.empty(room, np.int64)
        count = sorted_members(self.sorted(np.zeros(0, SLOT)), groups, found, owners)
        return found[:count], owners[:count]

    def best(self, groups: Ints, events: Events, scores: Scores, k: int, *, whole: bool) -> tuple[Ints, Ints]:
        rows = self.order.ranks(scores.columns, events.stamp, events.serial)
        valid: Bools = ~np.isnan(scores.keys)
        return self.order.best(groups, rows, valid, k, whole=whole)

    @property
    def nbytes(self) -> int:
        arrays: tuple[Any, ...] = (self.nodes, self.keys, self.edges)
        return super().nbytes + self.order.nbytes + sum(int(array.nbytes) for array in arrays)
