"""TopKIncomplete: objects whose score is combined from parts that arrive in separate rows (haghani2009).

The object of an id is made of the valid rows of that id that passed `where`; a part with no such row counts as its
low, whichever score is best. A sum of rows is exact, rounded once. An object with no such row is no object. Of equal
scores the object with the newest of these rows ranks higher.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

from skyband.oracle.objects import Arrival, Member, same
from skyband.oracle.scalar import evaluate, number, parse, rounded_sum
from skyband.oracle.scores import key_of
from skyband.query.kinds import TopKIncomplete


def top_k_incomplete(query: TopKIncomplete, valid: list[Arrival]) -> list[Member]:
    rows_of: dict[Hashable, list[Arrival]] = {}
    for row in sorted((row for row in valid if row.eligible), key=lambda o: o.age):
        rows_of.setdefault(same(row.id), []).append(row)
    members = [
        Member(key, (deciding(query, rows),), combined(query, rows), age=rows[-1].age) for key, rows in rows_of.items()
    ]
    scored = [member for member in members if not math.isnan(member.score)]
    sign = -1 if query.largest is False else 1
    return sorted(scored, key=lambda m: (sign * m.score, m.age), reverse=True)[: query.k]


def deciding(query: TopKIncomplete, rows: list[Arrival]) -> Arrival:
    """The newest row that a part takes its value from; rows: the oldest first."""
    if query.repeat != "max":
        return rows[-1]
    if query.any_parts:  # all rows are as of one part
        return max(rows, key=lambda row: (row.value, row.age))
    most = {part: max((row.value for row in rows if row.part == part), default=None) for part, _ in query.parts}
    newest = {row.part: row for row in rows if row.value == most[row.part]}
    return max(newest.values(), key=lambda row: row.age)


def combined(query: TopKIncomplete, rows: list[Arrival]) -> float:
    """The score of an object from its valid rows, oldest first."""
    if query.any_parts:
        return _of_any_parts(query, rows)
    values = {}
    for part, (low, _) in query.parts:
        values[part] = _repeated(query.repeat, [row.value for row in rows if row.part == part], low)
    if not isinstance(query.combine, str):
        score = key_of(query.combine, values)
    elif query.combine == "min":
        score = min(values.values())
    elif query.combine == "max":
        score = max(values.values())
    elif query.combine in ("sum", "mean"):
        total, *others = values.values()
        for value in others:
            total = total + value
        score = total if query.combine == "sum" else total / len(values)
    else:
        score = number(evaluate(parse(query.combine), lambda _, part: values[part]))
    return math.nan if score is None else score


def _of_any_parts(query: TopKIncomplete, rows: list[Arrival]) -> float:
    """Of the parts that are there: the sum of the rows that count, or the largest of them."""
    last = {row.part: row for row in rows}
    values = [row.value for row in rows if query.repeat != "last" or row is last[row.part]]
    return rounded_sum(values) if query.combine == "sum" else max(reversed(values))  # the newest of equal ones


def _repeated(repeat: str | None, values: list[float], low: float) -> float:
    """The value of one part from its valid rows, oldest first. Without `repeat` there is at most one."""
    if not values:
        return low
    if repeat == "max":
        return max(reversed(values))  # the newest of equal ones: 0.0 and -0.0 are
    if repeat == "sum":
        return rounded_sum(values)
    return values[-1]
