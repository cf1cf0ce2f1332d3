"""The base of all engines of incomplete streams: batches, answers from the front, and runs in arenas."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import EVER, Answer, Arrivals, Bools, Changes, Floats, Ints, Spec
from skyband.engines.grouped import ordered_changes, rebuild, visits_of
from skyband.engines.incomplete.kernels.batches import (
    ALL_MOST,
    ALL_TOTAL,
    ARRIVAL,
    CHANGES,
    DONE,
    LAST,
    LAST_MOST,
    LAST_TOTAL,
    MEMBERS,
    MEMBERS_USED,
    MOST,
    ONCE,
    QUERY,
    TOTAL,
    VIEW,
    VISIT,
    WRITTEN,
    Batch,
    Output,
    Queries,
)
from skyband.engines.incomplete.kernels.combine import Combination
from skyband.engines.incomplete.register import Register
from skyband.kernels.records import CHANGE
from skyband.kernels.routing import stable_order
from skyband.query.tuning import Tuning

Records = NDArray[Any]
REPEATS: dict[Any, int] = {None: ONCE, "last": LAST, "max": MOST, "sum": TOTAL}
#: of parts that are not named in advance, by how they combine too; as of one part where that makes no difference
REPEATS |= {("sum", None): ALL_TOTAL, ("sum", "last"): LAST_TOTAL, ("sum", "sum"): TOTAL}
REPEATS |= {("max", None): ALL_MOST, ("max", "last"): LAST_MOST, ("max", "max"): MOST}
BEGINNING = -(2**62)
_NO_INTS, _NO_LINKS = np.empty(0, np.int64), np.empty(0, np.int32)
#: where rows are dropped outside of a batch
NO_BATCH = Batch(
    *(_NO_INTS, _NO_INTS, np.empty(0), _NO_INTS, _NO_INTS, _NO_INTS, np.empty(0, np.bool_), _NO_LINKS, _NO_LINKS),
    alive=np.empty(0, np.bool_),
    serial=2**62,
    more=False,
)


class IncompleteEngine:
    """An engine for up to 32 queries; subclasses say how rows are kept.

    Each has arrays of the same meaning: `groups`, `fronts` by group and view, `members` of the fronts, `objects`,
    `scores` by object and view, and `facts`; all that kernels read is its `store`.
    """

    name: str
    least = 32  # rows that a group may have without a sweep
    prunes = False
    groups: Any
    fronts: Any
    members: Any
    objects: Any
    scores: Any
    facts: Any
    store: Any
    kept: Any

    def __init__(
        self,
        specs: tuple[Spec, ...],
        tuning: Tuning,
        *,
        timed: bool,
        net: bool,
        combination: Combination,
        repeat: Any,
        register: Register | None = None,
    ) -> None:
        self.tuning, self.timed, self.net = tuning, timed, net
        self.combination, self.repeat = combination, REPEATS[repeat]
        self.register: Any = register
        self.d = len(combination.lows)
        self.held = np.empty(0, CHANGE)  # nothing waits: a net batch is compared when it ends
        self.objects = np.empty(0)  # none yet
        self._set_queries(specs)
        self._empty()

    @property
    def part_limit(self) -> int:
        """Parts of rows are numbers below this."""
        return self.d

    def bounds_of(self, parts: Ints) -> tuple[Floats, Floats]:
        """The lowest and the highest values of these parts."""
        return self.combination.lows[parts], self.combination.highs[parts]

    def _set_queries(self, specs: tuple[Spec, ...]) -> None:
        lengths = sorted({spec.length for spec in specs})
        self.views, self.queries = np.zeros(len(lengths), VIEW), np.zeros(len(specs), QUERY)
        self.views["length"] = lengths
        ks = [spec.k if self.timed else min(spec.k, spec.length) for spec in specs]
        self.queries["k"] = self.queries["before"] = ks
        self.queries["view"] = [lengths.index(spec.length) for spec in specs]
        np.maximum.at(self.views["k"], self.queries["view"], self.queries["k"])
        self._fit(len(self.objects))

    def _fit(self, objects: int) -> None:
        """Fit the arrays that grow with k to capacity for so many objects, since no answer has more."""
        k = np.minimum(self.views["k"], objects)
        self.views["most"] = k + np.maximum(k, 16)
        self.margin = int((2 * np.minimum(self.queries["k"], objects) + 2).sum())

    @property
    def endless(self) -> bool:
        """Whether the window has no end: its clock stands still, and the register counts rows."""
        return bool(self.views["length"][0] == EVER)

    @property
    def kernel_queries(self) -> Queries:
        return Queries(
            self.views,
            self.queries,
            not self.timed,
            self.net,
            self.repeat,
            self.d,
            self.prunes,
            self.least,
            self.margin,
        )

    def _empty(self) -> None:
        """Set all arrays to those of an engine that has seen nothing."""
        raise NotImplementedError

    # --- the stream

    @staticmethod
    def needed(arrivals: Arrivals, specs: tuple[Spec, ...], *, net: bool) -> Bools:
        """Every row can matter: the other parts of its object may be anywhere."""
        return np.ones(len(arrivals.rows), np.bool_)

    def take(self, arrivals: Arrivals) -> Changes:
        self._add_groups(arrivals.total)
        groups, batch = self._batch(arrivals)
        visits = visits_of(self, groups, batch.now, arrivals)
        changes = self._run(batch, visits)
        return ordered_changes(self, changes, visits, {"now": batch.now, "row": batch.rows}, arrivals, batch.alive)

    def _batch(self, arrivals: Arrivals) -> tuple[Ints, Batch]:
        """Arrivals sorted by group, in order within a group, and their groups."""
        given: Any = (arrivals.names, arrivals.parts, arrivals.keys, arrivals.stamps, arrivals.now, arrivals.rows)
        brings = np.ones(len(arrivals.rows), np.bool_) if arrivals.eligible is None else arrivals.eligible.copy()
        given = (*given, brings)
        groups = arrivals.groups
        if arrivals.total > 1:
            order = stable_order(groups, arrivals.total)
            given, groups = [column[order] for column in given], groups[order]
        names, parts, values, stamps, now, rows, brings = map(np.ascontiguousarray, given)
        links = _NO_LINKS if self.register is None else self.register.links
        owners, alive = np.empty(arrivals.size, np.int32), np.zeros(arrivals.size, np.bool_)
        given = Batch(
            names, parts, values, stamps, now, rows, brings, links, owners, alive, arrivals.serial, arrivals.more
        )
        return groups, given

    def _run(self, batch: Batch, visits: Records) -> Records:
        """Take a batch; returns its changes."""
        output = Output(np.empty(int(self.facts[WRITTEN]) + 64 + self.margin, CHANGE), np.zeros(1, CHANGE))
        self.facts[[WRITTEN, VISIT, ARRIVAL]] = 0
        while (reason := self._kernel(batch, visits, output)) != DONE:
            output = self._grow(reason, batch, visits, output)
        if self.net and not batch.more:
            output = self._flush(visits, output)
        return output.changes[: self.facts[WRITTEN]]

    def _kernel(self, batch: Batch, visits: Records, output: Output) -> int:
        """Take arrivals until they end or an array is full; returns why it stopped."""
        raise NotImplementedError

    def _flush(self, visits: Records, output: Output) -> Output:
        """End a net batch: returns where its changes are."""
        raise NotImplementedError

    def _add_groups(self, total: int) -> None:
        """Add groups, up to so many."""
        raise NotImplementedError

    # --- capacity

    def _grow(self, reason: int, batch: Batch, visits: Records, output: Output) -> Output:
        """Enlarge the array for which the kernel has stopped; returns where changes are written."""
        if reason == MEMBERS:
            self._pack_fronts()
        elif reason == CHANGES:
            output = output._replace(
                changes=np.concatenate([output.changes, np.empty(len(output.changes) + self.margin, CHANGE)])
            )
        return output

    def _pack_fronts(self) -> None:
        """Lay out fronts one after another, each with twice the capacity it needs, and as much again at the end."""
        held = self._front_sizes()
        capacities = np.where(self.fronts["capacity"] > 0, np.maximum(4, 2 * held), 0)
        used = int(capacities.sum())
        spare = used + int((16 * (self.views["most"] + 8) * len(self.views)).max())
        self.members, starts = laid_out(self.members, self.fronts["start"], held, capacities, spare)
        self.fronts["start"], self.fronts["capacity"] = starts, capacities
        self.facts[MEMBERS_USED] = used

    def _front_sizes(self) -> Ints:
        sizes: Ints = self.fronts["size"]
        return sizes

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        chosen = chosen[chosen < len(self.groups)]
        view = int(self.queries["view"][query])
        if spec.length == self.views["length"][view]:
            return self._best(view, spec.k, chosen)
        return self._survey(spec, now, chosen)

    def _best(self, view: int, k: int, groups: Ints) -> Answer:
        """The first k of the fronts."""
        V = len(self.views)
        fronts = self.fronts[groups * V + view]
        sizes = np.minimum(fronts["size"], k)
        run = within(sizes)
        best = self.members[np.repeat(fronts["start"], sizes) + run].astype(np.int64)
        one = self.objects[best]
        serials, scores = self._serials_of(best, view), self.scores["score"][best * V + view]
        return Answer(np.repeat(groups, sizes), run + 1, one["stamp"], serials, scores)

    def _serials_of(self, objects: Ints, view: int) -> Ints:
        """The rows whose columns are reported of these objects: the newest."""
        serials: Ints = self.objects["serial"][objects]
        return serials

    def _survey(self, spec: Spec, now: Ints, groups: Ints) -> Answer:
        """An answer from all rows that are kept, for a shorter window."""
        raise NotImplementedError

    # --- what is kept

    keep_groups = rebuild

    def reset_groups(self, groups: Ints) -> None:
        total = max(len(self.groups), 1 + int(groups.max(initial=-1)))
        self._add_groups(total + 1)
        kept = np.arange(total)
        kept[groups] = total  # an empty one
        rebuild(self, kept)

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        raise NotImplementedError

    def shown(self) -> Ints:
        """The rows that reported answers show, whether or not they are kept: a net batch may be open."""
        raise NotImplementedError

    @property
    def buffer(self) -> int:
        return 0

    def size_of(self, query: int) -> int:
        return int(self.kept.sum())

    def more_stats(self) -> dict[str, Any]:
        """What `stats()` says of this engine besides."""
        return {}

    @property
    def due(self) -> Ints:
        due: Ints = self.groups["due"]
        return due

    @property
    def open(self) -> Ints:
        is_open: Ints = self.groups["open"]
        return is_open

    @property
    def nbytes(self) -> int:
        register = 0 if self.register is None else int(self.register.nbytes)
        return sum(int(array.nbytes) for array in self.store) + register


def within(sizes: Ints) -> Ints:
    """The places within runs of these sizes, one run after another."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def enough(capacities: Ints, sizes: Ints, visits: Records) -> Ints:
    """Capacities with places for the arrivals of these visits, up to 1024 of each: runs then move once a push."""
    groups, more = visits["group"], np.minimum(visits["end"] - visits["begin"], 1024)
    capacities[groups] = np.maximum(capacities[groups], sizes[groups] + more)
    return capacities


def laid_out(arena: Records, starts: Ints, sizes: Ints, capacities: Ints, spare: int = 0) -> tuple[Records, Ints]:
    """The runs of an arena in places of these capacities, one after another, and their new starts."""
    moved_to, run = np.cumsum(capacities) - capacities, within(sizes)
    moved = np.zeros(int(capacities.sum()) + spare, arena.dtype)
    moved[np.repeat(moved_to, sizes) + run] = arena[np.repeat(starts, sizes) + run]
    return moved, moved_to


def numbered(objects: Ints, sizes: Ints) -> tuple[Ints, Ints, Ints]:
    """Objects of rows by group, in the order of their first rows; how many of each group; by object its number there.

    sizes: rows of each group.
    """
    distinct, first = np.unique(objects, return_index=True)
    owners = np.repeat(np.arange(len(sizes)), sizes)[first]
    counts = np.bincount(owners, minlength=len(sizes))
    order = np.argsort(first)
    numbers = np.zeros(int(distinct[-1]) + 1 if len(distinct) else 0, np.int64)
    numbers[distinct[order]] = within(counts)
    return distinct[order].astype(np.int64), counts, numbers


def ranked(groups: Ints, scores: Floats, stamps: Ints, serials: Ints, k: int, shown: Ints | None = None) -> Answer:
    """The k best of these objects by group; NaN is no score. shown: the rows whose columns are reported, if others."""
    order = np.lexsort((-serials, -stamps, -scores, groups))
    order = order[~np.isnan(scores[order])]
    rank = np.arange(1, len(order) + 1) - np.searchsorted(groups[order], groups[order])
    order, rank = order[rank <= k], rank[rank <= k]
    return Answer(groups[order], rank, stamps[order], (serials if shown is None else shown)[order], scores[order])
