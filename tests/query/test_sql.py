"""Questions in one sentence: every kind, the way back, and errors that point at the word."""

from __future__ import annotations

import contextlib
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.questions import COMMON, queries
from skyband.errors import QueryError
from skyband.pipeline import pipeline_of
from skyband.query.kinds import Query

# ------------------------------------------------------------------- what sentences mean

MEANT: dict[str, Query] = {
    "SELECT * FROM flights WHERE distance > 500 ORDER BY delay DESC LIMIT 10 PER origin WINDOW '24 hours'": sb.TopK(
        10, by="delay", window=sb.Last("24 hours"), where="distance > 500", per="origin"
    ),
    "select * from s order by x limit 1 window 24 hours per a, `b c`;": sb.TopK(
        1, by="x", window=sb.Last("24 hours"), largest=False, per=("a", "b c")
    ),
    "SELECT * FROM s ORDER BY nearest(x = 0.2, y = -9) LIMIT 2 WINDOW SPAN 300": sb.TopK(
        2, by=sb.Nearest({"x": 0.2, "y": -9}), window=sb.Last(span=300)
    ),
    "SELECT * FROM s ORDER BY nearest(x = 1) WEIGHTS (x = 3) METRIC Manhattan DESC LIMIT 2 WINDOW 5 ROWS": sb.TopK(
        2, by=sb.Nearest({"x": 1}, {"x": 3}, "manhattan"), window=sb.Last(5), largest=True
    ),
    "SELECT * FROM s ORDER BY linear(x = 0.7, y = .3) DESC LIMIT 2 UNTIL DELETED": sb.TopK(
        2, by=sb.Linear({"x": 0.7, "y": 0.3}), window=sb.UntilDeleted()
    ),
    "SELECT * FROM s ORDER BY product(x = 1) DESC LIMIT 2 WINDOW UNTIL DELETED": sb.TopK(
        2, by=sb.Product({"x": 1}), window=sb.UntilDeleted()
    ),
    "SELECT * FROM s ORDER BY x DESC LIMIT 2 WINDOW EVER PER origin": sb.TopK(
        2, by="x", window=sb.Ever(), per="origin"
    ),
    "SELECT * FROM s ORDER BY x DESC LIMIT 3 WINDOW 1000 ROWS APPROXIMATE 0.01": sb.TopK(
        3, by="x", window=sb.Last(1000), algorithm="PA", sigma=0.01
    ),
    "SELECT * FROM s ORDER BY quadratic(x = 1) DESC LIMIT 3 WINDOW 9 ROWS USING sma OPTIONS (cells = 5)": sb.TopK(
        3, by=sb.Quadratic({"x": 1}), window=sb.Last(9), algorithm="SMA", cells=5
    ),
    "SELECT * FROM s WINDOW 9 ROWS LIMIT 3 ORDER BY case when x in (1, 2) then -x else `limit` end DESC "
    "WHERE z is not null and x between 1 and 2": sb.TopK(
        3,
        by="case when x in (1, 2) then -x else `limit` end",
        window=sb.Last(9),
        where="z is not null and x between 1 and 2",
    ),
    "SELECT * FROM s WHERE distance > 500 ABOVE 60 BY delay PER origin WINDOW '24 hours'": sb.Above(
        60, by="delay", window=sb.Last("24 hours"), where="distance > 500", per="origin"
    ),
    "SELECT * FROM s ABOVE -infinity BY `window` UNTIL DELETED": sb.Above(
        float("-inf"), by="window", window=sb.UntilDeleted()
    ),
    "SELECT symbol, sum(qty) FROM s GROUP BY symbol HAVING count(*) > 3 ORDER BY sum(qty) DESC LIMIT 10 "
    "WINDOW '5 minutes'": sb.TopKGroups(
        10, by="sum(qty)", window=sb.Last("5 minutes"), of="symbol", having="count(*) > 3"
    ),
    "SELECT g, a, `b c`, sum(x), count(*) n, avg(x) AS `order` FROM s PER g GROUP BY a, `b c` ORDER BY n LIMIT 2 "
    "WINDOW 9 ROWS WHERE x > 0": sb.TopKGroups(
        2,
        by="count(*)",
        window=sb.Last(9),
        of=("a", "b c"),
        largest=False,
        where="x > 0",
        per="g",
        select={"sum(x)": "sum(x)", "n": "count(*)", "order": "avg(x)"},
    ),
    "SELECT a, SUM( x ), count(*), last(z) = 'GROUP' AS open FROM s GROUP BY a ORDER BY 2 DESC LIMIT 3 "
    "UNTIL DELETED": sb.TopKGroups(
        3,
        by="SUM( x )",
        window=sb.UntilDeleted(),
        of="a",
        select={"count(*)": "count(*)", "open": "last(z) = 'GROUP'"},
    ),
    "SELECT a, sum(x) FROM s GROUP BY a ORDER BY 2 DESC, 1 LIMIT 3 WINDOW 9 ROWS": sb.TopKGroups(
        3, ("sum(x)", "id"), sb.Last(9), of="a", largest=(True, False)
    ),
    "SELECT * FROM s ORDER BY sum(x) + count(distinct y) DESC LIMIT 3 WINDOW 9 ROWS": sb.TopKGroups(
        3, by="sum(x) + count(distinct y)", window=sb.Last(9)
    ),
    "SELECT a, sum(x) FROM s GROUP BY a ORDER BY sum(x) DESC LIMIT 3 WINDOW EVER DECAY '1 hour'": sb.TopKGroups(
        3, by="sum(x)", window=sb.Ever(), of="a", decay="60 min"
    ),
    "SELECT a, sum(x) FROM s GROUP BY a ORDER BY sum(x) LIMIT 3 WINDOW EVER DECAY 2.5": sb.TopKGroups(
        3, by="sum(x)", window=sb.Ever(), of="a", decay=2.5, largest=False
    ),
    "SELECT * FROM s a, s b ORDER BY abs(a.x - b.x) LIMIT 3 WINDOW 1000 ROWS": sb.TopKPairs(
        3, by="abs(a.x - b.x)", window=sb.Last(1000)
    ),
    "SELECT * FROM s a, s b WHERE z = 'DESC' ORDER BY a.order - b.order DESC LIMIT 3 WINDOW 9 ROWS "
    "OPTIONS (symmetric = false)": sb.TopKPairs(
        3, by="a.order - b.order", window=sb.Last(9), where="z = 'DESC'", largest=True, symmetric=False
    ),
    "SELECT * FROM s a, s b ORDER BY global(x = absdiff, y = sum) COMBINE product LIMIT 3 WINDOW 9 ROWS": sb.TopKPairs(
        3, by=sb.Global({"x": "absdiff", "y": "sum"}, "product"), window=sb.Last(9)
    ),
    "SELECT * FROM s PARTS (north, 'south east', `w` -1.5 TO 2e3) COMBINE SUM LIMIT 3 WINDOW 9 ROWS": sb.TopKIncomplete(
        3, {"north": (0, 1), "south east": (0, 1), "w": (-1.5, 2000)}, sb.Last(9)
    ),
    "SELECT * FROM s WHERE x > 1 PARTS (n 0 TO INFINITY) COMBINE n ASC LIMIT 3 WINDOW 9 ROWS": sb.TopKIncomplete(
        3, {"n": (0, math.inf)}, sb.Last(9), combine="n", largest=False, where="x > 1"
    ),
    "SELECT * FROM s PARTS (*) COMBINE sum LIMIT 3 WINDOW 9 ROWS": sb.TopKIncomplete(3, "*", sb.Last(9)),
    "SELECT * FROM s PARTS (* -1 TO 5) COMBINE max LIMIT 3 WINDOW 9 ROWS": sb.TopKIncomplete(
        3, {"*": (-1, 5)}, sb.Last(9), combine="max"
    ),
    "SELECT * FROM s COMBINE n + 2*s PARTS (n, s) LIMIT 3 REPEAT last WINDOW 9 ROWS USING SLA": sb.TopKIncomplete(
        3, ["n", "s"], sb.Last(9), combine="n + 2*s", repeat="last", algorithm="SLA"
    ),
    "SELECT * FROM s PARTS (n, MAX) COMBINE MAX LIMIT 3 WINDOW 9 ROWS": sb.TopKIncomplete(
        3, ["n", "MAX"], sb.Last(9), combine="MAX"
    ),
    "SELECT * FROM s ORDER BY x DESC LIMIT 3 WINDOW 9 ROWS WITH PROBABILITY p SEMANTICS 'u-topk'": sb.TopKUncertain(
        3, by="x", window=sb.Last(9), semantics="u-topk"
    ),
    "SELECT * FROM s ORDER BY x LIMIT 3 WINDOW 9 ROWS WITH PROBABILITY `p q` SEMANTICS 'pt-k' THRESHOLD 0.5 GROUP g "
    "USING 'scsq-buffer'": sb.TopKUncertain(
        3,
        by="x",
        window=sb.Last(9),
        probability="p q",
        semantics="pt-k",
        threshold=0.5,
        group="g",
        largest=False,
        algorithm="SCSQ-BUFFER",
    ),
}


@pytest.mark.parametrize("text", MEANT)
def test_meaning(text: str) -> None:
    asked = sb.sql(text)
    assert asked == MEANT[text]
    assert sb.sql(asked.to_sql()) == asked


def test_the_sentence_of_the_issue() -> None:
    text = "SELECT * FROM flights WHERE distance > 500 ORDER BY delay DESC LIMIT 10 PER origin WINDOW '24 hours'"
    assert sb.sql(text).to_sql("flights") == text


@pytest.mark.parametrize("kind", queries)
@COMMON
@given(data=st.data())
def test_round_trip(kind: str, data: st.DataObject) -> None:
    query = data.draw(queries[kind])
    assert sb.sql(query.to_sql()) == query
    assert sb.sql(query.to_sql("order by")) == query


TEXTS = [
    *(
        "window",
        "`window`",
        "limit + 1",
        " x ",
        "x -- why\n",
        "x /* why */",
        "x -- why\n + 1",
        "a.x",
        "`a``b`",
        "'it\\'s'",
    ),
    *("case when x > 0 then 1 else window end", "expression", "linear", "`linear` + 1", "desc", "x\n+ 1", "Ünï"),
    *("coalesce(x, `per`)", "x in ('order by', \"limit\")", "not x = 1", "(x)", "-x", "x is null", "power(x, 2)"),
]


@pytest.mark.parametrize("by", TEXTS)
def test_texts_come_back_as_they_were(by: str) -> None:
    """Also those that are clauses, or have spaces and comments that a sentence would lose."""
    try:
        query: Query = sb.TopK(1, by=by, window=sb.Last(1), where=by)
    except QueryError:
        assert by == "a.x"
        query = sb.TopKPairs(1, by="a.x", window=sb.Last(1), symmetric=False)
    assert sb.sql(query.to_sql()) == query


@pytest.mark.parametrize("largest", [None, True, False])
@pytest.mark.parametrize("by", ["x", sb.Nearest({"x": 1})])
def test_a_direction_said_twice_is_kept(largest: bool | None, by: Any) -> None:
    query = sb.TopK(1, by=by, window=sb.Last(1), largest=largest)
    assert ("DESC" in query.to_sql()) == query.descending
    assert sb.sql(query.to_sql()) == query


def test_a_function_cannot_be_said() -> None:
    with pytest.raises(QueryError, match=r"Python function .*cannot be said in SQL"):
        sb.TopK(1, by=lambda batch: batch["x"], window=sb.Last(1)).to_sql()


# --------------------------------------------------------------------------------- errors

GOOD = "SELECT * FROM s ORDER BY x DESC LIMIT 3 WINDOW 9 ROWS"
WRONG = {  # the mark stands under what is between « and »
    "«hello»": "SELECT is expected",
    "SELECT «upper»(a) AS b FROM s ORDER BY c LIMIT 3 WINDOW 9 ROWS": "columns as they came",
    "SELECT * FROM s ORDER BY «1» LIMIT 3 WINDOW 9 ROWS": "no item 1",
    "SELECT * FROM s AS t ORDER BY t.x + t.«tan»(y) LIMIT 3 WINDOW 9 ROWS": "not allowed",
    "SELECT * «s»": "FROM is expected",
    "SELECT * FROM «5»": "a name is expected",
    "SELECT * FROM s «c», s d": "a pair of objects is FROM s a, s b",
    "SELECT * FROM s a, «t» b": "pairs are of one stream",
    "SELECT * FROM s a, s «c»": "B is expected",
    "SELECT * FROM s ORDER BY «log»(x) DESC LIMIT 3": "Did you mean ln",
    "SELECT * FROM s ORDER BY x + «DESC» LIMIT 3": "an operand is missing before it",
    "SELECT * FROM s WHERE x > «ORDER» BY x": "an operand is missing before it",
    "SELECT * FROM s ORDER BY (x «LIMIT» 3": "not closed",
    "SELECT * FROM s ORDER BY «DESC»": "missing",
    "SELECT * FROM s ORDER «x»": "BY is expected",
    "SELECT * FROM s ORDER BY x DESC «LIMT» 3": "Did you mean LIMIT?",
    "SELECT * FROM s LIMIT 3 «PARTITION» BY x": "PER column",
    "SELECT * FROM s GROUP BY x«»": "ORDER BY is missing",
    "SELECT * FROM s GROUP BY x ORDER BY «y» DESC": "write PER in place of GROUP BY",
    "SELECT * FROM s GROUP BY x HAVING «y» > 3": "y is a column of a row",
    "SELECT * FROM s GROUP BY x HAVING «count»(*)": "having must be a condition",
    "SELECT * FROM s GROUP BY x WHERE «count»(*) > 3": "Write HAVING",
    "SELECT * FROM s GROUP BY x «GROUP» BY y": "twice",
    "SELECT * FROM s GROUP BY «5»": "there is no column at this place",
    "SELECT sum(«max»(y)) FROM s GROUP BY x": "max is inside sum",
    "SELECT «y», sum(z) FROM s GROUP BY x ORDER BY 2 LIMIT 3 WINDOW 9 ROWS": "Write last(y)",
    "SELECT «x» AS y, sum(z) FROM s GROUP BY x ORDER BY 2 LIMIT 3 WINDOW 9 ROWS": "Leave AS out",
    "SELECT sum(z), avg(z) a, «max»(z) a FROM s GROUP BY x ORDER BY 1 LIMIT 3 WINDOW 9 ROWS": "selected twice",
    "SELECT «sum»(z) AS score FROM s GROUP BY x ORDER BY 1 LIMIT 3 WINDOW 9 ROWS": "skyband writes itself",
    "SELECT x, sum(z) FROM s GROUP BY x ORDER BY «3»": "there is no item 3",
    "SELECT x, sum(z) FROM s GROUP BY x ORDER BY 2 LIMIT 3 WINDOW EVER DECAY «soon»": "half-life",
    "SELECT x, avg(z) FROM s GROUP BY x ORDER BY «2» LIMIT 3 WINDOW EVER DECAY 3": "sum of multiples",
    "SELECT * FROM s GROUP BY x ORDER BY sum(z) LIMIT 3 WINDOW 9 ROWS «REPEAT» last": "does not go with groups",
    "SELECT * FROM s a, s b «GROUP» BY x ORDER BY abs(a.x - b.x)": "does not go with pairs",
    "SELECT * FROM s ORDER BY x OFFSET «3» WINDOW 9 ROWS": "whole window",
    "SELECT * FROM s «OFFSETS» 3": "Did you mean OFFSET?",
    f"{GOOD} «LIMIT» 4": "twice",
    GOOD.replace("3", "«0»"): "k must be at least 1",
    GOOD.replace("3", "«2.5»"): "whole number",
    GOOD.replace("3", "«ten»"): "a number is expected",
    GOOD.replace("9 ROWS", "9«»"): "9 of what?",
    GOOD.replace("9 ROWS", "«'9 fortnights'»"): "not a duration",
    GOOD.replace("9 ROWS", "«0» ROWS"): "at least 1",
    GOOD.replace(" WINDOW 9 ROWS", "«»"): "WINDOW is missing",
    GOOD.replace("LIMIT 3 WINDOW 9 ROWS", "WINDOW 9 ROWS«»"): "LIMIT is missing",
    "SELECT * FROM s LIMIT 3 WINDOW 9 ROWS«»": "ORDER BY is missing",
    f"{GOOD} PER «score»": "skyband writes itself",
    f"{GOOD} WHERE «x between 2 and 1»": "nothing can ever be an answer",
    f"{GOOD} USING «SCASE»": "algorithm 'SCASE' is unknown",
    f"{GOOD} OPTIONS («bufer» = 3)": "bufer is no option of TopK",
    f"{GOOD} OPTIONS («k» = 3)": "clause of its own",
    f"{GOOD} OPTIONS («largest» = false)": "contradicts",
    f"{GOOD} OPTIONS (buffer «3»)": "= is expected",
    f"{GOOD} «UNTIL» DELETED": "a window is said already",
    f"{GOOD} USING PA «APPROXIMATE» 0.1": "one of the two",
    f"{GOOD} APPROXIMATE 0.1 «USING» PA": "one of the two",
    f"{GOOD} APPROXIMATE «2»": "sigma",
    f"{GOOD} «SEMANTICS» 'pt-k'": "WITH PROBABILITY p, which is missing",
    f"{GOOD} «COMBINE» sum": "which is missing",
    f"{GOOD} «REPEAT» last": "does not go with a top-k question",
    f"{GOOD} WITH PROBABILITY p SEMANTICS «'pt-k'»": "pt-k needs threshold",
    f"{GOOD} WITH «p»": "PROBABILITY is expected",
    "SELECT * FROM s ABOVE 3 BY x «LIMIT» 3 WINDOW 9 ROWS": "does not go with ABOVE",
    "SELECT * FROM s ABOVE 3 «x» WINDOW 9 ROWS": "BY is expected",
    "SELECT * FROM s ABOVE 3 BY «nearest»(x = 1) WINDOW 9 ROWS": "Nearest ranks the smallest first",
    "SELECT * FROM s ORDER BY nearest(x = 1, «x» = 2) LIMIT 1 WINDOW 9 ROWS": "is named twice",
    "SELECT * FROM s ORDER BY «nearest»(x = 1) METRIC taxi LIMIT 1 WINDOW 9 ROWS": "metric 'taxi' is unknown",
    "SELECT * FROM s a, s b ORDER BY «a».x - b.x LIMIT 3 WINDOW 9 ROWS": "a pair has no order",
    "SELECT * FROM s ORDER BY x DESC LIMIT 3 WITH PROBABILITY p «UNTIL» DELETED": "needs a window that moves on",
    "SELECT * FROM s «ON» a.x > b.x ORDER BY x LIMIT 3 WINDOW 9 ROWS": "does not go with",
    "SELECT * FROM s PARTS (n, «n») COMBINE sum LIMIT 3 WINDOW 9 ROWS": "is named twice",
    "SELECT * FROM s PARTS («5») COMBINE sum LIMIT 3 WINDOW 9 ROWS": "a part is expected",
    "SELECT * FROM s PARTS (n 0 «5») COMBINE sum LIMIT 3 WINDOW 9 ROWS": "TO is expected",
    "SELECT * FROM s PARTS (n) COMBINE «m» LIMIT 3 WINDOW 9 ROWS": "not a part",
    "SELECT * FROM s PARTS (n) «ORDER» BY n LIMIT 3 WINDOW 9 ROWS": "does not go with PARTS",
    "SELECT * FROM s WHERE x = «'abc": "not closed",
    "SELECT * FROM s WHERE y = 'ok' and x = «`abc": "not closed",
    "SELECT * FROM s «/* abc": "not closed",
}


@pytest.mark.parametrize("marked", WRONG)
def test_errors_point_at_the_word(marked: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    with pytest.raises(QueryError, match=re.escape(WRONG[marked])) as caught:
        sb.sql(text)
    assert caught.value.at == marked.index("«")
    *_, line, mark = str(caught.value).splitlines()
    assert line.strip() in text
    assert mark.strip() == "^"


@pytest.mark.parametrize("text", ["", "  ", None, 5, "SELECT " + "x" * 200_000])
def test_not_even_a_sentence(text: Any) -> None:
    with pytest.raises(QueryError, match=r"a question in SQL is|too long"):
        sb.sql(text)


@COMMON
@given(st.data())
def test_anything_is_a_query_or_a_query_error(data: st.DataObject) -> None:
    """A good sentence with words moved, lost, doubled or foreign never ends in another error."""
    words = data.draw(st.sampled_from(list(MEANT))).split(" ")
    foreign = [*words, "(", ")", ",", "'", "`x", "5", "=", "--", "/*", "é", "\x00", "select", ";"]
    for _ in range(data.draw(st.integers(1, 3))):
        words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.sampled_from(foreign) | st.just(""))
    with contextlib.suppress(QueryError):
        assert isinstance(sb.sql(" ".join(words)), Query)


# ------------------------------------------------------------------------ where it is used


def test_in_a_pipeline_file() -> None:
    data = {
        "source": {"format": "synthetic", "dataset": "flights_like", "rows": 9},
        "queries": {"late": "SELECT * FROM f ORDER BY delay DESC LIMIT 3 PER origin WINDOW '24 hours'"},
        "stream": {"id": "flight", "time": "time"},
        "sink": {"format": "noop"},
    }
    assert pipeline_of(data).queries == {
        "late": sb.TopK(3, by="delay", window=sb.Last("24 hours"), per="origin"),
    }
    data["queries"] = {"late": "SELECT * FROM f ORDER BY delay DESC LIMIT nine WINDOW '24 hours'"}
    with pytest.raises(QueryError, match=r"(?s)queries\.late: nine: a number is expected here.*\n.*\^"):
        pipeline_of(data)
