"""Which engine answers which query. Engines are loaded when they are first needed: Numba takes its time."""

from __future__ import annotations

from importlib import import_module

from skyband.checks import ALGORITHMS
from skyband.engines.contract import Engine
from skyband.errors import QueryError
from skyband.query import Query
from skyband.windows import UntilDeleted

_ENGINES = {
    "TopK": {"SA": "skyband.engines.certain.sa"},
}


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
    if query.algorithm == "auto":
        return next(iter(built))
    if query.algorithm not in built:
        raise QueryError(
            f"{query.kind}: algorithm {query.algorithm} is not built yet in this version. "
            f"Use auto or {', '.join(built)} (of {', '.join(ALGORITHMS[query.kind])})."
        )
    return query.algorithm


def load(kind: str, name: str) -> type[Engine]:
    """The engine's class, by its name."""
    engine: type[Engine] = getattr(import_module(_ENGINES[kind][name]), name)
    return engine
