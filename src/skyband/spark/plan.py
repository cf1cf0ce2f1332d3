"""The plan of a Spark query: queries in query sets, query sets in shards. Plain values, sent to workers.

A query set is the queries with one `per` and one kind of window. A shard is a piece of the state: all rows of a group
go to one shard. A set without `per` has one group, so its shards hold queries instead; those that share a skyband stay
together. Pairs without `per` over long windows are a set of their own: all rows go to all shards, each of which scores
its share of the pairs (pair_blocks.py). So is a query over whose answers others ask, with these: one step of it is one
step of theirs, whatever groups it is in, so all its rows go to one shard.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.errors import StateError
from skyband.query.kinds import Query, TopKIncomplete, TopKPairs
from skyband.query.options import Options
from skyband.query.windows import Last, Window
from skyband.spark.subscriptions import Source
from skyband.tables.columns import distinct, key_bits, valid_of

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
MOST_SHARDS = 10_000
LONG = 50_000  # arrivals: shorter windows of pairs are answered faster than a second operator starts


@dataclass(frozen=True)
class QuerySet:
    """Queries whose state is kept together."""

    per: tuple[str, ...]  # columns of the input by which rows go to shards
    timed: bool
    blocks: bool = False  # all rows go to all shards
    ever: bool = False  # over a window without end: silent groups can be forgotten
    root: str = ""  # the query over whose answers all others of the set ask, directly or not
    shown: tuple[str, ...] = ()  # how changes call the columns of `per`, where that is otherwise

    @classmethod
    def of(cls, stored: list[Any]) -> QuerySet:
        """The inverse of `facts`; older versions stored less."""
        values: list[Any] = [tuple(one) if isinstance(one, list) else one for one in stored]
        return cls(*values)

    def facts(self) -> list[Any]:
        """For JSON."""
        return [list(self.per), self.timed, self.blocks, self.ever, self.root, list(self.shown)]

    @property
    def can_forget(self) -> bool:
        """Whether `forget` drops its silent groups."""
        return bool(self.per) and (self.ever or not self.timed)


@dataclass(frozen=True)
class Plan:
    """One call of `monitor`, as workers see it."""

    queries: dict[str, Query]
    options: Options
    order: tuple[str, ...]
    shards: int
    columns: tuple[str, ...]  # of the input: a callable may read any
    forget: str | int | None = None
    watermarked: bool = False
    blocks: bool | None = None  # pairs by blocks; None: where it is faster
    follows: bool = False  # shards: as many as the running query has partitions of state (task.py)
    subscribed: Mapping[str, Source] = field(default_factory=dict)  # by query with `Each`
    zone: str | None = None  # in which expressions read TIMESTAMP columns; None: UTC
    carried: Mapping[str, str] = field(default_factory=dict)  # start_from: query -> the old one that it goes on from

    @property
    def slim(self) -> Plan:
        """The plan without the static tables of subscriptions, for stages that do not send them."""
        return replace(self, subscribed={name: replace(one, table=None) for name, one in self.subscribed.items()})

    @cached_property
    def query_sets(self) -> dict[QuerySet, dict[str, Query]]:
        found: dict[QuerySet, dict[str, Query]] = {}
        for name, query in self.queries.items():
            ever, shown = query.window.sort == "ever", query.per_columns
            if (root := self.roots.get(name)) is not None:
                query_set = QuerySet((), self.timed(name), root=root)
            else:
                shown = () if shown == query.per_inputs else shown
                query_set = QuerySet(query.per_inputs, self.timed(name), name in self.blocked, ever, "", shown)
            found.setdefault(query_set, {})[name] = query
        return found

    @cached_property
    def roots(self) -> dict[str, str]:
        """Of each query that asks over answers, or over whose answers others ask, the one that asks over rows."""
        return roots_of({name: query.source for name, query in self.queries.items()})

    @cached_property
    def over_rows(self) -> dict[str, Query]:
        """The queries that read the columns of rows, not those of answers."""
        return {name: query for name, query in self.queries.items() if query.source is None}

    def timed(self, name: str) -> bool:
        """Whether the objects of a query have a time; of a question over answers: those of its rows."""
        name = self.roots.get(name, name)
        sort = self.subscribed[name].sort if name in self.subscribed else None
        return sort == "duration" or (sort is None and self.options.timed(self.queries[name].window))

    @cached_property
    def blocked(self) -> dict[str, TopKPairs]:
        """The queries of pairs that all shards answer together; one shard that was asked for works alone."""
        if (self.shards == 1 and not self.follows) or self.watermarked or self.blocks is False:
            return {}
        plain = {name: query for name, query in self.queries.items() if not query.each}
        pairs = {name: query for name, query in plain.items() if isinstance(query, TopKPairs)}
        merged = {name for name, query in pairs.items() if getattr(query.by, "combine", "") != "euclidean"}  # by score
        pairs = {name: query for name, query in pairs.items() if isinstance(query.window, Last) and name in merged}
        alone = {name: query for name, query in pairs.items() if not query.per_columns and query.algorithm != "NAIVE"}
        return {name: query for name, query in alone.items() if self.blocks or _is_long(query.window)}

    @property
    def aliases(self) -> dict[str, str]:
        """Columns that blocked queries keep of objects, under names that cannot be a user's: alias to column.

        Their ids are the numbers of arrivals.
        """
        return {f"skyband {role}": name for role, name in self.options.roles.items()}

    @cached_property
    def shard_by_query(self) -> dict[str, int]:
        """The shards of the queries that stand in one; a query without `per` that has subscriptions is in all."""
        alone = {name: query for name, query in self.queries.items() if name not in self.blocked and not query.each}
        found = {name: shard_of_query(query, self.shards) for name, query in alone.items() if not query.per_columns}
        return found | {name: shard_of_query(self.queries[root], self.shards) for name, root in self.roots.items()}

    def members(self, query_set: QuerySet, shard: int) -> dict[str, Query]:
        """The queries of a set that a shard answers."""
        queries = self.query_sets.get(query_set, {})
        if query_set.per or query_set.blocks:
            return queries
        return {name: query for name, query in queries.items() if self.shard_by_query.get(name, shard) == shard}

    def monitor_options(self, query_set: QuerySet | None = None) -> dict[str, Any]:
        """The options of the Monitors of a set."""
        options = asdict(self.options)
        if query_set is None or not query_set.blocks:
            return options
        return {**options, "id": None, "keep": tuple(self.aliases)}

    def wanted(self, queries: dict[str, Query]) -> tuple[str, ...]:
        """The columns that these queries read or report, and those that order rows."""
        names = dict.fromkeys(self.order)
        for role in (self.options.op, *self.options.roles.values()):
            if role is not None:
                names[role] = None
        for query in (one for one in queries.values() if one.source is None):
            reads = query.reads
            for columns in reads.values():
                names |= dict.fromkeys(columns)
            if isinstance(query, TopKIncomplete):
                names |= dict.fromkeys((self.options.part, self.options.value))
            elif "by" not in reads:
                names |= dict.fromkeys(self.columns)
        return tuple(names)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """The plan as JSON: state is resumed only by the plan that wrote it."""
        queries = {name: query.to_dict() for name, query in self.queries.items()}
        options = {**self.options.stored, "order": self.order, "forget": self.forget}
        if self.options.op is None:
            del options["op"]  # so that checkpoints from before it existed are resumed
        if self.zone is not None:
            options["zone"] = self.zone
        if self.blocks is not None:
            options["blocks"] = self.blocks
        plain: dict[str, Any] = json.loads(json.dumps({"shards": self.shards, "options": options, "queries": queries}))
        return plain


def old_name(name: str) -> str:
    """The name of a query of another checkpoint in this one: it begins with a character that nobody writes."""
    return "\ue000" + name


def roots_of(sources: Mapping[str, str | None]) -> dict[str, str]:
    """The query over rows to which each one leads that has a source or is one; sources: by query."""

    def root(name: str) -> str:
        source = sources.get(name)
        return name if source is None else root(source)

    asked = {source for source in sources.values() if source is not None}
    return {name: root(name) for name, source in sources.items() if source is not None or name in asked}


def compare(stored: dict[str, Any], given: dict[str, Any]) -> None:
    """Refuse a plan that differs from the one that wrote the state; new and dropped queries are allowed."""
    if stored["shards"] != given["shards"]:
        raise StateError(
            f"the checkpoint was written with shards={stored['shards']}, and groups cannot move. "
            f"Run with shards={stored['shards']}, or start from a new checkpoint."
        )
    if stored["options"] != given["options"]:
        raise StateError(
            f"the checkpoint was written with other options ({stored['options']}, now {given['options']}). "
            "Run with those, or start from a new checkpoint."
        )
    for name, data in stored["queries"].items():
        if given["queries"].get(name, data) != data:
            raise StateError(
                f"the query {name!r} differs from the one in the checkpoint ({data}). "
                "Give the new query a new name, or start from a new checkpoint."
            )
    before, now = (roots_of({name: one.get("source") for name, one in of["queries"].items()}) for of in (stored, given))
    for name in stored["queries"]:
        if name in given["queries"] and (name in before) != (name in now):
            how = "nobody asked over its answers" if name in now else "others asked over its answers"
            raise StateError(
                f"when the checkpoint was written, {how}, and now {'some do' if name in now else 'none does'}: the "
                f"rows of {name!r} would move to other shards. Give it a new name, or start from a new checkpoint."
            )


def _is_long(window: Window) -> bool:
    return isinstance(window, Last) and window.count is not None and window.count >= LONG


def shard_of_query(query: Query, shards: int) -> int:
    """The shard of a query without `per`: one for all queries that can share a skyband."""
    window = query.window
    shared = dict(query.to_dict(), k=0, window="ever" if window.sort == "ever" else window.sort == "time")
    shared.pop("threshold", None)
    return zlib.crc32(json.dumps(shared, sort_keys=True).encode()) % shards


def hash_groups(columns: list[Any]) -> Words:
    """A 64-bit hash of each row's group, the same on every machine."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ _hash(column)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def shard_of(hashes: Words, shards: int) -> Ints:
    """The shard of each group."""
    return (hashes % np.uint64(shards)).astype(np.int64)


def _hash(column: Any) -> Words:
    keys = key_bits(column)
    if keys is None:
        values, slots = distinct(column)
        keys = np.array([*(zlib.crc32(repr(word).encode()) for word in values), 0])[slots]
    hashed = keys.view(np.uint64)
    valid = valid_of(column)
    return hashed if valid is None else np.where(valid, hashed, np.uint64(0x5EED))


_CYCLE = 2**6 * 3**2 * 5**2 * 7  # most numbers of partitions that people use divide it


@cache
def labels(shards: int) -> tuple[int, ...]:
    """The key of each shard, such that Spark's hash sends shard i to partition i modulo the number of partitions.

    Spark partitions by Murmur3 of the key modulo the number of partitions, which may come from an old checkpoint and
    is not known here; so the hash must be i modulo a number that the likely ones divide.
    """
    wanted = np.arange(shards) % _CYCLE
    found = np.full(shards, -1, np.int64)
    start, step = 0, 1 << 18
    seen = np.zeros(_CYCLE, np.int64)  # how many keys with this remainder are used
    while (found < 0).any():
        keys = np.arange(start, start + step)
        remainders = murmur3(keys) % _CYCLE
        for i in np.flatnonzero(np.isin(remainders, wanted)).tolist():
            place = int(remainders[i]) + _CYCLE * int(seen[remainders[i]])
            if place < shards:
                found[place] = keys[i]
                seen[remainders[i]] += 1
        start += step
    return tuple(found.tolist())


def murmur3(keys: Ints) -> Ints:
    """Spark's `hash` of integer keys, before the remainder."""
    with np.errstate(over="ignore"):
        k = keys.astype(np.uint32) * np.uint32(0xCC9E2D51)
        k = (k << np.uint32(15)) | (k >> np.uint32(17))
        h = np.uint32(42) ^ (k * np.uint32(0x1B873593))
        h = ((h << np.uint32(13)) | (h >> np.uint32(19))) * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        h ^= h >> np.uint32(16)
    return h.view(np.int32).astype(np.int64)
