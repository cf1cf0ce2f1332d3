"""BUDGET, our own approximation: a fixed number of rows, those that are most likely to matter.

Idea: whether an instance will be an answer depends on how many parts its object has, on how long ago it was seen
last, and on how long the instance still lives. How many rows more objects in its place have got is learnt from the
shadows, whose lives are known to the end; their values are drawn from those that have come lately. The score it would
have then is held against the others: those newer ones that are above it now, and as many more as are above it in the
whole window, for the share of the window that is still to come. So each instance has a chance. When there are more
instances than the budget allows, a tenth of them goes: those of the smallest chance.

`budget` counts all that is kept, the rows of the shadows among them (at most a fifth of it); 20 times k unless it is
given. Memory is bounded by it, whatever the window: an instance has at most one row for each part. With `repeat` the
same: rows that come again are rows more.

Cost: one sweep of the budget for each tenth of it that arrives.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skyband.engines.contract import Asked, Bools, Ints
from skyband.engines.incomplete.approximate import Approximate
from skyband.engines.incomplete.parts import Records
from skyband.kernels import pieces
from skyband.kernels.appraising import Sheet, weigh
from skyband.kernels.records import NEVER
from skyband.tuning import Tuning

AGES = np.array([0.0, 1 / 32, 1 / 16, 3 / 32, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2])  # shares of the window
GROWN = 7 / 8  # the age at which a life is known
VALUES = 61  # of each part, that have come lately
REMEMBERED = 200  # lives of the sample, for each number of parts and each silence
USUAL = 20  # times k


class BUDGET(Approximate):
    """So many rows, and no more."""

    name = "BUDGET"

    def __init__(self, asked: tuple[Asked, ...], tuning: Tuning, **more: Any) -> None:
        self.budget = tuning.budget or USUAL * max(one.k for one in asked)
        super().__init__(asked, tuning, **more)

    @property
    def _coarsest(self) -> int:
        """From one look to the next the sample grows by a twentieth of the budget at most."""
        return max(super()._coarsest, math.ceil(math.log2(20 * self.period / self.budget)))

    @property
    def _room(self) -> int:
        """How many instances there may be: a fifth is for the shadows."""
        return max(self.K, self.budget - self.budget // 5)

    def _limit(self, group: int, kept: int) -> int:
        """Instances are counted, not rows."""
        return NEVER

    def _is_full(self, group: int) -> bool:
        return self._instances(group) >= self._room

    def _patience(self, instances: int) -> int:
        """Each arrival is one instance more at most."""
        return max(1, self._room - instances)

    def _most_shadows(self, group: int) -> int:
        return self.budget * 3 // 20

    @property
    def _futures(self) -> int:
        """How many rows more are counted."""
        return self.d if self.repeat == pieces.ONCE else max(self.d, self.tuning.repeats or 0, 8)

    def _new_lore(self) -> dict[str, Records]:
        return {
            "lives": np.zeros((self.d + 1, len(AGES), self._futures + 1)),
            "recent": np.tile(self.recipe.highs[:, None], (1, VALUES)),
            "filled": np.zeros(self.d, np.int64),
            "learnt": np.array([pieces.NOWHERE]),
        }

    def _observe(self, group: int, names: Ints, parts: Ints, stamps: Ints, values: Records) -> None:
        """The values that have come lately."""
        lore = self.lore.setdefault(group, self._new_lore())
        for part in range(self.d):
            mine = values[parts == part][-VALUES:]
            places = (
                int(lore["filled"][part]) + int((parts == part).sum()) - len(mine) + np.arange(len(mine))
            ) % VALUES
            lore["recent"][part, places] = mine
            lore["filled"][part] += int((parts == part).sum())

    def _look(self, group: int) -> None:
        super()._look(group)
        if group < len(self.shadow.packs):
            self._learn(group)

    def _learn(self, group: int) -> None:
        """How many rows more objects of the sample have got, after each number of parts and each silence."""
        lore, lives = self.lore[group], self.lore[group]["lives"]
        now = int(self.packs["now"][group])
        rows, _ = self.shadow._live(np.array([group]))
        grown = int(now - GROWN * self.length)
        fresh = np.flatnonzero((rows["stamp"] > lore["learnt"][0]) & (rows["stamp"] <= grown))
        lore["learnt"][0] = max(int(lore["learnt"][0]), grown)
        for one in fresh:
            if rows["object"][one] in rows["object"][:one]:
                continue  # its object has older rows
            mine = rows[one:][rows["object"][one:] == rows["object"][one]]
            end = int(rows["stamp"][one]) + self.length
            for place, row in enumerate(mine):
                until = int(mine["stamp"][place + 1]) if place + 1 < len(mine) else end
                m, n = len(set(mine["part"][: place + 1].tolist())), min(len(mine) - place - 1, self._futures)
                for b, age in enumerate(AGES):
                    if row["stamp"] + age * self.length < until:  # it was silent for so long
                        lives[m, b, n] += 1
        lives[lives.sum(axis=2) > REMEMBERED] *= 0.5  # what was long ago counts less

    def _chances(self, lore: dict[str, Records]) -> Records:
        """Of so many rows more; where little is known, all are as likely."""
        lives = lore["lives"] + 0.05
        m = np.arange(self.d + 1)[:, None, None]
        if self.repeat == pieces.ONCE:  # no more than there are parts left
            lives = np.where(np.arange(self._futures + 1)[None, None, :] <= self.d - m, lives, 0.0)
        chances: Records = lives / lives.sum(axis=2, keepdims=True)
        return chances

    def _objects(self, group: int) -> Ints:
        """The objects of a group, but for those without a score."""
        places, _ = self._places(np.array([group]))
        things = np.unique(self.rows["object"][places]).astype(np.int64)
        scored: Ints = things[~np.isnan(self.sights["score"][things])]
        return scored

    def _choose(self, group: int, sheet: Sheet) -> Bools:
        lore = self.lore[group]
        weigh(
            self.store,
            self.recipe,
            sheet,
            group,
            self.K,
            self.length,
            self._chances(lore),
            AGES,
            lore["recent"],
            np.sort(self.sights["score"][self._objects(group)]),
            self.repeat,
            np.empty(self.d),
        )
        wanted = np.where(np.isnan(sheet.wanted), -np.inf, sheet.wanted)
        most = max(self.K, self._room * 9 // 10)
        best = np.lexsort((-np.arange(len(wanted)), -wanted))[:most]  # of equal chances the newer stay
        keep = np.zeros(len(wanted), np.bool_)
        keep[best] = True
        return keep & (wanted > -np.inf)
