"""Arguments of aggregates: one number for each row, or the reason why the row is rejected.

Numbers are themselves, conditions 0 and 1. What is only compared with itself (count distinct) is 64 bits of any type.
Strings (first, last) are codes of words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.invariants import require
from skyband.errors import BatchError, StateError
from skyband.query.aggregates import Aggregate
from skyband.query.expressions import Expression, Operand, parse
from skyband.query.expressions.tree import kind_of
from skyband.query.kinds import TopKGroups
from skyband.tables.columns import name_bits
from skyband.tables.input import Batch
from skyband.tables.push import TOTAL
from skyband.tables.scores import Scored, reject_beyond

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
_KINDS = {"f": "number", "b": "boolean", "O": "string", "M": "time"}
_DTYPES = {"number": np.float64, "boolean": np.bool_, "string": object}
_ARROW = {"number": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}


def _has_kind(one: Aggregate) -> bool:
    """Whether its values may be conditions or strings."""
    return one.function in ("first", "last")


class Arguments:
    """The arguments of a query's aggregates, in their order."""

    def __init__(self, query: TopKGroups) -> None:
        self.aggregates = query.aggregates
        self.each = [one for one in query.aggregates if one.argument is not None]
        self.kinds: dict[str, str] = {}  # of the arguments of first and last, by text, once seen
        self.seen: dict[str, str] = {}  # the same with those of a batch that is not taken yet
        self.words: dict[str, int] = {}

    @property
    def none(self) -> tuple[Floats, ...]:
        """The values of no rows."""
        return tuple(np.empty(0) for _ in self.each)

    def read(self, batch: Batch, scored: Scored, query: TopKGroups) -> None:
        """Read the arguments of all rows, and reject rows that lack one."""
        kinds = self.seen = dict(self.kinds)
        for one in self.each:
            values, rejected = self._read(batch, one)
            for reason, rows in rejected.items():
                scored.reject(reason, rows)
            if _has_kind(one):
                text, kind = str(one.argument), _KINDS[values.values.dtype.kind]
                if kinds.setdefault(text, kind) != kind:
                    raise BatchError(f"{one}: {text} held {kinds[text]}s in earlier batches and holds {kind}s now.")
        if kinds != self.kinds:
            self._check(query, kinds)

    def reject_negative(self, batch: Batch, scored: Scored) -> None:
        """Reject rows with a negative argument."""
        for one in self.each:
            with np.errstate(invalid="ignore"):
                scored.reject(
                    f"{one.argument} is negative", np.asarray(self._read(batch, one)[0].values, np.float64) < 0
                )

    def _check(self, query: TopKGroups, kinds: dict[str, str]) -> None:
        """Evaluate expressions of no objects: a BatchError says where kinds do not fit."""
        columns = {
            f"#{i}": Operand(
                np.empty(0, _DTYPES[kinds.get(str(one.argument), "number") if _has_kind(one) else "number"]),
                whole=True if one.function.startswith("count") else None,
            )
            for i, one in enumerate(self.aggregates)
        }
        others = [query.condition] if query.condition is not None else []
        for one in [*query.expressions.keys, *others, *query.shown.values()]:
            if isinstance(one, Expression):
                one.evaluate(columns, 0)

    def shown_types(self, query: TopKGroups, *, seen: bool = False) -> dict[str, Any]:
        """The Arrow types of the columns of `select`; null: not known yet. seen: in a batch that is not taken yet."""
        kinds = self.seen if seen else self.kinds
        return {name: self.type_of(expression, kinds) for name, expression in query.shown.items()}

    def type_of(self, expression: Expression, of: dict[str, str]) -> Any:
        """The Arrow type of an expression, by the kinds of the arguments of first and last; null: not known yet."""
        kinds: dict[str, Any] = {}
        for i, one in enumerate(self.aggregates):
            kind = of.get(str(one.argument)) if _has_kind(one) else "number"
            if kind is not None:
                kinds[f"#{i}"] = kind
        kind = kind_of(expression.tree, kinds, lambda message: BatchError(message))
        return pa.null() if kind is None else _ARROW[kind]

    def _read(self, batch: Batch, one: Aggregate) -> tuple[Any, dict[str, Bools]]:
        """The values of an argument (Operand, or bits), and the rows that are rejected for it."""
        known = ("argument", one)
        if known not in batch.memo:
            scored = Scored(np.empty(batch.rows))
            lone = one.function == "count distinct" and parse(str(one.argument)).tree.op == "column"
            values = self._bits(batch, one, scored) if lone else self._evaluated(batch, one, scored)
            batch.memo[known] = values, scored.rejected
        found: tuple[Any, dict[str, Bools]] = batch.memo[known]
        return found

    def _evaluated(self, batch: Batch, one: Aggregate, scored: Scored) -> Operand:
        text = str(one.argument)
        expression = parse(text)
        operand = expression.evaluate({name: batch.operand(name) for name in expression.columns}, batch.rows)
        kind = _KINDS[operand.values.dtype.kind]
        if kind == "time" and one.function != "count distinct":
            raise BatchError(
                f"{one}: {text} holds times, and {one.function} takes none. Use cast({text} as double), its seconds."
            )
        if one.function in ("sum", "min", "max") and kind != "number":
            raise BatchError(
                f"{one}: {text} holds {kind}s, and {one.function} takes numbers. Use count(distinct {text})."
            )
        reject_beyond(scored, batch, expression.columns)
        bad = np.zeros(batch.rows, np.bool_) if operand.valid is None else ~operand.valid
        if operand.values.dtype == np.float64:
            values = operand.values
            finite = np.isfinite(values).all() if batch.rows else True
            if not finite:
                bad = bad | np.isnan(values)
                if one.function == "sum":
                    scored.reject(f"{text} is infinite", np.isinf(values) & ~bad)
        if bad.any():
            self._say_why(batch, expression.columns, text, bad, scored)
        return operand

    def _say_why(self, batch: Batch, columns: tuple[str, ...], text: str, bad: Bools, scored: Scored) -> None:
        for name in columns:
            operand = batch.operand(name)
            if operand.valid is not None:
                scored.reject(f"{name} is null", bad & ~operand.valid)
                bad = bad & operand.valid
            if operand.values.dtype == np.float64:
                broken = bad & np.isnan(operand.values)
                scored.reject(f"{name} is NaN", broken)
                bad = bad & ~broken
        scored.reject(f"{text} has no value", bad)

    def _bits(self, batch: Batch, one: Aggregate, scored: Scored) -> Floats:
        """A lone column of any type as 64 bits."""
        (name,) = parse(str(one.argument)).columns
        column = batch.array(name)
        if column.null_count:
            scored.reject(f"{name} is null", np.asarray(column.is_null(), np.bool_))
        if pa.types.is_floating(column.type):
            nan = np.isnan(batch.operand(name).values)
            if column.null_count:
                nan &= np.asarray(column.is_valid(), np.bool_)
            scored.reject(f"{name} is NaN", nan)
        return np.ascontiguousarray(name_bits(column)).view(np.float64)

    def of(self, at: int, values: tuple[Floats, ...]) -> Floats | None:
        """The values of one aggregate's argument, among those of all; None: it has none."""
        one = self.aggregates[at]
        return None if one.argument is None else values[self.each.index(one)]

    # --- inside the commit

    def values(self, batch: Batch) -> tuple[Floats, ...]:
        """The values of all rows as numbers; rejected rows have any."""
        return tuple(self._number(batch, one) for one in self.each)

    def totals(self, batch: Batch, values: tuple[Floats, ...]) -> tuple[Floats, ...]:
        """These values, but for the sums of rows that each row stands for."""
        return tuple(
            np.asarray(batch.array(f"{TOTAL}{at}")) if one.function == "sum" else column
            for at, (one, column) in enumerate(zip(self.each, values, strict=True))
        )

    def _number(self, batch: Batch, one: Aggregate) -> Floats:
        values, _ = self._read(batch, one)
        if not isinstance(values, Operand):
            return values  # type: ignore[no-any-return]
        if _has_kind(one):
            self.kinds[str(one.argument)] = _KINDS[values.values.dtype.kind]
        if values.values.dtype == object:
            return self._coded(values, hashed=one.function == "count distinct")
        if values.values.dtype.kind == "M":
            return values.values.astype(np.int64).view(np.float64)
        numbers: Floats = np.asarray(values.values, np.float64)
        return numbers + 0.0 if one.function == "count distinct" else numbers  # -0.0 is 0.0

    def _coded(self, values: Operand, *, hashed: bool) -> Floats:
        texts = np.where(True if values.valid is None else values.valid, values.values, "")
        if hashed:
            return name_bits(pa.array(texts, pa.string())).view(np.float64)
        return np.array([self.words.setdefault(text, len(self.words)) for text in texts], np.float64)

    def operand(self, one: Aggregate, values: Floats) -> Operand:
        """The values of an aggregate as an expression reads them."""
        kind = self.kinds.get(str(one.argument), "number") if _has_kind(one) else "number"
        if kind == "boolean":
            return Operand(values != 0)
        if kind == "string":
            texts = np.array([*self.words, ""], object)
            return Operand(texts[np.where(np.isnan(values), len(self.words), values).astype(np.int64)])
        return Operand(values, whole=True if one.function.startswith("count") else None)

    # --- snapshots

    def facts(self) -> dict[str, Any]:
        """What a snapshot keeps of them."""
        return {"kinds": self.kinds, "words": list(self.words)} if self.kinds else {}

    def restore(self, facts: dict[str, Any]) -> None:
        kinds, words = facts.get("kinds", {}), facts.get("words", [])
        fit = isinstance(kinds, dict) and set(kinds.values()) <= set(_KINDS.values())
        if not fit or not isinstance(words, list) or not all(map(_is_whole, words)):
            raise StateError("what is stored of a query's arguments does not fit together. Use an intact copy.")
        self.kinds, self.words = dict(kinds), {word: code for code, word in enumerate(words)}
        self.seen = self.kinds

    @property
    def known(self) -> bool:
        """Whether all arguments have kinds: a row has come."""
        return all(str(one.argument) in self.kinds for one in self.aggregates if _has_kind(one))

    def check(self) -> None:
        """Of rows that are there the kinds of their arguments are known."""
        require(self.known, "the arguments of rows have kinds")


def _is_whole(word: Any) -> bool:
    """Whether this is text without half characters (lone surrogates), which no column can hold."""
    return isinstance(word, str) and word.encode(errors="replace").decode() == word
