"""The stream of one query: its groups, every arrival that they still need, and the answers as reported.

Nothing is maintained: after each step the answer is computed anew from all valid arrivals of the group and
compared with the answer that was reported last.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from skyband.oracle.groups import faded, top_k_groups
from skyband.oracle.incomplete import top_k_incomplete
from skyband.oracle.objects import Arrival, Member, Roles, Row, same
from skyband.oracle.pairs import scoreless, top_k_pairs
from skyband.oracle.rows import Rejected, read
from skyband.oracle.topk import above, top_k
from skyband.oracle.uncertain import top_k_uncertain
from skyband.query.kinds import Above, Query, TopK, TopKGroups, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.query.windows import Ever, Last, Session, UntilDeleted, Window

_SLACK = 1e-12  # by how much the probabilities of alternatives may pass 1


@dataclass
class Group:
    """One value of the `per` columns: a stream of its own."""

    values: tuple[Any, ...]
    next_number: int
    arrivals: list[Arrival] = field(default_factory=list)  # in order of arrival, the valid ones among them
    reported: dict[Hashable, Member] = field(default_factory=dict)  # the answer as the changes reported it
    ever_reported: set[Hashable] = field(default_factory=set)

    last_time: Any = None  # of the last arrival
    limit: int | None = None  # the k of its newest row, where k is a column
    newest: tuple[Any, ...] | None = None  # the age of that row
    session: tuple[Any, Any] | None = None  # the first and the last time of the session that is open
    ended: Any = None  # when the session before it ended
    touched: int = 0  # when something last arrived or was deleted in it, among all groups
    moved: tuple[int, Any] = (-1, None)  # over answers: `at` and `time` of the source's last change in it

    @property
    def last_number(self) -> int:
        return self.next_number - 1


@dataclass
class Entry:
    """Over answers: a member of the source's answer since it entered."""

    number: int  # its place among all that entered
    key: Hashable = None  # of its group here
    arrival: Arrival | None = None  # as it is now; None: it is rejected


@dataclass(frozen=True)
class Change:
    """One object enters (+1) or leaves (-1) the answer of a group, or moves (0): it stays with other columns."""

    group: Group
    member: Member
    at: int
    time: Any
    diff: int
    first: bool


def members(query: Query, valid: list[Arrival], now: Any, limit: int | None = None) -> list[Member]:
    """The answer at an instant, best first; limit: the k of the group, where k is a column."""
    match query:
        case TopK():
            return top_k(query, valid, query.most if limit is None else min(limit, query.most))
        case Above():
            return above(query, valid)
        case TopKPairs():
            return top_k_pairs(query, valid)
        case TopKIncomplete():
            return top_k_incomplete(query, valid)
        case TopKUncertain():
            return top_k_uncertain(query, valid)
        case TopKGroups():
            return top_k_groups(query, valid, now)
    raise AssertionError(query)


class Stream:
    """A query, its name and its groups in order of first appearance."""

    def __init__(
        self, name: str, query: Query, roles: Roles, clock: Any, numbers: dict[Hashable, int], born: int
    ) -> None:
        self.name = name
        self.query = query
        self.roles = roles
        self.born = born  # how many rows the oracle had taken when the query was added
        self.groups: dict[Hashable, Group] = {}
        self.followed: dict[Hashable, Entry] = {}  # over answers: by the source's object
        self._entries = 0
        self._touches = 0
        self._clock = clock  # every expiry up to here is done
        self._numbers = numbers  # where the arrivals' numbers of a group go on

    @property
    def source(self) -> str | None:
        """The query over whose answers it is asked."""
        return getattr(self.query, "source", None)

    # ------------------------------------------------------------------ validity

    @property
    def timed(self) -> bool:
        """Whether objects have a time: of a window without end, where rows have one."""
        window = self.query.window
        return self.roles.time is not None if isinstance(window, Ever) else window.timed

    def valid(self, arrivals: list[Arrival], now: Any, window: Window | None = None) -> list[Arrival]:
        """The arrivals that count at an instant: the n most recent, or those with now in [t, t + span)."""
        window = window or self.query.window
        if isinstance(window, UntilDeleted | Ever | Session):  # a session's arrivals go all at once
            return list(arrivals)
        if window.count is not None:
            return arrivals[-window.count :]
        return [o for o in arrivals if now - o.time < span_of(window, o.time)]

    def late(self, arrival: Arrival, clock: Any) -> bool:
        """Whether a time window sees the row only after its time."""
        return self.timed and clock is not None and arrival.time < clock

    def expired(self, arrival: Arrival, clock: Any) -> bool:
        if isinstance(self.query.window, Session):
            return self._of_an_ended_session(arrival, clock)
        return self.timed and not self.valid([arrival], clock)

    def _of_an_ended_session(self, arrival: Arrival, clock: Any) -> bool:
        """Whether a row belongs to a session that has ended: an earlier one of its group, or one of its own."""
        gap = span_of(self.query.window, arrival.time)
        group = self.groups.get(self._key(arrival.row), Group((), 0))
        session, ended = group.session, group.ended
        if session is not None and session[1] + gap <= clock:
            ended, session = session[1] + gap, None
        if ended is not None and arrival.time < ended:
            return True
        return bool(arrival.time + gap <= (clock if session is None else session[0]))

    # ----------------------------------------------------------------------- rows

    def read(self, row: Row) -> Arrival:
        """The row as an arrival that is not in yet, or `Rejected`."""
        return read(self.query, row, self.roles)

    def check(self, arrival: Arrival, now: Any) -> None:
        """Reject what cannot be valid together with the other valid rows, once the arrival is in."""
        arrivals = self.groups[key].arrivals if (key := self._key(arrival.row)) in self.groups else []
        others = [o for o in self.valid([*arrivals, arrival], now) if o is not arrival]
        if isinstance(self.query, TopKIncomplete):
            again = any((same(o.id), o.part) == (same(arrival.id), arrival.part) for o in others if o.eligible)
            if again and arrival.eligible and self.query.repeat is None:
                raise Rejected("second row of the same part", self.roles.part)
        if isinstance(self.query, TopKUncertain) and arrival.rival is not None:
            alternatives = [o.probability for o in others if o.rival == arrival.rival]
            if math.fsum([*alternatives, arrival.probability]) > 1 + _SLACK:
                raise Rejected("probabilities of a group pass 1", self.query.probability)

    def arrive(self, arrival: Arrival, clock: Any) -> Group:
        """Take the arrival in: number it, put it at the end of its group."""
        group = self.groups.get(key := self._key(arrival.row))
        if group is None:
            values = tuple(arrival.row.get(column) for column in self.query.per_inputs)
            group = self.groups[key] = Group(values, self._numbers.get(key, 0))
        arrival.number = group.next_number
        arrival.age = (arrival.time, arrival.number) if self.timed else (arrival.number,)
        if arrival.entry is not None:
            arrival.age = (arrival.entry,)
        if self.roles.id is None and not isinstance(self.query, TopKGroups):
            arrival.id = arrival.number
        if isinstance(self.query.window, UntilDeleted) and getattr(self.query, "source", None) is None:
            remove(group, arrival.row_id)
        group.arrivals.append(arrival)
        group.next_number += 1
        self.touch(group)
        arrival.sequence = group.touched if arrival.entry is None else arrival.entry
        group.last_time = arrival.time
        if isinstance(self.query.window, Session):
            first, last = group.session or (arrival.time, arrival.time)
            group.session = (min(first, arrival.time), max(last, arrival.time))
        if group.newest is None or arrival.age >= group.newest:
            group.newest, group.limit = arrival.age, arrival.limit
        return group

    def follow(self, object: Hashable, diff: int, row: Row, moved: tuple[int, Any]) -> list[Group]:
        """Take a change of the source's answer: its object arrives, moves or is gone; returns its groups."""
        if diff > 0:
            self._entries += 1
            self.followed[object] = Entry(self._entries)
        entry = self.followed.get(object)
        if entry is None:  # it entered before anyone asked
            return []
        touched, before = [], entry.key
        if entry.arrival is not None:
            group = self.groups[self._key(entry.arrival.row)]
            group.arrivals.remove(entry.arrival)
            self.touch(group)
            touched.append(group)
            entry.arrival = None
        if diff < 0:
            del self.followed[object]
        else:
            entry.key = self._key(row)
            if diff == 0 and before != entry.key and before in self.groups:  # in another group it is new
                self.groups[before].ever_reported.discard(entry.number)
            touched += self._version(entry, row)
        for key in {before, entry.key}:  # also of a member that is rejected here: the source has reported it
            if key in self.groups:
                self.groups[key].moved = moved
        return touched

    def _version(self, entry: Entry, row: Row) -> list[Group]:
        """Let an object arrive as it is now; as old as its entry is."""
        try:
            arrival = self.read(row)
        except Rejected:
            return []
        arrival.entry, entry.arrival = entry.number, arrival
        return [self.arrive(arrival, None)]

    def touch(self, group: Group) -> None:
        self._touches += 1
        group.touched = self._touches

    def take_over(self, donor: Stream, clock: Any) -> None:
        """Begin with the valid arrivals of another query, under the same numbers."""
        self.born = donor.born
        for key, other in donor.groups.items():
            group = self.groups[key] = Group(other.values, other.next_number, last_time=other.last_time)
            for known in donor.valid(other.arrivals, clock):
                arrival = self.read(known.row)
                arrival.id, arrival.number, arrival.age = known.id, known.number, known.age
                arrival.sequence = known.sequence
                group.arrivals.append(arrival)

    def look_back(self, seen: list[tuple[Any, Any]], numbers: dict[Hashable, int]) -> None:
        """Begin with rows that had arrived before, each with the clock then (or ids that were deleted)."""
        self._numbers = {}
        for row, now in seen:
            if row is None:
                for group in self.groups.values():
                    remove(group, now)
                continue
            try:
                arrival = self.read(row)
                if self.late(arrival, now) and self.expired(arrival, now):
                    continue
                self.check(arrival, now)
            except Rejected:
                continue
            self.arrive(arrival, now)
        self._numbers = numbers
        for key, group in self.groups.items():
            behind = numbers[key] - group.next_number
            group.next_number += behind
            for o in group.arrivals:
                o.number += behind
                o.age = (*o.age[:-1], o.number)
                o.id = o.number if self.roles.id is None and not isinstance(self.query, TopKGroups) else o.id

    def scoreless_pairs(self, group: Group, arrival: Arrival, clock: Any) -> int:
        if not isinstance(self.query, TopKPairs):
            return 0
        return scoreless(self.query, self.valid(group.arrivals, clock), arrival)

    def _key(self, row: Row) -> Hashable:
        return tuple(same(row.get(column)) for column in self.query.per_inputs)

    # ---------------------------------------------------------------------- steps

    def expiries(self, clock: Any) -> list[tuple[Any, Group]]:
        """The instants up to the clock at which objects leave a time window; from now on they are done."""
        if isinstance(self.query.window, Session):
            return self._session_ends(clock)
        found: dict[tuple[Any, int], Group] = {}
        for place, group in enumerate(self.groups.values()) if self.timed else ():
            for o in self.valid(group.arrivals, self._clock):
                if self.expired(o, clock):
                    found[o.time + span_of(self.query.window, o.time), place] = group
        self._clock = clock
        return [(instant, group) for (instant, _), group in sorted(found.items(), key=lambda item: item[0])]

    def _session_ends(self, clock: Any) -> list[tuple[Any, Group]]:
        """The sessions that end up to the clock; their arrivals are gone."""
        ends = []
        for place, group in enumerate(self.groups.values()):
            if group.session is None:
                continue
            end = group.session[1] + span_of(self.query.window, group.session[1])
            if end <= clock:
                group.arrivals, group.session, group.ended = [], None, end
                ends.append((end, place, group))
        self._clock = clock
        return [(end, group) for end, _, group in sorted(ends, key=lambda item: item[:2])]

    def step(self, group: Group, now: Any, at: int, time: Any, *, report: bool) -> list[Change]:
        """Compare the answer of a group with the one reported last, and report the difference."""
        valid = self.valid(group.arrivals, now)
        if isinstance(self.query, TopKIncomplete):  # gone and come back is `first` again
            group.ever_reported &= {same(o.id) for o in valid if o.eligible}
        if isinstance(self.query, TopKGroups):
            group.ever_reported &= {o.owner for o in valid if o.eligible}
        if not report:
            return []
        answer = {member.identity: member for member in members(self.query, valid, now, group.limit)}
        changes = [
            Change(group, self._leaving(member, now), at, time, -1, False)
            for identity, member in group.reported.items()
            if identity not in answer
        ]
        changes += [
            Change(group, member, at, time, +1, identity not in group.ever_reported)
            for identity, member in answer.items()
            if identity not in group.reported
        ]
        changes += [
            Change(group, member, at, time, 0, False)
            for identity, member in answer.items()
            if identity in group.reported and self._seen(member) != self._seen(group.reported[identity])
        ]
        group.reported = answer
        group.ever_reported |= answer.keys()
        return changes

    def _seen(self, member: Member) -> list[Hashable]:
        """What queries over the answers see of a member, but for its id."""
        o = member.objects[0]
        kept = [o.row.get(column) for column in self.roles.keep.values()]
        return [same(value) for value in (member.score, *member.shown.values(), *o.keys, *member.keys, o.time, *kept)]

    def _leaving(self, member: Member, now: Any) -> Member:
        """A member as it was in the answer last; what fades has faded until now."""
        return faded(self.query, member, now) if isinstance(self.query, TopKGroups) else member

    def leave(self, clock: Any) -> list[Change]:
        """Retract all that was reported: the query is removed."""
        return [
            Change(group, self._leaving(member, clock), *self.moment(group, clock), -1, False)
            for group in self.groups.values()
            for member in group.reported.values()
        ]

    def moment(self, group: Group, clock: Any) -> tuple[int, Any]:
        """`at` and `time` of a change of a group between two pushes."""
        return (group.last_number, self.instant(group, clock)) if self.source is None else group.moved

    def next_numbers(self) -> dict[Hashable, int]:
        """By group, the number that its next arrival will have."""
        return self._numbers | {key: group.next_number for key, group in self.groups.items()}

    def go_on(self, numbers: dict[Hashable, int]) -> None:
        """Begin with these numbers, and with no arrivals."""
        self.groups, self._numbers = {}, numbers

    def instant(self, group: Group, clock: Any) -> Any:
        """The time of a step that is no arrival: the clock in time windows, else that of the last arrival."""
        return clock if self.timed else group.last_time

    def forget(self, window: Window) -> None:
        """Drop the arrivals that are outside the widest window that a query may still ask for."""
        for group in self.groups.values():
            group.arrivals = self.valid(group.arrivals, self._clock, window)


def remove(group: Group, id: Any) -> bool:
    """Delete the object of an id; whether there was one."""
    before = len(group.arrivals)
    group.arrivals = [o for o in group.arrivals if same(o.row_id) != same(id)]
    return len(group.arrivals) < before


def span_of(window: Window, time: Any) -> Any:
    """The length of a time window as what can be added to a time of this type."""
    if isinstance(window, Session):
        window = window.silence
    assert isinstance(window, Last)
    if isinstance(time, datetime):
        return timedelta(microseconds=window.length(10**3))
    if isinstance(time, date):
        return timedelta(days=window.length(86400 * 10**9))
    return window.length(None)
