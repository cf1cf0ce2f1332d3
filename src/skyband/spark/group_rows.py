"""The rows of TopKGroups that a mapper sends: those that can change an aggregate.

Where arrivals have no number (Last(t), and Ever() with a time column) a row that fails `where` changes nothing. Over
Ever() with emit="batch" only the state after a trigger shows. There few rows of an object decide min, max, first, last
and count(distinct): an extreme one (of equal ones the newest), the oldest, the newest, one for each value. Kept columns
are of an extreme or the newest row, and the newest decides ties, so these rows are the whole partial aggregate. Of rows
that are equal in time all are kept: which one is newer, the shard decides. Sums and counts need every row.

Cost: one pass over the rows for each aggregate, and a sort for count(distinct).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.groups.adapter import GroupsAdapter
from skyband.monitor.examination import Examined
from skyband.query.kinds import TopKGroups
from skyband.query.windows import Ever, Last
from skyband.tables.columns import plain
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.scores import Validated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
_PICKS = {"min", "max", "first", "last", "count distinct"}


def needed_rows(adapter: GroupsAdapter, one: Validated, examined: Examined, table: pa.Table) -> Bools:
    """The rows, of those in `table`, that can change an answer of the adapter's queries."""
    query = adapter.example
    assert isinstance(query, TopKGroups)
    if adapter.algorithm != "TALLY" or not isinstance(query.window, Last | Ever):
        return one.accepted
    rows = one.accepted if one.eligible is None else one.accepted & one.eligible
    few = isinstance(query.window, Ever) and {aggregate.function for aggregate in query.aggregates} <= _PICKS
    options = adapter.options
    if not few or options.emit != "batch" or options.late != "accept" or not rows.any():
        return rows
    columns = [*(examined.per[name] for name in adapter.groups.inputs), *(plain(table.column(n)) for n in adapter.of)]
    objects = Groups(tuple(f"{place}" for place in range(len(columns)))).codes_where(rows, columns)
    chosen = np.flatnonzero(rows)
    assert examined.times is not None
    deciding = _deciding(query, adapter.arguments.values(Batch(table)), objects[chosen], examined.times[chosen], chosen)
    needed = np.zeros(len(rows), np.bool_)
    needed[chosen[deciding]] = True
    return needed


def _deciding(query: TopKGroups, values: Any, objects: Ints, times: Ints, chosen: Ints) -> Bools:
    """The rows that decide an aggregate of their object, or are its newest ones."""
    everywhere = np.ones(len(objects), np.bool_)
    kept = _newest(everywhere, objects, times)
    with_values = [aggregate for aggregate in query.aggregates if aggregate.argument is not None]
    for aggregate, column in zip(with_values, values, strict=True):
        mine = column[chosen]
        if aggregate.function == "first":
            kept |= _newest(everywhere, objects, -times)
        elif aggregate.function == "count distinct":
            places = np.lexsort((mine.view(np.int64), objects))
            new = np.ones(len(places), np.bool_)
            new[1:] = (np.diff(objects[places]) != 0) | (np.diff(mine.view(np.int64)[places]) != 0)
            kept[places[new]] = True
        elif aggregate.function in ("min", "max"):
            keys = mine if aggregate.function == "max" else -mine
            best = np.full(objects.max() + 1, -np.inf)
            np.maximum.at(best, objects, keys)
            kept |= _newest(keys == best[objects], objects, times)
    return kept


def _newest(among: Bools, objects: Ints, times: Ints) -> Bools:
    """Of these rows, the newest ones of each object."""
    latest = np.full(objects.max() + 1, np.iinfo(np.int64).min)
    np.maximum.at(latest, objects[among], times[among])
    newest: Bools = among & (times == latest[objects])
    return newest
