"""`Similar` against the oracle, whose arithmetic is its own: metrics, columns of every list type, refusals, SQL."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import Taste, cells, examples, play, same_rows, scenes
from skyband.errors import BatchError, QueryError
from skyband.monitor import families
from skyband.oracle import Oracle
from skyband.query.kinds import Query
from skyband.query.scoring.similar import METRICS, Similar, distances, dots

BY: tuple[Any, ...] = tuple(Similar("e", vector, metric) for metric in METRICS for vector in ([1, 0], [2, -1], [1, 3]))


@pytest.mark.parametrize(
    "taste",
    [
        Taste(by=BY, rows=10, events=5),
        Taste(
            by=BY, rows=10, events=5, deletable=True, per=(None,), above=(True, False), thresholds=(0.5,), edits=False
        ),
        Taste(by=BY, rows=10, events=5, ever=True, above=(True, False), thresholds=(0.0, 1.0), edits=False),
        Taste(by=BY, rows=10, events=5, above=(True,), thresholds=(0.5,), edits=False),
    ],
    ids=["windows", "deleted", "ever", "above"],
)
@examples(40)
@given(data=st.data())
def test_equals_the_oracle(taste: Taste, data: st.DataObject) -> None:
    if any(taste.above):  # of euclidean distances the smallest are best
        taste = Taste(**{**vars(taste), "by": BY[:6]})
    play(data.draw(scenes("auto", taste)))


@examples(40)
@given(data=st.data())
def test_families_equal_the_oracle(data: st.DataObject) -> None:
    """Plain queries that differ in their vectors, k and windows, as slots of one engine."""
    metric = data.draw(st.integers(0, 2))
    taste = Taste(by=BY[3 * metric : 3 * metric + 3], per=(None,), queries=5, rows=10, events=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "VECTORS", 2)
        play(data.draw(scenes("auto", taste)))


def test_sums_go_from_left_to_right() -> None:
    """The order of terms shows: 1e16 takes 1 in, unless something else comes first."""
    rows = np.array([[1e16, 1.0, 1.0, -1e16], [1.0, 1.0, 1e16, -1e16]])
    assert dots(rows, np.ones(4)).tolist() == [0.0, 2.0]
    rng = np.random.default_rng(1)
    for dtype in ("f2", "f4", "f8"):
        a, b = rng.normal(size=(7, 390)).astype(dtype), rng.normal(size=390)
        exact = [[float(x) * y for x, y in zip(row, b.tolist(), strict=True)] for row in a.tolist()]
        away = [[(float(x) - y) * (float(x) - y) for x, y in zip(row, b.tolist(), strict=True)] for row in a.tolist()]
        for got, terms in ((dots(a, b), exact), (distances(a, b), away)):
            for value, row in zip(got.tolist(), terms, strict=True):
                total = row[0]
                for term in row[1:]:
                    total = total + term
                assert value == total


COLUMNS: dict[str, Any] = {
    "list": lambda rows: pa.array(rows, pa.list_(pa.float32())),
    "large list": lambda rows: pa.array(rows, pa.large_list(pa.float16())),
    "view": lambda rows: pa.array(rows, pa.list_view(pa.float64())),
    "fixed": lambda rows: pa.array([row if row and len(row) == 2 else None for row in rows], pa.list_(pa.float32(), 2)),
    "slice": lambda rows: pa.array([[7.0], *rows], pa.list_(pa.float64())).slice(1),
    "fixed slice": lambda rows: pa.array([None, *rows], pa.list_(pa.float16(), 2)).slice(1),
    "chunks": lambda rows: pa.chunked_array([pa.array(rows[:1], pa.list_(pa.float32())), rows[1:]]),
    "python": lambda rows: rows,
    "numpy": lambda rows: np.array(rows, np.float32),
    "numpy, columns": lambda rows: np.asfortranarray(np.array(rows, np.float64)),
    "arrays": lambda rows: [np.array(row, np.float16) for row in rows],
}


def test_every_kind_of_list_in_any_order() -> None:
    """The type of the column changes from push to push; whole rows give the same scores in all of them."""
    query = sb.TopK(3, Similar("e", [2.0, -1.0]), sb.Last(6))
    monitor, oracle = sb.Monitor(query), Oracle(query)
    for turn, column in enumerate(COLUMNS.values()):
        rows = [[1.0, 2.0 + turn], [0.5 * turn - 1, 0.25], [-3.0, 1.0]]
        changes = monitor.push({"e": column(rows)})
        same_rows(cells(changes), oracle.push([{"e": row} for row in rows]), f"push {turn}")
    assert monitor.stats()["rejected"] == {}


@pytest.mark.filterwarnings("ignore::skyband.errors.SkybandWarning")
def test_rejected_rows_say_why() -> None:
    rows = [[1.0, 2.0], None, [1.0], [], [0.0, 0.0], [None, 1.0], [float("nan"), 1.0], [1.0, float("-inf")], [3.0, 4.0]]
    monitor = sb.Monitor({str(metric): sb.TopK(9, Similar("e", [1, 0], metric), sb.Last(9)) for metric in METRICS})
    monitor.push({"e": rows})
    reasons = {
        "e is null": 1,
        "e is no vector of length 2": 2,
        "e has a null component": 1,
        "e has a component that is not finite": 2,
    }
    stats = monitor.stats()["queries"]
    assert stats["cosine"]["rejected"] == reasons | {"e has norm 0": 1}
    assert stats["dot"]["rejected"] == stats["euclidean"]["rejected"] == reasons
    assert monitor.answer("euclidean")["score"].to_pylist() == [1.0, 2.0, 20**0.5]
    assert monitor.answer("dot")["id"].to_pylist() == [2, 0, 1]
    strict = sb.Monitor(sb.TopK(1, Similar("e", [1, 0]), sb.Last(9)), invalid="raise")
    with pytest.raises(BatchError, match="norm 0"):
        strict.push({"e": [[0.0, 0.0]]})


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (pa.array([[1, 2]]), "list<item: int64>.*float16, float32 or float64"),
        (np.array([[1, 2]]), "fixed_size_list<item: int64>"),
        (pa.array([1.0]), "holds double, but Similar compares vectors"),
        (pa.array(["a"]), "holds string"),
        (np.zeros((1, 2, 2)), "shape"),
    ],
)
def test_other_columns_are_refused(column: Any, match: str) -> None:
    monitor = sb.Monitor(sb.TopK(1, Similar("e", [1, 0]), sb.Last(9)))
    with pytest.raises(BatchError, match=match):
        monitor.push({"e": column})


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("e", [1, float("nan")]), "component 1 of the vector is nan"),
        (("e", [float("inf")]), "component 0 of the vector is inf"),
        (("e", []), "at least one; got none"),
        (("e", [[1, 2], [3, 4]]), r"shape \(2, 2\).*Each"),
        (("e", ["a"]), "'a' as a component"),
        (("e", [1, None]), "None as a component"),
        (("e", [True, False]), "True as a component"),
        (("e", [10**400]), "beyond 64 bits"),
        (("e", "abc"), "list of numbers"),
        (("e", 5), "list of numbers"),
        (("e", [0.0, 0.0]), "norm 0"),
        (("", [1]), "column"),
        (("e", [1], "hamming"), "hamming.*cosine, dot, euclidean"),
    ],
)
def test_bad_query_vectors_are_refused(arguments: Any, match: str) -> None:
    with pytest.raises(QueryError, match=match):
        Similar(*arguments)
    assert Similar("e", [0.0, 0.0], "dot").vector == (0.0, 0.0)


def test_the_value_is_stored_said_in_sql_and_compared() -> None:
    for by in (*BY, Similar("e", sb.Each("vector")), Similar("my col", sb.Each("v"), "euclidean")):
        query = sb.TopK(3, by, sb.Last(5))
        assert Query.from_dict(json.loads(json.dumps(query.to_dict()))) == query
        assert sb.sql(query.to_sql("s")) == query
        assert hash(query.by) == hash(Query.from_dict(query.to_dict()).by)  # type: ignore[attr-defined]
    assert Similar("e", [1, 2]) == Similar("e", np.array([1, 2], np.float32)) != Similar("e", [1, 2], "dot")
    assert sb.TopK(3, BY[-1], sb.Last(5)).descending is False
    texts = {
        "similarity(e, [1, -0.5])": Similar("e", [1, -0.5]),
        "similarity(e, [1, -0.5]) DESC": Similar("e", [1, -0.5]),
        "similarity(e, :vector) METRIC dot": Similar("e", sb.Each("vector"), "dot"),
        "distance(e, [1e-3])": Similar("e", [0.001], "euclidean"),
    }
    for text, by in texts.items():
        assert asked(text) == sb.TopK(3, by, sb.Last(5))
    far: Any = asked("similarity(e, [1]) ASC")
    assert far.largest is False
    with pytest.raises(QueryError, match=r"distance\(\.\.\.\) is euclidean"):
        asked("distance(e, [1]) METRIC dot")
    assert Similar("e", pa.array([1.0, 2.0])) == Similar("e", [1, 2])
    for text in ("similarity(e)", "similarity(e, 3)", "similarity(e, [])", "distance(e, [1)"):
        with pytest.raises(QueryError, match=r"similarity\(embedding, \[0\.1, 0\.2\]\)"):
            asked(text)
    with pytest.raises(QueryError, match=r'smallest first.*metric="cosine"'):
        sb.Above(1, Similar("e", [1], "euclidean"), sb.Last(5))
    assert "... 384 components" in repr(Similar("e", range(1, 385)))


def asked(order: str) -> Any:
    return sb.sql(f"SELECT * FROM s ORDER BY {order} LIMIT 3 WINDOW 5 ROWS")  # noqa: S608


def test_one_of_several_keys() -> None:
    query = sb.TopK(2, (Similar("e", [1, 0]), "x"), sb.Last(4))
    monitor, oracle = sb.Monitor(query), Oracle(query)
    rows: list[dict[str, Any]] = [
        {"e": [1.0, 0.0], "x": 1},
        {"e": [2.0, 0.0], "x": 3},
        {"e": [3.0, 0.0], "x": 2},
        {"e": None, "x": 9},
    ]
    same_rows(cells(monitor.push(rows)), oracle.push(rows), "push")
