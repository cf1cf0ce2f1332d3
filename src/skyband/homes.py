"""Which home a query gets: one class for each kind of query, one for engines that keep the window."""

from __future__ import annotations

from skyband.combining import Combining
from skyband.doubting import Doubting
from skyband.engines.registry import WINDOWED
from skyband.keeping import Keeping
from skyband.pairing import Pairing
from skyband.query import Query
from skyband.standing import Standing

_HOMES: dict[str, type[Standing]] = {"TopKPairs": Pairing, "TopKIncomplete": Combining, "TopKUncertain": Doubting}


def home_class(query: Query, algorithm: str) -> type[Standing]:
    return Keeping if algorithm in WINDOWED else _HOMES.get(query.kind, Standing)
