"""REFILL: the best pairs of live objects, over UntilDeleted(), where an object may leave at any time.

No pair is dominated for good: the pairs that outrank it may be deleted first. So every live object is kept, and a view
of the best pairs that is longer than k, as Yi et al. keep materialized top-k views (ICDE 2003): all pairs that rank no
lower than a floor. An arrival is scored with all live objects, and what ranks above the floor joins the view. A
deletion takes its pairs out of the view. When fewer than k are left, all pairs are scored again and it is filled up.

Cost: O(n) scores for an arrival, O(M) for a deletion, M = 4k + 256; O(n²) scores to fill the view, once in some n/2
deletions when objects are deleted in any order, and at every deletion at worst: of an object that is in all best pairs.
Steps are taken one by one, some 100 us each besides the scores. Pairs that were reported are remembered while both
members are there, since they may come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import numpy as np

from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Floats, Ints, Spec
from skyband.engines.group_states import GroupStates
from skyband.engines.pairs.changes import answer_of, changes_of, in_order
from skyband.engines.pairs.given_scores import PAIRS_AT_ONCE, Given
from skyband.engines.pairs.group import Columns, Records, empty_scratch, gathered, ids_of
from skyband.engines.pairs.kernels.live import find_best, join_older, score_older
from skyband.engines.pairs.kernels.programs import Program
from skyband.engines.pairs.kernels.records import CHANGE, SCASE, Rules, Scoring
from skyband.engines.pairs.live import Live
from skyband.engines.pairs.live_snapshot import check_live, restore, stored
from skyband.engines.pairs.programs import note_nulls
from skyband.kernels.records import NEVER
from skyband.kernels.routing import stable_order
from skyband.query.tuning import Tuning


class REFILL:
    """Queries with one scoring of pairs, over the live objects of all groups."""

    name = "REFILL"
    timed = False
    slack = 256  # pairs of a view beyond four times k

    def __init__(
        self,
        specs: tuple[Spec, ...],
        tuning: Tuning,
        *,
        timed: bool,
        net: bool,
        scoring: Scoring,
        on: Program,
        width: int,
        given: Given | None = None,
    ) -> None:
        self.net, self.scoring, self.on, self.width, self.given = net, scoring, on, width, given
        self.groups = GroupStates(lambda: Live(self.width))
        self.holders: Ints = np.full(16, -1)  # by code of an id: the serial of its object; -1: none
        self.unknown: list[int] = []  # rows that were to delete an unknown id
        self.scoreless: Ints = np.zeros(len(specs), np.int64)
        self.work = {"scored": 0, "refilled": 0}
        self._set_queries(specs)

    def _set_queries(self, specs: tuple[Spec, ...]) -> None:
        self.specs, self.order = specs, np.arange(len(specs))
        self.K = max(spec.k for spec in specs)
        self.most = 4 * self.K + self.slack
        self.rules = Rules(self.scoring, self.on, SCASE, self.K, 0, False, self.net)
        self.scratch = empty_scratch(len(specs), len(self.scoring.local), self.width)

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> Bools:
        return np.ones(len(arrivals.rows), np.bool_)

    def copy(self) -> REFILL:
        """An independent copy; the scoring function is shared."""
        given, self.given = self.given, None
        try:
            twin = deepcopy(self)
        finally:
            self.given = given
        twin.given = given
        twin.groups.empty = lambda: Live(twin.width)
        return twin

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        assert arrivals.names is not None
        self.groups.grow(arrivals.total)
        self.unknown, self.scoreless = [], np.zeros(len(self.specs), np.int64)
        self._know(arrivals.names)
        data = np.zeros((0, len(arrivals.rows)))
        if self.given is None and len(arrivals.rows):
            assert arrivals.attributes is not None
            data = np.stack(arrivals.attributes) if self.width else data
            note_nulls((self.scoring.program, self.on), data)
        order = stable_order(arrivals.groups, arrivals.total)
        visits = self.groups.visits(arrivals.groups[order], NEVER, timed=False, closing=not arrivals.more)
        pieces, alive = [], np.zeros(arrivals.size, np.bool_)
        for g, begin, end in visits:
            group, mine = self.groups[g], order[begin:end]
            if self.net and group.saved is None:
                group.saved = group.pairs
            found = [self._step(group, arrivals, data, int(i)) for i in mine]
            if self.net:
                found = []
                if not arrivals.more:
                    last = int(mine[-1]) if len(mine) else -1
                    row, instant = (int(arrivals.rows[last]), int(arrivals.now[last])) if last >= 0 else (-1, -1)
                    assert group.saved is not None
                    found, group.saved = [self._report(group, group.saved, row, instant)], None
            pieces.append(np.concatenate([np.empty(0, CHANGE), *found]))
            serials = group.serials[: group.size]
            alive[serials[serials >= arrivals.serial] - arrivals.serial] = True
            self._note(g, group)
        return in_order(self, pieces, [g for g, _, _ in visits], arrivals, alive)  # type: ignore[arg-type]

    def _note(self, g: int, group: Live) -> None:
        self.groups.note(g, group.size, NEVER, is_open=group.saved is not None, leaves=True)

    def _know(self, codes: Ints) -> None:
        more = 1 + int(codes.max(initial=-1)) - len(self.holders)
        if more > 0:
            self.holders = np.concatenate([self.holders, np.full(more + len(self.holders), -1)])

    def _step(self, group: Live, arrivals: Arrivals, data: Floats, i: int) -> Records:
        """Take one row: it deletes an id, or brings or replaces its object. Returns the changes."""
        assert arrivals.names is not None
        code, row, before = int(arrivals.names[i]), int(arrivals.rows[i]), group.pairs
        held = int(self.holders[code])
        if arrivals.deletes is not None and arrivals.deletes[i]:
            if held < 0:
                self.unknown.append(row)
                return np.empty(0, CHANGE)
            group.remove(held)
            self.holders[code] = -1
        else:
            if held >= 0:
                group.remove(held)
            serial = arrivals.serial + row
            self.holders[code] = serial
            eligible = arrivals.eligible is None or bool(arrivals.eligible[i])
            columns = {name: column[i : i + 1] for name, column in (arrivals.columns or {}).items()}
            group.add(int(arrivals.stamps[i]), serial, eligible, data[:, i], columns)
            if eligible:
                self._pair(group)
        self._fill(group)
        return np.empty(0, CHANGE) if self.net else self._report(group, before, row, int(arrivals.now[i]))

    def _pair(self, group: Live) -> None:
        """Score the newest object with all others; what ranks above the floor joins the view."""
        at, others = group.size - 1, group.others()
        keys, joined = self._keys(group, others, np.full(len(others), at))
        self.work["scored"] += len(others)
        missing = others[np.isnan(keys) & joined]
        better = np.flatnonzero(joined & group.above_floor(keys, others, int(group.serials[at])))
        if self.given is None and len(self.on.code):
            missing, chosen = self._join(group, missing, at), self._join(group, others[better], at)
            better = better[np.isin(others[better], chosen)]
        self.scoreless += len(missing)
        group.insert(group.records(keys[better], others[better], at))
        if len(group.pairs) > 2 * self.most:
            group.cut(self.most)

    def _join(self, group: Live, others: Ints, at: int) -> Ints:
        chosen = others.copy()
        return chosen[: join_older(self.rules, group.data, at, self.scratch, chosen)]

    def _keys(self, group: Live, older: Ints, newer: Ints) -> tuple[Floats, Bools]:
        """The keys of pairs of objects, and which NumPy says are pairs; a kernel scores one newer object."""
        joined = np.ones(len(older), np.bool_)
        if self.given is None:
            size = group.size - 1
            keys = np.empty(size)
            score_older(self.rules, group.data, size, keys)
            return keys[older], joined
        keys = np.full(len(older), np.nan)
        if not len(older):
            return keys, joined
        one, other = gathered(group.columns, older), gathered(group.columns, newer)
        if self.given.joins is not None:
            joined = self.given.joins(one, other)
            one, other = gathered(one, joined), gathered(other, joined)
        if joined.any():
            keys[joined] = self.scoring.sign * self.given.scores(one, other)
        return keys, joined

    # --- the view is filled up

    def _fill(self, group: Live) -> None:
        if group.floor is None or len(group.pairs) >= self.K:
            return
        self.work["refilled"] += 1
        live = np.flatnonzero(group.eligible[: group.size])
        self.work["scored"] += len(live) * (len(live) - 1) // 2
        group.pairs, group.floor = np.empty(0, group.pairs.dtype), None
        find = self._found_by_numpy if self.given is not None else self._found_by_kernel
        begin = 0
        while begin < len(live):
            bar = -np.inf if group.floor is None else group.floor[0]
            begin, fresh = find(group, live, begin, bar)
            group.insert(fresh)
            group.cut(self.most)

    def _found_by_kernel(self, group: Live, live: Ints, begin: int, bar: float) -> tuple[int, Records]:
        room = len(live) + 4 * self.most
        if len(self.scratch.other) < len(live):
            self.scratch = self.scratch._replace(other=np.empty(2 * len(live), np.int64))
        keys, members = np.empty(room), np.empty((2, room), np.int64)
        begin, found = find_best(self.rules, group.data, live, self.scratch, bar, begin, keys, members)
        return begin, group.records(keys[:found], members[0, :found], members[1, :found])

    def _found_by_numpy(self, group: Live, live: Ints, begin: int, bar: float) -> tuple[int, Records]:
        end = begin + 1
        while end < len(live) and (end - begin) * end < PAIRS_AT_ONCE:
            end += 1
        counts = np.arange(begin, end)
        newer = np.repeat(live[begin:end], counts)
        older = live[np.concatenate([np.arange(many) for many in counts])]
        keys, joined = self._keys(group, older, newer)
        good = joined & (keys >= bar)
        return end, group.records(keys[good], older[good], newer[good])

    # --- changes

    def _report(self, group: Live, before: Records, row: int, instant: int) -> Records:
        """The changes from the best pairs before a step to the present ones, leaving first."""
        after = group.pairs
        if before is after:
            return np.empty(0, CHANGE)
        pieces: list[Records] = []
        for query, spec in enumerate(self.specs):
            pieces += self._difference(group, before[: spec.k], after[: spec.k], query)
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        out["row"], out["instant"] = row, instant
        return out

    def _difference(self, group: Live, was: Records, now: Records, query: int) -> list[Records]:
        one, other = ids_of(was), ids_of(now)
        if len(one) == len(other) and (one == other).all():
            return []
        found = []
        for diff, pairs in ((-1, was[~np.isin(one, other)]), (1, now[~np.isin(other, one)])):
            out = np.zeros(len(pairs), CHANGE)
            for name in ("key", "old", "older", "new", "newer"):
                out[name] = pairs[name]
            out["query"], out["diff"] = query, diff
            for i, pair in enumerate(pairs) if diff > 0 else ():
                out["first"][i] = not group.is_shown(pair, query)
                group.show(int(pair["older"]), int(pair["newer"]), 1 << query)
            found.append(out)
        return found

    def delete(self, codes: Ints, owners: Ints, steps: Ints) -> tuple[Changes, Ints]:
        """Delete objects by the codes of their ids, with their groups and the numbers of their steps.

        Returns the changes, and the steps in which something was deleted.
        """
        pieces, groups, deleted = [], [], []
        before: dict[int, Records] = {}
        for i in np.argsort(steps, kind="stable").tolist():
            code, g, step = int(codes[i]), int(owners[i]), int(steps[i])
            if code >= len(self.holders) or self.holders[code] < 0:
                continue
            group = self.groups[g]
            was = before.setdefault(g, group.pairs) if self.net else group.pairs
            group.remove(int(self.holders[code]))
            self.holders[code] = -1
            self._fill(group)
            deleted.append(step)
            if not self.net:
                pieces.append(self._report(group, was, step, 0))
                groups.append(g)
        for g, was in before.items():
            pieces.append(self._report(self.groups[g], was, 0, 0))
            groups.append(g)
        for g in {*groups, *before}:
            self._note(g, self.groups[g])
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        which = np.repeat(np.array(groups, np.int64), [len(piece) for piece in pieces])
        order = np.lexsort((out["row"], out["query"]))
        changes = changes_of(out[order], out["query"][order].astype(np.int64), which[order], np.empty(0, np.bool_))
        return changes, np.array(deleted, np.int64)

    def set_ids(self, codes: Ints, sizes: Ints, total: int) -> None:
        """Set the codes of the objects' ids, group by group."""
        self.holders = np.full(max(16, total), -1)
        self.holders[codes] = self.serials()[0]

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.groups)) if groups is None else groups[groups < len(self.groups)]
        chosen = chosen[self.groups.live[chosen] > 0]
        return answer_of(chosen, [self.groups[g].pairs[: spec.k] for g in chosen.tolist()])

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self.groups.grow(len(now))
        before = [self.specs[was].k if was >= 0 else 0 for was in predecessors.tolist()]
        self._set_queries(specs)
        pieces, groups = [], []
        for g, group in self.groups.there():
            for older, known in group.shown.items():
                group.shown[older] = {other: _turned(bits, predecessors) for other, bits in known.items()}
            for query, k in enumerate(before):
                found = self._difference(group, group.pairs[:k], group.pairs[: specs[query].k], query)
                pieces += found
                groups += [g] * len(found)
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        which = np.repeat(np.array(groups, np.int64), [len(piece) for piece in pieces])
        order = np.argsort(out["query"], kind="stable")
        out["row"] = -1
        return changes_of(out[order], out["query"][order].astype(np.int64), which[order], np.empty(0, np.bool_))

    # --- state

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = self.groups.read(np.arange(len(self.groups)) if groups is None else groups)
        kept = [group.serials[: group.size] for group in chosen]
        return np.concatenate([np.empty(0, np.int64), *kept]), np.array([len(one) for one in kept], np.int64)

    @property
    def kept(self) -> Ints:
        return self.groups.live

    @property
    def pairs(self) -> int:
        """The number of pairs in the views, of all groups."""
        return sum(len(group.pairs) for _, group in self.groups.there())

    @property
    def buffer(self) -> int:
        return int(self.kept.sum())

    @property
    def held(self) -> Records:
        """Members of pairs that may still be reported at the end of a batch of net changes."""
        saved = [self.groups[g].saved for g in sorted(self.groups.open)]
        members = [one[name] for one in saved if one is not None for name in ("older", "newer")]
        held = np.empty(sum(map(len, members)), [("serial", "i8")])
        held["serial"] = np.concatenate([np.empty(0, np.int64), *members])
        return held

    def size_of(self, query: int) -> int:
        return self.buffer

    @property
    def due(self) -> Ints:
        return self.groups.due

    @property
    def nbytes(self) -> int:
        return sum((group.nbytes for _, group in self.groups.there()), self.groups.nbytes + int(self.holders.nbytes))

    def set_columns(self, serials: Ints, columns: Columns) -> None:
        """Set what the scoring reads of these objects, by rising serials."""
        for _, group in self.groups.there():
            places = np.searchsorted(serials, group.serials[: group.size])
            room = len(group.stamps) - group.size
            group.columns = {
                name: np.concatenate([one[places], np.empty(room, one.dtype)]) for name, one in columns.items()
            }

    def set_rows(self, serials: Ints, rows: Mapping[int, Floats]) -> None:
        """Set these rows of the data of these objects, by rising serials."""
        for _, group in self.groups.there():
            places = np.searchsorted(serials, group.serials[: group.size])
            for row, values in rows.items():
                group.data[row, : group.size] = values[places]

    def values_in(self, rows: list[int]) -> Floats:
        """The values in these rows of the data of all objects."""
        found = [group.data[rows, : group.size].ravel() for _, group in self.groups.there()]
        return np.concatenate([np.empty(0), *found])

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        return stored(self.groups.read(groups), len(self.specs))

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        groups = restore(state, self.width, len(self.specs), trusted=trusted)
        self.groups = GroupStates(lambda: Live(self.width), groups)
        for g, group in enumerate(groups):
            self._note(g, group)
            note_nulls((self.scoring.program, self.on), np.ascontiguousarray(group.data[:, : group.size]))

    def keep_groups(self, groups: Ints) -> None:
        self.groups.keep(groups)

    def reset_groups(self, groups: Ints) -> None:
        self.groups.reset(groups)

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        for _, group in self.groups.there():
            check_live(self, group, deep=deep)


def _turned(bits: int, predecessors: Ints) -> int:
    """The bits of queries that go on from these."""
    return sum(1 << query for query, was in enumerate(predecessors.tolist()) if was >= 0 and bits >> was & 1)
