"""BASIC: the K-skyband without a staircase, by dominance counters (shen2012, section VI-D)."""

from __future__ import annotations

from skyband.engines.pairs.band import Pairs
from skyband.kernels import pair_records


class BASIC(Pairs):
    name, algorithm = "BASIC", pair_records.BASIC
