"""The engine of pairs: one window and one set of kept pairs for each group, which serve all its queries.

The window holds the objects that can be members, in order of age. The kept pairs are shen2012's K-skyband for the
largest k and the longest window, from which every k and every window is answered (Theorem 1). SCASE, TA and BASIC
differ in how they find the new pairs that are not dominated; NAIVE keeps other pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import numpy as np

from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Floats, Ints, Spec
from skyband.engines.group_states import GroupStates
from skyband.engines.pairs.accounts import Accounts
from skyband.engines.pairs.changes import answer_of, changes_of, difference, in_order
from skyband.engines.pairs.given_scores import Given, run_given
from skyband.engines.pairs.group import Group, Records, empty_scratch
from skyband.engines.pairs.invariants import check_pairs, check_skyband
from skyband.engines.pairs.kernels.answers import empty_lists, read_pairs
from skyband.engines.pairs.kernels.programs import Program
from skyband.engines.pairs.kernels.records import (
    BAND_FULL,
    BLOCK_FULL,
    CHANGE,
    DONE,
    END,
    HEAD,
    LAST_ROW,
    NEED,
    NEVER,
    OUT_FULL,
    PAIR,
    PENDING,
    READS,
    REPORTED,
    SAVED,
    SCASE,
    SCORED,
    SCRATCH_FULL,
    SIZE,
    SUM,
    TA,
    WINDOW_FULL,
    Rules,
    Scoring,
    Stream,
)
from skyband.engines.pairs.kernels.reports import close_batch, find_answers
from skyband.engines.pairs.kernels.steps import flush_pairs, prune_pairs, take_pairs
from skyband.engines.pairs.programs import no_program, note_nulls
from skyband.engines.pairs.shared_window import keep_apart
from skyband.engines.pairs.snapshot import restore, stored
from skyband.kernels.routing import stable_order
from skyband.query.tuning import Tuning


class Pairs(Accounts):
    """Queries with one scoring of pairs, over the windows of all groups."""

    name = ""
    algorithm = SCASE
    least_block = 512  # TA: the fewest objects of a block, which has sorted lists of its own
    patience = 50  # answers read from a band before it gets lists to read from, which cost as much

    def __init__(
        self,
        specs: tuple[Spec, ...],
        tuning: Tuning,
        *,
        timed: bool,
        net: bool,
        scoring: Scoring,
        on: Program | None = None,
        width: int | None = None,
        given: Given | None = None,
    ) -> None:
        """width: rows of data, if more than attributes; given: how NumPy scores pairs, where no kernel does."""
        self.timed, self.net, self.scoring, self.given = timed, net, scoring, given
        self.on = no_program() if on is None else on
        self.width = len(scoring.local) if width is None else width
        self.clock = -NEVER
        self.groups = GroupStates(self.empty_group)
        self._scored = 0  # in groups that are gone
        self.scoreless: Ints = np.zeros(len(specs), np.int64)  # pairs without a score, of the last batch
        self.out = np.empty(256, CHANGE)
        self.visited: list[int] = []  # the groups of the last batch
        self._set_queries(specs)

    def _set_queries(self, specs: tuple[Spec, ...]) -> None:
        self.specs = specs
        lengths = np.array([spec.length for spec in specs], np.int64)
        self.order = np.argsort(lengths, kind="stable")  # of the views: the shortest window first
        self.k = np.array([spec.k for spec in specs], np.int64)[self.order]
        self.length = lengths[self.order]
        longest = int(self.length[-1])
        most = 1 << 40 if self.timed else max(1, longest**2)  # the staircase has no step before there are K pairs
        block = int(np.clip(0 if self.timed else longest // 32, self.least_block, 8 * self.least_block))
        K = min(int(self.k.max()), most)
        self.rules = Rules(self.scoring, self.on, self.algorithm, K, block, self.timed, self.net)
        self.scratch = empty_scratch(len(specs), len(self.scoring.local), self.width)
        self.lists = empty_lists(K)
        self.listed: Group | None = None  # the group whose pairs these lists have

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)  # any object may be a member of the best pair

    def copy(self) -> Pairs:
        """An independent copy; the scoring function is shared."""
        given, self.given = self.given, None
        try:
            twin = deepcopy(self)
        finally:
            self.given = given
        twin.given = given
        return twin

    def empty_group(self) -> Group:
        scoring = self.scoring
        distances = scoring.form == SUM and not len(scoring.weights) and not scoring.local.any()
        lists, near = self.algorithm == TA, distances and self.scoring.sign < 0
        rough = distances and self.algorithm in (SCASE, TA)
        d = len(self.scoring.local)
        return Group(self.width, d, self.rules.K, self.k, self.length, lists=lists, near=near, rough=rough)

    def note(self, g: int, group: Group) -> None:
        """Note how many objects a group has and when it must be visited: also when the last of them expires."""
        live, due = group.live, NEVER
        size = live.stop - live.start
        if self.timed and size:
            due = min(group.due, int(group.window.stamps[live.stop - 1] + self.length[-1]))
        if self.groups.note(g, size, due, is_open=group.open, leaves=self.timed):
            self._scored += int(group.facts[SCORED])
            self.listed = None if self.listed is group else self.listed

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        self.groups.grow(arrivals.total)
        self.clock = max(self.clock, arrivals.clock)
        self.scoreless = np.zeros(len(self.specs), np.int64)
        data = np.zeros((0, len(arrivals.rows)))
        if self.given is None:
            assert arrivals.attributes is not None
            if self.width:  # a score may read no column
                data = np.stack(arrivals.attributes) if len(arrivals.rows) else np.zeros((self.width, 0))
            note_nulls((self.scoring.program, self.on), data)
        one = arrivals.total == 1
        order = np.arange(len(arrivals.rows)) if one else stable_order(arrivals.groups, arrivals.total)
        codes = arrivals.groups[order]
        visits = self.groups.visits(codes, arrivals.clock, timed=self.timed, closing=not arrivals.more)
        self.visited = [g for g, _, _ in visits]
        pieces: list[Records] = []
        alive = np.zeros(arrivals.size, np.bool_)
        for g, begin, end in visits:
            group = self.groups[g]
            changes = self._visit(group, arrivals, data, order[begin:end])
            pieces.append(changes if len(visits) == 1 else changes.copy())
            if arrivals.wants_alive:
                serials = group.window.serials[group.live]
                alive[serials[serials >= arrivals.serial] - arrivals.serial] = True
            self.note(g, group)
        return in_order(self, pieces, self.visited, arrivals, alive)

    def _visit(self, group: Group, arrivals: Arrivals, data: Floats, mine: Ints) -> Records:
        """Take one group's arrivals of a batch; return its changes by step and query, valid until the next visit."""
        group.facts[REPORTED], group.facts[LAST_ROW] = 0, -1
        if self.algorithm == TA:
            group.sort_blocks(self.scoring.limit)
        group.open = group.open or self.net
        last = arrivals.clock if self.timed else int(arrivals.now[mine[-1]]) if len(mine) else -NEVER
        stream = Stream(
            stamps=arrivals.stamps[mine],
            now=arrivals.now[mine],
            rows=arrivals.rows[mine],
            eligible=np.empty(0, np.bool_) if arrivals.eligible is None else arrivals.eligible[mine],
            values=np.ascontiguousarray(data[:, mine]),
            given=np.empty(0),
            begins=np.empty(0, np.int64),
            unsafe=False,
            joined=np.empty(0, np.bool_),
            serial=arrivals.serial,
            scored=np.empty(0, np.bool_) if arrivals.scored is None else arrivals.scored[mine],
        )
        if self.given is None:
            keep_apart(group, stream)
            self._run(group, stream, last)
        else:
            run_given(self, group, stream, last, arrivals.columns, mine)
        self._drop_expired(group, last)
        group.now = max(group.now, last)
        self.scoreless[self.order] += np.cumsum(group.views.scoreless[:-1])
        group.views.scoreless[:] = 0
        if self.net and not arrivals.more:
            self._close(group, last, int(stream.rows[-1]) if len(mine) else -1)
        return self.out[: group.facts[REPORTED]]

    def _run(self, group: Group, stream: Stream, last: int) -> None:
        begin, why = 0, WINDOW_FULL
        while why != DONE:
            begin, why = take_pairs(group.state, self.rules, self.scratch, stream, begin, last, self.out)
            self._grow(group, why)

    def _grow(self, group: Group, full: int) -> None:
        """Grow the array at which a kernel stopped."""
        need = int(group.facts[NEED])
        if full == WINDOW_FULL:
            group.grow_window(1)
        elif full == BAND_FULL:
            group.grow_band(need)
        elif full == BLOCK_FULL:
            group.open_block(self.scoring.limit)
        elif full == SCRATCH_FULL:
            self._grow_scratch(group)
        elif full == OUT_FULL:
            self._grow_out(int(group.facts[REPORTED]), need)
            if self.net:
                group.grow_saved(int(group.facts[SAVED]) + need)

    def _grow_scratch(self, group: Group) -> None:
        """Make sure that the candidates of an arrival and all pending pairs fit."""
        need = int(group.facts[END] - group.facts[HEAD] + group.facts[PENDING] + 1)
        if need > len(self.scratch.other):
            other, slot = np.empty(2 * need, np.int64), np.empty(2 * need, np.int32)
            key, best = np.empty(2 * need), np.empty(2 * need)
            self.scratch = self.scratch._replace(other=other, key=key, slot=slot, best=best)

    def _grow_out(self, reported: int, need: int) -> None:
        if reported + need > len(self.out):
            larger = np.empty(max(2 * len(self.out), reported + need), CHANGE)
            larger[:reported] = self.out[:reported]
            self.out = larger
        if need > len(self.scratch.before):
            before, after = np.empty((2, 2 * need), np.int32)
            self.scratch = self.scratch._replace(before=before, after=after)

    def _drop_expired(self, group: Group, now: int) -> None:
        """Move the head of the window past objects that have expired."""
        if now > -NEVER:
            stamps = group.window.stamps[group.live]
            group.facts[HEAD] += np.searchsorted(stamps, now - self.length[-1], "right")

    def let_go(self, group: Group, now: int) -> None:
        """Let what has expired go from a group that was not visited since, as no answer changes."""
        self._drop_expired(group, now)

    def _close(self, group: Group, last: int, row: int) -> None:
        """End a batch of net changes."""
        touched = np.flatnonzero(group.views.touched)
        group.open = False
        if not len(touched):
            return
        self._flush(group)
        need = group.views.saved_size[touched].sum() + np.minimum(self.k[touched], group.facts[SIZE]).sum()
        self._grow_out(int(group.facts[REPORTED]), int(need) + 1)
        close_batch(group.state, self.scratch, last if last > -NEVER else group.now, row, self.out)

    def _flush(self, group: Group) -> None:
        """Put the pending pairs into the band."""
        if group.facts[PENDING]:
            self._grow_scratch(group)
            flush_pairs(group.facts, group.band, self.scratch)

    def _prune(self, group: Group, now: int) -> None:
        prune_pairs(group.facts, group.band, self.rules.K, now - int(self.length[-1]), self.algorithm)

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.groups)) if groups is None else groups[groups < len(self.groups)]
        chosen = chosen[self.groups.live[chosen] > 0]
        found = [self._read(self.groups[g], spec, int(now[g])) for g in chosen.tolist()]
        return answer_of(chosen, found)

    def _read(self, group: Group, spec: Spec, now: int) -> Records:
        """The pairs of an answer, best first."""
        self._flush(group)
        out = np.empty(min(spec.k, int(group.facts[SIZE])), np.int32)
        if not len(out):
            return np.empty(0, PAIR)
        if self.listed is not group and group.facts[READS] >= self.patience:
            if self.listed is not None:
                self.listed.facts[READS] = 0
            self.listed, group.facts[READS] = group, self.patience
        longest, low = int(self.length[-1]), now - spec.length
        size = read_pairs(group.facts, group.band, self.lists, longest, self.patience, len(out), low, out)
        best: Records = group.band.pairs[out[:size]]
        return best

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self.groups.grow(len(now))
        there = self.groups.there()
        before = [
            [self._read(group, self.specs[query], int(now[g]))[: None if query >= 0 else 0] for query in predecessors]
            for g, group in there
        ]
        old = np.argsort(self.order)[predecessors]  # views
        self._set_queries(specs)
        self._grow_out(0, min(self.rules.K, max((int(group.facts[SIZE]) for _, group in there), default=0)))
        pieces: list[Records] = []
        for (g, group), answers in zip(there, before, strict=True):
            bits = group.band.bits
            group.set_queries(self.rules.K, self.k, self.length)
            for view, query in enumerate(self.order.tolist()):
                if predecessors[query] < 0:
                    continue
                word, bit = divmod(int(old[query]), 64)
                reported = (bits[:, word] >> np.uint64(bit)) & np.uint64(1)
                group.band.bits[:, view >> 6] |= reported << np.uint64(view & 63)
            self._drop_expired(group, int(now[g]))
            self._prune(group, int(now[g]))
            find_answers(group.facts, group.band, group.views, self.scratch.after, int(now[g]))
            for query, (view, was) in enumerate(zip(np.argsort(self.order), answers, strict=True)):
                pieces.append(difference(self, group, was, query, int(view), g, int(now[g])))
            self.note(g, group)
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        out = out[np.argsort(out["query"], kind="stable")]
        return changes_of(out, out["query"].astype(np.int64), out["instant"], np.empty(0, np.bool_))

    # --- state

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        return stored(self, groups)

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        restore(self, state, trusted=trusted)

    def keep_groups(self, groups: Ints) -> None:
        self.groups.keep(groups)

    def reset_groups(self, groups: Ints) -> None:
        self.groups.reset(groups)
        self.listed = None

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        check_pairs(self, deep=deep, now=now)

    def _check_all(self, group: Group, pairs: Records) -> None:
        check_skyband(self, group, pairs)
