"""A chunk: the lanes of some thousands of slots, as arrays that grow, and the kernels' view of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Ints
from skyband.engines.topk.kernels.lane_state import LANE, STALE, Lanes
from skyband.engines.topk.kernels.scores import LaneScorings
from skyband.engines.topk.slot_columns import TOGETHER, Shape, SlotColumns
from skyband.kernels.records import NEVER, OBJECT

Records = NDArray[Any]
MOST = TOGETHER  # lanes of a chunk
KEPT_RANGES = 1 << 16  # numbers of a chunk's ranges of cells; where a lane has more they are found anew for each block
FEWEST, LARGEST = 16, 256  # of these, for a lane


def new_lanes(columns: SlotColumns, slots: Ints, birth: int) -> Records:
    """Lanes without objects."""
    lanes = np.zeros(len(columns), LANE)
    lanes["k"], lanes["length"], lanes["slot"], lanes["birth"] = columns.k, columns.length, slots, birth
    lanes["depth"], lanes["seen"], lanes["counts"] = -np.inf, np.nan, STALE
    lanes["newest"], lanes["due"], lanes["fresh"] = -NEVER, NEVER, 1
    set_goals(lanes)
    return lanes


def set_goals(lanes: Records) -> None:
    """How many objects a lane with its k wants above its depth, and how many of these a run has in random order."""
    k = lanes["k"].astype(np.float64)
    aim = k + np.ceil(5 * np.sqrt(k)) + 4
    lanes["want"] = aim + aim // 4
    lanes["enough"] = k + np.ceil(k * np.log(aim / np.maximum(k, 1)))


@dataclass
class Chunk:
    """Lanes of one pool."""

    arrays: ClassVar[tuple[str, ...]] = ("lanes", "points", "weights", "lows", "highs", "ranges")  # one row per lane
    most: ClassVar[int] = MOST

    shape: Shape
    used: int = 0  # lanes 0..used are in use or free
    free: list[int] = field(default_factory=list)  # lanes below `used`

    def __post_init__(self) -> None:
        shape, boxes = self.shape, self.shape.attributes if self.shape.boxed else 0
        self.lanes = np.zeros(0, LANE)
        self.points, self.weights = np.empty((0, shape.d)), np.empty((0, shape.d if shape.weighted else 0))
        self.lows, self.highs = np.empty((0, boxes)), np.empty((0, boxes))
        self.ranges = np.empty((0, LARGEST), np.int32)
        self.objects = np.empty(0, OBJECT)
        self.tally = np.zeros(2, np.int64)

    @property
    def room(self) -> int:
        """How many more lanes there can be."""
        return self.most - self.used + len(self.free)

    @property
    def held(self) -> int:
        """Lanes in use."""
        return self.used - len(self.free)

    def join(self, columns: SlotColumns, lanes: Records) -> Ints:
        """Take these lanes, which have runs only where the chunk is new; returns their places."""
        again = [self.free.pop() for _ in range(min(len(self.free), len(lanes)))]
        more = len(lanes) - len(again)
        self._reserve(self.used + more)
        places = np.concatenate([np.array(again, np.int64), np.arange(self.used, self.used + more)])
        here: Any = places if again else slice(self.used, self.used + more)  # which is copied as a whole
        self.used += more
        if again:
            known = self.lanes[again]
            lanes["start"][: len(again)] = lanes["head"][: len(again)] = known["start"]
            lanes["room"][: len(again)] = known["room"]
        self.lanes[here] = lanes
        self.points[here], self.weights[here] = columns.points, columns.weights
        if self.shape.boxed:
            self.lows[here] = columns.lows if columns.lows.shape[1] else -np.inf
            self.highs[here] = columns.highs if columns.highs.shape[1] else np.inf
        return places

    def _reserve(self, size: int) -> None:
        """Arrays for so many lanes: twice as many as before."""
        if size <= len(self.lanes):
            return
        room = min(self.most, max(size, 2 * len(self.lanes)))
        width = min(LARGEST, max(FEWEST, KEPT_RANGES // room))
        self.in_use["counts"][self.in_use["counts"] > width] = STALE
        self.ranges = self.ranges[:, :width]
        for name in self.arrays:
            old: Records = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), old.dtype)
            new[: self.used] = old[: self.used]
            setattr(self, name, new)

    def columns(self, places: Ints) -> SlotColumns:
        """These lanes as columns."""
        k, length = self.lanes["k"][places], self.lanes["length"][places]
        return SlotColumns(self.points[places], self.weights[places], k, length, self.lows[places], self.highs[places])

    def put(self, s: int, run: Records) -> None:
        """Give a lane this run, whose members are its first k."""
        lane, size = self.lanes[s], len(run)
        start = int(self.tally[0])
        self.objects = np.concatenate([self.objects[:start], run, np.empty(size // 2 + 8, OBJECT)])
        lane["start"], lane["head"], lane["size"], lane["room"] = start, start, size, size
        self.tally[0] = start + size
        oldest = int(run["stamp"][: int(lane["k"])].min(initial=NEVER))
        lane["due"] = oldest + lane["length"] if oldest < NEVER else NEVER

    def leave(self, places: Ints) -> None:
        """Free these lanes."""
        lanes = self.lanes
        lanes["k"][places] = lanes["size"][places] = lanes["open"][places] = lanes["fresh"][places] = 0
        lanes["due"][places] = NEVER
        self.free.extend(places.tolist())
        if len(self.free) == self.used:  # nothing is left
            self.used, self.free, self.objects, self.tally[0] = 0, [], np.empty(0, OBJECT), 0
            lanes["room"] = lanes["start"] = lanes["head"] = 0

    @property
    def in_use(self) -> Records:
        """The lanes, free ones among them."""
        found: Records = self.lanes[: self.used]
        return found

    def view(self) -> Lanes:
        """The lanes as kernels see them."""
        u, shape = self.used, self.shape
        scorings = LaneScorings(shape.form, shape.turned, self.points[:u], self.weights[:u])
        return Lanes(self.objects, self.lanes[:u], scorings, self.lows[:u], self.highs[:u], self.ranges[:u], self.tally)

    @property
    def nbytes(self) -> int:
        return sum(int(getattr(self, name).nbytes) for name in (*self.arrays, "objects"))


def share_memory(chunks: list[Chunk]) -> None:
    """Give new chunks room for all of their lanes, side by side."""
    for name in chunks[0].arrays:
        like: Records = getattr(chunks[0], name)
        most, shape = chunks[0].most, like.shape[1:]
        if name == "ranges":
            shape = (min(LARGEST, max(FEWEST, KEPT_RANGES // most)),)
        room = np.empty((len(chunks) * most, *shape), like.dtype)
        for i, chunk in enumerate(chunks):
            setattr(chunk, name, room[i * most : (i + 1) * most])
