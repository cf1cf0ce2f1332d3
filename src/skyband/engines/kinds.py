"""Which home a query gets: one class for each kind of query, one for engines that keep the window."""

from __future__ import annotations

from skyband.engines.adapter import Standing
from skyband.engines.incomplete.adapter import Combining
from skyband.engines.pairs.adapter import Pairing
from skyband.engines.registry import WINDOWED
from skyband.engines.topk.window_adapter import Keeping
from skyband.engines.uncertain.adapter import Doubting
from skyband.query.kinds import Query

_HOMES: dict[str, type[Standing]] = {"TopKPairs": Pairing, "TopKIncomplete": Combining, "TopKUncertain": Doubting}


def home_class(query: Query, algorithm: str) -> type[Standing]:
    return Keeping if algorithm in WINDOWED else _HOMES.get(query.kind, Standing)
