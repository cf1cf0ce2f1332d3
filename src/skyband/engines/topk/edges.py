"""Where the slabs of a grid are cut: at quantiles of a sample, with finer slabs in heavy tails.

Linear slabs hold everything in one cell once the data has a heavy tail or an outlier. Slabs of equal numbers of objects
do not; and since the best objects are in the tails, some of the slabs halve what is left in a heavy one. A few objects
at its end stay outside: the last slab would reach so far that no cell in it could be ruled out, though most are empty.
O(n + sample log sample).
"""

from __future__ import annotations

import math

import numpy as np

from skyband.engines.contract import Floats

SAMPLE = 8192
LONG = 2  # an end is a heavy tail if its slab is so many times as long as slabs are in the mean
TAILS = 12  # of so many slabs one is in each heavy tail
MOST_OUTSIDE = 16  # objects beyond each end
ENOUGH = 2048  # objects for each of them


def slab_edges(values: Floats, side: int) -> Floats:
    """At most side + 1 edges of all values but the ends, strictly rising (two are equal where all values are)."""
    sample = np.sort(values[:: -(-len(values) // SAMPLE)])
    tails = _are_heavy(sample, values, side)
    few = [min(MOST_OUTSIDE, len(values) // ENOUGH) if heavy else 0 for heavy in tails]
    ends = np.partition(values, (few[0], len(values) - 1 - few[1]))
    low, high = ends[few[0]], ends[len(values) - 1 - few[1]]
    edges = np.interp(_shares(side, len(sample), tails) * (len(sample) - 1), np.arange(len(sample)), sample)
    edges = np.unique(np.clip(edges, low, high))
    edges[0], edges[-1] = low, high
    return edges if len(edges) > 1 else np.array([low, high])


def _are_heavy(sample: Floats, values: Floats, side: int) -> tuple[bool, bool]:
    """Whether slabs of equal numbers of objects would be long at the lower and at the upper end.

    Elsewhere finer slabs at the ends only multiply the cells that a search opens: four times as many of uniform data
    with four attributes.
    """
    edges = np.interp(np.arange(1, side) / side * (len(sample) - 1), np.arange(len(sample)), sample)
    low, high = values.min(), values.max()
    long = LONG * (high / side - low / side)
    return (bool(edges[0] - low > long), bool(high - edges[-1] > long)) if len(edges) else (False, False)


def _shares(side: int, size: int, tails: tuple[bool, bool]) -> Floats:
    """The shares of the objects below each edge, from 0 to 1. tails: which ends have finer slabs."""
    halves = max(0, math.ceil(math.log2(size / side)))
    in_tail = min(side // TAILS, halves)
    slabs = side - sum(tails) * in_tail
    tail = (1 / slabs) * (slabs / size) ** (np.arange(1, in_tail + 1) / (in_tail + 1))
    ends = [shares for shares, heavy in zip((tail, 1 - tail), tails, strict=True) if heavy]
    return np.sort(np.concatenate([np.linspace(0, 1, slabs + 1), *ends]))
