"""BLOCK for many queries of one scoring: one run for all, the k-skyband of the largest k over the longest window.

A query (k, n) reads the first k objects of the run with a stamp in its own window. Marks on objects are bits of one
word for up to 32 queries (base.py); here a query knows the last of its members instead, and only queries that an
arrival or an expiry touches are looked at. The algorithm is in kernels/readers.py, with its cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines.arena import place, recast, runs, unplaced
from skyband.engines.contract import Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.grouped import by_step, rebuild, visits_of
from skyband.engines.invariants import are_counts, near, require, within
from skyband.engines.topk.base import EMPTY, Records, grouped, thin
from skyband.engines.topk.block import BLOCK
from skyband.engines.topk.invariants import check_counters, check_kept, check_places
from skyband.engines.topk.kernels.lookahead import mark_hopeless
from skyband.engines.topk.kernels.reader_answers import put_in_columns, readings_fit, refit_readers, sum_all
from skyband.engines.topk.kernels.reader_state import (
    LOWEST,
    NOTHING,
    PAGE,
    READ_CHANGE,
    READER,
    READING,
    SUMMARY,
    Readers,
    Scratch,
)
from skyband.engines.topk.kernels.readers import take_readers
from skyband.engines.topk.kernels.state import Report
from skyband.kernels.records import GROUP, NEVER, OBJECT
from skyband.kernels.routing import empty_columns, find_rows, stable_order
from skyband.query.tuning import Tuning


class ReaderBLOCK(BLOCK):
    """One run for every group, and any number of queries that read it."""

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool) -> None:
        self.object_stamps = np.empty(0, np.int64)  # of the objects
        self.readings, self.pages = np.empty(0, READING), np.empty(0, SUMMARY)
        self.floors, self.dues = np.empty(0, np.int64), np.empty(0, np.int64)
        self.copies = np.empty(0, OBJECT)  # runs as they were when an open net batch began
        self.since = NEVER  # the first row of that batch
        self.changes = np.empty(1024, READ_CHANGE)  # of a batch, kept for the next: fresh memory is slow
        super().__init__(specs, tuning, timed=timed, net=net)
        self.tally = np.array([0, 0, 1, 0, 0])

    def _set_queries(self, specs: tuple[Spec, ...]) -> None:
        super()._set_queries(specs)
        k, length = self.queries["k"], self.queries["length"]
        order, Q = np.argsort(k / length, kind="stable"), len(specs)  # rarely entered answers come first
        self.readers = np.empty(Q, READER)
        self.readers["k"], self.readers["length"], self.readers["place"] = k[order], length[order], order
        inner = np.empty(Q, np.int64)
        inner[order] = np.arange(Q)
        arriving = np.zeros(1, OBJECT)
        arriving["serial"] = -1
        self.scratch = Scratch(
            arriving=arriving,
            done=np.full(Q, -1),
            short=np.zeros(Q, np.int64),
            edges=np.zeros(Q, np.int64),
            touched=np.zeros(Q, np.bool_),
            inner=inner,
            copies=np.zeros(2 * len(self.groups), np.int64),
            picked=np.zeros(int(k.max()) + 1, np.int64),
        )
        self.marks = np.zeros((64 + 2 * int(k.max()), (Q + 7) // 8), np.uint8)

    @property
    def _state(self) -> Readers:
        return Readers(
            self.objects,
            self.object_stamps,
            self.groups,
            self.readings,
            self.floors,
            self.dues,
            self.pages,
            self.readers,
            self.marks,
            self.tally,
            self.scratch,
        )

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        order, taken = grouped(arrivals)
        one = not len(order)
        visits = visits_of(self, arrivals.groups if one else arrivals.groups[order], taken["now"], arrivals)
        chosen, slices = taken, visits
        if arrivals.eligible is not None:
            chosen, slices = thin(chosen, slices, arrivals.eligible if one else arrivals.eligible[order])
        hopeless = np.zeros(len(chosen), np.bool_)
        K, reach = int(self.queries["k"].max()), int(self.queries["length"].min())
        mark_hopeless(chosen, slices, K, reach, self.net, hopeless)
        chosen, slices = thin(chosen, slices, ~hopeless)
        alive = np.zeros(arrivals.size, np.bool_)
        self.since = min(self.since, arrivals.serial)
        self.tally[1] = 0
        report = self._reporting(alive, arrivals.serial, arrivals.more)
        self.objects, self.object_stamps, self.marks, self.changes, self.copies = take_readers(
            self._state, report, self.copies, chosen, slices, self.since
        )
        if not arrivals.more:
            self.since, self.tally[4] = NEVER, 0
        self.held = self.copies[: self.tally[4]]  # what a net batch may still report
        return self._ordered(self.changes[: self.tally[1]], visits, taken, arrivals, alive)

    def _reporting(self, alive: Bools, serial: int, more: bool) -> Report:
        return Report(self.changes, self.tally, np.zeros(1, READ_CHANGE), alive, serial, not self.timed, self.net, more)

    def _ordered(self, out: Records, visits: Records, taken: Any, arrivals: Arrivals, alive: Bools) -> Changes:
        """By query, then by step, as `ordered_changes`; of one group the changes of each query are in order already."""
        none = np.empty(0, np.int64)
        order, rows = none, none  # net: the row of a group's step is its last one
        if self.net:
            last = np.append(taken["row"], -1)[visits["end"] - 1]
            rows = np.where(visits["end"] > visits["begin"], last, -1)
            if len(visits) > 1:
                order = stable_order(out["query"].astype(np.int64), len(self.queries))
        else:
            alone = out["row"] < 0
            find_rows(
                out, visits, np.ascontiguousarray(taken["now"]), np.ascontiguousarray(taken["row"]), not self.timed
            )
            if len(visits) > 1:
                out = by_step(self, out, alone, arrivals, len(self.queries))
            else:
                order = stable_order(out["query"].astype(np.int64), len(self.queries))
        return _changes(out, order, np.ascontiguousarray(visits["group"]), rows, alive)

    def _grow(self, total: int) -> None:
        more = total - len(self.groups)
        super()._grow(total)
        if more > 0:
            self.views = self.views[:0]
            self.readings = np.concatenate([self.readings, self._readings(more)])
            self.pages = np.concatenate([self.pages, self._pages(more)])
            floors, dues = self._none_due(more)
            self.floors, self.dues = np.concatenate([self.floors, floors]), np.concatenate([self.dues, dues])
            copies = np.concatenate([self.scratch.copies, np.zeros(2 * more, np.int64)])
            self.scratch = self.scratch._replace(copies=copies)

    def _readings(self, groups: int) -> Records:
        """What the queries know of groups without objects."""
        readings = np.zeros(groups * len(self.queries), READING)
        readings["key"], readings["stamp"], readings["serial"], readings["oldest"] = -np.inf, NOTHING, -1, NEVER
        return readings

    def _pages(self, groups: int) -> Records:
        pages = np.zeros(groups * (1 + -(-len(self.queries) // PAGE)), SUMMARY)
        pages["floor"], pages["due"] = LOWEST, NEVER
        return pages

    def _none_due(self, groups: int) -> tuple[Ints, Ints]:
        """Floors and instants of groups without objects."""
        return np.full(groups * len(self.queries), LOWEST), np.full(groups * len(self.queries), NEVER)

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        old, count, inner, marks = self.readings, len(self.queries), self.scratch.inner, self.marks
        self._set_queries(specs)
        bits = np.unpackbits(marks, axis=1, count=count, bitorder="little")
        known = np.zeros((len(marks), len(specs)), np.uint8)
        known[:, predecessors >= 0] = bits[:, predecessors[predecessors >= 0]]
        self.marks = np.packbits(known, axis=1, bitorder="little")
        G, self.tally[1] = len(self.groups), 0
        self.readings, self.pages = self._readings(G), self._pages(G)
        self.floors, self.dues = self._none_due(G)
        report = self._reporting(np.empty(0, np.bool_), NEVER, False)
        places = np.where(predecessors < 0, -1, inner[predecessors])
        self.marks, self.changes = refit_readers(self._state, report, old, count, places, now)
        out = self.changes[: self.tally[1]]
        order = stable_order(out["query"].astype(np.int64), len(specs))
        return _changes(out, order, np.arange(G), np.full(G, -1), np.empty(0, np.bool_))

    @property
    def nbytes(self) -> int:
        arrays = (self.objects, self.groups, self.readings, self.pages, self.marks, self.copies)
        return sum(int(array.nbytes) for array in arrays)

    # --- snapshots

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not len(self.held) and not self.groups["open"].any(), "no batch is open"
        chosen, Q = unplaced(self.groups[groups]), len(self.queries)
        objects, ones = runs(self.objects, self.groups, groups), np.ones(len(groups), np.int64)
        marks = self.marks[objects["shown"]]
        marks[objects["shown"] == 0] = 0
        objects["shown"] = 0
        return {
            "objects": (objects, chosen["size"]),
            "groups": (chosen, ones),
            "readings": (self.readings.reshape(-1, Q)[groups].reshape(-1), Q * ones),
            "marks": (marks.reshape(-1), chosen["size"] * marks.shape[1]),
        }

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        objects, groups, readings = (
            recast(state[name], dtype)
            for name, dtype in (("objects", OBJECT), ("groups", GROUP), ("readings", READING))
        )
        Q, width = len(self.queries), self.marks.shape[1]
        require(are_counts(groups["size"], len(objects)), "the skybands have their objects")
        require((groups["size"] == groups["room"]).all(), "stored skybands have no free places")
        require(len(readings) == len(groups) * Q, "every query reads every skyband")
        require(len(state["marks"]) == len(objects) * width, "every object has its marks")
        self.objects, self.groups, self.readings = objects.copy(), groups.copy(), readings.copy()
        self.object_stamps = self.objects["stamp"].copy()
        self.objects["shown"] = 1 + np.arange(len(objects))
        self.marks = np.zeros((1 + len(objects) + 64, width), np.uint8)
        self.marks[1 : 1 + len(objects)] = state["marks"].reshape(-1, width)
        place(self.groups)
        self.tally[:] = len(objects), 0, 1 + len(objects), 0, 0
        self.pages = self._pages(len(groups))
        self.floors, self.dues = self._none_due(len(groups))
        self.scratch = self.scratch._replace(copies=np.zeros(2 * len(groups), np.int64))
        if not trusted:
            self._check_runs(None)
        sum_all(self._state, int(self.queries["length"].max()))

    keep_groups = rebuild

    def reset_groups(self, groups: Ints) -> None:
        self._grow(1 + int(groups.max(initial=-1)))
        for name, value in (*EMPTY.items(), ("head", self.groups["start"][groups]), ("size", 0), ("open", 0)):
            self.groups[name][groups] = value
        Q = len(self.queries)
        self.readings.reshape(-1, Q)[groups] = self._readings(1)
        self.pages.reshape(len(self.groups), -1)[groups] = self._pages(1)
        self.floors.reshape(-1, Q)[groups], self.dues.reshape(-1, Q)[groups] = LOWEST, NEVER

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        self._check_runs(now)
        if deep:
            check_counters(self)
            self._check_pages()

    def _check_runs(self, now: Ints | None) -> None:
        """Everything that kernels rely on."""
        check_places(self.groups, len(self.objects))
        run = runs(self.objects, self.groups, np.arange(len(self.groups)))
        held, oldest = self.readings["held"], self.readings["oldest"]
        check_kept(self, run, now)
        require(not run["inside"].any() and within(run["shown"], 0, self.tally[2] - 1), "objects have rows of marks")
        require(not np.isnan(self.readings["key"]).any(), "the last member has a key")
        require(near(oldest[held > 0]) and (oldest[held <= 0] == NEVER).all(), "the oldest member has a stamp")
        require(readings_fit(self._state), "answers are read from their runs")

    def _check_pages(self) -> None:
        """Floors and instants of pages leave nothing out."""
        G, Q = len(self.groups), len(self.queries)
        pages, held = self.pages.reshape(G, -1), self.readings["held"].reshape(G, Q)
        floors, dues, oldest = (one.reshape(G, Q) for one in (self.floors, self.dues, self.readings["oldest"]))
        expected = np.where(held > 0, np.minimum(oldest, NEVER // 2) + self.readers["length"], NEVER)
        assert (dues == expected).all(), "every query knows when its oldest member leaves"
        ranked = self.floors[np.argsort(self.readings["key"], kind="stable")]
        assert (ranked[1:] >= ranked[:-1]).all(), "floors rank as keys do"
        for b, low in enumerate(range(0, Q, PAGE)):
            assert (pages["floor"][:, 1 + b] == floors[:, low : low + PAGE].min(axis=1)).all(), "a page has its floor"
            assert (pages["due"][:, 1 + b] == dues[:, low : low + PAGE].min(axis=1)).all(), "nothing leaves before"
        assert (pages["floor"][:, 0] <= pages["floor"][:, 1:].min(axis=1)).all(), "a floor is low enough"
        assert (self.groups["due"] <= pages["due"][:, 1:].min(axis=1)).all(), "nothing leaves before"


def _changes(out: Records, order: Ints, groups: Ints, rows: Ints, alive: Bools) -> Changes:
    """Changes as columns, in this order."""
    size, one = len(out), len(rows) == 1  # one step: its row and group are written once
    row, of = (np.empty(0 if one else size, np.int64) for _ in range(2))
    columns = empty_columns(size)._replace(row=row)
    put_in_columns(out, order, groups, rows, columns, of)
    if one:
        row, of = (np.broadcast_to(each, size) for each in (rows, groups))
    return Changes(columns[0], of, row, *columns[2:], alive)
