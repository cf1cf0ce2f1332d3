"""Single rules of orders, each by a stream of a few rows whose answer is known; the mutants die of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from skyband import Last, Monitor, Session, TopK, TopKGroups, UntilDeleted

LAST = Last(100)


def played(query: TopK, text: str, **options: Any) -> Monitor:
    """'b2@7' is a row of id b with x = 2 at time 7, by its number without one; 'b' has no x."""
    rows = []
    for number, word in enumerate(text.split()):
        word, _, time = word.partition("@")
        x = float(word[1:]) if word[1:] else None
        rows.append({"i": word[0], "x": x, "n": word[0], "t": int(time) if time else number, "k": number % 3})
    monitor = Monitor(query, id="i", time="t", **options)
    types = {"i": pa.string(), "x": pa.float64(), "n": pa.string(), "t": pa.int64(), "k": pa.int64()}
    table = pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()})
    changes = monitor.push(table).to_pylist()
    entered = Counter(row["id"] for row in changes if row["diff"] > 0)
    entered.subtract(row["id"] for row in changes if row["diff"] < 0)
    assert +entered == Counter(monitor.answer().column("id").to_pylist()), "the changes make the answer"
    return monitor


def ids(query: TopK, text: str) -> str:
    return "".join(played(query, text).answer().column("id").to_pylist())


@pytest.mark.parametrize("window", [LAST, Last(span=100), Session(span=100), UntilDeleted()])
def test_ties_and_ranks(window: Any) -> None:
    text = "a1 b2 c2 d1 e2"
    for more, expected in (
        ({}, "ecb"),
        ({"ties": "oldest"}, "bce"),
        ({"offset": 1}, "cbd"),
        ({"offset": 4}, "a"),
        ({"ties": "oldest", "offset": 1}, "cea"),
        ({"largest": False}, "dae"),
    ):
        assert ids(TopK(3, by=("x",), window=window, **more), text) == expected, more
        assert ids(TopK(3, by="x", window=window, **more), text) == expected, more
    for k, expected in ((1, "ecb"), (3, "ecb"), (4, "ecbda")):
        monitor = played(TopK(k, by="x", window=window, with_ties=True), text)
        assert "".join(monitor.answer().column("id").to_pylist()) == expected
        assert monitor.answer().column("rank").to_pylist() == [1, 1, 1, 4, 4][: len(expected)]


def test_late_rows_tie_by_their_times() -> None:
    for ties, expected in (("newest", "cba"), ("oldest", "abc")):
        assert ids(TopK(3, by=("x",), window=Last(span=50), ties=ties), "a1@3 c1@9 b1@5") == expected
        assert ids(TopK(3, by="x", window=Last(span=50), ties=ties, offset=0, with_ties=True), "a1@3 c1@9 b1@5") == (
            expected
        )
    assert ids(TopK(2, by="x", window=Last(span=50), ties="oldest", with_ties=True), "a1@3 b1@3") == "ab"


def test_what_an_offset_leaves_out_may_expire() -> None:
    assert ids(TopK(1, by="x", window=Last(3), offset=1), "a9 b5 c4 d3") == "c"
    assert ids(TopK(1, by="x", window=Last(3), offset=2), "a9 b8 c7 d6 e5") == "e"
    assert ids(TopK(1, by="x", window=Session(span=9), offset=1), "a9 b5 c4") == "b"


def test_nulls_and_directions() -> None:
    for nulls, largest, expected in (("first", True, "bca"), ("first", False, "bac"), ("last", True, "cab")):
        assert ids(TopK(3, by=("x",), window=LAST, nulls=nulls, largest=largest), "a1 b c2") == expected
    assert ids(TopK(3, by=("x", "n"), window=LAST, largest=(True, False)), "c1 b1 a2") == "abc"
    assert ids(TopK(3, by=("n",), window=LAST), "b1 é1 z1") == "ézb"


def test_distinct_ids_and_k_as_data() -> None:
    assert ids(TopK(3, by="x", window=LAST, distinct="best"), "a5 b4 a1 c3") == "abc"
    assert ids(TopK(3, by="x", window=LAST, distinct="last"), "a5 b4 a1 c3") == "bca"
    assert ids(TopK("k", k_max=2, by="x", window=LAST), "a1 b2 c3") == "cb"
    assert ids(TopK("k", k_max=2, by="x", window=LAST), "a1 b2 c3 d4") == ""


def test_a_session_ends_as_a_whole() -> None:
    monitor = played(TopK(2, by="x", window=Session(span=5)), "a1@0 b2@4")
    assert monitor.advance(8).num_rows == 0
    assert sorted(monitor.advance(9).column("id").to_pylist()) == ["a", "b"]


@pytest.mark.parametrize("rule", [{"with_ties": True}, {"offset": 1}, {"distinct": "best"}, {"k": "m", "k_max": 2}])
def test_a_shorter_window_goes_on_with_what_is_there(rule: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"k": 2, "by": "x", "window": Last(5)}
    query = TopK(**asked | rule)
    monitor = Monitor(query, id="id")
    monitor.push({"id": [1, 2, 3, 4], "x": [4, 3, 2, 1], "m": [2, 2, 2, 2]})
    monitor.replace("q0", dataclasses.replace(query, window=Last(3)))
    offset = rule.get("offset", 0)
    assert monitor.answer()["id"].to_pylist() == [2, 3, 4][offset : offset + 2]


@pytest.mark.parametrize(
    "query",
    [
        TopK(2, by="n", window=LAST),
        TopK(2, by="n", window=LAST, where="n > 'a'", per="n"),
        TopKGroups(2, by="id", window=LAST, of="n"),
        TopKGroups(2, by="last(n)", window=LAST),
    ],
)
def test_the_columns_of_a_key_are_there_from_the_first_batch_on(query: Any) -> None:
    """Also when it is empty, or no row of it is accepted."""
    for first in ([], [None], ["b"]):
        monitor = Monitor(query, id="i")
        tables = [
            monitor.push(pa.table({"i": pa.array(range(len(one)), pa.int64()), "n": pa.array(one, pa.string())}))
            for one in (first, ["c"])
        ]
        assert tables[0].schema == tables[1].schema
        assert tables[0].schema.field("key_1").type == pa.string()
        assert "c" in monitor.answer().column("key_1").to_pylist()
