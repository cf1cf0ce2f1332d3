"""Sketches of a stream: how many distinct ids it has in the window, and how often they repeat.

No maintained library has these with expiry by time (datasketches has neither). Distinct ids by FM (PCSA) with a stamp
in the place of each bit (haghani2009, section 4): a bit counts while its last stamp is in the window. Repeats by AMS in
its fast form, in slices of the window that are thrown away when they have expired.

Errata: the join size is |a| + |b| - |a or b| (the sign is turned round in the text); the position of the *least*
significant 1-bit is the rightmost, and its maximum is LogLog's statistic: FM takes the first bit that is not set.
Cost: 256 x 24 stamps a part for distinct ids (std. error about 6 %), 9 x 5 x 64 counters a part for repeats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, uncounted_kernel

Records = NDArray[Any]
MAPS, LEVELS = 256, 24
SLICES, DEPTH, WIDTH = 8, 5, 64
MANY = 6  # parts: beyond, chances go by pairs of them
NEVER_SET = -(2**62)
PHI, KAPPA = 0.77351, 1.75  # of Flajolet and Martin; of Scheuermann and Mauve, for few ids


@close
def mix(name: np.int64, seed: int) -> np.uint64:
    """64 bits that look random (splitmix64)."""
    z = np.uint64(name) + np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@uncounted_kernel
def choose(names: Records, groups: Records, levels: Records, seed: int, chosen: Records) -> None:
    """Choose the ids of a sample of one in 2^level, by group."""
    for i in range(len(names)):
        chosen[i] = mix(names[i], seed + 99) & ((np.uint64(1) << np.uint64(levels[groups[i]])) - np.uint64(1)) == 0


@uncounted_kernel
def observe(
    bits: Records,
    counters: Records,
    rows: Records,
    names: Records,
    parts: Records,
    stamps: Records,
    width: int,
    seed: int,
) -> None:
    """Add rows: bits[part, map, level] by the largest stamp; counters[slice, part, depth, ...] and rows."""
    for i in range(len(names)):
        p, h = parts[i], mix(names[i], seed)
        level = 0
        while level < LEVELS - 1 and not (h >> np.uint64(8 + level)) & np.uint64(1):
            level += 1
        m = h & np.uint64(MAPS - 1)
        bits[p, m, level] = max(bits[p, m, level], stamps[i])
        if len(counters):
            number = stamps[i] // width
            s = number % (SLICES + 1)
            if rows[s, p, 1] != number:
                for q in range(len(bits)):
                    rows[s, q, 0] = 0
                    rows[s, q, 1] = number
                    counters[s, q, :, :] = 0
            rows[s, p, 0] += 1
            for depth in range(DEPTH):
                h = mix(names[i], seed + 1 + depth)
                counters[s, p, depth, (h >> np.uint64(1)) & np.uint64(WIDTH - 1)] += 1 if h & np.uint64(1) else -1


@uncounted_kernel
def count_distinct(bits: Records, mask: int, bound: int) -> Any:
    """How many distinct ids were seen in any of these parts (a mask) since the bound."""
    empty, total = 0, 0.0
    for m in range(MAPS):
        level = 0
        while level < LEVELS:
            found = False
            for p in range(len(bits)):
                found |= (mask >> p) & 1 == 1 and bits[p, m, level] > bound
            if not found:
                break
            level += 1
        total += level
        seen = level > 0
        for other in range(LEVELS if not seen else 0):
            for p in range(len(bits)):
                seen |= (mask >> p) & 1 == 1 and bits[p, m, other] > bound
        empty += not seen
    if empty > MAPS // 12:  # few ids: linear counting is better
        return MAPS * np.log(MAPS / empty)
    mean = total / MAPS
    return MAPS / PHI * (2.0**mean - 2.0 ** (-KAPPA * mean))


class Sketches:
    """The sketches of one group; given arrays are used in place."""

    def __init__(
        self,
        parts: int,
        length: int,
        seed: int,
        *,
        repeats: bool,
        arrays: tuple[Records, Records, Records] | None = None,
    ) -> None:
        self.parts, self.length, self.seed = parts, length, seed
        self.width = max(1, -(-length // SLICES))
        self.bits, self.counters, self.rows = arrays or (
            np.full((parts, MAPS, LEVELS), NEVER_SET),
            np.zeros((SLICES + 1 if repeats else 0, parts, DEPTH, WIDTH), np.int64),
            np.full((SLICES + 1, parts, 2), NEVER_SET),
        )

    def observe(self, names: Records, parts: Records, stamps: Records) -> None:
        observe(self.bits, self.counters, self.rows, names, parts, stamps, self.width, self.seed)

    def distinct(self, mask: int, now: int) -> float:
        return float(count_distinct(self.bits, mask, now - self.length)) if mask else 0.0

    def odds(self, now: int) -> Records:
        """The chance that an object seen in these parts (a mask) is seen in that one too.

        With more than six parts by pairs: of the part in the row, given the one in the column.
        """
        d = self.parts
        masks = np.arange(2**d) if d <= MANY else np.concatenate([[0], 1 << np.arange(d)])
        union = np.array([self.distinct(int(mask), now) for mask in masks])
        if d > MANY:
            pairs = [[self.distinct(1 << p | 1 << q, now) for q in range(d)] for p in range(d)]
            single = union[1:]
            joint = np.maximum(0.0, single[:, None] + single[None, :] - np.array(pairs))
            chances: Records = np.minimum(1.0, joint / np.maximum(1.0, single[None, :])).T
            return chances
        signs = np.array([-1 if mask.bit_count() % 2 == 0 else 1 for mask in range(2**d)])
        joint = (signs * union).reshape((2,) * d)
        for axis in range(d):  # inclusion and exclusion: sums over all subsets
            joint = np.cumsum(joint, axis=axis)
        joint = np.maximum(0.0, joint.reshape(-1))
        both = joint[masks[:, None] | 1 << np.arange(d)[None, :]]
        with np.errstate(invalid="ignore", divide="ignore"):
            odds: Records = np.where(joint[:, None] > 0, np.minimum(1.0, both / joint[:, None]), 1.0)
            return odds

    def repeats(self, now: int) -> Records:
        """By part, how often the id of a row comes in the window on the average: self-join size / rows."""
        valid = self.rows[:, 0, 1] * self.width + self.width > now - self.length
        counters = self.counters[valid].sum(axis=0)
        joins = np.median((counters**2).sum(axis=2), axis=1)
        rows = np.where(valid[:, None], np.maximum(self.rows[:, :, 0], 0), 0).sum(axis=0)
        often: Records = np.maximum(1.0, joins / np.maximum(1, rows))
        return often
