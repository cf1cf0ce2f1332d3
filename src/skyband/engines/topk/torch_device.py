"""Lanes on a GPU, by PyTorch and Triton: vectors in bfloat16 for products, exact ones for keys, runs, and the window.

What a lane is, and when which of these functions is called, is in device_turns.py; kernels are in kernels/device.py.
Memory of a lane: 2·d bytes (bfloat16), 4·d exact (8·d if float32 cannot hold the vectors), 25 bytes for each of its
`room` places; of an arrival in the window: 2·d and 4·d too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from triton.tools.tensor_descriptor import TensorDescriptor

from skyband.engines.topk.device_turns import (
    FREE,
    Found,
    Moved,
    Rows,
    bars_of,
    ring_stretches,
    scales_of,
    terms_of,
)
from skyband.engines.topk.kernels import device as kernels
from skyband.engines.topk.torch_depths import near
from skyband.query.scoring.forms import DISTANCE, DOT

Array = NDArray[Any]
LANES, ROWS, DEEP = 128, 256, 64  # of a tile of products
PAIRS = 1 << 25  # that one block may find
WORDS = 1 << 29  # of bits that are in memory at once, one for each pair
CHANGES = 1 << 26  # of one launch, at most; each takes 45 bytes
AT_ONCE = 1 << 15  # vectors that are written at once
EXACT = {"enable_fp_fusion": False}


class TorchLanes:
    """Lanes and the window on one GPU."""

    def __init__(self, d: int, room: int, form: int, *, turned: bool, timed: bool, device: str = "cuda") -> None:
        self.d, self.room, self.form, self.turned, self.timed = d, room, form, turned, timed
        self.wide = -(-d // DEEP) * DEEP
        self.device = torch.device(device)
        self.size, self.rows, self.error = 0, 0, 0.0  # lanes, rows of the ring; the largest error of a lane's unit
        self.columns: dict[str, Any] = {
            "unit": self._new(0, torch.bfloat16, self.wide), "points": self._new(0, torch.float32, self.wide),
            "norms": self._new(0, torch.float64), "bars": self._new(0, torch.float32),
            "depths": self._new(0, torch.float64), "k": self._new(0, torch.int64),
            "want": self._new(0, torch.int64), "length": self._new(0, torch.int64),
            "birth": self._new(0, torch.int64), "dues": self._new(0, torch.int64),
            "counts": self._new(0, torch.int32), "keys": self._new(0, torch.float64, room),
            "stamps": self._new(0, torch.int64, room), "serials": self._new(0, torch.int64, room),
            "flags": self._new(0, torch.int8, room),
        }  # fmt: skip
        self.ring: dict[str, Any] = {
            "half": self._new(0, torch.bfloat16, self.wide), "matrix": self._new(0, torch.float32, self.wide),
            "norms": self._new(0, torch.float64), "floors": self._new(0, torch.float32),
            "weights": self._new(0, torch.float32), "offsets": self._new(0, torch.float32),
            "slack": self._new(0, torch.float32), "stamps": self._new(0, torch.int64),
            "serials": self._new(0, torch.int64), "now": self._new(0, torch.int64),
        }  # fmt: skip
        self.pairs = self._new(PAIRS if device != "cpu" else 1 << 16, torch.int64)
        self.count, self.words = self._new(1, torch.int64), self._new(0, torch.int32)
        self.hits: tuple[Any, Any, Any] | None = None
        self.out: tuple[Any, ...] = (self.pairs[:0],)
        self.staging: Any = None
        self.pinned: dict[int, Any] = {}

    def _new(self, size: int, kind: Any, wide: int = 0) -> Any:
        return torch.zeros((size, wide) if wide else (size,), dtype=kind, device=self.device)

    def _put(self, values: Array) -> Any:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)

    def _grow(self, columns: dict[str, Any], size: int, more: int) -> None:
        for name in list(columns):
            old = columns[name]
            new = torch.zeros((size, *old.shape[1:]), dtype=old.dtype, device=self.device)
            new[: min(more, len(old))] = old[: min(more, len(old))]
            columns[name] = None
            columns[name] = new
            del old

    # --- lanes

    def reserve(self, size: int) -> None:
        """Room for so many lanes."""
        have = len(self.columns["k"])
        if size > have:
            room = -(-max(size, min(2 * have, have + (1 << 18))) // LANES) * LANES
            self._grow(self.columns, room, have)
            self.columns["bars"][have:] = float("inf")
            self.columns["depths"][have:] = float("-inf")
            self.columns["stamps"][have:] = FREE
        self.size = max(self.size, size)

    def write(
        self, places: Array, points: Array, unit: Array, norms: Array, numbers: dict[str, Array], runs: Moved | None
    ) -> None:
        """Lanes with these vectors; numbers: k, want, length, birth, depths, dues."""
        self.reserve(int(places.max(initial=-1)) + 1)
        if self.columns["points"].dtype == torch.float32 and not (points.astype(np.float32) == points).all():
            self.columns["points"] = self.columns["points"].to(torch.float64)
        for low in range(0, len(places), AT_ONCE):
            some = slice(low, low + AT_ONCE)
            at, whole = self._put(places[some]), self._put(unit[some])
            half = whole.to(torch.bfloat16)
            self.columns["unit"][at, : self.d] = half
            self.columns["points"][at, : self.d] = self._put(points[some]).to(self.columns["points"].dtype)
            wrong = ((whole - half.to(torch.float64)) ** 2).sum(1).sqrt() if self.form != DISTANCE else at[:0]
            self.error = max(self.error, float(wrong.max()) if len(wrong) else 0.0)
        at = self._put(places)
        self.columns["norms"][at] = self._put(norms)
        self.columns["counts"][at] = 0
        self.columns["stamps"][at] = FREE
        self.columns["flags"][at] = 0
        for name, values in numbers.items():
            self.columns[name][at] = self._put(values)
        if runs is not None:
            self.write_runs(places, runs)
        self._set_bars(at)

    def free(self, places: Array) -> None:
        """Let these lanes go."""
        at = self._put(places)
        self.columns["k"][at] = 0
        self.columns["stamps"][at] = FREE
        self.columns["flags"][at] = 0
        self.columns["counts"][at] = 0
        self.columns["dues"][at] = -FREE
        self._set_bars(at)

    def write_runs(self, places: Array, runs: Moved) -> None:
        """Give these lanes other runs and depths."""
        at = self._put(places)
        for name in ("depths", "dues", "keys", "stamps", "serials", "flags"):
            self.columns[name][at] = self._put(getattr(runs, name))
        self.columns["counts"][at] = (self.columns["stamps"][at] > FREE).sum(1).to(torch.int32)
        self._set_bars(at)

    def read_runs(self, places: Array) -> Moved:
        """The runs of these lanes."""
        at = self._put(places)
        return Moved(*(self.columns[name][at].cpu().numpy() for name in Moved._fields))

    def _set_bars(self, at: Any) -> None:
        depths, norms = self.columns["depths"][at], self.columns["norms"][at]
        bars = bars_of(depths, norms, self.form, self.turned, self.d)
        bars = torch.where(self.columns["k"][at] > 0, bars, float("inf"))
        bars = torch.where(torch.isnan(bars), float("-inf"), bars)
        self.columns["bars"][at] = bars.to(torch.float32)

    def mark_shown(self) -> None:
        """Members have been reported."""
        flags = self.columns["flags"]
        flags |= (flags & 1) << 1

    # --- the window

    def reserve_rows(self, size: int, begin: int, end: int) -> None:
        """A ring of so many rows, with the arrivals begin..end in it; arrival p is in row p modulo its size."""
        rows = -(-size // ROWS) * ROWS
        old, self.ring = self.ring, {
            name: torch.zeros((rows + ROWS, *one.shape[1:]), dtype=one.dtype, device=self.device)
            for name, one in self.ring.items()
        }  # fmt: skip
        before, self.rows = self.rows, rows
        for name, one in self.ring.items():
            low = begin
            while low < end:
                a, b = low % before, low % rows
                many = min(end - low, before - a, rows - b)
                one[b : b + many] = old[name][a : a + many]
                low += many

    def put(self, rows: Rows) -> None:
        """Put arrivals into the ring."""
        if rows.matrix.dtype == np.float64 and self.ring["matrix"].dtype != torch.float64:
            self.ring["matrix"] = self.ring["matrix"].to(torch.float64)
        done = 0
        for at in ring_stretches(rows.begin, rows.begin + len(rows.stamps), self.rows):
            here = slice(done, done + at.stop - at.start)
            exact = self._stage(rows.matrix[here])
            norms = self._norms(exact) if rows.norms is None else self._put(rows.norms[here])
            scale, tame = scales_of(norms, self.form)
            whole = torch.where(tame[:, None], exact.to(torch.float64), 0.0) / scale[:, None]
            half = whole.to(torch.bfloat16)
            wrong = ((whole - half.to(torch.float64)) ** 2).sum(1).sqrt()
            ring = self.ring
            ring["half"][at, : self.d] = half
            ring["matrix"][at, : self.d] = exact.to(ring["matrix"].dtype)
            ring["norms"][at] = norms
            offsets, slack = terms_of(wrong, norms, self.error, self.d, self.form, self.turned)
            slack = torch.where(tame, slack, float("inf"))
            ring["offsets"][at], ring["slack"][at] = offsets.to(torch.float32), slack.to(torch.float32)
            ring["floors"][at] = (offsets - slack).to(torch.float32)
            ring["weights"][at] = (1 / scale if self.form == DOT else torch.ones_like(scale)).to(torch.float32)
            for name in ("stamps", "serials", "now"):
                ring[name][at] = self._put(getattr(rows, name)[here])
            done += here.stop - here.start

    def _norms(self, exact: Any) -> Any:
        """Norms by the contract's rule."""
        place = torch.arange(len(exact), device=self.device)
        sums = torch.empty(len(exact), dtype=torch.float64, device=self.device)
        kernels.score[(-(-len(exact) // 128),)](
            (place, place), (exact, exact), (sums, sums), sums, len(exact), self.d, D=exact.shape[1], S=128, FORM=DOT,
            TURNED=False, num_warps=4, **EXACT,
        )  # fmt: skip
        return sums.sqrt()

    def _stage(self, matrix: Array) -> Any:
        """A matrix on the device, through memory that the device reads by itself."""
        if self.device.type == "cpu":
            return torch.from_numpy(np.ascontiguousarray(matrix))
        kind = torch.float64 if matrix.dtype == np.float64 else torch.float32
        if self.staging is None or len(self.staging) < len(matrix) or self.staging.dtype != kind:
            self.staging = torch.empty(matrix.shape, dtype=kind, pin_memory=True)
        mine = self.staging[: len(matrix)]
        mine.copy_(torch.from_numpy(np.ascontiguousarray(matrix)))
        found = mine.to(self.device, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return found

    def vectors(self, begin: int, end: int) -> Array:
        """The exact vectors of the arrivals begin..end."""
        kind = np.float64 if self.ring["matrix"].dtype == torch.float64 else np.float32
        found = [self.ring["matrix"][at, : self.d].cpu().numpy() for at in ring_stretches(begin, end, self.rows)]
        return np.concatenate([np.empty((0, self.d), kind), *found])

    @property
    def _runs(self) -> tuple[Any, ...]:
        return tuple(self.columns[name] for name in ("keys", "stamps", "serials", "flags"))

    # --- a block

    def lacking(self, left: int, last: int) -> Array:
        """Lanes with a depth whose runs hold fewer than k objects that outlast the block."""
        c, n = self.columns, self.size
        found = torch.empty(n, dtype=torch.int8, device=self.device)
        if n:
            kernels.outlast[(-(-n // 16),)](
                c["stamps"], c["k"], c["length"], c["depths"], found, left, last, n, L=16, C=self.room, num_warps=4
            )
        return torch.nonzero(found)[:, 0].cpu().numpy()  # type: ignore[no-any-return]

    def find(self, low: int, high: int) -> bool:
        """The hits of arrivals low..high: pairs whose exact keys reach the lanes' depths. False: there are too many."""
        c, ring, n = self.columns, self.ring, self.size
        self.count.zero_()
        for at in ring_stretches(low, high, self.rows):
            self._sieve(at.start, at.stop - at.start)
        many = int(self.count[0])
        if many > len(self.pairs):
            return False
        pairs = self.pairs[:many]
        lane, row = pairs >> 32, pairs & 0xFFFFFFFF
        keys = self._score(lane, row)
        good = (keys >= c["depths"][lane]) & (ring["serials"][row] >= c["birth"][lane]) & (lane < n)
        lane, row, keys = lane[good], row[good], keys[good]
        order = torch.argsort((lane << 32) + (row - low % self.rows) % self.rows)
        self.hits = (lane[order], row[order], keys[order])
        return True

    def _sieve(self, low: int, rows: int) -> None:
        """Add the pairs of lanes and rows low..low + rows whose products reach the lanes' bars."""
        c, ring = self.columns, self.ring
        lanes, tiles = -(-self.size // LANES) * LANES, -(-rows // ROWS)
        wide = tiles * (ROWS // 32)
        step = max(LANES, WORDS // wide // LANES * LANES)
        if len(self.words) < min(step, lanes) * wide:
            self.words = self._new(min(step, lanes) * wide, torch.int32)
        for first in range(0, lanes, step):
            some = min(step, lanes - first)
            unit, half = c["unit"][first:], ring["half"]
            copies = unit.is_cuda and torch.cuda.get_device_capability()[0] >= 9
            if copies:
                unit = TensorDescriptor(unit, [len(unit), self.wide], [self.wide, 1], [LANES, DEEP])
                half = TensorDescriptor(half, [len(half), self.wide], [self.wide, 1], [ROWS, DEEP])
            kernels.sieve[(some // LANES * tiles,)](
                unit, half, (c["bars"][first:], ring["weights"], ring["floors"]), self.words, (low, rows, some),
                D=self.wide, BM=LANES, BN=ROWS, BK=DEEP, WEIGHTED=self.form == DOT, GROUP=16, COPIES=copies,
                num_warps=8, num_stages=4,
            )  # fmt: skip
            kernels.unpack[(-(-some * wide // 1024),)](
                self.words, self.pairs, self.count, len(self.pairs), low + (first << 32), wide, some * wide, S=1024,
                num_warps=1,
            )  # fmt: skip

    def _score(self, lane: Any, row: Any) -> Any:
        c, ring = self.columns, self.ring
        keys = torch.empty(len(lane), dtype=torch.float64, device=self.device)
        if len(lane):
            kernels.score[(-(-len(lane) // 128),)](
                (lane, row), (c["points"], ring["matrix"]), (c["norms"], ring["norms"]), keys, len(lane), self.d,
                D=self.wide, S=128, FORM=self.form, TURNED=self.turned, num_warps=4, **EXACT,
            )  # fmt: skip
        return keys

    def crowded(self, before: int, left: int, last: int) -> bool:
        """Lift the depths of lanes whose runs are long; whether some have no room for their hits even then."""
        assert self.hits is not None
        c, n = self.columns, self.size
        lane, row, keys = self.hits
        coming = torch.bincount(lane, minlength=n)[:n]
        total = c["counts"][:n] + coming
        some = torch.nonzero((total > self.room) | ((coming > 0) & (2 * total > 3 * c["want"][:n])))[:, 0]
        if not len(some):
            return False
        kernels.tidy[(len(some),)](
            some, self._runs, tuple(c[name] for name in ("k", "want", "length", "depths", "counts")),
            (before, left, last), C=self.room, num_warps=1,
        )  # fmt: skip
        self._set_bars(some)
        good = keys >= c["depths"][lane]
        self.hits = (lane[good], row[good], keys[good])
        coming = torch.bincount(self.hits[0], minlength=n)[:n]
        return bool((c["counts"][:n] + coming > self.room).any())

    def replay(self, last: int, *, net: bool) -> Found:
        """Let lanes take their hits, and time go on to `last`; returns what enters and leaves, in order by lane."""
        assert self.hits is not None
        c, ring, n = self.columns, self.ring, self.size
        lane, row, keys = self.hits
        active = c["dues"][:n] <= last
        active[lane] = True
        some = torch.nonzero(active)[:, 0]
        begins, ends = torch.searchsorted(lane, some), torch.searchsorted(lane, some, right=True)
        worst = torch.cumsum(4 * (ends - begins) + 2 * c["counts"][some] + 2, 0)
        pieces: list[list[Array]] = []
        done = 0
        limit = CHANGES if not lane.is_cuda else min(CHANGES, torch.cuda.mem_get_info()[0] // 400 + len(self.out[0]))
        while done < len(some):  # as many lanes as certainly have room for their changes
            base = int(worst[done - 1]) if done else 0
            stop = max(done + 1, int(torch.searchsorted(worst, base + limit, right=True)))
            most = int(worst[stop - 1]) - base
            if len(self.out[0]) < most:
                kinds = ((torch.int32, 0), (torch.float64, 0), (torch.int64, 4), (torch.int8, 0))
                self.out = tuple(self._new(most + most // 4, kind, wide) for kind, wide in kinds)
            self.count.zero_()
            kernels.replay[(stop - done,)](
                some[done:stop], (begins[done:stop], ends[done:stop]), (keys, row),
                (ring["stamps"], ring["serials"], ring["now"]), self._runs,
                (c["k"], c["length"], c["dues"], c["counts"]), (*self.out, self.count), most, last, C=self.room,
                TIMED=self.timed, NET=net, num_warps=1,
            )  # fmt: skip
            many = int(self.count[0])
            if done and self.pinned:
                pieces = [[one.copy() for one in piece] for piece in pieces]
            pieces.append([self._get(i, one[:many]) for i, one in enumerate(self.out)])
            done = stop
        self.hits = None
        if not pieces:
            return Found.nothing()
        if len(pieces) > 1:
            pieces = [[np.concatenate(one) for one in zip(*pieces, strict=True)]]
        lanes, found, whole, bits = pieces[0]
        return Found(lanes, found, whole[:, 0], whole[:, 1], whole[:, 2], whole[:, 3], bits)

    def _get(self, i: int, values: Any) -> Array:
        """One of the arrays of changes, in memory that the device writes by itself: it holds until the next block."""
        if self.device.type == "cpu":
            return values.numpy().copy()  # type: ignore[no-any-return]
        mine = self.pinned.get(i)
        if mine is None or len(mine) < len(values):
            mine = self.pinned[i] = torch.empty(
                (2 * len(values), *values.shape[1:]), dtype=values.dtype, pin_memory=True
            )
        mine[: len(values)].copy_(values)
        return mine[: len(values)].numpy()  # type: ignore[no-any-return]

    def near(self, places: Array, begin: int, end: int, left: int, last: int) -> tuple[Array, Array, Array]:
        """As torch_depths.py says."""
        return near(self, places, begin, end, left, last)

    # --- what is known

    @property
    def due(self) -> int:
        """The first instant at which a window lets go of a member."""
        return int(self.columns["dues"][: self.size].min()) if self.size else -FREE

    @property
    def objects(self) -> int:
        """Objects in runs."""
        return int(self.columns["counts"][: self.size].sum())

    @property
    def nbytes(self) -> int:
        """Memory of the device."""
        arrays = [*self.columns.values(), *self.ring.values(), self.pairs, self.words, *self.out]
        return sum(one.numel() * one.element_size() for one in arrays)
