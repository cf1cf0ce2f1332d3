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
    aggregates, score_of, condition_of = query.aggregates, query.score, query.condition
    others, descending = tuple(query.shown.values()), query.descending

    def scores(values: Sequence[Floats]) -> Scores:
        size = len(values[0])
        columns = {f"#{i}": arguments.operand(one, values[i]) for i, one in enumerate(aggregates)}
        score = score_of.evaluate(columns, size)
        keys = np.asarray(score.values, np.float64)
        keys = keys if descending else -keys
        holds = score.valid
        if condition_of is not None:
            condition = condition_of.evaluate(columns, size)
            true = condition.values if condition.valid is None else condition.values & condition.valid
            holds = true if holds is None else holds & true
        if holds is not None:
            keys = np.where(holds, keys, np.nan)
        shown = tuple(one.evaluate(columns, size) for one in others)
        return Scores(np.ascontiguousarray(keys), shown)

    plain = None
    if score_of.tree.op == "column" and condition_of is None and not others:
        at = int(score_of.columns[0][1:])
        if aggregates[at].function not in ("first", "last"):  # which may be strings
            turned = aggregates[at].function == "min"  # whose arguments are negated
            plain = (at, 1.0 if descending != turned else -1.0)
    return Measures(tuple(one.function for one in aggregates), query.decides, scores, plain)
