"""Objects in parts in the oracle, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from oracle.rows import brief
from skyband.oracle import Oracle
from skyband.query.kinds import TopKIncomplete
from skyband.query.scoring import Linear
from skyband.query.windows import Last

Row = dict[str, Any]


def parts(text: str) -> list[Row]:
    """'A.a.5' as id A, part a, value 0.5; 'A.a.5@7' with a time too."""
    rows = []
    for word in text.split():
        name, part, value = word.partition("@")[0].split(".")
        row: Row = {"id": name, "part": part, "value": float("0." + value) if value != "X" else 1.0}
        rows.append(row | {"t": int(word.partition("@")[2])} if "@" in word else row)
    return rows


def test_incomplete_objects() -> None:
    #  at    0       1       2       3            n = 3 rows of all parts
    #        A.a .5  B.a .4  B.b .4  C.a .1
    #  A     .5      .5      .5      gone
    #  B             .4      .8      .8
    #  C                             .1
    o = Oracle(TopKIncomplete(1, ["a", "b"], Last(3)), id="id")
    assert brief(o.push(parts("A.a.5 B.a.4 B.b.4 C.a.1"))) == ["0 +A*", "2 -A", "2 +B*"]
    assert o.answer() == [{"rank": 1, "id": "B", "score": 0.8}]
    #  B loses a, then b: its score moves while it stays, then C takes over
    changes = o.push(parts("D.a.0 D.b.0"))
    assert brief(changes) == ["5 -B", "5 +C*"]
    assert changes[0]["score"] == 0.4  # the last one it had in the answer: part a went out one step before


def test_incomplete_first_again_once_no_row_was_valid() -> None:
    o = Oracle(TopKIncomplete(1, ["a", "b"], Last(span=2)), id="id", time="t")
    assert brief(o.push(parts("A.a.5@0 A.b.1@1 B.a.9@1 C.a.X@4"))) == [
        *("0@0 +A*", "2@1 -A", "2@1 +B*", "2@3 -B", "3@4 +C*"),
    ]
    assert brief(o.push(parts("A.b.5@5")) + o.advance(6)) == ["4@6 -C", "4@6 +A*"]


def test_incomplete_ties_go_to_the_newest_row() -> None:
    o = Oracle(TopKIncomplete(2, ["a", "b"], Last(9), combine="max"), id="id")
    o.push(parts("A.a.5 B.a.5 A.b.1"))
    assert [(r["id"], r["score"]) for r in o.answer()] == [("A", 0.5), ("B", 0.5)]


def test_incomplete_repeats() -> None:
    rows = parts("A.a.5 A.a.4 A.a.3")
    expected: dict[Any, float] = {None: 0.5, "last": 0.3, "max": 0.5, "sum": (0.5 + 0.4) + 0.3}
    for repeat, score in expected.items():
        o = Oracle(TopKIncomplete(1, ["a"], Last(9), repeat=repeat), id="id")
        o.push(rows)
        assert [r["score"] for r in o.answer()] == [score]
        assert o.rejected == ({"second row of the same part": 2} if repeat is None else {})
    #  in a window of 2 the third row comes as the first goes: the two are never valid together
    o = Oracle(TopKIncomplete(1, ["a"], Last(2)), id="id")
    o.push(parts("A.a.5 B.a.1 A.a.2"))
    assert [(r["id"], r["score"]) for r in o.answer()] == [("A", 0.2)]
    o = Oracle(TopKIncomplete(1, ["a"], Last(span=2)), id="id", time="t")
    o.push(parts("A.a.5@0 A.a.2@2"))
    assert [(r["id"], r["score"], r["time"]) for r in o.answer()] == [("A", 0.2, 2)]


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        ("sum", 2 + 10),
        ("mean", 6.0),
        ("min", 2.0),
        ("max", 10.0),
        (Linear({"b": 0.5, "a": 3}), 0.5 * 10 + 3 * 2),
        ("a + 2*b", 22.0),
    ],
)
def test_incomplete_combinations(combine: Any, expected: float) -> None:
    #  part b never comes: it counts as its low, 10
    o = Oracle(TopKIncomplete(1, {"a": (0, 5), "b": (10, 20)}, Last(9), combine=combine), id="id")
    o.push([{"id": "A", "part": "a", "value": 2}])
    assert [r["score"] for r in o.answer()] == [expected]
