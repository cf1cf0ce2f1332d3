"""TA, the threshold algorithm for `Global` scorings (shen2012, section V-B, Algorithm 5).

The window in blocks of age, each with sorted lists of its attributes. A block is read until no unseen object can pass
the threshold of its newest age; a sum of distances needs one list only. Fewer scores than SCASE from some 20,000
objects on, O(d) numbers more for each object.

Departure: the paper reads lists over the whole window in turn with one of ages (docs/engines/pairs/ta.md says why not).
"""

from __future__ import annotations

from skyband.engines.pairs.base import Pairs
from skyband.engines.pairs.kernels import records


class TA(Pairs):
    name, algorithm = "TA", records.TA
