"""Calls of functions that sqlglot would rewrite: from tokens to nodes, past its parser.

`as_calls` turns the syntax of cast(x as double), extract(year from t), date '2013-01-01', timestampdiff(day, a, b) and
like 'a!%' escape '!' into plain calls and strings; the gate gives each call a name that sqlglot does not know, and
`call` makes the node. So each means what Spark's means, whatever sqlglot thinks of the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from skyband.errors import QueryError
from skyband.query.expressions.functions import pattern_with_backslashes
from skyband.query.expressions.tree import Node
from skyband.query.expressions.words import CALLS, CASTS, PARTS, UNITS, shown

MARK = "skyband_"  # begins the name of a call inside sqlglot

_LITERALS = ("date", "timestamp")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\s?(Z|[+-]\d\d:\d\d)?)?")


def as_calls(text: str, tokens: list[Any]) -> list[Any]:
    """The tokens with plain calls and strings in place of the syntax of its own that some functions have."""
    found: list[Any] = []
    opened: list[str] = []  # what each open bracket belongs to
    place = 0
    while place < len(tokens):
        token, following = tokens[place], tokens[place + 1 : place + 4]
        kinds, word = [one.token_type.name for one in following], _word(token)
        if token.token_type.name == "L_PAREN":
            opened.append(_word(tokens[place - 1]) if place else "")
            unit = opened[-1] == "timestampdiff" or (opened[-1].endswith("diff") and _commas(tokens, place) == 2)
            if (opened[-1] == "extract" and kinds[1:2] == ["FROM"]) or (unit and kinds[1:2] == ["COMMA"]):
                found += [token, _string(following[0]), _comma(following[1])]
                place += 3
                continue
        elif token.token_type.name == "R_PAREN" and opened:
            opened.pop()
        elif word == "as" and opened and opened[-1].endswith("cast") and kinds[1:2] == ["R_PAREN"]:
            found += [_comma(token), _string(following[0])]
            place += 2
            continue
        elif word in _LITERALS and kinds[:1] == ["STRING"]:
            brackets = [_made(token, kind, sign) for kind, sign in (("L_PAREN", "("), ("R_PAREN", ")"))]
            found += [token, brackets[0], following[0], brackets[1]]
            place += 2
            continue
        elif word == "like" and kinds == ["STRING", "ESCAPE", "STRING"]:
            found += [token, _made(following[0], "STRING", _pattern(text, following[0].text, following[2].text))]
            place += 4
            continue
        found.append(token)
        place += 1
    return found


def _word(token: Any) -> str:
    return "" if token.token_type.name in ("STRING", "IDENTIFIER", "NUMBER") else str(token.text.lower())


def _commas(tokens: list[Any], opening: int) -> int:
    """How many commas stand directly within a bracket."""
    depth = count = 0
    for token in tokens[opening:]:
        depth += {"L_PAREN": 1, "R_PAREN": -1}.get(token.token_type.name, 0)
        if not depth:
            break
        count += depth == 1 and token.token_type.name == "COMMA"
    return count


def _made(token: Any, kind: str, text: str) -> Any:
    types = type(token.token_type)
    return type(token)(types[kind], text, line=token.line, col=token.col, start=token.start, end=token.end)


def _string(token: Any) -> Any:
    return _made(token, "STRING", token.text)


def _comma(token: Any) -> Any:
    return _made(token, "COMMA", ",")


def renamed(token: Any) -> Any:
    """The token of a function as sqlglot may see it."""
    name = token.text.lower()
    return _made(token, "VAR", MARK + name) if name in CALLS else token


def _pattern(text: str, pattern: str, escape: str) -> str:
    try:
        return pattern_with_backslashes(pattern, escape)
    except ValueError as error:
        raise QueryError(f"{shown(text)}: {error}.") from None


# --- from sqlglot's tree to a node --------------------------------------------------------------------------


def call(text: str, name: str, trees: list[Any], convert: Callable[[Any], Node]) -> Node:
    """The node of a call."""
    op, fewest, most = CALLS[name]
    if not fewest <= len(trees) <= most:
        wants = f"{fewest}" if fewest == most else f"{fewest} or {most}" if most < 1000 else "at least one"
        raise QueryError(f"{shown(text)}: {name} takes {wants} argument{'s' * (wants not in ('1', 'at least one'))}.")
    match op:
        case "cast":
            return _cast(text, trees[0], _said(trees[1]), convert)
        case "date" | "timestamp":
            return _cast(text, trees[0], op, convert)
        case "extract":
            return _part(text, _said(trees[0]), convert(trees[1]))
        case "timestampdiff" | "datediff" if len(trees) == 3:
            return _difference(text, _said(trees[0]), convert(trees[1]), convert(trees[2]))
        case "datediff":
            return Node("datediff", (convert(trees[0]), convert(trees[1])))
        case "round":
            return Node("round", (convert(trees[0]),), _digits(text, convert(trees[1])) if len(trees) > 1 else 0.0)
    return Node(op, tuple([convert(tree) for tree in trees]))


def _said(tree: Any) -> str:
    return str(tree.name).lower()


def _cast(text: str, tree: Any, to: str, convert: Callable[[Any], Node]) -> Node:
    if to in CASTS:
        return Node(CASTS[to], (convert(tree),))
    if to not in _LITERALS:
        near = {"varchar": "string", "text": "string", "char": "string", "float": "double", "real": "double"}.get(to)
        hint = f" Did you mean {near}?" if near else ""
        raise QueryError(f"{shown(text)}: cast is to double, bigint, int, string or date, not to {to}.{hint}")
    inner = convert(tree)
    if inner.op == "literal" and isinstance(inner.value, str):
        return Node("literal", value=_moment(text, inner.value, to))
    if to == "timestamp":
        raise QueryError(
            f"{shown(text)}: timestamp is for literals, as in timestamp '2013-01-01 06:30:00'. "
            "Push a column of timestamps."
        )
    return Node("date", (inner,))


def _moment(text: str, literal: str, to: str) -> date | datetime:
    """The instant or day that a literal names."""
    found = _MOMENT.fullmatch(literal.strip())
    try:
        if found is None:
            raise ValueError
        moment = datetime.fromisoformat("".join([found[1], "T", found[2] or "00:00", found[3] or ""]))
    except ValueError:
        example = "2013-01-01" if to == "date" else "2013-01-01 06:30:00, also with a fraction, Z or +02:00"
        raise QueryError(f"{shown(text)}: {literal!r} is no {to}. Write it as {example}.") from None
    return moment.date() if to == "date" else moment


def _part(text: str, part: str, of: Node) -> Node:
    part = {"dow": "dayofweek", "doy": "dayofyear", "week": "weekofyear", "dayofweek_iso": ""}.get(part, part)
    if part not in PARTS:
        raise QueryError(f"{shown(text)}: extract takes {', '.join(PARTS)}; got {part}.")
    return Node("exact second" if part == "second" else part, (of,))


def _difference(text: str, unit: str, start: Node, end: Node) -> Node:
    if unit not in UNITS:
        raise QueryError(f"{shown(text)}: a difference is in {', '.join(UNITS)}; got {unit}.")
    return Node("timestampdiff", (start, end), unit)


def _digits(text: str, node: Node) -> float:
    sign = -1.0 if node.op == "negative" else 1.0
    value = node.args[0].value if node.op == "negative" else node.value
    if not isinstance(value, float) or value != int(value) or abs(value) > 400:
        raise QueryError(f"{shown(text)}: round takes an integer as its second argument, as in round(x, 2).")
    return sign * value
