"""ADAPTIVE, the hybrid that pripuzic2015 leaves to future work (end of section 4.1.3): PA in random order, else BLOCK.

Both are fed. Every n/8 arrivals a test checks whether scores still come in random order: it compares 256 to 511 keys of
the newest block (all of a smaller one) with those of the seven blocks before it (Mann-Whitney: |z| > 4 fails). PA
answers once two windows have passed the test; from the block that fails it BLOCK answers, exactly. Where their answers
differ at such a moment, the difference is reported there.

Why it loses no more than PA's bound: PA answers only when the 2n arrivals up to the last test came in random order,
n that are in the window and the n before them, among which they were ranked when they arrived. The block after it may
be in any order, but a block is n/8 arrivals: PA's k + limit objects are the best of the window, about an eighth of them
expires, and there are k left to answer if limit >= k/7, with no arrival missed that ranks above them. A change late in
a block is found a block later: then it takes limit >= k/3.

Power: a shift of the newest block by d standard deviations gives z of about 14·d (256 against 7·256), so half a
deviation is found with probability 0.99 or more, a third with 0.8; a false alarm comes once in 16,000 blocks, and then
BLOCK answers for a while. A change that leaves ranks alone, or comes slower than a third of a deviation in a window, is
mostly not found.
A window of fewer than 512 is answered by BLOCK throughout: the test needs 64 keys of a block.

Keeps both runs. Cost: both together, so ADAPTIVE saves nothing: it is there for completeness, and to show what the
test finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Floats, Ints, Spec
from skyband.engines.invariants import FAR, require, within
from skyband.engines.topk.base import Records, SkybandEngine
from skyband.engines.topk.block import BLOCK
from skyband.engines.topk.pa import PA
from skyband.kernels.records import CHANGE
from skyband.query.tuning import Tuning

SAMPLE = 256  # keys of a block
FEWEST = 64
BLOCKS = 8  # of a window
ALARM = 4.0


class ADAPTIVE:
    """PA and BLOCK side by side over one group, and a test that decides which of them answers."""

    name = "ADAPTIVE"
    needed = PA.needed

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool) -> None:
        assert not timed, "the registry refuses time windows"
        self.net = net
        self.engines: tuple[SkybandEngine, SkybandEngine] = (
            BLOCK(specs, tuning, timed=False, net=False),
            PA(specs, tuning, timed=False, net=False),
        )
        self.block = max(1, specs[0].length // BLOCKS)
        self.queries = len(specs)
        self.held = np.empty(0, CHANGE)
        self.before: list[Answer] = []  # net: the answers when an open batch began
        # [which engine answers (1: PA), blocks in a row that passed the test, the number of the last arrival]
        self.state = np.array([0, 0, -1])
        self.samples = np.empty((0, 2))  # block and key, of the last blocks
        self.shown = np.empty((0, 2), np.int64)  # query and serial of the objects that have been reported

    @property
    def active(self) -> SkybandEngine:
        return self.engines[int(self.state[0])]

    def take(self, arrivals: Arrivals) -> Changes:
        if self.net and not self.before:
            self.before = self._answers()
        pieces = []
        begin, size = 0, len(arrivals.rows)
        while begin < size:
            number = int(arrivals.now[begin])
            if number // self.block != int(self.state[2]) // self.block and self.state[2] >= 0:
                pieces.append(self._end_block(int(arrivals.rows[begin]), number))
            end = begin + int(np.searchsorted(arrivals.now[begin:], (number // self.block + 1) * self.block))
            part = replace(arrivals.only(slice(begin, end)), more=False)
            pieces.append([engine.take(part) for engine in self.engines][int(self.state[0])])
            self._sample(part)
            self.state[2] = arrivals.now[end - 1]
            begin = end
        kept, alive = self.serials()[0], np.zeros(arrivals.size, np.bool_)
        alive[kept[kept >= arrivals.serial] - arrivals.serial] = True
        if self.net:
            if arrivals.more:
                return _joined([], alive)
            row = int(arrivals.rows[-1]) if size else -1
            pieces = [_difference(self.before, self._answers(), row, int(self.state[2]))]
            self.before = []
        return self._first_times(_joined(pieces, alive), kept)

    def _first_times(self, changes: Changes, kept: Ints) -> Changes:
        """Mark the objects that enter for the first time, whichever engine reported them before."""
        enters = np.flatnonzero(changes.diff > 0)
        pairs = np.stack([changes.query[enters], changes.serial[enters]], axis=1)
        known, reported = len(self.shown), np.concatenate([self.shown, pairs])
        self.shown, places = np.unique(reported, axis=0, return_index=True)
        first = np.zeros(len(changes.diff), np.bool_)
        first[enters[places[places >= known] - known]] = True
        self.shown = self.shown[np.isin(self.shown[:, 1], kept)]
        return replace(changes, first=first)

    def _sample(self, part: Arrivals) -> None:
        """Sample the keys of the block at equal distances."""
        stride = max(1, self.block // SAMPLE)
        chosen = part.now % stride == 0
        if part.eligible is not None:
            chosen &= part.eligible
        block = part.now[chosen] // self.block
        self.samples = np.concatenate([self.samples, np.stack([block, part.keys[chosen]], axis=1)])

    def _end_block(self, row: int, number: int) -> Changes:
        """Test a complete block against those before it; returns the difference if another engine answers now."""
        newest = int(self.state[2]) // self.block
        self.samples = self.samples[self.samples[:, 0] > newest - BLOCKS]
        fresh = self.samples[self.samples[:, 0] == newest, 1]
        others = self.samples[self.samples[:, 0] < newest, 1]
        random = len(fresh) >= FEWEST and len(others) >= FEWEST and abs(rank_sum(fresh, others)) <= ALARM
        self.state[1] = self.state[1] + 1 if random else 0
        answers = int(self.state[1] >= 2 * BLOCKS)
        if answers == self.state[0]:
            return _joined([], np.empty(0, np.bool_))
        before = self._answers()
        self.state[0] = answers
        return _difference(before, self._answers(), row, number)

    def _answers(self) -> list[Answer]:
        now = self.state[2:3]
        if now[0] < 0:
            return [_no_answer()] * self.queries
        specs = [Spec(int(one["k"]), int(one["length"])) for one in self.active.queries]
        return [self.active.answer(query, spec, now, None) for query, spec in enumerate(specs)]

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        own = self.active.queries[query]
        engine = self.active if spec.length == own["length"] else self.engines[0]  # PA has only its own window
        return engine.answer(query, spec, now, groups)

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        changes = [engine.refit(specs, predecessors, now) for engine in self.engines]
        self.queries = len(specs)
        return changes[int(self.state[0])]

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        arrays: dict[str, tuple[Records, Ints]] = {}
        for engine in self.engines:
            arrays |= {f"{engine.name} {name}": stored for name, stored in engine.snapshot(groups).items()}
        there = len(groups)
        own = {"state": self.state, "samples": self.samples.reshape(-1), "shown": self.shown.reshape(-1)}
        return arrays | {
            name: (array if there else array[:0], np.full(there, len(array))) for name, array in own.items()
        }

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        for engine in self.engines:
            engine.restore(
                {name[len(engine.name) + 1 :]: array for name, array in state.items() if name.startswith(engine.name)},
                trusted=trusted,
            )
        require(len(state["state"]) in (0, len(self.state)), "the test has its state")
        if len(state["state"]):
            self.state, self.samples = state["state"].copy(), state["samples"].reshape(-1, 2).copy()
            self.shown = state["shown"].reshape(-1, 2).copy()

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        for engine in self.engines:
            engine.check(deep=deep, now=now)
        which, passed, last = self.state.tolist()
        require(which in (0, 1) and 0 <= passed < FAR and -1 <= last < FAR, "the test has its state")
        require(now is None or not len(now) or last == now[0], "the test knows the last arrival")
        require(len(self.engines[0].groups) == len(self.engines[1].groups) <= 1, "both engines have one group")
        require(within(self.samples[:, 0], -1, FAR) and not np.isnan(self.samples).any(), "samples are of blocks")
        require(within(self.shown[:, 0], 0, self.queries - 1), "reported objects are those of queries")

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        both = np.unique(np.concatenate([engine.serials(groups)[0] for engine in self.engines]))
        return both, np.full(len(self.engines[0].serials(groups)[1]), len(both))

    @property
    def kept(self) -> Ints:
        sizes = [engine.kept for engine in self.engines]
        return np.asarray(sizes[0] + sizes[1])

    @property
    def buffer(self) -> int:
        return 0

    def size_of(self, query: int) -> int:
        return sum(engine.size_of(query) for engine in self.engines)

    @property
    def due(self) -> Ints:
        return self.engines[0].due

    @property
    def nbytes(self) -> int:
        return sum(engine.nbytes for engine in self.engines) + int(self.samples.nbytes)


def rank_sum(one: Floats, other: Floats) -> float:
    """Mann-Whitney's z: how far the ranks of the one among both are from what chance gives; ties share their rank."""
    both = np.concatenate([one, other])
    _, places, counts = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    size, total = len(one), len(both)
    ties = float((counts.astype(float) ** 3 - counts).sum()) / (total * (total - 1))
    deviation = np.sqrt(size * len(other) / 12 * (total + 1 - ties))
    return float((ranks[:size].sum() - size * (total + 1) / 2) / deviation) if deviation > 0 else np.inf


def _no_answer() -> Answer:
    none = np.empty(0, np.int64)
    return Answer(none, none, none, none, np.empty(0))


def _difference(before: list[Answer], after: list[Answer], row: int, number: int) -> Changes:
    """The changes that turn the answers before into those after, at this arrival."""
    pieces = []
    for query, (old, new) in enumerate(zip(before, after, strict=True)):
        for diff, of, but in ((-1, old, new), (1, new, old)):
            moved = ~np.isin(of.serial, but.serial)
            size = int(moved.sum())
            pieces.append(
                Changes(
                    query=np.full(size, query),
                    group=np.zeros(size, np.int64),
                    row=np.full(size, row),
                    instant=np.full(size, number),
                    stamp=of.stamp[moved],
                    serial=of.serial[moved],
                    key=of.key[moved],
                    diff=np.full(size, diff, np.int8),
                    first=np.zeros(size, np.bool_),
                    alive=np.empty(0, np.bool_),
                )
            )
    return _joined(pieces, np.empty(0, np.bool_))


def _joined(pieces: list[Changes], alive: Bools) -> Changes:
    """These changes one after another, by query."""
    names = ("query", "group", "row", "instant", "stamp", "serial", "key", "diff", "first")
    empty: dict[str, Any] = {name: np.empty(0, np.int64) for name in names}
    empty |= {"key": np.empty(0), "diff": np.empty(0, np.int8), "first": np.empty(0, np.bool_)}
    columns: dict[str, Any] = {name: np.concatenate([empty[name], *(getattr(piece, name) for piece in pieces)]) for name in names}
    order = np.argsort(columns["query"], kind="stable")
    return Changes(**{name: column[order] for name, column in columns.items()}, alive=alive)
