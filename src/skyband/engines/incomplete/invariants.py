"""The invariants of engines of incomplete streams, from the rows up (tests call it)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skyband.engines.incomplete.kernels import objects as kernel
from skyband.engines.incomplete.kernels import rows as pieces
from skyband.engines.incomplete.kernels.combine import score_of

if TYPE_CHECKING:
    from skyband.engines.incomplete.assembly import Parts
    from skyband.engines.incomplete.sweep import SWEEP


def check_parts(engine: Parts) -> None:
    V, rows, things, sights = len(engine.views), engine.rows, engine.things, engine.sights
    live, total, seen = np.flatnonzero(things["group"] >= 0), 0, 0
    assert engine.facts[pieces.THINGS] == len(live), "objects are counted"
    assert len({(int(t["group"]), int(t["name"])) for t in things[live]}) == len(live), "an id is one object"
    assert not engine.facts[pieces.TOUCHED] and not things["mark"][live].any(), "no step is open"
    for g, pack in enumerate(engine.packs):
        start, room, head, size = (int(pack[name]) for name in ("start", "room", "head", "size"))
        assert start <= head and head + size <= start + room, "a run lies in its group's place"
        places = engine.order[head : head + size]
        run = rows[places]
        assert (np.lexsort((run["serial"], run["stamp"])) == np.arange(size)).all(), "the oldest first"
        dead = run["object"] < 0
        assert dead.sum() == pack["dead"]
        total += int(size - dead.sum())
        chains: dict[int, list[int]] = {}
        for place in places[~dead]:
            chains.setdefault(int(rows["object"][place]), []).append(int(place))
        seen += len(chains)
        for o, chain in chains.items():
            assert things["group"][o] == g and things["rows"][o] == len(chain), "rows of an object are counted"
            found, place = [], int(things["oldest"][o])
            while place >= 0:
                found.append(place)
                place = int(rows["newer"][place])
            assert found == chain and things["newest"][o] == chain[-1], "a chain is the object's rows in order"
        for v, view in enumerate(engine.views):
            _check_view(engine, g, v, view, chains)
    assert total == engine.facts[pieces.LIVE], "rows are counted"
    assert seen == len(live), "every object has rows"
    inside = sights["inside"].reshape(-1, V)[live]
    assert (inside & ~sights["shown"].reshape(-1, V)[live] == 0).all(), "who is inside has been shown"


def _check_view(engine: Parts, g: int, v: int, view: np.void, chains: dict[int, list[int]]) -> None:
    """The scores of a group in one view, and its front."""
    V, rows, sights = len(engine.views), engine.rows, engine.sights
    front, pack = engine.fronts[g * V + v], engine.packs[g]
    bound = int(pack["now"]) - int(view["length"])
    run = rows[engine.order[pack["head"] : pack["head"] + pack["size"]]]
    assert front["edge"] == (run["stamp"] <= bound).sum(), "the edge parts what has expired"
    assert v < V - 1 or front["edge"] == 0, "what no view sees is gone"
    ranked = []
    for o, chain in chains.items():
        valid = [place for place in chain if rows["stamp"][place] > bound]
        sight = sights[o * V + v]
        assert sight["count"] == len(valid)
        if valid:
            values = [_value(engine, valid, part) for part in range(engine.d)]
            at = (o * V + v) * engine.d
            assert values == engine.values[at : at + engine.d].tolist(), "values follow from rows"
            if not np.isnan(sight["score"]):
                newest = rows[chain[-1]]
                ranked.append((float(sight["score"]), int(newest["stamp"]), int(newest["serial"]), o))
        else:
            assert not sight["shown"], "who has no valid row is new again"
    ranked.sort(reverse=True)
    size = int(front["size"])
    best = engine.lists[front["start"] : front["start"] + size].tolist()
    assert best == [o for *_, o in ranked[:size]], "a front has the best, in order"
    floor = (float(front["score"]), int(front["stamp"]), int(front["serial"]))
    assert all(one[:3] >= floor for one in ranked[:size]), "they are above the floor"
    assert all(one[:3] < floor for one in ranked[size:]), "and nobody else is"
    assert size >= view["k"] or front["stamp"] == pieces.NOWHERE, "a front is long enough, or has all"
    for q, query in enumerate(engine.queries):
        if query["view"] == v:
            members = [o for o in chains if sights["inside"][o * V + v] >> np.uint32(q) & 1]
            assert sorted(members) == sorted(best[: query["k"]]), "the first k are the answer"


def _value(engine: Parts, valid: list[int], part: int) -> float:
    values = [float(engine.rows["value"][place]) for place in valid if engine.rows["part"][place] == part]
    if not values:
        return float(engine.recipe.lows[part])
    if engine.repeat == pieces.MOST:
        return max(values)
    if engine.repeat == pieces.TOTAL:
        total = values[0]
        for value in values[1:]:
            total += value
        return total
    return values[-1]


def check_sweep(engine: SWEEP) -> None:
    """The invariants of SWEEP, from the rows up."""
    d, objects = engine.d, engine.objects
    live = np.flatnonzero(objects["group"] >= 0)
    assert len(live) + engine.facts[kernel.FREE] == len(objects), "a place is free, or an object's"
    there = live[(objects["stamp"][live] > (engine.groups["now"] - engine.length)[objects["group"][live]])]
    lines = engine.register.log[: engine.register.size]
    known = {(int(line["group"]), int(line["name"])): int(line["object"]) for line in lines}  # the last of each
    found = [known[int(objects["group"][o]), int(objects["name"][o])] for o in there]
    assert found == there.tolist(), "an id is one object, and the register knows which"
    assert not engine.facts[kernel.TOUCHED] and not objects["rank"].any(), "no step is open"
    fronted = 0
    for g, group in enumerate(engine.groups):
        start, room, head, size = (int(group[name]) for name in ("start", "room", "head", "size"))
        assert start <= head and head + size <= start + room, "a run lies in its group's place"
        run, bound = engine.rows[head : head + size], int(group["now"]) - engine.length
        assert (np.lexsort((run["serial"], run["stamp"])) == np.arange(size)).all(), "the oldest first"
        assert (run["stamp"] > bound).all(), "what has expired is gone"
        newest = {int(row["object"]): row for row in run}
        assert len({(int(row["object"]), int(row["part"])) for row in run}) == size, "a part comes once"
        ranked = []
        for o, last in newest.items():
            assert objects["group"][o] == g
            assert (objects["stamp"][o], objects["serial"][o]) == (last["stamp"], last["serial"])
            mine = run[run["object"] == o]
            stamps, values = engine.stamps[o * d : o * d + d], engine.recipe.lows.copy()
            assert sorted(stamps[stamps > bound]) == mine["stamp"].tolist(), "stamps are those of its rows"
            values[mine["part"]] = mine["value"]
            score = score_of(engine.recipe, values)
            assert np.isnan(score) or engine.reach["score"][o] >= score, "a score falls while nothing comes"
            assert not objects["front"][o] or engine.reach["score"][o] == score, "in the front it is known"
            if not np.isnan(score):
                ranked.append((score, int(last["stamp"]), int(last["serial"]), o))
        ranked.sort(reverse=True)
        best = engine.fronts[group["first"] : group["first"] + group["best"]].tolist()
        fronted += len(best)
        assert objects["front"][best].all() and best == [o for *_, o in ranked[: len(best)]], "the best, in order"
        floor = (float(group["score"]), int(group["stamp"]), int(group["serial"]))
        assert all(one[:3] >= floor for one in ranked[: len(best)]), "they are above the floor"
        assert all(one[:3] < floor for one in ranked[len(best) :]), "and nobody else is"
        assert len(best) >= engine.k or group["stamp"] == kernel.NOWHERE, "a front is long enough, or has all"
        stamps = engine.stamps.reshape(-1, d)[best]
        assert (stamps[stamps > kernel.NOWHERE] >= group["next"]).all(), "nothing in it expires before its time"
        told = engine.told[group["first"] : group["first"] + group["told"]]
        assert objects["told"][told["object"]].tolist() == list(range(1, len(told) + 1))
        if not group["open"]:
            assert told["object"].tolist() == best[: engine.k], "the first k are the answer"
            assert told["score"].tolist() == engine.reach["score"][best[: engine.k]].tolist()
    assert fronted == objects["front"][live].sum(), "who is marked is in a front"
    assert engine.groups["told"].sum() == (objects["told"][live] > 0).sum()
