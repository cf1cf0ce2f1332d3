"""The arrays that hold rows, objects, orders and fronts of every group, and room in them."""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Ints, Spec
from skyband.engines.incomplete.base import BEGINNING, Machine, Records, within
from skyband.engines.incomplete.kernels import rows as pieces
from skyband.engines.incomplete.kernels.assembly import LISTS, ORDER, OUT
from skyband.engines.incomplete.kernels.batches import index_things, rebuild
from skyband.engines.incomplete.kernels.rows import ASKED, FACTS, FRONT, PACK, ROW, SIGHT, THING, TOLD, VIEW, Store
from skyband.kernels.records import CHANGE, NEVER

SMALLEST = 64  # rows and objects that there is room for at first
NOWHERE = pieces.NOWHERE


class Room(Machine):
    """What is kept, for up to 32 queries at once."""

    def _set_queries(self, asked: tuple[Spec, ...]) -> None:
        lengths = sorted({one.length for one in asked})
        self.views = np.zeros(len(lengths), VIEW)
        self.views["length"] = lengths
        self.queries = np.zeros(len(asked), ASKED)
        self.queries["k"] = [one.k for one in asked]
        self.queries["view"] = [lengths.index(one.length) for one in asked]
        np.maximum.at(self.views["k"], self.queries["view"], self.queries["k"])
        self.views["most"] = self.views["k"] + np.maximum(self.views["k"], 16)

    def _empty(self) -> None:
        V = len(self.views)
        self.facts = np.zeros(FACTS, np.int64)
        self.facts[pieces.FREE_ROW] = self.facts[pieces.FREE_THING] = -1
        self.rows, self.things = np.zeros(0, ROW), np.zeros(0, THING)
        self.sights, self.told, self.values = np.zeros(0, SIGHT), np.zeros(0, TOLD), np.zeros(0)
        self.table = np.full(4, -1, np.int32)
        self.order, self.lists = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self.packs, self.fronts = np.zeros(0, PACK), np.zeros(0, FRONT)
        self.touched, self.waiting = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self._more_room(SMALLEST, SMALLEST)
        assert len(self.sights) == V * len(self.things)

    @property
    def groups(self) -> Records:
        return self.packs

    @property
    def store(self) -> Store:
        return Store(
            self.rows,
            self.things,
            self.sights,
            self.told,
            self.values,
            self.table,
            self.order,
            self.packs,
            self.fronts,
            self.lists,
            self.touched,
            self.waiting,
            self.facts,
        )

    # --- room

    def _more_room(self, rows: int, things: int) -> None:
        """So many more places for rows and for objects."""
        V, old = len(self.views), len(self.rows)
        more = np.zeros(rows, ROW)
        more["object"] = -1
        more["older"] = np.arange(old + 1, old + rows + 1)
        if rows:
            more["older"][-1] = self.facts[pieces.FREE_ROW]
            self.facts[pieces.FREE_ROW] = old
        self.rows = np.concatenate([self.rows, more])
        old = len(self.things)
        new = np.zeros(things, THING)
        new["group"] = -1
        new["oldest"] = np.arange(old + 1, old + things + 1)
        if things:
            new["oldest"][-1] = self.facts[pieces.FREE_THING]
            self.facts[pieces.FREE_THING] = old
        self.things = np.concatenate([self.things, new])
        self.sights = np.concatenate([self.sights, np.zeros(V * things, SIGHT)])
        self.told = np.concatenate([self.told, np.zeros(V * things, TOLD)])
        self.values = np.concatenate([self.values, np.zeros(V * things * self.d)])
        self.touched = np.zeros(len(self.things), np.int32)
        self.waiting = np.concatenate([self.waiting, np.zeros(things, np.int32)])
        if 2 * len(self.things) > len(self.table) - 4:
            size = len(self.table)
            while 2 * len(self.things) > size - 4:
                size *= 2
            self._index(2 * size)

    def _index(self, size: int) -> None:
        """The table of objects anew."""
        self.table = np.full(size, -1, np.int32)
        index_things(self.table, self.things)

    def _make_room(self, reason: int, out: Records) -> Records:
        """The kernel has stopped for want of room."""
        if reason == OUT:
            return np.concatenate([out, np.empty(len(out) + self._margin, CHANGE)])
        if reason == LISTS:
            self._pack_lists()
        elif reason == ORDER:
            self._widen_order()
        else:
            rows = 0 if self.facts[pieces.FREE_ROW] >= 0 else max(SMALLEST, len(self.rows) // 2)
            things = 0 if self.facts[pieces.FREE_THING] >= 0 else max(SMALLEST, len(self.things) // 2)
            self._more_room(rows, things)
        return out

    @property
    def _margin(self) -> int:
        return int((2 * self.queries["k"] + 2).sum())

    def _pack_lists(self) -> None:
        """Fronts one after another, each with room for twice of what it holds, and as much again at the end."""
        sizes = self.fronts["size"]
        rooms = np.where(self.fronts["room"] > 0, np.maximum(4, 2 * sizes), 0)
        starts = np.cumsum(rooms) - rooms
        used = int(rooms.sum())
        lists = np.zeros(2 * used + int((16 * (self.views["most"] + 8) * len(self.views)).max()), np.int32)
        run = within(sizes)
        lists[np.repeat(starts, sizes) + run] = self.lists[np.repeat(self.fronts["start"], sizes) + run]
        self.lists, self.fronts["start"], self.fronts["room"] = lists, starts, rooms
        self.facts[pieces.LISTED] = used

    def _widen_order(self) -> None:
        """Every group's run with room to grow; the one that is full doubles."""
        sizes, full = (
            self.packs["size"],
            self.packs["head"] + self.packs["size"] == (self.packs["start"] + self.packs["room"]),
        )
        rooms = np.where(full, np.maximum(8, 2 * sizes), np.maximum(self.packs["room"], sizes))
        self._lay_order(rooms)

    def _lay_order(self, rooms: Ints) -> None:
        sizes = self.packs["size"]
        starts, run = np.cumsum(rooms) - rooms, within(sizes)
        order = np.zeros(int(rooms.sum()), np.int32)
        order[np.repeat(starts, sizes) + run] = self.order[np.repeat(self.packs["head"], sizes) + run]
        self.order = order
        self.packs["start"] = self.packs["head"] = starts
        self.packs["room"] = rooms

    def _grow(self, total: int) -> None:
        more = total - len(self.packs)
        if more <= 0:
            return
        packs = np.zeros(more, PACK)
        packs["due"], packs["limit"] = NEVER, self.least
        packs["start"] = packs["head"] = len(self.order)
        packs["now"] = BEGINNING
        packs["tick"] = NEVER
        self.packs = np.concatenate([self.packs, packs])
        self.fronts = np.concatenate([self.fronts, _fronts(more * len(self.views))])

    # --- what is kept

    def _places(self, groups: Ints) -> tuple[Ints, Ints]:
        """Places of the rows in the order of these groups, the dead among them, and how many of each group."""
        sizes = self.packs["size"][groups]
        return self.order[np.repeat(self.packs["head"][groups], sizes) + within(sizes)].astype(np.int64), sizes

    def _live(self, groups: Ints) -> tuple[Records, Ints]:
        """The rows of these groups, the oldest first, and how many of each."""
        places, sizes = self._places(groups)
        rows = self.rows[places]
        alive = rows["object"] >= 0
        return rows[alive], np.bincount(np.repeat(np.arange(len(sizes)), sizes)[alive], minlength=len(sizes))

    @property
    def kept(self) -> Ints:
        kept: Ints = self.packs["size"] - self.packs["dead"]
        return kept

    # --- anew

    def _rebuild(self, now: Ints) -> None:
        """Everything that follows from the rows and their order."""
        self._squeeze()
        V = len(self.views)
        self.packs["now"] = np.maximum(self.packs["now"], now[: len(self.packs)])
        self.fronts = _fronts(V * len(self.packs))
        self.facts[pieces.LISTED] = 0
        most, sizes = 8 * (int(self.views["most"].max()) + 8), self.packs["size"]
        self.lists = np.zeros(V * int(np.minimum(most, 8 * sizes + 32).sum()), np.int32)
        bounds = (now[: len(self.packs), None] - self.views["length"][None, :]).reshape(-1)
        rebuild(
            self.store,
            self.recipe,
            self.views,
            self.queries,
            bounds,
            self.repeat,
            np.empty(self._margin, CHANGE),
            np.zeros(1, CHANGE),
        )
        self._pack_lists()

    def _squeeze(self) -> None:
        """Orders without their dead, whose places are free."""
        places, sizes = self._places(np.arange(len(self.packs)))
        dead = self.rows["object"][places] < 0
        for place in places[dead]:
            self.rows["older"][place] = self.facts[pieces.FREE_ROW]
            self.facts[pieces.FREE_ROW] = place
        keys = np.repeat(np.arange(len(sizes)), sizes)
        self.order = places[~dead].astype(np.int32)
        self.packs["size"] = np.bincount(keys[~dead], minlength=len(sizes))
        self.packs["start"] = self.packs["head"] = np.cumsum(self.packs["size"]) - self.packs["size"]
        self.packs["room"] = self.packs["size"]
        self.packs["dead"] = 0


def _fronts(size: int) -> Records:
    fronts = np.zeros(size, FRONT)
    fronts["score"], fronts["stamp"], fronts["serial"], fronts["low"] = -np.inf, NOWHERE, NOWHERE, NEVER
    return fronts
