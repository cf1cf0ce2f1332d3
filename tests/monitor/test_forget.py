"""`Monitor(forget=)`: groups of count windows and of `UntilDeleted()` that are silent for too long are forgotten.

forget=10, Last(3), per g:      time    0   2          12      20
g = a   [x] [y]        answer leaves: y was the last, at 2
[z] number 0 again
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from engines.comparison import cells, line, same_rows
from engines.playback import check
from skyband.errors import QueryError
from skyband.oracle import Oracle
from skyband.query.kinds import Query

FORGET = 6
QUERIES: dict[str, Query] = {
    "TopK BLOCK": sb.TopK(2, "x", sb.Last(4), per="g"),
    "TopK RARF": sb.TopK(2, "x", sb.Last(4), per="g", algorithm="RARF", buffer=2),
    "TopK PA": sb.TopK(2, "x", sb.Last(4), per="g", algorithm="PA"),
    "TopK SMA": sb.TopK(2, "x", sb.Last(4), per="g", algorithm="SMA"),
    "Above": sb.Above(2.0, "x", sb.Last(4), per="g"),
    "TopKPairs": sb.TopKPairs(2, "abs(a.x - b.x)", sb.Last(4), per="g"),
    "TopKIncomplete": sb.TopKIncomplete(2, ["a", "b"], sb.Last(5), per="g"),
    "TopKIncomplete repeat": sb.TopKIncomplete(2, ["a", "b"], sb.Last(5), per="g", repeat="sum"),
    "TopKUncertain DOM": sb.TopKUncertain(2, "x", sb.Last(4), per="g", algorithm="DOM"),
    "TopKUncertain CSQ": sb.TopKUncertain(2, "x", sb.Last(4), per="g", algorithm="CSQ"),
    "UntilDeleted": sb.TopK(2, "x", sb.UntilDeleted(), per="g"),
}


def stream(seed: int, size: int = 90) -> list[dict[str, Any]]:
    """Rows in order of time, of groups that fall silent now and then."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.choice([0, 0, 1, 2, 4], size))
    return [
        {
            "t": int(times[n]),
            "g": int(rng.choice([1, 1, 1, 2, 2, 3, 4, 5])) if n % 30 < 20 else 9,
            "i": f"i{rng.integers(0, 5)}",
            "x": float(rng.integers(0, 6)),
            "p": float(rng.choice([0.25, 0.5])),
            "part": str(rng.choice(["a", "b"])),
            "value": float(rng.integers(0, 5)) / 4,
        }
        for n in range(size)
    ]


def expected(query: Query, rows: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    """The changes of every life of every group by itself, and what leaves when a life is over."""
    changes, clock = [], max(row["t"] for row in rows)
    for g in {row["g"] for row in rows}:
        lives: list[tuple[Oracle, int]] = []  # each with the time of its last arrival
        for row in (row for row in rows if row["g"] == g):
            if not lives or row["t"] - lives[-1][1] >= FORGET:
                lives.append((Oracle({"q": query}, id="i", time="t", **options), row["t"]))
            oracle, last = lives[-1]
            arrived = oracle.arrivals
            changes += oracle.push([row])
            lives[-1] = (oracle, row["t"] if oracle.arrivals > arrived else last)
        for oracle, last in lives:
            if oracle is lives[-1][0] and last + FORGET > clock:
                continue
            number = oracle._streams["q"].groups[(g,)].last_number
            for member in oracle.answer("q"):
                step = {"query": "q", "g": g, "at": number, "time": last + FORGET}
                rest = {name: value for name, value in member.items() if name not in ("g", "rank", "time")}
                changes.append({**step, **rest, "diff": -1, "first": False})
    return changes


def plain(changes: list[dict[str, Any]]) -> Counter[str]:
    return Counter(line(dict(sorted((k, v) for k, v in one.items() if k != "rank"))) for one in changes)


@pytest.mark.parametrize("name", QUERIES)
def test_every_life_of_a_group_is_a_stream_of_its_own(name: str) -> None:
    for seed in range(3):
        rows = stream(seed)
        rng = np.random.default_rng(seed)
        monitor, got, at = sb.Monitor({"q": QUERIES[name]}, id="i", time="t", forget=FORGET), list[Any](), 0
        while at < len(rows):
            size = int(rng.choice([1, 3, 8, 40]))
            got += cells(monitor.push(pa.Table.from_pylist(rows[at : at + size])))
            at += size
            check(monitor)
            if rng.random() < 0.3:
                monitor = sb.Monitor.restore(monitor.snapshot())
        assert plain(got) == plain(expected(QUERIES[name], rows)), f"{name}, seed {seed}"


def test_windows_that_go_by_time_are_left_alone() -> None:
    """Also when one with the same `per` forgets its groups."""
    rows = stream(7)
    timed = sb.TopK(2, "x", sb.Last(span=30), per="g")
    both = sb.Monitor({"timed": timed, "counted": QUERIES["TopK BLOCK"]}, id="i", time="t", forget=FORGET)
    alone, changes = Oracle({"timed": timed}, id="i", time="t"), list[Any]()
    for at in range(0, len(rows), 10):
        changes += cells(both.push(pa.Table.from_pylist(rows[at : at + 10])))
    same_rows([one for one in changes if one["query"] == "timed"], alone.push(rows), "timed")
    same_rows(cells(both.answer("timed")), alone.answer("timed"), "answer")


def test_time_that_moves_on_alone_forgets() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3), per="g"), time="t", forget="10 minutes")
    noon = datetime(2024, 1, 1, 12)
    monitor.push({"t": [noon, noon], "g": ["a", "b"], "x": [1.0, 2.0]})
    minute = timedelta(minutes=1)
    assert monitor.advance(noon + 9 * minute).num_rows == 0
    left = monitor.advance(noon + 11 * minute).to_pylist()
    assert [(one["g"], one["time"], one["diff"], one["at"]) for one in left] == [
        ("a", noon + 10 * minute, -1, 0),
        ("b", noon + 10 * minute, -1, 0),
    ]
    assert monitor.answer().num_rows == 0
    again = monitor.push({"t": [noon + 12 * minute], "g": ["a"], "x": [1.0]}).to_pylist()
    assert [(one["at"], one["diff"], one["first"]) for one in again] == [(0, 1, True)]


@pytest.mark.parametrize("keys", [["a", "b", "a"], [False, True, False]])
def test_a_key_that_is_no_number_is_known_before_the_rows_are_examined(keys: list[Any]) -> None:
    monitor = sb.Monitor(sb.TopK(1, "key", sb.Last(3), per="g"), time="t", forget=10)
    changes = monitor.push({"t": [0, 1, 20], "g": 1, "key": keys}).to_pylist()
    told = [(one["time"], one["key_1"], one["diff"]) for one in changes]
    first, best = keys[:2]
    assert told == [(0, first, 1), (1, first, -1), (1, best, 1), (11, best, -1), (20, first, 1)]


def test_net_changes_of_a_group_end_where_it_is_forgotten() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3), per="g"), time="t", emit="batch", forget=10)
    monitor.push({"t": [0], "g": ["a"], "x": [1.0]})
    changes = monitor.push({"t": [11, 12], "g": ["b", "a"], "x": [5.0, 3.0]}).to_pylist()
    assert [(one["g"], one["time"], one["diff"]) for one in changes] == [("a", 10, -1), ("b", 11, 1), ("a", 12, 1)]


@pytest.mark.parametrize(
    ("forget", "time", "message"),
    [
        ("a while", "t", "must be a time span"),
        (0, "t", "must be a time span"),
        (True, "t", "must be a time span"),
        ("1 day", None, "name the time column"),
    ],
)
def test_a_span_that_is_none_is_refused(forget: Any, time: str | None, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        sb.Monitor(sb.TopK(1, "x", sb.Last(3), per="g"), time=time, forget=forget)


def test_a_span_that_time_cannot_express_is_refused_before_anything_changes() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3), per="g"), time="t", forget="1 day")
    with pytest.raises(QueryError, match="integers"):
        monitor.push({"t": [1], "g": ["a"], "x": [1.0]})
    assert monitor.stats()["arrivals"] == 0
