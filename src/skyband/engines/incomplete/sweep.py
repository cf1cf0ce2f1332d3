"""SWEEP, our own exact form of haghani2009's early aggregation: interval dominance by a lazy sweep.

Idea: what the paper's counters know at every moment is needed only when something is to be dropped. So rows are kept
as they come, and when a group has grown by a tenth one sweep from its newest row to its oldest finds what can go:
whatever cannot reach the k best current scores of distinct newer objects (kernels/sweeping.py). Answers are kept
from arrival to arrival by a front of a few more than k objects.

Cost of an arrival: a look for its object, two scores, and 1/10 of a sweep of what is kept, spread over the arrivals
that let it grow by a tenth. Keeps up to a tenth more than EAA. With `repeat` an older part may come back with its
highest value at any time, so dominance drops nothing; of one part only rows that a newer one stands for go.

Errata: see eaa.py.
"""

from __future__ import annotations

from skyband.engines.incomplete.parts import Parts
from skyband.kernels.assembling import SWEEP as SWEEPING


class SWEEP(Parts):
    """What interval dominance lets go, goes when enough has come together."""

    name = "SWEEP"
    rule = SWEEPING
