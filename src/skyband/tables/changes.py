"""Tables out: changes and answers, with the contract's columns in the contract's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.query.kinds import Query
from skyband.tables.columns import as_arrow
from skyband.tables.subscriptions import Subscriptions, entry_of, owner_of

_FIXED = {
    "at": pa.int64(),
    "score": pa.float64(),
    "rank": pa.int64(),
    "probability": pa.float64(),
    "diff": pa.int8(),
    "first": pa.bool_(),
}
_QUERY = pa.dictionary(pa.int32(), pa.string())
PAIR = ("_a", "_b")  # the older and the newer member


def column_types(names: Iterable[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The columns with their types; `inputs`: those of the input's columns."""
    return {name: _QUERY if name == "query" else _FIXED[name] if name in _FIXED else inputs[name] for name in names}


def change_names(queries: Iterable[Query], keep: Iterable[str], timed: bool, keys: int = 0) -> list[str]:
    """The union of the queries' columns of changes, in the contract's order; keys: how many are reported."""
    asked = list(queries)
    per, ids, probability, kept = _parts(asked, keep)
    when = ["time"] if timed else []
    rank = ["rank"] if probability else []
    subscriber = ["subscriber"] if any(query.each for query in asked) else []
    scores = ["score", *rank, *probability, *key_names(keys)]
    return ["query", *subscriber, *per, "at", *when, *ids, *scores, "diff", "first", *kept]


def answer_names(queries: Iterable[Query], keep: Iterable[str], timed: bool, keys: int = 0) -> list[str]:
    """The union of the columns of the queries' answers, in the contract's order."""
    asked = list(queries)
    per, ids, probability, kept = _parts(asked, keep)
    subscriber = ["subscriber"] if any(query.each for query in asked) else []
    scores = ["score", *probability, *key_names(keys)]
    return [*subscriber, *per, "rank", *ids, *(["time"] if timed else []), *scores, *kept]


def key_names(count: int) -> list[str]:
    """The columns of so many keys of an order."""
    return [f"key_{i + 1}" for i in range(count)]


def _parts(queries: Iterable[Query], keep: Iterable[str]) -> tuple[list[str], list[str], list[str], list[str]]:
    """The columns of groups, of ids and of probabilities, and those that are kept, with those of `select`."""
    asked = list(queries)
    pairs = any(query.of_pairs for query in asked)
    single = not pairs or not all(query.of_pairs for query in asked)

    def of_members(names: Iterable[str]) -> list[str]:
        known = list(names)
        both = [end for name in known for end in of_pair(name)]
        return [*(known if single else []), *(both if pairs else [])]

    probability = ["probability"] if any(query.has_probability for query in asked) else []
    per = dict.fromkeys(name for query in asked for name in query.per_columns)
    shown = dict.fromkeys(name for query in asked for name, _ in getattr(query, "select", ()))
    return list(per), of_members(["id"]), probability, [*of_members(name for name in keep if name not in per), *shown]


def common_type(types: Iterable[Any]) -> Any:
    """The type of a column of several queries: theirs if it is one, else a dense union of theirs."""
    known: dict[Any, None] = {}
    for type_ in types:
        known |= dict.fromkeys(field.type for field in type_) if pa.types.is_union(type_) else {type_: None}
    distinct = [type_ for type_ in known if not pa.types.is_null(type_)]
    if len(distinct) < 2:
        return distinct[0] if distinct else pa.null()
    return pa.dense_union([pa.field(str(type_), type_) for type_ in distinct])


def in_type(column: Any, type_: Any) -> Any:
    """A column in the common type."""
    if column.type == type_ or not pa.types.is_union(type_):
        return column if column.type == type_ else column.cast(type_)
    places = {field.type: i for i, field in enumerate(type_)}
    parts = {0: column}
    codes, offsets = np.zeros(len(column), np.int8), np.arange(len(column), dtype=np.int32)
    if pa.types.is_union(column.type):
        codes, offsets = np.asarray(column.type_codes), np.asarray(column.offsets)
        parts = {i: column.field(i) for i in range(column.type.num_fields)}
    targets = np.array([places.get(part.type, 0) for part in parts.values()], np.int8)
    children = [pa.nulls(0, field.type) for field in type_]
    for part, target in zip(parts.values(), targets.tolist(), strict=True):
        children[target] = part.cast(type_.field(target).type)
    names = [field.name for field in type_]
    return pa.UnionArray.from_dense(as_arrow(targets[codes]), as_arrow(offsets), children, names)


def of_pair(name: str) -> tuple[str, str]:
    """The columns of both members of a pair."""
    return f"{name}{PAIR[0]}", f"{name}{PAIR[1]}"


class Labels(NamedTuple):
    """How changes name the queries of one engine."""

    place: Any  # of their names in order of registration, by query of the engine; one, if all have the same
    owner: str | None  # the query whose subscriptions they are
    entries: Any  # of these subscriptions, by query of the engine


class QueryNames:
    """The standing queries in order of registration: their names as Arrow, and where those of an engine are."""

    def __init__(self, names: Sequence[str], subscriptions: Mapping[str, Subscriptions] | None = None) -> None:
        self.names = list(names)
        self.subscriptions = subscriptions or {}  # by query
        words = [name.encode() for name in names]  # by buffers, for the reason that `as_arrow` gives
        ends = np.cumsum([0, *map(len, words)]).astype(np.int32)
        self.words = pa.StringArray.from_buffers(len(words), pa.py_buffer(ends), pa.py_buffer(b"".join(words)))
        self._place = {name: i for i, name in enumerate(names)}
        self._known: dict[tuple[str, ...], Labels] = {}
        self._none: tuple[Any, Any] = (None, None)  # types, and no changes with these columns

    def labels(self, names: Sequence[str]) -> Labels:
        """Of the queries of one engine, or of subscriptions of one query."""
        engine = tuple(names)
        if engine not in self._known:
            owner = owner_of(engine[0]) if engine else None
            entries = np.array([] if owner is None else [entry_of(name) for name in engine], np.int64)
            places = np.array([self._place[owner or name] for name in engine], np.int32)
            self._known[engine] = Labels(places, owner, entries)
        return self._known[engine]

    def of_slots(self, owner: str, entries: Any) -> Labels:
        """Of subscriptions that are slots of one engine."""
        return Labels(np.full(1, self._place[owner], np.int32), owner, entries)

    def no_changes(self, types: Mapping[str, Any]) -> Any:
        """A table of changes without a row."""
        if self._none[0] is not types:
            self._none = (types, _table({}, types, 0))
        return self._none[1]


def change_table(
    pieces: Sequence[Mapping[str, Any]],
    query_names: QueryNames,
    engines: Sequence[Labels],
    types: Mapping[str, Any],
) -> Any:
    """One table from the changes of several engines, by query in order of registration.

    `engines`: for each piece, how its engine's queries are named. `types`: columns in order.
    """
    tables: list[Any] = []
    places, in_order = [np.empty(0, np.int32)], True
    several = [(piece, label) for piece, label in zip(pieces, engines, strict=True) if piece and len(piece["query"])]
    several.sort(key=lambda one: int(one[1].place[0]))  # those of subscriptions are behind all queries
    for piece, label in several:
        size = len(piece["query"])
        one = len(label.place) == 1 or label.owner is not None
        place = np.full(size, label.place[0], np.int32) if one else np.take(label.place, piece["query"])
        columns = {**piece, "query": pa.DictionaryArray.from_arrays(as_arrow(place), query_names.words)}
        if label.owner is not None:
            entries = np.take(label.entries, piece["query"])
            columns["subscriber"] = query_names.subscriptions[label.owner].subscribers(entries)
        tables.append(_table(columns, types, size))
        in_order &= one or bool((np.diff(label.place) > 0).all())
        in_order &= not len(places[-1]) or bool(places[-1][-1] <= place[0])
        places.append(place)
    if not tables:
        return query_names.no_changes(types)
    if in_order:  # each piece is by query
        return pa.concat_tables(tables).combine_chunks() if len(tables) > 1 else tables[0]
    place = np.concatenate(places)
    return pa.concat_tables(tables).take(as_arrow(np.argsort(place, kind="stable"))).combine_chunks()


def answer_table(columns: Mapping[str, Any], types: Mapping[str, Any]) -> Any:
    return _table(columns, types, len(columns.get("rank", ())))


def _table(columns: Mapping[str, Any], types: Mapping[str, Any], rows: int) -> Any:
    arrays = []
    for name, type_ in types.items():
        column = columns.get(name)
        if column is None or not rows:  # without a row nothing tells what a column of `select` holds
            column = pa.nulls(rows, type_)
        elif column.type != type_:
            column = in_type(column, type_)
        arrays.append(column)
    return pa.Table.from_arrays(arrays, names=list(types))
