"""BS and DOM for alternatives that exclude each other (x-tuples): of those with one name at most one exists.

Beyond the paper, whose tuples are independent. Tuples that pass `where` are kept as by BS and DOM, with their names,
and an answer is read by another walk (kernels/exclusive.py). All valid rows that have a name are kept besides, in a
ring (rivals.py): they decide which rows are rejected.

The stop conditions of pk-topk, pt-k and u-kranks maintain themselves here too, that of u-topk does not
(docs/engines/uncertain/bs.md has the proof, tests/uncertain/test_alternatives.py the counterexample): DOM refuses it.

Cost: as of BS and DOM; a look at the valid alternatives of each arrival; O(k d) for a tuple of the prefix that has
alternatives above it. Memory: 56 bytes a kept tuple, and 56 to 224 a valid row with a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import EVER, Arrivals, Changes, Ints, Spec
from skyband.engines.invariants import are_counts, near, owners, require, within
from skyband.engines.uncertain.bs import BS
from skyband.engines.uncertain.changes import Taken
from skyband.engines.uncertain.dom import DOM
from skyband.engines.uncertain.first_version import LAYOUT, converted, is_of_first_version
from skyband.engines.uncertain.front_engine import FrontEngine
from skyband.engines.uncertain.kernels.exclusive import read_exclusive
from skyband.engines.uncertain.kernels.records import NAMED, Batch
from skyband.engines.uncertain.kernels.records import Rivals as Walked
from skyband.engines.uncertain.kernels.rivals import MOST
from skyband.engines.uncertain.rivals import ENTRY, Rivals
from skyband.engines.uncertain.semantics import Place, semantics_of
from skyband.query.tuning import Tuning

Records = NDArray[Any]
State = dict[str, tuple[Records, Ints]]


_INTS: Any
_INTS, _FLOATS = np.empty(0, np.int64), np.empty(0)
NOTHING = Walked(*[_INTS] * 6, *[_FLOATS] * 3, *[_INTS] * 5)  # memory that a kernel replaces


@dataclass(frozen=True)
class Stored:
    """What a snapshot of version 0.1 names as kept, until something arrives: rows that fail `where` too."""

    serials: Ints
    sizes: Ints


class Exclusive(FrontEngine):
    """An engine with a front, of tuples that have names."""

    tuples: ClassVar[np.dtype[Any]] = NAMED

    def __init__(self, specs: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool, rivals: Rivals) -> None:
        self.rivals = rivals
        self.stored: Stored | None = None
        self.first_version = False  # is a snapshot of version 0.1 to be read?
        super().__init__(specs, tuning, timed=timed, net=net)

    def take(self, arrivals: Arrivals) -> Changes:
        self.stored = None
        return super().take(arrivals)

    def _batch(self, here: Taken, arrivals: Arrivals) -> Batch:
        names, named = np.ascontiguousarray(here.names), np.ascontiguousarray(here.named)
        return super()._batch(here, arrivals)._replace(names=names, named=named, rivals=NOTHING)

    def _places(self, spec: Spec, ranking: Records) -> list[Place]:
        one = semantics_of(spec)
        at, rank, chance, result = read_exclusive(ranking, one.k, one.code, one.threshold)
        many = int(result[-1])
        places = zip(at[:many].tolist(), rank[:many].tolist(), chance[:many].tolist(), strict=True)
        return [Place(*place) for place in places]

    def refit(self, specs: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        self.stored = None
        return super().refit(specs, predecessors, now)

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        if self.stored is not None and groups is None:
            return self.stored.serials, self.stored.sizes
        return super().serials(groups)

    def reset_groups(self, groups: Ints) -> None:
        self.rivals.drop(groups)
        super().reset_groups(groups)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.rivals.nbytes

    # --- snapshots

    def reads(self, layout: Mapping[str, str]) -> None:
        """The names of the arrays that come to be restored: those of version 0.1, or this version's."""
        self.first_version = is_of_first_version(layout)

    def snapshot(self, groups: Ints) -> State:
        if self.first_version:
            return {name: (np.empty(0, dtype), groups) for name, dtype in LAYOUT.items()}
        self.stored = None
        entries, sizes = self.rivals.entries(groups, np.maximum(self.state.groups["now"], -EVER))
        counts = (sizes, np.ones(len(groups), np.int64))
        return super().snapshot(groups) | {"rivals": (entries, sizes), "named": counts}

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        if self.first_version:
            sizes = state["many"]
            self.first_version, self.stored = False, Stored(state["tuples"]["serial"].astype(np.int64), sizes)
            state = converted(self, state, trusted=trusted)
        sizes = state["named"]
        require(
            len(sizes) == len(state["pasts"]) and are_counts(sizes, len(state["rivals"])), "groups have their names"
        )
        if not trusted:
            check_rivals(state)
            require(within(state["past"]["named"], 0, 1), "tuples have a name, or none")
        super().restore(state, trusted=trusted)
        self.rivals.restore(np.asarray(state["rivals"], ENTRY), sizes)


class ExclusiveBS(Exclusive, BS):
    """The window of alternatives."""


class ExclusiveDOM(Exclusive, DOM):
    """What newer, better ones do not replace."""


def check_rivals(state: Mapping[str, Records]) -> None:
    """Rows that have names, of a stranger's snapshot: no name has more than it may."""
    rivals, groups = state["rivals"], owners(state["named"])
    require(near(rivals["stamp"]), "names have stamps")
    require(bool(((rivals["p"] > 0) & (rivals["p"] <= 1)).all()), "alternatives exist with a probability in (0, 1]")
    keys = np.stack([groups, rivals["name"]])
    _, which = np.unique(keys, axis=1, return_inverse=True)
    sums = np.bincount(which.reshape(-1), rivals["p"])
    require(bool((sums <= MOST + 1e-9).all()), "the probabilities of alternatives pass 1 nowhere")
