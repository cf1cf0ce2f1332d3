"""Functions in expressions: each equal to Spark's, over a table of hard values."""

from __future__ import annotations

import dataclasses
import math
import struct
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skyband as sb
import skyband.spark as sbs
from skyband.errors import StateError
from skyband.query.expressions import parse
from skyband.query.options import Options
from skyband.spark.plan import Plan, compare
from skyband.spark.refusals import zone_of
from skyband.tables.input import Batch

ZONE = "America/New_York"  # the session's

X: list[float | None] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.49999999999999994,
    2.675,
    1.005,
    -1.005,
    1234.5678,
    1e300,
    -1e300,
    5e-324,
]
X += [math.inf, -math.inf, math.nan, None, 1e7, 9999999.0, 0.001, 1e-5, 123456789.125, 4503599627370497.5, 2.0**63]
N = [0, 1, -1, 7, -7, 2**31, -(2**31) - 1, 2**53, -(2**53), None, 15, 25, -15, -25, 150]
S: list[str | None] = [
    "",
    "a",
    "abc",
    "AbC",
    "  a b ",
    "été",
    "ÉTÉ",
    "straße",
    "😀x",
    "ΑΣ",
    "İ",
    None,
    "12",
    " 12 ",
    "-7",
    "+5",
    "1.5",
]
S += [
    "1e3",
    "NaN",
    "inf",
    "-Infinity",
    "abc1",
    "9223372036854775807",
    "9223372036854775808",
    "1_000",
    "٣",
    "1d",
    "0x10",
]
S += ["100%", "a_b", "a%b", "a\nb", "aXb", "ab", "a\\b", "\u00a01", "2147483648", ".5", "5.", "e5", "true", "1 2"]
T: list[str | None] = [
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "1900-01-01 00:00:00",
    "2013-03-10 01:59:59.5",
]
T += [
    "2013-03-10 03:00:00",
    "2013-11-03 00:30:00",
    "2013-11-03 03:30:00.25",
    "2012-02-29 12:00:00",
    "2016-01-01 00:00:00",
]
T += ["2015-12-31 23:59:59", "0101-01-01 00:00:00", "9998-12-31 23:59:59", "2020-12-31 06:30:15.000001", None]
U = ["2013-01-31 12:00:00", "2013-02-28 11:59:59.999999", "2012-03-30 12:00:00", "2013-03-10 12:00:00"]


def stretched(values: list[Any], size: int) -> list[Any]:
    return [values[place % len(values)] for place in range(size)]


def hard_values() -> pa.Table:
    """Lists of different lengths, repeated until all are used: neighbours differ in every round."""
    size = 60
    times = [None if text is None else datetime.fromisoformat(text) for text in stretched(T, size)]
    others = [datetime.fromisoformat(text) for text in stretched(U, size)]
    days = [None if time is None else time.date() for time in times[::-1]]
    return pa.table(
        {
            "x": pa.array(stretched(X, size), pa.float64()),
            "y": pa.array([None if x is None or abs(x) > 2**62 else x for x in stretched(X, size)], pa.float64()),
            "n": pa.array(stretched(N, size), pa.int64()),
            "s": pa.array(stretched(S, size), pa.string()),
            "p": pa.array(stretched([True, False, None], size), pa.bool_()),
            "t": pa.array(times, pa.timestamp("us")).cast(pa.timestamp("us", ZONE)),
            "u": pa.array(others, pa.timestamp("us")).cast(pa.timestamp("us", ZONE)),
            "w": pa.array(times, pa.timestamp("us")),
            "d": pa.array(days, pa.date32()),
        }
    )


NUMBERS = [
    "floor(y)",
    "ceil(y)",
    "ceiling(-y)",
    "round(x)",
    "round(x, 2)",
    "round(x, -2)",
    "round(x, 20)",
    "round(n, -1)",
]
NUMBERS += ["floor(n)", "round(n, 1)", "floor(y / 3) * 3", "y - floor(y)", "abs(round(x, 1))"]
CASTS = [f"try_cast({column} as {type_})" for column in "xnsp" for type_ in ("double", "bigint", "int", "string")]
CASTS += [
    "cast(n as string)",
    "cast(n % 10 as string)",
    "cast(x as string)",
    "cast(n / 2 as string)",
    "cast(n as double)",
]
CASTS += ["cast(p as int)", "cast(length(s) as string)", "cast(t as double)", "cast(t as bigint)", "cast(t as string)"]
CASTS += ["cast(w as string)", "cast(d as string)", "cast(t as date)", "cast(floor(n / 2) as string)"]
CASTS += [
    "cast(case when p then n else 7 end as string)",
    "cast(coalesce(n, x) as string)",
    "cast(case when p then d end as string)",
]
STRINGS = ["length(s)", "upper(s)", "lower(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "concat(s, '-', s)", "s || '!' || s"]
STRINGS += [f"substring(s, {at})" for at in (-2, 0, 1, 2, 9)]
STRINGS += [f"substr(s, {at}, {count})" for at in (-5, -2, 0, 1, 2) for count in (-1, 0, 1, 3)]
STRINGS += ["substring(s, length(s), 1)", "concat(s, cast(n as string))", "concat(s)", "char_length(upper(s))"]
PATTERNS = [
    "a%",
    "%b",
    "%a%b%",
    "_",
    "a_b",
    "%",
    "",
    "a\\\\_b",
    "a\\\\%b",
    "%\\\\%",
    "a%b",
    "__",
    "a\\\\\\\\b",
    "%1%2%",
    "_%_",
]
STRINGS += [f"s like '{pattern}'" for pattern in PATTERNS] + [f"s not like '{pattern}'" for pattern in PATTERNS[:3]]
STRINGS += [
    "s like 'a!_b' escape '!'",
    "s like '%!%' escape '!'",
    "s like '!!%' escape '!'",
    "upper(s) like 'A%' and p",
]
PARTS = [
    "year",
    "quarter",
    "month",
    "day",
    "dayofmonth",
    "dayofweek",
    "weekday",
    "dayofyear",
    "weekofyear",
    "hour",
    "minute",
    "second",
]
TIMES = [f"{part}({column})" for part in PARTS for column in ("t", "w")]
TIMES += [f"{part}(d)" for part in PARTS[:9]] + [
    f"extract({part} from t)" for part in ("year", "week", "dow", "doy", "second")
]
TIMES += ["datediff(t, u)", "datediff(d, t)", "datediff(d, date '2013-01-01')", "date_diff(u, w)"]
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"]
TIMES += [f"timestampdiff({unit}, {pair})" for unit in UNITS for pair in ("t, u", "u, t")] + ["datediff(month, u, t)"]
TIMES += ["t > timestamp '2013-03-10 03:00:00'", "t = timestamp '2013-11-03 03:30:00.25'", "d >= date '2012-02-29'"]
TIMES += [
    "t < timestamp '1970-01-01 05:00:00Z'",
    "t = timestamp '1969-12-31 19:00:00-05:00'",
    "t = w",
    "w > u",
    "d <= t",
]
TIMES += [
    "t between date '1970-01-01' and timestamp '2013-11-03 03:30:00.25'",
    "t in (u, timestamp '1900-01-01 00:00:00')",
]
TIMES += [
    "t is null or year(t) = 2013",
    "coalesce(t, u) = u",
    "year(case when p then t else u end)",
    "d = date '2016-01-01'",
]
TIMES += ["w >= timestamp '2013-03-10 03:00:00'", "cast(t as date) = d", "coalesce(t, d) > u"]


SCHEMA = "x double, y double, n bigint, s string, p boolean, t timestamp, u timestamp, w timestamp_ntz, d date"


def plain(value: Any) -> Any:
    """A value as both sides can give it; numbers to the bit."""
    if isinstance(value, bool | str | date) or value is None:
        return value
    number = float(value)
    return "NaN" if math.isnan(number) else struct.pack("<d", number)


def ours(table: pa.Table, text: str) -> list[Any]:
    batch, expression = Batch(table), parse(text)
    result = expression.evaluate({name: batch.operand(name) for name in expression.columns}, batch.rows)
    valid = [True] * batch.rows if result.valid is None else result.valid.tolist()
    return [plain(value) if ok else None for value, ok in zip(result.values.tolist(), valid, strict=True)]


def test_every_function_is_spark_s(spark: SparkSession) -> None:
    """One query of Spark computes all of them; what is an error of its ANSI mode is asked with try_cast."""
    table = hard_values()
    texts = [*NUMBERS, *CASTS, *STRINGS, *TIMES]
    rows = (
        spark.createDataFrame(table, SCHEMA).selectExpr(*[f"{text} as c{i}" for i, text in enumerate(texts)]).collect()
    )
    for place, text in enumerate(texts):
        mine = ours(table, text)
        theirs = [plain(row[place]) for row in rows]
        wrong = [
            (dict(zip(table.column_names, (c[i].as_py() for c in table.columns), strict=True)), mine[i], theirs[i])
            for i in range(table.num_rows)
            if mine[i] != theirs[i]
        ]
        assert not wrong, (text, wrong[:3])


def test_functions_in_queries_on_spark(spark: SparkSession) -> None:
    """The same answers as a Monitor's."""
    table = hard_values().append_column("i", pa.array(range(60)))
    df = spark.createDataFrame(table, SCHEMA + ", i bigint")
    queries = {
        "long": sb.TopK(3, "length(s) + floor(y)", sb.Last(50), where="s like '%a%' or hour(w) > 11", per="p"),
        "keys": sb.TopK(4, ("upper(s)", "month(d)"), sb.Last(50), largest=(True, False)),
        "instants": sb.TopK(2, "x", sb.Last(50), where="t > timestamp '2013-01-01 00:00:00Z'"),
    }
    monitor = sb.Monitor(queries, id="i")
    monitor.push(table)
    rows = sbs.answers(df, queries, id="i", shards=1).collect()
    for name in queries:
        expected = {(row.get("p"), row["rank"], row["id"]) for row in monitor.answer(name).to_pylist()}
        got = {(row["p"] if name == "long" else None, row["rank"], row["id"]) for row in rows if row["query"] == name}
        assert got == expected, name


def test_expressions_in_the_session_s_zone(spark: SparkSession) -> None:
    """What reads the wall clock reads the session's, as Spark's own filter does; TIMESTAMP stays TIMESTAMP."""
    assert spark.conf.get("spark.sql.session.timeZone") == ZONE
    table = hard_values().append_column("i", pa.array(range(60)))
    df = spark.createDataFrame(table, SCHEMA + ", i bigint")
    place = table.column_names.index("t")
    in_utc = table.set_column(place, "t", table.column("t").cast(pa.timestamp("us", "UTC")))
    conditions = ("hour(t) > 3", "t > timestamp '2013-01-01 00:00:00'", "t < w")
    queries = {where: sb.TopK(60, ("hour(t)", "i"), sb.Last(60), where=where, nulls="last") for where in conditions}
    options: dict[str, Any] = {"id": "i", "keep": "t"}
    monitor = sb.Monitor(queries, **options)
    monitor.push(table)
    found = sbs.answers(df, queries, shards=1, **options)
    assert dict(found.dtypes)["t"] == "timestamp"
    rows = found.select("query", "rank", "id").collect()
    for where in conditions:
        expected = {(row["rank"], row["id"]) for row in monitor.answer(where).to_pylist()}
        assert {(row["rank"], row["id"]) for row in rows if row["query"] == where} == expected, where
        assert {one for _, one in expected} == {row["i"] for row in df.where(where).collect()}, where
        utc = sb.Monitor({"q": queries[where]}, **options)
        utc.push(in_utc)
        if "hour" in where:
            assert {row["id"] for row in utc.answer().to_pylist()} != {one for _, one in expected}, "the zone matters"


def test_a_zone_that_arrow_does_not_know(spark: SparkSession) -> None:
    df = spark.createDataFrame(hard_values().append_column("i", pa.array(range(60))), SCHEMA + ", i bigint")
    with pytest.raises(sb.QueryError, match="time zone, UTC\\+3, which is not known to Arrow"):
        zone_of(df.schema, {"q": sb.TopK(2, "x", sb.Last(50), where="hour(t) > 3")}, "UTC+3")
    assert zone_of(df.schema, {"q": sb.TopK(2, "x", sb.Last(50), where="hour(w) > 3")}, "UTC+3") is None


def test_a_checkpoint_of_another_zone_is_not_resumed() -> None:
    """Its columns of times, and what expressions say of them, are of the zone that it was written in."""
    options = Options(id="i", time="t")
    plan = Plan({"q": sb.TopK(2, "hour(t)", sb.Last(50))}, options, ("t",), 1, ("t",), zone="Europe/Paris")
    compare(plan.fingerprint, dataclasses.replace(plan).fingerprint)
    for other in (None, ZONE):
        with pytest.raises(StateError, match="'zone': 'Europe/Paris'"):
            compare(plan.fingerprint, dataclasses.replace(plan, zone=other).fingerprint)
