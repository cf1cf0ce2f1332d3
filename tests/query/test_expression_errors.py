"""Text that is no expression is refused: with the reason, the place and what is allowed; hostile text too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from query.trees import (
    operand,
    run,
)
from skyband.errors import BatchError, QueryError
from skyband.query.expressions import Operand, is_symmetric, parse, recognise

REFUSED = [  # text, what the message must say
    ("log(x)", r"log is not allowed.*Allowed: .*coalesce.*Did you mean ln\(x\)\?"),
    ("tan(x)", "tan is not allowed.*Allowed: .*floor"),
    ("now()", "now is not allowed.*not from when it is computed"),
    ("t > current_timestamp", "current_timestamp is not allowed.*not from when"),
    ("current_date()", "current_date is not allowed.*not from when"),
    ("squrt(x)", "squrt is not allowed.*Did you mean sqrt"),
    ("nvl(x, 1)", "nvl is not allowed.*coalesce"),
    ("sum(x)", "sum is not allowed"),
    ("count(*)", "count is not allowed"),
    ("row_number() over (order by x)", "row_number is not allowed"),
    ("abs(x) over ()", "over is not allowed"),
    ("cast(x as decimal)", "cast is to double, bigint, int, string or date, not to decimal"),
    ("cast(x as varchar)", "Did you mean string"),
    ("cast(x)", "cast takes 2 arguments"),
    ("cast(x as timestamp)", "timestamp is for literals"),
    ("floor(x, 1)", "floor takes 1 argument"),
    ("substring('abc')", "substring takes 2 or 3 arguments"),
    ("concat()", "concat takes at least one argument"),
    ("round(x, y)", "integer as its second argument"),
    ("extract(moon from x)", "extract takes year.*got moon"),
    ("timestampdiff(moon, x, y)", "a difference is in year.*got moon"),
    ("date '2013-02-30'", "'2013-02-30' is no date"),
    ("timestamp 'noon'", "'noon' is no timestamp"),
    ("length(1)", "length needs strings, but 1.0 is a number.*cast"),
    ("substring('abc', 'b')", "substring needs numbers"),
    ("concat('a', 1)", "concat needs strings.*cast"),
    ("year('2013')", "year needs times, but '2013' is a string.*timestamp '2013"),
    ("date '2013-01-01' - date '2012-01-01'", "needs numbers.*datediff"),
    ("x = date '2013-01-01' and x = 'a' || 3", "concat needs strings"),
    ("'a' like p", "pattern in quotes"),
    (r"x like 'a\\b'", "must be before"),
    (r"x like 'a!b' escape '!'", "! must be before"),
    ("x like 'ab' escape 'ab'", "one character"),
    ("x like 'a' = true", "needs brackets"),
    ("x::int", ":: is not allowed"),
    ("10L", "10L is not allowed"),
    ("1_000", "1_000 is not allowed.*backticks"),
    ("x in (select y from t)", "select is not allowed"),
    ("exists(select 1)", "exists is not allowed"),
    ("select", "select is not allowed.*backticks"),
    ("x ilike 'a%'", "ilike is not allowed.*lower"),
    ("x like", "no expression"),
    ("x <=> y", "<=> is not allowed"),
    ("x div 2", "div is not allowed"),
    ("x ^ 2", r"\^ is not allowed"),
    ("x[0]", r"\[ is not allowed"),
    ("x; y", "; is not allowed"),
    ("*", r"\* is not allowed"),
    ("a.*", r"\* is not allowed"),
    ("x ** 2", r"\* is not allowed"),
    ("x y", "y is not allowed here"),
    ("'a' 'b'", "'b' is not allowed here"),
    ("time '20:20'", "is not allowed here"),
    ("power(x,,2)", ", is not allowed here"),
    ("(x, y)", "tuple is not allowed"),
    ("x is true", "null only"),
    ("x in y", "list in brackets"),
    ("x in ()", "list in brackets"),
    ("least(x)", "at least two"),
    ("1 < x < 2", "needs brackets"),
    ("true = x > 1", "needs brackets"),
    ("x = not p", "needs brackets"),
    ("1e", "no number"),
    ("1e400", "no float64"),
    ("9007199254740993", "no float64"),
    ("'abc", "not closed"),
    ("`abc", "not closed"),
    ("", "is no expression"),
    (" \n", "is no expression"),
    ("-- x", "is no expression"),
    ("a.x", r"only pair scorings use a\. and b\."),
    ("t.a.x", "only pair scorings"),
    ("x + 'a'", r"\+ needs numbers, but 'a' is a string"),
    ("abs(x > 1)", "abs needs numbers, but the result of > is a boolean"),
    ("not 3", "not needs booleans, but 3.0 is a number"),
    ("x > 1 and 2", "and needs booleans"),
    ("true + 1", r"\+ needs numbers, but true is a boolean"),
    ("1 = 'a'", "= needs one kind, and 1.0 is a number, but 'a' is a string"),
    ("x in (1, 'a')", "in needs one kind"),
    ("least('a', 'b')", "least needs numbers"),
    ("case when 1 then 2 end", "when needs booleans"),
    ("case when x then 1 else 'a' end", "then needs one kind"),
    ("case x when 1 then 2 when 'a' then 3 end", "case needs one kind"),
]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_refused(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=f"(?s){says}") as caught:
        parse(text)
    assert text in str(caught.value) or repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("x +", 2),
        ("(x", 1),
        ("x)", 1),
        ("abs(x, y)", 8),
        ("abs()", 4),
        ("case when x then 1", 17),
        ("x = = y", 4),
    ],
)
def test_a_syntax_error_points_at_the_place(text: str, at: int) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value).splitlines()[1:] == [f"  {text}", "  " + " " * at + "^"]


def test_a_long_text_is_shown_around_the_place() -> None:
    with pytest.raises(QueryError) as caught:
        parse(" + ".join(["some_column"] * 20) + " + log(x)" + " + other_column" * 20)
    _, line, mark = str(caught.value).splitlines()
    assert line[mark.index("^") :].startswith("log(x)")
    assert len(line) <= 102


@pytest.mark.parametrize("text", ["x", "x + 1", "abs(a.x - y)", "c.x - a.x", "t.a.x", "`a.x`"])
def test_pairs_refuse_what_is_not_qualified(text: str) -> None:
    with pytest.raises(QueryError, match=r"of which object it is. Write a\.`?[a.]*[xy]`? or b\."):
        parse(text, members=("a", "b"))


@pytest.mark.parametrize("text", [None, 3, ["x"]])
def test_no_text(text: Any) -> None:
    with pytest.raises(QueryError, match="is no expression"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x + y", 'no column "y". The columns are: x, p, s, i'),
        ("x + s", r'\+ needs numbers, but column "s" is a string'),
        ("x + p", r'\+ needs numbers, but column "p" is a boolean'),
        ("s = x", '= needs one kind, and column "s" is a string, but column "x" is a number'),
        ("s > 1", '> needs one kind, and column "s" is a string, but 1.0 is a number'),
        ("not x", 'not needs booleans, but column "x" is a number'),
        ("coalesce(x, s)", "coalesce needs one kind"),
        ("i + 1", 'column "i" is int64'),
    ],
)
def test_a_batch_that_does_not_fit(text: str, says: str) -> None:
    columns = {"x": operand([1.0], "number"), "p": operand([True], "boolean"), "s": operand(["a"], "string")}
    columns["i"] = Operand(np.array([1]))
    with pytest.raises(BatchError, match=says):
        parse(text).evaluate(columns, 1)


HOSTILE = {
    "brackets": "(" * 3000 + "x" + ")" * 3000,
    "open": "(" * 9999,
    "functions": "abs(" * 2000 + "x" + ")" * 2000,
    "minus": "- " * 4000 + "x",
    "not": "not " * 2000 + "p",
    "sum": "+".join(["x"] * 4000),
    "and": " and ".join(["p"] * 1000),
    "cases": "case when p then " * 400 + "1" + " end" * 400,
    "simple cases": "case " * 400 + "x" + " when 1 then 2 end" * 400,
    "words": "case " * 1900,
    "long": "x + " * 3000 + "x",
    "quotes": "'" * 9999,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert len(str(caught.value)) < 800


def test_what_is_deep_but_allowed_runs() -> None:
    x = {"x": operand([1.0], "number")}
    assert run(parse("+".join(["x"] * 200)), x, 1) == [200.0]
    assert run(parse("(" * 30 + "x" + ")" * 30), x, 1) == [1.0]
    nested = parse("case " * 29 + "x" + " when 1 then 1 when 2 then 2 end" * 29)  # 2^29 if it were copied
    assert run(nested, x, 1) == [1.0]
    assert recognise(nested).kind == "opaque"


@given(st.text(alphabet="xa.`'\"()+-*/%=<>!, 01e\n\\;#@é", max_size=30) | st.text(max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        recognise(parse(text))
    except QueryError as error:
        assert str(error)  # noqa: PT017


WORDS = ["x", "y", "a.x", "null", "case", "when", "then", "else", "end", "and", "or", "not", "is", "in"]
WORDS += ["between", "(", ")", ",", "+", "-", "*", "/", "=", "<", "1", "'a'", "abs", "least"]


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), st.sampled_from([(), ("a", "b")]))
@settings(max_examples=500, deadline=None)
def test_any_words_are_read_or_refused(text: str, members: tuple[str, ...]) -> None:
    try:
        expression = parse(text, members=members)
    except QueryError:
        return
    recognise(expression)
    is_symmetric(expression)
