"""The choice of an algorithm for a query, by the table in query/algorithms.py.

Engines are loaded when they are first needed: Numba takes its time.
"""

from __future__ import annotations

from skyband.engines.contract import Engine
from skyband.errors import QueryError
from skyband.query.algorithms import Algorithm, algorithm, algorithms, names
from skyband.query.kinds import Query
from skyband.query.scoring import scoring_of
from skyband.query.windows import Ever, UntilDeleted

MOST_K = 10**6  # answers of a query whose engine lays out places for them
MANY = 32  # queries that no family of BLOCK can serve, but one window can: from here on auto keeps it (SMA)


def choose(query: Query) -> str:
    """The name of the algorithm that will answer; a QueryError says why none can."""
    return choose_with_reason(query)[0]


def choose_with_reason(query: Query) -> tuple[str, str]:
    """The name of the algorithm that will answer, and why it."""
    _check_k(query)
    if query.algorithm != "auto":
        row = algorithm(query.kind, query.algorithm)
        _check(row, query)
        return row.name, "asked for by name"
    if isinstance(query.window, UntilDeleted):
        row = next(row for row in algorithms(query.kind) if "until deleted" in row.windows)
        why = "what auto takes for UntilDeleted(): it keeps every object, so a deletion may bring any back"
        return row.name, why
    if isinstance(query.window, Ever):
        able = [row for row in algorithms(query.kind) if "ever" in row.windows]
        if not able:
            raise QueryError(f"{query.kind} takes no Ever() yet. Use Last(...).")
        row = next((row for row in able if row.alternatives or getattr(query, "group", None) is None), able[0])
        return row.name, "what auto takes for Ever(): nothing expires, so it keeps only what can still be an answer"
    if getattr(query, "group", None) is not None:
        row = next(row for row in algorithms(query.kind) if row.alternatives)
        return row.name, "what auto takes for alternatives: no tuple may be dropped where tuples exclude each other"
    count = getattr(query.window, "count", None)
    for row in algorithms(query.kind):
        if count is not None and count <= row.small:
            return row.name, "what auto takes for small windows, where dropping tuples would save little"
    row = algorithms(query.kind)[0]
    return row.name, f"what auto takes: {row.auto}"


def row_of(query: Query) -> Algorithm:
    """The row of the algorithm that will answer."""
    return algorithm(query.kind, choose(query))


def load(kind: str, name: str, *, family: bool = False) -> type[Engine]:
    """The engine's class by its name; the one for many scorings at once, for a family."""
    row = algorithm(kind, name)
    engine: type[Engine] = row.load(row.family if family and row.family else row.engine)
    return engine


# --- what a name cannot do


def _check(row: Algorithm, query: Query) -> None:
    """A QueryError that names those that can, where an algorithm cannot answer a query."""
    kind, name = query.kind, row.name
    if isinstance(query.window, UntilDeleted):
        if "until deleted" not in row.windows:
            able = names(kind, lambda other: "until deleted" in other.windows)
            raise QueryError(
                f"{kind}: {name} forgets objects that newer ones outlive, and a deletion could bring them back. "
                f"For UntilDeleted() use auto or one of {', '.join(able)}, which keep every object."
            )
    elif isinstance(query.window, Ever):
        if "ever" not in row.windows:
            able = names(kind, lambda other: "ever" in other.windows)
            raise QueryError(
                f"{kind}: {name} is for windows that end. For Ever(), where nothing expires, use auto or "
                f"{', '.join(able)}."
            )
    elif query.window.sort == "time" and "time" not in row.windows:
        raise QueryError(
            f"{kind}: {name} promises its error for a fixed number of objects in the window, and {query.window!r} "
            f"holds any number. Use Last(n), or one of {', '.join(names(kind, lambda other: 'time' in other.windows))}."
        )
    if query.per_columns and not row.grouped:
        raise QueryError(
            f"{kind}: {name} tests the order of one stream, and per={list(query.per_columns)} makes many. "
            f"Use BLOCK, which is exact for any order, or another of {', '.join(names(kind))}."
        )
    if getattr(query, "group", None) is not None and not row.alternatives:
        able = names(kind, lambda other: other.alternatives)
        raise QueryError(
            f"{kind}: {name} forgets tuples that newer ones make superfluous, and that is proved only for tuples that "
            f"exist independently, not for alternatives by group={query.group!r}. "  # type: ignore[attr-defined]
            f"Use auto or {', '.join(able)}."
        )
    if row.scorings in _SCORING_CHECKS:
        _SCORING_CHECKS[row.scorings](row, query)


def _check_bounded(row: Algorithm, query: Query) -> None:
    """Grids and sorted lists need a scoring that they can bound."""
    scoring = scoring_of(query.by)  # type: ignore[attr-defined]
    others = names(query.kind, lambda other: not other.keeps_window) or ["auto"]
    if scoring.bound({}) is None:
        raise QueryError(
            f"{query.kind}: {scoring.unbounded}, so {row.name} cannot bound it. Use a sum, a distance or a monotone "
            f"expression, Linear, Product, Quadratic or Nearest, or one of {', '.join(others)}."
        )


def _check_nearest(row: Algorithm, query: Query) -> None:
    scoring = scoring_of(query.by)  # type: ignore[attr-defined]
    if not scoring.smallest_first:
        (same,) = (
            other.name for other in algorithms(query.kind) if other.engine == row.engine and other.name != row.name
        )
        others = names(query.kind, lambda other: not other.keeps_window)
        raise QueryError(
            f"{query.kind}: {row.name} is {same} for nearest neighbours, and {scoring!r} is no Nearest. "
            f"Use {same}, or one of {', '.join(others)}."
        )


def _check_local(row: Algorithm, query: Query) -> None:
    scoring = scoring_of(query.by)  # type: ignore[attr-defined]
    if scoring.pair_form is not None:
        return
    raise QueryError(
        f"{query.kind}: {row.name} reads sorted lists of attributes, and {scoring!r} is no sum or product of "
        '|a.x - b.x| and a.x + b.x. Use sb.Global({"x": "absdiff", ...}), or one of '
        f"{', '.join(names(query.kind, lambda other: other.scorings == 'any'))}."
    )


_SCORING_CHECKS = {"bounded": _check_bounded, "nearest": _check_nearest, "local": _check_local}


def _check_k(query: Query) -> None:
    """Engines that lay out places for k answers have a limit, unless the window holds no more."""
    k, n = getattr(query, "k", 0), getattr(query.window, "count", None)
    if query.kind == "TopKPairs":
        if min(k, k if n is None else n * n) > MOST_K:
            raise QueryError(f"{query.kind}(k={k:,}): there are places for at most {MOST_K:,} pairs. Use a smaller k.")
        return
    named = query.algorithm != "auto" and algorithm(query.kind, query.algorithm).keeps_window
    if not (named or isinstance(query.window, UntilDeleted) or query.kind == "TopKUncertain"):
        return
    if min(k, n or k) > MOST_K:
        raise QueryError(
            f"{query.kind}(k={k:,}): over {query.window!r} there are places for at most {MOST_K:,} answers. "
            "Use a smaller k, or Above for all that pass a threshold."
        )
