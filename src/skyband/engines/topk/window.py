"""The window of one group, whole: its objects, their grid or sorted lists, and the runs of the queries over them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Floats, Ints
from skyband.engines.topk.kernels.maintenance import lay_objects
from skyband.engines.topk.kernels.runs import TSL
from skyband.engines.topk.kernels.sorted_lists import Lists, merge_lists
from skyband.engines.topk.kernels.window_grid import (
    CELL,
    FACTS,
    FREE,
    GHOST,
    HEAD,
    LIMIT,
    LIVE,
    NOWHERE,
    OUTSIDE,
    SIDE,
    SLOT,
    STATE,
    USED,
    Asking,
    Desk,
    Window,
)
from skyband.kernels.records import CHANGE, GROUP, OBJECT

Records = NDArray[Any]
FEW = 8  # objects outside of a grid before another is laid
SMALLEST = 64  # places
MOST = 1e300  # beyond it, numbers stay outside: the range of a grid must be a number too
RECENT_SHARE = 64  # sorted lists are merged with so much of the window at once


class Store:
    """Arrays that kernels work on; they grow here."""

    def __init__(self, asking: Asking, views: Ints, algorithm: int) -> None:
        lanes, d = asking.points.shape
        self.algorithm = algorithm
        self.facts = np.zeros(FACTS, np.int64)
        self.facts[FREE], self.facts[LIMIT] = -1, FEW
        self.slots = np.empty(0, SLOT)
        self.data = np.empty((0, d))
        self.order = np.empty(0, np.int32)
        self.planned = 0  # how many objects the grid was laid for
        self.holders = np.empty(0, np.int32)  # by code of an id: its object's place
        self._set_grid(0, np.full((d, 2), np.nan))
        self.sorted = np.empty((d, 0), np.int32)
        self.recent = np.empty(SMALLEST if algorithm == TSL else 0, np.int32)
        self.marks = np.zeros(1, np.int32)
        self.set_lanes(lanes, views)
        self.opened = NOWHERE  # the first serial of a net batch that goes on
        self.before = np.empty(0, OBJECT)  # and the answers it began with
        self.touched = np.empty(0, np.int32)  # of these queries
        self.held = np.empty(0, CHANGE)  # and what it is to tell

    def begin(self, serial: int, desk: Desk, alone: bool) -> None:
        """A net batch begins; other groups may have their turns before it ends."""
        self.opened = serial
        self.before = desk.before if alone else np.empty_like(desk.before)
        self.touched = desk.touched if alone else np.empty_like(desk.touched)

    def set_lanes(self, lanes: int, views: Ints) -> None:
        """Empty runs for so many queries, which have seen nothing."""
        self.state = np.zeros(lanes, STATE)
        self.state["key"], self.state["stamp"], self.state["serial"] = -np.inf, NOWHERE, -1
        self.state["reach"], self.state["open"], self.state["view"] = np.inf, -1, views
        self.wide = np.zeros(lanes, np.int32)
        self.objects, self.ghosts = np.empty(0, OBJECT), np.empty(0, GHOST)
        self.groups, self.graves = np.zeros(lanes, GROUP), np.zeros(lanes, GROUP)
        self.tally, self.ghost_tally = np.zeros(2, np.int64), np.zeros(2, np.int64)

    def add_lane(self, view: int) -> None:
        """One more query, which has seen nothing."""
        more = np.zeros(1, STATE)
        more["key"], more["stamp"], more["serial"] = -np.inf, NOWHERE, -1
        more["reach"], more["open"], more["view"] = np.inf, -1, view
        self.state = np.concatenate([self.state, more])
        self.wide = np.append(self.wide, np.int32(0))
        self.groups, self.graves = (np.concatenate([runs, np.zeros(1, GROUP)]) for runs in (self.groups, self.graves))

    def _set_grid(self, side: int, edges: Floats) -> None:
        self.cells = np.zeros((side ** len(edges) if side else 0) + 1, CELL)
        self.cells["head"] = self.cells["tail"] = -1
        self.lists = np.empty(0, np.int32)
        self.edges = edges
        self.facts[SIDE], self.facts[USED] = side, 0

    @property
    def window(self) -> Window:
        return Window(self.slots, self.data, self.order, self.cells, self.edges, self.state, self.wide, self.facts)

    @property
    def sorted_lists(self) -> Lists:
        return Lists(self.sorted, self.recent, self.marks)

    @property
    def live(self) -> int:
        return int(self.facts[LIVE])

    def by_age(self) -> Ints:
        """The places of the valid objects, the oldest first."""
        taken = np.flatnonzero(self.slots["serial"] >= 0)
        return taken[np.lexsort((self.slots["serial"][taken], self.slots["stamp"][taken]))]

    def grow(self, room: int) -> None:
        """Places for so many objects."""
        old, more = len(self.slots), room - len(self.slots)
        if more <= 0:
            return
        slots = np.zeros(more, SLOT)
        slots["serial"], slots["next"] = -1, np.arange(old + 1, room + 1)
        slots["next"][-1] = self.facts[FREE]
        self.facts[FREE] = old
        ages = np.arange(self.facts[HEAD], self.facts[HEAD] + self.live) % max(old, 1)
        order = np.zeros(room, np.int32)
        order[: self.live] = self.order[ages]
        self.facts[HEAD] = 0
        self.slots, self.order = np.concatenate([self.slots, slots]), order
        self.data = np.concatenate([self.data, np.empty((more, self.data.shape[1]))])
        if self.algorithm == TSL:
            self.marks = np.zeros(room + 1, np.int32)
            self.sorted = np.concatenate([self.sorted, np.empty((len(self.sorted), more), np.int32)], axis=1)

    def make_room(self, asking: Asking, desk: Desk, most: int, cells: int) -> Desk:
        """The kernel has stopped: a full list of recent objects, a grid that many lie outside of, or no free place."""
        if self.algorithm == TSL:
            merge_lists(self.window, self.sorted_lists)
            self.recent = np.empty(max(SMALLEST, self.live // RECENT_SHARE), np.int32)
        elif self.facts[OUTSIDE] > self.facts[LIMIT]:
            desk = self.lay(asking, desk, most, cells)
        if self.facts[FREE] < 0:
            room = max(SMALLEST, len(self.slots) + len(self.slots) // 4)
            self.grow(room if self.algorithm == TSL else min(room, max(most, len(self.slots) + 1)))
        return desk

    def lay(self, asking: Asking, desk: Desk, most: int, cells: int) -> Desk:
        """A new grid over the objects that there are; `most`: how many there can be."""
        taken = self.slots["serial"] >= 0
        data, d = self.data[taken], self.data.shape[1]
        data = data[(np.abs(data) < MOST).all(axis=1)]
        self.planned = most if most < 2**40 else 4 * self.live
        side = max(2, int(min(cells, self.planned / 4) ** (1 / d) + 1e-9))
        edges = np.full((d, side + 2), np.nan)
        if len(data):
            for j in range(d):
                low, high = data[:, j].min(), data[:, j].max()
                edges[j, : side + 1] = np.maximum.accumulate(np.clip(np.linspace(low, high, side + 1), low, high))
                edges[j, side] = high
                with np.errstate(over="ignore"):
                    edges[j, side + 1] = side / (high - low) if high - low > side * 1e-300 else 0.0
        self._set_grid(side, edges)
        desk = enough(desk, len(self.cells), side)
        self.lists = lay_objects(asking, self.window, desk, self.lists, self.objects, self.groups)
        self.facts[LIMIT] = FEW + 2 * self.facts[OUTSIDE] + self.live // 8
        return desk

    @property
    def nbytes(self) -> int:
        arrays = (self.slots, self.data, self.order, self.cells, self.lists, self.edges, self.state, self.wide)
        more = (self.sorted, self.recent, self.marks, self.objects, self.ghosts, self.groups, self.graves, self.holders)
        return sum(array.nbytes for array in (*arrays, *more, self.before))


def empty_desk(asking: Asking, views: Ints) -> Desk:
    lanes, d = asking.points.shape
    return Desk(
        bounds=np.empty(1),
        codes=np.empty(1, np.int64),
        slabs=np.empty((d, 1), np.int32),
        terms=np.empty((d, 1)),
        many=np.zeros(d + 1, np.int64),
        best=np.zeros(int(views.max(initial=1)) + 1, OBJECT),
        touched=np.empty(lanes, np.int32),
        stale=np.empty(lanes, np.int32),
        before=np.empty(int(asking.lanes["k"].sum()), OBJECT),
    )


def enough(desk: Desk, cells: int, side: int) -> Desk:
    """A desk for so many cells."""
    if cells <= len(desk.bounds) and side <= desk.slabs.shape[1]:
        return desk
    cells, side, d = max(cells, len(desk.bounds)), max(side, desk.slabs.shape[1]), len(desk.slabs)
    return desk._replace(
        bounds=np.empty(cells),
        codes=np.empty(cells, np.int64),
        slabs=np.empty((d, side), np.int32),
        terms=np.empty((d, side)),
    )


def enough_lanes(desk: Desk, asking: Asking, views: Ints) -> Desk:
    """A desk for so many queries."""
    lanes, most = len(asking.lanes), int(asking.lanes["k"].sum())
    if lanes > len(desk.touched):
        desk = desk._replace(touched=np.empty(2 * lanes, np.int32), stale=np.empty(2 * lanes, np.int32))
    if most > len(desk.before):
        desk = desk._replace(before=np.empty(2 * most, OBJECT))
    return desk if views.max() < len(desk.best) else desk._replace(best=np.zeros(int(views.max()) + 1, OBJECT))
