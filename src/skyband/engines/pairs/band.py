"""What SCASE, TA and BASIC have in common: one window and one K-skyband of pairs a group, for all queries at once.

The window holds the objects that can be a member, in order of age; the band is shen2012's K-skyband of the largest k
and the longest window, from which every k and every window is answered (Theorem 1). They differ in how they find the
new pairs that may last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.certain.arena import recast
from skyband.engines.contract import Arrivals, Asked, Bools, Changes, Floats, Ints, Ranked
from skyband.engines.pairs.store import Records, Store, empty_desk, gathered, with_rows
from skyband.errors import StateError
from skyband.kernels.pair_reading import empty_lists, read_pairs
from skyband.kernels.pair_records import (
    BAND_FULL,
    BASE,
    BLOCK_FULL,
    BLOCKS,
    DESK_FULL,
    DONE,
    END,
    GIVEN,
    HEAD,
    LAST_ROW,
    NAIVE,
    NEED,
    NEVER,
    PENDING,
    READ,
    SAVED,
    SCASE,
    SCORED,
    SIZE,
    SLOT,
    SUM,
    TA,
    TOLD,
    TOLDS,
    WINDOW_FULL,
    Scoring,
    Stream,
)
from skyband.kernels.pair_steps import close_batch, flush_pairs, look_again, prune_pairs, take_pairs
from skyband.kernels.routing import stable_order
from skyband.tuning import Tuning

Columns = dict[str, NDArray[Any]]
OBJECT = np.dtype([("stamp", "i8"), ("serial", "i8")])
VIEW = np.dtype([("kth", "f8"), ("due", "i8")])
PAIRS_AT_ONCE = 1 << 16  # that NumPy or a function scores
CHECKED = 40  # objects: windows up to here are checked pair by pair


class Pairs:
    """Queries with one scoring of pairs, over the windows of all groups."""

    name = ""
    algorithm = SCASE
    least_block = 512  # TA: objects that have sorted lists of their own
    patience = 50  # so many read a band before it gets lists to read from, which cost as much

    def __init__(
        self,
        asked: tuple[Asked, ...],
        tuning: Tuning,
        *,
        timed: bool,
        quiet: bool,
        scoring: Scoring,
        scores: Callable[[Columns, Columns], Floats] | None = None,
    ) -> None:
        self.timed, self.quiet, self.scoring, self.scores = timed, quiet, scoring, scores
        self.clock = -NEVER
        self.stores: list[Store] = []
        self.scoreless: Ints = np.zeros(len(asked), np.int64)  # pairs without a score, of the last batch
        self.out = np.empty(256, TOLD)
        self._ask(asked)

    def _ask(self, asked: tuple[Asked, ...]) -> None:
        self.asked = asked
        lengths = np.array([one.length for one in asked], np.int64)
        self.order = np.argsort(lengths, kind="stable")  # the shortest window first
        self.k = np.array([one.k for one in asked], np.int64)[self.order]
        self.length = lengths[self.order]
        self.K = int(self.k.max())
        self.desk = empty_desk(len(asked), len(self.scoring.local))
        self.reading = empty_lists(self.K)
        self.listed: Store | None = None  # whose pairs these lists have

    @staticmethod
    def needed(arrivals: Arrivals, asked: tuple[Asked, ...], *, quiet: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)  # any object may make the best pair

    def copy(self) -> Pairs:
        """A twin that goes its own way; scorings are shared."""
        scores, self.scores = self.scores, None
        try:
            twin = deepcopy(self)
        finally:
            self.scores = scores
        twin.scores = scores
        return twin

    def _store(self, g: int) -> Store:
        while len(self.stores) <= g:
            heap = min(self.K, self._most_pairs())
            apart = self.scoring.form == SUM and not self.scoring.local.any()
            lists, near = self.algorithm == TA, apart and self.scoring.sign < 0
            rough = apart and self.algorithm in (SCASE, TA)
            store = Store(len(self.scoring.local), heap, self.k, self.length, lists=lists, near=near, rough=rough)
            self.stores.append(store)
        return self.stores[g]

    def _most_pairs(self) -> int:
        """The staircase has no step before there are K pairs."""
        return 1 << 40 if self.timed else max(1, int(self.length[-1]) ** 2)

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        if arrivals.total:
            self._store(arrivals.total - 1)
        self.clock = max(self.clock, arrivals.clock)
        self.scoreless = np.zeros(len(self.asked), np.int64)
        data = np.zeros((0, len(arrivals.rows)))
        if self.scores is None:
            assert arrivals.attributes is not None
            data = np.stack(arrivals.attributes) if len(arrivals.rows) else np.zeros((len(self.scoring.local), 0))
        one = arrivals.total == 1
        order = np.arange(len(arrivals.rows)) if one else stable_order(arrivals.groups, arrivals.total)
        groups = arrivals.groups[order]
        starts = np.searchsorted(groups, np.arange(arrivals.total + 1))
        visited = set((groups[:1] if one else np.unique(groups)).tolist())
        for g, store in enumerate(self.stores):
            if (self.timed and store.due <= arrivals.clock) or (store.open and not arrivals.more):
                visited.add(g)
        pieces: list[Records] = []
        for g in sorted(visited):
            told = self._visit(g, arrivals, data, order[starts[g] : starts[g + 1]])
            pieces.append(told if len(visited) == 1 else told.copy())
        alive = np.zeros(arrivals.size, np.bool_)
        if arrivals.told:
            for g in visited:
                serials = self.stores[g].window.serials[self.stores[g].live]
                alive[serials[serials >= arrivals.serial] - arrivals.serial] = True
        return self._told(pieces, sorted(visited), arrivals, alive)

    def _visit(self, g: int, arrivals: Arrivals, data: Floats, mine: Ints) -> Records:
        """One group's share of a batch; changes by step, of query after query within it, until the next visit."""
        store = self.stores[g]
        store.facts[TOLDS], store.facts[LAST_ROW] = 0, -1
        if self.algorithm == TA:
            store.sort_blocks(self.scoring.limit)
        if self.quiet and not store.open:
            store.open = True
        eligible = np.empty(0, np.bool_) if arrivals.eligible is None else arrivals.eligible[mine]
        last = arrivals.clock if self.timed else int(arrivals.now[mine[-1]]) if len(mine) else -NEVER
        stream = Stream(
            stamps=arrivals.stamps[mine],
            now=arrivals.now[mine],
            rows=arrivals.rows[mine],
            eligible=eligible,
            values=np.ascontiguousarray(data[:, mine]),
            given=np.empty(0),
            begins=np.empty(0, np.int64),
            wild=False,
            serial=arrivals.serial,
            scored=np.empty(0, np.bool_) if arrivals.scored is None else arrivals.scored[mine],
        )
        if self.scores is None:
            self._run(store, stream, last)
        else:
            self._run_given(store, stream, last, arrivals.columns, mine)
        self._settle(store, last)
        store.now = max(store.now, last)
        self.scoreless[self.order] += np.cumsum(store.views.scoreless[:-1])
        store.views.scoreless[:] = 0
        if self.quiet and not arrivals.more:
            self._close(store, last, int(stream.rows[-1]) if len(mine) else -1)
        return self.out[: store.facts[TOLDS]]

    def _run(self, store: Store, stream: Stream, last: int) -> None:
        begin, why = 0, WINDOW_FULL
        while why != DONE:
            begin, why = take_pairs(
                store.facts,
                store.window,
                store.band,
                store.views,
                self.desk,
                store.blocks,
                self._block_size(),
                self.scoring,
                self.algorithm,
                store.K,
                stream,
                begin,
                last,
                self.timed,
                self.quiet,
                store.saved,
                self.out,
            )
            self._make_room(store, why)

    def _make_room(self, store: Store, why: int) -> None:
        need = int(store.facts[NEED])
        if why == WINDOW_FULL:
            store.make_room(1)
        elif why == BAND_FULL:
            store.grow_band(need)
        elif why == BLOCK_FULL:
            store.open_block(self.scoring.limit)
        elif why == DESK_FULL:
            self._make_desk(2 * int(store.facts[END] - store.facts[HEAD] + store.facts[PENDING] + 1))
        elif why != DONE:
            self._make_out(int(store.facts[TOLDS]), need)
            if self.quiet or self.algorithm == NAIVE:
                store.grow_saved(int(store.facts[SAVED]) + need)

    def _make_desk(self, room: int) -> None:
        self.desk = self.desk._replace(
            other=np.empty(room, np.int64), key=np.empty(room), slot=np.empty(room, np.int32)
        )

    def _make_out(self, told: int, need: int) -> None:
        if told + need > len(self.out):
            larger = np.empty(max(2 * len(self.out), told + need), TOLD)
            larger[:told] = self.out[:told]
            self.out = larger
        if need > len(self.desk.before):
            self.desk = self.desk._replace(before=np.empty(2 * need, np.int32), after=np.empty(2 * need, np.int32))

    def _block_size(self) -> int:
        return int(np.clip(0 if self.timed else self.length[-1] // 32, self.least_block, 8 * self.least_block))

    # --- scores that no kernel computes

    def _run_given(self, store: Store, stream: Stream, last: int, columns: Columns, mine: Ints) -> None:
        """The same, with the scores of blocks of new pairs computed first."""
        size, begin = len(stream.stamps), 0
        while begin < size:
            comes = np.flatnonzero(stream.eligible) if len(stream.eligible) else np.arange(size)
            comes = comes[comes >= begin]
            end = self._block(store, stream, begin, comes)
            comes = comes[comes < end]
            store.make_room(len(comes) + 1)
            rows = gathered(columns, mine[comes])
            at = int(store.facts[END])
            place = at
            if len(comes) and at > store.facts[HEAD]:
                place = int(np.searchsorted(store.window.stamps[store.live], stream.stamps[comes[0]], "right"))
                place += int(store.facts[HEAD])
            room = len(store.window.stamps)
            store.columns = {name: with_rows(store.columns.get(name), rows[name], at, room) for name in rows}
            given, starts = self._scores(store, stream, comes, at, place)
            part = Stream(
                stamps=stream.stamps[begin:end],
                now=stream.now[begin:end],
                rows=stream.rows[begin:end],
                eligible=stream.eligible[begin:end] if len(stream.eligible) else stream.eligible,
                values=np.empty((0, end - begin)),
                given=given,
                begins=np.zeros(end - begin, np.int64),
                wild=bool(np.isnan(given).any()),
                serial=stream.serial,
                scored=stream.scored[begin:end],
            )
            part.begins[comes - begin] = starts
            self._run(store, part, int(part.now[-1]))
            if place < at:  # a late one
                for column in store.columns.values():
                    new = column[at]
                    column[place + 1 : at + 1] = column[place:at].copy()
                    column[place] = new
            begin = end
        empty = stream._replace(
            stamps=stream.stamps[:0], now=stream.now[:0], rows=stream.rows[:0], eligible=stream.eligible[:0]
        )
        self._run(store, empty, last)

    def _block(self, store: Store, stream: Stream, begin: int, comes: Ints) -> int:
        """How far one block of arrivals goes: some thousand pairs, or one that is late."""
        size = len(stream.stamps)
        if not len(comes):
            return size
        newest = int(store.window.stamps[store.facts[END] - 1]) if store.facts[END] > store.facts[HEAD] else -NEVER
        stamps = stream.stamps[comes]
        late = np.flatnonzero(np.diff(stamps, prepend=newest) < 0)
        if len(late) and late[0] == 0:
            return int(comes[0]) + 1
        live = int(store.facts[END] - store.facts[HEAD])
        pairs = np.cumsum(live + np.arange(len(comes)))
        many = max(1, int(np.searchsorted(pairs, PAIRS_AT_ONCE)))
        stop = min(many, int(late[0]) if len(late) else many)
        return int(comes[stop]) if stop < len(comes) else size

    def _scores(self, store: Store, stream: Stream, comes: Ints, at: int, place: int) -> tuple[Floats, Ints]:
        """Scores of each of these arrivals with the valid objects before it; the new ones are kept from `at` on."""
        assert self.scores is not None
        if not len(comes):
            return np.empty(0), np.empty(0, np.int64)
        head = int(store.facts[HEAD])
        stamps = np.concatenate([store.window.stamps[head:at], stream.stamps[comes]])
        late = place < at
        known = stamps[: at - head] if late else stamps
        ends = at + np.arange(len(comes))
        low = np.minimum(head + np.searchsorted(known, stream.now[comes] - self.length[-1], "right"), ends)
        if len(stream.scored):
            low = np.where(stream.scored[comes], low, ends)
        counts = ends - low
        begins = np.cumsum(counts) - counts
        others, new = np.arange(int(counts.sum())) - np.repeat(begins - low, counts), np.repeat(ends, counts)
        if not len(others):
            return np.empty(0), begins - low
        before = others < place if late else np.ones(len(others), np.bool_)
        older, newer = np.where(before, others, new), np.where(before, new, others)
        return self.scores(gathered(store.columns, older), gathered(store.columns, newer)), begins - low

    # --- what is told

    def _settle(self, store: Store, now: int) -> None:
        """Objects that have left go."""
        if now > -NEVER:
            while store.facts[HEAD] < store.facts[END] and (
                store.window.stamps[store.facts[HEAD]] <= now - self.length[-1]
            ):
                store.facts[HEAD] += 1

    def _close(self, store: Store, last: int, row: int) -> None:
        """A quiet batch ends."""
        touched = np.flatnonzero(store.views.touched)
        store.open = False
        if not len(touched):
            return
        self._flush(store)
        now = last if last > -NEVER else store.now
        need = int(store.views.held[touched].sum() + np.minimum(self.k[touched], store.facts[SIZE]).sum())
        self._make_out(int(store.facts[TOLDS]), need + 1)
        order = np.arange(len(store.saved), dtype=np.int32)
        close_batch(store.facts, store.band, store.views, self.desk, store.saved, order, now, now, row, self.out)

    def _told(self, pieces: list[Records], groups: list[int], arrivals: Arrivals, alive: Bools) -> Changes:
        """By query, then by step across groups."""
        if len(pieces) == 1 and not self.timed:  # one group's steps are in order
            (out,) = pieces
            query = self.order[out["query"]]
            order = stable_order(query, len(self.asked)) if len(self.asked) > 1 else np.arange(len(out))
            return _changes(_rows(out, order), query[order], np.full(len(out), groups[0]), alive)
        out = np.concatenate([np.empty(0, TOLD), *pieces])
        codes = np.repeat(np.array(groups, np.int64), [len(piece) for piece in pieces])
        place = np.maximum(2 * out["row"] + 1, 0)
        order = np.arange(len(out))
        if self.timed:
            clocks = np.empty(0, np.int64) if arrivals.clocks is None else arrivals.clocks
            early = 2 * np.searchsorted(clocks, out["instant"], "left")
            place = np.zeros(len(out), np.int64) if self.quiet else np.where(out["alone"] == 1, early, place)
            order = np.argsort(out["instant"], kind="stable")
        order = order[np.argsort(place[order], kind="stable")]
        query = self.order[out["query"]]
        order = order[np.argsort(query[order], kind="stable")]
        return _changes(_rows(out, order), query[order], codes[order], alive)

    def answer(self, query: int, asked: Asked, now: Ints, groups: Ints | None) -> Ranked:
        chosen = range(len(self.stores)) if groups is None else [g for g in groups.tolist() if g < len(self.stores)]
        found = [self._read(self.stores[g], asked, int(now[g])) for g in chosen]
        sizes = np.array([len(best) for best in found], np.int64)
        ranked = np.concatenate([np.empty(0, SLOT), *found])
        ends = np.cumsum(sizes)
        return Ranked(
            group=np.repeat(np.array(list(chosen), np.int64), sizes),
            rank=np.arange(1, len(ranked) + 1) - np.repeat(ends - sizes, sizes),
            stamp=ranked["new"],
            serial=ranked["newer"],
            key=ranked["key"],
            mate=ranked["older"],
            mate_stamp=ranked["old"],
        )

    def _flush(self, store: Store) -> None:
        """Pairs that wait behind the band take their places."""
        if store.facts[PENDING] > len(self.desk.slot):
            self._make_desk(int(store.facts[PENDING]))
        flush_pairs(store.facts, store.band, self.desk)

    def _read(self, store: Store, asked: Asked, now: int) -> Records:
        self._flush(store)
        out = np.empty(min(asked.k, int(store.facts[SIZE])), np.int32)
        if not len(out):
            return np.empty(0, SLOT)
        if self.listed is not store and store.facts[READ] >= self.patience:
            if self.listed is not None:
                self.listed.facts[READ] = 0
            self.listed, store.facts[READ] = store, self.patience
        longest, low = int(self.length[-1]), now - asked.length
        size = read_pairs(store.facts, store.band, self.reading, longest, self.patience, len(out), low, out)
        best: Records = store.band.slots[out[:size]]
        return best

    # --- queries come and go

    def refit(self, asked: tuple[Asked, ...], heirs: Ints, now: Ints) -> Changes:
        if len(now):
            self._store(len(now) - 1)
        before = [
            [self._read(store, self.asked[heir], int(now[g])) for heir in heirs] for g, store in enumerate(self.stores)
        ]
        place = np.empty(len(self.asked), np.int64)
        place[self.order] = np.arange(len(self.asked))
        old = place[heirs]
        self._ask(asked)
        self._make_out(0, min(self.K, max((int(store.facts[SIZE]) for store in self.stores), default=0)))
        pieces: list[Records] = []
        for g, store in enumerate(self.stores):
            bits = store.band.bits
            store.ask(min(self.K, self._most_pairs()), self.k, self.length)
            for view, query in enumerate(self.order.tolist()):
                word, bit = divmod(int(old[query]), 64)
                known = (bits[:, word] >> np.uint64(bit)) & np.uint64(1)
                store.band.bits[:, view >> 6] |= known << np.uint64(view & 63)
            self._settle(store, int(now[g]))
            self._prune(store, int(now[g]))
            look_again(store.facts, store.band, store.views, self.desk.after, int(now[g]))
            for query, (view, was) in enumerate(zip(np.argsort(self.order), before[g], strict=True)):
                pieces.append(self._difference(store, was, query, int(view), g, int(now[g])))
        out = np.concatenate([np.empty(0, TOLD), *pieces])
        order = np.argsort(out["query"], kind="stable")
        out = out[order]
        return _changes(out, out["query"].astype(np.int64), out["instant"], np.empty(0, np.bool_))

    def _difference(self, store: Store, was: Records, query: int, view: int, g: int, now: int) -> Records:
        """From what a query has told to what it has now; `instant` is the group."""
        best = self._read(store, self.asked[query], now)
        identity = [("older", "i8"), ("newer", "i8")]
        one, other = (np.empty(len(pairs), identity) for pairs in (was, best))
        for pairs, key in ((was, one), (best, other)):
            key["older"], key["newer"] = pairs["older"], pairs["newer"]
        gone, come = was[~np.isin(one, other)], np.flatnonzero(~np.isin(other, one))
        slots = store.band.slot[: store.facts[SIZE]][np.isin(_ids(store.pairs), other[come])]
        out = np.zeros(len(gone) + len(come), TOLD)
        entering = best[come]
        for name in ("key", "old", "older", "new", "newer"):
            out[name] = np.concatenate([gone[name], entering[name]])
        out["instant"], out["query"], out["row"] = g, query, -1
        out["diff"] = np.repeat([-1, 1], [len(gone), len(come)])
        word, bit = view >> 6, np.uint64(1) << np.uint64(view & 63)
        out["first"][len(gone) :] = (store.band.bits[slots, word] & bit) == 0
        store.band.bits[slots, word] |= bit
        return out

    def _prune(self, store: Store, now: int) -> None:
        prune_pairs(store.facts, store.band, store.K, now - int(self.length[-1]), self.algorithm)

    # --- what is kept

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = self.stores if groups is None else [self._store(g) for g in groups.tolist()]
        kept = [store.window.serials[store.live] for store in chosen]
        return np.concatenate([np.empty(0, np.int64), *kept]), np.array([len(one) for one in kept], np.int64)

    @property
    def kept(self) -> Ints:
        return np.array([store.facts[END] - store.facts[HEAD] for store in self.stores], np.int64)

    @property
    def pairs(self) -> int:
        """How many pairs are kept, of all groups."""
        return sum(int(store.facts[SIZE]) for store in self.stores)

    @property
    def work(self) -> dict[str, int]:
        """Counted: scores computed."""
        return {"scored": sum(int(store.facts[SCORED]) for store in self.stores)}

    @property
    def buffer(self) -> int:
        return int(self.kept.sum())

    @property
    def held(self) -> Records:
        """Members of pairs that a batch which goes on may tell of at its end."""
        saved = [store.saved[: int(store.facts[SAVED])] for store in self.stores if store.open]
        members = [one[name] for one in saved for name in ("older", "newer")]
        held = np.empty(sum(map(len, members)), [("serial", "i8")])
        held["serial"] = np.concatenate([np.empty(0, np.int64), *members])
        return held

    def size_of(self, query: int) -> int:
        return int(self.kept.sum())

    @property
    def due(self) -> Ints:
        return np.array([store.due if self.timed else NEVER for store in self.stores], np.int64)

    @property
    def nbytes(self) -> int:
        return sum(store.nbytes for store in self.stores)

    def set_columns(self, serials: Ints, columns: Columns) -> None:
        """What the scoring reads of these objects, by rising serials."""
        for store in self.stores:
            store.make_room(1)
            mine = store.window.serials[store.live]
            places = np.searchsorted(serials, mine)
            room, head = len(store.window.stamps), int(store.facts[HEAD])
            store.columns = {
                name: with_rows(None, column[places], head, room) if len(mine) else column[:0].repeat(0)
                for name, column in columns.items()
            }
            if not len(mine):
                store.columns = {}

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        stores = [self._store(g) for g in groups.tolist()]
        assert not any(store.open for store in stores), "no batch is open"
        parts: dict[str, list[Records]] = {name: [] for name in ("sizes", "objects", "data", "pairs", "shown", "views")}
        for store in stores:
            self._flush(store)
            if self.timed:
                self._settle(store, self.clock)
            live = store.live
            oldest = int(store.window.stamps[live.start]) if live.start < live.stop else NEVER
            prune_pairs(store.facts, store.band, store.K, oldest - 1, self.algorithm)
            objects, views = np.zeros(live.stop - live.start, OBJECT), np.zeros(len(self.k), VIEW)
            objects["stamp"], objects["serial"] = store.window.stamps[live], store.window.serials[live]
            views["kth"], views["due"] = store.views.kth, store.views.due
            pairs, slots = store.pairs, store.band.slot[: store.facts[SIZE]]
            pairs["place"] -= store.facts[BASE] + live.start
            sizes = np.array([len(objects), len(pairs)], np.int64)
            data, shown = store.window.data[:, live].T.reshape(-1), store.band.bits[slots].reshape(-1)
            for name, array in zip(parts, (sizes, objects, data, pairs, shown, views), strict=True):
                parts[name].append(array)
        empty: tuple[Any, ...] = (np.int64, OBJECT, np.float64, SLOT, np.uint64, VIEW)
        return {
            name: (np.concatenate([np.empty(0, dtype), *arrays]), np.array([len(one) for one in arrays], np.int64))
            for (name, arrays), dtype in zip(parts.items(), empty, strict=True)
        }

    def restore(self, state: Mapping[str, Records]) -> None:
        objects, pairs, views = (
            recast(state[name], dtype) for name, dtype in (("objects", OBJECT), ("pairs", SLOT), ("views", VIEW))
        )
        width, words, lanes = len(self.scoring.local), (len(self.k) + 63) // 64, len(self.k)
        sizes = state["sizes"].reshape(-1, 2) if len(state["sizes"]) % 2 == 0 else np.full((1, 2), -1)
        if not (
            (sizes >= 0).all()
            and tuple(sizes.sum(axis=0)) == (len(objects), len(pairs))
            and len(state["data"]) == width * len(objects)
            and len(state["shown"]) == words * len(pairs)
            and len(views) == lanes * len(sizes)
        ):
            raise StateError("the snapshot's pairs do not fit together. Take a new snapshot from a running Monitor.")
        self.stores, ends = [], np.cumsum(sizes, axis=0)
        for g, (n, p) in enumerate(sizes.tolist()):
            store = self._store(g)
            here, there = slice(ends[g, 0] - n, ends[g, 0]), slice(ends[g, 1] - p, ends[g, 1])
            data = state["data"].reshape(-1, width)[here] if width else np.empty((n, 0))
            store.fill(objects["stamp"][here], objects["serial"][here], data.T, self.scoring.limit)
            store.fill_band(pairs[there], state["shown"].reshape(-1, words)[there])
            mine = views[g * lanes : (g + 1) * lanes]
            store.views.kth[:], store.views.due[:] = mine["kth"], mine["due"]
            prune_pairs(store.facts, store.band, store.K, -NEVER, self.algorithm)
            if self.algorithm == TA and n:
                self._lay_blocks(store)

    def _lay_blocks(self, store: Store) -> None:
        """Blocks over objects that are there."""
        size = int(store.facts[END])
        store.facts[END] = 0
        while store.facts[END] < size:
            store.open_block(self.scoring.limit)
            store.facts[END] = min(size, store.facts[END] + self._block_size())
            newest = int(store.facts[BLOCKS]) - 1
            store.blocks.end[newest] = store.facts[BASE] + store.facts[END]

    def check(self) -> None:
        for store in self.stores:
            self._flush(store)
            pairs = store.pairs
            rank = np.lexsort((-pairs["newer"], -pairs["new"], -pairs["older"], -pairs["old"], -pairs["key"]))
            assert (rank == np.arange(len(pairs))).all(), "best first, the pair with the newer older member above"
            live = store.live
            stamps, serials = store.window.stamps[live], store.window.serials[live]
            assert (np.lexsort((serials, stamps)) == np.arange(len(stamps))).all(), "by age"
            if len(store.window.rough):
                data, rough = store.window.data[:, live], store.window.rough[:, live]
                with np.errstate(over="ignore"):
                    same = np.array_equal(rough[: len(data)], data.astype(np.float32), equal_nan=True)
                assert same and not rough[len(data) :].any(), "rounded as they are"
                assert not (np.abs(data) > store.window.most[:, None]).any(), "no number is larger"
            valid = pairs[np.isin(pairs["older"], serials)]
            places = valid["place"] - store.facts[BASE]
            assert (store.window.serials[places] == valid["older"]).all(), "a pair knows its older member's place"
            assert len(np.unique(_ids(pairs))) == len(pairs), "each pair once"
            if len(stamps) <= CHECKED and not store.open:
                self._check_all(store, pairs)

    def _check_all(self, store: Store, pairs: Records) -> None:
        """Whatever is not kept is dominated by K pairs that are."""
        live, known = store.live, {(int(one["older"]), int(one["newer"])): one for one in pairs}
        for a, b in combinations(range(live.start, live.stop), 2):
            key = self._key(store, a, b)
            identity = (int(store.window.serials[a]), int(store.window.serials[b]))
            if identity in known:
                assert known[identity]["key"] == key, "a key is what the scoring gives"
            elif key == key:
                place, newer = store.facts[BASE] + a, (store.window.stamps[b], store.window.serials[b])
                after = (pairs["new"] > newer[0]) | ((pairs["new"] == newer[0]) & (pairs["newer"] > newer[1]))
                tied = (pairs["place"] > place) | ((pairs["place"] == place) & after)
                above = (pairs["key"] > key) | ((pairs["key"] == key) & tied)
                assert (above & (pairs["place"] >= place)).sum() >= self.K, "who is dropped has K dominators"

    def _key(self, store: Store, a: int, b: int) -> float:
        if self.scores is not None:
            one, other = (gathered(store.columns, np.array([i])) for i in (a, b))
            return float(self.scoring.sign * self.scores(one, other)[0])
        total: Any = None
        for x, y, local in zip(store.window.data[:, a], store.window.data[:, b], self.scoring.local, strict=True):
            with np.errstate(all="ignore"):
                term = x + y if local else abs(x - y)
                total = term if total is None else total * term if self.scoring.form else total + term
        return float(self.scoring.sign * total)


def _ids(pairs: Records) -> Records:
    ids = np.empty(len(pairs), [("older", "i8"), ("newer", "i8")])
    ids["older"], ids["newer"] = pairs["older"], pairs["newer"]
    return ids


def _rows(out: Records, order: Ints) -> Records:
    """Records in this order, as bytes: field by field NumPy needs ten times as long."""
    return out.view(f"V{out.itemsize}")[order].view(out.dtype)


def _changes(out: Records, queries: Ints, groups: Ints, alive: Bools) -> Changes:
    return Changes(
        query=queries,
        group=groups,
        row=out["row"],
        instant=out["instant"],
        stamp=out["new"],
        serial=out["newer"],
        key=out["key"],
        diff=out["diff"],
        first=out["first"].astype(np.bool_),
        alive=alive,
        mate=out["older"],
        mate_stamp=out["old"],
    )


__all__ = ["GIVEN", "Pairs"]
