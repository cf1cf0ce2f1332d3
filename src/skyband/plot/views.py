"""The objects that a Monitor keeps for one query, as points of the score-time plane: for plots and for the page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.contract import Answer
from skyband.engines.specs import spec_of
from skyband.errors import QueryError
from skyband.monitor.monitor import Monitor
from skyband.query.kinds import Query, TopK, TopKPairs
from skyband.query.scoring import scoring_of
from skyband.query.windows import Last
from skyband.tables.input import Batch, from_times, times, to_table
from skyband.tables.scores import matches, score

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_ALL = 2**31 - 1


@dataclass(frozen=True)
class Plane:
    """Objects that are kept, best first. `stamps` are times (in the column's unit) or numbers of arrivals.

    rank: 0 where an object is not in the answer now. For pairs the stamp is the older member's, which leaves first.
    """

    name: str
    query: Query
    stamps: Ints
    scores: Floats
    rank: Ints
    now: int
    length: int | None  # of the window; None: until deleted
    time_type: Any  # Arrow's, of a time window; None: numbers
    key: tuple[Any, ...] = ()  # the group

    @property
    def begin(self) -> int | None:
        """The begin of the window: objects at it or before it have left."""
        return None if self.length is None else self.now - self.length

    def times(self, stamps: Ints) -> Any:
        """Stamps as values of the time column, or as they are."""
        return stamps if self.time_type is None else from_times(np.asarray(stamps, np.int64), self.time_type)


def plane_of(monitor: Monitor, name: str | None = None, *, key: Any = None) -> Plane:
    """The objects kept for a query, in one group: `key`, or the only one."""
    if name is None:
        if len(monitor.queries) != 1:
            raise QueryError(f"name the query: {', '.join(monitor.queries) or 'there is none'}.")
        name = next(iter(monitor.queries))
    if name not in monitor.queries:
        raise QueryError(f"there is no query {name!r}. There are: {', '.join(monitor.queries) or 'none'}.")
    adapter, query, state = monitor._loop.state.adapters[name], monitor.queries[name], monitor._loop.state
    code, values = _group(adapter, query, key)
    window = query.window
    timed = adapter.timed
    type_ = state.types.get(state.options.time) if timed and state.options.time else None
    empty = Plane(name, query, np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), 0, 0, type_, values)
    if adapter.engine is None or code is None:
        return empty
    now = int(adapter.numbering.now(state.clock)[code])
    spec, place, group = spec_of(query, state.unit), list(adapter.queries).index(name), np.array([code])
    answer = adapter.engine.answer(place, spec, adapter.now(state.clock), group)
    kept = answer
    if isinstance(query, TopK | TopKPairs):  # all kept objects are the answer to a larger k
        kept = adapter.engine.answer(place, replace(spec, k=_ALL), adapter.now(state.clock), group)
    ranks = dict(zip(_names(answer), answer.rank.tolist(), strict=True))
    return replace(
        empty,
        stamps=kept.stamp if kept.older_stamp is None else kept.older_stamp,
        scores=adapter.score_of(kept.key),
        rank=answer.rank if kept is answer else np.array([ranks.get(one, 0) for one in _names(kept)], np.int64),
        now=now,
        length=spec.length if isinstance(window, Last) else None,
    )


def _names(ranked: Answer) -> list[tuple[int, int]]:
    """What identifies objects, or pairs."""
    mates = ranked.serial if ranked.older is None else ranked.older
    return list(zip(ranked.serial.tolist(), mates.tolist(), strict=True))


def _group(adapter: Adapter, query: Query, key: Any) -> tuple[int | None, tuple[Any, ...]]:
    per = query.per_columns
    if key is None and per:
        if adapter.groups.total > 1:
            first = np.arange(min(5, adapter.groups.total))
            known = [column.take(first).to_pylist() for column in adapter.groups.columns]
            some = ", ".join(repr(one[0] if len(per) == 1 else one) for one in zip(*known, strict=True))
            raise QueryError(
                f"{adapter.groups.total:,} groups of {', '.join(per)}: choose one by key=, such as {some}."
            )
        return (0 if adapter.groups.total else None), ()
    if key is None:
        return (0 if adapter.groups.total else None), ()
    values = key if isinstance(key, tuple) else (key,)
    if len(values) != len(per):
        raise QueryError(f"there are {len(per)} `per` columns {list(per)}, but key={key!r} gives {len(values)} values.")
    try:
        found = adapter.groups.find([values])
    except TypeError as error:
        raise QueryError(f"key={key!r}: {error}.") from None
    return (int(found[0]) if len(found) else None), values


def points_of(query: Query, rows: Any, time: str | None = None) -> tuple[Ints, Floats]:
    """Rows as points: times (or 0, 1, 2, ...) and scores, without rows that have none or fail `where`."""
    given = Batch(to_table(rows))
    by, where = getattr(query, "by", None), getattr(query, "where", None)
    if by is None or query.kind == "TopKPairs":
        raise QueryError(f"{query.kind}: a row alone has no score.")
    found = score(given, by)
    good = ~np.isnan(found.key)
    for rejected in found.rejected.values():
        good &= ~rejected
    if where is not None:
        good &= matches(given, where)[0]
    if time is not None:
        given.parse_times(time, None)
    stamps = np.arange(given.rows) if time is None else times(given.array(time), 0)[0]
    return stamps[good], scoring_of(by).score(found.key)[good]
