"""The rows of changes and of answers: their columns, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyband.oracle.groups import is_keyed
from skyband.oracle.objects import Member, Roles, Row
from skyband.oracle.orders import is_number, is_plain, keys_of
from skyband.oracle.scores import score_of
from skyband.oracle.stream import Change, Group, Stream
from skyband.query.kinds import Query, TopK, TopKGroups, TopKPairs, TopKUncertain


def change_rows(
    name: str, stream: Stream, changes: list[Change], queries: Mapping[str, Query], roles: Roles, subscriber: Any = None
) -> list[Row]:
    """The changes of one query, or of a subscriber, in the columns of all queries, null where it has none."""
    query = stream.query
    columns = change_columns(list(queries.values()), roles)
    rows = []
    for change in changes:
        values: Row = {"query": name, "subscriber": subscriber, "at": change.at, "time": change.time}
        values |= _kept(change.member, stream.roles) | dict(zip(query.per_columns, change.group.values, strict=True))
        values |= _ids(change.member) | change.member.shown
        values |= {"score": change.member.score, "diff": change.diff, "first": change.first}
        values |= {"rank": change.member.rank, "probability": change.member.probability}
        values |= _keys(query, change.member, roles)
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
    columns += [f"key_{i + 1}" for i in range(max(shown_keys(query, roles) for query in queries))]
    columns += ["diff", "first"] + list(roles.keep) * single
    columns += [column + end for column in roles.keep for end in ("_a", "_b")] * pairs
    columns += [name for query in queries if isinstance(query, TopKGroups) for name, _ in query.select]
    return list(dict.fromkeys(columns))


def shown_keys(query: Query, roles: Roles) -> int:
    """How many keys are reported besides the score: those of a tuple, or one that is no number."""
    if not isinstance(query, TopK | TopKGroups):
        return 0
    if isinstance(query.by, tuple):
        return len(query.by)
    if isinstance(query, TopKGroups):
        return int(is_keyed(query, roles))
    return int(isinstance(query.by, str) and query.by in roles.keyed)


def _keys(query: Query, member: Member, roles: Roles) -> Row:
    """The keys of a member, where they are reported besides the score."""
    if not isinstance(query, TopK | TopKGroups) or not shown_keys(query, roles):
        return {}
    if isinstance(query, TopKGroups):
        return {f"key_{i + 1}": key for i, key in enumerate(member.keys)}
    shown = [
        score_of(by, key) if key is not None and not is_plain(by) and is_number(key) else key
        for by, key in zip(keys_of(query), member.objects[0].keys, strict=True)
    ]
    return {f"key_{i + 1}": key for i, key in enumerate(shown)}


def answer_rows(query: Query, group: Group, answer: list[Member], roles: Roles) -> list[Row]:
    rows = []
    for place, member in enumerate(answer):
        row: Row = dict(zip(query.per_columns, group.values, strict=True))
        row["rank"] = member.place or (place + 1 if member.rank is None else member.rank)
        row |= _ids(member)
        if roles.time is not None:
            row["time"] = member.objects[-1].time  # of a pair the newer member's
        row["score"] = member.score
        if isinstance(query, TopKUncertain):
            row["probability"] = member.probability
        kept = {name: value for name, value in _kept(member, roles).items() if name not in row}
        rows.append(row | _keys(query, member, roles) | kept | member.shown)
    return rows


def _ids(member: Member) -> Row:
    names = ("id",) if len(member.objects) == 1 else ("id_a", "id_b")
    return {name: o.id for name, o in zip(names, member.objects, strict=True)}


def _kept(member: Member, roles: Roles) -> Row:
    ends = ("",) if len(member.objects) == 1 else ("_a", "_b")
    return {
        name + end: o.row.get(column)
        for name, column in roles.keep.items()
        for end, o in zip(ends, member.objects, strict=True)
    }
