"""The words of expressions: keywords, functions, and what messages say about the others."""

from __future__ import annotations

from skyband.errors import QueryError

CONSTANTS = {"null", "true", "false"}
WORDS = {"and", "or", "not", "is", "in", "between", "like", "case", "when", "then", "else", "end"} | CONSTANTS

_NUMBERS = ("abs", "sqrt", "power", "pow", "exp", "ln", "least", "greatest", "coalesce")  # sqlglot's own, as typed

#: Our own calls: name -> operation, fewest and most arguments.
CALLS: dict[str, tuple[str, int, int]] = {
    "floor": ("floor", 1, 1),
    "ceil": ("ceil", 1, 1),
    "ceiling": ("ceil", 1, 1),
    "round": ("round", 1, 2),
    "cast": ("cast", 2, 2),
    "try_cast": ("cast", 2, 2),
    "length": ("length", 1, 1),
    "char_length": ("length", 1, 1),
    "upper": ("upper", 1, 1),
    "lower": ("lower", 1, 1),
    "trim": ("trim", 1, 1),
    "ltrim": ("ltrim", 1, 1),
    "rtrim": ("rtrim", 1, 1),
    "substring": ("substring", 2, 3),
    "substr": ("substring", 2, 3),
    "concat": ("concat", 1, 1000),
    "datediff": ("datediff", 2, 3),
    "date_diff": ("datediff", 2, 3),
    "timestampdiff": ("timestampdiff", 3, 3),
    "extract": ("extract", 2, 2),
    "date": ("date", 1, 1),
    "timestamp": ("timestamp", 1, 1),
}
PARTS: tuple[str, ...] = ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear")
PARTS += ("hour", "minute", "second")
CALLS |= {name: (name, 1, 1) for name in PARTS} | {"dayofmonth": ("day", 1, 1)}

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
CASTS = {"double": "double", "bigint": "bigint", "long": "bigint", "int": "int", "integer": "int", "string": "string"}

FUNCTIONS = (*_NUMBERS, *CALLS)

_CLOCK = ("now", "current_date", "current_timestamp", "localtimestamp", "curdate", "unix_timestamp")
REFUSED = {"select", "distinct", "ilike", "rlike", "regexp", *_CLOCK[1:4]}  # columns only in backticks

ALLOWED = (
    "Allowed: + - * / % ||, = <> < <= > >=, and, or, not, between, in, like, is null, case, numbers, 'strings', "
    "date '2013-01-01', timestamp '2013-01-01 06:30:00', true, false, null, abs, sqrt, power, exp, ln, least, "
    "greatest, coalesce, floor, ceil, round, cast, length, upper, lower, trim, substring, concat, year, quarter, "
    "month, day, dayofweek, hour, minute, second, extract, datediff, timestampdiff."
)
INSTEAD = {
    "log": "ln(x)",
    "min": "least(x, y)",
    "max": "greatest(x, y)",
    "mod": "x % y",
    "div": "floor(x / y)",
    "if": "case when c then x else y end",
    "iff": "case when c then x else y end",
    "ifnull": "coalesce(x, y)",
    "nvl": "coalesce(x, y)",
    "isnull": "x is null",
    "isnotnull": "x is not null",
    "square": "power(x, 2)",
    "ilike": "lower(x) like 'a%'",
    "len": "length(x)",
    "::": "cast(x as double)",
    "distinct": "x <> y, with `is null` where nulls count",
    **dict.fromkeys(("topk", "topkdistinct", "arg_max", "max_by"), "ORDER BY x DESC LIMIT 3 PER g"),
    "date_part": "extract(year from x)",
    "to_date": "date '2013-01-01', or cast(x as date) of a timestamp",
    **{name: f"sb.TopKGroups, which ranks groups of rows by {name}(x)" for name in ("sum", "avg", "first", "last")},
    "count": "sb.TopKGroups, which ranks groups of rows by count(*)",
}
CLOCKS = dict.fromkeys(
    _CLOCK,
    ": an answer follows from the rows and their times, not from when it is computed. A window such as "
    'Last("24 hours") says what is recent',
)


def require_text(what: str, text: str) -> None:
    """Refuse half characters (lone surrogates), which no column, file or snapshot can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"{what}: {text[:100]!r} has half a character at place {error.start}, which UTF-8 cannot hold. Rename it."
        ) from None


def shown(text: str) -> str:
    """A text in messages."""
    return f'"{text}"' if len(text) <= 120 else f'"{text[:117]}..."'


def broken(text: str, at: int) -> QueryError:
    why = "this is no expression: an operand, argument or bracket is missing, or one too many, at the mark."
    return QueryError(f"{shown(text)}: {why}", text, at)
