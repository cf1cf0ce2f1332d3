"""EAA, the early aggregation algorithm (haghani2009, section 3.2).

Idea: every row makes an instance of its object, which holds what the object will be when all older rows have expired.
Its current score only rises and its best score only falls, so who is dominated once (a newer instance of another
object has a current score above its best one) stays dominated. Instances count the distinct objects that dominate
them and go when there are k: what is kept is exactly the k dominance set.

Cost: O(n) for an arrival (kernels/eaa.py). Keeps a part of the window that grows linearly with it (Lemma 1).
The answer itself comes from the front that all engines here share, not from a scan of csorted.

Errata. As printed EAA is exact only if an object appears at most once ever in each stream: an attribute older than an
instance counts as 0 in its best score, but it will have expired while the instance lives, and may return; here it
counts as the highest value. Definition 1 should say t >=, or rows of one moment never dominate each other. Algorithm
2's strict < at the old value misses dominations; here the old value is included. The list of dominators' ids is
needed: counting instances instead of objects loses answers. With `repeat` every part may always return with its
highest value, so nothing is dominated and this engine keeps what SWEEP keeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.contract import Arrivals, Bools, Ints
from skyband.engines.incomplete.assembly import Parts
from skyband.engines.incomplete.base import Records, within
from skyband.engines.incomplete.kernels import rows as pieces
from skyband.engines.incomplete.kernels.assembly import Columns
from skyband.engines.incomplete.kernels.combine import score_of
from skyband.engines.incomplete.kernels.eaa import COUNTER, Ledger, take_counted, update_all


class EAA(Parts):
    """The k dominance set of every group, by counters."""

    name = "EAA"

    def _empty(self) -> None:
        self.counters, self.ids = np.zeros(0, COUNTER), np.zeros(0, np.int32)
        self.bests, self.currents = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self.listed = np.zeros(0, np.int64)
        super()._empty()

    @property
    def counting(self) -> bool:
        return self.repeat == pieces.ONCE

    @property
    def most(self) -> int:
        return int(self.views["k"].max())

    def _more_room(self, rows: int, things: int) -> None:
        super()._more_room(rows, things)
        self.counters = np.concatenate([self.counters, np.zeros(rows, COUNTER)])
        self.ids = np.concatenate([self.ids, np.zeros(rows * self.most, np.int32)])

    def _grow(self, total: int) -> None:
        super()._grow(total)
        self.listed = np.concatenate([self.listed, np.zeros(len(self.packs) - len(self.listed), np.int64)])

    def _lay_order(self, rooms: Ints) -> None:
        """The sorted lists lie as the order does."""
        starts, sizes = self.packs["start"].copy(), self.listed
        super()._lay_order(rooms)
        to, of = np.repeat(self.packs["start"], sizes) + within(sizes), np.repeat(starts, sizes) + within(sizes)
        for name in ("bests", "currents"):
            moved = np.zeros(len(self.order), np.int32)
            moved[to] = getattr(self, name)[of]
            setattr(self, name, moved)

    @property
    def ledger(self) -> Ledger:
        return Ledger(
            self.counters,
            self.ids,
            self.bests,
            self.currents,
            self.listed,
            np.zeros(self.d),
            np.zeros(self.d),
            np.zeros(len(self.rows), np.int32),
        )

    def _kernel(self, columns: Columns, visits: Records, alive: Bools, arrivals: Arrivals, out: Any, step: Any) -> int:
        if not self.counting:
            return super()._kernel(columns, visits, alive, arrivals, out, step)
        reason: int = take_counted(
            self.store,
            self.recipe,
            self.ledger,
            self.views,
            self.queries,
            columns,
            visits,
            alive,
            arrivals.serial,
            not self.timed,
            self.net,
            arrivals.more,
            out,
            step,
        )
        return reason

    def _rebuild(self, now: Ints) -> None:
        super()._rebuild(now)
        if self.counting:
            self._count_anew()

    def _count_anew(self) -> None:
        """Counters from the rows; what is dominated by now, goes."""
        self.counters, self.ids = np.zeros(len(self.rows), COUNTER), np.zeros(len(self.rows) * self.most, np.int32)
        self.bests, self.currents = np.zeros(len(self.order), np.int32), np.zeros(len(self.order), np.int32)
        self.listed = np.zeros(len(self.packs), np.int64)
        update_all(self.store, self.recipe, self.ledger, self.most, np.zeros(0, np.bool_), 2**62)

    def check(self) -> None:
        """Besides: nothing is kept that interval dominance allows to drop, but the newest rows of those shown."""
        super().check()
        for g in range(len(self.packs) if self.counting else 0):
            places, _ = self._places(np.array([g]))
            rows = self.rows[places]
            chains: dict[int, list[float]] = {}
            scores = {}
            for place, row in zip(places[::-1], rows[::-1], strict=True):
                values = chains.setdefault(int(row["object"]), [np.nan] * self.d)
                values[row["part"]] = float(row["value"])
                known = np.array(values)
                scores[int(place)] = (
                    score_of(self.recipe, np.where(np.isnan(known), self.recipe.lows, known)),
                    score_of(self.recipe, np.where(np.isnan(known), self.recipe.highs, known)),
                )
            ghosts = 0
            for place, row in zip(places, rows, strict=True):
                rivals = {
                    int(other["object"])
                    for where, other in zip(places, rows, strict=True)
                    if other["stamp"] >= row["stamp"]
                    and other["object"] != row["object"]
                    and scores[int(where)][0] > scores[int(place)][1]
                }
                listed = bool(self.counters["listed"][place])
                ghosts += not listed
                if listed:
                    found = self.ids[place * self.most :][: self.counters["dominators"][place]].tolist()
                    assert len(set(found)) == len(found) < self.most, "distinct, and fewer than k"
                    assert len(rivals) < self.most, "nothing is kept that is dominated k times"
                    assert rivals <= set(found), "all dominators are counted"
                else:
                    shown = self.sights["shown"][row["object"]] != 0
                    assert shown and self.things["newest"][row["object"]] == place, "who was shown is remembered"
            start, size = int(self.packs["start"][g]), int(self.listed[g])
            assert size + ghosts == len(rows), "all others are in the sorted lists"
            for name, sorted_list in (("best", self.bests), ("current", self.currents)):
                mine = sorted_list[start : start + size]
                held = self.counters[name][mine]
                assert (held[1:] >= held[:-1]).all(), "sorted"
                assert len(set(mine.tolist())) == size
