"""The rows of changes and of answers: their columns, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyband.oracle.objects import Member, Roles, Row
from skyband.oracle.stream import Change, Group
from skyband.query.kinds import Query, TopKPairs, TopKUncertain


def change_rows(
    name: str, query: Query, changes: list[Change], queries: Mapping[str, Query], roles: Roles, subscriber: Any = None
) -> list[Row]:
    """The changes of one query, or of a subscriber, in the columns of all queries, null where it has none."""
    columns = change_columns(list(queries.values()), roles)
    rows = []
    for change in changes:
        values: Row = {"query": name, "subscriber": subscriber, "at": change.at, "time": change.time}
        values |= dict(zip(query.per_columns, change.group.values, strict=True))
        values |= _ids(change.member) | _kept(change.member, roles)
        values |= {"score": change.member.score, "diff": change.diff, "first": change.first}
        values |= {"rank": change.member.rank, "probability": change.member.probability}
        rows.append({column: values.get(column) for column in columns})
    return rows


def change_columns(queries: list[Query], roles: Roles) -> list[str]:
    """The union of the queries' columns, in the contract's order."""
    pairs = any(isinstance(query, TopKPairs) for query in queries)
    single = not all(isinstance(query, TopKPairs) for query in queries)
    columns = [
        "query",
        *["subscriber"] * any(query.each for query in queries),
        *(column for query in queries for column in query.per_columns),
        "at",
    ]
    columns += ["time"] * (roles.time is not None)
    columns += ["id"] * single + ["id_a", "id_b"] * pairs + ["score"]
    columns += ["rank", "probability"] * any(isinstance(query, TopKUncertain) for query in queries)
    columns += ["diff", "first"] + list(roles.keep) * single
    columns += [column + end for column in roles.keep for end in ("_a", "_b")] * pairs
    return list(dict.fromkeys(columns))


def answer_rows(query: Query, group: Group, answer: list[Member], roles: Roles) -> list[Row]:
    rows = []
    for place, member in enumerate(answer):
        row: Row = dict(zip(query.per_columns, group.values, strict=True))
        row["rank"] = place + 1 if member.rank is None else member.rank
        row |= _ids(member)
        if roles.time is not None:
            row["time"] = member.objects[-1].time  # of a pair the newer member's
        row["score"] = member.score
        if isinstance(query, TopKUncertain):
            row["probability"] = member.probability
        rows.append(row | _kept(member, roles))
    return rows


def _ids(member: Member) -> Row:
    names = ("id",) if len(member.objects) == 1 else ("id_a", "id_b")
    return {name: o.id for name, o in zip(names, member.objects, strict=True)}


def _kept(member: Member, roles: Roles) -> Row:
    ends = ("",) if len(member.objects) == 1 else ("_a", "_b")
    return {
        column + end: o.row.get(column) for column in roles.keep for end, o in zip(ends, member.objects, strict=True)
    }
