"""COMPACT, the compact set of all that has arrived: the engine of windows without end (jin2008, section 3).

The compact set C(D) is the shortest prefix of the ranking for which the stop condition of the semantics holds
(semantics.py). It is *self-maintaining*: with any tuple more the condition still holds, so that a tuple which ranks
below the set can never be in an answer. Where nothing expires ("landmark windows", section 1) the set is all that is
kept: a tuple below it is dropped when it arrives, and what an insertion pushes below it for good.

Cost: one comparison for an arrival below the set, O(k H) for one that gets into a set of H tuples: in random order
H·(1 + ln(n/H)) of n do. Small probabilities make the set large, and while tuples admit none all are kept.
The steps are in kernels/compact.py.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from skyband.engines.uncertain.csq import same
from skyband.engines.uncertain.kernels.compact import FULL, take_compact
from skyband.engines.uncertain.kernels.queue import CURRENT
from skyband.engines.uncertain.queue_engine import QueueEngine
from skyband.engines.uncertain.queue_groups import Group, run_of

Records = NDArray[Any]


class COMPACT(QueueEngine):
    """The compact set of every group."""

    name = "COMPACT"
    kernel = staticmethod(take_compact)

    def needed_of(self, group: Group) -> Records:
        """The whole set: nothing expires."""
        return self.tuples(group)

    def check_sets(self, group: Group) -> None:
        one, known = run_of(group.stored, CURRENT), self.compact(self.tuples(group))
        assert (known is not None) == bool(group.stored.facts[FULL]), "the set is full if it can be"
        assert known is None or same(one, known), "the set is as long as it must be"
