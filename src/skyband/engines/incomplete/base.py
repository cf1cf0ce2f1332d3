"""What every engine of incomplete streams is made of, and how it takes a batch of arrivals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Arrivals, Bools, Ints, Spec
from skyband.engines.incomplete.kernels import rows as pieces
from skyband.engines.incomplete.kernels.combine import Recipe
from skyband.engines.incomplete.register import Register
from skyband.kernels.records import CHANGE
from skyband.kernels.routing import stable_order
from skyband.query.tuning import Tuning

Records = NDArray[Any]
REPEATS = {None: pieces.ONCE, "last": pieces.LAST, "max": pieces.MOST, "sum": pieces.TOTAL}
BEGINNING = -(2**62)


class Machine:
    """For up to 32 queries at once."""

    least = 32  # rows that a group may have without a sweep
    groups: Any
    store: Any
    kept: Any

    def __init__(
        self,
        asked: tuple[Spec, ...],
        tuning: Tuning,
        *,
        timed: bool,
        net: bool,
        recipe: Recipe,
        repeat: str | None,
        register: Register | None = None,
    ) -> None:
        self.tuning, self.timed, self.net = tuning, timed, net
        self.recipe, self.repeat = recipe, REPEATS[repeat]
        self.register: Any = register
        self.d = len(recipe.lows)
        self.held = np.empty(0, CHANGE)  # nothing waits: a net batch is compared when it ends
        self._set_queries(asked)
        self._empty()

    def _set_queries(self, asked: tuple[Spec, ...]) -> None:
        raise NotImplementedError

    def _empty(self) -> None:
        raise NotImplementedError

    # --- the stream

    @staticmethod
    def needed(arrivals: Arrivals, asked: tuple[Spec, ...], *, net: bool) -> Bools:
        """Every row can matter: the other parts of its object may be anywhere."""
        return np.ones(len(arrivals.rows), np.bool_)

    @staticmethod
    def _by_group(arrivals: Arrivals) -> tuple[Ints, Any]:
        """Arrivals sorted by group, in order within a group: their groups, and what kernels read of them."""
        assert arrivals.names is not None and arrivals.parts is not None
        given: Any = (arrivals.names, arrivals.parts, arrivals.keys, arrivals.stamps, arrivals.now, arrivals.rows)
        groups = arrivals.groups
        if arrivals.total > 1:
            order = stable_order(groups, arrivals.total)
            given, groups = [column[order] for column in given], groups[order]
        return groups, tuple(map(np.ascontiguousarray, given))

    # --- what is kept

    @property
    def buffer(self) -> int:
        return 0

    def size_of(self, query: int) -> int:
        return int(self.kept.sum())

    def facts_of(self) -> dict[str, Any]:
        """More than others tell in `stats()`."""
        return {}

    @property
    def due(self) -> Ints:
        due: Ints = self.groups["due"]
        return due

    @property
    def nbytes(self) -> int:
        register = 0 if self.register is None else int(self.register.nbytes)
        return sum(int(array.nbytes) for array in self.store) + register


class Taken(dict[str, Any]):
    """What `ordered_changes` reads of arrivals."""

    def __init__(self, now: Ints, rows: Ints) -> None:
        super().__init__(now=now, row=rows)


def within(sizes: Ints) -> Ints:
    """The places within runs of these sizes, one run after another."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
