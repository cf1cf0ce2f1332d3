"""Queries that are asked over the answers of others: where each one stands, and one table of all their changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.errors import QueryError
from skyband.monitor.over import Over, Reported, inner_options
from skyband.query.kinds import Query
from skyband.query.options import ALL
from skyband.tables.changes import QueryNames, change_names, common_type, in_type, key_names
from skyband.tables.columns import as_arrow, plain

SOURCES = ("TopK", "Above", "TopKGroups")  # kinds that are asked, and that are asked over


def owner_of(state: Any, name: str) -> Any:
    """The state in which a query stands: this one, or that of a loop over answers."""
    for over in state.over.values():
        if stands(over.loop.state, name):
            return owner_of(over.loop.state, name)
    return state


def stands(state: Any, name: str) -> bool:
    """Whether a query of this name stands, over rows or answers; no look at the others."""
    inner = (over.loop.state for over in state.over.values())
    return isinstance(name, str) and (name in state.adapters or any(stands(one, name) for one in inner))


def names_of(state: Any) -> list[str]:
    """All queries of a state and over its answers."""
    return [*state.adapters, *(name for over in state.over.values() for name in names_of(over.loop.state))]


def all_queries(state: Any) -> dict[str, Query]:
    """The standing queries by name, in order of registration."""
    if not state.over:
        return state.queries  # type: ignore[no-any-return]
    return {name: owner_of(state, name).queries[name] for name in state.order}


def in_order(queries: Mapping[str, Query]) -> list[str]:
    """The names of new queries, each after its source; a circle is a QueryError."""
    left, found = dict(queries), list[str]()
    while left:
        ready = [name for name, query in left.items() if getattr(query, "source", None) not in left]
        if not ready:
            raise QueryError(f"{', '.join(left)} ask over each other's answers in a circle. One must ask over rows.")
        found += ready
        done = {*ready}
        left = {name: query for name, query in left.items() if name not in done}
    return found


def over_for(state: Any, name: str, query: Query) -> Over:
    """The loop over the answers of a query's source; a new one stands when it is registered."""
    source = str(query.source)
    if source not in names_of(state):
        standing = ", ".join(names_of(state)) or "none"
        raise QueryError(
            f"{name}: no query called {source!r} is standing, over whose answers to ask. Standing: {standing}."
        )
    owner = owner_of(state, source)
    asked = owner.queries[source]
    _check_kinds(name, query, source, asked)
    if query.each:
        raise QueryError(
            f"{name}: a question over answers is a plain query, without Each. Its source may have subscriptions."
        )
    if owner.options.keep == (ALL,):
        raise QueryError(f'{name}: keep="*" does not say yet which columns the answers of {source!r} have. Name them.')
    _check_columns(name, query, owner, asked)
    if source in owner.over:
        return owner.over[source]  # type: ignore[no-any-return]
    from skyband.monitor.loop import Loop
    from skyband.monitor.state import State

    inner = State(inner_options(owner.options, asked), commit=owner.commit, source=source, order=owner.order)
    return Over(source, Loop(inner, settles=True))


def register(state: Any, over: Over) -> Over:
    """Let a loop over answers stand."""
    owner_of(state, over.source).over[over.source] = over
    return over


def check_askers(owner: Any, source: str, asked: Query) -> None:
    """Refuse another query under the name of a source, over whose answers the standing ones could not ask."""
    for name, query in owner.over[source].loop.state.queries.items():
        _check_kinds(name, query, source, asked)
        _check_columns(name, query, owner, asked)


def _check_kinds(name: str, query: Query, source: str, asked: Query) -> None:
    """Which kinds ask, and are asked over."""
    if query.kind not in SOURCES or asked.kind not in SOURCES:
        raise QueryError(
            f"{name}: source= is for {', '.join(SOURCES)}, over one of these; {source!r} is a {asked.kind}."
        )
    if getattr(asked, "decay", None) is not None:
        raise QueryError(
            f"{name}: the scores of {source!r} fade with every moment, so what is asked over its answers would change "
            "without a step. Ask over a query without decay."
        )
    if asked.kind == "TopKGroups" and asked.algorithm == "SKETCH":
        raise QueryError(
            f"{name}: SKETCH estimates the answers of {source!r}, and does not tell how its scores move. Ask over a "
            "query that is answered exactly, by TALLY."
        )


def _check_columns(name: str, query: Query, owner: Any, asked: Query) -> None:
    """The query reads columns of its source's answer only."""
    known = answer_columns(owner, asked)
    keyed = isinstance(getattr(asked, "by", None), str) and asked.kind != "Above"  # the column may be no number
    for what, columns in query.reads.items():
        for column in columns:
            if column in known or (keyed and column == "key_1"):
                continue
            why = "which moves with every arrival" if column == "rank" else "which it has not"
            raise QueryError(
                f"{name}: {what} reads {column!r} of the answers of {query.source!r}, {why}. They have: "
                f"{', '.join(sorted(known))}."
            )


def answer_columns(owner: Any, asked: Query) -> set[str]:
    """The columns of the answers of a query that others can read."""
    by, select = getattr(asked, "by", None), [name for name, _ in getattr(asked, "select", ())]
    keys = key_names(len(by)) if isinstance(by, tuple) else []
    more = ["time"] * (owner.options.time is not None) + ["subscriber"] * bool(asked.each)
    return {*asked.per_columns, "id", "score", *owner.options.kept, *select, *keys, *more}


def source_types(state: Any, source: str, keys: Any = None) -> dict[str, Any]:
    """The columns of the answers of a source, with their types, as queries over them read them."""
    adapter = state.adapter(source)
    if keys is None:
        keys = next((one.shown_keys for one in state.subscribed_to(source)), adapter.shown_keys)
    types = state.answer_types(adapter.queries[source], keys)
    types.pop("rank")
    return types | state.own_id_type(source)  # type: ignore[no-any-return]


def seen_types(state: Any, source: str, adapter: Any, validated: Any) -> dict[str, Any]:
    """The same as a batch makes them that is not taken yet; adapter: which has validated it."""
    keys = None if validated.scored.keys is None else adapter.new_keys(validated)
    return source_types(state, source, keys) | adapter.seen_types()  # type: ignore[no-any-return]


def with_over(state: Any, table: pa.Table, pieces: Any, engines: Any, labels: Any = ()) -> pa.Table:
    """The changes of a state and those that they bring about over its answers, in one table.

    engines: for each piece, the names of its engine's queries; labels: how changes name them, where that is known.
    """
    known = [*labels, *[None] * (len(engines) - len(labels))]
    tables = [table]
    for source, over in state.over.items():
        all_ = [_reported(state, source, *one) for one in zip(pieces, engines, known, strict=True)]
        tables.append(fed(state, over, [one for one in all_ if one is not None and len(one.rows)]))
    return in_one(state, tables)


def fed(state: Any, over: Over, reported: list[Reported]) -> pa.Table:
    """What changes over the answers of a source when these have been reported."""
    if not reported:
        return over.loop.state.changes([], [])
    return over.take(reported, source_types(state, over.source), state.queries[over.source].per_columns)


def _reported(state: Any, source: str, piece: Any, names: Any, label: Any) -> Reported | None:
    """The changes of a piece that are of the source, or of its subscriptions."""
    if not piece:
        return None
    if label is not None and label.owner == source:
        entries = np.take(label.entries, piece["query"]).astype(np.int64)
        who = state.subscriptions[source].subscribers(entries)
        return Reported(piece, np.arange(len(entries)), entries, who)
    if source not in names:
        return None
    rows = np.flatnonzero(piece["query"] == list(names).index(source))
    return Reported(piece, rows, np.zeros(len(rows), np.int64))


def ended(state: Any, name: str, retract: Any, entries: Any) -> pa.Table | None:
    """What changes over the answers of a query when these of its subscriptions end; None: nobody asks over them.

    retract: gives the changes by which all answers of a query leave, and the adapters of these.
    """
    if name not in state.over:
        return None
    state.mark_sources()
    found = []
    for piece, adapter in zip(*retract(name), strict=True):
        one = _reported(state, name, piece, (), state.labels(adapter, state.known_names()))
        if one is not None and len(rows := one.rows[np.isin(one.entries, entries)]):
            found.append(Reported(piece, rows, one.entries[rows], one.subscribers.take(as_arrow(rows))))
    return fed(state, state.over[name], found)


def of_members(piece: Any) -> Any:
    """The changes of membership in a piece, without those that tell queries over the answers what has moved."""
    if not piece or (there := np.asarray(piece["diff"]) != 0).all():
        return piece
    rows = np.flatnonzero(there)
    here = as_arrow(rows)
    columns = {name: column.take(here) for name, column in piece.items() if isinstance(column, pa.Array)}
    return columns | {"query": np.asarray(piece["query"])[rows]}


def in_one(state: Any, tables: list[pa.Table]) -> pa.Table:
    """Tables of changes in the columns of all queries, by query in order of registration."""
    known = {name: query for owner in states_of(state) for name, query in owner.queries.items()}
    queries = [known[name] for name in state.order if name in known]
    found: dict[str, list[Any]] = {}
    for field in (field for table in tables for field in table.schema):
        found.setdefault(field.name, []).append(field.type)
    types = {name: common_type(each) for name, each in found.items()}
    keys = sum(name.startswith("key_") for name in types)
    names = change_names(queries, state.options.kept, state.options.time is not None, keys)
    types |= {name: pa.null() for name in names if name not in types}
    place = {name: i for i, name in enumerate(state.order)}
    rows = [place[name] for table in tables for name in table.column("query").to_pylist()]
    order = np.argsort(np.array(rows, np.int64), kind="stable")
    indices = pa.array(np.array(rows, np.int32)[order], pa.int32())
    columns: dict[str, Any] = {"query": pa.DictionaryArray.from_arrays(indices, QueryNames(state.order).words)}
    for name in names[1:]:
        parts = [
            in_type(plain(table.column(name)), types[name])
            if name in table.column_names
            else pa.nulls(table.num_rows, types[name])
            for table in tables
        ]
        columns[name] = pa.concat_arrays(parts).take(as_arrow(order))
    return pa.table(columns)


def forget_unused(state: Any) -> None:
    """Drop loops over answers that nobody asks over any more."""
    for source, over in list(state.over.items()):
        forget_unused(over.loop.state)
        if not names_of(over.loop.state):
            state.forget_over(source)


def states_of(state: Any) -> list[Any]:
    """A state and those of all loops over its answers."""
    return [state, *(inner for over in state.over.values() for inner in states_of(over.loop.state))]
