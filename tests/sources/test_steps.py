"""Questions over answers, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from skyband import Above, Last, Monitor, TopK, TopKGroups, UntilDeleted


def said(changes: Any, name: str) -> list[str]:
    """The changes of a query: '2 +A 7', with a star where `first` holds."""
    rows = [row for row in changes.to_pylist() if row["query"] == name]
    ways = {1: "+", -1: "-"}
    return [f"{row['at']} {ways[row['diff']]}{row['id']} {row['score']:g}{'*' * row['first']}" for row in rows]


def ids(monitor: Monitor, name: str) -> list[Any]:
    found: list[Any] = monitor.answer(name).column("id").to_pylist()
    return found


def rows(text: str) -> dict[str, list[Any]]:
    """'A2 B3' as the columns i and x; 'A2u' with d too."""
    words = text.split()
    return {
        "i": [word[0] for word in words],
        "x": [float(word[1]) for word in words],
        "d": [word[2:] or None for word in words],
    }


SUMS = TopKGroups(2, by="sum(x)", window=Last(4), of="i")


def test_scores_that_move_in_the_source_move_here_in_the_same_step() -> None:
    #  at   0    1    2    3    4       sums over the last 4
    #       A1   B5   A6   C1   B2
    #  A    1    1    7    7    6
    #  B         5    5    5    7       (B5 and B2)
    m = Monitor({"a": SUMS, "best": TopK(1, by="score", source="a"), "six": Above(6, by="score", source="a")})
    changes = m.push(rows("A1 B5 A6 C1 B2"))
    assert said(changes, "a") == ["0 +A 1*", "1 +B 5*"]
    assert said(changes, "best") == ["0 +A 1*", "1 -A 1", "1 +B 5*", "2 -B 5", "2 +A 7", "4 -A 7", "4 +B 7"]
    assert said(changes, "six") == ["2 +A 7*", "4 -A 7", "4 +B 7*"]
    assert m.answer("best").select(["id", "score"]).to_pylist() == [{"id": "B", "score": 7.0}]


def test_a_net_batch_is_one_step() -> None:
    m = Monitor({"a": SUMS, "best": TopK(1, by="score", source="a")}, emit="batch")
    assert said(m.push(rows("A1 B5")), "best") == ["1 +B 5*"]
    assert said(m.push(rows("A6 C1 B2")), "best") == []
    assert m.answer("best").column("score").to_pylist() == [7.0]
    assert said(m.push(rows("A9 A9")), "best") == ["6 -B 7", "6 +A 18*"]


def test_what_expires_at_the_instant_of_an_arrival_leaves_before_it() -> None:
    m = Monitor({"a": TopK(1, "x", Last(span=2)), "b": TopK(2, by="score", source="a")}, id="i", time="t")
    assert said(m.push(rows("A5 B1") | {"t": [0, 2]}), "b") == ["0 +A 5*", "0 -A 5", "1 +B 1*"]


def test_moves_are_not_reported_once_nobody_asks_over_them() -> None:
    one = {"a": SUMS, "b": Above(0, by="score", source="a"), "c": TopK(1, by="score", source="b")}
    two = {"d": TopK(1, by="score", source="a")}
    for asked, gone in (one, "cb"), (one | two, "c"), ({"a": SUMS} | two, "d"):
        m = Monitor(asked)
        m.push(rows("A1 B5"))
        for name in gone:
            m.drop(name)
        assert 0 not in m.push(rows("A6 B1")).column("diff").to_pylist()


@pytest.mark.parametrize("ranking", [{}, {"distinct": "last"}])
def test_deletions_of_several_groups_are_one_step_of_a_net_batch(ranking: dict[str, Any]) -> None:
    source = TopK(2, by="x", window=UntilDeleted(), per="d", **ranking)
    m = Monitor({"a": source, "b": TopK(9, by="score", source="a")}, id="i", emit="batch")
    m.push(rows("A1g B1g C1h D1h E1h"))
    assert said(m.delete(["E", "B"]), "b") == ["2 -B 1", "2 -E 1", "2 +C 1*"]  # told by the largest number, of h
    assert said(m.delete(["D", "A"]), "b") == ["2 -A 1", "2 -D 1"]


def test_what_leaves_a_replaced_source_is_what_leaves_here() -> None:
    #  t     0   1    1     1      over 1: A is gone when B, C, D are there
    asked = TopK(3, by="score", source="a")
    queries = {"a": Above(0, by="x", window=Last(span=1)), "b": asked, "c": TopK(3, by="score", source="b")}
    m = Monitor(queries, id="i", time="t")
    m.push(rows("A9") | {"t": [0]})
    m.push(rows("Z0 B5") | {"t": [1, 1]})
    m.push(rows("Z0 C9") | {"t": [1, 1]})
    changes = m.replace("b", TopK(1, by="score", source="a"))
    assert said(changes, "b") == said(changes, "c") == ["4 -B 5"]
    assert ids(m, "c") == ["C"]


def test_ties_go_by_when_the_object_entered_the_sources_answer() -> None:
    m = Monitor({"a": SUMS, "best": TopK(1, by="score", source="a"), "old": TopK(1, by=(), ties="oldest", source="a")})
    m.push(rows("A1 B1"))
    assert ids(m, "best") == ["B"]
    m.push(rows("B1 A1"))  # A has the newest row, and moved last
    assert (ids(m, "a"), ids(m, "best"), ids(m, "old")) == (["A", "B"], ["B"], ["A"])


def test_first_holds_again_after_it_has_left_the_source() -> None:
    m = Monitor({"a": TopKGroups(1, by="sum(x)", window=Last(2), of="i"), "b": TopK(1, by="score", source="a")})
    changes = m.push(rows("A1 B5 A6 A0"))
    assert said(changes, "a") == ["0 +A 1*", "1 -A 1", "1 +B 5*", "2 -B 5", "2 +A 6"]  # a row of A was always there
    assert said(changes, "b") == ["0 +A 1*", "1 -A 1", "1 +B 5*", "2 -B 5", "2 +A 6*"]


def test_expiries_of_one_instant_in_several_groups_are_one_step() -> None:
    #  time  0    1    2    3    4        span 3: A and C leave at 3 together, D has 9 until 5
    #  g=u   A5   B3
    #  g=v   C4        D9
    top = TopK(1, by="x", window=Last(span=3), per="g")
    m = Monitor({"a": top, "two": TopK(2, by=(), ties="oldest", source="a")}, id="i", time="t")
    m.push({"i": ["A", "C", "B", "D"], "g": ["u", "v", "u", "v"], "x": [5.0, 4.0, 3.0, 2.0], "t": [0, 0, 1, 2]})
    changes = m.advance(3)
    assert [(r["query"], r["g"], r["id"], r["diff"], r["time"]) for r in changes.to_pylist()] == [
        ("a", "u", "A", -1, 3),
        ("a", "u", "B", 1, 3),
        ("a", "v", "C", -1, 3),
        ("a", "v", "D", 1, 3),
        ("two", "u", "A", -1, 3),
        ("two", "v", "C", -1, 3),
        ("two", "u", "B", 1, 3),
        ("two", "v", "D", 1, 3),
    ]


FLOWS = {"top": TopK(2, by="x", window=Last(3)), "dest": TopKGroups(1, by="count(*)", source="top", of="d")}


def test_groups_of_members() -> None:
    #  at   0     1     2     3     4      the two largest of the last 3, and the d that they share
    #       A5u   B4v   C6u   D1v   E9v
    #  top  A     A B   A C   C A? no: A left, so C B
    m = Monitor(FLOWS, id="i", keep="d")
    changes = m.push(rows("A5u B4v C6u D1v E9v"))
    assert said(changes, "dest") == ["0 +u 1*", "1 -u 1", "1 +v 1*", "2 -v 1", "2 +u 2", "3 -u 2", "3 +v 1*"]
    assert m.answer("dest").select(["id", "score", "d"]).to_pylist() == [{"id": "v", "score": 1.0, "d": "v"}]


def test_an_object_that_a_step_leaves_with_a_row_was_there_all_along() -> None:
    # with C the only row of u changes from A to C in one step: u is not gone, so `first` does not hold again
    m = Monitor({"top": TopK(1, by="x", window=Last(3)), "dest": FLOWS["dest"]}, id="i", keep="d")
    assert said(m.push(rows("A5u C6u")), "dest") == ["0 +u 1*"]
    assert said(m.push(rows("D7v E8u")), "dest") == ["2 -u 1", "2 +v 1*", "3 -v 1", "3 +u 1*"]


def test_a_query_that_comes_later_sees_what_enters_later() -> None:
    m = Monitor({"a": SUMS})
    m.push(rows("A1 B2"))
    m.add("b", TopK(2, by="score", source="a"))
    m.push(rows("A3"))  # a member moves: it has not entered
    assert ids(m, "b") == []
    m.add("c", TopK(2, by="score", source="a"))
    assert said(m.push(rows("C9")), "b") == ["3 +C 9*"]
    m.add("d", TopK(2, by="score", source="a"))
    assert said(m.push(rows("C1")), "d") == []
    assert ids(m, "d") == []
    assert said(m.push(rows("A9")), "c") == []
    assert ids(Monitor.restore(m.snapshot()), "c") == ["C"]
    assert said(m.push(rows("B9 B9")), "c") == ["6 +B 9*", "7 -C 10", "7 +A 9*"]


def test_a_member_without_a_score_keeps_its_age() -> None:
    # the mean of nothing is null: y is null until a second row comes
    by = "case when count(*) > 1 then sum(x) end"
    source = TopKGroups(2, by="count(*)", window=Last(6), of="i", select={"y": by})
    m = Monitor({"a": source, "b": TopK(1, by="y", source="a")})
    m.push(rows("A1 B1 B1 A1"))
    assert (ids(m, "a"), ids(m, "b")) == (["A", "B"], ["B"])  # B entered later


def test_a_group_that_is_forgotten_leaves_here_too() -> None:
    queries = {"a": TopK(1, by="x", window=Last(5), per="g"), "b": TopK(2, by="score", source="a")}
    m = Monitor(queries, id="i", time="t", forget=10)
    m.push({"i": ["A", "B"], "g": ["u", "v"], "x": [5.0, 4.0], "t": [0, 3]})
    assert ids(m, "b") == ["A", "B"]
    changes = m.push({"i": ["C"], "g": ["v"], "x": [1.0], "t": [11]})
    assert said(changes, "b") == ["0 -A 5"]
    assert ids(m, "b") == ["B"]


def test_what_is_deleted_leaves_here_too() -> None:
    source = TopKGroups(2, by="sum(x)", window=UntilDeleted(), of="d")
    m = Monitor({"a": source, "b": TopK(1, by="score", source="a")}, id="i")
    m.push(rows("A5u B4v C3v"))
    assert said(m.delete(["B", "A"]), "b") == ["2 -v 7", "2 +u 5", "2 -u 5", "2 +v 3"]


def test_a_member_without_an_id_is_no_row_of_groups_by_id() -> None:
    top = TopK(3, by="x", window=Last(3))
    monitor = Monitor({"top": top, "of": TopKGroups(3, by="sum(score)", of="id", source="top")}, id="id")
    monitor.push({"id": [1, None, 2], "x": [1, 2, 3]})
    assert monitor.answer("of")["id"].to_pylist() == [2, 1]
