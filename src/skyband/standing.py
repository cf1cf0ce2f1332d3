"""Standing queries that share one engine: the same scoring, direction, `where`, `per` and kind of window.

Here scored rows become arrivals with numbers, and the engine's changes become columns again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.batch import Batch, from_times, time_unit
from skyband.changes import Roll
from skyband.columns import Shelf, lent
from skyband.engines.contract import NEVER, Arrivals, Asked, Changes, Engine, Ranked, Scorings
from skyband.engines.registry import APPROXIMATE, WINDOWED, choose, load
from skyband.families import judge_family, scorings_of
from skyband.groups import Groups
from skyband.options import Options
from skyband.pushes import Judged, Push
from skyband.query import Above, TopK
from skyband.scores import Scored, matches, reject_beyond, score
from skyband.scoring import Nearest
from skyband.windows import Last, UntilDeleted

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
BEGINNING = -(2**62)  # the clock before any arrival
MOST = 32  # queries that share an engine: their marks on an object are bits of one word


@dataclass
class State:
    """All that a Monitor knows."""

    options: Options
    groups: dict[tuple[str, ...], Groups] = field(default_factory=dict)
    homes: dict[str, Standing] = field(default_factory=dict)  # by query, in order of registration
    types: dict[str, Any] = field(default_factory=dict)  # of the input's columns, once seen
    clock: int = BEGINNING
    ahead: Any = None  # `advance` before the type of time was known
    serial: int = 0  # of the next row
    counters: dict[str, Any] = field(default_factory=lambda: {"arrivals": 0, "late": 0, "rejected": {}})
    roll: Roll | None = None  # of the queries, as changes name them

    def standing(self) -> list[Standing]:
        return list(dict.fromkeys(self.homes.values()))

    @property
    def unit(self) -> int | None:
        """Nanoseconds of a unit of time; None: integers, or not known yet."""
        type_ = None if self.options.time is None else self.types.get(self.options.time)
        return None if type_ is None else time_unit(type_)


class Standing:
    """One engine and the queries it serves, in order of registration."""

    keeps = False  # all of its window

    def __init__(
        self, query: TopK | Above, groups: Groups, options: Options, counts: Ints, *, family: bool = False
    ) -> None:
        self.algorithm = choose(query)
        self.family = family  # every query has a scoring of its own, of one family
        self.by, self.where, self.descending = query.by, query.where, query.descending
        self.timed = query.window.timed
        self.groups = groups
        self.options = options
        self.queries: dict[str, TopK | Above] = {}
        self.counts = counts[None, :]  # the next number, by lane and group
        self.lengths: list[int] = []  # of each lane: queries with one window length number arrivals alike
        self.lanes: Ints = np.empty(0, np.int64)  # of each query
        self.moments: Ints = np.empty(0, np.int64)  # count windows: the time of each group's last arrival
        self.stepped: Ints = np.empty(0, np.int64)  # while a batch with deletions goes on: of each group's last step
        self.shelf = Shelf()
        self.engine: Engine | None = None
        self.late: Ints = np.zeros(1, np.int64)  # by lane
        self.arrivals: Ints = np.zeros(1, np.int64)
        self.rejected: dict[str, int] = {}

    @staticmethod
    def key(query: TopK | Above) -> tuple[Any, ...]:
        """Queries with equal keys can share an engine."""
        by = id(query.by) if callable(query.by) else query.by
        if choose(query) in WINDOWED:
            return (object(),)  # they come together at the first arrival
        window = query.window if query.algorithm in APPROXIMATE else query.window.timed
        return (by, query.descending, query.where, query.per_columns, window, query.algorithm, query.tuning)

    @property
    def dated(self) -> bool:
        """Is the time of each group's last arrival kept?"""
        return not self.timed and self.options.time is not None

    def told(self, types: dict[str, Any]) -> dict[str, Any]:
        """What is kept of objects to be told later, with its Arrow types."""
        told = {role: types.get(name, pa.null()) for role, name in self.options.roles.items()}
        if self.options.id is None and self.timed:  # count windows: the stamp is the number
            told |= {f"number{lane}": pa.int64() for lane in range(len(self.lengths))}
        return told

    def widen(self) -> None:
        """Room for all groups."""
        self.counts = _wider(self.counts, self.groups.total)
        if self.dated:
            self.moments = _wider(self.moments, self.groups.total, BEGINNING)

    def asked(self, unit: int | None) -> tuple[Asked, ...]:
        return tuple(asked_of(query, unit) for query in self.queries.values())

    def start(self, unit: int | None) -> None:
        """Make the engine, now that the unit of time is known."""
        if self.engine is None:
            asked = self.asked(unit)
            self._set_lanes(asked)
            more = {"scorings": self.scorings()} if self.family else {}
            kind, quiet = self.example.kind, self.options.emit == "batch"
            engine = load(kind, self.algorithm, family=self.family)
            self.engine = engine(asked, self.example.tuning, timed=self.timed, quiet=quiet, **more)

    def scorings(self) -> Scorings:
        """Of a family, one for each query."""
        return scorings_of(list(self.queries.values()))

    def _set_lanes(self, asked: tuple[Asked, ...], heirs: Ints | None = None) -> None:
        """Time windows number arrivals by their length: that decides what is too late. Heirs keep their numbers."""
        old = np.zeros(len(asked), np.int64) if heirs is None else self.lanes[heirs]
        lanes = list(zip(old.tolist(), (one.length if self.timed else 0 for one in asked), strict=True))
        distinct = list(dict.fromkeys(lanes))
        kept = [lane for lane, _ in distinct]
        self.counts, self.late, self.arrivals = self.counts[kept], self.late[kept], self.arrivals[kept]
        self.lengths = [length for _, length in distinct]
        self.lanes = np.array([distinct.index(lane) for lane in lanes])
        if heirs is not None and self.options.id is None and self.timed:
            names = {f"number{new}": f"number{lane}" for new, (lane, _) in enumerate(distinct)}
            self.shelf.relabel("number", names)

    def judge(self, batch: Batch, cache: dict[Any, Scored], untimely: dict[str, Bools | None]) -> Judged:
        """Score the rows; who is rejected, who can be an answer. Changes nothing."""
        what = (self.unscored, id(self.by) if callable(self.by) else self.by)
        if what not in cache:
            judged = judge_family(batch, self.by) if self.unscored else score(batch, self.by)
            assert judged is not None, "wild numbers have split the family"
            cache[what] = judged
        scored = Scored(cache[what].key, dict(cache[what].rejected))
        for reason, rows in untimely.items():
            if rows is not None:
                scored.reject(reason, rows)
        eligible = None
        if self.where is not None:
            eligible, columns = matches(batch, self.where)
            reject_beyond(scored, batch, columns)
        accepted = np.ones(batch.rows, np.bool_)
        for rows in scored.rejected.values():
            accepted &= ~rows
        return Judged(scored, accepted, eligible)

    def set_apart(self, judged: Judged, deletes: Bools, other: Bools, untimely: dict[str, Bools | None]) -> Judged:
        """Rows that delete an id have no score: only queries whose objects are deleted take them."""
        scored = Scored(judged.scored.key)
        for reason, rows in judged.scored.rejected.items():
            scored.reject(reason, rows if self.deletable and reason in untimely else rows & ~deletes)
        scored.reject("op is unknown", other)
        accepted = np.full(len(deletes), True) if self.deletable else ~deletes
        for rows in scored.rejected.values():
            accepted &= ~rows
        return Judged(scored, accepted, judged.eligible)

    @property
    def deletable(self) -> bool:
        """Are its objects deleted by id?"""
        return isinstance(self.example.window, UntilDeleted)

    @property
    def unscored(self) -> bool:
        """Does the engine score objects itself, by their attributes?"""
        return self.family

    def needed(self, judged: Judged, codes: Ints, total: int, times: Ints, clocks: Ints, unit: int | None) -> Bools:
        """Which rows of a part of a batch, in order, can matter; those left out get no number.

        clocks: the largest time so far, of all rows.
        """
        assert not self.unscored, "a family has no keys to judge by"
        wanted = judged.accepted if judged.eligible is None else judged.accepted & judged.eligible
        rows = np.flatnonzero(wanted)
        whole = len(rows) == len(wanted)
        chosen = slice(None) if whole else rows  # a slice copies nothing
        arrivals = Arrivals(
            rows=rows,
            groups=codes[chosen],
            keys=self._turned(judged.scored.key[chosen]),
            stamps=times[chosen],
            now=clocks if whole else np.maximum.accumulate(times[chosen]),
            eligible=None,
            serial=0,
            size=len(judged.accepted),
            clock=0,
            clocks=None,
            total=total,
        )
        engine = load("TopK", self.algorithm)
        kept = engine.needed(arrivals, self.asked(unit), quiet=self.options.emit == "batch")
        needed = np.zeros(len(judged.accepted), np.bool_)
        needed[rows[kept]] = True
        return needed

    def count_rejected(self, judged: Judged) -> None:
        for reason, rows in judged.scored.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + int(rows.sum())

    def take(self, push: Push, judged: Judged, codes: Ints) -> tuple[dict[str, Any], Bools, Bools]:
        """Take a judged batch (codes: the group of each row).

        Returns the changes as columns, which rows have arrived, and which were too late for one of the queries.
        """
        rows = np.flatnonzero(judged.accepted)
        too_late = np.zeros(push.batch.rows, np.bool_)
        counted = [np.ones(len(rows), np.bool_) for _ in self.lengths]
        if self.timed:
            assert push.times is not None and push.clocks is not None
            ages = push.clocks[rows] - push.times[rows]
            limits = self.lengths if self.options.late == "accept" else [1] * len(self.lengths)
            timely = ages < max(limits)
            counted = [(ages < limit)[timely] for limit in limits]
            too_late[rows[ages >= min(limits)]] = True
            self.late += [int((ages >= limit).sum()) for limit in limits]
            rows = rows[timely]
        here = slice(None) if len(rows) == push.batch.rows else rows  # a slice copies nothing
        if push.deletes is not None:
            counted = [~push.deletes[here]]
        groups = codes[here]
        before = self.counts = _wider(self.counts, self.groups.total)
        numbers = np.empty((len(self.lengths), push.batch.rows), np.int64)
        self.counts = before.copy()
        for lane, which in enumerate(counted):
            numbers[lane, here] = _number(groups, self.counts[lane], which)
            self.arrivals[lane] += int(which.sum())
        arrived = np.zeros(push.batch.rows, np.bool_)
        arrived[here] = True if push.deletes is None else counted[0]

        arrivals = Arrivals(
            rows=rows,
            groups=groups,
            keys=np.empty(0) if self.unscored else self._turned(judged.scored.key[here]),
            stamps=push.times[here] if push.times is not None and self.timed else numbers[0, here],
            now=push.clocks[here] if push.clocks is not None and self.timed else numbers[0, here],
            eligible=None if judged.eligible is None else judged.eligible[here],
            serial=push.serial,
            size=push.batch.rows,
            clock=push.clock,
            clocks=push.clocks,
            total=self.groups.total,
            attributes=self._attributes(push.batch, rows) if self.unscored else None,
            told=bool(push.columns) or (self.options.id is None and self.timed),
            more=push.more,
        )
        changes = self._run(arrivals, push)
        told = dict(push.columns)
        if self.options.id is None and self.timed:  # count windows: the stamp is the number
            told |= {f"number{w}": lent(numbers[w]) for w in range(len(self.lengths))}
        if push.times is not None and not self.timed:
            self.moments = _wider(self.moments, self.groups.total, BEGINNING)
            came = slice(None) if push.deletes is None else counted[0]
            self.moments[groups[came]] = push.times[here][came]
            if self.deletable and (push.deletes is not None or len(self.stepped)):
                self.stepped = _wider(self.stepped, self.groups.total, BEGINNING)
                self.stepped[groups] = _moments(push)[here]
        columns = self._columns(changes, push, told, numbers, before)
        if not push.more:
            self.stepped = np.empty(0, np.int64)
        kept = np.flatnonzero(changes.alive)
        if told:
            self.shelf.add(push.serial + kept, {name: column.take(lent(kept)) for name, column in told.items()})
        assert self.engine is not None
        if len(self.shelf) > 1024 + 2 * int(self.engine.kept.sum()):
            self.shelf.sweep(self._live())
        return columns, arrived, too_late

    def _run(self, arrivals: Arrivals, push: Push) -> Changes:
        assert self.engine is not None
        return self.engine.take(arrivals)

    def _live(self) -> Ints:
        """The objects of which something may still be told."""
        assert self.engine is not None
        return np.unique(np.concatenate([self.engine.serials()[0], self.engine.held["serial"]]))

    def _attributes(self, batch: Batch, rows: Ints) -> tuple[NDArray[np.float64], ...]:
        columns = self.by.columns  # type: ignore[union-attr]
        if not batch.rows:
            return tuple(np.empty(0) for _ in columns)
        values = [batch.numbers(name).values for name in columns]
        return tuple(values if len(rows) == batch.rows else (column[rows] for column in values))

    def is_wild(self, batch: Batch) -> bool:
        """Is this a family, and does the batch hold numbers that its scorings may judge differently?"""
        return self.unscored and batch.rows > 0 and judge_family(batch, self.by) is None

    def split(self, unit: int | None, clock: int) -> dict[str, Standing]:
        """Each query of a family with a home of its own, which goes on from here."""
        homes = {}
        for name, query in self.queries.items():
            home = Standing(query, self.groups, self.options, self.counts[0])
            home.queries = {name: query}
            homes[name] = home
        if self.engine is not None:
            for home in homes.values():
                home.start(unit)
                home.counts, home.late, home.arrivals = self.counts.copy(), self.late.copy(), self.arrivals.copy()
                home.moments, home.rejected = self.moments.copy(), dict(self.rejected)
            engines = [home.engine for home in homes.values()]
            self.engine.split(engines, self.now(clock))  # type: ignore[attr-defined]
            for home in homes.values():
                home.shelf = self.shelf.copy()
        return homes

    def expire(self, push: Push) -> dict[str, Any]:
        """Time windows: what leaves when time moves on with no arrival."""
        nothing = Judged(Scored(np.empty(0)), np.empty(0, np.bool_), None)
        return self.take(push, nothing, np.empty(0, np.int64))[0]

    def _columns(
        self, changes: Changes, push: Push, told: dict[str, Any], numbers: Ints, before: Ints
    ) -> dict[str, Any]:
        lanes = self.lanes[changes.query] if len(self.lengths) > 1 else np.zeros(len(changes.query), np.int64)
        idle = changes.row < 0
        at = changes.instant  # count windows: the number of the step's arrival
        if self.timed or self.deletable or idle.any():
            at = before[lanes, changes.group] - 1
            at[~idle] = numbers[lanes[~idle], changes.row[~idle]]
        when = changes.instant
        if not self.timed and push.times is not None:
            when = self.moments[changes.group]
            if len(self.stepped):
                when = np.where(self.stepped > BEGINNING, self.stepped, self.moments)[changes.group]
            when[~idle] = _moments(push)[changes.row[~idle]]
        return self._piece(changes, at, when, lanes, told, push.serial)

    def _piece(
        self, changes: Changes, at: Ints, when: Ints, lanes: Ints, told: dict[str, Any] | None, first: int
    ) -> dict[str, Any]:
        columns = {
            "query": changes.query,
            **self._keys(changes.group),
            "at": lent(at),
            "score": lent(self.reported(changes.key)),
            "diff": lent(changes.diff),
            "first": lent(changes.first),
        }
        if self.options.time is not None:
            type_ = told["time"].type if told else self.shelf.columns["time"].type
            columns["time"] = from_times(when, type_)
        for name in ("id", *self.options.kept):
            columns[name] = self._told(name, changes, lanes, told, first)
        return columns

    def _keys(self, groups: Ints) -> dict[str, Any]:
        """The `per` columns of these groups."""
        return {name: kept.take(groups) for name, kept in zip(self.groups.names, self.groups.columns, strict=False)}

    def _told(self, name: str, of: Changes | Ranked, lanes: Ints, told: dict[str, Any] | None, first: int) -> Any:
        """What is told of these objects; ids that nobody named are their own numbers."""
        fresh = told or {}
        if name != "id" or self.options.id is not None:
            return self.shelf.read(name, of.serial, fresh.get(name), first)
        if not self.timed:
            return lent(of.stamp)
        columns = [f"number{lane}" for lane in range(len(self.lengths))]
        found = [self.shelf.read(column, of.serial, fresh.get(column), first).cast(pa.int64()) for column in columns]
        return lent(np.stack([np.asarray(numbers) for numbers in found])[lanes, np.arange(len(of.serial))])

    def _turned(self, key: NDArray[np.float64]) -> NDArray[np.float64]:
        """From scores to engine's keys, where larger is better, and back."""
        return key if self.descending else -key

    def reported(self, key: NDArray[np.float64]) -> NDArray[np.float64]:
        """The score that belongs to what objects are ranked by."""
        value = self._turned(key)
        return self.by.score(value) if isinstance(self.by, Nearest) else value

    def _place(self, name: str) -> int:
        return list(self.queries).index(name)

    def now(self, clock: int) -> Ints:
        """Per group: the clock, or the number of the last arrival."""
        return np.full(self.groups.total, clock) if self.timed else _wider(self.counts, self.groups.total)[0] - 1

    def answer(self, name: str, asked: Asked, clock: int, groups: Ints | None) -> dict[str, Any]:
        """The current answers of these groups (None: all) as columns."""
        if self.engine is None:
            return {}
        query = self._place(name)
        ranked = self.engine.answer(query, asked, self.now(clock), groups)
        columns = {
            **self._keys(ranked.group),
            "rank": lent(ranked.rank),
            "score": lent(self.reported(ranked.key)),
        }
        lanes = np.full(len(ranked.serial), self.lanes[query])
        for told in ("id", *(("time",) if self.options.time is not None else ()), *self.options.kept):
            columns[told] = self._told(told, ranked, lanes, None, 0)
        return columns

    def refit(self, queries: dict[str, TopK | Above], unit: int | None, clock: int) -> dict[str, Any]:
        """Serve these queries instead, all of which fit; returns the changes under names that stay."""
        if self.engine is None or not queries:
            self.queries = queries
            return {}
        names = list(self.queries)
        heirs = np.array([names.index(name) for name in queries])
        self.queries = queries
        asked = self.asked(unit)
        changes = self.engine.refit(asked, heirs, self.now(clock))
        self._set_lanes(asked, heirs)
        return self._at_rest(changes, clock) if len(changes.query) else {}

    def leave(self, name: str, unit: int | None, clock: int) -> None:
        """Serve one query less."""
        self.refit({other: query for other, query in self.queries.items() if other != name}, unit, clock)

    def farewell(
        self, name: str, unit: int | None, clock: int, groups: Ints | None = None, when: Ints | None = None
    ) -> dict[str, Any]:
        """The whole answer of a query leaves, in these groups (None: all), at their moments if they have one."""
        if self.engine is None:
            return {}
        query = list(self.queries).index(name)
        ranked = self.engine.answer(query, self.asked(unit)[query], self.now(clock), groups)
        size = len(ranked.serial)
        changes = Changes(
            query=np.full(size, query),
            group=ranked.group,
            row=np.full(size, -1),
            instant=np.full(size, clock),
            stamp=ranked.stamp,
            serial=ranked.serial,
            key=ranked.key,
            diff=np.full(size, -1, np.int8),
            first=np.zeros(size, np.bool_),
            alive=np.empty(0, np.bool_),
        )
        return self._at_rest(changes, clock, when) if size else {}

    def _at_rest(
        self, changes: Changes, clock: int, moments: Ints | None = None, *, deleted: bool = False
    ) -> dict[str, Any]:
        """Changes between two pushes: at the last arrival of each group, or at the clock."""
        lanes = self.lanes[changes.query]
        at = _wider(self.counts, self.groups.total)[lanes, changes.group] - 1
        known = self.moments if moments is None else moments
        when = np.full(len(at), clock) if self.timed or deleted or not len(known) else known[changes.group]
        return self._piece(changes, at, when, lanes, None, 0)

    @property
    def is_fresh(self) -> bool:
        """Has nothing arrived yet, and is there room for one more query?"""
        return self.engine is None and not self.family and 0 < len(self.queries) < MOST

    @property
    def example(self) -> TopK | Above:
        """One of the queries, for what they share."""
        return next(iter(self.queries.values()))

    def can_serve(self, query: TopK | Above, unit: int | None) -> bool:
        """Does the query fit into the state that there is?"""
        if self.engine is None or not self._shares(query):
            return False
        asked, wanted = self.asked(unit), asked_of(query, unit)
        return wanted.k <= max(one.k for one in asked) and wanted.length <= max(one.length for one in asked)

    def _shares(self, query: TopK | Above) -> bool:
        return self.key(query) == self.key(self.example)

    def check(self) -> None:
        if self.engine is not None:
            self.engine.check()
            missing = np.setdiff1d(self.engine.serials()[0], self.shelf.serials)
            assert not self.shelf.columns or not len(missing), "what must be told of kept objects is there"
            assert all(len(column) == len(self.shelf) for column in self.shelf.columns.values())

    def stats(self, name: str) -> dict[str, Any]:
        lane = 0 if self.engine is None else int(self.lanes[list(self.queries).index(name)])
        return {
            "algorithm": self.algorithm,
            "objects": 0 if self.engine is None else self.engine.size_of(self._place(name)),
            "buffer": 0 if self.engine is None else self.engine.buffer,
            "bytes": self.shelf.nbytes + (0 if self.engine is None else self.engine.nbytes),
            "arrivals": int(self.arrivals[lane]),
            "late": int(self.late[lane]),
            "rejected": dict(self.rejected),
        }


@dataclass(frozen=True)
class Seen:
    """A batch as the standing queries see it."""

    standing: list[Standing]
    judged: list[Judged]  # one for each
    accepted: Bools  # by at least one query
    types: dict[str, Any]  # of the input's columns
    told: dict[str, Any]  # what is told of objects
    per: dict[str, Any]  # the columns of groups
    moments: Ints | None  # times as numbers
    deletes: Bools | None  # rows that delete an id


def length_of(query: TopK | Above, unit: int | None) -> int:
    return query.window.length(unit) if isinstance(query.window, Last) else NEVER


def asked_of(query: TopK | Above, unit: int | None) -> Asked:
    """The query as engines see it."""
    if isinstance(query, Above):
        return Asked(0, length_of(query, unit), query.threshold)
    return Asked(query.k, length_of(query, unit))


def _moments(push: Push) -> Ints:
    """The time of each row's step, where windows do not go by time: its own, but the clock of a deletion."""
    assert push.times is not None
    if push.deletes is None or push.clocks is None:
        return push.times
    return np.where(push.deletes, push.clocks, push.times)


def _number(groups: Ints, counts: Ints, counted: Bools) -> Ints:
    from skyband.kernels.routing import number, number_some

    numbers = np.empty(len(groups), np.int64)
    if len(counts) == 1 and counted.all():
        counts[0] += len(groups)
        return np.arange(counts[0] - len(groups), counts[0])
    if counted.all():
        number(groups, counts, numbers)
    else:
        number_some(groups, counted, counts, numbers)
    return numbers


def _wider(counts: Ints, total: int, fill: int = 0) -> Ints:
    """Room for so many groups, in the last dimension."""
    more = total - counts.shape[-1]
    return counts if more <= 0 else np.concatenate([counts, np.full((*counts.shape[:-1], more), fill)], axis=-1)
