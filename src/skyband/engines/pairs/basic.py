"""BASIC: the K-skyband without a staircase, by dominance counters (shen2012, section VI-D).

Each new pair is compared with the kept ones until K dominators are counted: O(n K) an arrival. To compare with.
"""

from __future__ import annotations

from skyband.engines.pairs.base import Pairs
from skyband.engines.pairs.kernels import records


class BASIC(Pairs):
    name, algorithm = "BASIC", records.BASIC
