"""Standing queries as rows of columns: what an engine of slots is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skyband.engines.contract import Floats, Ints


@dataclass(frozen=True)
class Shape:
    """What all slots of an engine have in common."""

    form: int  # query/scoring/forms.py
    turned: bool  # the smallest score is best
    d: int  # attributes that the form reads
    attributes: int  # and those that boxes may read besides, d of them included
    weighted: bool = False  # slots have weights besides their points
    boxed: bool = False  # slots may have boxes


@dataclass(frozen=True)
class SlotColumns:
    """Queries as columns, one row each."""

    points: Floats  # d numbers each: the weights of a linear form, or the point of a distance
    weights: Floats  # of a distance: d numbers each, or no columns
    k: Ints
    length: Ints  # of the window: arrivals, or units of time
    lows: Floats  # one number for each attribute; no columns: no slot has a box
    highs: Floats

    def __len__(self) -> int:
        return len(self.k)

    def take(self, rows: Any) -> SlotColumns:
        """Some of the rows."""
        return SlotColumns(*(_rows_of(getattr(self, name), rows) for name in self.__dataclass_fields__))


def _rows_of(values: Any, rows: Any) -> Any:
    """These rows; `take` is many times as fast for rows of several numbers, and copies arrays without strides."""
    by_place = isinstance(rows, np.ndarray) and rows.dtype != np.bool_
    return values.take(rows, axis=0) if by_place and values.ndim > 1 else values[rows]
