"""Where the slabs of a grid are cut: at quantiles of a sample, with finer slabs in the two tails.

Linear slabs hold everything in one cell once the data has a heavy tail or an outlier. Slabs of equal numbers of objects
do not; and since the best objects are in the tails, some of the slabs halve what is left there. A few objects at each
end stay outside: where a tail is heavy, the last slab would reach so far that no cell in it could be ruled out, though
most are empty. O(n + sample log sample).
"""

from __future__ import annotations

import math

import numpy as np

from skyband.engines.contract import Floats

SAMPLE = 8192
TAILS = 12  # of so many slabs one is in each tail
MOST_OUTSIDE = 16  # objects beyond each end
ENOUGH = 2048  # objects for each of them


def slab_edges(values: Floats, side: int) -> Floats:
    """At most side + 1 edges of all values but the ends, strictly rising (two are equal where all values are)."""
    few = min(MOST_OUTSIDE, len(values) // ENOUGH)
    ends = np.partition(values, (few, len(values) - 1 - few))
    low, high = ends[few], ends[len(values) - 1 - few]
    sample = np.sort(values[:: -(-len(values) // SAMPLE)])
    edges = np.interp(_shares(side, len(sample)) * (len(sample) - 1), np.arange(len(sample)), sample)
    edges = np.unique(np.clip(edges, low, high))
    edges[0], edges[-1] = low, high
    return edges if len(edges) > 1 else np.array([low, high])


def _shares(side: int, size: int) -> Floats:
    """The shares of the objects below each edge, from 0 to 1."""
    halves = max(0, math.ceil(math.log2(size / side)))
    in_tail = min(side // TAILS, halves)
    slabs = side - 2 * in_tail
    tail = (1 / slabs) * (slabs / size) ** (np.arange(1, in_tail + 1) / (in_tail + 1))
    return np.sort(np.concatenate([np.linspace(0, 1, slabs + 1), tail, 1 - tail]))
