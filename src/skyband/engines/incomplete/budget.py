"""BUDGET, our own approximation: a fixed number of rows, those that are most likely to matter.

Idea: the chance of an instance to become an answer depends on how many parts it has, how old it is (how long it still
lives, and how long ago its object was seen), and how much it lacks. What objects in its place have gained in the rest
of their lives is learnt from the shadows, whose lives are known to the end; what it lacks is measured against the
newer objects, as many of the k best of them as its age is a share of the window, so that a change of scale is
followed at once. When the rows are more than the budget, a tenth of them goes: those of the smallest chance.

`budget` counts all rows that are kept, the shadows among them (at most a fifth of it); 20 times k unless it is given.
Memory is bounded by it, whatever the window. With `repeat` the same, since gains are learnt and not computed.

Cost: one sweep of the budget for each tenth of it that arrives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.contract import Asked, Bools, Ints
from skyband.engines.incomplete.approximate import Approximate
from skyband.engines.incomplete.parts import Records
from skyband.kernels import pieces
from skyband.kernels.appraising import Sheet, weigh
from skyband.kernels.combine import score_of
from skyband.tuning import Tuning

AGES = np.array([0.0, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2])  # shares of the window
GROWN = 7 / 8  # the age at which a life is known
LIVES = 48  # gains that are remembered for each number of parts and each age
USUAL = 20  # times k


class BUDGET(Approximate):
    """So many rows, and no more."""

    name = "BUDGET"

    def __init__(self, asked: tuple[Asked, ...], tuning: Tuning, **more: Any) -> None:
        self.budget = tuning.budget or USUAL * max(one.k for one in asked)
        super().__init__(asked, tuning, **more)

    def _room(self, group: int) -> int:
        """How many instances there may be, besides the shadows."""
        shadows = int(self.shadow.kept[group]) if group < len(self.shadow.packs) else 0
        return max(self.K, self.budget - shadows)

    def _limit(self, group: int, kept: int) -> int:
        """In rows: each one that comes is one instance more at most."""
        return kept + max(1, self._room(group) - (self._instances(group) if kept else 0))

    def _most_shadows(self, group: int) -> int:
        return self.budget // 5

    def _new_lore(self) -> dict[str, Records]:
        return {
            "gains": np.zeros((self.d + 1, len(AGES), LIVES)),
            "many": np.zeros((self.d + 1, len(AGES)), np.int64),
            "learnt": np.array([pieces.NOWHERE]),
        }

    def _look(self, group: int) -> None:
        super()._look(group)
        if group < len(self.shadow.packs):
            self._learn(group)
        self.packs["limit"][group] = self._limit(group, int(self.packs["size"][group]))

    def _learn(self, group: int) -> None:
        """What instances of the sample have gained from each age to the end of their lives."""
        lore = self.lore.setdefault(group, self._new_lore())
        now = int(self.packs["now"][group])
        rows, _ = self.shadow._live(np.array([group]))
        grown = int(now - GROWN * self.length)
        fresh = np.flatnonzero((rows["stamp"] > lore["learnt"][0]) & (rows["stamp"] <= grown))
        lore["learnt"][0] = max(int(lore["learnt"][0]), grown)
        for one in fresh:
            mine = rows[one:][rows["object"][one:] == rows["object"][one]]
            end, final = int(rows["stamp"][one]) + self.length, self._score(mine)
            for place, row in enumerate(mine):
                then, until = mine[: place + 1], int(mine["stamp"][place + 1]) if place + 1 < len(mine) else end
                m, gain = len(set(then["part"].tolist())), final - self._score(then)
                for b, age in enumerate(AGES):
                    if row["stamp"] + age * self.length < until:  # it was silent for so long
                        lore["gains"][m, b, int(lore["many"][m, b]) % LIVES] = gain
                        lore["many"][m, b] += 1

    def _objects(self, group: int) -> Ints:
        """The objects of a group, but for those without a score."""
        places, _ = self._places(np.array([group]))
        things = np.unique(self.rows["object"][places]).astype(np.int64)
        return things[~np.isnan(self.sights["score"][things])]

    def _score(self, rows: Records) -> float:
        """Of an object that has just these rows."""
        values = self.recipe.lows.copy()
        for part in set(rows["part"].tolist()):
            mine = rows["value"][rows["part"] == part]
            values[part] = mine.sum() if self.repeat == pieces.TOTAL else mine.max() if self.repeat == pieces.MOST else mine[-1]
        return score_of(self.recipe, values)

    def _choose(self, group: int, sheet: Sheet) -> Bools:
        lore = self.lore.get(group) or self._new_lore()
        every = np.sort(self.sights["score"][self._objects(group)])
        weigh(self.store, sheet, group, self.K, self.length, lore["gains"], lore["many"], AGES, every)
        wanted = np.where(np.isnan(sheet.wanted), -np.inf, sheet.wanted)
        most = max(self.K, self._room(group) * 9 // 10)
        bar = np.partition(wanted, -most)[-most] if len(wanted) > most else -np.inf
        keep: Bools = (wanted >= bar) & (wanted > -np.inf)
        return keep
