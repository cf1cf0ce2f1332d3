"""Decay: a row counts 2^(-age / half-life) times, so a score is one number that fades as a whole.

Contributions are kept as of the beginning of time: m * 2^e, where whole half-lives since then are in the exponent, an
integer. So nothing overflows, nothing is renormalised, and the order of objects does not change while nothing arrives.
Sums are compensated: their error is that of a few roundings, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Floats, Ints
from skyband.engines.groups.measures import Measures, Scores
from skyband.engines.groups.order import Order
from skyband.query.expressions import Operand

_OFFSET = 2.0**52  # exponents with it are above 0: there are fewer half-lives since the beginning of time


@dataclass(frozen=True)
class Fading:
    """The fading of scores by a half-life in units of time."""

    half_life: float

    def split(self, times: NDArray[Any]) -> tuple[Ints, Floats]:
        """Times as whole half-lives since the beginning of time, and the rest as a part of one."""
        if float(self.half_life).is_integer() and self.half_life < 2**62:
            whole, rest = np.divmod(times, np.int64(self.half_life))
            return whole, rest / self.half_life
        lives = times.astype(np.longdouble) / np.longdouble(self.half_life)
        floor = np.floor(lives)
        return floor.astype(np.int64), (lives - floor).astype(np.float64)

    def contributions(self, terms: Sequence[tuple[float, Floats | None]], times: Ints) -> tuple[Floats, Floats]:
        """What rows bring, as m * 2^e: the sum of factors times arguments (None: 1), as of the beginning of time."""
        parts = []
        for factor, values in terms:
            mantissa, exponent = np.frexp(np.ones(len(times)) if values is None else values)
            parts.append((mantissa * factor, exponent.astype(np.int64)))
        top = np.max([exponent for _, exponent in parts], axis=0)
        total = np.zeros(len(times))
        for mantissa, exponent in parts:
            total += np.ldexp(mantissa, np.maximum(exponent - top, -2000).astype(np.int32))
        whole, rest = self.split(times)
        total, more = np.frexp(total * np.exp2(rest))
        return total, (top + whole + more).astype(np.float64)

    def scores(self, mantissas: Floats, exponents: Floats, clocks: Ints) -> Floats:
        """Scores at these instants."""
        whole, rest = self.split(clocks)
        shift = np.clip(exponents - whole, -5000, 5000).astype(np.int32)
        with np.errstate(over="ignore", under="ignore"):
            faded: Floats = np.ldexp(mantissas * np.exp2(-rest), shift)
        return faded


def fading_measures(descending: bool, order: Order | None) -> Measures:
    """One number per object; it is ranked by sign, exponent and mantissa."""
    sign = 1.0 if descending else -1.0

    def scores(values: Sequence[Floats], slots: Ints) -> Scores:
        mantissa, exponent = values[0].copy(), values[1].copy()
        keys = np.where(mantissa == 0, 0.0, np.sign(mantissa) * (exponent + _OFFSET)) * sign
        ties = (mantissa * sign * 2.0**53).astype(np.int64)
        parts = (Operand(mantissa), Operand(exponent))
        if order is not None:
            return Scores(keys + 0.0, parts, columns=(Operand(keys + 0.0), Operand(ties)))
        return Scores(keys + 0.0, parts, ties)

    return Measures(("faded", "level"), None, scores, order=order)
