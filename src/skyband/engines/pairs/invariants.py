"""The invariants of engines of pairs: what kernels rely on in stored arrays, and what tests check."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.contract import Ints
from skyband.engines.invariants import check_ages, distinct, near, owners, require, rising, within
from skyband.engines.pairs.group import Group, Records, gathered, ids_of
from skyband.engines.pairs.kernels.programs import Program, run_once
from skyband.engines.pairs.kernels.records import BASE, BASIC, LARGEST, NEVER, PRODUCT, SQUARES, TYPED

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs

CHECKED = 40  # objects: windows up to here are checked pair by pair


def check_stored(engine: Pairs, objects: Records, pairs: Records, sizes: Ints) -> None:
    """Objects and pairs as they are stored, so many of each group: the members of a pair are valid objects."""
    counts, kept = sizes[:, 0], sizes[:, 1]
    stamps, serials = objects["stamp"], objects["serial"]
    require(near(stamps) and within(serials, 0, NEVER - 1), "objects have stamps and serials")
    require(rising(counts, stamps, serials), "objects are in order of age")
    require(distinct(serials, owners(counts)), "an object is kept once")
    require(not np.isnan(pairs["key"]).any(), "pairs have keys")
    fits = near(pairs["old"]) and near(pairs["new"]) and within(pairs["older"], 0, NEVER - 1)
    require(fits and within(pairs["newer"], 0, NEVER - 1), "pairs have members")
    order = (-pairs["key"], -pairs["old"], -pairs["older"], -pairs["new"], -pairs["newer"])
    require(rising(kept, *order), "pairs are best first, the one with the newer older member above")
    require(
        (pairs["place"] >= 0).all() and (pairs["place"] < np.repeat(counts, kept)).all(), "members are in the window"
    )
    begins = np.repeat(np.cumsum(counts) - counts, kept)
    older = begins + pairs["place"]
    same = (stamps[older] == pairs["old"]) & (serials[older] == pairs["older"])
    require(same.all(), "a pair knows its older member's place")
    newer = _places(owners(counts), serials, owners(kept), pairs["newer"])
    require((newer > older).all(), "the newer member of a pair is a newer object")
    require((stamps[newer] == pairs["new"]).all(), "a pair knows its newer member's stamp")
    require(engine.algorithm != BASIC or (pairs["dom"] >= 0).all(), "dominators are counted")


def _places(groups: Ints, serials: Ints, of: Ints, wanted: Ints) -> Ints:
    """Where each wanted serial is among those of its group; -1: nowhere."""
    if not len(serials):
        return np.full(len(wanted), -1)
    keys = np.zeros(len(serials), [("group", "i8"), ("serial", "i8")])
    keys["group"], keys["serial"] = groups, serials
    looked = np.zeros(len(wanted), keys.dtype)
    looked["group"], looked["serial"] = of, wanted
    order = np.argsort(keys)
    place = order[np.minimum(np.searchsorted(keys, looked, sorter=order), len(keys) - 1)]
    return np.where(keys[place] == looked, place, -1)


def check_pairs(engine: Pairs, *, deep: bool, now: Ints | None) -> None:
    there = engine.groups.there()
    kept = [np.empty(0, np.int64)] * len(engine.groups)
    for g, group in there:
        kept[g] = group.window.stamps[group.live]
    sizes = np.array([len(some) for some in kept], np.int64)
    check_ages(np.concatenate([np.empty(0, np.int64), *kept]), sizes, now, int(engine.length[-1]))
    for _, group in there:
        require(not np.isnan(group.views.kth).any(), "the last key of an answer is a number")
    for _, group in there if deep else ():
        engine._flush(group)
        pairs = group.pairs
        rank = np.lexsort((-pairs["newer"], -pairs["new"], -pairs["older"], -pairs["old"], -pairs["key"]))
        assert (rank == np.arange(len(pairs))).all(), "best first, the pair with the newer older member above"
        live = group.live
        stamps, serials = group.window.stamps[live], group.window.serials[live]
        assert (np.lexsort((serials, stamps)) == np.arange(len(stamps))).all(), "objects are in order of age"
        if group.filled is not None:
            rows = group.filled.rows[group.first : group.first + len(group.window.data)]
            assert group.filled.objects >= live.stop and (rows >= live.stop).all(), "nobody overwrites what others read"
        if len(group.window.rough):
            data, rough = group.window.data[: len(group.window.most), live], group.window.rough[:, live]
            with np.errstate(over="ignore"):
                same = np.array_equal(rough[: len(data)], data.astype(np.float32), equal_nan=True)
            assert same and not rough[len(data) :].any(), "the rounded numbers are those of the objects"
            assert not (np.abs(data) > group.window.most[:, None]).any(), "no number is larger than `most`"
        valid = pairs[np.isin(pairs["older"], serials)]
        places = valid["place"] - group.facts[BASE]
        assert (group.window.serials[places] == valid["older"]).all(), "a pair knows its older member's place"
        assert len(np.unique(ids_of(pairs))) == len(pairs), "a pair is kept once"
        if len(stamps) <= CHECKED and not group.open:
            engine._check_all(group, pairs)


def check_skyband(engine: Pairs, group: Group, pairs: Records) -> None:
    """Every pair that is not kept is dominated by K kept ones."""
    live, known = group.live, {(int(one["older"]), int(one["newer"])): one for one in pairs}
    for a, b in combinations(range(live.start, live.stop), 2):
        if not is_pair(engine, group, a, b):
            continue
        key = key_of(engine, group, a, b)
        identity = (int(group.window.serials[a]), int(group.window.serials[b]))
        if identity in known:
            assert known[identity]["key"] == key, "a key is what the scoring gives"
        elif key == key:
            place, newer = group.facts[BASE] + a, (group.window.stamps[b], group.window.serials[b])
            after = (pairs["new"] > newer[0]) | ((pairs["new"] == newer[0]) & (pairs["newer"] > newer[1]))
            tied = (pairs["place"] > place) | ((pairs["place"] == place) & after)
            above = (pairs["key"] > key) | ((pairs["key"] == key) & tied)
            assert (above & (pairs["place"] >= place)).sum() >= engine.rules.K, "others have K dominators"


def is_pair(engine: Pairs, group: Group, a: int, b: int) -> bool:
    """Whether the objects at these indices satisfy the condition on a pair."""
    if engine.given is not None:
        one, other = (gathered(group.columns, np.array([i])) for i in (a, b))
        return engine.given.joins is None or bool(engine.given.joins(one, other)[0])
    return not len(engine.on.code) or _computed(engine.on, group, a, b) == 1.0


def _computed(program: Program, group: Group, a: int, b: int) -> float:
    older, newer = (np.ascontiguousarray(group.window.data[:, i : i + 1]) for i in (a, b))
    return run_once(program, older, newer)


def key_of(engine: Pairs, group: Group, a: int, b: int) -> float:
    """The key of the pair of the objects at these indices."""
    if engine.given is not None:
        one, other = (gathered(group.columns, np.array([i])) for i in (a, b))
        return float(engine.scoring.sign * engine.given.scores(one, other)[0])
    if engine.scoring.form == TYPED:
        return float(engine.scoring.sign * _computed(engine.scoring.program, group, a, b))
    scoring = engine.scoring
    total: Any = None
    for j, (x, y, local) in enumerate(
        zip(group.window.data[:, a], group.window.data[:, b], scoring.local, strict=False)
    ):
        with np.errstate(all="ignore"):
            term = x + y if local else abs(x - y)
            term = term * term if scoring.form == SQUARES else term
            term = scoring.weights[j] * term if len(scoring.weights) else term
            total = term if total is None else _combined(scoring.form, total, term)
    return float(engine.scoring.sign * total)


def _combined(form: int, total: Any, term: Any) -> Any:
    if form == LARGEST:
        return np.maximum(total, term)  # NaN if either is
    return total * term if form == PRODUCT else total + term
