"""What TMA, SMA and TSL have in common: they keep the whole window, once for all queries over the same attributes.

So they can answer a new query at once, and TMA and TSL can bear deletions. Every group has a window of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines.certain.arena import place, recast, runs
from skyband.engines.certain.bands import Bands, Records
from skyband.engines.certain.store import Store, empty_desk
from skyband.engines.contract import Arrivals, Asked, Bools, Changes, Floats, Ints, Ranked, Scorings
from skyband.errors import StateError
from skyband.index.objects import LANE, NOWHERE, REFILLS, SCORED, VISITED, Asking
from skyband.index.upkeep import DELETE, IDLE, INSERT, NO_CELL, TMA, TSL, UNKNOWN, search_window, take_window
from skyband.kernels.records import CHANGE, NEVER, OBJECT
from skyband.kernels.routing import stable_order
from skyband.tuning import Tuning

CELLS = 12**4  # Figure 14: the best for time, and it costs little space
HELD = np.dtype([("stamp", "i8"), ("serial", "i8")])  # an object as it is stored
FLOOR = np.dtype([("key", "f8"), ("stamp", "i8"), ("serial", "i8"), ("view", "i8"), ("spent", "i8")])


class Windowed:
    """Queries of one family over whole windows, one for each group."""

    name = ""
    algorithm = TMA

    def __init__(
        self, asked: tuple[Asked, ...], tuning: Tuning, *, timed: bool, quiet: bool, scorings: Scorings
    ) -> None:
        self.tuning, self.timed, self.quiet = tuning, timed, quiet
        self.length = asked[0].length
        self.unknown: list[int] = []  # rows that were to delete an id that nobody has
        self.stores: list[Store] = []
        self._ask(asked, scorings)

    needed = staticmethod(Bands.needed)

    def _ask(self, asked: tuple[Asked, ...], scorings: Scorings) -> None:
        self.asked, self.scorings = asked, scorings
        lanes, (count, d) = np.zeros(len(asked), LANE), scorings.points.shape
        boxes = (scorings.lows, scorings.highs) if len(scorings.lows) else (np.full((count, d), -np.inf),) * 2
        lows, highs = boxes[0], boxes[1] if len(scorings.lows) else np.full((count, d), np.inf)
        most = asked[0].length if self._bounded else NEVER  # a window has no more
        lanes["k"] = [min(one.k, most) for one in asked]
        lanes["above"] = [one.threshold is not None for one in asked]
        lanes["threshold"] = [np.inf if one.threshold is None else one.threshold for one in asked]
        lanes["boxed"] = (lows > -np.inf).any(axis=1) | (highs < np.inf).any(axis=1)
        lanes["view"] = np.clip(self._views(lanes["k"]), -most, most)
        weights = scorings.weights if scorings.weights.shape[1] else np.ones((count, d))
        self.asking = Asking(scorings.form, scorings.turned, lanes, scorings.points, weights, lows, highs)
        self.views = np.abs(lanes["view"])
        self.desk = empty_desk(self.asking, self._most_views())

    def _views(self, k: Ints) -> Ints:
        """How many a search looks for."""
        views: Ints = np.maximum(k, 1)
        return views

    def _most_views(self) -> Ints:
        most: Ints = self.views
        return most

    @property
    def _cells(self) -> int:
        return self.tuning.cells or CELLS

    def _store(self, g: int) -> Store:
        while len(self.stores) <= g:
            self.stores.append(Store(self.asking, self.views, self.algorithm))
        return self.stores[g]

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        assert arrivals.attributes is not None
        if arrivals.total:
            self._store(arrivals.total - 1)
        data = np.stack(arrivals.attributes, axis=1)
        kinds = self._kinds(arrivals)
        one = arrivals.total == 1
        order = np.arange(len(arrivals.rows)) if one else stable_order(arrivals.groups, arrivals.total)
        groups = arrivals.groups[order]
        starts = np.searchsorted(groups, np.arange(arrivals.total + 1))
        visited = set((groups[:1] if one else np.unique(groups)).tolist())
        for g, store in enumerate(self.stores):
            due = self.timed and store.live and int(store.slots["stamp"][store.order[store.facts[1]]]) + self.length
            if (due and due <= arrivals.clock) or (self.quiet and not arrivals.more and store.opened > NOWHERE):
                visited.add(g)
        self.unknown = []
        pieces = [self._visit(g, arrivals, data, kinds, order[starts[g] : starts[g + 1]]) for g in sorted(visited)]
        alive = np.zeros(arrivals.size, np.bool_)
        if arrivals.told:
            for g in visited:
                serials = self.stores[g].slots["serial"]
                alive[serials[serials >= arrivals.serial] - arrivals.serial] = True
        return self._told(pieces, sorted(visited), arrivals, alive)

    def _kinds(self, arrivals: Arrivals) -> Any:
        if self.length < NEVER:
            return None if arrivals.eligible is None else np.where(arrivals.eligible, INSERT, IDLE)
        kinds = np.zeros(len(arrivals.rows), np.int8)
        if arrivals.eligible is not None:
            kinds[~arrivals.eligible] = IDLE
        if arrivals.deletes is not None:
            kinds[arrivals.deletes] = DELETE
        return kinds

    def _visit(self, g: int, arrivals: Arrivals, data: Floats, kinds: Any, mine: Ints) -> Records:
        """One group's share of a batch; changes with rows."""
        store = self.stores[g]
        if self.quiet and store.opened == NOWHERE:
            store.begin(arrivals.serial, self.desk, len(self.stores) == 1)
        now, rows = arrivals.now[mine], arrivals.rows[mine]
        last = arrivals.clock if self.timed else int(now[-1]) if len(now) else NOWHERE
        keyed = self.length == NEVER
        chosen = mine if kinds is None or keyed else mine[kinds[mine] == INSERT]
        names = np.empty(0, np.int64)
        if keyed:
            assert arrivals.names is not None
            names = arrivals.names[mine]
            more = 1 + int(arrivals.names.max(initial=-1)) - len(store.holders)
            if more > 0:
                store.holders = np.concatenate([store.holders, np.full(more + len(store.holders) // 2, -1, np.int32)])
        stream = (
            np.ascontiguousarray(data[chosen]),
            arrivals.stamps[chosen],
            arrivals.rows[chosen] if keyed else arrivals.now[chosen],
            arrivals.rows[chosen],
            kinds[mine].astype(np.int8) if keyed else np.empty(0, np.int8),
            names,
        )
        out = self._run(store, stream, last, arrivals.serial, not arrivals.more)
        self.unknown += stream[3][stream[4] == UNKNOWN].tolist() if keyed else []
        return self._with_rows(store, out, now, rows, last, arrivals)

    def _run(self, store: Store, stream: tuple[Any, ...], last: int, serial: int, final: bool) -> Records:
        begin, size, out = 0, len(stream[1]), np.empty(64, CHANGE)
        store.tally[1] = 0
        most = self.length if self._bounded else NEVER
        while True:
            desk = self.desk._replace(before=store.before, touched=store.touched) if self.quiet else self.desk
            begin, store.lists, store.objects, store.ghosts, out = take_window(  # type: ignore[call-arg]
                self.asking,
                store.window,
                desk,
                store.lists,
                store.sorted_lists,
                store.objects,
                store.groups,
                store.tally,
                store.ghosts,
                store.graves,
                store.ghost_tally,
                self.algorithm,
                *stream,
                store.holders,
                begin,
                last,
                self.length,
                serial,
                store.opened,
                not self.timed,
                self.quiet,
                final,
                out,
            )
            if begin == size:
                break
            self.desk = store.make_room(self.asking, self.desk, most, self._cells)
        if self.algorithm != TSL and store.live > 2 * store.planned > 0 and len(store.cells) <= self._cells // 2:
            self.desk = store.lay(self.asking, self.desk, most, self._cells)
        return out[: store.tally[1]]

    @property
    def _bounded(self) -> bool:
        """Is it known how many objects are valid at most?"""
        return not self.timed and self.length < NEVER

    def _with_rows(self, store: Store, out: Records, now: Ints, rows: Ints, last: int, arrivals: Arrivals) -> Records:
        """Steps without an arrival of the kernel's own find the row that they belong to."""
        if self.quiet:
            out = np.concatenate([store.held, out])
            store.held, out = (out, out[:0]) if arrivals.more else (out[:0], out)
            if arrivals.more:
                return out
            if self.asking.lanes["above"].any():
                gone = (out["diff"] > 0) & self.asking.lanes["above"][out["visit"]].astype(np.bool_)
                out = out[~(gone & ~np.isin(out["serial"], store.slots["serial"]))]
                out = out[np.argsort(out["diff"], kind="stable")]  # who leaves comes first
            store.opened = NOWHERE
            out["instant"], out["row"] = last, rows[-1] if len(rows) else -1
            return out
        if self.length == NEVER:  # every step has an arrival
            out["instant"] = now[np.searchsorted(rows, out["row"])]
            return out
        alone = np.flatnonzero(out["row"] < 0)
        at = np.searchsorted(now, out["instant"][alone], "left")
        if not self.timed:
            out["row"][alone] = rows[at]
        else:
            out["row"][alone] = np.where(at > 0, np.append(rows, -1)[at - 1], -1)
            out["query"][alone] = 1  # a step of its own
        return out

    def _told(self, pieces: list[Records], groups: list[int], arrivals: Arrivals, alive: Bools) -> Changes:
        """By query, then by step across groups."""
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        codes = np.repeat(np.array(groups, np.int64), [len(piece) for piece in pieces])
        order = np.arange(len(out))
        if len(groups) > 1:
            place = np.maximum(2 * out["row"] + 1, 0)
            if self.timed:
                clocks = np.empty(0, np.int64) if arrivals.clocks is None else arrivals.clocks
                early = 2 * np.searchsorted(clocks, out["instant"], "left")
                place = np.full(len(out), 0) if self.quiet else np.where(out["query"] == 1, early, place)
                order = np.argsort(out["instant"], kind="stable")
            order = order[np.argsort(place[order], kind="stable")]
        order = order[stable_order(out["visit"][order].astype(np.int64), len(self.asked))]
        return _changes(out[order], codes[order], alive)

    # --- answers

    def answer(self, query: int, asked: Asked, now: Ints, groups: Ints | None) -> Ranked:
        chosen = range(len(self.stores)) if groups is None else [g for g in groups.tolist() if g < len(self.stores)]
        found = []
        for g in chosen:
            store = self.stores[g]
            if asked.threshold is None and asked.length == self.length:
                best = runs(store.objects, store.groups, np.array([query]))[: asked.k]
            else:
                best = self._scan(store, query, asked, int(now[g]))
            found.append(best)
        sizes = np.array([len(best) for best in found], np.int64)
        ranked = np.concatenate([np.empty(0, OBJECT), *found])
        ends = np.cumsum(sizes)
        return Ranked(
            group=np.repeat(np.array(list(chosen), np.int64), sizes),
            rank=np.arange(1, len(ranked) + 1) - np.repeat(ends - sizes, sizes),
            stamp=ranked["stamp"],
            serial=ranked["serial"],
            key=ranked["key"],
        )

    def _scan(self, store: Store, query: int, asked: Asked, now: int) -> Records:
        """An answer from all of the window."""
        taken = store.by_age()
        if asked.length < NEVER:
            taken = taken[store.slots["stamp"][taken] > now - asked.length]
        data = store.data[taken]
        inside = ((data >= self.asking.lows[query]) & (data <= self.asking.highs[query])).all(axis=1)
        taken, data = taken[inside], data[inside]
        valid = np.zeros(len(taken), OBJECT)
        valid["key"] = self.scorings.keys(query, np.ascontiguousarray(data.T))
        valid["stamp"], valid["serial"] = store.slots["stamp"][taken], store.slots["serial"][taken]
        if asked.threshold is not None:
            valid = valid[valid["key"] > asked.threshold]
        order = np.lexsort((-valid["serial"], -valid["stamp"], -valid["key"]))
        best: Records = valid[order] if asked.threshold is not None else valid[order[: asked.k]]
        return best

    def relane(self, asked: tuple[Asked, ...], scorings: Scorings, heirs: Ints) -> None:
        """Serve other queries: each goes on from one of the present ones, or (-1) from nothing until it searches."""
        old = [self._lanes_of(store) for store in self.stores]
        self._ask(asked, scorings)
        for store, (state, entries, ghosts) in zip(self.stores, old, strict=True):
            kept = heirs >= 0
            store.set_lanes(len(asked), self.views)
            store.state[["key", "stamp", "serial", "view", "spent"]][kept] = 0
            for name in FLOOR.names or ():
                store.state[name][kept] = state[name][heirs[kept]]
            none = np.empty(0, OBJECT)
            self._set_runs(
                store, [entries[h] if h >= 0 else none for h in heirs], [ghosts[h] if h >= 0 else none for h in heirs]
            )
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
        store.ghosts = np.concatenate([np.empty(0, OBJECT), *ghosts])

    def _lay(self, store: Store) -> None:
        if self.algorithm != TSL:
            most = self.length if self._bounded else NEVER
            self.desk = store.lay(self.asking, self.desk, most, self._cells)

    def delete(self, codes: Ints) -> tuple[Changes, Bools]:
        """Delete objects by the codes of their ids, one step each; which codes were known."""
        known, pieces, groups = np.zeros(len(codes), np.bool_), [], []
        for g, store in enumerate(self.stores):
            here = codes < len(store.holders)
            here[here] = store.holders[codes[here]] >= 0
            mine = np.flatnonzero(here)
            if not len(mine):
                continue
            kinds, none = np.full(len(mine), DELETE, np.int8), np.empty((len(mine), self.scorings.points.shape[1]))
            if self.quiet:
                store.begin(NEVER, self.desk, True)
            out = self._run(store, (none, mine, mine, mine, kinds, codes[mine]), NOWHERE, 0, True)
            store.opened = NOWHERE
            known[mine[kinds != UNKNOWN]] = True  # the second time an id is given, nobody has it
            pieces.append(out)
            groups.append(g)
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        which = np.repeat(np.array(groups, np.int64), [len(piece) for piece in pieces])
        order = np.lexsort((np.zeros(len(out)) if self.quiet else out["instant"], out["visit"]))
        return _changes(out[order], which[order], np.empty(0, np.bool_)), known

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

    def take_over(self, other: Windowed, now: Ints, columns: list[int]) -> None:
        """The objects of another engine's windows, as far as they are valid in this one's."""
        self.stores = []
        for g, store in enumerate(other.stores):
            taken = store.by_age()
            if self.length < NEVER:
                taken = taken[store.slots["stamp"][taken] > now[g] - self.length]
            mine = self._store(g)
            self.fill(mine, store.data[taken][:, columns], store.slots["stamp"][taken], store.slots["serial"][taken])
            self._lay(mine)

    def inherit(self, other: Windowed, query: int) -> None:
        """One query of another engine, and its windows by the query's own keys."""
        self.stores = []
        for g, store in enumerate(other.stores):
            taken, mine = store.by_age(), self._store(g)
            data = store.data[taken]
            inside = ((data >= other.asking.lows[query]) & (data <= other.asking.highs[query])).all(axis=1)
            keys = np.full(len(taken), np.nan)
            keys[inside] = other.scorings.keys(query, np.ascontiguousarray(data[inside].T))
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
        ghosts = np.zeros(len(places), OBJECT)
        ghosts["stamp"], ghosts["serial"] = store.slots["stamp"][places], store.slots["serial"][places]
        ghosts["was"] = places
        _, entries, others = self._lanes_of(store)
        others[query] = ghosts
        self._set_runs(store, entries, others)

    def search(self, query: int, told: dict[int, Ints], now: Ints) -> Changes:
        """A new query's answer at once; `told`: by group, the serials of objects that were told of under its name."""
        pieces = []
        for g, store in enumerate(self.stores):
            known = told.get(g, np.empty(0, np.int64))
            if self.asked[query].threshold is not None:
                pieces.append(self._tell_all(store, query, known, int(now[g])))
                continue
            if len(known):
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
            pieces.append(out[: store.tally[1]])
        codes = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
        return _changes(np.concatenate([np.empty(0, CHANGE), *pieces]), codes, np.empty(0, np.bool_))

    # --- what is kept

    @property
    def work(self) -> dict[str, int]:
        """Counted: keys computed, cells visited, searches."""
        total = sum((store.facts for store in self.stores), np.zeros(16, np.int64))
        return {"scored": int(total[SCORED]), "visited": int(total[VISITED]), "searches": int(total[REFILLS])}

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = self.stores if groups is None else [self._store(g) for g in groups.tolist()]
        kept = [store.slots["serial"][store.by_age()] for store in chosen]
        return np.concatenate([np.empty(0, np.int64), *kept]), np.array([len(one) for one in kept], np.int64)

    @property
    def kept(self) -> Ints:
        return np.array([store.live for store in self.stores], np.int64)

    @property
    def buffer(self) -> int:
        return int(self.kept.sum())

    @property
    def held(self) -> Records:
        return np.concatenate([np.empty(0, CHANGE), *(store.held for store in self.stores)])

    def size_of(self, query: int) -> int:
        return sum(int(store.groups["size"][query]) for store in self.stores)

    @property
    def due(self) -> Ints:
        oldest = [int(store.slots["stamp"][store.by_age()[0]]) if store.live else NEVER for store in self.stores]
        return np.array([stamp + self.length if stamp < NEVER and self.timed else NEVER for stamp in oldest], np.int64)

    @property
    def nbytes(self) -> int:
        return sum(store.nbytes for store in self.stores)

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not len(self.held), "no batch is open"
        stores = [self._store(g) for g in groups.tolist()]
        lanes = len(self.asked)
        parts: dict[str, list[Records]] = {name: [] for name in ("held", "data", "floors", "sizes", "runs", "ghosts")}
        for store in stores:
            taken = store.by_age()
            held, floors = np.zeros(len(taken), HELD), np.zeros(lanes, FLOOR)
            held["stamp"], held["serial"] = store.slots["stamp"][taken], store.slots["serial"][taken]
            for name in FLOOR.names or ():
                floors[name] = store.state[name]
            _, entries, ghosts = self._lanes_of(store)
            sizes = [len(taken), *map(len, entries), *map(len, ghosts)]
            runs_of, told = (np.concatenate([np.empty(0, OBJECT), *of]) for of in (entries, ghosts))
            runs_of["was"] = told["was"] = 0
            for name, array in zip(
                parts, (held, store.data[taken].reshape(-1), floors, np.array(sizes), runs_of, told), strict=True
            ):
                parts[name].append(array)
        empty: tuple[Any, ...] = (HELD, np.float64, FLOOR, np.int64, OBJECT, OBJECT)
        return {
            name: (np.concatenate([np.empty(0, dtype), *arrays]), np.array([len(one) for one in arrays], np.int64))
            for (name, arrays), dtype in zip(parts.items(), empty, strict=True)
        }

    def restore(self, state: Mapping[str, Records]) -> None:
        lanes, d = self.scorings.points.shape
        width = 1 + 2 * lanes
        held, floors = recast(state["held"], HELD), recast(state["floors"], FLOOR)
        entries, told = recast(state["runs"], OBJECT), recast(state["ghosts"], OBJECT)
        if len(state["sizes"]) % width or len(floors) * width != len(state["sizes"]) * lanes:
            raise StateError("the snapshot's windows do not fit together. Take a new snapshot from a running Monitor.")
        sizes = state["sizes"].reshape(-1, width)
        totals = (sizes[:, 0].sum(), sizes[:, 1 : 1 + lanes].sum(), sizes[:, 1 + lanes :].sum())
        if (sizes < 0).any() or totals != (len(held), len(entries), len(told)) or len(state["data"]) != d * len(held):
            raise StateError("the snapshot's windows do not fit together. Take a new snapshot from a running Monitor.")
        data, taken = state["data"].reshape(-1, d), [0, 0, 0]
        self.stores = []
        for g, row in enumerate(sizes.tolist()):
            store = self._store(g)
            here = slice(taken[0], taken[0] + row[0])
            self.fill(store, data[here], held["stamp"][here], held["serial"][here])
            taken[0] += row[0]
            for name in FLOOR.names or ():
                store.state[name] = floors[name][g * lanes : (g + 1) * lanes]
            both: list[list[Records]] = []
            for which, (records, counts) in enumerate(((entries, row[1 : 1 + lanes]), (told, row[1 + lanes :]))):
                one = records[taken[which + 1] : taken[which + 1] + sum(counts)].copy()
                order = np.argsort(store.slots["serial"][: row[0]])
                at = np.searchsorted(store.slots["serial"][: row[0]], one["serial"], sorter=order)
                if (at >= row[0]).any():
                    raise StateError("the snapshot's windows do not fit together. Use an intact copy.")
                one["was"] = order[at]
                taken[which + 1] += sum(counts)
                both.append(np.split(one, np.cumsum(counts)[:-1]))
            self._set_runs(store, both[0], both[1])
            self._lay(store)

    def fill(self, store: Store, data: Floats, stamps: Ints, serials: Ints) -> None:
        """Put these objects into an empty store, in order of age."""
        size = len(stamps)
        store.grow(size)
        store.slots["stamp"], store.slots["serial"] = stamps, serials
        store.data[:], store.order[:] = data, np.arange(size)
        idle = np.isnan(data[:, 0])
        store.slots["cell"] = np.where(idle, NO_CELL, 0)
        store.facts[0], store.facts[2] = size, -1
        if self.algorithm == TSL and size:
            store.recent = np.flatnonzero(~idle).astype(np.int32)
            store.facts[11] = len(store.recent)
            self.desk = store.make_room(self.asking, self.desk, NEVER, 0)

    def check(self) -> None:
        for store in self.stores:
            taken = store.by_age()
            assert len(taken) == store.live
            slots, data = store.slots[taken], store.data[taken]
            if self.length < NEVER:
                ring = store.order[(store.facts[1] + np.arange(store.live)) % max(len(store.order), 1)]
                assert (store.slots["serial"][ring] == slots["serial"]).all(), "the ring is in order of age"
            for s, one in enumerate(self.asked):
                run = runs(store.objects, store.groups, np.array([s]))
                keys = self.scorings.keys(s, np.ascontiguousarray(data.T))
                inside = ((data >= self.asking.lows[s]) & (data <= self.asking.highs[s])).all(axis=1)
                self._check_lists(store, s, slots, keys, inside)
                if one.threshold is not None:
                    continue
                rank = np.lexsort((-run["serial"], -run["stamp"], -run["key"]))
                assert (rank == np.arange(len(run))).all(), "best first, the newer above"
                assert np.isin(run["serial"], slots["serial"]).all(), "only valid objects"
                order = np.lexsort((-slots["serial"], -slots["stamp"], -keys))
                order = order[inside[order]]
                best = slots["serial"][order[: one.k]]
                assert (run["serial"][: len(best)] == best).all() and len(run) >= len(best), "the run has the answer"

    def _check_lists(self, store: Store, s: int, slots: Records, keys: Floats, inside: Bools) -> None:
        if self.algorithm == TSL or store.state["wide"][s]:
            return
        lane = self.asking.lanes[s]
        floor = lane["threshold"] if lane["above"] else store.state["key"][s]
        for i in np.flatnonzero(inside & (keys >= floor) & (slots["cell"] < len(store.cells) - 1)):
            cell = store.cells[slots["cell"][i]]
            assert s in store.lists[cell["start"] : cell["start"] + cell["size"]], "who may matter is listed"


def _changes(out: Records, groups: Ints, alive: Bools) -> Changes:
    return Changes(
        query=out["visit"].astype(np.int64),
        group=groups,
        row=out["row"],
        instant=out["instant"],
        stamp=out["stamp"],
        serial=out["serial"],
        key=out["key"],
        diff=out["diff"],
        first=out["first"].astype(np.bool_),
        alive=alive,
    )
