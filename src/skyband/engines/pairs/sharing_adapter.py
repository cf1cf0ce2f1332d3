"""The part of an adapter of pairs that shares a window and kept columns with adapters of other scorings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.contract import Ints
from skyband.engines.id_codes import IdCodes

if TYPE_CHECKING:
    from skyband.engines.pairs.base import Pairs

SHARED = ("stamps", "serials", "data", "rough")  # arrays of a window that several groups can have


class SharingAdapter(IdCodes):
    """An adapter whose objects other scorings may have too (shared_window.py)."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.sharers: Sequence[Any] = (self,)  # adapters of other scorings of the same objects, and this one

    def most_columns(self) -> int:
        return max(Adapter.most_columns(one) for one in self._with_columns())

    def live_serials(self) -> Ints:
        return np.unique(np.concatenate([Adapter.live_serials(one) for one in self._with_columns()]))

    def _with_columns(self) -> list[Any]:
        """The adapters of whose objects columns are kept together."""
        return [self, *(one for one in self.sharers if one is not self and one.kept_columns is self.kept_columns)]

    def stats(self, name: str) -> dict[str, Any]:
        stats = super().stats(name)
        if self.window_key is not None and self.engine is not None:
            stats["bytes"] = self._bytes()
        return stats

    def _bytes(self) -> int:
        """The bytes of its state: of what several share, an equal part."""
        sharers = [one for one in self.sharers if one.queries and one.engine is not None]
        columns = sum(one.kept_columns is self.kept_columns for one in sharers)
        engine = cast("Pairs", self.engine)
        total = engine.nbytes + self.kept_columns.nbytes // max(1, columns)
        for g, group in engine.groups.there():
            if group.filled is None:
                continue
            states = [cast("Pairs", one.engine).groups.known(g) for one in sharers]
            for name in SHARED:
                mine = getattr(group.window, name)
                whole = _owner(mine)
                having = sum(one is not None and _owner(getattr(one.window, name)) is whole for one in states)
                total += whole.nbytes // max(1, having) - mine.nbytes
        return total


def _owner(array: NDArray[Any]) -> NDArray[Any]:
    """The array whose memory this is."""
    return array if array.base is None else _owner(array.base)
