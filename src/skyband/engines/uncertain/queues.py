"""Synopses of jin2008 as engines: one synopsis per group, steps in Python.

A synopsis takes tuples in, lets them expire, and gives the best tuples of a window, as many as an answer needs. It is
made for the largest k and the longest window of the queries; the compact sets of all suffixes of the window are in it,
so that shorter windows are exact too, and what is enough for k is enough for fewer.

These engines are here to be compared with and to be read; `auto` never takes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import recast
from skyband.engines.contract import NEVER, Answer, Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.uncertain.answers import differences, ranked
from skyband.engines.uncertain.base import Taken, changes_of, ordered, taken
from skyband.engines.uncertain.kernels.marks import TOLD
from skyband.engines.uncertain.kernels.prefix import TUPLE
from skyband.engines.uncertain.semantics import Place, Semantics, meaning_of
from skyband.query.tuning import Tuning

Records = NDArray[Any]
FLAT = np.dtype([("key", "f8"), ("p", "f8"), ("stamp", "i8"), ("serial", "i8"), ("name", "i8"), ("flags", "i8")])
SEEN = np.dtype([("now", "i8"), ("newest", "i8")])
SAID = np.dtype([("serial", "i8"), ("rank", "i8"), ("query", "i8")])
NAMED, ELIGIBLE = 1, 2


class Tuple(NamedTuple):
    """Compared by rank: the better key, of equal keys the newer one, is larger."""

    key: float
    stamp: int
    serial: int
    p: float
    name: int | None = None  # of the alternatives that it excludes
    eligible: bool = True

    @property
    def age(self) -> tuple[int, int]:
        return self.stamp, self.serial


def by_rank(tuples: Iterable[Tuple]) -> list[Tuple]:
    return sorted(tuples, key=lambda t: t[:3], reverse=True)


def by_age(tuples: Iterable[Tuple]) -> list[Tuple]:
    return sorted(tuples, key=lambda t: t.age)


class Synopsis(ABC):
    """What is kept of one group's window."""

    def __init__(self, meaning: Semantics) -> None:
        self.meaning = meaning
        self.work = 0  # tuples that walks have passed

    def compact(self, tuples: list[Tuple]) -> list[Tuple] | None:
        """C(D) of tuples in order of rank, if they admit one (Definition 3.1)."""
        if len(tuples) < (1 if self.meaning.threshold else self.meaning.k):
            return None
        passed, enough, _ = self.meaning.read([t.p for t in tuples])
        self.work += passed
        return tuples[:passed] if enough else None

    def read(self, meaning: Semantics, tuples: list[Tuple]) -> tuple[int, bool, list[Place]]:
        """The answer from tuples in order of rank."""
        passed, enough, places = meaning.read([t.p for t in tuples])
        self.work += passed
        return passed, enough, places

    @abstractmethod
    def insert(self, t: Tuple) -> None:
        """An arrival, or a late one."""

    @abstractmethod
    def expire(self, low: int) -> None:
        """All with such a stamp or an older one have left the longest window."""

    @abstractmethod
    def ranking(self, low: int) -> list[Tuple]:
        """The best tuples that are newer, as many as an answer needs; in order of rank."""

    @abstractmethod
    def tuples(self) -> set[Tuple]:
        """All that are kept."""

    @property
    @abstractmethod
    def space(self) -> int:
        """How many tuples are stored, each as often as it is."""

    def needed(self) -> list[Tuple]:
        """The tuples that can still matter, by age: the union of the compact sets of all suffixes (dom.py)."""
        kept: list[Tuple] = []
        best: list[Tuple] = []
        full = False
        for t in reversed(by_age(self.tuples())):
            if full and t[:3] < best[-1][:3]:
                continue
            kept.append(t)
            best = by_rank([*best, t])
            prefix = self.compact(best)
            if prefix is not None:
                best, full = prefix, True
        kept.reverse()
        return kept

    @abstractmethod
    def check(self) -> None:
        """Assert every invariant."""


@dataclass
class Group:
    """One group: its synopsis, and what was told of its answers."""

    synopsis: Synopsis
    shown: list[Records]  # by query, in order of rank
    told: list[set[tuple[int, int]]]  # by query, serials and ranks (from 0) that have entered
    low: list[int]  # by query, no valid stamp is at or below
    floor: list[float]  # by query, worse keys do not touch the answer
    due: list[int]
    now: int = -NEVER
    newest: int = -NEVER
    open: bool = False
    changes: list[Records] = field(default_factory=list)


class Queues:
    """An engine of synopses; a subclass says of which."""

    name = ""
    synopsis: ClassVar[type[Synopsis]]
    whole = False  # are tuples taken that cannot be answers?

    def __init__(self, asked: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool) -> None:
        self.timed = timed
        self.net = net
        self.groups: list[Group] = []
        self._ask(asked)

    def _ask(self, asked: tuple[Spec, ...]) -> None:
        self.asked = asked
        self.meanings = [meaning_of(one) for one in asked]
        self.holds_ranks = asked[0].semantics == "u-kranks"

    @staticmethod
    def needed(arrivals: Arrivals, asked: tuple[Spec, ...], *, net: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)

    def _new(self) -> Synopsis:
        return self.synopsis(max(self.meanings, key=lambda meaning: meaning.k))

    def _grow(self, total: int) -> None:
        Q = len(self.asked)
        while len(self.groups) < total:
            none = [np.empty(0, TUPLE) for _ in range(Q)]
            told: list[set[tuple[int, int]]] = [set() for _ in range(Q)]
            self.groups.append(Group(self._new(), none, told, [-NEVER] * Q, [-np.inf] * Q, [NEVER] * Q))

    # --- steps

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        is_open = np.array([group.open for group in self.groups], np.bool_)
        batch = taken(arrivals, self.due, is_open, timed=self.timed, net=self.net, whole=self.whole)
        out = []
        for v, visit in enumerate(batch.visits):
            group = self.groups[visit["group"]]
            self._visit(group, visit, batch, arrivals)
            changes = np.concatenate([np.empty(0, TOLD), *group.changes])
            changes["visit"], group.changes = v, []
            out.append(changes)
        alive = np.zeros(arrivals.size, np.bool_)
        if arrivals.wants_alive:
            here = self.serials(np.asarray(batch.visits["group"]))[0] - arrivals.serial
            alive[here[here >= 0]] = True
        told = np.concatenate([np.empty(0, TOLD), *out])
        options: dict[str, Any] = {"timed": self.timed, "quiet": self.net, "held": self.holds_ranks}
        return ordered(told, batch, arrivals, alive, len(self.asked), **options)

    def _visit(self, group: Group, visit: Any, batch: Taken, arrivals: Arrivals) -> None:
        for i in range(visit["begin"], visit["end"]):
            now, stamp, row = int(batch.now[i]), int(batch.stamps[i]), int(batch.rows[i])
            affected = self._expire(group, now, joint=not self.timed)
            name = int(batch.names[i]) if len(batch.names) and batch.named[i] else None
            can = not len(batch.eligible) or bool(batch.eligible[i])
            t = Tuple(float(batch.keys[i]), stamp, arrivals.serial + row, float(batch.probabilities[i]), name, can)
            group.synopsis.insert(t)
            group.newest = max(group.newest, stamp)
            for q in range(len(self.asked)):
                touched = can and stamp > group.low[q] and t.key >= group.floor[q]
                if (touched or q in affected) and not self.net:
                    self._tell(group, q, now, row)
        self._expire(group, int(visit["last"]), joint=False)
        if self.net and not arrivals.more:
            for q in range(len(self.asked)):
                self._tell(group, q, int(visit["last"]), -1)
        group.open = self.net and arrivals.more

    def _expire(self, group: Group, now: int, *, joint: bool) -> set[int]:
        """Steps up to now; those of an arrival that takes part in its step come back instead."""
        affected = set()
        for q, one in enumerate(self.asked):
            while not self.net and group.due[q] <= now:
                instant = group.due[q]
                group.low[q] = instant - one.length
                if joint and instant == now:
                    affected.add(q)
                    break
                self._tell(group, q, instant, -1)
            group.low[q] = max(group.low[q], now - one.length)
        group.now = max(group.now, now)
        group.synopsis.expire(min(group.low))
        return affected

    def _tell(self, group: Group, q: int, instant: int, row: int) -> None:
        found, floor, oldest = self._read(group, self.meanings[q], group.low[q])
        group.floor[q], group.due[q] = floor, NEVER if oldest is None else oldest + self.asked[q].length
        changes = differences(group.shown[q], found, q, 0, group.told[q], self.holds_ranks)
        changes["instant"], changes["row"] = instant, row
        group.changes.append(changes)
        group.shown[q] = found

    def _read(self, group: Group, meaning: Semantics, low: int) -> tuple[Records, float, int | None]:
        """The answer, the key below which nothing touches it, and the oldest stamp that does."""
        tuples = group.synopsis.ranking(low)
        passed, enough, places = group.synopsis.read(meaning, tuples)
        found = np.zeros(len(places), TUPLE)
        for j, place in enumerate(places):
            t = tuples[place.at]
            found[j] = (t.key, place.probability, t.stamp, t.serial, place.rank)
        oldest = min((t.stamp for t in tuples[:passed]), default=None)
        return found, tuples[passed - 1].key if enough else -np.inf, oldest

    # --- what can be asked

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        meaning = meaning_of(asked)
        found = [self._read(self.groups[g], meaning, int(now[g]) - asked.length)[0] for g in chosen.tolist()]
        sizes = np.array([len(one) for one in found], np.int64)
        return ranked(np.concatenate([np.empty(0, TUPLE), *found]), chosen, sizes, asked)

    def refit(self, asked: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        self._ask(asked)
        out = []
        for g, group in enumerate(self.groups):
            kept = group.synopsis.needed()
            group.synopsis = self._filled(kept)
            ranks = [one.k if self.holds_ranks else 1 for one in asked]
            group.shown = [group.shown[heir] for heir in predecessors]
            told = [group.told[heir] for heir in predecessors]
            group.told = [{one for one in told[q] if one[1] < ranks[q]} for q in range(len(asked))]
            group.low = [int(now[g]) - one.length for one in asked]
            group.floor, group.due = [-np.inf] * len(asked), [NEVER] * len(asked)
            for q in range(len(asked)):
                self._tell(group, q, 0, -1)
            changes = np.concatenate([np.empty(0, TOLD), *group.changes])
            changes["visit"], group.changes = g, []
            out.append(changes)
        told_of = np.concatenate([np.empty(0, TOLD), *out])
        told_of = told_of[np.argsort(told_of["query"], kind="stable")]
        groups, nobody = told_of["visit"].astype(np.int64), np.empty(0, np.bool_)
        return changes_of(told_of, groups, nobody, len(self.asked), self.holds_ranks)

    def _filled(self, tuples: Iterable[Tuple]) -> Synopsis:
        """A synopsis of these, which come by age."""
        synopsis = self._new()
        for t in tuples:
            synopsis.insert(t)
        return synopsis

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = self.groups if groups is None else [self.groups[g] for g in groups.tolist()]
        found = [[t.serial for t in group.synopsis.needed()] for group in chosen]
        sizes = np.array([len(one) for one in found], np.int64)
        return np.array([serial for one in found for serial in one], np.int64), sizes

    @property
    def held(self) -> Records:
        waiting = [shown for group in self.groups if group.open for shown in group.shown]
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
        return np.array([min(group.due) for group in self.groups], np.int64)

    @property
    def nbytes(self) -> int:
        return int(FLAT.itemsize * self.kept.sum())

    # --- snapshots

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        chosen = [self.groups[g] for g in groups.tolist()]
        assert not any(group.open for group in chosen), "no batch is open"
        Q, ones = len(self.asked), np.ones(len(chosen), np.int64)
        kept = [group.synopsis.needed() for group in chosen]
        flat = [(t.key, t.p, t.stamp, t.serial, t.name or 0, _flags(t)) for one in kept for t in one]
        shown = [group.shown[q] for group in chosen for q in range(Q)]
        said = [
            sorted((serial, rank, q) for q in range(Q) for serial, rank in group.told[q] if serial in alive)
            for group, one in zip(chosen, kept, strict=True)
            for alive in [{t.serial for t in one}]
        ]
        sizes = np.array([len(one) for one in shown], np.int64)
        return {
            "tuples": (np.array(flat, FLAT), np.array([len(one) for one in kept], np.int64)),
            "many": (np.array([len(one) for one in kept], np.int64), ones),
            "state": (np.array([(group.now, group.newest) for group in chosen], SEEN), ones),
            "answers": (np.concatenate([np.empty(0, TUPLE), *shown]), sizes.reshape(-1, Q).sum(axis=1)),
            "shown": (sizes, Q * ones),
            "said": (
                np.array([one for some in said for one in some], SAID),
                np.array([len(some) for some in said], np.int64),
            ),
            "told": (np.array([len(some) for some in said], np.int64), ones),
        }

    def restore(self, state: Mapping[str, Records]) -> None:
        Q = len(self.asked)
        self.groups = []
        self._grow(len(state["many"]))
        flat, seen, said = (state[name].tolist() for name in ("tuples", "state", "said"))
        answers = recast(state["answers"], TUPLE)
        ends, lanes, told = (np.concatenate([[0], np.cumsum(state[name])]) for name in ("many", "shown", "told"))
        for g, group in enumerate(self.groups):
            here = flat[ends[g] : ends[g + 1]]
            group.synopsis = self._filled(
                Tuple(key, stamp, serial, p, name if flags & NAMED else None, bool(flags & ELIGIBLE))
                for key, p, stamp, serial, name, flags in here
            )
            group.now, group.newest = seen[g]
            for q, one in enumerate(self.asked):
                group.shown[q] = answers[lanes[g * Q + q] : lanes[g * Q + q + 1]].copy()
                group.low[q] = group.now - one.length if group.now > -NEVER else -NEVER
                _, group.floor[q], oldest = self._read(group, self.meanings[q], group.low[q])
                group.due[q] = NEVER if oldest is None else oldest + one.length
            for serial, rank, q in said[told[g] : told[g + 1]]:
                group.told[q].add((serial, rank))

    def check(self) -> None:
        for group in self.groups:
            group.synopsis.check()
            for q, meaning in enumerate(self.meanings):
                if not group.open:
                    found, _, _ = self._read(group, meaning, group.low[q])
                    assert (found == group.shown[q]).all() and len(found) == len(group.shown[q]), "it is current"


def _flags(t: Tuple) -> int:
    return NAMED * (t.name is not None) + ELIGIBLE * t.eligible


def put_in(tuples: list[Tuple], t: Tuple) -> list[Tuple]:
    """One tuple more, in order of rank."""
    found = list(tuples)
    insort(found, t, key=lambda one: _falling(one))
    return found


def _falling(t: Tuple) -> tuple[float, int, int]:
    return -t.key, -t.stamp, -t.serial
