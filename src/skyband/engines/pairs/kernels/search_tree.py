"""The priority search tree of pairs (shen2012, Algorithms 1 and 2; McCreight 1985): a heap by age, split by score.

A node has the pair of the smallest age among those of its subtree; the others go left and right by the median score.
The nodes stand in one array, each before its left subtree, and that before its right one: the left child of node e is
e + 1, the right one split[e], and its subtree ends before end[e]. The score of a pair is its rank in the band, in which
ties are settled; the larger stamp of an older member is the smaller age.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.engines.pairs.kernels.records import SIZE, Band, Ints, Places
from skyband.kernels.compile import close, kernel

HEIGHT = 64  # of a tree of fewer than 2^63 pairs


class Tree(NamedTuple):
    rank: Places  # by node: the pair's place in the band
    old: Ints
    split: Places
    end: Places
    stack: Ints


def empty_tree(size: int) -> Tree:
    """A tree with room for so many pairs."""
    rank, split, end = np.empty((3, size), np.int32)
    return Tree(rank, np.empty(size, np.int64), split, end, np.empty(3 * HEIGHT, np.int64))


@close
def build(facts: Ints, band: Band, tree: Tree) -> None:
    """Build the tree of all pairs of the band: O(s log s) for s of them (Alg. 1)."""
    rank, old, stack = tree.rank, tree.old, tree.stack
    for i in range(facts[SIZE]):
        rank[i], old[i] = i, band.old[i]
    stack[0], stack[1], top = 0, facts[SIZE], 2
    while top:  # the pairs of a subtree stand from `begin` to `end`, by score
        begin, end, top = stack[top - 2], stack[top - 1], top - 2
        if begin == end:  # line 1
            continue
        youngest = begin  # line 2
        for i in range(begin + 1, end):
            if old[i] > old[youngest]:
                youngest = i
        median = begin + (end - begin - 1) // 2  # line 3
        one, age = rank[youngest], old[youngest]
        for i in range(youngest, begin, -1):
            rank[i], old[i] = rank[i - 1], old[i - 1]
        rank[begin], old[begin] = one, age
        split = median + 1 + (youngest > median)  # lines 4 and 5
        tree.split[begin], tree.end[begin] = split, end
        stack[top], stack[top + 1] = split, end  # line 6
        stack[top + 2], stack[top + 3] = begin + 1, split  # line 7
        top += 4


@close
def top_pairs(facts: Ints, band: Band, tree: Tree, k: int, low: int, out: Places) -> int:
    """Write the slots of the k best pairs whose older member is newer than `low`; return their number (Alg. 2).

    O(log s + k) nodes are looked at, and then sorted by rank, O(log s) places for each, as an answer is.
    `out` has capacity for k + 2 HEIGHT.
    """
    old, split, end, stack = tree.old, tree.split, tree.end, tree.stack
    found, top = 0, 0  # line 1
    if facts[SIZE] and old[0] > low:  # line 2
        stack[0], top = 0, 1
    while found < k and top:  # line 3
        e = stack[top - 1]  # line 4; a marked one is stored as -1 - e
        if e < 0 or end[e] == e + 1:  # line 5
            out[found] = tree.rank[-1 - e if e < 0 else e]  # line 6
            found += 1
            top -= 1
            continue
        stack[top - 1] = -1 - e  # line 8
        if split[e] < end[e] and old[split[e]] > low:  # line 9
            stack[top] = split[e]
            top += 1
        if e + 1 < split[e] and old[e + 1] > low:  # line 10
            stack[top] = e + 1
            top += 1
    for i in range(top):  # line 11
        if stack[i] < 0:
            out[found] = tree.rank[-1 - stack[i]]
            found += 1
    for i in range(1, found):  # line 12: a node passes none but its descendants
        one, at = out[i], i
        while at > 0 and out[at - 1] > one:
            out[at] = out[at - 1]
            at -= 1
        out[at] = one
    found = min(found, k)
    for i in range(found):
        out[i] = band.slot[out[i]]
    return found


@kernel
def build_tree(facts: Ints, band: Band, tree: Tree) -> None:
    build(facts, band, tree)


@kernel
def read_tree(facts: Ints, band: Band, tree: Tree, k: int, low: int, out: Places) -> int:
    return top_pairs(facts, band, tree, k, low, out)
