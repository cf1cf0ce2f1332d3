"""Which adapter a query gets: one class for each kind of query, one for engines that keep the window."""

from __future__ import annotations

from skyband.engines.adapter import Adapter
from skyband.engines.incomplete.adapter import IncompleteAdapter
from skyband.engines.pairs.adapter import PairsAdapter
from skyband.engines.topk.window_adapter import WindowAdapter
from skyband.engines.uncertain.adapter import UncertainAdapter
from skyband.query.algorithms import algorithm as row
from skyband.query.kinds import Query

_ADAPTERS: dict[str, type[Adapter]] = {
    "TopKPairs": PairsAdapter,
    "TopKIncomplete": IncompleteAdapter,
    "TopKUncertain": UncertainAdapter,
}


def adapter_class(query: Query, algorithm: str) -> type[Adapter]:
    return WindowAdapter if row(query.kind, algorithm).keeps_window else _ADAPTERS.get(query.kind, Adapter)
