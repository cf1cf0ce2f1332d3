"""The rows of one query set that a trigger brings to a shard, in order, a slice at a time.

Mappers send them in sorted pieces. Few rows stay in memory; many go to a temporary file, which is mapped and merged by
cutting all pieces at common values of the first column of `order`, so that no more than a slice is ever unpacked.
Rows that are equal in that column stay together, however many they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.engines.topk.scorings import OverAxes, distinct_texts, must_part, validate_family, window_scoring
from skyband.query.kinds import Above, Query, TopK
from skyband.spark.directory import Directory
from skyband.spark.mappers import from_bytes, in_order
from skyband.spark.plan import hash_groups
from skyband.tables.columns import as_arrow, plain
from skyband.tables.input import Batch
from skyband.tables.subscriptions import owner_of

Ints = NDArray[np.int64]
SLICE = 1 << 20  # rows that are unpacked together
_MEMORY = 1 << 26  # bytes that need no file


class TriggerRows:
    """Sorted pieces: add them all, then read the slices once."""

    def __init__(self, order: tuple[str, ...], per: tuple[str, ...]) -> None:
        self.order, self.per = order, per
        self.rows = 0
        self._pieces: list[Any] = []  # in memory
        self._places: list[tuple[int, int]] = []  # in the file: begin and size
        self._file: Any = None
        self._bytes = 0
        self._hashes: list[NDArray[np.uint64]] = []

    def add(self, blob: Any) -> None:
        """Add a piece, as the mapper packed it."""
        piece = from_bytes(blob)
        self.rows += piece.num_rows
        self._bytes += len(blob)
        if self.per:
            self._hashes.append(_distinct(hash_groups([plain(piece.column(name)) for name in self.per])))
        if self._bytes <= _MEMORY:
            self._pieces.append(piece)
            return
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile(prefix="skyband-", suffix=".rows")  # noqa: SIM115
        begin = self._file.tell()
        self._file.write(blob)
        self._places.append((begin, len(blob)))

    def hashes(self) -> NDArray[np.uint64]:
        """The hashes of the groups of all rows."""
        return _distinct(np.concatenate([np.empty(0, np.uint64), *self._hashes]))

    def slices(self) -> Iterator[pa.Table]:
        """The rows in order, some at a time."""
        if not self.rows:
            return
        pieces = self.pieces()
        if self.rows <= SLICE:
            yield in_order(_joined(pieces, self.order), self.order)
            return
        done = [0] * len(pieces)
        for pivot in [*self._pivots(pieces), None]:
            ends = [piece.num_rows if pivot is None else _up_to(piece.column(self.order[0]), pivot) for piece in pieces]
            parts = [
                piece.slice(begin, end - begin)
                for piece, begin, end in zip(pieces, done, ends, strict=True)
                if end > begin
            ]
            done = ends
            if parts:
                yield in_order(_joined(parts, self.order), self.order)

    def among(self, directory: Directory, portions: list[Ints]) -> Iterator[Any]:
        """The rows of the groups of each portion of cells, in order; {} where there are none. Not of long triggers."""
        rows = next(self.slices(), None)
        if rows is None or len(portions) == 1:
            yield from ({} if rows is None else rows for _ in portions)
            return
        portion_of = np.zeros(len(directory), np.int64)
        for number, cells in enumerate(portions):
            portion_of[cells] = number
        cells = directory.address(hash_groups([plain(rows.column(name)) for name in self.per]))
        places = np.argsort(portion_of[cells], kind="stable")
        bounds = np.searchsorted(portion_of[cells][places], np.arange(len(portions) + 1))
        for begin, end in pairwise(bounds.tolist()):
            yield rows.take(as_arrow(places[begin:end])) if begin < end else {}

    @property
    def is_long(self) -> bool:
        """Whether there are several slices."""
        return self.rows > SLICE

    def pieces(self) -> list[Any]:
        return self._pieces + self._mapped()

    def _mapped(self) -> list[Any]:
        if self._file is None:
            return []
        self._file.flush()
        mapped = pa.memory_map(self._file.name).read_buffer()
        return [from_bytes(mapped.slice(begin, size)) for begin, size in self._places]

    def _pivots(self, pieces: list[Any]) -> list[Any]:
        """Values of the first column between which there are about as many rows as a slice has."""
        step = max(1, SLICE // (16 * len(pieces)))  # a slice is a sixteenth too large at most, but for equal values
        samples = [
            plain(piece.column(self.order[0])).take(as_arrow(np.arange(step - 1, piece.num_rows, step)))
            for piece in pieces
        ]
        sample = pa.concat_arrays(samples)
        sample = sample.filter(pc.equal(sample, sample))  # neither null nor NaN, which no value is less or equal to
        sample = sample.take(pc.sort_indices(sample))
        every = max(1, SLICE // step)
        values = [sample[i] for i in range(every - 1, len(sample), every)]
        return [value for i, value in enumerate(values) if i == 0 or value != values[i - 1]]


def _joined(pieces: list[Any], order: tuple[str, ...]) -> Any:
    """One table; pieces that do not overlap are put in order, so that nothing is left to sort."""
    if len(pieces) < 2:
        return pieces[0]
    firsts = pa.concat_tables([piece.slice(0, 1) for piece in pieces])
    ranked = pc.sort_indices(firsts, sort_keys=[(name, "ascending") for name in order])
    return pa.concat_tables([pieces[i] for i in ranked.to_pylist()])


def _distinct(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each once; `np.unique` takes twenty times as long for many."""
    ranked = np.sort(hashes)
    distinct: NDArray[np.uint64] = ranked[np.append(True, ranked[1:] != ranked[:-1])[: len(ranked)]]
    return distinct


def _up_to(column: Any, pivot: Any) -> int:
    """The number of values of a sorted column that are no larger; nulls and NaN come last."""
    return int(pc.sum(pc.less_equal(column, pivot)).as_py() or 0)


def takes_new_form(described: dict[str, Any], queries: dict[str, Query], rows: TriggerRows) -> bool:
    """Whether the form of every stored group changes: engines start, or a shared window must be scored."""
    for adapter in described["homes"]:
        if not adapter["started"] and rows.rows:
            return True
        if adapter.get("scored", True):
            continue
        if owner_of(next(iter(adapter["queries"]))) is not None:
            return True  # a shared window of subscriptions: whatever comes
        stay = [queries[name] for name in adapter["queries"] if name in queries]
        if not stay:
            continue
        by = window_scoring(getattr(stay[0], "by", None))
        if isinstance(by, OverAxes):
            texts = distinct_texts(cast("list[TopK | Above]", stay))
            if any(must_part(Batch(piece), texts, by.columns) for piece in rows.pieces()):
                return True
            continue
        if any(validate_family(Batch(piece), by) is None for piece in rows.pieces()):
            return True
    return False
