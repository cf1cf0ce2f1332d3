"""A table of subscriptions, validated column by column; a QueryError names column and subscriber."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.errors import BatchError, QueryError
from skyband.query.each import Need
from skyband.query.kinds import Query
from skyband.query.windows import nanoseconds_of
from skyband.tables.columns import as_arrow, key_bits, plain
from skyband.tables.groups import Groups
from skyband.tables.input import Batch, conform, is_number, is_string, to_table
from skyband.tables.operands import EXACT
from skyband.tables.vectors import as_bytes, lists_of

Bools = NDArray[np.bool_]
Sort = Literal["count", "duration"]  # of windows whose size subscriptions bring
_DURATIONS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@dataclass(frozen=True)
class Rows:
    """A validated table of subscriptions."""

    ids: Any
    columns: dict[str, Any]  # those of `Each`
    sort: Sort | None  # of the window's size, where that is one of them

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, which: Bools) -> Rows:
        """Some of the rows."""
        chosen = as_arrow(which)
        return Rows(
            self.ids.filter(chosen), {name: one.filter(chosen) for name, one in self.columns.items()}, self.sort
        )


@dataclass(frozen=True)
class Known:
    """What is known of the subscriptions of a query before a table comes."""

    name: str
    query: Query
    sort: Sort | None  # of the windows' sizes
    types: Mapping[str, Any]  # of the columns of values
    id_type: Any  # of the ids of subscribers; None: there are none


def read_table(given: Any, known: Known, id: str) -> Rows:
    """Validate a table of subscriptions, all columns at once; a QueryError names column and subscriber."""
    name, query, id_type = known.name, known.query, known.id_type
    batch = _batch(name, given, id)
    ids = _column(name, batch, id, "the ids of subscribers")
    try:
        ids = conform(id, ids, id_type)
    except BatchError as error:
        raise QueryError(f"subscribe({name!r}): {error} Nothing was taken.") from None
    if ids.null_count:
        row = int(np.argmax(~np.asarray(ids.is_valid())))
        raise QueryError(f"subscribe({name!r}): column {id!r} is null in row {row}. Give every subscriber an id.")
    _refuse_twice(name, id, ids)
    columns: dict[str, Any] = {}
    sort = known.sort
    for need in query.needs:
        column = columns.get(need.column)
        if column is None:
            column = _column(name, batch, need.column, f"each subscription's value of {need.where}")
        fail = _Fault(name, need, ids)
        if column.null_count:
            fail.at(~np.asarray(column.is_valid()), "is null", "Give every subscription a value")
        if need.role == "size":
            column, sort = _sizes(column, known.sort, fail)
        elif need.role in ("vector", "direction"):
            column = _vectors(_column(name, batch, need.column, ""), need, fail)
        else:
            _check(column, need, fail)
        try:
            columns[need.column] = conform(need.column, column, known.types.get(need.column))
        except BatchError as error:
            raise QueryError(f"subscribe({name!r}): {error} Nothing was taken.") from None
    return Rows(ids, columns, sort)


def ids_of(name: str, ids: Any, type_: Any) -> Any:
    """Ids to unsubscribe as a column; type_: of those that have subscribed."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise QueryError(f"unsubscribe({name!r}) takes a list of ids; got {ids!r}. Did you mean [{ids!r}]?")
    try:
        if type_ is None or pa.types.is_null(type_):
            return pa.nulls(len(list(ids)))
        column = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(list(ids), type_)
        return plain(column).cast(type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise QueryError(
            f"unsubscribe({name!r}): the ids of subscribers are {type_}, and these are not ({error}). "
            "Nothing was unsubscribed."
        ) from None


@dataclass(frozen=True)
class _Fault:
    """A value that cannot be: of which query, column and subscriber."""

    name: str
    need: Need
    ids: Any

    def at(self, bad: Bools, why: str, instead: str) -> None:
        """Raise for the first of these rows, if there is any."""
        if bad.any():
            subscriber = self.ids[int(np.argmax(bad))].as_py()
            raise QueryError(
                f"subscribe({self.name!r}): subscriber {subscriber!r}: column {self.need.column!r} {why}. {instead}. "
                "Nothing was taken."
            )

    def all(self, type_: Any, instead: str) -> NoReturn:
        """Raise because of the column's type, which the first subscriber has too."""
        first = f", for subscriber {self.ids[0].as_py()!r} and all others" if len(self.ids) else ""
        raise QueryError(
            f"subscribe({self.name!r}): column {self.need.column!r} holds {type_}{first}, but {self.need.where} takes "
            f"{instead}. Nothing was taken."
        )


def _batch(name: str, given: Any, id: str) -> Batch:
    if not isinstance(id, str):
        raise QueryError(f"subscribe({name!r}): id names a column of the table; got {id!r}.")
    try:
        return Batch(to_table(given))
    except BatchError as error:
        where = culprit(given, id)
        raise QueryError(f"subscribe({name!r}): {where}{error} Nothing was taken.") from None


def culprit(given: Any, id: str) -> str:
    """The column and subscriber where lists of values stop being of one type."""
    if isinstance(given, list) and given and all(isinstance(row, Mapping) for row in given):
        given = {column: [row.get(column) for row in given] for column in given[0]}
    if not isinstance(given, Mapping):
        return ""
    for column, values in given.items():
        if not isinstance(values, list | tuple):
            continue
        try:
            pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            ids = given.get(id)
            first = next((i for i, one in enumerate(values) if type(one) is not type(values[0])), 0)
            if isinstance(ids, list | tuple) and first < len(ids):
                return f"column {column!r} of subscriber {ids[first]!r}: "
            return f"column {column!r}: "
    return ""


def _column(name: str, batch: Batch, column: str, what: str) -> Any:
    if column not in batch.names:
        there = ", ".join(map(repr, batch.names)) or "none"
        raise QueryError(f"subscribe({name!r}): the table has no column {column!r} ({what}). It has: {there}.")
    try:
        return batch.array(column)
    except BatchError as error:
        raise QueryError(f"subscribe({name!r}): {error} Nothing was taken.") from None


def _refuse_twice(name: str, id: str, ids: Any) -> None:
    if (keys := key_bits(ids)) is not None:  # sorted, since a hash table beyond the cache would take longer
        ranked = np.sort(keys)
        if not (ranked[1:] == ranked[:-1]).any():
            return
    known = Groups((id,))
    codes = known.codes([ids], len(ids))
    if known.total < len(ids):
        seen = np.zeros(len(ids), np.bool_)
        _, first = np.unique(codes, return_index=True)
        seen[first] = True
        twice = ids[int(np.argmin(seen))].as_py()
        raise QueryError(
            f"subscribe({name!r}): column {id!r} has subscriber {twice!r} twice. Give one row for each subscriber. "
            "Nothing was taken."
        )


def _numbers(column: Any) -> NDArray[Any]:
    numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def _check(column: Any, need: Need, fail: _Fault) -> None:
    """Values that are right for what they are for."""
    if need.role in ("k", "offset", "span"):
        if not pa.types.is_integer(column.type):
            fail.all(column.type, "whole numbers")
        what, most = ("span", 2**62) if need.role == "span" else (need.where, 2**31)
        _in_range(_numbers(column), most, what, fail, least=int(need.role != "offset"))
    elif need.role == "literal":
        _check_literals(column, fail)
    else:
        if not is_number(column.type):
            fail.all(column.type, "numbers")
        numbers = _numbers(column.cast(pa.float64(), safe=False))
        if need.role == "threshold":
            fail.at(np.isnan(numbers), "is NaN", "A threshold is a number")
            return
        fail.at(~np.isfinite(numbers), "is not finite", f"{need.where} takes finite numbers")
        if need.role == "weight":
            fail.at(numbers < 0, "is negative", "This is no distance: use weights of 0 or more")


def _in_range(numbers: NDArray[Any], most: int, what: str, fail: _Fault, least: int = 1) -> None:
    low, high = numbers < least, numbers >= most
    if low.any() or high.any():
        bad = low | high
        fail.at(bad, f"is {int(numbers[np.argmax(bad)])}", f"{what} is at least {least} and below {most:,}")


def _check_literals(column: Any, fail: _Fault) -> None:
    """Values that an expression can hold."""
    if pa.types.is_boolean(column.type) or is_string(column.type):
        return
    if not is_number(column.type):
        fail.all(column.type, "numbers, strings or booleans")
    numbers = _numbers(column)
    if pa.types.is_integer(column.type):
        fail.at((numbers > EXACT) | (numbers < -EXACT), "is beyond 2^53", "No float64 holds it, and scores are float64")
    else:
        fail.at(~np.isfinite(numbers.astype(np.float64)), "is not finite", "An expression takes finite numbers")


def _vectors(column: Any, need: Need, fail: _Fault) -> Any:
    """Vectors as the bytes of their float64 components."""
    try:
        lists = lists_of(need.column, column, whole=True)
    except BatchError:
        fail.all(column.type, "lists of numbers")
    fail.at(lists.lengths < 1, "is a vector without components", "Give at least one number")
    for reason, bad in lists.unusable(directed=need.role == "direction").items():
        why = reason.removeprefix(need.column).strip()
        fail.at(bad, why, "A vector is a list of finite numbers, under cosine not all 0")
    return as_bytes(lists)


def _sizes(column: Any, sort: Sort | None, fail: _Fault) -> tuple[Any, Sort]:
    """Sizes of windows: numbers of arrivals, or durations in nanoseconds; of one sort throughout."""
    found: Sort = "count" if pa.types.is_integer(column.type) else "duration"
    if sort is not None and found != sort:
        instead = {"count": "whole numbers, as before: it counts arrivals", "duration": "durations"}[sort]
        fail.all(column.type, f"{instead} (one kind of window per query)")
    if found == "count":
        _in_range(_numbers(column), 2**62, "a number of arrivals", fail)
        return column, found
    if pa.types.is_duration(column.type):
        units = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        unit = _DURATIONS[column.type.unit]
        bad = (units < 1) | (units >= 2**62 // unit)
        fail.at(bad, "is no length of a window", "Give a duration above 0 and below 2^62 nanoseconds")
        return pa.array(units * unit), found
    if not is_string(column.type):
        fail.all(column.type, 'whole numbers (of arrivals), durations, or strings such as "10 minutes"')
    encoded = column.dictionary_encode()
    lengths = np.zeros(len(encoded.dictionary), np.int64)
    for place, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            lengths[place] = nanoseconds_of(text) if len(text) < 100 else 0
        except (QueryError, OverflowError):
            lengths[place] = 0
    lengths[lengths >= 2**62] = 0
    rows = lengths[encoded.indices.to_numpy(zero_copy_only=False)]
    fail.at(rows < 1, "is no duration", 'Write a number and a unit, such as "10 minutes" or "500 ms"')
    return pa.array(rows), found
