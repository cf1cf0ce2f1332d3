"""Strings and booleans that subscriptions bring, beside every other value that they may bring."""

from __future__ import annotations

from typing import Any

import pytest

import skyband as sb
from skyband import Each, Last
from skyband.errors import BatchError

ROWS = {
    "s": ["a", "b", "a"],
    "y": [1.0, 2.0, 3.0],
    "b": [True, False, True],
    "v": [[1.0, 2.0], [2.0, 1.0], [0.0, 1.0]],
}
WHO, FLAG, VECTOR = {"who": "a"}, {"flag": True}, {"v": [1.0, 0.0]}
BOTH = WHO | FLAG
PAIRS = "abs(a.y - b.y)"


@pytest.mark.parametrize(
    ("query", "values", "ids"),
    [
        (sb.TopK(3, sb.Similar("v", Each("v")), Last(9), where="s = :who"), WHO | VECTOR, [0, 2]),
        (
            sb.TopK(3, sb.Similar("v", Each("v"), "dot"), Last(9), where="b = :flag and s <> :who"),
            WHO | FLAG | VECTOR,
            [],
        ),
        (sb.TopK(3, ("s = :who", "y"), Last(9)), WHO, [2, 0, 1]),
        (sb.TopKPairs(3, PAIRS, Last(9), on="a.s = :who and b.b = :flag"), BOTH, [(0, 2)]),
        (sb.TopKGroups(3, "sum(y)", Last(9), of="s", having="last(s) = :who"), WHO, ["a"]),
        (sb.TopKGroups(1, "last(b = :flag)", Last(9), of="s"), FLAG, ["a"]),
        (sb.TopKGroups(1, "sum(case when s = :who then y else 0 end)", Last(9), of="s"), WHO, ["a"]),
        (sb.TopKGroups(1, "count(*)", Last(9), of="s", select={"z": "last(s <> :who)"}), WHO, ["a"]),
        (
            sb.TopK(3, "y", Last(9), where=" or ".join(f"s = concat(:w{i}, '')" for i in range(8))),
            {f"w{i}": "a" for i in range(8)},
            [2, 0],
        ),
    ],
)
def test_rows_are_taken_before_and_after_a_subscription(query: Any, values: dict[str, Any], ids: list[Any]) -> None:
    monitor = sb.Monitor(query)
    assert monitor.push(ROWS).num_rows == 0
    monitor = sb.Monitor.restore(monitor.snapshot(), trusted=False)
    monitor.subscribe("q0", [{"subscriber": 1} | values])
    monitor.push(ROWS)
    assert monitor.stats()["arrivals"] == 6
    found = monitor.answer().to_pylist()
    starts = 3  # the numbers go on
    if query.of_pairs:
        assert [(row["id_a"] - starts, row["id_b"] - starts) for row in found] == ids
    else:
        assert [row["id"] if isinstance(row["id"], str) else row["id"] - starts for row in found] == ids


@pytest.mark.parametrize(("value", "kind"), [(1.0, "number"), (True, "boolean")])
def test_values_of_another_type_than_the_column_are_named(value: Any, kind: str) -> None:
    monitor = sb.Monitor(sb.TopK(1, "y", Last(9), where="s = :who"))
    monitor.subscribe("q0", [{"subscriber": 1, "who": value}])
    with pytest.raises(BatchError, match=f"'s' holds string, and `where` compares it with a {kind}"):
        monitor.push(ROWS)
    monitor.unsubscribe("q0", [1])
    assert monitor.push(ROWS).num_rows == 0
