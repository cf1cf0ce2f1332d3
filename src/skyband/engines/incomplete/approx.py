"""APPROX, the approximate algorithm (haghani2009, section 4): best scores by how likely parts are to come at all.

Idea: most objects are never seen in all streams. A part that an object lacks counts not as its highest value but as
that times the chance that an object seen where this one was is seen there too, from sliding FM sketches of the
streams. Instances with a best score that then cannot reach the k best current scores of newer objects are dropped.

Cost: a sweep of what is kept for each tenth that it grows; 49 kB of sketches for each part and group.

Departures. Always by sweep, never by counters: an estimate may rise again, so an instance that was dominated once may
not stay so (measured by the authors of this library: precision .99 against .95 at C=50). With `repeat` (section 5) a
part that has come c times may come m - c times more; m is `repeats=`, or the self-join size of its stream over its
rows, by AMS sketches: how often the id of a row comes on the average. `sum` adds the highest value so many times; with
`last` and `max` the part may rise to its highest value with the chance m - c. With more than six parts chances go by
pairs.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Bools, Ints
from skyband.engines.incomplete.approximation import Approximate
from skyband.engines.incomplete.base import Records
from skyband.engines.incomplete.kernels.batches import ONCE
from skyband.engines.incomplete.kernels.estimates import Estimates
from skyband.engines.incomplete.sketches import Sketches


class APPROX(Approximate):
    """Instances that are expected to become an answer."""

    name = "APPROX"

    def _limit(self, group: int, kept: int) -> int:
        return max(self.least, kept + kept // 10)

    def _nothing_learned(self) -> dict[str, Records]:
        estimated = self.repeat != ONCE and self.tuning.repeats is None
        fresh = Sketches(self.d, self.length, self.tuning.seed, repeats=estimated)
        return {
            "bits": fresh.bits,
            "counters": fresh.counters,
            "rows": fresh.rows,
            "odds": Approximate._chances(self, 0),
            "repeats": np.ones(self.d),
        }

    def _sketches(self, group: int) -> Sketches:
        """The sketches of a group's stream."""
        known = self.learned[group]
        arrays = (known["bits"], known["counters"], known["rows"])
        return Sketches(self.d, self.length, self.tuning.seed, repeats=len(known["counters"]) > 0, arrays=arrays)

    def _observe(self, group: int, names: Ints, parts: Ints, stamps: Ints, values: Records) -> None:
        if group not in self.learned:
            self.learned[group] = self._nothing_learned()
        self._sketches(group).observe(names, parts, stamps)

    def _look(self, group: int) -> None:
        super()._look(group)
        known, sketches, now = self.learned[group], self._sketches(group), int(self.groups["now"][group])
        known["odds"] = sketches.odds(now)
        if len(known["counters"]):
            known["repeats"] = sketches.repeats(now)

    def _chances(self, group: int) -> Records:
        return self.learned[group]["odds"]

    def _choose(self, group: int, estimates: Estimates) -> Bools:
        chance = estimates.chance
        keep: Bools = (chance == np.inf) | ~(np.isnan(chance) | (estimates.best < estimates.bound))
        return keep
