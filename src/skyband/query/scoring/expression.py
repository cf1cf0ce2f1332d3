"""A typed scoring: a column, or an expression in SQL; of pairs, over `a.` and `b.`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skyband.errors import BatchError
from skyband.query.expressions import Form, Operand, as_locals, as_sum, is_symmetric, member_columns, parse, recognise
from skyband.query.scoring.base import EVERYTHING, Box, Columns, Floats, PairForm, Rows, Scoring
from skyband.query.scoring.linear import Linear
from skyband.query.sql.text import expression


@dataclass(frozen=True, repr=False)
class Typed(Scoring):
    """Behind `by="delay"` and `by="0.7*x + 0.3*y"`. The text is parsed on use, and cached."""

    text: str
    word = "expression"
    scores_pairs = True

    @property
    def label(self) -> str:
        return self.text

    @property
    def columns(self) -> tuple[str, ...]:
        return parse(self.text).columns

    def key(self, columns: Columns) -> Floats:
        operands = {name: Operand(columns[name]) for name in self.columns}
        return self._numbers(operands, len(next(iter(columns.values()))))

    def keys(self, rows: Rows) -> Floats:
        if self.columns == (self.text,):
            rows.numbers(self.text)  # its error is about the column, not about an expression
        return self._numbers({name: rows.operand(name) for name in self.columns}, rows.rows)

    def _numbers(self, operands: dict[str, Operand], rows: int) -> Floats:
        result = parse(self.text).evaluate(operands, rows)
        if result.values.dtype != np.float64:
            raise BatchError(
                f"{self.text!r} is not a number for every row, so it cannot be a score. Score by a number."
            )
        return result.values if result.valid is None else np.where(result.valid, result.values, np.nan)

    @property
    def plain(self) -> Scoring:
        """A weighted sum typed as it is computed is Linear, to the last bit."""
        terms = as_sum(parse(self.text))
        return self if terms is None else Linear(dict(terms))

    @property
    def pair_columns(self) -> tuple[str, ...]:
        return member_columns(parse(self.text, members=("a", "b")))

    @property
    def symmetric(self) -> bool:
        return is_symmetric(parse(self.text, members=("a", "b")))

    @property
    def pair_form(self) -> PairForm | None:
        found = as_locals(parse(self.text, members=("a", "b")))
        return None if found is None else PairForm(*found)

    def bound(self, box: Box) -> tuple[float, float]:
        """From the corners of the box where each column has a direction: exp, ln and power up to their last bit.

        Engines that keep whole windows bound any expression, more closely (engines/topk/bounds.py).
        """
        form = recognise(parse(self.text))
        if form.kind == "opaque":
            return EVERYTHING
        ways = dict(form.directions)
        if not box or ways.keys() != {*self.columns}:
            return (0.0, math.inf) if form.kind == "distance" else EVERYTHING
        ends = {name: box.get(name, EVERYTHING)[:: ways[name]] for name in self.columns}
        low, high = self.key({name: np.array(pair) for name, pair in ends.items()}).tolist()
        return (-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)

    def recognised(self) -> tuple[str, str]:
        form = recognise(parse(self.text))
        return form.kind, f"in {self.text!r} {_sentence(form)}"

    def to_dict(self) -> str:
        return self.text

    def to_sql(self) -> str:
        return expression(self.text)

    def __repr__(self) -> str:
        return repr(self.text)


def _sentence(form: Form) -> str:
    match form.kind:
        case "column":
            return "skyband recognises a column"
        case "linear":
            weighed = " + ".join(f"{weight:g}·{name}" for name, weight in form.weights)
            constant = f" + {form.constant:g}" if form.constant else ""
            return f"skyband recognises a linear form, {weighed}{constant}"
        case "distance":
            centre = ", ".join(f"{name}={at:g}" for name, at in form.centre)
            return f"skyband recognises the {form.metric} distance to {centre}"
        case "monotone":
            words = {1: "rises", -1: "falls"}
            ways = ", ".join(f"{words[way]} with {name}" for name, way in form.directions)
            return f"skyband recognises a monotone form: it {ways}"
    return "skyband recognises no form; engines that keep whole windows bound it by intervals"
