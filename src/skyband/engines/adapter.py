"""Standing queries that share one engine: the same scoring, direction, `where`, `per` and kind of window.

Here rows are judged and become arrivals with numbers; `output.py` turns the engine's changes into columns again.
Each kind has a subclass: topk/window_adapter.py, {pairs,incomplete,uncertain}/adapter.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import NEVER, Arrivals, Changes, Engine, Scorings, Spec
from skyband.engines.output import Reporting, moments, wider
from skyband.engines.registry import choose, load, row_of
from skyband.engines.topk.scorings import scorings_of, validate_family
from skyband.query.kinds import Query
from skyband.query.options import Options
from skyband.query.tuning import Tuning
from skyband.query.windows import Last, UntilDeleted
from skyband.tables.columns import KeptColumns, as_arrow
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import BEGINNING, Push
from skyband.tables.scores import Scored, Validated, matches, reject_beyond, score

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
MOST = 32  # queries that share an engine: their marks on an object are bits of one word


class Adapter(Reporting):
    """One engine and the queries it serves, in order of registration."""

    keeps = False  # all of its window
    revalidates = False  # are rows rejected because of earlier rows?
    most = MOST  # queries
    block: tuple[int, int] | None = None  # of pairs: which share of them is scored, of how many

    def __init__(self, query: Query, groups: Groups, options: Options, counts: Ints, *, family: bool = False) -> None:
        self.algorithm = choose(query)
        self.family = family  # every query has a scoring of its own, of one family
        self.by: Any = getattr(query, "by", None)
        self.where: str | None = getattr(query, "where", None)
        self.descending = query.descending
        self.timed = query.window.timed
        self.groups = groups
        self.options = options
        self.queries = {}
        self.counts = counts[None, :]
        self.lengths = []
        self.lanes = np.empty(0, np.int64)
        self.moments = np.empty(0, np.int64)
        self.stepped = np.empty(0, np.int64)
        self.kept_columns = KeptColumns()
        self.engine: Engine | None = None
        self.late: Ints = np.zeros(1, np.int64)  # by lane
        self.arrivals: Ints = np.zeros(1, np.int64)
        self.rejected: dict[str, int] = {}

    @staticmethod
    def key(query: Query) -> tuple[Any, ...]:
        """Queries with equal keys can share an engine."""
        row = row_of(query)
        if row.keeps_window:
            return (object(),)  # they come together at the first arrival
        window = query.window.timed if row.shares else query.window
        return (*shared(query), window, query.algorithm, query.tuning)

    @property
    def dated(self) -> bool:
        """Is the time of each group's last arrival kept?"""
        return not self.timed and self.options.time is not None

    def told(self, types: dict[str, Any]) -> dict[str, Any]:
        """What is kept of objects to be told later, with its Arrow types."""
        told = {role: types.get(name, pa.null()) for role, name in self.options.roles.items()}
        told |= {_input(name): types.get(name, pa.null()) for name in self.reads(None)}
        if self.options.id is None and self.timed:  # count windows: the stamp is the number
            told |= {f"number{lane}": pa.int64() for lane in range(len(self.lengths))}
        return told

    def widen(self) -> None:
        """Room for all groups."""
        self.counts = wider(self.counts, self.groups.total)
        if self.dated:
            self.moments = wider(self.moments, self.groups.total, BEGINNING)

    def asked(self, unit: int | None) -> tuple[Spec, ...]:
        return tuple(spec_of(query, unit) for query in self.queries.values())

    def start(self, unit: int | None) -> None:
        """Make the engine, now that the unit of time is known."""
        if self.engine is None:
            asked = self.asked(unit)
            self._set_lanes(asked)
            net, more = self.options.emit == "batch", self.engine_options()
            self.engine = self.engine_class()(asked, self.example.tuning, timed=self.timed, net=net, **more)

    def engine_class(self) -> type[Engine]:
        return load(self.example.kind, self.algorithm, family=self.family)

    def engine_options(self) -> dict[str, Any]:
        """What the engine must know besides."""
        return {"scorings": self.scorings()} if self.family else {}

    def scorings(self) -> Scorings:
        """Of a family, one for each query."""
        return scorings_of(list(self.queries.values()))

    def _set_lanes(self, asked: tuple[Spec, ...], predecessors: Ints | None = None) -> None:
        """Time windows number arrivals by their length: that decides what is too late. Heirs keep their numbers."""
        old = np.zeros(len(asked), np.int64) if predecessors is None else self.lanes[predecessors]
        lanes = list(zip(old.tolist(), (one.length if self.timed else 0 for one in asked), strict=True))
        distinct = list(dict.fromkeys(lanes))
        kept = [lane for lane, _ in distinct]
        self.counts, self.late, self.arrivals = self.counts[kept], self.late[kept], self.arrivals[kept]
        self.lengths = [length for _, length in distinct]
        self.lanes = np.array([distinct.index(lane) for lane in lanes])
        if predecessors is not None and self.options.id is None and self.timed:
            names = {f"number{new}": f"number{lane}" for new, (lane, _) in enumerate(distinct)}
            self.kept_columns.relabel("number", names)

    def validate(self, batch: Batch, cache: dict[Any, Scored], untimely: dict[str, Bools | None]) -> Validated:
        """Score the rows; who is rejected, who can be an answer. Changes nothing."""
        scored = self._score(batch, cache)
        for reason, rows in untimely.items():
            if rows is not None:
                scored.reject(reason, rows)
        eligible = None
        if self.where is not None:
            eligible, columns = matches(batch, self.where)
            reject_beyond(scored, batch, columns)
        return scored.validated(eligible)

    def _score(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        """What each row is ranked by, and who has no such thing."""
        what = (self.unscored, id(self.by) if callable(self.by) else self.by)
        if what not in cache:
            validated = validate_family(batch, self.by) if self.unscored else score(batch, self.by)
            assert validated is not None, "wild numbers have split the family"
            cache[what] = validated
        return Scored(cache[what].key, dict(cache[what].rejected))

    def revalidate(self, push: Push, validated: Validated, codes: Ints, unit: int | None) -> Validated:
        """Reject rows because of earlier ones, those of this push among them. Changes nothing.

        push.clocks: after each row that anybody takes; codes: the group of each row.
        """
        raise NotImplementedError

    def new_rejections(self) -> dict[str, int]:
        """What was rejected while a push was taken, by reason; asked for once."""
        return {}

    def reads(self, batch: Batch | None) -> tuple[str, ...]:
        """Columns of the batch that are kept with each object, for scorings of pairs; None: those kept so far."""
        return ()

    def own(self) -> dict[str, Any]:
        """Facts for a snapshot that only this kind of adapter has."""
        return {}

    def recall(self, own: dict[str, Any]) -> None:
        """Facts from a snapshot."""

    def after_restore(self) -> None:
        """The engine and the kept columns have come back from a snapshot."""

    def set_apart(
        self, validated: Validated, deletes: Bools, other: Bools, untimely: dict[str, Bools | None]
    ) -> Validated:
        """Rows that delete an id have no score: only queries whose objects are deleted take them."""
        scored = Scored(validated.scored.key)
        for reason, rows in validated.scored.rejected.items():
            scored.reject(reason, rows if self.deletable and reason in untimely else rows & ~deletes)
        scored.reject("op is unknown", other)
        taken = scored.validated(validated.eligible)
        return taken if self.deletable else replace(taken, accepted=taken.accepted & ~deletes)

    @property
    def deletable(self) -> bool:
        return isinstance(self.example.window, UntilDeleted)

    @property
    def unscored(self) -> bool:
        """Does the engine score objects itself, by their attributes?"""
        return self.family

    def needed(
        self, validated: Validated, codes: Ints, total: int, times: Ints, clocks: Ints, unit: int | None
    ) -> Bools:
        """Which rows of a part of a batch, in order, can matter; those left out get no number.

        clocks: the largest time so far, of all rows.
        """
        assert not self.unscored, "a family has no keys to judge by"
        wanted = validated.accepted if validated.eligible is None else validated.accepted & validated.eligible
        rows = np.flatnonzero(wanted)
        whole = len(rows) == len(wanted)
        chosen = slice(None) if whole else rows  # a slice copies nothing
        arrivals = Arrivals(
            rows=rows,
            groups=codes[chosen],
            keys=self._turned(validated.scored.key[chosen]),
            stamps=times[chosen],
            now=clocks if whole else np.maximum.accumulate(times[chosen]),
            eligible=None,
            serial=0,
            size=len(validated.accepted),
            clock=0,
            clocks=None,
            total=total,
        )
        engine = load("TopK", self.algorithm)
        kept = engine.needed(arrivals, self.asked(unit), net=self.options.emit == "batch")
        needed = np.zeros(len(validated.accepted), np.bool_)
        needed[rows[kept]] = True
        return needed

    def count_rejected(self, validated: Validated) -> None:
        for reason, rows in validated.scored.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + int(rows.sum())

    def take(self, push: Push, validated: Validated, codes: Ints) -> tuple[dict[str, Any], Bools, Bools]:
        """Take a judged batch (codes: the group of each row).

        Returns the changes as columns, which rows have arrived, and which were too late for one of the queries.
        """
        coming = self._coming(push, validated, codes)
        arrivals, numbers, here, before = coming.arrivals, coming.numbers, coming.here, coming.before
        self.counts, self.late, self.arrivals = coming.counts, self.late + coming.late, self.arrivals + coming.came
        arrived = np.zeros(push.batch.rows, np.bool_)
        came = slice(None) if push.deletes is None else ~push.deletes[here]
        if len(arrivals.rows) == len(arrived) and push.deletes is None:
            arrived[:] = True
        else:
            arrived[arrivals.rows[came]] = True
        changes = self._run(arrivals, push)
        inputs = {_input(name): push.inputs[name] for name in self.reads(None) if name in push.inputs}
        told = push.columns | inputs
        if self.options.id is None and self.timed:  # count windows: the stamp is the number
            told |= {f"number{w}": as_arrow(numbers[w]) for w in range(len(self.lengths))}
        if push.times is not None and not self.timed:
            self.moments = wider(self.moments, self.groups.total, BEGINNING)
            self.moments[arrivals.groups[came]] = push.times[here][came]
            if self.deletable and (push.deletes is not None or len(self.stepped)):
                self.stepped = wider(self.stepped, self.groups.total, BEGINNING)
                self.stepped[arrivals.groups] = moments(push)[here]
        columns = self._columns(changes, push, told, numbers, before)
        if not push.more:
            self.stepped = np.empty(0, np.int64)
        kept = np.flatnonzero(changes.alive)
        if told:
            self.kept_columns.add(
                push.serial + kept, {name: column.take(as_arrow(kept)) for name, column in told.items()}
            )
        assert self.engine is not None
        if len(self.kept_columns) > 1024 + 2 * int(self.engine.kept.sum()):
            self.kept_columns.sweep(self._live())
        return columns, arrived, coming.too_late

    def _coming(self, push: Push, validated: Validated, codes: Ints) -> Coming:
        """The accepted rows as arrivals with numbers. Changes nothing."""
        late = np.zeros(len(self.lengths), np.int64)
        rows = np.flatnonzero(validated.accepted)
        too_late = np.zeros(push.batch.rows, np.bool_)
        counted = [np.ones(len(rows), np.bool_) for _ in self.lengths]
        if self.timed:
            assert push.times is not None and push.clocks is not None
            ages = push.clocks[rows] - push.times[rows]
            limits = self.lengths if self.options.late == "accept" else [1] * len(self.lengths)
            timely = ages < max(limits)
            counted = [(ages < limit)[timely] for limit in limits]
            too_late[rows[ages >= min(limits)]] = True
            late += [int((ages >= limit).sum()) for limit in limits]
            rows = rows[timely]
        here = slice(None) if len(rows) == push.batch.rows else rows  # a slice copies nothing
        if push.deletes is not None:
            counted = [~push.deletes[here]]
        groups = codes[here]
        before = wider(self.counts, self.groups.total)
        numbers = np.empty((len(self.lengths), push.batch.rows), np.int64)
        counts = before.copy()
        for lane, which in enumerate(counted):
            numbers[lane, here] = _number(groups, counts[lane], which)
        arrivals = Arrivals(
            rows=rows,
            groups=groups,
            keys=np.empty(0) if self.unscored else self._turned(validated.scored.key[here]),
            stamps=push.times[here] if push.times is not None and self.timed else numbers[0, here],
            now=push.clocks[here] if push.clocks is not None and self.timed else numbers[0, here],
            eligible=None if validated.eligible is None else validated.eligible[here],
            serial=push.serial,
            size=push.batch.rows,
            clock=push.clock,
            clocks=push.clocks,
            total=self.groups.total,
            told=bool(push.columns) or (self.options.id is None and self.timed) or bool(self.reads(None)),
            more=push.more,
            **self._more(push, validated, rows),
        )
        came = np.array([np.count_nonzero(which) for which in counted], np.int64)
        return Coming(arrivals, numbers, here, before, counts, came, late, too_late)

    def _run(self, arrivals: Arrivals, push: Push) -> Changes:
        assert self.engine is not None
        return self.engine.take(arrivals)

    def _more(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        """What the engine reads of these rows besides their keys: more fields of `Arrivals`."""
        return {"attributes": self._attributes(push.batch, rows)} if self.unscored else {}

    def _live(self) -> Ints:
        """The objects of which something may still be told."""
        assert self.engine is not None
        return np.unique(np.concatenate([self.engine.serials()[0], self.engine.held["serial"]]))

    def _attributes(self, batch: Batch, rows: Ints) -> tuple[NDArray[np.float64], ...]:
        columns = self.by.columns
        if not batch.rows:
            return tuple(np.empty(0) for _ in columns)
        values = [batch.numbers(name).values for name in columns]
        return tuple(values if len(rows) == batch.rows else (column[rows] for column in values))

    def is_wild(self, batch: Batch) -> bool:
        """Is this a family, and does the batch hold numbers that its scorings may judge differently?"""
        return self.unscored and batch.rows > 0 and validate_family(batch, self.by) is None

    def split(self, unit: int | None, clock: int) -> dict[str, Adapter]:
        """Each query of a family with an adapter of its own, which goes on from here."""
        adapters = {}
        for name, query in self.queries.items():
            adapter = Adapter(query, self.groups, self.options, self.counts[0])
            adapter.queries = {name: query}
            adapters[name] = adapter
        if self.engine is not None:
            for adapter in adapters.values():
                adapter.start(unit)
                adapter.counts, adapter.late, adapter.arrivals = (
                    self.counts.copy(),
                    self.late.copy(),
                    self.arrivals.copy(),
                )
                adapter.moments, adapter.rejected = self.moments.copy(), dict(self.rejected)
            engines = [adapter.engine for adapter in adapters.values()]
            self.engine.split(engines, self.now(clock))  # type: ignore[attr-defined]
            for adapter in adapters.values():
                adapter.kept_columns = self.kept_columns.copy()
        return adapters

    def expire(self, push: Push) -> dict[str, Any]:
        """Time windows: what leaves when time moves on with no arrival."""
        nothing = Validated(Scored(np.empty(0)), np.empty(0, np.bool_), None)
        return self.take(push, nothing, np.empty(0, np.int64))[0]

    def refit(self, queries: dict[str, Query], unit: int | None, clock: int) -> dict[str, Any]:
        """Serve these queries instead, all of which fit; returns the changes under names that stay."""
        if self.engine is None or not queries:
            self.queries = queries
            return {}
        names = list(self.queries)
        predecessors = np.array([names.index(name) for name in queries])
        self.queries = queries
        asked = self.asked(unit)
        changes = self.engine.refit(asked, predecessors, self.now(clock))
        self._set_lanes(asked, predecessors)
        return self._at_rest(changes, clock) if len(changes.query) else {}

    def leave(self, name: str, unit: int | None, clock: int) -> None:
        """Serve one query less."""
        self.refit({other: query for other, query in self.queries.items() if other != name}, unit, clock)

    @property
    def is_fresh(self) -> bool:
        """Has nothing arrived yet, and is there room for one more query?"""
        return self.engine is None and not self.family and 0 < len(self.queries) < self.most

    @property
    def example(self) -> Any:
        """One of the queries, for what they share."""
        return next(iter(self.queries.values()))

    def can_serve(self, query: Query, unit: int | None) -> bool:
        """Does the query fit into the state that there is?"""
        if self.engine is None or not self._shares(query):
            return False
        asked, wanted = self.asked(unit), spec_of(query, unit)
        return wanted.k <= max(one.k for one in asked) and wanted.length <= max(one.length for one in asked)

    def _shares(self, query: Query) -> bool:
        return self.key(query) == self.key(self.example)

    def check(self) -> None:
        if self.engine is not None:
            self.engine.check()
            missing = np.setdiff1d(self.engine.serials()[0], self.kept_columns.serials)
            assert not self.kept_columns.columns or not len(missing), "what must be told of kept objects is there"
            assert all(len(column) == len(self.kept_columns) for column in self.kept_columns.columns.values())

    def stats(self, name: str) -> dict[str, Any]:
        lane = 0 if self.engine is None else int(self.lanes[list(self.queries).index(name)])
        return {
            "algorithm": self.algorithm,
            "objects": 0 if self.engine is None else self.engine.size_of(self._place(name)),
            "buffer": 0 if self.engine is None else self.engine.buffer,
            "bytes": self.kept_columns.nbytes + (0 if self.engine is None else self.engine.nbytes),
            "arrivals": int(self.arrivals[lane]),
            "late": int(self.late[lane]),
            "rejected": dict(self.rejected),
        }


@dataclass(frozen=True)
class Coming:
    """A batch as an engine will see it, and what it does to the adapter's numbers."""

    arrivals: Arrivals
    numbers: Ints  # by lane and row of the batch
    here: Any  # the rows that arrive
    before: Ints  # the next numbers, by lane and group: before the batch, and after it
    counts: Ints
    came: Ints  # how many arrive, by lane
    late: Ints
    too_late: Bools  # rows that are too late for one of the queries


def length_of(query: Query, unit: int | None) -> int:
    return query.window.length(unit) if isinstance(query.window, Last) else NEVER


def spec_of(query: Query, unit: int | None) -> Spec:
    """The query as engines see it."""
    threshold, semantics = getattr(query, "threshold", None), getattr(query, "semantics", None)
    return Spec(getattr(query, "k", 0), length_of(query, unit), threshold, semantics)


def shared(query: Query) -> tuple[Any, ...]:
    """What queries ask that differ only in k, in their window and in how they are answered."""
    told = {field.name: getattr(query, field.name) for field in fields(query) if field.name not in _OWN}  # type: ignore[arg-type]
    by = told.pop("by", None)
    return (query.kind, id(by) if callable(by) else by, query.descending, *told.values())


_OWN = ("k", "window", "largest", "algorithm", *(field.name for field in fields(Tuning)))


def _input(name: str) -> str:
    """Under which name a column of the batch is on the kept columns, beside what is told of objects."""
    return f"={name}"


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
