"""SCASE, the K-staircase (shen2012, section V-A, Algorithms 3 and 4)."""

from __future__ import annotations

from skyband.engines.pairs.band import Pairs
from skyband.kernels import pair_records


class SCASE(Pairs):
    name, algorithm = "SCASE", pair_records.SCASE
