"""Parts that are not named in advance: any names, many of them, of any type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engines.streams import cells, same_changes, same_rows
from skyband import Last, Monitor, QueryError, TopKIncomplete
from skyband.engines.incomplete import any_parts
from skyband.oracle import Oracle


@pytest.mark.parametrize("kind", ["strings", "numbers"])
@pytest.mark.parametrize("repeat", [None, "last"])
def test_any_names_and_forgotten_ones(repeat: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that no row has any more are forgotten; the others stay what they are."""
    monkeypatch.setattr(any_parts, "SMALLEST", 2)
    rng = np.random.default_rng(5)
    queries = {
        "sum": TopKIncomplete(2, "*", Last(8), repeat=repeat),
        "max": TopKIncomplete(1, {"*": (0, 9)}, Last(6), combine="max", repeat=repeat, per="g"),
    }
    monitor, oracle, most = Monitor(queries, id="i"), Oracle(queries, id="i"), 0
    for number in range(60):
        rows: list[dict[str, Any]] = []
        for _ in range(int(rng.integers(1, 6))):
            part = int(rng.choice([0, 1, number // 2 + 2, number // 3 + 2]))
            said = part if kind == "numbers" else f"part {part}"
            rows.append({"i": int(rng.integers(3)), "part": said, "value": float(rng.integers(3)) / 2, "g": number % 2})
        same_changes(cells(monitor.push(rows)), oracle.push(rows), str(number))
        for name in queries:
            same_rows(cells(monitor.answer(name)), oracle.answer(name), str(number))
        monitor._loop.check()
        adapters: Any = monitor._loop.state.adapters.values()
        most = max(most, *(len(one.codes) for one in adapters))
        if number % 4 == 3:
            monitor = Monitor.restore(monitor.snapshot())
    assert sum(monitor.stats()["rejected"].values()) == oracle.rejected.total()
    assert most < 60, "there were more names than are known"


def test_a_part_without_a_name_is_unknown() -> None:
    monitor = Monitor(TopKIncomplete(1, "*", Last(5)), id="i")
    monitor.push({"i": [1, 1, 1], "part": ["a", None, "b"], "value": [0.5, 0.5, 0.25]})
    assert monitor.stats()["rejected"] == {"part: unknown part": 1}
    assert monitor.answer()["score"].to_pylist() == [0.75]


@pytest.mark.parametrize("algorithm", ["SLA", "APPROX", "BUDGET"])
def test_lists_and_estimates_need_names(algorithm: str) -> None:
    with pytest.raises(QueryError, match="or one of SWEEP, EAA, or name the parts"):
        Monitor(TopKIncomplete(1, "*", Last(5), algorithm=algorithm), id="i")
