"""Steps small enough to follow by hand: ties of pairs at equal times, and what expires while nothing better comes."""

from __future__ import annotations

from typing import Any

import pytest

import skyband as sb

BY = sb.Global({"x": "absdiff"})
ALGORITHMS = ("SCASE", "TA", "BASIC", "NAIVE", "PST")


def pairs_of(table: Any) -> list[tuple[str, str]]:
    return list(zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_of_equal_pairs_the_newer_older_member_decides_at_equal_times(algorithm: str) -> None:
    monitor = sb.Monitor(sb.TopKPairs(5, BY, sb.Last(span=9), algorithm=algorithm), id="id", time="t")
    monitor.push({"id": ["A", "B", "C", "D"], "x": [1, 1, 1, 1], "t": [0, 0, 0, 0]})
    assert pairs_of(monitor.answer()) == [("C", "D"), ("B", "D"), ("B", "C"), ("A", "D"), ("A", "C")]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_pair_expires_though_the_new_ones_are_worse(algorithm: str) -> None:
    """A leaves the last three as D comes, and the best pair with it; those of D (20, 30) are worse than it was."""
    monitor = sb.Monitor(sb.TopKPairs(1, BY, sb.Last(3), algorithm=algorithm), id="id")
    monitor.push({"id": ["A", "B", "C"], "x": [0, 0, 10]})
    changes = monitor.push({"id": ["D"], "x": [30]})
    assert list(zip(pairs_of(changes), changes["diff"].to_pylist(), strict=True)) == [(("A", "B"), -1), (("B", "C"), 1)]
