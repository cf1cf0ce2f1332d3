"""The expected size of an engine's state: what the models behind `explain` return.

A model is a function of an algorithm's name, a query, the arrivals in the window of one group (None: not known) and
what else is expected of the stream. It compiles nothing and reads no data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """What a group is expected to keep.

    objects: how many, None if not known; why: sentences; error: how exact answers are; each: bytes of an object;
    besides: bytes of everything else a group has; notes: limits of the estimate.
    """

    objects: float | None
    why: tuple[str, ...]
    error: str = "exact"
    each: float = 40 + 8  # an object in an engine, and its id
    besides: float = 0
    notes: tuple[str, ...] = ()

    def nbytes(self, groups: float) -> int | None:
        """Bytes of all groups."""
        return None if self.objects is None else round(groups * (self.objects * self.each + self.besides))


def harmonic(n: int) -> float:
    """1 + 1/2 + ... + 1/n."""
    if n < 100:
        return sum(1 / i for i in range(1, n + 1))
    return math.log(n) + 0.5772156649015329 + 1 / (2 * n) - 1 / (12 * n * n)
