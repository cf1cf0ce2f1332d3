"""Bad tables of subscriptions: each a QueryError that names column and subscriber, and nothing of it is taken."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband import Each, Last, Nearest, TopK
from skyband.errors import QueryError

RIDERS = TopK(
    Each("k"),
    by=Nearest({"x": Each("px"), "y": 0}, weights={"x": Each("w"), "y": 1}),
    window=Last(Each("n")),
    where="price <= :budget",
)
GOOD: dict[str, list[Any]] = {
    "subscriber": ["ann", "bob"],
    "k": [1, 2],
    "px": [0.5, 1.0],
    "w": [1.0, 0.0],
    "n": [10, 20],
    "budget": [9.5, 10.0],
}


def monitor() -> sb.Monitor:
    return sb.Monitor({"riders": RIDERS}, time="t")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"k": None}, ["no column 'k'", "It has: 'subscriber', 'px'"]),
        ({"subscriber": None}, ["no column 'subscriber'"]),
        ({"k": [1, 0]}, ["'bob'", "'k' is 0", "at least 1"]),
        ({"k": [1, 2**31]}, ["'bob'", "'k' is 2147483648"]),
        ({"k": [1, None]}, ["'bob'", "'k' is null"]),
        ({"k": [1.0, 2.0]}, ["'k' holds double", "'ann'", "whole numbers"]),
        ({"k": [True, False]}, ["'k' holds bool", "whole numbers"]),
        ({"k": ["1", "2"]}, ["'k' holds string"]),
        ({"k": [1, "x"]}, ["'k'", "'bob'"]),
        ({"px": [0.5, float("inf")]}, ["'bob'", "'px' is not finite"]),
        ({"px": ["a", "b"]}, ["'px' holds string", "numbers"]),
        ({"w": [1.0, -1.0]}, ["'bob'", "'w' is negative"]),
        ({"n": [10, 0]}, ["'bob'", "'n' is 0"]),
        ({"n": ["10 minutes", "soon"]}, ["'bob'", "'n' is no duration"]),
        ({"n": [timedelta(1), timedelta(0)]}, ["'bob'", "'n' is no length"]),
        ({"n": [1.5, 2.5]}, ["'n' holds double"]),
        ({"budget": [1.0, float("nan")]}, ["'bob'", "'budget' is not finite"]),
        ({"budget": [1, 2**53 + 1]}, ["'bob'", "'budget' is beyond 2^53"]),
        ({"budget": [b"1", b"2"]}, ["'budget' holds binary", "numbers, strings or booleans"]),
        ({"subscriber": ["ann", "ann"]}, ["'ann' twice"]),
        ({"subscriber": ["ann", None]}, ["'subscriber' is null in row 1"]),
        ({"px": [1.0]}, ["cannot be read as a table"]),
    ],
)
def test_a_bad_table_names_column_and_subscriber(changed: dict[str, Any], said: list[str]) -> None:
    m = monitor()
    table = {name: values for name, values in (GOOD | changed).items() if values is not None}
    with pytest.raises(QueryError) as error:
        m.subscribe("riders", table)
    for part in said:
        assert part in str(error.value), str(error.value)
    assert m.stats()["queries"]["riders"]["subscriptions"] == 0
    m.subscribe("riders", GOOD)  # the first table would have fixed the types


def test_a_bad_table_changes_nothing_of_those_who_are_there() -> None:
    m = monitor()
    m.subscribe("riders", GOOD)
    m.push({"x": [1.0, 2.0], "y": [0.0, 0.0], "price": [1.0, 99.0], "t": [1, 2]})
    before, stored = m.answer("riders"), m.snapshot()
    with pytest.raises(QueryError, match=r"'bob'.*'k' is 0"):
        m.subscribe("riders", GOOD | {"subscriber": ["ann", "bob"], "k": [3, 0]})
    assert m.answer("riders").equals(before) and m.snapshot() == stored


def test_values_that_make_no_valid_query_name_the_subscriber() -> None:
    m = sb.Monitor({"q": TopK(1, by="x", window=Last(9), where="x between :low and :high")})
    with pytest.raises(QueryError, match=r"'bob'.*nothing can ever be an answer"):
        m.subscribe("q", {"subscriber": ["ann", "bob"], "low": [1, 2], "high": [2, 1]})
    with pytest.raises(QueryError, match=r"'ann'.*and"):
        m.subscribe("q", {"subscriber": ["ann"], "low": ["a"], "high": [1]})


def test_a_window_has_one_sort_for_all() -> None:
    m = sb.Monitor({"q": TopK(1, by="x", window=Last(Each("n")))}, time="t")
    m.subscribe("q", {"subscriber": [1], "n": ["10 minutes"]})
    with pytest.raises(QueryError, match="one kind of window per query"):
        m.subscribe("q", {"subscriber": [2], "n": [10]})
    m.unsubscribe("q", [1])
    with pytest.raises(QueryError, match="one kind of window per query"):  # whoever is there now
        m.subscribe("q", {"subscriber": [2], "n": [10]})
    without_time = sb.Monitor({"q": TopK(1, by="x", window=Last(Each("n")))})
    with pytest.raises(QueryError, match="name the time column"):
        without_time.subscribe("q", {"subscriber": [1], "n": ["10 minutes"]})


def test_a_duration_on_an_integer_time_column() -> None:
    m = sb.Monitor({"q": TopK(1, by="x", window=Last(Each("n")))}, time="t")
    m.push({"x": [1.0], "t": [1]})
    with pytest.raises(QueryError, match=r"'ann'.*holds integers, which have no unit"):
        m.subscribe("q", {"subscriber": ["ann"], "n": ["10 minutes"]})


def test_ids_of_one_type() -> None:
    m = sb.Monitor({"q": TopK(Each("k"), by="x", window=Last(9)), "r": TopK(Each("k"), by="x", window=Last(9))})
    m.subscribe("q", {"subscriber": ["a"], "k": [1]})
    with pytest.raises(QueryError, match="'subscriber' was string"):
        m.subscribe("r", {"subscriber": [1], "k": [1]})
    with pytest.raises(QueryError, match="takes a list of ids"):
        m.unsubscribe("q", "a")
    with pytest.raises(QueryError, match="ids of subscribers are string"):
        m.unsubscribe("q", [3])


def test_unknown_ids_are_counted_and_ignored() -> None:
    m = sb.Monitor({"q": TopK(Each("k"), by="x", window=Last(9))})
    m.unsubscribe("q", ["nobody"])
    m.subscribe("q", {"subscriber": ["a", "b"], "k": [1, 1]})
    m.unsubscribe("q", ["a", "a", "nobody", "c"])
    stats = m.stats()
    assert stats["rejected"] == {"unknown subscriber": 3} == stats["queries"]["q"]["rejected"]
    assert stats["queries"]["q"]["subscriptions"] == 1
    assert m.answer("q", subscriber="nobody").num_rows == 0 == m.answer("q", subscriber=3).num_rows


def test_plain_queries_have_no_subscriptions() -> None:
    m = sb.Monitor({"q": TopK(1, by="x", window=Last(9))})
    with pytest.raises(QueryError, match="plain query"):
        m.subscribe("q", {"subscriber": ["a"]})
    with pytest.raises(QueryError, match="plain query"):
        m.unsubscribe("q", ["a"])
    with pytest.raises(QueryError, match="no subscriptions"):
        m.answer("q", subscriber="a")
    with pytest.raises(QueryError, match="no query called 'r'"):
        m.subscribe("r", {"subscriber": ["a"]})


def test_subscriber_is_a_reserved_name() -> None:
    with pytest.raises(QueryError, match="subscriber"):
        sb.Monitor(TopK(1, by="x", window=Last(9)), keep=["subscriber"])
    with pytest.raises(QueryError, match="subscriber"):
        TopK(1, by="x", window=Last(9), per="subscriber")


@pytest.mark.parametrize(
    "refused",
    [
        lambda: Each(""),
        lambda: Each(3),  # type: ignore[arg-type]
        lambda: TopK(1, by="x + :1", window=Last(9)),
        lambda: TopK(1, by="x :y", window=Last(9)),
        lambda: TopK(1, by="x", window=Last(Each("a"), span=Each("b"))),
        lambda: sb.Above(Each("t"), by=Nearest({"x": Each("a")}), window=Last(9)),
        lambda: TopK(Each("k"), by="x", window=Last(9), algorithm="NAIVE"),
        lambda: sb.sql("SELECT * FROM s ORDER BY x LIMIT : k WINDOW 3 ROWS"),
    ],
)
def test_bad_queries(refused: Any) -> None:
    with pytest.raises(QueryError):
        refused()


def test_columns_and_types_of_a_subscriber() -> None:
    q = {"p": TopK(1, by="x", window=Last(9)), "q": TopK(Each("k"), by="x", window=Last(9), per="g")}
    m = sb.Monitor(q, id="i")
    assert m.push({"x": [1.0], "i": [1], "g": ["a"]}).column_names[:3] == ["query", "subscriber", "g"]
    ids = pa.array([7, 8], pa.int16())
    changes = m.subscribe("q", pa.table({"who": ids, "k": [1, 2], "other": [None, None]}), id="who")
    assert changes.num_rows == 0 and changes.schema.field("subscriber").type == pa.int16()
    changes = m.push({"x": [3.0], "i": [2], "g": ["a"]})
    assert changes.column("subscriber").to_pylist() == [None, None, 7, 8]
    assert changes.column("at").to_pylist() == [1, 1, 1, 1]  # the query's own numbers, subscribed or not
    answer = m.answer("q")
    assert answer.column_names == ["subscriber", "g", "rank", "id", "score"]
    assert m.answer("p").column_names == ["rank", "id", "score"]
    assert m.answer("q", subscriber=8, key="a").num_rows == 1
    m.drop("q")
    assert "subscriber" not in m.push({"x": [3.0], "i": [2], "g": ["a"]}).column_names
