"""Operations that kernels compute to the last bit, as NumPy does.

The functions of the C library (exp, ln, power) are not among them, nor what their results depend on.
"""

from __future__ import annotations

from datetime import date

from skyband.query.expressions.tree import Node

ARITHMETIC = frozenset({"+", "-", "*", "/", "negative", "abs", "sqrt"})  # of null and of NaN: no number, all the same
ORDERED = frozenset({"<", "<=", ">", ">=", "between", "least", "greatest"})
_OTHERS = frozenset({"=", "<>", "and", "or", "not", "is null", "coalesce", "in", "case", "case of"})
_LEAVES = frozenset({"column", "literal", "each"})
KNOWN = ARITHMETIC | ORDERED | _OTHERS | _LEAVES


def has_kernels(tree: Node) -> bool:
    """Whether kernels have every operation of an expression, as far as that does not depend on its columns."""
    return tree.op in KNOWN and not isinstance(tree.value, date) and all(map(has_kernels, tree.args))
