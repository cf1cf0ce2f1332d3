"""Many vectors standing: slots whose arrivals are found by single-precision matrix products, exactly.

A push is one product of all lanes' vectors with all arrivals (BLAS). What it may be wrong by is known
(docs/engines/topk/similar.md), so only arrivals that come near a lane's depth are scored by the contract's rule
(kernels/likeness.py); all else is as in slots.py: runs, depths, a history that lanes are deepened from.

Keeps the vectors of the history, in single precision unless a push has brought float64: 4·d bytes an arrival, of at
most `MOST_BYTES`, or as many arrivals as `buffer` says. Cost: the product, and 5 to 20 % of it besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Floats, Ints, Spec
from skyband.engines.contract import Vectors as Arrived
from skyband.engines.invariants import require
from skyband.engines.topk.chunk import Chunk
from skyband.engines.topk.kernels.likeness import (
    Products,
    Sides,
    Turn,
    Vectors,
    finish_lanes,
    score_vectors,
    settle_vectors,
    take_vectors,
)
from skyband.engines.topk.kernels.slots import Plan
from skyband.engines.topk.kernels.state import Report
from skyband.engines.topk.kernels.vector_depths import Fall, deepen_vectors
from skyband.engines.topk.pool import Pool
from skyband.engines.topk.recent_arrivals import Stream
from skyband.engines.topk.slot_columns import Shape, SlotColumns
from skyband.engines.topk.slots import Slots
from skyband.kernels.records import NEVER
from skyband.kernels.vectors import sums_of_squares
from skyband.query.scoring.forms import COSINE, DISTANCE

Records = NDArray[Any]
MOST_BYTES = 1 << 28  # of a history's vectors
ROWS = 2048  # arrivals of a block, at most
TILE = 2048  # lanes of a product: the result stays in cache until it is compared
SLAB = 1 << 14  # arrivals of the history in one product
TAME = (1e-15, 1e15)  # norms of vectors that float32 holds as they are
USUAL = (1e-100, 1e100)  # and of those that are scaled first; others are scored for every lane


def slack_of(d: int) -> float:
    """The most by which a product of unit vectors can be wrong (docs/engines/topk/similar.md)."""
    n = (d + 16) * 2.0**-24
    return n / (1 - n)


class VectorChunk(Chunk):
    """Lanes and their vectors in single precision."""

    arrays: ClassVar[tuple[str, ...]] = (*Chunk.arrays, "unit", *Sides._fields)
    most: ClassVar[int] = 1 << 14

    def __post_init__(self) -> None:
        super().__post_init__()
        self.unit = np.empty((0, self.shape.d), np.float32)  # scaled to norm 1, but for distances
        self.norms, self.slack, self.bars = np.empty(0), np.empty(0), np.empty(0)
        self.safe, self.looked, self.lengths, self.dues = (np.empty(0, np.int64) for _ in range(4))
        self.calm = np.empty(0, np.int8)

    def join(self, columns: SlotColumns, lanes: Records) -> Ints:
        places = super().join(columns, lanes)
        points, form = columns.points, self.shape.form
        norms = np.sqrt(sums_of_squares(points))
        low, high = (0.0, TAME[1]) if form == DISTANCE else USUAL
        usual = (norms >= low) & (norms <= high)
        scale = np.where(usual & (norms > 0), norms, 1.0) if form != DISTANCE else np.ones(len(norms))
        sign = -1.0 if self.shape.turned != (form == DISTANCE) else 1.0
        unit = sign * np.where(usual[:, None], points, 0.0) / scale[:, None]
        half = slack_of(self.shape.d) * norms * norms / 2 if form == DISTANCE else np.zeros(len(norms))
        self.unit[places], self.norms[places] = unit, norms
        self.slack[places] = np.where(usual, half, np.inf)
        self.disturb(places)
        return places

    def leave(self, places: Ints) -> None:
        self.disturb(places)
        super().leave(places)

    def put(self, s: int, run: Records) -> None:
        super().put(s, run)
        self.disturb(s)

    def disturb(self, places: Any) -> None:
        """Let kernels look at these lanes, whatever was known of them."""
        self.calm[places] = self.looked[places] = 0
        self.safe[places] = self.dues[places] = -NEVER
        self.lengths[places] = self.lanes["length"][places]

    def sides(self) -> Sides:
        return Sides(*(getattr(self, name)[: self.used] for name in Sides._fields))


class VectorPool(Pool):
    """Slots with one class of window lengths, and the vectors of their history."""

    def __init__(self, shape: Shape, *rest: Any, **more: Any) -> None:
        super().__init__(shape, *rest, **more)
        self.ring = np.empty((0, shape.d), np.float32)  # the vectors of the history
        self.turned = 0  # place p of the history is in row (p + turned) modulo its size
        self.norms = np.empty(0)
        self.lane_of = np.empty(0, np.int64)
        self.prepared: dict[int, tuple[Any, ...]] = {}  # blocks of this batch for products, by their first place
        self.values = np.empty(0, np.float32)  # of products, kept for the next: fresh memory is slow

    def new_chunk(self) -> VectorChunk:
        return VectorChunk(self.shape)

    def _set_most(self) -> None:
        super()._set_most()
        if not self.tuning.buffer:
            most = max(1, MOST_BYTES // (4 * self.shape.d))
            self.most, self.kept = min(self.most, most), min(self.kept, most)

    @property
    def largest(self) -> int:
        return min(ROWS, super().largest)

    def _side(self) -> int:
        return 0

    def by_place(self, columns: SlotColumns) -> Ints | None:
        return None

    @property
    def largest_net(self) -> int:
        return ROWS

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self.ring.nbytes + self.norms.nbytes + self.values.nbytes)

    # --- the history

    def append(self, stream: Stream, more: int) -> int:
        begin, end = self.here.start, self.end
        low = super().append(stream, more)
        self.prepared = {}
        if low != end:
            self.begin_anew(begin)
            begin = 0
        if len(self.norms) != len(self.stamps) or low != end:
            norms = np.empty(len(self.stamps))
            norms[begin:low] = self.norms[end - (low - begin) : end]
            self.norms = norms
        assert stream.vectors is not None
        self.norms[low : self.end] = stream.vectors.norms
        self.keep_vectors(begin, low, stream.vectors)
        return low

    def begin_anew(self, begin: int) -> None:
        """Let the place `begin` of the history be its place 0."""
        self.turned = (self.turned + begin) % max(1, len(self.ring))

    def keep_vectors(self, begin: int, low: int, vectors: Arrived) -> None:
        """Keep the vectors of the arrivals at the places from `low` on; the history begins at `begin`."""
        self._reserve(begin, low)
        if vectors.matrix.dtype == np.float64 and self.ring.dtype != np.float64:
            with np.errstate(all="ignore"):  # rows that are not used hold anything
                self.ring = self.ring.astype(np.float64)
        for place, rows in self._stretches(low, self.end):
            self.ring[rows] = vectors.matrix[place - low : place - low + rows.stop - rows.start]

    def _reserve(self, begin: int, low: int) -> None:
        """Let the ring have places for the history, which goes from `begin` to `low` now, and its new end."""
        if self.end - begin <= len(self.ring):
            return
        size = max(self.end - begin + ROWS, min(2 * len(self.ring), self.most + 4 * ROWS))
        ring = np.empty((size, self.shape.d), self.ring.dtype)
        for place, rows in self._stretches(begin, low):
            ring[place - begin : place - begin + rows.stop - rows.start] = self.ring[rows]
        self.ring, self.turned = ring, -begin % size

    def _stretches(self, low: int, high: int, most: int = NEVER) -> Iterator[tuple[int, slice]]:
        """The arrivals low..high of the history as stretches of the ring, each with the place of its first."""
        while low < high:
            row = (low + self.turned) % len(self.ring)
            size = min(high - low, len(self.ring) - row, most)
            yield low, slice(row, row + size)
            low += size

    def history_vectors(self, here: slice) -> NDArray[Any]:
        """The vectors of some arrivals of the history, in order."""
        found: NDArray[Any] = self.ring[(np.arange(here.start, here.stop) + self.turned) % max(1, len(self.ring))]
        return found

    def set_history(self, data: Floats, stamps: Ints, serials: Ints, vectors: Arrived | None = None) -> None:
        self.ring, self.norms, self.turned = np.empty((0, self.shape.d), np.float32), np.empty(0), 0
        super().set_history(data, stamps, serials, vectors)

    def keys(self, chunk: Chunk, s: int, here: slice) -> tuple[Records, Records]:
        assert isinstance(chunk, VectorChunk)
        keys, inside = np.empty(here.stop - here.start), np.empty(here.stop - here.start, np.bool_)
        vectors = Vectors(self.history_vectors(here), self.norms[here], 0)
        score_vectors(chunk.view(), chunk.sides(), s, vectors, np.ascontiguousarray(self.data[:, here]), keys, inside)
        return keys, inside

    def _look(self, stream: Stream) -> list[Chunk]:
        return []  # fresh lanes take the batch: its product is there anyway

    def shrink(self, chunk: int, s: int, spec: Spec, now: int) -> Records:
        mine = self.chunks[chunk]
        assert isinstance(mine, VectorChunk)
        mine.disturb(s)
        changes = super().shrink(chunk, s, spec, now)
        mine.disturb(s)  # its window's length is another
        return changes

    # --- a batch

    def run(self, chunk: Chunk, report: Report, segments: Records, plan: Plan) -> Records:
        assert isinstance(chunk, VectorChunk)
        history, scratch, sides = self.history(segments), self._work_space(), chunk.sides()
        vectors, deep, before = Vectors(self.ring, self.norms, self.turned), np.empty(chunk.used, np.int64), plan.before
        if len(self.lane_of) < len(scratch.places):
            self.lane_of = np.empty(len(scratch.places), np.int64)
        view = chunk.view()
        for b in range(plan.base, plan.stop):
            block, turn = segments[b], Turn(b, before)
            low, high, begin = int(block["begin"]), int(block["end"]), int(segments["begin"][block["first"]])
            changes, count = settle_vectors(view, report, history, sides, plan, turn, deep)
            report = report._replace(changes=changes)
            step = max(1, (1 << 24) // max(1, low - begin))
            for first in range(0, count, step):
                lanes = deep[first : min(count, first + step)]
                products, fall = self._products(chunk.unit[lanes], begin, low, 0), Fall(lanes, plan.last, turn)
                objects, changes = deepen_vectors(view, report, history, sides, vectors, products, fall, scratch)
                view, report = view._replace(objects=objects), report._replace(changes=changes)
            tile = max(TILE, (1 << 22) // max(1, high - low))
            for first in range(0, chunk.used if high > low else 0, tile):
                products = self._products(chunk.unit[first : min(chunk.used, first + tile)], low, high, first)
                objects, changes = take_vectors(view, report, history, sides, vectors, products, b, scratch)
                view, report = view._replace(objects=objects), report._replace(changes=changes)
            before = max(before, int(block["instant"]))
        chunk.objects = view.objects
        return finish_lanes(view, report, sides, plan, scratch.picked)

    def _products(self, unit: NDArray[np.float32], low: int, high: int, first: int) -> Products:
        """Products of lanes with arrivals low..high of the history."""
        size = high - low
        if len(self.values) < len(unit) * size:
            self.values = np.empty(len(unit) * size, np.float32)
        values = self.values[: len(unit) * size].reshape(len(unit), size)
        weights, offsets, slack = np.empty(size), np.empty(size), np.empty(size)
        for place, stretch in self._stretches(low, high, SLAB):
            here = slice(place - low, place - low + stretch.stop - stretch.start)
            known = self.prepared.get(place)
            if known is None or len(known[0]) != here.stop - here.start:
                known = prepared(Arrived(self.ring[stretch], self.norms[low:high][here]), self.shape)
                if size <= ROWS:
                    self.prepared[place] = known
            rows, weights[here], offsets[here], slack[here] = known
            if size == 1:
                np.dot(unit, rows[0], out=values[:, 0])
            else:
                np.matmul(unit, rows.T, out=values[:, here])
        return Products(values, weights, offsets, slack, offsets - slack, first, low, self.lane_of)


def prepared(arrived: Arrived, shape: Shape) -> tuple[NDArray[np.float32], Floats, Floats, Floats]:
    """Vectors in single precision; in the units of their products what a bar is multiplied by, what is added, slack."""
    matrix, norms = arrived.matrix, arrived.norms
    slack, tiny, ones = slack_of(shape.d), shape.d * 2.0**-125, np.ones(len(norms))
    zeros = np.zeros(len(norms))
    if shape.form == DISTANCE:
        tame = norms <= TAME[1]
        half = norms * norms / 2
        rows = matrix if tame.all() else np.where(tame[:, None], matrix, matrix.dtype.type(0))
        wrong = np.where(tame, slack * half + tiny, np.inf)
        return rows.astype(np.float32, copy=False), ones, half if shape.turned else -half, wrong
    if matrix.dtype == np.float32 and ((norms >= TAME[0]) & (norms <= TAME[1])).all():
        return matrix, norms if shape.form == COSINE else ones, zeros, slack * norms + tiny
    usual = (norms >= USUAL[0]) & (norms <= USUAL[1])
    scale = np.where(usual, norms, 1.0)
    rows = (np.where(usual[:, None], matrix, 0.0) / scale[:, None]).astype(np.float32)
    return rows, ones if shape.form == COSINE else 1 / scale, zeros, np.where(usual, slack + tiny, np.inf)


class SimilarSlots(Slots):
    """Slots that compare vectors."""

    def empty_pool(self) -> VectorPool:
        return VectorPool(self.shape, self.tuning, timed=self.timed, net=self.net, whole=self.whole)

    def more_arrays(self, pools: list[Any]) -> dict[str, Records]:
        kept = [pool.history_vectors(pool.here) for pool in pools]
        whole = np.concatenate([np.empty((0, self.shape.d), np.float32), *kept])
        return {"vectors": whole.reshape(-1).view(np.uint8)}

    def vectors_of(self, state: Mapping[str, Records], here: slice) -> Arrived:
        """The vectors of some arrivals of a snapshot: bytes of float32, or of float64 where a push has brought such."""
        stored, d, total = state["vectors"], self.shape.d, len(state["stamps"])
        width = 8 if len(stored) == 8 * d * total else 4
        require(len(stored) == width * d * total, "arrivals have vectors")
        matrix = np.frombuffer(stored.tobytes(), f"f{width}").reshape(total, d)[here]
        require(bool(np.isfinite(matrix).all()), "vectors are finite")
        norms = np.sqrt(sums_of_squares(matrix.copy()))
        require(self.shape.form != COSINE or bool((norms > 0).all()), "vectors have a direction")
        return Arrived(matrix, norms)
