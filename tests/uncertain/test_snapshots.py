"""Snapshots of the queues that were Python, as version 0.1 wrote them (commit 3c1987d has the last ones), go on."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from engines.streams import cells, check, same_rows
from skyband import Ever, Last, Monitor, TopKUncertain

STORED = sorted((Path(__file__).parent / "python_queues").glob("*.snapshot"))
NUMBERS = range(120)
ROWS: dict[str, list[Any]] = {
    "x": [float(n * 37 % 23) for n in NUMBERS],
    "p": [0.3, 0.9, 0.5, 1.0, 0.05] * 24,
    "t": [n // 3 for n in NUMBERS],
    "g": ["a", "b", None] * 40,
}


def rows(begin: int, end: int) -> dict[str, list[Any]]:
    return {name: values[begin:end] for name, values in ROWS.items()}


@pytest.mark.parametrize("file", STORED, ids=lambda file: file.stem)
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


def test_there_is_one_of_each() -> None:
    assert {file.stem for file in STORED} == {"CSQ", "CCSQ", "SCSQ", "SCSQ-BUFFER", "COMPACT"}
