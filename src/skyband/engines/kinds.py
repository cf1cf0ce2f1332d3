"""The kinds of query: one row for each, which names its adapter."""

from __future__ import annotations

from skyband.engines.adapter import Adapter
from skyband.engines.groups.adapter import GroupsAdapter
from skyband.engines.incomplete.adapter import IncompleteAdapter
from skyband.engines.pairs.adapter import PairsAdapter
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.ordered_adapter import OrderedAdapter
from skyband.engines.topk.window_adapter import WindowAdapter
from skyband.engines.uncertain.adapter import UncertainAdapter
from skyband.query.algorithms import algorithm as row
from skyband.query.kinds import Query

ADAPTERS: dict[str, type[Adapter]] = {
    "TopK": TopKAdapter,
    "Above": TopKAdapter,
    "TopKGroups": GroupsAdapter,
    "TopKPairs": PairsAdapter,
    "TopKIncomplete": IncompleteAdapter,
    "TopKUncertain": UncertainAdapter,
}


def adapter_class(query: Query, algorithm: str, *, keyed: bool = False) -> type[Adapter]:
    """The adapter of a query that is answered by this algorithm; keyed: its only key turned out to be no number."""
    if keyed or query.demands:
        return OrderedAdapter
    return WindowAdapter if row(query.kind, algorithm).keeps_window else ADAPTERS[query.kind]
