"""The invariants of engines that keep skybands: of their runs, of the views of queries on them, and of buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import runs
from skyband.engines.contract import Ints
from skyband.engines.invariants import (
    FAR,
    are_known,
    by_run,
    check_ages,
    distinct,
    near,
    owners,
    require,
    rising,
    within,
)
from skyband.engines.topk.kernels.bounds import keys_fit
from skyband.engines.topk.kernels.window_state import NOWHERE, SMA
from skyband.kernels.records import BITS, CAPPED, NEVER, RELAXED, STRICT
from skyband.query.scoring.forms import EXPRESSION, LINEAR, PRODUCT, TAME

if TYPE_CHECKING:
    from skyband.engines.topk.base import SkybandEngine
    from skyband.engines.topk.buffered import Buffered, Filters
    from skyband.engines.topk.family import Family
    from skyband.engines.topk.window import Store
    from skyband.engines.topk.window_queries import WindowQueries

Records = NDArray[Any]


def check_places(groups: Records, capacity: int) -> None:
    """Every run lies in its group's place, and places do not overlap."""
    start, room, head, size = (groups[name] for name in ("start", "room", "head", "size"))
    require((start <= head).all() and (size >= 0).all(), "a run lies in its group's place")
    require((head + size <= start + room).all() and (start + room <= capacity).all(), "a place lies in the arena")
    order = np.argsort(start[room > 0])
    ends = (start + room)[room > 0][order]
    require((ends[:-1] <= start[room > 0][order][1:]).all(), "places do not overlap")


def check_kept(engine: SkybandEngine, run: Records, now: Ints | None) -> None:
    """Runs and groups of an engine, whatever its queries know of them."""
    groups, queries, kind = engine.groups, engine.queries, engine.rule[0]["kind"]
    sizes = groups["size"]
    require(near(run["stamp"]) and within(run["serial"], 0, NEVER - 1), "objects have stamps and serials")
    require(not np.isnan(run["key"]).any(), "objects have keys")
    require(rising(sizes, -run["key"], -run["stamp"], -run["serial"]), "a run is best first, the newer above")
    require(kind != STRICT or within(run["dom"], 0, int(queries["k"].max()) - 1), "no object has K dominators")
    require(not run["was"].any() and not groups["open"].any(), "no batch is open")
    filled, longest = sizes > 0, int(queries["length"].max())
    require((groups["newest"] >= by_run(np.maximum, run["stamp"], sizes, -NEVER)).all(), "no object is newer")
    oldest = by_run(np.minimum, run["stamp"], sizes, NEVER)
    require(kind != STRICT or (groups["oldest"] <= oldest)[filled].all(), "no object is older")
    check_due(groups["due"][filled], groups["oldest"][filled], longest)
    check_ages(run["stamp"], sizes, now, FAR if kind == RELAXED else longest)
    require(now is None or (groups["due"] > now).all(), "what is due has left")


def check_runs(engine: SkybandEngine, now: Ints | None) -> None:
    """Runs, groups and views of an engine: everything that kernels rely on."""
    groups, queries, kind = engine.groups, engine.queries, engine.rule[0]["kind"]
    G, Q, sizes = len(groups), len(queries), groups["size"]
    check_places(groups, len(engine.objects))
    run = runs(engine.objects, groups, np.arange(G))
    check_kept(engine, run, now)
    require(not (run["inside"] & ~run["shown"]).any(), "a member has been shown")
    require(not (run["shown"].astype(np.uint64) >> np.uint64(Q)).any(), "members are those of the queries")
    views = engine.views.reshape(G, Q)
    for q, query in enumerate(queries):
        edge, held = views["edge"][:, q], views["held"][:, q]
        member = (run["inside"] & BITS[q]) != 0
        _check_view(edge, held, member, sizes, int(query["k"]))
        stamps = np.where(member, run["stamp"], NEVER)
        first = by_run(np.minimum, stamps, sizes, NEVER)
        some = held > 0
        require((views["oldest"][:, q] <= first)[some].all(), "no member is older")
        check_due(groups["due"][some], first[some], int(query["length"]))
        place = np.arange(len(run)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        passed = ~member & (place < np.repeat(edge, sizes)) & np.repeat(some, sizes)
        require((run["stamp"] < np.repeat(first, sizes))[passed].all(), "only the expired are passed over")
    if kind != STRICT:
        _check_caps(engine.caps, kind, sizes)


def check_due(due: Ints, oldest: Ints, length: int) -> None:
    """What is due does not come after the oldest has left."""
    known = oldest < NEVER
    require((due[known] <= np.minimum(oldest[known], NEVER - length) + length).all(), "nothing leaves before it is due")


def _check_view(edge: Ints, held: Ints, member: Records, sizes: Ints, k: int) -> None:
    """A query holds at most k; its edge is one past the last of them, or at the end if it holds fewer."""
    owner, place = owners(sizes), np.arange(len(member)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    require((np.bincount(owner[member], minlength=len(sizes)) == held).all(), "members are counted")
    require(within(held, 0, k), "a query holds at most k")
    last = by_run(np.maximum, np.where(member, place, -1), sizes, -1)
    require((edge == np.where(held < k, sizes, last + 1)).all(), "the edge is past the last member")


def _check_caps(caps: Records, kind: int, sizes: Ints) -> None:
    require(len(caps) == len(sizes) and not np.isnan(caps["threshold"]).any(), "every group has its caps")
    require(kind != RELAXED or within(caps["limit"], 0, FAR), "a limit is a count")


def check_counters(engine: SkybandEngine) -> None:
    """Every counter is the number of dominators, one by one."""
    for g in range(len(engine.groups) if engine.rule[0]["kind"] == STRICT else 0):
        run = runs(engine.objects, engine.groups, np.array([g]))
        for i, one in enumerate(run):
            assert one["dom"] == (run["stamp"][:i] >= one["stamp"]).sum(), "the counter counts the dominators"


def check_filters(filters: Filters, K: int, waiting: Ints, sizes: Ints) -> None:
    """The filters of all groups or lanes; waiting: the serials of their buffers, so many each (or one for all)."""
    groups, kind = filters.groups, filters.rule[0]["kind"]
    check_places(groups, len(filters.objects))
    kept = runs(filters.objects, groups, np.arange(len(groups)))
    require(not np.isnan(kept["key"]).any() and near(kept["stamp"]), "objects of a filter have keys and stamps")
    require(rising(groups["size"], -kept["key"], -kept["serial"]), "a filter is best first")
    require(within(kept["dom"], 0, K), "no object of a filter has K dominators")
    require(not kept["was"].any() and not kept["inside"].any(), "no object of a filter is in an answer")
    if len(sizes) == len(groups):
        known = are_known(kept["serial"], owners(groups["size"]), waiting, owners(sizes))
    else:
        known = np.isin(kept["serial"], waiting)
    require(known.all(), "a filter holds objects of the buffer")
    require(len(filters.caps) == len(groups), "every filter has its caps")
    if kind != STRICT:
        _check_caps(filters.caps, kind, groups["size"])
    if kind == CAPPED:
        require((groups["size"] <= K + filters.rule[0]["limit"]).all(), "a probabilistic filter is small")


def check_buffers(engine: Buffered, now: Ints | None) -> None:
    """Buffers, and the filters over them."""
    check_places(engine.queues, len(engine.waiting))
    sizes, waiting = engine.queues["size"], runs(engine.waiting, engine.queues, np.arange(len(engine.queues)))
    require(len(sizes) == len(engine.groups) == len(engine.filters.groups), "every group has a buffer")
    require((sizes <= engine.most).all(), "a buffer is not too long")
    check_waiting(waiting["stamp"], waiting["serial"], waiting["key"], sizes)
    check_ages(waiting["stamp"], sizes, now, int(engine.queries["length"].min()))
    check_filters(engine.filters, int(engine.queries["k"].max()), waiting["serial"], sizes)


def check_waiting(stamps: Ints, serials: Ints, numbers: Records, sizes: Ints) -> None:
    """Objects that wait are in order of arrival, and have numbers."""
    require(near(stamps) and within(serials, 0, NEVER - 1), "waiting objects have stamps and serials")
    require(not np.isnan(numbers).any(), "waiting objects have numbers")
    require(rising(sizes, serials) and rising(sizes, stamps, serials), "objects wait in order of arrival")


def check_lanes(engine: Family, now: Ints | None) -> None:
    """The ring that all lanes of a family share, and their depths."""
    here = engine._in_ring()
    sizes = np.array([here.stop - here.start])
    require(
        0 <= here.start <= here.stop <= len(engine.ring_stamps) and sizes[0] <= engine.most, "the ring is not too long"
    )
    require(len(engine.begun) == 2 and near(engine.begun[engine.begun > -NEVER]), "the ring's clock is a number")
    check_waiting(engine.ring_stamps[here], engine.ring_serials[here], engine.ring[:, here], sizes)
    check_ages(engine.ring_stamps[here], sizes, now, int(engine.queries["length"][0]))
    require(now is None or (engine.begun[0] <= now).all(), "the ring's clock has not passed")
    require(len(engine.caps) == len(engine.groups), "every lane has a depth")
    require(not np.isnan(engine.caps["threshold"]).any(), "a depth is a number")
    require(within(engine.ring[:, here].reshape(-1), -TAME, TAME), "numbers are so small that every object has a key")


def check_windows(objects: Records, data: Records, sizes: Ints, queries: WindowQueries) -> None:
    """Objects of whole windows as they are stored, so many of each group, before grids are built over them."""
    require(near(objects["stamp"]) and within(objects["serial"], 0, NEVER - 1), "objects have stamps and serials")
    require(rising(sizes, objects["stamp"], objects["serial"]), "objects are in order of age")
    require(distinct(objects["serial"], owners(sizes)), "an object is kept once")
    require(queries.timed or (sizes <= queries.capacity).all(), "a window is not too long")
    nothing = np.isnan(data)
    idle = nothing.any(axis=1)
    require((nothing.all(axis=1) == idle).all(), "an object has all numbers, or none")
    require(queries.length == NEVER or not idle.any(), "only objects that are deleted by id may have none")
    form, points = queries.arrays.form, queries.arrays.points
    if form == EXPRESSION:
        require(keys_fit(queries.arrays, np.ascontiguousarray(data[~idle])), "an object has the keys of its numbers")
        return
    if points.shape[1] > 1 or form != LINEAR or not points.all():
        limit = TAME ** (1 / 2) if form == PRODUCT else TAME
        require(within(data[~idle].reshape(-1), -limit, limit), "numbers are so small that every object has a key")


def check_store(store: Store) -> None:
    """One group's window: the runs of the queries over it, and their floors."""
    queries, slots, state = store.queries, store.slots, store.state
    specs, sma = queries.arrays.specs, queries.algorithm == SMA
    most = np.where(specs["dynamic"] > 0, len(queries.scratch.best) - 1, specs["view"])
    require((state["view"] >= np.maximum(specs["k"], 1)).all() and (state["view"] <= most).all(), "a view has its size")
    require(not np.isnan(state["key"]).any() and near(state["stamp"][state["stamp"] > NOWHERE]), "a floor is a number")
    require(within(state["spent"], 0, FAR), "work is counted")
    sizes = store.heads["size"]
    check_places(store.heads, len(store.records))
    check_places(store.reported_heads, len(store.reported))
    records = runs(store.records, store.heads, np.arange(len(sizes)))
    require(rising(sizes, -records["key"], -records["stamp"], -records["serial"]), "a run is best first")
    require(
        (sizes <= np.where(specs["above"] > 0, 0, 2 * specs["k"] + 8 if sma else state["view"])).all(), "runs are short"
    )
    require(within(records["was"], 0, len(slots) - 1), "an object of a run has a place")
    for name in ("stamp", "serial"):
        require((slots[name][records["was"]] == records[name]).all(), "a run has valid objects")
    require(
        not sma or ((records["dom"] < np.repeat(specs["k"], sizes)).all() and (records["dom"] >= 0).all()),
        "no object has k dominators",
    )
    ends = np.cumsum(sizes)
    for s in np.flatnonzero(sizes).tolist():
        run = records[ends[s] - sizes[s] : ends[s]]
        data = store.data[run["was"]]
        require((queries.keys_of(s, data) == run["key"]).all() and queries.inside(s, data).all(), "a run has keys")
        last, floor = run[-1], state[s]
        fits = last["key"] > floor["key"] or (
            last["key"] == floor["key"] and (last["stamp"], last["serial"]) >= (floor["stamp"], floor["serial"])
        )
        require(fits, "no object of a run is below its floor")
