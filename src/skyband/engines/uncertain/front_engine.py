"""The engine of BS and DOM: kept tuples by age, the best of them by rank, and the answers that were reported.

The window of a group has its tuples in order of age, the front has copies of the best ones in order of rank, down to a
level (kernels/front.py). An answer is read from the front by a walk that ends where its semantics allow; a front that
is used up is rebuilt from the window. Answers of several (k, length) come from one window: it is enough for the
largest k and the longest window, and what is enough for k is enough for fewer (docs/engines/uncertain/dom.md).

Cost: a comparison per arrival and per expiry that stays below the prefix; else O(k d) for a walk over d tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import place, recast, runs, unplaced
from skyband.engines.contract import NEVER, Answer, Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.grouped import rebuild
from skyband.engines.invariants import are_counts, by_run, require
from skyband.engines.uncertain.changes import Taken, at_rest, differences, ordered, ranked, taken
from skyband.engines.uncertain.invariants import check_tuples
from skyband.engines.uncertain.kernels.records import (
    CHANGE,
    GROUP,
    QUERY,
    RUN,
    TUPLE,
    VIEW,
    Arena,
    Batch,
    Kept,
    Reported,
    Rules,
)
from skyband.engines.uncertain.kernels.steps import take_groups
from skyband.engines.uncertain.semantics import SEMANTICS, Place, semantics_of
from skyband.query.tuning import Tuning

Records = NDArray[Any]
MOST_CHANGES = 2**20  # of a push, for which memory is kept
LONG = 2**40  # steps since a sweep: after many the front was large enough


class FrontEngine:
    """The tuples of every group, for queries of one semantics."""

    name = ""
    drops: ClassVar[bool] = False  # are tuples removed that newer ones make superfluous?
    block: ClassVar[int] = 65536  # arrivals that are taken before they join the window
    least: ClassVar[int] = 64  # tuples in a front, and in a window before it is swept
    tuples: ClassVar[np.dtype[Any]] = TUPLE  # as kernels see them

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool) -> None:
        self.timed = timed
        self.net = net
        self._serve(specs)
        self.state = Kept(self._arena(), self._arena(), np.empty(0, GROUP), np.empty(0, VIEW), np.empty(0))
        changes = np.empty(64, CHANGE)  # kept between pushes, since new memory costs more than writing
        self.reported = Reported(self._arena(), self._bits(0), _zeros(0), _zeros(2), changes, _zeros(2))

    def _arena(self) -> Arena:
        return Arena(np.empty(0, self.tuples), np.empty(0, RUN), _zeros(1))

    def _serve(self, specs: tuple[Spec, ...]) -> None:
        self.specs = specs
        assert specs[0].semantics is not None
        self.semantics = SEMANTICS[specs[0].semantics].code
        self.by_rank = specs[0].semantics == "u-kranks"
        ranks = [one.k if self.timed else min(one.k, one.length) for one in specs]  # that can be held
        self.own = ranks if self.by_rank else [1] * len(specs)  # bits of a tuple's slot as 0.1 stored them, by query
        self.bits = bits = [max(self.own)] * len(specs)  # a rank that a query gives up may come back
        self.queries = np.zeros(len(specs), QUERY)
        self.queries["k"] = [one.k for one in specs]
        self.queries["length"] = [one.length for one in specs]
        self.queries["threshold"] = [one.threshold or 0.0 for one in specs]
        self.queries["bit"] = np.cumsum(bits) - bits
        self.widest, self.k = int(np.argmax(self.queries["length"])), int(self.queries["k"].max())

    def _bits(self, slots: int) -> NDArray[np.uint64]:
        words = (sum(self.bits) + 63) // 64
        return np.zeros((slots, words if self.bits == self.own else max(words, 1 + self._own_words)), np.uint64)

    @property
    def words(self) -> int:
        """Of the bits of a slot."""
        return int(self.reported.entered.shape[1])

    @property
    def _own_words(self) -> int:
        return (sum(self.own) + 63) // 64

    def _widened(self, rows: Records) -> Records:
        """Slots as version 0.1 stored them, with as many bits for each query as for that of the largest k."""
        found, starts = self._bits(len(rows)), np.cumsum(self.own) - self.own
        for q, (many, start) in enumerate(zip(self.own, starts.tolist(), strict=True)):
            for r in range(many):
                (word, bit), (to, at) = divmod(start + r, 64), divmod(int(self.queries["bit"][q]) + r, 64)
                found[:, to] |= (rows[:, word] >> np.uint64(bit) & np.uint64(1)) << np.uint64(at)
        return found

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        here = taken(self, arrivals)
        batch = self._batch(here, arrivals)
        how = (self.semantics, self.timed, self.net, arrivals.more, self.drops, self.block, self.least)
        rules = Rules(self.queries, self.widest, self.k, *how)
        self.reported.written[:] = 0
        self._set_arrays(*take_groups(self.state, self.reported, batch, rules))
        idle, many = self.reported.written.tolist()
        out = self.reported.changes[:many]
        if len(self.reported.changes) > MOST_CHANGES:  # the next push will have as many changes, or so
            self.reported = self.reported._replace(changes=np.empty(min(many + many // 8, MOST_CHANGES), CHANGE))
        alive = np.zeros(arrivals.size, np.bool_)
        if arrivals.wants_alive and len(batch.visits):
            kept = _runs(self.state.window, batch.visits["group"])["serial"] - arrivals.serial
            alive[kept[kept >= 0]] = True
        return ordered(self, out, here, arrivals, alive, idle=bool(idle))

    def _batch(self, here: Taken, arrivals: Arrivals) -> Batch:
        """The arrivals as kernels see them."""
        return Batch(here.keys, here.probabilities, here.stamps, here.now, here.rows, here.visits, arrivals.serial)

    def _set_arrays(
        self, window: Records, front: Records, answers: Records, entered: Any, free: Ints, changes: Records
    ) -> None:
        old, reported = self.state, self.reported
        self.state = Kept(_with(old.window, window), _with(old.front, front), old.groups, old.views, old.most)
        answered = _with(reported.answers, answers)
        self.reported = Reported(answered, entered, free, reported.slots, changes, reported.written)

    def _grow(self, total: int) -> None:
        more, Q, old = total - len(self.state.groups), len(self.specs), self.state
        if more <= 0:
            return
        groups = np.concatenate([old.groups, self.empty_groups(more)])
        views = np.concatenate([old.views, _views(more * Q)])
        most = np.concatenate([old.most, np.zeros(more)])
        self.state = Kept(_with_runs(old.window, more), _with_runs(old.front, more), groups, views, most)
        self.reported = self.reported._replace(answers=_with_runs(self.reported.answers, more * Q))

    def empty_groups(self, size: int) -> Records:
        """So many groups without tuples."""
        groups = np.zeros(size, GROUP)
        groups["level"], groups["target"] = -np.inf, self.least
        groups["newest"] = groups["now"] = -NEVER
        groups["due"] = NEVER
        return groups

    keep_groups = rebuild

    def reset_groups(self, groups: Ints) -> None:
        self._grow(1 + int(groups.max(initial=-1)))
        marks = _runs(self.state.window, groups)["mark"]
        marks, free = marks[marks >= 0], self.reported.slots[1]
        self.reported.free[free : free + len(marks)] = marks
        self.reported.slots[1] += len(marks)
        views = (groups[:, None] * len(self.specs) + np.arange(len(self.specs))).reshape(-1)
        for arena, chosen in ((self.state.window, groups), (self.state.front, groups), (self.reported.answers, views)):
            arena.runs["head"][chosen], arena.runs["size"][chosen] = arena.runs["start"][chosen], 0
        self.state.groups[groups], self.state.views[views] = self.empty_groups(1), _views(1)
        self.state.most[groups] = 0.0

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.state.groups)) if groups is None else groups
        if spec == self.specs[query] and not self.open.any():  # the answer as it was reported
            answers, places = self.reported.answers, chosen * len(self.specs) + query
            return ranked(_runs(answers, places), chosen, answers.runs["size"][places], spec)
        found = [self._read(g, spec, int(now[g])) for g in chosen.tolist()]
        sizes = np.array([len(one) for one in found], np.int64)
        return ranked(np.concatenate([np.empty(0, self.tuples), *found]), chosen, sizes, spec)

    def _read(self, g: int, spec: Spec, now: int) -> Records:
        """The answer of a group, from its window."""
        window = _run(self.state.window, g)
        window = window[window["stamp"] > now - spec.length]
        order = _by_rank(window)
        places = self._places(spec, window[order])
        found = window[order[[one.at for one in places]]] if places else window[:0]
        found["p"] = [one.probability for one in places]
        found["mark"] = [one.rank for one in places]
        return found

    def _places(self, spec: Spec, ranking: Records) -> list[Place]:
        """The answer from tuples in order of rank."""
        return semantics_of(spec).read(ranking["p"].tolist())[2]

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        had, bits, before, Q = self.bits, self.queries["bit"].tolist(), self.specs, len(self.specs)
        slots = self._slots()
        shown = [[_run(self.reported.answers, g * Q + q).copy() for q in range(Q)] for g in range(len(now))]
        self._serve(specs)
        entered: list[set[tuple[int, int]]] = []  # by query, serials and ranks (from 0) that have entered
        for q, old in enumerate(predecessors.tolist()):
            ranks = range(min(self.bits[q], had[old]) if old >= 0 else 0)
            entered.append(
                {(serial, r) for serial, word in slots.items() for r in ranks if word >> (bits[old] + r) & 1}
            )
        changes, answers = [], []
        for g in range(len(now)):
            for q, old in enumerate(predecessors.tolist()):
                was = shown[g][old][: None if old >= 0 else 0]
                found = was if old >= 0 and specs[q] == before[old] else self._read(g, specs[q], int(now[g]))
                changes.append(differences(was, found, q, g, entered[q], self.by_rank))
                answers.append(found)
        self._set_reported(answers, entered)
        self._set_views(now)
        return at_rest(self, changes)

    def _slots(self) -> dict[int, int]:
        """By serial, the bits of the tuples that have a slot, as one number."""
        kept = _runs(self.state.window, np.arange(len(self.state.groups)))
        kept = kept[kept["mark"] >= 0]
        rows = zip(kept["serial"].tolist(), self.reported.entered[kept["mark"]].tolist(), strict=True)
        return {serial: sum(word << (64 * w) for w, word in enumerate(row)) for serial, row in rows}

    def _set_reported(self, answers: list[Records], entered: list[set[tuple[int, int]]]) -> None:
        """New answers, and new slots, for the queries that there are now."""
        bits: dict[int, int] = {}
        for q, pairs in enumerate(entered):
            for serial, r in pairs:
                bits[serial] = bits.get(serial, 0) | 1 << int(self.queries["bit"][q]) + r
        rows = self._bits(len(bits))
        for slot, word in enumerate(bits.values()):
            rows[slot] = [word >> (64 * w) & (2**64 - 1) for w in range(rows.shape[1])]
        slots = {serial: slot for slot, serial in enumerate(bits)}
        for g in range(len(self.state.groups)):
            window = _run(self.state.window, g)
            window["mark"] = [slots.get(serial, -1) for serial in window["serial"].tolist()]
        self.reported = self.reported._replace(
            answers=_placed(np.concatenate([np.empty(0, self.tuples), *answers]), [len(one) for one in answers]),
            entered=rows,
            free=_zeros(len(rows)),
            slots=np.array([len(rows), 0]),
        )

    def _set_views(self, now: Ints) -> None:
        """Views that are read again in the next step."""
        Q, self.state = len(self.specs), self.state._replace(views=_views(len(self.state.groups) * len(self.specs)))
        for g, group in enumerate(self.state.groups):
            stamps = _run(self.state.window, g)["stamp"]
            for q, one in enumerate(self.specs):
                view = self.state.views[g * Q + q]
                view["low"] = now[g] - one.length
                view["first"] = group["base"] + np.searchsorted(stamps, view["low"], "right")
                view["due"] = group["due"] = -NEVER if len(stamps) else NEVER

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = np.arange(len(self.kept)) if groups is None else groups
        return _runs(self.state.window, chosen)["serial"], self.kept[chosen]

    @property
    def held(self) -> Records:
        """Reported answers of which something may leave, while a net batch goes on."""
        return _runs(self.reported.answers, np.flatnonzero(np.repeat(self.open, len(self.specs))))

    @property
    def kept(self) -> Ints:
        return self.state.window.runs["size"]

    @property
    def buffer(self) -> int:
        return int((self.kept - np.minimum(self.state.groups["kept"], self.kept)).sum()) if self.drops else 0

    def size_of(self, query: int) -> int:
        return int(self.kept.sum()) - self.buffer

    @property
    def due(self) -> Ints:
        return self.state.groups["due"]

    @property
    def open(self) -> Bools:
        """Per group: is it within a batch that is reported later?"""
        return self.state.groups["open"] > 0

    @property
    def nbytes(self) -> int:
        state, reported = self.state, self.reported
        arenas = [array for arena in (state.window, state.front, reported.answers) for array in arena[:2]]
        arrays = (*arenas, *state[2:], reported.entered, reported.free, reported.changes)
        return int(sum(array.nbytes for array in arrays))

    # --- snapshots

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not self.open.any(), "no batch is open"
        Q, ones = len(self.specs), np.ones(len(groups), np.int64)
        places = (groups[:, None] * Q + np.arange(Q)).reshape(-1)
        state, views, answers = self.state.groups[groups], self.state.views[places], self.reported.answers
        views["first"] -= np.repeat(state["base"], Q)  # positions start again at 0, and fronts are rebuilt
        state["base"], state["level"], state["target"], state["since"] = 0, np.nan, self.least, LONG
        window, sizes = _runs(self.state.window, groups), self.kept[groups]
        slotted = window["mark"] >= 0
        entered = self.reported.entered[window["mark"][slotted]]
        window["mark"] = np.where(slotted, 0, -1)
        words = np.bincount(np.repeat(np.arange(len(groups)), sizes)[slotted], minlength=len(groups))
        return {
            "past": (window, sizes),
            "pasts": (unplaced(self.state.window.runs[groups]), ones),
            "state": (state, ones),
            "views": (views, Q * ones),
            "answers": (_runs(answers, places), answers.runs["size"][places].reshape(-1, Q).sum(axis=1)),
            "lanes": (unplaced(answers.runs[places]), Q * ones),
            "marks": (entered.reshape(-1), words * entered.shape[1]),
        }

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        types = {"past": self.tuples, "pasts": RUN, "state": GROUP, "views": VIEW, "answers": self.tuples, "lanes": RUN}
        arrays = {name: recast(state[name], dtype).copy() for name, dtype in types.items()}
        window, groups, views, answers = arrays["past"], arrays["state"], arrays["views"], arrays["answers"]
        sizes, lengths, slotted = arrays["pasts"]["size"], arrays["lanes"]["size"], window["mark"] >= 0
        G, Q, words = len(groups), len(self.specs), self.words
        require(len(sizes) == G and are_counts(sizes, len(window)), "groups have their tuples")
        require(len(views) == len(lengths) == G * Q and are_counts(lengths, len(answers)), "groups have their answers")
        many, old = int(slotted.sum()), self._own_words
        narrow = many > 0 and words > old and len(state["marks"]) == many * old  # of version 0.1
        require(narrow or len(state["marks"]) == many * words, "tuples that were reported have their marks")
        require(not groups["open"].any(), "no batch is open")
        require(((views["first"] >= 0) & (views["first"] <= np.repeat(sizes, Q))).all(), "views begin at tuples")
        entered = np.asarray(state["marks"], np.uint64).reshape(-1, old if narrow else words).copy()
        entered = self._widened(entered) if narrow else entered
        window["mark"][slotted] = np.arange(len(entered))
        most = by_run(np.maximum, window["p"], sizes, 0.0)
        self.state = Kept(_placed(window, sizes), _with_runs(self._arena(), G), groups, views, most)
        self.reported = self.reported._replace(
            answers=_placed(answers, lengths),
            entered=entered,
            free=_zeros(len(entered)),
            slots=np.array([len(entered), 0]),
        )

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        check_tuples(self, now)
        Q, state = len(self.specs), self.state
        for g, group in enumerate(state.groups if deep else ()):
            window, front = _run(state.window, g), _run(state.front, g)
            order = _by_rank(window)
            above = order[window["key"][order] >= group["level"]]  # none, if there is no front
            assert (front["serial"] == window["serial"][above]).all(), "the front is complete down to its level"
            assert (front["mark"] == group["base"] + above).all()
            assert (front["p"] == window["p"][above]).all()
            for q, one in enumerate(self.specs):
                view = state.views[g * Q + q]
                low = int(view["low"])
                found, shown = self._read(g, one, low + one.length), _run(self.reported.answers, g * Q + q)
                if not group["open"]:
                    assert len(found) == len(shown), "the answer is current"
                    assert (found[["serial", "p", "mark"]] == shown[["serial", "p", "mark"]]).all()


def _zeros(size: int) -> Ints:
    return np.zeros(size, np.int64)


def _with(arena: Arena, records: Records) -> Arena:
    return Arena(records, arena.runs, arena.used)


def _with_runs(arena: Arena, more: int) -> Arena:
    """The arena with empty runs added."""
    return arena._replace(runs=np.concatenate([arena.runs, np.zeros(more, RUN)]))


def _placed(records: Records, sizes: Any) -> Arena:
    """Runs of these sizes, one after another."""
    found = np.zeros(len(sizes), RUN)
    found["size"] = found["room"] = sizes
    place(found)
    return Arena(records, found, np.array([len(records)]))


def _runs(arena: Arena, chosen: Ints) -> Records:
    return runs(arena.records, arena.runs, chosen)


def _run(arena: Arena, r: int) -> Records:
    """The records of one run, not a copy."""
    head = arena.runs["head"][r]
    found: Records = arena.records[head : head + arena.runs["size"][r]]
    return found


def _by_rank(window: Records) -> Ints:
    return np.lexsort((-np.arange(len(window)), -window["key"]))


def _views(size: int) -> Records:
    views = np.zeros(size, VIEW)
    views["floor"], views["low"], views["due"] = -np.inf, -NEVER, NEVER
    return views
