"""Times in expressions: dates and timestamps to the microsecond, as Spark has them.

A time with a zone is an instant; its parts (hour, day, ...) are those of the wall clock in its zone. A time without one
(a date, a literal, a column of local times) is of the wall clock; beside one with a zone it is read in that zone.
NumPy's speed; a zone other than UTC costs a sort of the seconds, and about 1 µs for each different one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from skyband.errors import BatchError
from skyband.query.expressions.tree import Operand

Array = NDArray[Any]

_EPOCH = datetime(1970, 1, 1)
_UTC = {"UTC", "Etc/UTC", "GMT", "Z", "+00:00"}
_SECOND = 10**6
_DAY = 24 * 60 * 60 * _SECOND


def micros(operand: Operand) -> Array:
    """Microseconds since 1970, of the instant or of the wall clock; null slots hold anything."""
    values = operand.values
    if values.dtype.kind != "M":  # a null literal
        return np.zeros(values.shape, np.int64)
    count = values.astype(np.int64)
    return count * _DAY if np.datetime_data(values.dtype)[0] == "D" else count


def local(operand: Operand) -> Array:
    """The wall clock of each time, in its zone; days stay days."""
    if operand.zone is None:
        return operand.values
    return _moved(operand.values.astype(np.int64), operand.zone, _instant_offset).view("M8[us]")


def aligned(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """Both as they compare: as instants if one of them has a zone."""
    zone = a.zone or b.zone
    return _in(a, zone), _in(b, zone)


def alike(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """Both as values of one column; a null literal is of any type."""
    if a.values.dtype.kind != "M":
        return Operand(np.zeros(a.values.shape, b.values.dtype), a.valid, zone=b.zone), b
    if b.values.dtype.kind != "M":
        return alike(b, a)[::-1]
    return (a, b) if a.values.dtype == b.values.dtype and a.zone == b.zone else aligned(a, b)


def _in(operand: Operand, zone: str | None) -> Operand:
    """Microseconds with this zone."""
    if operand.values.dtype == "M8[us]" and (operand.zone is not None or zone is None):
        return operand if operand.zone == zone else Operand(operand.values, operand.valid, zone=zone)
    values = micros(operand)
    if zone is not None:
        values = _moved(values, zone, _wall_offset)
    return Operand(values.view("M8[us]"), operand.valid, zone=zone)


def _moved(values: Array, zone: str, offset: Callable[[int, tzinfo], float]) -> Array:
    """Microseconds moved by the zone's offset at each of them."""
    if zone in _UTC:
        return values
    rules = _rules(zone)
    seconds, places = np.unique(values // _SECOND, return_inverse=True)
    offsets = np.array([offset(second, rules) for second in seconds.tolist()], np.float64)
    moved: Array = values + (offsets * _SECOND).astype(np.int64)[places.reshape(values.shape)]
    return moved


@lru_cache(maxsize=64)
def _rules(zone: str) -> tzinfo:
    found = re.fullmatch(r"([+-])(\d\d):?(\d\d)", zone)
    if found is not None:
        return timezone((1 if found[1] == "+" else -1) * timedelta(hours=int(found[2]), minutes=int(found[3])))
    try:
        return ZoneInfo(zone)
    except (OSError, ValueError) as error:
        raise BatchError(f"the time zone {zone!r} is not known here: {error}. Push times in UTC.") from None


def _instant_offset(second: int, rules: tzinfo) -> float:
    """The offset of a zone's clock at an instant; beyond year 9999 that of the end."""
    try:
        moment = _EPOCH.replace(tzinfo=UTC) + timedelta(seconds=second)
        return moment.astimezone(rules).utcoffset().total_seconds()  # type: ignore[union-attr]
    except OverflowError:
        return 0.0


def _wall_offset(second: int, rules: tzinfo) -> float:
    """Minus the offset, at a time of the wall clock: the first of two, and what is skipped is as much later."""
    try:
        moment = (_EPOCH + timedelta(seconds=second)).replace(tzinfo=rules)
        return -moment.utcoffset().total_seconds()  # type: ignore[union-attr]
    except OverflowError:
        return 0.0


# --- parts --------------------------------------------------------------------------------------------------


def _of_day(unit: int, count: int) -> Callable[[Array], Array]:
    return lambda us: us // unit % count


def _days(us: Array) -> Array:
    return us // _DAY


def _since(us: Array, unit: str) -> Array:
    """Months or years since 1970."""
    return _days(us).view("M8[D]").astype(f"M8[{unit}]").astype(np.int64)


def _day_in(us: Array, unit: str) -> Array:
    start = _since(us, unit).view(f"M8[{unit}]").astype("M8[D]").astype(np.int64)
    return _days(us) - start + 1


def _week(us: Array) -> Array:
    """ISO's: the week of a year is that of its Thursday."""
    thursday = (_days(us) - _weekday(us) + 3) * _DAY
    return (_day_in(thursday, "Y") - 1) // 7 + 1


def _weekday(us: Array) -> Array:
    """Monday is 0."""
    return (_days(us) + 3) % 7


_PARTS: dict[str, Callable[[Array], Array]] = {
    "year": lambda us: _since(us, "Y") + 1970,
    "quarter": lambda us: _since(us, "M") % 12 // 3 + 1,
    "month": lambda us: _since(us, "M") % 12 + 1,
    "day": lambda us: _day_in(us, "M"),
    "dayofweek": lambda us: (_weekday(us) + 1) % 7 + 1,  # Sunday is 1
    "weekday": _weekday,
    "dayofyear": lambda us: _day_in(us, "Y"),
    "weekofyear": _week,
    "hour": _of_day(3600 * _SECOND, 24),
    "minute": _of_day(60 * _SECOND, 60),
    "second": _of_day(_SECOND, 60),
    "exact second": lambda us: us % (60 * _SECOND) / _SECOND,
}


def part(name: str) -> Callable[[list[Operand]], Operand]:
    """One number of the wall clock or the calendar."""
    find, whole = _PARTS[name], None if name == "exact second" else True
    return lambda args: Operand(find(_wall(args[0])).astype(np.float64), args[0].valid, whole)


def _wall(operand: Operand) -> Array:
    return micros(Operand(local(operand)))


def day(args: list[Operand]) -> Operand:
    """The date of a time, on the wall clock."""
    return Operand(_days(_wall(args[0])).view("M8[D]"), args[0].valid)


# --- differences --------------------------------------------------------------------------------------------


def datediff(args: list[Operand]) -> Operand:
    """Days from the second to the first, by the calendar."""
    end, start = (_days(_wall(arg)) for arg in args)
    return Operand((end - start).astype(np.float64), _both(args), whole=True)


_FIXED = {"microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": 60 * _SECOND, "hour": 3600 * _SECOND}
_FIXED |= {"day": _DAY, "week": 7 * _DAY}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def difference(unit: str, args: list[Operand]) -> Operand:
    """Whole units from the first to the second, towards zero, on the wall clock."""
    start, end = (_wall(one) for one in aligned(*args))
    if unit in _FIXED:
        count = _towards_zero(end - start, _FIXED[unit])
    else:
        count = _towards_zero(_months(start, end), _MONTHS[unit])
    return Operand(count.astype(np.float64), _both(args), whole=True)


def _months(start: Array, end: Array) -> Array:
    """Whole months: one is complete on the same day of the month at the same time of day."""
    months = _since(end, "M") - _since(start, "M")
    rest = (_day_in(end, "M") - _day_in(start, "M")) * _DAY + end % _DAY - start % _DAY
    whole: Array = months - ((months > 0) & (rest < 0)) + ((months < 0) & (rest > 0))
    return whole


def _towards_zero(count: Array, unit: int) -> Array:
    units: Array = np.sign(count) * (np.abs(count) // unit)
    return units


def _both(args: list[Operand]) -> Array | None:
    a, b = (arg.valid for arg in args)
    return b if a is None else a if b is None else a & b
