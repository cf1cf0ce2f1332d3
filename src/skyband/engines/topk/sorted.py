"""SORTED (ours): what can still become an answer in sorted lists, ranked anew at each step (kernels/ranks.py).

For what other engines cannot do: offsets, ties that are answers too, distinct ids, a k of each group from a column,
sessions, and orders of keys where objects are deleted. One query an engine.

Cost: O(s) for an arrival, where its group keeps s objects: about as many as SA keeps for k + offset; with
`distinct="last"` one for each id in the window; over `UntilDeleted()` all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import place, recast, run_places, runs, unplaced
from skyband.engines.contract import EVER, Answer, Arrivals, Bools, Changes, Floats, Ints, Spec
from skyband.engines.grouped import changes_of, ordered_changes, rebuild, visits_of
from skyband.engines.invariants import are_counts, near, require, rising, within
from skyband.engines.topk.base import SkybandEngine
from skyband.engines.topk.invariants import check_places
from skyband.engines.topk.kernels.rank_answers import read_ranks
from skyband.engines.topk.kernels.rank_records import DELETE, IDLE, INSERT, RANKED, RANKS, RUN, STEP, UNKNOWN, Ranks
from skyband.engines.topk.kernels.ranks import refit_ranks, take_ranks
from skyband.engines.topk.kernels.state import Report
from skyband.kernels.records import CHANGE, NEVER, VISIT
from skyband.kernels.routing import stable_order
from skyband.kernels.sessions import NO_SESSION, find_late
from skyband.query.tuning import Tuning

Records = NDArray[Any]
_EMPTY = {"oldest": NEVER, "due": NEVER, "newest": -NEVER, **NO_SESSION}


class SORTED:
    """A sorted list for every group, for one query."""

    name = "SORTED"

    def __init__(
        self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool, rule: dict[str, Any]
    ) -> None:
        self.timed = timed
        self.net = net
        self.asked = {"timed": timed, **rule}
        self._set_queries(specs)
        self.objects = np.empty(0, RANKED)
        self.groups = np.empty(0, RUN)
        self.tally = np.zeros(2, np.int64)  # places of the arena in use, changes of this batch
        self.held = np.empty(0, CHANGE)  # changes of a batch that goes on; `visit` is the group
        self.unknown: list[int] = []  # rows that were to delete an unknown id

    def _set_queries(self, specs: tuple[Spec, ...]) -> None:
        (spec,) = specs
        self.queries = np.zeros(1, RANKS)
        for name, value in (self.asked | self._sizes(spec)).items():
            self.queries[name] = value

    def _sizes(self, spec: Spec) -> dict[str, Any]:
        above = spec.threshold is not None
        length = spec.length if spec.length < EVER else NEVER
        return {"k": spec.k, "length": length, "above": above, "threshold": spec.threshold if above else 0.0}

    @property
    def _ranks(self) -> Ranks:
        return Ranks(self.objects, self.groups, self.queries, self.tally)

    def _report(self, room: int, alive: Bools, serial: int, more: bool, *, net: bool) -> Report:
        self.tally[1] = 0
        return Report(np.empty(64 + room, CHANGE), self.tally, np.zeros(1, CHANGE), alive, serial, True, net, more)

    needed = staticmethod(SkybandEngine.needed)
    _due_now: Any = SkybandEngine._due_now

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        self._grow(arrivals.total)
        order, steps = self._steps(arrivals)
        visits = visits_of(self, arrivals.groups[order], steps["now"], arrivals)
        alive = np.zeros(arrivals.size, np.bool_)
        report = self._report(len(steps), alive, arrivals.serial, arrivals.more, net=self.net)
        self.objects, out = take_ranks(self._ranks, report, steps, visits)
        self.unknown = steps["row"][steps["kind"] == UNKNOWN].tolist()
        out = self._due_now(out[: self.tally[1]], visits, arrivals.more)
        return ordered_changes(self, out, visits, steps, arrivals, alive)

    def _steps(self, arrivals: Arrivals) -> tuple[Ints, Records]:
        """The arrivals sorted by group, as kernels see them."""
        order = stable_order(arrivals.groups, arrivals.total)
        steps = np.zeros(len(order), STEP)
        for name, column in (("key", arrivals.keys), ("stamp", arrivals.stamps), ("now", arrivals.now)):
            steps[name] = column[order]
        steps["row"] = arrivals.rows[order]
        steps["name"] = -1 if arrivals.names is None else arrivals.names[order]
        if arrivals.steps is not None and len(order):
            groups, numbers = arrivals.groups[order], arrivals.steps[order]
            steps["joined"][:-1] = (groups[1:] == groups[:-1]) & (numbers[1:] == numbers[:-1])
        if arrivals.limits is not None:
            steps["limit"] = arrivals.limits[order]
        if arrivals.eligible is not None:
            steps["kind"] = np.where(arrivals.eligible[order], INSERT, IDLE)
        if arrivals.deletes is not None:
            steps["kind"][arrivals.deletes[order]] = DELETE
        return order, steps

    def delete(self, codes: Ints, owners: Ints, steps: Ints) -> tuple[Changes, Ints]:
        """Delete objects by the codes of their ids, with their groups and the numbers of their steps.

        Returns the changes, and the steps in which something was deleted.
        """
        order = np.lexsort((steps, owners))
        records = np.zeros(len(order), STEP)
        records["name"], records["now"], records["row"] = codes[order], steps[order], steps[order]
        records["kind"] = DELETE
        groups, starts = np.unique(owners[order], return_index=True)
        visits = np.zeros(len(groups), VISIT)
        visits["group"], visits["begin"], visits["last"] = groups, starts, -NEVER
        visits["end"] = np.append(starts[1:], len(order))[: len(groups)]
        self._grow(1 + int(owners.max(initial=-1)))
        report = self._report(len(order), np.empty(0, np.bool_), NEVER, False, net=self.net)
        self.objects, out = take_ranks(self._ranks, report, records, visits)
        out = out[: self.tally[1]]
        out = out[np.argsort(np.zeros(len(out)) if self.net else out["row"], kind="stable")]
        deleted = records["row"][records["kind"] == DELETE]
        return changes_of(out, out["query"], visits["group"][out["visit"]], np.empty(0, np.bool_)), deleted

    def set_ids(self, codes: Ints, sizes: Ints, total: int) -> None:
        """Set the codes of the objects' ids, group by group."""
        self.objects["name"][run_places(self.groups, np.arange(len(self.groups)))] = codes

    def late(self, groups: Ints, times: Ints, clocks: Ints, total: int) -> Bools:
        """Which rows are too late for the sessions of their groups. Changes nothing."""
        self._grow(total)
        late = np.zeros(len(groups), np.bool_)
        find_late(groups, times, clocks, self.groups.copy(), self.gap, late)
        return late

    @property
    def sessions(self) -> Records:
        """The session of each group."""
        return self.groups

    @property
    def gap(self) -> int:
        """The gap of sessions; 0: the window is another."""
        return int(self.queries["gap"][0])

    def limited(self) -> Ints:
        """By group: until when the row that its k is from decides about a late row."""
        length = self.gap or int(self.queries["length"][0])
        known = self.groups["newest"] > -NEVER
        return np.where(known, np.minimum(self.groups["newest"], NEVER - length) + length, -NEVER)

    def _grow(self, total: int) -> None:
        more = total - len(self.groups)
        if more > 0:
            groups = np.zeros(more, RUN)
            for name, value in _EMPTY.items():
                groups[name] = value
            self.groups = np.concatenate([self.groups, groups])

    # --- answers

    def answer(self, query: int, spec: Spec, now: Ints, groups: Ints | None) -> Answer:
        chosen = np.arange(len(self.groups)) if groups is None else groups[groups < len(self.groups)]
        room = int(self.groups["size"][chosen].sum())
        rule = self.queries.copy()
        for name, value in self._sizes(spec).items():
            rule[name] = value
        found, rank, sizes = np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(len(chosen), np.int64)
        ranks = Ranks(self.objects, self.groups, rule, self.tally)
        n = read_ranks(ranks, chosen, now, found, rank, sizes)
        ranked = self.objects[found[:n]]
        return Answer(
            group=np.repeat(chosen, sizes),
            rank=rank[:n],
            stamp=ranked["stamp"],
            serial=ranked["serial"],
            key=ranked["key"],
        )

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self._grow(len(now))
        self._set_queries(specs)
        report = self._report(64, np.empty(0, np.bool_), NEVER, False, net=False)
        out = refit_ranks(self._ranks, report, now)[: self.tally[1]]
        return changes_of(out, out["query"], out["visit"].astype(np.int64), np.empty(0, np.bool_))

    # --- what is kept

    def relabel(self, groups: Ints, keys: Floats) -> None:
        """Give the objects of these groups other keys in the same order, in the order of `serials`."""
        places = run_places(self.groups, groups)
        self.objects["key"][places] = np.where(self.objects["eligible"][places] > 0, keys, -np.inf)

    def ages(self, groups: Ints) -> tuple[Ints, Ints]:
        """The stamps and serials of the objects of these groups, in the order of `serials`."""
        run = runs(self.objects, self.groups, groups)
        return run["stamp"], run["serial"]

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = np.arange(len(self.groups)) if groups is None else groups
        return runs(self.objects, self.groups, chosen)["serial"], self.groups["size"][chosen]

    @property
    def kept(self) -> Ints:
        return self.groups["size"]

    @property
    def buffer(self) -> int:
        return 0

    def size_of(self, query: int) -> int:
        return int(self.groups["size"].sum())

    @property
    def due(self) -> Ints:
        return self.groups["due"]

    @property
    def open(self) -> Ints:
        return self.groups["open"]

    @property
    def nbytes(self) -> int:
        return int(self.objects.nbytes + self.groups.nbytes)

    # --- snapshots

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        assert not len(self.held) and not self.groups["open"].any(), "no batch is open"
        chosen = unplaced(self.groups[groups])
        return {
            "objects": (runs(self.objects, self.groups, groups), chosen["size"]),
            "groups": (chosen, np.ones(len(groups), np.int64)),
        }

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        objects, groups = recast(state["objects"], RANKED), recast(state["groups"], RUN)
        require(are_counts(groups["size"], len(objects)), "the lists have their objects")
        require((groups["size"] == groups["room"]).all(), "stored lists have no free places")
        self.objects, self.groups = objects.copy(), groups.copy()
        place(self.groups)
        self.tally[:] = len(objects), 0

    keep_groups = rebuild

    def reset_groups(self, groups: Ints) -> None:
        self._grow(1 + int(groups.max(initial=-1)))
        for name, value in (*_EMPTY.items(), ("head", self.groups["start"][groups]), ("size", 0), ("open", 0)):
            self.groups[name][groups] = value
        self.groups["edge"][groups] = self.groups["k"][groups] = 0

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        check_places(self.groups, len(self.objects))
        sizes, run = self.groups["size"], runs(self.objects, self.groups, np.arange(len(self.groups)))
        require(near(run["stamp"]) and within(run["serial"], 0, NEVER - 1), "objects have stamps and serials")
        require(not np.isnan(run["key"]).any(), "objects have keys")
        ages = (run["stamp"], run["serial"]) if self.queries["oldest"][0] else (-run["stamp"], -run["serial"])
        require(rising(sizes, -run["key"], *ages), "a list is best first")
        require(not run["was"].any() and not self.groups["open"].any(), "no batch is open")
        require(not (run["inside"] & ~run["shown"]).any(), "a member has been shown")
        require(within(run["inside"], 0, 1) and within(run["shown"], 0, 1), "members are marked by a bit")
        require((run["dom"] >= 0).all() and within(run["counts"], 0, 1), "counters are counters")
        places = np.arange(len(run)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        edge = np.repeat(self.groups["edge"], sizes)
        require((places[run["inside"] > 0] < edge[run["inside"] > 0]).all(), "members are before the edge")
        require((np.repeat(self.groups["oldest"], sizes) <= run["stamp"]).all(), "no object is older")
        times = [self.groups[name] for name in ("begin", "last", "ended", "newest")]
        require(all(_is_time(one) for one in times), "sessions have times")
        known = self.groups["due"][(sizes > 0)]
        require(not self.timed or (known < NEVER).all() or self.queries["length"][0] == NEVER, "time is due")
        require(now is None or not self.timed or (self.groups["due"] > now).all(), "what is due has left")


def _is_time(values: Ints) -> bool:
    usual = np.abs(np.clip(values, -NEVER, NEVER)) < 2**62
    return bool((usual | (values == NEVER) | (values == -NEVER)).all())
