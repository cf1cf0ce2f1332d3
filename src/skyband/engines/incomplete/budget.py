"""BUDGET, our own approximation: a fixed number of rows, those that are most likely to matter.

Idea: whether an instance will be an answer depends on how many parts its object has, on how long ago it was seen
last, and on how long the instance still lives. How often a row more comes after which silence is learnt from all
objects that are kept, the shadows among them, for as long as they are: who goes tells nothing any more, but nothing
wrong either (rows that came over time spent waiting, as in a life table). Where little is known of a silence, the one
just shorter speaks for it. The values of such rows are those that have come lately, each once. The score it would have
then is held against the others: those newer ones that are above it now, and as many more as are above it in the whole
window, or four times those that began in its last quarter if values have become smaller, for the share of the window
that is still to come. So each instance has a chance. When there are nearly as many instances as the budget allows, a
tenth of them goes: those of the smallest chance.

`budget` counts all that is kept, the rows of the shadows among them (about a tenth of it); 20 times k unless it is
given. Memory is bounded by it, whatever the window: an instance has at most one row for each part, and three numbers
for each object say what was seen of it. With `repeat` the same: rows that come again are rows more.

Cost: one sweep of the budget for each tenth of it that arrives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines.contract import Bools, Ints, Spec
from skyband.engines.incomplete.approximation import Approximate
from skyband.engines.incomplete.assembly import Parts
from skyband.engines.incomplete.base import Records
from skyband.engines.incomplete.kernels import rows as pieces
from skyband.engines.incomplete.kernels.prospects import Sheet, weigh
from skyband.kernels.records import NEVER
from skyband.query.tuning import Tuning

BINS = 32  # of a window: silences are told apart by them
VALUES = 61  # of each part, that have come lately
STRIDE = 10  # through them for the second row more, and so on by its powers: no two rows more go together
REMEMBERED = 400  # rows that came after a silence, for each number of parts
PRIOR = 0.25  # windows of waiting at a silence that count as those at the one just shorter
USUAL = 20  # times k


class BUDGET(Approximate):
    """So many rows, and no more."""

    name = "BUDGET"

    def __init__(self, asked: tuple[Spec, ...], tuning: Tuning, **more: Any) -> None:
        self.budget = tuning.budget or USUAL * max(one.k for one in asked)
        super().__init__(asked, tuning, **more)
        self.met: dict[int, dict[int, tuple[int, int, int]]] = {}  # by group and id: parts, seen last, looked at last

    @property
    def _coarsest(self) -> int:
        """From one look to the next the sample grows by a twentieth of the budget at most."""
        return max(super()._coarsest, math.ceil(math.log2(20 * self.period / self.budget)))

    def _room(self, group: int) -> int:
        """How many instances there may be beside the shadows."""
        shadows = int(self.shadow.kept[group]) if group < len(self.shadow.packs) else 0
        return max(self.K, self.budget - shadows)

    def _limit(self, group: int, kept: int) -> int:
        """Instances are counted, not rows."""
        return NEVER

    def _is_full(self, group: int) -> bool:
        room = self._room(group)
        return self._instances(group) >= room - max(1, room // 40)

    def _patience(self, group: int) -> int:
        """Each arrival is one instance and one shadow more at most."""
        return max(1, (self._room(group) - self._instances(group)) // 2)

    def _most_shadows(self, group: int) -> int:
        return self.budget // 10

    @property
    def _futures(self) -> int:
        """How many rows more are counted."""
        return self.d if self.repeat == pieces.ONCE else max(self.d, self.tuning.repeats or 0, 8)

    def _new_lore(self) -> dict[str, Records]:
        return {
            "comes": np.zeros((self.d + 1, BINS)),
            "waits": np.zeros((self.d + 1, BINS)),
            "recent": np.tile(self.recipe.highs[:, None], (1, VALUES)),
            "filled": np.zeros(self.d, np.int64),
            "met": np.zeros((self.budget + 2, 4), np.int64),
        }

    def _observe(self, group: int, names: Ints, parts: Ints, stamps: Ints, values: Records) -> None:
        """The values that have come lately, and who has come again after which silence."""
        lore = self.lore.setdefault(group, self._new_lore())
        for part in range(self.d):
            mine = values[parts == part]
            places = int(lore["filled"][part]) + np.arange(len(mine))
            lore["recent"][part, places[-VALUES:] % VALUES] = mine[-VALUES:]
            lore["filled"][part] += len(mine)
        met, again = self.met.setdefault(group, {}), []
        for name, part, stamp in zip(names.tolist(), parts.tolist(), stamps.tolist(), strict=True):
            seen, last, since = met.get(name, (0, pieces.NOWHERE, 0))
            if stamp - last < self.length:
                now = max(stamp, last)
                again.append((seen.bit_count(), last, since, now))
                met[name] = (seen | 1 << part, now, now)
            else:
                met[name] = (1 << part, stamp, stamp)
        if again:
            silent = np.array(again)
            self._wait(lore, silent)
            bins = ((silent[:, 3] - silent[:, 1]) / self.length * BINS).astype(np.int64)
            np.add.at(lore["comes"], (silent[:, 0], np.minimum(bins, BINS - 1)), 1)

    def _wait(self, lore: dict[str, Records], silent: Ints) -> None:
        """Objects (of so many parts, seen last at, looked at last at) have been silent until a time."""
        _, last, since, until = (column[:, None] for column in silent.T)
        bins = np.arange(BINS) / BINS
        begin, end = (np.clip((time - last) / self.length, bins, bins + 1 / BINS) for time in (since, until))
        np.add.at(lore["waits"], silent[:, 0], end - begin)

    def _prune(self, group: int, alive: Bools, serial: int, out: Records, step: Records) -> Records:
        out = super()._prune(group, alive, serial, out, step)
        stay = _names(self, group) | _names(self.shadow, group)
        self.met[group] = {name: one for name, one in self.met[group].items() if name in stay}
        return out

    def _risks(self, group: int) -> Records:
        """Of a row more, by how many parts an object has, added up over how long it has been silent."""
        lore, met, now = self.lore[group], self.met[group], int(self.packs["now"][group])
        self._wait(lore, np.array([(seen.bit_count(), last, since, now) for seen, last, since in met.values()]))
        self.met[group] = {name: (seen, last, now) for name, (seen, last, _) in met.items()}
        comes, waits = lore["comes"], lore["waits"]
        rates, before = np.zeros((self.d + 1, BINS + 1)), (comes.sum(axis=1) + 0.5) / (waits.sum(axis=1) + 0.5)
        for b in range(BINS):
            before = rates[:, b + 1] = (comes[:, b] + PRIOR * before) / (waits[:, b] + PRIOR)
        old = comes.sum(axis=1) > REMEMBERED
        comes[old] *= 0.5  # what was long ago counts less
        waits[old] *= 0.5
        if self.repeat == pieces.ONCE:
            rates[self.d] = 0.0
        added: Records = np.cumsum(rates, axis=1) / BINS
        return added

    def _drawn(self, group: int) -> Records:
        """By how many rows more, part and future: a value that has come lately. Each comes once, spread evenly."""
        strides = np.array([pow(STRIDE, t, VALUES) for t in range(self._futures)])
        places = strides[:, None] * np.arange(VALUES) % VALUES
        drawn: Records = np.sort(self.lore[group]["recent"], axis=1)[:, places]
        return np.ascontiguousarray(drawn.swapaxes(0, 1))

    def _last_seen(self, group: int) -> Ints:
        """By object: when its last row came. An instance that has gone may have left it to an older one."""
        seen, met = np.zeros(len(self.things), np.int64), self.met[group]
        places, _ = self._places(np.array([group]))
        for thing in np.unique(self.rows["object"][places]).tolist():
            seen[thing] = met[int(self.things["name"][thing])][1]
        return seen

    def _objects(self, group: int) -> Ints:
        """The objects of a group, but for those without a score."""
        places, _ = self._places(np.array([group]))
        things = np.unique(self.rows["object"][places]).astype(np.int64)
        scored: Ints = things[~np.isnan(self.sights["score"][things])]
        return scored

    def _choose(self, group: int, sheet: Sheet) -> Bools:
        seen, things = self._last_seen(group), self._objects(group)
        born = self.rows["stamp"][self.things["oldest"][things]]
        lately = things[born > self.packs["now"][group] - self.length // 4]
        weigh(
            self.store,
            self.recipe,
            sheet,
            group,
            self.K,
            self.length,
            self._risks(group),
            seen,
            self._drawn(group),
            np.sort(self.sights["score"][things]),
            np.sort(self.sights["score"][lately]),
            self.repeat,
            np.empty(self.d),
            np.empty(self._futures + 1),
        )
        wanted = np.where(np.isnan(sheet.wanted), -np.inf, sheet.wanted)
        room = self._room(group)
        most = max(self.K, room - max(2, room // 10))
        best = np.lexsort((-np.arange(len(wanted)), -wanted))[:most]  # of equal chances the newer stay
        keep = np.zeros(len(wanted), np.bool_)
        keep[best] = True
        return keep & (wanted > -np.inf)

    # --- state

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        for group, met in self.met.items():
            stored = self.lore[group]["met"]
            stored[:] = 0
            stored[: len(met)] = [(name, *one) for name, one in met.items()]
        return super().snapshot(groups)

    def restore(self, state: Mapping[str, Records]) -> None:
        super().restore(state)
        self.met = {
            group: {name: (seen, last, since) for name, seen, last, since in lore["met"].tolist() if seen}
            for group, lore in self.lore.items()
        }


def _names(engine: Parts, group: int) -> set[int]:
    """The ids of a group's objects."""
    rows, _ = engine._live(np.array([group]) if group < len(engine.packs) else np.empty(0, np.int64))
    return set(engine.things["name"][rows["object"]].tolist())
