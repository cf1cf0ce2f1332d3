"""The window of one group, whole: its objects, their grid or sorted lists, and the runs of the queries over them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import place, runs
from skyband.engines.contract import Floats, Ints, Spec
from skyband.engines.topk.edges import slab_edges
from skyband.engines.topk.kernels.maintenance import fill_grid, start_query, take_arrivals
from skyband.engines.topk.kernels.sorted_lists import SortedLists, merge_lists
from skyband.engines.topk.kernels.window_boxes import SIDE_BITS
from skyband.engines.topk.kernels.window_state import (
    CELL,
    COUNTERS,
    CROWD,
    FREE,
    HEAD,
    LIMIT,
    LIVE,
    NO_CELL,
    NOWHERE,
    OUTSIDE,
    RECENT,
    REPORTED,
    SIDE,
    SKEW,
    SLOT,
    STATE,
    TSL,
    USED,
    WAIT,
    Growing,
    Span,
    Stream,
    Window,
)
from skyband.engines.topk.window_queries import WindowQueries
from skyband.kernels.records import CHANGE, GROUP, NEVER, OBJECT
from skyband.query.scoring.forms import EXPRESSION

Records = NDArray[Any]
FEW = 8  # objects outside of a grid before another is built
SMALLEST = 64  # places
MOST = 1e300  # beyond it, numbers stay outside: the range of a grid must be a number too
RECENT_SHARE = 64  # sorted lists are merged once this share of the window is recent


class Store:
    """The arrays of one group's window, and the kernels over them."""

    def __init__(self, queries: WindowQueries) -> None:
        d = queries.axes
        self.queries, self.in_lists = queries, queries.algorithm == TSL
        self.counters = np.zeros(COUNTERS, np.int64)
        self.counters[FREE], self.counters[LIMIT], self.counters[SKEW] = -1, FEW, 1
        self.slots = np.empty(0, SLOT)
        self.data = np.empty((0, queries.width))
        self.order = np.empty(0, np.int32)
        self.planned = 0  # how many objects the grid was built for
        self._set_grid(0, np.tile([np.nan, 0.0], (d, 1)))
        self.sorted = np.empty((d, 0), np.int32)
        self.recent = np.empty(SMALLEST if self.in_lists else 0, np.int32)
        self.marks = np.zeros(1, np.int32)
        self.state, self.unlisted = _empty_state(queries.views), np.zeros(len(queries), np.int32)
        self.records, self.reported = np.empty(0, OBJECT), np.empty(0, REPORTED)
        self.heads, self.reported_heads = np.zeros(len(queries), GROUP), np.zeros(len(queries), GROUP)
        self.tally, self.reported_tally = np.zeros(2, np.int64), np.zeros(2, np.int64)
        self.opened = NOWHERE  # the first serial of a net batch that goes on
        self.before = np.empty(0, OBJECT)  # the answers before it
        self.touched = np.empty(0, np.int32)  # of these queries
        self.pending = np.empty(0, CHANGE)  # and its changes so far

    # --- the stream

    def open_batch(self, serial: int, shared: bool) -> None:
        """Begin a net batch; shared: other groups may have their turns before it ends."""
        self.opened, scratch = serial, self.queries.scratch
        self.before = np.empty_like(scratch.before) if shared else scratch.before
        self.touched = np.empty_like(scratch.touched) if shared else scratch.touched

    def take(self, stream: Stream, last: int, serial: int, final: bool) -> Records:
        """Take arrivals in order; returns the changes."""
        queries, begin = self.queries, 0
        changes = np.empty(64, CHANGE)
        self.tally[1] = 0
        while True:
            scratch = queries.scratch
            if queries.net:
                scratch = scratch._replace(before=self.before, touched=self.touched)
            span = Span(begin, last, queries.length, serial, self.opened, not queries.timed, queries.net, final)
            begin, self.lists, self.records, self.reported, changes = take_arrivals(
                queries.arrays, self.window, scratch, self.sorted_lists, self.growing(changes), stream, span
            )
            if begin == len(stream.stamps):
                break
            self.extend()
        if not self.in_lists and self.live > 2 * self.planned > 0 and len(self.cells) <= queries.cells // 2:
            self.build_grid()
        return changes[: self.tally[1]]

    def search(self, s: int, known: Ints, now: int) -> Records:
        """The first answer of a new query, as changes; known: the serials of objects reported under its name."""
        spec = self.queries.specs[s]
        entering = np.empty(0, CHANGE)
        if spec.threshold is not None:
            found = self.scan(s, spec, now)
            entering = np.zeros(len(found), CHANGE)
            for name in ("key", "stamp", "serial"):
                entering[name] = found[name]
            entering["visit"], entering["diff"], entering["row"] = s, 1, -1
            entering["first"] = ~np.isin(found["serial"], known)
            known = np.setdiff1d(known, found["serial"])
        if len(known) or spec.threshold is not None:
            self._set_reported(s, known)
        self.tally[1] = 0
        step = np.zeros(1, CHANGE)
        step["row"] = -1
        self.lists, self.records, changes = start_query(
            self.queries.arrays,
            self.window,
            self.queries.scratch,
            self.sorted_lists,
            self.growing(np.empty(64, CHANGE)),
            s,
            step,
        )
        return entering if spec.threshold is not None else changes[: self.tally[1]]

    def scan(self, s: int, spec: Spec, now: int) -> Records:
        """An answer from all objects of the window."""
        chosen = self.by_age()
        if spec.length < NEVER:
            chosen = chosen[self.slots["stamp"][chosen] > now - spec.length]
        chosen = chosen[self.queries.inside(s, self.data[chosen])]
        valid = np.zeros(len(chosen), OBJECT)
        valid["key"] = self.queries.keys_of(s, self.data[chosen])
        valid["stamp"], valid["serial"] = self.slots["stamp"][chosen], self.slots["serial"][chosen]
        if spec.threshold is not None:
            valid = valid[valid["key"] > spec.threshold]
        order = np.lexsort((-valid["serial"], -valid["stamp"], -valid["key"]))
        best: Records = valid[order] if spec.threshold is not None else valid[order[: spec.k]]
        return best

    # --- the arrays as kernels take them

    @property
    def window(self) -> Window:
        return Window(
            self.slots, self.data, self.order, self.cells, self.edges, self.state, self.unlisted, self.counters,
            self.heads, self.reported_heads, self.tally, self.reported_tally,
        )  # fmt: skip

    @property
    def sorted_lists(self) -> SortedLists:
        return SortedLists(self.sorted, self.recent, self.marks)

    def growing(self, changes: Records) -> Growing:
        return Growing(self.lists, self.records, self.reported, changes)

    # --- objects

    @property
    def live(self) -> int:
        return int(self.counters[LIVE])

    def by_age(self) -> Ints:
        """The places of the valid objects, the oldest first."""
        taken = np.flatnonzero(self.slots["serial"] >= 0)
        return taken[np.lexsort((self.slots["serial"][taken], self.slots["stamp"][taken]))]

    def fill(self, data: Floats, stamps: Ints, serials: Ints) -> None:
        """Put these objects into the empty window, in order of age."""
        size = len(stamps)
        self.grow(size)
        self.slots["stamp"], self.slots["serial"] = stamps, serials
        self.data[:], self.order[:] = data, np.arange(size)
        idle = np.isnan(data[:, 0])
        self.slots["cell"] = np.where(idle, NO_CELL, 0)
        self.counters[LIVE], self.counters[FREE] = size, -1
        if self.in_lists and size:
            self.recent = np.flatnonzero(~idle).astype(np.int32)
            self.counters[RECENT] = len(self.recent)
            self.extend()

    def grow(self, capacity: int) -> None:
        """Make places for so many objects."""
        old, more = len(self.slots), capacity - len(self.slots)
        if more <= 0:
            return
        slots = np.zeros(more, SLOT)
        slots["serial"], slots["next"] = -1, np.arange(old + 1, capacity + 1)
        slots["next"][-1] = self.counters[FREE]
        self.counters[FREE] = old
        ages = np.arange(self.counters[HEAD], self.counters[HEAD] + self.live) % max(old, 1)
        order = np.zeros(capacity, np.int32)
        order[: self.live] = self.order[ages]
        self.counters[HEAD] = 0
        self.slots, self.order = np.concatenate([self.slots, slots]), order
        self.data = np.concatenate([self.data, np.empty((more, self.data.shape[1]))])
        if self.in_lists:
            self.marks = np.zeros(capacity + 1, np.int32)
            self.sorted = np.concatenate([self.sorted, np.empty((len(self.sorted), more), np.int32)], axis=1)

    def extend(self) -> None:
        """Go on after the kernel has stopped: at too many recent objects, too many outside the grid, or no place."""
        most = NEVER
        if self.in_lists:
            merge_lists(self.window, self.sorted_lists)
            self.recent = np.empty(max(SMALLEST, self.live // RECENT_SHARE), np.int32)
        else:
            most = max(self.queries.capacity, len(self.slots)) + 1  # an arrival takes a place before the oldest leaves
            if self.counters[OUTSIDE] > self.counters[LIMIT] or self.counters[SKEW] == 0:
                self.build_grid()
        if self.counters[FREE] < 0:
            self.grow(min(max(SMALLEST, len(self.slots) + len(self.slots) // 4), most))

    # --- the grid

    def _set_grid(self, side: int, edges: Floats) -> None:
        self.cells = np.zeros((side ** len(edges) if side else 0) + 1, CELL)
        self.cells["head"] = self.cells["tail"] = -1
        self.lists = np.empty(0, np.int32)
        self.edges = edges
        self.counters[SIDE], self.counters[USED] = side, 0

    def build_grid(self) -> None:
        """Build a new grid over the present objects; with sorted lists there is none."""
        if self.in_lists:
            return
        taken, queries = self.slots["serial"] >= 0, self.queries
        d = queries.axes
        data = self.data[taken, :d]
        data = data[(np.abs(data) < MOST).all(axis=1)]
        self.planned = queries.capacity if queries.capacity < 2**40 else 4 * self.live
        side = max(2, int(min(queries.cells, self.planned / 4) ** (1 / d) + 1e-9))
        if queries.arrays.form == EXPRESSION:
            side = min(side, (1 << SIDE_BITS // d) - 1)  # a box is one number
        edges = np.full((d, side + 2), np.nan)
        edges[:, -1] = 0
        if len(data):
            for j in range(d):
                cut = slab_edges(data[:, j], side)
                edges[j, : len(cut)], edges[j, side + 1] = cut, len(cut) - 1
        self._set_grid(side, edges)
        queries.fit_grid(len(self.cells), side)
        self.lists = fill_grid(queries.arrays, self.window, queries.scratch, self.lists, self.records)
        even = self.live + self.live**2 // len(self.cells)
        self.counters[LIMIT] = FEW + 2 * self.counters[OUTSIDE] + self.live // 8
        self.counters[SKEW], self.counters[WAIT] = 1 + self.counters[CROWD] // (even + 1), 4 * FEW + self.live // 4

    # --- queries

    def add_query(self) -> None:
        """Add the last of the queries, which has seen nothing."""
        none = np.zeros(1, GROUP)
        self.state = np.concatenate([self.state, _empty_state(self.queries.views[-1:])])
        self.unlisted = np.append(self.unlisted, np.int32(0))
        self.heads, self.reported_heads = (np.concatenate([heads, none]) for heads in (self.heads, self.reported_heads))

    def keep_queries(self, kept: Ints) -> None:
        """Keep only these."""
        found, reported = self.runs()
        self.state, self.unlisted = self.state[kept], self.unlisted[kept]
        self.heads, self.reported_heads = self.heads[kept], self.reported_heads[kept]
        self.set_runs([found[s] for s in kept], [reported[s] for s in kept])
        self.build_grid()

    def run(self, s: int) -> Records:
        """The run of query s."""
        return runs(self.records, self.heads, np.array([s]))

    def runs(self) -> tuple[list[Records], list[Records]]:
        """The runs of all queries, and the valid objects outside them that each has reported."""
        reported = [runs(self.reported, self.reported_heads, np.array([s])) for s in range(len(self.heads))]
        valid = [one[self.slots["serial"][one["was"]] == one["serial"]] if len(one) else one for one in reported]
        return [self.run(s) for s in range(len(self.heads))], valid

    def set_runs(self, found: list[Records], reported: list[Records]) -> None:
        """Set the runs of all queries, and the objects outside them that each has reported."""
        for heads, pieces, tally in (
            (self.heads, found, self.tally),
            (self.reported_heads, reported, self.reported_tally),
        ):
            heads["size"] = heads["room"] = [len(one) for one in pieces]
            place(heads)
            tally[0] = heads["size"].sum()
        self.records = np.concatenate([np.empty(0, OBJECT), *found])
        self.reported = np.concatenate([np.empty(0, REPORTED), *reported])

    def reported_of(self, s: int) -> Records:
        """The valid objects that query s has reported, with stamp and serial."""
        found, reported = self.runs()
        spec, shown = self.queries.specs[s], found[s][found[s]["shown"] > 0]
        if spec.threshold is not None:
            shown = self.scan(s, replace(spec, length=NEVER), 0)
        serials = np.concatenate([shown["serial"], reported[s]["serial"]])
        of: Records = self.slots[np.isin(self.slots["serial"], serials)]
        return of

    def _set_reported(self, s: int, serials: Ints) -> None:
        """Set the valid objects that query s has reported."""
        places = np.flatnonzero(np.isin(self.slots["serial"], serials))
        found, reported = self.runs()
        reported[s] = np.zeros(len(places), REPORTED)
        reported[s]["serial"], reported[s]["was"] = self.slots["serial"][places], places
        self.set_runs(found, reported)

    @property
    def nbytes(self) -> int:
        runs_of = (self.records, self.reported, self.heads, self.reported_heads, self.before)
        grid = (self.cells, self.lists, self.edges, self.sorted, self.recent, self.marks)
        objects = (self.slots, self.data, self.order)
        return sum(array.nbytes for array in (*objects, *grid, *runs_of, self.state, self.unlisted))

    def check(self) -> None:
        """Assert every invariant (tests call it)."""
        queries, taken = self.queries, self.by_age()
        assert len(taken) == self.live
        slots, data = self.slots[taken], self.data[taken]
        if queries.length < NEVER:
            ring = self.order[(self.counters[HEAD] + np.arange(self.live)) % max(len(self.order), 1)]
            assert (self.slots["serial"][ring] == slots["serial"]).all(), "the ring is in order of age"
        if not self.in_lists:
            self._check_cells()
        for s, spec in enumerate(queries.specs):
            run, keys, inside = self.run(s), queries.keys_of(s, data), queries.inside(s, data)
            if not self.in_lists and not self.state["unlisted"][s]:
                floor = self.state["key"][s] if spec.threshold is None else spec.threshold
                for i in np.flatnonzero(inside & (keys >= floor) & (slots["cell"] < len(self.cells) - 1)):
                    cell = self.cells[slots["cell"][i]]
                    assert s in self.lists[cell["start"] : cell["start"] + cell["size"]], "cells that matter list it"
            if spec.threshold is not None:
                continue
            rank = np.lexsort((-run["serial"], -run["stamp"], -run["key"]))
            assert (rank == np.arange(len(run))).all(), "best first, the newer above"
            assert np.isin(run["serial"], slots["serial"]).all(), "only valid objects"
            order = np.lexsort((-slots["serial"], -slots["stamp"], -keys))
            best = slots["serial"][order[inside[order]][: spec.k]]
            assert (run["serial"][: len(best)] == best).all() and len(run) >= len(best), "the run has the answer"

    def _check_cells(self) -> None:
        counts, squares = np.zeros(len(self.cells), np.int64), 0
        for c, cell in enumerate(self.cells):
            before, i = -1, cell["head"]
            while i >= 0:
                assert self.slots["cell"][i] == c and self.slots["before"][i] == before, "objects know their neighbours"
                before, i = i, self.slots["next"][i]
                counts[c] += 1
            assert cell["tail"] == before and cell["count"] == counts[c], (
                "a cell knows its last object and their number"
            )
        squares = int((counts[:-1] ** 2).sum())
        assert counts.sum() == (self.slots["cell"][self.slots["serial"] >= 0] != NO_CELL).sum(), "each is in a cell"
        assert self.counters[CROWD] == squares and self.counters[OUTSIDE] == counts[-1], "cells are counted"


def _empty_state(views: Ints) -> Records:
    state = np.zeros(len(views), STATE)
    state["key"], state["stamp"], state["serial"] = -np.inf, NOWHERE, -1
    state["reach"], state["before"], state["view"] = np.nan, -1, views
    return state
