"""The objects and numbers of an engine of pairs: serials, counts and bytes of its groups, and rows of their data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skyband.engines.contract import Floats, Ints
from skyband.engines.group_states import GroupStates
from skyband.engines.pairs.group import Columns, Group, Records, with_rows
from skyband.engines.pairs.kernels.records import HEAD, SAVED, SCORED, SIZE


class Accounts:
    """What is kept, group by group, and how it is counted."""

    groups: GroupStates[Group]
    _scored: int  # in groups that are gone

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        chosen = self.groups.read(np.arange(len(self.groups)) if groups is None else groups)
        kept = [group.window.serials[group.live] for group in chosen]
        return np.concatenate([np.empty(0, np.int64), *kept]), np.array([len(one) for one in kept], np.int64)

    @property
    def kept(self) -> Ints:
        return self.groups.live

    @property
    def pairs(self) -> int:
        """The number of kept pairs, of all groups."""
        return sum(int(group.facts[SIZE]) for _, group in self.groups.there())

    @property
    def work(self) -> dict[str, int]:
        """Counters of work: scores computed."""
        return {"scored": sum((int(group.facts[SCORED]) for _, group in self.groups.there()), self._scored)}

    @property
    def buffer(self) -> int:
        return int(self.kept.sum())

    @property
    def held(self) -> Records:
        """Members of pairs that may still be reported at the end of a batch of net changes."""
        waiting = [self.groups[g] for g in sorted(self.groups.open)]
        saved = [group.saved[: int(group.facts[SAVED])] for group in waiting]
        members = [one[name] for one in saved for name in ("older", "newer")]
        held = np.empty(sum(map(len, members)), [("serial", "i8")])
        held["serial"] = np.concatenate([np.empty(0, np.int64), *members])
        return held

    def size_of(self, query: int) -> int:
        return int(self.kept.sum())

    @property
    def due(self) -> Ints:
        return self.groups.due

    @property
    def nbytes(self) -> int:
        return sum((group.nbytes for _, group in self.groups.there()), self.groups.nbytes)

    def set_columns(self, serials: Ints, columns: Columns) -> None:
        """Set what the scoring reads of these objects, by rising serials."""
        for _, group in self.groups.there():
            group.grow_window(1)
            mine = group.window.serials[group.live]
            places, size, head = np.searchsorted(serials, mine), len(group.window.stamps), int(group.facts[HEAD])
            group.columns = {}
            if len(mine):
                group.columns = {name: with_rows(None, part[places], head, size) for name, part in columns.items()}

    def set_rows(self, serials: Ints, rows: Mapping[int, Floats]) -> None:
        """Set these rows of the data of these objects, by rising serials."""
        for _, group in self.groups.there():
            places = np.searchsorted(serials, group.window.serials[group.live])
            for row, values in rows.items():
                group.window.data[row, group.live] = values[places]

    def values_in(self, rows: list[int]) -> Floats:
        """The values in these rows of the data of all objects."""
        return np.concatenate(
            [np.empty(0), *(group.window.data[rows, group.live].ravel() for _, group in self.groups.there())]
        )
