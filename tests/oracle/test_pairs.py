"""Pairs in the oracle, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from oracle.rows import brief, objects
from skyband.oracle import Oracle
from skyband.query.kinds import TopKPairs
from skyband.query.scoring import Global
from skyband.query.windows import Last

Row = dict[str, Any]


def test_pairs() -> None:
    #  at      0   1   2   3
    #          A1  B4  C5  D9     smallest |a - b|, n = 3, k = 2
    #  pairs   -   AB3 BC1 BC1
    #                  AB3 CD4      (A expires: AB and AC go with it)
    o = Oracle(TopKPairs(2, by="abs(a.s - b.s)", window=Last(3)), id="id")
    changes = o.push(objects("A1 B4 C5 D9"))
    assert brief(changes) == ["1 +AB*", "2 +BC*", "3 -AB", "3 +CD*"]
    assert list(changes[0]) == ["query", "at", "id_a", "id_b", "score", "diff", "first"]
    assert o.answer() == [
        {"rank": 1, "id_a": "B", "id_b": "C", "score": 1.0},
        {"rank": 2, "id_a": "C", "id_b": "D", "score": 4.0},
    ]


def test_ties_of_pairs() -> None:
    #  all pairs score 0: the pair whose older member is newer, then whose newer member is newer
    o = Oracle(TopKPairs(6, by=Global({"s": "absdiff"}), window=Last(4)), id="id")
    o.push(objects("A1 B1 C1 D1"))
    assert [r["id_a"] + r["id_b"] for r in o.answer()] == ["CD", "BD", "BC", "AD", "AC", "AB"]


def test_pairs_in_time_windows_and_late_members() -> None:
    #  t  0 1 2 3        B@1 comes last, so its number is 2, but it is older than C
    #     A B C          span = 3: all pairs with A go at 3
    o = Oracle(TopKPairs(3, by="b.s - a.s", window=Last(span=3), symmetric=False), id="id", time="t")
    assert brief(o.push(objects("A1@0 C4@2 B2@1"))) == ["1@2 +AC*", "2@2 +AB*", "2@2 +BC*"]
    assert [(r["id_a"], r["id_b"], r["time"], r["score"]) for r in o.answer()] == [
        ("A", "B", 1, 1.0),
        ("B", "C", 2, 2.0),
        ("A", "C", 2, 3.0),
    ]
    assert brief(o.advance(3)) == ["2@3 -AB", "2@3 -AC"]


def test_pairs_where_groups_and_pairs_without_a_score() -> None:
    o = Oracle(TopKPairs(9, by="a.s / b.s", window=Last(3), where="ok", per="g", symmetric=False), id="id")
    x = [{"g": "x", "ok": True} | row for row in objects("A0 B0 C2")]
    x[2]["ok"] = True
    changes = o.push([x[0], x[1], {"id": "N", "s": 1.0, "g": "y", "ok": True}, x[2]])
    assert brief(changes) == ["2 +BC*", "2 +AC*"]  # 0/0 is NaN: AB is no answer, A and B stay
    assert o.rejected == {"pair without a score": 1}
    assert brief(o.push([{"id": "D", "s": 1.0, "g": "x", "ok": False}])) == ["3 -AC"]
    assert brief(o.push([{"id": "E", "s": None, "g": "x", "ok": True}])) == ["4 -BC"]
    assert o.rejected == {"pair without a score": 2}
    o.push([{"id": "F", "s": 2**53 + 1, "g": "x", "ok": True}])
    assert o.rejected["integer beyond 2^53"] == 1


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (Global({"s": "absdiff", "u": "sum"}), 3 + 7),
        (Global({"s": "absdiff", "u": "sum"}, combine="product"), 3 * 7),
        (lambda a, b: a["s"] - b["s"], -3),
    ],
)
def test_scores_of_pairs(by: Any, expected: float) -> None:
    o = Oracle(TopKPairs(1, by=by, window=Last(2), symmetric=False), id="id")
    o.push([{"id": "A", "s": 1, "u": 3}, {"id": "B", "s": 4, "u": 4}])
    assert [r["score"] for r in o.answer()] == [expected]
