"""Forms: scorings that kernels compute and bound themselves, by code. The only place that names the codes.

Queries whose scorings have the same code over the same columns share one engine, whatever their numbers. A scoring
without a form is computed by NumPy, and engines keep its objects by score. A new code needs its arithmetic in
engines/topk/kernels: preferences.py (grids, sorted lists), and scores.py if BLOCK is to share it.
"""

from __future__ import annotations

from dataclasses import dataclass

LINEAR, EUCLIDEAN, MANHATTAN, CHEBYSHEV, PRODUCT, QUADRATIC = 0, 1, 2, 3, 4, 5
EXPRESSION = 9  # any typed expression over numbers: its scores come with objects (engines/topk/bounds.py bounds them)
COSINE, DOT, DISTANCE = 6, 7, 8  # of vectors in one column: engines/topk/similar.py
SHARED_BY_BLOCK = (LINEAR, EUCLIDEAN, MANHATTAN, CHEBYSHEV)  # the codes of engines/topk/kernels/scores.py
TAME = 1e100  # numbers up to here overflow in no scoring: a row has a score for all queries of a family or for none


@dataclass(frozen=True)
class KernelForm:
    """One scoring as kernels see it: `point` has one number per column, `weights` too, or none."""

    code: int
    point: tuple[float, ...]
    weights: tuple[float, ...] = ()
    limit: float = TAME  # columns and numbers up to here overflow nowhere

    @property
    def tame(self) -> bool:
        """Whether its own numbers are within the limit."""
        return max(map(abs, self.point + self.weights)) <= self.limit
