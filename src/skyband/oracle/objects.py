"""The oracle's two nouns: an arrival (an object of a query's stream) and a member (a row of an answer)."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Roles:
    """The input columns with a role of their own."""

    id: str | None
    time: str | None
    part: str
    value: str
    keep: dict[str, str]  # the output's name -> the input's
    keyed: frozenset[str] = frozenset()  # columns that hold no numbers: alone they are keys, not scores


@dataclass(eq=False)
class Arrival:
    """One row that a query took in. Two arrivals are two objects, whatever their ids."""

    row: Row
    id: Any  # the value of the named column, or the arrival's own number; groups: the object's
    time: Any
    row_id: Any = None  # the value by which it is deleted
    owner: Hashable = None  # groups: the object that it is a row of
    number: int = -1  # `at`: its place in the group's stream, from 0
    age: tuple[Any, ...] = ()  # larger is newer: (number,), in time windows (time, number)
    sequence: int = -1  # its place among the arrivals of all groups
    eligible: bool = True  # satisfies `where`, so that it can be an answer
    key: float = math.nan  # what objects are ranked by
    score: float = math.nan  # what is reported
    keys: tuple[Any, ...] = ()  # TopK: what objects are ranked by, each with its type
    limit: int | None = None  # TopK: the k that the row brings, where k is a column
    entry: int | None = None  # over answers: when its object entered the source's; the object may have moved since
    probability: float = 1.0  # uncertain: that the object exists
    rival: Hashable = None  # uncertain: alternatives with the same `group` exclude each other
    part: Hashable = ""  # incomplete: which part of the object this row brings
    value: float = math.nan  # incomplete: its value

    @property
    def identity(self) -> Hashable:
        """The object: the arrival itself, or what it is a version of."""
        return self if self.entry is None else self.entry


@dataclass(frozen=True)
class Member:
    """One row of an answer. Changes are differences between answers as sets of identities."""

    identity: Hashable  # the arrival; two of them; (arrival, rank held); the id of an incomplete object or a group
    objects: tuple[Arrival, ...]  # one; of a pair the older, then the newer
    score: Any  # a float; None where the first key of an order is no number
    rank: int | None = None  # the rank held, u-kranks only
    probability: float | None = None
    keys: tuple[Any, ...] = ()  # pairs, groups: what ranks it, which is finer than the score with `decay`
    age: tuple[Any, ...] = ()  # groups, incomplete: of the newest row
    eligible: bool = True  # groups: whether it can be an answer
    shown: Row = field(default_factory=dict)  # groups: the values of `select`
    rows: tuple[Arrival, ...] = ()  # groups with `decay`: what the score is made of
    place: int | None = None  # the rank in an answer, where it is not the place in it


def same(value: Any) -> Hashable:
    """A value as a key: NaN equals NaN, -0.0 equals 0.0, null is a value like any other."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN", None  # a tuple equals no value of a column
    hashable: Hashable = value
    return hashable
