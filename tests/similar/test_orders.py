"""`Similar` with every window, order, tie rule and offset of a TopK, against the oracle; what is refused says so."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import cells, examples, same_rows
from skyband.errors import QueryError
from skyband.oracle import Oracle

NEAR, FAR = sb.Similar("e", [1, 2]), sb.Similar("e", [2, -1], "euclidean")
ASKED: dict[str, Any] = {
    "session": sb.TopK(2, NEAR, sb.Session(span=3), per="g"),
    "session, ties": sb.TopK(2, FAR, sb.Session(span=3), with_ties=True),
    "offset": sb.TopK(2, NEAR, sb.Last(5), offset=1),
    "offset, late": sb.TopK(2, FAR, sb.Last(span=4), offset=2, per="g"),
    "ties": sb.TopK(1, NEAR, sb.Last(span=4), with_ties=True),
    "oldest of ties": sb.TopK(2, NEAR, sb.Last(6), ties="oldest"),
    "then a number": sb.TopK(2, (NEAR, "x"), sb.Last(span=5), largest=(True, False)),
    "after a string": sb.TopK(2, ("g", FAR), sb.Last(6), largest=(False, False)),
    "two vectors": sb.TopK(2, (FAR, NEAR), sb.Ever(), largest=(False, True)),
    "one of each id": sb.TopK(2, NEAR, sb.Last(6), distinct="best"),
    "k as data": sb.TopK("x", NEAR, sb.Last(5), k_max=3, per="g"),
    "ever": sb.TopK(2, FAR, sb.Ever(), offset=1),
    "deleted": sb.TopK(2, NEAR, sb.UntilDeleted(), with_ties=True),
    "deleted, by two": sb.TopK(1, (NEAR, "x"), sb.UntilDeleted(), largest=(True, True)),
}
TYPES = {"i": pa.string(), "t": pa.int64(), "x": pa.int64(), "g": pa.string(), "e": pa.list_(pa.float32())}
VECTORS = [[1.0, 2.0], [2.0, 4.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [0.0, 0.0], [1.0], [None, 1.0], None]


@st.composite
def streams(draw: Any) -> list[list[dict[str, Any]]]:
    pushes, at = [], 0
    for _ in range(draw(st.integers(1, 5))):
        rows = []
        for _ in range(draw(st.integers(0, 5))):
            at += draw(st.integers(0, 3))
            row = {"i": draw(st.sampled_from("abcdef")), "t": max(0, at - draw(st.sampled_from([0, 0, 0, 2])))}
            row |= {"x": draw(st.integers(1, 3)), "g": draw(st.sampled_from(["a", "b"]))}
            rows.append(row | {"e": draw(st.sampled_from(VECTORS))})
        pushes.append(rows)
    return pushes


@pytest.mark.parametrize("name", ASKED)
def test_equals_the_oracle(name: str) -> None:
    @examples(20)
    @given(pushes=streams(), restore=st.integers(0, 4), gone=st.lists(st.sampled_from("abz"), max_size=2, unique=True))
    def check(pushes: Any, restore: int, gone: list[str]) -> None:
        options: Any = {"id": "i", "time": "t"}
        monitor, oracle = sb.Monitor({"q": ASKED[name]}, **options), Oracle({"q": ASKED[name]}, **options)
        for turn, rows in enumerate(pushes):
            table = pa.table({column: pa.array([row[column] for row in rows], t) for column, t in TYPES.items()})
            same_rows(cells(monitor.push(table)), oracle.push(rows), f"push {turn}")
            if turn == restore:
                monitor = sb.Monitor.restore(monitor.snapshot(), trusted=False)
            if gone and "deleted" in name:
                same_rows(cells(monitor.delete(gone)), oracle.delete(gone), f"deletions {turn}")
            monitor._loop.check()
            same_rows(cells(monitor.answer("q")), oracle.answer("q"), f"answer {turn}")

    check()


@pytest.mark.parametrize("algorithm", ["TMA", "SMA", "TSL", "CPM/W", "SNN"])
def test_algorithms_over_numbers_take_scores_or_say_no(algorithm: str) -> None:
    """Grids and sorted lists over attributes know no vectors: either they keep objects by score, or it is refused."""
    try:
        monitor = sb.Monitor(sb.TopK(1, NEAR, sb.Last(2), algorithm=algorithm))
    except QueryError as error:
        assert "BLOCK" in str(error)  # noqa: PT017
        return
    monitor.push({"e": [[1.0, 2.0], [1.0, 0.0], [0.0, 1.0]]})
    assert monitor.answer()["id"].to_pylist() == [2]
