"""Groups whose objects are gone give back their memory; only their next numbers stay (engines/numbers_at_rest.py).

In time windows nothing of a group is valid any more once the longest window has passed since the clock of its last
arrival; over `UntilDeleted()`, once all its objects are deleted. Such groups lose their codes when they are more than
the others, and the codes of these move up: O(1) amortised for a group that comes and goes, and memory stays within
twice what the others need. Groups of count windows have objects for ever, unless `forget` ends them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.unsubscribed import Nothing
from skyband.monitor.state import State
from skyband.tables.groups import Groups
from skyband.tables.push import BEGINNING

Ints = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max
FEWEST = 1024  # groups without objects before it is worth the while
SHARE = 8  # objects that are moved for each group that goes


@dataclass
class Watch:
    """When to look at the groups of one `per` again: a look costs O(1) for each of them."""

    credit: int = 0  # groups that may be looked at, earned by the rows of pushes
    due: int = BEGINNING  # before this instant too few can be without objects


class Dormancy:
    """Puts the groups of a state to rest."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._watches: dict[tuple[str, ...], Watch] = {}

    def settle(self, rows: int | None) -> None:
        """After a push of so many rows (None: time moved on alone), or deletions: rest groups if there are many."""
        for names, groups in self.state.groups.items():
            if not names or groups.total <= FEWEST:
                continue
            watch = self._watches.setdefault(names, Watch())
            watch.credit = max(watch.credit, groups.total) if rows is None else watch.credit + 4 * rows + 64
            if groups.total <= watch.credit and watch.due <= self.state.clock:
                watch.credit = min(watch.credit, 4 * groups.total) - groups.total
                self._look(groups, watch)

    def _look(self, groups: Groups, watch: Watch) -> None:
        adapters = [adapter for adapter in self.state.standing() if adapter.groups is groups]
        ends = self._ends(adapters, groups.total)
        moved = sum(int(adapter.engine.kept.sum()) for adapter in adapters if adapter.engine is not None) // SHARE
        enough = (FEWEST + groups.total + moved + 1) // 2  # groups, so that they outnumber the others
        if np.count_nonzero(ends <= self.state.clock) >= enough:
            rest(adapters, groups, ends <= self.state.clock)
            watch.due = BEGINNING
        else:
            due = int(np.partition(ends, min(enough, len(ends)) - 1)[min(enough, len(ends)) - 1])
            watch.due = self.state.clock if due == NEVER else due

    def _ends(self, adapters: list[Adapter], total: int) -> Ints:
        """By group: the instant at which its last object is gone; NEVER: that is not known."""
        ends = np.full(total, BEGINNING)
        for adapter in adapters:
            numbering = adapter.numbering
            if adapter.engine is None or isinstance(adapter.engine, Nothing):
                continue
            if adapter.timed and not adapter.endless:
                known, size = numbering.last_times, min(total, len(adapter.engine.kept))
                last = np.full(max(size, len(known)), self.state.clock)  # unknown after a restore
                last[: len(known)] = known
                ends[: len(last)] = np.maximum(ends[: len(last)], last + max(numbering.lengths))
                continue
            counts = numbering.counts.max(axis=0)
            lasting = counts > 0
            if adapter.deletable and self.state.options.forget is None:
                lasting = adapter.engine.kept > 0
            ends[np.flatnonzero(lasting)] = NEVER
        return ends


def rest(adapters: list[Adapter], groups: Groups, idle: NDArray[np.bool_]) -> None:
    """Take the codes of these groups away. Those that have had an arrival leave their numbers."""
    numbered = np.zeros(groups.total, np.bool_)
    for adapter in adapters:
        adapter.numbering.widen()
        numbered |= (adapter.numbering.counts > 0).any(axis=0)
    gone = np.flatnonzero(idle & numbered)
    if len(gone):
        digests = groups.digests(gone)
        for adapter in adapters:
            adapter.numbering.at_rest.put(*digests, adapter.numbering.counts[:, gone])
    kept = np.flatnonzero(~idle)
    for adapter in adapters:
        adapter.keep_groups(kept)
    groups.keep(kept)
