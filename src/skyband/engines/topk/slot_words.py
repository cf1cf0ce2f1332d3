"""The texts of a column as numbers, for boxes of slots that compare it for equality.

A text has a number as long as a slot compares with it or a row of the history has it: one that subscribes later and
begins with its window meets rows by the same number. Cost: a look in a table for each text of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Floats

FEWEST = 1024  # texts before it is worth the while to let some go


class Words:
    """The numbers of texts; the numbers of those that were let go are not given again."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.next = 0
        self.most = FEWEST  # texts, before those that nobody needs are let go

    def numbers(self, texts: Iterable[str]) -> list[float]:
        """The numbers of these texts; new ones get the next."""
        found = []
        for text in texts:
            code = self.codes.setdefault(text, self.next)
            self.next += code == self.next
            found.append(float(code))
        return found

    def keep(self, numbers: Floats) -> None:
        """Let all texts go but those with these numbers."""
        needed = set(numbers[np.isfinite(numbers)].tolist())
        self.codes = {text: code for text, code in self.codes.items() if code in needed}
        self.most = 2 * len(self.codes) + FEWEST

    # --- snapshots

    @property
    def facts(self) -> list[list[Any]]:
        return [list(self.codes), list(self.codes.values())]

    def restore(self, facts: list[list[Any]]) -> None:
        texts, codes = facts
        self.codes = dict(zip(texts, codes, strict=True))
        self.next = max(codes, default=-1) + 1


def are_words(facts: Any) -> bool:
    """Whether a snapshot holds texts and a number of its own for each."""
    if not isinstance(facts, list) or len(facts) != 2 or not all(isinstance(one, list) for one in facts):
        return False
    texts, codes = facts
    fit = len(texts) == len(codes) and all(isinstance(text, str) for text in texts)
    fit = fit and all(isinstance(code, int) and not isinstance(code, bool) and 0 <= code < 2**53 for code in codes)
    return fit and len(set(texts)) == len(texts) == len(set(codes))


def numbers_in_use(history: Iterable[NDArray[np.float64]], *boxes: Floats) -> Floats:
    """What columns of the history and bounds of boxes hold."""
    found: Floats = np.unique(np.concatenate([*history, *boxes, np.empty(0)]))
    return found
