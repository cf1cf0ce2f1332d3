"""SWEEP, our own exact form of haghani2009's early aggregation: interval dominance by a lazy sweep.

Idea: what the paper's counters know at every moment is needed only when something is to be dropped. So rows are kept
as they come, and when a group has grown by a tenth one sweep from its newest row to its oldest finds what can go:
whatever cannot reach the k best current scores of distinct newer objects (kernels/sweep.py). Answers are kept
from arrival to arrival by a front of a few more than k objects; what expires outside of it costs nothing.

A sweep comes at the end of a push, or earlier when rows have no room: nobody sees what is kept in between, and what
comes and expires within one push is never kept.

Cost of an arrival: a look at its object, one score, and at most 1/10 of a sweep of what is kept, spread over the
arrivals that let it grow by a tenth. Keeps up to a tenth more than EAA. With `repeat` a part may come back with its
highest value at any time, so dominance drops nothing: parts.py serves that (engines/incomplete/adapter.py chooses).

Errata: see eaa.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines.arena import recast
from skyband.engines.contract import Answer, Arrivals, Changes, Ints, Spec
from skyband.engines.grouped import changes_of, ordered_changes, visits_of
from skyband.engines.incomplete.base import BEGINNING, Machine, Records, Taken, within
from skyband.engines.incomplete.kernels import objects
from skyband.engines.incomplete.kernels import rows as pieces
from skyband.engines.incomplete.kernels.gather import Columns, flush, rebuild, take_once
from skyband.engines.incomplete.kernels.objects import (
    DONE,
    FRONTS,
    GROUP,
    NOTE,
    NOWHERE,
    OBJECT,
    OUT,
    REACH,
    ROW,
    ROWS,
    TOLD,
    Store,
    forget,
    scores_of,
)
from skyband.engines.incomplete.register import ENTRY
from skyband.errors import StateError
from skyband.kernels.records import BITS, CHANGE, NEVER, VISIT

SMALLEST = 64  # objects that there is room for at first
PACK = np.dtype([(name, "i8") for name in ("rows", "objects", "told", "limit", "now")], align=True)  # a stored group


class SWEEP(Machine):
    """What interval dominance lets go, goes when enough has come together."""

    name = "SWEEP"

    def _set_queries(self, asked: tuple[Spec, ...]) -> None:
        assert self.repeat == pieces.ONCE, "a part comes at most once while it is valid"
        assert len({one.length for one in asked}) == 1, "which rows are rejected depends on the window"
        self.queries, self.length = np.array([one.k for one in asked]), asked[0].length
        self.k = int(self.queries.max())
        self.most = self.k + max(self.k, 16)
        self.touched, self.top = np.zeros(2 * self.most + 2, np.int32), np.zeros(self.k)

    def _empty(self) -> None:
        self.facts = np.zeros(objects.FACTS, np.int64)
        self.rows, self.groups = np.zeros(0, ROW), np.zeros(0, GROUP)
        self.objects, self.reach, self.notes = np.zeros(0, OBJECT), np.zeros(0, REACH), np.zeros(0, NOTE)
        self.values, self.stamps, self.instance = np.zeros(0), np.zeros(0, np.int64), np.zeros(self.d)
        self.fronts, self.told = np.zeros(0, np.int32), np.zeros(0, TOLD)
        self._lay_objects(SMALLEST)

    @property
    def asked(self) -> objects.Spec:
        return objects.Spec(
            self.queries, self.queries, self.k, self.most, self.length, not self.timed, self.net, self.least
        )

    @property
    def store(self) -> Store:
        return Store(
            self.rows,
            self.objects,
            self.reach,
            self.values,
            self.stamps,
            self.free,
            self.groups,
            self.fronts,
            self.told,
            self.touched,
            self.notes,
            self.dropped,
            self.instance,
            self.top,
            self.facts,
        )

    # --- room

    def _lay_objects(self, size: int) -> None:
        """So many places for objects."""
        more = size - len(self.objects)
        fresh = np.zeros(more, OBJECT)
        fresh["group"] = -1
        self.objects = np.concatenate([self.objects, fresh])
        self.reach = np.concatenate([self.reach, np.zeros(more, REACH)])
        self.values = np.concatenate([self.values, np.tile(self.recipe.lows, more)])
        self.stamps = np.concatenate([self.stamps, np.full(more * self.d, NOWHERE)])
        self.notes = np.zeros(size, NOTE)
        self.dropped, self.free = np.zeros(size, np.int32), np.zeros(size, np.int32)
        self._forget()

    def _forget(self) -> None:
        """Objects whose rows have all expired go, as in the kernel; if most stay, there is twice the room."""
        if 4 * forget(self.store, self.length) > 3 * len(self.objects):
            self._lay_objects(2 * len(self.objects))

    def _make_room(self, reason: int, out: Records) -> Records:
        """The kernel has stopped for want of room."""
        if reason == OUT:
            return np.concatenate([out, np.empty(len(out) + 2 * int(self.queries.sum()), CHANGE)])
        if reason == FRONTS:
            self._pack_fronts()
        elif reason == ROWS:
            full = 4 * self.groups["size"] >= 3 * self.groups["room"]
            self._lay_rows(np.where(full, np.maximum(8, 2 * self.groups["size"]), self.groups["room"]))
        else:
            self._forget()
        return out

    def _pack_fronts(self) -> None:
        """Fronts one after another, each with room for twice of what it holds, and as much again at the end."""
        held = np.maximum(self.groups["best"], self.groups["told"])
        rooms = np.where(self.groups["space"] > 0, np.maximum(4, 2 * held), 0)
        starts = np.cumsum(rooms) - rooms
        used = int(rooms.sum())
        size = 2 * used + 16 * (self.most + 8)
        to, of = np.repeat(starts, held) + within(held), np.repeat(self.groups["first"], held) + within(held)
        fronts, told = np.zeros(size, np.int32), np.zeros(size, TOLD)
        fronts[to], told[to] = self.fronts[of], self.told[of]
        self.fronts, self.told = fronts, told
        self.groups["first"], self.groups["space"] = starts, rooms
        self.facts[objects.LISTED] = used

    def _lay_rows(self, rooms: Ints) -> None:
        """The runs of all groups, with so much room for each."""
        rows, sizes = self._run_of(np.arange(len(self.groups)))
        starts = np.cumsum(rooms) - rooms
        self.rows = np.zeros(int(rooms.sum()), ROW)
        self.rows[np.repeat(starts, sizes) + within(sizes)] = rows
        self.groups["start"] = self.groups["head"] = starts
        self.groups["room"] = rooms

    def _grow(self, total: int) -> None:
        more = total - len(self.groups)
        if more > 0:
            groups = np.zeros(more, GROUP)
            groups["due"] = groups["low"] = groups["next"] = NEVER
            groups["limit"], groups["now"], groups["score"] = self.least, BEGINNING, -np.inf
            groups["stamp"] = groups["serial"] = groups["since"] = NOWHERE
            groups["start"] = groups["head"] = len(self.rows)
            self.groups = np.concatenate([self.groups, groups])

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        groups, given = self._by_group(arrivals)
        alive, owners = np.zeros(arrivals.size, np.bool_), np.empty(arrivals.size, np.int32)
        whole: Any = (*given, self.register.links, owners, alive, arrivals.serial)
        columns = Columns(*whole)
        visits = visits_of(self, groups, columns.now, arrivals)
        out = np.empty(int(self.facts[objects.WRITTEN]) + 64 + 2 * int(self.queries.sum()), CHANGE)  # as many as last
        step = np.zeros(1, CHANGE)
        self.facts[[objects.WRITTEN, objects.VISIT, objects.ARRIVAL]] = 0
        while True:
            reason = take_once(self.store, self.recipe, self.asked, columns, visits, arrivals.more, out, step)
            if reason == DONE:
                break
            out = self._make_room(reason, out)
        self.register.own(owners)
        if self.net and not arrivals.more:
            changed = self.groups[visits["group"]]
            changed = changed[changed["low"] < self.k]
            out = np.empty(len(self.queries) * int((changed["told"] + changed["best"]).sum()), CHANGE)
            flush(self.store, self.asked, visits, out, step)
        taken = Taken(columns.now, columns.rows)
        return ordered_changes(self, out[: self.facts[objects.WRITTEN]], visits, taken, arrivals, alive)

    # --- answers

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        chosen = chosen[chosen < len(self.groups)]
        if asked.length < self.length:
            return self._survey(asked, now, chosen)
        best = self._best(chosen, asked.k)
        sizes = np.minimum(self.groups["best"][chosen], asked.k)
        one = self.objects[best]
        return Answer(
            np.repeat(chosen, sizes), within(sizes) + 1, one["stamp"], one["serial"], self.reach["score"][best]
        )

    def _best(self, groups: Ints, k: int) -> Ints:
        """The places of the k best objects of each of these groups."""
        sizes = np.minimum(self.groups["best"][groups], k)
        return self.fronts[np.repeat(self.groups["first"][groups], sizes) + within(sizes)].astype(np.int64)

    def _survey(self, asked: Spec, now: Ints, groups: Ints) -> Answer:
        """From all rows that are kept, for a shorter window."""
        rows, sizes = self._run_of(groups)
        owner, o = np.repeat(groups, sizes), rows["object"].astype(np.int64)
        newest = (rows["serial"] == self.objects["serial"][o]) & (rows["stamp"] > now[owner] - asked.length)
        rows, owner, o = rows[newest], owner[newest], o[newest]
        stamps = self.stamps.reshape(-1, self.d)[o]
        valid = stamps > (now[owner] - asked.length)[:, None]
        values = np.where(valid, self.values.reshape(-1, self.d)[o], self.recipe.lows)
        scores = np.empty(len(o))
        scores_of(self.recipe, np.ascontiguousarray(values).reshape(-1), scores)
        order = np.lexsort((-rows["serial"], -rows["stamp"], -scores, owner))
        order = order[~np.isnan(scores[order])]
        owner = owner[order]
        rank = np.arange(1, len(order) + 1) - np.searchsorted(owner, owner)
        order, owner, rank = order[rank <= asked.k], owner[rank <= asked.k], rank[rank <= asked.k]
        return Answer(owner, rank, rows["stamp"][order], rows["serial"][order], scores[order])

    def refit(self, asked: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        was, shown = self.queries[predecessors], self.objects["shown"].copy()
        self._set_queries(asked)
        self.objects["shown"] = 0
        for q, heir in enumerate(predecessors):
            self.objects["shown"] |= np.where(shown & BITS[heir], BITS[q], np.uint32(0))
        self.register.shorten(self.length)
        self._rebuild(now[: len(self.groups)])
        visits, step = np.zeros(len(self.groups), VISIT), np.zeros(1, CHANGE)
        visits["group"] = np.arange(len(self.groups))
        out = np.empty(len(asked) * int((self.groups["told"] + self.groups["best"]).sum()), CHANGE)
        self.facts[objects.WRITTEN] = 0
        flush(self.store, self.asked._replace(was=was), visits, out, step)
        out = out[: self.facts[objects.WRITTEN]]
        out = out[np.argsort(out["query"], kind="stable")]
        return changes_of(out, out["query"], out["visit"].astype(np.int64), np.empty(0, np.bool_))

    def _rebuild(self, now: Ints) -> None:
        """Everything that follows from the rows; what was told stays so."""
        every = np.arange(len(self.groups))
        rows, sizes = self._run_of(every)
        owner = np.repeat(every, sizes)
        self.groups["now"] = np.maximum(self.groups["now"], now)
        valid = rows["stamp"] > self.groups["now"][owner] - self.length
        self.rows, sizes = rows[valid], np.bincount(owner[valid], minlength=len(every))
        self.groups["start"] = self.groups["head"] = np.cumsum(sizes) - sizes
        self.groups["size"] = self.groups["room"] = sizes
        told, held = self._told(every), self.groups["told"]
        spaces = np.maximum(held, np.minimum(2 * self.most, sizes))
        starts = np.cumsum(spaces) - spaces
        self.fronts, self.told = np.zeros(int(spaces.sum()), np.int32), np.zeros(int(spaces.sum()), TOLD)
        self.told[np.repeat(starts, held) + within(held)] = told
        self.groups["first"], self.groups["space"], self.groups["best"] = starts, spaces, 0
        self.facts[objects.LISTED] = len(self.fronts)
        self.stamps[:] = self.objects["stamp"] = NOWHERE
        self.objects["front"] = 0
        self.values = np.tile(self.recipe.lows, len(self.objects))
        rebuild(self.store, self.recipe, self.asked)
        self.objects["shown"][self.objects["stamp"] == NOWHERE] = 0

    # --- what is kept

    def _run_of(self, groups: Ints) -> tuple[Records, Ints]:
        """The rows of these groups, the oldest first, and how many of each."""
        places, sizes = self._places(groups)
        return self.rows[places], sizes

    def _places(self, groups: Ints) -> tuple[Ints, Ints]:
        sizes = self.groups["size"][groups]
        return np.repeat(self.groups["head"][groups], sizes) + within(sizes), sizes

    def _told(self, groups: Ints) -> Records:
        held = self.groups["told"][groups]
        told: Records = self.told[np.repeat(self.groups["first"][groups], held) + within(held)]
        return told

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        places, sizes = self._places(np.arange(len(self.groups)) if groups is None else groups)
        return self.rows["serial"][places], sizes

    def shown(self) -> Ints:
        """The rows that answers show, whether or not they are kept: a net batch may be open."""
        serials: Ints = self._told(np.arange(len(self.groups)))["serial"]
        return serials

    @property
    def kept(self) -> Ints:
        kept: Ints = self.groups["size"]
        return kept

    # --- state

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not self.groups["open"].any(), "no batch is open"
        rows, sizes = self._run_of(groups)
        told, held = self._told(groups), self.groups["told"][groups]
        things, place, which = np.unique(rows["object"], return_index=True, return_inverse=True)
        order = np.argsort(place)
        rank = np.empty(len(things), np.int64)
        rank[order] = np.arange(len(things))
        counts = np.bincount(np.repeat(np.arange(len(groups)), sizes)[place], minlength=len(groups))
        offsets = np.cumsum(counts) - counts
        rows["object"] = rank[which] - np.repeat(offsets, sizes)
        told["object"] = rank[np.searchsorted(things, told["object"])] - np.repeat(offsets, held)
        things = things[order].astype(np.int64)
        packs = np.zeros(len(groups), PACK)
        packs["rows"], packs["objects"], packs["told"] = sizes, counts, held
        packs["limit"], packs["now"] = self.groups["limit"][groups], self.groups["now"][groups]
        entries, lots = self.register.entries(groups, self.groups["now"])
        one = np.ones(len(groups), np.int64)
        return {
            "rows": (rows, sizes),
            "names": (self.objects["name"][things], counts),
            "shown": (self.objects["shown"][things], counts),
            "told": (told, held),
            "packs": (packs, one),
            "register": (entries, lots),
            "lots": (lots, one),
        }

    def restore(self, state: Mapping[str, Records]) -> None:
        rows, told, packs = recast(state["rows"], ROW), recast(state["told"], TOLD), recast(state["packs"], PACK)
        names, shown, counts, every = state["names"], state["shown"], packs["objects"], np.arange(len(packs))
        if not (
            all((packs[name] >= 0).all() for name in ("rows", "objects", "told"))
            and [packs[name].sum() for name in ("rows", "objects", "told")] == [len(rows), len(names), len(told)]
            and len(shown) == len(names)
            and (rows["object"] >= 0).all()
            and (rows["object"] < np.repeat(counts, packs["rows"])).all()
            and (rows["part"] >= 0).all()
            and (rows["part"] < self.d).all()
            and (told["object"] >= 0).all()
            and (told["object"] < np.repeat(counts, packs["told"])).all()
            and (packs["told"] <= self.k).all()
        ):
            raise StateError("the snapshot's objects do not fit together. Take a new snapshot from a running Monitor.")
        self._empty()
        self._grow(len(packs))
        offsets = np.cumsum(counts) - counts
        self.rows, told = rows.copy(), told.copy()
        self.rows["object"] += np.repeat(offsets, packs["rows"])
        told["object"] += np.repeat(offsets, packs["told"])
        self._lay_objects(SMALLEST + 2 * len(names))
        self.objects["name"][: len(names)], self.objects["shown"][: len(names)] = names, shown
        self.objects["group"][: len(names)] = np.repeat(every, counts)
        self.objects["told"][told["object"]] = within(packs["told"]) + 1
        self.groups["size"], self.groups["told"], self.told = packs["rows"], packs["told"], told
        self.groups["head"] = np.cumsum(packs["rows"]) - packs["rows"]
        self.groups["first"] = np.cumsum(packs["told"]) - packs["told"]
        self.groups["limit"], self.groups["now"] = packs["limit"], packs["now"]
        self.register.restore(recast(state["register"], ENTRY), state["lots"], names, np.repeat(every, counts))
        self._rebuild(packs["now"])
        self._forget()
        self.groups["low"] = NEVER  # what was told is the answer

    def check(self) -> None:
        """Every invariant, from the rows up."""
        from skyband.engines.incomplete.invariants import check_sweep

        check_sweep(self)
