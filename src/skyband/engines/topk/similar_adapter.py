"""The adapters of vectors: subscriptions, or plain queries, whose vectors have one length, as slots of one engine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import Engine
from skyband.engines.topk.slot_columns import Shape, SlotColumns
from skyband.engines.topk.slots_adapter import SlotsAdapter
from skyband.engines.topk.subscribed_adapter import OddRow, SubscribedAdapter
from skyband.engines.topk.vector_rows import CODES, arrays_of, keys_of_row, rejected, wild_vectors
from skyband.errors import BatchError
from skyband.query.each import Each
from skyband.query.kinds import TopK
from skyband.query.scoring import Similar, scoring_of
from skyband.query.tuning import Tuning
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated

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

    def by_place(self, columns: SlotColumns) -> Ints | None:
        return None

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
            f"the vectors that the others keep do not reach back over a window of {length}: they are as many as "
            f"the longest window has, up to 262,144 or 256 MiB ({MOST_BYTES // (4 * self.d):,} of {self.d} floats). "
            f"Keep more from the beginning, TopK(..., buffer=...), at {4 * self.d:,} bytes each; or subscribe without "
            "from_window."
        )

    def new_engine(self, tuning: Tuning, *, timed: bool, net: bool) -> Slots:
        shape = replace(self.form.shape, d=self.d)
        if self.options.device is not None:
            from skyband.engines.topk.device_pool import DeviceSlots

            return DeviceSlots((), tuning, timed=timed, net=net, shape=shape, device=self.options.device)
        from skyband.engines.topk.similar import SimilarSlots  # and Numba: with the first arrivals

        return SimilarSlots((), tuning, timed=timed, net=net, shape=shape, whole=True)

    def cannot_lend(self, columns: SlotColumns, clock: int) -> tuple[int, str] | None:
        if self.options.device is not None:
            return 0, f"device={self.options.device!r} lets nobody begin with a window. Subscribe without from_window."
        return super().cannot_lend(columns, clock)

    # --- rows

    def validate(self, batch: Batch, cache: dict[Any, Scored], bad_times: dict[str, Bools | None]) -> Validated:
        scored = rejected(batch, self.scoring, self.d)
        for reason, rows in bad_times.items():
            if rows is not None:
                scored.reject(reason, rows)
        return self.finish(batch, scored)

    def _find_odd(self, batch: Batch, scored: Scored) -> list[OddRow]:
        column, metric = batch.vectors(self.scoring.column, self.d), self.scoring.metric
        wild = wild_vectors(column, metric)
        for rows in scored.rejected.values():
            wild &= ~rows
        batch.memo["wild", id(self)] = wild
        if not wild.any():
            return []
        there, points = self._standing()
        if self.options.device is not None:
            raise BatchError(
                f"row {int(np.argmax(wild))}: the vector's norm is beyond 1e100 (or below 1e-100), for which some "
                f"subscriptions may have no score: device={self.options.device!r} takes none such. Scale the vectors, "
                "or leave device= out. Nothing was taken."
            )
        keys = ((row, np.isnan(keys_of_row(points, column, row, metric))) for row in np.flatnonzero(wild).tolist())
        return [OddRow(row, np.sort(there[none])) for row, none in keys if none.any()]

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        return super().extra_arrays(push, validated, rows) | arrays_of(push.batch, self.scoring, self.d, rows)


class SimilarQueries(SlotsAdapter):
    """One engine that compares vectors, and the plain queries in its slots."""

    numeric = False

    @property
    def scoring(self) -> Similar:
        """The scoring of one of the queries."""
        by = scoring_of(self.by)
        assert isinstance(by, Similar)
        return by

    @property
    def d(self) -> int:
        """Components of vectors."""
        return len(self.scoring.numbers)

    def shape(self, *, boxed: bool) -> Shape:
        code = CODES[self.scoring.metric]
        return Shape(code, not self.descending, self.d, len(self.attributes), False, boxed)

    def points(self, queries: list[TopK]) -> tuple[Floats, Floats]:
        found = [by.numbers for query in queries if isinstance(by := scoring_of(query.by), Similar)]
        return np.array(found), np.empty((len(found), 0))

    def engine_class(self) -> type[Engine]:
        from skyband.engines.topk.similar import SimilarSlots  # and Numba: with the first arrivals

        return SimilarSlots

    def unscored(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        return rejected(batch, self.scoring, self.d)

    def wild_rows(self, batch: Batch) -> Bools:
        return wild_vectors(batch.vectors(self.scoring.column, self.d), self.scoring.metric)

    def without_score(self, batch: Batch, row: int) -> list[str]:
        column, names = batch.vectors(self.scoring.column, self.d), list(self.queries)
        keys = keys_of_row(self.points(list(self.queries.values()))[0], column, row, self.scoring.metric)
        return [names[i] for i in np.flatnonzero(np.isnan(keys)).tolist()]

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        return super().extra_arrays(push, validated, rows) | arrays_of(push.batch, self.scoring, self.d, rows)


def slots_kind(query: Any) -> type[SlotsAdapter]:
    """The adapter of a family of BLOCK that the query is in."""
    return SimilarQueries if isinstance(scoring_of(query.by), Similar) else SlotsAdapter
