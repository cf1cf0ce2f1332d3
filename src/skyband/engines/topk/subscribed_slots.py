"""Subscriptions in the slots of one engine: how they join and leave it, and how a snapshot holds them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Columns
from skyband.engines.contract import Changes, Spec
from skyband.engines.invariants import require
from skyband.engines.numbering import Start
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.slot_columns import SlotColumns, by_place
from skyband.engines.topk.slot_table import SlotTable
from skyband.engines.topk.slot_words import Words, are_words, numbers_in_use
from skyband.engines.topk.subscribed_form import SlotForm
from skyband.query.kinds import TopK
from skyband.query.options import Options
from skyband.query.tuning import Tuning
from skyband.query.windows import Last
from skyband.tables.columns import as_arrow, distinct, grown
from skyband.tables.groups import Groups
from skyband.tables.subscriptions import slots_key

if TYPE_CHECKING:
    from skyband.engines.topk.slots import Slots

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class SubscribedSlots(TopKAdapter):
    """The slots of an engine, and which subscription has which."""

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
        self.words = {column: Words() for column, kind in kinds.items() if kind == "string"}
        self.table = SlotTable()
        self.waiting: list[tuple[Ints, SlotColumns, int]] = []  # entries, columns, next number: until the first arrival
        self.unit: int | None = None  # of time, once the engine is there
        self.swept = 0
        self.wild = -(2**61)  # count windows: the number of the last arrival that some slots may have rejected
        self.new_reasons: dict[str, int] = {}
        self._changes: Changes | None = None
        self._stored: dict[str, Any] | None = None

    @property
    def slots(self) -> Slots:
        return cast("Slots", self.engine)

    # --- subscriptions come and go

    def codes_of(self, column: str, values: Any) -> Floats:
        """Values that an attribute is compared with for equality, as numbers."""
        if self.kinds[column] == "boolean":
            return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)
        words, places = distinct(values)
        return np.array(self.words[column].numbers(words))[places]

    def row_codes(self, column: str, values: Any) -> Floats:
        """The same of rows; null is any number."""
        known = self.words[column]
        if len(known.codes) > known.most and self.engine is not None:
            known.keep(self._codes_in_use(self.form.attributes.index(column)))
        words, places = distinct(values)
        return np.array([*known.numbers(words), 0.0])[places]

    def _codes_in_use(self, attribute: int) -> Floats:
        lows = [self.slots.taken("lows")[1], *(columns.lows for _, columns, _ in self.waiting)]
        history = [pool.data[attribute, pool.here] for pool in self.slots.pools.values()]
        return numbers_in_use(history, *(one[:, attribute] for one in lows))

    def slot_columns(self, values: dict[str, Any], lengths: Ints) -> SlotColumns:
        """Subscriptions with these values as columns."""
        coded = {one.each: one.column for one in self.form.demands if one.each and self.kinds[one.column] != "number"}
        codes = {each: self.codes_of(column, values[each]) for each, column in coded.items()}
        return self.form.columns(values, codes, lengths)

    def join(self, entries: Ints, columns: SlotColumns, number: int, serial: int) -> None:
        """Give these subscriptions slots: they see rows from this serial on, and go on from this number.

        Changes may name them in any order, so that of their slots is the one in which the engine works on them.
        """
        order = self.by_place(columns)
        if order is not None:
            entries, columns = entries[order], columns.take(order)
        if self.engine is None:
            self.waiting.append((entries, columns, number))
        else:
            self._join_placed(entries, columns, number, serial)

    def by_place(self, columns: SlotColumns) -> Ints | None:
        """An order in which slots that are worked on together are neighbours; None: any."""
        return by_place(columns.points)

    def _join_placed(self, entries: Ints, columns: SlotColumns, number: int, serial: int) -> None:
        columns = replace(columns, length=self.lengths_in(columns.length, self.unit))
        slots = self.slots.join(columns, serial, placed=True)
        self.table.join(slots, entries, columns, number - int(self.numbering.next()[0].max(initial=0)))
        self._number_slots()

    def cannot_lend(self, columns: SlotColumns, clock: int) -> tuple[int, str] | None:
        """The first of these subscriptions that cannot begin with what is in its window, and why; None: all can."""
        if self.engine is None:
            return 0, "nothing has arrived since the others subscribed. Subscribe without from_window."
        lengths = self.lengths_in(columns.length, self.unit)
        now = self._now(clock)
        for length in np.unique(lengths).tolist():
            place = int(np.argmax(lengths == length))
            if not self.timed and self.wild > now - length:
                return place, (
                    "its window holds a row with numbers that are infinite or beyond 1e100, which some subscriptions "
                    "count and others do not. Subscribe without from_window."
                )
            if not self.slots.holds(length, now):
                return place, self.too_long(length)
        return None

    def too_long(self, length: int) -> str:
        """Why no history holds a window of this length, and what to do."""
        return (
            f"what the others keep does not reach back over a window of {length}: let a subscription with at least "
            "that window stand from the beginning, and keep as many arrivals, TopK(..., buffer=...), if they are more "
            "than 262,144; or subscribe without from_window."
        )

    def join_from_window(self, entries: Ints, columns: SlotColumns, serial: int, clock: int) -> Columns:
        """As `join`, for subscriptions that see what is in their windows already; returns what enters.

        Their numbers are the largest of any subscription here.
        """
        columns = replace(columns, length=self.lengths_in(columns.length, self.unit))
        slots, changes = self.slots.join_from_window(columns, serial, self._now(clock))
        self.table.join(slots, entries, columns, self.table.ahead())
        self._number_slots()
        return self.changes_now(changes, clock)

    def changes_now(self, changes: Changes, clock: int) -> Columns:
        """Changes between two pushes as columns."""
        columns = self.output.changes_at_rest(changes, clock)
        if columns and self.timed:
            columns["at"] = as_arrow(np.asarray(columns["at"]) + self.table.offset[changes.query])
        return columns

    def _now(self, clock: int) -> int:
        now = self.numbering.now(clock)
        return int(now[0]) if len(now) else 0

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
        self._number_slots()

    def renumber(self, old: Ints) -> None:
        """Entries have new numbers: their place in `old`."""
        self.table.renumber(old)
        self.waiting = [(np.searchsorted(old, of), columns, number) for of, columns, number in self.waiting]

    @property
    def longest(self) -> int:
        """The longest window, in units of time or arrivals."""
        return self.table.longest

    @property
    def count(self) -> int:
        """How many subscriptions are here."""
        return self.table.count + sum(len(of) for of, _, _ in self.waiting)

    def largest(self) -> Ints:
        base: Ints = self.numbering.next()[0]
        waiting = [number - int(base.max(initial=0)) for _, _, number in self.waiting]
        ahead = max([0, *waiting]) if self.engine is None else self.table.ahead()
        return np.asarray(base + ahead)

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
        self.engine = self.new_engine(self.example.tuning, timed=self.timed, net=net)
        self.numbering.of_query = np.zeros(1, np.int64)
        self._number_slots()
        waiting, self.waiting = self.waiting, []
        for entries, columns, number in waiting:
            self._join_placed(entries, columns, number, 0)

    def new_engine(self, tuning: Tuning, *, timed: bool, net: bool) -> Slots:
        from skyband.engines.topk.slots import Slots  # and Numba: with the first arrivals

        return Slots((), tuning, timed=timed, net=net, shape=self.form.shape, whole=True)

    # --- snapshots

    def extra_facts(self) -> dict[str, Any]:
        words = {name: words.facts for name, words in self.words.items()}
        facts = {"kinds": self.kinds, "words": words, "wild": self.wild}
        if self.engine is None:
            waiting = [(of.tolist(), number) for of, _, number in self.waiting]
            return {**facts, "entries": [], "numbers": [], "waiting": waiting}
        known = [one[: self.table.size].tolist() for one in (self.table.entry, self.table.offset, self.table.shift)]
        return {**facts, "entries": known[0], "numbers": known[1:], "waiting": []}

    def restore_facts(self, facts: dict[str, Any]) -> None:
        entries, numbers, words = facts["entries"], facts["numbers"], facts["words"]
        fit = all(map(_is_whole, entries)) and len({*entries} - {-1}) == sum(one >= 0 for one in entries)
        fit = fit and words.keys() == self.words.keys() and facts["kinds"] == self.kinds
        fit = fit and all(map(are_words, words.values()))
        fit = fit and all(len(one) == len(entries) and all(map(_is_whole, one)) for one in numbers)
        fit = fit and _is_whole(facts["wild"])
        require(fit, "subscriptions have slots")
        for name, known in words.items():
            self.words[name].restore(known)
        self._stored, self.wild = facts, facts["wild"]

    def restore_columns(self, entries: Ints, columns: SlotColumns, unit: int | None) -> None:
        """The columns of the slots that are taken, in order; entries by slot."""
        columns = replace(columns, length=self.lengths_in(columns.length, unit))
        assert self._stored is not None
        stored: list[list[int]] = self._stored["numbers"] or [[], []]
        offset, shift = (np.array(one, np.int64) for one in stored)
        self.table.restore(entries, offset, shift, columns)

    def sequences(self) -> Ints:
        return np.zeros(1, np.int64)

    def after_restore(self) -> None:
        """Subscriptions find their slots again."""
        self._stored, entries = None, self.table.entry[: self.table.size]
        require(self.slots.count == len(entries), "slots have their numbers")
        require(((self.slots.slots["pool"][: len(entries)] >= 0) == (entries >= 0)).all(), "slots are taken")
        self._number_slots()


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62
