"""Windows: values that say how long an object is valid.

Last(1000)            the 1000 most recent arrivals
Last("10 minutes")    times in the last 10 minutes; also a timedelta (NumPy's too), "24 hours", "500 ms"
Last(span=300)        the last 300 units of an integer time column
Last(Each("n"))       as long as each subscription says
Session("30 minutes") until its group has been silent for that long; Session(span=300) for an integer time column
UntilDeleted()        until an explicit deletion
Ever()                without end: what has arrived stays valid
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from skyband.errors import QueryError
from skyband.query.each import Each, Need, from_stored

#: The sorts of window. "ever" is one of time where rows have a time, else it counts arrivals (`Options.timed`).
Sort = Literal["count", "time", "ever", "until deleted"]

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "w": 7 * 86400 * 10**9,
}
_SPELLINGS = {
    "ns": ("ns", "nanosecond", "nanoseconds"),
    "us": ("us", "µs", "microsecond", "microseconds"),
    "ms": ("ms", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "min": ("min", "mins", "minute", "minutes"),
    "h": ("h", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
}
_NANOSECONDS = {word: _UNITS[unit] for unit, words in _SPELLINGS.items() for word in words}
_WORDS = {"w": "week", "d": "day", "h": "hour", "min": "minute", "s": "second"}
_LONGEST = 2**62  # times and spans stay below this, so that time + span cannot overflow


@dataclass(frozen=True, init=False, repr=False)
class Last:
    """The most recent arrivals (a number), or the most recent time (a duration, or `span=`).

    Parameters
    ----------
    size : int, str, datetime.timedelta or numpy.timedelta64, optional
        A number of arrivals, or a duration of a timestamp column: "10 minutes", "24 hours", "500 ms", a timedelta.
        `Each("column")`: as long as each subscription says, by numbers (of arrivals) or durations, one kind per query.
    span : int, optional
        A number of units of an integer time column, in place of `size`; also `Each("column")`.

    Examples
    --------
    >>> Last("10 minutes") == Last("600 s")
    True
    >>> Last(1000)
    Last(1000)

    """

    count: int | None
    nanoseconds: int | None
    span: int | None
    each: Each | None  # the size that each subscription brings: all others are None
    spans: bool  # whether that is a span

    def __init__(
        self, size: int | str | timedelta | np.timedelta64 | Each | None = None, *, span: int | Each | None = None
    ) -> None:
        if (size is None) == (span is None):
            raise QueryError(
                'Last() takes one size: Last(1000) arrivals, Last("10 minutes"), '
                "or Last(span=300) for an integer time column."
            )
        count = nanoseconds = None
        each = next((one for one in (size, span) if isinstance(one, Each)), None)
        object.__setattr__(self, "each", each)
        object.__setattr__(self, "spans", each is not None and each is span)
        if each is not None or isinstance(span, Each):
            span = None
        elif span is not None:
            span = _whole(span, "Last(span=...)", "a number of units of an integer time column, such as span=300")
        elif isinstance(size, str | timedelta | np.timedelta64):
            nanoseconds = nanoseconds_of(size)
        else:
            count = _whole(size, "Last(...)", 'a number of arrivals (Last(1000)) or a duration (Last("10 minutes"))')
        if max(count or 0, nanoseconds or 0, span or 0) >= _LONGEST:
            raise QueryError(f"Last({size if span is None else span}): the window is too large; stay below 2^62.")
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "nanoseconds", nanoseconds)
        object.__setattr__(self, "span", span)

    @property
    def timed(self) -> bool:
        """Whether it is a time window; else it counts arrivals, or subscriptions will say."""
        return self.count is None and (self.each is None or self.spans)

    @property
    def sort(self) -> Sort:
        """The sort of window it is."""
        return "time" if self.timed else "count"

    def length(self, unit: int | None) -> int:
        """Return its length in arrivals, or in units of a time column of `unit` nanoseconds (None: integers)."""
        if self.count is not None:
            return self.count
        if unit is None:
            if self.span is None:
                raise QueryError(
                    f"{self!r} is a duration, but the time column holds integers, which have no unit. "
                    "Use Last(span=...) in the column's own units, or make the column a timestamp."
                )
            return self.span
        if self.nanoseconds is None:
            raise QueryError(
                f"{self!r} is a bare number, but the time column is a timestamp or a date. "
                'Use a duration, such as Last("10 minutes").'
            )
        length, rest = divmod(self.nanoseconds, unit)
        if rest:
            raise QueryError(
                f"{self!r} cannot be expressed in the time column's unit ({_spell(unit)}). "
                "Use a multiple of it, or a time column with a finer unit."
            )
        return length

    def __repr__(self) -> str:
        if self.each is not None:
            return f"Last({'span=' if self.spans else ''}{self.each!r})"
        if self.span is not None:
            return f"Last(span={self.span})"
        return f"Last({self.count})" if self.nanoseconds is None else f"Last({_spell(self.nanoseconds)!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        if self.each is not None:
            return {"span" if self.spans else "last": self.each.to_dict()}
        if self.span is not None:
            return {"span": self.span}
        return {"last": self.count if self.nanoseconds is None else _spell(self.nanoseconds)}


@dataclass(frozen=True, init=False, repr=False)
class Session:
    """The objects of a group since it was last silent for the gap; then all leave at once.

    A session ends at the last time of its group + gap; a row at or after that instant begins another. A late row that
    belongs to a session that has ended is too late.

    Parameters
    ----------
    gap : str, datetime.timedelta, numpy.timedelta64 or Each, optional
        How long a group is silent before its session ends, of a timestamp column: "30 minutes", a timedelta.
    span : int or Each, optional
        The same in units of an integer time column, in place of `gap`.

    Examples
    --------
    >>> Session("30 minutes").to_dict()
    {'session': '30 minutes'}

    """

    silence: Last

    def __init__(
        self, gap: str | timedelta | np.timedelta64 | Each | None = None, *, span: int | Each | None = None
    ) -> None:
        if (gap is None) == (span is None):
            raise QueryError(
                'Session() takes one gap: Session("30 minutes"), or Session(span=300) for an integer time column.'
            )
        try:
            silence = Last(gap, span=span)
        except QueryError as error:
            raise QueryError(f"Session: {error}") from None
        if not silence.timed and silence.each is None:
            raise QueryError(
                f'Session({gap!r}): a session ends by silence, a duration such as "30 minutes", or span=300 for an '
                "integer time column."
            )
        object.__setattr__(self, "silence", silence)

    @property
    def timed(self) -> bool:
        """Whether it is a time window: always."""
        return True

    @property
    def sort(self) -> Sort:
        """The sort of window it is."""
        return "time"

    @property
    def count(self) -> None:
        """It counts no arrivals."""

    @property
    def nanoseconds(self) -> int | None:
        """The gap, of a timestamp column."""
        return self.silence.nanoseconds

    @property
    def span(self) -> int | None:
        """The gap, of an integer time column."""
        return self.silence.span

    def gap(self, unit: int | None) -> int:
        """Return the gap in units of a time column of `unit` nanoseconds (None: integers)."""
        return self.silence.length(unit)

    def length(self, unit: int | None) -> int:
        """Return how long a row can matter after its session's last time: until no late row can be of its session."""
        return 2 * self.gap(unit)

    def __repr__(self) -> str:
        return repr(self.silence).replace("Last", "Session", 1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        stored = self.silence.to_dict()
        return {"session": stored["last"]} if "last" in stored else {"session_span": stored["span"]}


@dataclass(frozen=True)
class UntilDeleted:
    """The window of objects that stay valid until `Monitor.delete` names their id, or a row with it replaces them.

    Examples
    --------
    >>> UntilDeleted().to_dict()
    {'until': 'deleted'}

    """

    @property
    def timed(self) -> bool:
        """Whether it is a time window: never."""
        return False

    @property
    def sort(self) -> Sort:
        """The sort of window it is."""
        return "until deleted"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {"until": "deleted"}


@dataclass(frozen=True)
class Ever:
    """The window without end (landmark): what has arrived stays valid.

    Where the Monitor names a `time` column it is a time window that never ends: ties go to the later time, a late row
    is never too late, and `late="drop"` drops it. Elsewhere it is a count window that never ends.

    Examples
    --------
    >>> Ever().to_dict()
    {'ever': True}

    """

    @property
    def sort(self) -> Sort:
        """The sort of window it is."""
        return "ever"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {"ever": True}


Window = Last | Session | UntilDeleted | Ever


def size_of(window: Window) -> Need | None:
    """The column of a table of subscriptions that has the window's size; None: it says it itself."""
    last = window.silence if isinstance(window, Session) else window
    if not isinstance(last, Last) or last.each is None:
        return None
    return Need(last.each.column, "span" if last.spans else "size", "window")


def bind_window(window: Window, values: Mapping[str, Any]) -> Window:
    """The window of a subscription with these values."""
    need = size_of(window)
    if need is None:
        return window
    size, made = values[need.column], Session if isinstance(window, Session) else Last
    return made(span=size) if need.role == "span" else made(size)


def window_from_dict(data: Mapping[str, Any]) -> Window:
    """Make a window from what its `to_dict` returned."""
    match dict(data):
        case {"last": size, **rest} if not rest:
            return Last(from_stored(size))
        case {"span": span, **rest} if not rest:
            return Last(span=from_stored(span))
        case {"session": gap, **rest} if not rest:
            return Session(from_stored(gap))
        case {"session_span": span, **rest} if not rest:
            return Session(span=from_stored(span))
        case {"until": "deleted", **rest} if not rest:
            return UntilDeleted()
        case {"ever": True, **rest} if not rest:
            return Ever()
    raise QueryError(
        f"{dict(data)!r} is not a window. Use {{'last': 1000}}, {{'last': '10 minutes'}}, "
        "{'span': 300}, {'until': 'deleted'} or {'ever': True}."
    )


def nanoseconds_of(size: str | timedelta | np.timedelta64) -> int:
    """A duration in nanoseconds, at least one."""
    nanoseconds = _duration(size) if isinstance(size, str) else _nanoseconds(size)
    if nanoseconds <= 0:
        raise QueryError(f"Last({size!r}): a window must be longer than nothing, such as timedelta(minutes=10).")
    return nanoseconds


def _nanoseconds(duration: timedelta | np.timedelta64) -> int:
    if isinstance(duration, timedelta):
        return (duration.days * 86400 + duration.seconds) * 10**9 + duration.microseconds * 1000
    unit, number = np.datetime_data(duration)
    if unit not in _NUMPY_UNITS or np.isnat(duration):
        raise QueryError(
            f'Last({duration!r}): a window is a duration in {", ".join(_NUMPY_UNITS)}, such as np.timedelta64(10, "m").'
        )
    return int(duration.astype(np.int64)) * number * _UNITS[_NUMPY_UNITS[unit]]


_NUMPY_UNITS = {"W": "w", "D": "d", "h": "h", "m": "min", "s": "s", "ms": "ms", "us": "us", "ns": "ns"}


def _whole(number: object, what: str, instead: str) -> int:
    if isinstance(number, bool | np.timedelta64):
        raise QueryError(f"{what} got {number!r}. Give {instead}.")
    try:
        whole = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise QueryError(f"{what} got {number!r}, which is not a whole number. Give {instead}.") from None
    if whole < 1:
        raise QueryError(f"{what} got {whole}, but a window holds at least 1. Give {instead}.")
    return whole


def _duration(text: str) -> int:
    match = re.fullmatch(r"\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-zµ]+)\s*", text.lower())
    unit = _NANOSECONDS.get(match[2]) if match else None
    if match is None or unit is None:
        raise QueryError(
            f'Last({text!r}) is not a duration. Write a number and a unit, such as "10 minutes", "24 hours", "500 ms"; '
            f"units: {', '.join(words[-1] for words in _SPELLINGS.values())}."
        )
    nanoseconds = Fraction(match[1]) * unit
    if nanoseconds.denominator != 1:
        raise QueryError(f"Last({text!r}) is finer than a nanosecond. Use whole nanoseconds.")
    if nanoseconds < 1:
        raise QueryError(f'Last({text!r}): a window must be longer than nothing, such as "10 minutes".')
    return int(nanoseconds)


def _spell(nanoseconds: int) -> str:
    for unit in ("w", "d", "h", "min", "s", "ms", "us", "ns"):
        number, rest = divmod(nanoseconds, _UNITS[unit])
        if not rest and (unit != "w" or number > 1) and (unit != "d" or number > 1):
            word = _WORDS.get(unit, unit)
            return f"{number} {word}{'s' if number != 1 and unit in _WORDS else ''}"
    raise AssertionError("every whole number is a number of nanoseconds")
