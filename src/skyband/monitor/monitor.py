"""Monitor: standing queries over one stream, in one process.

Its calls take turns: each holds the Monitor's lock, so that kernels, which run without Python's own, never meet.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from skyband.errors import QueryError, StateError
from skyband.monitor.loop import Loop
from skyband.monitor.shown import Shown
from skyband.monitor.snapshot import Callables, load, save
from skyband.monitor.sources import all_queries, names_of, owner_of
from skyband.query.kinds import Query
from skyband.query.validation import one_of
from skyband.query.windows import Window

P = ParamSpec("P")
R = TypeVar("R")


def in_turn(method: Callable[Concatenate[Monitor, P], R]) -> Callable[Concatenate[Monitor, P], R]:
    """A call of a Monitor that has its state for itself, and finds it whole."""

    @wraps(method)
    def call(monitor: Monitor, /, *args: P.args, **named: P.kwargs) -> R:
        with monitor._lock if monitor._waits else monitor._turn_or_raise():
            monitor._loop.state.commit.require_whole()
            return method(monitor, *args, **named)

    return call


class Monitor(Shown):
    """Standing queries over one stream of batches.

    Any thread may call it: calls take turns, and `answer` sees the state before or after a push.

    Parameters
    ----------
    queries
        One query, a list (named q0, q1, ...), or {name: query}.
    id
        The column that labels objects. Default: the number of the arrival.
    time
        The column of times: timestamps, dates, integers or ISO strings. Needed for time windows.
    part, value
        The columns of `TopKIncomplete`: which part of its object a row brings, and its value.
    keep
        Columns to report with each object. "*": all columns of the first batch that have no role and no reserved name.
    emit
        "arrival" reports each step, "batch" the net changes of each push.
    late
        "accept" or "drop" objects older than the clock (time windows).
    invalid
        "reject" and count bad rows, or "raise" a BatchError and take nothing of the batch.
    op
        The column that says what a row does to the objects of `UntilDeleted()` queries: "insert" or "update" (the
        default for all rows), or "delete", by id and `per`.
    forget
        How long a group of a count window, `UntilDeleted()` or `Ever()` may be silent, written as in `Last`: "30 days",
        or a number of units of an integer time column. Then its answer leaves, its objects are dropped, and later rows
        begin a new group, from number 0. Default: groups stay for ever. Needs `time`.
    threads
        What a call does while another thread's is at work: "wait" for its end, or "raise" a StateError at once.
    device
        "cuda": an NVIDIA GPU serves `Similar(column, Each("vector"))`, with the same answers. None: the processor.

    Examples
    --------
    >>> import skyband as sb
    >>> m = sb.Monitor(sb.TopK(k=1, by="x", window=sb.Last(2)))
    >>> m.push({"x": [3, 1, 2]}).select(["at", "id", "score", "diff"]).to_pylist()
    [{'at': 0, 'id': 0, 'score': 3.0, 'diff': 1},
     {'at': 2, 'id': 0, 'score': 3.0, 'diff': -1},
     {'at': 2, 'id': 2, 'score': 2.0, 'diff': 1}]

    """

    def __init__(
        self,
        queries: Query | Iterable[Query] | Mapping[str, Query],
        *,
        id: str | None = None,
        time: str | None = None,
        part: str = "part",
        value: str = "value",
        keep: str | Iterable[str] = (),
        emit: Literal["arrival", "batch"] = "arrival",
        late: Literal["accept", "drop"] = "accept",
        invalid: Literal["reject", "raise"] = "reject",
        op: str | None = None,
        forget: str | int | timedelta | None = None,
        threads: Literal["wait", "raise"] = "wait",
        device: str | None = None,
    ) -> None:
        one_of("Monitor", "threads", threads, ("wait", "raise"))
        columns = {"id": id, "time": time, "part": part, "value": value, "keep": keep, "op": op, "device": device}
        loop = Loop.of(queries, settles=True, **columns, emit=emit, late=late, invalid=invalid, forget=forget)
        self._set(loop, threads)

    def _set(self, loop: Loop, threads: str) -> None:
        self._loop = loop
        self._waits = threads == "wait"
        self._lock = threading.RLock()
        _MONITORS.add(self)

    @contextmanager
    def _turn_or_raise(self) -> Iterator[None]:
        """The lock, or a StateError if another thread holds it."""
        within = self._lock._is_owned()  # type: ignore[attr-defined]  # a call in a call
        try:
            if not within and not self._lock.acquire(blocking=False):
                raise StateError(
                    "another thread is in a call of this Monitor. Call it again later, or let calls wait: "
                    'Monitor(..., threads="wait").'
                )
            yield
        finally:  # also if an interrupt comes right after `acquire`
            if not within and self._lock._is_owned():  # type: ignore[attr-defined]
                self._lock.release()

    # --- the stream

    @in_turn
    def push(self, batch: Any, *, to: Any = None, more: bool = False) -> pa.Table:
        """Take a batch of rows, in order of arrival; return the changes of the answers.

        Parameters
        ----------
        batch
            Anything with the Arrow C interface (pandas, polars, pyarrow, duckdb), a LazyFrame, a dataset or reader, a
            dict of arrays, lists or scalars (scalars alone: one row), a list of dicts, or an iterator of batches.
        to
            The clock then moves on to this instant, if it has not passed it: one batch, one net change.
        more
            The batch goes on with the next push: net changes (emit="batch") wait for its end.

        """
        if not isinstance(more, bool | np.bool_):
            raise QueryError(f"push(more={more!r}): more must be True or False.")
        return self._loop.push(batch, to, bool(more))

    @in_turn
    def advance(self, to: Any) -> pa.Table:
        """Move time on with no arrival; return the changes by what expires.

        Parameters
        ----------
        to
            An instant of the time column's type: a datetime (NumPy's too), a date, an integer, or an ISO string.

        """
        return self._loop.advance(to)

    @in_turn
    def delete(self, ids: Iterable[Any]) -> pa.Table:
        """Delete objects of `UntilDeleted()` queries, one step each; return the changes.

        Parameters
        ----------
        ids
            Values of the id column. Unknown ids are counted and ignored.

        """
        return self._loop.delete(ids)

    # --- the queries

    @property
    def queries(self) -> dict[str, Query]:
        """The standing queries by name, in order of registration."""
        with self._lock:
            return all_queries(self._loop.state)

    @in_turn
    def add(self, name: str, query: Query, *, from_window: bool = False) -> pa.Table | None:
        """Add a standing query. It sees only later arrivals, and goes on with the numbers.

        Parameters
        ----------
        name
            A name that no standing query has.
        query
            The query.
        from_window
            Answer at once from what another query keeps (docs/meaning.md says which); the query is then as old as that
            one, and its first answer is returned as changes.

        """
        if from_window:
            return self._loop.queries.add_from_window(name, query)
        self._loop.queries.add(name, query)
        return None

    @in_turn
    def replace(self, name: str, query: Query) -> pa.Table:
        """Ask another question under the same name; return the changes that turn the old answer into the new one.

        The state is kept when the new query has the same scoring, direction, `where` and `per` and no larger k or
        window than the queries that share the old one's skyband; else it starts empty.

        Parameters
        ----------
        name
            The name of a standing query.
        query
            What to ask instead.

        """
        return self._loop.queries.replace(name, query)

    @in_turn
    def drop(self, name: str) -> None:
        """Stop a standing query. Nothing is reported.

        Parameters
        ----------
        name
            The name of a standing query.

        """
        self._loop.queries.drop(name)

    # --- subscriptions

    @in_turn
    def subscribe(self, name: str, table: Any, *, id: str = "subscriber", from_window: bool = False) -> pa.Table:
        """Take subscriptions of a query with `Each`, one for each row of a table; return changes.

        Each is a plain query with the row's values, added now. All rows are taken, or none. An id that is there is
        replaced: its answer starts empty, and nothing is reported of the old one.

        Parameters
        ----------
        name
            The name of a standing query with `Each`.
        table
            Anything that `push` takes, with the columns that `Each` names and the ids of subscribers.
        id
            The column of ids: none null, none twice.
        from_window
            Begin with what is in their windows: it enters at the last arrival's number and the clock, with `first`
            true. They see what the subscriptions that keep it have seen; a QueryError, if none keeps enough.

        Raises
        ------
        QueryError
            A column is missing or of a wrong type, a value is null or makes no valid query: column and subscriber are
            named, and nothing of the table is taken.

        """
        return self._loop.queries.subscribed.subscribe(name, table, id, from_window)

    @in_turn
    def unsubscribe(self, name: str, ids: Iterable[Any]) -> pa.Table | None:
        """End subscriptions. Nothing is reported, but where queries ask over their answers: what changes in these.

        Parameters
        ----------
        name
            The name of a standing query with `Each`.
        ids
            Ids of subscribers. Unknown ones are counted and ignored.

        """
        return self._loop.queries.subscribed.unsubscribe(name, ids)

    # --- answers

    @in_turn
    def answer(
        self,
        name: str | None = None,
        *,
        subscriber: Any = None,
        key: Any = None,
        keys: Iterable[Any] | None = None,
        k: int | None = None,
        window: Window | Any = None,
    ) -> pa.Table:
        """The current answer, best first.

        Parameters
        ----------
        name
            The name of a standing query; may be left out when there is one.
        subscriber
            Of one subscription only, of a query with `Each`; empty if there is none. Default: of all.
        key
            Of one group only: its value of `per`, or a tuple of values for several columns. Default: all groups.
        keys
            Of several groups: a list of such keys. Keys that have had no row are left out.
        k, window
            Of a smaller k or window than the query's.

        """
        if keys is None:
            asked = None if key is None else [key]
        elif key is None and isinstance(keys, Iterable) and not isinstance(keys, str | bytes | np.generic):
            asked = list(keys)
        else:
            raise QueryError(f"key={key!r}, keys={keys!r}: give one key, or a list of them as keys=[...].")
        return self._loop.answer(name, asked, k, window, None if subscriber is None else [subscriber])

    @in_turn
    def answers(self) -> dict[str, pa.Table]:
        """The current answers of all standing queries by name, in order of registration."""
        return {name: self._loop.answer(name, None, None, None) for name in names_of(self._loop.state)}

    @in_turn
    def stats(self) -> dict[str, Any]:
        """Counts of rows (arrivals of any query, late ones dropped by any, rejected by reason), and per query."""
        state, subscribed = self._loop.state, self._loop.queries.subscribed
        return {
            "arrivals": state.counters["arrivals"],
            "late": state.counters["late"],
            "rejected": dict(state.counters["rejected"]),
            "queries": {
                name: subscribed.stats(name)
                if name in state.subscriptions
                else owner_of(state, name).adapters[name].stats(name)
                for name in all_queries(state)
            },
        }

    # --- snapshots

    @in_turn
    def snapshot(self) -> bytes:
        """The whole state as bytes, for `Monitor.restore`."""
        state = self._loop.state
        with state.reading(state.standing()):
            return save(state)

    @classmethod
    def restore(
        cls, data: bytes, callables: Callables | None = None, *, trusted: bool = True, device: str | None = None
    ) -> Self:
        """A Monitor that goes on where the snapshot was taken.

        Parameters
        ----------
        data
            What `snapshot` returned.
        callables
            Scoring functions by the query's name, or by their own name: functions are never stored.
        trusted
            False for bytes that anyone may have made: all is checked before it is used, so that a forgery (a checksum
            finds accidents only) is a StateError or a Monitor that works, whatever it answers. True, the default, is
            for your own: the checks take up to 2.6 times as long as the restore.
        device
            As in `Monitor`: a snapshot of one device goes on on any other, or on the processor.

        Raises
        ------
        StateError
            The bytes are cut short, changed, of a newer version, or (not trusted) do not fit together.
        QueryError
            A scoring function is missing, or (not trusted) a stored query cannot be.

        """
        if not isinstance(trusted, bool):
            raise QueryError(f"restore(trusted={trusted!r}): trusted must be True or False.")
        if not isinstance(callables, Mapping | None):
            raise QueryError(f"restore(callables={callables!r}): callables is a mapping of names to scoring functions.")
        return cls._of(Loop(load(data, callables or {}, trusted=trusted, device=device), settles=True))

    @classmethod
    def _of(cls, loop: Loop) -> Self:
        """A Monitor of this loop."""
        monitor = cls.__new__(cls)
        monitor._set(loop, "wait")
        return monitor


_MONITORS: WeakSet[Monitor] = WeakSet()


def _after_fork() -> None:
    """Free the locks that other threads held: they are not in this process. Their commits never ended, and say so."""
    for monitor in _MONITORS:
        monitor._lock = threading.RLock()
        monitor._loop.state.commit.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
