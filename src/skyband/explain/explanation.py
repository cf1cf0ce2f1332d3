"""The result of `explain`: which algorithm answers a query and why, how much it keeps, how exact it is.

A model, not a measurement: nothing is compiled, no data is read. `Monitor.stats()` has what happened.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, cast

from skyband.engines.registry import MANY, choose_with_reason
from skyband.engines.size import Size
from skyband.engines.topk.scorings import OverAxes, auto_key, family_key, window_scoring
from skyband.engines.topk.subscribed_form import SlotForm, slot_form
from skyband.engines.unsubscribed import example_of
from skyband.errors import QueryError
from skyband.explain.form import form_of
from skyband.explain.spark_load import Load, load
from skyband.query.algorithms import algorithm
from skyband.query.kinds import Query, TopK
from skyband.query.windows import Ever, UntilDeleted, Window

_EXPECTED = {
    "rows": "arrivals in one window, all groups together",
    "rate": "arrivals per second, all groups together",
    "groups": "groups of `per`",
    "probability": "mean probability of uncertain objects, 0.5 if not given",
    "queries": "queries that differ in their numbers, their k or the ranges of `where`",
    "keys": "groups of `per` too, and with rate the load on Spark is estimated",
    "every": "seconds between triggers on Spark, 10 if not given",
}


@dataclass(frozen=True)
class Explanation:
    """The result of `explain`.

    Parameters
    ----------
    query
        The query.
    algorithm, why
        The algorithm that answers it, and sentences that say why.
    objects
        Objects expected per group; None: not known.
    bytes
        Bytes expected of all groups; None: not known.
    error
        How exact answers are.
    form
        What was recognised in the scoring, in a word.
    notes
        Limits of the estimate.
    load
        The load on Spark, where keys= was given.

    """

    query: Query
    algorithm: str
    why: tuple[str, ...]
    objects: float | None
    bytes: int | None
    error: str | None
    form: str
    notes: tuple[str, ...] = ()
    load: Load | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        load = {} if self.load is None else {"load": self.load.to_dict()}
        return load | {
            "query": self.query.to_dict(),
            "algorithm": self.algorithm,
            "why": list(self.why),
            "objects": self.objects,
            "bytes": self.bytes,
            "error": self.error,
            "form": self.form,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        known = {
            "query": [repr(self.query)],
            "algorithm": [self.algorithm],
            "form": [self.form],
            "objects": ["not known" if self.objects is None else f"about {self.objects:,.1f} kept per group"],
            "bytes": ["not known" if self.bytes is None else f"about {self.bytes:,} for all groups"],
            "error": [self.error or "not known"],
            "why": self.why,
            "notes": self.notes,
            "on Spark": [] if self.load is None else [str(self.load)],
        }
        lines = []
        for name, texts in known.items():
            for number, text in enumerate(texts):
                label = f"{'' if number else name:<11}"
                lines.append(textwrap.fill(text, 80, initial_indent=label, subsequent_indent=" " * 11))
        return "\n".join(lines)


def explanation(query: Query, expected: dict[str, float]) -> Explanation:
    """The body of `explain`."""
    if not isinstance(query, Query):
        raise QueryError(f"explain takes a query, such as TopK(...); got {query!r}.")
    if query.each:
        return _of_subscriptions(query, expected)
    if unknown := expected.keys() - _EXPECTED.keys():
        known = "; ".join(f"{name} ({meaning})" for name, meaning in _EXPECTED.items())
        raise QueryError(f"explain: {', '.join(sorted(unknown))} is unknown. It knows {known}.")
    for name, number in expected.items():
        _positive(name, number)
    if "keys" not in expected:
        if "every" in expected:
            raise QueryError("explain: every= is of the load on Spark. Give keys= and rate= too.")
        return _explained(query, expected)
    if "groups" in expected:
        raise QueryError("explain: groups and keys say the same thing twice. Give one of them.")
    needed = {name: number for name, number in expected.items() if name != "rate" or query.window.sort == "time"}
    found = _explained(query, needed | ({"groups": expected["keys"]} if query.per_columns else {}))
    return replace(found, load=load(cast(TopK, query), found.objects, found.bytes, expected))


def _of_subscriptions(query: Query, expected: dict[str, float]) -> Explanation:
    """Of a query with `Each`: that of a subscription, and whether subscriptions share an engine."""
    example = example_of(query)
    found = explanation(example, expected)
    form = slot_form(query, example)
    each = ", ".join(query.each)
    values = f"Each subscription brings {each}; objects and bytes are those of one, {example!r}."
    said = "Subscriptions share one engine as columns: one joins or leaves at the price of its own row."
    if isinstance(form, str):
        said = (
            f"Subscriptions do not share an engine as columns, since {form}: each is a plain query. Those that come "
            "before the same row and differ only in k and the window share an engine where such plain queries do."
        )
    notes = (*found.notes, "Numbers beyond 1e100 and ranges of texts make a plain query of their subscription.")
    return replace(
        found, query=query, why=(*found.why, values, said), notes=notes if isinstance(form, SlotForm) else found.notes
    )


def _explained(query: Query, expected: dict[str, float]) -> Explanation:
    name, chosen = _chosen(query, int(expected.get("queries", 1)))
    groups = expected.get("groups", 1) if query.per_columns else 1
    n, unknown = _arrivals(query, query.window, expected, groups)
    form, said, notes = form_of(query)
    row = algorithm(query.kind, name)
    size: Size = row.load(row.size)(name, query, n, expected)
    why = (f"{name} is {chosen}.", *size.why, *said)
    return Explanation(
        query, name, why, size.objects, size.nbytes(groups), size.error, form, (*unknown, *size.notes, *notes)
    )


def _chosen(query: Query, queries: int) -> tuple[str, str]:
    """The algorithm and why it, where so many queries differ in their numbers."""
    name, why = choose_with_reason(query)
    if query.algorithm != "auto" or queries < MANY or not isinstance(query, TopK):
        return name, why
    if isinstance(query.window, UntilDeleted) or query.demands or query.per_columns:
        return name, why
    if name == "BLOCK" and isinstance(window_scoring(query.by), OverAxes):
        return name, (
            f'{why}; algorithm="SMA" lets expressions over the same columns share one window, which is faster unless '
            "scores rise with time or rows have a score for some of them only"
        )
    if auto_key(query) is None:
        return name, why
    if family_key(query) is None:
        return "SMA", f"what auto takes for {queries:,} such queries: they look at one window, which is kept once"
    return name, (
        "what auto takes: queries that differ only in their numbers are one family, and share a ring of arrivals; "
        f"where k or `where` differ too, {MANY} or more share a window by SMA"
    )


# --- what is expected of the stream


def _arrivals(query: Query, window: Window, expected: dict[str, float], groups: float) -> tuple[int | None, list[str]]:
    """Arrivals in the window of one group; and what should be said about that."""
    rows, rate = expected.get("rows"), expected.get("rate")
    notes = []
    if query.per_columns and "groups" not in expected:
        notes.append(f"groups= was not given: this is for one group of {', '.join(query.per_columns)}.")
    if "groups" in expected and not query.per_columns:
        notes.append("groups= makes no difference: the query has no `per`, so one group.")
    if isinstance(window, Ever):
        if rate is not None:
            raise QueryError("explain: Ever() has no end. Give rows, the objects that arrive in all.")
        if rows is None:
            notes.append("Where more arrivals make it larger, objects and bytes need rows= (arrivals in all).")
        return None if rows is None else max(1, round(rows / groups)), notes
    if isinstance(window, UntilDeleted):
        if rate is not None:
            raise QueryError("explain: UntilDeleted() holds what is not deleted. Give rows, the objects at a time.")
        if rows is None:
            notes.append("Objects and bytes need rows= (objects that are there at a time).")
        return None if rows is None else max(1, round(rows / groups)), notes
    if window.count is not None:
        if rows or rate:
            notes.append(f"rows= and rate= make no difference: {window!r} says how many it holds.")
        return window.count, notes
    if rows is not None and rate is not None:
        raise QueryError("explain: rows and rate say the same thing twice. Give one of them.")
    if rate is not None:
        if window.nanoseconds is None:
            raise QueryError(f"explain: rate is per second, but {window!r} has no unit of time. Use rows.")
        rows = rate * window.nanoseconds / 1e9
    if rows is None:
        notes.append("Objects and bytes need rows= (arrivals in one window) or rate= (arrivals per second).")
        return None, notes
    return max(1, round(rows / groups)), notes


def _positive(name: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, Real) or not 0 < float(number) < math.inf:
        raise QueryError(f"explain: {name} must be a number above 0 ({_EXPECTED[name]}); got {number!r}.")
    if name in ("groups", "queries", "keys") and float(number) < 1:
        raise QueryError(f"explain: {name} must be at least 1; got {number!r}.")
