"""How queries come and go over a window that is kept, and objects by their ids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skyband.engines.arena import place, runs
from skyband.engines.contract import Bools, Changes, Floats, Ints, Scorings, Spec
from skyband.engines.grouped import changes_of
from skyband.engines.topk.base import Records
from skyband.engines.topk.kernels.maintenance import DELETE, NO_CELL, UNKNOWN, search_window
from skyband.engines.topk.kernels.runs import TSL
from skyband.engines.topk.kernels.window_grid import FREE, GHOST, LIVE, NOWHERE, RECENT, Asking, Desk
from skyband.engines.topk.window import Store, enough_lanes
from skyband.kernels.records import CHANGE, NEVER, OBJECT
from skyband.query.tuning import Tuning

CELLS = 12**4  # Figure 14: the best for time, and it costs little space
FLOOR = np.dtype([("key", "f8"), ("stamp", "i8"), ("serial", "i8"), ("view", "i8"), ("spent", "i8")])


class Lending:
    """The part of an engine over whole windows that changes who looks at them, and what is in them."""

    algorithm: int
    asked: tuple[Spec, ...]
    asking: Asking
    desk: Desk
    keys: list[Callable[[Floats], Floats]]
    length: int
    net: bool
    stores: list[Store]
    tuning: Tuning

    _asking: Callable[[tuple[Spec, ...], Scorings], Asking]
    _run: Callable[..., Records]
    _scan: Callable[..., Records]
    _store: Callable[[int], Store]
    _most_views: Callable[[], Ints]
    _most: Callable[[], int]

    @property
    def views(self) -> Ints:
        """How many a search looks for, at first."""
        views: Ints = np.abs(self.asking.lanes["view"])
        return views

    @property
    def _cells(self) -> int:
        return self.tuning.cells or CELLS

    def add_lane(self, asked: Spec, scoring: Scorings) -> None:
        """Serve one query more, which has seen nothing until it searches."""
        one = self._asking((asked,), scoring)
        both = [np.concatenate([mine, its]) for mine, its in zip(self.asking[2:], one[2:], strict=True)]
        self.asked, self.asking = (*self.asked, asked), Asking(one.form, one.turned, *both)
        self.keys.append(lambda data: scoring.keys(0, data))
        self.desk = enough_lanes(self.desk, self.asking, self._most_views())
        for store in self.stores:
            store.add_lane(int(self.views[-1]))

    def drop_lane(self, place: int) -> None:
        """Serve one query less."""
        kept = np.delete(np.arange(len(self.asked)), place)
        self.asking = Asking(self.asking.form, self.asking.turned, *(array[kept] for array in self.asking[2:]))
        self.asked = tuple(self.asked[s] for s in kept)
        self.keys = [self.keys[s] for s in kept]
        for store in self.stores:
            _, entries, ghosts = self._lanes_of(store)
            store.state, store.wide = store.state[kept], store.wide[kept]
            store.groups, store.graves = store.groups[kept], store.graves[kept]
            self._set_runs(store, [entries[s] for s in kept], [ghosts[s] for s in kept])
            self._lay(store)

    def _lanes_of(self, store: Store) -> tuple[Records, list[Records], list[Records]]:
        lanes = [np.array([s]) for s in range(len(store.groups))]
        entries = [runs(store.objects, store.groups, s) for s in lanes]
        ghosts = [runs(store.ghosts, store.graves, s) for s in lanes]
        alive = [g[store.slots["serial"][g["was"]] == g["serial"]] if len(g) else g for g in ghosts]
        return store.state, entries, alive

    def _set_runs(self, store: Store, entries: list[Records], ghosts: list[Records]) -> None:
        for heads, runs_of, tally in ((store.groups, entries, store.tally), (store.graves, ghosts, store.ghost_tally)):
            heads["size"] = heads["room"] = [len(one) for one in runs_of]
            place(heads)
            tally[0] = heads["size"].sum()
        store.objects = np.concatenate([np.empty(0, OBJECT), *entries])
        store.ghosts = np.concatenate([np.empty(0, GHOST), *ghosts])

    def _lay(self, store: Store) -> None:
        if self.algorithm != TSL:
            self.desk = store.lay(self.asking, self.desk, self._most(), self._cells)

    def delete(self, codes: Ints) -> tuple[Changes, Bools]:
        """Delete objects by the codes of their ids, one step each; which codes were known."""
        known, pieces, groups = np.zeros(len(codes), np.bool_), [], []
        for g, store in enumerate(self.stores):
            here = codes < len(store.holders)
            here[here] = store.holders[codes[here]] >= 0
            mine = np.flatnonzero(here)
            if not len(mine):
                continue
            kinds, none = np.full(len(mine), DELETE, np.int8), np.empty((len(mine), self.asking.points.shape[1]))
            if self.net:
                store.begin(NEVER, self.desk, True)
            out = self._run(store, (none, mine, mine, mine, kinds, codes[mine]), NOWHERE, 0, True)
            store.opened = NOWHERE
            known[mine[kinds != UNKNOWN]] = True  # the second time an id is given, nobody has it
            pieces.append(out)
            groups.append(g)
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        which = np.repeat(np.array(groups, np.int64), [len(piece) for piece in pieces])
        order = np.lexsort((np.zeros(len(out)) if self.net else out["instant"], out["visit"]))
        return changes_of(out[order], out["visit"][order].astype(np.int64), which[order], np.empty(0, np.bool_)), known

    def rename(self, serials: Ints, codes: Ints, sizes: Ints, total: int) -> None:
        """Other codes for the ids of the objects, group by group."""
        ends = np.cumsum(sizes)
        for g, store in enumerate(self.stores):
            here = slice(ends[g] - sizes[g], ends[g])
            store.holders = np.full(total, -1, np.int32)
            store.holders[codes[here]] = store.by_age()
            assert (store.slots["serial"][store.by_age()] == serials[here]).all()

    def told_of(self, query: int) -> dict[int, Ints]:
        """By group, the valid objects that this query has told of."""
        found = {}
        for g, store in enumerate(self.stores):
            _, entries, ghosts = self._lanes_of(store)
            shown = entries[query]["serial"][entries[query]["shown"] > 0]
            if self.asked[query].threshold is not None:
                shown = self._scan(store, query, self.asked[query], 0)["serial"]
            found[g] = np.concatenate([shown, ghosts[query]["serial"]])
        return found

    def take_over(self, other: Lending, now: Ints, columns: list[int]) -> None:
        """The objects of another engine's windows, as far as they are valid in this one's."""
        self.stores = []
        for g, store in enumerate(other.stores):
            taken = store.by_age()
            if self.length < NEVER:
                taken = taken[store.slots["stamp"][taken] > now[g] - self.length]
            mine = self._store(g)
            self.fill(mine, store.data[taken][:, columns], store.slots["stamp"][taken], store.slots["serial"][taken])
            self._lay(mine)

    def inherit(self, other: Lending, query: int) -> None:
        """One query of another engine, and its windows by the query's own keys."""
        self.stores = []
        for g, store in enumerate(other.stores):
            taken, mine = store.by_age(), self._store(g)
            data = store.data[taken]
            inside = ((data >= other.asking.lows[query]) & (data <= other.asking.highs[query])).all(axis=1)
            keys = np.full(len(taken), np.nan)
            keys[inside] = other.keys[query](np.ascontiguousarray(data[inside].T))
            if self.length < NEVER:
                taken, keys = taken[inside], keys[inside]
            self.fill(mine, keys[:, None], store.slots["stamp"][taken], store.slots["serial"][taken])
            state, entries, ghosts = other._lanes_of(store)
            for name in FLOOR.names or ():
                mine.state[name][0] = state[name][query]
            places = np.full(len(store.slots), -1)
            places[taken] = np.arange(len(taken))
            run, told = entries[query].copy(), ghosts[query].copy()
            run["was"], told["was"] = places[run["was"]], places[told["was"]]
            self._set_runs(mine, [run], [told])
            self._lay(mine)

    def _tell_all(self, store: Store, query: int, told: Ints, now: int) -> Records:
        """All above a threshold enter; those that were told of and are not among them are remembered."""
        found = self._scan(store, query, self.asked[query], now)
        out = np.zeros(len(found), CHANGE)
        for name in ("key", "stamp", "serial"):
            out[name] = found[name]
        out["visit"], out["diff"], out["row"], out["first"] = query, 1, -1, ~np.isin(found["serial"], told)
        self._haunt(store, query, np.setdiff1d(told, found["serial"]))
        return out

    def _haunt(self, store: Store, query: int, told: Ints) -> None:
        """These objects were told of under the query's name."""
        places = np.flatnonzero(np.isin(store.slots["serial"], told))
        ghosts = np.zeros(len(places), GHOST)
        ghosts["serial"], ghosts["was"] = store.slots["serial"][places], places
        _, entries, others = self._lanes_of(store)
        others[query] = ghosts
        self._set_runs(store, entries, others)

    def search(self, query: int, told: dict[int, Ints], now: Ints) -> Changes:
        """A new query's answer at once; `told`: by group, the serials of objects that were told of under its name."""
        pieces = []
        for g, store in enumerate(self.stores):
            known, above = told.get(g, np.empty(0, np.int64)), self.asked[query].threshold is not None
            if above:
                pieces.append(self._tell_all(store, query, known, int(now[g])))
            elif len(known):
                self._haunt(store, query, known)
            store.tally[1] = 0
            step = np.zeros(1, CHANGE)
            step["row"] = -1
            store.lists, store.objects, out = search_window(
                self.asking,
                store.window,
                self.desk,
                store.lists,
                store.sorted_lists,
                store.objects,
                store.groups,
                store.tally,
                store.ghosts,
                store.graves,
                self.algorithm,
                query,
                np.empty(64, CHANGE),
                step,
            )
            if not above:
                pieces.append(out[: store.tally[1]])
        codes = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        return changes_of(out, out["visit"].astype(np.int64), codes, np.empty(0, np.bool_))

    def fill(self, store: Store, data: Floats, stamps: Ints, serials: Ints) -> None:
        """Put these objects into an empty store, in order of age."""
        size = len(stamps)
        store.grow(size)
        store.slots["stamp"], store.slots["serial"] = stamps, serials
        store.data[:], store.order[:] = data, np.arange(size)
        idle = np.isnan(data[:, 0])
        store.slots["cell"] = np.where(idle, NO_CELL, 0)
        store.facts[LIVE], store.facts[FREE] = size, -1
        if self.algorithm == TSL and size:
            store.recent = np.flatnonzero(~idle).astype(np.int32)
            store.facts[RECENT] = len(store.recent)
            self.desk = store.make_room(self.asking, self.desk, NEVER, 0)
