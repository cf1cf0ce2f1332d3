"""Invariants of TALLY: what kernels rely on, and everything else from the rows up."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.contract import Floats, Ints
from skyband.engines.groups.kernels.ranks import INSIDE
from skyband.engines.groups.kernels.state import (
    COUNT,
    DISTINCT,
    ENDLESS,
    FIRST,
    HOT,
    KEYED,
    LAST,
    LIVE,
    MOST,
    OBJECTS,
    SESSION,
    SUM,
)
from skyband.engines.groups.ordered import OrderedRanking
from skyband.engines.groups.snapshot import last_stamps, rows_by_age
from skyband.engines.invariants import FAR, check_ages, distinct, near, owners, require, within

if TYPE_CHECKING:
    from skyband.engines.groups.store import Store
    from skyband.engines.groups.tally import TALLY
    from skyband.engines.groups.view import View


def check_stored(engine: TALLY, rows: Any, values: Floats, sizes: Ints, counts: Ints) -> None:
    """Stored rows of a stranger, before kernels see them."""
    require(near(rows["stamp"]) and within(rows["serial"], 0, FAR - 1), "rows have stamps and serials")
    require(distinct(rows["serial"]), "every row is there once")
    lowest = -1 if engine.longest.store.mode in (KEYED, SESSION) else 0  # which keep rows that fail `where`
    require(within(rows["object"], lowest, np.iinfo(np.int32).max), "rows belong to objects")
    require((rows["object"] < counts[owners(sizes)]).all(), "rows belong to objects of their group")
    groups, known = owners(sizes), rows["object"] >= 0
    starts = np.cumsum(counts) - counts
    used = np.zeros(int(counts.sum()), np.bool_)
    used[(starts[groups] + rows["object"])[known]] = True
    require(used.all(), "every object has a row")
    check_arguments(engine, values)


def check_arguments(engine: TALLY, values: Floats) -> None:
    """Arguments that a query would have accepted."""
    for one in engine.longest.store.measures:
        if one["function"] not in (COUNT, DISTINCT):
            column = values[:, one["column"]]
            require(not np.isnan(column).any(), "arguments are numbers")
            require(one["function"] != SUM or np.isfinite(column).all(), "what is summed is finite")


def check_view(view: View, *, deep: bool, now: Ints | None) -> None:
    """Check a view: ages always; deep: every aggregate, chain and ranking."""
    store = view.store
    rows, slots, groups = rows_by_age(store)
    if store.mode != ENDLESS:
        order = np.argsort(groups, kind="stable")
        sizes = np.bincount(groups, minlength=len(store.groups))
        if store.mode == SESSION:  # whose newest row keeps all others
            rows_now = last_stamps(store)[sizes > 0]
            check_ages(rows_now, (sizes > 0).astype(np.int64), now, store.length)
        else:
            check_ages(store.rows["stamp"][rows[order]], sizes, now, store.length)
        require((sizes == store.groups["rows"]).all(), "rows of a group are counted")
        require(len(rows) == store.facts[LIVE], "rows are counted")
        counts = np.bincount(slots[slots >= 0], minlength=len(store.slots))
        require((counts == store.slots["count"]).all(), "rows of an object are counted")
    require(store.facts[OBJECTS] == np.count_nonzero(store.there), "objects are counted")
    if deep:
        if store.mode != ENDLESS:
            for s in np.flatnonzero(store.there).tolist():
                _check_object(store, s, rows[slots == s])
        _check_rankings(view)


def _check_object(store: Store, s: int, rows: Ints) -> None:
    """One object against its rows, the oldest first."""
    assert store.slots["serial"][s] == store.rows["serial"][rows[-1]], "the newest row is known"
    if store.slots["cold"][s]:
        assert (store.values[rows, 0] < store.bound[0]).all(), "cold objects are below the bound"
        assert (store.ends[s] == -1).all(), "rows below the bound are in no chain"
        return
    read = store.read(np.array([s])).values[:, 0]
    for m, one in enumerate(store.measures):
        values = store.values[rows, one["column"]] if one["column"] >= 0 else np.zeros(len(rows))
        match int(one["function"]):
            case 0:
                expected = float(len(rows))
            case 1:
                expected = rounded(sum(map(Fraction, values.tolist()), Fraction(0)))
            case 2:
                expected = float(values.max())
            case 3:
                expected = float(values[0])
            case 4:
                expected = float(values[-1])
            case _:
                expected = float(len(np.unique(values.view(np.int64))))
        assert tuple(range(6)) == (COUNT, SUM, MOST, FIRST, LAST, DISTINCT)
        assert read[m] == expected, f"aggregate {m} of object {s}: {read[m]!r} is not {expected!r}"


def rounded(exact: Fraction | int) -> float:
    """The nearest float64; an infinity beyond them."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _check_rankings(view: View) -> None:
    """The k best of each group are inside, as they are now."""
    if view.store.open:
        return
    slots = np.flatnonzero(view.store.there)
    events, scores = view.scores(slots)
    groups = view.store.slots["group"][slots].astype(np.int64)
    for ranking in view.rankings:
        order, _ = ranking.best(groups, events, scores, ranking.k, whole=True)
        inside = np.flatnonzero(ranking.ranks["place"] == INSIDE)
        assert set(slots[order].tolist()) == set(inside.tolist()), "the k best are inside"
        keys = ranking.ranks["key"][slots]
        if isinstance(ranking, OrderedRanking):
            check_trees(ranking, slots, groups)
            continue
        assert ((keys == scores.keys) | (np.isnan(keys) & np.isnan(scores.keys))).all(), "keys are up to date"
        assert ranking.heads["size"].sum() == len(inside), "who is inside is counted"
        hot = int(np.count_nonzero(view.store.slots["cold"][slots] == 0))
        assert view.store.bound[0] == -np.inf or len(inside) == ranking.k, "no cold object can be an answer"
        assert view.store.bound[0] == -np.inf or hot == view.store.facts[HOT], "objects above the bound are counted"


def check_trees(ranking: OrderedRanking, slots: Ints, groups: Ints) -> None:
    """Every object that can be an answer is in the tree of its group, in order, and subtrees are counted."""
    nodes, rows = ranking.nodes, ranking.order.comparable(ranking.keys).tolist()
    for g, head in enumerate(ranking.heads):
        walk: list[int] = []

        def visit(s: int, walk: list[int] = walk) -> int:
            if s < 0:
                return 0
            left = visit(int(nodes["left"][s]))
            walk.append(s)
            size = left + 1 + visit(int(nodes["right"][s]))
            assert nodes["size"][s] == size, "subtrees are counted"
            return size

        visit(int(head["root"]))
        known = slots[(groups == g) & ~np.isnan(ranking.ranks["key"][slots])]
        assert set(walk) == set(known.tolist()), "a tree has the objects of its group"
        assert all(rows[a] > rows[b] for a, b in pairwise(walk)), "a tree is in order"
