"""Queries that are added, replaced, dropped and narrowed in the oracle."""

from __future__ import annotations

from typing import Any

import pytest

from oracle.rows import brief, ids, objects
from skyband.errors import QueryError
from skyband.oracle import Oracle
from skyband.query.kinds import Above, TopK
from skyband.query.windows import Last

Row = dict[str, Any]


def test_a_query_added_later_goes_on_with_the_numbers() -> None:
    o = Oracle({"one": TopK(1, by="s", window=Last(9), per="g"), "all": TopK(1, by="s", window=Last(9))}, id="id")
    o.push(objects("A1 B2", g="x"))
    o.add("late", TopK(2, by="s", window=Last(9), per="g"))
    changes = o.push(objects("C0", g="x") + objects("D1", g="y"))
    assert [(c["query"], c["g"], *brief([c])) for c in changes if c["query"] == "late"] == [
        ("late", "x", "2 +C*"),
        ("late", "y", "0 +D*"),
    ]
    o.drop("one")
    assert list(o.queries) == ["all", "late"]
    with pytest.raises(QueryError, match="Running: all, late"):
        o.answer("one")
    with pytest.raises(QueryError, match="is running"):
        o.add("all", TopK(1, by="s", window=Last(9)))


def test_replace_keeps_the_state_when_the_new_query_fits() -> None:
    queries = {"small": TopK(1, by="s", window=Last(2)), "large": TopK(3, by="s", window=Last(4))}
    o = Oracle(queries, id="id", time="t")
    o.push(objects("A9@1 B8@2 C7@3 D6@4"))
    assert ids(o, "small") == ["C"]  # which was A and B before
    changes = o.replace("small", TopK(2, by="s", window=Last(4)))
    assert brief(changes) == ["3@4 -C", "3@4 +A", "3@4 +B"]  # shown before: not first again
    assert ids(o, "small") == ["A", "B"]
    assert list(o.queries) == ["small", "large"]


def test_replace_starts_empty_when_the_new_query_does_not_fit() -> None:
    o = Oracle({"q": TopK(1, by="s", window=Last(2)), "r": TopK(1, by="s", window=Last(2))}, id="id")
    o.push(objects("A9 B8"))
    assert brief(o.replace("q", TopK(2, by="s", window=Last(2)))) == ["1 -A"]
    assert o.answer("q") == []
    changes = o.push(objects("C7"))
    assert [(c["query"], *brief([c])) for c in changes] == [("q", "2 +C*"), ("r", "2 -A"), ("r", "2 +B*")]
    #  r fits in q's k now, but q came later and has not seen what r has
    assert brief(o.replace("r", TopK(2, by="s", window=Last(2)))) == ["2 -B"]
    assert brief(o.replace("q", TopK(1, by="s", window=Last(2), where="s > 0"))) == ["2 -C"]


def test_replace_in_time_windows_is_at_the_clock() -> None:
    o = Oracle(Above(5, by="s", window=Last(span=9)), id="id", time="t")
    o.push(objects("A9@1 B6@2 C1@5"))
    assert brief(o.replace("q0", Above(8, by="s", window=Last(span=9)))) == ["2@5 -B"]
    assert brief(o.replace("q0", Above(8, by="s", window=Last(span=4)))) == ["2@5 -A"]


def test_answers_with_a_smaller_k_or_window() -> None:
    o = Oracle(TopK(2, by="s", window=Last(3)), id="id")
    o.push(objects("A9 B8 C7"))
    assert ids(o, k=1) == ["A"]
    assert ids(o, window=Last(2)) == ["B", "C"]
    with pytest.raises(QueryError, match="larger"):
        o.answer(k=3)
    with pytest.raises(QueryError, match="inside"):
        o.answer(window=Last(4))
    o = Oracle(TopK(2, by="s", window=Last(span=9)), id="id", time="t")
    o.push(objects("A9@1 B8@5 C7@6"))
    assert ids(o, k=2, window=Last(span=2)) == ["B", "C"]
    assert ids(o, window=Last(span=1)) == ["C"]
