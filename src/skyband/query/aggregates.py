"""Aggregates of an object's rows, and expressions over them: sum(qty), max(score) - min(score), count(*) > 3.

A text is read once, token by token: each call of an aggregate becomes a pseudo column (#0, #1, ...) in an expression
like any other, which is evaluated over the values of the aggregates. avg(x) is sum(x) / count(*).

>>> found = read(by="sum(qty) / count(*)", having="count(*) > 3")
>>> found.aggregates
(Aggregate(function='sum', argument='qty'), Aggregate(function='count', argument=None))
>>> found.score.columns, found.condition.columns
(('#0', '#1'), ('#1',))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Literal, NoReturn, TypeAlias

from skyband.errors import QueryError
from skyband.query.expressions import Expression, parse, recognise
from skyband.query.expressions.parser import parse_lifted
from skyband.query.expressions.tree import Kind, kind_of
from skyband.query.expressions.words import FUNCTIONS, WORDS, broken, shown

By: TypeAlias = str | tuple[str, ...]

Function: TypeAlias = Literal["count", "count distinct", "sum", "min", "max", "first", "last"]

NAMES = ("count", "sum", "avg", "min", "max", "first", "last")
ALLOWED = "Aggregates: count(*), count(distinct x), sum(x), avg(x), min(x), max(x), first(x), last(x)."


@dataclass(frozen=True)
class Aggregate:
    """One number of an object, from all its valid rows.

    Parameters
    ----------
    function
        What is computed.
    argument
        The text of an expression over a row; None for count(*).

    """

    function: Function
    argument: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row that it reads."""
        return () if self.argument is None else parse(self.argument).columns

    @property
    def kind(self) -> Kind | None:
        """The kind of its values; None where only a batch can tell."""
        return self.kind_in({})

    def kind_in(self, columns: Mapping[str, Kind]) -> Kind | None:
        """The kind of its values where columns of rows have these kinds."""
        if self.function not in ("first", "last"):
            return "number"
        return kind_of(parse(self.argument or "").tree, columns, QueryError)

    def __str__(self) -> str:
        """As it is written."""
        if self.function == "count distinct":
            return f"count(distinct {self.argument})"
        return f"{self.function}({'*' if self.argument is None else self.argument})"


@dataclass(frozen=True)
class Id:
    """The key that is the object's id itself, or one column of an id of several."""

    column: str | None = None


@dataclass(frozen=True)
class Expressions:
    """What is asked about the aggregates of an object: trees over the pseudo columns #0, #1, ..."""

    aggregates: tuple[Aggregate, ...]  # in order of appearance: by, having, then the others
    keys: tuple[Expression | Id, ...]  # of `by`, the first of which decides first
    condition: Expression | None
    shown: dict[str, Expression]

    @property
    def score(self) -> Expression | None:
        """The first key; None: there is none, or it is the id."""
        return next((key for key in self.keys[:1] if isinstance(key, Expression)), None)

    def kinds(self, columns: Mapping[str, Kind]) -> dict[str, Kind | None]:
        """The kinds of what is shown, where the columns of rows have these kinds."""
        values = {
            f"#{place}": kind for place, one in enumerate(self.aggregates) if (kind := one.kind_in(columns)) is not None
        }
        return {name: kind_of(one.tree, values, QueryError) for name, one in self.shown.items()}

    def of(self, *expressions: Expression | None) -> tuple[Aggregate, ...]:
        """The aggregates that expressions read."""
        columns = dict.fromkeys(column for one in expressions if one is not None for column in one.columns)
        return tuple(self.aggregates[int(column[1:])] for column in columns)


@lru_cache(maxsize=4096)  # a query is a value: what it says is read when it is asked for
def read(by: By, having: str | None = None, select: tuple[tuple[str, str], ...] = ()) -> Expressions:
    """Read the expressions of a query over aggregates; a QueryError says what is wrong with which."""
    found: dict[Aggregate, None] = {}
    texts = by if isinstance(by, tuple) else (by,)
    keys = tuple(id_key(text) or _expression("by", text, found, None) for text in texts)
    condition = None if having is None else _expression("having", having, found, "boolean")
    others = {name: _expression("select", text, found, None) for name, text in select}
    if not found:  # by ids, or the tie rule alone: what is there is counted
        found[Aggregate("count")] = None
    return Expressions(tuple(found), keys, condition, others)


def id_key(text: str) -> Id | None:
    """The key `id`, or `id.column`, which a text is; None: it is an expression."""
    head, dot, column = text.strip().partition(".")
    if head != "id" or (dot and not column):
        return None
    return Id(column.strip("`") if dot else None)


def mentioned(text: str) -> str | None:
    """The first aggregate that a text calls, or None."""
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import TokenError

    try:
        tokens = Dialect.get_or_raise("spark").tokenize(text)
    except TokenError:
        return None
    return next((tokens[i].text.lower() for i in range(len(tokens)) if _call(tokens, i) in NAMES), None)


def weights(expression: Expression) -> tuple[tuple[int, float], ...] | None:
    """The aggregates and factors of a sum of multiples without a constant; None for anything else."""
    form = recognise(expression)
    if form.kind not in ("column", "linear") or form.constant != 0.0:
        return None
    return tuple((int(column[1:]), weight) for column, weight in form.weights)


# --- from tokens to pseudo columns --------------------------------------------------------------------------


def _expression(what: str, text: str, found: dict[Aggregate, None], wanted: Kind | None) -> Expression:
    expression = parse_lifted(text, lambda tokens: _lifted(what, text, tokens, found))
    if not expression.columns:
        raise QueryError(f"{shown(text)}: {what} is the same for every object, as it names no aggregate. {ALLOWED}")
    kinds = {f"#{place}": kind for place, one in enumerate(found) if (kind := one.kind) is not None}
    kind = kind_of(expression.tree, kinds, lambda message: QueryError(f"{shown(text)}: {message}."))
    if kind == "time":
        raise QueryError(f"{shown(text)}: {what} is a time; aggregates give numbers, strings and conditions.")
    if wanted is not None and kind not in (wanted, None):
        raise QueryError(
            f"{shown(text)}: {what} must be a condition, and this is a {kind}. Compare something, as in count(*) > 3."
        )
    return expression


def _lifted(what: str, text: str, tokens: list[Any], found: dict[Aggregate, None]) -> list[Any]:
    """The tokens with a pseudo column in place of each aggregate; refuses columns outside of one."""
    lifted: list[Any] = []
    place = 0
    while place < len(tokens):
        name = _call(tokens, place)
        if name in NAMES:
            end = _closing(text, tokens, place + 1)
            lifted += _called(text, tokens[place : end + 1], found)
            place = end + 1
            continue
        token = tokens[place]
        if name is not None and name not in FUNCTIONS:
            close = get_close_matches(name, NAMES, 1, 0.75)
            hint = f" Did you mean {close[0]}?" if close else ""
            _refuse(text, token, f"{token.text} is not allowed in {what}. {ALLOWED}{hint}")
        if name is None and _is_name(token):
            _refuse(
                text,
                token,
                f"{token.text} is a column of a row, and an object has many rows. Say which value of it counts, such "
                f"as last({token.text}) or sum({token.text}). {ALLOWED}"
                + (" The object itself is the key id." if what == "by" else ""),
            )
        lifted.append(token)
        place += 1
    return lifted


def _called(text: str, tokens: list[Any], found: dict[Aggregate, None]) -> list[Any]:
    """One call, name to closing bracket, as pseudo columns."""
    name, inner = tokens[0].text.lower(), tokens[2:-1]
    if nested := next((inner[i] for i in range(len(inner)) if _call(inner, i) in NAMES), None):
        _refuse(
            text,
            nested,
            f"{nested.text} is inside {name}, but an aggregate takes an expression over one row. Aggregate once: "
            "the outer one has nothing left to do.",
        )
    distinct = bool(inner) and inner[0].text.lower() == "distinct" and inner[0].token_type.name != "IDENTIFIER"
    star = len(inner) == 1 and inner[0].token_type.name == "STAR"
    if name == "count" and star:
        return [_column(tokens, found, Aggregate("count"))]
    if name == "count" and not distinct:
        _refuse(text, tokens[0], f"count takes * or distinct x: a row whose x is null is rejected anyway. {ALLOWED}")
    if distinct and name != "count":
        _refuse(text, inner[0], f"only count takes distinct. {ALLOWED}")
    argument = _argument(text, name, tokens[0], inner[1:] if distinct else inner, tokens[-1].start)
    if distinct:
        return [_column(tokens, found, Aggregate("count distinct", argument))]
    if name != "avg":
        return [_column(tokens, found, Aggregate(name, argument))]
    total = _column(tokens, found, Aggregate("sum", argument))
    return [tokens[1], total, _slash(tokens), _column(tokens, found, Aggregate("count")), tokens[-1]]


def _argument(text: str, name: str, call: Any, inner: list[Any], end: int) -> str:
    """The text of an argument, checked."""
    if not inner:
        raise broken(text, end)
    start = inner[0].start
    argument = text[start : inner[-1].end + 1]
    if inner[0].token_type.name == "IDENTIFIER" and len(inner) == 1 and inner[0].text.isidentifier():
        argument = inner[0].text  # `qty` is the column qty
    depth = 0
    for token in inner:
        depth += _opens(token)
        if token.token_type.name == "COMMA" and not depth:
            hint = {
                "min": " For the smaller of two write least(x, y).",
                "max": " For the larger of two: greatest(x, y).",
            }
            _refuse(text, token, f"{name} takes one expression.{hint.get(name, '')}")
    try:
        kind = parse(argument).kind
    except QueryError as error:
        at = call.start if error.at is None else start + error.at
        raise QueryError(error.said, text, at) from None
    if name in ("sum", "avg", "min", "max") and kind not in ("number", None):
        instead = f"{name}(case when {argument} then 1 else 0 end)" if kind == "boolean" else f"{name}(x)"
        _refuse(text, call, f"{name} takes numbers, and {argument} is a {kind}. Did you mean {instead}?")
    return argument


def _column(tokens: list[Any], found: dict[Aggregate, None], aggregate: Aggregate) -> Any:
    """The token of an aggregate's pseudo column, at the place of its call."""
    found.setdefault(aggregate)
    return _token(tokens, "IDENTIFIER", f"#{list(found).index(aggregate)}")


def _slash(tokens: list[Any]) -> Any:
    return _token(tokens, "SLASH", "/")


def _token(tokens: list[Any], kind: str, text: str) -> Any:
    first = tokens[0]
    types = type(first.token_type)
    return type(first)(types[kind], text, line=first.line, col=first.col, start=first.start, end=tokens[-1].end)


def _call(tokens: list[Any], place: int) -> str | None:
    """The name of the function that is called at a token, in lower case; None: no call."""
    token = tokens[place]
    following = tokens[place + 1].token_type.name if place + 1 < len(tokens) else ""
    called = following == "L_PAREN" and _is_name(token) and token.token_type.name != "IDENTIFIER"
    return token.text.lower() if called else None


def _is_name(token: Any) -> bool:
    if token.token_type.name == "IDENTIFIER":
        return True
    return token.token_type.name != "STRING" and token.text.isidentifier() and token.text.lower() not in WORDS


def _closing(text: str, tokens: list[Any], opening: int) -> int:
    depth = 0
    for place in range(opening, len(tokens)):
        depth += _opens(tokens[place])
        if not depth:
            return place
    raise broken(text, len(text))


def _opens(token: Any) -> int:
    """1 for an opening bracket, -1 for a closing one."""
    return {"L_PAREN": 1, "R_PAREN": -1}.get(token.token_type.name, 0)


def _refuse(text: str, token: Any, why: str) -> NoReturn:
    raise QueryError(f"{shown(text)}: {why}", text, token.start)
