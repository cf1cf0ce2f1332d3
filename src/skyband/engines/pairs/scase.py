"""SCASE, the K-staircase (shen2012, section V-A, Algorithms 3 and 4).

Each arrival is scored with all objects of the window and compared with the threshold of their age: a pair that does not
pass is dominated by K pairs. O(n) an arrival at memory's speed, O(K log n) for the pairs that are kept. Any scoring.
Sums of up to three distances are looked at in 32 bits first, and scored where one might pass (kernels/scores.py, skip).

Errata: Theorem 3 is low by about 2 (explain/pairs.py, expected_pairs). Age is compared by ordinals, not by numbers that
change. A pair is dropped for K pairs whose older member is strictly newer, so that ties need no case of their own.
"""

from __future__ import annotations

from skyband.engines.pairs.base import Pairs
from skyband.engines.pairs.kernels import records


class SCASE(Pairs):
    name, algorithm = "SCASE", records.SCASE
