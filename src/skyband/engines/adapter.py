"""Adapter: the queries that share one engine, and the engine.

It validates rows, numbers the arrivals, hands them to the engine as arrays, and turns the engine's changes into
columns (output.py). Each kind of query has a subclass in its folder, which says what is special about its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import Arrivals, Changes, Engine, Spec
from skyband.engines.numbering import Numbered, Numbering, Start, column_of, instants
from skyband.engines.output import Output, input_name, leaving
from skyband.engines.registry import choose, load, row_of
from skyband.engines.specs import fits, shared_key, spec_of
from skyband.engines.validation import Validation
from skyband.query.kinds import Query
from skyband.query.options import Options
from skyband.query.scoring import scoring_of
from skyband.query.windows import Ever, UntilDeleted
from skyband.tables.columns import KeptColumns, as_arrow
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Columns = dict[str, Any]  # of changes or answers, by name; empty: there are none


class Adapter(Validation):
    """One engine and the queries that it serves, in order of registration.

    The engine is made with the first arrivals, which say what a unit of time is.
    """

    most: ClassVar[int] = 32  # queries of one engine: their marks on an object are bits of one word
    keeps_window = False  # whether the engine keeps every valid object
    scored = True  # whether rows have a score before the engine sees them
    reads_more = True  # whether the engine reads `extra_arrays`
    family = False  # whether every query has a scoring of its own, of one form
    reads_change = False  # whether the engine puts what it keeps in order when that is read
    revalidates: Any = False  # whether rows are rejected because of earlier rows
    ids: Groups | None = None  # codes of the ids by which rows are deleted, over UntilDeleted()
    stands_still: ClassVar[bool] = True  # whether the engine's clock does, over a window without end: nothing is due
    window_key: Any = None  # adapters with one other than None have one window (pairs)
    block: tuple[int, int] | None = None  # of pairs on Spark: which share of them is scored, of how many

    def __init__(self, query: Query, groups: Groups, options: Options, start: Start) -> None:
        self.algorithm = choose(query)
        self.by: Any = getattr(query, "by", None)
        self.where: str | None = getattr(query, "where", None)
        self.descending = query.descending
        self.timed = options.timed(query.window)
        self.endless = isinstance(query.window, Ever)  # nothing expires
        self.still = self.endless and self.stands_still
        self.deletable = isinstance(query.window, UntilDeleted)
        self.groups = groups
        self.options = options
        self.queries: dict[str, Any] = {}  # of one kind
        dated = (not self.timed or self.endless) and options.time is not None
        self.numbering = Numbering(start, groups, timed=self.timed, dated=dated)
        self.output = Output(groups, options, self.numbering, self.score_of, self.deletable)
        self.engine: Engine | None = None
        self.rejected: dict[str, int] = {}

    @staticmethod
    def key(query: Query) -> tuple[Any, ...]:
        """Queries with equal keys can share an engine."""
        window = query.window.sort if row_of(query).shares else query.window
        return (*shared_key(query), window, query.algorithm, query.tuning)

    # --- the engine

    def reach(self, unit: int | None) -> int:
        """The length of its longest time window that ends: a time and this must fit into 64 bits together."""
        return max(spec.length for spec in self.specs(unit)) if self.timed and not self.endless else 0

    def specs(self, unit: int | None) -> tuple[Spec, ...]:
        """The queries as the engine sees them."""
        return tuple(spec_of(query, unit) for query in self.queries.values())

    def lengths(self, unit: int | None) -> list[int]:
        """The lengths of time windows by which queries number arrivals; 0 of others."""
        return [spec.length if self.timed else 0 for spec in self.specs(unit)]

    def largest(self) -> Ints:
        """By group, the largest of the next numbers of any query."""
        return self.numbering.largest()

    def start(self, unit: int | None) -> None:
        """Make the engine, now that the unit of time is known."""
        if self.engine is None:
            specs = self.asked = self.specs(unit)
            self.numbering.set_queries(specs)
            net, more = self.options.emit == "batch", self.engine_options()
            self.engine = self.engine_class()(specs, self.example.tuning, timed=self.timed, net=net, **more)

    def engine_class(self) -> type[Engine]:
        return load(self.example.kind, self.algorithm, family=self.family)

    def engine_options(self) -> dict[str, Any]:
        """Arguments of the engine beyond those that all take."""
        return {}

    @property
    def example(self) -> Any:
        """One of the queries, for what they share."""
        return next(iter(self.queries.values()))

    # --- a push

    def reads(self, batch: Batch | None) -> tuple[str, ...]:
        """Columns of the batch that are kept with each object, for scorings of pairs; None: those kept so far."""
        return ()

    def take(self, push: Push, validated: Validated, codes: Ints) -> tuple[Columns, Bools, Bools]:
        """Take a validated batch (codes: the group of each row).

        Returns the changes as columns, which rows have arrived, and which were too late for one of the queries.
        """
        assert self.engine is not None
        if self.numbering.since and push.batch.rows:  # objects that were there before it
            later = np.asarray(push.columns["id"]) >= self.numbering.since
            validated = replace(validated, accepted=validated.accepted & later)
        numbered = self.number(push, validated, codes)
        arrivals = self.arrivals(push, validated, numbered)
        arrived = self.numbering.take(push, numbered)
        changes = self.run(arrivals, push)
        if self.deletable:
            machine: Any = self.engine
            self.numbering.take_steps(push, numbered, machine.unknown)
        fresh = push.columns | {input_name(name): push.inputs[name] for name in self.reads(None) if name in push.inputs}
        fresh |= self.more_columns(push, validated)
        if self.output.reports_numbers:
            fresh |= {column_of(i): as_arrow(numbers) for i, numbers in enumerate(numbered.numbers)}
        columns = self.output.changes(changes, push, fresh, numbered)
        if not push.more:
            self.numbering.step_times = np.empty(0, np.int64)
        if fresh:
            kept = np.flatnonzero(changes.alive)
            rows = {name: column.take(as_arrow(kept)) for name, column in fresh.items()}
            self.kept_columns.add(push.serial + kept, rows)
        if len(self.kept_columns) > self.most_columns():
            self.kept_columns.sweep(self.live_serials())
        return columns, arrived, numbered.too_late

    def most_columns(self) -> int:
        """Of how many objects columns are kept before those that are gone are swept out."""
        assert self.engine is not None
        return 1024 + 2 * int(self.engine.kept.sum())

    def number(self, push: Push, validated: Validated, codes: Ints) -> Numbered:
        return self.numbering.number(push, validated.accepted, codes, accept_late=self.options.late == "accept")

    def arrivals(self, push: Push, validated: Validated, numbered: Numbered) -> Arrivals:
        """The numbered rows as the engine reads them."""
        here, numbers = numbered.here, numbered.later("own")
        clocks = push.clocks if self.timed else None
        now = numbered.later("zeros") if self.still else numbers if clocks is None else clocks[here]
        stamps = push.times[here] if push.times is not None and self.timed else numbers
        if self.options.inner:  # as old as the object's entry into the source's answer
            stamps = np.asarray(push.columns["id"])[numbered.rows]
        return Arrivals(
            rows=numbered.later("rows"),
            groups=numbered.later("groups"),
            keys=self.keys(validated.scored.key[here]) if self.scored else np.empty(0),
            stamps=stamps,
            now=now,
            whole=isinstance(here, slice),
            first=int(numbered.firsts[0]) if stamps is numbers and numbered.firsts is not None else None,
            eligible=None if validated.eligible is None else validated.eligible[here],
            serial=push.serial,
            size=push.batch.rows,
            clock=0 if self.still else push.clock,
            clocks=None if self.still else push.clocks,
            total=self.groups.total,
            wants_alive=bool(push.columns) or self.output.keeps_more or bool(self.reads(None)),
            more=push.more,
            **(self.extra_arrays(push, validated, numbered.rows) if self.reads_more else {}),
        )

    def more_columns(self, push: Push, validated: Validated) -> dict[str, Any]:
        """Columns of the rows of a push that are kept with objects besides those that the user named."""
        return {}

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        """What the engine reads of these rows besides their keys: more fields of `Arrivals`."""
        return {}

    def run(self, arrivals: Arrivals, push: Push) -> Changes:
        """Let the engine take the arrivals."""
        assert self.engine is not None
        changes = self.engine.take(arrivals)
        if not self.still:
            return changes
        clocks = push.clocks if self.timed else None
        return replace(changes, instant=instants(changes.row, arrivals, clocks, push.clock, self.options.emit))

    def now(self, clock: int) -> Ints:
        """Per group, where the engine's windows are: at the clock, or at the number of the last arrival."""
        return np.zeros(self.groups.total, np.int64) if self.still else self.numbering.now(clock)

    def expire(self, push: Push) -> Columns:
        """The changes when time moves on with no arrival."""
        nothing = Validated(Scored(np.empty(0)), np.empty(0, np.bool_), None)
        return self.take(push, nothing, np.empty(0, np.int64))[0]

    def keys(self, scores: Floats) -> Floats:
        """Scores as the engine's keys, where larger is better; and keys as scores."""
        return scores if self.descending else -scores

    def score_of(self, keys: Floats) -> Floats:
        """The scores to report for these keys."""
        return scoring_of(self.by).score(self.keys(keys))

    @property
    def kept_columns(self) -> KeptColumns:
        return self.output.kept_columns

    def live_serials(self) -> Ints:
        """The objects that may still be reported."""
        assert self.engine is not None
        return np.unique(np.concatenate([self.engine.serials()[0], self.engine.held["serial"]]))

    # --- answers

    @property
    def shown_keys(self) -> Any:
        """The types of the keys of an order that are reported."""
        return ()

    @property
    def names_in_order(self) -> list[str]:
        """The names of the queries, in the order by which changes are numbered."""
        return list(self.queries)

    @property
    def places(self) -> dict[str, int]:
        """Which of the engine's queries has which name."""
        return {name: place for place, name in enumerate(self.queries)}

    def place(self, name: str) -> int:
        """Which of them this is."""
        return self.places[name]

    def answer(self, name: str, spec: Spec, clock: int, groups: Ints | None) -> Columns:
        """The current answers of these groups (None: all) as columns."""
        return {} if self.engine is None else self.answer_at(self.place(name), spec, clock, groups)

    def answer_at(self, query: int, spec: Spec, clock: int, groups: Ints | None) -> Columns:
        """The same of the engine's query with this number."""
        assert self.engine is not None
        return self.output.answer(self.engine.answer(query, spec, self.now(clock), groups), query)

    def retract(
        self, name: str, unit: int | None, clock: int, groups: Ints | None = None, times: Ints | None = None
    ) -> Columns:
        """The changes by which a query's whole answer leaves, in these groups (None: all), at these times if given."""
        if self.engine is None:
            return {}
        query = self.place(name)
        spec = spec_of(self.queries[name], unit)
        answer = self.engine.answer(query, spec, self.now(clock), groups)
        changes = leaving(answer, query, spec, clock)
        return self.output.changes_at_rest(changes, clock, times)

    # --- queries come and go

    @property
    def is_fresh(self) -> bool:
        """Whether nothing has arrived yet and there is room for one more query."""
        return self.engine is None and not self.family and 0 < len(self.queries) < self.most

    def can_serve(self, query: Query, unit: int | None) -> bool:
        """Whether the state that is kept is enough for the query."""
        if self.engine is None or query.kind != self.example.kind or self.key(query) != self.key(self.example):
            return False
        return fits(spec_of(query, unit), self.specs(unit))

    def refit(self, queries: dict[str, Query], unit: int | None, clock: int) -> Columns:
        """Serve these queries instead, for which the state is enough; returns the changes.

        A query under a new name begins with what is there, and its whole answer enters.
        """
        if self.engine is None or not queries:
            self.queries = queries
            return {}
        places = self.places
        predecessors = np.array([places.get(name, -1) for name in queries])
        longest = int(np.argmax([spec.length for spec in self.specs(unit)]))
        self.queries = queries
        specs = self.specs(unit)
        changes = self.engine.refit(specs, predecessors, self.now(clock))
        columns = self.numbering.set_queries(specs, np.where(predecessors < 0, longest, predecessors))
        if self.output.reports_numbers:
            self.kept_columns.relabel("number", columns)
        return self.output.changes_at_rest(changes, clock)

    def can_lend(self, query: Any, unit: int | None) -> bool:
        """Whether a new query can begin with what is kept here."""
        return not self.family and len(self.queries) < self.most and self.can_serve(query, unit)

    def lend(self, queries: Mapping[str, Query], unit: int | None, clock: int) -> Columns:
        """Serve these queries too, which begin with what is kept here; returns what enters their answers."""
        return self.refit({**self.queries, **queries}, unit, clock)

    def leave(self, name: str, unit: int | None, clock: int) -> None:
        """Serve one query less."""
        self.refit({other: query for other, query in self.queries.items() if other != name}, unit, clock)

    def rename(self, names: Mapping[str, str]) -> None:
        """Give queries other names."""
        self.queries = {names.get(name, name): query for name, query in self.queries.items()}

    def split(self, unit: int | None, clock: int) -> dict[str, Adapter]:
        """Each query of a family with an adapter of its own, which goes on from here."""
        raise NotImplementedError

    def go_on_from(self, other: Adapter) -> None:
        """Take over what another adapter of these queries has counted and keeps of objects."""
        of_query, lengths = self.numbering.of_query, self.numbering.lengths
        self.numbering = self.output.numbering = other.numbering.copy()
        self.numbering.of_query, self.numbering.lengths = of_query, lengths
        self.rejected, self.output.kept_columns = dict(other.rejected), other.kept_columns.copy()

    # --- groups go

    def keep_groups(self, codes: Ints) -> None:
        """Keep only these groups, under the codes 0, 1, ...; no batch is open."""
        self.numbering.keep(codes)
        if self.engine is not None:
            self.engine.keep_groups(codes[codes < len(self.engine.kept)])

    def forget_groups(self, codes: Ints) -> None:
        """Drop everything that is known of these groups; whatever arrives then begins anew."""
        self.numbering.forget(codes)
        if self.engine is not None:
            self.engine.reset_groups(codes)

    # --- snapshots

    def kept_types(self, types: dict[str, Any]) -> dict[str, Any]:
        """The columns that are kept of objects, with their Arrow types."""
        read = {input_name(name): types.get(name, pa.null()) for name in self.reads(None)}
        return self.output.kept_types(types) | read

    def sequences(self) -> Ints:
        """The sequence of numbers of each query."""
        return self.numbering.of_query

    def extra_facts(self) -> dict[str, Any]:
        """Facts for a snapshot that only this kind of adapter has."""
        return {}

    def restore_facts(self, facts: dict[str, Any]) -> None:
        """Take the facts of a snapshot."""

    def learn(self, validated: Validated) -> None:
        """Know the types of a batch that is taken, also if no row of it is accepted."""

    def seen_types(self) -> dict[str, Any]:
        """The types of answers' columns that a batch brings which is not taken yet."""
        return {}

    def reads_stored(self, layout: Mapping[str, str]) -> None:
        """Arrays of these names come to be restored, of this version or of an older one."""

    def after_restore(self) -> None:
        """The engine and the kept columns have come back from a snapshot."""

    def check(self, *, deep: bool = True) -> None:
        """Check every invariant, as `Engine.check` does."""
        if self.engine is not None:
            self.engine.check(deep=deep)
            missing = np.setdiff1d(self.engine.serials()[0], self.kept_columns.serials)
            assert not self.kept_columns.columns or not len(missing), "columns of kept objects are there"
            assert all(len(column) == len(self.kept_columns) for column in self.kept_columns.columns.values())

    def stats(self, name: str) -> dict[str, Any]:
        numbering, place = self.numbering, None if self.engine is None else self.place(name)
        sequence = 0 if place is None else int(numbering.of_query[place])
        return {
            "algorithm": self.algorithm,
            "objects": 0 if self.engine is None or place is None else self.engine.size_of(place),
            "buffer": 0 if self.engine is None else self.engine.buffer,
            "bytes": self.kept_columns.nbytes + (0 if self.engine is None else self.engine.nbytes),
            "arrivals": int(numbering.arrivals[sequence]),
            "late": int(numbering.late[sequence]),
            "rejected": dict(self.rejected),
        }
