"""What TMA, SMA and TSL have in common: they keep the whole window, once for all queries over the same attributes.

So they can answer a new query at once, and TMA and TSL can bear deletions. Every group has a window of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from skyband.engines.arena import recast, runs
from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Floats, Ints, Scorings, Spec
from skyband.engines.grouped import changes_of
from skyband.engines.topk.base import Records, SkybandEngine
from skyband.engines.topk.kernels.maintenance import DELETE, IDLE, INSERT, UNKNOWN, take_window
from skyband.engines.topk.kernels.runs import TMA, TSL
from skyband.engines.topk.kernels.window_grid import GHOST, HEAD, LANE, NOWHERE, REFILLS, SCORED, VISITED, Asking
from skyband.engines.topk.window import Store, empty_desk
from skyband.engines.topk.window_queries import FLOOR, Lending
from skyband.errors import StateError
from skyband.kernels.records import CHANGE, NEVER, OBJECT
from skyband.kernels.routing import stable_order
from skyband.query.tuning import Tuning

HELD = np.dtype([("stamp", "i8"), ("serial", "i8")])  # an object as it is stored


class Windowed(Lending):
    """Queries of one family over whole windows, one for each group."""

    name = ""
    algorithm = TMA

    def __init__(self, asked: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool, scorings: Scorings) -> None:
        self.tuning, self.timed, self.net = tuning, timed, net
        self.length = asked[0].length
        self.unknown: list[int] = []  # rows that were to delete an id that nobody has
        self.stores: list[Store] = []
        self._ask(asked, scorings)

    needed = staticmethod(SkybandEngine.needed)

    def _ask(self, asked: tuple[Spec, ...], scorings: Scorings) -> None:
        self.asked, self.asking = asked, self._asking(asked, scorings)
        self.keys = [partial(scorings.keys, s) for s in range(len(asked))]
        self.desk = empty_desk(self.asking, self._most_views())

    def _asking(self, asked: tuple[Spec, ...], scorings: Scorings) -> Asking:
        lanes, (count, d) = np.zeros(len(asked), LANE), scorings.points.shape
        lows, highs = np.full((count, d), -np.inf), np.full((count, d), np.inf)
        if len(scorings.lows):
            lows, highs = scorings.lows, scorings.highs
        most = self._most()
        lanes["k"] = [min(one.k, most) for one in asked]
        lanes["above"] = [one.threshold is not None for one in asked]
        lanes["threshold"] = [np.inf if one.threshold is None else one.threshold for one in asked]
        lanes["boxed"] = (lows > -np.inf).any(axis=1) | (highs < np.inf).any(axis=1)
        lanes["view"] = np.clip(self._views(lanes["k"]), -most, most)
        weights = scorings.weights if scorings.weights.shape[1] else np.ones((count, d))
        return Asking(scorings.form, scorings.turned, lanes, scorings.points, weights, lows, highs)

    def _views(self, k: Ints) -> Ints:
        """How many a search looks for."""
        views: Ints = np.maximum(k, 1)
        return views

    def _most_views(self) -> Ints:
        most: Ints = self.views
        return most

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
            due = self.timed and store.live and int(store.slots["stamp"][store.order[store.facts[HEAD]]]) + self.length
            if (due and due <= arrivals.clock) or (self.net and not arrivals.more and store.opened > NOWHERE):
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
        if self.net and store.opened == NOWHERE:
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
        most = self._most()
        while True:
            desk = self.desk._replace(before=store.before, touched=store.touched) if self.net else self.desk
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
                self.net,
                final,
                out,
            )
            if begin == size:
                break
            self.desk = store.make_room(self.asking, self.desk, most, self._cells)
        if self.algorithm != TSL and store.live > 2 * store.planned > 0 and len(store.cells) <= self._cells // 2:
            self.desk = store.lay(self.asking, self.desk, most, self._cells)
        return out[: store.tally[1]]

    def _most(self) -> int:
        """How many objects are valid at most, as far as that is known."""
        return NEVER if self.timed else self.length

    def _with_rows(self, store: Store, out: Records, now: Ints, rows: Ints, last: int, arrivals: Arrivals) -> Records:
        """Steps without an arrival of the kernel's own find the row that they belong to."""
        if self.net:
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
                place = np.full(len(out), 0) if self.net else np.where(out["query"] == 1, early, place)
                order = np.argsort(out["instant"], kind="stable")
            order = order[np.argsort(place[order], kind="stable")]
        order = order[stable_order(out["visit"][order].astype(np.int64), len(self.asked))]
        return changes_of(out[order], out["visit"][order].astype(np.int64), codes[order], alive)

    # --- answers

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
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
        return Answer(
            group=np.repeat(np.array(list(chosen), np.int64), sizes),
            rank=np.arange(1, len(ranked) + 1) - np.repeat(ends - sizes, sizes),
            stamp=ranked["stamp"],
            serial=ranked["serial"],
            key=ranked["key"],
        )

    def _scan(self, store: Store, query: int, asked: Spec, now: int) -> Records:
        """An answer from all of the window."""
        taken = store.by_age()
        if asked.length < NEVER:
            taken = taken[store.slots["stamp"][taken] > now - asked.length]
        data = store.data[taken]
        inside = ((data >= self.asking.lows[query]) & (data <= self.asking.highs[query])).all(axis=1)
        taken, data = taken[inside], data[inside]
        valid = np.zeros(len(taken), OBJECT)
        valid["key"] = self.keys[query](np.ascontiguousarray(data.T))
        valid["stamp"], valid["serial"] = store.slots["stamp"][taken], store.slots["serial"][taken]
        if asked.threshold is not None:
            valid = valid[valid["key"] > asked.threshold]
        order = np.lexsort((-valid["serial"], -valid["stamp"], -valid["key"]))
        best: Records = valid[order] if asked.threshold is not None else valid[order[: asked.k]]
        return best

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
            runs_of, told = (
                np.concatenate([np.empty(0, OBJECT), *entries]),
                np.concatenate([np.empty(0, GHOST), *ghosts]),
            )
            runs_of["was"] = told["was"] = 0
            for name, array in zip(
                parts, (held, store.data[taken].reshape(-1), floors, np.array(sizes), runs_of, told), strict=True
            ):
                parts[name].append(array)
        empty: tuple[Any, ...] = (HELD, np.float64, FLOOR, np.int64, OBJECT, GHOST)
        return {
            name: (np.concatenate([np.empty(0, dtype), *arrays]), np.array([len(one) for one in arrays], np.int64))
            for (name, arrays), dtype in zip(parts.items(), empty, strict=True)
        }

    def restore(self, state: Mapping[str, Records]) -> None:
        lanes, d = self.asking.points.shape
        width = 1 + 2 * lanes
        held, floors = recast(state["held"], HELD), recast(state["floors"], FLOOR)
        entries, told = recast(state["runs"], OBJECT), recast(state["ghosts"], GHOST)
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

    def check(self) -> None:
        for store in self.stores:
            taken = store.by_age()
            assert len(taken) == store.live
            slots, data = store.slots[taken], store.data[taken]
            if self.length < NEVER:
                ring = store.order[(store.facts[HEAD] + np.arange(store.live)) % max(len(store.order), 1)]
                assert (store.slots["serial"][ring] == slots["serial"]).all(), "the ring is in order of age"
            for s, one in enumerate(self.asked):
                run = runs(store.objects, store.groups, np.array([s]))
                keys = self.keys[s](np.ascontiguousarray(data.T))
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
