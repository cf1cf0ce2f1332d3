"""Functions of one row, in plain Python: rounding, casts, strings, and times of the calendar and the wall clock.

What Spark's ANSI mode calls an error is null. Numbers are floats here, so of casts to string only those of strings,
booleans and times are known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from sqlglot import exp

from skyband.errors import QueryError

Value = Any
_EVERY_DIGIT = Context(prec=1200)


def called(node: Any, value: Callable[[Any], Value]) -> Value:
    """The value of a function; null where an argument is."""
    match node:
        case exp.Cast() | exp.TryCast():
            return _cast(node, value(node.this))
        case exp.Like():
            found = _like(value(node.this), node.expression.this, "\\")
            return None if found is None else found != bool(node.args.get("negate"))
        case exp.Escape():
            found = _like(value(node.this.this), node.this.expression.this, node.expression.this)
            return None if found is None else found != bool(node.this.args.get("negate"))
        case exp.Concat() | exp.DPipe():
            parts = [value(one) for one in node.expressions or [node.this, node.expression]]
            return None if None in parts else "".join(parts)
        case exp.DateDiff() if not node.args.get("unit"):
            return _both(
                value(node.this.this), value(node.expression.this), lambda a, b: float((_day(a) - _day(b)).days)
            )
        case exp.DateDiff():
            start, end, unit = node.expression.this, node.this.this, node.args["unit"].name.lower()
            return _both(value(start), value(end), lambda a, b: _difference(unit, a, b))
        case exp.TimestampDiff():
            unit = node.args["unit"].name.lower()
            return _both(value(node.expression), value(node.this), lambda a, b: _difference(unit, a, b))
        case exp.Extract():
            part = {"dow": "dayofweek", "doy": "dayofyear", "week": "weekofyear"}.get(
                node.name.lower(), node.name.lower()
            )
            return _part("exact second" if part == "second" else part, value(node.expression))
        case exp.Anonymous() if node.this.lower() == "weekday":
            return _part("weekday", value(node.expressions[0]))
    name = type(node).__name__.lower()
    inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
    if name in _PARTS:
        return _part(name, value(inner))
    arguments = [inner, *(node.args[key] for key in ("start", "length", "decimals") if node.args.get(key) is not None)]
    if name not in _PLAIN:
        raise QueryError(f"{node.sql()}: the oracle does not know {type(node).__name__}.")
    values = [value(one) for one in arguments]
    side = str(node.args.get("position") or "") if name == "trim" else None
    return None if None in values else _PLAIN[name](*values, *([side] if side is not None else []))


# --- numbers and strings


def _whole(function: Callable[[float], int]) -> Callable[[float], float | None]:
    def over(x: float) -> float | None:
        if math.isnan(x):
            return 0.0  # as in Spark
        return float(function(x)) if math.isfinite(x) and -(2**63) <= function(x) < 2**63 else None

    return over


def _round(x: float, digits: float = 0.0) -> float:
    if not math.isfinite(x):
        return x
    return float(Decimal(repr(x)).quantize(Decimal(f"1e{-int(digits)}"), ROUND_HALF_UP, _EVERY_DIGIT)) + 0.0


def _substring(text: str, start: float, count: float | None = None) -> str:
    """Characters are numbered from 1, or from -1 at the end; 0 is 1."""
    first = int(start) - 1 if start > 0 else len(text) + int(start) if start < 0 else 0
    wanted = range(first, first + int(count)) if count is not None else range(first, len(text))
    return "".join(text[place] for place in range(len(text)) if place in wanted)


def _trim(text: str, side: str) -> str:
    return {"LEADING": text.lstrip(" "), "TRAILING": text.rstrip(" ")}.get(side, text.strip(" "))


def _like(text: str | None, pattern: str, escape: str) -> bool | None:
    if text is None:
        return None
    made, at = "", 0
    while at < len(pattern):
        quoted = pattern[at] == escape
        at += quoted
        made += re.escape(pattern[at]) if quoted else {"%": ".*", "_": "."}.get(pattern[at], re.escape(pattern[at]))
        at += 1
    return re.fullmatch(made, text, re.DOTALL) is not None


_PLAIN: dict[str, Callable[..., Value]] = {
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _round,
    "length": lambda text: float(len(text)),
    "upper": str.upper,
    "lower": str.lower,
    "trim": _trim,
    "substring": _substring,
}


# --- casts


def _cast(node: Any, x: Value) -> Value:
    to = node.to.sql("spark").lower()
    if x is None:
        return None
    if to in ("date", "timestamp"):
        return _day(x) if to == "date" and not isinstance(x, str) else _moment(x, to)
    if to == "double":
        return _number(x)
    if to in ("bigint", "int"):
        most = 2**63 if to == "bigint" else 2**31
        if isinstance(x, str):
            found = re.fullmatch(r"[+-]?[0-9]+", x.strip("".join(map(chr, range(33))) + "\x7f"))
            return float(int(found[0])) if found and -most <= int(found[0]) < most else None
        number = _number(x)
        if number is None or not math.isfinite(number):
            return None
        whole = math.floor(number) if isinstance(x, datetime) else math.trunc(number)
        return float(whole) if -most <= whole < most or number == 2.0**63 == most else None
    if to == "string" and not isinstance(x, float):
        return x if isinstance(x, str) else str(x).lower() if isinstance(x, bool) else _text(x)
    raise QueryError(f"{node.sql()}: the oracle does not know this cast.")


def _number(x: Value) -> float | None:
    if isinstance(x, datetime):
        return ((x if x.tzinfo else x.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)
    if not isinstance(x, str):
        return float(x)
    text = x.strip("".join(map(chr, range(33))) + "\x7f").lower()
    if text.lstrip("+-") in ("inf", "infinity") and len(text) - len(text.lstrip("+-")) < 2:
        return float(text)
    if text == "nan":
        return math.nan
    return (
        float(text.rstrip("df")) if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?[df]?", text) else None
    )


def _text(x: date) -> str:
    if not isinstance(x, datetime):
        return x.isoformat()
    shown = x.replace(tzinfo=None).isoformat(" ", "microseconds")
    return shown.rstrip("0").rstrip(".")


def _moment(text: str, to: str) -> date:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment.date() if to == "date" else moment


# --- times


def comparable(x: date, y: date) -> tuple[datetime, datetime]:
    """Two times as instants, if one of them has a zone, else by the wall clock."""
    a, b = (z if isinstance(z, datetime) else datetime(z.year, z.month, z.day) for z in (x, y))
    if a.tzinfo is None and b.tzinfo is None:
        return a, b
    zone = a.tzinfo or b.tzinfo
    one, other = (z if z.tzinfo else z.replace(tzinfo=zone) for z in (a, b))
    return one.astimezone(UTC), other.astimezone(UTC)


def _both(a: Value, b: Value, function: Callable[[Value, Value], Value]) -> Value:
    return None if a is None or b is None else function(a, b)


def _day(x: date) -> date:
    return x.date() if isinstance(x, datetime) else x


_PARTS: dict[str, Callable[[datetime], float]] = {
    "year": lambda x: x.year,
    "quarter": lambda x: (x.month + 2) // 3,
    "month": lambda x: x.month,
    "day": lambda x: x.day,
    "dayofmonth": lambda x: x.day,
    "dayofweek": lambda x: x.isoweekday() % 7 + 1,
    "weekday": lambda x: x.weekday(),
    "dayofyear": lambda x: x.timetuple().tm_yday,
    "weekofyear": lambda x: x.isocalendar().week,
    "hour": lambda x: x.hour,
    "minute": lambda x: x.minute,
    "second": lambda x: x.second,
    "exact second": lambda x: (x.second * 10**6 + x.microsecond) / 10**6,
}


def _part(name: str, x: Value) -> float | None:
    if x is None:
        return None
    return float(_PARTS[name](x if isinstance(x, datetime) else datetime(x.year, x.month, x.day)))


_LONG = {"week": 7 * 86400, "day": 86400, "hour": 3600, "minute": 60, "second": 1}


def _difference(unit: str, start: date, end: date) -> float:
    """Whole units between the wall clocks of two times, in the zone that one of them has."""
    zone = getattr(start, "tzinfo", None) or getattr(end, "tzinfo", None)
    a, b = comparable(start, end)
    if zone is not None:
        a, b = (z.astimezone(zone).replace(tzinfo=None) for z in (a, b))
    if unit in ("month", "quarter", "year"):
        months = (b.year - a.year) * 12 + b.month - a.month
        rest = (b.day, b.time()), (a.day, a.time())
        months += -1 if months > 0 and rest[0] < rest[1] else 1 if months < 0 and rest[0] > rest[1] else 0
        return float(math.trunc(Decimal(months) / {"month": 1, "quarter": 3, "year": 12}[unit]))
    length = timedelta(microseconds={"microsecond": 1, "millisecond": 1000}.get(unit, _LONG.get(unit, 0) * 10**6))
    return float((b - a) // length if b >= a else -((a - b) // length))
