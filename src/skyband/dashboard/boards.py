"""The content of the page: queries over a stream, by a Monitor. (`spark_output.py`: the answers of a Spark pipeline.)

A board belongs to one thread. All that it returns can be written as JSON.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.dashboard import limits
from skyband.dashboard.cost import affordable
from skyband.dashboard.health import Health
from skyband.dashboard.intake import Intake, kept_bytes
from skyband.dashboard.subscriptions import Subscribed
from skyband.dashboard.values import listed, plain, rows_of
from skyband.errors import QueryError
from skyband.monitor.monitor import Monitor
from skyband.pipeline.table import near
from skyband.plot.views import plane_of, points_of
from skyband.query.kinds import Query
from skyband.query.windows import Last
from skyband.tables.columns import plain as plain_column
from skyband.tables.input import from_times, times

_EVERY = 1.0  # seconds between two summaries of a query with subscriptions
_PACE = 600  # pushes of which time and arrivals are known


class MonitorBoard:
    """Queries over a stream, answered by a Monitor."""

    fixed = False  # whether queries cannot be added, changed and dropped

    def __init__(
        self,
        monitor: Monitor,
        columns: Sequence[str] | None = None,
        health: Health | None = None,
        settings: limits.Settings | None = None,
    ) -> None:
        self.health = health or Health()
        self.intake = Intake(monitor, self.health)
        self.subscribed = Subscribed(self.intake, settings or limits.Settings())
        self.columns = columns  # of the stream, where they are known
        self.changed: dict[str, int] = dict.fromkeys(monitor.queries, 0)  # changes so far
        self._summaries: dict[str, dict[str, Any]] = {}
        self._stale: set[str] = set(monitor.queries)
        self._summed: dict[str, float] = {}  # when queries with subscriptions were last summed up
        self._pace: list[tuple[int, int]] = []  # (clock, arrivals) after pushes, for the size of time windows
        self._rest: dict[tuple[str, int | None], deque[tuple[int, float]]] = {}
        self._passed: dict[tuple[str, int | None], int] = {}  # rows seen so far, of the planes that are watched

    @property
    def monitor(self) -> Monitor:
        return self.intake.monitor

    # --- queries

    def add(self, name: str, query: Query) -> None:
        self._check(name, query)
        if name not in self.monitor.queries and len(self.monitor.queries) >= limits.QUERIES:
            raise QueryError(f"{limits.QUERIES} queries run already, the most that one server takes. Drop one first.")
        self.intake.change(lambda monitor: monitor.add(name, query))
        self.changed[name] = 0
        self._stale.add(name)

    def note(self, name: str, changes: int = 0) -> None:
        """Count changes of a query whose subscriptions have changed."""
        self.changed[name] += changes
        self._stale.add(name)
        self._summed.pop(name, None)

    def _check(self, name: str, query: Query) -> None:
        check(name, query, self.columns)
        total = sum(len(sql_of(one)) for other, one in self.monitor.queries.items() if other != name)
        if total + len(sql_of(query)) > limits.SQL:
            raise QueryError(f"the queries have {limits.SQL:,} characters of SQL together at most. Drop one first.")

    def replace(self, name: str, query: Query) -> Any:
        self._check(name, query)
        changes = self.intake.change(lambda monitor: monitor.replace(name, query))
        self.note(name, changes.num_rows)
        self._forget(name)
        return changes

    def drop(self, name: str) -> None:
        self.intake.change(lambda monitor: monitor.drop(name))
        del self.changed[name]
        self._summaries.pop(name, None)
        self._stale.discard(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        self._rest = {what: points for what, points in self._rest.items() if what[0] != name}

    @property
    def names(self) -> list[str]:
        return list(self.monitor.queries)

    # --- the stream

    def push(self, table: Any, watched: set[tuple[str, int | None]]) -> list[Any]:
        """Push rows; return tables of changes. `watched`: the planes that some page shows, as (query, group)."""
        pushed = self.intake.push(table)
        for changes in pushed:
            if changes.num_rows:
                counts = pc.value_counts(changes["query"].combine_chunks())
                for entry in counts.to_pylist():
                    self.changed[entry["values"]] += entry["counts"]
        self._stale |= self.changed.keys()
        try:
            self._note(table, watched)
        except Exception as error:  # a plane without these rows; the answers are there
            self.health.failed("plane", error)
        return pushed

    def _note(self, table: Any, watched: set[tuple[str, int | None]]) -> None:
        """Keep what the sizes of windows and the planes need of these rows."""
        state = self.monitor._loop.state
        if not self._pace and state.options.time is not None and state.counters["arrivals"]:
            self._pace.append((int(times(plain_column(table[state.options.time]), 0)[0].min()), 0))
        self._pace.append((state.clock, state.counters["arrivals"]))
        if len(self._pace) > _PACE:  # drop every second one of the older half
            self._pace = self._pace[: _PACE // 2 : 2] + self._pace[_PACE // 2 :]
        self._rest = {what: points for what, points in self._rest.items() if what in watched}
        self._passed = {what: passed for what, passed in self._passed.items() if what in watched}
        for what in watched:
            if what[0] in self.changed:
                self._sample(what, table)

    def _sample(self, what: tuple[str, int | None], table: Any) -> None:
        """Keep a few of these rows: the part of the window that the Monitor does not keep."""
        query, key = self.monitor.queries[what[0]], self._key(*what)
        alone = getattr(query, "by", None) is not None and query.kind not in ("TopKPairs", "TopKGroups")
        if not alone or query.each or (query.per_columns and key is None):
            return  # a row has no score of its own, or it is not known whose rows
        for per, value in zip(query.per_columns, key or (), strict=True):
            table = table.filter(pc.is_null(table[per]) if value is None else pc.equal(table[per], value))
        timed = isinstance(query.window, Last) and query.window.timed
        column = self.monitor._loop.state.options.time if timed else None
        if not table.num_rows:
            return
        stamps, scores = points_of(query, table, column)
        if column is None:
            stamps = stamps + (plane_of(self.monitor, what[0], key=key).now - table.num_rows + 1)
        adapter = self.monitor._loop.state.adapters[what[0]]
        size = self._in_window(query, adapter, int(adapter.numbering.counts.max(initial=0))) // max(
            adapter.groups.total, 1
        )
        step = max(1, size // limits.POINTS)  # so that they are spread over the window
        phase = self._passed.get(what, 0)
        self._passed[what] = phase + len(stamps)
        chosen = slice(-phase % step, None, step)
        points = self._rest.setdefault(what, deque(maxlen=limits.POINTS))
        points.extend(zip(stamps[chosen].tolist(), scores[chosen].tolist(), strict=True))

    # --- content

    def head(self) -> dict[str, Any]:
        counted = self.monitor._loop.state.counters
        rejected = {**counted["rejected"], **self.intake.rejected}
        if self.intake.lost:
            rejected["lost when the Monitor was restored"] = self.intake.lost
        return {name: counted[name] for name in ("arrivals", "late")} | {"rejected": rejected, "clock": self._clock()}

    def _clock(self) -> str | None:
        state = self.monitor._loop.state
        type_ = state.types.get(state.options.time) if state.options.time else None
        if type_ is None or not counted_time(state.clock):
            return None
        return str(listed(from_times(np.array([state.clock]), type_))[0])

    def summaries(self) -> list[dict[str, Any]]:
        """Per query: its SQL, the objects kept, the best ones. Only those that may have changed are rebuilt."""
        at, later = time.monotonic(), set()
        for name in self._stale:
            if at - self._summed.get(name, 0.0) < _EVERY and name in self._summaries:
                later.add(name)  # one of many subscriptions costs tens of milliseconds
                continue
            self._summaries[name] = self._summary(name)
            if self.subscribed.count(name):
                self._summed[name] = at
        self._stale = later
        return [self._summaries[name] for name in self.names]

    def oversized(self) -> str | None:
        """Why no more rows are read: the queries keep too much. None: they do not."""
        sizes = kept_bytes(self.monitor)
        total = sum(size for size, _ in sizes)
        if total <= limits.STATE:
            return None
        return (
            f"the queries keep {total:,} bytes, and this server takes up to {limits.STATE:,}. "
            f"Drop one, or use a smaller window: {max(sizes)[1]!r} keeps most."
        )

    def _summary(self, name: str) -> dict[str, Any]:
        query, adapter = self.monitor.queries[name], self.monitor._loop.state.adapters[name]
        own = self.monitor._loop.queries.subscribed.stats(name) if query.each else adapter.stats(name)
        return {
            "name": name,
            "kind": query.kind,
            "sql": sql_of(query),
            "algorithm": own["algorithm"],
            "kept": own["objects"],
            "window": max(own["objects"], self._in_window(query, adapter, own["arrivals"])),  # an estimate may be less
            "arrivals": own["arrivals"],
            "late": own["late"],
            "rejected": sum(own["rejected"].values()),
            "changes": self.changed[name],
            "groups": adapter.groups.total if query.per_columns else None,
            "each": list(query.each),
            "subscriptions": own["subscriptions"] if query.each else None,
        }

    def _in_window(self, query: Query, adapter: Any, arrived: int) -> int:
        """Objects in the window, all groups; for time windows an estimate."""
        window = query.window
        if not isinstance(window, Last) or window.each is not None:
            return arrived
        if window.count is not None:
            return int(np.minimum(adapter.numbering.counts[0], window.count).sum())
        if not self._pace:
            return 0
        gone = self._pace[-1][0] - window.length(self.monitor._loop.state.unit)
        place = bisect_right(self._pace, gone, key=lambda point: point[0])
        if not place:
            return arrived
        (since, before), (until, after) = self._pace[place - 1], self._pace[min(place, len(self._pace) - 1)]
        left = before + (after - before) * (gone - since) // max(until - since, 1)
        return max(0, min(self._pace[-1][1] - left, arrived))

    def answer(self, name: str, key: tuple[Any, ...] | None, rows: int, subscriber: Any = None) -> dict[str, Any]:
        if subscriber is None and (count := self.subscribed.count(name)) > limits.ASKED:
            raise QueryError(f"{name} has {count:,} subscriptions. Ask for the answer of one: subscriber=...")
        return answer_of(self._answer(name, key, subscriber), rows)

    def _answer(self, name: str, key: tuple[Any, ...] | None, subscriber: Any = None) -> Any:
        try:
            return self.monitor.answer(name, key=key, subscriber=subscriber)
        except (pa.ArrowException, TypeError, OverflowError, UnicodeError) as error:
            per = ", ".join(self.monitor.queries[name].per_columns)
            raise QueryError(f"key={key!r:.100} is no value of {per} ({error!s:.100}). Give one as JSON.") from None

    def detail(self, name: str, group: int | None) -> dict[str, Any]:
        """One query: its answer and its plane, in one group (None: the one with most arrivals)."""
        query = self.monitor.queries[name]
        if query.per_columns and group is None and self.monitor._loop.state.adapters[name].groups.total:
            group = int(self.monitor._loop.state.adapters[name].numbering.counts[0][: limits.GROUPS].argmax())
        key = self._key(name, group)
        return {
            "name": name,
            "group": group,
            "groups": self._groups(name),
            "per": list(query.per_columns),
            "answer": answer_of(self._shown(name, key), limits.ROWS, limits.CELL),
            "plane": self._plane(name, group, key),
        }

    def _shown(self, name: str, key: tuple[Any, ...] | None) -> Any:
        """The answer on the page; of the first subscribers only, where there are many."""
        if self.subscribed.count(name) <= limits.ASKED:
            return self._answer(name, key)
        return pa.concat_tables([self._answer(name, key, who) for who in self.subscribed.first(name, limits.SHOWN)])

    def _key(self, name: str, group: int | None) -> tuple[Any, ...] | None:
        """The values of the `per` columns of a group, by its number."""
        groups = self.monitor._loop.state.adapters[name].groups
        if group is None or not groups.names or not groups.columns or not 0 <= group < groups.total:
            return None
        values = [column.take(np.array([group])) for column in groups.columns]
        try:
            return tuple(value.to_pylist()[0] for value in values)
        except Exception as error:  # pyarrow raises errors of many libraries here
            shown = ", ".join(str(listed(value)[0]) for value in values)
            raise QueryError(f"the group {shown[:100]} cannot be looked up ({error!s:.100}). See all groups.") from None

    def _groups(self, name: str) -> list[list[Any]]:
        groups = self.monitor._loop.state.adapters[name].groups
        if not groups.names or not groups.columns:
            return []
        first = np.arange(min(limits.GROUPS, groups.total))
        return rows_of(pa.table([column.take(first) for column in groups.columns], [*groups.names]), limits.CELL)

    def _plane(self, name: str, group: int | None, key: tuple[Any, ...] | None) -> dict[str, Any]:
        query = self.monitor.queries[name]
        empty: dict[str, Any] = {
            "points": [],
            "rest": [],
            "span": None,
            "from": None,
            "to": None,
            "descending": query.descending,
        }
        if query.each or (query.per_columns and key is None):
            return empty
        seen = plane_of(self.monitor, name, key=key)
        if not len(seen.stamps):
            return empty
        rest = [point for point in self._rest.get((name, group), ()) if seen.begin is None or point[0] > seen.begin]
        oldest = seen.begin if seen.begin is not None else int(seen.stamps.min())
        order = np.argsort(np.where(seen.rank > 0, seen.rank, 2**31), kind="stable")[: limits.POINTS]
        points = zip(seen.stamps[order], seen.scores[order], seen.rank[order], strict=True)
        first, last = listed(pa.array(seen.times(np.array([oldest, seen.now]))))
        return empty | {
            "points": [[int(stamp - seen.now), plain(float(score)), int(rank)] for stamp, score, rank in points],
            "rest": [[int(stamp - seen.now), plain(score)] for stamp, score in rest],
            "span": seen.now - oldest,
            "from": first,
            "to": last,
        }


def counted_time(clock: int) -> bool:
    """Whether any time has been seen."""
    return clock > -(2**61)


def answer_of(table: Any, rows: int, longest: int | None = None) -> dict[str, Any]:
    """An answer as JSON: its columns, its first rows, and how many there are."""
    shown = table.slice(0, rows)
    if shown.nbytes > limits.ANSWER:
        raise QueryError(
            f"these {shown.num_rows:,} rows have more than {limits.ANSWER:,} bytes. Ask for fewer: rows=10."
        )
    return {"columns": table.column_names, "rows": rows_of(shown, longest), "total": table.num_rows}


@lru_cache(maxsize=2 * limits.QUERIES)
def sql_of(query: Query) -> str:
    """The query in SQL; or its repr, if it scores by a Python function."""
    try:
        return query.to_sql()
    except QueryError:
        return repr(query)


def check(name: str, query: Query, columns: Sequence[str] | None = None) -> None:
    """Refuse a query beyond the limits of a server, or over columns that the stream does not have."""
    if not 0 < len(name) <= limits.NAME or not name.isprintable() or "/" in name or name in (".", ".."):
        raise QueryError(f"a query's name has 1 to {limits.NAME} printable characters, no slash; got {name[:50]!r}.")
    affordable(query)
    for column in () if columns is None else {name for names in query.reads.values() for name in names}:
        if column not in columns:  # type: ignore[operator]
            raise QueryError(f"the stream has no column {column!r}. {near(column, columns or (), 'It has')}")
