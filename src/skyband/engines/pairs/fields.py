"""Typed expressions that have a program (programs.py), and the rows of numbers that it reads of each object.

What a kernel cannot compute to the last bit (exp, ln, power and other functions of the C library) or cannot compare
(strings by their order) has none: NumPy evaluates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from skyband.query.expressions import Node
from skyband.query.expressions.kernels import ARITHMETIC, KNOWN, ORDERED, has_kernels


class Field(NamedTuple):
    """A row of the window's data: the numbers of a column (null: NaN), whether they are there, or codes (null: NaN)."""

    column: str
    kind: str  # "number", "there", "boolean", "string", or "typed": the column is an expression over a row


def can_run(tree: Node, kinds: Mapping[str, str]) -> bool:
    """Whether an expression over `a.` and `b.` has a program, given the kinds of the columns."""
    if tree.op in ("column", "literal"):
        return has_kernels(tree)
    if tree.op not in KNOWN or (tree.op in ORDERED and any(_is_string(arg, kinds) for arg in tree.args)):
        return False
    return all(can_run(arg, kinds) for arg in tree.args)


def _is_string(node: Node, kinds: Mapping[str, str]) -> bool:
    """Whether a part is, or may be, a string."""
    if node.op == "column":
        return kinds[str(node.value).partition(".")[2]] == "string"
    if node.op == "literal":
        return isinstance(node.value, str)
    return node.op in ("case", "case of", "coalesce") and any(_is_string(arg, kinds) for arg in node.args)


def fields_of(tree: Node, kinds: Mapping[str, str]) -> tuple[Field, ...]:
    """The rows of data that a program reads."""
    columns = dict.fromkeys(_columns(tree))
    found = [Field(column, kinds[column]) for column in columns]
    if not is_strict(tree):
        found += [Field(column, "there") for column in columns if kinds[column] == "number"]
    return tuple(found)


def _columns(node: Node) -> list[str]:
    if node.op == "column":
        return [str(node.value).partition(".")[2]]
    return [name for arg in node.args for name in _columns(arg)]


def is_strict(node: Node) -> bool:
    """Whether a null and a NaN make no difference: nothing but arithmetic."""
    if node.op == "column":
        return True
    if node.op == "literal":
        return isinstance(node.value, float)
    return node.op in ARITHMETIC and all(is_strict(arg) for arg in node.args)
