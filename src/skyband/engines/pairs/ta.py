"""TA, the threshold algorithm for `Global` scorings (shen2012, section V-B, Algorithm 5)."""

from __future__ import annotations

from skyband.engines.pairs.band import Pairs
from skyband.kernels import pair_records


class TA(Pairs):
    name, algorithm = "TA", pair_records.TA
