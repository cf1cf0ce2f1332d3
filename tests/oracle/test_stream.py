"""The oracle worked out by hand: `where`, groups, `emit`, rejected rows, thresholds, deletions."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from oracle.rows import brief, ids, objects
from skyband.errors import BatchError, QueryError
from skyband.oracle import Oracle
from skyband.query.kinds import Above, Query, TopK, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.query.scoring import Linear
from skyband.query.windows import Last, UntilDeleted

Row = dict[str, Any]


# ---------------------------------------------------------- where, per, emit, first


def test_where_restricts_answers_not_the_window() -> None:
    #  at 0 A5 yes, 1 B9 no, 2 C1 yes: B counts in the window of 2, so A is out when C comes.
    o = Oracle(TopK(1, by="s", window=Last(2), where="ok"), id="id")
    rows = objects("A5", ok=True) + objects("B9", ok=False) + objects("C1", ok=True) + objects("D1", ok=None)
    assert brief(o.push(rows)) == ["0 +A*", "2 -A", "2 +C*"]
    assert o.skyband("q0") == ["C"]
    assert o.push(objects("Enull", ok=False)) == []
    assert o.rejected == {"score is null or NaN": 1}  # rejection comes before `where`


def test_groups_number_their_arrivals_and_null_is_a_group() -> None:
    o = Oracle(TopK(1, by="s", window=Last(9), per=("g", "h")), id="id")
    keys = [(1.0, None), (None, None), (math.nan, 0.0), (math.nan, -0.0), (1.0, None)]
    changes = o.push([{"id": i, "s": i, "g": g, "h": h} for i, (g, h) in enumerate(keys)])
    assert list(changes[0])[:4] == ["query", "g", "h", "at"]
    assert brief(changes) == ["0 +0*", "0 +1*", "0 +2*", "1 -2", "1 +3*", "1 -0", "1 +4*"]
    assert ids(o) == [4, 1, 3]  # groups in order of first appearance
    assert ids(o, key=(math.nan, 0)) == [3]
    assert ids(o, key=(2.0, 0)) == []
    with pytest.raises(QueryError, match="one value for each"):
        o.answer(key=1.0)


def test_emit_batch_is_one_difference_per_group() -> None:
    o = Oracle(TopK(1, by="s", window=Last(2), per="g"), id="id", time="t", emit="batch")
    #  x: A5 comes and goes within the push, so it never enters; `first` is of emitted changes
    rows = objects("A5@1 B1@2 C2@3", g="x") + objects("D1@2", g="y") + objects("E0@4", g="x")
    changes = o.push(rows)
    # by step: the last arrival of y comes before that of x, as a Monitor reports them
    assert [(c["g"], *brief([c])) for c in changes] == [("y", "0@2 +D*"), ("x", "3@4 +C*")]
    assert o.push([]) == []
    assert brief(o.push(objects("F9@5 G1@5 H0@5", g="x"))) == ["6@5 -C", "6@5 +G*"]


def test_emit_batch_in_time_windows_is_at_the_clock() -> None:
    o = Oracle(TopK(1, by="s", window=Last(span=3), per="g"), id="id", time="t", emit="batch")
    o.push(objects("A5@1", g="x"))
    changes = o.push(objects("B5@1 C7@9", g="y"))
    assert [(c["g"], *brief([c])) for c in changes] == [("x", "0@9 -A"), ("y", "1@9 +C*")]
    assert brief(o.advance(12)) == ["1@12 -C"]


def test_first_is_once_per_object() -> None:
    o = Oracle(TopK(1, by="s", window=Last(3)), id="id")
    assert brief(o.push(objects("A5 B9 C1 D2 E1"))) == ["0 +A*", "1 -A", "1 +B*", "4 -B", "4 +D*"]
    o = Oracle(TopK(1, by="s", window=Last(span=4)), id="id", time="t")  # A and B enter a second time
    assert brief(o.push(objects("A5@3 B9@1")) + o.advance(5)) == [
        "0@3 +A*",
        "1@3 -A",
        "1@3 +B*",
        "1@5 -B",
        "1@5 +A",
    ]


def test_keep_columns_and_the_union_of_columns() -> None:
    queries: list[Query] = [
        TopK(1, by="s", window=Last(2), per="g"),
        TopKPairs(1, by="abs(a.s - b.s)", window=Last(2)),
        TopKUncertain(1, by="s", window=Last(2)),
    ]
    o = Oracle(queries, id="id", time="t", keep="c")
    changes = o.push(objects("A1@0 B2@1", g="x", c="k", p=0.5))
    assert list(changes[0]) == [
        *("query", "g", "at", "time", "id", "id_a", "id_b", "score", "rank", "probability"),
        *("diff", "first", "c", "c_a", "c_b"),
    ]
    assert [c["query"] for c in changes] == ["q0"] * 3 + ["q1"] + ["q2"] * 3
    pair = changes[3]
    assert (pair["id"], pair["id_a"], pair["id_b"], pair["c"], pair["c_a"], pair["g"]) == (
        *(None, "A", "B", None, "k", None),
    )
    assert o.answer("q1") == [{"rank": 1, "id_a": "A", "id_b": "B", "time": 1, "score": 1.0, "c_a": "k", "c_b": "k"}]
    with pytest.raises(QueryError, match="writes itself"):
        Oracle(queries, keep=("score",))


# ------------------------------------------------------------------------ rejection


@pytest.mark.parametrize(
    ("query", "row", "reason"),
    [
        (TopK(1, by="s", window=Last(2)), {"s": None}, "score is null or NaN"),
        (TopK(1, by="s", window=Last(2)), {"s": math.nan}, "score is null or NaN"),
        (TopK(1, by="s", window=Last(2)), {"s": 1, "t": None}, "time is null"),
        (TopK(1, by="s", window=Last(2)), {"s": 2**53 + 1}, "integer beyond 2^53"),
        (TopK(1, by="s", window=Last(2)), {"s": Decimal(f"-{2**53}.{'0' * 30}1")}, "integer beyond 2^53"),
        (TopK(1, by="s", window=Last(2), where="u > 0"), {"s": 1, "u": -(2**53) - 1}, "integer beyond 2^53"),
        (TopK(1, by=Linear({"s": 1, "u": 1}), window=Last(2)), {"s": 1, "u": None}, "score is null or NaN"),
        (TopK(1, by="s", window=UntilDeleted()), {"id": None, "s": 1}, "id is null"),
        (TopKUncertain(1, by="s", window=Last(2)), {"s": 1, "p": 0}, "probability is not in (0, 1]"),
        (TopKUncertain(1, by="s", window=Last(2)), {"s": 1, "p": 1.1}, "probability is not in (0, 1]"),
        (TopKUncertain(1, by="s", window=Last(2)), {"s": 1, "p": None}, "probability is not in (0, 1]"),
        (TopKIncomplete(1, ["a"], Last(2)), {"part": "b", "value": 0.5}, "unknown part"),
        (TopKIncomplete(1, ["a"], Last(2)), {"part": "a", "value": 1.5}, "value out of range"),
        (TopKIncomplete(1, ["a"], Last(2)), {"part": "a", "value": math.nan}, "value out of range"),
        (TopKIncomplete(1, ["a"], Last(2)), {"id": None, "part": "a", "value": 1}, "id is null"),
    ],
)
def test_rejected_rows(query: Query, row: Row, reason: str) -> None:
    row = {"id": "X", "t": 7} | row
    o = Oracle(query, id="id", time="t")
    assert o.push([row]) == []
    assert (o.rejected, o.arrivals, o.clock) == ({reason: 1}, 0, None)
    strict = Oracle(query, id="id", time="t", invalid="raise")
    with pytest.raises(BatchError, match="row 0"):
        strict.push([row])


def test_what_is_not_rejected() -> None:
    o = Oracle(TopK(9, by="s", window=Last(9)), id="id")
    o.push(
        [
            {"id": "A", "s": 2**53},
            {"id": "B", "s": math.inf},
            {"id": "C", "s": -math.inf},
            {"id": None, "s": 0},
        ]
    )
    assert ids(o) == ["B", "A", None, "C"]
    assert not o.rejected


def test_a_rejected_row_is_no_arrival_of_the_query_that_rejects_it() -> None:
    o = Oracle([TopK(1, by="s", window=Last(1)), TopK(1, by="u", window=Last(1))], id="id")
    changes = o.push([{"id": "A", "s": 1, "u": 1}, {"id": "B", "s": None, "u": 2}, {"id": "C", "s": 0, "u": 0}])
    assert brief(changes) == ["0 +A*", "1 -A", "1 +C*", "0 +A*", "1 -A", "1 +B*", "2 -B", "2 +C*"]


def test_invalid_raise_changes_nothing() -> None:
    o = Oracle(TopK(1, by="s", window=Last(2)), id="id", invalid="raise")
    o.push(objects("A1"))
    with pytest.raises(BatchError, match="row 1, column 's': score is null or NaN"):
        o.push(objects("B2 Cnull"))
    assert ids(o) == ["A"]
    assert (o.arrivals, o.rejected) == (1, {})
    assert brief(o.push(objects("B2"))) == ["1 -A", "1 +B*"]


# ---------------------------------------------------------------- above, UntilDeleted


def test_above_is_strict() -> None:
    o = Oracle(Above(3, by="s", window=Last(3)), id="id")
    assert brief(o.push(objects("A3 B4 C9 D1 E1"))) == ["1 +B*", "2 +C*", "4 -B"]
    assert o.answer() == [{"rank": 1, "id": "C", "score": 9.0}]


def test_until_deleted() -> None:
    #      A5  B3  A1 (replaces A5 in one step: A leaves, the new A is another object)  delete B
    o = Oracle(TopK(1, by="s", window=UntilDeleted()), id="id", time="t")
    assert brief(o.push(objects("A5@1 B3@2"))) == ["0@1 +A*"]
    assert brief(o.push(objects("A1@1"))) == ["2@1 -A", "2@1 +B*"]
    assert brief(o.delete(["Z", "B"])) == ["2@2 -B", "2@2 +A*"]  # the clock is at 2
    assert o.rejected == {"unknown id": 1}
    assert ids(o) == ["A"]
    assert brief(o.delete(["A", "A"])) == ["2@2 -A"]
    assert o.rejected == {"unknown id": 2}
    assert brief(o.push(objects("A1@5"))) == ["3@5 +A*"]


def test_until_deleted_above_and_groups() -> None:
    o = Oracle(Above(0, by="s", window=UntilDeleted(), per="g"), id="id")
    o.push(objects("A1 B1", g="x") + objects("A1", g="y"))
    changes = o.delete(["B", "A"])  # an id is a key within its group; deletion names it in all of them
    assert [(c["g"], *brief([c])) for c in changes] == [("x", "1 -B"), ("x", "1 -A"), ("y", "0 -A")]
    assert brief(o.push(objects("B2 B3", g="x"))) == ["2 +B*", "3 -B", "3 +B*"]
    with pytest.raises(QueryError, match="ids are keys"):
        Oracle(TopK(1, by="s", window=UntilDeleted()))


def test_until_deleted_keeps_everything_and_batches() -> None:
    o = Oracle(TopK(2, by="s", window=UntilDeleted()), id="id", time="t", emit="batch")
    assert brief(o.push(objects("A1@3 B2@1 C3@2"))) == ["2@2 +C*", "2@2 +B*"]
    assert o.skyband("q0") == ["C", "B", "A"]
    assert brief(o.delete(["C", "B"])) == ["2@3 -C", "2@3 -B", "2@3 +A*"]
