"""Families: which standing queries can share an engine of slots, or of lanes; and which one table of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from skyband.engines.adapter import Adapter
from skyband.engines.numbering import Start
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.ordered_adapter import OrderedAdapter
from skyband.engines.topk.scorings import BLOCK, MOST_ATTRIBUTES, family_key, where_box
from skyband.engines.topk.similar_adapter import slots_kind
from skyband.engines.topk.slots_adapter import MOST_BOXED, SlotsAdapter
from skyband.errors import QueryError
from skyband.monitor.state import State
from skyband.query.kinds import Query, TopK
from skyband.query.scoring import Similar, scoring_of
from skyband.tables.changes import change_names
from skyband.tables.subscriptions import owner_of

APART = 2  # queries that stand apart before a family is begun: with fewer it would cost more than one engine more
VECTORS = 8  # fewer queries that compare vectors are scored one by one: a family keeps a history of vectors


def traits_of(query: Query) -> tuple[Any, ...]:
    """What the columns of a query's changes go by."""
    more = repr(getattr(query, "select", ())), getattr(query, "of_columns", ())
    return bool(query.each), query.per_columns, query.per_inputs, query.of_pairs, query.has_probability, *more


def check_columns(state: State, name: str, query: Query) -> None:
    """No two columns of changes have one name, and `id` has one type."""
    kept = state.options.kept
    clash = set(query.per_columns) & set(kept)
    if clash and not state.options.inner:  # there the source's `per` is kept, where it is not the query's own
        raise QueryError(f"{clash.pop()!r} is in `per` and in `keep`; every change carries its `per` columns anyway.")
    if state.traits is None:
        state.traits = {traits_of(one): one for one in state.queries.values()}
    sources = dict(zip(query.per_columns, query.per_inputs, strict=True))
    for other in state.traits.values():
        for per, column in zip(other.per_columns, other.per_inputs, strict=True):
            if sources.get(per, column) != column:
                raise QueryError(
                    f"per: {per!r} would be {column!r} for one query and {sources[per]!r} for another. Give one "
                    "of them another name."
                )
    asked = [*state.traits.values(), query]
    names = change_names(asked, kept, timed=False)
    if len(set(names)) < len(names):
        twice = next(one for one in names if names.count(one) > 1)
        if any(twice == shown for one in asked for shown, _ in getattr(one, "select", ())):
            raise QueryError(f"{twice!r} is in `select` and in `keep` or `per`. Give it another name in `select`.")
        raise QueryError(
            f"{twice!r} would be two columns: of pairs each column of `keep` comes as name_a and name_b. Rename it."
        )
    if len({getattr(one, "of_columns", ()) for one in asked}) > 1:
        state.id_type(state.types, name, query)


def note_columns(state: State, query: Query) -> None:
    """A query stands: its columns count in the checks of later ones."""
    if state.traits is not None:
        state.traits[traits_of(query)] = query


def families_of(adapters: Mapping[str, Adapter]) -> list[list[str]]:
    """The names of queries that can be a family: of at least two adapters, and those of BLOCK over a few columns."""
    found: list[list[str]] = []
    for names in alike(adapters, lambda adapter: family_key(cast(TopK, adapter.example), adapter.algorithm), 2):
        if adapters[names[0]].algorithm != BLOCK:
            names = [name for name in names if len(adapters[name].queries) == 1]
        if len({adapters[name] for name in names}) < 2:  # they share one skyband
            continue
        if adapters[names[0]].algorithm != BLOCK:
            found.append(names)
            continue
        queries = {name: cast(TopK, adapters[name].queries[name]) for name in names}
        if isinstance(scoring_of(queries[names[0]].by), Similar) and len({adapters[name] for name in names}) < VECTORS:
            continue
        boxes = {name: tuple(where_box(query)[0]) for name, query in queries.items()}
        columns = {*scoring_of(queries[names[0]].by).columns}
        if len(columns.union(*boxes.values())) <= max(MOST_BOXED, len(columns)):
            found.append(names)
            continue
        by_box: dict[tuple[str, ...], list[str]] = {}
        for name in names:
            by_box.setdefault(tuple(sorted(boxes[name])), []).append(name)
        found += [some for some in by_box.values() if len({adapters[name] for name in some}) > 1]
    return found


def stands_apart(adapters: Iterable[Adapter], query: TopK, key: Any) -> bool:
    """Whether one more query begins a family: others with its key, which came before, have engines of their own."""
    started = (one for one in adapters if isinstance(one, TopKAdapter) and one.engine is not None and one.queries)
    apart = sum(
        one.algorithm == BLOCK and not isinstance(one, OrderedAdapter) and one.family_key == key for one in started
    )
    by = scoring_of(query.by)
    attributes = {*by.columns, *where_box(query)[0]}
    return apart >= (VECTORS if isinstance(by, Similar) else APART) and len(attributes) <= MOST_ATTRIBUTES


def begin_family(state: State, name: str, query: TopK, numbers: Start) -> SlotsAdapter:
    """A family with one query, which later ones join."""
    family = slots_kind(query)(query, state.groups[query.grouping], state.options, numbers)
    family.queries[name] = query
    family.start(state.unit)
    return family


def alike(adapters: Mapping[str, Adapter], key: Callable[[Adapter], Any], least: int) -> list[list[str]]:
    """The names of adapters with equal keys (None: of no others) and numbers, where there are at least so many."""
    found: dict[Any, list[str]] = {}
    for name, adapter in adapters.items():
        if (known := key(adapter)) is not None:
            rest = adapter.numbering.at_rest
            numbers = (adapter.numbering.counts.tobytes(), rest.fingerprint() if len(rest) else ())
            found.setdefault((owner_of(name), known, adapter.groups.names, numbers), []).append(name)
    return [names for names in found.values() if len(names) >= least]
