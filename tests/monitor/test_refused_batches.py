"""Refused batches: a BatchError names what is wrong, and nothing has changed.

Each test pushes a bad batch into a Monitor that has seen good rows and will see more: the snapshot keeps the same
bytes, and what follows is as if the batch had never been pushed.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skyband as sb
from monitor.refusals import TIMED, TOP, brief, refused, says, scores
from skyband.errors import BatchError, QueryError


def going() -> sb.Monitor:
    """A Monitor in the middle of a stream: ids, times, kept columns and groups."""
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(span=10), per="g"), id="i", time="t", keep="z")
    monitor.push(good(3, t=0))
    return monitor


def good(x: float, *, t: Any, **other: Any) -> dict[str, Any]:
    return {"x": [x], "t": [t], "i": ["a"], "g": [1], "z": ["u"], **other}


def but(**other: Any) -> dict[str, Any]:
    """A good batch, but for these columns."""
    return {**good(1.0, t=1), **other}


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def within_itself() -> Any:
    value: Any = [1, {"a": 2}]
    value[1]["a"] = value
    return [value, value]


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"t": [1], "i": ["a"], "g": [1], "z": ["u"]}, ("no column 'x'", "'t'", "'z'")),
        ({"x": [1.0], "i": ["a"], "g": [1], "z": ["u"]}, ("no column 't'",)),
        ({"x": [1.0], "t": [1], "g": [1], "z": ["u"]}, ("no column 'i'",)),
        ({"x": [1.0], "t": [1], "i": ["a"], "z": ["u"]}, ("no column 'g'",)),
        ({"x": [1.0], "t": [1], "i": ["a"], "g": [1]}, ("no column 'z'",)),
        (but(x=["7"]), ("x", "number")),
        (but(x=[True]), ("x", "number")),
        (but(x=[datetime(2024, 1, 1)]), ("'x'", "timestamp", "number")),
        (but(x=[[1.0]]), ("'x'", "list", "number")),
        (but(i=[7]), ("'i'", "string", "int64", "one type")),
        (but(t=[datetime(2024, 1, 1)]), ("'t'", "int64", "timestamp")),
        (but(t=[1.5]), ("'t'", "int64", "double")),
        (but(g=["1"]), ("'g'", "int64", "string")),
        (but(g=[1.0]), ("'g'", "int64", "double")),
        (but(z=[1]), ("'z'", "string", "int64")),
        (but(g=pa.array([2**63], pa.uint64())), ("'g'", "uint64")),
        (but(x=[1.0, 2.0]), ("read as a table", "same number of rows")),
        (but(x=np.ones((1, 2))), ("'x'", "fixed_size_list", "number")),
        (but(x=np.ones((1, 2, 1))), ("(1, 2, 1)",)),
        (but(x={"a": 5}), ("'x'", "struct", "number")),
        (but(x=[1, "a"]), ("read as a table", "one type")),
        (
            pa.table([[1.0], [1], ["a"], [1], ["u"], [2.0]], names=["x", "t", "i", "g", "z", "x"]),
            ("two columns", "'x'"),
        ),
        ([{"x": 1, "t": 1}, {"x": "a", "t": 2}], ("read as a table",)),
        ([{"x": 1}, 7], ("list", "no batch", "list of dicts")),
        ([1, 2, 3], ("list", "no batch")),
        (None, ("NoneType", "no batch", "DataFrame")),
        (7, ("int", "no batch")),
        ("x,t\n1,2", ("str", "no batch")),
        (np.ones(3), ("ndarray", "no batch")),
        (object(), ("object", "no batch")),
        (iter([{"x": 1}]), ("no column 't'",)),
        (iter([good(1.0, t=1), 7]), ("int", "no batch")),
        (iter([good(1.0, t=1), good(1.0, t="a")]), ("read as a table",)),
        ((1 / 0 for _ in [1]), ("read as a table", "ZeroDivisionError", "Nothing was pushed")),
        ({1: [2]}, ("read as a table",)),
        (but(x=[nested(30_000)]), ("nest", "64")),
        (but(x=[None, 1, nested(30_000)]), ("nest", "64")),
        (but(x=["a", nested(30_000)]), ("read as a table",)),
        (but(x=np.array([nested(30_000), None], object)), ("nest", "64")),
        (but(x={"a": nested(30_000)}), ("nest", "64")),
        (but(z=[within_itself()]), ("nest", "64")),
        ([{"x": within_itself()}], ("nest", "64")),
        (pa.table({b"\xff": [1.0]}), ("name", "UTF-8")),
        (pl.Series("x", [1.0]), ()),
        (pa.array([1.0]), ()),
    ],
)
def test_refused_batches(batch: Any, words: tuple[str, ...]) -> None:
    monitor = going()
    refused(monitor, batch, BatchError, *words)
    assert brief(monitor.push(good(5, t=9))) == ["-3", "+5"]


def test_values_that_nest_a_little() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3)), keep="z")
    value = nested(50)
    monitor.push({"x": [1.0], "z": [value]})
    assert monitor.answer()["z"].to_pylist() == [value]


def test_no_memory_is_no_fault_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's own error for it is one of Arrow's others too."""

    def fails(*_: Any, **__: Any) -> Any:
        raise pa.ArrowMemoryError("malloc of size 180032 failed")

    monitor = going()
    before = monitor.snapshot()
    for place in ("skyband.tables.input.decoded", "skyband.tables.input.validate", "skyband.tables.input.from_values"):
        with monkeypatch.context() as patched:
            patched.setattr(place, fails)
            with pytest.raises(MemoryError):
                monitor.push(good(1, t=1))
        assert monitor.snapshot() == before


@pytest.mark.parametrize("more", [None, 1, "yes", [], 2**70])
def test_more_is_true_or_false(more: Any) -> None:
    monitor = going()
    before = monitor.snapshot()
    with pytest.raises(QueryError, match=r"more=.*True or False"):
        monitor.push(good(1, t=1), more=more)
    assert monitor.snapshot() == before
    assert monitor.push(good(1, t=1), more=bool(np.False_)).num_rows == 0


@pytest.mark.parametrize("to", [np.datetime64("NaT"), np.datetime64(1, "ps"), within_itself()])
def test_no_instants(to: Any) -> None:
    for monitor in (going(), sb.Monitor(sb.TopK(1, "x", sb.Last(span=3)), time="t")):
        before = monitor.snapshot()
        for call in (monitor.advance, lambda to, monitor=monitor: monitor.push({}, to=to)):
            with pytest.raises(BatchError):
                call(to)
            assert monitor.snapshot() == before


@pytest.mark.parametrize("to", [True, "x", 2**63 - 1, -(2**62), 10**30, pa.scalar("x"), pa.scalar(None, pa.int64())])
def test_no_instants_before_the_first_batch(to: Any) -> None:
    """They would make every later push fail."""
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(span=3)), time="t")
    monitor.push({}, to=2)
    for call in (monitor.advance, lambda to: monitor.push({}, to=to)):
        with pytest.raises(BatchError, match="always of one kind"):
            call(to)
    monitor.push({}, to=1)  # it has passed
    assert monitor.push({"x": [1.0], "t": [1]})["time"].to_pylist() == [2]


def test_a_clock_without_times() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3)))
    with pytest.raises(BatchError, match="no time column"):
        monitor.push({}, to=5)
    assert monitor.push({"x": [1.0]}).num_rows == 1


def test_an_instant_that_no_microseconds_hold() -> None:
    """NumPy's own conversion would make 1970 of it."""
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last("1 day")), time="t")
    monitor.push({"x": [1.0], "t": np.array([2**40], "M8[s]")})
    with pytest.raises(BatchError, match="out of range"):
        monitor.advance(np.datetime64(2**62, "s"))


@pytest.mark.parametrize("batch", ["", b"", ()])
def test_empty_things_that_are_no_batch(batch: Any) -> None:
    refused(going(), batch, BatchError, "no batch")


def test_the_score_column_is_named_with_its_type() -> None:
    above = sb.Above(3, by="x", window=sb.Last(3))  # a string alone is a key of TopK, but no score
    refused(sb.Monitor(above), {"x": ["7"]}, BatchError, "'x'", "string", "number", "Convert")


@pytest.mark.parametrize("column", ["i", "t", "g", "z"])
def test_narrower_types_are_cast(column: str) -> None:
    """Integers of another width, strings of another kind, floats of less precision fit the column they come to."""
    narrow: dict[str, Any] = {
        "i": pa.array(["b"], pa.large_string()),
        "t": pa.array([5], pa.int8()),
        "g": pa.array([1], pa.uint8()),
        "z": pa.array(["v"], pa.string_view()),
    }
    monitor = going()
    schema = monitor.push(good(0, t=1)).schema
    changes = monitor.push({**good(5, t=5), column: narrow[column]})
    assert brief(changes) == ["-3", "+5"]
    assert changes.schema == schema
    monitor.push({**good(9, t=6), column: pa.nulls(1)})  # null is of any type, and a null time is rejected
    assert scores(monitor) == [5.0] if column == "t" else 9.0 in scores(monitor)


def test_types_may_begin_as_null() -> None:
    monitor = sb.Monitor(sb.TopK(2, "x", sb.Last(9), per="g"), id="i", keep="z")
    monitor.push([{"x": 1, "i": None, "g": None, "z": None}])
    changes = monitor.push([{"x": 2, "i": "b", "g": None, "z": [1, 2]}, {"x": 3, "i": "c", "g": 7, "z": None}])
    assert [(row["g"], row["id"], row["z"]) for row in changes.to_pylist()] == [(None, "b", [1, 2]), (7, "c", None)]
    assert [(row["g"], row["id"], row["z"]) for row in monitor.answer().to_pylist()] == [
        (None, "b", [1, 2]),
        (None, None, None),
        (7, "c", None),
    ]


@pytest.mark.parametrize(
    "type_", [pa.float64(), pa.binary(), pa.time64("us"), pa.bool_(), pa.duration("s"), pa.decimal128(9, 2)]
)
def test_types_that_are_no_time(type_: Any) -> None:
    monitor = sb.Monitor(TIMED, time="t")
    refused(monitor, pa.table({"x": [1.0], "t": pa.nulls(1, type_)}), BatchError, "'t'", "timestamp", "integer")
    assert brief(monitor.push({"x": [1.0], "t": [3]})) == ["+1"]


@pytest.mark.parametrize(
    ("window", "type_", "words"),
    [
        (sb.Last("10 minutes"), pa.int64(), ("10 minutes", "integers", "span=")),
        (sb.Last(span=10), pa.timestamp("us"), ("span=10", "timestamp", "10 minutes")),
        (sb.Last(span=10), pa.date32(), ("span=10", "date")),
        (sb.Last("10 ms"), pa.timestamp("s"), ("10 ms", "1 second", "finer unit")),
        (sb.Last("1 us"), pa.timestamp("ms"), ("1 us", "1 ms")),
        (sb.Last("36 hours"), pa.date32(), ("36 hours", "24 hours")),
    ],
)
def test_windows_that_do_not_fit_the_time_column(window: sb.Last, type_: Any, words: tuple[str, ...]) -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", window), time="t")
    batch = pa.table(
        {
            "x": [1.0],
            "t": pa.array([1], pa.int64()).cast(pa.int32() if type_ == pa.date32() else pa.int64()).cast(type_),
        }
    )
    refused(monitor, batch, QueryError, *words)
    known = sb.Monitor(TOP, time="t")  # the same question, once the type of time is known
    known.push(batch)
    with pytest.raises(QueryError) as caught:
        known.add("late", sb.TopK(1, "x", window))
    says(caught.value, *words)
    assert list(known.queries) == ["q0"]


@pytest.mark.parametrize(
    "empty", [{}, [], pa.table({}), {"x": []}, pa.table({"x": pa.array([], pa.float64())}), pd.DataFrame({"x": []})]
)
def test_batches_of_no_rows(empty: Any) -> None:
    monitor = sb.Monitor(TOP)
    for _ in range(2):
        changes = monitor.push(empty)
        assert changes.num_rows == 0
        assert changes.column_names == ["query", "at", "id", "score", "diff", "first"]
        assert monitor.answer().num_rows == 0
    assert brief(monitor.push({"x": [1, 2]})) == ["+1", "+2"]
    monitor.push(empty)
    assert scores(monitor) == [2.0, 1.0]
    assert monitor.stats()["arrivals"] == 2


def test_no_rows_but_a_missing_column() -> None:
    refused(sb.Monitor(TOP), {"y": []}, BatchError, "no column 'x'")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda batch: 1 / 0, ("ZeroDivisionError", "Nothing was pushed")),
        (lambda batch: batch["nowhere"], ("KeyError", "nowhere")),
        (lambda batch: batch["x"][:1], ("shape (1,)", "2 rows", "one float per row")),
        (lambda batch: np.ones((2, 2)), ("shape (2, 2)",)),
        (lambda batch: 5.0, ("shape ()",)),
        (lambda batch: ["a", "b"], ("ValueError",)),
        (lambda batch: None, ("shape ()",)),
    ],
)
def test_scoring_functions_that_fail(function: Callable[..., Any], words: tuple[str, ...]) -> None:
    monitor = sb.Monitor({"f": sb.TopK(1, function, sb.Last(3)), "x": sb.TopK(1, "x", sb.Last(3))})
    before = monitor.snapshot()
    with pytest.raises(BatchError) as caught:
        monitor.push({"x": [1.0, 2.0]})
    says(caught.value, "scoring function", *words)
    assert monitor.snapshot() == before
    monitor.drop("f")
    assert brief(monitor.push({"x": [1.0, 2.0]})) == ["+1", "-1", "+2"]


def test_scoring_functions_see_columns_and_may_give_nothing() -> None:
    def halved(batch: Mapping[str, Any]) -> Any:
        assert list(batch) == ["x", "z"]
        assert len(batch) == 2
        assert "y" not in batch
        return np.where(batch["z"] == "bad", np.nan, batch["x"] / 2)

    monitor = sb.Monitor(sb.TopK(1, halved, sb.Last(3)))
    assert brief(monitor.push({"x": [4, 2, 8], "z": ["good", "good", "bad"]})) == ["+2"]
    (reason,) = monitor.stats()["rejected"]
    assert "halved" in reason


def test_groups_of_lists_and_structs() -> None:
    for one, other in (([1, 2], [1]), ({"a": 1, "b": None}, {"a": 1, "b": 2})):
        monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3), per="g"))
        assert brief(monitor.push({"x": [1.0, 2.0, 3.0], "g": [one, other, one]})) == ["+1", "+2", "-1", "+3"]
        restored = sb.Monitor.restore(monitor.snapshot())
        assert brief(restored.push({"x": [4.0], "g": [other]})) == ["-2", "+4"]
        assert restored.answer(key=(other,)).column("score").to_pylist() == [4.0]


def test_a_large_k_costs_nothing_until_it_is_used() -> None:
    for emit in ("arrival", "batch"):
        monitor = sb.Monitor(sb.TopK(2**31 - 1, "x", sb.Last(2)), emit=emit)
        assert sorted(brief(monitor.push({"x": [1, 2]}))) == ["+1", "+2"]
        assert scores(monitor) == [2.0, 1.0]


def test_scoring_functions_need_not_be_hashable() -> None:
    class Score:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return self is other

        def __call__(self, batch: Mapping[str, Any]) -> Any:
            return batch["x"]

    monitor = sb.Monitor(sb.TopK(1, Score(), sb.Last(3)))
    assert brief(monitor.push({"x": [1.0, 2.0]})) == ["+1", "-1", "+2"]


def test_a_condition_that_is_none() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3), where="y + 1"))
    refused(monitor, {"x": [1.0], "y": [1.0]}, BatchError, "y + 1", "condition")
