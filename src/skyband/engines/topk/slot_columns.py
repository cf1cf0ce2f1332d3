"""Standing queries as rows of columns: what an engine of slots is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skyband.engines.contract import Floats, Ints

TOGETHER = 4096  # slots of a chunk: their state fits in a cache, and one that grows is copied in no time
BANDS = 256  # of points near each other


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
        if isinstance(rows, slice) and rows == slice(None):
            return self
        return SlotColumns(*(_rows_of(getattr(self, name), rows) for name in self.__dataclass_fields__))


def _rows_of(values: Any, rows: Any) -> Any:
    """These rows; `take` is many times as fast for rows of several numbers, and copies arrays without strides."""
    by_place = isinstance(rows, np.ndarray) and rows.dtype != np.bool_
    return values.take(rows, axis=0) if by_place and values.ndim > 1 else values[rows]


def class_of(lengths: Ints) -> Ints:
    """The class of windows of these lengths: those of one class differ by less than four times."""
    return np.floor(np.log2(np.maximum(lengths, 1).astype(np.float64)) / 2).astype(np.int64)


def by_class(lengths: Ints) -> list[tuple[int, Any]]:
    """The classes of windows, and where each is."""
    if len(lengths) and lengths.min() == lengths.max():
        return [(int(class_of(lengths[:1])[0]), slice(None))]
    classes = class_of(lengths)
    return [(number, np.flatnonzero(classes == number)) for number in np.unique(classes).tolist()]


def by_place(points: Floats) -> Ints | None:
    """An order in which many slots with points near each other come together, O(1) each; None: any will do."""
    if len(points) <= TOGETHER or points.shape[1] < 2:
        return None
    strips = min(BANDS, max(1, round((len(points) / TOGETHER) ** 0.5)))
    cell = _parts(points[:, 0], strips) * BANDS + _parts(points[:, 1], BANDS)
    return np.argsort(cell.astype(np.uint16), kind="stable")  # 16 bits are sorted by their digits


def _parts(values: Floats, parts: int) -> Ints:
    """For each value in which of so many parts it lies, which have about as many values each."""
    sample = np.sort(values[:: max(1, len(values) // (32 * parts))])
    return np.searchsorted(sample[np.arange(1, parts) * len(sample) // parts], values, "right")


def stretch_of(places: Ints) -> Any:
    """Places as a slice where they rise by one: what is copied as a whole takes a fraction of the time."""
    size = len(places)
    if size and places[-1] - places[0] == size - 1 and (places[1:] - places[:-1] == 1).all():
        return slice(int(places[0]), int(places[0]) + size)
    return places
