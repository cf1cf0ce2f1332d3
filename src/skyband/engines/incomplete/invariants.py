"""The invariants of engines of incomplete streams: of stored arrays, and from the rows up (tests call these)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Ints
from skyband.engines.incomplete.finders import check_finders
from skyband.engines.incomplete.kernels.batches import (
    ALL_MOST,
    ALL_TOTAL,
    FREE_COUNT,
    LAST,
    LAST_MOST,
    LAST_TOTAL,
    MOST,
    NOWHERE,
    OBJECT_COUNT,
    ROW_COUNT,
    TOTAL,
    TOTALS,
    TOUCHED,
)
from skyband.engines.incomplete.kernels.combine import score_of
from skyband.engines.invariants import (
    FAR,
    are_counts,
    by_run,
    check_ages,
    distinct,
    near,
    owners,
    require,
    rising,
    within,
)
from skyband.kernels.records import BITS, NEVER

if TYPE_CHECKING:
    from skyband.engines.incomplete.approximation import Approximate
    from skyband.engines.incomplete.base import IncompleteEngine
    from skyband.engines.incomplete.eaa import EAA
    from skyband.engines.incomplete.linked_rows import LinkedRows
    from skyband.engines.incomplete.sla import SLA
    from skyband.engines.incomplete.sweep import SWEEP

Records = NDArray[Any]
Ranked = list[tuple[float, int, int, int]]  # score, stamp, serial, object


# ------------------------------------------------------------------------------ stored arrays


def check_stored(engine: IncompleteEngine, rows: Records, sizes: Ints, names: Ints, counts: Ints, now: Ints) -> None:
    """Rows and objects as they are stored, so many of each group; references have been checked."""
    require(near(rows["stamp"]) and within(rows["serial"], 0, NEVER - 1), "rows have stamps and serials")
    require(rising(sizes, rows["stamp"], rows["serial"]), "the oldest row is first")
    require(distinct(rows["serial"], owners(sizes)), "a row is kept once")
    lows, highs = engine.bounds_of(rows["part"])
    fits = (rows["value"] >= lows) & (rows["value"] <= highs) & np.isfinite(rows["value"])
    if engine.prunes and engine.repeat == TOTAL:  # a row that stays has the sum of those that it stands for
        fits = np.isfinite(rows["value"])
    require(fits.all(), "values are in the range of their part")
    require(distinct(names, owners(counts)), "an id is one object")
    objects = rows["object"] + np.repeat(np.cumsum(counts) - counts, sizes)
    require((np.bincount(objects, minlength=len(names)) > 0).all(), "every object has rows")
    once = engine.repeat <= LAST or engine.repeat >= LAST_TOTAL
    once = once or (engine.register is not None and engine.register.most == 1)
    require(not once or distinct(objects, rows["part"]), "a part comes once")
    newest = by_run(np.maximum, rows["stamp"], sizes, -FAR)
    require(near(now[now > -FAR]) and (engine.endless or (now >= newest).all()), "no row is newer")


def check_register(
    engine: IncompleteEngine, entries: Records, lots: Ints, rows: Records, sizes: Ints, names: Ints, counts: Ints
) -> None:
    """Every row is in the register: a second row of its part is rejected as long as it is valid."""
    require(len(lots) == len(sizes) and are_counts(lots, len(entries)), "every group has its part of the register")
    require(
        near(entries["stamp"]) and within(entries["part"], 0, engine.part_limit - 1), "the register has rows of parts"
    )
    groups = owners(lots)
    require_few(engine, entries, groups)
    known = _keys(groups, entries["name"], entries["part"])
    objects = rows["object"] + np.repeat(np.cumsum(counts) - counts, sizes)
    wanted = _keys(owners(sizes), names[objects], rows["part"])
    order = np.lexsort((entries["stamp"], entries["part"], entries["name"], groups))
    place = np.searchsorted(known, wanted, side="right", sorter=order) - 1  # the newest of its part
    require((place >= 0).all(), "every row is in the register")
    place = order[place]
    require((known[place] == wanted).all(), "every row is in the register")
    lasts = engine.endless or (entries["stamp"][place] >= rows["stamp"]).all()
    require(lasts, "a row is valid no longer than the register says")


def require_few(engine: IncompleteEngine, entries: Records, groups: Ints) -> None:
    """No part has more rows in the register than may be valid together."""
    if engine.register.most == 1:
        require(distinct(entries["part"], entries["name"], groups), "a part is registered once")
    elif len(entries):
        _, counts = np.unique(_keys(groups, entries["name"], entries["part"]), return_counts=True)
        require(counts.max() <= engine.register.most, "a part is registered as often as it may be")


def _keys(groups: Ints, names: Ints, parts: Records) -> Records:
    keys = np.zeros(len(groups), [("group", "i8"), ("name", "i8"), ("part", "i8")])
    keys["group"], keys["name"], keys["part"] = groups, names, parts
    return keys


def check_packs(packs: Records) -> None:
    """Groups of linked rows as they are stored."""
    require(not packs["open"].any() and not packs["dead"].any() and within(packs["dirty"], 0, 1), "no batch is open")
    fits = within(packs["seen"], 0, FAR) and within(packs["limit"], 0, NEVER) and within(packs["tick"], 0, NEVER)
    require(fits, "groups have counts")


def check_answers(engine: LinkedRows, now: Ints | None) -> None:
    """The answers as reported are the first of the fronts: a step then makes no more changes than it may."""
    G, V = len(engine.groups), len(engine.views)
    rows, kept = engine._live(np.arange(G))
    check_ages(rows["stamp"], kept, now, int(engine.views["length"].max()))
    require(now is None or (engine.groups["now"] <= now).all(), "a group's clock has not passed")
    live = engine.objects["group"] >= 0
    inside, shown = (engine.scores[name].reshape(-1, V) for name in ("inside", "shown"))
    require(not (inside & ~shown)[live].any(), "what is in an answer has been shown")
    for v in range(V):
        mine = np.flatnonzero(engine.queries["view"] == v)
        require(not (shown[live, v] & ~np.bitwise_or.reduce(BITS[mine])).any(), "what is shown is so to a query")
    for q, (k, v) in enumerate(zip(engine.queries["k"].tolist(), engine.queries["view"].tolist(), strict=True)):
        fronts = engine.fronts[np.arange(G) * V + v]
        sizes = np.minimum(fronts["size"], k)
        places = np.arange(sizes.sum()) + np.repeat(fronts["start"] - (np.cumsum(sizes) - sizes), sizes)
        member = live & ((inside[:, v] & BITS[q]) != 0)
        require(member.sum() == len(places) and member[engine.members[places]].all(), "the first k are the answer")
    known = engine.reported[np.repeat(live, V) & (engine.scores["inside"] != 0)]
    require(near(known["stamp"]) and within(known["serial"], 0, NEVER - 1), "reported objects have serials")
    require(not np.isnan(known["score"]).any(), "reported objects have scores")


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
        check_finders(engine, o, v, chain, bound)
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
    every = engine.repeat >= ALL_TOTAL
    values = [float(engine.rows["value"][place]) for place in valid if every or engine.rows["part"][place] == part]
    if not values:
        return float(engine.combination.lows[part])
    if engine.repeat in (MOST, ALL_MOST, LAST_MOST):
        return max(values)
    if engine.repeat in TOTALS:
        exact = sum(map(Fraction, values), Fraction(0))
        try:
            return float(exact)
        except OverflowError:
            return np.inf if exact > 0 else -np.inf
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
        rows = engine.rows[engine._places(np.array([run // engine.d // V]))[0]]
        since = engine.groups["now"][run // engine.d // V] - engine.views["length"][view]
        mine = rows[(rows["object"] >= 0) & (rows["part"] == part) & (rows["stamp"] > since)]
        assert set(mine["object"].tolist()) == set(objects.tolist()), "the objects that have the part"
    assert engine.listed.sum() == engine.sizes.sum(), "what is marked as listed is in a list"


def check_sample(engine: Approximate) -> None:
    """The sample that is kept whole, and what an approximate engine has learned of each group's stream."""
    fits = within(engine.level, 0, 62) and within(engine.looks, 0, FAR)
    require(fits and within(engine.hits, 0, FAR) and within(engine.misses, 0, FAR), "samples have counts")
    require(all(group in engine.learned for group in np.flatnonzero(engine.kept)), "a stream with rows is known")
    for group, known in engine.learned.items():
        for name, array in known.items():
            fits = not np.isnan(array).any() and not np.isinf(array).any() if array.dtype.kind == "f" else True
            require(fits, f"{name} of a stream are numbers")
        engine.check_learned(group, known)


# ------------------------------------------------------------------------------------ SWEEP


def check_reported(engine: SWEEP, reported: Records, packs: Records, shown: Records) -> None:
    """Answers of SWEEP as they are stored."""
    sizes, counts = packs["told"], packs["objects"]
    objects = reported["object"] + np.repeat(np.cumsum(counts) - counts, sizes)
    require(distinct(objects), "an object is in an answer once")
    require(near(reported["stamp"]) and within(reported["serial"], 0, NEVER - 1), "answers have stamps and serials")
    require(not np.isnan(reported["score"]).any(), "answers have scores")
    require(within(packs["limit"], 0, NEVER), "groups have counts")
    require(not (shown.astype(np.uint64) >> np.uint64(len(engine.queries))).any(), "what is shown is so to a query")


def check_sweep_answers(engine: SWEEP, now: Ints | None) -> None:
    """Where no batch is open, answers as reported are the first of the fronts."""
    rows, kept = engine._run_of(np.arange(len(engine.groups)))
    check_ages(rows["stamp"], kept, now, engine.length)
    require(now is None or (engine.groups["now"] <= now).all(), "a group's clock has not passed")
    fronts, closed = engine.fronts, engine.groups["open"] == 0
    sizes = np.where(closed, fronts["reported"], 0)
    require((sizes == np.where(closed, np.minimum(fronts["size"], engine.k), 0)).all(), "answers are whole")
    places = np.arange(sizes.sum()) + np.repeat(fronts["start"] - (np.cumsum(sizes) - sizes), sizes)
    require((engine.members[places] == engine.reported["object"][places]).all(), "the first k are the answer")


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
