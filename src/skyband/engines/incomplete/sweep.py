"""SWEEP, our own exact form of haghani2009's early aggregation: interval dominance by a lazy sweep.

Idea: what the paper's counters know at every moment is needed only when something is to be dropped. So rows are kept
as they come, and when a group has grown by a tenth one sweep from its newest row to its oldest finds what to drop:
every instance that cannot reach the k best current scores of distinct newer objects (kernels/sweep.py). Answers are
kept from arrival to arrival by a front of a few more than k objects; what expires outside of it costs nothing.

A sweep comes at the end of a push, or earlier when rows have no capacity: what is kept in between is never visible, and
what arrives and expires within one push is never kept.

Cost of an arrival: a lookup of its object, one score, and at most 1/10 of a sweep of what is kept, spread over the
arrivals that let it grow by a tenth. Keeps up to a tenth more than EAA. With `repeat` a part may return with its
highest value at any time, so dominance drops nothing: linked_rows.py serves that (adapter.py chooses).

Errata: see eaa.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skyband.engines.arena import recast
from skyband.engines.contract import Answer, Changes, Ints, Spec
from skyband.engines.grouped import changes_of
from skyband.engines.incomplete.base import (
    BEGINNING,
    IncompleteEngine,
    Records,
    enough,
    laid_out,
    numbered,
    ranked,
    within,
)
from skyband.engines.incomplete.invariants import (
    check_register,
    check_reported,
    check_stored,
    check_sweep,
    check_sweep_answers,
)
from skyband.engines.incomplete.kernels.batches import (
    FACTS,
    MEMBERS_USED,
    NOWHERE,
    OBJECTS,
    ONCE,
    RUNS,
    WRITTEN,
    Batch,
    Output,
)
from skyband.engines.incomplete.kernels.combine import scores_of
from skyband.engines.incomplete.kernels.sweep_steps import flush, rebuild, take_rows
from skyband.engines.incomplete.kernels.sweep_store import (
    COUNTED,
    FRONT,
    GROUP,
    OBJECT,
    REPORTED,
    ROW,
    SCORE,
    Store,
    free_objects,
)
from skyband.engines.incomplete.register import ENTRY
from skyband.engines.invariants import are_counts, require
from skyband.kernels.records import BITS, CHANGE, NEVER, VISIT

SMALLEST = 64  # capacity for objects at first
STORED_GROUP = np.dtype([(name, "i8") for name in ("rows", "objects", "told", "limit", "now")], align=True)


class SWEEP(IncompleteEngine):
    """The rows that interval dominance did not drop at the last sweep, and those since."""

    name = "SWEEP"
    touched = np.empty(0, np.int32)

    def _set_queries(self, specs: tuple[Spec, ...]) -> None:
        assert self.repeat == ONCE, "a part comes at most once while it is valid"
        super()._set_queries(specs)
        assert len(self.views) == 1, "which rows are rejected depends on the window"
        self.length, self.k = int(self.views["length"][0]), int(self.views["k"][0])

    def _fit(self, objects: int) -> None:
        super()._fit(objects)
        self.most, touched = int(self.views["most"][0]), self.touched
        self.touched = np.zeros(2 * self.most + 2, np.int32)
        self.touched[: len(touched)] = touched[: len(self.touched)]
        self.top = np.zeros(min(int(self.views["k"][0]), objects + 1))

    def _empty(self) -> None:
        self.facts = np.zeros(FACTS, np.int64)
        self.rows, self.groups, self.fronts = np.zeros(0, ROW), np.zeros(0, GROUP), np.zeros(0, FRONT)
        self.objects, self.scores, self.counted = np.zeros(0, OBJECT), np.zeros(0, SCORE), np.zeros(0, COUNTED)
        self.values, self.stamps, self.instance = np.zeros(0), np.zeros(0, np.int64), np.zeros(self.d)
        self.members, self.reported = np.zeros(0, np.int32), np.zeros(0, REPORTED)
        self._add_objects(SMALLEST)

    @property
    def store(self) -> Store:
        return Store(
            self.rows,
            self.objects,
            self.scores,
            self.values,
            self.stamps,
            self.free,
            self.groups,
            self.fronts,
            self.members,
            self.reported,
            self.touched,
            self.counted,
            self.dropped,
            self.instance,
            self.top,
            self.facts,
        )

    # --- capacity

    def _grow(self, reason: int, batch: Batch, visits: Records, output: Output) -> Output:
        if reason == RUNS:
            sizes, capacities = self.groups["size"], self.groups["capacity"]
            full = 4 * sizes >= 3 * capacities
            self._lay_out_rows(enough(np.where(full, np.maximum(8, 2 * sizes), capacities), sizes, visits))
        elif reason == OBJECTS:
            self._free_expired()
        return super()._grow(reason, batch, visits, output)

    def _add_objects(self, more: int) -> None:
        """Add so many places for objects."""
        fresh = np.zeros(more, OBJECT)
        fresh["group"] = -1
        self.objects = np.concatenate([self.objects, fresh])
        self.scores = np.concatenate([self.scores, np.zeros(more, SCORE)])
        self.values = np.concatenate([self.values, np.tile(self.combination.lows, more)])
        self.stamps = np.concatenate([self.stamps, np.full(more * self.d, NOWHERE)])
        self.counted = np.zeros(len(self.objects), COUNTED)
        self.dropped, self.free = (np.zeros(len(self.objects), np.int32) for _ in range(2))
        self._fit(len(self.objects))
        self._free_expired()

    def _free_expired(self) -> None:
        """Free the places of objects without valid rows, as in the kernel; if few are free, double them."""
        if 4 * free_objects(self.store, self.length) > 3 * len(self.objects):
            self._add_objects(len(self.objects))

    def _pack_fronts(self) -> None:
        starts, sizes = self.fronts["start"].copy(), self.fronts["reported"]
        super()._pack_fronts()
        capacities = self.fronts["capacity"]
        spare = len(self.members) - int(capacities.sum())
        self.reported, _ = laid_out(self.reported, starts, sizes, capacities, spare)

    def _front_sizes(self) -> Ints:
        sizes: Ints = np.maximum(self.fronts["size"], self.fronts["reported"])
        return sizes

    def _lay_out_rows(self, capacities: Ints) -> None:
        """Give the runs of all groups these capacities."""
        self.rows, starts = laid_out(self.rows, self.groups["head"], self.groups["size"], capacities)
        self.groups["start"] = self.groups["head"] = starts
        self.groups["capacity"] = capacities

    def _add_groups(self, total: int) -> None:
        more = total - len(self.groups)
        if more > 0:
            groups, fronts = np.zeros(more, GROUP), np.zeros(more, FRONT)
            groups["due"], groups["limit"], groups["now"] = NEVER, self.least, BEGINNING
            groups["start"] = groups["head"] = len(self.rows)
            fronts["changed"] = fronts["next"] = NEVER
            fronts["score"], fronts["stamp"], fronts["serial"], fronts["since"] = -np.inf, NOWHERE, NOWHERE, NOWHERE
            self.groups, self.fronts = np.concatenate([self.groups, groups]), np.concatenate([self.fronts, fronts])

    # --- the stream

    def _run(self, batch: Batch, visits: Records) -> Records:
        changes = super()._run(batch, visits)
        self.register.set_owners(batch.owners)
        return changes

    def _kernel(self, batch: Batch, visits: Records, output: Output) -> int:
        reason: int = take_rows(self.store, self.combination, self.kernel_queries, visits, batch, output)
        return reason

    def _flush(self, visits: Records, output: Output) -> Output:
        changed = self.fronts[visits["group"]]
        changed = changed[changed["changed"] < self.k]
        size = len(self.queries) * int((changed["reported"] + changed["size"]).sum())
        output = output._replace(changes=np.empty(size, CHANGE))
        flush(self.store, self.kernel_queries, visits, output)
        return output

    # --- answers

    def _survey(self, spec: Spec, now: Ints, groups: Ints) -> Answer:
        rows, sizes = self._run_of(groups)
        owner, o = np.repeat(groups, sizes), rows["object"].astype(np.int64)
        bounds = now[owner] - spec.length
        newest = (rows["serial"] == self.objects["serial"][o]) & (rows["stamp"] > bounds)
        rows, owner, o, bounds = rows[newest], owner[newest], o[newest], bounds[newest]
        valid = self.stamps.reshape(-1, self.d)[o] > bounds[:, None]
        values = np.where(valid, self.values.reshape(-1, self.d)[o], self.combination.lows)
        scores = np.empty(len(o))
        scores_of(self.combination, np.ascontiguousarray(values).reshape(-1), scores)
        return ranked(owner, scores, rows["stamp"], rows["serial"], spec.k)

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._add_groups(len(now))
        before, shown = np.where(predecessors < 0, 0, self.queries["k"][predecessors]), self.objects["shown"].copy()
        self._set_queries(specs)
        self.objects["shown"] = 0
        for query, predecessor in enumerate(predecessors.tolist()):
            if predecessor >= 0:
                self.objects["shown"] |= np.where(shown & BITS[predecessor], BITS[query], np.uint32(0))
        self.register.shorten(self.length)
        self._rebuild(now[: len(self.groups)])
        visits = np.zeros(len(self.groups), VISIT)
        visits["group"] = np.arange(len(self.groups))
        size = len(specs) * int((self.fronts["reported"] + self.fronts["size"]).sum())
        output = Output(np.empty(size, CHANGE), np.zeros(1, CHANGE))
        self.facts[WRITTEN], self.queries["before"] = 0, before
        flush(self.store, self.kernel_queries, visits, output)
        self.queries["before"] = self.queries["k"]
        out = output.changes[: self.facts[WRITTEN]]
        out = out[np.argsort(out["query"], kind="stable")]
        return changes_of(out, out["query"], out["visit"].astype(np.int64), np.empty(0, np.bool_))

    def _rebuild(self, now: Ints) -> None:
        """Compute everything that follows from the rows; what was reported stays so."""
        every = np.arange(len(self.groups))
        rows, sizes = self._run_of(every)
        owner = np.repeat(every, sizes)
        self.groups["now"] = np.maximum(self.groups["now"], now)
        valid = rows["stamp"] > self.groups["now"][owner] - self.length
        self.rows, sizes = rows[valid], np.bincount(owner[valid], minlength=len(every))
        self.groups["start"] = self.groups["head"] = np.cumsum(sizes) - sizes
        self.groups["size"] = self.groups["capacity"] = sizes
        held = self.fronts["reported"]
        capacities = np.maximum(held, np.minimum(2 * self.most, sizes))
        self.reported, starts = laid_out(self.reported, self.fronts["start"], held, capacities)
        self.members = np.zeros(len(self.reported), np.int32)
        self.fronts["start"], self.fronts["capacity"], self.fronts["size"] = starts, capacities, 0
        self.facts[MEMBERS_USED] = len(self.members)
        self.stamps[:] = self.objects["stamp"] = NOWHERE
        self.objects["in_front"] = 0
        self.values = np.tile(self.combination.lows, len(self.objects))
        rebuild(self.store, self.combination, self.kernel_queries)
        self.objects["shown"][self.objects["stamp"] == NOWHERE] = 0

    # --- what is kept

    def _run_of(self, groups: Ints) -> tuple[Records, Ints]:
        """The rows of these groups, the oldest first, and how many of each."""
        sizes = self.groups["size"][groups]
        return self.rows[np.repeat(self.groups["head"][groups], sizes) + within(sizes)], sizes

    def _reported(self, groups: Ints) -> Records:
        """The answers of these groups, as last reported."""
        sizes = self.fronts["reported"][groups]
        reported: Records = self.reported[np.repeat(self.fronts["start"][groups], sizes) + within(sizes)]
        return reported

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        rows, sizes = self._run_of(np.arange(len(self.groups)) if groups is None else groups)
        return rows["serial"], sizes

    def shown(self) -> Ints:
        serials: Ints = self._reported(np.arange(len(self.groups)))["serial"]
        return serials

    @property
    def kept(self) -> Ints:
        kept: Ints = self.groups["size"]
        return kept

    # --- state

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not self.groups["open"].any(), "no batch is open"
        rows, sizes = self._run_of(groups)
        reported, held = self._reported(groups), self.fronts["reported"][groups]
        objects, counts, numbers = numbered(rows["object"], sizes)
        rows["object"], reported["object"] = numbers[rows["object"]], numbers[reported["object"]]
        packs = np.zeros(len(groups), STORED_GROUP)
        packs["rows"], packs["objects"], packs["told"] = sizes, counts, held
        packs["limit"], packs["now"] = self.groups["limit"][groups], self.groups["now"][groups]
        entries, lots = self.register.entries(groups, self.groups["now"])
        one = np.ones(len(groups), np.int64)
        return {
            "rows": (rows, sizes),
            "names": (self.objects["name"][objects], counts),
            "shown": (self.objects["shown"][objects], counts),
            "told": (reported, held),
            "packs": (packs, one),
            "register": (entries, lots),
            "lots": (lots, one),
        }

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        dtypes = {"rows": ROW, "told": REPORTED, "packs": STORED_GROUP}
        rows, reported, packs = (recast(state[name], dtype).copy() for name, dtype in dtypes.items())
        names, shown, counts, every = state["names"], state["shown"], packs["objects"], np.arange(len(packs))
        parts = (("rows", rows), ("objects", names), ("objects", shown), ("told", reported))
        require(all(are_counts(packs[name], len(some)) for name, some in parts), "groups have their rows and objects")
        fits = (rows["object"] >= 0) & (rows["object"] < np.repeat(counts, packs["rows"]))
        require((fits & (rows["part"] >= 0) & (rows["part"] < self.d)).all(), "rows are parts of objects")
        fits = (reported["object"] >= 0) & (reported["object"] < np.repeat(counts, packs["told"]))
        require(fits.all() and (packs["told"] <= self.k).all(), "answers are objects")
        entries, lots = recast(state["register"], ENTRY), state["lots"]
        require(len(lots) == len(packs) and are_counts(lots, len(entries)), "groups have their part of the register")
        if not trusted:
            check_stored(self, rows, packs["rows"], names, counts, packs["now"])
            check_register(self, entries, lots, rows, packs["rows"], names, counts)
            check_reported(self, reported, packs, shown)
        self._empty()
        self._add_groups(len(packs))
        offsets = np.cumsum(counts) - counts
        rows["object"] += np.repeat(offsets, packs["rows"])
        reported["object"] += np.repeat(offsets, packs["told"])
        self.rows, self.reported = rows, reported
        self._add_objects(2 * len(names))
        self.objects["name"][: len(names)], self.objects["shown"][: len(names)] = names, shown
        self.objects["group"][: len(names)] = np.repeat(every, counts)
        self.objects["reported"][reported["object"]] = within(packs["told"]) + 1
        self.groups["size"], self.fronts["reported"] = packs["rows"], packs["told"]
        self.groups["head"] = np.cumsum(packs["rows"]) - packs["rows"]
        self.fronts["start"] = np.cumsum(packs["told"]) - packs["told"]
        self.groups["limit"], self.groups["now"] = packs["limit"], packs["now"]
        self.register.restore(entries, lots, names, np.repeat(every, counts))
        self._rebuild(packs["now"])
        self._free_expired()
        self.fronts["changed"] = NEVER  # what was reported is the answer

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        """Check the answers; deep: everything, from the rows up."""
        check_sweep_answers(self, now)
        if deep:
            check_sweep(self)
