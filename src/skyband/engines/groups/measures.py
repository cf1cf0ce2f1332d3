"""Measures: the aggregates of a query as the engine sees them, and scores from their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skyband.engines.contract import Bools, Floats, Ints
from skyband.engines.groups.kernels.state import COUNT, DISTINCT, FADED, FIRST, LAST, LEVEL, MEASURE, MOST, SUM
from skyband.engines.groups.order import Order
from skyband.query.expressions import Operand

FUNCTIONS = {
    "count": COUNT,
    "count distinct": DISTINCT,
    "sum": SUM,
    "min": MOST,
    "max": MOST,
    "first": FIRST,
    "last": LAST,
    "faded": FADED,  # with decay: the mantissa of an object's number, and its exponent
    "level": LEVEL,
}


@dataclass(frozen=True)
class Scores:
    """Objects as `by`, `having` and `select` see them."""

    keys: Floats  # larger is better; NaN: no answer
    shown: tuple[Operand, ...]  # the values of `select`; with decay: the parts of the score
    ties: Ints | None = None  # what ranks equal keys before the tie rule does
    columns: tuple[Operand, ...] = ()  # of an order: its keys


@dataclass(frozen=True)
class Measures:
    """The aggregates of a query; those with an argument have a column of it, in their order."""

    names: tuple[str, ...]  # of functions
    decides: int | None  # the aggregate whose row decides kept columns; None: the newest row does
    scores: Callable[[Sequence[Floats], Ints], Scores]  # from the values of each aggregate, of these objects
    plain: tuple[int, float] | None = None  # the aggregate that is the score, where one is, and the sign of its key
    keeps_all: bool = False  # whether the columns of all valid rows are kept
    order: Order | None = None  # what ranks objects besides one number

    @property
    def columns(self) -> int:
        """How many arguments there are."""
        return sum(name != "count" for name in self.names)

    @property
    def turned(self) -> tuple[int, ...]:
        """The aggregates whose argument is negated: the smallest is the largest of these."""
        return tuple(i for i, name in enumerate(self.names) if name == "min")

    def table(self, keyed: bool) -> Any:
        """The aggregates as kernels read them; sums have no words yet."""
        table = np.zeros(len(self.names), MEASURE)
        picks = distinct = column = 0
        chain = int(keyed or "first" in self.names)  # the first chain goes by age
        for one, name in zip(table, self.names, strict=True):
            function = one["function"] = FUNCTIONS[name]
            one["column"] = -1 if name == "count" else column
            column += name != "count"
            if function in (MOST, FIRST, LAST):
                one["first"] = picks
                picks += 1
            if function == FADED:
                one["first"] = picks  # and the error of its roundings in the next
                picks += 2
            if function == MOST:
                one["chain"] = chain
                chain += 1
            if function == DISTINCT:
                one["first"] = distinct
                distinct += 1
        return table

    def arguments(self, attributes: Sequence[Floats], rows: int) -> Floats:
        """Arguments by row and column."""
        values = np.empty((rows, self.columns))
        column = 0
        for i, name in enumerate(self.names):
            if name != "count":
                values[:, column] = -attributes[column] if i in self.turned else attributes[column]
                column += 1
        return values

    def evaluated(self, values: Floats, slots: Ints) -> Scores:
        """Scores from what kernels wrote of these objects: one row of values for each aggregate."""
        for i in self.turned:
            np.negative(values[i], out=values[i])
        return self.scores(list(values), slots)


def best(groups: Ints, keys: Floats, stamps: Ints, serials: Ints, k: int) -> tuple[Ints, Ints]:
    """The k best objects of each group, best first, and their ranks; NaN is no key."""
    order = np.lexsort((-serials, -stamps, -keys, groups))
    valid: Bools = ~np.isnan(keys[order])
    order = order[valid]
    rank = np.arange(1, len(order) + 1) - np.searchsorted(groups[order], groups[order])
    return order[rank <= k], rank[rank <= k]
