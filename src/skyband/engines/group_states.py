"""States of groups, one object each: an engine visits those with arrivals, and those from which time takes something.

A group without objects has no state: it costs 24 bytes until its code is given to another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from skyband.engines.contract import NEVER, Ints

T = TypeVar("T")


class GroupStates(Generic[T]):
    """The states by group, how many objects each has, and when it must be visited."""

    def __init__(self, empty: Callable[[], T], states: Sequence[T | None] = ()) -> None:
        self.empty = empty  # makes the state of a group without objects
        self.states = list(states)
        self.live: Ints = np.zeros(len(self.states), np.int64)
        self.due: Ints = np.full(len(self.states), NEVER)
        self.open: set[int] = set()  # groups within a net batch that goes on

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, g: int) -> T:
        state = self.states[g]
        if state is None:
            state = self.states[g] = self.empty()
        return state

    def known(self, g: int) -> T | None:
        """The state of a group, if there is one."""
        return self.states[g] if g < len(self.states) else None

    def there(self) -> list[tuple[int, T]]:
        """The states that there are, with their groups."""
        return [(g, state) for g, state in enumerate(self.states) if state is not None]

    def read(self, groups: Ints) -> list[T]:
        """The states of these groups; all that have none share one."""
        none, known = self.empty(), len(self.states)
        return [(self.states[g] if g < known else None) or none for g in groups.tolist()]

    def grow(self, total: int) -> None:
        """Know so many groups."""
        more = total - len(self.states)
        if more > 0:
            self.states += [None] * more
            self.live = np.append(self.live, np.zeros(more, np.int64))
            self.due = np.append(self.due, np.full(more, NEVER))

    def visits(self, groups: Ints, clock: int, *, timed: bool, closing: bool) -> list[tuple[int, int, int]]:
        """The groups to visit, each with its slice of these sorted codes; closing: net batches end."""
        begins = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        starts = [0, *begins.tolist(), len(groups)] if len(groups) else []
        visits = [(int(groups[begin]), begin, end) for begin, end in pairwise(starts)]
        others = set(np.flatnonzero(self.due <= clock).tolist()) if timed else set[int]()
        if closing:
            others |= self.open
        others.difference_update([g for g, _, _ in visits])
        return sorted([*visits, *((g, 0, 0) for g in others)]) if others else visits

    def note(self, g: int, live: int, due: int, *, is_open: bool, leaves: bool) -> bool:
        """Note how a visit has left a group; whether it is dropped, as it has no objects and `leaves` allows it."""
        self.live[g], self.due[g] = live, due
        if is_open:
            self.open.add(g)
        else:
            self.open.discard(g)
        dropped = leaves and not live and not is_open
        if dropped:
            self.states[g] = None
        return dropped

    def keep(self, groups: Ints) -> None:
        """Keep only these groups, under the codes 0, 1, ...; no batch is open."""
        self.grow(1 + int(groups.max(initial=-1)))
        self.states = [self.states[g] for g in groups.tolist()]
        self.live, self.due = self.live[groups], self.due[groups]

    def reset(self, groups: Ints) -> None:
        """Drop the states of these groups."""
        self.grow(1 + int(groups.max(initial=-1)))
        self.live[groups], self.due[groups] = 0, NEVER
        for g in groups.tolist():
            self.states[g] = None

    @property
    def nbytes(self) -> int:
        return int(self.live.nbytes + self.due.nbytes) + 8 * len(self.states)
