"""The expected size of synopses of uncertain streams, in random order."""

from __future__ import annotations

import math
from collections.abc import Mapping

from skyband.engines.size import Size
from skyband.errors import QueryError
from skyband.query.kinds import TopKUncertain

ALTERNATIVE = 56  # bytes of a row with a name, of which one to four times as many are kept as are valid


def compact_set(k: int, probability: float) -> float:
    """The size of a compact set: so many tuples that k of them are expected to exist.

    Measured for pk-topk at p uniform: 2.4, 20, 40, 100, 199 and 403 for k = 1, 10, 20, 50, 100 and 200 (Figure 3).
    """
    return (k + 0.2) / probability


def union(k: int, probability: float, n: int) -> float:
    """The union of the compact sets of all suffixes of a window of n: DOM keeps it."""
    H = min(float(n), compact_set(k, probability))
    return H * (1 + math.log(n / H))


def compact_size(name: str, query: TopKUncertain, n: int | None, expected: Mapping[str, float]) -> Size:
    size = compact_set(query.k, _mean(expected))
    why = (
        f"It keeps the compact set, about k / mean(p) = {size:.0f} tuples: nothing expires, and no tuple below it can "
        "be in an answer again."
    )
    return Size(size if n is None else min(size, float(n)), (why,))


def _mean(expected: Mapping[str, float]) -> float:
    """The mean probability of tuples."""
    probability = expected.get("probability", 0.5)
    if probability > 1:
        raise QueryError(f"explain: probability={probability} is no probability. Give the mean, such as 0.5.")
    return probability


def synopsis_size(name: str, query: TopKUncertain, n: int | None, expected: Mapping[str, float]) -> Size:
    probability = _mean(expected)
    size = compact_set(query.k, probability)
    why = (
        f"An answer is read from a compact set of about {size:.0f} tuples: k / mean(p) and a little more "
        f"(mean(p) = {probability:g}; 1 / mean(p) times as many where objects are less sure).",
    )
    if n is None:
        return Size(None, why)
    each, besides, notes = 40 + 8, 0.0, tuple[str, ...]()
    if query.group is not None:
        each, besides = 56 + 8, 2.5 * ALTERNATIVE * n
        notes = ("Besides, each valid row that has a name is remembered: a name that would pass 1 is rejected.",)
    few = union(query.k, probability, n)
    if name == "BS":
        return Size(float(n), (*why, f"BS keeps the whole window: {n:,} tuples."), "exact", each, besides, notes)
    notes = ("In strictly falling order every tuple is needed, and the whole window is kept.", *notes)
    sets = f"{name} keeps the compact sets of all suffixes of the window"
    if name == "DOM":
        return Size(few, (*why, f"{sets}: about {few:.0f} tuples, each once."), "exact", each, besides, notes)
    more = few * size if name == "CSQ" else 3 * few
    return Size(more, (*why, f"{sets} as the paper does, tuples more than once: about {more:.0f}."), notes=notes)
