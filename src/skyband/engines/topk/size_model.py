"""The expected size of TopK and Above engines: what each keeps of n arrivals in the window of a group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from skyband.engines.size import Size, harmonic
from skyband.engines.topk import odds
from skyband.engines.topk.scorings import OverAxes, family_key, window_scoring
from skyband.query.algorithms import algorithm
from skyband.query.kinds import Above, TopK
from skyband.query.windows import Session, UntilDeleted

_SIFTED = 40  # bytes of an object in a filter
_WAITING = 24 + 8  # of an object in a buffer, and of its id
BUFFER = 2000  # objects of a buffer, unless the query says
HISTORY = 1 << 14  # and of the history of a family of BLOCK
_MILLION = 10**6  # arrivals for which PA's errors are given
_RUNS = {"SA": "strict", "RA": "relaxed"}
_FILTERS = {"SF": "strict", "RF": "relaxed", "PF": "probabilistic"}
Expected = Mapping[str, float]


def strict_size(name: str, query: TopK, n: int | None, expected: Expected) -> Size:
    why = (
        f"It keeps the k-skyband: objects that fewer than {query.most} others outrank and outlive. "
        "No other can become an answer."
    )
    if n is None or n <= query.most:
        return _few(query, n, why)
    kept = odds.strict_size(n, query.most)
    counted = (
        f"Of {n:,} arrivals in a group's window that is k + k·(H_n - H_k) = {kept:,.1f} when scores come in "
        f"random order. Falling scores are the worst case: all {n:,} are kept."
    )
    return Size(kept, (why, counted))


def sorted_size(name: str, query: TopK | Above, n: int | None, expected: Expected) -> Size:
    why = "It keeps what can still become an answer in sorted lists, and ranks it anew at each step: O(kept) a row."
    K = getattr(query, "most", 0) + getattr(query, "offset", 0)
    if isinstance(query, Above) or query.distinct == "last" or isinstance(query.window, UntilDeleted):
        return Size(None if n is None else float(n), (why, "Here that can be every valid object."))
    if n is None or n <= K or isinstance(query.window, Session):
        return Size(float(K), (why, f"Of a group that is the best {K:,} at least."))
    return Size(odds.strict_size(n, K), (why, f"Of {n:,} arrivals in random order about k + offset = {K:,} skybands."))


def block_size(name: str, query: TopK, n: int | None, expected: Expected) -> Size:
    kept = strict_size(name, query, n, expected)
    left_out = (
        f"A push is a buffer: an arrival with {query.most} better ones before it and {query.most} after it in the push "
        "never reaches the skyband. Pushes of one row gain nothing by that."
    )
    notes: tuple[str, ...] = ()
    if family_key(query) is not None:
        notes = (
            "Many such queries that differ only in the numbers of their scoring get one engine, with one buffer of "
            f"the last max({HISTORY:,}, 100 per query) arrivals for all of them: it comes on top.",
        )
    return replace(kept, why=(*kept.why, left_out), notes=notes)


def best_size(name: str, query: TopK, n: int | None, expected: Expected) -> Size:
    why = f"It keeps the {query.k:,} best of each group. Nothing expires, so no other object can become an answer."
    return Size(float(query.k if n is None else min(query.k, n)), (why,))


def list_size(name: str, query: Above, n: int | None, expected: Expected) -> Size:
    why = "It keeps every object above the threshold, since none ever leaves, and no other."
    return Size(None if n is None else float(n), (why,), notes=("At most: if every object is above the threshold.",))


def relaxed_size(name: str, query: TopK, n: int | None, expected: Expected) -> Size:
    why = (
        "It keeps the k-skyband and some dominated objects: it prunes when those below the top k are "
        f"1 + gamma = {1 + query.gamma:g} times as many as the last pruning left."
    )
    if n is None or n <= query.most:
        return _few(query, n, why)
    kept = odds.relaxed_size(n, query.most, query.gamma)
    most = query.most + max(4 * query.most, math.ceil((1 + query.gamma) * (n - query.most)))
    counted = (
        f"Of {n:,} arrivals in a group's window that is {kept:,.1f} when scores come in random order (Lemma 4.9; the "
        f"k-skyband is {odds.strict_size(n, query.most):,.1f} of it), and fewer than {most:,} in any order."
    )
    return Size(kept, (why, counted))


def probabilistic_size(name: str, query: TopK, n: int | None, expected: Expected) -> Size:
    assert n is not None, "PA is for count windows"
    k, sigma, additional = query.most, query.sigma, query.additional
    limit = odds.candidates(n, k, sigma)
    why = (
        f"It keeps the {k:,} best and at most {limit:,} + {additional:,} candidates, and ignores arrivals that rank "
        f"below all of them. The limit of {limit:,} is what sigma = {sigma:g} needs of a window of {n:,}; the rule of "
        f"the paper's Table V gives {odds.table_v(n, k, sigma):,}."
    )
    if k + limit >= n:
        return Size(float(n), (why, "That is the whole window: nothing is ever ignored."))
    missed, false = odds.misses(sigma, _MILLION, n), odds.false_ones(sigma, _MILLION, n)
    error = (
        f"misses under sigma·N/n = {missed:g} answers in a million arrivals, reports under 1.5·sigma·N/n = {false:g} "
        "false ones, on average, if scores come in random order"
    )
    trend = "PA is for random order only: of scores that fall for long it misses almost all. The others are exact."
    return Size(float(min(n, k + limit + additional)), (why,), error, notes=(trend,))


def adaptive_size(name: str, query: TopK, n: int | None, expected: Expected) -> Size:
    capped, strict = probabilistic_size(name, query, n, expected), strict_size(name, query, n, expected)
    why = (
        "PA and BLOCK are fed side by side. Every n/8 arrivals a rank test compares the newest block with the seven "
        "before it: once two windows have passed it PA answers, else BLOCK does.",
    )
    error = capped.error if capped.error == "exact" else f"{capped.error}; exact where the test finds another order"
    kept = (capped.objects or 0) + (strict.objects or 0)
    return Size(kept, (*why, *capped.why, *strict.why), error, notes=("BLOCK alone costs less and is exact.",))


def buffered_size(name: str, query: TopK, n: int | None, expected: Expected) -> Size:
    run, filter_ = name[:2], name[2:]
    k, most = query.most, query.buffer or BUFFER
    half = "spans less than half the window" if (query.window.sort == "time") else "at most (n + 1) // 2 of the window"
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
        sifted = min(sifted, k + odds.candidates(most if (query.window.sort == "time") else b, k, query.sigma))
    besides = sifted * _SIFTED + b * _WAITING
    if n <= k:
        return replace(_few(query, n, why), besides=besides)
    candidates = k * (harmonic(n) - harmonic(max(b, k)))
    kept = k + candidates * (1 + (query.gamma / 2 if run == "RA" else 0))
    counted = (
        f"Of {n:,} arrivals in a group's window about {kept:,.1f} are in the skyband when scores come in random order, "
        f"{sifted:,.1f} in the filter and {b:,} in the buffer."
    )
    note = "Objects are those of the skyband; the bytes are of filter and buffer too."
    return Size(kept, (why, counted), besides=besides, notes=(note,))


def window_size(name: str, query: TopK, n: int | None, expected: Expected) -> Size:
    """The whole window, once for all queries over it, and a run for each."""
    engine = algorithm("TopK", name).engine.partition(":")[2]
    by = window_scoring(query.by)
    d = 1 if by is None else len(by.columns)  # what a grid cannot bound is kept by its score
    typed = isinstance(by, OverAxes)
    why = {
        "TMA": "TMA keeps the whole window in a grid, and searches it again when an answer loses an object.",
        "SMA": "SMA keeps the whole window in a grid, and for each query the k-skyband of its best.",
        "TSL": "TSL keeps the whole window in sorted lists by attribute, and scores every arrival for every query.",
    }[engine]
    note = "All queries over the same columns and window share it: its bytes are counted once, not for each query."
    if query.per_columns:
        note += " Every group has a grid of its own: for many small groups BLOCK is leaner and faster."
    if n is None:
        return Size(None, (why,), notes=(note,))
    each = 8 * (d + typed) + 28 + 8 + (4 * d if engine == "TSL" else 0)  # attributes, age, place, id
    run = 0 if query.kind == "Above" else min(n, query.most)
    counted = f"The window's {n:,} objects take about {each} bytes each."
    return Size(float(run), (why, counted), besides=n * each, notes=(note,))


def _few(query: TopK, n: int | None, why: str) -> Size:
    """The size where the number of arrivals is not known, or is no more than k."""
    if n is None:
        return Size(None, (why,))
    return Size(float(n), (why, f"A window of {n:,} holds no more than k: all are kept."))
