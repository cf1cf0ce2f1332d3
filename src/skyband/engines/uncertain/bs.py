"""BS, the base synopsis: the window itself, and its best tuples by rank (jin2008, section 4).

The window is a run in order of age, not a balanced tree in rank order as in the paper; the best tuples are copied
to a sorted list that is complete down to a level (the front). When it is used up, it is made anew from the window,
larger each time that this happens soon.

Cost: O(1) per tuple that stays below the front, O(k d) for each change of a prefix of d tuples, O(W) for a new front.
Memory: O(W).
"""

from __future__ import annotations

from typing import Any

from skyband.engines.contract import Spec
from skyband.engines.uncertain.exclusive import ExclusiveBS
from skyband.engines.uncertain.front_engine import FrontEngine
from skyband.query.tuning import Tuning


class BS(FrontEngine):
    """The window of independent tuples; `ExclusiveBS` keeps one of alternatives that exclude each other."""

    name = "BS"

    def __new__(cls, specs: tuple[Spec, ...], tuning: Tuning, *, grouped: bool = False, **more: Any) -> Any:
        return ExclusiveBS(specs, tuning, **more) if grouped else super().__new__(cls)
