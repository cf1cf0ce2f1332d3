"""Which engine answers which query. Engines are loaded when they are first needed: Numba takes its time."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from skyband.engines.contract import Engine
from skyband.errors import QueryError
from skyband.query.expressions import as_locals, parse, recognise
from skyband.query.kinds import Query, TopKUncertain
from skyband.query.scoring import Global, Nearest
from skyband.query.validation import ALGORITHMS
from skyband.query.windows import Last, UntilDeleted

WINDOWED = {"TMA": "TMA", "SMA": "SMA", "TSL": "TSL", "CPM/W": "TMA", "SNN": "SMA"}  # they keep the window: by class
_GRIDS = {name: f"skyband.engines.topk.{engine.lower()}" for name, engine in WINDOWED.items()}
_PAIRS: dict[str, str] = {
    "SCASE": "skyband.engines.pairs.scase",
    "TA": "skyband.engines.pairs.ta",
    "BASIC": "skyband.engines.pairs.basic",
    "NAIVE": "skyband.engines.pairs.naive",
}

_INCOMPLETE: dict[str, str] = {
    name: f"skyband.engines.incomplete.{name.lower()}" for name in ("SWEEP", "EAA", "SLA", "APPROX", "BUDGET")
}

_UNCERTAIN: dict[str, str] = {
    "DOM": "skyband.engines.uncertain.dom",
    "BS": "skyband.engines.uncertain.bs",
    "CSQ": "skyband.engines.uncertain.csq",
    "CCSQ": "skyband.engines.uncertain.ccsq",
    "SCSQ": "skyband.engines.uncertain.scsq",
    "SCSQ-BUFFER": "skyband.engines.uncertain.scsq_buffer",
}
FEW = 1024  # tuples of a window: as many as DOM would keep, so that BS does (auto)
GROUPED = ("BS",)  # they can tell alternatives that exclude each other

_ENGINES: dict[str, dict[str, str]] = {
    "TopK": {
        "BLOCK": "skyband.engines.topk.block",
        "SA": "skyband.engines.topk.sa",
        "RA": "skyband.engines.topk.ra",
        "PA": "skyband.engines.topk.pa",
        "ADAPTIVE": "skyband.engines.topk.adaptive",
        **dict.fromkeys(("SASF", "SARF", "SAPF", "RASF", "RARF", "RAPF"), "skyband.engines.topk.buffered"),
        **_GRIDS,
    },
    "Above": {name: _GRIDS[name] for name in ("TMA", "SMA", "TSL")},
    "TopKPairs": _PAIRS,
    "TopKIncomplete": _INCOMPLETE,
    "TopKUncertain": _UNCERTAIN,
}


MOST_K = 10**6  # answers of a query over a window that is kept
MANY = 32  # queries that no family of BLOCK can serve, but one window can: from here on auto keeps it (SMA)
APPROXIMATE = ("PA", "ADAPTIVE")  # they miss a few answers, and keep only what their own window needs


def choose(query: Query) -> str:
    """The name of the algorithm that will answer; a QueryError says why none can."""
    built = _ENGINES[query.kind]
    if isinstance(query.window, UntilDeleted):
        return _deletable(query, built)
    if isinstance(query, TopKUncertain):
        return _synopsis(query, built)
    if query.algorithm in APPROXIMATE and query.window.timed:
        exact = [name for name in built if name not in APPROXIMATE]
        raise QueryError(
            f"{query.kind}: {query.algorithm} promises its error for a fixed number of objects in the window, and "
            f"{query.window!r} holds any number. Use Last(n), or one of {', '.join(exact)}."
        )
    if query.algorithm == "ADAPTIVE" and query.per_columns:
        raise QueryError(
            f"{query.kind}: ADAPTIVE tests the order of one stream, and per={list(query.per_columns)} makes many. "
            f"Use BLOCK, which is exact for any order, or another of {', '.join(built)}."
        )
    if query.kind == "TopKPairs":
        _check_pairs(query)
    if query.algorithm == "auto":
        return next(iter(built))
    if query.algorithm not in built:
        raise QueryError(
            f"{query.kind}: algorithm {query.algorithm} is not built yet in this version. "
            f"Use auto or {', '.join(built)} (of {', '.join(ALGORITHMS[query.kind])})."
        )
    if query.algorithm in WINDOWED:
        _check_form(query, built)
    return query.algorithm


def _deletable(query: Query, built: dict[str, str]) -> str:
    """Which engine bears deletions: one that keeps all objects and relies on no order of expiry."""
    able = [name for name in built if WINDOWED.get(name) in ("TMA", "TSL")]
    if query.algorithm == "auto":
        _check_k(query)
        return "TMA"
    if query.algorithm not in able:
        raise QueryError(
            f"{query.kind}: {query.algorithm} forgets objects that newer ones outlive, and a deletion could bring them "
            f"back. For UntilDeleted() use auto or one of {', '.join(able)}, which keep every object."
        )
    _check_form(query, built)
    return query.algorithm


def _synopsis(query: TopKUncertain, built: dict[str, str]) -> str:
    """Which synopsis keeps the window of uncertain tuples."""
    _check_k(query)
    if query.algorithm not in ("auto", *built):
        raise QueryError(
            f"{query.kind}: algorithm {query.algorithm} is not built yet in this version. "
            f"Use auto or {', '.join(built)}."
        )
    if query.group is not None:
        if query.algorithm not in ("auto", *GROUPED):
            raise QueryError(
                f"{query.kind}: {query.algorithm} forgets tuples that newer ones make superfluous, and that is proved "
                f"only for tuples that exist independently, not for alternatives by group={query.group!r}. "
                f"Use auto or {', '.join(GROUPED)}."
            )
        return GROUPED[0]
    if query.algorithm == "auto":
        assert isinstance(query.window, Last)
        return "BS" if query.window.count is not None and query.window.count <= FEW else "DOM"
    return query.algorithm


def _check_form(query: Query, built: dict[str, str]) -> None:
    """Grids and sorted lists need a scoring that they can bound."""
    _check_k(query)
    by: Any = query.by  # type: ignore[attr-defined]
    others = [name for name in built if name not in WINDOWED] or ["auto"]
    if query.algorithm in ("CPM/W", "SNN") and not isinstance(by, Nearest):
        raise QueryError(
            f"{query.kind}: {query.algorithm} is {WINDOWED[query.algorithm]} for nearest neighbours, and {by!r} is no "
            f"Nearest. Use {WINDOWED[query.algorithm]}, or one of {', '.join(others)}."
        )
    if isinstance(by, str):
        if recognise(parse(by)).kind == "opaque":
            raise QueryError(
                f"{query.kind}: {by!r} is not known to rise or fall with each of its columns, so {query.algorithm} "
                f"cannot bound it. Use a sum, a distance or a monotone expression, or one of {', '.join(others)}."
            )
    elif callable(by):
        raise QueryError(
            f"{query.kind}: {query.algorithm} cannot look into a Python function to bound it. Use Linear, Product, "
            f"Quadratic, Nearest or an expression, or one of {', '.join(others)}."
        )


def _check_pairs(query: Query) -> None:
    """Sorted lists need local functions; the band lays out places for the largest k."""
    by: Any = query.by  # type: ignore[attr-defined]
    local = isinstance(by, Global) or (isinstance(by, str) and as_locals(parse(by, members=("a", "b"))) is not None)
    if query.algorithm == "TA" and not local:
        raise QueryError(
            f"{query.kind}: TA reads sorted lists of attributes, and {by!r} is no sum or product of |a.x - b.x| and "
            'a.x + b.x. Use sb.Global({"x": "absdiff", ...}), or one of SCASE, BASIC, NAIVE.'
        )
    k, n = query.k, getattr(query.window, "count", None)  # type: ignore[attr-defined]
    if min(k, k if n is None else n * n) > MOST_K:
        raise QueryError(f"{query.kind}(k={k:,}): there are places for at most {MOST_K:,} pairs. Use a smaller k.")


def _check_k(query: Query) -> None:
    """Engines over a window that may hold any number lay out places for k answers."""
    k, n = getattr(query, "k", 0), getattr(query.window, "count", None)
    if min(k, n or k) > MOST_K:
        raise QueryError(
            f"{query.kind}(k={k:,}): over {query.window!r} there are places for at most {MOST_K:,} answers. "
            "Use a smaller k, or Above for all that pass a threshold."
        )


def load(kind: str, name: str, *, family: bool = False) -> type[Engine]:
    """The engine's class, by its name; of many scorings at once, for a family."""
    if name in WINDOWED:
        family, name = False, WINDOWED[name]
    module = "skyband.engines.topk.family" if family else _ENGINES[kind][name]
    engine: type[Engine] = getattr(import_module(module), f"{name}Family" if family else name.replace("-", ""))
    return engine


def has_family(name: str) -> bool:
    """Can one engine of this name serve many scorings?"""
    return name in ("BLOCK", "PA", "SASF", "SARF", "SAPF", "RASF", "RARF", "RAPF")
