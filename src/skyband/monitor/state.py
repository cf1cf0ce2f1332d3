"""All that a Monitor knows, and a batch as its standing queries see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.query.options import Options
from skyband.tables.changes import QueryNames
from skyband.tables.groups import Groups
from skyband.tables.input import time_unit
from skyband.tables.push import BEGINNING
from skyband.tables.scores import Validated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass
class State:
    """All that a Monitor knows."""

    options: Options
    groups: dict[tuple[str, ...], Groups] = field(default_factory=dict)
    adapters: dict[str, Adapter] = field(default_factory=dict)  # by query, in order of registration
    types: dict[str, Any] = field(default_factory=dict)  # of the input's columns, once seen
    clock: int = BEGINNING
    ahead: Any = None  # `advance` before the type of time was known
    serial: int = 0  # of the next row
    counters: dict[str, Any] = field(default_factory=lambda: {"arrivals": 0, "late": 0, "rejected": {}})
    query_names: QueryNames | None = None  # of the queries, as changes name them

    def standing(self) -> list[Adapter]:
        return list(dict.fromkeys(self.adapters.values()))

    @property
    def unit(self) -> int | None:
        """Nanoseconds of a unit of time; None: integers, or not known yet."""
        type_ = None if self.options.time is None else self.types.get(self.options.time)
        return None if type_ is None else time_unit(type_)


@dataclass(frozen=True)
class Seen:
    """A batch as the standing queries see it."""

    standing: list[Adapter]
    validated: list[Validated]  # one for each
    accepted: Bools  # by at least one query
    types: dict[str, Any]  # of the input's columns
    told: dict[str, Any]  # what is told of objects
    per: dict[str, Any]  # the columns of groups
    moments: Ints | None  # times as numbers
    deletes: Bools | None  # rows that delete an id
    inputs: dict[str, Any]  # columns that scorings of pairs read
