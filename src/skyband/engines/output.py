"""Engine results to output columns: changes and answers with ids, times and kept columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import Answer, Changes, Spec
from skyband.engines.numbering import Numbered, Numbering, column_of, step_times
from skyband.query.options import ID, OWN, Options
from skyband.tables.changes import of_pair
from skyband.tables.columns import KeptColumns, as_arrow
from skyband.tables.groups import Groups
from skyband.tables.input import from_times
from skyband.tables.push import AT, BEGINNING, STEP, Push

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
CHANGES, CLOCKS = "# changes", "# clocks"  # what questions over answers read of changes
AT_REST = "at rest"  # in place of clocks: changes between two pushes


@dataclass(frozen=True)
class Fresh:
    """Columns of the rows of a push, whose first row has this serial."""

    columns: dict[str, Any]
    serial: int


class Output:
    """The output columns of one engine, and the columns that are kept of its objects."""

    def __init__(
        self, groups: Groups, options: Options, numbering: Numbering, score: Callable[[Floats], Floats], deletable: bool
    ) -> None:
        self.groups = groups
        self.options = options
        self.numbering = numbering
        self.score = score  # from an engine's keys to scores
        self.deletable = deletable
        self.kept_columns = KeptColumns()
        self.sourced = False  # whether questions over these answers are standing
        self.keyed: Callable[[Callable[[str], Any]], dict[str, Any]] | None = None  # score and keys of an order

    @property
    def keeps_more(self) -> bool:
        """Whether columns are kept that the user has not named."""
        return self.reports_numbers or self.keyed is not None

    def kept_types(self, types: dict[str, Any]) -> dict[str, Any]:
        """The columns that are kept of objects to be reported later, with their Arrow types."""
        kept = {role: types.get(name, pa.null()) for role, name in self.options.roles.items()}
        if self.reports_numbers:
            kept |= {column_of(sequence): pa.int64() for sequence in range(len(self.numbering.lengths))}
        return kept

    def id_type(self, types: dict[str, Any]) -> Any:
        """The Arrow type of the ids of objects, by the types of the input's columns; null: not known yet."""
        name = "id" if self.options.inner else self.options.id
        return pa.int64() if name is None else types.get(name, pa.null())

    def shown_types(self) -> dict[str, Any]:
        """The Arrow types of the columns of `select`; null: not known yet."""
        return {}

    @property
    def reports_numbers(self) -> bool:
        """Whether ids are arrival numbers that must be kept; in count windows the stamp is the number."""
        return self.options.id is None and self.numbering.timed

    def changes(self, changes: Changes, push: Push, fresh: dict[str, Any], numbered: Numbered) -> dict[str, Any]:
        """The changes of a push as columns."""
        numbering = self.numbering
        sequences = (
            numbering.of_query[changes.query] if len(numbering.lengths) > 1 else np.zeros(len(changes.query), np.int64)
        )
        at = changes.instant  # count windows: the number of the step's arrival
        if numbering.offsets is not None:
            at = self._own_numbers(at, changes.query)
        elif numbering.timed or self.deletable or (changes.row < 0).any():
            at, arrived = numbered.before[sequences, changes.group] - 1, changes.row >= 0
            at[arrived] = numbered.of(sequences[arrived], changes.row[arrived])
        when = changes.instant
        if not numbering.timed and push.times is not None:
            when, arrived = numbering.last_times[changes.group], changes.row >= 0
            when[arrived] = step_times(push)[changes.row[arrived]]
            if len(numbering.step_times) and self.options.emit == "batch":  # a row that deletes nothing is no step
                last = numbering.step_times[changes.group]
                when = np.where(last > BEGINNING, last, when)
        clocks: Any = push.clocks if numbering.timed else None
        if push.over and len(changes.row):  # of a question over answers, the source's
            at = np.asarray(push.batch.array(AT))[changes.row]
            when = when if push.times is None else push.times[changes.row]
            clocks = (np.asarray(push.batch.array(STEP))[changes.row],)
        columns = self._change_columns(changes, at, when, sequences, Fresh(fresh, push.serial))
        return columns | {CHANGES: changes, CLOCKS: clocks}

    def changes_at_rest(
        self, changes: Changes, clock: int, times: Ints | None = None, *, deleted: bool = False
    ) -> dict[str, Any]:
        """Changes between two pushes as columns: at the last arrival of each group, or at the clock."""
        if not len(changes.query):
            return {}
        numbering = self.numbering
        sequences = numbering.of_query[changes.query]
        at = numbering.next()[sequences, changes.group] - 1
        if numbering.offsets is not None and numbering.shifts is not None:
            at = at + (numbering.offsets - numbering.shifts)[changes.query]
        known = numbering.last_times if times is None else times
        by_clock = deleted or not len(known) or (numbering.timed and times is None)
        when = np.full(len(at), clock) if by_clock else known[changes.group]
        columns = self._change_columns(changes, at, when, sequences, None)
        if not deleted:  # one step, or one for each of the times
            changes = replace(changes, instant=np.zeros(len(at), np.int64) if times is None else when)
        return columns | {CHANGES: changes, CLOCKS: (changes.instant,) if self.options.inner else AT_REST}

    def answer(self, answer: Answer, query: int) -> dict[str, Any]:
        """An answer of one of the queries as columns."""
        return self.answer_of(answer, np.full(len(answer.serial), query))

    def answer_of(self, answer: Answer, queries: Ints) -> dict[str, Any]:
        """The same of several queries, one for each row."""
        sequences = self.numbering.of_query[queries]
        columns = {
            **self._per(answer.group),
            "rank": as_arrow(answer.rank),
            "score": as_arrow(self.score(answer.key)),
            **_probability(answer),
        }
        if self.options.time is not None:
            columns["time"] = self._own_time(answer, sequences, None)
        return columns | self._keys(answer, None) | self._members(answer, sequences, None, queries)

    def _change_columns(
        self, changes: Changes, at: Ints, when: Ints, sequences: Ints, fresh: Fresh | None
    ) -> dict[str, Any]:
        columns = {
            "query": changes.query,
            **self._per(changes.group),
            "at": as_arrow(at),
            "score": as_arrow(self.score(changes.key)),
            "diff": as_arrow(changes.diff),
            "first": as_arrow(changes.first),
            **_probability(changes),
        }
        if changes.rank is not None:
            columns["rank"] = _with_nulls(changes.rank, changes.rank == 0)
        if self.options.time is not None:
            columns["time"] = from_times(when, (fresh or self.kept_columns).columns["time"].type)
            if self.sourced:
                columns[OWN] = self._own_time(changes, sequences, fresh)
        return columns | self._keys(changes, fresh) | self._members(changes, sequences, fresh, changes.query)

    def _own_numbers(self, numbers: Ints, queries: Any) -> Ints:
        """Numbers of arrivals as the queries count them, where these began at different rows."""
        offsets = self.numbering.offsets
        return numbers if offsets is None or not offsets.any() else numbers + offsets[queries]

    def _own_time(self, of: Changes | Answer, sequences: Ints, fresh: Fresh | None) -> Any:
        """The times of objects themselves."""
        return self._reported(OWN if self.options.inner else "time", of.serial, of.stamp, sequences, fresh)

    def _keys(self, of: Changes | Answer, fresh: Fresh | None) -> dict[str, Any]:
        """The score and the keys of objects that are ranked by an order."""
        if self.keyed is None:
            return {}
        columns = self.keyed(lambda name: self._read(name, of.serial, fresh))
        return {"score": pa.nulls(len(of.serial), pa.float64())} | columns

    def _per(self, groups: Ints) -> dict[str, Any]:
        """The `per` columns of these groups."""
        return {name: kept.take(groups) for name, kept in zip(self.groups.names, self.groups.columns, strict=False)}

    def _members(self, of: Changes | Answer, sequences: Ints, fresh: Fresh | None, queries: Any) -> dict[str, Any]:
        """Ids and kept columns of these objects, or of both members of these pairs."""
        names = ("id", *(name for name in self.options.kept if name not in self.groups.names))
        if of.older is None or of.older_stamp is None:
            stamps = self._own_numbers(of.stamp, queries)
            return {name: self._reported(name, of.serial, stamps, sequences, fresh) for name in names}
        columns = {}
        for name in names:
            a, b = of_pair(name)
            columns[a] = self._reported(name, of.older, of.older_stamp, sequences, fresh)
            columns[b] = self._reported(name, of.serial, of.stamp, sequences, fresh)
        return columns

    def _reported(self, name: str, serials: Ints, stamps: Ints, sequences: Ints, fresh: Fresh | None) -> Any:
        """A column of these objects; without an id column their ids are their own numbers."""
        if name != "id" or self.options.id is not None:
            return self._read(ID if name == "id" and self.options.inner else name, serials, fresh)
        if not self.numbering.timed:
            return as_arrow(stamps)
        columns = [column_of(sequence) for sequence in range(len(self.numbering.lengths))]
        numbers = [np.asarray(self._read(column, serials, fresh).cast(pa.int64())) for column in columns]
        return as_arrow(np.stack(numbers)[sequences, np.arange(len(serials))])

    def _read(self, name: str, serials: Ints, fresh: Fresh | None) -> Any:
        """A kept column of these objects, some of which may be rows of this push."""
        rows, first = ({}, 0) if fresh is None else (fresh.columns, fresh.serial)
        return self.kept_columns.read(name, serials, rows.get(name), first)


def input_name(name: str) -> str:
    """The name under which an input column of a scoring is kept."""
    return f"={name}"


def leaving(answer: Answer, query: int, spec: Spec, clock: int) -> Changes:
    """The changes by which a whole answer leaves."""
    size = len(answer.serial)
    return Changes(
        query=np.full(size, query),
        group=answer.group,
        row=np.full(size, -1),
        instant=np.full(size, clock),
        stamp=answer.stamp,
        serial=answer.serial,
        key=answer.key,
        diff=np.full(size, -1, np.int8),
        first=np.zeros(size, np.bool_),
        alive=np.empty(0, np.bool_),
        older=answer.older,
        older_stamp=answer.older_stamp,
        rank=answer.rank if spec.semantics == "u-kranks" else None,  # there the rank is part of the answer
        probability=answer.probability,
        object=answer.object,
        shown=answer.shown,
    )


def _probability(of: Changes | Answer) -> dict[str, Any]:
    return {} if of.probability is None else {"probability": as_arrow(of.probability)}


def _with_nulls(values: Ints, null: NDArray[np.bool_]) -> Any:
    """Numbers as Arrow, with nulls in these places."""
    valid = pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(values), [valid, pa.py_buffer(np.ascontiguousarray(values))])
