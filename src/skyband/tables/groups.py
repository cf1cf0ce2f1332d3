"""Groups: values of the `per` columns to dense codes, and back. No loop per row; null is a group too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.tables.columns import Column, as_arrow, distinct, key_bits, valid_of

Ints = NDArray[np.int64]


class _Coder:
    """Dense codes for 64-bit keys and null, in order of first appearance."""

    def __init__(self) -> None:
        self.table = np.full(64, -1, np.int64)
        self.keys = np.empty(32, np.int64)
        self.state = np.array([0, -1])  # how many are known, the code of null

    def encode(self, keys: Ints, valid: NDArray[np.bool_] | None) -> tuple[Ints, Ints]:
        """Codes, and for each new one the row where it was first seen."""
        from skyband.kernels.routing import intern

        known = int(self.state[0])
        codes, seen = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        begin = 0
        while begin < len(keys):  # in pieces, so that room grows with the keys and not with the rows
            end = min(len(keys), begin + max(4096, int(self.state[0])))
            self._grow(int(self.state[0]) + end - begin)
            part = np.empty(0, np.bool_) if valid is None else valid[begin:end]
            intern(
                keys[begin:end],
                part,
                self.table,
                self.keys,
                self.state,
                codes[begin:end],
                seen[self.state[0] - known :],
                begin,
            )
            begin = end
        return codes, seen[: self.state[0] - known]

    def _grow(self, most: int) -> None:
        if most > len(self.keys):
            self.keys = np.concatenate([self.keys, np.empty(max(most, 2 * len(self.keys)) - len(self.keys), np.int64)])
        if 2 * most > len(self.table):
            from skyband.kernels.routing import reindex

            self.table = np.full(1 << (4 * most - 1).bit_length(), -1, np.int64)
            reindex(self.table, self.keys, self.state)


class Groups:
    """The groups of one `per`; without columns there is one group, code 0."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.columns: list[Column] = []
        self.total = 0 if names else 1
        self._words: list[dict[Any, int]] = [{} for _ in names]
        self._coders = [_Coder() for _ in names]
        self._pairs = [_Coder() for _ in names[1:]]

    def codes(self, columns: Sequence[Any], rows: int) -> Ints:
        """The group of each row; groups not seen before get the next codes."""
        if not self.names:
            return np.zeros(rows, np.int64)
        codes, fresh = self._encode(0, columns[0])
        for place in range(1, len(columns)):
            right, _ = self._encode(place, columns[place])
            codes, fresh = self._pairs[place - 1].encode((codes << 32) | right, None)
        if not self.columns:
            self.columns = [Column(column.type) for column in columns]
        for kept, column in zip(self.columns, columns, strict=True):
            kept.append(column.take(as_arrow(fresh)))
        self.total += len(fresh)
        return codes

    def codes_where(self, wanted: NDArray[np.bool_], columns: Sequence[Any]) -> Ints:
        """The group of each wanted row; the others get any."""
        if not self.names or wanted.all():
            return self.codes(columns, len(wanted))
        codes = np.zeros(len(wanted), np.int64)
        rows = np.flatnonzero(wanted)
        codes[rows] = self.codes([column.take(as_arrow(rows)) for column in columns], len(rows))
        return codes

    def find(self, key: tuple[Any, ...]) -> int | None:
        """The code of one group by its values, or None."""
        if not self.names:
            return 0
        if not self.columns:
            return None
        try:
            values = [pa.array([value], column.type) for value, column in zip(key, self.columns, strict=True)]
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            return None
        match = np.ones(self.total, np.bool_)
        for value, column in zip(values, self.columns, strict=True):
            match &= _same(column.all(), value)
        found = np.flatnonzero(match)
        return int(found[0]) if len(found) else None

    def _encode(self, place: int, column: Any) -> tuple[Ints, Ints]:
        coder, valid, keys = self._coders[place], valid_of(column), key_bits(column)
        if keys is None:
            values, slots = distinct(column)
            words = self._words[place]
            keys = np.array([*(words.setdefault(_hashable(word), len(words)) for word in values), 0])[slots]
        return coder.encode(keys, valid)


def _same(column: Any, value: Any) -> NDArray[np.bool_]:
    """Which rows hold the one value of an array; null is null, NaN is NaN."""
    wanted = value[0].as_py()
    if wanted is None:
        same = column.is_null()
    elif wanted != wanted:
        same = column.is_nan()
    else:
        import pyarrow.compute as pc

        try:
            same = pc.equal(column, value[0])
        except pa.ArrowNotImplementedError:  # of lists, extensions and some others
            return np.array([held == wanted for held in column.to_pylist()], np.bool_)
    return np.asarray(same.fill_null(False), np.bool_)


def _hashable(value: Any) -> Any:
    """Lists and structs as tuples, so that they can be looked up."""
    if isinstance(value, list):
        return tuple(_hashable(part) for part in value)
    return tuple((name, _hashable(part)) for name, part in value.items()) if isinstance(value, dict) else value
