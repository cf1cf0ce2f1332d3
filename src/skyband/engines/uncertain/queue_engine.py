"""The engine around the compact sets of jin2008: one synopsis per group, a kernel for each algorithm's steps.

A synopsis is made for the largest k and the longest window of the queries; the compact sets of all suffixes of the
window are in it, so that shorter windows are exact too, and what is enough for k is enough for fewer. Stored are the
tuples alone: sets follow from them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import recast
from skyband.engines.contract import NEVER, Answer, Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.invariants import FAR, are_counts, by_run, check_ages, near, owners, require, within
from skyband.engines.uncertain.changes import at_rest, differences, ordered, ranked, taken
from skyband.engines.uncertain.invariants import check_answers, check_window
from skyband.engines.uncertain.kernels.compact import find_needed
from skyband.engines.uncertain.kernels.queue import CURRENT, FRESH, LOW, WORK, Stored
from skyband.engines.uncertain.kernels.queue_steps import STEPS, Held
from skyband.engines.uncertain.kernels.records import CHANGE, GROUP, QUERY, TUPLE, Arena, Batch, Reported, Rules
from skyband.engines.uncertain.queue_groups import (
    Group,
    arena_of,
    nothing,
    placed,
    run_of,
    set_runs,
    shown,
    sizes_of,
    views_of,
)
from skyband.engines.uncertain.semantics import SEMANTICS, semantics_of
from skyband.kernels.records import VISIT
from skyband.query.tuning import Tuning

Records = NDArray[Any]
# as stored
TUPLES = np.dtype([("key", "f8"), ("p", "f8"), ("stamp", "i8"), ("serial", "i8"), ("name", "i8"), ("flags", "i8")])
CLOCKS = np.dtype([("now", "i8"), ("newest", "i8")])
ENTERED = np.dtype([("serial", "i8"), ("rank", "i8"), ("query", "i8")])
ELIGIBLE = 2  # the flag of every tuple; version 0.1 had others


class QueueEngine:
    """An engine of compact sets; a subclass says which sets, and by which kernel."""

    name = ""
    kernel: ClassVar[Callable[..., Any]]

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool) -> None:
        self.timed = timed
        self.net = net
        self.groups: list[Group] = []
        self.changes = np.empty(64, CHANGE)  # kept between pushes
        self._serve(specs)

    def _serve(self, specs: tuple[Spec, ...]) -> None:
        self.specs = specs
        assert specs[0].semantics is not None
        self.semantics = SEMANTICS[specs[0].semantics].code
        self.by_rank = specs[0].semantics == "u-kranks"
        self.queries = np.zeros(len(specs), QUERY)
        self.queries["k"] = [one.k for one in specs]
        self.queries["length"] = [one.length for one in specs]
        self.queries["threshold"] = [one.threshold or 0.0 for one in specs]

    def _rules(self, *, net: bool, more: bool) -> Rules:
        widest, k = int(np.argmax(self.queries["length"])), int(self.queries["k"].max())
        return Rules(self.queries, widest, k, self.semantics, self.timed, net, more, False, 0, 0)

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)

    def _grow(self, total: int) -> None:
        while len(self.groups) < total:
            self.groups.append(self._empty())

    def _empty(self) -> Group:
        clock = np.zeros(1, GROUP)
        clock["newest"] = clock["now"] = -NEVER
        Q = len(self.specs)
        return Group(nothing(), clock, views_of(Q), arena_of(Q), [set() for _ in range(Q)])

    def _filled(self, tuples: Records) -> Stored:
        """A synopsis of these tuples, which come by age."""
        group, n = self._empty(), len(tuples)
        if n:
            now = np.full(n, tuples["stamp"].min())  # nothing expires meanwhile
            visit = np.array([(0, 0, n, now[0])], VISIT)
            key, p, stamp, serial = (np.ascontiguousarray(tuples[name]) for name in ("key", "p", "stamp", "serial"))
            self._take(group, Batch(key, p, stamp, now, serial, visit, 0), self._rules(net=True, more=True), 0)
        return group.stored

    # --- steps

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        here = taken(self, arrivals)
        batch = Batch(here.keys, here.probabilities, here.stamps, here.now, here.rows, here.visits, arrivals.serial)
        rules, changes = self._rules(net=self.net, more=arrivals.more), [np.empty(0, CHANGE)]
        for v, visit in enumerate(batch.visits):
            changes.append(self._take(self.groups[visit["group"]], batch, rules, v))
        alive = np.zeros(arrivals.size, np.bool_)
        if arrivals.wants_alive:
            kept = self.serials(np.asarray(batch.visits["group"]))[0] - arrivals.serial
            alive[kept[kept >= 0]] = True
        return ordered(self, np.concatenate(changes), here, arrivals, alive)

    def _take(self, group: Group, batch: Batch, rules: Rules, v: int) -> Records:
        """The changes of a visit."""
        none, written, stored = np.empty(0, np.int64), np.zeros(2, np.int64), group.stored
        reported = Reported(group.answers, np.empty((0, 1), np.uint64), none, none, self.changes, written)
        held = Held(group.clock, group.views, reported, np.zeros(1, STEPS))
        records, runs, sets, free, answers, self.changes = type(self).kernel(stored, held, batch, rules, v)
        group.stored = Stored(Arena(records, runs, stored.lists.used), sets, free, stored.facts)
        group.answers = group.answers._replace(records=answers)
        found = self.changes[: written[1]].copy()
        found["visit"] = v
        self._note_entered(group, found)
        return found

    def _note_entered(self, group: Group, changes: Records) -> None:
        """Which of them enter for the first time."""
        entering = np.flatnonzero(changes["diff"] > 0)
        some = changes[entering]
        ranks = some["rank"] - 1 if self.by_rank else np.zeros(len(some), np.int64)
        for i, q, serial, rank in zip(
            entering.tolist(), some["query"].tolist(), some["serial"].tolist(), ranks.tolist(), strict=True
        ):
            changes[i]["first"] = (serial, rank) not in group.entered[q]
            group.entered[q].add((serial, rank))
        if max(map(len, group.entered)) > group.most:  # those that are not kept never enter again
            kept = set(self.tuples(group)["serial"].tolist())
            group.entered = [{one for one in entered if one[0] in kept} for entered in group.entered]
            group.most = 64 + 2 * max(map(len, group.entered))

    # --- tuples

    def lists(self, group: Group) -> list[Records]:
        """What is stored, each tuple as often as it is: the tuples of each set, D or B, C(S_W)."""
        return [run_of(group.stored, r) for r in (*set_runs(group.stored), FRESH, CURRENT)]

    def tuples(self, group: Group) -> Records:
        """All valid tuples that are kept, each once, by age."""
        kept = np.concatenate(self.lists(group))
        kept = kept[kept["stamp"] > group.stored.facts[LOW]]
        kept = kept[np.unique(kept["serial"], return_index=True)[1]]
        kept["mark"] = 0
        found: Records = kept[np.lexsort((kept["serial"], kept["stamp"]))]
        return found

    def needed_of(self, group: Group) -> Records:
        """The tuples that can still matter, by age: the union of the compact sets of all suffixes (dom.py)."""
        newest_first = np.ascontiguousarray(self.tuples(group)[::-1])
        if not len(newest_first):
            return newest_first
        found = find_needed(nothing(), newest_first, self._rules(net=True, more=True))
        return np.ascontiguousarray(newest_first[found][::-1])

    def _read(self, group: Group, spec: Spec, low: int) -> tuple[Records, float, int]:
        """An answer from all that is kept, the key below which nothing touches it, and the instant when it is due."""
        window = self.tuples(group)
        window = window[window["stamp"] > low]
        window = window[np.lexsort((-window["serial"], -window["stamp"], -window["key"]))]
        passed, enough, places = semantics_of(spec).read(window["p"].tolist())
        found = window[[one.at for one in places]] if places else window[:0].copy()
        found["p"] = [one.probability for one in places]
        found["mark"] = [one.rank for one in places]
        oldest = int(window["stamp"][:passed].min(initial=NEVER - spec.length))
        return found, float(window["key"][passed - 1]) if enough else -np.inf, oldest + spec.length

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        found = []
        for g in chosen.tolist():
            group = self.groups[g]
            current = spec == self.specs[query] and not group.clock["open"][0]  # the answer as it was reported
            found.append(shown(group, query) if current else self._read(group, spec, int(now[g]) - spec.length)[0])
        return ranked(np.concatenate([np.empty(0, TUPLE), *found]), chosen, sizes_of(found), spec)

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        kept = [self.needed_of(group) for group in self.groups]
        self._serve(specs)
        ranks, changes = max(one.k for one in specs), []  # those that a query of a smaller k has not may come back
        for g, old in enumerate(self.groups):
            group = self.groups[g] = self._empty()
            group.stored, group.clock, answers = self._filled(kept[g]), old.clock, []
            for q, (one, before) in enumerate(zip(specs, predecessors.tolist(), strict=True)):
                was = shown(old, before) if before >= 0 else np.empty(0, TUPLE)
                group.entered[q] = {pair for pair in old.entered[before] if pair[1] < ranks} if before >= 0 else set()
                found = self._look(group, q, int(now[g]) - one.length)
                changes.append(differences(was, found, q, g, group.entered[q], self.by_rank))
                answers.append(found)
            group.answers = placed(answers)
        return at_rest(self, changes)

    def _look(self, group: Group, q: int, low: int) -> Records:
        """The answer of a query; its view knows what touches it."""
        found, floor, due = self._read(group, self.specs[q], low)
        group.views[q] = (low, floor, due, 0)
        return found

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = self.groups if groups is None else [self.groups[g] for g in groups.tolist()]
        found = [self.needed_of(group)["serial"] for group in chosen]
        return np.concatenate([np.empty(0, np.int64), *found]), sizes_of(found)

    @property
    def held(self) -> Records:
        waiting = [shown(group, q) for group in self.groups if group.clock["open"][0] for q in range(len(self.specs))]
        return np.concatenate([np.empty(0, TUPLE), *waiting])

    @property
    def kept(self) -> Ints:
        return np.array([sum(map(len, self.lists(group))) for group in self.groups], np.int64)

    @property
    def buffer(self) -> int:
        return 0

    def size_of(self, query: int) -> int:
        return int(self.kept.sum())

    @property
    def work(self) -> int:
        """Tuples that walks have passed: what the paper's costs count, k operations each."""
        return sum(int(group.stored.facts[WORK]) for group in self.groups)

    @property
    def due(self) -> Ints:
        return np.array([group.views["due"].min() for group in self.groups], np.int64)

    @property
    def open(self) -> Bools:
        return np.array([group.clock["open"][0] > 0 for group in self.groups], np.bool_)

    @property
    def nbytes(self) -> int:
        total = self.changes.nbytes
        for group in self.groups:
            arrays = (*group.stored.lists, *group.stored[1:], group.clock, group.views, *group.answers)
            total += sum(array.nbytes for array in arrays)
        return int(total)

    # --- snapshots

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        chosen = [self.groups[g] for g in groups.tolist()]
        assert not any(group.clock["open"][0] for group in chosen), "no batch is open"
        Q, ones = len(self.specs), np.ones(len(chosen), np.int64)
        kept = [self.needed_of(group) for group in chosen]
        tuples = np.zeros(sum(map(len, kept)), TUPLES)
        for name in ("key", "p", "stamp", "serial"):
            tuples[name] = np.concatenate([np.empty(0, TUPLE), *kept])[name]
        tuples["flags"] = ELIGIBLE
        answers = [shown(group, q) for group in chosen for q in range(Q)]
        entered = [
            sorted((s, rank, q) for q, some in enumerate(group.entered) for s, rank in some if s in alive)
            for group, one in zip(chosen, kept, strict=True)
            for alive in [set(one["serial"].tolist())]
        ]
        sizes, lengths = sizes_of(kept), sizes_of(answers)
        clocks = [(int(group.clock["now"][0]), int(group.clock["newest"][0])) for group in chosen]
        return {
            "tuples": (tuples, sizes),
            "many": (sizes, ones),
            "state": (np.array(clocks, CLOCKS), ones),
            "answers": (np.concatenate([np.empty(0, TUPLE), *answers]), lengths.reshape(-1, Q).sum(axis=1)),
            "shown": (lengths, Q * ones),
            "said": (np.array([one for some in entered for one in some], ENTERED), sizes_of(entered)),
            "told": (sizes_of(entered), ones),
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
        tuples = np.zeros(len(state["tuples"]), TUPLE)
        for name in ("key", "p", "stamp", "serial"):
            tuples[name] = state["tuples"][name]
        answers, entered = recast(state["answers"], TUPLE).copy(), state["said"].tolist()
        ends, parts_of, pairs = (np.concatenate([[0], np.cumsum(state[name])]) for name in ("many", "shown", "told"))
        for g, group in enumerate(self.groups):
            group.stored = self._filled(tuples[ends[g] : ends[g + 1]])
            group.clock["now"], group.clock["newest"] = state["state"]["now"][g], state["state"]["newest"][g]
            now = int(group.clock["now"][0])
            for q, one in enumerate(self.specs):
                self._look(group, q, now - one.length if now > -NEVER else -NEVER)
            group.answers = placed([answers[parts_of[i] : parts_of[i + 1]] for i in range(g * Q, g * Q + Q)])
            for serial, rank, q in entered[pairs[g] : pairs[g + 1]]:
                group.entered[q].add((serial, rank))

    def _check_stored(self, state: Mapping[str, Records]) -> None:
        """Check the arrays of a snapshot; synopses follow from them."""
        Q, tuples, sizes, clocks, said = len(self.specs), *(state[n] for n in ("tuples", "many", "state", "said"))
        check_window(tuples, sizes)
        require((tuples["flags"] == ELIGIBLE).all(), "tuples have flags")
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
        kept = [self.needed_of(group)["stamp"] for group in self.groups] if now is not None else []
        stamps = np.concatenate([np.empty(0, np.int64), *kept])
        check_ages(stamps, sizes_of(kept), now, FAR)  # after `refit` some have left the longest window
        require(now is None or (self.due > now).all(), "what is due has left")
        for group in self.groups if deep else ():
            self.check_sets(group)
            for q, view in enumerate(group.views):
                if not group.clock["open"][0]:
                    found, _, _ = self._read(group, self.specs[q], int(view["low"]))
                    was = shown(group, q)
                    same = len(found) == len(was) and (found == was).all()
                    assert same, "the answer is current"

    @abstractmethod
    def check_sets(self, group: Group) -> None:
        """Assert that the sets are the compact sets which they must be."""

    def compact(self, tuples: Records) -> Records | None:
        """C(D) of these tuples, if they admit one (Definition 3.1)."""
        k = int(self.queries["k"].max())
        ranking = tuples[np.lexsort((-tuples["serial"], -tuples["stamp"], -tuples["key"]))]
        passed, enough, _ = semantics_of(replace(self.specs[0], k=k)).read(ranking["p"].tolist())
        return ranking[:passed] if enough else None
