"""The invariants of engines of pairs, which tests check."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.pairs.group import Group, Records, gathered, ids_of
from skyband.engines.pairs.kernels.records import BASE

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs

CHECKED = 40  # objects: windows up to here are checked pair by pair


def check_pairs(engine: Pairs) -> None:
    for _, group in engine.groups.there():
        engine._flush(group)
        pairs = group.pairs
        rank = np.lexsort((-pairs["newer"], -pairs["new"], -pairs["older"], -pairs["old"], -pairs["key"]))
        assert (rank == np.arange(len(pairs))).all(), "best first, the pair with the newer older member above"
        live = group.live
        stamps, serials = group.window.stamps[live], group.window.serials[live]
        assert (np.lexsort((serials, stamps)) == np.arange(len(stamps))).all(), "objects are in order of age"
        if len(group.window.rough):
            data, rough = group.window.data[:, live], group.window.rough[:, live]
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


def key_of(engine: Pairs, group: Group, a: int, b: int) -> float:
    """The key of the pair of the objects at these indices."""
    if engine.scores is not None:
        one, other = (gathered(group.columns, np.array([i])) for i in (a, b))
        return float(engine.scoring.sign * engine.scores(one, other)[0])
    total: Any = None
    for x, y, local in zip(group.window.data[:, a], group.window.data[:, b], engine.scoring.local, strict=True):
        with np.errstate(all="ignore"):
            term = x + y if local else abs(x - y)
            total = term if total is None else total * term if engine.scoring.form else total + term
    return float(engine.scoring.sign * total)
