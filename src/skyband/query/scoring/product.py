"""Product: shifted columns, multiplied."""

from __future__ import annotations

import math
from functools import cached_property

from skyband.query.scoring.base import EVERYTHING, Box, Columns, Floats, Weighted
from skyband.query.scoring.forms import PRODUCT, TAME, KernelForm


class Product(Weighted):
    """The product of (w + x) (mouratidis2006, section 8).

    Parameters
    ----------
    weights : mapping of str to float
        The number w that is added to each column. Factors are multiplied in this order.

    Examples
    --------
    >>> import numpy as np
    >>> Product({"x": 0.5, "y": 2}).key({"x": np.array([1.0]), "y": np.array([3.0])}).tolist()
    [7.5]

    """

    word = "product"

    def key(self, columns: Columns) -> Floats:
        name, weight = self.terms[0]
        key = weight + columns[name]
        for name, weight in self.terms[1:]:
            key = key * (weight + columns[name])
        return key

    @cached_property
    def form(self) -> KernelForm:
        return KernelForm(PRODUCT, self.numbers, limit=TAME ** (1 / 2))  # six factors stay finite

    def bound(self, box: Box) -> tuple[float, float]:
        low = high = 1.0
        for name, weight in self.terms:
            corners = [one * (weight + end) for one in (low, high) for end in box.get(name, EVERYTHING)]
            if any(map(math.isnan, corners)):  # 0 · inf
                return EVERYTHING
            low, high = min(corners), max(corners)
        return low, high
