"""Numbers of arrivals: each arrival gets the next number of its group.

Queries with one time window's length number arrivals alike, since the length decides which rows are too late to be
arrivals: one *sequence* of numbers for each length. Count windows have one sequence. Numbers of a group go on when it
returns after its objects were gone: until then they are at rest (numbers_at_rest.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import EVER, Arrivals, Spec, lazy
from skyband.engines.numbers_at_rest import NumbersAtRest
from skyband.tables.groups import Groups
from skyband.tables.push import AT, BEGINNING, Push

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@lazy("rows", "groups", "numbers")
@dataclass(frozen=True)
class Numbered:
    """The accepted rows of a batch with their numbers, before anything is changed."""

    rows: Ints  # that arrive, in the batch
    here: Any  # the same as an index: a slice where all arrive, since a slice copies nothing
    groups: Ints
    numbers: Ints  # by sequence and row of the batch
    before: Ints  # the next numbers, by sequence and group: before the batch, and after it
    after: Ints
    arrived: Ints  # how many, by sequence
    late: Ints  # rows dropped as too late, by sequence
    too_late: Bools  # rows of the batch that are too late for one of the queries
    size: int  # rows that arrive
    firsts: Ints | None = None  # of one group, all of whose rows arrive and count: the first number, by sequence

    @property
    def own(self) -> Ints:
        """The numbers of the rows that arrive, in the first sequence."""
        found: Ints = self.numbers[0, self.here]
        return found

    @property
    def zeros(self) -> Ints:
        """In place of instants, where nothing expires."""
        return np.zeros(self.size, np.int64)

    def later(self, name: str) -> Any:
        """One of these fields, for a lazy field of another."""
        return lambda: getattr(self, name)

    def of(self, sequences: Ints, rows: Ints) -> Ints:
        """The numbers that these rows of the batch have in these sequences."""
        found: Ints = self.numbers[sequences, rows] if self.firsts is None else self.firsts[sequences] + rows
        return found


class Start(NamedTuple):
    """The next numbers of a new query: of the groups by their codes, and of those without one."""

    counts: Ints
    at_rest: NumbersAtRest
    since: int = 0  # over answers: the first object that the query sees


class Numbering:
    """The numbers that a set of queries has given to arrivals, by group."""

    def __init__(self, start: Start, groups: Groups, *, timed: bool, dated: bool) -> None:
        self.groups = groups
        self.timed = timed
        self.dated = dated  # windows that do not go by time, with a time column: each group's last time is kept
        self.counts: Ints = start.counts[None, :]  # the next number, by sequence and group
        self.at_rest = start.at_rest  # the same of groups without a code
        self.since = start.since
        self.lengths: list[int] = []  # of each sequence
        self.of_query: Ints = np.empty(0, np.int64)  # the sequence of each query
        self.offsets: Ints | None = None  # of slots in count windows: what is added to the engine's numbers, by query
        self.shifts: Ints | None = None  # and by how much these are behind, since rows were rejected
        self.late: Ints = np.zeros(1, np.int64)  # by sequence
        self.arrivals: Ints = np.zeros(1, np.int64)
        self.last_times: Ints = np.empty(0, np.int64)  # of each group's last arrival; of time windows its clock
        self.step_times: Ints = np.empty(0, np.int64)  # of each group's last step, while a batch with deletions goes on

    def copy(self) -> Numbering:
        twin = Numbering(self.start(), self.groups, timed=self.timed, dated=self.dated)
        twin.counts, twin.late, twin.arrivals = self.counts.copy(), self.late.copy(), self.arrivals.copy()
        twin.lengths, twin.of_query, twin.last_times = list(self.lengths), self.of_query.copy(), self.last_times.copy()
        twin.at_rest = self.at_rest.of(range(len(self.counts)))
        return twin

    def start(self) -> Start:
        """For a query that goes on with the numbers of the first sequence."""
        return Start(self.counts[0], self.at_rest.of([0]), self.since)

    def set_queries(self, specs: tuple[Spec, ...], predecessors: Ints | None = None) -> dict[str, str]:
        """Number for these queries, which keep the numbers of their predecessors.

        Returns for each sequence's column of numbers the column that it goes on from.
        """
        old = np.zeros(len(specs), np.int64) if predecessors is None else self.of_query[predecessors]
        wanted = list(zip(old.tolist(), (spec.length if self.timed else 0 for spec in specs), strict=True))
        distinct = list(dict.fromkeys(wanted))
        kept = [sequence for sequence, _ in distinct]
        self.counts, self.late, self.arrivals = self.counts[kept], self.late[kept], self.arrivals[kept]
        self.at_rest = self.at_rest.of(kept)
        self.lengths = [length for _, length in distinct]
        self.of_query = np.array([distinct.index(one) for one in wanted])
        return {column_of(new): column_of(sequence) for new, sequence in enumerate(kept)}

    def join(self, query: int, length: int, start: Start) -> bool:
        """Number for one more query of a stream without groups, which goes on from `start`.

        Whether there is a sequence more: in time windows each length has one, and each other start.
        """
        self.of_query = wider(self.of_query, query + 1)
        counts = wider(start.counts, self.groups.total)
        if not self.timed:
            self.of_query[query] = 0
            assert self.offsets is not None and self.shifts is not None
            self.offsets, self.shifts = wider(self.offsets, query + 1), wider(self.shifts, query + 1)
            self.shifts[query] = 0
            self.offsets[query] = counts.max(initial=0) - self.next()[0].max(initial=0)
            return False
        known = self.next()
        for sequence, one in enumerate(self.lengths):
            if one == length and (known[sequence] == counts).all():
                self.of_query[query] = sequence
                return False
        self.of_query[query] = len(self.lengths)
        self.lengths = [*self.lengths, length]
        self.counts = np.concatenate([known, counts[None, :]])
        self.late, self.arrivals = np.append(self.late, 0), np.append(self.arrivals, 0)
        self.at_rest = self.at_rest.of([*range(len(known)), 0])
        return True

    def widen(self) -> None:
        """Make room for all groups."""
        self.counts = self.next()
        if self.dated:
            self.last_times = wider(self.last_times, self.groups.total, BEGINNING)

    def next(self) -> Ints:
        """The next numbers, by sequence and group, of all groups."""
        known, counts = self.counts.shape[1], wider(self.counts, self.groups.total)
        if known < self.groups.total and len(self.at_rest):
            counts[:, known:] = self.at_rest.get(*self.groups.new_digests(known))
        return counts

    def largest(self) -> Ints:
        """By group, the largest of the next numbers of any query."""
        most: Ints = self.next().max(axis=0)
        if self.offsets is not None and self.shifts is not None:
            standing = self.of_query >= 0
            most = most + int((self.offsets - self.shifts)[standing].max(initial=0))
        return most

    def leave(self, query: int) -> None:
        """Number for one query of a stream without groups less."""
        self.of_query[query] = -1

    def reject(self, numbered: Numbered, queries: Ints, row: int) -> Numbered:
        """Let these queries over time windows not count one row of a batch: they get sequences of their own.

        The sequence that each goes on from is the same for those that come from one; numbers go on from the row.
        """
        old, which = np.unique(self.of_query[queries], return_inverse=True)
        self.of_query[queries] = len(self.lengths) + which
        self.lengths = [*self.lengths, *(self.lengths[one] for one in old)]
        self.late, self.arrivals = (np.concatenate([one, one[old]]) for one in (self.late, self.arrivals))
        self.at_rest = self.at_rest.of([*range(len(self.counts)), *old.tolist()])
        self.counts = np.concatenate([self.counts, self.counts[old]])
        numbers, place = numbered.numbers[old].copy(), int(np.searchsorted(numbered.rows, row))
        last = numbered.before[old, 0] - 1 if place == 0 else numbers[:, numbered.rows[place - 1]]
        counted = (numbers[:, row] > last).astype(np.int64)  # else it is too late for these anyway
        numbers[:, row:] -= counted[:, None]
        return replace(
            numbered,
            numbers=np.concatenate([numbered.numbers, numbers]),
            before=np.concatenate([numbered.before, numbered.before[old]]),
            after=np.concatenate([numbered.after, numbered.after[old] - counted[:, None]]),
            arrived=np.concatenate([numbered.arrived, numbered.arrived[old] - counted]),
            late=np.concatenate([numbered.late, numbered.late[old] - (1 - counted)]),
            firsts=None,
        )

    def keep(self, codes: Ints) -> None:
        """Number only these groups, under the codes 0, 1, ..."""
        known = codes[codes < self.counts.shape[1]]
        self.counts = np.ascontiguousarray(self.counts[:, known])
        self.last_times = self.last_times[codes[codes < len(self.last_times)]]

    def forget(self, codes: Ints) -> None:
        """Begin anew in these groups."""
        self.widen()
        self.counts = self.counts.copy()  # restored ones may be read-only
        self.counts[:, codes] = 0
        self.last_times[codes[codes < len(self.last_times)]] = BEGINNING

    def now(self, clock: int) -> Ints:
        """Per group: the clock, or the number of the last arrival."""
        return np.full(self.groups.total, clock) if self.timed else self.next()[0] - 1

    def number(
        self, push: Push, accepted: Bools, codes: Ints, *, accept_late: bool, late: Bools | None = None
    ) -> Numbered:
        """Number the accepted rows of a batch (codes: the group of each row). Changes nothing.

        late: the rows that are too late, where that is no question of their age alone.
        """
        if late is not None:
            return self._number_but(push, accepted, codes, late)
        dropped = np.zeros(len(self.lengths), np.int64)
        too_late = np.zeros(push.batch.rows, np.bool_)
        counted: list[Bools | None] = [None] * len(self.lengths)  # None: all rows
        limits = self.lengths if accept_late else [1] * len(self.lengths)
        whole = bool(accepted.all())
        rows = np.empty(0, np.int64) if whole else np.flatnonzero(accepted)
        here: Any = slice(None) if whole else rows
        if self.timed and min(limits) < EVER:
            assert push.times is not None and push.clocks is not None
            in_order = push.clocks is push.times  # then none is late
            ages = np.empty(0, np.int64) if in_order else push.clocks[here] - push.times[here]
            if ages.max(initial=0) >= min(limits):
                rows = np.arange(len(accepted)) if whole else rows
                timely = ages < max(limits)
                counted = [(ages < limit)[timely] for limit in limits]
                too_late[rows[ages >= min(limits)]] = True
                dropped += [int((ages >= limit).sum()) for limit in limits]
                rows = rows[timely]
                whole = len(rows) == push.batch.rows
                here = slice(None) if whole else rows
        if push.deletes is not None:
            counted = [~push.deletes[here]]
        if whole and not self.groups.names and all(which is None or which.all() for which in counted):
            return self._number_all(push.batch.rows, dropped, too_late)
        rows = np.arange(push.batch.rows) if whole else rows
        groups, before = codes[here], self.next()
        after = before.copy()
        each = [_number(groups, after[sequence], which) for sequence, which in enumerate(counted)]
        if len(each) == 1 and len(rows) == push.batch.rows:
            numbers = each[0][None, :]
        else:
            numbers = np.empty((len(self.lengths), push.batch.rows), np.int64)
            numbers[:, here] = each
        arrived = np.array([len(rows) if which is None else np.count_nonzero(which) for which in counted], np.int64)
        return Numbered(rows, here, groups, numbers, before, after, arrived, dropped, too_late, len(rows))

    def _number_all(self, size: int, dropped: Ints, too_late: Bools) -> Numbered:
        """Number all rows of a batch, of one group: they have arrays of their own only where these are read."""
        before = self.next()
        firsts, here = before[:, 0], slice(None)
        rows: Any = partial(np.arange, size)
        groups: Any = partial(np.zeros, size, np.int64)
        numbers: Any = partial(_numbers_from, firsts, size)
        arrived = np.full(len(firsts), size)
        return Numbered(rows, here, groups, numbers, before, before + size, arrived, dropped, too_late, size, firsts)

    def _number_but(self, push: Push, accepted: Bools, codes: Ints, late: Bools) -> Numbered:
        """Number the accepted rows but these."""
        rows = np.flatnonzero(accepted & ~late)
        here = slice(None) if len(rows) == push.batch.rows else rows
        groups, before = codes[here], self.next()
        numbers, after = np.empty((1, push.batch.rows), np.int64), before.copy()
        numbers[0, here] = _number(groups, after[0], None)
        counts = np.array([len(rows)]), np.array([int((late & accepted).sum())])
        return Numbered(rows, here, groups, numbers, before, after, *counts, late & accepted, len(rows))

    def take(self, push: Push, numbered: Numbered) -> Bools:
        """Take the numbers that were given; returns which rows of the batch have arrived."""
        self.counts = numbered.after
        self.late, self.arrivals = self.late + numbered.late, self.arrivals + numbered.arrived
        here = numbered.here
        arriving = slice(None) if push.deletes is None else ~push.deletes[here]
        arrived = np.zeros(push.batch.rows, np.bool_)
        if numbered.size == len(arrived) and push.deletes is None:
            arrived[:] = True
        else:
            arrived[numbered.rows[arriving]] = True
        if self.timed and not self.dated and push.clocks is not None and self.groups.names:
            self.last_times = wider(self.last_times, self.groups.total, push.clock)  # or unknown, after a restore
            self.last_times[numbered.groups] = push.clocks[here]
        elif push.times is not None and self.dated:
            self.last_times = wider(self.last_times, self.groups.total, BEGINNING)
            if numbered.firsts is None:
                self.last_times[numbered.groups[arriving]] = push.times[here][arriving]
            elif numbered.size:
                self.last_times[0] = push.times[-1]
        if push.over and numbered.size:  # over answers: the source's numbers and times
            self.counts[:, numbered.groups] = np.asarray(push.batch.array(AT))[here] + 1
            if push.times is not None:
                self.last_times[numbered.groups] = push.times[here]
        return arrived

    def take_steps(self, push: Push, numbered: Numbered, unknown: list[int]) -> None:
        """Know each group's last step among rows that may delete. unknown: those that delete nothing are no steps."""
        if self.dated and push.times is not None and (push.deletes is not None or len(self.step_times)):
            steps = ~np.isin(numbered.rows, unknown)
            self.step_times = wider(self.step_times, self.groups.total, BEGINNING)
            self.step_times[numbered.groups[steps]] = step_times(push)[numbered.rows[steps]]


def column_of(sequence: int) -> str:
    """The kept column of a sequence's numbers, where they are the ids of objects."""
    return f"number{sequence}"


def step_times(push: Push) -> Ints:
    """The time of each row's step, where windows do not go by time: its own, but the clock of a deletion."""
    assert push.times is not None
    if push.deletes is None or push.clocks is None:
        return push.times
    return np.where(push.deletes, push.clocks, push.times)


def instants(rows: Ints, arrivals: Arrivals, clocks: Ints | None, clock: int, emit: str) -> Ints:
    """The instants of steps at these rows (-1: none), of an engine whose clock stands still.

    clocks: of time windows, after each row of the batch; net changes are at the clock after it.
    """
    if clocks is None:  # the number of the row
        found = np.full(len(rows), -1)
        there = np.flatnonzero(rows >= 0)
        found[there] = arrivals.stamps_at(
            rows[there] if arrivals.whole else np.searchsorted(arrivals.rows, rows[there])
        )
        return found
    return np.full(len(rows), clock) if emit == "batch" else np.append(clocks, clock)[rows]


def _numbers_from(firsts: Ints, size: int) -> Ints:
    """Numbers that go on from these, by sequence."""
    if len(firsts) == 1:
        return np.arange(firsts[0], firsts[0] + size)[None, :]
    return firsts[:, None] + np.arange(size)


def wider(counts: Ints, total: int, fill: int = 0) -> Ints:
    """An array with room for so many groups in its last dimension."""
    more = total - counts.shape[-1]
    return counts if more <= 0 else np.concatenate([counts, np.full((*counts.shape[:-1], more), fill)], axis=-1)


def _number(groups: Ints, counts: Ints, counted: Bools | None) -> Ints:
    from skyband.kernels.routing import number, number_some

    if len(counts) == 1 and (counted is None or counted.all()):
        counts[0] += len(groups)
        return np.arange(counts[0] - len(groups), counts[0])
    numbers = np.empty(len(groups), np.int64)
    if counted is None or counted.all():
        number(groups, counts, numbers)
    else:
        number_some(groups, counted, counts, numbers)
    return numbers
