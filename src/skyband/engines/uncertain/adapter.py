"""Adapter of `TopKUncertain`: reads probabilities and the names of alternatives, and rejects what they rule out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.contract import Engine
from skyband.engines.numbering import Start
from skyband.engines.registry import choose
from skyband.engines.specs import shared_key
from skyband.query.kinds import Query, TopKUncertain
from skyband.query.options import Options
from skyband.tables.column_checks import check_kept
from skyband.tables.columns import name_bits, valid_of
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated

if TYPE_CHECKING:
    from skyband.engines.uncertain.exclusive import Exclusive
    from skyband.engines.uncertain.rivals import Rivals

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
IMPROBABLE = "probability is not in (0, 1]"
PASSES = "probabilities of a group pass 1"


class UncertainAdapter(Adapter):
    """One engine for queries with one scoring, one probability column and one of the semantics."""

    def __init__(self, query: Query, groups: Groups, options: Options, start: Start) -> None:
        super().__init__(query, groups, options, start)
        self._first: Rivals | None = None  # the valid alternatives, until there is an engine
        self._validated: Validated | None = None  # what they have validated, until it is taken

    @staticmethod
    def key(query: Query) -> tuple[Any, ...]:
        """What queries of one engine share; with `group` the window too: it decides which alternatives are valid."""
        assert isinstance(query, TopKUncertain)
        window = query.window.sort if query.group is None else query.window
        return (*shared_key(query), window, query.algorithm)

    @property
    def revalidates(self) -> bool:
        return self.example.group is not None

    def start(self, unit: int | None) -> None:
        if self.engine is None and self.example.algorithm == "auto":  # the one with the longest window decides
            names = [choose(query) for query in self.queries.values()]
            self.algorithm = "DOM" if "DOM" in names else names[0]
        if self.engine is None and self.example.group is not None and self._first is None:
            self._first = self._new_rivals(unit)
        super().start(unit)

    def engine_class(self) -> type[Engine]:
        if self.example.group is None:
            return super().engine_class()
        from skyband.engines.uncertain.exclusive import ExclusiveBS, ExclusiveDOM

        return cast("type[Engine]", ExclusiveDOM if self.algorithm == "DOM" else ExclusiveBS)

    def engine_options(self) -> dict[str, Any]:
        rivals, self._first = self._first, None
        return {} if self.example.group is None else {"rivals": rivals}

    def score(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        scored = super().score(batch, cache)
        if batch.rows:
            given = batch.numbers(self.example.probability)
            scored.reject(IMPROBABLE, ~((given.values > 0) & (given.values <= 1)))
            if self.example.group is not None:
                self._names(batch)  # may fail
        return scored

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        if not push.batch.rows:
            none = np.empty(0, np.int64)
            grouped = {} if self.example.group is None else {"names": none, "named": np.empty(0, np.bool_)}
            return {"probabilities": np.empty(0), **grouped}
        p = push.batch.numbers(self.example.probability).values
        whole = len(rows) == push.batch.rows
        more: dict[str, Any] = {"probabilities": p if whole else p[rows]}
        if self.example.group is not None:
            names, named = self._names(push.batch)
            more |= {"names": names, "named": named} if whole else {"names": names[rows], "named": named[rows]}
        return more

    def _names(self, batch: Batch) -> tuple[Ints, Bools]:
        """The alternatives' names as 64-bit keys, and which rows have one."""
        group = self.example.group
        if ("alternatives", group) not in batch.memo:
            column = batch.array(group)
            check_kept(group, column)
            valid = valid_of(column)
            named = np.ones(len(column), np.bool_) if valid is None else valid
            batch.memo["alternatives", group] = name_bits(column), named
        names: tuple[Ints, Bools] = batch.memo["alternatives", group]
        return names

    @property
    def rivals(self) -> Rivals | None:
        """The valid alternatives; the engine has them, once there is one."""
        return self._first if self.engine is None else cast("Exclusive", self.engine).rivals

    def _new_rivals(self, unit: int | None) -> Rivals:
        from skyband.engines.uncertain.rivals import Rivals

        return Rivals(self.specs(unit)[0].length, timed=self.timed and not self.endless)

    def revalidate(self, push: Push, validated: Validated, codes: Ints, unit: int | None) -> Validated:
        """Reject rows that would bring the valid alternatives of one name above 1; rows that fail `where` count too."""
        if push.batch.rows:
            if self.rivals is None:
                self._first = self._new_rivals(unit)
            rivals, coming = cast("Rivals", self.rivals), validated.accepted
            if self.endless and self.timed:  # they go by numbers
                assert push.times is not None and push.clocks is not None
                coming = self.timely(coming, np.maximum(push.clocks, push.times) - push.times, unit)
            bad = rivals.validate(
                *self._names(push.batch),
                push.batch.numbers(self.example.probability).values,
                codes,
                np.flatnonzero(coming),
                push.times,
                push.clocks,
                self.numbering.next()[0],
                rivals.length if self.options.late == "accept" else 1,
            )
            if bad.any():
                scored = Scored(validated.scored.key, dict(validated.scored.rejected))
                scored.reject(PASSES, bad)
                validated = replace(validated, scored=scored, accepted=validated.accepted & ~bad)
        self._validated = validated
        return validated

    def take(self, push: Push, validated: Validated, codes: Ints) -> tuple[dict[str, Any], Bools, Bools]:
        if self.example.group is not None and self.rivals is not None:
            if validated is self._validated:
                self.rivals.keep()
            else:
                self.rivals.undo()
            self._validated = None
        return super().take(push, validated, codes)

    def reads_stored(self, layout: Mapping[str, str]) -> None:
        if self.example.group is not None:
            cast("Exclusive", self.engine).reads(layout)
