"""The rows of TopKGroups that a mapper sends: those that can change an aggregate, or fewer with partial aggregates.

Where arrivals have no number (Last(t), and Ever() with a time column) a row that fails `where` changes nothing. Over
Ever() with emit="batch" only the state after a trigger shows. There few rows of an object decide min, max, first, last
and count(distinct): an extreme one (of equal ones the newest), the oldest, the newest, one for each value. Kept columns
are of an extreme or the newest row, and the newest decides ties, so these rows are the whole partial aggregate. Of rows
that are equal in time all are kept: which one is newer, the shard decides.

Sums and counts are sent with these rows: a newest one of each object stands for all that are left out, with their
number, and with the few float64 whose sum is exactly that of their arguments. Those that do not fit into one row come
with copies of it. So sums stay correctly rounded. An object whose sums need more parts than it has rows, or are beyond
float64, has all its rows sent.

Rows of a window that ends must leave it one by one, rows of a count window move it, and with emit="arrival" each is a
step: there nothing can stand for others. With decay, too, all rows are sent.

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
from skyband.spark.plan import Plan, QuerySet
from skyband.tables.columns import as_arrow, plain
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import TOTAL, WEIGHT
from skyband.tables.scores import Validated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_PICKS = {"min", "max", "first", "last", "count distinct"}
_PARTS = 4  # numbers that a sum is sent as, at most


def needed_rows(adapter: GroupsAdapter, one: Validated, examined: Examined, table: pa.Table) -> Bools:
    """The rows, of those in `table`, that can change an answer of the adapter's queries."""
    query = adapter.example
    assert isinstance(query, TopKGroups)
    if adapter.algorithm != "TALLY" or not isinstance(query.window, Last | Ever):
        return one.accepted
    rows = one.accepted if one.eligible is None else one.accepted & one.eligible
    few = {aggregate.function for aggregate in query.aggregates} <= _PICKS
    if not few or not _shows_at_the_end(adapter) or not rows.any():
        return rows
    chosen, objects, times = _objects(adapter, rows, examined, table)
    deciding = _deciding(query, adapter.arguments.values(Batch(table)), objects, times, chosen)
    needed = np.zeros(len(rows), np.bool_)
    needed[chosen[deciding]] = True
    return needed


def _shows_at_the_end(adapter: GroupsAdapter) -> bool:
    """Whether nothing but the state after a trigger shows, and no row leaves it."""
    options, query = adapter.options, adapter.example
    endless = adapter.algorithm == "TALLY" and isinstance(query.window, Ever) and query.decay is None
    return endless and adapter.timed and options.emit == "batch" and options.late == "accept"


def _objects(adapter: GroupsAdapter, rows: Bools, examined: Examined, table: pa.Table) -> tuple[Ints, Ints, Ints]:
    """Which rows these are, the codes of their objects, and their times."""
    columns = [*(examined.per[name] for name in adapter.groups.inputs), *(plain(table.column(n)) for n in adapter.of)]
    objects = Groups(tuple(f"{place}" for place in range(len(columns)))).codes_where(rows, columns)
    chosen = np.flatnonzero(rows)
    assert examined.times is not None
    return chosen, objects[chosen], examined.times[chosen]


def partial_aggregates(plan: Plan, query_set: QuerySet, table: pa.Table, examined: Examined) -> pa.Table | None:
    """Fewer rows that stand for all of a query set's, where sums and counts allow it; None: they do not."""
    if query_set.root or (query_set.can_forget and plan.forget is not None):
        return None
    queries = plan.query_sets[query_set]
    pairs: Any = zip(examined.standing, examined.validated, strict=True)
    asked = [(adapter, one) for adapter, one in pairs if not queries.keys().isdisjoint(adapter.queries)]
    if len(asked) != 1 or any(query.each for query in queries.values()):
        return None  # rows stand for others in one engine only
    adapter, one = asked[0]
    if not isinstance(adapter, GroupsAdapter) or not _shows_at_the_end(adapter):
        return None
    functions = {aggregate.function for aggregate in adapter.example.aggregates}
    rows = one.accepted if one.eligible is None else one.accepted & one.eligible
    if functions <= _PICKS or not rows.any():
        return None
    return _standing_for_all(adapter, rows, examined, table)


def _standing_for_all(adapter: GroupsAdapter, rows: Bools, examined: Examined, table: pa.Table) -> pa.Table:
    chosen, objects, times = _objects(adapter, rows, examined, table)
    each, values = adapter.arguments.each, adapter.arguments.values(Batch(table))
    deciding = _deciding(adapter.example, values, objects, times, chosen)
    all_, kept = np.bincount(objects), np.bincount(objects[deciding])
    sums = {at: column[chosen] for at, column in enumerate(values) if each[at].function == "sum"}
    parts = {at: _parts(objects, column, len(all_)) for at, column in sums.items()}
    counts = np.array([count for _, count in parts.values()], np.int64).reshape(len(parts), len(all_))
    copies = np.maximum(counts - 1, 0).max(axis=0, initial=0)
    weights = all_ - (kept - 1) - copies  # of the row that stands for those left out
    folded = (weights >= 1) & (counts >= 0).all(axis=0)
    carriers, newest = np.empty(len(all_), np.int64), np.flatnonzero(_newest(deciding, objects, times))
    carriers[objects[newest]] = newest
    alone = np.flatnonzero(deciding | ~folded[objects])
    more = np.repeat(carriers[folded], copies[folded])
    sent = np.concatenate([alone, more])
    order = np.argsort(sent, kind="stable")  # a copy comes right after its row
    sent = sent[order]
    carries = folded[objects[sent]] & (sent == carriers[objects[sent]])
    copy = np.diff(sent, prepend=-1) == 0
    place = np.arange(len(sent)) - np.maximum.accumulate(np.where(copy, 0, np.arange(len(sent))))
    found = table.take(as_arrow(chosen[sent]))
    found = found.append_column(WEIGHT, as_arrow(np.where(carries & ~copy, weights[objects[sent]], 1)))
    for at, column in sums.items():
        brought = np.where(folded[objects[sent]], 0.0, column[sent])
        brought[carries] = parts[at][0][objects[sent[carries]], np.minimum(place[carries], _PARTS - 1)]
        found = found.append_column(f"{TOTAL}{at}", as_arrow(brought))
    return found


def _parts(objects: Ints, values: Floats, size: int) -> tuple[Floats, Ints]:
    """The sums of these values by object as numbers whose sum they are, and how many these are; -1: too many."""
    from skyband.engines.groups.kernels.parts import exact_parts
    from skyband.kernels.sums import LOWEST, MOST_WORDS, reach

    known = np.array([0, LOWEST])
    values = np.ascontiguousarray(values)
    reach(values, known)
    room = int(known[1] - known[0]) + len(values).bit_length() + 5
    words = np.zeros((size, min(max(-(-room // 64), 1), MOST_WORDS)), np.int64)  # of nothing but zeros: one
    parts, counts = np.zeros((size, _PARTS)), np.empty(size, np.int64)
    exact_parts(objects, values, words, int(known[0]), parts, counts)
    return parts, counts


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
