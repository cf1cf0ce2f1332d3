"""Where the bound of a view is: of many objects only the largest can be answers (kernels/bound.py).

It lies so that `wanted` objects are above it, a few times k. It rises where ROOM times as many are; each time the
objects have doubled several times, or as many rows have come. It falls where fewer than k are left. If that was so
twice within one window, many more are wanted, up to all: so all falls within a window read its rows a few times, and on
a stream whose scores fall nothing is cold. After RESTS windows without a bound it is tried again.

It is used where objects are ranked by one max (or, the smallest first, by one min) over a time window without `per`,
by one query that reports each step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.groups.kernels.bound import largest_of, lower_bound, members_of_heaps, raise_bound, rank_warm
from skyband.engines.groups.kernels.state import CHAIN, HOT, LIVE, MOST_HOT, STEP, TIMED, USED, Batch, Live
from skyband.kernels.records import NEVER

if TYPE_CHECKING:
    from skyband.engines.groups.view import View

LEAST, EACH = 256, 8  # objects above the bound, and for each of the k
ROOM = 8  # times as many, and it rises
MORE = 16  # times as many are wanted where it fell twice within a window
RESTS = 16  # windows


class Bound:
    """The bound of one view, and when it moved."""

    def __init__(self) -> None:
        self.wanted = 0
        self.fell = 0  # the step in which it fell last; 0: never
        self.rests = 0  # and is not tried again before this one
        self.open = False  # whether it can be used at all

    def prepare(self, view: View, batch: Batch) -> None:
        """Before a batch: decide whether a bound can be used."""
        store, facts = view.store, view.store.facts
        self.open = can_have(view)
        if not self.open:
            clear(view, batch)
            facts[MOST_HOT] = NEVER
        elif facts[MOST_HOT] == NEVER and facts[STEP] >= self.rests:
            self.wanted = self._least(view)
            facts[MOST_HOT] = ROOM * self.wanted
        assert self.open or store.bound[0] == -np.inf

    def _least(self, view: View) -> int:
        return LEAST + EACH * view.rankings[0].k

    def move(self, view: View, batch: Batch, live: Live) -> None:
        """Move the bound if it does not fit: kernels have stopped between two steps."""
        store, facts = view.store, view.store.facts
        if store.bound[0] > -np.inf and live.heads["size"][0] < live.k:
            self._lower(view, batch, live)
        elif facts[HOT] > facts[MOST_HOT]:
            self._raise(view, live)

    def _raise(self, view: View, live: Live) -> None:
        """Let as few be above the bound as are wanted. It reads those that were: O(1) for each that has come."""
        store, facts = view.store, view.store.facts
        ranked = np.empty(len(live.ranks), np.int64)
        ranked = ranked[: members_of_heaps(live, ranked)]
        keys = live.ranks["key"][ranked]
        keys = keys[~np.isnan(keys)]
        bound = float(np.partition(keys, len(keys) - self.wanted)[-self.wanted])
        if bound > store.bound[0]:
            raise_bound(store.state, live, ranked, bound)
        facts[MOST_HOT] = max(ROOM * self.wanted, 2 * int(facts[HOT]))  # many may be equal

    def _lower(self, view: View, batch: Batch, live: Live) -> None:
        """Read all rows again for the best that are below the bound."""
        store, facts = view.store, view.store.facts
        soon = self.fell > 0 and facts[STEP] - self.fell < facts[LIVE]
        self.wanted = MORE * self.wanted if soon else max(self._least(view), self.wanted // MORE)
        self.fell = int(facts[STEP])
        self.rests = self.fell + RESTS * int(facts[LIVE])
        largest = np.full(len(store.slots), -np.inf)
        largest_of(store.rows, store.values, int(facts[USED]), largest)
        keys, bound = largest[store.there], -np.inf
        if 2 * self.wanted < len(keys):
            bound = float(np.partition(keys, len(keys) - self.wanted)[-self.wanted])
        order = rows_above(view, bound)
        lower_bound(store.state, store.window, batch, order, bound)
        rank_warm(store.state, store.window, live, order)
        facts[MOST_HOT] = NEVER if bound == -np.inf else max(ROOM * self.wanted, 2 * int(facts[HOT]))


def can_have(view: View) -> bool:
    """Whether the largest of a view alone say what is in its answer."""
    store, plain = view.store, view.measures.plain
    plainly = plain is not None and plain[1] > 0 and view.measures.names in (("max",), ("min",))
    one = len(view.rankings) == 1 and not view.rankings[0].moves and len(store.groups) == 1
    return plainly and one and not view.net and store.mode == TIMED and store.window.keeps == CHAIN


def clear(view: View, batch: Batch) -> bool:
    """Put all rows into chains, and rank all objects; returns whether there was a bound."""
    store = view.store
    if store.bound[0] == -np.inf:
        return False
    lower_bound(store.state, store.window, batch, rows_above(view, -np.inf), -np.inf)
    view.rank_all()
    return True


def rows_above(view: View, bound: float) -> Any:
    """The rows that are not below a bound, the oldest first."""
    store, used = view.store, int(view.store.facts[USED])
    rows = np.flatnonzero((store.rows["slot"][:used] >= 0) & (store.values[:used, 0] >= bound))
    return rows[np.lexsort((store.rows["serial"][rows], store.rows["stamp"][rows]))]
