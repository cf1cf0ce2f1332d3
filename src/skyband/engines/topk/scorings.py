"""Families: queries that differ only in the numbers of their scoring, so that one engine can serve them all.

Nearest or Linear over the same columns, with the same direction, `where`, k, window and algorithm, and no `per`. An
engine of a family reads the attributes of objects and scores them itself, a block at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Scorings
from skyband.engines.registry import row_of
from skyband.query.expressions import as_sum, parse, ranges
from skyband.query.kinds import Above, TopK
from skyband.query.scoring import Linear, Nearest, Product, Quadratic
from skyband.tables.input import Batch
from skyband.tables.scores import Scored, reject_beyond, score

Floats = NDArray[np.float64]
TAME = 1e100  # numbers up to here overflow in no scoring: a row has a score for all of a family or for none
_FORMS = {"euclidean": 1, "manhattan": 2, "chebyshev": 3}
MOST_AXES = 6  # of a grid
Plain = Linear | Product | Quadratic | Nearest


def family_key(query: TopK) -> tuple[Any, ...] | None:
    """Queries with equal keys are one family; None: of no family."""
    by, row = query.by, row_of(query)
    if query.per_columns or not isinstance(by, Linear | Nearest) or row.family is None or not is_tame(by):
        return None
    return (*_form(by), query.descending, query.where, query.k, query.window, row.name, query.tuning)


def window_key(query: TopK | Above, algorithm: str) -> tuple[Any, ...]:
    """Queries with equal keys can look at one window that is kept whole."""
    by, where = plain_scoring(query.by), query.where
    form: tuple[Any, ...] = ("score", id(query.by) if callable(query.by) else query.by)
    if by is not None:
        form, where = _form(by), box_of(query, by)[1]
    return (*form, query.descending, where, query.window, query.per_columns, algorithm, query.tuning)


def auto_key(query: TopK | Above) -> tuple[Any, ...] | None:
    """Of queries that auto may let share a window; None: of others."""
    if query.algorithm != "auto" or query.per_columns or plain_scoring(query.by) is None:
        return None
    return window_key(query, "SMA")


def crowd_key(query: TopK | Above) -> tuple[Any, ...] | None:
    """Queries with equal keys take the same rows, as long as numbers are tame; None: a query of its own."""
    row = row_of(query)
    if row.keeps_window:
        return None if plain_scoring(query.by) is None else window_key(query, row.name)
    return family_key(query) if isinstance(query, TopK) else None


def _form(by: Plain) -> tuple[Any, ...]:
    if isinstance(by, Nearest):
        return ("nearest", by.metric, by.factors is None, by.columns)
    return (by.word, by.columns)


def is_tame(by: Plain) -> bool:
    numbers = [number for _, number in by.terms]
    if isinstance(by, Nearest):
        numbers += by.factors or ()
    return max(map(abs, numbers)) <= tame_for(by)


def tame_for(by: Plain) -> float:
    """How large numbers may be so that nothing overflows."""
    return TAME ** (1 / 2) if isinstance(by, Product) else TAME


def plain_scoring(by: Any) -> Plain | None:
    """The scoring as one that a grid over attributes can bound, the same to the last bit; None: there is none."""
    if isinstance(by, str):
        terms = as_sum(parse(by))
        by = None if terms is None else Linear(dict(terms))
    if not isinstance(by, Plain) or len(by.terms) > MOST_AXES or not is_tame(by):
        return None
    return by


def box_of(query: TopK | Above, by: Plain) -> tuple[dict[str, tuple[float, float]], str | None]:
    """The ranges of the scoring's columns that `where` demands, and `where` itself if it demands more."""
    if query.where is None:
        return {}, None
    box, whole = ranges(parse(query.where))
    return {name: box[name] for name in by.columns if name in box}, None if whole and box.keys() <= {
        *by.columns
    } else query.where


def scorings_of(queries: list[TopK] | list[TopK | Above]) -> Scorings:
    """The scorings of a family, as its engine sees them."""
    scorings = [plain_scoring(query.by) or query.by for query in queries]
    by = scorings[0]
    assert isinstance(by, Plain)
    points = np.array([[number for _, number in one.terms] for one in scorings])  # type: ignore[union-attr]
    weights = np.empty((len(queries), 0))
    form = {"linear": 0, "product": 4, "quadratic": 5}.get(getattr(by, "word", ""), 0)
    if isinstance(by, Nearest):
        form = _FORMS[by.metric]
        if by.factors is not None:
            weights = np.array([one.factors for one in scorings])  # type: ignore[union-attr]
    turned = not queries[0].descending

    def keys(which: int, data: Floats) -> Floats:
        key = scorings[which].key(dict(zip(by.columns, data, strict=True)))  # type: ignore[union-attr]
        return -key if turned else key

    return Scorings(form, turned, points, weights, keys)


def with_boxes(scorings: Scorings, queries: list[TopK | Above]) -> Scorings:
    """As they are, but only objects within the boxes of `where` count."""
    lows, highs = np.full_like(scorings.points, -np.inf), np.full_like(scorings.points, np.inf)
    for s, query in enumerate(queries):
        by = plain_scoring(query.by)
        assert by is not None
        box, _ = box_of(query, by)
        for j, name in enumerate(by.columns):
            lows[s, j], highs[s, j] = box.get(name, (-np.inf, np.inf))
    return replace(scorings, lows=lows, highs=highs)


def own_score(queries: int) -> Scorings:
    """Objects with one attribute, which is their key."""
    return Scorings(0, False, np.ones((queries, 1)), np.empty((queries, 0)), lambda _, data: data[0])


def validate_family(batch: Batch, by: Any) -> Scored | None:
    """Who is rejected by all of a family alike, with no scores; None: a number is so large that they may differ."""
    what = (by.columns, tame_for(by))
    if what not in batch.memo:
        batch.memo[what] = _judge(batch, by)
    validated: Scored | None = batch.memo[what]
    return validated


def _judge(batch: Batch, by: Any) -> Scored | None:
    columns = [batch.numbers(name).values for name in by.columns]
    most = tame_for(by)
    largest = [max(column.max(), -column.min()) for column in columns if len(column)]
    if np.isnan(largest).any():
        wild = [(np.abs(column) > most).any() for column in columns]
        return None if any(wild) else score(batch, by)
    if any(one > most for one in largest):
        return None
    scored = Scored(columns[0])  # an engine of a family scores by itself
    reject_beyond(scored, batch, by.columns)
    return scored
