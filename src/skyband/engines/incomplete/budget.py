"""BUDGET, our own approximation: a fixed number of rows, those that are most likely to matter.

Idea: whether an instance will be an answer depends on how many parts its object has, on how long ago the object was
seen, and on how long the instance still lives. How often another row comes after which silence is learned from all
objects that are kept, the shadows among them, for as long as they are kept: a dropped object says nothing more, but
nothing wrong either (rows that came over time spent waiting, as in a life table). Where little is known of a silence,
the one just shorter stands for it. The values of such rows are recent ones, each once. The score it would have then is
compared with the others: those newer ones that are above it now, and as many more as are above it in the whole window,
or four times those that began in its last quarter if values have become smaller, for the share of the window that is
still to come. So each instance has a chance. When there are nearly as many instances as the budget allows, a tenth of
them is dropped: those of the smallest chance.

`budget` counts all that is kept, the rows of the shadows among them (about a tenth of it); 20 times k unless it is
given. Memory is bounded by it, whatever the window: an instance has at most one row for each part, and three numbers
for each object say what was seen of it. With `repeat` the same: rows that repeat a part are rows more.

Cost: one sweep of the budget for each tenth of it that arrives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines.contract import Bools, Ints, Spec
from skyband.engines.incomplete.approximation import Approximate
from skyband.engines.incomplete.base import Records
from skyband.engines.incomplete.kernels.batches import NOWHERE, ONCE, Batch, Output
from skyband.engines.incomplete.kernels.estimates import Estimates, Outlook, weigh
from skyband.engines.incomplete.linked_rows import LinkedRows
from skyband.engines.invariants import FAR, near, require, within
from skyband.kernels.records import NEVER
from skyband.query.tuning import Tuning

BINS = 32  # of a window, by length of silence
VALUES = 61  # recent values of each part
STRIDE = 10  # through them for the second row more, and so on by its powers: no two rows more go together
REMEMBERED = 400  # rows that came after a silence, for each number of parts
PRIOR = 0.25  # windows of waiting at a silence that count as those at the one just shorter
USUAL = 20  # times k


class BUDGET(Approximate):
    """As many rows as the budget allows, those with the best chances."""

    name = "BUDGET"

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, **more: Any) -> None:
        most = [spec.k if more["timed"] else min(spec.k, spec.length) for spec in specs]
        self.budget = tuning.budget or USUAL * max(most)
        super().__init__(specs, tuning, **more)
        self.met: dict[int, dict[int, tuple[int, int, int]]] = {}  # by group and id: parts, last seen, waited until

    @property
    def _coarsest(self) -> int:
        """From one comparison to the next the sample grows by a twentieth of the budget at most."""
        return max(super()._coarsest, math.ceil(math.log2(20 * self.period / self.budget)))

    def _capacity(self, group: int) -> int:
        """How many instances there may be beside the shadows."""
        shadows = int(self.shadow.kept[group]) if group < len(self.shadow.groups) else 0
        return max(self.K, self.budget - shadows)

    def _limit(self, group: int, kept: int) -> int:
        """Instances are counted, not rows."""
        return NEVER

    def _is_full(self, group: int) -> bool:
        capacity = self._capacity(group)
        return self._instances(group) >= capacity - max(1, capacity // 40)

    def _patience(self, group: int) -> int:
        """Each arrival is one instance and one shadow more at most."""
        return max(1, (self._capacity(group) - self._instances(group)) // 2)

    def _most_shadows(self, group: int) -> int:
        return self.budget // 10

    @property
    def _futures(self) -> int:
        """How many rows more are counted."""
        return self.d if self.repeat == ONCE else max(self.d, self.tuning.repeats or 0, 8)

    def _nothing_learned(self) -> dict[str, Records]:
        return {
            "comes": np.zeros((self.d + 1, BINS)),
            "waits": np.zeros((self.d + 1, BINS)),
            "recent": np.tile(self.combination.highs[:, None], (1, VALUES)),
            "filled": np.zeros(self.d, np.int64),
            "met": np.zeros((self.budget + 2, 4), np.int64),
        }

    def _observe(self, group: int, names: Ints, parts: Ints, stamps: Ints, values: Records) -> None:
        """Learn recent values, and after which silence objects are seen again."""
        known = self.learned.setdefault(group, self._nothing_learned())
        for part in range(self.d):
            mine = values[parts == part]
            places = int(known["filled"][part]) + np.arange(len(mine))
            known["recent"][part, places[-VALUES:] % VALUES] = mine[-VALUES:]
            known["filled"][part] += len(mine)
        met, returned = self.met.setdefault(group, {}), []
        for name, part, stamp in zip(names.tolist(), parts.tolist(), stamps.tolist(), strict=True):
            seen, last, since = met.get(name, (0, NOWHERE, 0))
            if stamp - last < self.length:
                now = max(stamp, last)
                returned.append((seen.bit_count(), last, since, now))
                met[name] = (seen | 1 << part, now, now)
            else:
                met[name] = (1 << part, stamp, stamp)
        if returned:
            silent = np.array(returned)
            self._wait(known, silent)
            bins = ((silent[:, 3] - silent[:, 1]) / self.length * BINS).astype(np.int64)
            np.add.at(known["comes"], (silent[:, 0], np.minimum(bins, BINS - 1)), 1)

    def _wait(self, known: dict[str, Records], silent: Ints) -> None:
        """Add the waiting of silent objects: by parts, last seen, waited until before, waited until now."""
        _, last, since, until = (column[:, None] for column in silent.T)
        bins = np.arange(BINS) / BINS
        begin, end = (np.clip((time - last) / self.length, bins, bins + 1 / BINS) for time in (since, until))
        np.add.at(known["waits"], silent[:, 0], end - begin)

    def _prune(self, group: int, batch: Batch, output: Output) -> Output:
        output = super()._prune(group, batch, output)
        stay = _names(self, group) | _names(self.shadow, group)
        self.met[group] = {name: one for name, one in self.met[group].items() if name in stay}
        return output

    def _hazards(self, group: int) -> Records:
        """Rates of another row, by how many parts an object has, added up over how long it has been silent."""
        known, met, now = self.learned[group], self.met[group], int(self.groups["now"][group])
        silent = [(seen.bit_count(), last, since, now) for seen, last, since in met.values()]
        self._wait(known, np.array(silent, np.int64).reshape(-1, 4))
        self.met[group] = {name: (seen, last, now) for name, (seen, last, _) in met.items()}
        comes, waits = known["comes"], known["waits"]
        rates, before = np.zeros((self.d + 1, BINS + 1)), (comes.sum(axis=1) + 0.5) / (waits.sum(axis=1) + 0.5)
        for b in range(BINS):
            before = rates[:, b + 1] = (comes[:, b] + PRIOR * before) / (waits[:, b] + PRIOR)
        old = comes.sum(axis=1) > REMEMBERED
        comes[old] *= 0.5  # older observations count less
        waits[old] *= 0.5
        if self.repeat == ONCE:
            rates[self.d] = 0.0
        added: Records = np.cumsum(rates, axis=1) / BINS
        return added

    def _draws(self, group: int) -> Records:
        """By rows more, part and future: a recent value. Each comes once, spread evenly."""
        strides = np.array([pow(STRIDE, t, VALUES) for t in range(self._futures)])
        places = strides[:, None] * np.arange(VALUES) % VALUES
        draws: Records = np.sort(self.learned[group]["recent"], axis=1)[:, places]
        return np.ascontiguousarray(draws.swapaxes(0, 1))

    def _last_seen(self, group: int) -> Ints:
        """By object, when its last row came: a dropped instance may have left it to an older one."""
        seen, met = np.zeros(len(self.objects), np.int64), self.met[group]
        places, _ = self._places(np.array([group]))
        for o in np.unique(self.rows["object"][places]).tolist():
            seen[o] = met[int(self.objects["name"][o])][1]
        return seen

    def _scored(self, group: int) -> Ints:
        """The objects of a group that have a score."""
        places, _ = self._places(np.array([group]))
        objects = np.unique(self.rows["object"][places]).astype(np.int64)
        scored: Ints = objects[~np.isnan(self.scores["score"][objects])]
        return scored

    def _choose(self, group: int, estimates: Estimates) -> Bools:
        objects = self._scored(group)
        born = self.rows["stamp"][self.objects["oldest"][objects]]
        recent = objects[born > self.groups["now"][group] - self.length // 4]
        outlook = Outlook(
            self.K,
            self.length,
            seen=self._last_seen(group),
            hazards=self._hazards(group),
            draws=self._draws(group),
            scores=np.sort(self.scores["score"][objects]),
            recent=np.sort(self.scores["score"][recent]),
            odds=np.empty(self._futures + 1),
        )
        weigh(self.store, self.combination, estimates, outlook, group, self.repeat)
        chance = np.where(np.isnan(estimates.chance), -np.inf, estimates.chance)
        capacity = self._capacity(group)
        most = max(self.K, capacity - max(2, capacity // 10))
        best = np.lexsort((-np.arange(len(chance)), -chance))[:most]  # of equal chances the newer stay
        keep = np.zeros(len(chance), np.bool_)
        keep[best] = True
        return keep & (chance > -np.inf)

    # --- state

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        for group, met in self.met.items():
            stored = self.learned[group]["met"]
            stored[:] = 0
            stored[: len(met)] = np.array([(name, *one) for name, one in met.items()], np.int64).reshape(-1, 4)
        return super().snapshot(groups)

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        super().restore(state, trusted=trusted)
        self.met = {
            group: {name: (seen, last, since) for name, seen, last, since in known["met"].tolist() if seen}
            for group, known in self.learned.items()
        }

    def check_learned(self, group: int, known: dict[str, Records]) -> None:
        met, lows, highs = self.met[group], self.combination.lows[:, None], self.combination.highs[:, None]
        require((known["comes"] >= 0).all() and (known["waits"] >= 0).all(), "what has come is counted")
        require(((known["recent"] >= lows) & (known["recent"] <= highs)).all(), "recent values are in range")
        require(within(known["filled"], 0, FAR) and len(met) <= self.budget + 2, "values are counted")
        require(all(0 < seen < 1 << self.d for seen, _, _ in met.values()), "objects were seen with parts")
        times = np.array([(last, since) for _, last, since in met.values()], np.int64)
        require(near(times.reshape(-1)), "objects were seen at times")
        require(_names(self, group) <= met.keys(), "the objects that are kept were seen")


def _names(engine: LinkedRows, group: int) -> set[int]:
    """The ids of a group's objects."""
    rows, _ = engine._live(np.array([group]) if group < len(engine.groups) else np.empty(0, np.int64))
    return set(engine.objects["name"][rows["object"]].tolist())
