"""One push: what it holds, and how one set of queries judges its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.batch import Batch
from skyband.scores import Scored

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Push:
    """What one push has in common for all queries."""

    batch: Batch
    serial: int  # of the batch's first row
    columns: dict[str, Any]  # what is told of objects: id, time, kept columns
    times: Ints | None
    clocks: Ints | None  # after each row
    clock: int  # after the push
    more: bool = False  # net changes can wait: the batch goes on with the next push


@dataclass(frozen=True)
class Judged:
    """Rows of a batch as one set of queries sees them."""

    scored: Scored
    accepted: Bools
    eligible: Bools | None
