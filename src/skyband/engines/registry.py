"""The choice of an algorithm for a query, by the table in query/algorithms.py.

Engines are loaded when they are first needed: Numba takes its time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skyband.engines.contract import Engine
from skyband.errors import QueryError
from skyband.query.algorithms import Algorithm, algorithm, algorithms, names
from skyband.query.expressions import parse
from skyband.query.expressions.kernels import has_kernels
from skyband.query.kinds import Query
from skyband.query.scoring import scoring_of
from skyband.query.windows import Ever, Session, UntilDeleted

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
    if query.demands:
        row = next(row for row in algorithms(query.kind) if _able(row, query))
        return row.name, f"what auto takes for {_wanted(query.demands)}"
    if isinstance(query.window, UntilDeleted):
        row = next(row for row in algorithms(query.kind) if "until deleted" in row.windows)
        why = "what auto takes for UntilDeleted(): it keeps every object, so a deletion may bring any back"
        return row.name, why
    if isinstance(query.window, Ever):
        able = [row for row in algorithms(query.kind) if "ever" in row.windows]
        alone = getattr(query, "group", None) is None
        row = next(row for row in able if row.alternatives or alone)
        return row.name, f"what auto takes for Ever(): {row.auto}"
    if getattr(query, "group", None) is not None and query.semantics == "u-topk":  # type: ignore[attr-defined]
        return "BS", "what auto takes for u-topk among alternatives: a tuple that is dropped might enter the answer"
    count = getattr(query.window, "count", None)
    for row in algorithms(query.kind):
        if count is not None and count <= row.small:
            return row.name, "what auto takes for small windows, where dropping tuples would save little"
    row = algorithms(query.kind)[0]
    return row.name, f"what auto takes: {row.auto}"


def choose_for_keys(query: Query) -> str | None:
    """The name of the algorithm that will answer, once the only key turns out to be no number; None: none can."""
    rows = [algorithm(query.kind, query.algorithm)] if query.algorithm != "auto" else algorithms(query.kind)
    return next((row.name for row in rows if _able(row, query) and "keys" in row.takes), None)


def row_of(query: Query) -> Algorithm:
    """The row of the algorithm that will answer."""
    return algorithm(query.kind, choose(query))


def load(kind: str, name: str, *, family: bool = False, many: bool = False) -> type[Engine]:
    """The engine's class by its name; for a family that for many scorings at once, many: for many queries of one."""
    row = algorithm(kind, name)
    other = row.family if family else row.many if many else None
    engine: type[Engine] = row.load(other or row.engine)
    return engine


_DEMANDS = {
    "keys": "an order of keys",
    "ranks": "ranks (offset, with_ties, distinct, a k from a column) or sessions",
}


def _wanted(demands: frozenset[str]) -> str:
    return " and ".join(_DEMANDS[one] for one in sorted(demands))


def _able(row: Algorithm, query: Query) -> bool:
    """Whether an algorithm meets the query's demands over its window."""
    return query.demands <= {*row.takes} and query.window.sort in row.windows


# --- what a name cannot do


def _check(row: Algorithm, query: Query) -> None:
    """A QueryError that names those that can, where an algorithm cannot answer a query."""
    kind, name = query.kind, row.name
    if not query.demands <= {*row.takes}:
        able = names(kind, lambda other: _able(other, query))
        raise QueryError(
            f"{kind}: {name} ranks by one score alone, not by {_wanted(query.demands)}. "
            f"Use auto or one of {', '.join(able)}."
        )
    if "ranks" in row.takes and not query.demands:
        others = names(kind, lambda other: "ranks" not in other.takes and _able(other, query))
        raise QueryError(
            f"{kind}: {name} is for what one score cannot say: several keys, ties, offsets, distinct ids, sessions. "
            f"Use auto, which takes it where it is needed, or one of {', '.join(others)}."
        )
    if (sort := query.window.sort) not in row.windows:
        listed = ", ".join(
            names(kind, lambda other: _able(other, query) and ("ranks" not in other.takes or bool(query.demands)))
        )
        if sort == "until deleted":
            raise QueryError(
                f"{kind}: {name} forgets objects that newer ones outlive, and a deletion could bring them back. "
                f"For UntilDeleted() use auto or one of {listed}, which keep every object."
            )
        if sort == "ever":
            raise QueryError(
                f"{kind}: {name} is for windows that end. For Ever(), where nothing expires, use auto or {listed}."
            )
        if row.windows == ("until deleted",):
            raise QueryError(
                f"{kind}: {name} is for UntilDeleted() only: it knows no expiry. Use auto or one of {listed}."
            )
        if row.windows == ("time",):
            raise QueryError(f"{kind}: {name} cuts a time window into panes; {query.window!r} is none. Use {listed}.")
        if row.windows == ("ever",):
            raise QueryError(
                f"{kind}: {name} is for Ever() only: nothing expires from it. Use auto or one of {listed}."
            )
        raise QueryError(
            f"{kind}: {name} promises its error for a fixed number of objects in the window, and {query.window!r} "
            f"holds any number. Use Last(n), or one of {listed}."
        )
    if query.per_columns and not row.grouped and row.scorings == "additive":
        raise QueryError(
            f"{kind}: {name} has one summary for one stream, and per={list(query.per_columns)} makes many. Leave per "
            f"out, or use {', '.join(_others(query, lambda other: other.grouped))}."
        )
    if query.per_columns and not row.grouped:
        raise QueryError(
            f"{kind}: {name} tests the order of one stream, and per={list(query.per_columns)} makes many. "
            f"Use BLOCK, which is exact for any order, or another of {', '.join(_others(query, lambda _: True))}."
        )
    if sort == "ever" and row.alternatives and "ever" in row.windows and getattr(query, "group", None) is None:
        raise QueryError(
            f"{kind}: {name} keeps the whole window, and Ever() is all that ever arrived: only alternatives by group= "
            f"need that. Use auto or {', '.join(names(kind, lambda other: other.windows == ('ever',)))}."
        )
    if getattr(query, "group", None) is not None and row.name == "DOM" and query.semantics == "u-topk":  # type: ignore[attr-defined]
        raise QueryError(
            f"{kind}: DOM drops tuples that newer ones make superfluous, and for u-topk among alternatives "
            f"(group={query.group!r}) none are: an alternative that comes later can bring any back. "  # type: ignore[attr-defined]
            "Use auto or BS, or another of the semantics."
        )
    if getattr(query, "group", None) is not None and not row.alternatives:
        able = _others(query, lambda other: other.alternatives)
        raise QueryError(
            f"{kind}: {name} forgets tuples that newer ones make superfluous, and that is proved only for tuples that "
            f"exist independently, not for alternatives by group={query.group!r}. "  # type: ignore[attr-defined]
            f"Use auto or {', '.join(able)}."
        )
    if row.scorings in _SCORING_CHECKS:
        _SCORING_CHECKS[row.scorings](row, query)


def _others(query: Query, which: Callable[[Algorithm], bool]) -> list[str]:
    """The names that take the window of a query, of the rows that satisfy a condition."""
    return names(query.kind, lambda other: query.window.sort in other.windows and which(other))


def _check_bounded(row: Algorithm, query: Query) -> None:
    """Grids and sorted lists need a scoring that they can bound."""
    scoring = scoring_of(query.by)  # type: ignore[attr-defined]
    others = _others(query, lambda other: not other.keeps_window and "ranks" not in other.takes) or ["auto"]
    if scoring.bound({}) is None:
        raise QueryError(
            f"{query.kind}: {scoring.unbounded}, so {row.name} cannot bound it. Use an expression, "
            f"Linear, Product, Quadratic or Nearest, or one of {', '.join(others)}."
        )


def _check_nearest(row: Algorithm, query: Query) -> None:
    scoring = scoring_of(query.by)  # type: ignore[attr-defined]
    if not scoring.smallest_first:
        (same,) = (
            other.name for other in algorithms(query.kind) if other.engine == row.engine and other.name != row.name
        )
        others = _others(query, lambda other: not other.keeps_window)
        raise QueryError(
            f"{query.kind}: {row.name} is {same} for nearest neighbours, and {scoring!r} is no Nearest. "
            f"Use {same}, or one of {', '.join(others)}."
        )


def _check_local(row: Algorithm, query: Query) -> None:
    scoring, on = scoring_of(query.by), query.on  # type: ignore[attr-defined]
    able = names(query.kind, lambda other: other.scorings == "any" and query.window.sort in other.windows)
    if on is not None and not has_kernels(parse(on, members=("a", "b")).tree):
        raise QueryError(
            f"{query.kind}: {row.name} tests single pairs in its kernels, which cannot compute on={on!r} to the last "
            f"bit. Use arithmetic, comparisons and logic there, or one of {', '.join(able)}."
        )
    if scoring.pair_form is not None:
        return
    raise QueryError(
        f"{query.kind}: {row.name} reads sorted lists of attributes, and {scoring!r} is no sum or product of "
        '|a.x - b.x| and a.x + b.x. Use sb.Global({"x": "absdiff", ...}), or one of '
        f"{', '.join(able)}."
    )


def _check_additive(row: Algorithm, query: Query) -> None:
    groups: Any = query
    score, others = groups.score, groups.having is not None or groups.select or groups.ordered
    alone = score is not None and score.tree.op == "column" and groups.aggregates[0].function in ("count", "sum")
    if not alone or others or not groups.descending or isinstance(query.window, Session):
        raise QueryError(
            f"{query.kind}: {row.name} counts objects up, so it ranks the largest count(*) or sum(x) alone, without "
            f"having, select, orders and sessions; got by={groups.by!r}. Use that, or "
            f"{', '.join(_others(query, lambda other: other.scorings == 'any'))}."
        )


def _check_listed(row: Algorithm, query: Query) -> None:
    parts: Any = query
    if parts.any_parts:
        able = ", ".join(_others(query, lambda other: other.scorings == "any"))
        raise QueryError(
            f'{query.kind}: {row.name} keeps something for each part that is named, and parts="*" names none. Use auto '
            f"or one of {able}, or name the parts."
        )


def _check_estimated(row: Algorithm, query: Query) -> None:
    _check_listed(row, query)
    parts: Any = query
    exact = ", ".join(_others(query, lambda other: other.exact))
    if not query.descending:
        raise QueryError(
            f"{query.kind}: {row.name} drops rows, and with largest=False an object would be better without them. "
            f"Use auto or one of {exact}, which keep every row that counts."
        )
    if parts.unbounded:
        raise QueryError(
            f"{query.kind}: {row.name} estimates what a missing part may bring from its highest value, and "
            f"{parts.unbounded[0]!r} has none. Give it finite bounds, or use auto or one of {exact}."
        )


_SCORING_CHECKS = {
    "listed": _check_listed,
    "estimated": _check_estimated,
    "bounded": _check_bounded,
    "nearest": _check_nearest,
    "local": _check_local,
    "additive": _check_additive,
}


def _check_k(query: Query) -> None:
    """Engines that lay out places for k answers have a limit, unless the window holds no more."""
    k, n = getattr(query, "most", getattr(query, "k", 0)), getattr(query.window, "count", None)
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
