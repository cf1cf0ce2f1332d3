"""Scores of objects: `by`, `having` and `select` over the values of their aggregates, many objects at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skyband.engines.contract import Floats
from skyband.engines.groups.arguments import Arguments
from skyband.engines.groups.measures import Measures, Scores
from skyband.query.kinds import TopKGroups


def measures_of(query: TopKGroups, arguments: Arguments) -> Measures:
    """The aggregates of a query as its engine sees them."""

    def scores(values: Sequence[Floats]) -> Scores:
        size = len(values[0])
        columns = {f"#{i}": arguments.operand(one, values[i]) for i, one in enumerate(query.aggregates)}
        score = query.score.evaluate(columns, size)
        keys = np.asarray(score.values, np.float64)
        keys = keys if query.descending else -keys
        holds = score.valid
        if query.condition is not None:
            condition = query.condition.evaluate(columns, size)
            true = condition.values if condition.valid is None else condition.values & condition.valid
            holds = true if holds is None else holds & true
        if holds is not None:
            keys = np.where(holds, keys, np.nan)
        shown = tuple(one.evaluate(columns, size) for one in query.shown.values())
        return Scores(np.ascontiguousarray(keys), shown)

    return Measures(tuple(one.function for one in query.aggregates), query.decides, scores)
