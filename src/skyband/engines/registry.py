"""Which engine answers which query. Engines are loaded when they are first needed: Numba takes its time."""

from __future__ import annotations

from importlib import import_module

from skyband.checks import ALGORITHMS
from skyband.engines.contract import Engine
from skyband.errors import QueryError
from skyband.query import Query
from skyband.windows import UntilDeleted

_ENGINES = {
    "TopK": {
        "BLOCK": "skyband.engines.certain.block",
        "SA": "skyband.engines.certain.sa",
        "RA": "skyband.engines.certain.ra",
        "PA": "skyband.engines.certain.pa",
        "ADAPTIVE": "skyband.engines.certain.adaptive",
        **dict.fromkeys(("SASF", "SARF", "SAPF", "RASF", "RARF", "RAPF"), "skyband.engines.certain.buffered"),
    },
}


APPROXIMATE = ("PA", "ADAPTIVE")  # they miss a few answers, and keep only what their own window needs


def choose(query: Query) -> str:
    """The name of the algorithm that will answer; a QueryError says why none can."""
    built = _ENGINES.get(query.kind, {})
    if not built:
        raise QueryError(
            f"{query.kind}: no engine answers this kind of query yet in this version of skyband; TopK works. "
            "The value itself is valid and can be stored."
        )
    if isinstance(query.window, UntilDeleted):
        raise QueryError(
            f"{query.kind}: {', '.join(built)} forgets objects that newer ones outlive, and a deletion could bring "
            "them back. UntilDeleted() needs a grid engine (TMA), which this version does not have yet; use Last(...)."
        )
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
    if query.algorithm == "auto":
        return next(iter(built))
    if query.algorithm not in built:
        raise QueryError(
            f"{query.kind}: algorithm {query.algorithm} is not built yet in this version. "
            f"Use auto or {', '.join(built)} (of {', '.join(ALGORITHMS[query.kind])})."
        )
    return query.algorithm


def load(kind: str, name: str, *, family: bool = False) -> type[Engine]:
    """The engine's class, by its name; of many scorings at once, for a family."""
    module = "skyband.engines.certain.family" if family else _ENGINES[kind][name]
    engine: type[Engine] = getattr(import_module(module), f"{name}Family" if family else name)
    return engine


def has_family(name: str) -> bool:
    """Can one engine of this name serve many scorings?"""
    return name in ("BLOCK", "PA", "SASF", "SARF", "SAPF", "RASF", "RARF", "RAPF")
