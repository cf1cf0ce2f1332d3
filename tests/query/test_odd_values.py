"""Values of any kind in every argument of a query: a QueryError, or a query that can be stored. Never another error."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import math
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from faults.ledger import note


class Closed:
    """Refuses to say anything of itself."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Three:
    def __len__(self) -> int:
        return 3


ODD: list[Any] = [None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1.5, math.nan, math.inf]
ODD += [-math.inf, "", "x", "\x00", "\ud800", "a" * 10**5, b"x", b"", [], [1], {}, {"a": 1}, (), (1, 2), set(), {1}]
ODD += [object(), Closed(), Three(), print, lambda: 1, int, np.int64(3), np.float32(2), np.datetime64("NaT"), range(5)]
ODD += [np.array([]), np.array([[1, 2], [3, 4]]), np.array(["a"], object), pa.scalar(1), pa.array([1]), pa.table({})]
ODD += [decimal.Decimal("NaN"), decimal.Decimal(3), datetime.datetime(2024, 1, 1), datetime.date(2024, 1, 1)]
ODD += [datetime.timedelta(0), datetime.timedelta(days=-1), datetime.timedelta.max, complex(1, 2), NotImplemented, ...]
ODD += [sb.Each("x"), sb.Last(3), sb.TopK(1, "x", sb.Last(3)), Exception("x"), "select", "x+" * 200 + "x", "(" * 5000]
ODD += ["x" * 10 + "'", ":x", "x = :k", "1 ", "x; drop table"]
RIGHT: dict[Any, dict[str, Any]] = {
    sb.TopK: {"k": 2, "by": "x", "window": sb.Last(5)},
    sb.Above: {"threshold": 1, "by": "x", "window": sb.Last(5)},
    sb.TopKGroups: {"k": 2, "by": "sum(x)", "window": sb.Last(5), "of": "g"},
    sb.TopKPairs: {"k": 2, "by": "abs(a.x - b.x)", "window": sb.Last(5)},
    sb.TopKIncomplete: {"k": 2, "parts": ["a", "b"], "window": sb.Last(5)},
    sb.TopKUncertain: {"k": 2, "by": "x", "window": sb.Last(5)},
}
SCORINGS: list[Any] = [sb.Linear, sb.Product, sb.Quadratic, sb.Nearest, sb.Global]


@pytest.mark.parametrize("kind", RIGHT)
def test_arguments_of_queries(kind: Any) -> None:
    tried = refused = 0
    for field in dataclasses.fields(kind):
        for odd in ODD if field.init else ():
            tried += 1
            try:
                query = kind(**{**RIGHT[kind], field.name: odd})
                sb.explain(query)
            except sb.QueryError:
                refused += 1
                continue
            assert repr(query)
            if not callable(odd):
                assert kind.from_dict(query.to_dict()) == query, (field.name, odd)
    note({"odd values": kind.__name__, "tried": tried, "refused": refused})
    assert refused > tried / 2


CALLS: list[Any] = [
    sb.Last,
    lambda odd: sb.Last(span=odd),
    sb.Session,
    lambda odd: sb.Session(span=odd),
    sb.Each,
    lambda odd: sb.Similar(odd, [1.0]),
    lambda odd: sb.Similar("v", odd),
    lambda odd: sb.Similar("v", [1.0], odd),
    lambda odd: sb.Global({"x": "absdiff"}, odd),
    lambda odd: sb.Global({"x": "absdiff"}, weights=odd),
    lambda odd: sb.Global({"x": "absdiff"}, transform=odd),
    *SCORINGS,
]


@pytest.mark.parametrize("place", range(len(CALLS)))
def test_arguments_of_windows_and_scorings(place: int) -> None:
    for odd in ODD:
        for given in (odd, {"x": odd}):
            with suppress(sb.QueryError):
                assert repr(CALLS[place](given))
