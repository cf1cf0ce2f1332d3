"""Quadratic: a weighted sum of squares."""

from __future__ import annotations

from functools import cached_property

from skyband.query.scoring.base import EVERYTHING, Box, Columns, Floats, Weighted, interval, scaled, squared, total
from skyband.query.scoring.forms import QUADRATIC, KernelForm


class Quadratic(Weighted):
    """The sum of w·x² (mouratidis2006, section 8).

    Parameters
    ----------
    weights : mapping of str to float
        The weight w of each squared column, any finite number. Terms are summed in this order.

    Examples
    --------
    >>> import numpy as np
    >>> Quadratic({"x": 0.5, "y": 2}).key({"x": np.array([1.0]), "y": np.array([3.0])}).tolist()
    [18.5]

    """

    word = "quadratic"

    def key(self, columns: Columns) -> Floats:
        return total([weight * (columns[name] * columns[name]) for name, weight in self.terms])

    @cached_property
    def form(self) -> KernelForm:
        return KernelForm(QUADRATIC, self.numbers)

    def bound(self, box: Box) -> tuple[float, float]:
        return interval([scaled(w, *squared(*box.get(name, EVERYTHING))) for name, w in self.terms], total)
