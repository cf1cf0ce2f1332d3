"""Snapshots of engines that were Python, as version 0.1 wrote them, go on (3c1987d has the last queues, bf03efe BS)."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.streams import cells, check, same_rows
from skyband import Ever, Last, Monitor, TopKUncertain
from skyband.errors import StateError

FOLDER = Path(__file__).parent / "python_queues"
STORED = sorted(FOLDER.glob("*.snapshot"))
NUMBERS = range(120)
ROWS: dict[str, list[Any]] = {
    "x": [float(n * 37 % 23) for n in NUMBERS],
    "p": [0.3, 0.9, 0.5, 1.0, 0.05] * 24,
    "t": [n // 3 for n in NUMBERS],
    "g": ["a", "b", None] * 40,
    "r": [None if n % 5 == 3 else n * n % 11 for n in NUMBERS],
    "y": [n % 4 for n in NUMBERS],
}


def rows(begin: int, end: int) -> dict[str, list[Any]]:
    return {name: values[begin:end] for name, values in ROWS.items()}


@pytest.mark.parametrize(
    "file", [file for file in STORED if "ALTERNATIVES" not in file.stem], ids=lambda file: file.stem
)
def test_a_snapshot_of_a_queue_in_python_goes_on(file: Path) -> None:
    window = Ever() if file.stem == "COMPACT" else Last(span=12)
    queries = [TopKUncertain(k, "x", window, semantics="u-kranks", per="g", algorithm=file.stem) for k in (3, 2)]
    new = Monitor(queries, time="t")
    new.push(rows(0, 90))
    old = Monitor.restore(zlib.decompress(file.read_bytes()), trusted=False)
    check(old)
    for name in new.queries:
        same_rows(cells(old.answer(name)), cells(new.answer(name)), f"answer of {name}")
    for begin in (90, 105):
        same_rows(cells(old.push(rows(begin, begin + 15))), cells(new.push(rows(begin, begin + 15))), "changes")
        check(old)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", ["ALTERNATIVES", "ALTERNATIVES-EVER"])
def test_a_snapshot_of_alternatives_in_python_goes_on(name: str, again: bool) -> None:
    window = Ever() if name.endswith("EVER") else Last(span=12)
    queries = [TopKUncertain(k, "x", window, semantics="u-kranks", per="g", group="r", where="y > 0") for k in (3, 2)]
    new = Monitor(queries, time="t", keep="y")
    new.push(rows(0, 90))
    old = Monitor.restore(zlib.decompress((FOLDER / f"{name}.snapshot").read_bytes()), trusted=False)
    check(old)
    old = Monitor.restore(old.snapshot(), trusted=False) if again else old
    for query in new.queries:
        same_rows(cells(old.answer(query)), cells(new.answer(query)), f"answer of {query}")
    for begin in (90, 105):
        same_rows(cells(old.push(rows(begin, begin + 15))), cells(new.push(rows(begin, begin + 15))), "changes")
        check(old)
    assert old.stats()["rejected"] == new.stats()["rejected"] != {}


@pytest.mark.parametrize("algorithm", ["DOM", "BS"])
def test_marks_of_version_0_1_have_as_many_bits_as_each_query_has_ranks(algorithm: str) -> None:
    queries = [TopKUncertain(k, "x", Last(9), semantics="u-kranks", algorithm=algorithm) for k in (3, 1, 2)]
    monitor = Monitor(queries)
    monitor.push({"x": [3.0, 2.0, 1.0], "p": [1.0] * 3})
    monitor.push({"x": [9.0], "p": [1.0]})
    engine: Any = monitor._loop.state.standing()[0].engine
    stored = {name: array for name, (array, _) in engine.snapshot(np.arange(1)).items()}
    wide = stored["marks"].reshape(-1, 2)
    assert not wide[:, 1].any(), "the second word tells the two apart"
    first, second, third = wide[:, 0] & 7, wide[:, 0] >> 3 & 7, wide[:, 0] >> 6 & 7
    assert (second <= 1).all() and (third <= 3).all() and first.max() > 3
    old = type(engine)(engine.specs, queries[0].tuning, timed=False, net=False)
    old.restore({**stored, "marks": first | second << 3 | third << 4}, trusted=False)
    assert old._slots() == engine._slots()


def test_there_is_one_of_each() -> None:
    assert {file.stem for file in STORED} == {
        "CSQ", "CCSQ", "SCSQ", "SCSQ-BUFFER", "COMPACT", "ALTERNATIVES", "ALTERNATIVES-EVER",
    }  # fmt: skip


@pytest.mark.parametrize("algorithm", ["DOM", "BS"])
def test_a_snapshot_in_the_middle_of_a_batch_is_none(algorithm: str) -> None:
    monitor = Monitor(TopKUncertain(2, "x", Last(9), semantics="u-kranks", algorithm=algorithm))
    monitor.push({"x": [3.0, 2.0, 1.0], "p": [1.0] * 3})
    engine: Any = monitor._loop.state.standing()[0].engine
    stored = {name: array for name, (array, _) in engine.snapshot(np.arange(1)).items()}
    engine.restore(stored)
    stored["state"] = stored["state"].copy()
    stored["state"]["open"] = 1
    with pytest.raises(StateError, match="no batch is open"):
        engine.restore(stored)
