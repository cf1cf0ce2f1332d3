"""TopKGroups: the k best groups of rows, by aggregates of their valid rows.

The object of a value of `of` is made of the valid rows with that value that passed `where`; without such a row there is
no object. Sums are exact fractions, rounded once. Of objects with equal keys the one with the newest row ranks higher,
or with ties="oldest" the one whose newest row is the oldest.

With `decay` a row counts 2^(-age / half-life) times. These are no fractions, so they are decimals of 60 digits.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache
from typing import Any

from sqlglot import exp

from skyband.oracle.objects import Arrival, Member, Roles, Row, same
from skyband.oracle.orders import answer_of, keys_of, ranking, score_of_keys
from skyband.oracle.scalar import Value, evaluate, number, parse, plain, rounded_sum
from skyband.query.kinds import TopKGroups

_PRECISE = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)


def top_k_groups(query: TopKGroups, valid: list[Arrival], now: Any) -> list[Member]:
    rows_of: dict[Hashable, list[Arrival]] = {}
    for row in sorted(valid, key=lambda o: o.age):
        if row.eligible:
            rows_of.setdefault(row.owner, []).append(row)
    members = [member(query, owner, rows, now) for owner, rows in rows_of.items()]
    chosen = answer_of(query, ranking(query, members), query.k)
    return [replace(one, place=place) for one, place in chosen]


def member(query: TopKGroups, owner: Hashable, rows: list[Arrival], now: Any) -> Member:
    """The object of rows, oldest first, as a row of an answer."""
    texts = keys_of(query)
    decider = _decider(texts[0], rows) if texts else rows[-1]
    if query.decay is not None:
        exact = faded_total(query, rows, now)
        return Member(owner, (decider,), float(exact), keys=(exact,), age=rows[-1].age, rows=tuple(rows))
    keys = tuple(key_value(text, rows) for text in texts)
    shown = {name: value_of(text, rows) for name, text in query.select}
    holds = _holds(query.having, rows) and (query.nulls != "reject" or None not in keys)
    score = score_of_keys(query, keys)
    return Member(owner, (decider,), score, keys=keys, age=rows[-1].age, eligible=holds, shown=shown)


def key_value(text: str, rows: list[Arrival]) -> Value:
    """The value of a key: the object's id, a column of it, or an expression; None for null and NaN."""
    head, dot, column = text.partition(".")
    if head == "id":
        value = rows[0].id[column] if dot else rows[0].id
    else:
        value = value_of(text, rows)
    return None if isinstance(value, float) and math.isnan(value) else value


def faded(query: TopKGroups, one: Member, now: Any) -> Member:
    """A member as it was, with its score faded until now."""
    return one if query.decay is None else member(query, one.identity, list(one.rows), now)


def _holds(having: str | None, rows: list[Arrival]) -> bool:
    return having is None or value_of(having, rows) is True


def _decider(by: str, rows: list[Arrival]) -> Arrival:
    """The row whose columns are kept: the extreme one where one min or max decides, else the newest."""
    calls = list({call.sql(): call for call in _calls(by)}.values())
    if len(calls) != 1 or not isinstance(calls[0], exp.Min | exp.Max):
        return rows[-1]
    return _extreme(calls[0], rows)


def is_keyed(query: TopKGroups, roles: Roles) -> bool:
    """Whether the only key is no number: a condition, or of columns that hold none."""
    if str(query.by) == "id":
        columns = query.of_columns or (roles.id or "",)
        return len(columns) > 1 or columns[0] in roles.keyed
    tree = parse(str(query.by))
    if isinstance(tree, exp.First | exp.Last | exp.Min | exp.Max):
        tree = tree.this
    return isinstance(tree, exp.Predicate) or (isinstance(tree, exp.Column) and tree.name in roles.keyed)


# ------------------------------------------------------------------------ aggregates


@lru_cache(maxsize=1000)
def _calls(text: str) -> list[Any]:
    return list(parse(text).find_all(exp.AggFunc))


def value_of(text: str, rows: list[Arrival]) -> Value:
    """The value of an expression over aggregates of rows, oldest first."""
    return _value(text, [aggregate(call, rows) for call in _calls(text)])


def _value(text: str, values: list[Value]) -> Value:
    """The value of an expression from those of its calls, in their order."""
    return evaluate(_numbered(text), lambda _, place: values[int(place)])


@lru_cache(maxsize=1000)
def _numbered(text: str) -> Any:
    """The expression with the number of each call in its place."""
    tree = parse(text).copy()
    for place, call in enumerate(list(tree.find_all(exp.AggFunc))):
        column = exp.column(str(place))
        if call is tree:
            return column
        call.replace(column)
    return tree


def aggregate(call: Any, rows: list[Arrival]) -> Value:
    """The value of one aggregate."""
    match call:
        case exp.Count() if isinstance(call.this, exp.Distinct):
            return float(len({same(_argument(call.this.expressions[0], row)) for row in rows}))
        case exp.Count():
            return float(len(rows))
        case exp.Sum():
            return rounded_sum(_number(call.this, row) for row in rows)
        case exp.Avg():
            return rounded_sum(_number(call.this, row) for row in rows) / len(rows)
        case exp.Min() | exp.Max():
            return _argument(call.this, _extreme(call, rows))
        case exp.First():
            return _argument(call.this, rows[0])
        case exp.Last():
            return _argument(call.this, rows[-1])
    raise AssertionError(call)


def _extreme(call: Any, rows: list[Arrival]) -> Arrival:
    """The row with the smallest or largest value, the newest of equal ones."""
    sign = -1 if isinstance(call, exp.Min) else 1
    return max(rows, key=lambda row: (sign * _number(call.this, row), row.age))


def _argument(tree: Any, row: Arrival) -> Value:
    return argument(tree, row.row)


def argument(tree: Any, row: Row) -> Value:
    """The value of an aggregate's argument in one row; a lone column keeps its own type, integers theirs."""
    if isinstance(tree, exp.Column) and isinstance(tree.parent, exp.Distinct):
        return row.get(tree.name)
    return evaluate(tree, lambda _, column: plain(row.get(column)))


def _number(tree: Any, row: Arrival) -> float:
    value = number(_argument(tree, row))
    assert value is not None
    return value


def arguments(query: TopKGroups) -> list[tuple[Any, Any]]:
    """All calls of the query that have an argument, and the argument."""
    texts = [*keys_of(query), *([query.having] if query.having else []), *(text for _, text in query.select)]
    found = []
    for call in (call for text in texts for call in _calls(text)):
        if not isinstance(call, exp.Count):
            found.append((call, call.this))
        elif isinstance(call.this, exp.Distinct):
            found.append((call, call.this.expressions[0]))
    return found


# ----------------------------------------------------------------------------- decay


def faded_total(query: TopKGroups, rows: list[Arrival], now: Any) -> Decimal:
    """The sum of what rows contribute, each halved once per half-life of its age."""
    calls = _calls(query.by)
    # `by` is a sum of multiples: the factor of a call is the value where that call is 1 and the others are 0
    units = [[float(place == other) for other in range(len(calls))] for place in range(len(calls))]
    factors = [number(_value(str(query.by), unit)) for unit in units]
    with localcontext(_PRECISE):
        total = Decimal(0)
        for row in rows:
            worth = Decimal(0)
            for call, factor in zip(calls, factors, strict=True):
                worth += Decimal(factor or 0.0) * Decimal(
                    1.0 if isinstance(call, exp.Count) else _number(call.this, row)
                )
            total += worth * Decimal(2) ** -_half_lives(query, row.time, now)
        return total


def _half_lives(query: TopKGroups, time: Any, now: Any) -> Decimal:
    """The age of a row in half-lives."""
    if isinstance(time, datetime):
        return Decimal((now - time) // timedelta(microseconds=1)) / Decimal(query.half_life(10**3) or 0)
    if isinstance(time, date):
        return Decimal((now - time).days) / Decimal(query.half_life(86400 * 10**9) or 0)
    return Decimal(now - time) / Decimal(query.half_life(None) or 0)
