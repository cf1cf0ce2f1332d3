"""APPROX, the approximate algorithm (haghani2009, section 4): best scores by how likely parts are to come at all.

Idea: most objects are never seen in all streams. A part that an object lacks counts not as its highest value but as
that times the chance that an object seen where this one was is seen there too, from sliding FM sketches of the
streams. What then cannot reach the k best current scores of newer objects is dropped.

Cost: a sweep of what is kept for each tenth that it grows; 49 kB of sketches for each part and group.

Departures. Always by sweep, never by counters: an estimate may rise again, so who was dominated once may not stay so
(measured by the authors of this library: precision .99 against .95 at C=50). With `repeat` (section 5) a part that
has come c times may come m - c times more; m is `repeats=`, or the self-join size of its stream over its rows, by AMS
sketches: how often the id of a row comes on the average. `sum` adds the highest value so many times; with `last` and
`max` the part may rise to its highest value with the chance m - c. With more than six parts chances go by pairs.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Bools, Ints
from skyband.engines.incomplete.approximation import Approximate, sketches
from skyband.engines.incomplete.base import Records
from skyband.engines.incomplete.kernels import rows as pieces
from skyband.engines.incomplete.kernels.prospects import Sheet
from skyband.engines.incomplete.sketches import Sketches


class APPROX(Approximate):
    """What is not expected to become an answer is dropped."""

    name = "APPROX"

    def _limit(self, group: int, kept: int) -> int:
        return max(self.least, kept + kept // 10)

    def _new_lore(self) -> dict[str, Records]:
        estimated = self.repeat != pieces.ONCE and self.tuning.repeats is None
        fresh = Sketches(self.d, self.length, self.tuning.seed, repeats=estimated)
        return {
            "bits": fresh.bits,
            "counters": fresh.counters,
            "rows": fresh.rows,
            "odds": Approximate._odds(self, 0),
            "repeats": np.ones(self.d),
        }

    def _observe(self, group: int, names: Ints, parts: Ints, stamps: Ints, values: Records) -> None:
        if group not in self.lore:
            self.lore[group] = self._new_lore()
        sketches(self.lore[group], self.d, self.length, self.tuning.seed).observe(names, parts, stamps)

    def _look(self, group: int) -> None:
        super()._look(group)
        lore, now = self.lore[group], int(self.packs["now"][group])
        known = sketches(lore, self.d, self.length, self.tuning.seed)
        lore["odds"] = known.odds(now)
        if len(lore["counters"]):
            lore["repeats"] = known.repeats(now)

    def _odds(self, group: int) -> Records:
        return self.lore[group]["odds"]

    def _choose(self, group: int, sheet: Sheet) -> Bools:
        keep: Bools = (sheet.wanted == np.inf) | ~(np.isnan(sheet.wanted) | (sheet.best < sheet.bound))
        return keep
