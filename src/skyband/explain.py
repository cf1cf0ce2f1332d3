"""What a Monitor would do with a query: which algorithm and why, how much it keeps, how exact it is.

A model, not a measurement: nothing is compiled, no data is read. `Monitor.stats()` tells what happened.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, cast

from skyband.engines.certain import odds
from skyband.engines.incomplete.expected import row_model
from skyband.engines.registry import MANY, WINDOWED, choose
from skyband.errors import QueryError
from skyband.explain_load import Load, load
from skyband.explain_pairs import explain_pairs
from skyband.explain_uncertain import AUTO, synopsis
from skyband.expressions import Form, parse, recognise
from skyband.families import auto_key, family_key, plain_scoring
from skyband.query import Query, TopK, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.scoring import Linear, Nearest
from skyband.windows import UntilDeleted, Window

_OBJECT = 40 + 8  # bytes of an object in an engine, and of its id
_SIFTED = 40  # of an object in a filter
_WAITING = 24 + 8  # of an object in a buffer, and of its id
_BUFFER = 2000  # objects of a buffer, unless the query says
_MILLION = 10**6  # arrivals for which PA's errors are told

_EXPECTED = {
    "rows": "arrivals in one window, all groups together",
    "rate": "arrivals per second, all groups together",
    "groups": "groups of `per`",
    "probability": "mean probability of uncertain objects, 0.5 if not given",
    "queries": "queries that differ in their numbers, their k or the ranges of `where`",
    "keys": "groups of `per` too, and with rate the load on Spark is told",
    "every": "seconds between triggers on Spark, 10 if not given",
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
    load: Load | None = None  # on Spark, where keys= was given

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        told = {} if self.load is None else {"load": self.load.to_dict()}
        return told | {
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


def explain(query: Query, **expected: float) -> Explanation:
    """The algorithm chosen and why, the objects and bytes expected, the error bound.

    What to expect of the stream: for time windows rows (arrivals in a window) or rate (arrivals per second),
    of all groups together; groups (how many). What a Monitor would refuse raises the same QueryError.
    With keys (instead of groups) and rate it also tells the load on Spark, by a model that docs/scale.md has the
    error of: `load`, with cores, shuffle_bytes per second, state_bytes and trigger_seconds.

    >>> import skyband as sb
    >>> e = explain(sb.TopK(k=10, by="0.7*x + 0.3*y", window=sb.Last(1000)))
    >>> e.algorithm, e.form, round(e.objects, 1), e.error
    ('BLOCK', 'linear', 55.6, 'exact')
    """
    if not isinstance(query, Query):
        raise QueryError(f"explain takes a query, such as TopK(...); got {query!r}.")
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
    needed = {name: number for name, number in expected.items() if name != "rate" or query.window.timed}
    found = _explained(query, needed | ({"groups": expected["keys"]} if query.per_columns else {}))
    return replace(found, load=load(cast(TopK, query), found.objects, found.bytes, expected))


def _explained(query: Query, expected: dict[str, float]) -> Explanation:
    if isinstance(query, TopKPairs):
        return _explain_pairs(query, expected)
    if isinstance(query, TopKIncomplete):
        return _incomplete(query, expected)
    asked = cast(TopK, query)  # or Above: what they share
    algorithm, chosen = _chosen(asked, int(expected.get("queries", 1)))
    form, said, notes = _form(asked)
    groups = expected.get("groups", 1) if query.per_columns else 1
    n, doubts = _arrivals(asked, query.window, expected, groups)
    if isinstance(query, TopKUncertain):
        kept = _Kept(*synopsis(query, algorithm, n, expected.get("probability", 0.5)))
    else:
        kept = _MODELS[algorithm](asked, n)
    return Explanation(
        query,
        algorithm,
        (f"{algorithm} is {chosen}.", *kept.why, said),
        kept.objects,
        None if kept.objects is None else round(groups * (kept.objects * _OBJECT + kept.besides)),
        kept.error,
        form,
        (*doubts, *kept.notes, *notes),
    )


def _explain_pairs(query: TopKPairs, expected: dict[str, float]) -> Explanation:
    algorithm = choose(query)
    chosen = "what auto takes: any scoring, and one pass over the window an arrival"
    groups = expected.get("groups", 1) if query.per_columns else 1
    n, doubts = _arrivals(query, query.window, expected, groups)
    objects, size, why, form = explain_pairs(query, n, groups)
    first = f"{algorithm} is {chosen if query.algorithm == 'auto' else 'asked for by name'}."
    shared = "All queries with this scoring share one window and one skyband, of the largest k and the longest window."
    notes = (*doubts, shared, "Columns named in keep= come on top of the bytes, twice in changes: of both members.")
    return Explanation(query, algorithm, (first, *why), objects, size, "exact", form, notes)


def _incomplete(query: TopKIncomplete, expected: dict[str, float]) -> Explanation:
    """Objects whose parts come in separate rows."""
    algorithm, groups = choose(query), expected.get("groups", 1) if query.per_columns else 1
    n, doubts = _arrivals(cast(TopK, query), query.window, expected, groups)
    kept = row_model(query, algorithm, n)
    chosen = "asked for by name" if query.algorithm != "auto" else "what auto takes: exact, and the fastest of them"
    size = None if kept.rows is None else round(groups * (kept.rows * kept.each + kept.besides))
    form = query.combine if isinstance(query.combine, str) else repr(query.combine)
    why = (f"{algorithm} is {chosen}.", kept.why)
    return Explanation(query, algorithm, why, kept.rows, size, kept.error, form, (*doubts, *kept.notes))


def _chosen(query: TopK, queries: int) -> tuple[str, str]:
    """The algorithm, and why it."""
    algorithm = choose(query)
    if query.algorithm != "auto":
        return algorithm, "asked for by name"
    if isinstance(query.window, UntilDeleted):
        return algorithm, "what auto takes for UntilDeleted(): it keeps every object, so a deletion may bring any back"
    if isinstance(query, TopKUncertain):
        return algorithm, AUTO[algorithm if query.group is None else "alternatives"]
    if query.kind == "Above":
        return algorithm, "what auto takes for thresholds: an object is held only against queries whose cells it is in"
    if queries >= MANY and auto_key(query) is not None and family_key(query) is None:
        return "SMA", f"what auto takes for {queries:,} such queries: they look at one window, which is kept once"
    if queries >= MANY and auto_key(query) is not None:
        why = "what auto takes: queries that differ only in their numbers are one family, and share a ring of arrivals"
        return algorithm, f"{why}; where k or `where` differ too, {MANY} or more share a window by SMA"
    return algorithm, "what auto takes: exact on any stream, and most arrivals of a push cost it two comparisons"


# --- what an algorithm keeps of n arrivals in the window of a group (None: not known)


@dataclass(frozen=True)
class _Kept:
    """Objects that can be answers, and the bytes of what else a group has."""

    objects: float | None
    why: tuple[str, ...]
    error: str = "exact"
    besides: float = 0
    notes: tuple[str, ...] = ()


def _strict(query: TopK, n: int | None) -> _Kept:
    why = (
        f"It keeps the k-skyband: objects that fewer than {query.k} others outrank and outlive. "
        "No other can become an answer."
    )
    if n is None or n <= query.k:
        return _few(query, n, why)
    kept = odds.strict_size(n, query.k)
    counted = (
        f"Of {n:,} arrivals in a group's window that is k + k·(H_n - H_k) = {kept:,.1f} when scores come in "
        f"random order. Falling scores are the worst case: all {n:,} are kept."
    )
    return _Kept(kept, (why, counted))


def _block(query: TopK, n: int | None) -> _Kept:
    kept = _strict(query, n)
    left_out = (
        f"A push is a buffer: an arrival with {query.k} better ones before it and {query.k} after it in the push "
        "never reaches the skyband. Pushes of one row gain nothing by that."
    )
    notes: tuple[str, ...] = ()
    if isinstance(query.by, Linear | Nearest) and not query.per_columns:
        notes = (
            "Many such queries that differ only in the numbers of their scoring get one engine, with one buffer of "
            f"the last max({_BUFFER:,}, 100 per query) arrivals for all of them: it comes on top.",
        )
    return replace(kept, why=(*kept.why, left_out), notes=notes)


def _relaxed(query: TopK, n: int | None) -> _Kept:
    why = (
        "It keeps the k-skyband and some dominated objects: it prunes when those below the top k are "
        f"1 + gamma = {1 + query.gamma:g} times as many as the last pruning left."
    )
    if n is None or n <= query.k:
        return _few(query, n, why)
    kept = odds.relaxed_size(n, query.k, query.gamma)
    most = query.k + max(4 * query.k, math.ceil((1 + query.gamma) * (n - query.k)))
    counted = (
        f"Of {n:,} arrivals in a group's window that is {kept:,.1f} when scores come in random order (Lemma 4.9; the "
        f"k-skyband is {odds.strict_size(n, query.k):,.1f} of it), and fewer than {most:,} in any order."
    )
    return _Kept(kept, (why, counted))


def _capped(query: TopK, n: int | None) -> _Kept:
    assert n is not None, "PA is for count windows"
    k, sigma, additional = query.k, query.sigma, query.additional
    limit = odds.candidates(n, k, sigma)
    why = (
        f"It keeps the {k:,} best and at most {limit:,} + {additional:,} candidates, and ignores arrivals that rank "
        f"below all of them. The limit of {limit:,} is what sigma = {sigma:g} needs of a window of {n:,}; the rule of "
        f"the paper's Table V gives {odds.table_v(n, k, sigma):,}."
    )
    if k + limit >= n:
        return _Kept(float(n), (why, "That is the whole window: nothing is ever ignored."))
    missed, false = odds.misses(sigma, _MILLION, n), odds.false_ones(sigma, _MILLION, n)
    error = (
        f"misses under sigma·N/n = {missed:g} answers in a million arrivals, reports under 1.5·sigma·N/n = {false:g} "
        "false ones, on average, if scores come in random order"
    )
    trend = "PA is for random order only: of scores that fall for long it misses almost all. The others are exact."
    return _Kept(float(min(n, k + limit + additional)), (why,), error, notes=(trend,))


def _adaptive(query: TopK, n: int | None) -> _Kept:
    capped, strict = _capped(query, n), _strict(query, n)
    why = (
        "PA and BLOCK are fed side by side. Every n/8 arrivals a rank test compares the newest block with the seven "
        "before it: once two windows have passed it PA answers, else BLOCK does.",
    )
    error = capped.error if capped.error == "exact" else f"{capped.error}; exact where the test finds another order"
    kept = (capped.objects or 0) + (strict.objects or 0)
    return _Kept(kept, (*why, *capped.why, *strict.why), error, notes=("BLOCK alone costs less and is exact.",))


def _buffered(run: str, filter_: str, query: TopK, n: int | None) -> _Kept:
    k, most = query.k, query.buffer or _BUFFER
    half = "spans less than half the window" if query.window.timed else "at most (n + 1) // 2 of the window"
    why = (
        f"A buffer of recent arrivals and a {_FILTERS[filter_]} filter of these stand before a {_RUNS[run]} k-skyband. "
        f"An object reaches it if it is among the filter's {k:,} best when it arrives, or not dominated by {k:,} of "
        f"the filter when it leaves the buffer. The buffer holds up to {most:,} and {half} (Theorem 5.1)."
    )
    if n is None:
        return _few(query, n, why)
    b = min(most, (n + 1) // 2)
    sifted = float(b)
    if filter_ == "SF":
        sifted = odds.strict_size(b, k)
    elif filter_ == "RF" and b >= 5 * k:  # a smaller one never reaches its first limit of 4·k candidates
        sifted = odds.relaxed_size(b, k, query.gamma)
    elif filter_ == "PF":
        sifted = min(sifted, k + odds.candidates(most if query.window.timed else b, k, query.sigma))
    besides = sifted * _SIFTED + b * _WAITING
    if n <= k:
        return replace(_few(query, n, why), besides=besides)
    candidates = k * (odds.harmonic(n) - odds.harmonic(max(b, k)))
    kept = k + candidates * (1 + (query.gamma / 2 if run == "RA" else 0))
    counted = (
        f"Of {n:,} arrivals in a group's window about {kept:,.1f} are in the skyband when scores come in random order, "
        f"{sifted:,.1f} in the filter and {b:,} in the buffer."
    )
    note = "Objects are those of the skyband; the bytes are of filter and buffer too."
    return _Kept(kept, (why, counted), besides=besides, notes=(note,))


def _windowed(name: str, query: TopK, n: int | None) -> _Kept:
    """The whole window, once for all queries over it; and a run for each."""
    by = plain_scoring(query.by)
    d = 1 if by is None else len(by.columns)  # what a grid cannot bound is kept by its score
    why = {
        "TMA": "TMA keeps the whole window in a grid, and searches it again when an answer loses an object.",
        "SMA": "SMA keeps the whole window in a grid, and for each query the k-skyband of its best.",
        "TSL": "TSL keeps the whole window in sorted lists by attribute, and scores every arrival for every query.",
    }[WINDOWED[name]]
    note = "All queries over the same columns and window share it: its bytes are counted once, not for each query."
    if query.per_columns:
        note += " Every group has a grid of its own: for many small groups BLOCK is leaner and faster."
    if n is None:
        return _Kept(None, (why,), notes=(note,))
    each = 8 * d + 28 + 8 + (4 * d if WINDOWED[name] == "TSL" else 0)  # attributes, age, place, id
    run = 0 if query.kind == "Above" else min(n, query.k)
    counted = f"The window's {n:,} objects take about {each} bytes each."
    return _Kept(float(run), (why, counted), besides=n * each, notes=(note,))


def _few(query: TopK, n: int | None, why: str) -> _Kept:
    """How many arrive is not known, or no more than k."""
    if n is None:
        return _Kept(None, (why,))
    return _Kept(float(n), (why, f"A window of {n:,} holds no more than k: all are kept."))


_RUNS = {"SA": "strict", "RA": "relaxed"}
_FILTERS = {"SF": "strict", "RF": "relaxed", "PF": "probabilistic"}
_MODELS: dict[str, Callable[[TopK, int | None], _Kept]] = {
    "BLOCK": _block,
    "SA": _strict,
    "RA": _relaxed,
    "PA": _capped,
    "ADAPTIVE": _adaptive,
    **{run + filter_: partial(_buffered, run, filter_) for run in _RUNS for filter_ in _FILTERS},
    **{name: partial(_windowed, name) for name in WINDOWED},
}


# --- what is asked, and what is expected


def _arrivals(query: Query, window: Window, expected: dict[str, float], groups: float) -> tuple[int | None, list[str]]:
    """Arrivals in the window of one group; and what should be said about that."""
    rows, rate = expected.get("rows"), expected.get("rate")
    notes = []
    if query.per_columns and "groups" not in expected:
        notes.append(f"groups= was not given: this is for one group of {', '.join(query.per_columns)}.")
    if "groups" in expected and not query.per_columns:
        notes.append("groups= makes no difference: the query has no `per`, so one group.")
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
    if name in ("groups", "queries", "keys") and float(number) < 1:
        raise QueryError(f"explain: {name} must be at least 1; got {number!r}.")
