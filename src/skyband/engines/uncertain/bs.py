"""BS, the base synopsis: the window itself, and a list of its best tuples (jin2008, section 4).

The window is a run in order of age, not the paper's two balanced trees; the candidate list is sorted and complete down
to a level. When it is used up, it is made anew from the window, larger each time that this happens soon.

Cost: O(1) per tuple that stays below the list, O(k d) for each change of a prefix of d tuples, O(W) for a new list.
Memory: O(W).
"""

from __future__ import annotations

from typing import Any

from skyband.engines.contract import Spec
from skyband.engines.uncertain.exclusive import Tied
from skyband.engines.uncertain.synopsis import Kept
from skyband.query.tuning import Tuning


class BS(Kept):
    """The window of independent tuples; of alternatives that exclude each other `Tied` keeps it."""

    name = "BS"

    def __new__(cls, asked: tuple[Spec, ...], tuning: Tuning, *, grouped: bool = False, **more: Any) -> Any:
        return Tied(asked, tuning, **more) if grouped else super().__new__(cls)
