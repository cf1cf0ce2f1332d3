"""Orders of objects: keys of any type as whole numbers that rank as the keys do, larger is better.

Numbers, times and booleans are their own bits, turned where the smallest is best. What is compared as a whole (strings
by their UTF-8 bytes, decimals, bytes) is a word: it has a code, and a label that says where it stands among all words
of its key. A new word gets a label between its neighbours'; where there is no room all get new ones, and codes stay.

Cost: O(log words) for a new word, and O(words) now and then; nothing for one that is known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skyband.engines.contract import Bools, Ints
from skyband.query.expressions import Operand

LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max  # nulls; no number of a key is one of these
BEHIND, AHEAD = 0, 1  # codes of nulls
ROOM = 2**61  # labels are below it, and above -ROOM
STEP = 2**32  # between a last word and the next one
MANY = 8  # words at once, as a part of those that are there: from here on all get new labels


class Way(NamedTuple):
    """How one column of a rank goes."""

    descending: bool  # the largest is best
    nulls_first: bool


class Words:
    """The words of one column, in order."""

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}
        self.sorted: list[Any] = []
        self.order: list[int] = []  # their codes


class Order:
    """What ranks objects besides one number: several keys, nulls, the older of equal ones, offsets and ties."""

    def __init__(self, ways: Sequence[Way], *, oldest: bool, with_ties: bool, offset: int) -> None:
        self.ways, self.oldest, self.with_ties, self.offset = list(ways), oldest, with_ties, offset
        self.reset()

    def reset(self) -> None:
        """Forget all words; whatever is ranked is ranked anew."""
        self.words: dict[int, Words] = {}
        self.flags = np.zeros(len(self.ways) + 2, np.int64)
        self.labels = np.array([-ROOM, ROOM, *[0] * 62], np.int64)
        self.used = 2

    @property
    def width(self) -> int:
        """The columns of a rank: the keys, and the age."""
        return len(self.ways) + 2

    def ranks(self, columns: Sequence[Operand], stamps: Ints, serials: Ints) -> Ints:
        """The ranks of objects with these keys, and this age of their newest rows."""
        rows = np.empty((len(stamps), self.width), np.int64)
        if not len(stamps):  # columns of no object have no type that says whether they hold words
            return rows
        for i, (column, way) in enumerate(zip(columns, self.ways, strict=True)):
            rows[:, i] = self._numbers(i, column, way)
        for i, age in ((-2, stamps), (-1, serials)):
            rows[:, i] = ~age if self.oldest else age
        return rows

    def comparable(self, rows: Ints) -> Ints:
        """Ranks that NumPy compares: words are their labels."""
        found = rows.copy()
        for i in np.flatnonzero(self.flags).tolist():
            found[:, i] = self.flags[i] * self.labels[rows[:, i]]
        return found

    def best(self, groups: Ints, rows: Ints, valid: Bools, k: int, *, whole: bool) -> tuple[Ints, Ints]:
        """The answer of each group, best first, and its ranks; whole: of all objects, not of members alone."""
        found = self.comparable(rows)
        order = np.lexsort((*(~found).T[::-1], groups))
        order = order[valid[order]]
        mine, starts = found[order], np.searchsorted(groups[order], groups[order])
        rank = np.arange(1, len(order) + 1) - starts + (0 if whole else self.offset)
        if self.with_ties and len(order):
            new = np.ones(len(order), np.bool_)
            new[1:] = (starts[1:] != starts[:-1]) | (mine[1:, :-2] != mine[:-1, :-2]).any(axis=1)
            rank = rank[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
        chosen = (rank > self.offset) & (rank <= self.offset + k)
        return order[chosen], rank[chosen]

    def _numbers(self, i: int, column: Operand, way: Way) -> Ints:
        null = null_of(column)
        if column.values.dtype == object:
            self.flags[i] = 1 if way.descending else -1
            codes = self._codes(self.words.setdefault(i, Words()), column.values, null)
            return np.where(null, AHEAD if way.nulls_first == way.descending else BEHIND, codes)
        numbers = ordinals(column.values)
        return np.where(null, MOST if way.nulls_first else LEAST, numbers if way.descending else ~numbers)

    def _codes(self, words: Words, values: Any, null: Bools) -> Ints:
        given = [None if gone else word for word, gone in zip(values.tolist(), null.tolist(), strict=True)]
        if new := {word for word in given if word is not None} - words.codes.keys():
            self._add(words, sorted(new))
        return np.array([words.codes.get(word, 0) for word in given], np.int64)

    def _add(self, words: Words, new: list[Any]) -> None:
        """Give new words codes and labels."""
        if self.used + len(new) > len(self.labels):
            self.labels = np.concatenate([self.labels, np.zeros(len(self.labels) + len(new), np.int64)])
        crowded = MANY * len(new) > len(words.sorted)
        for code, word in enumerate(new, self.used):
            words.codes[word] = code
            if crowded:
                continue
            place = bisect_left(words.sorted, word)
            low = self.labels[words.order[place - 1]] if place else -ROOM
            high = self.labels[words.order[place]] if place < len(words.order) else ROOM
            self.labels[code] = (
                min(low + (high - low) // 2, low + STEP) if place == len(words.order) else (low + high) // 2
            )
            crowded = not low < self.labels[code] < high
            words.sorted.insert(place, word)
            words.order.insert(place, code)
        self.used += len(new)
        if crowded:
            words.sorted = sorted(words.codes)  # known ones are in order: a merge
            words.order = [words.codes[word] for word in words.sorted]
            size = len(words.order)
            self.labels[words.order] = np.arange(1, size + 1) * (2 * ROOM // (size + 1)) - ROOM

    @property
    def nbytes(self) -> int:
        return int(self.labels.nbytes) + sum(100 * len(words.codes) for words in self.words.values())


def null_of(column: Operand) -> Bools:
    """Which values are null, or NaN."""
    null = np.zeros(len(column.values), np.bool_) if column.valid is None else ~column.valid
    return null | np.isnan(column.values) if column.values.dtype.kind == "f" else null


def ordinals(values: Any) -> Ints:
    """Whole numbers in the order of these; -0.0 is 0.0."""
    if values.dtype.kind == "f":
        bits = (values.astype(np.float64) + 0.0).view(np.int64)
        return bits ^ ((bits >> 63) & MOST)  # type: ignore[no-any-return]
    if values.dtype == np.uint64:
        return (values ^ np.uint64(2**63)).view(np.int64)  # type: ignore[no-any-return]
    return values.astype(np.int64)  # type: ignore[no-any-return]
