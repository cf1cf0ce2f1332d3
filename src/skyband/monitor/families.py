"""Families: which standing queries can share an engine of slots, or of lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from skyband.engines.adapter import Adapter
from skyband.engines.topk.scorings import BLOCK, family_key, where_box
from skyband.engines.topk.slots_adapter import MOST_BOXED
from skyband.query.kinds import Query, TopK
from skyband.query.scoring import Similar, scoring_of
from skyband.tables.subscriptions import owner_of

VECTORS = 8  # fewer queries that compare vectors are scored one by one: a family keeps a history of vectors


def traits_of(query: Query) -> tuple[Any, ...]:
    """What the columns of a query's changes go by."""
    select = repr(getattr(query, "select", ()))
    return bool(query.each), query.per_columns, query.per_inputs, query.of_pairs, query.has_probability, select


def families_of(adapters: Mapping[str, Adapter]) -> list[list[str]]:
    """The names of queries that can be a family: of at least two adapters, and those of BLOCK over a few columns."""
    found: list[list[str]] = []
    for names in alike(adapters, lambda adapter: family_key(cast(TopK, adapter.example)), 2):
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


def alike(adapters: Mapping[str, Adapter], key: Callable[[Adapter], Any], least: int) -> list[list[str]]:
    """The names of adapters with equal keys (None: of no others) and numbers, where there are at least so many."""
    found: dict[Any, list[str]] = {}
    for name, adapter in adapters.items():
        if (known := key(adapter)) is not None:
            numbers = (adapter.numbering.counts.tobytes(), adapter.numbering.at_rest.fingerprint())
            found.setdefault((owner_of(name), known, adapter.groups.names, numbers), []).append(name)
    return [names for names in found.values() if len(names) >= least]
