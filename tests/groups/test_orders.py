"""Single rules of orders and sessions of groups, each by a stream of a few rows whose answer is known."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.engines.groups.order import Order, Way
from skyband.query.expressions import Operand

LAST = sb.Last(100)


def rows(text: str) -> list[dict[str, Any]]:
    """'b2@7' as a row of object b with x = 2 at time 7; the time is the row's number without one."""
    found = []
    for number, word in enumerate(text.split()):
        word, _, time = word.partition("@")
        found.append({"o": word[0], "x": float(word[1:] or 0), "t": int(time) if time else number})
    return found


def monitor(by: Any, window: Any = LAST, k: int = 2, **more: Any) -> sb.Monitor:
    return sb.Monitor(sb.TopKGroups(k, by=by, window=window, of="o", **more), time="t")


def ids(m: sb.Monitor) -> str:
    return "".join(m.answer().column("id").to_pylist())


def moves(changes: Any) -> list[str]:
    return [f"{c['time']} {'+' if c['diff'] > 0 else '-'}{c['id']}{'*' * c['first']}" for c in changes.to_pylist()]


def test_the_next_key_decides_among_equals() -> None:
    m = monitor(("sum(x)", "id"), k=4, largest=(True, False))
    m.push(rows("c1 a1 b2 d1"))
    assert ids(m) == "bacd"
    assert m.answer().column_names[3:] == ["score", "key_1", "key_2"]
    assert m.answer().column("key_2").to_pylist() == ["b", "a", "c", "d"]


def test_of_equal_objects_the_newest_row_decides() -> None:
    text = "a1 b1 c1 a1 c-1 b0"  # newest rows: a 3, c 4, b 5; b and c have been there as long as a
    for ties, expected in (("newest", "bc"), ("oldest", "cb")):
        m = monitor("count(*)", k=3, ties=ties)
        m.push(rows(text))
        assert ids(m).replace("a", "") == expected
    m = monitor((), k=3, ties="oldest")
    m.push(rows(text))
    assert ids(m) == "acb"
    assert m.answer().column("score").to_pylist() == [None] * 3


def test_ranks_after_an_offset() -> None:
    m = monitor("sum(x)", k=2, offset=1)
    changes = m.push(rows("a1 b2 c3 d4 a9"))
    assert moves(changes) == ["1 +a*", "2 +b*", "3 -a", "3 +c*", "4 -b", "4 +d*"]
    assert m.answer().column("rank").to_pylist() == [2, 3] and ids(m) == "dc"
    assert m.answer(k=1).column("rank").to_pylist() == [2]
    assert moves(m.push(rows("d-9@9"))) == ["9 -d", "9 +b"]  # it leaves downwards, and b comes from below


def test_ties_of_the_last_are_answers() -> None:
    m = monitor("sum(x)", k=2, with_ties=True)
    assert moves(m.push(rows("a1 b1 c1 d3"))) == ["0 +a*", "1 +b*", "2 +c*", "3 +d*"]
    assert m.answer().column("rank").to_pylist() == [1, 2, 2, 2]
    assert moves(m.push(rows("e2@9"))) == ["9 -a", "9 -b", "9 -c", "9 +e*"]
    assert m.answer(k=1).num_rows == 1


def test_null_keys() -> None:
    by = "case when sum(x) > 1 then sum(x) end"
    for nulls, expected in (("reject", "cb"), ("first", "acb"), ("last", "cba")):
        m = monitor(by, k=3, nulls=nulls)
        m.push(rows("a1 b2 c3"))
        assert ids(m) == expected
    assert m.answer().column("score").to_pylist() == [3.0, 2.0, None]


def test_the_keys_of_a_leaving_object_are_its_last_ones() -> None:
    m = monitor(("last(x)", "count(*)", "id"), k=1)
    left, entered = m.push(rows("a5 a4 a4 b6")).to_pylist()[-2:]
    assert [left[f"key_{i}"] for i in (1, 2, 3)] == [4.0, 3.0, "a"]
    assert [entered[f"key_{i}"] for i in (1, 2, 3)] == [6.0, 1.0, "b"]


@pytest.mark.parametrize(
    ("values", "type_", "best_first"),
    [
        (["é", "z", "a", "𝄞", "\uffff"], pa.string(), [3, 4, 0, 1, 2]),
        ([2**53, 2**53 + 1, -(2**53) - 1], pa.int64(), [1, 0, 2]),
        ([2**64 - 1, 0, 2**63], pa.uint64(), [0, 2, 1]),
        ([Decimal("1.1"), Decimal(f"{2**60}.2"), Decimal(f"{2**60}.1")], pa.decimal128(30, 1), [1, 2, 0]),
        ([date(2024, 1, 1), date(1960, 1, 1)], pa.date32(), [0, 1]),
        ([True, False], pa.bool_(), [0, 1]),
        ([-1.5, 2.5, -0.5], pa.float32(), [1, 2, 0]),
        ([b"\x01", b"\x00\xff"], pa.binary(), [0, 1]),
    ],
)
def test_ids_rank_in_their_own_order(values: list[Any], type_: Any, best_first: list[int]) -> None:
    table = pa.table({"o": pa.array(values, type_), "t": range(len(values))})
    for largest, expected in ((True, best_first), (False, best_first[::-1])):
        m = monitor(("count(*)", "id"), k=9, largest=(True, largest))
        m.push(table)
        m = sb.Monitor.restore(m.snapshot(), trusted=False)
        assert m.answer().column("key_2").to_pylist() == [values[i] for i in expected]
        assert m.answer().schema.field("key_2").type == type_


def test_ids_that_are_numbers_rank_as_numbers_once_all_objects_have_left() -> None:
    query = sb.TopKGroups(2, by=("id",), window=sb.Last(span=3), of="o")
    m = sb.Monitor(query, time="t")
    m.push({"o": list(range(3000)), "t": 0})
    m.advance(10)  # so many have left that their codes are given back
    m.push({"o": [3, 5, 4], "t": 10})
    assert m.answer().column("id").to_pylist() == [5, 4]


def test_ids_that_are_numbers_rank_as_numbers_once_their_group_is_forgotten() -> None:
    query = sb.TopKGroups(2, by=("id",), window=sb.Ever(), of="o", per="g")
    m = sb.Monitor(query, time="t", forget=5)
    told = [moves(m.push({"o": [o], "g": ["a"], "t": [t]})) for o, t in ((7, 0), (3, 6), (5, 7), (4, 8))]
    assert told == [["0 +7*"], ["5 -7", "6 +3*"], ["7 +5*"], ["8 -3", "8 +4*"]]


def test_an_id_alone_is_a_score_if_it_is_a_number() -> None:
    m = sb.Monitor(sb.TopKGroups(2, by="id", window=LAST, of="o"))
    m.push({"o": [3, 2**53 + 1, 7]})
    assert m.answer().to_pylist() == [{"rank": 1, "id": 7, "score": 7.0}, {"rank": 2, "id": 3, "score": 3.0}]
    assert m.stats()["rejected"] == {"o is beyond 2^53": 1}


def test_a_struct_ranks_by_its_columns() -> None:
    table = {"a": [1, 1, 2], "b": ["x", "y", "x"], "t": [0, 1, 2]}
    for by, expected in (("id", [(2, "x"), (1, "y"), (1, "x")]), (("id.b", "id.a"), [(1, "y"), (2, "x"), (1, "x")])):
        m = sb.Monitor(sb.TopKGroups(3, by=by, window=LAST, of=("a", "b")), time="t")
        m.push(table)
        assert [(row["id"]["a"], row["id"]["b"]) for row in m.answer().to_pylist()] == expected
    assert m.answer().column("key_1").to_pylist() == ["y", "x", "x"]


def test_words_find_room_between_others() -> None:
    """New words in the middle, at the ends, and many at once: labels rank as the words do."""
    rng, order = np.random.default_rng(7), Order([Way(True, False)], oldest=False, with_ties=False, offset=0)
    words = [f"{n:06d}" for n in rng.permutation(600)]
    words[:3] = ["000300", "zz", "000300a"]
    words += ["000300" + "a" * i + "b" for i in range(99, 0, -1)]  # always next to the same neighbour
    for begin in range(0, len(words), 3):
        some = np.array(words[begin : begin + 3], object)
        order.ranks([Operand(some)], np.zeros(len(some), np.int64), np.zeros(len(some), np.int64))
        (known,) = order.words.values()
        labels = order.labels[[known.codes[word] for word in sorted(known.codes)]]
        assert (np.diff(labels) > 0).all() and (np.abs(labels) < 2**61).all()


def test_a_session_ends_as_a_whole() -> None:
    #  t      0    3    6         11        gap 5: the session ends at 6 + 5
    m = monitor("sum(x)", sb.Session(span=5))
    assert moves(m.push(rows("a1@0 b2@3 a1@6"))) == ["0 +a*", "3 +b*"]
    assert moves(m.advance(10)) == []
    assert sorted(moves(m.advance(11))) == ["11 -a", "11 -b"]
    assert moves(m.push(rows("a1@11"))) == ["11 +a*"]
    assert m.answer().column("score").to_pylist() == [1.0]


def test_a_late_row_of_an_ended_session_is_too_late() -> None:
    m = monitor("sum(x)", sb.Session(span=5))
    m.push(rows("a1@0 b1@5 c1@11"))  # ends at 10; 9 would bridge both
    assert moves(m.push(rows("d9@9 e9@10"))) == ["11 +e*"]
    assert m.stats()["late"] == 1 and ids(m) == "ec"


def test_a_row_that_fails_where_keeps_a_session_open() -> None:
    m = monitor("sum(x)", sb.Session(span=5), where="x > 0")
    assert moves(m.push(rows("a1@0 b0@4"))) == ["0 +a*"]
    assert moves(m.advance(8)) == []
    m = sb.Monitor.restore(m.snapshot(), trusted=False)
    assert moves(m.advance(9)) == ["9 -a"]


def test_as_people_write_it() -> None:
    text = "SELECT o, sum(x) FROM s GROUP BY o ORDER BY sum(x) DESC{} {} WINDOW 100 ROWS"
    asked: dict[tuple[str, str], dict[str, Any]] = {
        (", o", "LIMIT 10 OFFSET 10"): {"by": ("sum(x)", "id"), "largest": (True, False), "offset": 10},
        ("", "FETCH FIRST 10 ROWS WITH TIES"): {"by": "sum(x)", "with_ties": True},
        (" NULLS LAST, 1", "LIMIT 10"): {"by": ("sum(x)", "id"), "largest": (True, False), "nulls": "last"},
        (", max(x)", "LIMIT 10"): {"by": ("sum(x)", "max(x)"), "largest": (True, False)},
    }
    for clauses, more in asked.items():
        query = sb.TopKGroups(10, window=LAST, of="o", **more)
        assert sb.sql(text.format(*clauses)) == query == sb.sql(query.to_sql())
    several: Any = sb.sql("SELECT a, b FROM s GROUP BY a, b ORDER BY b, count(*) DESC LIMIT 3 WINDOW SESSION '1 hour'")
    assert several.by == ("id.b", "count(*)") and several.window == sb.Session("1 hour")
    assert "tree" in " ".join(sb.explain(several).why)
