"""Bad input ends in an error that helps or in a counted rejection, and the Monitor goes on with the right answer.

Each test of a bad batch pushes it into a Monitor that has seen good rows and will see more: the error names what is
wrong, nothing has changed (the snapshot has the same bytes), and what follows is as if the batch had never been.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skyband as sb
from skyband.errors import BatchError, QueryError, SkybandError, StateError

Row = dict[str, Any]
TOP = sb.TopK(k=2, by="x", window=sb.Last(3))
TIMED = sb.TopK(k=2, by="x", window=sb.Last(span=10))


def brief(changes: Any) -> list[str]:
    """'+3' when the object with score 3 enters, '-3' when it leaves."""
    return [f"{'+' if row['diff'] > 0 else '-'}{row['score']:g}" for row in changes.to_pylist()]


def scores(monitor: sb.Monitor, name: str | None = None) -> list[float]:
    listed: list[float] = monitor.answer(name).column("score").to_pylist()
    return listed


def says(error: BaseException, *words: str) -> None:
    """The message holds these words, and is a sentence for a person, not a traceback from below."""
    text = str(error)
    assert isinstance(error, SkybandError)
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"


def refused(monitor: sb.Monitor, batch: Any, kind: type[SkybandError], *words: str) -> None:
    """The batch is refused with these words, and leaves no trace."""
    before = monitor.snapshot()
    with pytest.raises(kind) as caught:
        monitor.push(batch)
    says(caught.value, *words)
    assert monitor.snapshot() == before, "a refused batch changes nothing"


# ------------------------------------------------------------------------------ questions


@pytest.mark.parametrize(
    ("k", "word"),
    [
        (0, "at least 1"),
        (-3, "at least 1"),
        (2**31, "below 2^31"),
        (2.0, "whole number"),
        (2.5, "whole number"),
        ("2", "whole number"),
        (None, "whole number"),
        (True, "whole number"),
        (math.nan, "whole number"),
        ([2], "whole number"),
    ],
)
@pytest.mark.parametrize("kind", ["TopK", "TopKPairs", "TopKIncomplete", "TopKUncertain"])
def test_k(kind: str, k: Any, word: str) -> None:
    made: dict[str, Callable[[], Any]] = {
        "TopK": lambda: sb.TopK(k, "x", sb.Last(3)),
        "TopKPairs": lambda: sb.TopKPairs(k, "abs(a.x - b.x)", sb.Last(3)),
        "TopKIncomplete": lambda: sb.TopKIncomplete(k, ["north", "south"], sb.Last(3)),
        "TopKUncertain": lambda: sb.TopKUncertain(k, "x", sb.Last(3)),
    }
    with pytest.raises(QueryError) as caught:
        made[kind]()
    says(caught.value, kind, "k=", word, "Did you mean k=10?")


def test_whole_numbers_of_other_types_are_k() -> None:
    assert sb.TopK(np.int64(3), "x", sb.Last(np.int32(5))) == sb.TopK(3, "x", sb.Last(5))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "word"),
    [
        (0, "at least 1"),
        (-5, "at least 1"),
        (2.5, "whole number"),
        (True, "True"),
        ("", "not a duration"),
        ("10", "not a duration"),
        ("ten minutes", "not a duration"),
        ("10 fortnights", "not a duration"),
        ("-10 minutes", "not a duration"),
        ("0 s", "longer than nothing"),
        ("0.5 ns", "nanosecond"),
        (timedelta(0), "longer than nothing"),
        (timedelta(minutes=-1), "longer than nothing"),
        (2**62, "too large"),
        ("99999999999999 weeks", "too large"),
        (None, "one size"),
        ([1], "whole number"),
    ],
)
def test_windows(size: Any, word: str) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Last(size)
    says(caught.value, "Last(", word)


@pytest.mark.parametrize(
    ("span", "word"), [(0, "at least 1"), (-1, "at least 1"), (1.5, "whole"), ("5 s", "whole"), (True, "True")]
)
def test_spans(span: Any, word: str) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Last(span=span)
    says(caught.value, "span", word)


def test_a_window_has_one_size() -> None:
    with pytest.raises(QueryError, match="one size"):
        sb.Last(3, span=3)


@pytest.mark.parametrize("window", [3, "10 minutes", None, timedelta(1)])
def test_a_bare_size_is_no_window(window: Any) -> None:
    with pytest.raises(QueryError, match=r"window must say how long.*Last\(1000\)"):
        sb.TopK(2, "x", window)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("round(x)", ("round", "abs")),
        ("sum(x)", ("sum",)),
        ("rand()", ("rand",)),
        ("x; drop table t", ()),
        ("(select 1)", ()),
        ("x +", ()),
        ("", ()),
        (7, ("no scoring", "Linear")),
        (None, ("no scoring",)),
        (sb.Global({"x": "absdiff"}), ("pairs",)),
    ],
)
def test_scorings(by: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(2, by, sb.Last(3))
    says(caught.value, *words)


@pytest.mark.parametrize("where", ["upper(z) = 'A'", "x >", 7, True])
def test_conditions(where: Any) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(2, "x", sb.Last(3), where=where)
    says(caught.value)


@pytest.mark.parametrize(
    "name", ["query", "at", "time", "id", "id_a", "id_b", "rank", "score", "probability", "diff", "first"]
)
def test_reserved_names(name: str) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(2, "x", sb.Last(3), per=name)
    says(caught.value, "per", name, "writes itself", "Rename")
    with pytest.raises(QueryError) as caught:
        sb.Monitor(TOP, keep=["z", name])
    says(caught.value, "keep", name, "writes itself", "Rename")
    # as the id, the time or the score they are fine: the output's columns have fixed names
    monitor = sb.Monitor(sb.TopK(1, by=name if name.isidentifier() else "x", window=sb.Last(3)), id=name)
    assert brief(monitor.push({name: [1, 2]})) == ["+1", "-1", "+2"]


@pytest.mark.parametrize("per", ["", ("g", ""), 7, ("g", 7), ("g", "g")])
def test_per(per: Any) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(2, "x", sb.Last(3), per=per)
    says(caught.value, "per")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": ["z", "z"]}, ("keep", "'z'", "twice")),
        ({"keep": [""]}, ("keep",)),
        ({"keep": [7]}, ("keep", "7")),
        ({"id": ""}, ("id",)),
        ({"id": 7}, ("id", "7")),
        ({"time": ""}, ("time",)),
        ({"emit": "never"}, ("emit", "'never'", "'arrival'", "'batch'")),
        ({"late": "maybe"}, ("late", "'accept'", "'drop'")),
        ({"invalid": "ignore"}, ("invalid", "'reject'", "'raise'")),
        ({"keep": ["g"]}, ("'g'", "per", "keep")),
    ],
)
def test_options(options: Mapping[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(sb.TopK(2, "x", sb.Last(3), per="g"), **options)
    says(caught.value, *words)


def test_a_time_window_needs_a_time_column() -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(TIMED)
    says(caught.value, "Last(span=10)", "time window", 'time="..."')


@pytest.mark.parametrize("queries", [7, "x", [7], {"a": 7}, {"": TOP}, {7: TOP}, sb.Last(3)])
def test_what_is_no_query(queries: Any) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(queries)
    says(caught.value)


@pytest.mark.parametrize("algorithm", ["quick", "", None, 7, "SCASE"])
def test_unknown_algorithms(algorithm: Any) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(2, "x", sb.Last(3), algorithm=algorithm)
    says(caught.value, "algorithm", "unknown", "SA", "BLOCK")


# ------------------------------------------------------- engines that keep the window: what they cannot do


@pytest.mark.parametrize("algorithm", ["TMA", "sma", "TSL"])
@pytest.mark.parametrize("by", ["x*y", "abs(x - 1) * y", len], ids=str)
@pytest.mark.parametrize("kind", ["TopK", "Above"])
def test_grids_refuse_what_they_cannot_bound(kind: str, by: Any, algorithm: str) -> None:
    query = sb.Above(1, by, sb.Last(3), algorithm=algorithm)
    with pytest.raises(QueryError) as caught:
        sb.Monitor(query if kind == "Above" else sb.TopK(2, by, sb.Last(3), algorithm=algorithm))
    says(caught.value, kind, algorithm.upper(), "cannot", "auto" if kind == "Above" else "BLOCK")


@pytest.mark.parametrize(("algorithm", "instead"), [("CPM/W", "TMA"), ("snn", "SMA")])
@pytest.mark.parametrize("by", ["x", "abs(x - 1)", sb.Linear({"x": 1})], ids=str)
def test_names_for_nearest_are_for_nearest(algorithm: str, instead: str, by: Any) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(sb.TopK(2, by, sb.Last(3), algorithm=algorithm))
    says(caught.value, algorithm.upper(), "no Nearest", instead, "BLOCK")


@pytest.mark.parametrize("algorithm", ["SMA", "SNN", "SA", "BLOCK", "PA", "ADAPTIVE", "RAPF"])
def test_engines_that_rely_on_expiry_refuse_deletions(algorithm: str) -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(sb.TopK(2, sb.Nearest({"x": 1}), sb.UntilDeleted(), algorithm=algorithm), id="i")
    says(caught.value, algorithm, "UntilDeleted()", "forgets", "TMA", "TSL")


def test_until_deleted_needs_ids() -> None:
    for query in (sb.TopK(2, "x", sb.UntilDeleted()), sb.Above(2, "x", sb.UntilDeleted())):
        with pytest.raises(QueryError) as caught:
            sb.Monitor(query)
        says(caught.value, "UntilDeleted()", "id=")


def test_delete_is_for_until_deleted() -> None:
    with pytest.raises(QueryError) as caught:
        sb.Monitor(TOP, id="i").delete(["a"])
    says(caught.value, "delete", "UntilDeleted", "Last(...)")


def live(**columns: Any) -> sb.Monitor:
    """Objects a, b and c with scores 1, 2 and 3, of which the best two are the answer."""
    monitor = sb.Monitor(sb.TopK(2, "x", sb.UntilDeleted()), id="i")
    monitor.push({"i": ["a", "b", "c"], "x": [1, 2, 3], **columns})
    return monitor


def test_an_unknown_id_is_counted_and_ignored() -> None:
    monitor = live()
    assert brief(monitor.delete(["z", "c", "c", "y"])) == ["-3", "+1"]
    assert monitor.stats()["rejected"] == {"unknown id": 3}
    assert scores(monitor) == [2, 1]
    assert brief(monitor.delete([])) == []
    assert sb.Monitor.restore(monitor.snapshot()).stats()["rejected"] == {"unknown id": 3}


def test_deleting_before_anything_has_arrived() -> None:
    monitor = sb.Monitor(sb.TopK(2, "x", sb.UntilDeleted()), id="i")
    assert brief(monitor.delete(["z", 1, None])) == []
    assert monitor.stats()["rejected"] == {"unknown id": 3}
    assert brief(monitor.push({"i": ["z"], "x": [1]})) == ["+1"]


@pytest.mark.parametrize("ids", [[1], ["a", 2.5], [["a"]], [b"a", 3]], ids=str)
def test_ids_of_a_wrong_type_delete_nothing(ids: list[Any]) -> None:
    monitor = live()
    before = monitor.snapshot()
    with pytest.raises(BatchError) as caught:
        monitor.delete(ids)
    says(caught.value, "delete", "string", "Nothing was deleted")
    assert monitor.snapshot() == before


@pytest.mark.parametrize("ids", [None, 7, "ab", b"ab"], ids=str)
def test_ids_that_are_no_list(ids: Any) -> None:
    """A lone string would be taken for the ids of its letters."""
    monitor = live()
    with pytest.raises(BatchError) as caught:
        monitor.delete(ids)
    says(caught.value, "delete", "list")
    assert scores(monitor) == [3, 2]


def test_a_live_id_replaces_its_object_in_one_step() -> None:
    monitor = live()
    changes = monitor.push({"i": ["c"], "x": [1.5]})
    assert brief(changes) == ["-3", "+1.5"] or brief(changes) == ["-3", "+1"]
    assert changes.column("at").to_pylist() == [3, 3]
    assert scores(monitor) == [2, 1.5]


def test_a_rejected_row_does_not_take_the_place_of_its_id() -> None:
    monitor = live()
    assert brief(monitor.push({"i": ["c", None], "x": [math.nan, 9]})) == []
    assert monitor.stats()["rejected"]["id is null"] == 1
    assert scores(monitor) == [3, 2]


@pytest.mark.parametrize("window", [sb.Last(3), sb.UntilDeleted()], ids=str)
@pytest.mark.parametrize("algorithm", ["auto", "TMA"])
def test_a_constraint_on_a_column_that_is_not_there(algorithm: str, window: Any) -> None:
    query = sb.TopK(2, sb.Linear({"x": 1, "y": 1}), window, where="x > 0 and z < 3", algorithm=algorithm)
    monitor = sb.Monitor(query, id="i")
    refused(monitor, {"i": ["a"], "x": [1], "y": [1]}, BatchError, "z")
    assert brief(monitor.push({"i": ["a"], "x": [1], "y": [1], "z": [0]})) == ["+2"]


@pytest.mark.parametrize(
    "where",
    ["x between 3 and 1", "x > 3 and y > 0 and x < 1", "x = 1 and 2 <= x", "x > 1 and x < 1", "x > 1 and x <= 1"],
)
@pytest.mark.parametrize("kind", ["TopK", "Above"])
def test_a_range_that_nothing_can_be_in(kind: str, where: str) -> None:
    with pytest.raises(QueryError) as caught:
        sb.TopK(1, "x", sb.Last(3), where=where) if kind == "TopK" else sb.Above(1, "x", sb.Last(3), where=where)
    says(caught.value, kind, "where", "'x'", "nothing")
    for good in (
        "x between 1 and 1",
        "x >= 1 and x <= 1",
        "x > 1 or x < 1",
        "not (x > 3 and x < 1)",
        "x < 3 and y > 3",
    ):
        sb.TopK(1, "x", sb.Last(3), where=good)


def test_an_answer_at_once_wants_a_window_that_is_kept() -> None:
    monitor = sb.Monitor({"top": TOP, "grid": sb.TopK(2, sb.Linear({"x": 1, "y": 1}), sb.Last(5), algorithm="TMA")})
    monitor.push({"x": [1, 2, 3], "y": [1, 1, 1]})
    before = monitor.snapshot()
    for query in (
        TOP,  # BLOCK keeps no window
        sb.TopK(1, sb.Linear({"x": 1, "z": 1}), sb.Last(5)),  # other columns
        sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(6)),  # a longer window
        sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(span=5)),
        sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(5), per="g"),
        sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(5), where="z > 1"),
    ):
        with pytest.raises(QueryError) as caught:
            monitor.add("new", query, from_window=True)
        if not query.window.timed:
            says(caught.value, "new", "window", "TMA, SMA or TSL", "from_window")
    with pytest.raises(QueryError, match="standing already"):
        monitor.add("top", sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(5)), from_window=True)
    assert monitor.snapshot() == before
    assert brief(monitor.add("new", sb.TopK(1, sb.Linear({"x": 1, "y": 2}), sb.Last(5)), from_window=True)) == ["+5"]


# ------------------------------------------------------------------- rows that are rejected


def test_bad_scores_are_rejected_and_counted() -> None:
    monitor = sb.Monitor(TOP)
    batch = pa.table({"x": pa.array([1.0, None, math.nan, math.inf, 2.0, -math.inf])})
    changes = monitor.push(batch)
    #  at 0: 1   at 1: inf   at 2: 2   at 3: -inf, and 1 is no longer valid
    assert changes.column("at").to_pylist() == [0, 1, 2, 2]
    assert brief(changes) == ["+1", "+inf", "-1", "+2"]
    assert scores(monitor) == [math.inf, 2.0]
    assert monitor.stats()["rejected"] == {"x is null": 1, "x is NaN": 1}
    assert monitor.stats()["queries"]["q0"]["rejected"] == {"x is null": 1, "x is NaN": 1}
    assert monitor.stats()["arrivals"] == 4


@pytest.mark.parametrize(
    ("type_", "fine", "beyond"),
    [
        (pa.int64(), [2**53, -(2**53), 2**53 - 1], [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]),
        (pa.uint64(), [2**53, 0], [2**53 + 1, 2**64 - 1]),
    ],
)
def test_integers_beyond_float64(type_: Any, fine: list[int], beyond: list[int]) -> None:
    monitor = sb.Monitor(sb.TopK(k=9, by="x", window=sb.Last(9)))
    monitor.push({"x": pa.array([*fine, *beyond, None], type_)})
    assert sorted(scores(monitor)) == sorted(map(float, fine))
    assert monitor.stats()["rejected"] == {"x is beyond 2^53": len(beyond), "x is null": 1}


def test_integers_beyond_float64_in_other_places() -> None:
    """In `where` they are rejected too; in `per`, `id` and `keep` they are exact."""
    large = 2**53 + 1
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(9), where="y > 0"))
    monitor.push({"x": [1, 2], "y": [large, 1]})
    assert scores(monitor) == [2.0]
    assert monitor.stats()["rejected"] == {"y is beyond 2^53": 1}
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(9), per="g"), id="i", keep="z")
    changes = monitor.push({"x": [1, 2], "g": [large, large - 1], "i": [large, large], "z": [large, -large]})
    told = [(row["g"], row["id"], row["z"]) for row in changes.to_pylist()]
    assert told == [(large, large, large), (large - 1, large, -large)]
    assert monitor.answer(key=large).column("score").to_pylist() == [1.0]


def test_rows_that_every_query_rejects_move_no_clock() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    monitor.push({"x": [1.0], "t": [0]})
    assert brief(monitor.push({"x": pa.array([None, math.nan], pa.float64()), "t": [50, 60]})) == []
    assert scores(monitor) == [1.0], "the clock is still at 0"
    assert brief(monitor.push({"x": [2.0], "t": [10]})) == ["-1", "+2"]


def test_null_and_distant_times_are_rejected() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    far = [2**62, -(2**62), 2**63 - 1, -(2**63)]
    monitor.push({"x": [1.0, 2.0, *([9.0] * 4)], "t": pa.array([0, None, *far], pa.int64())})
    assert scores(monitor) == [1.0]
    assert monitor.stats()["rejected"] == {"time is null": 1, "time is out of range": 4}
    near = 2**62 - 1
    assert brief(monitor.push({"x": [3.0], "t": [near]})) == ["-1", "+3"]
    assert monitor.advance(near).num_rows == 0
    assert scores(monitor) == [3.0]


def test_times_whose_expiry_the_type_cannot_hold() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    assert brief(monitor.push({"x": [1.0, 2.0, 3.0], "t": pa.array([0, 117, 118], pa.int8())})) == ["+1", "-1", "+2"]
    assert monitor.stats()["rejected"] == {"time is out of range": 1}
    changes = monitor.advance(127)
    assert changes.schema.field("time").type == pa.int8()
    assert changes.column("time").to_pylist() == [127]


def test_null_times_in_count_windows() -> None:
    monitor = sb.Monitor(TOP, time="t")
    monitor.push({"x": [1.0, 2.0], "t": pa.array([None, 5], pa.int64())})
    assert scores(monitor) == [2.0]
    assert monitor.stats()["rejected"] == {"time is null": 1}


def test_all_times_null_in_the_first_batch() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    assert monitor.push([{"x": 1.0, "t": None}]).num_rows == 0
    assert monitor.stats()["rejected"] == {"time is null": 1}
    assert brief(monitor.push([{"x": 1.0, "t": 5}])) == ["+1"]


def test_late_rows() -> None:
    """Time   0     5    12                 (window: 10)
    a3    b2   c1   d9@4 e8@2
    """
    batch = {"x": [3.0, 2.0, 1.0, 9.0, 8.0], "t": [0, 5, 12, 4, 2]}
    accepting, dropping = sb.Monitor(TIMED, time="t"), sb.Monitor(TIMED, time="t", late="drop")
    assert brief(accepting.push(batch)) == ["+3", "+2", "-3", "+1", "-1", "+9"]
    assert brief(dropping.push(batch)) == ["+3", "+2", "-3", "+1"]
    assert accepting.stats()["late"] == 1
    assert dropping.stats()["late"] == 2
    assert scores(accepting) == [9.0, 2.0]
    assert scores(dropping) == [2.0, 1.0]


def test_late_rows_are_no_arrivals() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    monitor.push({"x": [1.0, 2.0, 3.0], "t": [0, 20, 5]})
    assert monitor.stats()["late"] == 1
    assert monitor.stats()["arrivals"] == 2


def test_late_rows_are_counted_if_any_query_drops_them() -> None:
    queries = {"short": sb.TopK(1, "x", sb.Last(span=2)), "long": sb.TopK(1, "x", sb.Last(span=9))}
    monitor = sb.Monitor(queries, time="t")
    monitor.push({"x": [1.0, 2.0], "t": [5, 0]})
    assert monitor.stats()["late"] == 1


@pytest.mark.parametrize("bad", [{"x": None}, {"x": math.nan}, {"x": 2**53 + 1}, {"t": None}, {"t": 2**62}])
def test_invalid_raise_changes_nothing(bad: Row) -> None:
    monitor = sb.Monitor(TIMED, time="t", invalid="raise")
    column, value = next(iter(bad.items()))
    rows: list[Row] = [{"x": 3, "t": 4}, {"x": 5, "t": 30}, {"x": 1, "t": 31}]
    rows[1][column] = value
    refused(monitor, rows, BatchError, "row 1", "time" if column == "t" else "x", "Nothing was pushed")
    good = [{"x": 3, "t": 4}, {"x": 1, "t": 6}]
    assert brief(monitor.push(good)) == ["+3", "+1"]
    refused(monitor, rows, BatchError, "row 1")
    assert monitor.stats()["rejected"] == {}
    assert brief(monitor.push([{"x": 2, "t": 7}])) == ["-1", "+2"]


def test_invalid_raise_names_the_first_bad_row() -> None:
    queries = {"a": sb.TopK(1, "x", sb.Last(3)), "b": sb.TopK(1, "y", sb.Last(3))}
    monitor = sb.Monitor(queries, invalid="raise")
    refused(monitor, {"x": [1.0, 2.0, math.nan], "y": [1.0, math.nan, 3.0]}, BatchError, "row 1", "y is NaN")


def test_a_row_that_one_query_rejects_is_an_arrival_of_the_other() -> None:
    queries = {"a": sb.TopK(1, "x", sb.Last(2)), "b": sb.TopK(1, "y", sb.Last(2))}
    monitor = sb.Monitor(queries)
    monitor.push([{"x": 1.0, "y": 5.0}, {"x": None, "y": 4.0}, {"x": 0.0, "y": None}, {"x": None, "y": 3.0}])
    assert scores(monitor, "a") == [1.0], "x=0 is only the second arrival of a"
    assert scores(monitor, "b") == [4.0], "y=3 is the third arrival of b"


# ------------------------------------------------------------------------- batches refused


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
        (but(x=np.ones((1, 2))), ("one-dimensional", "(1, 2)")),
        (but(x=5), ("read as a table",)),
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
        (iter([{"x": 1}]), ("no batch",)),
        ({1: [2]}, ("read as a table",)),
        (pl.Series("x", [1.0]), ()),
        (pa.array([1.0]), ()),
    ],
)
def test_refused_batches(batch: Any, words: tuple[str, ...]) -> None:
    monitor = going()
    refused(monitor, batch, BatchError, *words)
    assert brief(monitor.push(good(5, t=9))) == ["-3", "+5"]


@pytest.mark.parametrize("batch", ["", b"", ()])
def test_empty_things_that_are_no_batch(batch: Any) -> None:
    refused(going(), batch, BatchError, "no batch")


def test_the_score_column_is_named_with_its_type() -> None:
    refused(sb.Monitor(TOP), {"x": ["7"]}, BatchError, "'x'", "string", "number", "Convert")


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
    "type_", [pa.float64(), pa.string(), pa.time64("us"), pa.bool_(), pa.duration("s"), pa.decimal128(9, 2)]
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


def test_advance() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    monitor.push({"x": [1.0], "t": [5]})
    for to, word in (
        (4, "backwards"),
        (7.5, "int64"),
        ("7", "int64"),
        (datetime(2024, 1, 1), "int64"),
        (None, "no time"),
        (2**62, "range"),
    ):
        before = monitor.snapshot()
        with pytest.raises(BatchError) as caught:
            monitor.advance(to)
        says(caught.value, word)
        assert monitor.snapshot() == before
    assert brief(monitor.advance(5)) == []
    assert brief(monitor.advance(14)) == []
    assert brief(monitor.advance(15)) == ["-1"]
    with pytest.raises(BatchError, match="backwards"):
        monitor.advance(14)
    with pytest.raises(BatchError, match="no time column"):
        sb.Monitor(TOP).advance(5)


def test_advance_in_timestamps() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last("10 s")), time="t")
    monitor.push(pa.table({"x": [1.0], "t": pa.array([datetime(2024, 1, 1)], pa.timestamp("s"))}))
    for to in (5, datetime(2024, 1, 1, 0, 0, 1, 500_000), date(2023, 12, 31)):
        with pytest.raises(BatchError, match="time"):
            monitor.advance(to)
    changes = monitor.advance(datetime(2024, 1, 1, 0, 0, 10))
    assert changes.column("time").to_pylist() == [datetime(2024, 1, 1, 0, 0, 10)]


def test_advance_before_the_first_batch() -> None:
    monitor = sb.Monitor(TIMED, time="t", late="drop")
    monitor.advance(5)
    with pytest.raises(BatchError, match="backwards"):
        monitor.advance(4)
    assert brief(monitor.push({"x": [1.0, 2.0], "t": [4, 5]})) == ["+2"]
    assert monitor.stats()["late"] == 1


def test_advance_to_nonsense_before_the_first_batch() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    for to in ("soon", None, [1], object()):
        with pytest.raises(BatchError, match="time"):
            monitor.advance(to)
    assert brief(monitor.push({"x": [1.0], "t": [5]})) == ["+1"]


def test_advance_of_mixed_types_before_the_first_batch() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    monitor.advance(5)
    with pytest.raises(BatchError, match="time"):
        monitor.advance(datetime(2024, 1, 1))


def test_a_time_that_was_announced_in_another_type() -> None:
    """The batch is refused because of an earlier `advance`; a batch of the right type then goes in."""
    monitor = sb.Monitor(TIMED, time="t")
    monitor.advance(datetime(2024, 1, 1))
    refused(monitor, {"x": [1.0], "t": [5]}, BatchError, "2024", "int64")


def test_advance_backwards_after_a_batch_of_rejected_rows() -> None:
    monitor = sb.Monitor(TIMED, time="t")
    monitor.advance(5)
    monitor.push({"x": [math.nan], "t": [1]})
    with pytest.raises(BatchError, match="backwards"):
        monitor.advance(3)


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


# --------------------------------------------------------------------- names and questions


def test_unknown_names() -> None:
    monitor = sb.Monitor({"a": TOP, "b": TOP})
    for act in (monitor.answer, monitor.drop, lambda name: monitor.replace(name, TOP)):
        with pytest.raises(QueryError) as caught:
            act("c")
        says(caught.value, "'c'", "a, b")
    with pytest.raises(QueryError, match="name the query: a, b"):
        monitor.answer()
    with pytest.raises(QueryError, match=r"'a'.*already"):
        monitor.add("a", TOP)
    with pytest.raises(QueryError, match="none is standing"):
        sb.Monitor([]).answer()
    assert monitor.push({"x": [1.0]}).num_rows == 2


def test_answers_that_do_not_fit() -> None:
    monitor = sb.Monitor({"n": TOP, "t": TIMED, "g": sb.TopK(2, "x", sb.Last(3), per=("g", "h"))}, time="t")
    monitor.push({"x": [1, 2, 3], "t": [1, 2, 3], "g": [1, 1, 1], "h": [1, 1, 1]})
    for name, asked, words in (
        ("n", {"k": 3}, ("k=3", "k=2")),
        ("n", {"k": 0}, ("k must be at least 1",)),
        ("n", {"k": 1.5}, ("whole number",)),
        ("n", {"window": 4}, ("4", "Last(3)")),
        ("n", {"window": sb.Last(span=2)}, ("Last(3)", "kind")),
        ("n", {"window": sb.UntilDeleted()}, ("Last(3)",)),
        ("n", {"window": 0}, ("at least 1",)),
        ("t", {"window": sb.Last(span=11)}, ("Last(span=10)",)),
        ("t", {"window": 5}, ("Last(span=10)",)),
        ("t", {"window": "5 s"}, ("Last(span=10)",)),
        ("n", {"key": 1}, ("0 `per` columns", "1 values")),
        ("g", {"key": 1}, ("2 `per` columns", "['g', 'h']")),
        ("g", {"key": (1, 2, 3)}, ("2 `per` columns", "3 values")),
    ):
        with pytest.raises(QueryError) as caught:
            monitor.answer(name, **asked)
        says(caught.value, *words)
    assert monitor.answer("g", key=(1, 2)).num_rows == 0, "a group that nobody saw has no objects"
    assert monitor.answer("g", key=("x", [1])).num_rows == 0
    assert scores(monitor, "n") == [3.0, 2.0]


# ------------------------------------------------------------------------------ snapshots


def small() -> bytes:
    monitor = sb.Monitor(TOP, id="i")
    monitor.push({"x": [3.0, 1.0, 2.0], "i": ["a", "b", "c"]})
    return monitor.snapshot()


def test_a_snapshot_cut_short() -> None:
    data = small()
    for length in {*range(64), *range(0, len(data), 7), *range(len(data) - 64, len(data))}:
        with pytest.raises(StateError) as caught:
            sb.Monitor.restore(data[:length])
        says(caught.value, "snapshot")


def test_a_snapshot_changed_in_one_byte() -> None:
    data = small()
    for place in range(len(data)):
        for flip in (1, 0x80):
            changed = bytearray(data)
            changed[place] ^= flip
            with pytest.raises(StateError) as caught:
                sb.Monitor.restore(bytes(changed))
            says(caught.value, "snapshot")


def test_a_snapshot_with_more_at_its_end() -> None:
    with pytest.raises(StateError, match="damaged"):
        sb.Monitor.restore(small() + b"\0")


def test_a_snapshot_of_a_newer_version() -> None:
    data = small()
    newer = data[:8] + (int.from_bytes(data[8:10], "little") + 1).to_bytes(2, "little") + data[10:]
    with pytest.raises(StateError) as caught:
        sb.Monitor.restore(newer)
    says(caught.value, "newer", "Upgrade skyband")


@pytest.mark.parametrize("data", [b"", b"SKYBAND\n", b"hello", b"\x80\x04pickle", bytes(1000)])
def test_what_is_no_snapshot(data: bytes) -> None:
    with pytest.raises(StateError, match="no skyband snapshot"):
        sb.Monitor.restore(data)


@pytest.mark.parametrize("data", ["text", None, 100, [1, 2]])
def test_what_is_not_even_bytes(data: Any) -> None:
    with pytest.raises(StateError, match="snapshot"):
        sb.Monitor.restore(data)


def test_a_function_is_never_stored() -> None:
    def speed(batch: Mapping[str, Any]) -> Any:
        return batch["x"]

    monitor = sb.Monitor({"fast": sb.TopK(1, speed, sb.Last(3))})
    monitor.push({"x": [1.0]})
    data = monitor.snapshot()
    with pytest.raises(QueryError) as caught:
        sb.Monitor.restore(data)
    says(caught.value, "speed", "never stored", "callables")
    with pytest.raises(QueryError):
        sb.Monitor.restore(data, callables={"slow": speed})
    restored = sb.Monitor.restore(data, callables={"fast": speed})
    assert brief(restored.push({"x": [2.0]})) == ["-1", "+2"]


# ---------------------------------------------------------------------------- input kinds

TIMES = [datetime(2024, 1, 1, 0, 0, second) for second in (0, 2, 2, 5, 9)]
COLUMNS: dict[str, list[Any]] = {
    "i": ["a", "b", None, "a", "e"],
    "t": TIMES,
    "x": [1.0, 3.0, 3.0, None, 2.0],
    "g": [1, 2, 1, 1, 2],
    "z": ["u", None, "v", "w", "u"],
}
TABLE = pa.table(
    {name: pa.array(values, pa.timestamp("us") if name == "t" else None) for name, values in COLUMNS.items()}
)
ROWS = TABLE.to_pylist()


def in_pandas() -> pd.DataFrame:
    return TABLE.to_pandas()


KINDS: dict[str, Callable[[], Any]] = {
    "pyarrow Table": lambda: TABLE,
    "chunked Table": lambda: pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)]),
    "RecordBatch": lambda: TABLE.to_batches()[0],
    "RecordBatchReader": lambda: TABLE.to_reader(),
    "pandas": in_pandas,
    "pandas, odd index": lambda: in_pandas().set_index(pd.Index([9, 9, 3, 1, 0])),
    "pandas categories": lambda: in_pandas().astype({"z": "category"}),
    "polars": lambda: pl.from_arrow(TABLE),
    "polars categories": lambda: pl.from_arrow(TABLE).with_columns(pl.col("z").cast(pl.Categorical)),  # type: ignore[union-attr]
    "duckdb": lambda: duckdb.from_arrow(TABLE),
    "dict of lists": lambda: COLUMNS,
    "dict of arrays": lambda: {name: TABLE[name] for name in TABLE.column_names},
    "dict of NumPy arrays": lambda: {
        **COLUMNS,
        "x": np.array([1.0, 3.0, 3.0, np.nan, 2.0]),
        "g": np.array(COLUMNS["g"], np.int32),
        "t": np.array(TIMES, "M8[us]"),
        "i": np.array(COLUMNS["i"], object),
    },
    "dict of Series": lambda: {name: in_pandas()[name] for name in COLUMNS},
    "list of dicts": lambda: ROWS,
    "list of dicts without nulls": lambda: [{k: v for k, v in row.items() if v is not None} for row in ROWS],
    "sliced": lambda: pa.concat_tables([TABLE, TABLE]).combine_chunks().slice(5, 5),
    "large strings": lambda: TABLE.set_column(4, "z", TABLE["z"].cast(pa.large_string())),
    "dictionary": lambda: TABLE.set_column(4, "z", TABLE["z"].dictionary_encode()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_input_give_the_same_changes(kind: str) -> None:
    def run(batch: Any) -> tuple[list[Row], list[Row], dict[str, int]]:
        query = sb.TopK(1, "x", sb.Last("4 seconds"), where="z is not null or g = 2", per="g")
        monitor = sb.Monitor(query, id="i", time="t", keep="z")
        changes = monitor.push(batch).to_pylist()
        return changes, monitor.answer().to_pylist(), monitor.stats()["rejected"]

    changes, answer, rejected = run(KINDS[kind]())
    expected, expected_answer, _ = run(TABLE)
    assert changes == expected
    assert answer == expected_answer
    assert len(changes) == 7  # g=1: +1 at 0, -1 +3 at 2, -3 at 6; g=2: +3 at 2, -3 at 6, +2 at 9
    assert sum(rejected.values()) == 1


@pytest.mark.parametrize(
    "type_",
    [
        pa.int8(),
        pa.uint16(),
        pa.int32(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(9, 2),
        pa.dictionary(pa.int8(), pa.int64()),
    ],
)
def test_every_type_of_number_is_a_score(type_: Any) -> None:
    values: list[Any] = [3, 1, None, 2]
    if pa.types.is_decimal(type_):
        values = [None if value is None else Decimal(value) for value in values]
    if pa.types.is_float16(type_):
        values = [None if value is None else np.float16(value) for value in values]
    column = pa.array(values).dictionary_encode() if pa.types.is_dictionary(type_) else pa.array(values, type_)
    monitor = sb.Monitor(TOP)
    assert brief(monitor.push(pa.table({"x": column}))) == ["+3", "+1", "-1", "+2"]
    assert monitor.stats()["rejected"] == {"x is null": 1}


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, None]),
        pa.array([1.5, math.nan, None]),
        pa.array([b"a", b"b", None]),
        pa.array([Decimal("1.50"), Decimal("2.25"), None]),
        pa.array([[1, 2], [], None]),
        pa.array([{"a": 1}, {"a": None}, None]),
        pa.array([date(2024, 1, 1), date(2024, 1, 2), None]),
        pa.array([datetime(2024, 1, 1, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC), None]),
        pa.array([timedelta(seconds=1), timedelta(days=-1), None]),
        pa.array([1, 2, None], pa.uint8()),
        pa.array(["a", "b", None]).dictionary_encode(),
        pa.array(["a", "b", None], pa.string_view()),
        pa.nulls(3),
    ],
    ids=lambda array: str(array.type),
)
def test_every_type_can_be_kept(values: Any) -> None:
    """What is kept comes back, from this push, from an earlier one, and from a snapshot."""
    monitor = sb.Monitor(sb.TopK(9, "x", sb.Last(3)), id="z", keep="w")
    table = pa.table({"x": [1.0, 2.0, 3.0], "z": values, "w": values})
    text = [repr(value) for value in values.to_pylist()]
    changes = monitor.push(table)
    assert [repr(value) for value in changes.column("w").to_pylist()] == text
    assert [repr(value) for value in changes.column("id").to_pylist()] == text
    restored = sb.Monitor.restore(monitor.snapshot())
    for one in (monitor, restored):
        assert [repr(value) for value in one.answer().column("w").to_pylist()] == text[::-1]
        left = one.push(table).filter(pa.compute.field("diff") == -1)
        assert [repr(value) for value in left.column("w").to_pylist()] == text
        assert [repr(value) for value in left.column("id").to_pylist()] == text


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, None]),
        pa.array([1.5, math.nan, None]),
        pa.array([0.0, 1.0, None], pa.float32()),
        pa.array([b"a", b"b", None]),
        pa.array(["a", "", None]),
        pa.array([Decimal("1.50"), Decimal("2.25"), None]),
        pa.array([date(2024, 1, 1), date(2024, 1, 2), None]),
        pa.array([datetime(2024, 1, 1), datetime(1900, 1, 1), None]),
        pa.array([2**64 - 1, 0, None], pa.uint64()),
        pa.array(["a", "b", None]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_every_type_can_be_a_group(values: Any) -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(9), per="g"))
    monitor.push(pa.table({"x": [1.0, 2.0, 3.0], "g": values}))
    monitor = sb.Monitor.restore(monitor.snapshot())
    changes = monitor.push(pa.table({"x": [4.0, 5.0, 0.0], "g": values}))
    assert brief(changes) == ["-1", "+4", "-2", "+5"]
    for key, score in zip(values.to_pylist(), [4.0, 5.0, 3.0], strict=True):
        assert monitor.answer(key=(key,)).column("score").to_pylist() == [score], key


def test_more_answers_than_a_kept_window_has_places_for() -> None:
    with pytest.raises(QueryError, match="at most 1,000,000 answers"):
        sb.Monitor(sb.TopK(2**31 - 1, by="x", window=sb.UntilDeleted()), id="i")
    sb.Monitor(sb.TopK(2**31 - 1, by="x", window=sb.Last(5), algorithm="TMA"))
