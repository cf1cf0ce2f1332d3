"""The adapter of TopK: a skyband of one scoring, or many scorings of one form in one engine (a family).

The engine of a family reads the attributes of objects and scores them itself, a block at a time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.contract import Arrivals, Engine, Scorings
from skyband.engines.numbering import Start
from skyband.engines.registry import load
from skyband.engines.topk.scorings import BLOCK, family_key, scorings_of, validate_family
from skyband.query.kinds import Above, Query, TopK
from skyband.query.options import Options
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST = 1 << 20  # queries of one scoring that read one run
CROWD = Adapter.most  # with more of them they do


class TopKAdapter(Adapter):
    """One engine of TopK: the queries have one scoring, or they are a family."""

    def __init__(
        self,
        query: Query,
        groups: Groups,
        options: Options,
        start: Start,
        *,
        family: bool = False,
        reading: bool | None = None,
    ) -> None:
        super().__init__(query, groups, options, start)
        self.family = family
        self.scored = not family
        self.reads_more = family
        self.reading = bool(reading)  # whether queries are readers of one run; None: their number decides
        if self.algorithm == BLOCK and not family and reading is not False:
            self.most = MOST  # type: ignore[misc]

    @staticmethod
    def key(query: Query) -> tuple[Any, ...]:
        if isinstance(query, Above):  # a lower threshold serves a higher one
            return Adapter.key(replace(query, threshold=0.0))
        return Adapter.key(query)

    @cached_property
    def family_key(self) -> tuple[Any, ...] | None:
        """What its queries have in common with those of a family; None: they are in none."""
        return None if isinstance(self.example, Above) else family_key(cast(TopK, self.example))

    def start(self, unit: int | None) -> None:
        if self.engine is None and self.most == MOST:
            self.reading |= self.crowded
            self.most = MOST if self.reading else Adapter.most  # type: ignore[misc]
        super().start(unit)

    @property
    def crowded(self) -> bool:
        """Whether there are more queries of one scoring than an engine has bits for."""
        return self.scored and len(self.queries) > CROWD

    def engine_class(self) -> type[Engine]:
        return load(self.example.kind, self.algorithm, many=True) if self.reading else super().engine_class()

    def extra_facts(self) -> dict[str, Any]:
        return {"reading": True} if self.reading else {}

    def engine_options(self) -> dict[str, Any]:
        return {"scorings": self.scorings()} if self.family else {}

    def scorings(self) -> Scorings:
        """Of a family, one for each query."""
        return scorings_of(list(self.queries.values()))

    def score(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        if self.scored:
            return super().score(batch, cache)
        rows = validate_family(batch, self.by)
        assert rows is not None, "extreme numbers have split the family"
        return Scored(rows.key, dict(rows.rejected))

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        return {} if self.scored else {"attributes": self._attributes(push.batch, rows)}

    def _attributes(self, batch: Batch, rows: Ints) -> tuple[Floats, ...]:
        columns = self.by.columns
        if not batch.rows:
            return tuple(np.empty(0) for _ in columns)
        values = [batch.numbers(name).values for name in columns]
        return tuple(values if len(rows) == batch.rows else (column[rows] for column in values))

    def needed(
        self, validated: Validated, codes: Ints, total: int, times: Ints, clocks: Ints, unit: int | None
    ) -> Bools:
        """Which rows of a part of a batch, in order, can matter; those left out get no number.

        clocks: the largest time so far, of all rows.
        """
        assert self.scored, "the rows of a family have no keys"
        wanted = validated.accepted if validated.eligible is None else validated.accepted & validated.eligible
        rows = np.flatnonzero(wanted)
        whole = len(rows) == len(wanted)
        chosen = slice(None) if whole else rows  # a slice copies nothing
        arrivals = Arrivals(
            rows=rows,
            groups=codes[chosen],
            keys=self.keys(validated.scored.key[chosen]),
            stamps=times[chosen],
            now=clocks if whole else np.maximum.accumulate(times[chosen]),
            eligible=None,
            serial=0,
            size=len(validated.accepted),
            clock=0,
            clocks=None,
            total=total,
        )
        kept = self._pruner().needed(arrivals, self.specs(unit), net=self.options.emit == "batch")
        needed = np.zeros(len(validated.accepted), np.bool_)
        needed[rows[kept]] = True
        return needed

    def _pruner(self) -> type[Engine]:
        """The engine that says which rows are needed."""
        # BEST counts on earlier rows, which may yet be dropped as late; BLOCK counts on as many later ones too
        uncertain = self.algorithm == "BEST" and self.options.late == "drop"
        return load(self.example.kind, "BLOCK" if uncertain else self.algorithm)

    def must_split(self, batch: Batch) -> bool:
        return not self.scored and batch.rows > 0 and validate_family(batch, self.by) is None

    def split(self, unit: int | None, clock: int) -> dict[str, Adapter]:
        adapters: dict[str, Adapter] = {}
        for name, query in self.queries.items():
            adapters[name] = TopKAdapter(query, self.groups, self.options, self.numbering.start())
            adapters[name].queries = {name: query}
        if self.engine is not None:
            for adapter in adapters.values():
                adapter.start(unit)
                adapter.go_on_from(self)
            engines = [adapter.engine for adapter in adapters.values()]
            self.engine.split(engines, self.now(clock))  # type: ignore[attr-defined]
        return adapters
