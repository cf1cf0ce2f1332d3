"""Adapter of TopKPairs: one engine for all queries that share a scoring of two objects.

Three ways to score: kernels compute `Global` and what has a program (programs.py); NumPy evaluates other expressions
over a. and b. for blocks of new pairs; functions get two batches with a row for each pair. The condition on a pair is a
program too, or NumPy's, and then NumPy or a function scores. What NumPy and functions read, and strings, are in the
kept columns of each object, and so in snapshots whatever their type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import Arrivals, Changes
from skyband.engines.numbering import Numbered
from skyband.engines.pairs.fields import Field, can_run, fields_of
from skyband.engines.pairs.inputs import (
    VALID,
    Codes,
    check_kinds,
    check_result,
    evaluated,
    kinds_of,
    operand_arrays,
    row_of,
)
from skyband.engines.pairs.sharing_adapter import SharingAdapter
from skyband.engines.specs import shared_key
from skyband.errors import BatchError, StateError
from skyband.query.expressions import Expression, Node, Operand, member_columns, parse
from skyband.query.kinds import Query, TopKPairs
from skyband.query.scoring import scoring_of
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated, reject_beyond

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs
    from skyband.engines.pairs.given_scores import Given

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]
SCORELESS = "pair without a score"
ON = "\0on "  # before columns that the condition on a pair reads, where a function scores
SAMPLE = 32  # pairs of each push that a symmetric function must score the same both ways round


class PairsAdapter(SharingAdapter):
    """One engine for queries with one scoring of pairs."""

    most = 1 << 30
    scored = False  # pairs are, not rows
    reads_change = True  # pending pairs are sorted in

    def __init__(self, query: TopKPairs, *args: Any, **more: Any) -> None:
        super().__init__(query, *args, **more)
        self.expression: Expression | None = None
        scoring = scoring_of(query.by)
        self.form = scoring.pair_form
        if isinstance(query.by, str):
            self.expression = parse(query.by, members=("a", "b"))
        self.on = None if query.on is None else parse(query.on, members=("a", "b"))
        self.function: Callable[..., Any] | None = None if self.expression else scoring.function or scoring.pair_key
        self.own = scoring.columns if self.form and not self.expression else None  # that the function reads
        self.kinds: dict[str, str] | None = None  # of the columns that kernels read; None: no kernel scores
        self.codes = Codes()
        self.like: dict[str, Operand] = {}  # what NumPy reads, by column, as it was seen last
        self.known: tuple[str, ...] = ()  # what a function may read: the columns of the first batch
        self.scoreless: dict[str, int] = {}  # by query
        self.fresh_scoreless = 0
        self.unsampled = True
        self.rehearsed: tuple[Batch, Any, Changes] | None = None
        self.ids = self._no_ids() if self.deletable else None

    @staticmethod
    def key(query: Query) -> tuple[Any, ...]:
        assert isinstance(query, TopKPairs)
        any_way = replace(query, symmetric=False)  # a promise: it changes no score
        return (*shared_key(any_way), query.window.sort, query.algorithm)

    @property
    def window_key(self) -> Any:
        """What scorings of the same objects have in common; None: its objects are only its own."""
        own = self.deletable or self.kinds is None
        return None if own else (id(self.groups), self.where, self.timed, self.block)

    @property
    def revalidates(self) -> bool:
        """True where a function scores: it may fail, so it runs before anything changes."""
        return self.function is not None and self.own is None

    @property
    def machine(self) -> Pairs:
        return cast("Pairs", self.engine)

    def rename(self, names: Mapping[str, str]) -> None:
        super().rename(names)
        self.scoreless = {names.get(name, name): count for name, count in self.scoreless.items()}

    # --- rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the scoring is known to read."""
        scored = self.own or (() if self.expression is None else member_columns(self.expression))
        return tuple(dict.fromkeys((*scored, *(() if self.on is None else member_columns(self.on)))))

    def reads(self, batch: Batch | None) -> tuple[str, ...]:
        if self.kinds is not None:
            return tuple(name for name in self.columns if self.kinds[name] == "string")
        if self.function is None or self.own is not None:
            return self.columns
        if batch is not None and self.engine is None:
            self.known = tuple(batch.table.column_names)
        return self.known

    def score(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        """Check the columns that the scoring reads; a row has no score of its own."""
        scored = Scored(np.zeros(batch.rows))
        for name in self.columns:
            if name in self._local:
                batch.numbers(name)
            else:
                batch.operand(name)
        if self.expression is not None:
            wrong = f"{self.by!r} is not a number for every pair, so it cannot be a score. Score pairs by a number."
            check_result(self.expression, batch, np.float64, wrong)
        for field in self._local_fields:
            if field.kind == "typed":
                wrong = f"transform {field.column!r} gives no number, so it cannot be a part of a score. Use a number."
                check_result(parse(field.column), batch, np.float64, wrong)
        if self.on is not None:
            wrong = f"on={self.on.text!r} is not a condition: it is neither true nor false. Compare something."
            check_result(self.on, batch, np.bool_, wrong)
        if self.engine is None:
            self.kinds = self._kernel_kinds(batch)
        elif self.kinds is not None:
            check_kinds(batch, self.kinds)
        reject_beyond(scored, batch, self.columns)
        return scored

    def _kernel_kinds(self, batch: Batch) -> dict[str, str] | None:
        """The kinds of the columns, if kernels can score such pairs."""
        if self.form is None and self.expression is None:
            return None
        kinds = kinds_of(batch, self.columns)
        if kinds is None and self.form is not None and self.on is None:
            return dict.fromkeys(self.columns, "number")
        if kinds is not None and all(can_run(tree, kinds) for tree in self._trees):
            return kinds
        if self.algorithm == "TA":
            raise BatchError(
                f"TA tests single pairs in its kernels, which cannot compare strings by their order, as on="
                f"{self.example.on!r} does, nor columns of nulls alone. Use another algorithm, such as SCASE."
            )
        return None

    @property
    def _local(self) -> tuple[str, ...]:
        """The columns that have a local function themselves, which are numbers."""
        return tuple(field.column for field in self._local_fields if field.kind == "number")

    @property
    def _local_fields(self) -> tuple[Field, ...]:
        if self.form is None:
            return ()
        texts = self.form.transforms or (None,) * len(self.form.terms)
        pairs = zip(self.form.terms, texts, strict=True)
        return tuple(Field(text, "typed") if text else Field(name, "number") for (name, _), text in pairs)

    @property
    def _trees(self) -> list[Node]:
        """What programs are for: the score, unless it has a form of its own, and the condition on a pair."""
        typed = [] if self.form is not None or self.expression is None else [self.expression.tree]
        return typed + ([] if self.on is None else [self.on.tree])

    @property
    def fields(self) -> tuple[Field, ...]:
        """The rows of the engine's data: attributes with a local function, then what programs read."""
        assert self.kinds is not None
        local = self._local_fields
        more = [field for tree in self._trees for field in fields_of(tree, self.kinds)]
        return (*local, *(field for field in dict.fromkeys(more) if field not in local))

    def revalidate(self, push: Push, validated: Validated, codes: Ints, unit: int | None) -> Validated:
        """Let a copy of the engine take the batch: if the function fails, nothing has changed."""
        if not validated.accepted.any():
            return validated
        twin = copy(self)
        twin.numbering = self.numbering.copy()
        if twin.engine is None:
            twin.start(unit)
        arrivals = twin.arrivals(push, validated, twin.number(push, validated, codes))
        engine = twin.machine.copy()
        engine.given = self._given()
        self.unsampled = True
        self.rehearsed = (push.batch, engine, engine.take(arrivals))
        return validated

    def arrivals(self, push: Push, validated: Validated, numbered: Numbered) -> Arrivals:
        arrivals = super().arrivals(push, validated, numbered)
        if self.ids is None:
            return arrivals
        names = self.names_of(arrivals.rows, arrivals.groups, push)
        return replace(arrivals, names=names, deletes=None if push.deletes is None else push.deletes[arrivals.rows])

    def run(self, arrivals: Arrivals, push: Push) -> Changes:
        if self.rehearsed is not None and self.rehearsed[0] is push.batch:
            _, self.engine, changes = self.rehearsed
        else:
            changes = self.machine.take(arrivals)
        self.rehearsed = None
        if self.ids is not None:
            self.count_unknown()
        if len(self.codes.known) > 1024 + 4 * self.machine.buffer:
            self.codes.sweep(self.machine.values_in([i for i, one in enumerate(self.fields) if one.kind == "string"]))
        for name, count in zip(self.queries, self.machine.scoreless.tolist(), strict=True):
            self.scoreless[name] = self.scoreless.get(name, 0) + count
            self.fresh_scoreless += count
        return changes

    def new_rejections(self) -> dict[str, int]:
        count, self.fresh_scoreless = self.fresh_scoreless, 0
        return {SCORELESS: count} if count else {}

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if self.block is not None:
            mine, shares = self.block
            more["scored"] = (push.serial + rows) % shares == mine
        if self.kinds is not None:
            some = push.batch.rows > 0
            values = [row_of(field, push.batch, self.codes)[rows] if some else np.empty(0) for field in self.fields]
            return {**more, "attributes": tuple(values)}
        if not len(rows):
            return {**more, "columns": {}}
        read = {name: push.inputs[name] for name in self.reads(None)}
        return {**more, "columns": {name: values[rows] for name, values in self._arrays(read).items()}}

    def _arrays(self, columns: dict[str, Any]) -> Columns:
        """Arrays of Arrow columns, as the scoring reads them."""
        batch = Batch(pa.table(columns))
        if self.function is None:
            return self._operands(batch, columns)
        if self.own is not None and self.form is not None:
            local = zip(self.form.terms, self._local_fields, strict=True)
            return {name: row_of(field, batch, self.codes) for (name, _), field in local} | self._on_arrays(batch)
        arrays = {name: column.to_numpy(zero_copy_only=False) for name, column in columns.items()}
        return arrays | self._on_arrays(batch)

    def _on_arrays(self, batch: Batch) -> Columns:
        return {} if self.on is None else self._operands(batch, member_columns(self.on), ON)

    def _operands(self, batch: Batch, names: Iterable[str], mark: str = "") -> Columns:
        self.like |= {name: batch.operand(name) for name in names}
        return operand_arrays(batch, names, mark)

    # --- the engine

    def engine_options(self) -> dict[str, Any]:
        from skyband.engines.pairs.kernels.records import (
            ABSDIFF,
            GIVEN,
            LARGEST,
            PLUS,
            PRODUCT,
            SQUARES,
            SUM,
            TYPED,
            Scoring,
        )
        from skyband.engines.pairs.programs import no_program, program_of

        sign, none, no_local = 1.0 if self.descending else -1.0, no_program(), np.empty(0, np.int8)
        if self.kinds is None:
            scoring = Scoring(GIVEN, no_local, sign, np.inf, none, np.empty(0))
            return {"scoring": scoring, "on": none, "width": 0, "given": self._given()}
        rows, kinds = {field: row for row, field in enumerate(self.fields)}, self.kinds
        programs = [program_of(tree, rows, kinds, self.codes.literal) for tree in self._trees]
        more = {"on": none if self.on is None else programs.pop(), "width": len(self.fields)}
        if self.form is None:
            return {"scoring": Scoring(TYPED, no_local, sign, np.inf, programs.pop(), np.empty(0)), **more}
        local = np.array([ABSDIFF if way == "absdiff" else PLUS for _, way in self.form.terms], np.int8)
        form = {"sum": SUM, "product": PRODUCT, "max": LARGEST, "euclidean": SQUARES}[self.form.combine]
        weights = np.array(self.form.weights)
        scale = float(np.maximum(np.abs(weights), 1.0).prod())  # within the limit nothing overflows
        limit = (1e300 / min(scale, 1e290)) ** (1 / max(len(local), 2 if form == SQUARES else 1)) / 4
        return {"scoring": Scoring(form, local, sign, limit if scale < 1e290 else 0.0, none, weights), **more}

    def _given(self) -> Given:
        from skyband.engines.pairs.given_scores import Given

        return Given(
            self._evaluated if self.function is None else self._called, None if self.on is None else self._joins
        )

    def _joins(self, older: Columns, newer: Columns) -> Bools:
        assert self.on is not None
        result = evaluated(self.on, self.like, older, newer, "" if self.function is None else ON)
        joined: Bools = result.values if result.valid is None else result.values & result.valid
        return joined

    def _evaluated(self, older: Columns, newer: Columns) -> Floats:
        assert self.expression is not None
        result = evaluated(self.expression, self.like, older, newer)
        return result.values if result.valid is None else np.where(result.valid, result.values, np.nan)

    def _called(self, older: Columns, newer: Columns) -> Floats:
        assert self.function is not None
        rows = len(next(iter(older.values())))
        older, newer = (
            {name: column for name, column in batch.items() if not name.startswith(ON) and not name.endswith(VALID)}
            for batch in (older, newer)
        )
        scores = self._call(older, newer, rows)
        if self.unsampled and any(query.symmetric for query in self.queries.values()):
            self.unsampled, some = False, slice(0, SAMPLE)
            one, other = ({name: column[some] for name, column in batch.items()} for batch in (older, newer))
            turned = self._call(other, one, min(rows, SAMPLE))
            if not np.array_equal(scores[some], turned, equal_nan=True):
                raise BatchError(
                    f"the scoring function {self._name} gives another score when the two objects are exchanged, but a "
                    "pair has no order. Nothing was pushed; make it symmetric, or use symmetric=False: the first batch "
                    "then holds the older objects."
                )
        return scores

    def _call(self, one: Columns, other: Columns, rows: int) -> Floats:
        try:
            scores = np.array(self.function(dict(one), dict(other)), dtype=np.float64)  # type: ignore[misc]
        except Exception as error:
            raise BatchError(
                f"the scoring function {self._name} failed: {type(error).__name__}: {error}. Nothing was pushed."
            ) from error
        if scores.shape != (rows,):
            raise BatchError(
                f"the scoring function {self._name} returned shape {scores.shape} for {rows} pairs. "
                "Return one float per row of the two batches."
            )
        return scores

    @property
    def _name(self) -> str:
        return str(getattr(self.function, "__qualname__", repr(self.function)))

    # --- snapshots

    def extra_facts(self) -> dict[str, Any]:
        known = [] if self.engine is None else list(self.known)
        kinds = None if self.engine is None else self.kinds
        return {"known": known, "scoreless": dict(self.scoreless), "kinds": kinds}

    def restore_facts(self, facts: dict[str, Any]) -> None:
        self.known, self.scoreless = tuple(facts["known"]), dict(facts["scoreless"])
        earlier = None if self.form is None else dict.fromkeys(self.columns, "number")  # of snapshots of version 0.1
        self.kinds = facts.get("kinds", earlier)
        if self.kinds is not None and not self._are_kinds(self.kinds):
            raise StateError("the stored kinds of columns do not fit the query. Use an intact copy.")

    def _are_kinds(self, kinds: Any) -> bool:
        right = isinstance(kinds, dict) and kinds.keys() == {*self.columns}
        right = right and {*kinds.values()} <= {"number", "boolean", "string"}
        return (
            right
            and all(kinds[name] == "number" for name in self._local)
            and all(can_run(tree, kinds) for tree in self._trees)
        )

    def after_restore(self) -> None:
        super().after_restore()
        if self.engine is None or not self.reads(None) or not self.kept_columns.columns:
            return
        serials = np.sort(self.machine.serials()[0])
        columns = {name: self.kept_columns.read(f"={name}", serials) for name in self.reads(None)}
        if self.kinds is None:
            self.machine.set_columns(serials, self._arrays(columns))
        else:
            rows = {field.column: row for row, field in enumerate(self.fields) if field.kind == "string"}
            self.machine.set_rows(serials, {row: self.codes.of(columns[name]) for name, row in rows.items()})

    def stats(self, name: str) -> dict[str, Any]:
        stats = super().stats(name)
        stats["pairs"] = 0 if self.engine is None else self.machine.pairs
        if self.scoreless.get(name):
            stats["rejected"] = stats["rejected"] | {SCORELESS: self.scoreless[name]}
        return stats
