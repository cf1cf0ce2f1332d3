"""The contract (DESIGN.md, section 2) by example: columns, groups, scores, statistics.

The notation of the timelines: monitor/timelines.py.
"""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from monitor.timelines import counting, ids, lasting, objects, reported

# ------------------------------------------------------------------------------- columns


def test_columns_of_changes_and_answers() -> None:
    query = sb.TopK(1, by="x", window=sb.Last(3), per=("g", "h"))
    monitor = sb.Monitor({"best": query}, id="i", time="when", keep=("z", "y"))
    batch = pa.table(
        {
            "h": ["m"],
            "z": pa.array([[1]], pa.list_(pa.int8())),
            "i": ["a"],
            "y": pa.array([True]),
            "g": pa.array([7], pa.int16()),
            "x": pa.array([2], pa.int32()),
            "when": pa.array([5], pa.timestamp("ms", "UTC")),
        }
    )
    changes = monitor.push(batch)
    assert [(field.name, str(field.type)) for field in changes.schema] == [
        ("query", "dictionary<values=string, indices=int32, ordered=0>"),
        ("g", "int16"),
        ("h", "string"),
        ("at", "int64"),
        ("time", "timestamp[ms, tz=UTC]"),
        ("id", "string"),
        ("score", "double"),
        ("diff", "int8"),
        ("first", "bool"),
        ("z", "list<item: int8>"),
        ("y", "bool"),
    ]
    answer = monitor.answer()
    assert [(field.name, str(field.type)) for field in answer.schema] == [
        ("g", "int16"),
        ("h", "string"),
        ("rank", "int64"),
        ("id", "string"),
        ("time", "timestamp[ms, tz=UTC]"),
        ("score", "double"),
        ("z", "list<item: int8>"),
        ("y", "bool"),
    ]
    assert monitor.push(batch.slice(0, 0)).schema == changes.schema, "also when there is nothing to say"
    assert monitor.advance(datetime(2024, 1, 1, tzinfo=UTC)).schema == changes.schema
    assert monitor.answer(key=(8, "m")).schema == answer.schema


def test_without_id_and_time() -> None:
    monitor = sb.Monitor(counting(1, 3))
    changes = monitor.push({"x": [1.0]})
    assert changes.column_names == ["query", "at", "id", "score", "diff", "first"]
    assert changes.schema.field("id").type == pa.int64()
    assert monitor.answer().column_names == ["rank", "id", "score"]


def test_columns_of_several_queries_are_the_union() -> None:
    monitor = sb.Monitor(
        {"all": counting(1, 9), "each": counting(1, 9, per="g"), "both": counting(1, 9, per=("h", "g"))}
    )
    changes = monitor.push({"x": [1.0], "g": ["a"], "h": [5]}).to_pylist()
    assert list(changes[0]) == ["query", "g", "h", "at", "id", "score", "diff", "first"]
    assert [(row["query"], row["g"], row["h"]) for row in changes] == [
        ("all", None, None),
        ("each", "a", None),
        ("both", "a", 5),
    ]


def test_queries_may_be_one_or_a_list_or_named() -> None:
    query = counting(1, 3)
    assert list(sb.Monitor(query).queries) == ["q0"]
    assert list(sb.Monitor([query, query]).queries) == ["q0", "q1"]
    assert sb.Monitor({"b": query, "a": query}).queries == {"b": query, "a": query}
    assert sb.Monitor({"b": query, "a": query}).push({"x": [1]}).column("query").to_pylist() == ["b", "a"]


# -------------------------------------------------------------------------------- groups


def test_numbers_count_within_a_group() -> None:
    monitor = sb.Monitor(counting(1, 2, per="g"), id="id")
    assert reported(monitor.push(objects("aA1 bB1 aC2 bD0 bE0"))) == [
        *("0 +aA*", "0 +bB*", "1 -aA", "1 +aC*"),
        *("2 -bB", "2 +bE*"),
    ]


def test_ids_are_numbers_within_the_group_when_none_is_named() -> None:
    monitor = sb.Monitor(counting(1, 2, per="g"))
    changes = monitor.push({"x": [1, 1, 2], "g": ["a", "b", "b"]}).to_pylist()
    assert [(row["g"], row["id"]) for row in changes] == [("a", 0), ("b", 0), ("b", 0), ("b", 1)]


def test_null_is_a_group_and_nan_is_one() -> None:
    groups = pa.array([None, math.nan, 0.0, -0.0, None, math.nan])
    monitor = sb.Monitor(counting(9, 9, per="g"))
    monitor.push(pa.table({"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "g": groups}))
    assert monitor.answer(key=(None,)).column("score").to_pylist() == [5.0, 1.0]
    assert monitor.answer(key=math.nan).column("score").to_pylist() == [6.0, 2.0]
    assert monitor.answer(key=0).column("score").to_pylist() == [4.0, 3.0]
    assert monitor.answer().num_rows == 6


def test_answers_of_all_groups_and_of_one() -> None:
    monitor = sb.Monitor(counting(2, 9, per=("g", "h")))
    monitor.push({"x": [1, 5, 3, 4], "g": ["a", "a", "b", "a"], "h": [1, 1, 1, 2]})
    assert [(row["g"], row["h"], row["rank"], row["score"]) for row in monitor.answer().to_pylist()] == [
        ("a", 1, 1, 5.0),
        ("a", 1, 2, 1.0),
        ("b", 1, 1, 3.0),
        ("a", 2, 1, 4.0),
    ]
    assert monitor.answer(key=("a", 2)).to_pylist() == [{"g": "a", "h": 2, "rank": 1, "id": 0, "score": 4.0}]
    assert monitor.answer(key=("b", 2)).num_rows == 0


def test_ids_are_labels() -> None:
    """The same id is valid twice, and is reported twice."""
    monitor = sb.Monitor(counting(2, 9), id="id")
    assert reported(monitor.push(objects("A1 A2 A3"))) == ["0 +A*", "1 +A*", "2 -A", "2 +A*"]
    assert ids(monitor) == ["A", "A"]


# --------------------------------------------------------------------- where, keep, scores


# at       0    1    2         (the last 2; w: may be an answer)
#          A5w  B9   C1
# valid    A    AB   BC        B is no answer, but pushes A out
def test_where_restricts_the_answer_not_the_window() -> None:
    rows = [{"id": "A", "x": 5, "w": True}, {"id": "B", "x": 9, "w": False}, {"id": "C", "x": 1, "w": None}]
    monitor = sb.Monitor(counting(1, 2, where="w"), id="id")
    assert reported(monitor.push(rows)) == ["0 +A*", "2 -A"]
    assert ids(monitor) == []


def test_where_moves_the_clock() -> None:
    monitor = sb.Monitor(lasting(1, 5, where="x < 9"), id="id", time="t")
    assert reported(monitor.push(objects("A5@0 B9@7"))) == ["0@0 +A*", "0@5 -A"]


def test_kept_columns_are_the_objects_own() -> None:
    monitor = sb.Monitor(counting(1, 2), keep=("z", "x"))
    changes = monitor.push({"x": [5, 1, 2], "z": ["first", None, "third"]})
    assert [(row["diff"], row["z"], row["x"]) for row in changes.to_pylist()] == [
        (1, "first", 5),
        (-1, "first", 5),
        (1, "third", 2),
    ]
    monitor.push({"x": [0], "z": ["fourth"]})
    assert monitor.answer().column("z").to_pylist() == ["third"]


def test_direction() -> None:
    batch = {"x": [3.0, 1.0, 2.0]}
    for query, best in (
        (sb.TopK(1, "x", sb.Last(9)), 3.0),
        (sb.TopK(1, "x", sb.Last(9), largest=False), 1.0),
        (sb.TopK(1, sb.Nearest({"x": 2.2}), sb.Last(9)), 2.0),
        (sb.TopK(1, sb.Nearest({"x": 2.2}), sb.Last(9), largest=True), 1.0),
        (sb.TopK(1, "abs(x - 2.2)", sb.Last(9)), 1.0),
    ):
        monitor = sb.Monitor(query, id="x")
        monitor.push(batch)
        assert ids(monitor) == [best], query


def test_nearest_ranks_by_squares_and_reports_roots() -> None:
    monitor = sb.Monitor(sb.TopK(2, sb.Nearest({"x": 0, "y": 0}), sb.Last(9)))
    changes = monitor.push({"x": [3.0, 0.0], "y": [4.0, 2.0]})
    assert changes.column("score").to_pylist() == [5.0, 2.0]
    assert monitor.answer().column("score").to_pylist() == [2.0, 5.0]


def test_scores_are_float64_and_follow_ieee() -> None:
    monitor = sb.Monitor(sb.TopK(3, "x / y", sb.Last(9)))
    monitor.push({"x": [1, -1, 0, 1], "y": [0, 0, 0, 4]})
    assert monitor.answer().column("score").to_pylist() == [math.inf, 0.25, -math.inf]
    assert sum(monitor.stats()["rejected"].values()) == 1, "0 / 0 has no value"


# ----------------------------------------------------------------------------- the rest


def test_stats() -> None:
    monitor = sb.Monitor({"a": counting(2, 9), "b": sb.TopK(1, "y", sb.Last(9))})
    monitor.push({"x": [1.0, 2.0, math.nan], "y": [1.0, math.nan, math.nan]})
    stats = monitor.stats()
    assert stats["arrivals"] == 2
    assert stats["late"] == 0
    assert stats["rejected"] == {"x is NaN": 1, "y is NaN": 2}
    assert stats["queries"]["a"]["algorithm"] == "BLOCK"
    assert stats["queries"]["a"]["objects"] == 2
    assert stats["queries"]["b"]["objects"] == 1
    assert 0 < stats["queries"]["b"]["bytes"] < 10_000
    assert repr(monitor).startswith("Monitor({'a': TopK(")


def test_state_stays_small() -> None:
    """A long stream leaves a skyband behind, not the stream."""
    monitor = sb.Monitor(counting(5, 1000), keep="z")
    rng = np.random.default_rng(0)
    for _ in range(60):
        monitor.push({"x": rng.random(2000), "z": [f"word {i}" for i in range(2000)]})
    query = monitor.stats()["queries"]["q0"]
    assert query["objects"] < 60
    assert query["bytes"] < 60_000
    assert len(monitor.snapshot()) < 20_000


def test_the_batch_is_not_touched() -> None:
    x = np.array([3.0, np.nan, 1.0])
    t = np.array([1, 2, 3])
    monitor = sb.Monitor(lasting(1, 5), time="t")
    monitor.push({"x": x, "t": t})
    assert np.array_equal(x, [3.0, np.nan, 1.0], equal_nan=True)
    assert t.tolist() == [1, 2, 3]
    x[:] = 0.0
    assert monitor.answer().column("score").to_pylist() == [3.0], "nothing of the batch is borrowed"


HEAVY = ("pyspark", "starlette", "uvicorn", "numba", "pandas", "matplotlib", "sqlglot", "typer", "rich")


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import skyband", (*HEAVY, "pyarrow", "numpy")),
        ("import skyband as sb; sb.Monitor(sb.TopK(1, by='x', window=sb.Last(3)), id='x')", HEAVY),
    ],
)
def test_import_is_light(code: str, absent: tuple[str, ...]) -> None:
    """Libraries are loaded when they are needed: NumPy with the first query, the compiler with the first push."""
    code = f"import sys; {code}; print(*sorted({{*{absent!r}}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
