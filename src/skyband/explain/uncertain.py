"""What `explain` says about uncertain objects: the compact set that answers are read from, and what is kept."""

from __future__ import annotations

from skyband.engines.uncertain.size_model import compact_set, union
from skyband.errors import QueryError
from skyband.query.kinds import TopKUncertain

AUTO = {
    "DOM": "what auto takes: it forgets tuples that newer, better ones make superfluous, and is exact on any stream",
    "BS": "what auto takes for small windows, where forgetting would save little",
    "alternatives": "what auto takes for alternatives: nobody may be forgotten where tuples exclude each other",
}


def synopsis(
    query: TopKUncertain, algorithm: str, n: int | None, probability: float
) -> tuple[float | None, tuple[str, ...], str, float, tuple[str, ...]]:
    """Tuples of a group, why, the error, bytes besides, and what else should be said."""
    if probability > 1:
        raise QueryError(f"explain: probability={probability} is no probability. Give the mean, such as 0.5.")
    size = compact_set(query.k, probability)
    why = (
        f"An answer is read from a compact set of about {size:.0f} tuples: k / mean(p) and a little more "
        f"(mean(p) = {probability:g}; 1 / mean(p) times as many where objects are less sure).",
    )
    if n is None:
        return None, why, "exact", 0, ()
    few = union(query.k, probability, n)
    if algorithm == "BS":
        return float(n), (*why, f"BS keeps the whole window: {n:,} tuples."), "exact", 0, ()
    notes = ("In strictly falling order every tuple is needed, and the whole window is kept.",)
    told = f"{algorithm} keeps the compact sets of all suffixes of the window"
    if algorithm == "DOM":
        return few, (*why, f"{told}: about {few:.0f} tuples, each once."), "exact", 0, notes
    more = few * size if algorithm == "CSQ" else 3 * few
    return more, (*why, f"{told} as the paper does, tuples more than once: about {more:.0f}."), "exact", 0, notes
