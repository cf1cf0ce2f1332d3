"""Changes to those that follow one subscriber each: every listener gets its subscriber's rows, and can come back.

What happens is a log of entries, numbered: changes, and subscriptions that began or ended. It holds the rows of those
subscribers only that somebody follows, or followed within `limits.RESUME` seconds, and at most `Settings.resume` bytes.
A listener is a place in the log, no queue: when it has sent what it had, it gets all of its rows behind its place in
one event, whose id is the new place. So a slow one costs nothing, and one that was cut off goes on where it was. Where
the log no longer reaches back, the listener learns that, and gets the whole answer.

A turn takes one pass over the entries since the oldest place, for all listeners together.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.dashboard import limits
from skyband.dashboard.boards import MonitorBoard, answer_of
from skyband.dashboard.health import text_of
from skyband.dashboard.values import encoded, listed
from skyband.errors import QueryError, SkybandError

_SHARE = 4  # a turn is due after so many times the seconds that the last one took


_Row = tuple[int, dict[str, Any]]  # a change, behind the number of its entry


class Key(NamedTuple):
    """Whom a listener follows."""

    query: str
    text: str  # the subscriber's id, as in the address


class Listener:
    """A connection that follows one subscriber. `offer` is called by the watch's thread, `take` by the event loop."""

    def __init__(self, key: Key, last_id: str | None) -> None:
        self.key, self.last_id = key, last_id
        self.epoch, self.at = "", -1  # its place: what it has got
        self.why: str | None = None  # it has to begin with the whole answer, and this is the reason
        self.ready = False  # it has sent all that it had
        self.fresh, self.loop = asyncio.Event(), asyncio.get_running_loop()
        self._piece: bytes | None = None
        self._lock = threading.Lock()

    def offer(self, piece: bytes, epoch: str, at: int) -> bool:
        """Move to a place, with what has to be sent on the way; whether there is anything."""
        with self._lock:
            self.epoch, self.at = epoch, at
            if piece:
                self._piece, self.ready = piece, False
            return bool(piece)

    def take(self) -> bytes | None:
        """What has to be sent now."""
        with self._lock:
            piece, self._piece = self._piece, None
            return piece

    def beat(self) -> bytes:
        """A heartbeat; with its id a client can come back, though it has got nothing for long."""
        with self._lock:
            place = b"" if self._piece is not None or self.at < 0 else b"id: %b\n" % self._id()
            return b"event: beat\n%bdata: {}\n\n" % place

    def _id(self) -> bytes:
        return f"{self.epoch}-{self.at}".encode()


@dataclass
class _Followed:
    """A subscriber whose rows are kept."""

    value: Any  # its id, as an array of one
    since: int  # the place from which its rows are there
    listeners: set[Listener] = field(default_factory=set)
    left: float = 0.0  # when the last listener left


class _Entry(NamedTuple):
    number: int
    query: str | None  # None: all
    rows: Any  # changes; None: these subscribers begin with their answer as it is now
    texts: frozenset[str] | None = None  # those subscribers; None: all


class Delivery:
    """The listeners and the log. `join` and `leave` are called from any thread, the rest by the watch's."""

    def __init__(self, settings: limits.Settings) -> None:
        self.settings = settings
        self.epoch = secrets.token_hex(4)  # places of another one are not places of this log
        self.number = 0  # of the last entry
        self.due = 0.0  # when the next turn is
        self._entries: deque[_Entry] = deque()
        self._size = 0
        self._followed: dict[Key, _Followed] = {}
        self._values: dict[str, tuple[list[Key], Any]] = {}  # the same by query, with their ids as one column
        self._listeners: set[Listener] = set()
        self._lock = threading.Lock()  # of the two above

    # --- listeners

    @property
    def count(self) -> int:
        return len(self._listeners)

    def join(self, listener: Listener, value: Any) -> None:
        """Let a listener follow the subscriber with this id (an array of one)."""
        with self._lock:
            if len(self._listeners) >= self.settings.listeners:
                raise QueryError(
                    f"{self.settings.listeners:,} listeners are connected already, the most that this server takes. "
                    f"Start it with --listeners {2 * self.settings.listeners}, or close some."
                )
            self._listeners.add(listener)
            followed = self._followed.get(listener.key)
            if followed is None:
                followed = self._followed[listener.key] = _Followed(value, self.number)
                self._values.pop(listener.key.query, None)
            followed.listeners.add(listener)
            if listener.last_id is not None:
                self._resume(listener, followed)

    def _resume(self, listener: Listener, followed: _Followed) -> None:
        """Go on behind the last event that a client has got, if the log reaches back to it."""
        epoch, _, number = (listener.last_id or "").partition("-")
        at = int(number) if number.isascii() and number.isdecimal() and len(number) < 19 else -1
        oldest = max(followed.since, self._entries[0].number - 1 if self._entries else self.number)
        if epoch == self.epoch and oldest <= at <= self.number:
            listener.epoch, listener.at = epoch, at
        elif epoch == self.epoch and 0 <= at <= self.number:
            mib = self.settings.resume // limits.MIB
            listener.why = (
                f"the changes since {listener.last_id!r:.50} are no longer kept: for {limits.RESUME / 60:g} minutes, "
                f"and {mib:,} MiB of all subscribers (--resume). This is the whole answer."
            )
        else:
            listener.why = f"{listener.last_id!r:.50} is no id of this stream. This is the whole answer."

    def leave(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.discard(listener)
            if (followed := self._followed.get(listener.key)) is not None:
                followed.listeners.discard(listener)
                followed.left = time.monotonic()

    def close(self) -> None:
        """Wake all listeners, so that they leave."""
        with self._lock:
            _wake(list(self._listeners))

    # --- what happens

    def publish(self, changes: Any) -> None:
        """Take a table of changes into the log, as far as somebody follows their subscribers."""
        if not changes.num_rows or "subscriber" not in changes.column_names:
            return
        self._forget()
        for query in {key.query for key in self._keys()}:
            column = changes.column("subscriber")
            mine = pc.is_in(column, value_set=self._column(query, column.type)[1])
            rows = changes.filter(mine)
            rows = rows.filter(pc.equal(rows.column("query").cast(pa.string()), query))
            if rows.num_rows:
                self._add(query, rows.combine_chunks(), None)

    def renew(self, query: str | None = None, ids: Any = None) -> None:
        """Let listeners begin with their answers as they are: those of a query (None: all), of some ids (None: all)."""
        texts = None
        if ids is not None and query is not None:
            keys, values = self._column(query, ids.type)
            found = pc.is_in(values, value_set=ids).to_pylist()
            texts = frozenset(key.text for key, yes in zip(keys, found, strict=True) if yes)
            if not texts:
                return
        self._add(query, None, texts)

    def restart(self) -> None:
        """Begin a new log, of another stream or after a loss: all listeners begin with their answers."""
        self.epoch, self.number, self._size = secrets.token_hex(4), 0, 0
        self._entries.clear()
        with self._lock:
            self._followed = {key: one for key, one in self._followed.items() if one.listeners}
            self._values = {}
            for one in self._followed.values():
                one.since = 0

    def _add(self, query: str | None, rows: Any, texts: frozenset[str] | None) -> None:
        self.number += 1
        self._entries.append(_Entry(self.number, query, rows, texts))
        self._size += 200 if rows is None else rows.nbytes
        while self._size > self.settings.resume and len(self._entries) > 1:
            gone = self._entries.popleft()
            self._size -= 200 if gone.rows is None else gone.rows.nbytes

    def _forget(self) -> None:
        """Keep nothing more of subscribers that nobody has followed for long."""
        with self._lock:
            since, most = time.monotonic() - limits.RESUME, 4 * self.settings.listeners
            gone = [key for key, one in self._followed.items() if not one.listeners and one.left < since]
            if len(self._followed) - len(gone) > most:
                idle = [key for key, one in self._followed.items() if not one.listeners]
                gone = sorted(idle, key=lambda key: self._followed[key].left)[: len(self._followed) - most]
            for key in gone:
                del self._followed[key]
                self._values.pop(key.query, None)

    def _keys(self) -> list[Key]:
        with self._lock:
            return list(self._followed)

    def _column(self, query: str, type_: Any) -> tuple[list[Key], Any]:
        """The subscribers of a query that are followed, and their ids as a column."""
        with self._lock:
            known = self._values.get(query)
            if known is None or known[1].type != type_:
                mine = {key: one.value for key, one in self._followed.items() if key.query == query}
                mine = {key: value for key, value in mine.items() if value.type == type_}
                column = pa.concat_arrays(list(mine.values())) if mine else pa.array([], type_)
                known = self._values[query] = (list(mine), column)
            return known

    # --- a turn

    def turn(self, board: Any) -> None:
        """Give every listener that waits what there is for it."""
        begin = time.monotonic()
        with self._lock:
            waiting = [one for one in self._listeners if one.ready]
        waiting = [one for one in waiting if (one.epoch, one.at) != (self.epoch, self.number)]
        if waiting:
            oldest = self._entries[0].number - 1 if self._entries else self.number
            anew = {one for one in waiting if one.epoch != self.epoch or one.at < oldest}
            for one in anew:
                if one.epoch == self.epoch:  # it was connected all the while
                    one.why = "this listener was too slow: changes were dropped. This is the whole answer."
            until, rows = self._gathered([one for one in waiting if one not in anew], anew)
            woken = [one for one in anew if one.offer(self._whole(board, one), self.epoch, self.number)]
            for one in waiting:
                if one not in anew:
                    piece = _changes(rows.get(one.key, []), one.at, f"{self.epoch}-{until}")
                    if one.offer(piece, self.epoch, until):
                        woken.append(one)
            _wake(woken)
        self.due = begin + max(1 / limits.RATE, _SHARE * (time.monotonic() - begin))

    def _gathered(self, waiting: list[Listener], anew: set[Listener]) -> tuple[int, dict[Key, list[_Row]]]:
        """The rows of listeners up to an entry, by subscriber; those that must begin anew join the others."""
        until, count, found = self.number, 0, _Found()
        if not waiting:
            return until, {}
        first = min(one.at for one in waiting)
        by_query: dict[str, list[Listener]] = {}
        for one in waiting:
            by_query.setdefault(one.key.query, []).append(one)
        for entry in self._entries:
            if entry.number <= first:
                continue
            if entry.rows is None:
                concerned = waiting if entry.query is None else by_query.get(entry.query, [])
                for one in concerned:
                    if one.at < entry.number and (entry.texts is None or one.key.text in entry.texts):
                        anew.add(one)
            elif entry.query in by_query:
                keys, values = self._column(entry.query, entry.rows.column("subscriber").type)
                count += found.add(entry, keys, values, {one.key for one in by_query[entry.query]})
                if count >= limits.DELIVERED:
                    until = entry.number
                    break
        return until, found.by_key()

    def _whole(self, board: Any, listener: Listener) -> bytes:
        """The events with which a listener begins: the answer as it is, or that there is no such subscriber."""
        place, why = f"{self.epoch}-{self.number}", listener.why
        reset = b"" if why is None else b"event: reset\ndata: " + encoded({"why": why}) + b"\n\n"
        listener.why = None
        try:
            value = board.subscribed.find(*listener.key) if isinstance(board, MonitorBoard) else None
            if value is None:
                return reset + _event("gone", place, {})
            self._follow(listener.key, value)
            answer = board.monitor.answer(listener.key.query, subscriber=value[0].as_py())
            return reset + _event("answer", place, answer_of(answer, limits.API_ROWS))
        except SkybandError as error:
            return reset + _event("failed", place, {"why": text_of(error)})

    def _follow(self, key: Key, value: Any) -> None:
        """Note the id of a subscriber, which may have another type in another stream."""
        with self._lock:
            followed = self._followed.get(key)
            if followed is not None and not followed.value.equals(value):
                followed.value = value
                self._values.pop(key.query, None)


class _Found:
    """Rows of several entries, with the subscriber of each."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, list[Key], Any]] = []

    def add(self, entry: _Entry, keys: list[Key], values: Any, wanted: set[Key]) -> int:
        """Take the rows of an entry that somebody waits for; returns how many."""
        place = pc.index_in(entry.rows.column("subscriber"), value_set=values).fill_null(-1).to_numpy()
        waits = np.array([*(key in wanted for key in keys), False])
        mine = np.flatnonzero(waits[place])
        if len(mine):
            self._parts.append((entry.number, [keys[i] for i in place[mine]], entry.rows.take(pa.array(mine))))
        return len(mine)

    def by_key(self) -> dict[Key, list[_Row]]:
        found: dict[Key, list[_Row]] = {}
        for number, keys, table in self._parts:
            names = table.column_names
            rows = zip(*(listed(column) for column in table.columns), strict=True)
            for key, row in zip(keys, rows, strict=True):
                found.setdefault(key, []).append((number, dict(zip(names, row, strict=True))))
        return found


def _changes(rows: list[_Row], after: int, place: str) -> bytes:
    """The event of a subscriber's changes behind a place; nothing if there are none."""
    shown = [row for number, row in rows if number > after]
    return _event("changes", place, shown) if shown else b""


def _event(name: str, place: str, data: Any) -> bytes:
    return f"event: {name}\nid: {place}\ndata: ".encode() + encoded(data) + b"\n\n"


def _wake(listeners: Iterable[Listener]) -> None:
    """Wake listeners, in one call of their event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[Listener]] = {}
    for one in listeners:
        loops.setdefault(one.loop, []).append(one)
    for loop, mine in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_set, mine)


def _set(listeners: list[Listener]) -> None:
    for one in listeners:
        one.fresh.set()
