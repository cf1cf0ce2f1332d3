"""Parts of adapters of slots: arrivals in pieces, their changes together, columns of boxes, and stored facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Arrivals, Changes
from skyband.tables.input import Batch

Floats = NDArray[np.float64]


def part_of(arrivals: Arrivals, low: int, high: int | None, *, more: bool) -> Arrivals:
    """Some of the arrivals, in order."""
    assert arrivals.attributes is not None
    here = slice(low, high)
    attributes = tuple(column[here] for column in arrivals.attributes)
    vectors = None if arrivals.vectors is None else arrivals.vectors.only(here)
    return replace(arrivals.only(here), attributes=attributes, vectors=vectors, more=more)


def joined(pieces: list[Changes]) -> Changes:
    """The changes of several parts of a batch, by query."""
    names = ("query", "group", "row", "instant", "stamp", "serial", "key", "diff", "first")
    columns: dict[str, Any] = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in names}
    order = np.argsort(columns["query"], kind="stable")
    alive = np.logical_or.reduce([piece.alive for piece in pieces])
    return Changes(**{name: column[order] for name, column in columns.items()}, alive=alive)


def box_values(batch: Batch, name: str) -> Floats:
    """A column as boxes see it: NaN for null, which lies in no range; NaN is larger than any number, as in Spark."""
    operand = batch.numbers(name)
    values = operand.values
    bad = np.isnan(values)
    if bad.any():
        known = bad if operand.valid is None else bad & operand.valid
        values = np.where(known, np.inf, values)
    return values


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
