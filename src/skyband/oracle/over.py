"""Queries over the answers of others: one step of the source is one step of those that ask over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyband.oracle.objects import Row, same
from skyband.oracle.output import answer_rows
from skyband.oracle.stream import Change, Group, Stream
from skyband.oracle.subscriptions import Subscribers


class Steps(dict[str, list[Change]]):
    """The changes of one step, by stream."""

    def add(self, name: str, changes: list[Change]) -> None:
        self.setdefault(name, []).extend(changes)


class OverAnswers:
    """What an oracle does with them."""

    clock: Any
    _emit: str
    _streams: dict[str, Stream]
    _subscribers: dict[str, Subscribers]
    _taking: Callable[[], dict[str, Stream]]
    _now: Callable[..., list[Change]]
    _rows: Callable[[Mapping[str, list[Change]]], list[Row]]

    def _asked(self) -> dict[str, list[str]]:
        """The streams that take rows, by query: one, or one for each subscription."""
        found: dict[str, list[str]] = {}
        for name in self._taking():
            found.setdefault(self._owner(name), []).append(name)
        return found

    def _by_depth(self) -> list[list[str]]:
        """The same streams, sources before those that ask over them."""
        return sorted(self._asked().values(), key=lambda names: self._depth(self._streams[names[0]]))

    def _owner(self, name: str) -> str:
        """The query of a stream."""
        return next((query for query, of in self._subscribers.items() if name in of.ids), name)

    def _report(self, steps: Steps, changes: dict[str, list[Change]]) -> None:
        """Report what one step has changed, and let it be one step of those that ask over these answers."""
        fed: dict[str, list[tuple[str, Change]]] = {}
        for name, step in steps.items():
            changes.setdefault(name, []).extend(step)
            if name not in self._subscribers:  # a query with `Each` itself answers nothing
                fed.setdefault(self._owner(name), []).extend((name, one) for one in step)
        for source, both in fed.items():
            self._feed(source, both, changes)

    def _feed(self, source: str, step: list[tuple[str, Change]], changes: dict[str, list[Change]]) -> None:
        """One step of a query is one step of those that ask over its answers."""
        for name, stream in self._streams.items():
            if stream.source != source or not step:
                continue
            last, touched = step[-1][1], list[Group]()
            if self._emit == "batch" or source in self._subscribers:  # in no order: the largest number
                last = max((change for _, change in step), key=lambda one: (one.at, one.time))
            order = sorted(step, key=lambda one: (max(one[1].diff, 0), one[1].member.objects[0].sequence))
            for above, change in order:  # what enters, as it arrived there
                asked, who = self._streams[above], self._who(above)
                (row,) = answer_rows(asked.query, change.group, [change.member], asked.roles)
                object = (above, tuple(map(same, change.group.values)), change.member.identity)
                for group in stream.follow(object, change.diff, who | row, (last.at, last.time)):
                    touched += [] if any(group is one for one in touched) else [group]
            report = self._emit == "arrival"
            steps = Steps()
            for group in touched:
                steps.add(name, stream.step(group, None, *group.moved, report=report))
            self._report(steps, changes)

    def _who(self, name: str) -> Row:
        """The subscriber of a stream, as a column."""
        subscribers = self._subscribers.get(self._owner(name))
        return {} if subscribers is None else {"subscriber": subscribers.ids[name]}

    def _depth(self, stream: Stream) -> int:
        """How many queries are between it and the rows."""
        return 0 if stream.source is None else 1 + self._depth(self._streams[stream.source])

    def _at_rest(self, name: str, step: list[Change]) -> list[Row]:
        """Changes between two pushes, in one step, and those that they bring about over the answers."""
        changes: dict[str, list[Change]] = {}
        steps = Steps()
        steps.add(name, step)
        self._report(steps, changes)
        return self._settled(name, changes)

    def _leave_silently(self, source: str, streams: list[str]) -> list[Row]:
        """What changes over the answers of a query when these of its subscriptions end."""
        step = [(name, change) for name in streams for change in self._streams[name].leave(self.clock)]
        changes: dict[str, list[Change]] = {}
        self._feed(source, step, changes)
        return self._settled(source, changes)

    def _settled(self, name: str, changes: dict[str, list[Change]]) -> list[Row]:
        """The changes as rows, where a query has changed between two pushes."""
        for other in self._by_depth():
            if self._emit == "batch" and name not in other and self._streams[other[0]].source is not None:
                steps = Steps()
                steps.add(other[0], self._now(self._streams[other[0]]))
                self._report(steps, changes)
        return self._rows(changes)
