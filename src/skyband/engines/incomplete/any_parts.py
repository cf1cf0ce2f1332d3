"""Parts that are not named in advance (`parts="*"`): codes for those that the stream names, and the engine of them.

An object then has one value for all its parts: their sum or the largest (`ALL_TOTAL` and those beside it), so nothing
grows with the number of parts but the codes of those that are there. A part may always come that was never seen, so
nothing is dominated and all rows that count are kept.

Cost: as linked_rows.py; for `last` a look into a table of the last rows, and O(log rows) where the largest counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skyband.engines.arena import recast
from skyband.engines.contract import Floats, Ints
from skyband.engines.incomplete.base import Records, within
from skyband.engines.incomplete.finders import find_lasts
from skyband.engines.incomplete.kernels.batches import STORED_ROW
from skyband.engines.incomplete.linked_rows import LinkedRows
from skyband.engines.incomplete.register import ENTRY
from skyband.engines.invariants import are_counts, owners, require

SMALLEST = 1024  # codes that are kept whether or not they are used


class PartCodes:
    """Small numbers for the names of parts, which are 64 bits each (`name_bits`)."""

    def __init__(self) -> None:
        self.keys, self.order = np.empty(0, np.int64), np.empty(0, np.int64)  # by code; codes by rising key

    def __len__(self) -> int:
        return len(self.keys)

    def codes(self, keys: Ints) -> Ints:
        """The codes of these names; new ones are added."""
        distinct, which = np.unique(keys, return_inverse=True)
        places = np.searchsorted(self.keys, distinct, sorter=self.order)
        found = self.order[np.minimum(places, len(self) - 1)] if len(self) else places.copy()
        fresh = self.keys[found] != distinct if len(self) else np.ones(len(distinct), np.bool_)
        found[fresh] = len(self) + np.arange(np.count_nonzero(fresh))
        self.keys = np.concatenate([self.keys, distinct[fresh]])
        self.order = np.insert(self.order, places[fresh], found[fresh])
        codes: Ints = found[which]
        return codes

    def keep(self, used: Ints) -> Ints:
        """Keep these codes only; by old code, the new one."""
        moved = np.full(len(self.keys), -1)
        moved[used] = np.arange(len(used))
        self.keys = self.keys[used]
        self.order = np.argsort(self.keys)
        return moved

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self.order.nbytes)


class AnyParts(LinkedRows):
    """All rows that count, whatever their parts."""

    codes: PartCodes

    def __init__(self, *args: Any, codes: PartCodes, **more: Any) -> None:
        self.codes = codes
        super().__init__(*args, **more)

    @property
    def part_limit(self) -> int:
        return len(self.codes)

    def bounds_of(self, parts: Ints) -> tuple[Floats, Floats]:
        return super().bounds_of(np.zeros(len(parts), np.int64))

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.codes.nbytes

    def tidy(self) -> None:
        """Forget names of parts that no row has, once they are most."""
        lines = None if self.register is None else self.register.log.lines[: self.register.size]
        rows = self.rows["object"] >= 0
        if len(self.codes) <= SMALLEST + 2 * (int(rows.sum()) + (0 if lines is None else len(lines))):
            return
        parts = self.rows["part"][rows]
        moved = self.codes.keep(np.unique(parts if lines is None else np.concatenate([parts, lines["part"]])))
        self.rows["part"][rows] = moved[parts]
        find_lasts(self)
        if lines is not None:
            self.register.rename_parts(moved)

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        """Besides: the names of the parts of each group; rows have their numbers there."""
        state = super().snapshot(groups)
        columns = [state[name] for name in ("rows", "register") if name in state]
        parts = np.concatenate([records["part"].astype(np.int64) for records, _ in columns])
        of = np.concatenate([owners(sizes) for _, sizes in columns])
        pairs, which = np.unique(of * (len(self.codes) + 1) + parts, return_inverse=True)
        counts = np.bincount(pairs // (len(self.codes) + 1), minlength=len(groups))
        numbers, begin = within(counts)[which], 0
        for records, _ in columns:
            records["part"] = numbers[begin : begin + len(records)]
            begin += len(records)
        names = self.codes.keys[pairs % (len(self.codes) + 1)]
        return state | {"names of parts": (names, counts), "parts": (counts, np.ones(len(groups), np.int64))}

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        counts, names, packs = state["parts"], state["names of parts"], state["packs"]
        require(len(counts) == len(packs) and are_counts(counts, len(names)), "groups have the names of their parts")
        codes, starts = self.codes.codes(names), np.cumsum(counts) - counts
        changed = {}
        for name, dtype, sizes in (("rows", STORED_ROW, packs["size"]), ("register", ENTRY, state.get("lots"))):
            if name in state and sizes is not None:
                records = recast(state[name], dtype).copy()
                require(len(sizes) == len(counts) and are_counts(sizes, len(records)), "groups have their rows")
                of = owners(sizes)
                require(((records["part"] >= 0) & (records["part"] < counts[of])).all(), "rows are of parts")
                records["part"] = codes[starts[of] + records["part"]]
                changed[name] = records
        super().restore({**state, **changed}, trusted=trusted)
