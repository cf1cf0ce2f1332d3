"""Rows into a Monitor that stays right: bad rows are found and rejected, a broken Monitor is restored.

A push is whole or not at all. Where one is refused because of single rows, they are found by halving the batch: a bad
row costs some 2·log2(20,000) = 29 pushes, and the others arrive as if it had not been there. Where a push fails in
another way, the Monitor may be broken: it is restored from the last snapshot, and gets again what came since then.
Snapshots are taken every five seconds, or less often where they would cost more than 3 % of the time; none of a state
beyond `limits.SNAPSHOT_BYTES`, which starts empty again, and aloud.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from skyband.dashboard import limits
from skyband.dashboard.health import Health, text_of
from skyband.errors import BatchError, QueryError, RunError
from skyband.monitor.monitor import Monitor

_SHARE = 30  # a snapshot is due after so many times the seconds that the last one took
_RESTORES = 40  # of one batch; what is left of it then is rejected
_REFUSED = (BatchError, QueryError)  # raised before anything is changed


class Intake:
    """Push tables and change queries; after each call `monitor` is right.

    rejected: rows that were left out, by reason; lost: rows that a restored Monitor has not seen; breaks: how often
    its answers are no longer what follows from the changes that were returned.
    """

    def __init__(self, monitor: Monitor, health: Health) -> None:
        self.monitor, self.health = monitor, health
        self._options = dataclasses.asdict(monitor._loop.state.options)
        self.rejected: Counter[str] = Counter()
        self.lost = self.breaks = 0
        self._snapshot: bytes | None = None
        self._since: list[Any] = []  # tables, and changes of the queries, since the snapshot
        self._size = self._dropped = 0  # bytes of these tables; rows of tables that are no longer there
        self._due = 0.0

    def push(self, table: Any) -> list[Any]:
        """Push a table; return tables of changes.

        Raises a BatchError or a QueryError where no rows at all can be pushed: then a query has to change.
        """
        self._save()
        found: list[Any] = []
        singles, restores, waiting = limits.BAD_ROWS, _RESTORES, [table]
        while waiting:
            part = waiting.pop()
            try:
                found.append(self._pushed(part))
                continue
            except _REFUSED as error:
                reason: Exception = error
                if part is table:
                    self.monitor.push(
                        table.slice(0, 0)
                    )  # refused without rows, too: the queries do not fit the columns
            except Exception as error:
                reason, restores = error, restores - 1
                self._restore(error)
            single = part.num_rows <= 1
            singles -= single
            if single or singles <= 0 or restores <= 0:
                self._reject(part.num_rows, reason)
            else:
                waiting += [part.slice(part.num_rows // 2), part.slice(0, part.num_rows // 2)]
        return found

    def change(self, action: Callable[[Monitor], Any]) -> Any:
        """Add, replace or drop a query."""
        self._save()
        try:
            result = action(self.monitor)
        except _REFUSED:
            raise
        except Exception as error:
            self._restore(error)
            raise RunError(f"the query could not be changed ({text_of(error)}). Everything is as before.") from error
        self._since.append(action)
        return result

    def _pushed(self, table: Any) -> Any:
        changes = self.monitor.push(table)
        self._since.append(table)
        self._size += table.nbytes
        if self._size > limits.JOURNAL:
            self._drop_tables()
        return changes

    def _drop_tables(self) -> None:
        self._dropped += sum(one.num_rows for one in self._since if not callable(one))
        self._since, self._size = [one for one in self._since if callable(one)], 0

    def _reject(self, rows: int, reason: Exception) -> None:
        self.rejected[text_of(reason)[:200]] += rows
        self.health.failed("rows", reason, count=rows)
        if len(self.rejected) > limits.BAD_ROWS:  # reasons with values in them must not pile up
            for name, count in self.rejected.most_common()[limits.BAD_ROWS // 2 :]:
                del self.rejected[name]
                self.rejected["other reasons"] += count

    def _save(self) -> None:
        """Take a snapshot if it is due."""
        now = time.monotonic()
        if now < self._due:
            return
        try:
            small = sum(size for size, _ in kept_bytes(self.monitor)) <= limits.SNAPSHOT_BYTES
            self._snapshot = self.monitor.snapshot() if small else None
            self._since, self._size, self._dropped = [], 0, 0
        except Exception as error:  # the one before stays
            self.health.failed("snapshot", error)
        self._due = now + max(limits.SNAPSHOT, _SHARE * (time.monotonic() - now))

    def _restore(self, reason: Exception) -> None:
        """Go on from the last snapshot and what came since then; without one, with the same queries and no rows."""
        self.health.restarted("monitor", reason)
        queries, old = dict(self.monitor._loop.state.queries), self.monitor
        try:
            if self._snapshot is None:
                raise RunError("there is no snapshot: the state is too large, or none could be taken.")
            monitor = Monitor.restore(self._snapshot)
            for one in self._since:
                one(monitor) if callable(one) else monitor.push(one)
        except Exception as error:
            self.health.failed("snapshot", error)
            self._dropped = self.monitor._loop.state.counters["arrivals"]
            self._since, self._snapshot, monitor = [], None, Monitor(queries, **self._options)
            if gone := carry(old, monitor):
                self.health.failed("subscriptions", f"{gone:,} subscriptions could not be taken over.", count=gone)
            self.breaks += 1
        self.breaks += self._snapshot is not None and self._dropped > 0
        self.monitor, self.lost = monitor, self.lost + self._dropped
        self._due = 0.0
        self._save()


def kept_bytes(monitor: Monitor) -> list[tuple[int, str]]:
    """The bytes that each engine keeps, with the name of a query of it."""
    state, subscribed = monitor._loop.state, monitor._loop.queries.subscribed
    engines = {adapter: name for name, adapter in state.adapters.items() if name not in state.subscriptions}
    found = [(adapter.stats(name)["bytes"], name) for adapter, name in engines.items()]
    return [*found, *((subscribed.stats(name)["bytes"], name) for name in state.subscriptions)]


def carry(old: Monitor, new: Monitor) -> int:
    """Let the subscriptions of a Monitor stand in another one, as far as it has their queries.

    Returns how many could not be taken.
    """
    lost = 0
    for name, known in old._loop.state.subscriptions.items():
        if not known.count or name not in new._loop.state.subscriptions:
            continue
        try:
            rows = known.rows(known.query)
            columns = {
                column: values.cast(pa.duration("ns")) if _is_size(known, column) else values
                for column, values in rows.columns.items()
            }
            table = pa.Table.from_arrays([rows.ids, *columns.values()], names=["", *columns])
            new.subscribe(name, table, id="")
        except (QueryError, BatchError, pa.ArrowException):
            lost += known.count
    return lost


def _is_size(known: Any, column: str) -> bool:
    """Whether a column holds durations, which are kept as numbers."""
    return known.sort == "duration" and any(need.role == "size" and need.column == column for need in known.query.needs)
