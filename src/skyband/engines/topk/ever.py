"""The base of engines of windows without end: a run of objects for each group, from which nothing expires.

Arrivals are taken in their order, whatever their groups: with no expiries, an arrival is the only kind of step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import place, recast, runs
from skyband.engines.contract import NEVER, Answer, Arrivals, Bools, Changes, Floats, Ints, Spec
from skyband.engines.grouped import changes_of, rebuild
from skyband.engines.invariants import are_counts, by_run, near, require, within
from skyband.engines.topk.invariants import check_places
from skyband.engines.topk.kernels.ever import Arriving, Runs
from skyband.engines.topk.kernels.state import Report
from skyband.kernels.records import BITS, CHANGE, OBJECT
from skyband.kernels.routing import reorder
from skyband.query.tuning import Tuning

Records = NDArray[Any]
RUN = np.dtype([(name, "i8") for name in ("start", "room", "head", "size", "open")], align=True)


class EverEngine:
    """A run for every group, for up to 32 queries at once. An engine says what gets into a run."""

    name = ""

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool) -> None:
        self.timed, self.net = timed, net
        self.queries: Floats = np.empty(0)
        self._set_queries(specs)
        self.objects = np.empty(0, OBJECT)
        self.groups = np.empty(0, RUN)
        self.floors: Floats = np.empty(0)
        self.tally = np.zeros(2, np.int64)  # places of the arena in use, changes of this batch
        self.held = np.empty(0, CHANGE)  # changes of a batch that goes on; `visit` is the group

    # --- what an engine says

    def _set_queries(self, specs: tuple[Spec, ...]) -> None:
        """Serve these queries: what each is bounded by, in `queries`."""
        raise NotImplementedError

    def _feed(self, arriving: Arriving, report: Report) -> Records:
        """Take these arrivals; returns the changes."""
        raise NotImplementedError

    def _set_floors(self) -> None:
        """What is below does not get into a run."""
        raise NotImplementedError

    def _members(self, run: Records, ranks: Ints, bound: float) -> Bools:
        """Which objects of runs, with these ranks from 0, are in the answer of a query with this bound."""
        raise NotImplementedError

    def _ranked(self, groups: Ints, spec: Spec) -> tuple[Records, Ints]:
        """The answers of these groups, best first, one after another; and how many objects each has."""
        raise NotImplementedError

    # --- arrivals

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        alive = np.zeros(arrivals.size, np.bool_)
        out = self._feed(arriving(arrivals), self._report(alive, arrivals.serial, more=arrivals.more))
        if self.net:
            out, self.held = np.concatenate([self.held, out]), self.held[:0]
            if arrivals.more:
                out, self.held = out[:0], out
            self._end_batch(out, arrivals)
        codes = out["visit"].astype(np.int64)
        if len(self.queries) > 1 or self.net:  # within a query they are by step
            keys = (out["row"], codes, out["query"]) if self.net else (out["query"],)
            order = np.lexsort(keys)
            out, codes = reorder(out, order), codes[order]
        return changes_of(out, out["query"], codes, alive)

    def _end_batch(self, out: Records, arrivals: Arrivals) -> None:
        """Net changes are of the last arrival of their group in this batch, or of none."""
        last = np.full(len(self.groups), -1)
        if arrivals.total > 1:
            last[arrivals.groups] = arrivals.rows
        elif len(arrivals.keys):
            last[0] = arrivals.rows_at(np.array([len(arrivals.keys) - 1]))[0]
        out["row"] = last[out["visit"]]

    def _report(self, alive: Bools, serial: int, *, more: bool) -> Report:
        self.tally[1] = 0
        return Report(np.empty(64, CHANGE), self.tally, np.zeros(1, CHANGE), alive, serial, False, self.net, more)

    def _runs(self) -> Runs:
        """The state as kernels see it."""
        return Runs(self.objects, self.groups, self.floors, self.queries, self.tally)

    def _grow(self, total: int) -> None:
        more = total - len(self.groups)
        if more > 0:
            self.groups = np.concatenate([self.groups, np.zeros(more, RUN)])
            self._set_floors()

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        chosen = chosen[chosen < len(self.groups)]
        ranked, held = self._ranked(chosen, spec)
        return Answer(
            group=np.repeat(chosen, held),
            rank=places_of(held) + 1,
            stamp=ranked["stamp"],
            serial=ranked["serial"],
            key=ranked["key"],
        )

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        all_groups = np.arange(len(self.groups))
        run, sizes = runs(self.objects, self.groups, all_groups), self.groups["size"]
        ranks, before, shown = places_of(sizes), self.queries, np.zeros(len(run), np.uint32)
        self._set_queries(specs)
        pieces, kept = [], np.zeros(len(run), np.bool_)
        for q, bound in enumerate(self.queries):
            member, old = self._members(run, ranks, bound), int(predecessors[q])
            was = self._members(run, ranks, before[old]) & (old >= 0)
            known = (run["shown"] & BITS[old] != 0) & (old >= 0)
            kept |= member
            shown[known | member] |= BITS[q]
            moved = np.concatenate([np.flatnonzero(was & ~member), np.flatnonzero(member & ~was)])
            changes = np.zeros(len(moved), CHANGE)
            for name in ("key", "stamp", "serial"):
                changes[name] = run[name][moved]
            changes["row"], changes["query"], changes["diff"] = -1, q, np.where(member[moved], 1, -1)
            changes["visit"] = np.repeat(all_groups, sizes)[moved]
            changes["first"] = member[moved] & ~known[moved]
            pieces.append(changes[np.argsort(changes["visit"], kind="stable")])
        run["shown"], run["inside"] = shown, self._inside(run, sizes)
        self._put_back(run[kept], by_run(np.add, kept.astype(np.int64), sizes, 0))
        out = np.concatenate(pieces)
        return changes_of(out, out["query"], out["visit"].astype(np.int64), np.empty(0, np.bool_))

    def _inside(self, run: Records, sizes: Ints) -> NDArray[np.uint32]:
        """Of each object, bit q: whether it is in the answer of query q."""
        inside, ranks = np.zeros(len(run), np.uint32), places_of(sizes)
        for q, bound in enumerate(self.queries):
            inside[self._members(run, ranks, bound)] |= BITS[q]
        return inside

    def _put_back(self, run: Records, sizes: Ints) -> None:
        """Keep these objects, so many in each group."""
        self.objects, self.groups = run, np.zeros(len(sizes), RUN)
        self.groups["size"] = self.groups["room"] = sizes
        place(self.groups)
        self.tally[:] = len(run), 0
        self._set_floors()

    # --- groups

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        return runs(self.objects, self.groups, chosen)["serial"], self.groups["size"][chosen]

    keep_groups = rebuild

    def reset_groups(self, groups: Ints) -> None:
        self._grow(1 + int(groups.max(initial=-1)))
        self.groups["head"][groups] = self.groups["start"][groups]
        self.groups["size"][groups] = self.groups["open"][groups] = 0
        self._set_floors()

    @property
    def kept(self) -> Ints:
        return self.groups["size"]

    @property
    def due(self) -> Ints:
        return np.full(len(self.groups), NEVER)

    @property
    def buffer(self) -> int:
        return 0

    def size_of(self, query: int) -> int:
        return int(self.groups["size"].sum())

    @property
    def nbytes(self) -> int:
        return int(self.objects.nbytes + self.groups.nbytes + self.floors.nbytes)

    # --- snapshots

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not len(self.held) and not self.groups["open"].any(), "no batch is open"
        sizes = self.groups["size"][groups]
        return {
            "objects": (runs(self.objects, self.groups, groups), sizes),
            "sizes": (sizes, np.ones(len(groups), np.int64)),
        }

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        objects, sizes = recast(state["objects"], OBJECT), state["sizes"]
        require(sizes.dtype == np.int64 and sizes.ndim == 1, "sizes are numbers")
        require(are_counts(sizes, len(objects)), "the runs have their objects")
        self._put_back(objects.copy(), sizes)

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        check_places(self.groups, len(self.objects))
        sizes, Q = self.groups["size"], len(self.queries)
        run = runs(self.objects, self.groups, np.arange(len(sizes)))
        require(near(run["stamp"]) and within(run["serial"], 0, NEVER - 1), "objects have stamps and serials")
        require(not np.isnan(run["key"]).any(), "objects have keys")
        require(not run["was"].any() and not self.groups["open"].any(), "no batch is open")
        require(not (run["shown"].astype(np.uint64) >> np.uint64(Q)).any(), "members are those of the queries")
        require((run["inside"] == self._inside(run, sizes)).all() and run["inside"].all(), "objects are in answers")
        require(not (run["inside"] & ~run["shown"]).any(), "a member has been shown")
        self._check_runs(run, sizes)

    def _check_runs(self, run: Records, sizes: Ints) -> None:
        """What else holds for the runs of an engine."""
        raise NotImplementedError


def arriving(arrivals: Arrivals) -> Arriving:
    """The eligible arrivals as kernels see them; what follows from their places is left empty."""
    none, first = np.empty(0, np.int64), arrivals.first or 0
    if arrivals.eligible is None:
        stamps = none if arrivals.first is not None else arrivals.stamps
        groups = none if arrivals.total == 1 else arrivals.groups
        return Arriving(arrivals.keys, stamps, groups, none if arrivals.whole else arrivals.rows, first)
    here = np.flatnonzero(arrivals.eligible)
    groups = none if arrivals.total == 1 else arrivals.groups[here]
    return Arriving(arrivals.keys[here], arrivals.stamps_at(here), groups, arrivals.rows_at(here), first)


def places_of(sizes: Ints) -> Ints:
    """The place of each entry in its run, from 0."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
