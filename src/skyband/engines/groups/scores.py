"""Scores of objects: `by`, `having` and `select` over the values of their aggregates, many objects at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from skyband.engines.contract import Bools, Floats, Ints
from skyband.engines.groups.arguments import Arguments
from skyband.engines.groups.measures import Measures, Scores
from skyband.engines.groups.order import Order, Way, null_of
from skyband.query.aggregates import Id
from skyband.query.expressions import Expression, Operand
from skyband.query.kinds import TopKGroups

Names = Callable[[Id, Ints], list[Operand]]  # the columns of the ids of objects


def order_of(query: TopKGroups, of: int) -> Order:
    """What ranks objects besides one number; of: how many columns an id has."""
    first = query.nulls == "first"
    if query.decay is not None:  # whose order is turned already
        ways = [Way(True, first)] * 2
    else:
        keys = zip(query.expressions.keys, query.directions, strict=True)
        ways = [Way(way, first) for key, way in keys for _ in range(of if key == Id() else 1)]
    return Order(ways, oldest=query.ties == "oldest", with_ties=query.with_ties, offset=query.offset)


def measures_of(query: TopKGroups, arguments: Arguments, order: Order | None, names: Names) -> Measures:
    """The aggregates of a query as its engine sees them."""
    aggregates, condition_of = query.aggregates, query.condition
    others, keys_of = tuple(query.shown.values()), query.expressions.keys

    def scores(values: Sequence[Floats], slots: Ints) -> Scores:
        size = len(values[0])
        if not size and not arguments.known:  # no row has come: expressions may not fit the kinds that they have so far
            none = Operand(np.empty(0))
            if order is None:
                return Scores(np.empty(0), (none,) * len(others))
            ranks = [one for key in keys_of for one in (names(key, slots) if isinstance(key, Id) else [none])]
            return Scores(np.empty(0), (none,) * (len(others) + len(keys_of)), columns=tuple(ranks))
        columns = {f"#{i}": arguments.operand(one, values[i]) for i, one in enumerate(aggregates)}
        keys = {i: key.evaluate(columns, size) for i, key in enumerate(keys_of) if isinstance(key, Expression)}
        shown = tuple(one.evaluate(columns, size) for one in others)
        holds = np.ones(size, np.bool_)
        if condition_of is not None:
            condition = condition_of.evaluate(columns, size)
            holds = condition.values if condition.valid is None else condition.values & condition.valid
        if order is None:
            score = np.asarray(keys[0].values, np.float64)
            return Scores(_where(holds, keys[0].valid, score if query.descending else -score), shown)
        ranked = list[Operand]()
        for i, key in enumerate(keys_of):
            ranked += names(key, slots) if isinstance(key, Id) else [keys[i]]
        if query.nulls == "reject":
            holds = holds & ~np.any([~holds, *map(null_of, ranked)], axis=0)
        return Scores(_where(holds, None, np.zeros(size)), (*shown, *keys.values()), columns=tuple(ranked))

    plain, score_of = None, query.score
    if order is None and score_of is not None and score_of.tree.op == "column" and condition_of is None and not others:
        at = int(score_of.columns[0][1:])
        if aggregates[at].function not in ("first", "last"):  # which may be strings
            turned = aggregates[at].function == "min"  # whose arguments are negated
            plain = (at, 1.0 if query.descending != turned else -1.0)
    return Measures(tuple(one.function for one in aggregates), query.decides, scores, plain, order=order)


def _where(holds: Bools, valid: Bools | None, keys: Floats) -> Floats:
    """The keys of objects that can be an answer; NaN for others."""
    both = holds if valid is None else holds & valid
    return np.ascontiguousarray(keys if both.all() else np.where(both, keys, np.nan))
