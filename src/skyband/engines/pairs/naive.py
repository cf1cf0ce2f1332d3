"""NAIVE: the K best pairs of each object, all of them sorted (shen2012, section VI-B).

For each arrival its K best pairs with older objects are computed; all O(K n) pairs are kept in order. When an object
expires its pairs go, and every object that had one of them looks for another among all objects older than it. Nothing
is shared: each length of window has lists of its own, and an answer for a shorter window computes them anew. It is
there to compare with; O(n log n) scores and O(K n) moves an arrival.

The paper's simplest algorithm, which keeps all pairs sorted (O(n²)), answers for scorings that no kernel computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Floats, Ints, Spec
from skyband.engines.pairs.base import Pairs
from skyband.engines.pairs.invariants import key_of
from skyband.engines.pairs.kernels import records as pair_records
from skyband.engines.pairs.kernels.naive import fill_lists, take_naive
from skyband.engines.pairs.kernels.records import BASE, DONE, END, HEAD, WINDOW_FULL, Scoring, Stream
from skyband.engines.pairs.kernels.steps import look_again
from skyband.engines.pairs.window import Columns, Records, Store, gathered
from skyband.errors import StateError
from skyband.query.tuning import Tuning

IDS = np.dtype([("query", "i8"), ("older", "i8"), ("newer", "i8")])
Told = set[tuple[int, int]]


class Listed(Pairs):
    """Queries with one scoring and one window: a list of pairs for each object."""

    algorithm = pair_records.NAIVE

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.lists: dict[int, NDArray[np.int32]] = {}  # by group

    def _run(self, store: Store, stream: Stream, last: int) -> None:
        begin, why = 0, DONE
        while True:
            begin, why = take_naive(
                store.facts,
                store.window,
                store.band,
                store.views,
                self.desk,
                self._lists(store),
                self.scoring,
                store.K,
                stream,
                begin,
                last,
                self.timed,
                self.net,
                store.saved,
                self.out,
            )
            if why == DONE:
                return
            if why == WINDOW_FULL:
                self._move(store)
            else:
                self._make_room(store, why)

    def _lists(self, store: Store) -> NDArray[np.int32]:
        g = self.stores.index(store)
        if g not in self.lists:
            self.lists[g] = np.empty((len(store.window.stamps), store.K), np.int32)
        return self.lists[g]

    def _move(self, store: Store) -> None:
        """Room for more objects: their lists move with them."""
        lists, live = self._lists(store), store.live
        store.make_room(1)
        moved = np.empty((len(store.window.stamps), lists.shape[1]), np.int32)
        moved[: live.stop - live.start] = lists[live]
        self.lists[self.stores.index(store)] = moved

    def _settle(self, store: Store, now: int) -> None:
        """Objects leave one by one, since others then look for new pairs."""

    def _prune(self, store: Store, now: int) -> None:
        """Nothing is dominated here."""

    def lay(self) -> None:
        """The lists anew, from the objects that there are."""
        for g, store in enumerate(self.stores):
            store.make_room(1)
            self.lists.pop(g, None)
            K, live = store.K, int(store.facts[END] - store.facts[HEAD]) + 1
            store.fill_band(store.pairs[:0], store.band.bits[:0])
            if live * min(K, live) > len(store.band.key):
                store.grow_band(live * min(K, live))
            if max(live, K) > len(self.desk.other):
                self._make_desk(max(live, K))
            fill_lists(
                store.facts, store.window, store.band, store.views, self.desk, self._lists(store), self.scoring, K
            )

    def restore(self, state: Mapping[str, Records]) -> None:
        super().restore(state)
        self.lay()

    def _check_all(self, store: Store, pairs: Records) -> None:
        K = store.K
        for at in range(store.facts[HEAD], store.facts[END]):
            keys = [key_of(self, store, older, at) for older in range(store.facts[HEAD], at)]
            mine = pairs[pairs["newer"] == store.window.serials[at]]
            best = sorted((key for key in keys if key == key), reverse=True)[:K]
            assert mine["key"].tolist() == best, "an object has its K best pairs"
            assert (mine["dom"] - store.facts[BASE] == at).all(), "a pair knows its newer member's place"


class Whole(Pairs):
    """All pairs, sorted."""

    algorithm = pair_records.WHOLE


class NAIVE:
    """One machine for each length of window."""

    name = "NAIVE"
    needed = staticmethod(Pairs.needed)

    def __init__(
        self,
        asked: tuple[Spec, ...],
        tuning: Tuning,
        *,
        timed: bool,
        net: bool,
        scoring: Scoring,
        scores: Callable[[Columns, Columns], Floats] | None = None,
    ) -> None:
        self.tuning, self.timed, self.net, self.scoring = tuning, timed, net, scoring
        self._scores = scores
        self.told: list[dict[int, Told]] = []  # by group and query: who has been told of
        self.scoreless: Ints = np.zeros(len(asked), np.int64)
        self._ask(asked)

    def _ask(self, asked: tuple[Spec, ...]) -> None:
        self.asked = asked
        lengths = sorted({one.length for one in asked}) if self._scores is None else [0]
        self.parts = [[q for q, one in enumerate(asked) if one.length == length or not length] for length in lengths]
        self.machines = [self._machine(tuple(asked[q] for q in part)) for part in self.parts]

    def _machine(self, asked: tuple[Spec, ...]) -> Pairs:
        kind = Listed if self._scores is None else Whole
        return kind(asked, self.tuning, timed=self.timed, net=self.net, scoring=self.scoring, scores=self._scores)

    @property
    def scores(self) -> Callable[[Columns, Columns], Floats] | None:
        return self._scores

    @scores.setter
    def scores(self, scores: Callable[[Columns, Columns], Floats] | None) -> None:
        self._scores = scores
        for machine in self.machines:
            machine.scores = scores

    @property
    def longest(self) -> Pairs:
        """The machine with all objects."""
        return self.machines[-1]

    def copy(self) -> NAIVE:
        twin = NAIVE.__new__(NAIVE)
        twin.__dict__ |= self.__dict__
        twin.machines = [machine.copy() for machine in self.machines]
        twin.told = [{q: set(told) for q, told in one.items()} for one in self.told]
        return twin

    def _of(self, query: int) -> tuple[Pairs, int]:
        """The machine of a query, and which of its queries it is."""
        return next((m, part.index(query)) for m, part in zip(self.machines, self.parts, strict=True) if query in part)

    def take(self, arrivals: Arrivals) -> Changes:
        while len(self.told) < arrivals.total:
            self.told.append({q: set() for q in range(len(self.asked))})
        pieces = []
        for machine, part in zip(self.machines, self.parts, strict=True):
            timely = arrivals
            if self.timed and len(self.machines) > 1:
                timely = _only(arrivals, np.flatnonzero(arrivals.now - arrivals.stamps < machine.length[-1]))
            changes = machine.take(timely)
            pieces.append(replace(changes, query=np.array(part, np.int64)[changes.query]))
            self.scoreless[part] = machine.scoreless
        whole = self._mark(_joined(pieces, pieces[-1].alive))
        self._forget()
        return whole

    def _mark(self, changes: Changes) -> Changes:
        """Who enters for the first time."""
        first = np.zeros(len(changes.query), np.bool_)
        assert changes.older is not None
        rows = zip(changes.query, changes.group, changes.older, changes.serial, changes.diff, strict=True)
        for i, (query, group, older, newer, diff) in enumerate(rows):
            if diff > 0:
                told = self.told[group][query]
                first[i] = (older, newer) not in told
                told.add((int(older), int(newer)))
        return replace(changes, first=first)

    def _forget(self) -> None:
        """Pairs that have expired."""
        if sum(len(told) for one in self.told for told in one.values()) > 64 + 4 * sum(
            len(one) * self.longest.K for one in self.told
        ):
            for one, store in zip(self.told, self.longest.stores, strict=False):
                valid = set(store.window.serials[store.live].tolist())
                for query, told in one.items():
                    one[query] = {pair for pair in told if pair[0] in valid}

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
        machine, place = self._of(query)
        if isinstance(machine, Listed) and asked.length != machine.length[-1]:
            machine, place = self._shorter((asked,), now), 0
        return machine.answer(place, asked, now, groups)

    def _shorter(self, asked: tuple[Spec, ...], now: Ints) -> Pairs:
        """A machine over the objects that are valid for less long."""
        machine, length = self._machine(asked), asked[0].length
        for g, store in enumerate(self.longest.stores):
            live = np.arange(store.live.start, store.live.stop)
            live = live[store.window.stamps[live] > int(now[g]) - length]
            made = machine._store(g)
            made.fill(
                store.window.stamps[live], store.window.serials[live], store.window.data[:, live], self.scoring.limit
            )
            made.now = store.now
        assert isinstance(machine, Listed)
        machine.lay()
        for g, made in enumerate(machine.stores):
            machine._make_out(0, int(made.facts[pair_records.SIZE]) + 1)
            look_again(made.facts, made.band, made.views, machine.desk.after, int(now[g]))
        return machine

    def refit(self, asked: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        before = [self.answer(heir, self.asked[heir], now, None) for heir in predecessors.tolist()]
        self.told = [{q: set(one[heir]) for q, heir in enumerate(predecessors.tolist())} for one in self.told]
        while len(self.told) < len(now):
            self.told.append({q: set() for q in range(len(asked))})
        if self._scores is None:
            old = self.machines
            lengths = sorted({one.length for one in asked})
            parts = [[q for q, one in enumerate(asked) if one.length == length] for length in lengths]
            made = [self._shorter(tuple(asked[q] for q in part), now) for part in parts]
            self.asked, self.parts, self.machines = asked, parts, made
            for machine in made:
                machine.clock = old[-1].clock
        else:
            self.machines[0].refit(asked, predecessors, now)
            self.asked, self.parts = asked, [list(range(len(asked)))]
        self.scoreless = np.zeros(len(asked), np.int64)
        after = [self.answer(q, one, now, None) for q, one in enumerate(asked)]
        pieces = [_difference(q, *both) for q, both in enumerate(zip(before, after, strict=True))]
        return self._mark(_joined(pieces, np.empty(0, np.bool_)))

    # --- what is kept

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        return self.longest.serials(groups)

    @property
    def kept(self) -> Ints:
        return self.longest.kept

    @property
    def pairs(self) -> int:
        return sum(machine.pairs for machine in self.machines)

    @property
    def work(self) -> dict[str, int]:
        return {"scored": sum(machine.work["scored"] for machine in self.machines)}

    @property
    def buffer(self) -> int:
        return self.longest.buffer

    @property
    def held(self) -> Records:
        return np.concatenate([machine.held for machine in self.machines])

    def size_of(self, query: int) -> int:
        return self.longest.size_of(query)

    @property
    def due(self) -> Ints:
        due: Ints = np.min([machine.due for machine in self.machines], axis=0)
        return due

    @property
    def nbytes(self) -> int:
        return sum(machine.nbytes for machine in self.machines)

    def set_columns(self, serials: Ints, columns: Columns) -> None:
        for machine in self.machines:
            machine.set_columns(serials, columns)

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        state = {
            f"{i}.{name}": part
            for i, machine in enumerate(self.machines)
            for name, part in machine.snapshot(groups).items()
        }
        told = []
        for g in groups.tolist():
            one = self.told[g] if g < len(self.told) else {}
            told.append(np.array([(q, *pair) for q, pairs in one.items() for pair in sorted(pairs)], IDS))
        sizes = np.array([len(one) for one in told], np.int64)
        counts = (sizes, np.ones(len(sizes), np.int64))
        return state | {"told": (np.concatenate([np.empty(0, IDS), *told]), sizes), "tolds": counts}

    def restore(self, state: Mapping[str, Records]) -> None:
        for i, machine in enumerate(self.machines):
            machine.restore({name.split(".")[1]: part for name, part in state.items() if name.startswith(f"{i}.")})
        if state["tolds"].sum() != len(state["told"]):
            raise StateError("the snapshot's pairs do not fit together. Take a new snapshot from a running Monitor.")
        ends = np.cumsum(state["tolds"])
        self.told = [{q: set() for q in range(len(self.asked))} for _ in ends]
        for one, end, size in zip(self.told, ends, state["tolds"], strict=True):
            for query, older, newer in state["told"][end - size : end].tolist():
                one[query].add((older, newer))

    def check(self) -> None:
        for machine in self.machines:
            machine.check()


def _only(arrivals: Arrivals, which: Ints) -> Arrivals:
    attributes, columns = arrivals.attributes, arrivals.columns
    return replace(
        arrivals,
        rows=arrivals.rows[which],
        groups=arrivals.groups[which],
        stamps=arrivals.stamps[which],
        now=arrivals.now[which],
        eligible=None if arrivals.eligible is None else arrivals.eligible[which],
        attributes=None if attributes is None else tuple(values[which] for values in attributes),
        columns=None if columns is None else gathered(columns, which),
    )


def _joined(pieces: list[Changes], alive: Bools) -> Changes:
    """Changes of several machines, by query."""
    names = ("query", "group", "row", "instant", "stamp", "serial", "key", "diff", "first", "mate", "mate_stamp")
    columns = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in names}
    order = np.argsort(columns["query"], kind="stable")
    return Changes(alive=alive, **{name: column[order] for name, column in columns.items()})


def _difference(query: int, was: Answer, now: Answer) -> Changes:
    def identities(of: Answer) -> list[tuple[int, ...]]:
        assert of.older is not None
        return list(zip(of.group.tolist(), of.older.tolist(), of.serial.tolist(), strict=True))

    before, after = identities(was), identities(now)
    gone = np.array([pair not in set(after) for pair in before], np.bool_)
    come = np.array([pair not in set(before) for pair in after], np.bool_)
    size = int(gone.sum() + come.sum())
    both = {
        name: np.concatenate([getattr(was, name)[gone], getattr(now, name)[come]])
        for name in ("group", "stamp", "serial", "key", "mate", "mate_stamp")
    }
    return Changes(
        query=np.full(size, query),
        row=np.full(size, -1),
        instant=np.zeros(size, np.int64),
        diff=np.repeat(np.array([-1, 1], np.int8), [gone.sum(), come.sum()]),
        first=np.zeros(size, np.bool_),
        alive=np.empty(0, np.bool_),
        **both,
    )
