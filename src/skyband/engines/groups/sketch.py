"""SKETCH: the objects with the largest count or sum over a time window, by Space-Saving summaries of its panes.

For streams whose objects are too many to keep: memory does not depend on how many there are. The window is cut into
panes, the *basic windows* of Golab et al. ("Identifying Frequent Items in Sliding Windows over On-Line Packet Streams",
IMC 2003), each with the c counters of Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent
and Top-k Elements in Data Streams", ICDT 2005). An object's score is what its counters are known to hold.

Error: let N be the count or sum of all rows in the live panes. A score is never more than the object has in these, and
falls short of that by at most N / c. A pane leaves when its last row has expired, so live panes hold the window and
at most one pane, 1/32 of it, before. Answers change with a row of an object that then beats the worst of them, and at
the ends of panes, where all are ranked anew. `stats()` has `precision`, the share of answers at the ends of panes that
are surely right by their bounds: it is rather too low.

Cost: O(log c) for a row; 35 panes of 4,096 counters take 8 MB, and the kept columns of their objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import recast
from skyband.engines.contract import NEVER, Answer, Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.groups.kernels.sketch import (
    AT,
    COUNTER,
    LOOKED,
    MEMBERS,
    MOVE,
    NEXT,
    OBJECT,
    PANE,
    ROW,
    SURE,
    UNSET,
    WRITTEN,
    Rows,
    Summary,
    index,
    take_rows,
)
from skyband.engines.groups.measures import Measures
from skyband.engines.invariants import are_counts, distinct, near, require, within
from skyband.kernels.records import CHANGE as HELD
from skyband.query.tuning import Tuning

Records = NDArray[Any]
STORED = np.dtype([("pane", "i8"), ("code", "i8"), ("count", "f8"), ("error", "f8"), ("serial", "i8")])


class SKETCH:
    """The heavy hitters of a time window, of one group. Queries that share it are equal."""

    name = "SKETCH"
    panes = 32  # that make a window
    counters = 4096  # of a pane

    def __init__(
        self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool, sort: str, measures: Measures
    ) -> None:
        assert timed and sort == "time", "panes are of time"
        self.timed, self.net, self.specs, self.measures = timed, net, specs, measures
        self.held = np.empty(0, HELD)  # nothing waits: a net batch is compared when it ends
        self.unknown: list[int] = []  # no row deletes another
        self.open = False  # within a net batch that goes on
        self.seen = 0  # groups: 1, once a row has come
        self._empty()

    def _empty(self) -> None:
        P, c, k = self.panes + 3, self.counters, self.specs[0].k
        length = self.specs[0].length
        self.summary = Summary(
            counters=np.zeros((P, c), COUNTER),
            heaps=np.zeros((P, c), np.int64),
            tables=np.full((P, 1 << (2 * c - 1).bit_length()), -1),
            panes=np.zeros(P, PANE),
            objects=np.zeros(0, OBJECT),
            members=np.zeros(k, np.int64),
            floor=np.full(1, -np.inf),
            facts=np.zeros(7, np.int64),
            length=length,
            width=-(-length // self.panes),
        )
        self.summary.facts[NEXT] = UNSET

    # --- the stream

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)

    def _grow(self, total: int) -> None:
        more = total - len(self.summary.objects)
        if more > 0:
            objects = np.concatenate([self.summary.objects, np.zeros(more, OBJECT)])
            self.summary = self.summary._replace(objects=objects)

    def take(self, arrivals: Arrivals) -> Changes:
        assert arrivals.objects is not None and arrivals.attributes is not None
        self.seen = max(self.seen, arrivals.total)
        self._grow(int(arrivals.objects.max(initial=-1)) + 1)
        facts, objects = self.summary.facts, self.summary.objects
        if self.net and not self.open:
            objects["was"] = objects["inside"]
        facts[WRITTEN], facts[AT], facts[ROW] = 0, 0, -1
        rows = Rows(
            codes=arrivals.objects,
            weights=arrivals.attributes[0] if arrivals.attributes else np.empty(0),
            stamps=np.ascontiguousarray(arrivals.stamps),
            now=np.ascontiguousarray(arrivals.now),
            rows=arrivals.rows,
            eligible=np.empty(0, np.bool_) if arrivals.eligible is None else arrivals.eligible,
            serial=arrivals.serial,
            clock=arrivals.clock,
            net=self.net,
        )
        moves = np.empty(64 + 2 * self.specs[0].k, MOVE)
        while not take_rows(self.summary, rows, moves):
            moves = np.concatenate([moves, np.empty(len(moves), MOVE)])
        moves = moves[: facts[WRITTEN]]
        if self.net:
            self.open = arrivals.more
            moves = moves[:0] if arrivals.more else self._net_moves(arrivals)
        alive = np.zeros(arrivals.size, np.bool_)
        newest = objects["serial"][self.there] - arrivals.serial
        alive[newest[newest >= 0]] = True
        return self._changes(moves, alive)

    def _net_moves(self, arrivals: Arrivals) -> Records:
        """The difference of the answers before and after a batch."""
        objects = self.summary.objects
        moved = [np.flatnonzero((objects["was"] == 1) & (objects["inside"] == 0))]
        moved.append(np.flatnonzero((objects["inside"] == 1) & (objects["was"] == 0)))
        codes = np.concatenate(moved)
        moves = np.zeros(len(codes), MOVE)
        moves["slot"], moves["key"], moves["serial"] = codes, objects["total"][codes], objects["serial"][codes]
        moves["diff"] = np.repeat([-1, 1], [len(one) for one in moved])
        moves["first"] = (moves["diff"] > 0) & (objects["shown"][codes] == 0)
        moves["instant"], moves["row"] = arrivals.clock, arrivals.rows[-1] if len(arrivals.rows) else -1
        objects["shown"][moved[1]] = 1
        objects["was"] = 0
        objects["shown"][(objects["panes"] == 0) & (objects["inside"] == 0)] = 0
        return moves

    def _changes(self, moves: Records, alive: Bools) -> Changes:
        Q, size = len(self.specs), len(moves)
        columns = {name: np.tile(moves[name], Q) for name in ("row", "instant", "serial", "key", "diff", "slot")}
        return Changes(
            query=np.repeat(np.arange(Q), size),
            group=np.zeros(Q * size, np.int64),
            row=columns["row"],
            instant=columns["instant"],
            stamp=np.zeros(Q * size, np.int64),
            serial=columns["serial"],
            key=columns["key"],
            diff=columns["diff"],
            first=np.tile(moves["first"], Q).astype(np.bool_),
            alive=alive,
            object=columns["slot"],
        )

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = self.seen > 0 and (groups is None or 0 in groups)
        members = self.summary.members[: self.summary.facts[MEMBERS] if chosen else 0]
        one = self.summary.objects[members]
        members = members[np.lexsort((-one["serial"], -one["stamp"], -one["total"]))][: spec.k]
        one = self.summary.objects[members]
        return Answer(
            group=np.zeros(len(members), np.int64),
            rank=np.arange(1, len(members) + 1),
            stamp=one["stamp"].copy(),
            serial=one["serial"].copy(),
            key=one["total"].copy(),
            object=members,
        )

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self.specs = specs  # equal to those that there were
        return self._changes(np.empty(0, MOVE), np.empty(0, np.bool_))

    # --- what is kept

    @property
    def there(self) -> Bools:
        """By code: has the object a counter, or is it in the answer?"""
        objects = self.summary.objects
        found: Bools = (objects["panes"] > 0) | (objects["inside"] > 0) | (objects["was"] > 0)
        return found

    @property
    def objects(self) -> int:
        return int(self.there.sum())

    @property
    def rows(self) -> int:
        """No row is kept but the newest of each object."""
        return self.objects

    @property
    def kept(self) -> Ints:
        return np.full(self.seen, self.objects)

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        wanted = np.arange(self.seen) if groups is None else groups
        serials = np.sort(self.summary.objects["serial"][self.there])  # as objects are stored
        return np.tile(serials, len(wanted)), np.full(len(wanted), len(serials))

    def object_serials(self) -> tuple[Ints, Ints, Ints]:
        """The objects that are there: codes, groups, and a row of each whose columns are kept."""
        codes = np.flatnonzero(self.there)
        return codes, np.zeros(len(codes), np.int64), self.summary.objects["serial"][codes]

    def shown(self) -> Ints:
        return np.empty(0, np.int64)

    def keep_objects(self, kept: Ints) -> None:
        """Know only these codes, under the numbers 0, 1, ...; the others are not there."""
        numbers = np.full(len(self.summary.objects), -1)
        numbers[kept] = np.arange(len(kept))
        summary = self.summary._replace(objects=self.summary.objects[kept])
        live = self._live()
        summary.counters["code"][live] = numbers[summary.counters["code"][live]]
        size = summary.facts[MEMBERS]
        summary.members[:size] = numbers[summary.members[:size]]
        self.summary = summary
        index(summary)

    def _live(self) -> Bools:
        """Which counters are in use."""
        sizes = self.summary.panes["size"]
        live: Bools = np.arange(self.counters) < sizes[:, None]
        return live

    def keep_groups(self, groups: Ints) -> None:
        if not len(groups):
            self._empty()
            self.seen = 0
        else:
            self.keep_objects(np.flatnonzero(self.there))

    def reset_groups(self, groups: Ints) -> None:
        if len(groups):
            self._empty()

    @property
    def buffer(self) -> int:
        return 0

    def size_of(self, query: int) -> int:
        return self.objects

    @property
    def due(self) -> Ints:
        begun = self.summary.facts[NEXT] > UNSET and self.objects
        return np.full(self.seen, self.summary.facts[NEXT] if begun else NEVER)

    @property
    def nbytes(self) -> int:
        arrays = (self.summary.counters, self.summary.heaps, self.summary.tables, self.summary.objects)
        return int(sum(array.nbytes for array in arrays))

    def more_stats(self) -> dict[str, Any]:
        """The share of answers at the ends of panes that were surely right, of so many; and what a score may lack."""
        sure, looked = (int(self.summary.facts[at]) for at in (SURE, LOOKED))
        weight = float(self.summary.panes["weight"][self.summary.panes["size"] > 0].sum())
        return {
            "precision": sure / looked if looked else None,
            "looked": looked,
            "shortfall": weight / self.counters,
        }

    # --- state

    def snapshot(self, groups: Ints) -> dict[str, tuple[Any, Ints]]:
        assert not self.open, "no batch is open"
        kept, live, some = np.flatnonzero(self.there), self._live(), len(groups)
        kept = kept[np.argsort(self.summary.objects["serial"][kept])]  # stored alike, whatever codes they have
        numbers = np.full(len(self.summary.objects), -1)
        numbers[kept] = np.arange(len(kept))
        pane, _ = np.nonzero(live)
        counters = self.summary.counters[live]
        stored = np.zeros(len(counters), STORED)
        stored["pane"] = pane
        for name in ("code", "count", "error", "serial"):
            stored[name] = counters[name]
        stored["code"] = numbers[stored["code"]]
        order = np.lexsort((stored["serial"], stored["count"], stored["pane"]))
        members = np.sort(numbers[self.summary.members[: self.summary.facts[MEMBERS]]])
        arrays = {
            "counters": stored[order],
            "panes": self.summary.panes.copy(),
            "objects": self.summary.objects[kept],
            "members": members,
            "floor": self.summary.floor.copy(),
            "facts": self.summary.facts[[NEXT, SURE, LOOKED]],
        }
        return {name: (array if some else array[:0], np.full(some, len(array))) for name, array in arrays.items()}

    def restore(self, state: Mapping[str, Any], *, trusted: bool = True) -> None:
        self._empty()
        if not len(state["facts"]):
            return
        self.seen, P = 1, len(self.summary.panes)
        stored, panes = state["counters"], recast(state["panes"], PANE)
        objects, members = recast(state["objects"], OBJECT), state["members"]
        require(len(panes) == P and len(state["facts"]) == 3 and len(state["floor"]) == 1, "a window has its panes")
        require(
            are_counts(panes["size"], len(stored)) and (panes["size"] <= self.counters).all(), "panes have counters"
        )
        require((stored["pane"] == np.repeat(np.arange(P), panes["size"])).all(), "counters are of their panes")
        require(within(stored["code"], 0, len(objects) - 1), "counters are of objects")
        require(distinct(stored["code"], stored["pane"]), "an object has one counter in a pane")
        require(
            len(members) <= len(self.summary.members) and within(members, 0, len(objects) - 1), "answers are objects"
        )
        require(distinct(members), "an object is in the answer once")
        self.summary = self.summary._replace(panes=panes.copy(), objects=objects.copy(), floor=state["floor"].copy())
        live = self._live()
        for name in ("code", "count", "error", "serial"):
            self.summary.counters[name][live] = stored[name]
        self.summary.members[: len(members)] = members
        self.summary.facts[[NEXT, SURE, LOOKED]] = state["facts"]
        self.summary.facts[MEMBERS] = len(members)
        index(self.summary)

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        summary, objects, panes = self.summary, self.summary.objects, self.summary.panes
        require(now is None or len(now) == self.seen, "every group is in its engine")
        live = self._live()
        used = panes["size"] > 0
        counters = summary.counters[live]
        numbers = np.concatenate([counters["count"], counters["error"], objects["total"], panes["weight"]])
        require(np.isfinite(numbers).all() and not np.isnan(summary.floor).any(), "sums are numbers")
        require(
            (counters["error"] >= 0).all() and (counters["count"] > counters["error"]).all(), "counters have counts"
        )
        require(
            within(counters["serial"], 0, NEVER - 1) and within(objects["serial"], 0, NEVER - 1), "rows have serials"
        )
        require(near(objects["stamp"]) and near(panes["start"]), "rows have times")
        require((panes["start"] % summary.width == 0).all(), "panes begin where panes do")
        places = panes["start"] // summary.width % len(panes)
        require((places == np.arange(len(panes)))[used].all(), "panes are in their places")
        begin = int(summary.facts[NEXT])
        require(begin == UNSET or (near(np.array([begin])) and begin % summary.width == 0), "the next pane has a start")
        require(not used.any() or begin > UNSET, "the next pane is known")
        starts = panes["start"][used]
        lasting = (starts < begin) & (starts + summary.width + summary.length > begin - summary.width)
        require(lasting.all(), "panes are live")
        require(distinct(counters["code"], np.nonzero(live)[0]), "an object has one counter in a pane")
        owners = np.bincount(counters["code"], minlength=len(objects))
        require((owners == objects["panes"]).all(), "objects have their counters")
        require(within(objects["inside"], 0, 1) and within(objects["shown"], 0, 1), "an object is in the answer or not")
        require(self.open or not objects["was"].any(), "no batch is open")
        members = summary.members[: summary.facts[MEMBERS]]
        inside = np.flatnonzero(objects["inside"])
        require(np.array_equal(np.sort(members), inside), "the answer has its objects")
        require((objects["shown"] >= objects["inside"]).all() or self.open, "what is in the answer has been shown")
        require(within(summary.facts[[SURE, LOOKED]], 0, 2**62), "answers are counted")
        low = objects["total"][members].min(initial=np.inf)
        require(not len(members) or summary.floor[0] <= low, "the floor is below the answer")
        if deep:
            for p in np.flatnonzero(used).tolist():
                heap, size = summary.heaps[p], int(panes["size"][p])
                order = summary.counters[p][heap[:size]]
                parents = order[(np.arange(1, size) - 1) // 2]
                assert (parents["count"] <= order["count"][1:]).all(), "the smallest counter is the root"
                known = summary.counters[p]["place"][heap[:size]]
                assert (known == np.arange(size)).all(), "counters know their places"
                assert np.isclose(order["count"].sum(), panes["weight"][p]), (
                    "the counts of a pane add up to all its rows"
                )
