"""The invariants of engines of incomplete streams, from the rows up (tests call them)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.incomplete.kernels.batches import (
    FREE_COUNT,
    MOST,
    NOWHERE,
    OBJECT_COUNT,
    ROW_COUNT,
    TOTAL,
    TOUCHED,
)
from skyband.engines.incomplete.kernels.combine import score_of

if TYPE_CHECKING:
    from skyband.engines.incomplete.eaa import EAA
    from skyband.engines.incomplete.linked_rows import LinkedRows
    from skyband.engines.incomplete.sla import SLA
    from skyband.engines.incomplete.sweep import SWEEP

Ranked = list[tuple[float, int, int, int]]  # score, stamp, serial, object


def _check_run(group: Any, run: Any) -> None:
    start, capacity, head, size = (int(group[name]) for name in ("start", "capacity", "head", "size"))
    assert start <= head and head + size <= start + capacity, "a run lies in its group's place"
    assert (np.lexsort((run["serial"], run["stamp"])) == np.arange(size)).all(), "the oldest first"


def _check_front(front: Any, members: list[int], ranked: Ranked, k: int) -> None:
    """A front is the best objects, down to its floor. ranked: all objects."""
    ranked.sort(reverse=True)
    size = len(members)
    assert members == [o for *_, o in ranked[:size]], "a front has the best, in order"
    floor = (float(front["score"]), int(front["stamp"]), int(front["serial"]))
    assert all(one[:3] >= floor for one in ranked[:size]), "they are above the floor"
    assert all(one[:3] < floor for one in ranked[size:]), "and no other is"
    assert size >= k or front["stamp"] == NOWHERE, "a front is long enough, or has all"


# ------------------------------------------------------------------------------ linked rows


def check_linked_rows(engine: LinkedRows) -> None:
    V, rows, objects, scores = len(engine.views), engine.rows, engine.objects, engine.scores
    live, total, seen = np.flatnonzero(objects["group"] >= 0), 0, 0
    assert engine.facts[OBJECT_COUNT] == len(live), "objects are counted"
    assert len({(int(o["group"]), int(o["name"])) for o in objects[live]}) == len(live), "an id is one object"
    assert not engine.facts[TOUCHED] and not objects["touched"][live].any(), "no step is open"
    for g, group in enumerate(engine.groups):
        places = engine.order[group["head"] : group["head"] + group["size"]]
        run = rows[places]
        _check_run(group, run)
        dead = run["object"] < 0
        assert dead.sum() == group["dead"]
        total += int(len(run) - dead.sum())
        chains: dict[int, list[int]] = {}
        for place in places[~dead]:
            chains.setdefault(int(rows["object"][place]), []).append(int(place))
        seen += len(chains)
        for o, chain in chains.items():
            assert objects["group"][o] == g and objects["rows"][o] == len(chain), "rows of an object are counted"
            found, place = [], int(objects["oldest"][o])
            while place >= 0:
                found.append(place)
                place = int(rows["newer"][place])
            assert found == chain and objects["newest"][o] == chain[-1], "a chain is the object's rows in order"
            assert objects["stamp"][o] == rows["stamp"][chain[-1]], "the stamp is that of the newest row"
            assert objects["serial"][o] == rows["serial"][chain[-1]], "and so is the serial"
        for v, view in enumerate(engine.views):
            _check_view(engine, g, v, view, chains)
    assert total == engine.facts[ROW_COUNT], "rows are counted"
    assert seen == len(live), "every object has rows"
    inside = scores["inside"].reshape(-1, V)[live]
    assert (inside & ~scores["shown"].reshape(-1, V)[live] == 0).all(), "what is in an answer has been shown"


def _check_view(engine: LinkedRows, g: int, v: int, view: np.void, chains: dict[int, list[int]]) -> None:
    """The scores of a group in one view, and its front."""
    V, rows, scores = len(engine.views), engine.rows, engine.scores
    front, group = engine.fronts[g * V + v], engine.groups[g]
    bound = int(group["now"]) - int(view["length"])
    run = rows[engine.order[group["head"] : group["head"] + group["size"]]]
    assert front["edge"] == (run["stamp"] <= bound).sum(), "the edge is after what has expired"
    assert v < V - 1 or front["edge"] == 0, "what is too old for every view is gone"
    ranked: Ranked = []
    for o, chain in chains.items():
        valid = [place for place in chain if rows["stamp"][place] > bound]
        score = scores[o * V + v]
        assert score["count"] == len(valid)
        if valid:
            values = [_value(engine, valid, part) for part in range(engine.d)]
            at = (o * V + v) * engine.d
            assert values == engine.values[at : at + engine.d].tolist(), "values follow from rows"
            if not np.isnan(score["score"]):
                newest = rows[chain[-1]]
                ranked.append((float(score["score"]), int(newest["stamp"]), int(newest["serial"]), o))
        else:
            assert not score["shown"], "an object without a valid row is new again"
    members = engine.members[front["start"] : front["start"] + front["size"]].tolist()
    _check_front(front, members, ranked, int(view["k"]))
    for q, query in enumerate(engine.queries):
        if query["view"] == v:
            answer = [o for o in chains if scores["inside"][o * V + v] >> np.uint32(q) & 1]
            assert sorted(answer) == sorted(members[: query["k"]]), "the first k are the answer"


def _value(engine: LinkedRows, valid: list[int], part: int) -> float:
    values = [float(engine.rows["value"][place]) for place in valid if engine.rows["part"][place] == part]
    if not values:
        return float(engine.combination.lows[part])
    if engine.repeat == MOST:
        return max(values)
    if engine.repeat == TOTAL:
        total = values[0]
        for value in values[1:]:
            total += value
        return total
    return values[-1]


def check_dominance(engine: EAA) -> None:
    """EAA keeps nothing that interval dominance allows to drop, but the newest rows of reported objects."""
    lows, highs = engine.combination.lows, engine.combination.highs
    for g in range(len(engine.groups)):
        places, _ = engine._places(np.array([g]))
        rows = engine.rows[places]
        chains: dict[int, list[float]] = {}
        scores = {}
        for place, row in zip(places[::-1], rows[::-1], strict=True):
            values = chains.setdefault(int(row["object"]), [np.nan] * engine.d)
            values[row["part"]] = float(row["value"])
            known = np.array(values)
            scores[int(place)] = tuple(
                score_of(engine.combination, np.where(np.isnan(known), missing, known)) for missing in (lows, highs)
            )
        unlisted = 0
        for place, row in zip(places, rows, strict=True):
            dominators = {
                int(other["object"])
                for where, other in zip(places, rows, strict=True)
                if other["stamp"] >= row["stamp"]
                and other["object"] != row["object"]
                and scores[int(where)][0] > scores[int(place)][1]
            }
            if engine.each["listed"][place]:
                found = engine.ids[place * engine.k :][: engine.each["dominators"][place]].tolist()
                assert len(set(found)) == len(found) < engine.k, "distinct, and fewer than k"
                assert len(dominators) < engine.k, "nothing is kept that is dominated k times"
                assert dominators <= set(found), "all dominators are counted"
            else:
                unlisted += 1
                shown = engine.scores["shown"][row["object"]] != 0
                assert shown and engine.objects["newest"][row["object"]] == place, "reported objects keep a row"
        start, size = int(engine.groups["start"][g]), int(engine.listed[g])
        assert size + unlisted == len(rows), "all others are in the sorted lists"
        for name, sorted_list in (("best", engine.by_best), ("current", engine.by_current)):
            mine = sorted_list[start : start + size]
            held = engine.each[name][mine]
            assert (held[1:] >= held[:-1]).all(), "sorted"
            assert len(set(mine.tolist())) == size


def check_sorted_lists(engine: SLA) -> None:
    V = len(engine.views)
    for run, size in enumerate(engine.sizes):
        view, part = run // engine.d % V, run % engine.d
        objects = engine.sorted[engine.starts[run] : engine.starts[run] + size].astype(np.int64)
        values = engine.values[(objects * V + view) * engine.d + part]
        assert (np.diff(values) >= 0).all() and len(set(objects.tolist())) == size, "sorted, each once"
        assert engine.listed[(objects * V + view) * engine.d + part].all()
        assert (engine.objects["group"][objects] == run // engine.d // V).all()
    assert engine.listed.sum() == engine.sizes.sum(), "what is marked as listed is in a list"


# ------------------------------------------------------------------------------------ SWEEP


def check_sweep(engine: SWEEP) -> None:
    d, objects = engine.d, engine.objects
    live = np.flatnonzero(objects["group"] >= 0)
    assert len(live) + engine.facts[FREE_COUNT] == len(objects), "a place is free, or an object's"
    there = live[(objects["stamp"][live] > (engine.groups["now"] - engine.length)[objects["group"][live]])]
    lines = engine.register.log.lines[: engine.register.size]
    known = {(int(line["group"]), int(line["name"])): int(line["object"]) for line in lines}  # the last of each
    found = [known[int(objects["group"][o]), int(objects["name"][o])] for o in there]
    assert found == there.tolist(), "an id is one object, and the register knows which"
    assert not engine.facts[TOUCHED] and not objects["rank"].any(), "no step is open"
    in_front = 0
    for g, (group, front) in enumerate(zip(engine.groups, engine.fronts, strict=True)):
        head, size = int(group["head"]), int(group["size"])
        run, bound = engine.rows[head : head + size], int(group["now"]) - engine.length
        _check_run(group, run)
        assert (run["stamp"] > bound).all(), "what has expired is gone"
        newest = {int(row["object"]): row for row in run}
        assert len({(int(row["object"]), int(row["part"])) for row in run}) == size, "a part comes once"
        ranked: Ranked = []
        for o, last in newest.items():
            assert objects["group"][o] == g
            assert (objects["stamp"][o], objects["serial"][o]) == (last["stamp"], last["serial"])
            mine = run[run["object"] == o]
            stamps, values = engine.stamps[o * d : o * d + d], engine.combination.lows.copy()
            assert sorted(stamps[stamps > bound]) == mine["stamp"].tolist(), "stamps are those of its rows"
            values[mine["part"]] = mine["value"]
            score = score_of(engine.combination, values)
            assert np.isnan(score) or engine.scores["score"][o] >= score, "a score falls while nothing arrives"
            assert not objects["in_front"][o] or engine.scores["score"][o] == score, "in the front it is known"
            if not np.isnan(score):
                ranked.append((score, int(last["stamp"]), int(last["serial"]), o))
        members = engine.members[front["start"] : front["start"] + front["size"]].tolist()
        in_front += len(members)
        assert objects["in_front"][members].all(), "members are marked"
        _check_front(front, members, ranked, engine.k)
        stamps = engine.stamps.reshape(-1, d)[members]
        assert (stamps[stamps > NOWHERE] >= front["next"]).all(), "nothing in it expires before its time"
        reported = engine.reported[front["start"] : front["start"] + front["reported"]]
        assert objects["reported"][reported["object"]].tolist() == list(range(1, len(reported) + 1))
        if not group["open"]:
            assert reported["object"].tolist() == members[: engine.k], "the first k are the answer"
            assert reported["score"].tolist() == engine.scores["score"][members[: engine.k]].tolist()
    assert in_front == objects["in_front"][live].sum(), "what is marked is in a front"
    assert engine.fronts["reported"].sum() == (objects["reported"][live] > 0).sum()
