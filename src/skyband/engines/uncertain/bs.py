"""BS, the base synopsis: the window itself, and its best tuples by rank (jin2008, section 4).

The window is a run in order of age, not a balanced tree in rank order as in the paper; the best tuples are copied
to a sorted list that is complete down to a level (the front). When it is used up, it is rebuilt from the window,
larger if that happens soon after the last time.

Cost: O(1) per tuple that stays below the front, O(k d) for each change of a prefix of d tuples, O(W) for a new front.
Memory: O(W).
"""

from __future__ import annotations

from skyband.engines.uncertain.front_engine import FrontEngine


class BS(FrontEngine):
    """The window of independent tuples; exclusive.py has it for alternatives that exclude each other."""

    name = "BS"
