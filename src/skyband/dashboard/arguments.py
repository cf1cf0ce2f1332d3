"""The arguments of a request: a JSON body, a query, numbers; each limited in size and depth before it is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.requests import Request

from skyband.dashboard import limits
from skyband.dashboard.guard import Refused
from skyband.errors import QueryError
from skyband.query.kinds import Query
from skyband.query.sql.parser import sql

_OPEN = np.frombuffer(b"[{(", np.uint8)
_OTHERS = bytes(byte for byte in range(256) if byte not in b"[{()}]")
_TYPE_NAMES: dict[type, str] = {str: "text", list: "list", float: "number", bool: "true or false", dict: "object"}


async def body(request: Request, fields: dict[str, type]) -> dict[str, Any]:
    """A JSON object with these fields, of these types; null means missing."""
    found = parsed(await received(request, limits.BODY, "Send less."))
    if not isinstance(found, dict):
        raise QueryError(f"the body is a JSON object with {', '.join(fields)}.")
    if unknown := [key for key in found if key not in fields]:
        raise QueryError(f"{unknown[0][:50]!r} is not expected. The body has: {', '.join(fields)}.")
    for key, value in found.items():
        type_ = fields[key]
        good = (
            isinstance(value, int | float) and not isinstance(value, bool)
            if type_ is float
            else isinstance(value, type_)
        )
        if value is not None and not good:
            raise QueryError(f"{key!r} is a {_TYPE_NAMES[type_]}; got {str(value)[:50]!r}.")
    if found.get("rate") is not None and not 0 < found["rate"] <= 1e9:
        raise QueryError("'rate' is in rows a second, above 0; null is as fast as possible.")
    keep = found.get("keep") or ()
    if not all(isinstance(one, str) for one in keep) or len(keep) > limits.COLUMNS:
        raise QueryError(f"'keep' is a list of column names, up to {limits.COLUMNS} of them.")
    return found


async def received(request: Request, most: int, instead: str, count: Callable[[int], None] = lambda _: None) -> bytes:
    """The body of a request, of at most so many bytes; `count` gets the size of each piece before it is kept."""
    taken = bytearray()
    async for piece in request.stream():
        if len(taken) + len(piece) > most:
            raise Refused(413, f"a request has at most {most:,} bytes here.", instead)
        count(len(piece))
        taken += piece
    return bytes(taken)


def parsed(text: bytes) -> Any:
    """JSON that can be written again: no NaN, no infinity, no half of a character, not nested too deeply."""
    if _depth(text) > limits.DEPTH:
        raise QueryError(f"this is not JSON that is taken here: brackets nest deeper than {limits.DEPTH}.")
    try:
        found = json.loads(text, parse_constant=_no_number)
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise QueryError("a text holds half of a character (a lone surrogate). Send whole characters.") from None
    except (ValueError, RecursionError) as error:
        raise QueryError(f"this is not JSON: {str(error)[:100]}.") from None
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _depth(text: bytes) -> int:
    """How deeply brackets nest at most, those within texts counted too."""
    brackets = np.frombuffer(text.translate(None, _OTHERS), np.uint8)
    return int(np.cumsum(np.where(np.isin(brackets, _OPEN), 1, -1)).max(initial=0))


def number(text: str, what: str, most: int) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(most)) or int(text) > most:
        raise QueryError(f"{what} is a whole number up to {most:,}; got {text[:50]!r}.")
    return int(text)


def query_of(given: dict[str, Any]) -> Query:
    """The query of a body: SQL, or a value as `to_dict` returns it."""
    if (given.get("sql") is None) == (given.get("query") is None):
        raise QueryError('give one of "sql" (a query in SQL) and "query" (as Query.to_dict() returns it).')
    text = given["sql"] if given.get("sql") is not None else json.dumps(given["query"])
    if len(text) > limits.TEXT:
        raise QueryError(f"a query has at most {limits.TEXT:,} characters. Shorten it.")
    found = sql(text) if given.get("sql") is not None else Query.from_dict(given["query"])
    if not isinstance(found, Query):
        raise QueryError(
            "the sentence is several queries, one over the answers of another, and here one is given at a time. Give "
            'the inner one a name first, then the outer one as {"query": {..., "source": that name}}.'
        )
    return found
