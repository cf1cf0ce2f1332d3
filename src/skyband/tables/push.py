"""Push: one batch as all queries see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.errors import BatchError
from skyband.tables.columns import ARROW_ERRORS
from skyband.tables.input import Batch

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
BEGINNING = -(2**62)  # the clock before any arrival
#: columns of rows that stand for others which a mapper has left out: how many they are, and (by argument) their sum
WEIGHT, TOTAL = "\0rows", "\0sum "
AT, STEP = "# at", "# step"  # columns of rows that are changes of another query: its `at`, and which step they are


@dataclass(frozen=True)
class Push:
    """A batch with its times and reported columns."""

    batch: Batch
    serial: int  # of the batch's first row
    columns: dict[str, Any]  # reported of objects: id, time, kept columns
    times: Ints | None
    clocks: Ints | None  # after each row
    clock: int  # after the push
    more: bool = False  # net changes can wait: the batch goes on with the next push
    deletes: Bools | None = None  # rows that are no arrivals: they delete an id
    inputs: dict[str, Any] = field(default_factory=dict)  # columns that scorings of pairs read
    over: bool = False  # whether rows are changes of the answers of another query


def what_rows_do(op: Any) -> tuple[Bools, Bools]:
    """Which rows delete an id, and which name an unknown operation."""
    try:
        named = pc.utf8_lower(op.cast(pa.string()))
    except ARROW_ERRORS as error:
        raise BatchError(
            f"the op column holds {op.type}. It is a string: insert, update or delete. ({error})"
        ) from None
    known = pc.index_in(named, pa.array(list(_DOES))).fill_null(len(_DOES))
    place = np.asarray(known)
    return place == _DOES.index("delete"), place == len(_DOES)


_DOES = ("insert", "update", "delete")
