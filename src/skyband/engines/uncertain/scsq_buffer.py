"""SCSQ-Buffer: the newest tuples wait in a buffer; segments are updated by k H of them at once (jin2008, Algorithm 2).

Only C(S_W) follows each arrival. When the buffer is full, its tuples change the segments' sets, and segments of its own
are built from the newest tuple that admits a compact set on. The steps are in kernels/scsq_buffer.py.

Cost: O(log W) per arrival on average, and O(k H) for each change of C(S_W); memory O(H (k + log W)), the buffer not
counted, which has k H tuples.

Errata: `B = empty` (line 8) loses tuples: those newer than the first set, which admit no compact set, stay in the
buffer. C(S_W) is rebuilt from the oldest segment and the buffer together, without expired tuples. A tuple that is kept
must not enter a set twice.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from skyband.engines.uncertain.csq import newer_than
from skyband.engines.uncertain.kernels.queue import FRESH
from skyband.engines.uncertain.kernels.scsq_buffer import take_scsq_buffer
from skyband.engines.uncertain.queue_groups import Group, run_of
from skyband.engines.uncertain.scsq import SCSQ

Records = NDArray[Any]


class SCSQBUFFER(SCSQ):
    name = "SCSQ-BUFFER"
    kernel = staticmethod(take_scsq_buffer)

    def waiting(self, group: Group) -> Records:
        return run_of(group.stored, FRESH)

    def check_fresh(self, fresh: Records) -> None:
        assert all(newer_than(fresh[i + 1], fresh[i]) for i in range(len(fresh) - 1)), "the buffer is in order of age"
