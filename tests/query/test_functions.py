"""Functions against the oracle's own, row by row; Spark's are in `spark/test_functions.py`."""

from __future__ import annotations

import math
from datetime import date, datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skyband as sb
from query.trees import bits
from skyband.errors import BatchError, QueryError
from skyband.oracle import Oracle
from skyband.oracle.scalar import evaluate, plain
from skyband.oracle.scalar import parse as parse_plainly
from skyband.query.expressions import is_symmetric, parse
from skyband.tables.input import Batch

ZONE = "America/New_York"
TEXTS = st.text("ab%_\\ \néß😀.5", max_size=6) | st.sampled_from(
    ["12", " -7 ", "1e3", "NaN", "-inf", "1d", "9" * 19, "x"]
)
NUMBERS = st.floats() | st.integers(-400, 400).map(lambda n: n / 8) | st.sampled_from([2.675, 0.49999999999999994])
MOMENTS = st.datetimes(datetime(1890, 1, 1), datetime(2100, 1, 1))
TYPES = {"x": pa.float64(), "s": pa.string(), "p": pa.bool_(), "t": pa.timestamp("us", ZONE), "d": pa.date32()}
TYPES |= {"w": pa.timestamp("us"), "u": pa.timestamp("us", ZONE)}
ROWS = st.fixed_dictionaries(
    {
        "x": st.none() | NUMBERS,
        "s": st.none() | TEXTS,
        "p": st.none() | st.booleans(),
        "t": st.none() | MOMENTS.map(lambda t: t.replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(ZONE))),
        "u": MOMENTS.map(lambda t: t.replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(ZONE))),
        "w": st.none() | MOMENTS,
        "d": st.none() | MOMENTS.map(datetime.date),
    }
)
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"]
PARTS = [
    "year",
    "quarter",
    "month",
    "day",
    "dayofweek",
    "weekday",
    "dayofyear",
    "weekofyear",
    "hour",
    "minute",
    "second",
]
CALLS = [
    "floor(x)",
    "ceil(x)",
    "round(x)",
    "round(x, 2)",
    "round(x, -1)",
    "length(s)",
    "upper(s)",
    "lower(s)",
    "trim(s)",
]
CALLS += [
    "ltrim(s)",
    "rtrim(s)",
    "concat(s, '-', s)",
    "s || s",
    "substring(s, 2, 3)",
    "substr(s, -3, 2)",
    "substring(s, 0)",
]
CALLS += [f"cast({column} as {type_})" for column in "xsp" for type_ in ("double", "bigint", "int")]
CALLS += ["cast(s as string)", "cast(p as string)", "cast(t as string)", "cast(d as string)", "cast(t as bigint)"]
CALLS += [f"{part}({column})" for part in PARTS for column in "twd"] + ["extract(second from t)", "extract(dow from d)"]
CALLS += [f"timestampdiff({unit}, {pair})" for unit in UNITS for pair in ("t, u", "w, u", "d, t")]
CALLS += [
    "datediff(t, d)",
    "datediff(week, w, t)",
    "date(t) = d",
    "t < u",
    "t > w",
    "d <= t",
    "case when p then w end > u",
]
CALLS += ["t >= timestamp '2013-03-10 02:30:00'", "t < timestamp '2013-11-03 06:00:00Z'", "coalesce(t, u) = u"]


def looked_up(row: dict[str, Any], _: str, column: str) -> Any:
    return plain(row[column])


def both(text: str, rows: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """The values of rows, ours and the oracle's."""
    batch, expression = (
        Batch(pa.table({name: pa.array([row[name] for row in rows], TYPES[name]) for name in TYPES})),
        parse(text),
    )
    result = expression.evaluate({name: batch.operand(name) for name in expression.columns}, batch.rows)
    known = [True] * batch.rows if result.valid is None else result.valid.tolist()
    ours = [bits(value) if ok else None for value, ok in zip(result.values.tolist(), known, strict=True)]
    tree = parse_plainly(text)
    return ours, [bits(evaluate(tree, partial(looked_up, row))) for row in rows]


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=6))
def test_functions_are_the_oracle_s(rows: list[dict[str, Any]]) -> None:
    for text in CALLS:
        ours, theirs = both(text, rows)
        assert ours == theirs, text


@settings(max_examples=150, deadline=None)
@given(
    text=st.text("ab%_\\é", max_size=8),
    pieces=st.lists(st.sampled_from(["%", "_", "a", "b", "\\%", "\\_", "\\\\", "é"]), max_size=6),
)
def test_like(text: str, pieces: list[str]) -> None:
    pattern = "".join(pieces).replace("\\", "\\\\")
    row = dict.fromkeys(TYPES, None) | {"s": text}
    ours, theirs = both(f"s like '{pattern}'", [row])
    assert ours == theirs


def test_like_is_quick_for_any_pattern() -> None:
    """A regular expression would go back over the text for each %: some 10^12 steps."""
    row = dict.fromkeys(TYPES, None) | {"s": "a" * 5000}
    assert both_of(f"s like '{'%a' * 12}%b'", row) is False


def both_of(text: str, row: dict[str, Any]) -> Any:
    batch = Batch(pa.table({"s": [row["s"]]}))
    return bool(parse(text).evaluate({"s": batch.operand("s")}, 1).values[0])


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array([1.5], pa.float32()), "float32 and decimals"),
        (pa.array([date(2013, 1, 1)]), None),
        (pa.array([b"a"]), "a string, a timestamp or a date"),
    ],
)
def test_casts_to_string(column: Any, says: str | None) -> None:
    monitor = sb.Monitor(sb.TopK(1, "length(cast(v as string))", sb.Last(5)))
    if says is None:
        monitor.push({"v": column})
        assert monitor.answer()["score"].to_pylist() == [10.0]
    else:
        with pytest.raises(BatchError, match=says):
            monitor.push({"v": column})


def test_a_failed_cast_rejects_the_row() -> None:
    queries = {
        "by": sb.TopK(2, "cast(s as double)", sb.Last(5)),
        "all": sb.TopK(9, "x", sb.Last(5), where="cast(s as int) > 1"),
    }
    monitor = sb.Monitor(queries)
    monitor.push({"s": ["1", "x", None, "3"], "x": [1.0, 2.0, 3.0, 4.0]})
    assert monitor.answer("by")["score"].to_pylist() == [3.0, 1.0]
    assert monitor.answer("all")["score"].to_pylist() == [4.0]
    assert monitor.stats()["rejected"] == {"s is null": 1, "cast(s as double) has no value": 1}


def test_functions_of_every_place() -> None:
    """by, where, keys, having, select, arguments of aggregates, pairs: as the oracle says."""
    start = datetime(2013, 7, 1, 6, 30)
    rows = [
        {"i": n, "s": "aBcdé"[: n % 5], "x": n * 0.7 - 2, "t": start.replace(day=1 + n % 9, hour=n % 24)}
        for n in range(24)
    ]
    window = sb.Last(10)
    queries: dict[str, Any] = {
        "by": sb.TopK(3, "length(s) + hour(t) % 7", window, where="upper(s) like 'AB%' or day(t) > 5"),
        "keys": sb.TopK(3, ("upper(s)", "floor(x)"), window, largest=(True, False)),
        "above": sb.Above(1, "round(x, 1)", window, where="t < timestamp '2013-07-07 00:00:00'"),
        "pairs": sb.TopKPairs(3, "abs(timestampdiff(hour, a.t, b.t)) + (length(a.s) + length(b.s))", window),
        "groups": sb.TopKGroups(
            2, "sum(round(x)) + floor(avg(x))", window, of="s", having="cast(count(*) as bigint) > 1",
            select={"days": "count(distinct day(t))", "last": "upper(last(s))"},
        ),
    }  # fmt: skip
    for name, query in queries.items():
        options: Any = {} if name == "groups" else {"id": "i"}
        monitor, oracle = sb.Monitor(query, **options), Oracle(query, **options)
        for place in range(0, 24, 8):
            batch = pa.Table.from_pylist(rows[place : place + 8])
            expected = oracle.push(batch.to_pylist())
            assert sorted(map(str, monitor.push(batch).to_pylist())) == sorted(map(str, expected)), name
            assert monitor.answer().to_pylist() == oracle.answer(), name
            monitor = sb.Monitor.restore(monitor.snapshot())


def test_what_has_a_direction_or_a_symmetry() -> None:
    members = ("a", "b")
    assert is_symmetric(parse("abs(datediff(a.t, b.t))", members=members))
    assert is_symmetric(parse("abs(timestampdiff(day, a.t, b.t))", members=members))
    assert not is_symmetric(parse("timestampdiff(day, a.t, b.t)", members=members))
    assert not is_symmetric(parse("abs(timestampdiff(day, a.t, b.u))", members=members))
    assert not is_symmetric(parse("case when a.s like 'x%' then 1 else 2 end", members=members))


def test_numbers_past_what_a_type_holds() -> None:
    assert both("cast(x as bigint)", [dict.fromkeys(TYPES) | {"x": math.inf}])[0] == [None]


@pytest.mark.parametrize("text", ["sum(t)", "last(t)"])
def test_times_are_no_arguments(text: str) -> None:
    with pytest.raises((BatchError, QueryError), match="times"):
        sb.Monitor(sb.TopKGroups(2, text, sb.Last(3), of="i")).push({"i": [1], "t": [datetime(2013, 1, 1)]})


def test_hostile_arguments_give_no_value_and_no_crash() -> None:
    """Strings of more digits than Python reads, and places and lengths that are infinite."""
    texts = ["9" * 5000, "-" + "0" * 6000 + "5", "abc"]
    monitor = sb.Monitor(sb.TopK(3, by="cast(s as bigint)", window=sb.Last(9)))
    assert [row["score"] for row in monitor.push({"s": texts}).to_pylist()] == [-5.0]
    places = {"s": ["abc"] * 4, "at": [math.inf, -math.inf, 1e300, 2.0], "n": [1.0, math.inf, 1.0, math.inf]}
    monitor = sb.Monitor(sb.TopK(4, by=("substring(s, at, n)",), window=sb.Last(9)))
    monitor.push(places)
    assert [row["key_1"] for row in monitor.answer().to_pylist()] == ["bc", "abc", "", ""]
