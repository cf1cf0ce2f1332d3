"""The queries of an engine that keeps whole windows, as its kernels see them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from skyband.engines.contract import Floats, Ints, Scorings, Spec
from skyband.engines.topk.bounds import no_programs, only
from skyband.engines.topk.kernels.window_state import SPEC, TSL, Queries, Records, Scratch
from skyband.kernels.records import NEVER, OBJECT
from skyband.query.tuning import Tuning

CELLS = 12**4  # Figure 14: the best for time, and it costs little space


class WindowQueries:
    """Queries over one window length with scorings of one form, and the work space that all groups share."""

    def __init__(
        self,
        specs: tuple[Spec, ...],
        scorings: Scorings,
        tuning: Tuning,
        algorithm: int,
        view_sizes: Callable[[Ints, Tuning], Ints],
        *,
        timed: bool,
        net: bool,
    ) -> None:
        self.algorithm, self.tuning, self.view_sizes = algorithm, tuning, view_sizes
        self.timed, self.net, self.length = timed, net, specs[0].length
        self.cells = tuning.cells or CELLS
        self.capacity = NEVER if timed else self.length  # how many objects are valid at most, as far as that is known
        self.specs, self.arrays = specs, self._arrays(specs, scorings)
        self.keys = [partial(scorings.keys, s) for s in range(len(specs))]
        d = self.axes
        self.scratch = Scratch(
            bounds=np.empty(1),
            codes=np.empty(1, np.int64),
            slabs=np.empty((d, 1), np.int32),
            terms=np.empty((d, 1)),
            many=np.zeros(d + 1, np.int64),
            halves=np.empty(2, np.int64),
            half_bounds=np.empty(2),
            ends=np.empty((d, 2), np.int64),
            best=np.zeros(self._largest_view + 1, OBJECT),
            touched=np.empty(len(specs), np.int32),
            stale=np.empty(len(specs), np.int32),
            before=np.empty(int(self.arrays.specs["k"].sum()), OBJECT),
        )

    def _arrays(self, specs: tuple[Spec, ...], scorings: Scorings) -> Queries:
        records, (count, d) = np.zeros(len(specs), SPEC), scorings.points.shape
        lows, highs = np.full((count, d), -np.inf), np.full((count, d), np.inf)
        if len(scorings.lows):
            lows, highs = scorings.lows, scorings.highs
        records["k"] = [min(one.k, self.capacity) for one in specs]
        records["view"] = np.minimum(self.view_sizes(records["k"], self.tuning), self.capacity)
        records["dynamic"] = self.algorithm == TSL and self.tuning.view == "dynamic"
        records["above"] = [one.threshold is not None for one in specs]
        records["threshold"] = [np.inf if one.threshold is None else one.threshold for one in specs]
        records["boxed"] = (lows > -np.inf).any(axis=1) | (highs < np.inf).any(axis=1)
        records["column"] = scorings.columns if len(scorings.columns) else -1
        weights = scorings.weights if scorings.weights.shape[1] else np.ones((count, d))
        programs = no_programs() if scorings.programs is None else scorings.programs
        form, points = scorings.form, scorings.points
        return Queries(self.algorithm, form, scorings.turned, programs, records, points, weights, lows, highs)

    def __len__(self) -> int:
        return len(self.specs)

    @property
    def axes(self) -> int:
        """How many attributes of an object decide where it is in a grid or in sorted lists."""
        return int(self.arrays.points.shape[1])

    @property
    def width(self) -> int:
        """How many numbers are kept of an object: its attributes, and its keys for expressions."""
        return self.axes + len(self.arrays.programs.steps)

    @property
    def views(self) -> Ints:
        """How many objects a search returns, at first."""
        views: Ints = self.arrays.specs["view"]
        return views

    @property
    def _largest_view(self) -> int:
        view = int(self.views.max(initial=1))
        return 8 * view + 64 if self.arrays.specs["dynamic"].any() else view

    def add(self, spec: Spec, scoring: Scorings) -> None:
        """Serve one query more."""
        one = self._arrays((spec,), scoring)
        both = [np.concatenate([mine, new]) for mine, new in zip(self.arrays[4:], one[4:], strict=True)]
        self.specs, self.arrays = (*self.specs, spec), Queries(*self.arrays[:4], *both)
        self.keys.append(partial(scoring.keys, 0))
        scratch, most = self.scratch, int(self.arrays.specs["k"].sum())
        if len(self) > len(scratch.touched):
            scratch = scratch._replace(
                touched=np.empty(2 * len(self), np.int32), stale=np.empty(2 * len(self), np.int32)
            )
        if most > len(scratch.before):
            scratch = scratch._replace(before=np.empty(2 * most, OBJECT))
        if self._largest_view >= len(scratch.best):
            scratch = scratch._replace(best=np.zeros(self._largest_view + 1, OBJECT))
        self.scratch = scratch

    def keep(self, kept: Ints) -> Ints:
        """Serve only these. Returns which of the numbers of an object are kept, in their order from now on."""
        kept_numbers = np.arange(self.width)
        self.arrays = Queries(*self.arrays[:4], *(array[kept] for array in self.arrays[4:]))
        if self.width > self.axes:
            columns = self.arrays.specs["column"]
            used = list(dict.fromkeys(columns.tolist()))
            kept_numbers = np.concatenate([kept_numbers[: self.axes], self.axes + np.array(used, np.int64)])
            self.arrays = self.arrays._replace(programs=only(self.arrays.programs, used))
            columns[:] = [used.index(one) for one in columns.tolist()]
        self.specs, self.keys = tuple(self.specs[s] for s in kept), [self.keys[s] for s in kept]
        return kept_numbers

    def fit_grid(self, cells: int, side: int) -> None:
        """Make the work space large enough for a grid."""
        scratch = self.scratch
        if cells > len(scratch.bounds) or side > scratch.slabs.shape[1]:
            cells, side, d = max(cells, len(scratch.bounds)), max(side, scratch.slabs.shape[1]), len(scratch.slabs)
            self.scratch = scratch._replace(
                bounds=np.empty(cells),
                codes=np.empty(cells, np.int64),
                slabs=np.empty((d, side), np.int32),
                terms=np.empty((d, side)),
            )

    def inside(self, s: int, data: Floats) -> Records:
        """Which of these objects are in the box of query s."""
        data = data[:, : self.axes]
        within: Records = ((data >= self.arrays.lows[s]) & (data <= self.arrays.highs[s])).all(axis=1)
        return within

    def keys_of(self, s: int, data: Floats) -> Floats:
        """The keys of these objects for query s."""
        if self.width > self.axes:
            found: Floats = np.ascontiguousarray(data[:, self.axes + self.arrays.specs["column"][s]])
            return found
        return self.keys[s](np.ascontiguousarray(data.T))
