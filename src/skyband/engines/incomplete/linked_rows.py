"""The engine of linked rows: keeps every row that still counts, chained by object.

It serves `repeat=` as it is: then a part may return with its highest value at any time, so nothing is dominated. EAA,
SLA, APPROX and BUDGET are built on it: they add lists, or say which rows to drop. Queries that differ in k and in the
length of their window share it.

Cost: kernels/linked_steps.py; what expires is taken away from a sum, which is exact, and kernels/finders.py finds the
row that counts without reading the others. Keeps all valid rows; of `last` one for each part, of `max` those without a
newer one that is as large.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines.arena import recast
from skyband.engines.contract import Answer, Arrivals, Changes, Floats, Ints, Spec
from skyband.engines.grouped import changes_of
from skyband.engines.incomplete.base import (
    BEGINNING,
    NO_BATCH,
    IncompleteEngine,
    Records,
    enough,
    laid_out,
    numbered,
    ranked,
    within,
)
from skyband.engines.incomplete.finders import empty_finders, enlarge_finders, find_lasts
from skyband.engines.incomplete.invariants import (
    check_answers,
    check_linked_rows,
    check_packs,
    check_register,
    check_stored,
)
from skyband.engines.incomplete.kernels.batches import (
    CHANGES,
    DONE,
    FACTS,
    FREE_OBJECT,
    FREE_ROW,
    LOWEST_BIT,
    MEMBERS_USED,
    MOST,
    OBJECT_COUNT,
    OBJECTS,
    PRUNE,
    ROW_COUNT,
    RUNS,
    STORED_ROW,
    TOTALS,
    VISIT,
    WAITING,
    WRITTEN,
    Batch,
    Output,
)
from skyband.engines.incomplete.kernels.linked_batches import decide, flush, index_objects, rebuild, survey, take_rows
from skyband.engines.incomplete.kernels.linked_store import (
    GROUP,
    OBJECT,
    REPORTED,
    ROW,
    SCORE,
    STORED_GROUP,
    Store,
)
from skyband.engines.incomplete.pools import chain, empty_fronts, wide_enough, with_free
from skyband.engines.incomplete.register import ENTRY
from skyband.engines.invariants import are_counts, require
from skyband.kernels.records import BITS, CHANGE, NEVER
from skyband.kernels.sums import LOWEST

SMALLEST = 64  # capacity for rows and for objects at first
PARTS_OF_ROW = ("value", "stamp", "serial", "part")


class LinkedRows(IncompleteEngine):
    """All rows of every group that still count."""

    name = ""
    links: Records
    firsts: Records
    lasts: Records

    def _empty(self) -> None:
        self.facts = np.zeros(FACTS, np.int64)
        self.facts[FREE_ROW] = self.facts[FREE_OBJECT] = -1
        self.rows, self.objects = np.zeros(0, ROW), np.zeros(0, OBJECT)
        self.scores, self.reported, self.values = np.zeros(0, SCORE), np.zeros(0, REPORTED), np.zeros(0)
        self.sums, self.high = np.zeros((1, 2 if self.repeat in TOTALS else 0), np.int64), LOWEST
        self.table = np.full(4, -1, np.int32)
        self.order, self.members = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self.groups, self.fronts = np.zeros(0, GROUP), empty_fronts(0)
        self.touched, self.waiting = np.zeros(0, np.int32), np.zeros(0, np.int32)
        empty_finders(self)
        self._add_capacity(SMALLEST, SMALLEST)

    @property
    def store(self) -> Store:
        return Store(*(getattr(self, name) for name in Store._fields))

    # --- capacity

    def _grow(self, reason: int, batch: Batch, visits: Records, output: Output) -> Output:
        if reason == PRUNE:
            return self._prune(int(visits["group"][self.facts[VISIT]]), batch, output)
        if reason == RUNS:
            sizes, capacities = self.groups["size"], self.groups["capacity"]
            full = self.groups["head"] + sizes == self.groups["start"] + capacities
            grown = np.where(full, np.maximum(8, 2 * sizes), np.maximum(capacities, sizes))
            self._lay_out_order(enough(grown, sizes, visits))
        elif reason == OBJECTS:
            rows = 0 if self.facts[FREE_ROW] >= 0 else max(SMALLEST, len(self.rows) // 2)
            objects = 0 if self.facts[FREE_OBJECT] >= 0 else max(SMALLEST, len(self.objects) // 2)
            self._add_capacity(rows, objects)
        return super()._grow(reason, batch, visits, output)

    def _add_capacity(self, rows: int, objects: int) -> None:
        """Add so many places for rows and for objects, and chain them to the free ones."""
        V = len(self.views)
        self.rows, free_row = with_free(self.rows, rows, "older", int(self.facts[FREE_ROW]))
        self.objects, free_object = with_free(self.objects, objects, "oldest", int(self.facts[FREE_OBJECT]))
        self.rows["object"][len(self.rows) - rows :] = -1
        self.objects["group"][len(self.objects) - objects :] = -1
        self.facts[FREE_ROW], self.facts[FREE_OBJECT] = free_row, free_object
        self.scores = np.concatenate([self.scores, np.zeros(V * objects, SCORE)])
        self.reported = np.concatenate([self.reported, np.zeros(V * objects, REPORTED)])
        self.values = np.concatenate([self.values, np.zeros(V * objects * self.d)])
        self.sums = np.concatenate([self.sums, np.zeros((V * objects * self.d, self.sums.shape[1]), np.int64)])
        enlarge_finders(self)
        self._fit(len(self.objects))
        self.touched = np.zeros(len(self.objects), np.int32)
        self.waiting = np.concatenate([self.waiting, np.zeros(objects, np.int32)])
        size = len(self.table)
        while 2 * len(self.objects) > size - 4:
            size *= 2
        if size > len(self.table):
            self._index(2 * size)

    def _index(self, size: int) -> None:
        """Fill a new table of objects."""
        self.table = np.full(size, -1, np.int32)
        index_objects(self.table, self.objects)

    def _lay_out_order(self, capacities: Ints) -> None:
        """Give the runs of all groups these capacities."""
        self.order, starts = laid_out(self.order, self.groups["head"], self.groups["size"], capacities)
        self.groups["start"] = self.groups["head"] = starts
        self.groups["capacity"] = capacities

    def _add_groups(self, total: int) -> None:
        more = total - len(self.groups)
        if more > 0:
            groups = np.zeros(more, GROUP)
            groups["due"] = groups["ask_at"] = NEVER
            groups["limit"], groups["now"] = self.least, BEGINNING
            groups["start"] = groups["head"] = len(self.order)
            self.groups = np.concatenate([self.groups, groups])
            self.fronts = np.concatenate([self.fronts, empty_fronts(more * len(self.views))])

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        self._fit_sums(arrivals.keys)
        return super().take(arrivals)

    def _fit_sums(self, values: Floats) -> None:
        """Give sums the words that they need with these values among them."""
        if self.repeat not in TOTALS:
            return
        lowest, most = int(self.facts[LOWEST_BIT]), int(self.facts[ROW_COUNT]) + len(values)
        self.sums, self.facts[LOWEST_BIT], self.high = wide_enough(self.sums, lowest, self.high, values, most)

    def _kernel(self, batch: Batch, visits: Records, output: Output) -> int:
        reason: int = take_rows(self.store, self.combination, self.kernel_queries, visits, batch, output)
        return reason

    def _flush(self, visits: Records, output: Output) -> Output:
        self.facts[VISIT] = 0
        places = np.zeros(len(self.groups), np.int64)
        places[visits["group"]] = np.arange(len(visits))
        while flush(self.store, self.kernel_queries, visits, places, output) != DONE:
            output = super()._grow(CHANGES, NO_BATCH, visits, output)
        changes = output.changes[: self.facts[WRITTEN]]
        return output._replace(changes=changes[np.argsort(changes["visit"], kind="stable")])

    def _prune(self, group: int, batch: Batch, output: Output) -> Output:
        """Choose what stays of a group that has outgrown its limit; returns where changes are written."""
        raise NotImplementedError

    # --- answers

    def _survey(self, spec: Spec, now: Ints, groups: Ints) -> Answer:
        found = self._objects_since(groups, now[groups] - spec.length)
        owners = found["visit"].astype(np.int64)
        return ranked(owners, found["key"], found["stamp"], found["serial"], spec.k, found["instant"])

    def _serials_of(self, objects: Ints, view: int) -> Ints:
        if self.repeat != MOST:
            return super()._serials_of(objects, view)
        found = np.empty(len(objects), np.int64)
        decide(self.store, objects, view, self.repeat, found)
        return found

    def _objects_since(self, groups: Ints, bounds: Ints) -> Records:
        """The objects of these groups that have rows newer than the bounds, as of then."""
        found = np.empty(int(self.groups["size"][groups].sum()), CHANGE)
        size = survey(self.store, self.combination, groups, bounds, self.repeat, np.empty(self.d), found)
        return found[:size]

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._add_groups(len(now))
        V, size = len(self.views), len(self.objects)
        scores, reported = self.scores.reshape(size, V), self.reported.reshape(size, V)
        live = self.objects["group"] >= 0
        old = []  # per new query: the objects in its answer, as last reported, and those that had been in one
        for predecessor in predecessors:
            view, bit = self.queries["view"][predecessor], BITS[predecessor] if predecessor >= 0 else np.uint32(0)
            inside = np.flatnonzero(live & ((scores["inside"][:, view] & bit) != 0))
            old.append((inside, reported[inside, view], live & ((scores["shown"][:, view] & bit) != 0)))
        self._set_queries(specs)
        fresh = np.zeros((size, len(self.views)), SCORE)
        for query, (_, _, shown) in enumerate(old):
            fresh["shown"][shown, self.queries["view"][query]] |= BITS[query]
        was_in = self.objects["group"].astype(np.int64)
        self.scores, self.reported = fresh.reshape(-1), np.zeros(fresh.size, REPORTED)
        self.values = np.zeros(len(self.scores) * self.d)
        self.sums = np.zeros((len(self.values) + 1, self.sums.shape[1]), np.int64)
        if self.register is not None:
            self.register.shorten(int(self.views["length"].max()))
        self._rebuild(now)
        changes: list[tuple[Any, ...]] = []
        for query, (inside, shown_as, _) in enumerate(old):
            changes += self._difference(query, inside, was_in[inside], shown_as)
        out = np.array(changes, CHANGE)
        return changes_of(out, out["query"], out["visit"].astype(np.int64), np.empty(0, np.bool_))

    def _difference(self, query: int, was: Ints, where: Ints, shown_as: Records) -> list[tuple[Any, ...]]:
        """The changes of a query's answer from these objects, in these groups, to its front, as records."""
        V, view, changes = len(self.views), int(self.queries["view"][query]), list[tuple[Any, ...]]()
        for group in range(len(self.groups)):
            answer = self._best(view, int(self.queries["k"][query]), np.array([group]))
            start = int(self.fronts["start"][group * V + view])
            best = self.members[start : start + len(answer.key)].astype(np.int64)
            for place in np.flatnonzero(where == group):
                if was[place] not in best:
                    score, stamp, serial = shown_as[place].tolist()
                    changes.append((score, stamp, serial, 0, -1, group, query, -1, False))
            for o, stamp, serial, score in zip(best, answer.stamp, answer.serial, answer.key, strict=True):
                one = self.scores[o * V + view]
                if o not in was:
                    first = not one["shown"] & BITS[query]
                    changes.append((score, stamp, serial, 0, -1, group, query, 1, first))
                one["inside"] |= BITS[query]
                one["shown"] |= BITS[query]
                self.reported[o * V + view] = (score, stamp, serial)
        return changes

    # --- what is kept

    def _places(self, groups: Ints) -> tuple[Ints, Ints]:
        """Places of the rows in the order of these groups, the dead among them, and how many of each group."""
        sizes = self.groups["size"][groups]
        return self.order[np.repeat(self.groups["head"][groups], sizes) + within(sizes)].astype(np.int64), sizes

    def _live(self, groups: Ints) -> tuple[Records, Ints]:
        """The rows of these groups, the oldest first, and how many of each."""
        places, sizes = self._places(groups)
        rows = self.rows[places]
        alive = rows["object"] >= 0
        return rows[alive], np.bincount(np.repeat(np.arange(len(sizes)), sizes)[alive], minlength=len(sizes))

    @property
    def kept(self) -> Ints:
        kept: Ints = self.groups["size"] - self.groups["dead"]
        return kept

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        rows, sizes = self._live(np.arange(len(self.groups)) if groups is None else groups)
        return rows["serial"].copy(), sizes

    def shown(self) -> Ints:
        inside = (self.scores["inside"] != 0) & (np.repeat(self.objects["group"], len(self.views)) >= 0)
        serials: Ints = self.reported["serial"][inside]
        return serials

    # --- rebuilding

    def _rebuild(self, now: Ints) -> None:
        """Compute everything that follows from the rows and their order."""
        self._drop_dead()
        V, now = len(self.views), now[: len(self.groups)]
        self.groups["now"] = np.maximum(self.groups["now"], now)
        self.fronts = empty_fronts(V * len(self.groups))
        self.facts[MEMBERS_USED] = 0
        most = 8 * (int(self.views["most"].max()) + 8)
        self.members = np.zeros(V * int(np.minimum(most, 8 * self.groups["size"] + 32).sum()), np.int32)
        bounds = (now[:, None] - self.views["length"][None, :]).reshape(-1)
        output = Output(np.empty(self.margin, CHANGE), np.zeros(1, CHANGE))
        empty_finders(self)
        find_lasts(self)
        rebuild(self.store, self.combination, self.kernel_queries, bounds, output)
        self._pack_fronts()

    def _drop_dead(self) -> None:
        """Take dead rows out of the orders, and free their places."""
        places, sizes = self._places(np.arange(len(self.groups)))
        dead = self.rows["object"][places] < 0
        for place in places[dead]:
            self.rows["older"][place] = self.facts[FREE_ROW]
            self.facts[FREE_ROW] = place
        self.order = places[~dead].astype(np.int32)
        sizes = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[~dead], minlength=len(sizes))
        self.groups["size"] = self.groups["capacity"] = sizes
        self.groups["start"] = self.groups["head"] = np.cumsum(sizes) - sizes
        self.groups["dead"] = 0

    # --- state

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not self.facts[WAITING] and not self.groups["open"].any(), "no batch is open"
        V, (rows, sizes) = len(self.views), self._live(groups)
        objects, counts, numbers = numbered(rows["object"], sizes)
        stored = np.zeros(len(rows), STORED_ROW)
        for name in PARTS_OF_ROW:
            stored[name] = rows[name]
        stored["object"] = numbers[rows["object"]]
        packs = self.groups[groups].view(STORED_GROUP)
        packs["size"], packs["room"], packs["start"], packs["head"], packs["dead"] = sizes, counts, 0, 0, 0
        scores = self.scores.reshape(-1, V)[objects].reshape(-1)
        scores["score"], scores["count"] = 0, 0  # they follow from the rows
        reported = self.reported.reshape(-1, V)[objects].reshape(-1)
        reported[scores["inside"] == 0] = 0
        state = {
            "rows": (stored, sizes),
            "names": (self.objects["name"][objects], counts),
            "sights": (scores, V * counts),
            "told": (reported, V * counts),
            "packs": (packs, np.ones(len(groups), np.int64)),
        }
        if self.register is not None:
            entries, lots = self.register.entries(groups, self.groups["now"])
            state |= {"register": (entries, lots), "lots": (lots, np.ones(len(groups), np.int64))}
        return state

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        dtypes = {"rows": STORED_ROW, "packs": STORED_GROUP, "sights": SCORE, "told": REPORTED}
        rows, packs, scores, reported = (recast(state[name], dtype) for name, dtype in dtypes.items())
        names, counts, sizes = state["names"], packs["room"].copy(), packs["size"].copy()
        require(are_counts(sizes, len(rows)) and are_counts(counts, len(names)), "groups have their rows and objects")
        require(len(scores) == len(reported) == len(self.views) * len(names), "objects have their scores")
        fits = (rows["object"] >= 0) & (rows["object"] < np.repeat(counts, sizes))
        require((fits & (rows["part"] >= 0) & (rows["part"] < self.part_limit)).all(), "rows are parts of objects")
        if not trusted:
            check_stored(self, rows, sizes, names, counts, packs["now"])
            check_packs(packs)
        self._empty()
        self._add_capacity(len(rows), len(names))
        self.facts[FREE_ROW] = chain(self.rows["older"], len(rows))
        self.facts[FREE_OBJECT] = chain(self.objects["oldest"], len(names))
        for name in PARTS_OF_ROW:
            self.rows[name][: len(rows)] = rows[name]
        self.rows["object"][: len(rows)] = rows["object"] + np.repeat(np.cumsum(counts) - counts, sizes)
        self.objects["name"][: len(names)] = names
        self.objects["group"][: len(names)] = np.repeat(np.arange(len(packs)), counts)
        self.scores[: len(scores)], self.reported[: len(reported)] = scores, reported
        self.facts[OBJECT_COUNT], self.facts[ROW_COUNT] = len(names), len(rows)
        self._fit_sums(rows["value"])
        self._index(len(self.table))
        self.groups = packs.copy().view(GROUP)
        self.groups["start"] = self.groups["head"] = np.cumsum(sizes) - sizes
        self.groups["capacity"] = sizes
        self.order = np.arange(len(rows), dtype=np.int32)
        if self.register is not None:
            entries, lots = recast(state["register"], ENTRY), state["lots"]
            complete = len(lots) == len(packs) and are_counts(lots, len(entries))
            require(complete, "groups have their part of the register")
            if not trusted:
                check_register(self, entries, lots, rows, sizes, names, counts)
            self.register.restore(entries, lots)
        if len(packs):
            self._rebuild(self.groups["now"])

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        """Check the answers; deep: everything, from the rows up."""
        check_answers(self, now)
        if deep:
            check_linked_rows(self)
