"""Checks of the arguments of queries: each returns the checked value, or raises a QueryError with a hint."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any

from skyband.errors import QueryError
from skyband.query.each import Each
from skyband.query.expressions import parse, ranges
from skyband.query.expressions.words import require_text
from skyband.query.windows import Ever, UntilDeleted, Window

#: Columns that skyband writes itself; no `per` or `keep` column may take one of these names.
RESERVED = (
    *("query", "subscriber", "at", "time", "id", "id_a", "id_b", "rank", "score", "probability", "diff", "first"),
    *("key_1", "key_2", "..."),
)


#: And these are inside: of questions over answers, and of changes. (Those of rows and pairs have a character 0.)
INSIDE = ("# object", "# id", "# own time", "# at", "# step", "# op", "# time", "# version", "# changes", "# clocks")


def is_reserved(name: object) -> bool:
    """Whether skyband writes a column of this name itself."""
    if not isinstance(name, str):
        return False
    return name in (*RESERVED[:-1], *INSIDE) or re.fullmatch(r"key_[1-9][0-9]*", name) is not None


def each_or_whole_number(kind: str, name: str, number: Any, least: int, example: str) -> Any:
    """A whole number, or the `Each` that subscriptions bring one for."""
    return number if isinstance(number, Each) else whole_number(kind, name, number, least, example)


def whole_number(kind: str, name: str, number: object, least: int, example: str) -> int:
    try:
        if isinstance(number, bool):
            raise TypeError
        whole = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        why = "cannot be an Each in this version: it" if isinstance(number, Each) else ""
        raise QueryError(
            f"{kind}({name}={number!r}): {name} {why + ' ' if why else ''}must be a whole number. "
            f"Did you mean {name}={example}?"
        ) from None
    if whole < least or whole >= 2**31:
        every = " For every object: sb.Above(-inf, ...)." if (kind, name) == ("TopK", "k") and whole > least else ""
        wrong = f"{kind}({name}={whole}): {name} must be at least {least} and below 2^31."
        raise QueryError(f"{wrong} Did you mean {name}={example}?{every}")
    return whole


def number_between(what: str, number: object, low: float, high: float, example: str) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not low < number < min(high, 1e308):
        raise QueryError(f"{what} must be a number above {low} and below {high}, such as {example}; got {number!r}.")
    return float(number)


def each_or_number(kind: str, number: Any) -> Any:
    """A number, or the `Each` that subscriptions bring one for."""
    return number if isinstance(number, Each) else any_number(kind, number)


def any_number(kind: str, number: object) -> float:
    try:
        if not isinstance(number, bool) and isinstance(number, int | float) and not math.isnan(number):
            return float(number)
    except OverflowError:
        raise QueryError(f"{kind}: threshold must be within the range of float64; got a larger integer.") from None
    raise QueryError(f"{kind}: threshold must be a number; got {number!r}.")


def column_names(what: str, names: object, *, inside: bool = False) -> tuple[Named, ...]:
    """Columns, each under its own name (a string) or another one: a pair of the output's name and the column.

    inside: of a loop over answers, whose own columns are among them.
    """
    given = () if names is None else (names,) if isinstance(names, str) else names
    if isinstance(given, Mapping):
        given = given.items()
    listed = tuple(map(_named, given)) if isinstance(given, Iterable) else (given,)
    for named in listed:
        if isinstance(named, tuple) and len(named) != 2:
            raise QueryError(f"{what}: {named!r} is no column: give its name, or a pair of the output's name and it.")
        for each in named if isinstance(named, tuple) else (named,):
            if not isinstance(each, str) or not each:
                raise QueryError(f"{what} names columns by non-empty strings; got {each!r}.")
            require_text(what, each)
            if "\0" in each:
                raise QueryError(f"{what}: {each!r} has a character 0, and names have none. Rename the column.")
    shown = [output_name(name) for name in listed]
    for name, named in zip(shown, listed, strict=True):
        if is_reserved(name) and not (inside and name in INSIDE):
            raise QueryError(
                f"{what}: {name!r} is a column that skyband writes itself ({', '.join(RESERVED)}). "
                f'Rename it here, as in {{"my_{name}": {input_name(named)!r}}}.'
            )
        if shown.count(name) > 1:
            raise QueryError(f"{what} names {name!r} twice. Name each column once.")
    return listed


Named = str | tuple[str, str]  # a column, or the output's name and the column


def _named(name: object) -> Any:
    """A pair of equal names is one name."""
    if isinstance(name, tuple | list) and len(name) == 2:
        same = isinstance(name[0], str) and isinstance(name[1], str) and name[0] == name[1]
        return name[0] if same else tuple(name)
    return name


def output_name(name: Any) -> str:
    """The name of a column in changes and answers."""
    return str(name[0]) if isinstance(name, tuple) else str(name)


def input_name(name: Any) -> str:
    """The name of a column in batches."""
    return str(name[1]) if isinstance(name, tuple) else str(name)


def as_stored(names: Iterable[Named]) -> Any:
    """Columns as plain data: a list of names, or a mapping of the output's names."""
    listed = list(names)
    if all(isinstance(name, str) for name in listed):
        return listed
    return {output_name(name): input_name(name) for name in listed}


def direction(kind: str, largest: object) -> None:
    if largest is not None and not isinstance(largest, bool):
        raise QueryError(f"{kind}: largest is True, False or None (largest is best, but for Nearest); got {largest!r}.")


def directions(kind: str, largest: object, by: object) -> Any:
    """One direction for all keys, or a tuple with one for each."""
    if not isinstance(largest, tuple | list):
        direction(kind, largest)
        return largest
    keys = len(by) if isinstance(by, tuple) else 1
    if len(largest) != keys or not all(isinstance(one, bool) for one in largest):
        raise QueryError(
            f"{kind}: largest is one bool, or one for each key of `by`; got {largest!r} for {keys} "
            f"key{'s' if keys != 1 else ''}."
        )
    return (tuple(largest) or None) if isinstance(by, tuple) else largest[0]


def order_options(query: Any) -> None:
    """Check what an order says besides its keys: where nulls and ties go, and which ranks are the answer."""
    one_of(query.kind, "nulls", query.nulls, ("reject", "first", "last"))
    one_of(query.kind, "ties", query.ties, ("newest", "oldest"))
    one_of(query.kind, "with_ties", query.with_ties, (True, False))
    query._set("offset", each_or_whole_number(query.kind, "offset", query.offset, 0, "10"))
    if query.offset and query.with_ties:
        raise QueryError(
            f"{query.kind}(offset={query.offset}, with_ties=True): the ranks of ties have gaps, so no object need "
            "have the first rank after the offset. Use one of the two."
        )


def is_word(value: object, words: Iterable[str]) -> bool:
    """Whether a value is one of these words; an array is none."""
    return isinstance(value, str) and value in words


def one_of(kind: str, name: str, value: object, allowed: tuple[Any, ...]) -> None:
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        raise QueryError(f"{kind}: {name} is {' or '.join(map(repr, allowed))}; got {value!r}.")


def source_window(kind: str, source: object, window: Any, by: object) -> Any:
    """The window of a query, which a query over answers need not name."""
    if source is None:
        return window
    if not isinstance(source, str) or not source:
        raise QueryError(f"{kind}: source names another query; got {source!r}.")
    if window is not None and not isinstance(window, UntilDeleted):
        raise QueryError(
            f"{kind}(source={source!r}): its objects are valid as long as they are in the answers of {source!r}, not "
            f"by {window!r}. Leave the window out; the source has one."
        )
    if any(map(callable, by if isinstance(by, tuple) else (by,))):
        raise QueryError(
            f"{kind}(source={source!r}): a function could fail after the source has moved on. Rank by columns or an "
            "expression."
        )
    return UntilDeleted()


def condition(kind: str, where: object) -> None:
    if where is None:
        return
    if not isinstance(where, str):
        raise QueryError(f'{kind}: where is a condition in SQL, such as "distance > 500"; got {where!r}.')
    for name, (low, high) in ranges(parse(where))[0].items():
        if low > high:
            raise QueryError(
                f"{kind}: where demands a {name!r} from {low:g} up to {high:g}, so nothing can ever be an answer. "
                "Did you mean `between` the other way round, or `or`?"
            )


def pair_condition(kind: str, on: object) -> None:
    if on is None:
        return
    if not isinstance(on, str):
        raise QueryError(f'{kind}: on is a condition over a. and b., such as "a.symbol <> b.symbol"; got {on!r}.')
    if parse(on, members=("a", "b")).kind not in (None, "boolean"):
        raise QueryError(f"{kind}: on={on!r} is neither true nor false. Compare something, as in a.x < b.x.")


def moving_window(kind: str, window: Window) -> None:
    if isinstance(window, UntilDeleted):
        raise QueryError(
            f"{kind} needs a window that moves on, such as Last(1000). UntilDeleted is for TopK, Above, TopKGroups and "
            "TopKPairs."
        )


def ending_window(kind: str, window: Window) -> None:
    if isinstance(window, Ever):
        raise QueryError(
            f"{kind} compares each object with all that are valid, and over Ever() that is all that ever arrived. "
            "Use a window that ends, such as Last(1000)."
        )


def part_bounds(parts: object) -> tuple[tuple[str, tuple[float, float]], ...]:
    given: Mapping[Any, Any]
    if isinstance(parts, str) and parts == "*":
        given = {"*": (0.0, 1.0)}
    elif isinstance(parts, Mapping):
        given = parts
    elif isinstance(parts, Iterable) and not isinstance(parts, str):
        listed = list(parts)  # a list of names, or what this function returned before
        try:
            given = dict.fromkeys(listed, (0.0, 1.0)) if all(isinstance(p, str) for p in listed) else dict(listed)
        except (TypeError, ValueError):  # neither
            given, listed = {}, []
        if len(given) != len(listed):
            raise QueryError(f"TopKIncomplete: parts names a part twice: {listed!r}.")
    else:
        given = {}
    if not given:
        raise QueryError(
            'TopKIncomplete: parts is a list of names (values in [0, 1]), {"north": (low, high), ...}, or "*"; '
            f"got {parts!r}."
        )
    if "*" in given and len(given) > 1:
        raise QueryError(
            f'TopKIncomplete: parts="*" are all parts, whatever their names, so no other can be named; got {parts!r}. '
            "Name all parts, or none."
        )
    checked = []
    for part, bounds in given.items():
        try:
            low, high = (float(bound) for bound in bounds)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not isinstance(part, str) or not part or not (-math.inf < low < high):
            raise QueryError(
                f"TopKIncomplete: part {part!r} needs a name and bounds (low, high), low < high, with a finite low: "
                f"it is what a part with no valid row counts as. A high may be infinite; got {bounds!r}."
            )
        require_text("TopKIncomplete: parts", part)
        checked.append((part, (low, high)))
    return tuple(checked)
