"""Groups: values of the `per` columns to dense codes, and back. No loop per row; null is a group too.

A group whose objects are gone can lose its code. Its numbers stay, under 80 bits of its values, for its return
(engines/numbers_at_rest.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.tables.columns import ARROW_ERRORS, Column, as_arrow, distinct, key_bits, name_digests, valid_of

Ints = NDArray[np.int64]
Mark = tuple[int, list[int], list[int], list[Any]]  # how many groups, words and codes there are; types of columns


class _Coder:
    """Dense codes for 64-bit keys and null, in order of first appearance."""

    def __init__(self) -> None:
        self.table = np.full(64, -1, np.int64)
        self.keys = np.empty(32, np.int64)
        self.state = np.array([0, -1, 0])  # how many are known, the code of null, how many were known before these rows

    def encode(self, keys: Ints, valid: NDArray[np.bool_] | None) -> tuple[Ints, Ints]:
        """Codes, and for each new one the row where it was first seen."""
        from skyband.kernels.routing import drop_last, intern, reindex

        known = int(self.state[0])
        if not known:  # kernels of rare steps are loaded now: later there may be no memory, and LLVM ends the process
            reindex(self.table, self.keys, self.state)
            drop_last(self.table, self.keys, self.state, 0)
        codes, seen = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        nulls = np.empty(0, np.bool_) if valid is None else valid
        self.state[2] = known
        done = intern(keys, nulls, self.table, self.keys, self.state, codes, seen, 0)
        while done < len(keys):  # so room grows with the keys and not with the rows
            self._grow(4 * int(self.state[0]))
            done = intern(keys, nulls, self.table, self.keys, self.state, codes, seen, done)
        return codes, seen[: self.state[0] - known]

    def _grow(self, most: int) -> None:
        if most > len(self.keys):
            self.keys = np.concatenate([self.keys, np.empty(max(most, 2 * len(self.keys)) - len(self.keys), np.int64)])
        if 2 * most > len(self.table):
            from skyband.kernels.routing import reindex

            table = np.full(1 << (2 * most - 1).bit_length(), -1, np.int64)
            reindex(table, self.keys, self.state)
            self.table = table  # at the end: an interrupt before leaves the one in which all is found

    def __len__(self) -> int:
        return int(self.state[0])

    def revert(self, size: int) -> None:
        """Know only the first so many again."""
        if size < len(self):
            from skyband.kernels.routing import drop_last

            drop_last(self.table, self.keys, self.state, size)


class Groups:
    """The groups of one `per`; without columns there is one group, code 0."""

    def __init__(self, names: tuple[str, ...], inputs: tuple[str, ...] | None = None) -> None:
        self.names = names
        self.inputs = names if inputs is None else inputs  # what batches call these columns
        self.columns: list[Column] = []
        self.total = 0 if names else 1
        self._words: list[dict[Any, int]] = [{} for _ in names]
        self._coders = [_Coder() for _ in names]
        self._pairs = [_Coder() for _ in names[1:]]
        self._new: tuple[int, int, Any] | None = None  # digests of the newest groups

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

    # --- back to what was known

    def mark(self) -> Mark:
        """What is known now, for `revert`."""
        coders = [*self._coders, *self._pairs]
        types = [column.type for column in self.columns]
        return self.total, [len(words) for words in self._words], [len(coder) for coder in coders], types

    def revert(self, mark: Mark) -> None:
        """Forget the groups that are new since the mark: their batch was refused."""
        total, words, codes, types = mark
        for known, size in zip(self._words, words, strict=True):
            while len(known) > size:
                known.popitem()
        for coder, size in zip([*self._coders, *self._pairs], codes, strict=True):
            coder.revert(size)
        self.columns = self.columns if total else []
        for column, type_ in zip(self.columns, types, strict=True):
            column.cut(total, type_)
        self.total, self._new = total, None

    # --- groups go

    def keep(self, codes: Ints) -> None:
        """Know only these groups, under the codes 0, 1, ..."""
        columns = [column.take(codes) for column in self.columns]
        self.__init__(self.names, self.inputs)  # type: ignore[misc]
        if len(codes):
            self.codes(columns, len(codes))

    def digests(self, codes: Ints) -> tuple[Ints, NDArray[np.uint16]]:
        """These groups as 64 bits and 16 more each, the same whenever they return."""
        return name_digests([column.take(codes) for column in self.columns])

    def new_digests(self, known: int) -> tuple[Ints, NDArray[np.uint16]]:
        """The same of the groups from this code on, computed once."""
        if self._new is None or self._new[:2] != (known, self.total):
            self._new = (known, self.total, self.digests(np.arange(known, self.total)))
        return self._new[2]

    def codes_where(self, wanted: NDArray[np.bool_], columns: Sequence[Any]) -> Ints:
        """The group of each wanted row; the others get any."""
        if not self.names or wanted.all():
            return self.codes(columns, len(wanted))
        codes = np.zeros(len(wanted), np.int64)
        rows = np.flatnonzero(wanted)
        codes[rows] = self.codes([column.take(as_arrow(rows)) for column in columns], len(rows))
        return codes

    def find(self, keys: Sequence[tuple[Any, ...]]) -> Ints:
        """The codes of the groups with these values, in order of the codes; values that no group has are left out.

        A list, a set or a dict in place of a plain value is a TypeError. Cost: O(groups + keys).
        """
        if not self.columns:
            return np.arange(0 if self.names or not keys else 1)
        known = [key for key in ([*map(_value, self.columns, key)] for key in keys) if None not in key]
        if not known:
            return np.empty(0, np.int64)
        match, wanted = np.ones(self.total, np.bool_), []
        for column, values in zip(self.columns, zip(*known, strict=True), strict=True):
            asked = pa.concat_arrays(values)
            match &= _among(column.all(), asked)
            wanted.append(map(_hashable, asked.to_pylist()))
        candidates, tuples = np.flatnonzero(match), set(zip(*wanted, strict=True))
        held = [map(_hashable, column.take(candidates).to_pylist()) for column in self.columns]
        return candidates[[one in tuples for one in zip(*held, strict=True)]]

    def holding(self, column: Any) -> tuple[Ints, Ints]:
        """The groups whose value in the last of at most two columns is in this column, and the first row of each."""
        mark = self.mark()
        codes, fresh = self._encode(len(self.names) - 1, column)
        known = len(self._coders[-1]) - len(fresh)
        self.revert(mark)
        there = np.flatnonzero(codes < known)
        values, first = np.unique(codes[there], return_index=True)
        if len(self.names) == 1:  # a value is a group
            return values, there[first]
        rows = np.full(known, -1)
        rows[values] = there[first]
        rows = rows[self._pairs[0].keys[: self.total] & 0xFFFFFFFF]
        groups = np.flatnonzero(rows >= 0)
        return groups, rows[groups]

    def _encode(self, place: int, column: Any) -> tuple[Ints, Ints]:
        coder, valid, keys = self._coders[place], valid_of(column), key_bits(column)
        if keys is None:
            values, slots = distinct(column)
            words = self._words[place]
            codes = np.array([*(words.setdefault(_hashable(word), len(words)) for word in values), 0])
            keys = codes.take(slots)  # codes[slots] ends the process if NumPy has no memory for it
        return coder.encode(keys, valid)


def _value(column: Column, value: Any) -> Any:
    """A value as an array of the column's type; None: it has none there."""
    try:
        return pa.array([value], column.type)
    except (*ARROW_ERRORS, TypeError, ValueError, OverflowError) as error:
        if isinstance(value, list | set | dict):
            raise TypeError(f"{value!r} is no {column.type}: {error}") from None
        return None


def _among(column: Any, values: Any) -> NDArray[np.bool_]:
    """Which rows may hold one of these values, null and NaN like any other."""
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):  # -0.0 is 0.0
        column, values = (pc.add(one.cast(pa.float64()), 0.0) for one in (column, values))
    try:
        return np.asarray(pc.is_in(column, value_set=values), np.bool_)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):  # of lists, extensions and some others
        return np.ones(len(column), np.bool_)


def _hashable(value: Any) -> Any:
    """Equal for values of one group, so that they can be looked up: lists, maps and structs as tuples."""
    if isinstance(value, list | tuple):
        return tuple(_hashable(part) for part in value)
    if isinstance(value, dict):
        return tuple((name, _hashable(part)) for name, part in value.items())
    return "NaN" if value != value else value
