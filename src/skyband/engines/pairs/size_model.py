"""The expected size of the engines of pairs: the window's objects and the K-skyband of their pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from skyband.engines.size import Size, harmonic
from skyband.query.expressions import parse
from skyband.query.expressions.kernels import has_kernels
from skyband.query.kinds import TopKPairs
from skyband.query.scoring import scoring_of

_PAIR = 84  # bytes of a pair in the band
_OBJECT = 16 + 8  # of an object of the window, and of its id; attributes come on top
_NOTES = (
    "All queries with this scoring share one window and one skyband, of the largest k and the longest window.",
    "Columns named in keep= come on top of the bytes, twice in changes: of both members.",
)
_HOW = {
    "SCASE": "It scores each arrival with all objects of the window and compares with the K-staircase, a threshold for "
    "each age: a pair below it is dominated by k pairs.",
    "TA": "It keeps blocks of the window sorted by each attribute, and reads only as far as a pair can pass the "
    "K-staircase: fewer scores than SCASE from some 10,000 objects on.",
    "PST": "It keeps pairs as SCASE does, and reads them from the paper's priority search tree, which is built anew "
    "when answer() is called after the pairs have changed.",
    "BASIC": "It counts the dominators of each new pair one by one. It is there to compare with: SCASE is some 50 "
    "times faster.",
    "REFILL": "It keeps every live object and the best 4k + 256 to 8k + 512 pairs. When deletions leave fewer than k "
    "of them, all pairs are scored again: about once in n/2 deletions of n objects in any order.",
    "NAIVE": "It keeps the k best pairs of each object and computes them anew when one expires. It is there to compare "
    "with: SCASE is more than 100 times faster.",
}


def expected_pairs(n: int, k: int) -> float:
    """The mean size of the K-skyband of pairs of n objects when scores do not depend on age.

    shen2012, Theorem 3, corrected: about x²/2 pairs are younger than x, not x². There are x - 1 pairs of age x.
    """
    every = min(n, (1 + math.isqrt(1 + 8 * k)) // 2)  # up to this age there are fewer than 2k/x pairs
    return every * (every - 1) / 2 + 2 * k * (harmonic(n) - harmonic(every))


def pairs_size(name: str, query: TopKPairs, n: int | None, expected: Mapping[str, float]) -> Size:
    why = [_HOW[name]]
    if name not in ("NAIVE", "REFILL"):
        why.append(
            f"It keeps the window's objects and the K-skyband of their pairs: those that fewer than {query.k:,} others "
            "outrank and outlive. Every smaller k and window is answered from it."
        )
    if query.on is not None:
        why.append(f"Two objects are a pair only if {query.on}; that is tested for new pairs that may be kept.")
    if n is None:
        return Size(None, tuple(why), notes=_NOTES)
    sizes = {"NAIVE": min(n, query.k) * n, "REFILL": min(6 * query.k + 384, n * (n - 1) // 2)}
    pairs = float(sizes.get(name, expected_pairs(n, query.k)))
    why.append(
        f"Of {n * (n - 1) // 2:,} pairs of {n:,} objects that is about {pairs:,.1f}"
        + ("." if name in sizes else " when scores do not depend on age.")
    )
    each = _OBJECT + 8 * form_of(query)[2] * (2 if name == "TA" else 1)
    return Size(float(n), tuple(why), each=each, besides=pairs * _PAIR, notes=_NOTES)


def form_of(query: TopKPairs) -> tuple[str, str, int]:
    """One word, a sentence, and how many columns of numbers are kept."""
    scoring = scoring_of(query.by)
    if scoring.function is not None:
        return "function", "a Python function scores blocks of new pairs; all columns of the batch are kept for it.", 1
    if scoring.pair_form is not None:
        said = f"{scoring!r} is a {scoring.pair_form[1]} of local functions, computed by a kernel."
        return "global", said, len(scoring.pair_form[0])
    tree = parse(query.by, members=("a", "b")).tree if isinstance(query.by, str) else None
    conditions = [] if query.on is None else [parse(query.on, members=("a", "b")).tree]
    if tree is not None and all(map(has_kernels, [tree, *conditions])):
        said = f"{scoring!r} is computed by a kernel, operation by operation."
    else:
        said = f"{scoring!r} is computed by NumPy over blocks of new pairs."
    return "typed", said, len(scoring.pair_columns)
