"""Groups: values of the `per` columns to dense codes, and back. No loop per row; null is a group too.

A group whose objects are gone can be put to rest: it loses its code, and of its values only 128 bits stay, under which
its next numbers are found when it returns (engines/numbering.py). So it costs 48 to 64 bytes for one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.tables.columns import Column, as_arrow, distinct, key_bits, name_digests, valid_of

Ints = NDArray[np.int64]
Mark = tuple[int, list[int], list[int], int]  # how many groups, words, codes and resting ones there are


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

            self.table = np.full(1 << (2 * most - 1).bit_length(), -1, np.int64)
            reindex(self.table, self.keys, self.state)

    def __len__(self) -> int:
        return int(self.state[0])

    def revert(self, size: int) -> None:
        """Know only the first so many again."""
        if size < len(self):
            from skyband.kernels.routing import drop_last

            drop_last(self.table, self.keys, self.state, size)

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes + self.keys.nbytes)


class _Resting:
    """Places of groups at rest, by 128 bits of their values: exact for one column of up to 64 bits, else BLAKE2b.

    Of 10^9 groups two have the same bits with a chance of 1.5e-21.
    """

    def __init__(self) -> None:
        self.coder = _Coder()
        self.checks = np.empty(0, np.int64)  # by place: the other half of the bits

    def places(self, keys: Ints, checks: Ints, valid: NDArray[np.bool_] | None) -> Ints:
        """The place of each group; those that are not there get the next ones."""
        found, left = np.empty(len(keys), np.int64), np.arange(len(keys))
        while len(left):
            found[left], seen = self.coder.encode(keys[left], None if valid is None else valid[left])
            more = max(len(self.coder), len(self.checks) + len(self.checks) // 4) - len(self.checks)
            if len(self.coder) > len(self.checks):
                self.checks = np.concatenate([self.checks, np.empty(more, np.int64)])
            self.checks[len(self.coder) - len(seen) : len(self.coder)] = checks[left[seen]]
            left = left[self.checks[found[left]] != checks[left]]  # half of the bits are another group's
            keys = keys + (checks | 1)
        return found


class Groups:
    """The groups of one `per`; without columns there is one group, code 0."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.columns: list[Column] = []
        self.total = 0 if names else 1
        self._words: list[dict[Any, int]] = [{} for _ in names]
        self._coders = [_Coder() for _ in names]
        self._pairs = [_Coder() for _ in names[1:]]
        self._resting: _Resting | None = None  # none has been put to rest yet
        self.places: Ints = np.empty(0, np.int64)  # by group: where its numbers at rest are, once any are

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
        new = [column.take(as_arrow(fresh)) for column in columns]
        for kept, column in zip(self.columns, new, strict=True):
            kept.append(column)
        self.total += len(fresh)
        if self._resting is not None:
            self.places = np.append(self.places, self._resting.places(*name_digests(new)))
        return codes

    # --- back to what was known

    def mark(self) -> Mark:
        """What is known now, for `revert`."""
        coders = [*self._coders, *self._pairs]
        resting = 0 if self._resting is None else len(self._resting.coder)
        return self.total, [len(words) for words in self._words], [len(coder) for coder in coders], resting

    def revert(self, mark: Mark) -> None:
        """Forget the groups that are new since the mark: their batch was refused."""
        total, words, codes, resting = mark
        for known, size in zip(self._words, words, strict=True):
            while len(known) > size:
                known.popitem()
        for coder, size in zip([*self._coders, *self._pairs], codes, strict=True):
            coder.revert(size)
        for column in self.columns:
            column.cut(total)
        self.columns = self.columns if total else []
        self.total, self.places = total, self.places[:total]
        if self._resting is not None:
            self._resting.coder.revert(resting)

    # --- groups at rest

    def rest(self, codes: Ints) -> Ints:
        """Where the numbers of these groups, which will lose their codes, are to be kept."""
        if self._resting is None:
            self._resting = _Resting()
            self.places = self._resting.places(*name_digests([column.all() for column in self.columns]))
        return self.places[codes]

    def keep(self, codes: Ints) -> None:
        """Know only these groups, under the codes 0, 1, ..."""
        columns = [column.take(codes) for column in self.columns]
        places, resting = self.places[codes] if len(self.places) else self.places, self._resting
        self.__init__(self.names)  # type: ignore[misc]
        if len(codes):
            self.codes(columns, len(codes))
        self._resting, self.places = resting, places

    @property
    def resting(self) -> int:
        """How many groups have places for their numbers at rest."""
        return 0 if self._resting is None else len(self._resting.coder)

    @property
    def nbytes(self) -> int:
        """Bytes in use; of Python objects only the references are counted."""
        coders = [*self._coders, *self._pairs]
        resting = 0
        if self._resting is not None:
            coders, resting = [*coders, self._resting.coder], int(self._resting.checks.nbytes)
        return sum(column.nbytes for column in self.columns) + sum(coder.nbytes for coder in coders) + resting

    # --- snapshots

    def resting_keys(self) -> Ints:
        """The groups at rest as rows of keys, checks and whether they have values, in the order of their places."""
        assert self._resting is not None
        size, null = len(self._resting.coder), int(self._resting.coder.state[1])
        valid = np.arange(size) != null
        return np.stack([np.where(valid, self._resting.coder.keys[:size], 0), self._resting.checks[:size], valid])

    def set_resting(self, keys: Ints) -> None:
        """The inverse of `resting_keys`."""
        self._resting = _Resting()
        self._resting.places(keys[0], keys[1], keys[2] > 0)
        if self.total:
            self.places = self._resting.places(*name_digests([column.all() for column in self.columns]))

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

    def holding(self, column: Any) -> tuple[Ints, Ints]:
        """The groups whose value in the last of at most two columns is in this column, and the first row of each."""
        mark = self.mark()
        codes, fresh = self._encode(len(self.names) - 1, column)
        known = len(self._coders[-1]) - len(fresh)
        first = np.full(len(self._coders[-1]), -1)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        self.revert(mark)
        rows = first[:known]
        if len(self.names) > 1:
            rows = rows[self._pairs[0].keys[: self.total] & 0xFFFFFFFF]
        groups = np.flatnonzero(rows >= 0)
        return groups, rows[groups]

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
    elif pa.types.is_nested(column.type):
        return np.array([held == wanted for held in column.to_pylist()], np.bool_)
    else:
        import pyarrow.compute as pc

        same = pc.equal(column, value[0])
    return np.asarray(same.fill_null(False), np.bool_)


def _hashable(value: Any) -> Any:
    """Lists and structs as tuples, so that they can be looked up."""
    if isinstance(value, list):
        return tuple(_hashable(part) for part in value)
    return tuple((name, _hashable(part)) for name, part in value.items()) if isinstance(value, dict) else value
