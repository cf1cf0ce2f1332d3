"""The adapter of subscriptions that bring vectors: all with as many components as the first are slots of one engine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import Vectors
from skyband.engines.topk.slot_columns import SlotColumns
from skyband.engines.topk.subscribed_adapter import OddRow, SubscribedAdapter
from skyband.query.each import Each
from skyband.query.scoring.forms import TAME
from skyband.query.scoring.similar import Similar, distances, dots, squares
from skyband.query.tuning import Tuning
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated
from skyband.tables.vectors import Vectors as Column

if TYPE_CHECKING:
    from skyband.engines.topk.slots import Slots

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class SimilarAdapter(SubscribedAdapter):
    """One engine that compares vectors, and the subscriptions in its slots."""

    d = 0  # components, once the first has come

    @property
    def scoring(self) -> Similar:
        """The scoring of the query, `Each` in place of a vector."""
        by = self.form.scoring
        assert isinstance(by, Similar)
        return by

    # --- subscriptions

    def slot_columns(self, values: dict[str, Any], lengths: Ints) -> SlotColumns:
        columns = super().slot_columns(values, lengths)
        given = self.scoring.packed
        packed = (
            values[given.column] if isinstance(given, Each) else pa.array([given] * len(lengths), pa.large_binary())
        )
        return replace(columns, points=self._points(packed))

    def _points(self, packed: Any) -> Floats:
        """Vectors as rows; NaN for those of another length."""
        _, offsets, data = packed.buffers()
        ends = np.frombuffer(offsets, np.int64, len(packed) + 1, packed.offset * 8) // 8 if len(packed) else np.zeros(1)
        lengths = np.diff(ends)
        self.d = self.d or int(lengths[0] if len(lengths) else 0)
        points = np.full((len(packed), self.d), np.nan)
        same = np.flatnonzero(lengths == self.d)
        components = np.frombuffer(b"" if data is None else data, np.float64)
        points[same] = components[ends[same][:, None] + np.arange(self.d)] if len(same) else 0.0
        return points

    def too_long(self, length: int) -> str:
        from skyband.engines.topk.similar import MOST_BYTES

        return (
            f"the vectors that the others keep do not reach back over a window of {length}: they are as many as the "
            f"longest window has, up to 262,144 or 256 MiB ({MOST_BYTES // (4 * self.d):,} vectors of {self.d} floats). "
            f"Keep more from the beginning, TopK(..., buffer=...), at {4 * self.d:,} bytes each; or subscribe without "
            "from_window."
        )

    def new_engine(self, tuning: Tuning, *, timed: bool, net: bool) -> Slots:
        from skyband.engines.topk.similar import SimilarSlots  # and Numba: with the first arrivals

        return SimilarSlots((), tuning, timed=timed, net=net, shape=replace(self.form.shape, d=self.d), whole=True)

    # --- rows

    def validate(self, batch: Batch, cache: dict[Any, Scored], bad_times: dict[str, Bools | None]) -> Validated:
        scored, column = Scored(np.zeros(batch.rows)), self._column(batch)
        faults = column.faults | (column.norm_faults(self.scoring.column) if self.scoring.metric == "cosine" else {})
        for reason, rows in (faults | bad_times).items():
            if rows is not None:
                scored.reject(reason, rows)
        return self.finish(batch, scored)

    def _column(self, batch: Batch) -> Column:
        return batch.vectors(self.scoring.column, self.d)

    def _find_odd(self, batch: Batch, scored: Scored) -> list[OddRow]:
        column = self._column(batch)
        wild = ~((column.norms <= TAME) & ((column.norms >= 1 / TAME) | (self.scoring.metric != "cosine")))
        for rows in scored.rejected.values():
            wild &= ~rows
        batch.memo["wild", id(self)] = wild
        if not wild.any():
            return []
        there, points = self._standing()
        keys = ((row, np.isnan(self._keys(points, column, row))) for row in np.flatnonzero(wild).tolist())
        return [OddRow(row, there[none]) for row, none in keys if none.any()]

    def _keys(self, points: Floats, column: Column, row: int) -> Floats:
        """The keys of one row for many vectors."""
        vector = column.matrix[row].astype(np.float64)
        with np.errstate(all="ignore"):
            if self.scoring.metric == "euclidean":
                return distances(points, vector)
            key = dots(points, vector)
            return key / (column.norms[row] * np.sqrt(squares(points))) if self.scoring.metric == "cosine" else key

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        arrays = super().extra_arrays(push, validated, rows)
        if not push.batch.rows:
            return arrays | {"vectors": Vectors(np.empty((0, self.d), np.float32), np.empty(0))}
        column = self._column(push.batch)
        matrix = column.matrix.astype(np.float32) if column.matrix.dtype == np.float16 else column.matrix
        vectors = Vectors(matrix, column.norms)
        return arrays | {"vectors": vectors if len(rows) == push.batch.rows else vectors.only(rows)}
