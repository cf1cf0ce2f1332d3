"""Columns of vectors as matrices: Arrow lists of any kind, whose components are floats.

Nothing is copied where all rows have the wanted length and one follows the other in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.errors import BatchError
from skyband.tables.columns import bits_of, valid_of

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Vectors:
    """The vectors of one length in a column: a row of the matrix for each row of the batch."""

    matrix: NDArray[Any]  # float16, float32 or float64; zeros where the row has no such vector
    norms: Floats  # the roots of the sums of squares
    faults: dict[str, Bools]  # the rows that have none, by reason; a row has at most one

    def norm_faults(self, column: str) -> dict[str, Bools]:
        """The rows that have no direction, beside those that have no vector."""
        zero = self.norms == 0
        for bad in self.faults.values():
            zero &= ~bad
        return {f"{column} has norm 0": zero}


@dataclass(frozen=True)
class Lists:
    """A column of lists: the components of all of them, and where each begins and ends."""

    name: str
    components: NDArray[Any]
    null: Bools | None  # components that are null
    starts: Ints
    lengths: Ints
    valid: Bools | None  # rows that are not null

    def of_length(self, d: int) -> Vectors:
        """The vectors with d components."""
        from skyband.kernels.vectors import sums_of_squares  # and Numba: with the first arrivals

        rows, faults = len(self.starts), {}
        there = np.ones(rows, np.bool_) if self.valid is None else self.valid
        if self.valid is not None:
            faults[f"{self.name} is null"] = ~self.valid
        other = there & (self.lengths != d)
        if other.any():
            faults[f"{self.name} is no vector of length {d}"] = other
            there = there & ~other
        matrix = self._matrix(d, np.flatnonzero(there))
        if self.null is not None:
            broken = there & self._matrix(d, np.flatnonzero(there), self.null).any(axis=1)
            faults[f"{self.name} has a null component"] = broken
            there = there & ~broken
        sums = sums_of_squares(matrix)
        if not np.isfinite(sums).all():
            infinite = there & ~np.isfinite(matrix).all(axis=1)
            faults[f"{self.name} has a component that is not finite"] = infinite
            there = there & ~infinite
        faults = {reason: bad for reason, bad in faults.items() if bad.any()}
        if faults:
            matrix, sums = np.where(there[:, None], matrix, matrix.dtype.type(0)), np.where(there, sums, 0.0)
        return Vectors(matrix, np.sqrt(sums), faults)

    def unusable(self, *, directed: bool) -> dict[str, Bools]:
        """The rows that no vector can be compared with, whatever its length, by reason; directed: nor of norm 0."""
        usable = np.ones(len(self.starts), np.bool_) if self.valid is None else self.valid
        faults = {f"{self.name} is null": ~usable}
        null = np.zeros(len(self.components), np.bool_) if self.null is None else self.null
        with np.errstate(all="ignore"):
            infinite = ~np.isfinite(self.components) & ~null
            counted = np.multiply(self.components, self.components, dtype=np.float64) != 0
        for reason, broken in (("has a null component", null), ("has a component that is not finite", infinite)):
            faults[f"{self.name} {reason}"] = rows = usable & (self._count(broken) > 0)
            usable = usable & ~rows
        if directed:
            faults[f"{self.name} has norm 0"] = usable & (self._count(counted) == 0)
        return faults

    def _count(self, which: Bools) -> Ints:
        """How many of these components each row has."""
        before = np.concatenate([[0], np.cumsum(which)])
        ends = self.starts + np.where(self.lengths > 0, self.lengths, 0)
        return np.where(self.lengths > 0, before[ends] - before[np.minimum(self.starts, ends)], 0)

    def _matrix(self, d: int, there: Ints, values: NDArray[Any] | None = None) -> NDArray[Any]:
        values, rows = self.components if values is None else values, len(self.starts)
        if len(there) == rows and (not rows or (np.diff(self.starts) == d).all()):
            first = int(self.starts[0]) if rows else 0
            return values[first : first + rows * d].reshape(rows, d)
        matrix = np.zeros((rows, d), values.dtype)
        matrix[there] = values[self.starts[there][:, None] + np.arange(d)]
        return matrix


def lists_of(name: str, column: Any, *, whole: bool = False) -> Lists:
    """A column as lists of floats; a BatchError says what it holds instead. whole: integers become floats."""
    if isinstance(column.type, pa.BaseExtensionType):  # a tensor
        column = column.storage
    type_, rows = column.type, len(column)
    if pa.types.is_null(type_):
        none = np.zeros(rows, np.int64)
        return Lists(name, np.empty(0), None, none, none, np.zeros(rows, np.bool_))
    fixed = pa.types.is_fixed_size_list(type_)
    view = pa.types.is_list_view(type_) or pa.types.is_large_list_view(type_)
    if not (fixed or view or pa.types.is_list(type_) or pa.types.is_large_list(type_)):
        raise BatchError(
            f"column {name!r} holds {type_}, but Similar compares vectors: lists of float16, float32 or float64. Name "
            "another column, or convert this one."
        )
    inner = column.values
    if whole and pa.types.is_integer(inner.type):
        inner = inner.cast(pa.float64(), safe=False)
    if not (pa.types.is_floating(inner.type) or pa.types.is_null(inner.type)):
        raise BatchError(
            f"column {name!r} holds {type_}: the components of vectors are float16, float32 or float64. Cast it, for "
            "example to a list of float32."
        )
    if pa.types.is_null(inner.type):
        inner = inner.cast(pa.float64())
    valid = valid_of(inner)
    components = bits_of(inner).view(f"f{inner.type.bit_width // 8}")
    if fixed:
        d = type_.list_size
        starts = (np.arange(rows) + column.offset) * d
        lengths = np.full(rows, d, np.int64)
    else:
        offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        sizes = column.sizes.to_numpy(zero_copy_only=False).astype(np.int64) if view else np.diff(offsets)
        starts, lengths = offsets[: len(sizes)], sizes
    return Lists(name, components, None if valid is None else ~valid, starts, lengths, valid_of(column))


def as_bytes(lists: Lists) -> Any:
    """Every row as the bytes of its float64 components; rows are not null. Many are kept well so."""
    whole = lists.components.astype(np.float64) + 0.0  # -0.0 is 0.0
    places = zip(lists.starts.tolist(), (lists.starts + lists.lengths).tolist(), strict=True)
    return pa.array([whole[start:end].tobytes() for start, end in places], pa.large_binary())


def as_lists(column: Any) -> Any:
    """The inverse of `as_bytes`: a column of lists of float64."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)
    inside = b"" if data is None else memoryview(data)[ends[0] : ends[-1]]
    return pa.LargeListArray.from_arrays((ends - ends[0]) // 8, np.frombuffer(inside, np.float64))
