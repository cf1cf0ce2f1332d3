"""The adapter of TopKIncomplete: the parts of an object arrive in separate rows.

The id is the object's key, and a row brings one part of it. Without `repeat` a second row of a part, while one is
valid, is rejected.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.contract import Engine
from skyband.engines.registry import row_of
from skyband.engines.specs import shared_key, spec_of
from skyband.errors import BatchError
from skyband.query.kinds import Query, TopKIncomplete
from skyband.tables.columns import name_bits
from skyband.tables.input import Batch, is_string
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated, matches

if TYPE_CHECKING:
    from skyband.engines.incomplete.any_parts import AnyParts, PartCodes
    from skyband.engines.incomplete.base import IncompleteEngine
    from skyband.engines.incomplete.register import Register

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
FEW = 4096  # names of parts that are known before the first row is taken


class IncompleteAdapter(Adapter):
    """One engine for queries that combine the same parts."""

    def __init__(self, query: Query, *args: Any, **options: Any) -> None:
        super().__init__(query, *args, **options)
        assert isinstance(query, TopKIncomplete)
        self.revalidates = query.most_rows is not None
        self.prunes = self.revalidates and query.descending  # whether a row can be dominated
        self.codes: PartCodes | None = None  # of parts that are not named in advance, where it matters which is which
        if query.any_parts and query.repeat in (None, "last"):
            from skyband.engines.incomplete.any_parts import PartCodes

            self.codes = PartCodes()
        self._first: Register | None = None  # before there is an engine
        self._validated: Validated | None = None  # what the register has validated, until it is taken

    @staticmethod
    def key(query: Query) -> tuple[Any, ...]:
        """Without `repeat` only equal windows share an engine: which rows are rejected depends on the window."""
        assert isinstance(query, TopKIncomplete)
        exact = row_of(query).exact
        window = query.window.sort if query.most_rows is None and exact else query.window
        return (*shared_key(query), window, query.algorithm, query.tuning, None if exact else query.k)

    @property
    def machine(self) -> IncompleteEngine:
        return cast("IncompleteEngine", self.engine)

    @property
    def register(self) -> Register | None:
        return self._first if self.engine is None else self.machine.register

    def start(self, unit: int | None) -> None:
        if self.engine is None and self.revalidates and self._first is None:
            self._first = self._new_register(unit)
        super().start(unit)

    def engine_class(self) -> type[Engine]:
        """With `repeat`, or where the smallest score is best, nothing is dominated, so there is nothing to sweep."""
        from skyband.engines.incomplete.any_parts import AnyParts
        from skyband.engines.incomplete.linked_rows import LinkedRows
        from skyband.engines.incomplete.promised import PromisedRows

        if self.example.any_parts:
            return LinkedRows if self.codes is None else AnyParts
        if self.algorithm in ("SWEEP", "EAA") and self.prunes and self.example.repeat is not None:
            return PromisedRows
        return LinkedRows if self.algorithm == "SWEEP" and not self.prunes else super().engine_class()

    def engine_options(self) -> dict[str, Any]:
        from skyband.engines.incomplete.combine import combination_of

        register, self._first = self._first, None
        combination = combination_of(self.example)
        repeat = (self.example.combine, self.example.repeat) if self.example.any_parts else self.example.repeat
        options = {"combination": combination, "repeat": repeat, "register": register}
        return options if self.codes is None else options | {"codes": self.codes}

    def _new_register(self, unit: int | None) -> Register:
        from skyband.engines.incomplete.register import Register

        timed = self.timed and not self.endless
        by_part, most = bool(self.example.any_parts), self.example.most_rows
        return Register(self.specs(unit)[0].length, timed=timed, most=most, by_part=by_part)

    def keys(self, scores: Floats) -> Floats:
        """Rows bring values of parts, whichever score is best."""
        return scores

    def score_of(self, keys: Floats) -> Floats:
        return keys if self.descending else -keys

    # --- rows

    def validate(self, batch: Batch, cache: dict[Any, Scored], bad_times: dict[str, Bools | None]) -> Validated:
        value, part, id_ = self.options.value, self.options.part, cast(str, self.options.id)
        if not batch.rows:
            return Scored(np.empty(0)).validated(None)
        codes, values = self._parts(batch), batch.numbers(value).values
        bounds = np.array([*(pair for _, pair in self.example.parts), (0.0, 0.0)])
        places = np.minimum(codes, 0) if self.example.any_parts else codes
        beyond = batch.beyond(value)
        ids = batch.array(id_)
        highest = values.max()
        inside = bounds[:-1, 0].max() <= values.min() and highest <= bounds[:-1, 1].min()  # NaN: no
        inside = inside and highest < np.inf
        eligible, read = (None, ()) if self.where is None else matches(batch, self.where)
        beyonds = {f"{name} is beyond 2^53": far for name in read if (far := batch.beyond(name)) is not None}
        if inside and codes.min() >= 0 and beyond is None and not (ids.null_count or bad_times or beyonds):
            return Validated(Scored(values), np.ones(batch.rows, np.bool_), eligible)
        reasons = {
            **bad_times,
            f"{id_} is null": np.asarray(ids.is_null(), np.bool_) if ids.null_count else None,
            f"{part}: unknown part": codes < 0,
            f"{value} is beyond 2^53": beyond,
            f"{value} out of range": ~((values >= bounds[places, 0]) & (values <= bounds[places, 1]))
            | np.isinf(values),
            **beyonds,
        }
        scored, good = Scored(values), np.ones(batch.rows, np.bool_)
        for reason, rows in reasons.items():
            if rows is not None:
                scored.reject(reason, rows & good)
                good &= ~rows
        return Validated(scored, good, eligible)

    def _parts(self, batch: Batch) -> Ints:
        """Which part each row brings, in the query's order; -1: none of them."""
        if self.example.any_parts:
            return self._any_parts(batch)
        names = tuple(name for name, _ in self.example.parts)
        if ("parts", names) not in batch.memo:
            batch.memo["parts", names] = part_codes(batch, self.options.part, names)
        codes: Ints = batch.memo["parts", names]
        return codes

    def _any_parts(self, batch: Batch) -> Ints:
        """The codes of the parts that rows name; -1: null. All have one if it makes no difference which is which."""
        key = ("any parts", id(self))
        if key not in batch.memo:
            if self.codes is not None and self.engine is None and self._first is None and len(self.codes) > FEW:
                self.codes.keep(np.empty(0, np.int64))  # nothing has been taken that has one
            names = batch.array(self.options.part)
            codes = np.full(batch.rows, -1)
            valid = np.asarray(names.is_valid(), np.bool_)
            codes[valid] = 0 if self.codes is None else self.codes.codes(name_bits(names)[valid])
            batch.memo[key] = codes
        found: Ints = batch.memo[key]
        return found

    def _names(self, batch: Batch) -> Ints:
        """The ids as keys of 64 bits."""
        if "names" not in batch.memo:
            batch.memo["names"] = name_bits(batch.array(cast(str, self.options.id)))
        names: Ints = batch.memo["names"]
        return names

    def revalidate(self, push: Push, validated: Validated, codes: Ints, unit: int | None) -> Validated:
        if self.engine is None and self._first is None:
            self._first = self._new_register(unit)
        register, coming = cast("Register", self.register), validated.accepted
        if self.endless and self.timed and push.batch.rows:  # the register of a window without end goes by numbers
            assert push.times is not None and push.clocks is not None
            coming = self.timely(coming, np.maximum(push.clocks, push.times) - push.times, unit)
        again = register.validate(
            self._names(push.batch),
            self._parts(push.batch),
            codes,
            np.flatnonzero(coming),
            push.times,
            push.clocks,
            self.numbering.next()[0],
            register.length if self.options.late == "accept" else 1,
            coming if validated.eligible is None else coming & validated.eligible,
        )
        if again.any():
            scored = Scored(validated.scored.key, dict(validated.scored.rejected))
            most = self.example.most_rows
            why = "second row of the same part" if most == 1 else f"more than {most} rows of one part"
            scored.reject(f"{self.options.part}: {why}", again)
            validated = replace(validated, scored=scored, accepted=validated.accepted & ~again)
        self._validated = validated
        return validated

    def take(self, push: Push, validated: Validated, codes: Ints) -> tuple[dict[str, Any], Bools, Bools]:
        if self.register is not None:
            if validated is self._validated:
                self.register.keep()
            else:
                self.register.undo()
            self._validated = None
        taken = super().take(push, validated, codes)
        if self.codes is not None and not push.more:
            cast("AnyParts", self.machine).tidy()
        return taken

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        if not push.batch.rows:
            return {"names": np.empty(0, np.int64), "parts": np.empty(0, np.int64)}
        here = slice(None) if len(rows) == push.batch.rows else rows
        return {"names": self._names(push.batch)[here], "parts": self._parts(push.batch)[here]}

    def live_serials(self) -> Ints:
        live = np.sort(np.concatenate([self.machine.serials()[0], self.machine.shown()]))
        return live[np.flatnonzero(np.diff(live, prepend=-1))]

    # --- queries

    def can_serve(self, query: Query, unit: int | None) -> bool:
        """Which rows were rejected depends on the window, so another one fits only a query that is alone."""
        if (
            self.engine is None
            or shared_key(query) != shared_key(self.example)
            or query.algorithm != self.example.algorithm
        ):
            return False
        if query.tuning != self.example.tuning or query.window.sort != self.example.window.sort:
            return False
        same = query.window == self.example.window
        if not row_of(self.example).exact and (not same or query.k != self.example.k):  # type: ignore[attr-defined]
            return False
        if self.revalidates and not same and len(self.queries) > 1:
            return False
        specs, wanted = self.specs(unit), spec_of(query, unit)
        return wanted.k <= max(spec.k for spec in specs) and wanted.length <= max(spec.length for spec in specs)

    def can_lend(self, query: Any, unit: int | None) -> bool:
        """Two windows would have rejected other rows."""
        return (not self.revalidates or query.window == self.example.window) and super().can_lend(query, unit)

    def stats(self, name: str) -> dict[str, Any]:
        return super().stats(name) | ({} if self.engine is None else self.machine.more_stats())


def part_codes(batch: Batch, column: str, names: tuple[str, ...]) -> Ints:
    """The place of each row's part among these names; -1: it is none of them."""
    chunks = batch.column(column).chunks
    return np.concatenate([_codes(chunk, column, names) for chunk in chunks] or [np.empty(0, np.int64)])


def _codes(chunk: Any, column: str, names: tuple[str, ...]) -> Ints:
    if pa.types.is_dictionary(chunk.type):  # a few names for many rows
        known = np.append(_codes(chunk.dictionary, column, names), -1)
        indices = chunk.indices.fill_null(len(known) - 1) if chunk.null_count else chunk.indices
        found: Ints = known[np.asarray(indices, np.int64)]  # other types of numbers take eight times as long
        return found
    if pa.types.is_null(chunk.type):
        return np.full(len(chunk), -1)
    if not is_string(chunk.type):
        raise BatchError(
            f"column {column!r} holds {chunk.type}, but parts have names: {', '.join(names)}. Convert it to strings, "
            'or name another column with part="...".'
        )
    if pa.types.is_string_view(chunk.type):
        chunk = chunk.cast(pa.string())
    places = pc.index_in(chunk, pa.array(names, chunk.type)).fill_null(-1)
    return np.asarray(places).astype(np.int64)
