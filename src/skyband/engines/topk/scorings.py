"""Families: queries that differ only in the numbers of their scoring, so that one engine can serve them all.

Scorings of one kernel form over the same columns, with the same direction and algorithm, and no `per`. For BLOCK their
k, windows of one kind and ranges in `where` may be any (slots.py), and so may vectors of one length (similar.py); for
other algorithms k, window and `where` are the same. An engine of a family reads the attributes of objects and scores
them itself, a block at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Scorings
from skyband.engines.registry import row_of
from skyband.query.algorithms import algorithm
from skyband.query.expressions import number_columns, parse, ranges
from skyband.query.kinds import Above, TopK
from skyband.query.scoring import Scoring, Similar, Typed, scoring_of
from skyband.query.scoring.forms import EXPRESSION, PRODUCT, SHARED_BY_BLOCK, TAME, KernelForm
from skyband.query.windows import Last
from skyband.tables.input import Batch
from skyband.tables.scores import Scored, reject_beyond, score

Floats = NDArray[np.float64]
MOST_AXES = 6  # of a grid
MOST_ATTRIBUTES = 64  # of a family of BLOCK
BLOCK = "BLOCK"


def family_key(query: TopK, name: str | None = None) -> tuple[Any, ...] | None:
    """The key that is equal for queries of one family; None: of no family. name: of the algorithm, where known."""
    row = row_of(query) if name is None else algorithm(query.kind, name)
    if row.name != BLOCK:
        return _uniform_key(query)
    by, plain = scoring_of(query.by), plain_scoring(query.by, most=MOST_ATTRIBUTES)
    form = _vector_key(by) if isinstance(by, Similar) else None if plain is None else _form_key(plain)
    if query.per_columns or form is None or not isinstance(query.window, Last):
        return None
    rooted = by.smallest_first  # what is reported is not the key
    where, timed = where_box(query)[1], query.window.timed
    return (*form, rooted, query.descending, where, timed, row.name, query.tuning)


def _vector_key(by: Similar) -> tuple[Any, ...] | None:
    """The form of a scoring that compares vectors; None: its numbers may overflow somewhere."""
    largest = float(np.abs(by.numbers).max())
    tame = largest <= TAME and (by.norm >= 1 / TAME or by.metric == "euclidean")
    return (by.word, by.metric, by.column, len(by.numbers)) if tame else None


def _uniform_key(query: TopK) -> tuple[Any, ...] | None:
    """The key that is equal for queries that differ only in the numbers of their scoring; None: of no others."""
    by, row = scoring_of(query.by), row_of(query)
    form = by.form
    if query.per_columns or form is None or form.code not in SHARED_BY_BLOCK or row.family is None or not form.tame:
        return None
    return (*_form_key(by), query.descending, query.where, query.k, query.window, row.name, query.tuning)


def where_box(query: TopK) -> tuple[dict[str, tuple[float, float]], str | None]:
    """The ranges of any columns that `where` demands, and `where` itself if it demands more."""
    if query.where is None:
        return {}, None
    box, whole = ranges(parse(query.where))
    return (box, None) if whole else ({}, query.where)


def window_key(query: TopK | Above, algorithm: str) -> tuple[Any, ...]:
    """The key that is equal for queries that can look at one window that is kept whole."""
    by, where = window_scoring(query.by), query.where
    form: tuple[Any, ...] = ("score", scoring_of(query.by))
    if isinstance(by, OverAxes):
        form, where = (EXPRESSION, by.columns), box_of(query, by)[1]
    elif by is not None:
        form, where = _form_key(by), box_of(query, by)[1]
    return (*form, query.descending, where, query.window, query.per_columns, algorithm, query.tuning)


def auto_key(query: TopK | Above) -> tuple[Any, ...] | None:
    """The key of queries that auto may let share a window; None: of others."""
    if query.algorithm != "auto" or query.window.sort == "ever" or query.per_columns or plain_scoring(query.by) is None:
        return None
    return window_key(query, "SMA")


def crowd_key(query: TopK | Above) -> tuple[Any, ...] | None:
    """The key of queries that take the same rows, as long as numbers are tame; None: a query of its own."""
    row = row_of(query)
    if row.keeps_window:
        return None if plain_scoring(query.by) is None else window_key(query, row.name)
    return _uniform_key(query) if isinstance(query, TopK) else None


def form_of(by: Scoring) -> KernelForm:
    """The form of a scoring that has one."""
    form = by.form
    assert form is not None
    return form


def _form_key(by: Scoring) -> tuple[Any, ...]:
    form = form_of(by)
    return (form.code, not form.weights, by.columns)


def tame_for(by: Scoring) -> float:
    """The largest number of a row for which nothing overflows."""
    return form_of(by).limit


def plain_scoring(by: Any, most: int = MOST_AXES) -> Scoring | None:
    """The scoring as one that a grid over attributes can bound, the same to the last bit; None: there is none."""
    if by is None:
        return None
    plain = scoring_of(by).plain
    form = plain.form
    if form is None or not form.tame:
        return None
    return plain if len(form.point) <= (MOST_AXES if form.code == PRODUCT else most) else None


def window_scoring(by: Any) -> Scoring | None:
    """The scoring as one that whole windows keep attributes for; None: they keep objects by their score.

    An expression that no form fits: over several columns, all of numbers, in order of their names.
    """
    plain = plain_scoring(by)
    if plain is not None or not isinstance(by, str):
        return plain
    scoring = scoring_of(by)
    if not isinstance(scoring, Typed) or not 1 < len(scoring.columns) <= MOST_AXES or scoring.plain is not scoring:
        return None
    expression = parse(scoring.text)
    return OverAxes(scoring.text) if not expression.each and number_columns(expression) else None


class OverAxes(Typed):
    """An expression whose columns are the axes of a grid, the same ones for all expressions over them."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(sorted(super().columns))


def box_of(query: TopK | Above, by: Scoring) -> tuple[dict[str, tuple[float, float]], str | None]:
    """The ranges of the scoring's columns that `where` demands, and `where` itself if it demands more."""
    if query.where is None:
        return {}, None
    box, whole = ranges(parse(query.where))
    rest = None if whole and box.keys() <= {*by.columns} else query.where
    return {name: box[name] for name in by.columns if name in box}, rest


def scorings_of(queries: list[TopK] | list[TopK | Above]) -> Scorings:
    """The scorings of a family, as its engine sees them."""
    scorings = [plain_scoring(query.by) or scoring_of(query.by) for query in queries]
    forms = [form_of(by) for by in scorings]
    points, weights = np.array([form.point for form in forms]), np.array([form.weights for form in forms])
    columns, turned = scorings[0].columns, not queries[0].descending

    def keys(which: int, data: Floats) -> Floats:
        key = scorings[which].key(dict(zip(columns, data, strict=True)))
        return -key if turned else key

    return Scorings(forms[0].code, turned, points, weights, keys)


def boxes_of(queries: list[TopK], attributes: tuple[str, ...]) -> tuple[Floats, Floats]:
    """The ranges of attributes that each query demands, a row for each."""
    lows = np.full((len(queries), len(attributes)), -np.inf)
    highs = -lows
    for s, query in enumerate(queries if attributes else []):
        for name, (low, high) in where_box(query)[0].items():
            lows[s, attributes.index(name)], highs[s, attributes.index(name)] = low, high
    return lows, highs


def with_boxes(scorings: Scorings, queries: list[TopK | Above]) -> Scorings:
    """The same scorings, of objects within the boxes of `where` only."""
    lows, highs = np.full_like(scorings.points, -np.inf), np.full_like(scorings.points, np.inf)
    for s, query in enumerate(queries):
        by = window_scoring(query.by)
        assert by is not None
        box, _ = box_of(query, by)
        for j, name in enumerate(by.columns):
            lows[s, j], highs[s, j] = box.get(name, (-np.inf, np.inf))
    return replace(scorings, lows=lows, highs=highs)


def distinct_texts(queries: list[TopK | Above]) -> list[str]:
    """The expressions that these score by, each once, in order of the first query."""
    return list(dict.fromkeys(str(query.by) for query in queries))


def scores_of(batch: Batch, texts: list[str]) -> list[Scored]:
    """The scores of rows by these expressions."""
    what = ("expressions", *texts)
    if what not in batch.memo:
        batch.memo[what] = _scores_together(batch, texts) or [score(batch, text) for text in texts]
    found: list[Scored] = batch.memo[what]
    return found


def _scores_together(batch: Batch, texts: list[str]) -> list[Scored] | None:
    """The same by one kernel, where every row has a score by each of them; None: they are to be scored one by one."""
    from skyband.engines.topk.bounds import scores_together  # it loads kernels, which a plan needs not

    axes = OverAxes(texts[0]).columns
    columns = [batch.operand(name).values for name in axes]
    if not batch.rows or any(batch.beyond(name) is not None for name in axes):
        return None
    if any(column.dtype != np.float64 or np.isnan(column).any() for column in columns):
        return None
    scores = scores_together(tuple(texts), axes, columns)
    return None if scores is None else [Scored(key) for key in scores]


def must_part(batch: Batch, texts: list[str], axes: tuple[str, ...]) -> bool:
    """Whether expressions cannot share a window with these rows.

    Some reject other rows, or for another reason, or accept a row without one of its numbers.
    """
    if not batch.rows:
        return False
    first, *others = scores_of(batch, texts)
    for one in others:
        if one.rejected.keys() != first.rejected.keys():
            return True
        if any((rows != one.rejected[reason]).any() for reason, rows in first.rejected.items()):
            return True
    missing = np.logical_or.reduce([np.isnan(batch.numbers(name).values) for name in axes])
    return bool(missing.any() and (missing & first.validated(None).accepted).any())


def own_score(queries: int) -> Scorings:
    """The scoring of objects with one attribute, which is their key."""
    return Scorings(0, False, np.ones((queries, 1)), np.empty((queries, 0)), lambda _, data: data[0])


def validate_family(batch: Batch, by: Any) -> Scored | None:
    """The rows that all of a family reject, without scores; None: a number is so large that they may differ."""
    what = (by.columns, tame_for(by))
    if what not in batch.memo:
        batch.memo[what] = _validate(batch, by)
    validated: Scored | None = batch.memo[what]
    return validated


def _validate(batch: Batch, by: Scoring) -> Scored | None:
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
