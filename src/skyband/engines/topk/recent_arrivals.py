"""Recent arrivals: the history that the slots of a pool share, in segments (kernels/segments.py), and its grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Floats, Ints, Vectors
from skyband.engines.topk.kernels.segments import SEGMENT, Grid, History, sort_segments
from skyband.engines.topk.slot_columns import Shape
from skyband.kernels.records import NEVER
from skyband.query.scoring.forms import TAME

Records = NDArray[Any]


@dataclass
class Stream:
    """The arrivals of a batch that can be answers, and its end."""

    data: Floats  # one row per attribute
    stamps: Ints
    now: Ints
    serials: Ints
    last: int  # the clock, or the number of the last arrival
    next: int  # the serial of the next batch
    vectors: Vectors | None = None  # of the arrivals, where they have some

    def behind(self, shift: int) -> Stream:
        """With numbers that are so much smaller."""
        if not shift:
            return self
        return replace(self, stamps=self.stamps - shift, now=self.now - shift, last=self.last - shift)

    def since(self, place: int) -> Stream:
        """Without the first arrivals."""
        tail = slice(place, None)
        vectors = None if self.vectors is None else self.vectors.only(tail)
        arrays = self.data[:, tail], self.stamps[tail], self.now[tail], self.serials[tail]
        return Stream(*arrays, self.last, self.next, vectors)


class RecentArrivals:
    """A history in arrays with room behind it, and a grid over its attributes."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.left = self.before = -NEVER  # the largest stamp that has left the history; the last instant handled
        self.arrived = 0
        self.data = np.empty((shape.attributes, 0))
        self.stamps, self.now, self.serials = (np.empty(0, np.int64) for _ in range(3))
        self.end = 0  # of the history, in these
        self.by_cell, self.places = np.empty((shape.attributes, 0)), np.empty(0, np.int32)
        self.segments, self.starts = np.empty(0, SEGMENT), np.empty((1, 1), np.int32)
        self.grid = Grid(np.zeros(shape.attributes), np.zeros(shape.attributes), 0, np.empty((0, 0)), np.empty((0, 0)))
        self.laid = 0  # arrivals when the grid was laid

    @property
    def here(self) -> slice:
        """The history, in its arrays."""
        return slice(int(self.segments["begin"][0]) if len(self.segments) else self.end, self.end)

    @property
    def kept_serials(self) -> Ints:
        """Of the history, rising."""
        found: Ints = self.serials[self.here]
        return found

    @property
    def waiting(self) -> int:
        """Arrivals in the history."""
        return int(self.here.stop - self.here.start)

    def set_history(self, data: Floats, stamps: Ints, serials: Ints, vectors: Vectors | None = None) -> None:
        """Take over a history."""
        size = len(stamps)
        self.segments, self.end = self.segments[:0], 0
        self.append(Stream(data, stamps, stamps, serials, 0, 0, vectors), size)
        if size:
            segment = np.zeros(1, SEGMENT)
            segment["end"], segment["newest"], segment["cells"] = size, stamps.max(), -1
            segment["instant"] = stamps.max()
            self.segments = segment

    def append(self, stream: Stream, more: int) -> int:
        """Put the arrivals into the history; returns the place of the first. more: room for others."""
        size = len(stream.stamps)
        begin = int(self.segments["begin"][0]) if len(self.segments) else self.end
        if self.end + size > len(self.stamps):
            live, old_room, here = self.end - begin, len(self.stamps), slice(begin, self.end)
            room = live + size + max(more, size) if live + size > old_room // 2 else old_room
            room = old_room if room <= old_room <= 2 * room else room  # new pages cost more than the copy
            for name in ("data", "by_cell", "stamps", "now", "serials", "places"):
                old: Records = getattr(self, name)
                new = old if room == old_room else np.empty((*old.shape[:-1], room), old.dtype)
                new[..., :live] = old[..., here] - begin if name == "places" else old[..., here]
                setattr(self, name, new)
            self.segments["begin"] -= begin
            self.segments["end"] -= begin
            self.starts -= np.int32(begin)
            self.end = live
        low = self.end
        self.end += size
        new_rows = slice(low, self.end)
        self.data[:, new_rows], self.stamps[new_rows] = stream.data, stream.stamps
        self.now[new_rows], self.serials[new_rows] = stream.now, stream.serials
        return low

    def history(self, segments: Records) -> History:
        return History(self.data, self.stamps, self.now, self.serials, self.by_cell, self.places, segments, self.starts)

    # --- the grid

    def lay_grid(self, low: int, side: int, most: int) -> None:
        """Another grid if there is none that suits the arrivals from place `low` on, so many in a history."""
        fresh = self.data[:, low : self.end]
        enough = fresh.shape[1] >= side**self.shape.attributes
        if side == 0 or not (enough or self.grid.side):
            if self.grid.side and side == 0:
                self.set_grid(Grid(self.grid.origin, self.grid.scale, 0, np.empty((0, 0)), np.empty((0, 0))))
            return
        if self.grid.side and enough and self.arrived - self.laid >= most:
            some = fresh[:, :: max(1, fresh.shape[1] // 4096)]
            place = (some - self.grid.origin[:, None]) * self.grid.scale[:, None]
            outside = ((place < 0) | (place > self.grid.side)).any(axis=0).mean()
            resized = max(side, self.grid.side) >= 1.5 * min(side, self.grid.side)
        else:
            outside, resized = 0.0, False
        if self.grid.side and outside <= 0.2 and not resized:
            return
        sample = self.data[:, : self.end][:, :: max(1, self.end // 4096)]
        sample = np.where(np.abs(sample) <= TAME, sample, np.nan)
        known = ~np.isnan(sample).all(axis=1)
        origin, scale = np.zeros(len(sample)), np.zeros(len(sample))
        least, most = np.nanquantile(sample[known], [0.005, 0.995], axis=1)
        origin[known] = least
        with np.errstate(divide="ignore"):
            width = np.where(most > least, side / (most - least), 0.0)
        scale[known] = np.where(width < 1e300, width, 0.0)
        self.set_grid(Grid(origin, scale, side, *cell_edges(origin, scale, side)))
        self.laid = self.arrived

    def set_grid(self, grid: Grid) -> None:
        """Take another grid: segments are to be sorted again."""
        self.grid = grid
        self.segments["cells"], self.starts = -1, np.empty((1, grid.side**self.shape.attributes + 1), np.int32)

    def sort(self, segments: Records, first: int, long: int) -> Records:
        """Sort the segments from `first` on that are long enough; returns all of them as they are then."""
        if self.grid.side:
            cells = self.grid.side**self.shape.attributes
            due = np.flatnonzero((segments["end"] - segments["begin"] >= min(cells, long)) & (segments["cells"] < 0))
            due = due[due >= first]
            free, taken = np.ones(len(segments), np.bool_), segments["cells"]
            free[taken[(taken >= 0) & (taken < len(free))]] = False
            rows = np.flatnonzero(free)[: len(due)]
            segments["cells"][due] = rows
            if len(rows) and rows.max() >= len(self.starts):
                more = np.empty((int(rows.max()) + 1 - len(self.starts), cells + 1), np.int32)
                self.starts = np.concatenate([self.starts, more])
            if len(due):
                only = segments.copy()
                only["cells"] = -1
                only["cells"][due] = rows
                longest = int((segments["end"] - segments["begin"])[due].max())
                sort_segments(self.history(only), self.grid, first, np.empty(longest))
        return segments


def cell_edges(origin: Floats, scale: Floats, side: int) -> tuple[Floats, Floats]:
    """The sides of cells by attribute and place, a little wider than they are: places are rounded. Ends are open."""
    places = np.arange(side)
    with np.errstate(divide="ignore", invalid="ignore"):
        width = 1 / scale[:, None]
        slack = 1e-9 * width * side + 1e-15 * np.abs(origin[:, None])
        lows, highs = origin[:, None] + places * width - slack, origin[:, None] + (places + 1) * width + slack
    lows[:, 0], highs[:, -1] = -np.inf, np.inf
    lows[scale == 0], highs[scale == 0] = -np.inf, np.inf
    return lows, highs
