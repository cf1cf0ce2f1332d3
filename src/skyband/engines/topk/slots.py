"""Slots: many standing queries of one scoring form as rows of columns, in one engine that they join and leave.

The interface, for whoever builds an adapter over it (plain queries: engines/topk/adapter.py; subscriptions too):

    engine = Slots((), tuning, timed=..., net=..., shape=Shape(form, turned, d, attributes, weighted, boxed))
    slots = engine.join(SlotColumns(points, weights, k, length, lows, highs), serial)   # int64, one for each row
    engine.leave(slots)                                  # nothing is reported; the numbers are free for the next join
    changes = engine.take(arrivals)                      # Changes.query is the slot, by slot and then by step
    answer = engine.answers(slots, now)                  # Answer.group is the place in `slots`, each best first
    engine.snapshot(...), engine.restore(...)            # every slot's columns are among the arrays

- A slot sees only arrivals that are taken after it joined: `serial` is that of the next row.
- `Arrivals.attributes` has the d columns that the form reads, in order, then further ones that only boxes read. A box
  is `lows[j] <= attribute j <= highs[j]` for each attribute; -inf and inf demand nothing, and NaN lies in no range. An
  equality (`city = :city`) is a range of one number: the adapter gives values of such a column as codes.
- `Arrivals.eligible` is for what no slot may have; what one slot demands is its box.
- stamps and now are the same for all slots (the numbers of one sequence, or times). A slot whose numbers are others
  (it was added later, its window's length is another) differs in output only: that is the adapter's (numbering.py).
- A slot for which the score of a row is NaN does not see that row; `engine.unscored(attributes)` names such slots.

Slots lie in pools by the length of their windows (pool.py), there in chunks of some thousands (chunk.py), so that
columns grow without being copied, and a kernel works on one chunk for the whole batch.

Keeps a run for each slot and a history of arrivals for each pool. Cost: see kernels/slots.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import best_of
from skyband.engines.contract import Answer, Arrivals, Changes, Ints, Spec, Vectors
from skyband.engines.topk.kernels.lane_state import LANE
from skyband.engines.topk.kernels.slot_reads import (
    bounds_of_serials,
    fill_rows,
    find_steps,
    mark_kept,
)
from skyband.engines.topk.kernels.state import Report
from skyband.engines.topk.pool import Pool
from skyband.engines.topk.recent_arrivals import Stream
from skyband.engines.topk.slot_columns import Shape, SlotColumns, by_class, class_of, stretch_of
from skyband.engines.topk.slot_moves import SHIFTED, donor_of, join_from_window, move_behind
from skyband.engines.topk.slots_snapshot import FIRST_VERSION, check_pool, load, of_first_version, store
from skyband.kernels.records import CHANGE, NEVER, OBJECT
from skyband.kernels.routing import empty_columns, unzip
from skyband.query.tuning import Tuning
from skyband.tables.columns import grown

Records = NDArray[Any]
PLACE = np.dtype([("pool", "i4"), ("chunk", "i4"), ("lane", "i4")])  # of a slot; pool -1: it is free


class Slots:
    """Standing queries that come and go, over one stream."""

    name = "BLOCK"

    def __init__(
        self,
        specs: tuple[Spec, ...],
        tuning: Tuning,
        *,
        timed: bool,
        net: bool,
        shape: Shape,
        columns: SlotColumns | None = None,
        serial: int = 0,
        whole: bool = False,
    ) -> None:
        self.tuning, self.timed, self.net, self.shape = tuning, timed, net, shape
        self.whole = whole  # histories hold whole windows, if these have at most LONGEST arrivals
        self.pools: dict[int, Pool] = {}  # by the class of their windows, and their shift
        self.slots = np.empty(0, PLACE)
        self.count = 0  # slots 0..count are in use or free
        self.free: list[int] = []
        self.held = np.empty(0, CHANGE)  # changes of a batch that goes on
        self.changes = np.empty(1024, CHANGE)  # of a batch, kept for the next: fresh memory is slow
        self.before = -NEVER  # the last instant that was handled
        self.loaded = False  # from a snapshot
        self.stored_by_first = False  # whether a snapshot of version 0.1 is about to be restored
        if columns is not None:
            self.join(columns, serial)

    # --- queries come and go

    def join(self, columns: SlotColumns, serial: int, *, placed: bool = False) -> Ints:
        """Take these queries, which see rows from this serial on; returns their slots. O(1) each, amortised.

        placed: those that are worked on together are neighbours already.
        """
        m = len(columns)
        again = [self.free.pop() for _ in range(min(len(self.free), m))]
        slots = np.concatenate([np.array(again, np.int64), np.arange(self.count, self.count + m - len(again))])
        self.count += m - len(again)
        self.slots = grown(self.slots, self.count)
        for number, here in by_class(columns.length):
            if number not in self.pools:
                self.pools[number] = self.new_pool()
            chunks, lanes = self.pools[number].join(columns.take(here), slots[here], serial, placed=placed)
            to = stretch_of(slots[here])
            self.slots["pool"][to], self.slots["chunk"][to], self.slots["lane"][to] = number, chunks, lanes
        return slots

    def leave(self, slots: Ints) -> None:
        """Let these queries go. Nothing is reported. O(1) each, amortised."""
        places = self.slots[slots]
        for number in np.unique(places["pool"]).tolist():
            mine = places[places["pool"] == number]
            for chunk in np.unique(mine["chunk"]).tolist():
                self.pools[number].leave(chunk, mine["lane"][mine["chunk"] == chunk].astype(np.int64))
            if not self.pools[number].size:
                del self.pools[number]
        self.slots["pool"][slots] = -1
        self.free.extend(slots.tolist())

    def join_from_window(self, columns: SlotColumns, serial: int, now: int) -> tuple[Ints, Changes]:
        """As `join`, for queries that see what is in their windows already; returns what enters their answers too.

        A ValueError if no history holds their windows whole. O(history) each, in a kernel.
        """
        return join_from_window(self, columns, serial, now)

    def holds(self, length: int, now: int) -> bool:
        """Whether a history holds the whole of a window of this length."""
        return donor_of(self, length, now) is not None

    def reject(self, slots: Ints, serial: int) -> None:
        """Let these slots not count the next row, which has this serial: it does not move their count windows on."""
        for slot in slots.tolist() if not self.timed else []:
            move_behind(self, slot, serial)

    def new_pool(self, shift: int = 0) -> Pool:
        """A pool whose history begins now, and whose numbers are so much behind those of the stream."""
        pool = self.empty_pool()
        pool.shift, pool.before = shift, self.before - shift if self.before > -NEVER else -NEVER
        pool.left = pool.before
        return pool

    def empty_pool(self) -> Pool:
        return Pool(self.shape, self.tuning, timed=self.timed, net=self.net, whole=self.whole)

    # --- a batch

    def take(self, arrivals: Arrivals) -> Changes:
        assert arrivals.attributes is not None
        chosen = slice(None) if arrivals.eligible is None else np.flatnonzero(arrivals.eligible)
        columns = [column[chosen] for column in arrivals.attributes]
        data = np.stack(columns) if columns else np.empty((0, len(arrivals.rows[chosen])))
        stamps, now, rows = (a[chosen] for a in (arrivals.stamps, arrivals.now, arrivals.rows))
        last = arrivals.clock if self.timed else int(arrivals.now[-1]) if len(arrivals.now) else self.before
        vectors = None if arrivals.vectors is None else arrivals.vectors.only(chosen)
        stream = Stream(data, stamps, now, arrivals.serial + rows, last, arrivals.serial + arrivals.size, vectors)
        tally, none = np.zeros(2, np.int64), np.empty(0, np.bool_)
        step, joint = np.zeros(1, CHANGE), not self.timed
        if len(rows) and len(self.changes) < self.count:  # the first arrival enters all of them
            self.changes = np.empty(self.count + self.count // 4 + 1024, CHANGE)
        for number in sorted(self.pools):
            pool, first = self.pools[number], int(tally[1])
            report = Report(self.changes, tally, step, none, arrivals.serial, joint, self.net, arrivals.more)
            self.changes = pool.take(stream.behind(pool.shift), report)
            if self.timed and not self.net:
                find_steps(self.changes[first : tally[1]], arrivals.now, arrivals.rows)
            elif not self.net and len(arrivals.rows) and len(self.pools) > 1:
                fill_rows(self.changes[first : tally[1]], arrivals.rows, int(arrivals.now[0]) - pool.shift)
        self.before = max(self.before, last)
        return self._ordered(self.changes[: tally[1]], arrivals, last)

    def _ordered(self, out: Records, arrivals: Arrivals, last: int) -> Changes:
        """By slot, then by step; within a slot they are in order already."""
        if self.net and (arrivals.more or len(self.held)):
            held = np.concatenate([self.held, out])
            out, self.held = (held[:0], held) if arrivals.more else (held, held[:0])
        if self.net:  # all in one step; numbers of slots may be behind those of the stream
            out["instant"] = last - self.slots["pool"][out["visit"]].astype(np.int64) // SHIFTED
            out["row"] = arrivals.rows[-1] if len(arrivals.rows) else -1
        columns, rows, begin = empty_columns(len(out)), arrivals.rows[:0], 0
        if len(self.pools) == 1 and not self.timed and not self.net and len(arrivals.rows):  # as `fill_rows` does
            (pool,) = self.pools.values()
            rows, begin = arrivals.rows, int(arrivals.now[0]) - pool.shift
        unzip(out, self.count, rows, begin, columns)
        alive = self._alive(arrivals) if arrivals.wants_alive else np.zeros(arrivals.size, np.bool_)
        return Changes(columns[0], np.zeros(len(out), np.int64), *columns[1:], alive)

    def _alive(self, arrivals: Arrivals) -> NDArray[np.bool_]:
        """The rows of the batch that may be reported later."""
        alive = np.zeros(arrivals.size, np.bool_)
        whole = False
        for pool in self.pools.values():
            kept = pool.kept_serials
            first = int(np.searchsorted(kept, arrivals.serial))
            alive[kept[first:] - arrivals.serial] = True
            whole |= first > 0 or len(kept) >= len(arrivals.rows)
        if not whole or len(self.pools) > 1:
            self._mark(arrivals.serial, alive)
        return alive

    def _mark(self, first: int, marks: NDArray[np.bool_]) -> None:
        for pool in self.pools.values():
            for chunk in pool.chunks:
                mark_kept(chunk.objects, chunk.in_use, first, marks)

    # --- answers

    def answers(self, slots: Ints, now: int, k: int | None = None, length: int | None = None) -> Answer:
        """The answers of these slots; `group` is the place among them. k, length: no larger ones than its own."""
        kept, sizes, asked = [], np.zeros(len(slots), np.int64), np.empty((len(slots), 2), np.int64)
        since = np.empty(len(slots), np.int64)  # objects with larger stamps are valid
        for i, slot in enumerate(slots.tolist()):
            place = self.slots[slot]
            pool = self.pools[int(place["pool"])]
            chunk, s = pool.chunks[place["chunk"]], int(place["lane"])
            lane = chunk.lanes[s]
            run = pool.run_of(int(place["chunk"]), s)
            asked[i] = lane["k"] if k is None else k, lane["length"] if length is None else length
            since[i] = now - pool.shift - asked[i, 1]
            if asked[i, 1] < lane["length"]:  # of a shorter window the history may have the best
                run = np.concatenate([run, self.in_window(pool, int(place["chunk"]), s, int(since[i]))])
            kept.append(run)
            sizes[i] = len(run)
        records = np.concatenate([*kept, np.empty(0, OBJECT)])
        everything = Spec(NEVER, NEVER)
        ranked = best_of(np.arange(len(slots)), [(records, sizes)], everything, np.zeros(len(slots), np.int64))
        order = np.flatnonzero(ranked.stamp > since[ranked.group])
        group = ranked.group[order]
        rank = np.arange(1, len(order) + 1) - np.searchsorted(group, group)
        order, rank = order[rank <= asked[group, 0]], rank[rank <= asked[group, 0]]
        return Answer(ranked.group[order], rank, ranked.stamp[order], ranked.serial[order], ranked.key[order])

    def in_window(self, pool: Pool, chunk: int, s: int, since: int) -> Records:
        """The history's objects as one lane sees them: all that can be among the best of those newer than `since`."""
        return self.in_history(pool, pool.chunks[chunk], s)

    def in_history(self, pool: Pool, chunk: Any, s: int, birth: int | None = None) -> Records:
        """The history's objects as one lane sees them, from its birth on."""
        begin = int(pool.segments["begin"][0]) if len(pool.segments) else pool.end
        birth = int(chunk.lanes["birth"][s]) if birth is None else birth
        begin += int(np.searchsorted(pool.serials[begin : pool.end], birth))
        here = slice(begin, pool.end)
        keys, inside = pool.keys(chunk, s, here)
        found = np.zeros(pool.end - begin, OBJECT)
        found["key"], found["stamp"], found["serial"] = keys, pool.stamps[here], pool.serials[here]
        return found[inside & ~np.isnan(keys)]

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        slots = np.array([query] if groups is None or len(groups) else [], np.int64)
        found = self.answers(slots, int(now[0]) if len(now) else 0, spec.k, spec.length)
        return Answer(np.zeros(len(found.rank), np.int64), found.rank, found.stamp, found.serial, found.key)

    def taken(self, column: str) -> tuple[Ints, Any]:
        """The slots that are taken, in order of their places, and what they have of a column."""
        chunks = [chunk for pool in self.pools.values() for chunk in pool.chunks] or [self.empty_pool().new_chunk()]
        both = [(chunk, np.flatnonzero(chunk.in_use["k"] > 0)) for chunk in chunks]
        slots = np.concatenate([chunk.lanes["slot"][lanes] for chunk, lanes in both]).astype(np.int64)
        return slots, np.concatenate([getattr(chunk, column)[lanes] for chunk, lanes in both])

    # --- the rest of the contract of an engine

    def shrink(self, slot: int, spec: Spec, now: int) -> Changes:
        """Let a slot ask for a smaller k or window; returns the changes from its old answer to the new one."""
        place = self.slots[slot]
        pool, number = self.pools[int(place["pool"])], int(place["pool"])
        changes = pool.shrink(int(place["chunk"]), int(place["lane"]), spec, now)
        if class_of(np.array([spec.length]))[0] != number:
            pool.shortest = min(pool.shortest, spec.length)
        return self.reported(np.sort(changes, order=["diff"], kind="stable"))

    def reported(self, out: Records) -> Changes:
        """Changes between two batches, by slot."""
        columns = empty_columns(len(out))
        unzip(out, self.count, np.empty(0, np.int64), 0, columns)
        return Changes(columns[0], np.zeros(len(out), np.int64), *columns[1:], np.empty(0, np.bool_))

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        raise NotImplementedError("queries join and leave slots")

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> NDArray[np.bool_]:
        return np.ones(len(arrivals.rows), np.bool_)

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        if groups is not None and not len(groups):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        found = self._kept(np.concatenate([np.empty(0, np.int64), *(one.kept_serials for one in self.pools.values())]))
        return found, np.array([len(found)])

    @property
    def shared_objects(self) -> int:
        """Objects in runs, each once however many slots keep it (pripuzic2015, Figure 12(a))."""
        return len(self._kept(np.empty(0, np.int64)))

    def _kept(self, known: Ints) -> Ints:
        """The serials of these objects and of those in runs, rising."""
        chunks = [chunk for pool in self.pools.values() for chunk in pool.chunks]
        bounds = [bounds_of_serials(chunk.objects, chunk.in_use) for chunk in chunks]
        low = min(int(known.min(initial=NEVER)), *(one for one, _ in bounds), NEVER)
        high = max(int(known.max(initial=-1)) + 1, *(one for _, one in bounds), 0)
        marks = np.zeros(max(0, high - low), np.bool_)
        marks[known - low] = True
        self._mark(low, marks)
        return np.flatnonzero(marks) + (low if len(marks) else 0)

    @property
    def kept(self) -> Ints:
        """Objects that may be kept: at most those of the runs, and of the histories."""
        return np.array([sum(pool.objects + pool.waiting for pool in self.pools.values())])

    @property
    def distinct(self) -> int:
        """About how many objects are kept, each once."""
        return sum(2 * pool.waiting + 1024 for pool in self.pools.values())

    @property
    def work(self) -> Ints:
        """Counted: [keys computed, objects taken, lanes deepened, ranges of cells found]."""
        work: Ints = np.array([np.zeros(4, np.int64), *(pool.work for pool in self.pools.values())]).sum(axis=0)
        return work

    @property
    def buffer(self) -> int:
        return sum(pool.waiting for pool in self.pools.values())

    def size_of(self, query: int) -> int:
        return int(self.lanes_of(np.array([query]))["size"][0])

    def lanes_of(self, slots: Ints) -> Records:
        """The lanes of these slots."""
        found = np.zeros(len(slots), LANE)
        for i, place in enumerate(self.slots[slots]):
            if place["pool"] >= 0:
                found[i] = self.pools[int(place["pool"])].chunks[place["chunk"]].lanes[place["lane"]]
        return found

    @property
    def due(self) -> Ints:
        return np.array([min((pool.due for pool in self.pools.values()), default=NEVER)])

    @property
    def open(self) -> Any:
        return np.array([any(pool.open for pool in self.pools.values())])

    @property
    def nbytes(self) -> int:
        return sum(pool.nbytes for pool in self.pools.values()) + int(self.slots.nbytes)

    def keep_groups(self, groups: Ints) -> None:
        """There is one group; without it nothing is valid."""
        if not len(groups):
            self.reset_groups(np.zeros(1, np.int64))

    def reset_groups(self, groups: Ints) -> None:
        """Every slot begins anew."""
        if len(groups):
            arrays = store(self)
            for name in {"objects", "history", "stamps", "serials", "vectors"} & arrays.keys():
                arrays[name] = arrays[name][:0]
            lanes, pools = arrays["lanes"], arrays["pools"]
            lanes["size"] = lanes["room"] = lanes["open"] = 0
            lanes["depth"], lanes["newest"], lanes["due"], lanes["fresh"] = -np.inf, -NEVER, NEVER, 1
            pools["left"] = pools["before"] = -NEVER
            pools["waiting"] = pools["arrived"] = 0
            self.before = -NEVER
            load(self, arrays)

    # --- snapshots

    def reads(self, layout: Mapping[str, str]) -> bool:
        """Whether arrays with these names can be restored: this version's, or those of a family of version 0.1."""
        self.stored_by_first = layout.keys() == FIRST_VERSION.keys()
        return self.stored_by_first or layout.keys() == store(self, empty=True).keys()

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not len(self.held) and not self.open.any(), "no batch is open"
        arrays = FIRST_VERSION if self.stored_by_first else store(self, empty=not len(groups))
        return {name: (array, np.full(len(groups), len(array))) for name, array in arrays.items()}

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        first, self.stored_by_first = self.stored_by_first, False
        if len(state["groups" if first else "facts"]):
            load(self, of_first_version(self, state) if first else state)
            self.loaded = True

    def more_arrays(self, pools: list[Any]) -> dict[str, Records]:
        """Arrays of a snapshot besides those that all have."""
        return {}

    def vectors_of(self, state: Mapping[str, Records], here: slice) -> Vectors | None:
        """The vectors of some arrivals of a snapshot, where they have some."""
        return None

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        for pool in self.pools.values():
            check_pool(pool, None if now is None else int(now[0]) - pool.shift, deep=deep)
