"""TALLY: exact aggregates of every object, kept up row by row, and the k best of them.

Every valid row is kept until it leaves, with the arguments of the aggregates; over Ever() only the aggregates are. Sums
are exact integers, rounded once (skyband/kernels/sums.py); min and max are the ends of monotone chains
(kernels/chains.py); objects are ranked by lazy heaps (kernels/ranks.py). Queries that differ in k share the aggregates;
each length of a window has its own.

Cost: O(1) for a row when it comes and when it goes, however many rows its object has; O(log objects) where that reaches
the boundary of the answer. Keeps all valid rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines.contract import NEVER, Answer, Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.groups import snapshot
from skyband.engines.groups.invariants import check_view
from skyband.engines.groups.kernels.ranks import CHANGE
from skyband.engines.groups.kernels.state import COUNTED, ENDLESS, KEYED, LIVE, OBJECTS, SESSION, TIMED, UNKNOWN, USED
from skyband.engines.groups.measures import Measures
from skyband.engines.groups.ordered import OrderedRanking
from skyband.engines.groups.ranks import Moves, Ranking, changes_of, taken, unranked, whole
from skyband.engines.groups.view import View, batch_of
from skyband.engines.invariants import require
from skyband.kernels.records import CHANGE as HELD
from skyband.kernels.sessions import find_late, no_sessions
from skyband.query.expressions import Operand
from skyband.query.tuning import Tuning

MODES = {"count": COUNTED, "time": TIMED, "until deleted": KEYED, "ever": ENDLESS, "session": SESSION}
BEGINNING = -(2**62)
_NO = np.empty(0, np.bool_)


class TALLY:
    """Exact aggregates and the k best objects, for queries that differ in k and in the length of their window."""

    name = "TALLY"

    def __init__(
        self,
        specs: tuple[Spec, ...],
        tuning: Tuning,
        *,
        timed: bool,
        net: bool,
        sort: str,
        measures: Measures,
        gap: int = 0,
    ) -> None:
        self.timed, self.net, self.mode, self.measures = timed, net, MODES[sort], measures
        self.gap = gap  # of sessions
        self.sessions = no_sessions(0)
        self.held = np.empty(0, HELD)  # nothing waits: a net batch is compared when it ends
        self.unknown: list[int] = []  # rows that were to delete an unknown id
        self.moves = False  # whether members that stay are reported (0) where they have changed
        self.total = 0  # objects, by the codes that their rows have
        self.groups = 0
        self.clock = BEGINNING
        self.views: list[View] = []
        self._set_specs(specs)

    def _set_specs(self, specs: tuple[Spec, ...]) -> None:
        """Make views and rankings for these queries; views of the same length go on."""
        known = {view.length: view for view in self.views}
        self.views, self.specs, self.rankings = [], specs, []
        for length in sorted({spec.length for spec in specs}):
            view = known.get(length) or self._new_view(length)
            view.rankings = []
            self.views.append(view)
        for spec in specs:
            ranking = self._ranking(spec.k)
            ranking.grow(self.total, self.groups)
            self.view_of(spec.length).rankings.append(ranking)
            self.rankings.append(ranking)

    def _ranking(self, k: int) -> Ranking:
        order = self.measures.order
        return Ranking(k) if order is None else OrderedRanking(k, order)

    def rank_again(self) -> None:
        """Rank all objects by an order from what is kept of them; no batch is open."""
        if self.measures.order is not None:
            self.measures.order.reset()
            for view in self.views:
                view.rank_all()

    def _new_view(self, length: int) -> View:
        view = View(self.mode, length, self.net, self.measures, self.timed, self.gap)
        view.grow(self.total, self.groups)
        return view

    def view_of(self, length: int) -> View:
        """The view of a window of this length."""
        return next(view for view in self.views if view.length == length)

    @property
    def longest(self) -> View:
        """The view that keeps every row of the others."""
        return self.views[-1]

    # --- the stream

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> Bools:
        """Every row can matter: it counts."""
        return np.ones(len(arrivals.rows), np.bool_)

    def grow(self, total: int, groups: int) -> None:
        """Make room for so many objects and groups, and as many again while they grow."""
        if total > self.total or groups > self.groups:
            self.total = self.total if total <= self.total else max(total, 2 * self.total, 16)
            self.groups = max(groups, self.groups)
            if self.gap:
                self.sessions = np.append(self.sessions, no_sessions(self.groups - len(self.sessions)))
            for view in self.views:
                view.grow(self.total, self.groups)

    def late(self, groups: Ints, times: Ints, clocks: Ints, total: int) -> Bools:
        """Which rows are too late for the sessions of their groups. The others are to be taken next."""
        self.grow(0, total)
        late = np.zeros(len(groups), np.bool_)
        find_late(groups, times, clocks, self.sessions, self.gap, late)
        return late

    def take(self, arrivals: Arrivals) -> Changes:
        assert arrivals.objects is not None
        self.grow(int(arrivals.objects.max(initial=-1)) + 1, arrivals.total)
        self.clock = max(self.clock, arrivals.clock) if self.timed else self.clock
        alive = np.zeros(arrivals.size, np.bool_)
        deletes = _NO if arrivals.deletes is None else arrivals.deletes.copy()
        batch = batch_of(arrivals, self.measures, alive, deletes)
        if arrivals.names is not None and len(self.longest.store.places) <= int(arrivals.names.max(initial=-1)):
            self._add_places(int(arrivals.names.max()) + 1)
        found: dict[int, Moves] = {}
        for view in self.views:
            scratch = batch if view is self.longest else batch._replace(alive=np.zeros_like(alive))
            view.set_moves(self.moves)
            for ranking, moves in zip(view.rankings, view.take(scratch, arrivals.more), strict=True):
                found[id(ranking)] = moves
        self.unknown = []
        if arrivals.deletes is not None and self.longest.store.facts[UNKNOWN]:
            self.unknown = arrivals.rows[arrivals.deletes & ~deletes].tolist()
        return self._changes([found[id(ranking)] for ranking in self.rankings], alive)

    def _add_places(self, total: int) -> None:
        store = self.longest.store
        more = total - len(store.places) + len(store.places) // 2
        store.places = np.concatenate([store.places, np.full(more, -1, np.int32)])

    def _changes(self, moves: list[Moves], alive: Bools) -> Changes:
        """The moves of all rankings in the order of the contract."""
        pieces, columns = [], list[list[Operand]]()
        for one in moves:
            records, shown = one.records, one.shown
            if self.groups > 1:
                order = self._order(records)
                records, shown = records[order], tuple(taken(column, order) for column in shown)
            pieces.append(records)
            columns += [list(shown)] if shown else []
        out = np.concatenate([np.empty(0, CHANGE), *pieces])
        query = np.repeat(np.arange(len(moves)), [len(piece) for piece in pieces])
        values = [whole(list(each)) for each in zip(*columns, strict=True)]
        return changes_of(out, query, values, alive)

    def _order(self, records: Any) -> Ints:
        """By step and group, leaving first; net changes by the last arrivals of their groups."""
        if self.net:
            keys = (records["diff"], records["group"], records["row"] if not self.timed else records["diff"] * 0)
            return np.lexsort(keys)
        return np.lexsort((records["diff"], records["group"], records["step"]))

    def delete(self, codes: Ints, owners: Ints, steps: Ints) -> tuple[Changes, Ints]:
        """Delete rows by the codes of their ids, with their groups and the numbers of their steps.

        Returns the changes, and the steps in which something was deleted.
        """
        store = self.longest.store
        there = np.flatnonzero(codes < len(store.places))
        there = there[store.places[codes[there]] >= 0]
        there = there[np.argsort(steps[there], kind="stable")]
        codes, owners, steps = codes[there], owners[there], steps[there]
        size = len(codes)
        zeros, all_ = np.zeros(size, np.int64), np.ones(size, np.bool_)
        arrivals = Arrivals(
            rows=np.arange(size),
            groups=owners,
            keys=np.empty(0),
            stamps=zeros,
            now=steps,
            eligible=None,
            serial=NEVER // 2,
            size=size,
            clock=0,
            clocks=None,
            total=self.groups,
            attributes=tuple(np.zeros(size) for _ in range(self.measures.columns)),
            names=codes,
            deletes=all_,
            objects=zeros,
        )
        before = [view.store.groups["now"].copy() for view in self.views]
        changes = self.take(arrivals)
        for view, now in zip(self.views, before, strict=True):
            view.store.groups["last"], view.store.groups["now"] = -1, now
        return changes, steps

    def set_ids(self, codes: Ints, serials: Ints, total: int) -> None:
        """Set the codes of the rows' ids; the rows are known by their serials."""
        store = self.longest.store
        live = np.flatnonzero(store.rows["slot"][: store.facts[USED]] != -1)
        order = live[np.argsort(store.rows["serial"][live])]
        store.places = np.full(total, -1, np.int32)
        store.places[codes] = order[np.searchsorted(store.rows["serial"][order], serials)]

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(self.groups) if groups is None else np.sort(groups[groups < self.groups])
        if spec.length == self.specs[query].length:
            view, ranking = self.view_of(spec.length), self.rankings[query]
        else:
            view, ranking = self._shorter(spec, now)
        slots, rank, events, scores = view.best(ranking, spec.k, chosen)
        return Answer(
            group=view.store.slots["group"][slots].astype(np.int64),
            rank=rank,
            stamp=events.stamp,
            serial=events.decider,
            key=scores.keys,
            object=slots,
            shown=scores.shown,
        )

    def _shorter(self, spec: Spec, now: Ints) -> tuple[View, Ranking]:
        """A view of a shorter window, from the rows of the longest."""
        view, ranking = self._new_view(spec.length), self._ranking(spec.k)
        view.rankings = [ranking]
        self._fill(view, now)
        return view, ranking

    def _fill(self, view: View, now: Ints) -> None:
        """Fill a new view with the rows of the longest that are valid in it, and rank its objects."""
        rows, slots, groups = snapshot.rows_by_age(self.longest.store)
        stored = self.longest.store.rows[rows]
        valid = stored["stamp"] > now[groups] - view.length if view.length < NEVER else np.ones(len(rows), np.bool_)
        rows, slots, groups, stored = rows[valid], slots[valid], groups[valid], stored[valid]
        view.grow(self.total, self.groups)
        for ranking in view.rankings:
            ranking.grow(self.total, self.groups)
        values = np.ascontiguousarray(self.longest.store.values[rows])
        view.refill(groups, slots, stored["stamp"].copy(), stored["serial"].copy(), values)
        view.rank_all()

    # --- queries

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self.grow(0, len(now))
        before = [self.rankings[q] if q >= 0 else unranked(self._ranking(0), self) for q in predecessors]
        old, longest = list(self.views), self.longest
        for view in old:
            view.clear_bound()
        self._set_specs(specs)
        new = [view for view in self.views if not any(view is one for one in old)]
        views = self.views
        self.views = [longest]  # whose rows fill new ones
        for view in new:
            self._fill(view, now)
        self.views = views
        moves = []
        for spec, ranking, was in zip(specs, self.rankings, before, strict=True):
            view = self.view_of(spec.length)
            ranking.ranks["shown"] = np.where(view.store.there, was.ranks["shown"], 0)
            slots = np.flatnonzero(view.store.there)
            events, scores = view.scores(slots)
            ranking.set_keys(slots, events, scores)
            ranking.rebuild(view.store.slots)
            moves.append(self._difference(was, ranking, longest.store.slots["group"]))
        return self._changes(moves, np.empty(0, np.bool_))

    def _difference(self, was: Ranking, ranking: Ranking, groups: Any) -> Moves:
        """The changes from one ranking's answers to those of another."""
        gone = np.flatnonzero(was.inside & ~ranking.inside)
        new = np.flatnonzero(ranking.inside & (~was.inside | self.moves))
        records = np.zeros(len(gone) + len(new), CHANGE)
        left, entered = was.reported(gone), ranking.reported(new)
        records["slot"] = np.concatenate([gone, new])
        records["key"] = np.concatenate([left[0], entered[0]])
        records["decider"] = np.concatenate([left[1], entered[1]])
        records["diff"] = np.concatenate([np.full(len(gone), -1), ~was.inside[new]])
        records["first"][len(gone) :] = (1 - ranking.ranks["shown"][new]) & ~was.inside[new]
        records["row"], records["instant"] = -1, self.clock
        records["group"] = groups[records["slot"]]
        ranking.ranks["shown"][ranking.inside] = 1
        shown = left[2] or entered[2]  # without the other nothing is gone, or nothing has come
        if left[2] and entered[2]:
            shown = tuple(whole(list(both)) for both in zip(left[2], entered[2], strict=True))
        return Moves(records, shown)

    # --- what is kept

    @property
    def kept(self) -> Ints:
        rows: Ints = self.longest.store.groups["rows"]
        return rows

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return int(self.longest.store.facts[LIVE])

    @property
    def objects(self) -> int:
        """How many objects have a valid row."""
        return int(self.longest.store.facts[OBJECTS])

    @property
    def there(self) -> Bools:
        """By slot: has the object a valid row?"""
        return self.longest.store.there

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        return snapshot.serials(self.longest.store, np.arange(self.groups) if groups is None else groups)

    def object_serials(self) -> tuple[Ints, Ints, Ints]:
        """The objects that are there: slots, groups, and a row of each whose columns are kept."""
        return snapshot.objects(self.longest.store)

    def shown(self) -> Ints:
        """The rows that decide the columns of answers as reported; a net batch may be open."""
        inside = [ranking.ranks["decider"][ranking.inside] for ranking in self.rankings]
        return np.concatenate([np.empty(0, np.int64), *inside])

    def keep_objects(self, kept: Ints) -> None:
        """Know only these slots, under the numbers 0, 1, ...; the others have no valid row. No batch is open."""
        self._keep(kept, np.arange(self.groups))

    def keep_groups(self, groups: Ints) -> None:
        codes = np.full(self.groups, -1)
        codes[groups] = np.arange(len(groups))
        owners = self.longest.store.slots["group"]
        self._keep(np.flatnonzero(self.there & (codes[owners] >= 0)) if self.total else np.empty(0, np.int64), codes)
        self.grow(0, len(groups))

    def _keep(self, kept: Ints, codes: Ints) -> None:
        self.sessions = self.sessions[np.argsort(codes)[np.count_nonzero(codes < 0) :]] if self.gap else self.sessions
        for view in self.views:
            view.store.keep(kept, codes)
            for ranking in view.rankings:
                ranking.keep(kept, view.store.slots, len(view.store.groups))
        self.total, self.groups = len(kept), len(self.longest.store.groups)

    def reset_groups(self, groups: Ints) -> None:
        self.grow(0, int(groups.max(initial=-1)) + 1)
        order = np.arange(self.groups + 1)
        order[groups] = self.groups  # an empty one
        total = self.groups
        self.grow(0, total + 1)
        self._rebuild(order[:total])

    def _rebuild(self, groups: Ints) -> None:
        """Keep only these groups, in new arrays."""
        state = {name: array for name, (array, _) in self.snapshot(groups).items()}
        self.restore(state)

    @property
    def buffer(self) -> int:
        return 0

    def size_of(self, query: int) -> int:
        """How many objects are there."""
        return int(self.view_of(self.specs[query].length).store.facts[OBJECTS])

    @property
    def due(self) -> Ints:
        return snapshot.due(self)

    @property
    def nbytes(self) -> int:
        rankings = sum(ranking.nbytes for ranking in self.rankings)
        return sum(view.store.nbytes for view in self.views) + rankings

    # --- state

    def snapshot(self, groups: Ints) -> dict[str, tuple[Any, Ints]]:
        return snapshot.save(self, groups)

    def restore(self, state: Mapping[str, Any], *, trusted: bool = True) -> None:
        self.views, self.total, self.groups, self.sessions = [], 0, 0, self.sessions[:0]
        self._set_specs(self.specs)
        snapshot.load(self, state, trusted=trusted)

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        require(now is None or len(now) == self.groups, "every group is in its engine")
        for view in self.views:
            check_view(view, deep=deep, now=now)
