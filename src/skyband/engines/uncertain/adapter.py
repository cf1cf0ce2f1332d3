"""Adapter of `TopKUncertain`: reads probabilities and the names of alternatives, and rejects what they rule out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.contract import NEVER, Engine
from skyband.engines.registry import choose
from skyband.engines.specs import shared_key
from skyband.query.kinds import Query, TopKUncertain
from skyband.tables.column_checks import check_kept
from skyband.tables.columns import name_bits
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated

if TYPE_CHECKING:
    from skyband.engines.uncertain.exclusive import ExclusiveBS

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
IMPROBABLE = "probability is not in (0, 1]"
PASSES = "probabilities of a group pass 1"
SLACK = 1e-12  # the probabilities of alternatives may add up to 1 + this


class UncertainAdapter(Adapter):
    """One engine for queries with one scoring, one probability column and one of the semantics."""

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
        super().start(unit)

    def engine_class(self) -> type[Engine]:
        if self.example.group is None:
            return super().engine_class()
        from skyband.engines.uncertain.exclusive import ExclusiveBS

        return cast("type[Engine]", ExclusiveBS)

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
            more |= {"names": names[rows], "named": named[rows]}
        return more

    def _names(self, batch: Batch) -> tuple[Ints, Bools]:
        """The alternatives' names as 64-bit keys, and which rows have one."""
        group = self.example.group
        if ("alternatives", group) not in batch.memo:
            column = batch.array(group)
            check_kept(group, column)
            batch.memo["alternatives", group] = name_bits(column), ~np.asarray(column.is_null(), np.bool_)
        names: tuple[Ints, Bools] = batch.memo["alternatives", group]
        return names

    def revalidate(self, push: Push, validated: Validated, codes: Ints, unit: int | None) -> Validated:
        """Reject rows that would bring the valid alternatives of one name above 1; rows that fail `where` count too."""
        if not push.batch.rows:
            return validated
        (length,) = {one.length for one in self.specs(unit)}
        names, named = self._names(push.batch)
        p = push.batch.numbers(self.example.probability).values
        numbers: dict[int, int] = {}
        following = self.numbering.next()[0]
        known: dict[tuple[int, int], list[tuple[int, float]]] = {}  # stamps and probabilities
        bad = np.zeros(push.batch.rows, np.bool_)
        for row in np.flatnonzero(validated.accepted).tolist():
            code, name = int(codes[row]), int(names[row])
            if not self.timed:
                stamp = numbers.get(code, int(following[code]))
                low = stamp - length
            else:
                assert push.clocks is not None and push.times is not None
                stamp, now = int(push.times[row]), max(int(push.clocks[row]), int(push.times[row]))
                limit = NEVER if self.endless else length
                if now - stamp >= (limit if self.options.late == "accept" else 1):
                    continue  # too late: no arrival
                low = now - limit
            if named[row]:
                if (code, name) not in known:
                    known[code, name] = self._alternatives(code, name)
                valid = [chance for other, chance in known[code, name] if other > low]
                if math.fsum([*valid, float(p[row])]) > 1 + SLACK:
                    bad[row] = True
                    continue
                known[code, name].append((stamp, float(p[row])))
            numbers[code] = stamp + 1
        scored = Scored(validated.scored.key, dict(validated.scored.rejected))
        scored.reject(PASSES, bad)
        return scored.validated(validated.eligible)

    def _alternatives(self, code: int, name: int) -> list[tuple[int, float]]:
        if self.engine is None:
            return []
        kept = cast("ExclusiveBS", self.engine).alternatives(code, name)
        return [(t.stamp, t.p) for t in kept]
