"""Validation of rows by an adapter: their scores, which are rejected and why, and which can be an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Spec
from skyband.query.options import Options
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated, matches, reject_beyond, score

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Validation:
    """The part of an adapter that examines rows; it changes nothing but counts."""

    by: Any
    where: str | None
    timed: bool
    endless: bool
    deletable: bool
    options: Options
    rejected: dict[str, int]

    def specs(self, unit: int | None) -> tuple[Spec, ...]:
        """The queries as the engine sees them."""
        raise NotImplementedError

    def validate(self, batch: Batch, cache: dict[Any, Scored], bad_times: dict[str, Bools | None]) -> Validated:
        """Score the rows; say which are rejected, and which can be an answer. Changes nothing."""
        scored = self.score(batch, cache)
        for reason, rows in bad_times.items():
            if rows is not None:
                scored.reject(reason, rows)
        eligible = None
        if self.where is not None:
            eligible, columns = matches(batch, self.where)
            reject_beyond(scored, batch, columns)
        return scored.validated(eligible)

    def score(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        """The key of each row, and the rows that have none."""
        by = id(self.by) if callable(self.by) else self.by
        if by not in cache:
            cache[by] = score(batch, self.by)
        return Scored(cache[by].key, dict(cache[by].rejected))

    def revalidate(self, push: Push, validated: Validated, codes: Ints, unit: int | None) -> Validated:
        """Reject rows because of earlier ones, those of this push among them. Changes nothing.

        push.clocks: after each row that any query accepts; codes: the group of each row.
        """
        raise NotImplementedError

    def separate_deletions(
        self, validated: Validated, deletes: Bools, other: Bools, bad_times: dict[str, Bools | None]
    ) -> Validated:
        """Rows that delete an id have no score: only queries whose objects are deleted take them."""
        scored = Scored(validated.scored.key, keys=validated.scored.keys)
        for reason, rows in validated.scored.rejected.items():
            scored.reject(reason, rows if self.deletable and reason in bad_times else rows & ~deletes)
        scored.reject("op is unknown", other)
        taken = scored.validated(validated.eligible)
        if self.options.inner:  # a member without a score is one still, and may get it later
            valid = taken.accepted
            eligible = valid if taken.eligible is None else valid & taken.eligible
            return replace(taken, accepted=np.ones_like(valid), eligible=eligible)
        return taken if self.deletable else replace(taken, accepted=taken.accepted & ~deletes)

    def timely(self, accepted: Bools, ages: Ints, unit: int | None) -> Bools:
        """The accepted rows that are not too late to arrive; ages: how much older than the clock they are, at least."""
        if not self.timed or (self.endless and self.options.late == "accept"):
            return accepted
        limit = max(spec.length for spec in self.specs(unit)) if self.options.late == "accept" else 1
        return accepted & (ages < limit) if ages.max() >= limit else accepted

    def count_rejected(self, validated: Validated) -> None:
        for reason, rows in validated.scored.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + int(rows.sum())

    def new_rejections(self) -> dict[str, int]:
        """What was rejected while a push was taken, by reason; asked for once."""
        return {}

    def must_split(self, batch: Batch) -> bool:
        """Whether the batch holds numbers for which the queries of a family may reject different rows."""
        return False
