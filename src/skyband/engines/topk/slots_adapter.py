"""The adapter of a family of BLOCK: plain queries as slots of one engine, which they join and leave.

Queries differ in the numbers of their scoring, in k, in their windows and in the ranges that their `where` demands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Columns
from skyband.engines.contract import Arrivals, Changes, Spec
from skyband.engines.invariants import require
from skyband.engines.numbering import Numbered, Start, column_of
from skyband.engines.output import CHANGES
from skyband.engines.specs import spec_of
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.odd_rows import OddRow, find_odd_rows, unscored_by, wild_rows, with_own_rows
from skyband.engines.topk.scorings import MOST_ATTRIBUTES, boxes_of, family_key, form_of, plain_scoring, where_box
from skyband.engines.topk.slot_arrivals import box_values, is_name, is_whole, joined, part_of
from skyband.engines.topk.slot_columns import Shape, SlotColumns
from skyband.query.kinds import Query, TopK
from skyband.query.options import Options
from skyband.query.scoring import Scoring, scoring_of
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated, reject_beyond

if TYPE_CHECKING:
    from skyband.engines.topk.slots import Slots

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_BOXED = 6  # attributes of queries with boxes on different columns


class SlotsAdapter(TopKAdapter):
    """One engine of slots, and the plain queries in them."""

    numeric = True  # scorings read numbers

    def __init__(self, query: TopK, groups: Groups, options: Options, start: Start) -> None:
        super().__init__(query, groups, options, start, family=True)
        self.columns = self.plain_of(query).columns if self.numeric else ()  # those of numbers
        self.where = where_box(query)[1]
        self.attributes: tuple[str, ...] = ()  # columns of the scoring, then those that only boxes read
        self.slots: dict[str, int] = {}
        self.joined: dict[str, tuple[int, int, dict[str, int]]] = {}  # what was counted when a query joined
        self._order: tuple[list[str], NDArray[Any]] | None = None  # names by slot, and their places
        self.swept = 0
        self.refused: dict[str, dict[str, int]] = {}  # what single queries have rejected, by reason
        self.new_reasons: dict[str, set[int]] = {}
        self._stored: dict[str, Any] | None = None  # facts of a snapshot, until its arrays are there

    @property
    def slots_engine(self) -> Slots:
        return cast("Slots", self.engine)

    # --- queries

    def engine_options(self) -> dict[str, Any]:
        queries = list(self.queries.values())
        boxes = [where_box(query)[0] for query in queries]
        others = dict.fromkeys(name for box in boxes for name in box if name not in self.columns)
        self.attributes = self.attributes or (*self.columns, *others)
        boxed = any(boxes) or len(self.attributes) > len(self.columns)
        self.slots = {name: i for i, name in enumerate(self.queries)}
        return {"shape": self.shape(boxed=boxed), "columns": self.slot_columns(queries, list(self.asked), boxed=boxed)}

    def plain_of(self, query: TopK) -> Scoring:
        """The scoring as kernels compute it."""
        plain = plain_scoring(query.by, most=MOST_ATTRIBUTES)
        assert plain is not None
        return plain

    def shape(self, *, boxed: bool) -> Shape:
        """What all slots have in common."""
        form, d, a = form_of(self.plain_of(self.example)), len(self.columns), len(self.attributes)
        return Shape(form.code, not self.descending, d, a, bool(form.weights), boxed)

    def points(self, queries: list[TopK]) -> tuple[Floats, Floats]:
        """The numbers of scorings, and their weights, a row for each."""
        forms = [form_of(scoring_of(query.by).plain) for query in queries]
        weights = np.array([form.weights for form in forms]).reshape(len(forms), -1)
        return np.array([form.point for form in forms]), weights

    def slot_columns(self, queries: list[TopK], specs: list[Spec], *, boxed: bool) -> SlotColumns:
        """Queries as rows of columns."""
        lows, highs = boxes_of(queries, self.attributes if boxed else ())
        points, weights = self.points(queries)
        k, length = (np.array([getattr(spec, name) for spec in specs], np.int64) for name in ("k", "length"))
        return SlotColumns(points, weights, k, length, lows, highs)

    def start(self, unit: int | None) -> None:
        if self.engine is None:
            super().start(unit)
            if not self.timed:
                self.numbering.offsets = np.zeros(len(self.queries), np.int64)
                self.numbering.shifts = np.zeros(len(self.queries), np.int64)

    def can_join(self, query: Query) -> bool:
        """Whether one more query can have a slot here."""
        if not isinstance(query, TopK) or self.engine is None or family_key(query) != self.family_key:
            return False
        box = where_box(query)[0]
        return not box or (self.slots_engine.shape.boxed and box.keys() <= {*self.attributes})

    def holds(self, query: TopK, unit: int | None, clock: int) -> bool:
        """Whether the history holds the whole window of a query that can join."""
        return self.slots_engine.holds(spec_of(query, unit).length, self._now(clock))

    def _now(self, clock: int) -> int:
        return int(next(iter(self.numbering.now(clock)), 0))

    def join_from_window(
        self, name: str, query: TopK, unit: int | None, serial: int, start: Start, clock: int
    ) -> Columns:
        """As `join`, for a query that sees what is in its window already; returns what enters its answer."""
        columns = self.slot_columns([query], [spec_of(query, unit)], boxed=self.slots_engine.shape.boxed)
        (slot,), changes = self.slots_engine.join_from_window(columns, serial, self._now(clock))
        self._settle(name, query, int(slot), spec_of(query, unit).length, start)
        return self._named(self.output.changes_at_rest(changes, clock))

    def join(self, name: str, query: TopK, unit: int | None, serial: int, start: Start) -> None:
        """Give one more query a slot: it sees rows from this serial on, and goes on with these numbers."""
        spec = spec_of(query, unit)
        columns = self.slot_columns([query], [spec], boxed=self.slots_engine.shape.boxed)
        self._settle(name, query, int(self.slots_engine.join(columns, serial)[0]), spec.length, start)

    def _settle(self, name: str, query: TopK, slot: int, length: int, start: Start) -> None:
        """Note which slot a query has, and its numbers."""
        if self.numbering.join(slot, length, start) and self.output.reports_numbers:
            names = {column_of(i): column_of(i) for i in range(len(self.numbering.lengths) - 1)}
            new = column_of(len(self.numbering.lengths) - 1)
            self.kept_columns.relabel("number", names | {new: column_of(0)})
        sequence = int(self.numbering.of_query[slot])
        counted = int(self.numbering.arrivals[sequence]), int(self.numbering.late[sequence])
        self.queries[name], self.slots[name], self._order = query, slot, None
        self.joined[name] = (*counted, dict(self.rejected))

    def leave(self, name: str, unit: int | None, clock: int) -> None:
        if self.engine is not None:
            slot = self.slots.pop(name)
            self.slots_engine.leave(np.array([slot]))
            self.numbering.leave(slot)
        del self.queries[name]
        self.joined.pop(name, None)
        self.refused.pop(name, None)
        self._order = None

    def can_serve(self, query: Query, unit: int | None) -> bool:
        return False  # see can_shrink

    def can_shrink(self, name: str, query: Query, unit: int | None) -> bool:
        """Whether the query asks for no more than the one that has this slot."""
        old = self.queries[name]
        if self.engine is None or not isinstance(query, TopK):
            return False
        same = self.key(query)[:-3] == self.key(old)[:-3] and family_key(query) == family_key(old)
        wanted, given = spec_of(query, unit), spec_of(old, unit)
        return same and wanted.k <= given.k and wanted.length <= given.length

    def shrink(self, name: str, query: TopK, unit: int | None, clock: int) -> Columns:
        """Ask for less in the same slot; returns the changes from the old answer to the new one."""
        spec, slot = spec_of(query, unit), self.slots[name]
        changes = self.slots_engine.shrink(slot, spec, self._now(clock))
        start = Start(self.numbering.next()[self.numbering.of_query[slot]], self.numbering.at_rest.of([0]))
        if self.timed:
            self.numbering.join(slot, spec.length, start)
        self.queries[name] = query
        columns = self.output.changes_at_rest(changes, clock)
        return self._named(columns)

    @property
    def names_in_order(self) -> list[str]:
        return self._by_slot()[0]

    def _by_slot(self) -> tuple[list[str], NDArray[Any]]:
        if self.engine is None:  # nothing has arrived
            return list(self.queries), np.arange(len(self.queries))
        if self._order is None:
            names = sorted(self.queries, key=self.slots.__getitem__) if self.slots else list(self.queries)
            places = np.zeros(self.slots_engine.count, np.int32)
            places[[self.slots[name] for name in names]] = np.arange(len(names))
            self._order = names, places
        return self._order

    def _named(self, columns: Columns) -> Columns:
        """Changes by the places of their queries' names."""
        names, by_slot = self._by_slot()
        if not columns or len(names) == len(by_slot):  # where every slot is taken, places are slots
            return columns
        places = by_slot[columns["query"]]
        return columns | {"query": places, CHANGES: replace(columns[CHANGES], query=places)}

    @property
    def places(self) -> dict[str, int]:
        return self.slots

    # --- rows

    def score(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        """The rows that all slots reject, without scores."""
        scored = self.unscored(batch, cache)
        for one in self._odd_rows(batch, scored):
            if self.options.invalid == "raise" or len(one.names) == len(self.queries):
                scored.reject(one.reasons[one.names[0]], np.arange(batch.rows) == one.row)
        return scored

    def unscored(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        """The rows that no query can score."""
        known = cache.get(("slots", self.columns))
        if known is None:
            columns, plain = [batch.numbers(name).values for name in self.columns], self.plain_of(self.example)
            known = cache["slots", self.columns] = Scored(columns[0])
            reject_beyond(known, batch, self.columns)
            if any(np.isnan(batch.extremes(name)[0]) for name in self.columns):
                known.reject_missing(np.logical_or.reduce([np.isnan(column) for column in columns]), batch, plain)
        return Scored(known.key, dict(known.rejected))

    def _odd_rows(self, batch: Batch, scored: Scored) -> list[OddRow]:
        """The rows that some queries reject and others do not."""
        what = ("odd rows", id(self))
        if what not in batch.memo:
            boxed = [name for name in self.attributes or self._box_columns() if name not in self.columns]
            wild = self.wild_rows(batch)
            batch.memo[what] = find_odd_rows(
                batch, scored, self.queries, boxed, wild, lambda row: self.without_score(batch, row)
            )
        found: list[OddRow] = batch.memo[what]
        return found

    def wild_rows(self, batch: Batch) -> Bools:
        """The rows that some queries may be unable to score, and others not."""
        return wild_rows(batch, self.plain_of(self.example))

    def without_score(self, batch: Batch, row: int) -> list[str]:
        """The queries that have no score for a row."""
        return unscored_by(batch, self.columns, self.queries, row)

    def _box_columns(self) -> tuple[str, ...]:
        """The columns that only boxes read, before the engine is there."""
        boxes = [where_box(query)[0] for query in self.queries.values()]
        return tuple(dict.fromkeys(name for box in boxes for name in box if name not in self.columns))

    def number(self, push: Push, validated: Validated, codes: Ints) -> Numbered:
        numbered, known = super().number(push, validated, codes), len(self.numbering.lengths)
        before = self.numbering.of_query.tolist()
        for one in self._arriving(push, validated):
            for name in one.names:
                mine, reason = self.refused.setdefault(name, {}), one.reasons[name]
                mine[reason] = mine.get(reason, 0) + 1
                self.new_reasons.setdefault(reason, set()).add(one.row)
            if self.timed:
                numbered = self.numbering.reject(numbered, np.array([self.slots[name] for name in one.names]), one.row)
        if len(self.numbering.lengths) > known and self.output.reports_numbers and self.kept_columns.columns:
            names = {column_of(i): column_of(i if i < known else 0) for i in range(len(self.numbering.lengths))}
            for slot, sequence in enumerate(self.numbering.of_query.tolist()):
                if sequence >= known:
                    names[column_of(sequence)] = column_of(before[slot])
            self.kept_columns.relabel("number", names)
        return numbered

    def _arriving(self, push: Push, validated: Validated) -> list[OddRow]:
        """The odd rows that some queries accept."""
        found = push.batch.memo.get(("odd rows", id(self)), [])
        return [one for one in found if validated.accepted[one.row]]

    def run(self, arrivals: Arrivals, push: Push) -> Changes:
        odd = [] if self.timed else push.batch.memo.get(("odd rows", id(self)), [])
        places = np.searchsorted(arrivals.rows, [one.row for one in odd])
        pieces, low = [], 0
        for one, place in zip(odd, places.tolist(), strict=True):
            if place == len(arrivals.rows) or arrivals.rows[place] != one.row:
                continue  # all reject it
            if place > low:
                pieces.append(self.slots_engine.take(part_of(arrivals, low, place, more=True)))
            slots = np.array([self.slots[name] for name in one.names])
            self.slots_engine.reject(slots, push.serial + one.row)
            assert self.numbering.shifts is not None
            self.numbering.shifts[slots] += 1
            low = place
        last = self.slots_engine.take(part_of(arrivals, low, None, more=arrivals.more) if low else arrivals)
        changes = joined([*pieces, last]) if pieces else last
        refused = [(one.row, np.array([self.slots[name] for name in one.names])) for one in odd]
        return with_own_rows(changes, arrivals, refused) if self.options.emit == "batch" else changes

    def new_rejections(self) -> dict[str, int]:
        found, self.new_reasons = {reason: len(rows) for reason, rows in self.new_reasons.items()}, {}
        return found

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        return {"attributes": self._attributes(push.batch, rows)}

    def _attributes(self, batch: Batch, rows: Ints) -> tuple[Floats, ...]:
        if not batch.rows:
            return tuple(np.empty(0) for _ in self.attributes)
        values = [batch.numbers(name).values for name in self.columns]
        values += [box_values(batch, name) for name in self.attributes[len(self.columns) :]]
        return tuple(values if len(rows) == batch.rows else (column[rows] for column in values))

    def take(self, push: Push, validated: Validated, codes: Ints) -> tuple[Columns, Bools, Bools]:
        columns, arrived, late = super().take(push, validated, codes)
        return self._named(columns), arrived, late

    def most_columns(self) -> int:
        return max(self.swept, self.slots_engine.distinct)

    def live_serials(self) -> Ints:
        live = super().live_serials()
        self.swept = 2 * len(live) + 1024  # the next time when these are half of the columns
        return live

    def retract(
        self, name: str, unit: int | None, clock: int, groups: Ints | None = None, times: Ints | None = None
    ) -> Columns:
        return self._named(super().retract(name, unit, clock, groups, times))

    def must_split(self, batch: Batch) -> bool:
        return False

    def rename(self, names: Mapping[str, str]) -> None:
        super().rename(names)
        self.slots = {names.get(name, name): slot for name, slot in self.slots.items()}

    # --- snapshots

    def sequences(self) -> Ints:
        return (
            self.numbering.of_query[[self.slots[name] for name in self.queries]]
            if self.slots
            else np.empty(0, np.int64)
        )

    def extra_facts(self) -> dict[str, Any]:
        if self.engine is None:
            return {}
        names = list(self.queries)
        kept = (self.numbering.offsets, self.numbering.shifts)
        return {
            "slots": [self.slots[name] for name in names],
            "attributes": list(self.attributes),
            "offsets": [] if self.timed else [one.tolist() for one in kept if one is not None],
            "joined": {name: list(counted) for name, counted in self.joined.items()},
            "refused": self.refused,
        }

    def restore_facts(self, facts: dict[str, Any]) -> None:
        slots, attributes, joined, refused = (facts[name] for name in ("slots", "attributes", "joined", "refused"))
        fit = sorted({*slots}) == sorted(slots) and len(slots) == len(self.queries) and all(map(is_whole, slots))
        fit = fit and max(slots) < 4 * len(slots) + (1 << 20) and attributes[: len(self.columns)] == [*self.columns]
        fit = fit and len({*attributes}) == len(attributes) <= MOST_ATTRIBUTES and all(map(is_name, attributes))
        boxes = {name for query in self.queries.values() for name in where_box(query)[0]}
        fit = fit and boxes <= {*attributes} and joined.keys() <= self.queries.keys()
        for arrivals, late, rejected in joined.values():
            fit = fit and all(map(is_whole, [arrivals, late, *rejected.values()]))
        fit = fit and refused.keys() <= self.queries.keys()
        fit = fit and all(is_whole(count) for counts in refused.values() for count in counts.values())
        require(fit, "queries have slots")
        self.refused, self.attributes, self._stored = refused, tuple(attributes), facts
        self.joined = {name: (arrivals, late, rejected) for name, (arrivals, late, rejected) in joined.items()}

    def reads_stored(self, layout: Mapping[str, str]) -> None:
        self.slots_engine.reads(layout)

    def after_restore(self) -> None:
        """Queries find their slots again, those of a snapshot of version 0.1 in order."""
        if self._stored is not None and self.slots_engine.loaded:
            self.slots = dict(zip(self.queries, self._stored["slots"], strict=True))
            sequences, slots = self.numbering.of_query, np.array([*self.slots.values()])
            self.numbering.of_query = np.full(self.slots_engine.count, -1)
            self.numbering.of_query[slots] = sequences
            if not self.timed:
                offsets, shifts = (np.array(one, np.int64) for one in self._stored["offsets"])
                fits = len(offsets) == len(shifts) == self.slots_engine.count
                require(fits, "slots have their numbers")
                self.numbering.offsets, self.numbering.shifts = offsets, shifts
        self._stored, self._order = None, None
        lanes = self.slots_engine.lanes_of(np.array([*self.slots.values()]))
        require((lanes["k"] > 0).all(), "queries have slots")

    def stats(self, name: str) -> dict[str, Any]:
        known = super().stats(name)
        arrivals, late, rejected = self.joined.get(name, (0, 0, {}))
        left = {reason: count - rejected.get(reason, 0) for reason, count in known["rejected"].items()}
        for reason, count in self.refused.get(name, {}).items():
            left[reason] = left.get(reason, 0) + count
        shifts = self.numbering.shifts
        return known | {
            "arrivals": known["arrivals"] - arrivals - (0 if shifts is None else int(shifts[self.slots[name]])),
            "late": known["late"] - late,
            "rejected": {reason: count for reason, count in left.items() if count},
        }
