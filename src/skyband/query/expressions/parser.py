"""The parser of expressions: tokens from sqlglot, a gate on each token, sqlglot's tree, then our own small tree.

The gate is first because sqlglot is lenient where we must not be: it reads log(x) as ln(x), nvl as
coalesce, `unknown` as NULL, `x y` as an alias and power(x,,2) as power(x, 2). Behind it only whitelisted
tokens reach the parser, and every name that is no keyword of ours is a column. It also bounds nesting:
sqlglot's parser spends some 20 Python frames per bracket. Cost: linear in the text, about 0.05 ms a term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from itertools import zip_longest
from math import isfinite
from typing import Any, TypeAlias

from skyband.errors import QueryError
from skyband.query.expressions.calls import MARK, as_calls, call, renamed
from skyband.query.expressions.evaluation import evaluate
from skyband.query.expressions.functions import like
from skyband.query.expressions.tree import Kind, Node, Operand, kind_of
from skyband.query.expressions.words import (
    ALLOWED,
    CLOCKS,
    CONSTANTS,
    FUNCTIONS,
    INSTEAD,
    REFUSED,
    WORDS,
    broken,
    require_text,
    shown,
)

Lift: TypeAlias = Callable[[list[Any]], list[Any]]  # tokens -> tokens

MAX_LENGTH = 10_000  # characters
MAX_DEPTH = 200  # operations inside one another
MAX_BRACKETS = 30  # brackets and cases inside one another
EACH = "\0"  # begins the name of a value that subscriptions bring, inside the parser

_SYMBOLS = {"+", "-", "*", "/", "%", "||", "=", "==", "<>", "!=", "<", "<=", ">", ">=", "!", "(", ")", ",", "."}

# sqlglot's class -> our operation and the fields that hold its arguments, in order
_BINARY = ("this", "expression")
_MANY = ("this", "expressions")
_OPERATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Add": ("+", _BINARY),
    "Sub": ("-", _BINARY),
    "Mul": ("*", _BINARY),
    "Div": ("/", _BINARY),
    "Mod": ("%", _BINARY),
    "Neg": ("negative", ("this",)),
    "Abs": ("abs", ("this",)),
    "Sqrt": ("sqrt", ("this",)),
    "Pow": ("power", _BINARY),
    "Exp": ("exp", ("this",)),
    "Ln": ("ln", ("this",)),
    "Least": ("least", _MANY),
    "Greatest": ("greatest", _MANY),
    "Coalesce": ("coalesce", _MANY),
    "And": ("and", _BINARY),
    "Or": ("or", _BINARY),
    "Not": ("not", ("this",)),
    "DPipe": ("concat", _BINARY),
}
_PREDICATES: dict[str, tuple[str, tuple[str, ...]]] = {
    "EQ": ("=", _BINARY),
    "NEQ": ("<>", _BINARY),
    "LT": ("<", _BINARY),
    "LTE": ("<=", _BINARY),
    "GT": (">", _BINARY),
    "GTE": (">=", _BINARY),
    "Between": ("between", ("this", "low", "high")),
    "In": ("in", _MANY),
    "Is": ("is null", ("this",)),
    "Like": ("like", _BINARY),
}


@dataclass(frozen=True, repr=False)
class Expression:
    """A typed expression: equal by its text. Made by `parse`."""

    text: str
    columns: tuple[str, ...]  # in order of first use; qualified in pairs: "a.x", "b.x"
    members: tuple[str, ...]
    kind: Kind | None = field(compare=False)  # of the result, where the text alone determines it
    tree: Node = field(compare=False)
    each: tuple[str, ...] = field(default=(), compare=False)  # values that subscriptions bring, :name

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def evaluate(self, columns: Mapping[str, Operand], rows: int) -> Operand:
        """The value of each row, bit for bit what Python floats and `math` give one row at a time.

        Arithmetic and comparison with null give null; and, or, not have three values; least and greatest
        skip nulls; NaN equals itself and is the largest; division and domain errors follow IEEE.
        """
        return evaluate(self.text, self.tree, self.columns, columns, rows)


def parse(text: str, *, members: tuple[str, ...] = ()) -> Expression:
    """Parse `text`, once. With `members` (pairs: "a" and "b") every column names its member, as in a.x."""
    _check_length(text)
    return _parsed(text, members)


def parse_lifted(text: str, lift: Lift) -> Expression:
    """Parse `text`, in which `lift` puts names in the place of some tokens before the gate sees them."""
    _check_length(text)
    return _parse(text, (), lift)


def _check_length(text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise _empty(text)
    require_text("an expression", text)
    if len(text) > MAX_LENGTH:
        raise QueryError(
            f"{shown(text)}: {len(text):,} characters are too long for an expression; the limit is "
            f"{MAX_LENGTH:,}. Compute a column before pushing, or score by a callable."
        )


@lru_cache(maxsize=4096)  # every push parses its scorings again
def _parsed(text: str, members: tuple[str, ...]) -> Expression:
    plain = text.isidentifier() and text.lower() not in WORDS | REFUSED
    return _parse(text, members, None, _column(text, [text], members) if plain else None)


def _parse(text: str, members: tuple[str, ...], lift: Lift | None, plain: Node | None = None) -> Expression:
    try:
        tree = plain or _read(text, members, lift)
        kind = kind_of(tree, {}, lambda message: QueryError(f"{shown(text)}: {message}."))
    except RecursionError:
        raise _too_deep(text) from None
    columns, each = (tuple(dict.fromkeys(_names(tree, op))) for op in ("column", "each"))
    return Expression(text, columns, members, kind, tree, each)


def _names(node: Node, op: str) -> Iterator[str]:
    stack = [node]
    while stack:
        node = stack.pop()
        if node.op == op:
            yield str(node.value)
        stack.extend(reversed(node.args))


def _read(text: str, members: tuple[str, ...], lift: Lift | None) -> Node:
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import ParseError, TokenError

    dialect = Dialect.get_or_raise("spark")
    try:
        tokens = as_calls(text, joined_names(text, dialect.tokenize(text)))
        tokens = _gate(text, tokens if lift is None else lift(tokens))
        if not tokens:  # comments only
            raise _empty(text)
        parsed = dialect.parser(error_message_context=MAX_LENGTH).parse(tokens, text)
        if not parsed:  # a lone "else"
            raise broken(text, 0)
        return _convert(text, parsed[0], members, 0)
    except TokenError:
        raise QueryError(f"{shown(text)}: a quote, a backtick or a comment is not closed.") from None
    except ParseError as error:
        at = len(error.errors[0]["start_context"] or "") if error.errors else len(text)
        raise broken(text, at) from None


# --- the gate -----------------------------------------------------------------------------------------------


def joined_names(text: str, tokens: list[Any]) -> list[Any]:
    """The tokens with each `:name` as one, a name that begins with a mark."""
    joined: list[Any] = []
    for token in tokens:
        if joined and joined[-1].token_type.name == "COLON" and joined[-1].end + 1 == token.start:
            quoted = token.token_type.name == "IDENTIFIER"
            if not token.text or not (quoted or text[token.start : token.end + 1].isidentifier()):
                raise _not_allowed(text, token, "is no name of a value that subscriptions bring, such as :budget")
            joined[-1] = _identifier(token, EACH + token.text, joined[-1].start)
        elif token.text.startswith(EACH):
            raise _not_allowed(text, token)
        else:
            joined.append(token)
    return joined


def _gate(text: str, tokens: list[Any]) -> list[Any]:
    """The tokens with names as identifiers; refuses what is not whitelisted and what sqlglot overlooks."""
    depth, before, passed = 0, "", []
    for token, following in zip_longest(tokens, tokens[1:]):
        role = _role(text, before, token, following)
        if _misplaced(before, role):
            raise _not_allowed(text, token, "is not allowed here")
        depth += (role in ("(", "case")) - (role in (")", "end"))
        if depth > MAX_BRACKETS:
            raise _too_deep(text)
        passed.append(_identifier(token) if role == "name" else renamed(token) if role == "function" else token)
        before = role
    return passed


def _role(text: str, before: str, token: Any, following: Any) -> str:
    """The role of a token: "name", "literal", "function", "of" (the dot in a.x), or the token itself."""
    kind, word = token.token_type.name, token.text.lower()
    if kind in ("NUMBER", "STRING"):
        return "literal"
    if kind == "IDENTIFIER" or (before == "of" and word.isidentifier()):
        return "name"
    if word in _SYMBOLS or word in WORDS:
        return "of" if word == "." and before == "name" else str(word)
    if not word.isidentifier() or word in REFUSED:
        raise _not_allowed(text, token)
    if following is None or following.token_type.name != "L_PAREN":
        return "name"
    if word not in FUNCTIONS:
        raise _not_allowed(text, token)
    return "function"


_ENDS = {"name", "literal", "end", ")"} | CONSTANTS  # of an operand
_STARTS = {"name", "literal", "case", "(", ".", "function"} | CONSTANTS
_INFIX = (_SYMBOLS - {"+", "-", "!", "(", ")", ",", "."}) | {"and", "or", "is", "in", "between", "like"}
_EMPTY = {("(", ","), (",", ","), (",", ")")}


def _misplaced(before: str, role: str) -> bool:
    if before == "of":
        return role != "name"
    if role in _INFIX:
        return before not in _ENDS and not (before == "not" and role in ("in", "between", "like"))
    return (before in _ENDS and role in _STARTS) or (before, role) in _EMPTY


def _identifier(token: Any, name: str | None = None, start: int | None = None) -> Any:
    start = token.start if start is None else start
    place = {"line": token.line, "col": token.col, "start": start, "end": token.end}
    return type(token)(type(token.token_type).IDENTIFIER, token.text if name is None else name, **place)


# --- sqlglot's tree to ours ---------------------------------------------------------------------------------


def _convert(text: str, tree: Any, members: tuple[str, ...], depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise _too_deep(text)
    name = type(tree).__name__
    if name == "Paren":
        return _convert(text, tree.this, members, depth + 1)
    if name == "Column":
        return _column(text, [part.name for part in tree.parts], members)
    if name in ("Boolean", "Null"):
        return Node("literal", value=tree.args.get("this"))
    if name == "Literal":
        return Node("literal", value=str(tree.this) if tree.is_string else _number(text, tree.this))
    if name == "Anonymous":
        word = str(tree.this).lower().removeprefix(MARK)
        return call(text, word, tree.expressions, lambda arg: _convert(text, arg, members, depth + 1))
    if name == "Case":
        op, args = _case_args(tree)
    elif name in _OPERATIONS:
        op, args = _args(text, tree, *_OPERATIONS[name])
    elif name in _PREDICATES:
        op, args = _args(text, tree, *_PREDICATES[name])
        _refuse_chain(text, op, args)
        if op == "like":
            return _like(text, tree, _convert(text, args[0], members, depth + 1))
    else:
        raise QueryError(f"{shown(text)}: {name.lower()} is not allowed in an expression. {ALLOWED}")
    return Node(op, tuple([_convert(text, arg, members, depth + 1) for arg in args]))


def _args(text: str, tree: Any, op: str, fields: tuple[str, ...]) -> tuple[str, list[Any]]:
    args: list[Any] = []
    for each in fields:
        found = tree.args.get(each) or []
        args.extend(found if isinstance(found, list) else [found])
    if op == "is null" and type(tree.expression).__name__ != "Null":
        raise QueryError(f"{shown(text)}: is and is not are for null only; compare with = or <>. {ALLOWED}")
    if len(args) < 2 and op in ("in", "least", "greatest"):
        wants = "a list in brackets, as in x in (1, 2)" if op == "in" else "at least two arguments"
        raise QueryError(f"{shown(text)}: {op} needs {wants}.")
    return op, args


def _case_args(tree: Any) -> tuple[str, list[Any]]:
    from sqlglot.expressions import Null

    branches = [part for branch in tree.args["ifs"] for part in (branch.this, branch.args["true"])]
    branches.append(tree.args.get("default") or Null())
    return ("case of", [tree.this, *branches]) if tree.args.get("this") else ("case", branches)


def _like(text: str, tree: Any, of: Node) -> Node:
    pattern = tree.expression
    if type(pattern).__name__ != "Literal" or not pattern.is_string:
        raise QueryError(f"{shown(text)}: like takes a pattern in quotes, as in x like 'a%'.")
    try:
        like(str(pattern.this))
    except ValueError as error:
        raise QueryError(f"{shown(text)}: {error}.") from None
    node = Node("like", (of,), str(pattern.this))
    return Node("not", (node,)) if tree.args.get("negate") else node


def _refuse_chain(text: str, op: str, args: list[Any]) -> None:
    """`a = b > c` and `a = b is null` bind differently in Spark and in sqlglot."""
    if any(type(arg).__name__ in _PREDICATES or type(arg).__name__ == "Not" for arg in args):
        raise QueryError(f"{shown(text)}: a comparison inside {op} needs brackets, as in (a < b) = c.")


def _number(text: str, digits: str) -> float:
    try:
        value = float(digits)
    except ValueError:
        raise QueryError(f"{shown(text)}: {digits} is no number.") from None
    if not isfinite(value) or (digits.isdecimal() and int(digits) != value):
        raise QueryError(f"{shown(text)}: no float64 holds {digits}, and scores are float64.")
    return value


def _column(text: str, parts: list[str], members: tuple[str, ...]) -> Node:
    if parts[-1].startswith(EACH):
        if len(parts) > 1:
            raise QueryError(f"{shown(text)}: write :{parts[-1][1:]} alone: a subscription's value is of no object.")
        return Node("each", value=parts[0][1:])
    if len(parts) == 1 and not members:
        return Node("column", value=parts[0])
    if len(parts) == 2 and parts[0] in members:
        return Node("column", value=".".join(parts))
    name = ".".join(parts)
    last = parts[-1] if parts[-1].isidentifier() else f"`{parts[-1]}`"
    if members:
        which = " or ".join(f"{member}.{last}" for member in members)
        raise QueryError(f'{shown(text)}: "{name}" does not say of which object it is. Write {which}.')
    raise QueryError(
        f'{shown(text)}: "{name}" is qualified, but only pair scorings use a. and b. '
        f"Write {last}, or `{name}` in backticks if the column is called that."
    )


# --- errors -------------------------------------------------------------------------------------------------


def _not_allowed(text: str, token: Any, why: str = "is not allowed in an expression") -> QueryError:
    source = text[token.start : token.end + 1]
    close = get_close_matches(source.lower(), FUNCTIONS, n=1, cutoff=0.75)
    instead = INSTEAD.get(source.lower()) or "".join(close)
    why, hint = why + CLOCKS.get(source.lower(), ""), f" Did you mean {instead}?" if instead else ""
    if source.lower() in REFUSED or (token.token_type.name == "VAR" and not source.isidentifier()):
        hint += f" If it is a column, put it in backticks: `{source}`."
    return QueryError(f"{shown(text)}: {source} {why}. {ALLOWED}{hint}", text, token.start)


def _empty(text: object) -> QueryError:
    return QueryError(f"{text!r} is no expression: write a column or a formula, such as 0.7*x + 0.3*y.")


def _too_deep(text: str) -> QueryError:
    return QueryError(
        f"{shown(text)}: nested too deeply; the limits are {MAX_BRACKETS} brackets and {MAX_DEPTH} "
        "operations inside one another. Compute a column before pushing, or score by a callable."
    )
