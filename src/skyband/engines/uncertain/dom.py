"""DOM: a tuple is dropped once the newer ones that rank above it are enough by themselves (ours; papers/README.md).

If the newer tuples above a tuple satisfy the stop condition of the semantics (semantics.py), no answer will be read as
far down as that tuple again: the condition is self-maintaining, and those above outlive it. What is left is exactly
the union of the compact sets C(S_i) of all suffixes of the window, which the queues of jin2008 keep as sets (section
4): about 200 tuples of 100,000 at k = 10, p uniform, in random order, for each of the four semantics.

Arrivals are swept a block at a time, from the newest to the oldest: one comparison with the floor of what is enough so
far drops most of them. The floor is found again only when a quarter more tuples are above it, so a few more are kept
than necessary; a window is swept when it has doubled, so windows that admit no compact set (strictly falling scores,
tiny probabilities) are kept whole at the cost of BS.

Cost: O(1) per arrival that stays below the front; O(k d) for each change of a prefix of d tuples. Memory: about
H (1 + ln(W/H)) tuples for a compact set of H.
"""

from __future__ import annotations

from typing import ClassVar

from skyband.engines.uncertain.front_engine import FrontEngine


class DOM(FrontEngine):
    """The union of the compact sets of all suffixes, as one set."""

    name = "DOM"
    drops: ClassVar[bool] = True
