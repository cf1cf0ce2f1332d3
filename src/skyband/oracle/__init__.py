"""The specification of every query: slow and readable. It shares no code with the engines.

The oracle mirrors `Monitor` with plain Python data: rows and changes are dicts, times are integers, dates or
datetimes. It keeps every arrival of a window in a list and computes each answer anew after each step.

    objects.py     an arrival (an object), a member (a row of an answer)
    scalar.py scores.py     expressions and scorings of one row
    rows.py        a row as an arrival, or the reason to reject it
    topk.py groups.py pairs.py incomplete.py uncertain.py      the answer of a kind, from the valid arrivals
    shared.py      queries that are the same but for k and the window's length
    over.py        queries over the answers of others
    subscriptions.py    queries with `Each`: one plain query for each subscription
    stream.py      one query: its groups, windows, steps and differences
    output.py      the rows of changes and answers, column by column
    __init__.py    all queries: rows, the clock, lateness, numbering, the order of changes

Cost: each step is at least linear in the window; pairs are quadratic, uncertain queries cubic.

>>> from skyband.query.kinds import TopK
>>> from skyband.query.windows import Last
>>> oracle = Oracle(TopK(1, by="delay", window=Last(2)), id="flight")
>>> for change in oracle.push([{"flight": "A", "delay": 5}, {"flight": "B", "delay": 30}]):
...     print(change["at"], change["id"], change["score"], change["diff"])
0 A 5.0 1
1 A 5.0 -1
1 B 30.0 1
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from itertools import groupby
from typing import Any

from skyband.errors import BatchError, QueryError
from skyband.oracle.objects import Arrival, Roles, Row, same
from skyband.oracle.output import answer_rows, change_rows
from skyband.oracle.over import OverAnswers, Steps
from skyband.oracle.rows import Rejected
from skyband.oracle.shared import fits, narrowed, related, shares, size
from skyband.oracle.stream import Change, Group, Stream, members, remove
from skyband.oracle.subscriptions import Subscribable, Subscribers, Unsubscribed
from skyband.oracle.topk import skyband
from skyband.query.kinds import Query, TopK, TopKGroups, TopKIncomplete
from skyband.query.validation import RESERVED
from skyband.query.windows import Last, UntilDeleted, Window

__all__ = ["Oracle"]


class Oracle(Subscribable, OverAnswers):
    """All queries over one stream of rows."""

    def __init__(
        self,
        queries: Query | Iterable[Query] | Mapping[str, Query],
        *,
        id: str | None = None,
        time: str | None = None,
        part: str = "part",
        value: str = "value",
        keep: Iterable[str] = (),
        emit: str = "arrival",
        late: str = "accept",
        invalid: str = "reject",
        keyed: Iterable[str] = (),
    ) -> None:
        self.arrivals = 0  # rows that at least one query took in
        self.late = 0  # rows that at least one query dropped as late
        self.rejected: Counter[str] = Counter()  # rows by reason; also pairs without a score, unknown ids
        self.clock: Any = None
        self._taken = 0  # rows that moved it, or could have
        self._roles = Roles(id, time, part, value, kept(keep), frozenset(keyed))
        self._emit = _one_of("emit", emit, ("arrival", "batch"))
        self._drop_late = _one_of("late", late, ("accept", "drop")) == "drop"
        self._raise = _one_of("invalid", invalid, ("reject", "raise")) == "raise"
        self._streams: dict[str, Stream] = {}  # by query, and by subscription
        self._subscribers: dict[str, Subscribers] = {}  # by query with `Each`
        if taken := set(self._roles.keep) & set(RESERVED):
            raise QueryError(f"keep: {min(taken)!r} is a column that skyband writes itself. Rename it.")
        if isinstance(queries, Query):
            queries = [queries]
        if not isinstance(queries, Mapping):
            queries = {f"q{i}": query for i, query in enumerate(queries)}
        left = dict(queries)
        while left:  # each after its source
            ready = [name for name, query in left.items() if getattr(query, "source", None) not in left]
            if not ready:
                raise QueryError(f"{', '.join(left)} ask over each other's answers.")
            for name in ready:
                self.add(name, left.pop(name))
        self._streams = {name: self._streams[name] for name in queries}

    # ----------------------------------------------------------------------------- input

    def push(self, rows: list[Row]) -> list[Row]:
        """Take rows in, one after the other; return the changes, by query and then by step."""
        before = copy.deepcopy(self.__dict__) if self._raise else {}
        changes: dict[str, list[Change]] = {name: [] for name in self._taking()}
        try:
            for place, row in enumerate(rows):
                self._take(row, place, changes)
        except BatchError:
            self.__dict__.update(before)
            raise
        return self._finish(changes)

    def advance(self, to: Any) -> list[Row]:
        """Move the clock with no arrival."""
        if self._roles.time is None:
            raise QueryError('advance: no time column is named. Name it with time="...".')
        if self.clock is not None and to < self.clock:
            raise BatchError(f"advance({to!r}): time cannot go back, the clock is at {self.clock!r}.")
        changes: dict[str, list[Change]] = {name: [] for name in self._taking()}
        self._move_clock(to, changes)
        return self._finish(changes)

    def delete(self, ids: Iterable[Any]) -> list[Row]:
        """Delete objects of `UntilDeleted` queries: one step per id."""
        changes: dict[str, list[Change]] = {name: [] for name in self._taking()}
        for id in ids:
            known, steps = False, Steps()
            for subscribers in self._subscribers.values():
                subscribers.seen.append((None, id))
            for name, stream in self._taking().items():
                if not isinstance(stream.query.window, UntilDeleted) or stream.source is not None:
                    continue
                for group in [group for group in stream.groups.values() if remove(group, id)]:
                    known = True
                    steps.add(name, self._step(stream, group, self.clock, group.last_number, self.clock))
            self._report(steps, changes)
            if not known:
                self.rejected["unknown id"] += 1
        return self._finish(changes, deleting=True)

    def _take(self, row: Row, place: int, changes: dict[str, list[Change]]) -> None:
        """Take one row: first the queries that reject it, then the clock, then its arrival at each query."""
        time = None if self._roles.time is None else row.get(self._roles.time)
        now = time if self.clock is None or (time is not None and time > self.clock) else self.clock
        accepted: dict[str, Arrival] = {}
        late: set[str] = set()
        reasons: set[str] = set()
        for name, stream in self._taking().items():
            if stream.source is not None:
                continue
            try:
                arrival = stream.read(row)
                if stream.late(arrival, now) and (self._drop_late or stream.expired(arrival, now)):
                    late.add(name)
                else:
                    stream.check(arrival, now)
                accepted[name] = arrival
            except Rejected as rejected:
                if self._raise:
                    where = f"row {place}" + (f", column {rejected.column!r}" if rejected.column else "")
                    raise BatchError(f"{where}: {rejected.reason}.") from None
                reasons.add(rejected.reason)
        self.rejected.update(reasons)
        if not accepted:
            return  # it moves no clock
        self._move_clock(now, changes)
        self._taken += 1
        steps = Steps()
        for name, arrival in accepted.items():
            if name not in late:
                stream = self._streams[name]
                group = stream.arrive(arrival, now)
                arrival.sequence = self._taken
                self._note(name, row, now)
                if missing := stream.scoreless_pairs(group, arrival, now):
                    self.rejected["pair without a score"] += missing
                step_time = now if stream.timed else arrival.time
                steps.add(name, self._step(stream, group, now, arrival.number, step_time))
        self._report(steps, changes)
        self.late += bool(late)
        self.arrivals += len(accepted) > len(late)

    def _move_clock(self, to: Any, changes: dict[str, list[Change]]) -> None:
        """Expire all groups of all queries by the one clock, instant by instant."""
        self.clock = to
        for names in self._asked().values():
            due = [
                (instant, place, group)
                for place, name in enumerate(names)
                for instant, group in self._streams[name].expiries(to)
            ]
            for instant, expiring in groupby(sorted(due, key=lambda one: one[:2]), key=lambda one: one[0]):
                steps = Steps()
                for _, place, group in expiring:
                    stream = self._streams[names[place]]
                    steps.add(names[place], self._step(stream, group, instant, group.last_number, instant))
                self._report(steps, changes)

    def _step(self, stream: Stream, group: Group, now: Any, at: int, time: Any) -> list[Change]:
        return stream.step(group, now, at, time, report=self._emit == "arrival")

    def _now(self, stream: Stream, deleting: bool = False, *, by_group: bool = False) -> list[Change]:
        """One difference per group, between two pushes or at the end of one."""
        changes = []
        groups = list(stream.groups.values())
        for group in groups if stream.timed or by_group else sorted(groups, key=lambda group: group.touched):
            at, time = stream.moment(group, self.clock)
            time = self.clock if deleting and stream.source is None else time
            changes += stream.step(group, self.clock, at, time, report=True)
        return changes

    def _finish(self, changes: dict[str, list[Change]], deleting: bool = False) -> list[Row]:
        """The changes as rows; with emit="batch" one difference per group, after the last step."""
        for names in self._by_depth():
            if self._emit == "batch":
                steps = Steps()
                for name in names:
                    steps.add(name, self._now(self._streams[name], deleting))
                self._report(steps, changes)
        for stream in self._taking().values():
            stream.forget(max((s.query.window for s in self._family(stream, stream.query)), key=size))
        return self._rows(changes)

    # ------------------------------------------------------------------------- queries

    @property
    def queries(self) -> dict[str, Query]:
        each = {name: subscribers.query for name, subscribers in self._subscribers.items()}
        owned = {key for subscribers in self._subscribers.values() for key in subscribers.ids}
        return {name: each.get(name, stream.query) for name, stream in self._streams.items() if name not in owned}

    def add(self, name: str, query: Query, *, donor: str | None = None) -> list[Row]:
        """Add a query: it sees only later arrivals, and continues their numbers.

        donor: a query whose valid arrivals are this one's too; then its first answer enters at once.
        """
        if name in self._streams:
            raise QueryError(f"a query called {name!r} is running. Use replace, or another name.")
        if query.each:
            self._subscribers[name] = Subscribers(query)
        stream = self._streams[name] = self._start(name, query)
        if donor is None:
            return []
        stream.take_over(self._named(donor), self.clock)
        return self._rows({name: self._now(stream)})

    def subscribe_from_window(self, name: str, rows: list[Row]) -> list[Row]:
        """Subscribe, and report what enters at once, at the clock."""
        streams = self._subscribe(name, rows, "subscriber", from_window=True)[1]
        return self._rows({key: self._now(stream, deleting=True) for key, stream in streams.items()})

    def replace(self, name: str, query: Query) -> list[Row]:
        """Put another query under the name: it keeps the arrivals if it fits in them, else starts empty."""
        old = self._named(name)
        family = self._family(old, query)
        if old in family and fits(query, [stream.query for stream in family]):
            old.query = query
            return self._at_rest(name, self._now(old, by_group=True))
        left = self._at_rest(name, old.leave(self.clock))
        self._streams[name] = self._start(name, query)  # a dict keeps the place of a key
        return left

    def drop(self, name: str) -> None:
        del self._streams[self._named(name).name]
        if name in self._subscribers:
            for key in self._subscribers.pop(name).ids:
                del self._streams[key]

    def _start(self, name: str, query: Query) -> Stream:
        if isinstance(query.window, Last) and query.window.timed and self._roles.time is None:
            raise QueryError(f'{name}: {query.window!r} is a time window. Name its column with time="...".')
        source = getattr(query, "source", None)
        if source is not None:
            above = self._named(source)
            columns = {name: name for name in (*above.roles.keep, *above.query.per_columns)}
            time = None if above.roles.time is None else "time"
            roles = Roles("id", time, "", "", columns, self._roles.keyed)
            return Stream(name, query, roles, self.clock, {}, born=self.arrivals)
        if isinstance(query, TopKGroups) and query.decay is not None and self._roles.time is None:
            raise QueryError(f'{name}: decay goes by time. Name its column with time="...".')
        keyed = isinstance(query, TopKIncomplete) or isinstance(query.window, UntilDeleted)
        keyed |= isinstance(query, TopKGroups) and not query.of_columns
        if keyed and self._roles.id is None:
            raise QueryError(f'{name}: ids are keys here. Name the id column with id="...".')
        numbers: dict[Hashable, int] = {}
        for stream in self._streams.values():
            if stream.query.per == query.per and getattr(stream.query, "source", None) is None:  # those have their own
                for key, number in stream.next_numbers().items():
                    numbers[key] = max(number, numbers.get(key, 0))
        made = Unsubscribed if query.each else Stream
        return made(name, query, self._roles, self.clock, numbers, born=self.arrivals)

    def _named(self, name: str | None) -> Stream:
        if name is None and len(self._streams) == 1:
            return next(iter(self._streams.values()))
        if name is None or name not in self._streams:
            raise QueryError(f"there is no query {name!r}. Running: {', '.join(self._streams)}.")
        return self._streams[name]

    def _family(self, stream: Stream, query: Query) -> list[Stream]:
        """The running queries that saw the same arrivals and ask the same, but for k and the window."""
        streams = self._streams.values() if shares(query) else [stream]
        return [s for s in streams if s.born == stream.born and related(s.query, query)]

    # ---------------------------------------------------------------------------- output

    def answer(
        self,
        name: str | None = None,
        *,
        subscriber: Any = None,
        key: Any = None,
        k: int | None = None,
        window: Window | None = None,
    ) -> list[Row]:
        """The answer now, best first; of all groups, or of the one that `key` names; of one subscriber, or all."""
        stream = self._named(name)
        if stream.name in self._subscribers:
            return [
                {"subscriber": who} | row
                for name, who in self._subscribers[stream.name].ids.items()
                if subscriber is None or same(subscriber) == same(who)
                for row in self._answer(self._streams[name], key, k, window)
            ]
        return self._answer(stream, key, k, window)

    def _answer(self, stream: Stream, key: Any, k: int | None, window: Window | None) -> list[Row]:
        query = narrowed(stream.query, k, window)
        rows: list[Row] = []
        for group in self._groups(stream, key):
            valid = stream.valid(group.arrivals, self.clock, query.window)
            rows += answer_rows(query, group, members(query, valid, self.clock, group.limit), stream.roles)
        return rows

    def skyband(self, name: str | None = None, key: Any = ()) -> list[Any]:
        """TopK: the ids of the valid objects with fewer than k dominators, best first."""
        stream = self._named(name)
        if not isinstance(stream.query, TopK):
            raise QueryError(f"skyband: {stream.name!r} is no TopK.")
        return [
            o.id
            for group in self._groups(stream, key)
            for o in skyband(stream.query, stream.valid(group.arrivals, self.clock))
        ]

    def _groups(self, stream: Stream, key: Any) -> list[Group]:
        """The group of a key, if anything arrived in it; all groups for None."""
        if key is None:
            return list(stream.groups.values())
        values = tuple(same(value) for value in (key if isinstance(key, tuple) else (key,)))
        if len(values) != len(stream.query.per_columns):
            raise QueryError(f"key={key!r}: give one value for each of {stream.query.per_columns}.")
        return [stream.groups[values]] if values in stream.groups else []

    def _rows(self, changes: Mapping[str, list[Change]]) -> list[Row]:
        """By query in order of registration, then by subscription."""
        rows, queries = [], self.queries
        for name in queries:
            of = self._subscribers[name].ids if name in self._subscribers else {name: None}
            for key, who in of.items():
                made = [one for one in changes.get(key, []) if one.diff]
                rows += change_rows(name, self._streams[key], made, queries, self._roles, who)
        return rows


def kept(keep: Any) -> dict[str, str]:
    """Kept columns: the output's name -> the input's."""
    names = [keep] if isinstance(keep, str) else keep
    return dict(names) if isinstance(names, Mapping) else {name: name for name in names}


def _one_of(what: str, choice: str, choices: tuple[str, ...]) -> str:
    if choice not in choices:
        raise QueryError(f"{what}={choice!r} is unknown. Use one of {', '.join(choices)}.")
    return choice
