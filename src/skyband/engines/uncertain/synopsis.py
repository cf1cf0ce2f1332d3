"""What the synopses with kernels have in common (BS, DOM): tuples by age, their front by rank, and the answers told.

The past of a group has its tuples in order of age, the front copies of the best ones in order of rank, down to a level
(kernels/front.py). An answer is read from the front by a walk that ends where the meaning says so; a front that is
used up is made anew from the past. Answers of several (k, length) come from one past: it is enough for the largest k
and the longest window, and what is enough for k is enough for fewer (docs/engines/dom.md).

Cost: a comparison per arrival and per expiry that stays below the prefix; else O(k d) for a walk over d tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import place, recast, runs, unplaced
from skyband.engines.contract import NEVER, Answer, Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.uncertain.answers import differences, ranked
from skyband.engines.uncertain.base import changes_of, ordered, taken
from skyband.engines.uncertain.kernels.front import RUN, STATE
from skyband.engines.uncertain.kernels.marks import TOLD
from skyband.engines.uncertain.kernels.prefix import TUPLE
from skyband.engines.uncertain.kernels.steps import ANSWERS, ASKED, CHANGES, MARKS, PASTS, VIEW, take_groups
from skyband.engines.uncertain.semantics import MEANINGS, meaning_of
from skyband.errors import StateError
from skyband.query.tuning import Tuning

Records = NDArray[Any]
MOST_ROOM = 2**20  # changes of a push, for which memory is kept
LONG = 2**40  # steps: a front that is made anew after so many was large enough


class Kept:
    """The tuples of every group, for queries of one meaning."""

    name = ""
    drops: ClassVar[bool] = False  # are tuples forgotten that newer ones make superfluous?
    block: ClassVar[int] = 65536  # arrivals that are taken before they join the past
    least: ClassVar[int] = 64  # tuples in a front, and in a past before it is swept

    def __init__(self, asked: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool) -> None:
        self.timed = timed
        self.net = net
        self._ask(asked)
        self.past, self.front, self.answers = (np.empty(0, TUPLE) for _ in range(3))
        self.pasts, self.fronts, self.lanes = (np.empty(0, RUN) for _ in range(3))
        self.state, self.views = np.empty(0, STATE), np.empty(0, VIEW)
        self.free = np.empty(0, np.int64)
        self.tallies = np.zeros((5, 2), np.int64)
        self.out = np.empty(64, TOLD)  # where changes are written; kept, since new memory costs more than writing

    def _ask(self, asked: tuple[Spec, ...]) -> None:
        self.asked = asked
        assert asked[0].semantics is not None
        self.meaning = MEANINGS[asked[0].semantics].code
        self.holds_ranks = asked[0].semantics == "u-kranks"
        most = [one.k if self.timed else min(one.k, one.length) for one in asked]  # ranks that can be held
        self.bits = bits = most if self.holds_ranks else [1] * len(asked)
        self.queries = np.zeros(len(asked), ASKED)
        self.queries["k"] = [one.k for one in asked]
        self.queries["length"] = [one.length for one in asked]
        self.queries["threshold"] = [one.threshold or 0.0 for one in asked]
        self.queries["bit"] = np.cumsum(bits) - bits
        self.marks = np.zeros((0, (sum(bits) + 63) // 64), np.uint64)

    @staticmethod
    def needed(arrivals: Arrivals, asked: tuple[Spec, ...], *, net: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        batch = taken(arrivals, self.due, self.state["open"] > 0, timed=self.timed, net=self.net)
        self.tallies[CHANGES] = 0
        self.past, self.front, self.answers, self.marks, self.free, out = take_groups(
            self.past,
            self.pasts,
            self.front,
            self.fronts,
            self.answers,
            self.lanes,
            self.state,
            self.views,
            self.queries,
            self.marks,
            self.free,
            self.tallies,
            batch.keys,
            batch.probabilities,
            batch.stamps,
            batch.now,
            batch.rows,
            batch.visits,
            arrivals.serial,
            self.timed,
            self.net,
            arrivals.more,
            self.drops,
            self.meaning,
            self.block,
            self.least,
            self.out,
        )
        told = int(self.tallies[CHANGES, 1])  # the next push will tell as many, or so
        self.out = out if len(out) <= MOST_ROOM else np.empty(min(told + told // 8, MOST_ROOM), TOLD)
        out = out[:told]
        alive = np.zeros(arrivals.size, np.bool_)
        if arrivals.wants_alive and len(batch.visits):
            here = runs(self.past, self.pasts, batch.visits["group"])["serial"] - arrivals.serial
            alive[here[here >= 0]] = True
        options: dict[str, Any] = {"timed": self.timed, "quiet": self.net, "held": self.holds_ranks}
        idle = bool(self.tallies[CHANGES, 0])
        return ordered(out, batch, arrivals, alive, len(self.asked), **options, idle=idle)

    def _grow(self, total: int) -> None:
        more, Q = total - len(self.state), len(self.asked)
        if more <= 0:
            return
        state = np.zeros(more, STATE)
        state["level"], state["target"] = -np.inf, self.least
        state["newest"] = state["now"] = -NEVER
        state["due"] = NEVER
        self.state = np.concatenate([self.state, state])
        self.pasts, self.fronts = (np.concatenate([old, np.zeros(more, RUN)]) for old in (self.pasts, self.fronts))
        self.lanes = np.concatenate([self.lanes, np.zeros(more * Q, RUN)])
        self.views = np.concatenate([self.views, _views(more * Q)])

    # --- what can be asked

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.state)) if groups is None else groups
        Q = len(self.asked)
        if asked == self.asked[query] and not self.state["open"].any():  # what was told last is the answer
            lanes = chosen * Q + query
            return ranked(runs(self.answers, self.lanes, lanes), chosen, self.lanes["size"][lanes], asked)
        found = [self._read(g, asked, int(now[g])) for g in chosen.tolist()]
        sizes = np.array([len(one) for one in found], np.int64)
        return ranked(np.concatenate([np.empty(0, TUPLE), *found]), chosen, sizes, asked)

    def _read(self, g: int, asked: Spec, now: int) -> Records:
        """The answer of a group, from its past."""
        past = runs(self.past, self.pasts, np.array([g]))
        past = past[past["stamp"] > now - asked.length]
        order = np.lexsort((-np.arange(len(past)), -past["key"]))
        _, _, places = meaning_of(asked).read(past["p"][order].tolist())
        found = np.zeros(len(places), TUPLE)
        here = past[order[[one.at for one in places]]] if places else past[:0]
        for name in ("key", "stamp", "serial"):
            found[name] = here[name]
        found["p"] = [one.probability for one in places]
        found["mark"] = [one.rank for one in places]
        return found

    def refit(self, asked: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        old, Q = self._told(), len(self.asked)
        was = [[runs(self.answers, self.lanes, np.array([g * Q + q])) for q in range(Q)] for g in range(len(now))]
        before, had, bits = self.asked, self.bits, self.queries["bit"].tolist()
        self._ask(asked)
        told: list[set[tuple[int, int]]] = []  # by query, the objects and ranks that were told
        for q, heir in enumerate(predecessors.tolist()):
            ranks = range(min(self.bits[q], had[heir]))
            told.append({(serial, r) for serial, marks in old.items() for r in ranks if marks >> (bits[heir] + r) & 1})
        out, answers = [], []
        for g in range(len(now)):
            for q, heir in enumerate(predecessors.tolist()):
                shown = was[g][heir]
                found = shown if asked[q] == before[heir] else self._read(g, asked[q], int(now[g]))
                out.append(differences(shown, found, q, g, told[q], self.holds_ranks))
                answers.append(found)
        self._set_answers(answers)
        self._set_told(told)
        self.views = _views(len(self.state) * len(asked))
        for g in range(len(self.state)):
            head, size = int(self.pasts["head"][g]), int(self.pasts["size"][g])
            for q, one in enumerate(asked):
                view = self.views[g * len(asked) + q : g * len(asked) + q + 1]
                view["low"] = now[g] - one.length
                stamps = self.past["stamp"][head : head + size]
                view["first"] = self.state["base"][g] + np.searchsorted(stamps, now[g] - one.length, "right")
                view["due"] = self.state["due"][g] = -NEVER if size else NEVER  # until it is read again
        changes = np.concatenate([np.empty(0, TOLD), *out])
        changes = changes[np.argsort(changes["query"], kind="stable")]
        groups, nobody = changes["visit"].astype(np.int64), np.empty(0, np.bool_)
        return changes_of(changes, groups, nobody, len(asked), self.holds_ranks)

    def _told(self) -> dict[int, int]:
        """By serial, the marks of the objects that were told of."""
        found = {}
        kept = runs(self.past, self.pasts, np.arange(len(self.pasts)))
        for serial, ticket in zip(kept["serial"].tolist(), kept["mark"].tolist(), strict=True):
            if ticket >= 0:
                found[serial] = sum(int(word) << (64 * w) for w, word in enumerate(self.marks[ticket]))
        return found

    def _set_told(self, told: list[set[tuple[int, int]]]) -> None:
        """New rows of marks, for the queries that there are now."""
        bits: dict[int, int] = {}
        for q, pairs in enumerate(told):
            for serial, r in pairs:
                bits[serial] = bits.get(serial, 0) | 1 << int(self.queries["bit"][q]) + r
        self.marks = np.zeros((len(bits), self.marks.shape[1]), np.uint64)
        for ticket, marks in enumerate(bits.values()):
            self.marks[ticket] = [marks >> (64 * w) & (2**64 - 1) for w in range(self.marks.shape[1])]
        tickets = {serial: ticket for ticket, serial in enumerate(bits)}
        self.free = np.empty(len(bits), np.int64)
        self.tallies[MARKS] = len(bits), 0
        for run in self.pasts:
            here = self.past[run["head"] : run["head"] + run["size"]]
            here["mark"] = [tickets.get(serial, -1) for serial in here["serial"].tolist()]

    def _set_answers(self, answers: list[Records]) -> None:
        self.answers = np.concatenate([np.empty(0, TUPLE), *answers])
        self.lanes = np.zeros(len(answers), RUN)
        self.lanes["size"] = self.lanes["room"] = [len(one) for one in answers]
        place(self.lanes)
        self.tallies[2, 0] = len(self.answers)

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = np.arange(len(self.pasts)) if groups is None else groups
        return runs(self.past, self.pasts, chosen)["serial"], self.pasts["size"][chosen]

    @property
    def held(self) -> Records:
        """What was told and may have to be taken back, while a net batch goes on."""
        waiting = np.flatnonzero(np.repeat(self.state["open"] > 0, len(self.asked)))
        return runs(self.answers, self.lanes, waiting)

    @property
    def kept(self) -> Ints:
        return self.pasts["size"]

    @property
    def buffer(self) -> int:
        return int((self.pasts["size"] - np.minimum(self.state["kept"], self.pasts["size"])).sum()) if self.drops else 0

    def size_of(self, query: int) -> int:
        return int(self.pasts["size"].sum()) - self.buffer

    @property
    def due(self) -> Ints:
        return self.state["due"]

    @property
    def nbytes(self) -> int:
        arrays = (self.past, self.front, self.answers, self.pasts, self.fronts, self.lanes, self.state, self.views)
        return int(sum(array.nbytes for array in arrays) + self.marks.nbytes + self.free.nbytes + self.out.nbytes)

    # --- snapshots

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not self.state["open"].any(), "no batch is open"
        Q, ones = len(self.asked), np.ones(len(groups), np.int64)
        lanes = (groups[:, None] * Q + np.arange(Q)).reshape(-1)
        state, views = self.state[groups], self.views[lanes]
        views["first"] -= np.repeat(state["base"], Q)  # positions are counted anew, and fronts made anew
        state["base"], state["level"], state["target"], state["since"] = 0, np.nan, self.least, LONG
        past, sizes = runs(self.past, self.pasts, groups), self.pasts["size"][groups]
        told = past["mark"] >= 0
        marks = self.marks[past["mark"][told]]
        past["mark"] = np.where(told, 0, -1)
        kept = np.repeat(np.arange(len(groups)), sizes)
        tickets = np.bincount(kept[told], minlength=len(groups)) * marks.shape[1]
        many = unplaced(self.lanes[lanes])
        per_group = np.asarray(self.lanes["size"][lanes]).reshape(-1, Q).sum(axis=1)
        return {
            "past": (past, sizes),
            "pasts": (unplaced(self.pasts[groups]), ones),
            "state": (state, ones),
            "views": (views, Q * ones),
            "answers": (runs(self.answers, self.lanes, lanes), per_group),
            "lanes": (many, Q * ones),
            "marks": (marks.reshape(-1), tickets),
        }

    def restore(self, state: Mapping[str, Records]) -> None:
        types = {"past": TUPLE, "pasts": RUN, "state": STATE, "views": VIEW, "answers": TUPLE, "lanes": RUN}
        arrays = {name: recast(state[name], dtype).copy() for name, dtype in types.items()}
        self.past, self.pasts, self.state = arrays["past"], arrays["pasts"], arrays["state"]
        self.views, self.answers, self.lanes = arrays["views"], arrays["answers"], arrays["lanes"]
        words, told = self.marks.shape[1], self.past["mark"] >= 0
        G, Q = len(self.state), len(self.asked)
        if not (
            len(self.pasts) == G
            and len(self.views) == len(self.lanes) == G * Q
            and (self.pasts["size"] >= 0).all()
            and self.pasts["size"].sum() == len(self.past)
            and (self.lanes["size"] >= 0).all()
            and self.lanes["size"].sum() == len(self.answers)
            and len(state["marks"]) == told.sum() * words
            and (self.views["first"] >= 0).all()
            and (self.views["first"] <= np.repeat(self.pasts["size"], Q)).all()
        ):
            raise StateError("the snapshot's tuples do not fit together. Take a new snapshot from a running Monitor.")
        self.pasts["room"], self.lanes["room"] = self.pasts["size"], self.lanes["size"]
        place(self.pasts)
        place(self.lanes)
        self.fronts = np.zeros(G, RUN)
        self.front = np.empty(0, TUPLE)
        self.marks = np.asarray(state["marks"], np.uint64).reshape(-1, words).copy()
        self.past["mark"][told] = np.arange(len(self.marks))
        self.free = np.empty(len(self.marks), np.int64)
        self.tallies[:] = 0
        for row, array in ((PASTS, self.past), (ANSWERS, self.answers), (MARKS, self.marks)):
            self.tallies[row, 0] = len(array)

    def check(self) -> None:
        Q = len(self.asked)
        rows = [ticket for run in self.pasts for ticket in self._run(run)["mark"].tolist() if ticket >= 0]
        free = self.free[: self.tallies[MARKS, 1]].tolist()
        assert sorted([*rows, *free]) == list(range(self.tallies[MARKS, 0])), "each row of marks has one owner"
        for g, state in enumerate(self.state):
            past = self._run(self.pasts[g])
            assert (np.lexsort((past["serial"], past["stamp"])) == np.arange(len(past))).all(), "in order of age"
            if len(past):
                assert state["newest"] >= past["stamp"][-1]
            head = self.fronts[g]["head"]
            front = self.front[head : head + self.fronts[g]["size"]]
            order = np.lexsort((-np.arange(len(past)), -past["key"]))
            above = order[past["key"][order] >= state["level"]]  # none, if there is no front
            assert (front["serial"] == past["serial"][above]).all(), "the front is complete down to its level"
            assert (front["mark"] == state["base"] + above).all()
            assert (front["p"] == past["p"][above]).all()
            for q, one in enumerate(self.asked):
                view = self.views[g * Q + q]
                low = int(view["low"])
                first = int(np.searchsorted(past["stamp"], low, "right"))
                assert view["first"] == state["base"] + first, "who is valid begins where it should"
                found = self._read(g, one, low + one.length)
                lane = self._answer(g * Q + q)
                if not state["open"]:
                    assert len(found) == len(lane), "the answer is current"
                    assert (found[["serial", "p", "mark"]] == lane[["serial", "p", "mark"]]).all()

    def _run(self, run: Any) -> Records:
        found: Records = self.past[run["head"] : run["head"] + run["size"]]
        return found

    def _answer(self, lane: int) -> Records:
        run = self.lanes[lane]
        found: Records = self.answers[run["head"] : run["head"] + run["size"]]
        return found


def _views(size: int) -> Records:
    views = np.zeros(size, VIEW)
    views["floor"], views["low"], views["due"] = -np.inf, -NEVER, NEVER
    return views
