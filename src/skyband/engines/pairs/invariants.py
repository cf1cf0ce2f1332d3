"""The invariants of engines of pairs, and what every pair has to be (tests call it)."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.pairs.kernels.records import BASE
from skyband.engines.pairs.window import Records, Store, gathered, ids_of

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs

CHECKED = 40  # objects: windows up to here are checked pair by pair


def check_pairs(engine: Pairs) -> None:
    for store in engine.stores:
        engine._flush(store)
        pairs = store.pairs
        rank = np.lexsort((-pairs["newer"], -pairs["new"], -pairs["older"], -pairs["old"], -pairs["key"]))
        assert (rank == np.arange(len(pairs))).all(), "best first, the pair with the newer older member above"
        live = store.live
        stamps, serials = store.window.stamps[live], store.window.serials[live]
        assert (np.lexsort((serials, stamps)) == np.arange(len(stamps))).all(), "by age"
        if len(store.window.rough):
            data, rough = store.window.data[:, live], store.window.rough[:, live]
            with np.errstate(over="ignore"):
                same = np.array_equal(rough[: len(data)], data.astype(np.float32), equal_nan=True)
            assert same and not rough[len(data) :].any(), "rounded as they are"
            assert not (np.abs(data) > store.window.most[:, None]).any(), "no number is larger"
        valid = pairs[np.isin(pairs["older"], serials)]
        places = valid["place"] - store.facts[BASE]
        assert (store.window.serials[places] == valid["older"]).all(), "a pair knows its older member's place"
        assert len(np.unique(ids_of(pairs))) == len(pairs), "each pair once"
        if len(stamps) <= CHECKED and not store.open:
            engine._check_all(store, pairs)


def check_skyband(engine: Pairs, store: Store, pairs: Records) -> None:
    """Whatever is not kept is dominated by K pairs that are."""
    live, known = store.live, {(int(one["older"]), int(one["newer"])): one for one in pairs}
    for a, b in combinations(range(live.start, live.stop), 2):
        key = key_of(engine, store, a, b)
        identity = (int(store.window.serials[a]), int(store.window.serials[b]))
        if identity in known:
            assert known[identity]["key"] == key, "a key is what the scoring gives"
        elif key == key:
            place, newer = store.facts[BASE] + a, (store.window.stamps[b], store.window.serials[b])
            after = (pairs["new"] > newer[0]) | ((pairs["new"] == newer[0]) & (pairs["newer"] > newer[1]))
            tied = (pairs["place"] > place) | ((pairs["place"] == place) & after)
            above = (pairs["key"] > key) | ((pairs["key"] == key) & tied)
            assert (above & (pairs["place"] >= place)).sum() >= engine.K, "who is dropped has K dominators"


def key_of(engine: Pairs, store: Store, a: int, b: int) -> float:
    if engine.scores is not None:
        one, other = (gathered(store.columns, np.array([i])) for i in (a, b))
        return float(engine.scoring.sign * engine.scores(one, other)[0])
    total: Any = None
    for x, y, local in zip(store.window.data[:, a], store.window.data[:, b], engine.scoring.local, strict=True):
        with np.errstate(all="ignore"):
            term = x + y if local else abs(x - y)
            total = term if total is None else total * term if engine.scoring.form else total + term
    return float(engine.scoring.sign * total)
