"""What a Monitor would do with a query: which algorithm and why, how much it keeps, how exact it is.

A model, not a measurement: nothing is compiled, no data is read. `Monitor.stats()` tells what happened.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

from skyband.engines.registry import choose
from skyband.errors import QueryError
from skyband.expressions import Form, parse, recognise
from skyband.query import Query, TopK
from skyband.scoring import Nearest
from skyband.windows import Last

_OBJECT = 40 + 8  # bytes of an object in an engine, and of its id

_EXPECTED = {
    "rows": "arrivals in one window, all groups together",
    "rate": "arrivals per second, all groups together",
    "groups": "groups of `per`",
}


@dataclass(frozen=True)
class Explanation:
    """What `explain` says. `objects` are per group, `bytes` of all groups; None: not known."""

    query: Query
    algorithm: str
    why: tuple[str, ...]
    objects: float | None
    bytes: int | None
    error: str | None
    form: str
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
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
        }
        lines = []
        for name, texts in known.items():
            for number, text in enumerate(texts):
                label = f"{'' if number else name:<11}"
                lines.append(textwrap.fill(text, 80, initial_indent=label, subsequent_indent=" " * 11))
        return "\n".join(lines)


def explain(query: Query, **expected: float) -> Explanation:
    """The algorithm chosen and why, the objects and bytes expected, the error bound.

    What to expect of the stream: for time windows rows (arrivals in a window) or rate (arrivals per second),
    of all groups together; groups (how many). What a Monitor would refuse raises the same QueryError.

    >>> import skyband as sb
    >>> e = explain(sb.TopK(k=10, by="0.7*x + 0.3*y", window=sb.Last(1000)))
    >>> e.algorithm, e.form, round(e.objects, 1), e.error
    ('SA', 'linear', 55.6, 'exact')
    """
    if not isinstance(query, Query):
        raise QueryError(f"explain takes a query, such as TopK(...); got {query!r}.")
    if unknown := expected.keys() - _EXPECTED.keys():
        known = "; ".join(f"{name} ({meaning})" for name, meaning in _EXPECTED.items())
        raise QueryError(f"explain: {', '.join(sorted(unknown))} is unknown. It knows {known}.")
    for name, number in expected.items():
        _positive(name, number)
    algorithm = choose(query)
    asked = cast(TopK, query)  # the only kind that has engines yet
    form, said, notes = _form(asked)
    groups = expected.get("groups", 1) if query.per_columns else 1
    n, doubts = _arrivals(asked, cast(Last, query.window), expected, groups)
    objects, error, why = _MODELS[algorithm](asked, n)
    chosen = "what auto takes: this version has no other" if query.algorithm == "auto" else "asked for by name"
    return Explanation(
        query,
        algorithm,
        (f"{algorithm} is {chosen}.", *why, said),
        objects,
        None if objects is None else round(objects * groups * _OBJECT),
        error,
        form,
        (*doubts, *notes),
    )


# --- how much an algorithm keeps, of n arrivals in the window of a group: objects, error bound, reasons


def _strict(query: TopK, n: int | None) -> tuple[float | None, str, tuple[str, ...]]:
    why = (
        f"It keeps the k-skyband: objects that fewer than {query.k} others outrank and outlive. "
        "No other can become an answer."
    )
    if n is None:
        return None, "exact", (why,)
    if n <= query.k:
        return float(n), "exact", (why, f"A window of {n:,} holds no more than k: all are kept.")
    kept = query.k + query.k * (_harmonic(n) - _harmonic(query.k))
    counted = (
        f"Of {n:,} arrivals in a group's window that is k + k·(H_n - H_k) = {kept:,.1f} when scores come in "
        f"random order. Falling scores are the worst case: all {n:,} are kept."
    )
    return kept, "exact", (why, counted)


_Model = Callable[[TopK, int | None], tuple[float | None, str, tuple[str, ...]]]
_MODELS: dict[str, _Model] = {"SA": _strict}


def _harmonic(n: int) -> float:
    if n < 100:
        return sum(1 / i for i in range(1, n + 1))
    return math.log(n) + 0.5772156649015329 + 1 / (2 * n) - 1 / (12 * n * n)


# --- what is asked, and what is expected


def _arrivals(query: TopK, window: Last, expected: dict[str, float], groups: float) -> tuple[int | None, list[str]]:
    """Arrivals in the window of one group; and what should be said about that."""
    rows, rate = expected.get("rows"), expected.get("rate")
    notes = []
    if query.per_columns and "groups" not in expected:
        notes.append(f"groups= was not given: this is for one group of {', '.join(query.per_columns)}.")
    if "groups" in expected and not query.per_columns:
        notes.append("groups= makes no difference: the query has no `per`, so one group.")
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


def _form(query: TopK) -> tuple[str, str, list[str]]:
    """What was recognised in the scoring: one word, a sentence, notes."""
    notes = ["Columns named in keep= come on top of the bytes."]
    if query.where is not None:
        notes.insert(0, "Objects that fail `where` are never kept: expect fewer objects and bytes than this.")
    best = f"The {'largest' if query.descending else 'smallest'} score is best"
    if callable(query.by):
        return "function", f"{best}; the form of a Python function is not known.", notes
    if not isinstance(query.by, str):
        word = "distance" if isinstance(query.by, Nearest) else type(query.by).__name__.lower()
        return word, f"{best}; {query.by!r} says its form itself.", notes
    form = recognise(parse(query.by))
    if form.kind == "distance" and query.descending:
        far = "A typed distance ranks the far ones first. For the near ones: largest=False (--smallest)."
        notes.insert(0, far)
    return form.kind, f"{best}; in {query.by!r} {_recognised(form)}.", notes


def _recognised(form: Form) -> str:
    weighed = " + ".join(f"{weight:g}·{name}" for name, weight in form.weights)
    match form.kind:
        case "column":
            return "skyband recognises a column"
        case "linear":
            constant = f" + {form.constant:g}" if form.constant else ""
            return f"skyband recognises a linear form, {weighed}{constant}"
        case "distance":
            centre = ", ".join(f"{name}={at:g}" for name, at in form.centre)
            return f"skyband recognises the {form.metric} distance to {centre}"
        case "monotone":
            words = {1: "rises", -1: "falls"}
            ways = ", ".join(f"{words[way]} with {name}" for name, way in form.directions)
            return f"skyband recognises a monotone form: it {ways}"
    return "skyband recognises no form that an engine could use"


def _positive(name: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, Real) or not 0 < float(number) < math.inf:
        raise QueryError(f"explain: {name} must be a number above 0 ({_EXPECTED[name]}); got {number!r}.")
    if name == "groups" and float(number) < 1:
        raise QueryError(f"explain: groups must be at least 1; got {number!r}.")
