"""The base of approximate engines: estimates of rows, a sample that is kept whole, and the precision it shows.

One id in many (by a hash of it) is shadowed: all rows of these ids are kept exactly, beside what the engine keeps.
Every so many arrivals the shadows are compared with the answer: which of them are in it, and which should be but are
missing. That is `precision` in `stats()`. It is rather too low: an object that is missing counts as missing even if
its rank is below that of others that are missing too.

Everything happens at arrivals that their number in the group decides, so the answers do not depend on how a stream is
cut. An object that was dropped and returns is `first` again.

An item is an instance, as in the paper: an object with a stamp. An instance that is dropped leaves what it holds to the
next older one of its object that stays, for as long as that lives: then it has several rows, at most one for each part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skyband.engines.contract import Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.incomplete.base import NO_BATCH, Records
from skyband.engines.incomplete.invariants import check_sample
from skyband.engines.incomplete.kernels.batches import ARRIVAL, CHANGES, WRITTEN, Batch, Output
from skyband.engines.incomplete.kernels.estimates import Estimates, estimate, fold, relink
from skyband.engines.incomplete.kernels.linked_batches import compact_group
from skyband.engines.incomplete.linked_rows import LinkedRows
from skyband.engines.incomplete.sketches import choose
from skyband.engines.invariants import require
from skyband.kernels.records import CHANGE, VISIT
from skyband.query.tuning import Tuning

OFTEN = 64  # arrivals of a group, at least, from one comparison with the shadows to the next
COARSEST, FINEST = 3, 62  # the sample begins with one id in 2^3, and has one in 2^62 at least
BY_GROUP = ("level", "hits", "misses", "looks")  # numbers that each group has; looks: when the next comparison is due


class Approximate(LinkedRows):
    """Rows that are likely to matter, and the shadows."""

    prunes = True

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, **more: Any) -> None:
        super().__init__(specs, tuning, **more)
        self.K, self.length = int(self.views["k"][0]), int(self.views["length"][0])
        self.period = max(OFTEN, 4 * self.K, 0 if self.timed else self.length // 16)
        self.shadow = LinkedRows(specs, tuning, **(more | {"net": True, "register": None}))
        self.level, self.hits, self.misses, self.looks = (np.zeros(0, np.int64) for _ in BY_GROUP)
        self.learned: dict[int, dict[str, Records]] = {}  # by group: what is known of its stream
        self._observed = 0  # arrivals of the batch that shadows and sketches have seen

    def _add_groups(self, total: int) -> None:
        before = len(self.groups)
        super()._add_groups(total)
        for group in range(before, len(self.groups)):
            self.groups["ask_at"][group] = min(self.period, self._patience(group))
        self.groups["limit"][before:] = self._limit(before, 0)
        more = len(self.groups) - len(self.level)
        self.level = np.concatenate([self.level, np.full(more, self._coarsest)])
        self.looks = np.concatenate([self.looks, np.full(more, self.period)])
        self.hits, self.misses = (
            np.concatenate([array, np.zeros(more, np.int64)]) for array in (self.hits, self.misses)
        )

    @property
    def _coarsest(self) -> int:
        """The sample begins with one id in 2 to the power of this."""
        return COARSEST

    def _limit(self, group: int, kept: int) -> int:
        """How many rows a group may have before it is pruned."""
        raise NotImplementedError

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        self._observed, self._arrivals = 0, arrivals
        return super().take(arrivals)

    def _run(self, batch: Batch, visits: Records) -> Records:
        self._taken, self._groups = batch, np.repeat(visits["group"], visits["end"] - visits["begin"])
        changes = super()._run(batch, visits)
        self._feed(len(batch.names), self._arrivals.clock)
        del self._taken, self._groups, self._arrivals
        return changes

    def _feed(self, until: int, clock: int) -> None:
        """Give shadows and sketches the arrivals up to here."""
        here, batch = slice(self._observed, until), self._taken
        self._observed = until
        names, groups = batch.names[here], self._groups[here]
        for group in np.unique(groups[batch.brings[here]]):
            mine = (groups == group) & batch.brings[here]
            columns = (batch.names, batch.parts, batch.stamps, batch.values)
            self._observe(int(group), *(column[here][mine] for column in columns))
        chosen, brings = np.zeros(len(names), np.bool_), batch.brings[here]
        choose(names, groups, self.level, self.tuning.seed, chosen)
        chosen &= brings
        if not chosen.any() and not self.timed:
            return
        taken = np.flatnonzero(chosen) + here.start
        taken = taken[np.argsort(batch.rows[taken], kind="stable")]
        self.shadow.take(
            replace(
                self._arrivals,
                rows=batch.rows[taken],
                groups=self._groups[taken],
                keys=batch.values[taken],
                stamps=batch.stamps[taken],
                now=batch.now[taken],
                names=batch.names[taken],
                parts=batch.parts[taken],
                clock=clock,
                eligible=None,
                more=False,
            )
        )

    def _observe(self, group: int, names: Ints, parts: Ints, stamps: Ints, values: Records) -> None:
        """Learn from more of a group's stream."""

    def _prune(self, group: int, batch: Batch, output: Output) -> Output:
        if self.facts[WRITTEN] + self.margin > len(output.changes):
            output = self._grow(CHANGES, batch, np.empty(0, VISIT), output)
        self._feed(int(self.facts[ARRIVAL]), int(self.groups["now"][group]))
        if self.groups["dead"][group]:
            compact_group(self.store, self.kernel_queries, batch, group)
        seen = int(self.groups["seen"][group])
        if seen >= self.looks[group]:
            self.looks[group] = seen + self.period
            self._look(group)
        if self._is_full(group):
            estimates = self._estimates(group)
            places, _ = self._places(np.array([group]))
            stays = np.zeros(len(self.rows), np.bool_)
            stays[places[self._choose(group, estimates)]] = True
            keep_instances(self, group, stays, batch, output)
            self.groups["limit"][group] = self._limit(group, int(self.groups["size"][group]))
        self.groups["ask_at"][group] = min(int(self.looks[group]), seen + self._patience(group))
        return output

    def _is_full(self, group: int) -> bool:
        """Whether instances are to be dropped."""
        return bool(self.groups["size"][group] > self.groups["limit"][group])

    def _patience(self, group: int) -> int:
        """How many arrivals a group may have until `_prune` is called, whatever it keeps."""
        return self.period

    def _choose(self, group: int, estimates: Estimates) -> Bools:
        """Which rows that lead an instance stay."""
        raise NotImplementedError

    def _estimates(self, group: int) -> Estimates:
        """The estimates of a group's rows."""
        size, objects = int(self.groups["size"][group]), len(self.objects)
        estimates = Estimates(
            current=np.empty(size),
            best=np.empty(size),
            bound=np.empty(size),
            parts=np.empty(size, np.int64),
            chance=np.empty(size),
            values=np.empty(objects * self.d),
            counts=np.empty(objects * self.d, np.int32),
            masks=np.empty(objects, np.int64),
            held=np.empty(objects),
            top=np.empty(4 * self.K),
            work=np.empty(self.d),
        )
        chances, repeats = self._chances(group), self._repeats(group)
        estimate(self.store, self.combination, estimates, group, self.K, chances, repeats, self.repeat)
        return estimates

    def _chances(self, group: int) -> Records:
        """The chances that the parts that an object lacks come."""
        return np.ones((2**self.d if self.d <= 6 else self.d, self.d))

    def _repeats(self, group: int) -> Records:
        """How often each part of an object comes: given, or estimated from the self-join size."""
        if self.tuning.repeats is not None:
            return np.full(self.d, float(self.tuning.repeats))
        known = self.learned.get(group, {}).get("repeats")
        return np.ones(self.d) if known is None else known

    # --- shadows

    def _look(self, group: int) -> None:
        """Compare the shadows with the answer; halve a sample that has grown too large."""
        if group >= len(self.shadow.groups):
            return
        groups = np.array([group])
        shadows = self.shadow._objects_since(groups, self.groups["now"][groups] - self.length)
        answer = self._best(0, self.K, groups)
        worst = (-np.inf, 0, 0)
        if len(answer.key) == self.K:
            worst = (float(answer.key[-1]), int(answer.stamp[-1]), int(answer.serial[-1]))
        members = set(answer.serial.tolist())
        for one in shadows:
            if (float(one["key"]), int(one["stamp"]), int(one["serial"])) >= worst:
                hit = int(one["serial"]) in members
                self.hits[group] += hit
                self.misses[group] += not hit
        while self.shadow.kept[group] > self._most_shadows(group) and self.level[group] < FINEST:
            self._halve(group)

    def _most_shadows(self, group: int) -> int:
        return max(32, int(self.groups["size"][group]) // 8)

    def _halve(self, group: int) -> None:
        """Shadow half of the ids of the sample no more."""
        self.level[group] += 1
        shadow = self.shadow
        compact_group(shadow.store, shadow.kernel_queries, NO_BATCH, group)
        places, _ = shadow._places(np.array([group]))
        names = shadow.objects["name"][shadow.rows["object"][places]]
        keep = np.zeros(len(names), np.bool_)
        choose(names, np.full(len(names), group), self.level, self.tuning.seed, keep)
        stays = np.zeros(len(shadow.rows), np.bool_)
        stays[places[keep]] = True
        keep_instances(shadow, group, stays, NO_BATCH, Output(np.empty(0, CHANGE), np.zeros(1, CHANGE)))

    def more_stats(self) -> dict[str, Any]:
        """Rows of the sample, and the precision that it shows: of so many answers that were compared."""
        hits, misses = int(self.hits.sum()), int(self.misses.sum())
        precision = hits / (hits + misses) if hits + misses else None
        return {"shadows": int(self.shadow.kept.sum()), "precision": precision, "looked": hits + misses}

    def _instances(self, group: int | None = None) -> int:
        """How many instances there are, in one group or in all."""
        groups = np.arange(len(self.groups)) if group is None else np.array([group])
        rows, _ = self._live(groups)
        leads = (rows["older"] < 0) | (self.rows["stamp"][rows["older"]] != rows["stamp"])
        return int(leads.sum())

    def size_of(self, query: int) -> int:
        return self._instances() + int(self.shadow.kept.sum())

    @property
    def nbytes(self) -> int:
        learned = sum(array.nbytes for known in self.learned.values() for array in known.values())
        return super().nbytes + self.shadow.nbytes + learned

    # --- state

    def _nothing_learned(self) -> dict[str, Records]:
        """What is known of a stream that has not begun."""
        return {}

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        ones = np.ones(len(groups), np.int64)
        self.shadow._add_groups(len(self.groups))
        state = super().snapshot(groups)
        state |= {f"shadow {name}": stored for name, stored in self.shadow.snapshot(groups).items()}
        state |= {name: (getattr(self, name)[groups], ones) for name in BY_GROUP}
        known = np.array([int(group) in self.learned for group in groups], np.int64)
        state["known"] = (known, ones)
        for name, like in self._nothing_learned().items():
            arrays = [self.learned[int(group)][name].reshape(-1) for group in groups if int(group) in self.learned]
            flat = np.concatenate([np.empty(0, like.dtype), *arrays])
            state[f"lore {name}"] = (flat, known * like.size)
        return state

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        super().restore(state, trusted=trusted)
        names = self.shadow.snapshot(np.empty(0, np.int64))
        self.shadow.restore({name: state[f"shadow {name}"] for name in names}, trusted=trusted)
        self.level, self.hits, self.misses, self.looks = (state[name].astype(np.int64) for name in BY_GROUP)
        sizes = [len(array) for array in (self.level, self.hits, self.misses, self.looks, state["known"])]
        require({*sizes, len(self.shadow.groups)} == {len(self.groups)}, "every group has its sample")
        self.learned = {int(group): {} for group in np.flatnonzero(state["known"])}
        for name, like in self._nothing_learned().items():
            flat = state[f"lore {name}"].reshape(len(self.learned), *like.shape)
            for known, array in zip(self.learned.values(), flat, strict=True):
                known[name] = array.copy()

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        super().check(deep=deep, now=now)
        self.shadow.check(deep=deep, now=now if self.timed else None)  # it sees only the arrivals of its sample
        require(now is None or (self.shadow.groups["now"] <= now).all(), "a sample's clock has not passed")
        check_sample(self)

    def check_learned(self, group: int, known: dict[str, Records]) -> None:
        """Check what is known of a group's stream."""


def keep_instances(engine: LinkedRows, group: int, stays: Bools, batch: Batch, output: Output) -> None:
    """Keep these instances of a group, by the places of the rows that lead them."""
    fold(engine.store, engine.kernel_queries, batch, group, stays)
    head, size = int(engine.groups["head"][group]), int(engine.groups["size"][group])
    run = engine.order[head : head + size]
    run[:] = run[np.lexsort((engine.rows["serial"][run], engine.rows["stamp"][run]))]
    relink(engine.store, engine.combination, engine.kernel_queries, group, output)
