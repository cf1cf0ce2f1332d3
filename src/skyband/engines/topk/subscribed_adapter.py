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
from skyband.engines.contract import Arrivals, Changes
from skyband.engines.numbering import Numbered
from skyband.engines.topk.odd_rows import lane_keys, with_own_rows
from skyband.engines.topk.slot_arrivals import box_values, joined, part_of
from skyband.engines.topk.subscribed_slots import SubscribedSlots
from skyband.errors import BatchError, QueryError
from skyband.query.expressions import columns_in
from skyband.query.expressions.evaluation import evaluate
from skyband.query.validation import whole_number
from skyband.tables.columns import as_arrow
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated, reject_beyond

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class OddRow(NamedTuple):
    """A row for which some slots have no score."""

    row: int
    slots: Ints


class SubscribedAdapter(SubscribedSlots):
    """One engine of slots, and the subscriptions in them: rows in, changes and answers out."""

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
        return self.finish(batch, scored)

    def finish(self, batch: Batch, scored: Scored) -> Validated:
        """Reject what `where` and single subscriptions reject; say which rows can be an answer."""
        for name in self.form.where_columns:
            batch.operand(name)
        for name in self.form.attributes[len(self.columns) :]:
            self._require_kind(batch, name)
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
        batch.memo["wild", id(self)] = wild
        there, points = self._standing()
        weights, found = self._standing("weights")[1], []
        for row in np.flatnonzero(wild).tolist():
            keys = lane_keys(self.form.code, points, weights, [float(column[row]) for column in columns])
            if (none := np.isnan(keys)).any():
                found.append(OddRow(row, np.sort(there[none])))
        return found

    def _standing(self, name: str = "points") -> tuple[Ints, Floats]:
        """The slots that are taken, and one of their columns."""
        if self.engine is not None:
            return self.slots.taken(name)
        column = np.concatenate([getattr(columns, name) for _, columns, _ in self.waiting])
        return np.arange(len(column)), column  # slots are given in this order

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

    def _require_kind(self, batch: Batch, name: str) -> None:
        """Before anything changes: a column is what the values of `where` compare it with."""
        kind = self.kinds[name]
        if batch.operand(name).values.dtype != {"boolean": np.bool_, "string": object}.get(kind, np.float64):
            raise BatchError(
                f"column {name!r} holds {batch.array(name).type}, and `where` compares it with a {kind}. Let "
                "subscriptions bring values of its type, or convert the column."
            )

    def _compared(self, batch: Batch, name: str) -> Floats:
        """A column as boxes see it: NaN for null, which lies in no range."""
        kind = self.kinds[name]
        if kind == "number":
            return box_values(batch, name)
        operand = batch.operand(name)
        if kind == "boolean":
            values = operand.values.astype(np.float64)
        else:
            values = self.row_codes(name, batch.array(name))
        return values if operand.valid is None else np.where(operand.valid, values, np.nan)

    # --- a push

    def run(self, arrivals: Arrivals, push: Push) -> Changes:
        odd = self._arriving(push.batch, arrivals.rows) if not self.timed else []
        wild = push.batch.memo.get(("wild", id(self)))
        if wild is not None and wild[arrivals.rows].any():
            self.wild = int(arrivals.stamps[wild[arrivals.rows]][-1])
        pieces, low = [], 0
        for one in odd:
            place = int(np.searchsorted(arrivals.rows, one.row))
            if place > low:
                pieces.append(self.slots.take(part_of(arrivals, low, place, more=True)))
            self.slots.reject(one.slots, push.serial + one.row)
            self.table.reject(one.slots)
            low = place
        last = self.slots.take(part_of(arrivals, low, None, more=arrivals.more) if low else arrivals)
        changes = joined([*pieces, last]) if pieces else last
        if self.options.emit == "batch" and odd:
            changes = with_own_rows(changes, arrivals, [(one.row, one.slots) for one in odd])
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
        shortest = int(self.table.length[there].min()) if self.options.late == "accept" else 1
        late: Bools = validated.accepted & (push.clocks - push.times >= shortest)
        return late

    def _settle_odd(self, push: Push, odd: list[OddRow], arrived: Bools, late: Bools) -> None:
        """For a row that some slots reject, the others decide whether it has arrived, and whether it was too late."""
        for one in odd:
            assert push.times is not None and push.clocks is not None
            age = push.clocks[one.row] - push.times[one.row]
            lengths = self.table.length[np.setdiff1d(self.table.taken, one.slots)]
            limits = lengths if self.options.late == "accept" else np.ones(len(lengths), np.int64)
            arrived[one.row], late[one.row] = (limits > age).any(), (limits <= age).any()

    def _count_behind(self, push: Push, validated: Validated, odd: list[OddRow], columns: Columns) -> Columns:
        """The numbers of changes as each slot counts; then the slots are behind by what they did not count."""
        skipped: dict[int, Bools] = {}  # by row: which slots do not count it
        size = self.table.size
        if push.times is not None and push.clocks is not None and len(push.times) and self.options.late == "accept":
            lengths, ages = self.table.length[:size], push.clocks - push.times
            for row in np.flatnonzero(self._too_late(push, validated)).tolist():
                if ages[row] < self.longest:  # else nobody counts it
                    skipped[row] = lengths <= ages[row]
        limit = self.longest if self.options.late == "accept" else 1
        for one in odd:
            assert push.times is not None and push.clocks is not None
            if push.clocks[one.row] - push.times[one.row] >= limit:  # nobody counts it
                continue
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
        k = None if k is None else whole_number("TopK", "k", k, 1, "10")
        if self.engine is None or not len(entries):
            return np.empty(0, np.int64), {}
        slots, own = self.table.slot[entries], self.table
        small = own.k[slots] < (0 if k is None else k)
        if small.any():
            raise QueryError(f"k={k}: a subscription keeps only what its own k={int(own.k[slots][small][0])} needs.")
        if length is not None and (own.length[slots] < length).any():
            raise QueryError("window=: a subscription's own window is shorter. Ask for at most that.")
        found = self.slots.answers(slots, self._now(clock), k, length)
        who = entries[found.group]
        of = slots[found.group]
        answer = replace(found, group=np.zeros(len(found.group), np.int64))
        return who, self.output.answer_of(answer, of)

    def retract_all(self, clock: int) -> Columns:
        """The changes by which all answers leave."""
        if self.engine is None:
            return {}
        there = self.table.taken
        found = self.slots.answers(there, self._now(clock))
        size, slots = len(found.group), there[found.group]
        changes = Changes(
            query=slots, group=np.zeros(size, np.int64), row=np.full(size, -1), instant=np.full(size, clock),
            stamp=found.stamp, serial=found.serial, key=found.key, diff=np.full(size, -1, np.int8),
            first=np.zeros(size, np.bool_), alive=np.empty(0, np.bool_),
        )  # fmt: skip
        return self.changes_now(changes, clock)

    def stats(self, name: str) -> dict[str, Any]:
        engine = self.engine
        return {
            "algorithm": self.algorithm,
            "objects": 0 if engine is None else sum(pool.objects for pool in self.slots.pools.values()),
            "distinct": 0 if engine is None else self.slots.shared_objects,
            "buffer": 0 if engine is None else engine.buffer,
            "bytes": self.kept_columns.nbytes + (0 if engine is None else engine.nbytes + self.table.nbytes),
            "arrivals": int(self.numbering.arrivals[0]),
            "late": int(self.numbering.late[0]),
            "rejected": dict(self.rejected),
        }
