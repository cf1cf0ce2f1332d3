"""One row as a query reads it: an arrival with its score, or the reason to reject the row.

Reasons that depend on the row alone are here; those that depend on other valid rows are in stream.py.
"""

from __future__ import annotations

import math
from typing import Any

from sqlglot import exp

from skyband.oracle.groups import argument, arguments
from skyband.oracle.objects import Arrival, Roles, Row, same
from skyband.oracle.orders import is_plain, key_value, keys_of
from skyband.oracle.scalar import holds, number, plain, too_large
from skyband.oracle.scores import columns_of, key_of, score_of
from skyband.query.kinds import Above, Query, TopK, TopKGroups, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.query.windows import UntilDeleted


class Rejected(Exception):
    """The row is no arrival of the query."""

    def __init__(self, reason: str, column: str | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.column = column


def read(query: Query, row: Row, roles: Roles) -> Arrival:
    """The row as an arrival, not yet numbered. A row that fails `where` is rejected for the same reasons."""
    time = None if roles.time is None else row.get(roles.time)
    if roles.time is not None and time is None:
        raise Rejected("time is null", roles.time)
    id = None if roles.id is None else row.get(roles.id)
    arrival = Arrival(row, id, time, row_id=id)
    keyed = isinstance(query, TopKIncomplete) or isinstance(query.window, UntilDeleted)
    keyed = keyed and getattr(query, "source", None) is None
    if keyed and arrival.id is None:
        raise Rejected("id is null", roles.id)
    match query:
        case TopK():
            _read_condition(query, arrival)
            _read_keys(query, arrival)
        case Above() | TopKUncertain():
            _read_condition(query, arrival)
            _read_score(query, arrival)
        case TopKPairs():  # an object has no score of its own: a pair without a score is no answer
            _read_condition(query, arrival)
        case TopKIncomplete():
            _read_part(query, arrival, roles)
            for column in sorted(set() if query.where is None else columns_of(query.where)):
                if too_large(arrival.row.get(column)):
                    raise Rejected("integer beyond 2^53", column)
            arrival.eligible = holds(query.where, arrival.row)
        case TopKGroups():
            _read_owner(query, arrival, roles)
            _read_arguments(query, arrival)
            arrival.eligible = holds(query.where, arrival.row)
    if isinstance(query, TopKUncertain):
        _read_probability(query, arrival)
    return arrival


def _read_condition(query: TopK | Above | TopKPairs | TopKUncertain, arrival: Arrival) -> None:
    used = set() if query.where is None else columns_of(query.where)
    used |= columns_of(query.on) if isinstance(query, TopKPairs) and query.on is not None else set()
    several = isinstance(query.by, tuple)
    for by in query.by if isinstance(query.by, tuple) else (query.by,):
        used |= set() if several and is_plain(by) else columns_of(by)
    for column in sorted(used):
        if too_large(arrival.row.get(column)):
            raise Rejected("integer beyond 2^53", column)
    arrival.eligible = holds(query.where, arrival.row)


def _read_keys(query: TopK, arrival: Arrival) -> None:
    """Keys with their types; of rows that reject nulls, each has a value."""
    arrival.keys = tuple(key_value(by, arrival.row) for by in keys_of(query))
    if query.nulls == "reject" and None in arrival.keys:
        column = min(columns_of(keys_of(query)[arrival.keys.index(None)]), default=None)
        raise Rejected("score is null or NaN", column)
    if isinstance(query.k, str):
        k = arrival.row.get(query.k)
        if k is None or k != k or not 0 <= k <= query.most or k != int(k):
            raise Rejected(f"{query.k} is no number from 0 to {query.most}", query.k)
        arrival.limit = int(k)


def _read_score(query: Above | TopKUncertain, arrival: Arrival) -> None:
    key = key_of(query.by, arrival.row)
    if key is None or math.isnan(key):
        raise Rejected("score is null or NaN", min(columns_of(query.by), default=None))
    arrival.key = key
    arrival.score = score_of(query.by, key)


def _read_probability(query: TopKUncertain, arrival: Arrival) -> None:
    p = _number_in(arrival.row.get(query.probability), 0.0, 1.0)
    if p is None or p == 0:
        raise Rejected("probability is not in (0, 1]", query.probability)
    arrival.probability = p
    arrival.rival = None if query.group is None else same(arrival.row.get(query.group))


def _read_part(query: TopKIncomplete, arrival: Arrival, roles: Roles) -> None:
    bounds = dict(query.parts)
    part = plain(arrival.row.get(roles.part))
    if part is None if query.any_parts else part not in bounds:
        raise Rejected("unknown part", roles.part)
    if too_large(arrival.row.get(roles.value)):
        raise Rejected("integer beyond 2^53", roles.value)
    value = _number_in(arrival.row.get(roles.value), *bounds["*" if query.any_parts else part])
    if value is None or math.isinf(value):
        raise Rejected("value out of range", roles.value)
    arrival.part, arrival.value = same(part), value


def _read_owner(query: TopKGroups, arrival: Arrival, roles: Roles) -> None:
    """The object that the row belongs to: the value of one column, or a struct of several."""
    columns = query.of_columns or (roles.id or "",)
    values = [arrival.row.get(column) for column in columns]
    for column, value in zip(columns, values, strict=True):
        if value is None:
            raise Rejected("id is null", column)
    arrival.owner = tuple(same(value) for value in values)
    arrival.id = values[0] if len(columns) == 1 else dict(zip(columns, values, strict=True))


def _read_arguments(query: TopKGroups, arrival: Arrival) -> None:
    """Every argument of an aggregate has a value, and what is summed is finite."""
    trees = arguments(query)
    used = {} if query.where is None else dict.fromkeys(columns_of(query.where))
    for call, tree in trees:
        if not (isinstance(call, exp.Count) and isinstance(tree, exp.Column)):  # a lone column is only compared
            used |= {column.name: None for column in tree.find_all(exp.Column)}
    for column in sorted(used):
        if too_large(arrival.row.get(column)):
            raise Rejected("integer beyond 2^53", column)
    for call, tree in trees:
        value = argument(tree, arrival.row)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise Rejected("value is null or NaN", None)
        if isinstance(call, exp.Sum | exp.Avg) and math.isinf(number(value) or 0.0):
            raise Rejected("value to sum is infinite", None)
        if isinstance(call, exp.Min | exp.Max):
            number(value)


def _number_in(value: Any, low: float, high: float) -> float | None:
    """The number if it is in [low, high]; None for null, NaN and the others."""
    x = number(value)
    return x if x is not None and low <= x <= high else None
