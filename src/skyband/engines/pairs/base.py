"""What SCASE, TA and BASIC have in common: one window and one K-skyband of pairs a group, for all queries at once.

The window holds the objects that can be a member, in order of age; the band is shen2012's K-skyband of the largest k
and the longest window, from which every k and every window is answered (Theorem 1). They differ in how they find the
new pairs that may last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy

import numpy as np

from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Floats, Ints, Spec
from skyband.engines.pairs.changes import changes_of, difference, told_by
from skyband.engines.pairs.given_scores import run_given
from skyband.engines.pairs.invariants import check_pairs, check_skyband
from skyband.engines.pairs.kernels.answers import empty_lists, read_pairs
from skyband.engines.pairs.kernels.records import (
    BAND_FULL,
    BLOCK_FULL,
    DESK_FULL,
    DONE,
    END,
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
from skyband.engines.pairs.kernels.steps import close_batch, flush_pairs, look_again, prune_pairs, take_pairs
from skyband.engines.pairs.snapshot import restore, stored
from skyband.engines.pairs.window import Columns, Records, Store, empty_desk, with_rows
from skyband.kernels.routing import stable_order
from skyband.query.tuning import Tuning


class Pairs:
    """Queries with one scoring of pairs, over the windows of all groups."""

    name = ""
    algorithm = SCASE
    least_block = 512  # TA: objects that have sorted lists of their own
    patience = 50  # so many read a band before it gets lists to read from, which cost as much

    def __init__(
        self,
        asked: tuple[Spec, ...],
        tuning: Tuning,
        *,
        timed: bool,
        net: bool,
        scoring: Scoring,
        scores: Callable[[Columns, Columns], Floats] | None = None,
    ) -> None:
        self.timed, self.net, self.scoring, self.scores = timed, net, scoring, scores
        self.clock = -NEVER
        self.stores: list[Store] = []
        self.scoreless: Ints = np.zeros(len(asked), np.int64)  # pairs without a score, of the last batch
        self.out = np.empty(256, TOLD)
        self._ask(asked)

    def _ask(self, asked: tuple[Spec, ...]) -> None:
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
    def needed(arrivals: Arrivals, asked: tuple[Spec, ...], *, net: bool) -> Bools:
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
        if arrivals.wants_alive:
            for g in visited:
                serials = self.stores[g].window.serials[self.stores[g].live]
                alive[serials[serials >= arrivals.serial] - arrivals.serial] = True
        return told_by(self, pieces, sorted(visited), arrivals, alive)

    def _visit(self, g: int, arrivals: Arrivals, data: Floats, mine: Ints) -> Records:
        """One group's share of a batch; changes by step, of query after query within it, until the next visit."""
        store = self.stores[g]
        store.facts[TOLDS], store.facts[LAST_ROW] = 0, -1
        if self.algorithm == TA:
            store.sort_blocks(self.scoring.limit)
        if self.net and not store.open:
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
            run_given(self, store, stream, last, arrivals.columns, mine)
        self._settle(store, last)
        store.now = max(store.now, last)
        self.scoreless[self.order] += np.cumsum(store.views.scoreless[:-1])
        store.views.scoreless[:] = 0
        if self.net and not arrivals.more:
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
                self.net,
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
            if self.net or self.algorithm == NAIVE:
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

    # --- what is told

    def _settle(self, store: Store, now: int) -> None:
        """Objects that have left go."""
        if now > -NEVER:
            while store.facts[HEAD] < store.facts[END] and (
                store.window.stamps[store.facts[HEAD]] <= now - self.length[-1]
            ):
                store.facts[HEAD] += 1

    def _close(self, store: Store, last: int, row: int) -> None:
        """A net batch ends."""
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

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = range(len(self.stores)) if groups is None else [g for g in groups.tolist() if g < len(self.stores)]
        found = [self._read(self.stores[g], asked, int(now[g])) for g in chosen]
        sizes = np.array([len(best) for best in found], np.int64)
        ranked = np.concatenate([np.empty(0, SLOT), *found])
        ends = np.cumsum(sizes)
        return Answer(
            group=np.repeat(np.array(list(chosen), np.int64), sizes),
            rank=np.arange(1, len(ranked) + 1) - np.repeat(ends - sizes, sizes),
            stamp=ranked["new"],
            serial=ranked["newer"],
            key=ranked["key"],
            older=ranked["older"],
            older_stamp=ranked["old"],
        )

    def _flush(self, store: Store) -> None:
        """Pairs that wait behind the band take their places."""
        if store.facts[PENDING]:
            if store.facts[PENDING] > len(self.desk.slot):
                self._make_desk(int(store.facts[PENDING]))
            flush_pairs(store.facts, store.band, self.desk)

    def _read(self, store: Store, asked: Spec, now: int) -> Records:
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

    def refit(self, asked: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        if len(now):
            self._store(len(now) - 1)
        before = [
            [self._read(store, self.asked[heir], int(now[g])) for heir in predecessors]
            for g, store in enumerate(self.stores)
        ]
        place = np.empty(len(self.asked), np.int64)
        place[self.order] = np.arange(len(self.asked))
        old = place[predecessors]
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
                pieces.append(difference(self, store, was, query, int(view), g, int(now[g])))
        out = np.concatenate([np.empty(0, TOLD), *pieces])
        order = np.argsort(out["query"], kind="stable")
        out = out[order]
        return changes_of(out, out["query"].astype(np.int64), out["instant"], np.empty(0, np.bool_))

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
        return stored(self, groups)

    def restore(self, state: Mapping[str, Records]) -> None:
        restore(self, state)

    def check(self) -> None:
        check_pairs(self)

    def _check_all(self, store: Store, pairs: Records) -> None:
        check_skyband(self, store, pairs)
