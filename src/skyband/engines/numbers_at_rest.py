"""The next numbers of groups that have no objects and no code: 11 bytes a group, for numbers below 2^8.

A group is known by 64 bits of its values (sorted, in runs of falling sizes) and 16 more that tell apart those with the
same. They are exact for one column of up to 64 bits, else BLAKE2b: of 10^6 groups two are the same with a chance of
4e-13. Numbers only rise, so where a group is in two runs the larger one holds. O(log n) amortised for a group that is
put here, as runs are merged; O(log² n) to look one up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Checks = NDArray[np.uint16]


class Run(NamedTuple):
    """Groups by rising keys, each key once."""

    keys: Ints
    checks: Checks  # no entries: all are 0
    numbers: NDArray[Any]  # by sequence and group, of the narrowest type

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self.checks.nbytes + self.numbers.nbytes)


class NumbersAtRest:
    """Numbers by key and check of a group, so many for each."""

    def __init__(self, sequences: int) -> None:
        self.sequences = sequences
        self._runs: list[Run] = []  # each at least twice as long as the next
        self._others: dict[tuple[int, int], Ints] = {}  # groups that have the key of another

    def __len__(self) -> int:
        return sum(len(run.keys) for run in self._runs) + len(self._others)

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self._runs)

    def put(self, keys: Ints, checks: Checks, numbers: Ints) -> None:
        """Put these groups to rest; numbers by sequence and group."""
        run = self._sorted(keys, checks, numbers)
        while self._runs and len(self._runs[-1].keys) < 2 * len(run.keys):
            old = self._runs.pop()
            both = [_whole(one) for one in (old, run)]
            run = self._sorted(*(np.concatenate(arrays, axis=-1) for arrays in zip(*both, strict=True)))
        self._runs.append(run)

    def _sorted(self, keys: Ints, checks: Checks, numbers: Any) -> Run:
        """One run of groups of which each may be there twice."""
        order = np.argsort(keys, kind="stable")
        keys, checks, numbers = keys[order], checks[order], numbers[:, order]
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            same = checks[twice] == checks[twice + 1]
            for i in twice[~same].tolist():
                self._put_other((int(keys[i]), int(checks[i])), numbers[:, i].astype(np.int64))
            old, new = twice[same], twice[same] + 1
            numbers[:, new] = np.maximum(numbers[:, old], numbers[:, new])
            keep = np.ones(len(keys), np.bool_)
            keep[twice] = False
            keys, checks, numbers = keys[keep], checks[keep], numbers[:, keep]
        narrow = numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
        return Run(keys, checks if checks.any() else checks[:0], np.ascontiguousarray(narrow))

    def _put_other(self, name: tuple[int, int], numbers: Ints) -> None:
        self._others[name] = np.maximum(numbers, self._others.get(name, 0))

    def get(self, keys: Ints, checks: Checks) -> Ints:
        """The numbers of these groups, by sequence and group; 0 where there is none."""
        found = np.zeros((self.sequences, len(keys)), np.int64)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run.keys, keys), len(run.keys) - 1)
            known = run.keys[places] == keys
            known &= checks == (run.checks[places] if len(run.checks) else 0)
            found[:, known] = np.maximum(found[:, known], run.numbers[:, places[known]])
        for (key, check), numbers in self._others.items():
            same = (keys == key) & (checks == check)
            found[:, same] = np.maximum(found[:, same], numbers[:, None])
        return found

    def of(self, sequences: Sequence[int]) -> NumbersAtRest:
        """The numbers of these sequences."""
        made = NumbersAtRest(len(sequences))
        made._runs = [run._replace(numbers=run.numbers[list(sequences)]) for run in self._runs]
        made._others = {name: numbers[list(sequences)] for name, numbers in self._others.items()}
        return made

    def add(self, other: NumbersAtRest) -> None:
        """Take the largest numbers of any sequence of another, for one sequence here."""
        for keys, checks, numbers in other.arrays():
            self.put(keys, checks, numbers.max(axis=0, keepdims=True).astype(np.int64))

    def fingerprint(self) -> tuple[bytes, ...]:
        """Equal for equal numbers that were put here in the same order."""
        return tuple(array.tobytes() for piece in self.arrays() for array in piece)

    # --- snapshots

    def arrays(self) -> list[tuple[Ints, Checks, NDArray[Any]]]:
        """All that is here, in pieces that `put` takes."""
        pieces = [_whole(run) for run in self._runs]
        for (key, check), numbers in self._others.items():
            pieces.append((np.array([key]), np.array([check], np.uint16), numbers[:, None].astype(np.uint64)))
        return pieces


def _whole(run: Run) -> tuple[Ints, Checks, NDArray[Any]]:
    return run.keys, run.checks if len(run.checks) else np.zeros(len(run.keys), np.uint16), run.numbers
