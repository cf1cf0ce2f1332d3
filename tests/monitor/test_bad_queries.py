"""Queries and options that cannot be run: a QueryError names the argument and suggests what to write instead."""

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import skyband as sb
from monitor.refusals import TIMED, TOP, brief, says, scores
from skyband.errors import QueryError


@pytest.mark.parametrize(
    ("k", "word"),
    [
        (0, "at least 1"),
        (-3, "at least 1"),
        (2**31, "below 2^31"),
        (2.0, "whole number"),
        (2.5, "whole number"),
        ("2", "whole number"),
        (None, "whole number"),
        (True, "whole number"),
        (math.nan, "whole number"),
        ([2], "whole number"),
    ],
)
@pytest.mark.parametrize("kind", ["TopK", "TopKPairs", "TopKIncomplete", "TopKUncertain"])
def test_k(kind: str, k: Any, word: str) -> None:
    made: dict[str, Callable[[], Any]] = {
        "TopK": lambda: sb.TopK(k, "x", sb.Last(3)),
        "TopKPairs": lambda: sb.TopKPairs(k, "abs(a.x - b.x)", sb.Last(3)),
        "TopKIncomplete": lambda: sb.TopKIncomplete(k, ["north", "south"], sb.Last(3)),
        "TopKUncertain": lambda: sb.TopKUncertain(k, "x", sb.Last(3)),
    }
    with pytest.raises(QueryError) as caught:
        made[kind]()
    says(caught.value, kind, "k=", word, "Did you mean k=10?")


def test_whole_numbers_of_other_types_are_k() -> None:
    assert sb.TopK(np.int64(3), "x", sb.Last(np.int32(5))) == sb.TopK(3, "x", sb.Last(5))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "word"),
    [
        (0, "at least 1"),
        (-5, "at least 1"),
        (2.5, "whole number"),
        (True, "True"),
        ("", "not a duration"),
        ("10", "not a duration"),
        ("ten minutes", "not a duration"),
        ("10 fortnights", "not a duration"),
        ("-10 minutes", "not a duration"),
        ("0 s", "longer than nothing"),
        ("0.5 ns", "nanosecond"),
        (timedelta(0), "longer than nothing"),
        (timedelta(minutes=-1), "longer than nothing"),
        (2**62, "too large"),
        ("99999999999999 weeks", "too large"),
        (None, "one size"),
        ([1], "whole number"),
    ],
)
def test_windows(size: Any, word: str) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Last(size)
    says(caught.value, "Last(", word)


@pytest.mark.parametrize(
    ("span", "word"), [(0, "at least 1"), (-1, "at least 1"), (1.5, "whole"), ("5 s", "whole"), (True, "True")]
)
def test_spans(span: Any, word: str) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Last(span=span)
    says(caught.value, "span", word)


def test_a_window_has_one_size() -> None:
    with pytest.raises(QueryError, match="one size"):
        sb.Last(3, span=3)


@pytest.mark.parametrize("window", [3, "10 minutes", None, timedelta(1)])
def test_a_bare_size_is_no_window(window: Any) -> None:
    with pytest.raises(QueryError, match=r"window must say how long.*Last\(1000\)"):
        sb.TopK(2, "x", window)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("tan(x)", ("tan", "abs")),
        ("sum(x)", ("sum",)),
        ("rand()", ("rand",)),
        ("x; drop table t", ()),
        ("(select 1)", ()),
        ("x +", ()),
        ("", ()),
        (7, ("no scoring", "Linear")),
        (None, ("no scoring",)),
        (sb.Global({"x": "absdiff"}), ("pairs",)),
    ],
)
def test_scorings(by: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(2, by, sb.Last(3))
    says(caught.value, *words)


@pytest.mark.parametrize("where", ["initcap(z) = 'A'", "x >", 7, True])
def test_conditions(where: Any) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(2, "x", sb.Last(3), where=where)
    says(caught.value)


@pytest.mark.parametrize(
    "name", ["query", "at", "time", "id", "id_a", "id_b", "rank", "score", "probability", "diff", "first"]
)
def test_reserved_names(name: str) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(2, "x", sb.Last(3), per=name)
    says(caught.value, "per", name, "writes itself", "Rename")
    with pytest.raises(QueryError) as caught:
        sb.Monitor(TOP, keep=["z", name])
    says(caught.value, "keep", name, "writes itself", "Rename")
    # as the id, the time or the score they are fine: the output's columns have fixed names
    monitor = sb.Monitor(sb.TopK(1, by=name if name.isidentifier() else "x", window=sb.Last(3)), id=name)
    assert brief(monitor.push({name: [1, 2]})) == ["+1", "-1", "+2"]


@pytest.mark.parametrize("per", ["", ("g", ""), 7, ("g", 7), ("g", "g")])
def test_per(per: Any) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(2, "x", sb.Last(3), per=per)
    says(caught.value, "per")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": ["z", "z"]}, ("keep", "'z'", "twice")),
        ({"keep": [""]}, ("keep",)),
        ({"keep": [7]}, ("keep", "7")),
        ({"keep": None}, ("keep", "list of column names")),
        ({"id": ""}, ("id",)),
        ({"id": 7}, ("id", "7")),
        ({"time": ""}, ("time",)),
        ({"emit": "never"}, ("emit", "'never'", "'arrival'", "'batch'")),
        ({"late": "maybe"}, ("late", "'accept'", "'drop'")),
        ({"invalid": "ignore"}, ("invalid", "'reject'", "'raise'")),
        ({"keep": ["g"]}, ("'g'", "per", "keep")),
    ],
)
def test_options(options: Mapping[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(sb.TopK(2, "x", sb.Last(3), per="g"), **options)
    says(caught.value, *words)


def test_a_time_window_needs_a_time_column() -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(TIMED)
    says(caught.value, "Last(span=10)", "time window", 'time="..."')


@pytest.mark.parametrize("queries", [7, "x", [7], {"a": 7}, {"": TOP}, {7: TOP}, sb.Last(3)])
def test_what_is_no_query(queries: Any) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(queries)
    says(caught.value)


@pytest.mark.parametrize("algorithm", ["quick", "", None, 7, "SCASE"])
def test_unknown_algorithms(algorithm: Any) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(2, "x", sb.Last(3), algorithm=algorithm)
    says(caught.value, "algorithm", "unknown", "SA", "BLOCK")


# ------------------------------------------------------------------------ names and answers


def test_unknown_names() -> None:
    monitor = sb.Monitor({"a": TOP, "b": TOP})
    for act in (monitor.answer, monitor.drop, lambda name: monitor.replace(name, TOP)):
        with pytest.raises(QueryError) as caught:
            act("c")
        says(caught.value, "'c'", "a, b")
    with pytest.raises(QueryError, match="name the query: a, b"):
        monitor.answer()
    with pytest.raises(QueryError, match=r"'a'.*already"):
        monitor.add("a", TOP)
    with pytest.raises(QueryError, match="none is standing"):
        sb.Monitor([]).answer()
    assert monitor.push({"x": [1.0]}).num_rows == 2


def test_answers_that_do_not_fit() -> None:
    monitor = sb.Monitor({"n": TOP, "t": TIMED, "g": sb.TopK(2, "x", sb.Last(3), per=("g", "h"))}, time="t")
    monitor.push({"x": [1, 2, 3], "t": [1, 2, 3], "g": [1, 1, 1], "h": [1, 1, 1]})
    for name, options, words in (
        ("n", {"k": 3}, ("k=3", "k=2")),
        ("n", {"k": 0}, ("k must be at least 1",)),
        ("n", {"k": 1.5}, ("whole number",)),
        ("n", {"window": 4}, ("4", "Last(3)")),
        ("n", {"window": sb.Last(span=2)}, ("Last(3)", "kind")),
        ("n", {"window": sb.UntilDeleted()}, ("Last(3)",)),
        ("n", {"window": 0}, ("at least 1",)),
        ("t", {"window": sb.Last(span=11)}, ("Last(span=10)",)),
        ("t", {"window": 5}, ("Last(span=10)",)),
        ("t", {"window": "5 s"}, ("Last(span=10)",)),
        ("n", {"key": 1}, ("0 `per` columns", "1 values")),
        ("g", {"key": 1}, ("2 `per` columns", "Give g, h")),
        ("g", {"key": (1, 2, 3)}, ("2 `per` columns", "3 values")),
    ):
        with pytest.raises(QueryError) as caught:
            monitor.answer(name, **options)
        says(caught.value, *words)
    assert monitor.answer("g", key=(1, 2)).num_rows == 0, "a group without arrivals has no objects"
    assert monitor.answer("g", key=("x", 1)).num_rows == 0
    with pytest.raises(QueryError, match=r"\[1\] is no int64"):
        monitor.answer("g", key=(1, [1]))
    assert scores(monitor, "n") == [3.0, 2.0]


@pytest.mark.parametrize("name", [[], {}, 7, None])
def test_names_that_are_no_strings(name: Any) -> None:
    monitor = sb.Monitor([TOP, TOP])
    before = monitor.snapshot()
    for call in (monitor.answer, monitor.drop, lambda name: monitor.replace(name, TOP), lambda n: monitor.add(n, TOP)):
        with pytest.raises(QueryError):
            call(name)
    assert monitor.snapshot() == before


@pytest.mark.parametrize("trusted", [None, 0, "no"])
def test_trusted_is_true_or_false(trusted: Any) -> None:
    with pytest.raises(QueryError, match=r"trusted=.*True or False"):
        sb.Monitor.restore(sb.Monitor(TOP).snapshot(), trusted=trusted)


def test_a_question_in_sql_is_named_as_what_it_is() -> None:
    with pytest.raises(QueryError, match=r"'SELECT \* FROM s' is no query.* sb\.sql\("):
        sb.Monitor("SELECT * FROM s")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match=r"'SELECT' is no query.* sb\.sql\("):
        sb.Monitor({"a": sb.TopK(1, "x", sb.Last(1))}).add("b", "SELECT")  # type: ignore[arg-type]


def test_a_session_without_a_gap_says_what_a_gap_is() -> None:
    with pytest.raises(QueryError, match=r'^Session\(\) takes one gap: Session\("30 minutes"\)'):
        sb.Session()


def test_columns_that_are_read_only_may_have_any_name() -> None:
    query = sb.TopKUncertain(2, "x", sb.Last(5), probability="probability", group="id")
    monitor = sb.Monitor(query, id="id")
    monitor.push({"id": [1, 1], "x": [1.0, 2.0], "probability": [0.5, 0.75]})
    assert [(row["score"], row["probability"]) for row in monitor.answer().to_pylist()] == [(1.0, 0.5)]
    assert sb.sql(query.to_sql()) == query
