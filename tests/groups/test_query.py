"""TopKGroups as a value: what it says, how it is stored, and what it refuses."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import skyband as sb
from skyband.errors import QueryError
from skyband.query.aggregates import Aggregate
from skyband.query.expressions import Operand
from skyband.query.kinds import Query


def made(**more: Any) -> sb.TopKGroups:
    return sb.TopKGroups(**{"k": 3, "by": "sum(x)", "window": sb.Last(10), **more})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"of": "symbol", "having": "count(*) > 3", "where": "x > 0", "per": "venue", "largest": False},
        {"of": ("a", "b"), "select": {"n": "count(*)", "mean": "avg(x)"}},
        {"window": sb.Ever(), "decay": "90 s"},
        {"window": sb.Ever(), "decay": 2.5},
        {"window": sb.UntilDeleted(), "of": "symbol"},
    ],
)
def test_it_is_stored_as_plain_data(more: dict[str, Any]) -> None:
    query = made(**more)
    stored = json.loads(json.dumps(query.to_dict()))
    assert Query.from_dict(stored) == query
    assert hash(Query.from_dict(stored)) == hash(query)


def test_it_prints_as_the_call_that_makes_it() -> None:
    assert repr(made(of="s", per="g")) == "TopKGroups(k=3, by='sum(x)', window=Last(10), of='s', per=('g',))"
    assert repr(made(select={"n": "count(*)"})).endswith("select=(('n', 'count(*)'),))")
    assert made(select=(("n", "count(*)"),)) == made(select={"n": "count(*)"})


def test_aggregates_in_order_of_appearance() -> None:
    query = made(by="avg(x) - min( y+1 )", having="count(*) > 3 and SUM(x) > 0", select={"n": "count(distinct `a b`)"})
    total, count, least = Aggregate("sum", "x"), Aggregate("count"), Aggregate("min", "y+1")
    distinct = Aggregate("count distinct", "`a b`")
    assert query.aggregates == (total, count, least, distinct)
    assert [str(one) for one in query.aggregates] == ["sum(x)", "count(*)", "min(y+1)", "count(distinct `a b`)"]
    assert query.score is not None and query.score.columns == ("#0", "#1", "#2")
    assert query.condition is not None
    assert query.condition.columns == ("#1", "#0")
    assert query.shown["n"].columns == ("#3",)
    values = {
        f"#{place}": Operand(np.array(column)) for place, column in enumerate(([9.0, 1.0], [2.0, 4.0], [1.0, 5.0]))
    }
    assert query.score.evaluate(values, 2).values.tolist() == [9 / 2 - 1, 1 / 4 - 5]
    assert query.condition.evaluate(values, 2).values.tolist() == [False, True]


@pytest.mark.parametrize(
    ("by", "place"),
    [("max(x)", 0), ("-min(x)", 0), ("abs(max(x)) + max(x)", 0), ("max(x) - min(x)", None), ("sum(x)", None),
     ("max(x) + 0*count(*)", None), ("last(x)", None)],
)  # fmt: skip
def test_the_row_that_decides(by: str, place: int | None) -> None:
    assert made(by=by).decides == place


def test_the_columns_that_it_reads() -> None:
    query = made(by="sum(price * qty)", having="last(ok)", select={"n": "count(distinct who)"}, of=("a", "b"), per="g")
    read = {"by": ("price", "qty"), "having": ("ok",), "select": ("who",), "of": ("a", "b"), "per": ("g",)}
    assert query.reads == read
    assert made(where="z > 1").reads["where"] == ("z",)


def test_one_column_of_objects_is_no_struct() -> None:
    assert made(of=("a",)) == made(of="a") == made(of=["a"])
    assert made(of="id").of_columns == ("id",)  # the output calls it id anyway
    assert made().of_columns == ()


def test_a_selected_column_without_a_name_is_called_as_it_is_written() -> None:
    assert made(select=["count(*)", "avg(x)"]) == made(select={"count(*)": "count(*)", "avg(x)": "avg(x)"})
    assert made(select="count(*)").select == (("count(*)", "count(*)"),)


def test_half_lives() -> None:
    def faded(decay: Any) -> sb.TopKGroups:
        return made(window=sb.Ever(), decay=decay)

    assert faded("60 min") == faded(timedelta(hours=1)) == faded(np.timedelta64(1, "h"))
    assert faded("1 hour").half_life(10**9) == 3600
    assert faded("500 ms").half_life(10**9) == 0.5  # finer than the column's unit is fine
    assert faded(60.0) == faded(60)
    assert faded(60).half_life(None) == 60
    assert made().half_life(None) is None
    with pytest.raises(QueryError, match="integers, which have no unit"):
        faded("1 hour").half_life(None)
    with pytest.raises(QueryError, match="timestamps or dates"):
        faded(60).half_life(10**9)


def test_with_decay_sums_of_multiples_only() -> None:
    for by in ("sum(x)", "count(*)", "2*sum(x) + count(*)/3", "-(sum(x) - sum(y*z))", "sum(x) + 0"):
        assert made(by=by, window=sb.Ever(), decay=1).weights is not None
    for by in ("avg(x)", "max(x)", "sum(x) + 1", "sum(x) * count(*)", "abs(sum(x))", "count(distinct x)", "last(x)"):
        with pytest.raises(QueryError, match="sum of multiples"):
            made(by=by, window=sb.Ever(), decay=1)


def test_smaller_questions() -> None:
    query = made(by="max(x)", window=sb.Last(10))
    assert query.smaller(2, 5) == made(k=2, by="max(x)", window=sb.Last(5))
    with pytest.raises(QueryError, match="own window"):
        query.smaller(window=11)
    with pytest.raises(QueryError, match="own k=3"):
        query.smaller(4)
    with pytest.raises(QueryError, match=r"Ever\(\)"):
        made(window=sb.Ever()).smaller(window=5)


REFUSED = {  # what, and a part of the message; the mark is where the mistake is
    "count(x)": "count takes * or distinct x",
    "count(distinct x, y)": "count takes one expression",
    "sum(distinct x)": "only count takes distinct",
    "median(x)": "median is not allowed in by. Aggregates: count",
    "maxx(x)": "Did you mean max?",
    "x": "x is a column of a row",
    "sum(x) / y": "last(y) or sum(y)",
    "`sum`": "sum is a column of a row",
    "sum(max(x))": "max is inside sum",
    "min(x, y)": "least(x, y)",
    "sum(x > 3)": "sum(case when x > 3 then 1 else 0 end)",
    "sum('text')": "sum takes numbers",
    "sum()": "an operand, argument or bracket is missing",
    "sum(x": "an operand, argument or bracket is missing",
    "sum(x))": "an operand, argument or bracket is missing",
    "sum(x +)": "an operand, argument or bracket is missing",
    "sum(a.x)": "only pair scorings use a. and b.",
    "sum(*)": "* is not allowed here",
    "1": "names no aggregate",
    "sum(x) and count(*)": "and needs booleans",
    "sum(x) y": "y is a column",
    "": "is no expression",
}


@pytest.mark.parametrize(("by", "message"), REFUSED.items())
def test_what_by_refuses(by: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        made(by=by)
    assert message in str(caught.value)


def test_errors_point_at_the_place() -> None:
    for text, place in {"sum(x) / y": 9, "1 + sum(max(x))": 8, "2 * med(x)": 4, "sum(x + log(y))": 8}.items():
        with pytest.raises(QueryError) as caught:
            made(by=text)
        assert caught.value.at == place, text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"k": 0}, "k must be at least 1"),
        ({"by": 5}, "by is an expression over aggregates"),
        ({"by": sb.Linear({"x": 1})}, "by is an expression over aggregates"),
        ({"having": 5}, "having is an expression over aggregates"),
        ({"having": "count(*)"}, "having must be a condition, and this is a number"),
        ({"having": "x > 3"}, "x is a column of a row"),
        ({"having": "1 = 1"}, "names no aggregate"),
        ({"where": "sum(x) > 3"}, "Use having='sum(x) > 3'"),
        ({"where": "count(*) > 3 and x > 2"}, "count is an aggregate of many"),
        ({"of": ()}, "at least one column"),
        ({"of": ("a", "a")}, "twice"),
        ({"of": 5}, "non-empty strings"),
        ({"select": {"id": "count(*)"}}, "skyband writes itself"),
        ({"select": {"n": "x"}}, "x is a column of a row"),
        ({"select": 5}, "select is a mapping"),
        ({"select": {"g": "count(*)"}, "per": "g"}, "in `select` and in `per`"),
        ({"window": sb.UntilDeleted()}, 'of="..."'),
        ({"by": ("sum(x)", "id"), "largest": (True,)}, "one for each key"),
        ({"by": ("sum(x)", "x")}, "The object itself is the key id"),
        ({"by": ("sum(x)", 5)}, "by is an expression over aggregates"),
        ({"by": "id.b", "of": "a"}, "Use id, which is one column"),
        ({"by": "id.c", "of": ("a", "b")}, "Use one of id.a, id.b"),
        ({"offset": 1, "with_ties": True}, "Use one of the two"),
        ({"decay": "1 hour", "window": sb.Ever(), "by": ("sum(x)", "id")}, "sum of multiples"),
        ({"decay": "1 hour"}, "window=Ever()"),
        ({"decay": "1 hour", "window": sb.Ever(), "having": "count(*) > 1"}, "no having"),
        ({"decay": "1 hour", "window": sb.Ever(), "select": "count(*)"}, "no select"),
        ({"decay": 0, "window": sb.Ever()}, "half-life"),
        ({"decay": True, "window": sb.Ever()}, "half-life"),
        ({"decay": "soon", "window": sb.Ever()}, "half-life"),
        ({"largest": 1}, "largest is True, False or None"),
        ({"algorithm": "SMA"}, "algorithm 'SMA' is unknown"),
    ],
)
def test_what_it_refuses(more: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        made(**more)
    assert message in str(caught.value)


@pytest.mark.parametrize("turned", [False, True])
def test_a_column_of_select_that_another_query_has_as_its_group(turned: bool) -> None:
    asked = [made(select={"n": "count(*)"}, of="o"), sb.TopK(1, "x", sb.Last(3), per={"n": "g"})]
    with pytest.raises(QueryError, match="'n' is in `select` and in `keep` or `per`"):
        sb.Monitor(asked[::-1] if turned else asked)


def test_other_kinds_say_where_aggregates_belong() -> None:
    with pytest.raises(QueryError, match=r"sb\.TopKGroups"):
        sb.TopK(3, by="sum(x)", window=sb.Last(9))


@pytest.mark.parametrize(
    "list_", ["o, median(x) FROM s GROUP BY o ORDER BY count(*)", "o FROM s GROUP BY o ORDER BY median(x)"]
)
def test_sql_names_the_aggregates_where_it_knows_no_such_function(list_: str) -> None:
    with pytest.raises(QueryError, match=r"median is not allowed in .*Aggregates: count\(\*\)"):
        sb.sql(f"SELECT {list_} LIMIT 3 WINDOW 9 ROWS")
