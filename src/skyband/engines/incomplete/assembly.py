"""What engines of incomplete streams have in common: rows put together to objects, by group and by length of window.

An engine says what is dropped of what is kept (`rule`); the rest is the same for all (kernels/batches.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines.arena import recast
from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.grouped import ordered_changes, visits_of
from skyband.engines.incomplete.arrays import Room
from skyband.engines.incomplete.base import Records, Taken, within
from skyband.engines.incomplete.kernels import rows as pieces
from skyband.engines.incomplete.kernels.assembly import DONE, GROWN, KEEP, Columns
from skyband.engines.incomplete.kernels.batches import flush, survey, take_pieces
from skyband.engines.incomplete.kernels.rows import PACK, PIECE, SIGHT, TOLD
from skyband.engines.incomplete.register import ENTRY
from skyband.errors import StateError
from skyband.kernels.records import BITS, CHANGE


class Parts(Room):
    """The objects of every group, for up to 32 queries at once."""

    name = ""
    rule = KEEP

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        groups, given = self._by_group(arrivals)
        columns = Columns(*given)
        visits = visits_of(self, groups, columns.now, arrivals)
        alive = np.zeros(arrivals.size, np.bool_)
        out = self._run(columns, visits, alive, arrivals)
        taken = Taken(columns.now, columns.rows)
        return ordered_changes(self, out, visits, taken, arrivals, alive)

    def _run(self, columns: Columns, visits: Records, alive: Bools, arrivals: Arrivals) -> Records:
        out, step = np.empty(64 + self._margin, CHANGE), np.zeros(1, CHANGE)
        self.facts[[pieces.WRITTEN, pieces.VISIT, pieces.ARRIVAL]] = 0
        while True:
            reason = self._kernel(columns, visits, alive, arrivals, out, step)
            if reason == DONE:
                break
            if reason == GROWN:
                group = int(visits["group"][self.facts[pieces.VISIT]])
                out = self._prune(group, alive, arrivals.serial, out, step)
            else:
                out = self._make_room(reason, out)
        if self.net and not arrivals.more:
            self.facts[pieces.VISIT] = 0
            seats = np.zeros(len(self.packs), np.int64)
            seats[visits["group"]] = np.arange(len(visits))
            while (reason := flush(self.store, self.queries, visits, seats, out, step)) != DONE:
                out = self._make_room(reason, out)
            out = out[: self.facts[pieces.WRITTEN]]
            return out[np.argsort(out["visit"], kind="stable")]
        return out[: self.facts[pieces.WRITTEN]]

    def _kernel(self, columns: Columns, visits: Records, alive: Bools, arrivals: Arrivals, out: Any, step: Any) -> int:
        """Take arrivals until they end, or until there is no room; why it stopped."""
        reason: int = take_pieces(
            self.store,
            self.recipe,
            self.views,
            self.queries,
            columns,
            visits,
            alive,
            arrivals.serial,
            not self.timed,
            self.net,
            arrivals.more,
            self.repeat,
            self.rule,
            out,
            step,
        )
        return reason

    def _prune(self, group: int, alive: Bools, serial: int, out: Records, step: Records) -> Records:
        """A group has grown past its limit, and the rule is to ask; returns where changes are written."""
        raise NotImplementedError

    # --- answers

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.packs)) if groups is None else groups
        chosen = chosen[chosen < len(self.packs)]
        view = int(self.queries["view"][query])
        if asked.length == self.views["length"][view]:
            return self._front(view, asked.k, chosen)
        return self._survey(asked, now, chosen)

    def _front(self, view: int, k: int, groups: Ints) -> Answer:
        V = len(self.views)
        fronts = self.fronts[groups * V + view]
        sizes = np.minimum(fronts["size"], k)
        run = within(sizes)
        things = self.lists[np.repeat(fronts["start"], sizes) + run]
        newest = self.rows[self.things["newest"][things]]
        return Answer(
            group=np.repeat(groups, sizes),
            rank=run + 1,
            stamp=newest["stamp"],
            serial=newest["serial"],
            key=self.sights["score"][things.astype(np.int64) * V + view],
        )

    def _survey(self, asked: Spec, now: Ints, groups: Ints) -> Answer:
        """From all rows that are kept, for a shorter window."""
        found = np.empty(int(self.packs["size"][groups].sum()), CHANGE)
        bounds = now[groups] - asked.length
        size = survey(self.store, self.recipe, groups, bounds, self.repeat, np.empty(self.d), found)
        found = found[:size]
        found = found[~np.isnan(found["key"])]
        order = np.lexsort((-found["serial"], -found["stamp"], -found["key"], found["visit"]))
        found = found[order]
        rank = np.arange(1, len(found) + 1) - np.searchsorted(found["visit"], found["visit"])
        found, rank = found[rank <= asked.k], rank[rank <= asked.k]
        return Answer(
            group=found["visit"].astype(np.int64),
            rank=rank,
            stamp=found["stamp"],
            serial=found["serial"],
            key=found["key"],
        )

    def refit(self, asked: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        V, size = len(self.views), len(self.things)
        sights, shown_as = self.sights.reshape(size, V), self.told.reshape(size, V)
        live = self.things["group"] >= 0
        old = []  # per new query: who was in its answer, as last shown, and who had been shown
        for heir in predecessors:
            mine = sights[:, self.queries["view"][heir]]
            inside = np.flatnonzero(live & ((mine["inside"] & BITS[heir]) != 0))
            shown = live & ((mine["shown"] & BITS[heir]) != 0)
            as_told = shown_as[inside, self.queries["view"][heir]]
            old.append((inside, self.things["group"][inside].astype(np.int64), as_told, shown))
        self._set_queries(asked)
        fresh = np.zeros((size, len(self.views)), SIGHT)
        for j, (_, _, _, shown) in enumerate(old):
            fresh["shown"][shown, self.queries["view"][j]] |= BITS[j]
        self.sights, self.told = fresh.reshape(-1), np.zeros(fresh.size, TOLD)
        self.values = np.zeros(len(self.sights) * self.d)
        if self.register is not None:
            self.register.shorten(int(self.views["length"].max()))
        self._rebuild(now)
        told = []
        for j, (was, where, shown, _) in enumerate(old):
            told += self._difference(j, was, where, shown)
        return _changes(told)

    def _difference(self, query: int, was: Ints, where: Ints, shown: Records) -> list[tuple[Any, ...]]:
        """Who leaves and who enters the answer of a query, which is set."""
        V, view, told = len(self.views), int(self.queries["view"][query]), []
        for group in range(len(self.packs)):
            front = self.fronts[group * V + view]
            size = min(int(front["size"]), int(self.queries["k"][query]))
            best = self.lists[front["start"] : front["start"] + size].astype(np.int64)
            for place in np.flatnonzero(where == group):
                if was[place] not in best:
                    one = shown[place]
                    told.append((query, group, int(one["stamp"]), int(one["serial"]), float(one["score"]), -1, False))
            for thing in best:
                sight = thing * V + view
                row = self.rows[self.things["newest"][thing]]
                first = not self.sights["shown"][sight] & BITS[query]
                if thing not in was:
                    score = float(self.sights["score"][sight])
                    told.append((query, group, int(row["stamp"]), int(row["serial"]), score, 1, bool(first)))
                self.sights["inside"][sight] |= BITS[query]
                self.sights["shown"][sight] |= BITS[query]
                self.told[sight] = (self.sights["score"][sight], row["stamp"], row["serial"])
        return told

    # --- what is kept

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        rows, sizes = self._live(np.arange(len(self.packs)) if groups is None else groups)
        return rows["serial"].copy(), sizes

    def shown(self) -> Ints:
        """The rows that answers show, whether or not they are kept: a net batch may be open."""
        inside = (self.sights["inside"] != 0) & (np.repeat(self.things["group"], len(self.views)) >= 0)
        serials: Ints = self.told["serial"][inside]
        return serials

    # --- state

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not self.facts[pieces.WAITING] and not self.packs["open"].any(), "no batch is open"
        V, (rows, sizes) = len(self.views), self._live(groups)
        things, place, which = np.unique(rows["object"], return_index=True, return_inverse=True)
        order = np.argsort(place)
        rank = np.empty(len(things), np.int64)
        rank[order] = np.arange(len(things))
        things = things[order].astype(np.int64)
        owner = np.repeat(np.arange(len(groups)), sizes)
        counts = np.bincount(owner[place[order]], minlength=len(groups)) if len(things) else np.zeros_like(sizes)
        packed = np.zeros(len(rows), PIECE)
        for name in ("value", "stamp", "serial", "part"):
            packed[name] = rows[name]
        packed["object"] = rank[which] - np.repeat(np.cumsum(counts) - counts, sizes)
        packs = self.packs[groups]
        packs["size"], packs["room"], packs["start"], packs["head"], packs["dead"] = sizes, counts, 0, 0, 0
        sights = self.sights.reshape(-1, V)[things].reshape(-1)
        sights["score"], sights["count"] = 0, 0  # they follow from the rows
        told = self.told.reshape(-1, V)[things].reshape(-1)
        told[sights["inside"] == 0] = 0
        state = {
            "rows": (packed, sizes),
            "names": (self.things["name"][things], counts),
            "sights": (sights, V * counts),
            "told": (told, V * counts),
            "packs": (packs, np.ones(len(groups), np.int64)),
        }
        if self.register is not None:
            entries, lots = self.register.entries(groups, self.packs["now"])
            state |= {"register": (entries, lots), "lots": (lots, np.ones(len(groups), np.int64))}
        return state

    def restore(self, state: Mapping[str, Records]) -> None:
        V = len(self.views)
        dtypes = {"rows": PIECE, "packs": PACK, "sights": SIGHT, "told": TOLD}
        rows, packs, sights, told = (recast(state[name], dtype) for name, dtype in dtypes.items())
        names, counts, sizes = state["names"], packs["room"].copy(), packs["size"].copy()
        offsets = np.repeat(np.cumsum(counts) - counts, sizes)
        if not (
            (sizes >= 0).all()
            and (counts >= 0).all()
            and sizes.sum() == len(rows)
            and counts.sum() == len(names)
            and len(sights) == len(told) == V * len(names)
            and (rows["object"] >= 0).all()
            and (rows["object"] < np.repeat(counts, sizes)).all()
            and (rows["part"] >= 0).all()
            and (rows["part"] < self.d).all()
        ):
            raise StateError("the snapshot's objects do not fit together. Take a new snapshot from a running Monitor.")
        self._empty()
        self._more_room(len(rows), len(names))
        self.facts[pieces.FREE_ROW] = _chain(self.rows["older"], len(rows))
        self.facts[pieces.FREE_THING] = _chain(self.things["oldest"], len(names))
        for name in ("value", "stamp", "serial", "part"):
            self.rows[name][: len(rows)] = rows[name]
        self.rows["object"][: len(rows)] = rows["object"] + offsets
        self.things["name"][: len(names)] = names
        self.things["group"][: len(names)] = np.repeat(np.arange(len(packs)), counts)
        self.sights[: len(sights)], self.told[: len(told)] = sights, told
        self.facts[pieces.THINGS], self.facts[pieces.LIVE] = len(names), len(rows)
        self._index(len(self.table))
        self.packs = packs.copy()
        self.packs["start"] = self.packs["head"] = np.cumsum(sizes) - sizes
        self.packs["room"] = sizes
        self.order = np.arange(len(rows), dtype=np.int32)
        if self.register is not None:
            self.register.restore(recast(state["register"], ENTRY), state["lots"])
        if len(packs):
            self._rebuild(self.packs["now"])

    def check(self) -> None:
        """Every invariant, from the rows up."""
        from skyband.engines.incomplete.invariants import check_parts

        check_parts(self)


def _chain(links: Records, first: int) -> int:
    """The free places from `first` on, one after another."""
    links[first:] = np.arange(first + 1, len(links) + 1)
    if first == len(links):
        return -1
    links[-1] = -1
    return first


def _changes(told: list[tuple[Any, ...]]) -> Changes:
    columns = list(zip(*told, strict=True)) if told else [()] * 7
    query, group, stamp, serial = (np.array(column, np.int64) for column in columns[:4])
    return Changes(
        query=query,
        group=group,
        row=np.full(len(told), -1),
        instant=np.zeros(len(told), np.int64),
        stamp=stamp,
        serial=serial,
        key=np.array(columns[4], np.float64),
        diff=np.array(columns[5], np.int8),
        first=np.array(columns[6], np.bool_),
        alive=np.empty(0, np.bool_),
    )
