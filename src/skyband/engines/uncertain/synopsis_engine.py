"""The engine around a synopsis in Python: one synopsis per group. BS for alternatives (exclusive.py) is the only one.

A synopsis is made for the largest k and the longest window of the queries: what is enough for k is enough for fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import recast
from skyband.engines.contract import NEVER, Answer, Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.invariants import FAR, are_counts, by_run, check_ages, near, owners, require, within
from skyband.engines.uncertain.changes import Taken, at_rest, differences, ordered, ranked, taken
from skyband.engines.uncertain.invariants import check_answers, check_window
from skyband.engines.uncertain.kernels.records import CHANGE, TUPLE
from skyband.engines.uncertain.semantics import Semantics, semantics_of
from skyband.engines.uncertain.synopsis import Synopsis, Tuple
from skyband.query.tuning import Tuning

Records = NDArray[Any]
# as stored
TUPLES = np.dtype([("key", "f8"), ("p", "f8"), ("stamp", "i8"), ("serial", "i8"), ("name", "i8"), ("flags", "i8")])
CLOCKS = np.dtype([("now", "i8"), ("newest", "i8")])
ENTERED = np.dtype([("serial", "i8"), ("rank", "i8"), ("query", "i8")])
NAMED, ELIGIBLE = 1, 2


@dataclass
class View:
    """A group's answer to one query."""

    shown: Records = field(default_factory=lambda: np.empty(0, TUPLE))  # as reported, in order of rank
    entered: set[tuple[int, int]] = field(default_factory=set)  # serials and ranks (from 0) that have entered
    most: int = 64  # of these before those that are gone are removed
    low: int = -NEVER  # valid stamps are larger
    floor: float = -np.inf  # worse keys do not touch the answer
    due: int = NEVER  # no tuple that the answer was read from expires before this instant


@dataclass
class Group:
    """One group: its synopsis, and its answers."""

    synopsis: Synopsis
    views: list[View]  # by query
    now: int = -NEVER
    newest: int = -NEVER
    open: bool = False  # within a batch that is reported later
    changes: list[Records] = field(default_factory=list)

    def collected(self, visit: int) -> Records:
        """The changes since the last call, as those of this visit."""
        found = np.concatenate([np.empty(0, CHANGE), *self.changes])
        found["visit"], self.changes = visit, []
        return found


class SynopsisEngine:
    """An engine of synopses; a subclass says of which."""

    name = ""
    synopsis: ClassVar[type[Synopsis]]
    whole = False  # are tuples taken that are not eligible?

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool) -> None:
        self.timed = timed
        self.net = net
        self.groups: list[Group] = []
        self._serve(specs)

    def _serve(self, specs: tuple[Spec, ...]) -> None:
        self.specs = specs
        self.semantics = [semantics_of(one) for one in specs]
        self.by_rank = specs[0].semantics == "u-kranks"

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)

    def _filled(self, tuples: Iterable[Tuple] = ()) -> Synopsis:
        """A synopsis of these tuples, which come by age."""
        synopsis = self.synopsis(max(self.semantics, key=lambda one: one.k))
        for t in tuples:
            synopsis.insert(t)
        return synopsis

    def _grow(self, total: int) -> None:
        while len(self.groups) < total:
            self.groups.append(self._empty())

    def _empty(self) -> Group:
        return Group(self._filled(), [View() for _ in self.specs])

    # --- steps

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        batch = taken(self, arrivals, whole=self.whole)
        changes = [np.empty(0, CHANGE)]
        for v, visit in enumerate(batch.visits):
            group = self.groups[visit["group"]]
            self._visit(group, visit, batch, arrivals)
            changes.append(group.collected(v))
        alive = np.zeros(arrivals.size, np.bool_)
        if arrivals.wants_alive:
            here = self.serials(np.asarray(batch.visits["group"]))[0] - arrivals.serial
            alive[here[here >= 0]] = True
        return ordered(self, np.concatenate(changes), batch, arrivals, alive)

    def _visit(self, group: Group, visit: Any, batch: Taken, arrivals: Arrivals) -> None:
        for i in range(visit["begin"], visit["end"]):
            self._arrive(group, batch, i, arrivals.serial)
        self._close(group, visit, arrivals)

    def _arrive(self, group: Group, batch: Taken, i: int, serial: int) -> None:
        """Take one arrival; serial: of the batch's first row."""
        now, stamp, row = int(batch.now[i]), int(batch.stamps[i]), int(batch.rows[i])
        affected = self._expire(group, now, joint=not self.timed)
        name = int(batch.names[i]) if len(batch.names) and batch.named[i] else None
        eligible = not len(batch.eligible) or bool(batch.eligible[i])
        t = Tuple(float(batch.keys[i]), stamp, serial + row, float(batch.probabilities[i]), name, eligible)
        group.synopsis.insert(t)
        group.newest = max(group.newest, stamp)
        for q, view in enumerate(group.views):
            touched = eligible and stamp > view.low and t.key >= view.floor
            if (touched or q in affected) and not self.net:
                self._report(group, q, now, row)

    def _close(self, group: Group, visit: Any, arrivals: Arrivals) -> None:
        """Time goes on to the end of a visit, and net changes are reported."""
        self._expire(group, int(visit["last"]), joint=False)
        if self.net and not arrivals.more:
            for q in range(len(self.specs)):
                self._report(group, q, int(visit["last"]), -1)
        group.open = self.net and arrivals.more

    def _expire(self, group: Group, now: int, *, joint: bool) -> set[int]:
        """Take the steps up to now. If joint, one at this very instant is the arrival's: return its queries instead."""
        affected = set()
        for q, (one, view) in enumerate(zip(self.specs, group.views, strict=True)):
            while not self.net and view.due <= now:
                instant = view.due
                view.low = instant - one.length
                if joint and instant == now:
                    affected.add(q)
                    break
                self._report(group, q, instant, -1)
            view.low = max(view.low, now - one.length)
        group.now = max(group.now, now)
        group.synopsis.expire(min(view.low for view in group.views))
        return affected

    def _report(self, group: Group, q: int, instant: int, row: int) -> None:
        """Read an answer again, and note its changes."""
        view = group.views[q]
        found = self._update(group, q)
        changes = differences(view.shown, found, q, 0, view.entered, self.by_rank)
        changes["instant"], changes["row"] = instant, row
        group.changes.append(changes)
        view.shown = found
        if len(view.entered) > view.most:  # those that are not kept never enter again
            kept = {t.serial for t in group.synopsis.needed()}
            view.entered = {one for one in view.entered if one[0] in kept}
            view.most = 64 + 2 * len(view.entered)

    def _update(self, group: Group, q: int) -> Records:
        """The answer; its view knows what touches it."""
        view = group.views[q]
        found, view.floor, oldest = self._read(group, self.semantics[q], view.low)
        view.due = NEVER if oldest is None else oldest + self.specs[q].length
        return found

    def _read(self, group: Group, semantics: Semantics, low: int) -> tuple[Records, float, int | None]:
        """The answer, the key below which nothing touches it, and the oldest stamp that does."""
        tuples = group.synopsis.ranking(low)
        passed, enough, places = group.synopsis.read(semantics, tuples)
        found = np.zeros(len(places), TUPLE)
        for j, place in enumerate(places):
            t = tuples[place.at]
            found[j] = (t.key, place.probability, t.stamp, t.serial, place.rank)
        oldest = min((t.stamp for t in tuples[:passed]), default=None)
        return found, tuples[passed - 1].key if enough else -np.inf, oldest

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        semantics = semantics_of(spec)
        found = [self._read(self.groups[g], semantics, int(now[g]) - spec.length)[0] for g in chosen.tolist()]
        sizes = _sizes(found)
        return ranked(np.concatenate([np.empty(0, TUPLE), *found]), chosen, sizes, spec)

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        self._serve(specs)
        ranks, changes = max(one.k for one in specs), []  # those that a query of a smaller k has not may come back
        for g, group in enumerate(self.groups):
            group.synopsis, before = self._filled(group.synopsis.needed()), group.views
            group.views = []
            for q, (one, old) in enumerate(zip(specs, predecessors.tolist(), strict=True)):
                was = before[old] if old >= 0 else View()
                entered = {pair for pair in was.entered if pair[1] < ranks}
                group.views.append(replace(was, entered=entered, low=int(now[g]) - one.length))
                self._report(group, q, 0, -1)
            changes.append(group.collected(g))
        return at_rest(self, changes)

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = self.groups if groups is None else [self.groups[g] for g in groups.tolist()]
        found = [[t.serial for t in group.synopsis.needed()] for group in chosen]
        sizes = _sizes(found)
        return np.array([serial for one in found for serial in one], np.int64), sizes

    @property
    def held(self) -> Records:
        waiting = [view.shown for group in self.groups if group.open for view in group.views]
        return np.concatenate([np.empty(0, TUPLE), *waiting])

    @property
    def kept(self) -> Ints:
        return np.array([group.synopsis.space for group in self.groups], np.int64)

    @property
    def buffer(self) -> int:
        return 0

    def size_of(self, query: int) -> int:
        return int(self.kept.sum())

    @property
    def work(self) -> int:
        """Tuples that walks have passed: what the paper's costs count, k operations each."""
        return sum(group.synopsis.work for group in self.groups)

    @property
    def due(self) -> Ints:
        return np.array([min(view.due for view in group.views) for group in self.groups], np.int64)

    @property
    def open(self) -> Bools:
        return np.array([group.open for group in self.groups], np.bool_)

    @property
    def nbytes(self) -> int:
        return int(TUPLES.itemsize * self.kept.sum())

    # --- snapshots

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        chosen = [self.groups[g] for g in groups.tolist()]
        assert not any(group.open for group in chosen), "no batch is open"
        Q, ones = len(self.specs), np.ones(len(chosen), np.int64)
        kept = [group.synopsis.needed() for group in chosen]
        tuples = [(t.key, t.p, t.stamp, t.serial, t.name or 0, _flags(t)) for one in kept for t in one]
        shown = [view.shown for group in chosen for view in group.views]
        entered = [
            sorted((s, rank, q) for q, view in enumerate(group.views) for s, rank in view.entered if s in alive)
            for group, one in zip(chosen, kept, strict=True)
            for alive in [{t.serial for t in one}]
        ]
        sizes, answers = _sizes(kept), _sizes(shown)
        return {
            "tuples": (np.array(tuples, TUPLES), sizes),
            "many": (sizes, ones),
            "state": (np.array([(group.now, group.newest) for group in chosen], CLOCKS), ones),
            "answers": (np.concatenate([np.empty(0, TUPLE), *shown]), answers.reshape(-1, Q).sum(axis=1)),
            "shown": (answers, Q * ones),
            "said": (np.array([one for some in entered for one in some], ENTERED), _sizes(entered)),
            "told": (_sizes(entered), ones),
        }

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        Q = len(self.specs)
        require(len(state["state"]) == len(state["many"]) == len(state["told"]), "groups have their state")
        parts = (("many", "tuples"), ("shown", "answers"), ("told", "said"))
        require(all(are_counts(state[sizes], len(state[of])) for sizes, of in parts), "groups have their tuples")
        require(len(state["shown"]) == Q * len(state["many"]), "groups have their answers")
        if not trusted:
            self._check_stored(state)
        self.groups = []
        self._grow(len(state["many"]))
        tuples, clocks, entered = (state[name].tolist() for name in ("tuples", "state", "said"))
        answers = recast(state["answers"], TUPLE)
        ends, shown, pairs = (np.concatenate([[0], np.cumsum(state[name])]) for name in ("many", "shown", "told"))
        for g, group in enumerate(self.groups):
            group.synopsis = self._filled(
                Tuple(key, stamp, serial, p, name if flags & NAMED else None, bool(flags & ELIGIBLE))
                for key, p, stamp, serial, name, flags in tuples[ends[g] : ends[g + 1]]
            )
            group.now, group.newest = clocks[g]
            for q, (one, view) in enumerate(zip(self.specs, group.views, strict=True)):
                view.shown = answers[shown[g * Q + q] : shown[g * Q + q + 1]].copy()
                view.low = group.now - one.length if group.now > -NEVER else -NEVER
                self._update(group, q)
            for serial, rank, q in entered[pairs[g] : pairs[g + 1]]:
                group.views[q].entered.add((serial, rank))

    def _check_stored(self, state: Mapping[str, Records]) -> None:
        """Check the arrays of a snapshot; synopses follow from them."""
        Q, tuples, sizes, clocks, said = len(self.specs), *(state[n] for n in ("tuples", "many", "state", "said"))
        check_window(tuples, sizes)
        require(within(tuples["flags"], 0, NAMED | ELIGIBLE), "tuples have flags")
        require(self.whole or (tuples["flags"] == ELIGIBLE).all(), "only whole windows have tuples that are no answers")
        known = near(clocks["now"][clocks["now"] > -NEVER]) and near(clocks["newest"][clocks["newest"] > -NEVER])
        newest = by_run(np.maximum, tuples["stamp"], sizes, -NEVER)
        require(known and (clocks["newest"] >= newest).all(), "no tuple is newer")
        require(within(said["query"], 0, Q - 1) and within(said["rank"], 0, NEVER), "reports are of queries")
        of = np.arange(len(state["shown"])) // Q
        check_answers(recast(state["answers"], TUPLE), state["shown"], of, tuples, owners(sizes), self.by_rank)

    def keep_groups(self, groups: Ints) -> None:
        self._grow(1 + int(groups.max(initial=-1)))
        self.groups = [self.groups[g] for g in groups.tolist()]

    def reset_groups(self, groups: Ints) -> None:
        self._grow(1 + int(groups.max(initial=-1)))
        for g in groups.tolist():
            self.groups[g] = self._empty()

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        """Check the synopses; what kernels rely on follows from how they are built."""
        kept = [[t.stamp for t in group.synopsis.needed()] for group in self.groups] if now is not None else []
        stamps = np.array([stamp for some in kept for stamp in some], np.int64)
        check_ages(stamps, _sizes(kept), now, FAR)  # after `refit` some have left the longest window
        require(now is None or (self.due > now).all(), "what is due has left")
        for group in self.groups if deep else ():
            group.synopsis.check()
            for semantics, view in zip(self.semantics, group.views, strict=True):
                if not group.open:
                    found, _, _ = self._read(group, semantics, view.low)
                    assert (found == view.shown).all() and len(found) == len(view.shown), "the answer is current"


def _flags(t: Tuple) -> int:
    return NAMED * (t.name is not None) + ELIGIBLE * t.eligible


def _sizes(lists: list[Any]) -> Ints:
    return np.array([len(one) for one in lists], np.int64)
