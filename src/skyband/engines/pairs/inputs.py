"""Columns of rows as the engines of pairs read them: rows of numbers for kernels, arrays for NumPy and functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import Floats
from skyband.engines.pairs.fields import Field
from skyband.errors import BatchError
from skyband.query.expressions import Expression, Operand, parse
from skyband.tables.input import Batch

Columns = dict[str, NDArray[Any]]
VALID = "\0valid"  # beside the values of a column: which are not null
_KINDS = {"f": "number", "b": "boolean", "O": "string", "M": "time"}  # of operands, by NumPy's dtype.kind


def kinds_of(batch: Batch, columns: Iterable[str]) -> dict[str, str] | None:
    """The kinds of these columns; None: one of them has no type yet, or holds times, which kernels do not read."""
    kinds = {name: _KINDS[batch.operand(name).values.dtype.kind] for name in columns}
    unread = "time" in kinds.values() or any(pa.types.is_null(batch.array(name).type) for name in kinds)
    return None if unread else kinds


def check_kinds(batch: Batch, kinds: dict[str, str]) -> None:
    """Refuse columns whose kind has changed."""
    for name, kind in kinds.items():
        type_, found = batch.array(name).type, _KINDS[batch.operand(name).values.dtype.kind]
        if found != kind and not pa.types.is_null(type_):
            raise BatchError(f"column {name!r} holds {type_}, but it held {kind}s before. Push values of one kind.")


class Codes:
    """Numbers for strings, which are only compared with each other. A string that is gone loses its number."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}
        self.next = 0.0
        self.literals: set[str] = set()

    def literal(self, text: str) -> float:
        """The code of a string in an expression."""
        self.literals.add(text)
        return self._code(text)

    def _code(self, text: str) -> float:
        if text not in self.known:
            self.known[text], self.next = self.next, self.next + 1.0
        return self.known[text]

    def of(self, column: Any) -> Floats:
        """The codes of an Arrow column of strings; null is NaN."""
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        encoded = column.cast(pa.large_string()).dictionary_encode()
        codes = np.array([*map(self._code, encoded.dictionary.to_pylist()), np.nan])
        found: Floats = codes[np.asarray(encoded.indices.fill_null(-1))]
        return found

    def sweep(self, used: Floats) -> None:
        """Forget all strings but those with these codes."""
        codes = set(used.tolist())
        self.known = {text: code for text, code in self.known.items() if code in codes or text in self.literals}


def row_of(field: Field, batch: Batch, codes: Codes) -> Floats:
    """A row of the data of new objects."""
    if field.kind == "string":
        return codes.of(batch.array(field.column))
    if field.kind == "typed":
        expression = parse(field.column)
        operand = expression.evaluate({name: batch.operand(name) for name in expression.columns}, batch.rows)
    else:
        operand = batch.operand(field.column)
    if field.kind == "there":
        return np.ones(batch.rows) if operand.valid is None else operand.valid.astype(np.float64)
    values = np.asarray(operand.values, np.float64)
    return values if operand.valid is None else np.where(operand.valid, values, np.nan)


def operand_arrays(batch: Batch, names: Iterable[str], mark: str = "") -> Columns:
    """Columns as expressions read them: values, and which are not null."""
    arrays: Columns = {}
    for name in names:
        operand = batch.operand(name)
        arrays[mark + name] = operand.values
        arrays[f"{mark}{name}{VALID}"] = np.ones(batch.rows, np.bool_) if operand.valid is None else operand.valid
    return arrays


def evaluated(
    expression: Expression, like: Mapping[str, Operand], older: Columns, newer: Columns, mark: str = ""
) -> Operand:
    """The value of an expression over `a.` and `b.` for each pair; like: a column with what its values do not say."""
    operands, rows = {}, len(next(iter(older.values())))
    for name in expression.columns:
        member, _, column = name.partition(".")
        of = older if member == "a" else newer
        operands[name] = replace(like[column], values=of[mark + column], valid=of[f"{mark}{column}{VALID}"])
    return expression.evaluate(operands, rows)


def check_result(expression: Expression, batch: Batch, dtype: Any, wrong: str) -> None:
    """Refuse an expression that is of another type for these columns."""
    of_pairs = bool(expression.members)
    names = {name: name.partition(".")[2] if of_pairs else name for name in expression.columns}
    given = {name: batch.operand(column) for name, column in names.items()}
    none = {name: replace(one, values=one.values[:0], valid=None) for name, one in given.items()}
    if expression.evaluate(none, 0).values.dtype != dtype:
        raise BatchError(wrong)
