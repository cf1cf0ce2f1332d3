"""The engine of TMA, SMA and TSL: the whole window is kept, once for all queries over the same attributes.

So a new query can be answered at once, and TMA and TSL support deletions. Every group has a window of its own: O(n)
objects, a grid (or d sorted lists) over them and, per query, the run of its algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines import grouped
from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Floats, Ints, Scorings, Spec
from skyband.engines.group_states import GroupStates
from skyband.engines.invariants import check_ages, require
from skyband.engines.topk import window_snapshot
from skyband.engines.topk.base import Records, SkybandEngine
from skyband.engines.topk.invariants import check_store
from skyband.engines.topk.kernels.maintenance import DELETE, IDLE, INSERT, UNKNOWN
from skyband.engines.topk.kernels.window_state import COUNTERS, HEAD, NOWHERE, SCORED, SEARCHES, TMA, VISITED, Stream
from skyband.engines.topk.window import Store
from skyband.engines.topk.window_memory import Memory
from skyband.engines.topk.window_queries import WindowQueries
from skyband.engines.topk.window_snapshot import STAMPED
from skyband.kernels.records import CHANGE, NEVER, OBJECT
from skyband.kernels.routing import stable_order
from skyband.query.tuning import Tuning


class Windowed:
    """Queries of one family over whole windows, one for each group."""

    name = ""
    algorithm = TMA

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool, scorings: Scorings) -> None:
        self.timed, self.net, self.length = timed, net, specs[0].length
        self.queries = WindowQueries(specs, scorings, tuning, self.algorithm, self.view_sizes, timed=timed, net=net)
        self.unknown: list[int] = []  # rows that were to delete an unknown id
        self.places = np.empty(0, np.int32)  # by code of an id: its object's place in the window of its group
        self.stores = GroupStates(self._empty_store)
        self.memory = Memory()
        self._worked = np.zeros(COUNTERS, np.int64)  # in windows that are gone

    needed = staticmethod(SkybandEngine.needed)

    @staticmethod
    def view_sizes(k: Ints, tuning: Tuning) -> Ints:
        """How many objects a search returns."""
        views: Ints = np.maximum(k, 1)
        return views

    def _empty_store(self) -> Store:
        return Store(self.queries)

    def _note(self, g: int, store: Store) -> None:
        """Note how many objects a group has and when the next one expires."""
        due = self._oldest(store) + self.length if store.live and self.timed else NEVER
        leaves = self.timed or self.length == NEVER
        if self.stores.note(g, store.live, due, is_open=store.opened > NOWHERE, leaves=leaves):
            self._worked += store.counters

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        assert arrivals.attributes is not None
        self.stores.grow(arrivals.total)
        data = np.stack(arrivals.attributes, axis=1)
        kinds = self._kinds(arrivals)
        single = arrivals.total == 1
        order = np.arange(len(arrivals.rows)) if single else stable_order(arrivals.groups, arrivals.total)
        groups = arrivals.groups[order]
        visits = self.stores.visits(groups, arrivals.clock, timed=self.timed, closing=not arrivals.more)
        self.unknown = []
        pieces, alive = [], np.zeros(arrivals.size, np.bool_)
        for g, begin, end in visits:
            store = self.stores[g]
            pieces.append(self._visit(store, arrivals, data, kinds, order[begin:end]))
            if arrivals.wants_alive:
                serials = store.slots["serial"]
                alive[serials[serials >= arrivals.serial] - arrivals.serial] = True
            self._note(g, store)
        changes = self._in_order(pieces, [g for g, _, _ in visits], arrivals, alive)
        if self.memory.length > self.length:
            self._remember(changes)
            self.memory.prune(arrivals.clock if self.timed else None)
        return changes

    def _kinds(self, arrivals: Arrivals) -> Any:
        if self.length < NEVER:
            return None if arrivals.eligible is None else np.where(arrivals.eligible, INSERT, IDLE)
        kinds = np.zeros(len(arrivals.rows), np.int8)
        if arrivals.eligible is not None:
            kinds[~arrivals.eligible] = IDLE
        if arrivals.deletes is not None:
            kinds[arrivals.deletes] = DELETE
        return kinds

    def _visit(self, store: Store, arrivals: Arrivals, data: Floats, kinds: Any, mine: Ints) -> Records:
        """Take one group's slice of a batch; its changes, with rows."""
        if self.net and store.opened == NOWHERE:
            store.open_batch(arrivals.serial, len(self.stores) > 1)
        now, rows = arrivals.now[mine], arrivals.rows[mine]
        last = arrivals.clock if self.timed else int(now[-1]) if len(now) else NOWHERE
        keyed = self.length == NEVER
        chosen = mine if kinds is None or keyed else mine[kinds[mine] == INSERT]
        ids = np.empty(0, np.int64)
        if keyed:
            assert arrivals.names is not None
            ids = arrivals.names[mine]
            more = 1 + int(ids.max(initial=-1)) - len(self.places)
            if more > 0:
                self.places = np.concatenate([self.places, np.full(more + len(self.places) // 2, -1, np.int32)])
        stream = Stream(
            data=data if arrivals.total == 1 and len(chosen) == len(data) else data[chosen],
            stamps=arrivals.stamps[chosen],
            now=arrivals.rows[chosen] if keyed else arrivals.now[chosen],
            rows=arrivals.rows[chosen],
            kinds=kinds[mine].astype(np.int8) if keyed else np.empty(0, np.int8),
            ids=ids,
            places=self.places,
        )
        changes = store.take(stream, last, arrivals.serial, not arrivals.more)
        self.unknown += stream.rows[stream.kinds == UNKNOWN].tolist() if keyed else []
        return self._with_rows(store, changes, now, rows, last, arrivals)

    def _with_rows(self, store: Store, out: Records, now: Ints, rows: Ints, last: int, arrivals: Arrivals) -> Records:
        """Find the rows of steps without an arrival of the kernel's own; net changes wait for the batch's end."""
        if self.net:
            out = np.concatenate([store.pending, out]) if len(store.pending) else out
            store.pending, out = (out, out[:0]) if arrivals.more else (out[:0], out)
            if arrivals.more:
                return out
            above = self.queries.arrays.specs["above"]
            if above.any():
                gone = (out["diff"] > 0) & (above[out["visit"]] > 0)
                out = out[~(gone & ~np.isin(out["serial"], store.slots["serial"]))]
                out = out[np.argsort(out["diff"], kind="stable")]  # leaving first
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

    def _in_order(self, pieces: list[Records], groups: list[int], arrivals: Arrivals, alive: Bools) -> Changes:
        """Changes by query, then by step across groups."""
        if len(pieces) == 1:
            out = pieces[0][stable_order(pieces[0]["visit"].astype(np.int64), len(self.queries))]
            return _changes(out, np.full(len(out), groups[0], np.int64), alive)
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        codes = np.repeat(np.array(groups, np.int64), [len(piece) for piece in pieces])
        order, place = np.arange(len(out)), np.maximum(2 * out["row"] + 1, 0)
        if self.timed:
            clocks = np.empty(0, np.int64) if arrivals.clocks is None else arrivals.clocks
            early = 2 * np.searchsorted(clocks, out["instant"], "left")
            place = np.full(len(out), 0) if self.net else np.where(out["query"] == 1, early, place)
            order = np.argsort(out["instant"], kind="stable")
        order = order[np.argsort(place[order], kind="stable")]
        order = order[stable_order(out["visit"][order].astype(np.int64), len(self.queries))]
        return _changes(out[order], codes[order], alive)

    def delete(self, codes: Ints, owners: Ints, steps: Ints) -> tuple[Changes, Ints]:
        """Delete objects by the codes of their ids, with their groups and the numbers of their steps.

        Returns the changes, and the steps in which something was deleted.
        """
        there = np.flatnonzero(codes < len(self.places))
        there = there[self.places[codes[there]] >= 0]
        there = there[np.lexsort((steps[there], owners[there]))]
        codes, owners, steps = codes[there], owners[there], steps[there]
        pieces, groups = [], np.unique(owners)
        for g in groups.tolist():
            store, mine = self.stores[g], slice(*np.searchsorted(owners, [g, g + 1]))
            rows = steps[mine]
            kinds, data = np.full(len(rows), DELETE, np.int8), np.empty((len(rows), store.data.shape[1]))
            if self.net:
                store.open_batch(NEVER, shared=False)
            stream = Stream(data, rows, rows, rows, kinds, codes[mine], self.places)
            pieces.append(store.take(stream, NOWHERE, 0, True))
            store.opened = NOWHERE
            self._note(g, store)
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        which = np.repeat(groups, [len(piece) for piece in pieces])
        order = np.lexsort((np.zeros(len(out)) if self.net else out["instant"], out["visit"]))
        return _changes(out[order], which[order]), steps

    def set_ids(self, codes: Ints, sizes: Ints, total: int) -> None:
        """Set the codes of the objects' ids, group by group."""
        ends, self.places = np.cumsum(sizes), np.full(total, -1, np.int32)
        for g, store in self.stores.there():
            self.places[codes[ends[g] - sizes[g] : ends[g]]] = store.by_age()

    # --- queries are added, dropped and replaced

    def add_query(self, spec: Spec, scoring: Scorings) -> None:
        """Serve one query more, which has seen nothing until it searches."""
        self.queries.add(spec, scoring)
        for _, store in self.stores.there():
            store.add_query()

    def drop_query(self, query: int) -> None:
        """Serve one query less."""
        kept = np.delete(np.arange(len(self.queries)), query)
        self.queries.keep(kept)
        self.memory.keep_queries(kept)
        for _, store in self.stores.there():
            store.keep_queries(kept)

    def search(self, query: int, reported: Mapping[int, Records], now: Ints) -> Changes:
        """The first answer of a new query; reported: by group, the objects that were reported under its name."""
        there, none = self.stores.there(), np.empty(0, STAMPED)
        pieces = [store.search(query, reported.get(g, none)["serial"], int(now[g])) for g, store in there]
        for g, known in reported.items() if self.memory.length > self.length else ():
            self.memory.add(query, g, known["stamp"], known["serial"])
        codes = np.repeat(np.array([g for g, _ in there], np.int64), [len(piece) for piece in pieces])
        changes = _changes(np.concatenate([np.empty(0, CHANGE), *pieces]), codes)
        if self.memory.length > self.length:
            self._remember(changes)
        return changes

    def _remember(self, changes: Changes) -> None:
        new = np.flatnonzero((changes.diff > 0) & changes.first)
        self.memory.add(changes.query[new], changes.group[new], changes.stamp[new], changes.serial[new])

    def remember(self, length: int) -> None:
        """Remember reported objects as far back as a window of this length, if it is longer than the own one."""
        begins = length > self.length >= self.memory.length
        self.memory.length = length
        if begins:
            self._remember_valid()
        elif length <= self.length:
            self.memory.clear()

    def _remember_valid(self) -> None:
        for g, store in self.stores.there():
            for s in range(len(self.queries)):
                objects = store.reported_of(s)
                self.memory.add(s, g, objects["stamp"], objects["serial"])

    def reported_of(self, query: int) -> dict[int, Records]:
        """By group, the objects that this query has reported: the valid ones, and those that are remembered."""
        found, none = {}, np.empty(0, STAMPED)
        valid_of = {g: store.reported_of(query) for g, store in self.stores.there()}
        for g in {*valid_of, *self.memory.groups(query)}:
            valid, earlier = valid_of.get(g, none), self.memory.of(query, g)
            objects = np.zeros(len(valid) + len(earlier), STAMPED)
            for name in ("stamp", "serial"):
                objects[name] = np.concatenate([valid[name], earlier[name]])
            found[g] = objects[np.unique(objects["serial"], return_index=True)[1]]
        return found

    def copy_objects(self, other: Windowed, now: Ints, columns: list[int]) -> None:
        """Copy the objects of another engine's windows, as far as they are valid in this one's."""
        self.stores.grow(len(other.stores))
        for g, store in other.stores.there():
            taken = store.by_age()
            if self.length < NEVER:
                taken = taken[store.slots["stamp"][taken] > now[g] - self.length]
            mine = self.stores[g]
            mine.fill(store.data[taken][:, columns], store.slots["stamp"][taken], store.slots["serial"][taken])
            mine.build_grid()
            self._note(g, mine)

    def copy_query(self, other: Windowed, query: int) -> None:
        """Copy one query of another engine, and its windows with the query's keys as the only attribute."""
        self.memory.length = other.memory.length
        for g in other.memory.groups(query):
            earlier = other.memory.of(query, g)
            self.memory.add(0, g, earlier["stamp"], earlier["serial"])
        self.stores.grow(len(other.stores))
        for g, store in other.stores.there():
            taken, mine = store.by_age(), self.stores[g]
            data = store.data[taken]
            inside = other.queries.inside(query, data)
            keys = np.full(len(taken), np.nan)
            keys[inside] = other.queries.keys_of(query, data[inside])
            if self.length < NEVER:
                taken, keys = taken[inside], keys[inside]
            mine.fill(keys[:, None], store.slots["stamp"][taken], store.slots["serial"][taken])
            found, reported = store.runs()
            for name in window_snapshot.FLOOR.names or ():
                mine.state[name][0] = store.state[name][query]
            places = np.full(len(store.slots), -1)
            places[taken] = np.arange(len(taken))
            run, others = found[query].copy(), reported[query].copy()
            run["was"], others["was"] = places[run["was"]], places[others["was"]]
            mine.set_runs([run], [others])
            mine.build_grid()
            self._note(g, mine)

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.stores)) if groups is None else groups[groups < len(self.stores)]
        chosen = chosen[self.stores.live[chosen] > 0]
        found = []
        for g in chosen.tolist():
            if spec.threshold is None and spec.length == self.length:
                found.append(self.stores[g].run(query)[: spec.k])
            else:
                found.append(self.stores[g].scan(query, spec, int(now[g])))
        sizes = np.array([len(best) for best in found], np.int64)
        ranked = np.concatenate([np.empty(0, OBJECT), *found])
        return Answer(
            group=np.repeat(chosen, sizes),
            rank=np.arange(1, len(ranked) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes),
            stamp=ranked["stamp"],
            serial=ranked["serial"],
            key=ranked["key"],
        )

    # --- what is kept

    @property
    def work(self) -> dict[str, int]:
        """Counted: keys computed, cells visited, searches."""
        total = sum((store.counters for _, store in self.stores.there()), self._worked)
        return {"scored": int(total[SCORED]), "visited": int(total[VISITED]), "searches": int(total[SEARCHES])}

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = self.stores.read(np.arange(len(self.stores)) if groups is None else groups)
        kept = [store.slots["serial"][store.by_age()] for store in chosen]
        return np.concatenate([np.empty(0, np.int64), *kept]), np.array([len(one) for one in kept], np.int64)

    @property
    def kept(self) -> Ints:
        return self.stores.live

    @property
    def buffer(self) -> int:
        return int(self.kept.sum())

    @property
    def held(self) -> Records:
        waiting = [self.stores[g].pending for g in sorted(self.stores.open)]
        return np.concatenate([np.empty(0, CHANGE), *waiting])

    def size_of(self, query: int) -> int:
        return sum(int(store.heads["size"][query]) for _, store in self.stores.there())

    def _oldest(self, store: Store) -> int:
        return int(store.slots["stamp"][store.order[store.counters[HEAD]]])

    @property
    def due(self) -> Ints:
        return self.stores.due

    @property
    def nbytes(self) -> int:
        own = self.stores.nbytes + int(self.places.nbytes + self.memory.entries.nbytes)
        return sum((store.nbytes for _, store in self.stores.there()), own)

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not len(self.held), "no batch is open"
        return window_snapshot.save(self.stores.read(groups), groups.tolist(), self.memory)

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        restored = window_snapshot.load(state, self.queries, self.memory, trusted=trusted)
        self.stores = GroupStates(self._empty_store, restored)
        for g, store in enumerate(restored):
            self._note(g, store)
        if self.memory.length > self.length:
            self._remember_valid()
        else:
            self.memory.clear()

    def keep_groups(self, groups: Ints) -> None:
        self.stores.keep(groups)
        self.memory.keep_groups(groups)

    def reset_groups(self, groups: Ints) -> None:
        self.stores.reset(groups)
        self.memory.keep_groups(np.arange(len(self.stores)), but=groups)

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        require(now is None or len(now) == len(self.stores), "every group is in its engine")
        for g, store in self.stores.there():
            check_store(store)
            taken = store.slots["stamp"][store.slots["serial"] >= 0]
            check_ages(taken, np.array([len(taken)]), None if now is None else now[g : g + 1], self.length)
            require(store.live == self.stores.live[g], "the objects of a group are counted")
            if deep:
                store.check()


def _changes(out: Records, groups: Ints, alive: Bools | None = None) -> Changes:
    return grouped.changes_of(
        out, out["visit"].astype(np.int64), groups, np.empty(0, np.bool_) if alive is None else alive
    )
