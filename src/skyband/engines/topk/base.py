"""The base of engines that keep skybands: a score-sorted run of objects for each group, and the changes of its answers.

An engine overrides which arrivals reach the runs (`_feed`) and what is pruned from them (`_rule`). The algorithm is in
kernels/strict.py, with its cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import place, recast, run_places, runs, unplaced
from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Floats, Ints, Spec
from skyband.engines.grouped import changes_of, ordered_changes, rebuild, slices_of, visits_of
from skyband.engines.invariants import FAR, are_counts, require
from skyband.engines.topk.invariants import check_counters, check_runs
from skyband.engines.topk.kernels.answers import read_answers, refit_skybands
from skyband.engines.topk.kernels.lookahead import find_hopeful, mark_hopeless
from skyband.engines.topk.kernels.state import Report, Skybands
from skyband.engines.topk.kernels.strict import take_skybands
from skyband.kernels.records import (
    ARRIVAL,
    CAP,
    CHANGE,
    GROUP,
    NEVER,
    OBJECT,
    QUERY,
    RULE,
    STRICT,
    VIEW,
    VISIT,
)
from skyband.kernels.routing import lay_out, stable_order
from skyband.query.tuning import Tuning

Records = NDArray[Any]
EMPTY = {"newest": -NEVER, "oldest": NEVER, "due": NEVER}  # of a group without objects


class SkybandEngine:
    """A run for every group, a strict k-skyband unless an engine overrides it, for up to 32 queries at once."""

    name = ""

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool) -> None:
        self.tuning = tuning
        self.timed = timed
        self.net = net
        self.caps = np.empty(0, CAP)  # per group, unless the rule is strict
        self.objects = np.empty(0, OBJECT)
        self.groups = np.empty(0, GROUP)
        self.views = np.empty(0, VIEW)
        self.tally = np.zeros(2, np.int64)  # places of the arena in use, changes of this batch
        self.held = np.empty(0, CHANGE)  # changes of a batch that goes on; `visit` is the group
        self._set_queries(specs)

    def _set_queries(self, specs: tuple[Spec, ...]) -> None:
        self.queries = np.array([(spec.k, spec.length) for spec in specs], QUERY)
        self.rule = self._rule(specs)
        self.stamps = np.empty(max(spec.k for spec in specs), np.int64)  # scratch of kernels

    def _rule(self, specs: tuple[Spec, ...]) -> Records:
        """The rule by which a run is pruned: by its dominance counters."""
        return np.zeros(1, RULE)

    def _new_caps(self, size: int) -> Records:
        """The caps of so many new groups, where the rule is not strict."""
        return np.empty(0, CAP)

    @property
    def _skybands(self) -> Skybands:
        """The state as kernels see it."""
        return Skybands(
            self.objects,
            self.groups,
            self.views,
            self.queries,
            self.rule,
            self.caps,
            self.tally,
            self.stamps,
        )

    def _report(self, changes: Records, alive: Bools, serial: int, more: bool, *, net: bool) -> Report:
        """A report with nothing written."""
        self.tally[1] = 0
        return Report(changes, self.tally, np.zeros(1, CHANGE), alive, serial, not self.timed, net, more)

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> Bools:
        K, reach = max(spec.k for spec in specs), min(spec.length for spec in specs)
        needed = np.zeros(len(arrivals.rows), np.bool_)
        if arrivals.total == 1 and arrivals.in_time:
            needed[hopeful_of_one(arrivals, K, reach, net)] = True
            return needed
        order, taken = grouped(arrivals)
        visits = slices_of(arrivals.groups[order] if len(order) else arrivals.groups)
        hopeless = np.zeros(len(taken), np.bool_)
        mark_hopeless(taken, visits, K, reach, net, hopeless)
        needed[order[~hopeless] if len(order) else ~hopeless] = True
        return needed

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        order, taken = grouped(arrivals)
        one = not len(order)
        visits = visits_of(self, arrivals.groups if one else arrivals.groups[order], taken["now"], arrivals)

        chosen, slices = taken, visits
        if arrivals.eligible is not None:
            eligible = arrivals.eligible if one else arrivals.eligible[order]
            chosen, slices = thin(chosen, slices, eligible)
        alive = np.zeros(arrivals.size, np.bool_)
        out = self._feed(chosen, slices, alive, arrivals.serial, arrivals.more)
        out = self._due_now(out[: self.tally[1]], visits, arrivals.more)
        return ordered_changes(self, out, visits, taken, arrivals, alive)

    def _feed(self, chosen: Records, slices: Records, alive: Bools, serial: int, more: bool) -> Records:
        """Take these arrivals, each group its slice; returns the changes."""
        return self._take(chosen, slices, alive, serial, more, net=self.net)

    def _take(self, chosen: Records, slices: Records, alive: Bools, serial: int, more: bool, *, net: bool) -> Records:
        report = self._report(np.empty(64 + len(chosen), CHANGE), alive, serial, more, net=net)
        self.objects, out = take_skybands(self._skybands, report, chosen, slices)
        return out

    def admit(self, silent: Records, sizes: Ints) -> None:
        """Put objects that have waited elsewhere into the runs as candidates, so many of each group, in order."""
        slices = np.zeros(len(sizes), VISIT)
        slices["group"], slices["end"], slices["last"] = np.arange(len(sizes)), np.cumsum(sizes), -NEVER
        slices["begin"] = slices["end"] - sizes
        silent["row"] -= FAR  # they are no rows of a batch that begins there, and no answers: nothing is reported
        self._take(silent, slices, np.zeros(0, np.bool_), FAR, False, net=False)

    def relabel(self, groups: Ints, keys: Floats) -> None:
        """Give the objects of these groups other keys in the same order, in the order of `serials`."""
        self.objects["key"][run_places(self.groups, groups)] = keys

    def ages(self, groups: Ints) -> tuple[Ints, Ints]:
        """The stamps and serials of the objects of these groups, in the order of `serials`."""
        run = runs(self.objects, self.groups, groups)
        return run["stamp"], run["serial"]

    @property
    def buffer(self) -> int:
        return 0

    def size_of(self, query: int) -> int:
        return int(self.groups["size"].sum())

    def _grow(self, total: int) -> None:
        more = total - len(self.groups)
        if more <= 0:
            return
        groups = np.zeros(more, GROUP)
        for name, value in EMPTY.items():
            groups[name] = value
        self.groups = np.concatenate([self.groups, groups])
        self.views = np.concatenate([self.views, _views(more * len(self.queries))])
        self.caps = np.concatenate([self.caps, self._new_caps(more)])

    def _due_now(self, out: Records, visits: Records, more: bool) -> Records:
        """Hold changes back while a net batch goes on; then they come first."""
        if not more and not len(self.held):
            return out
        groups = visits["group"][out["visit"]]
        if more and self.net:
            out["visit"] = groups
            self.held = np.concatenate([self.held, out])
            return out[:0]
        self.held["visit"] = np.searchsorted(visits["group"], self.held["visit"])
        out, self.held = np.concatenate([self.held, out]), self.held[:0]
        return out[np.argsort(out["visit"], kind="stable")]

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        out = np.empty(int(np.minimum(self.groups["size"][chosen], spec.k).sum()), OBJECT)
        ranked, held = read_answers(self.objects, self.groups, chosen, now, spec.k, spec.length, out)
        ends = np.cumsum(held)
        return Answer(
            group=np.repeat(chosen, held),
            rank=np.arange(1, len(ranked) + 1) - np.repeat(ends - held, held),
            stamp=ranked["stamp"],
            serial=ranked["serial"],
            key=ranked["key"],
        )

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        self._set_queries(specs)
        self.views = _views(len(self.groups) * len(specs))
        report = self._report(np.empty(64, CHANGE), np.empty(0, np.bool_), NEVER, False, net=True)
        out = refit_skybands(self._skybands, report, predecessors, now)[: self.tally[1]]
        out = out[np.argsort(out["query"], kind="stable")]
        return changes_of(out, out["query"], out["visit"].astype(np.int64), np.empty(0, np.bool_))

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        return self.objects["serial"][run_places(self.groups, chosen)], self.groups["size"][chosen]

    @property
    def kept(self) -> Ints:
        return self.groups["size"]

    @property
    def due(self) -> Ints:
        return self.groups["due"]

    @property
    def open(self) -> Ints:
        return self.groups["open"]

    @property
    def nbytes(self) -> int:
        return int(self.objects.nbytes + self.groups.nbytes + self.views.nbytes)

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not len(self.held) and not self.groups["open"].any(), "no batch is open"
        chosen = unplaced(self.groups[groups])
        Q = len(self.queries)
        views = self.views.reshape(-1, Q)[groups].reshape(-1)
        ones = np.ones(len(groups), np.int64)
        arrays = {
            "objects": (runs(self.objects, self.groups, groups), chosen["size"]),
            "groups": (chosen, ones),
            "views": (views, Q * ones),
        }
        return arrays | ({"caps": (self.caps[groups], ones)} if self.rule[0]["kind"] != STRICT else {})

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        objects, groups, views = (
            recast(state[name], dtype) for name, dtype in (("objects", OBJECT), ("groups", GROUP), ("views", VIEW))
        )
        require(are_counts(groups["size"], len(objects)), "the skybands have their objects")
        require((groups["size"] == groups["room"]).all(), "stored skybands have no free places")
        require(len(views) == len(groups) * len(self.queries), "every query has a view of every skyband")
        sizes = np.repeat(groups["size"], len(self.queries))
        fits = (views["held"] >= 0) & (views["held"] <= views["edge"]) & (views["edge"] <= sizes)
        require(fits.all(), "views hold objects of their skybands")
        self.objects, self.groups, self.views = objects.copy(), groups.copy(), views.copy()
        if self.rule[0]["kind"] != STRICT:
            self.caps = recast(state["caps"], CAP).copy()
            require(len(self.caps) == len(groups), "every skyband has its caps")
        place(self.groups)
        self.tally[:] = len(objects), 0

    keep_groups = rebuild

    def reset_groups(self, groups: Ints) -> None:
        self._grow(1 + int(groups.max(initial=-1)))
        for name, value in (*EMPTY.items(), ("head", self.groups["start"][groups]), ("size", 0), ("open", 0)):
            self.groups[name][groups] = value
        Q = len(self.queries)
        self.views.reshape(-1, Q)[groups] = _views(1)
        if len(self.caps):
            self.caps[groups] = self._new_caps(1)

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        check_runs(self, now)
        if deep:
            check_counters(self)


def hopeful_of_one(arrivals: Arrivals, K: int, reach: int, net: bool) -> Ints:
    """Which arrivals of the only group, none of which is late, cannot be left out, by the look-ahead."""
    if arrivals.eligible is None:
        now = arrivals.now if arrivals.first is None else np.empty(0, np.int64)
        return find_hopeful(arrivals.keys, now, K, reach, net)
    here = np.flatnonzero(arrivals.eligible)
    found: Ints = here[find_hopeful(arrivals.keys[here], arrivals.stamps_at(here), K, reach, net)]
    return found


def hopeful(arrivals: Arrivals, K: int, reach: int) -> Ints:
    """The arrivals that may be needed, by a threshold for each block: the K best of both its ends are above the others.

    It is the rule of the look-ahead for arrivals that are far below, without a look at the others, in a quarter of its
    time.
    """
    size, margin = len(arrivals.rows), 64 * K
    if (arrivals.stamps != arrivals.now).any():  # late ones are never left out, and never counted on
        return np.arange(size)
    hopeful = np.ones(size, np.bool_)
    low = 0
    while low < size:
        high = int(np.searchsorted(arrivals.now, arrivals.now[low] + reach))
        if high - low > 4 * margin:
            keys = arrivals.keys[low:high]
            ends = (keys[:margin], keys[-margin:])
            bound = min(np.partition(end, margin - K)[margin - K] for end in ends)
            hopeful[low + margin : high - margin] = keys[margin:-margin] >= bound
        low = high
    return np.flatnonzero(hopeful)


def grouped(arrivals: Arrivals) -> tuple[Ints, Records]:
    """The arrivals as records sorted by group, and the order that sorts them (empty for one group)."""
    one = arrivals.total == 1
    order = np.empty(0, np.int64) if one else stable_order(arrivals.groups, arrivals.total)
    taken = np.empty(len(arrivals.rows), ARRIVAL)
    lay_out(arrivals.keys, arrivals.stamps, arrivals.now, arrivals.rows, order, taken)
    return order, taken


def _views(size: int) -> Records:
    views = np.zeros(size, VIEW)
    views["oldest"] = NEVER
    return views


def thin(arrivals: Records, visits: Records, keep: Bools) -> tuple[Records, Records]:
    """Only the arrivals to keep, and the visits' slices of what is left."""
    if keep.all():
        return arrivals, visits
    before = np.concatenate([[0], np.cumsum(keep)])
    slices = visits.copy()
    slices["begin"], slices["end"] = before[visits["begin"]], before[visits["end"]]
    return arrivals[keep], slices
