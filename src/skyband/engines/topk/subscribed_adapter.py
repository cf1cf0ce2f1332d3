"""The adapter of subscriptions as slots: all of a query with `Each`, in one engine, as columns.

Count windows number arrivals for all slots alike; a slot that joined with other numbers, or has rejected a row, differs
by an offset. Time windows count the rows that are not too late for the longest; each slot is behind by those that were
too late for it, or that it has rejected.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Columns
from skyband.engines.contract import Answer, Arrivals, Changes, Spec
from skyband.engines.invariants import require
from skyband.engines.numbering import Numbered, Start
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.odd_rows import lane_keys
from skyband.engines.topk.slot_columns import SlotColumns
from skyband.engines.topk.slot_table import SlotTable
from skyband.engines.topk.slots import Slots
from skyband.engines.topk.slots_adapter import _box_values, _slice, joined
from skyband.engines.topk.subscribed_form import SlotForm
from skyband.errors import BatchError, QueryError
from skyband.query.expressions import columns_in
from skyband.query.expressions.evaluation import evaluate
from skyband.query.kinds import TopK
from skyband.query.options import Options
from skyband.query.windows import Last
from skyband.tables.columns import as_arrow, distinct, grown
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated, reject_beyond
from skyband.tables.subscriptions import slots_key

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class OddRow(NamedTuple):
    """A row for which some slots have no score."""

    row: int
    slots: Ints


class SubscribedAdapter(TopKAdapter):
    """One engine of slots, and the subscriptions in them."""

    def __init__(
        self, name: str, example: TopK, groups: Groups, options: Options, start: Start, form: SlotForm,
        kinds: dict[str, str],
    ) -> None:  # fmt: skip
        super().__init__(example, groups, options, start, family=True)
        self.queries = {slots_key(name): example}
        self.owner = name
        self.where = None  # see `validate`
        self.form, self.kinds = form, kinds
        self.columns = form.attributes[: len(form.points)]
        self.words: dict[str, dict[str, int]] = {column: {} for column, kind in kinds.items() if kind == "string"}
        self.table = SlotTable()
        self.waiting: list[tuple[Ints, SlotColumns, int]] = []  # entries, columns, next number: until the first arrival
        self.longest = 0  # the longest window, in units of time or arrivals
        self.unit: int | None = None  # of time, once the engine is there
        self.swept = 0
        self.new_reasons: dict[str, int] = {}
        self._changes: Changes | None = None
        self._stored: dict[str, Any] | None = None

    @property
    def slots(self) -> Slots:
        assert isinstance(self.engine, Slots)
        return self.engine

    # --- subscriptions come and go

    def codes_of(self, column: str, values: Any) -> Floats:
        """Values that an attribute is compared with for equality, as numbers."""
        if self.kinds[column] == "boolean":
            return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)
        words, places = distinct(values)
        known = self.words[column]
        return np.array([float(known.setdefault(word, len(known))) for word in words])[places]

    def slot_columns(self, values: dict[str, Any], lengths: Ints) -> SlotColumns:
        """Subscriptions with these values as columns."""
        coded = {one.each: one.column for one in self.form.demands if one.each and self.kinds[one.column] != "number"}
        codes = {each: self.codes_of(column, values[each]) for each, column in coded.items()}
        return self.form.columns(values, codes, lengths)

    def join(self, entries: Ints, columns: SlotColumns, number: int, serial: int) -> None:
        """Give these subscriptions slots: they see rows from this serial on, and go on from this number."""
        if self.engine is None:
            self.waiting.append((entries, columns, number))
            return
        columns = replace(columns, length=self.lengths_in(columns.length, self.unit))
        self.longest = max(self.longest, int(columns.length.max(initial=0)))
        slots = self.slots.join(columns, serial)
        self.table.join(slots, entries, columns, number - int(self.numbering.next()[0].max(initial=0)))
        self._number_slots()

    def _number_slots(self) -> None:
        """Let changes be numbered by slot."""
        self.numbering.lengths = [self.longest if self.timed else 0]
        self.numbering.of_query = grown(self.numbering.of_query, self.table.size)
        if not self.timed:
            self.numbering.offsets, self.numbering.shifts = self.table.offset, self.table.shift

    def leave_slots(self, entries: Ints) -> None:
        """Let these subscriptions go."""
        if self.engine is None:
            kept = [(of, ~np.isin(of, entries), columns, number) for of, columns, number in self.waiting]
            self.waiting = [(of[keep], columns.take(keep), n) for of, keep, columns, n in kept if keep.any()]
            return
        slots = self.table.slot[entries]
        self.slots.leave(slots)
        self.table.leave(slots)

    def renumber(self, old: Ints) -> None:
        """Entries have new numbers: their place in `old`."""
        self.table.renumber(old)
        self.waiting = [(np.searchsorted(old, of), columns, number) for of, columns, number in self.waiting]

    @property
    def count(self) -> int:
        """How many subscriptions are here."""
        return self.table.count + sum(len(of) for of, _, _ in self.waiting)

    def largest(self) -> Ints:
        base = self.numbering.next()[0]
        waiting = [number - int(base.max(initial=0)) for _, _, number in self.waiting]
        return base + max([0, *waiting] if self.engine is None else [self.table.ahead()])

    # --- the engine

    def lengths_in(self, sizes: Ints, unit: int | None) -> Ints:
        """Lengths of windows in units of time: nanoseconds and spans, as subscriptions and windows give them."""
        window: Any = self.example.window
        if not self.timed or not len(sizes):
            return sizes
        bad = np.zeros(len(sizes), np.bool_) if window.nanoseconds is None or unit is None else sizes % unit != 0
        size = int(sizes[int(np.argmax(bad))])
        one = Last(span=size) if window.nanoseconds is None else Last(np.timedelta64(size, "ns"))
        one.length(unit)  # a QueryError, if it has none
        return sizes if window.nanoseconds is None or unit is None else sizes // unit

    def specs(self, unit: int | None) -> tuple[Spec, ...]:
        lengths = [int(self.lengths_in(columns.length, unit).max(initial=1)) for _, columns, _ in self.waiting]
        return (Spec(1, max([1, self.longest, *lengths])),)

    def start(self, unit: int | None) -> None:
        if self.engine is not None:
            return
        net, self.unit = self.options.emit == "batch", unit
        self.engine = Slots((), self.example.tuning, timed=self.timed, net=net, shape=self.form.shape)
        self.numbering.of_query = np.zeros(1, np.int64)
        self._number_slots()
        waiting, self.waiting = self.waiting, []
        for entries, columns, number in waiting:
            self.join(entries, columns, number, 0)

    # --- rows

    def validate(self, batch: Batch, cache: dict[Any, Scored], bad_times: dict[str, Bools | None]) -> Validated:
        columns = [batch.numbers(name).values for name in self.columns]
        scored = Scored(columns[0])
        reject_beyond(scored, batch, self.columns)
        bad: Any = np.logical_or.reduce([np.isnan(column) for column in columns])
        if bad.any():
            scored.reject_missing(bad, batch, self.form.scoring)
        for reason, rows in bad_times.items():
            if rows is not None:
                scored.reject(reason, rows)
        for name in self.form.where_columns:
            batch.operand(name)
        reject_beyond(scored, batch, self.form.where_columns)
        for one in self._odd(batch, scored):
            if self.options.invalid == "raise" or len(one.slots) == self.count:
                scored.reject(self.reason, np.arange(batch.rows) == one.row)
        return scored.validated(self._eligible(batch))

    def _eligible(self, batch: Batch) -> Bools | None:
        """The rows that satisfy what `where` demands for all subscriptions."""
        eligible: Bools | None = None
        for node in self.form.fixed:
            names = columns_in([node])
            where = str(next(iter(self.queries.values())).where)
            result = evaluate(where, node, names, {name: batch.operand(name) for name in names}, batch.rows)
            if result.values.dtype != np.bool_:
                raise BatchError(
                    f"where={where!r} is not a condition: it is neither true nor false. Compare something."
                )
            true: Any = result.values if result.valid is None else result.values & result.valid
            eligible = true if eligible is None else eligible & true
        return eligible

    @property
    def reason(self) -> str:
        """Why some subscriptions reject a row that others accept."""
        return f"{self.form.scoring.label} has no value"

    def _odd(self, batch: Batch, scored: Scored) -> list[OddRow]:
        """The rows for which some slots have no score: only wild numbers make any."""
        what = ("odd", id(self))
        if what not in batch.memo:
            batch.memo[what] = self._find_odd(batch, scored) if batch.rows and self.count else []
        found: list[OddRow] = batch.memo[what]
        return found

    def _find_odd(self, batch: Batch, scored: Scored) -> list[OddRow]:
        columns, limit = [batch.numbers(name).values for name in self.columns], self.form.limit
        wild = np.zeros(batch.rows, np.bool_)
        for column in columns:
            if not max(column.max(), -column.min()) <= limit:  # NaN too
                wild |= np.abs(column) > limit
        for rows in scored.rejected.values():
            wild &= ~rows
        there, found = self.table.taken, []
        if self.engine is not None:
            points, weights = (one[there] for one in (self.table.columns.points, self.table.columns.weights))
        else:  # slots are given in this order
            points, weights = (
                np.concatenate([getattr(columns, name) for _, columns, _ in self.waiting])
                for name in ("points", "weights")
            )
            there = np.arange(len(points))
        for row in np.flatnonzero(wild).tolist():
            keys = lane_keys(self.form.code, points, weights, [float(column[row]) for column in columns])
            if (none := np.isnan(keys)).any():
                found.append(OddRow(row, there[none]))
        return found

    def _arriving(self, batch: Batch, rows: Ints) -> list[OddRow]:
        """The odd rows among those that arrive."""
        known: list[OddRow] = batch.memo.get(("odd", id(self)), [])
        return [one for one in known if np.searchsorted(rows, one.row) < np.searchsorted(rows, one.row, "right")]

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        if not push.batch.rows:
            return {"attributes": tuple(np.empty(0) for _ in self.form.attributes)}
        values = [push.batch.numbers(name).values for name in self.columns]
        values += [self._compared(push.batch, name) for name in self.form.attributes[len(self.columns) :]]
        whole = len(rows) == push.batch.rows
        return {"attributes": tuple(values if whole else (column[rows] for column in values))}

    def _compared(self, batch: Batch, name: str) -> Floats:
        """A column as boxes see it: NaN for null, which lies in no range."""
        kind = self.kinds[name]
        if kind == "number":
            return _box_values(batch, name)
        operand = batch.operand(name)
        if operand.values.dtype != (np.bool_ if kind == "boolean" else object):
            raise BatchError(f"column {name!r} holds {batch.array(name).type}, and `where` compares it with a {kind}.")
        if kind == "boolean":
            values = operand.values.astype(np.float64)
        else:
            words, places = distinct(batch.array(name))
            values = np.array([*(float(self.words[name].get(word, -1)) for word in words), 0.0])[places]
        return values if operand.valid is None else np.where(operand.valid, values, np.nan)

    # --- a push

    def run(self, arrivals: Arrivals, push: Push) -> Changes:
        odd = self._arriving(push.batch, arrivals.rows) if not self.timed else []
        pieces, low = [], 0
        for one in odd:
            place = int(np.searchsorted(arrivals.rows, one.row))
            if place > low:
                pieces.append(self.slots.take(_slice(arrivals, low, place, more=True)))
            self.slots.reject(one.slots, push.serial + one.row)
            self.table.reject(one.slots)
            low = place
        last = self.slots.take(_slice(arrivals, low, None, more=arrivals.more) if low else arrivals)
        changes = joined([*pieces, last]) if pieces else last
        self._changes = changes
        return changes

    def take(self, push: Push, validated: Validated, codes: Ints) -> tuple[Columns, Bools, Bools]:
        columns, arrived, late = super().take(push, validated, codes)
        odd = self._arriving(push.batch, np.flatnonzero(validated.accepted))
        if odd:
            self.new_reasons[self.reason] = self.new_reasons.get(self.reason, 0) + len(odd)
            self.rejected[self.reason] = self.rejected.get(self.reason, 0) + len(odd)
        if self.timed:
            columns = self._count_behind(push, validated, odd, columns)
            late |= self._too_late(push, validated)
            self._settle_odd(push, odd, arrived, late)
        self._changes = None
        return columns, arrived, late

    def new_rejections(self) -> dict[str, int]:
        found, self.new_reasons = self.new_reasons, {}
        return found

    def _too_late(self, push: Push, validated: Validated) -> Bools:
        """The accepted rows that are too late for some slot."""
        there = self.table.taken
        if push.times is None or push.clocks is None or not len(push.times) or not len(there):
            return np.zeros(push.batch.rows, np.bool_)
        shortest = int(self.table.columns.length[there].min()) if self.options.late == "accept" else 1
        late: Bools = validated.accepted & (push.clocks - push.times >= shortest)
        return late

    def _settle_odd(self, push: Push, odd: list[OddRow], arrived: Bools, late: Bools) -> None:
        """For a row that some slots reject, the others decide whether it has arrived, and whether it was too late."""
        for one in odd:
            assert push.times is not None and push.clocks is not None
            age = push.clocks[one.row] - push.times[one.row]
            lengths = self.table.columns.length[np.setdiff1d(self.table.taken, one.slots)]
            limits = lengths if self.options.late == "accept" else np.ones(len(lengths), np.int64)
            arrived[one.row], late[one.row] = (limits > age).any(), (limits <= age).any()

    def _count_behind(self, push: Push, validated: Validated, odd: list[OddRow], columns: Columns) -> Columns:
        """The numbers of changes as each slot counts; then the slots are behind by what they did not count."""
        skipped: dict[int, Bools] = {}  # by row: which slots do not count it
        size = self.table.size
        if push.times is not None and push.clocks is not None and len(push.times) and self.options.late == "accept":
            lengths, ages = self.table.columns.length[:size], push.clocks - push.times
            for row in np.flatnonzero(self._too_late(push, validated)).tolist():
                if ages[row] < self.longest:  # else nobody counts it
                    skipped[row] = lengths <= ages[row]
        for one in odd:
            none = skipped.setdefault(one.row, np.zeros(size, np.bool_))
            none[one.slots] = True
        if columns and self._changes is not None:
            slots, rows = self._changes.query, self._changes.row
            at = np.asarray(columns["at"]) + self.table.offset[slots]
            for row, which in skipped.items():
                at -= (rows >= row) & which[slots]
            columns = {**columns, "at": as_arrow(at)}
        for which in skipped.values():
            self.table.fall_behind(which)
        return columns

    def number(self, push: Push, validated: Validated, codes: Ints) -> Numbered:
        self.numbering.lengths = [self.longest if self.timed else 0]
        return super().number(push, validated, codes)

    def most_columns(self) -> int:
        return max(self.swept, self.slots.distinct)

    def live_serials(self) -> Ints:
        live = super().live_serials()
        self.swept = 2 * len(live) + 1024  # the next time when these are half of the columns
        return live

    def must_split(self, batch: Batch) -> bool:
        return False

    @property
    def is_fresh(self) -> bool:
        return False

    # --- answers

    def answers(self, entries: Ints, clock: int, k: int | None, length: int | None) -> tuple[Ints, Columns]:
        """The answers of these subscriptions as columns, and which subscription each row is of."""
        if self.engine is None or not len(entries):
            return np.empty(0, np.int64), {}
        slots, own = self.table.slot[entries], self.table.columns
        small = own.k[slots] < (0 if k is None else k)
        if small.any():
            raise QueryError(f"k={k}: a subscription keeps only what its own k={int(own.k[slots][small][0])} needs.")
        if length is not None and (own.length[slots] < length).any():
            raise QueryError("window=: a subscription's own window is shorter. Ask for at most that.")
        now = self.numbering.now(clock)
        found = self._ranked(slots, int(now[0]) if len(now) else 0, k, length)
        who = entries[found.group]
        of = slots[found.group]
        answer = replace(found, group=np.zeros(len(found.group), np.int64))
        return who, self.output.answer_of(answer, of)

    def _ranked(self, slots: Ints, now: int, k: int | None, length: int | None) -> Answer:
        shifts = self.table.shift[slots]
        if self.timed or not shifts.any():
            return self.slots.answers(slots, now, k, length)
        parts = []  # slots that have rejected rows count fewer
        for behind in np.unique(shifts).tolist():
            mine = np.flatnonzero(shifts == behind)
            part = self.slots.answers(slots[mine], now - behind, k, length)
            parts.append(replace(part, group=mine[part.group]))
        order = np.argsort(np.concatenate([part.group for part in parts]), kind="stable")
        names = ("group", "rank", "stamp", "serial", "key")
        return Answer(*(np.concatenate([getattr(part, name) for part in parts])[order] for name in names))

    def retract_all(self, clock: int) -> Columns:
        """The changes by which all answers leave."""
        if self.engine is None:
            return {}
        there = self.table.taken
        now = self.numbering.now(clock)
        found = self._ranked(there, int(now[0]) if len(now) else 0, None, None)
        size, slots = len(found.group), there[found.group]
        changes = Changes(
            query=slots, group=np.zeros(size, np.int64), row=np.full(size, -1), instant=np.full(size, clock),
            stamp=found.stamp, serial=found.serial, key=found.key, diff=np.full(size, -1, np.int8),
            first=np.zeros(size, np.bool_), alive=np.empty(0, np.bool_),
        )  # fmt: skip
        columns = self.output.changes_at_rest(changes, clock)
        if columns and self.timed:
            columns["at"] = as_arrow(np.asarray(columns["at"]) + self.table.offset[slots])
        return columns

    # --- snapshots

    def extra_facts(self) -> dict[str, Any]:
        facts = {"kinds": self.kinds, "words": {name: list(words) for name, words in self.words.items()}}
        if self.engine is None:
            waiting = [(of.tolist(), number) for of, _, number in self.waiting]
            return {**facts, "entries": [], "numbers": [], "waiting": waiting}
        known = [one[: self.table.size].tolist() for one in (self.table.entry, self.table.offset, self.table.shift)]
        return {**facts, "entries": known[0], "numbers": known[1:], "waiting": []}

    def restore_facts(self, facts: dict[str, Any]) -> None:
        entries, numbers, words = facts["entries"], facts["numbers"], facts["words"]
        fit = all(map(_is_whole, entries)) and len({*entries} - {-1}) == sum(one >= 0 for one in entries)
        fit = fit and words.keys() == self.words.keys() and facts["kinds"] == self.kinds
        fit = fit and all(len({*known}) == len(known) and all(map(_is_text, known)) for known in words.values())
        fit = fit and all(len(one) == len(entries) and all(map(_is_whole, one)) for one in numbers)
        require(fit, "subscriptions have slots")
        self.words = {name: {word: i for i, word in enumerate(known)} for name, known in words.items()}
        self._stored = facts

    def restore_columns(self, entries: Ints, columns: SlotColumns, unit: int | None) -> None:
        """The columns of the slots that are taken, in order; entries by slot."""
        columns = replace(columns, length=self.lengths_in(columns.length, unit))
        assert self._stored is not None
        offset, shift = (np.array(one, np.int64) for one in self._stored["numbers"] or ([], []))
        self.table.restore(entries, offset, shift, columns)
        self.longest = int(columns.length.max(initial=0))

    def sequences(self) -> Ints:
        return np.zeros(1, np.int64)

    def after_restore(self) -> None:
        """Subscriptions find their slots again."""
        self._stored, entries = None, self.table.entry[: self.table.size]
        require(self.slots.count == len(entries), "slots have their numbers")
        require(((self.slots.slots["pool"][: len(entries)] >= 0) == (entries >= 0)).all(), "slots are taken")
        self._number_slots()

    def stats(self, name: str) -> dict[str, Any]:
        engine = self.engine
        return {
            "algorithm": self.algorithm,
            "objects": 0 if engine is None else int(self.slots.lanes_of(self.table.taken)["size"].sum()),
            "buffer": 0 if engine is None else engine.buffer,
            "bytes": self.kept_columns.nbytes + (0 if engine is None else engine.nbytes + self.table.nbytes),
            "arrivals": int(self.numbering.arrivals[0]),
            "late": int(self.numbering.late[0]),
            "rejected": dict(self.rejected),
        }


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
