"""Examination: a batch as the standing queries see it, before anything changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.errors import BatchError
from skyband.monitor.state import State
from skyband.tables.input import Batch, conform, is_time, time_unit, times
from skyband.tables.push import what_rows_do
from skyband.tables.scores import Scored, Validated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass
class Examined:
    """A batch as the standing queries see it."""

    standing: list[Adapter]
    validated: list[Validated]  # one for each
    accepted: Bools  # rows that at least one query accepts
    types: dict[str, pa.DataType]  # of the input's columns
    reported: dict[str, Any]  # the columns that are reported of objects
    per: dict[str, Any]  # the columns of groups
    times: Ints | None  # as numbers
    deletes: Bools | None  # rows that delete an id
    inputs: dict[str, Any]  # columns that scorings of pairs read
    codes: dict[int, Ints] = field(default_factory=dict)  # the groups of the rows, by their `per`

    @property
    def unit(self) -> int | None:
        """Nanoseconds of a unit of the batch's time; None: integers, or there is none."""
        return None if self.times is None else time_unit(self.reported["time"].type)

    def raise_invalid(self, name: Callable[[int], str]) -> None:
        """Raise for the first bad row, under the name that it is given here."""
        bad = [(int(rows.argmax()), reason) for one in self.validated for reason, rows in one.scored.rejected.items()]
        if bad:
            row, reason = min(bad)
            raise BatchError(f'{name(row)}: {reason}. Nothing was pushed; fix the row, or use invalid="reject".')


def examine(state: State, batch: Batch) -> Examined:
    """A batch as the standing queries see it: columns, times, scores, which rows are accepted. Changes nothing."""
    options, standing = state.settled(batch.names), state.taking()
    types = dict(state.types)

    def read(name: str) -> Any:
        column = conform(name, batch.array(name), types.get(name))
        types[name] = column.type
        return column

    no_instants = None if options.time is None else batch.parse_times(options.time, types.get(options.time))
    reported = {role: read(name) for role, name in options.roles.items()}
    instants: Ints | None = None
    bad_times: dict[str, Bools | None] = {}
    if options.time is not None:
        type_ = reported["time"].type
        if pa.types.is_null(type_):  # nothing but nulls, and no type known yet
            del types[options.time]
            bad_times = {"time is null": np.ones(batch.rows, np.bool_)}
        elif not is_time(type_):
            raise BatchError(
                f"the time column {options.time!r} holds {type_}. Time is a timestamp, a date, an integer or an "
                "ISO string."
            )
        else:
            unit = time_unit(type_)
            reach = max((adapter.reach(unit) for adapter in standing), default=0)
            instants, null, far = times(reported["time"], reach)
            bad_times = {"time is null": null, "time is out of range": far}
        if no_instants is not None:
            null = bad_times["time is null"]
            bad_times |= {
                "time is null": null if null is None else null & ~no_instants,
                "time is no instant": no_instants,
            }
    cache: dict[Any, Scored] = {}
    validated = [adapter.validate(batch, cache, bad_times) for adapter in standing]
    deletes = None
    if options.op is not None:
        deletes, other = what_rows_do(read(options.op))
        validated = [
            adapter.separate_deletions(one, deletes, other, bad_times)
            for adapter, one in zip(standing, validated, strict=True)
        ]
    per = {name: read(name) for adapter in standing for name in adapter.groups.inputs}
    inputs = {name: read(name) for adapter in standing for name in adapter.reads(batch)}
    state.id_type(types)
    state.shown_types(seen=standing)
    accepted = any_of([one.accepted for one in validated], batch.rows)
    return Examined(standing, validated, accepted, types, reported, per, instants, deletes, inputs)


def any_of(each: list[Bools], rows: int) -> Bools:
    """The rows that at least one set of queries accepts."""
    accepted = each[0] if each else np.zeros(rows, np.bool_)
    for more in each[1:]:
        accepted = accepted | more
    return accepted
