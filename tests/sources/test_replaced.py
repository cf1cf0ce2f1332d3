"""A source that is replaced by a query whose answers have other columns, or other types of them, against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import skyband as sb
from engines.comparison import cells, same_changes, same_rows
from engines.scene import Scene, row
from skyband.errors import BatchError
from skyband.oracle import Oracle

WINDOW = sb.Last(span=4)
ASKED: dict[str, Any] = {
    "score": sb.TopK(3, "x", WINDOW),
    "keys": sb.TopK(3, ("x", "z"), WINDOW, nulls="last"),
    "one key": sb.TopK(2, ("y",), WINDOW),
    "word": sb.TopK(3, "z", WINDOW),
    "above": sb.Above(1, "x", WINDOW),
    "counted": sb.TopK(3, "x", sb.Last(4)),
    "groups": sb.TopKGroups(3, by="sum(y)", window=WINDOW, of="i"),
    "groups with a word": sb.TopKGroups(3, by="sum(y)", window=WINDOW, of="i", select={"w": "last(z)"}),
    "groups with a count": sb.TopKGroups(3, by="sum(y)", window=WINDOW, of="i", select={"w": "count(*)"}),
    "groups by keys": sb.TopKGroups(3, by=("sum(y)", "id"), window=WINDOW, of="i"),
}
ASKERS = {
    "best": sb.TopK(2, ("score",), nulls="last", source="q"),
    "counts": sb.TopKGroups(2, by="count(*)", of="id", source="q"),
    "deep": sb.TopK(1, ("score",), nulls="last", source="best"),
}


def rows(begin: int, size: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(begin)
    return [
        row(i="pqrst"[int(rng.integers(5))], t=n // 2, x=float(rng.integers(4)), y=int(rng.integers(4)), z="uvw"[n % 3])
        for n in range(begin, begin + size)
    ]


def known(found: Any) -> Any:
    """Rows in the columns that all queries have: which others a replacement reports is not the question here."""
    given = found if isinstance(found, list) else cells(found)
    return [{name: value for name, value in one.items() if name != "w" and name[:4] != "key_"} for one in given]


@pytest.mark.parametrize("old", ASKED)
def test_askers_go_on_over_other_columns(old: str) -> None:
    for number, new in enumerate(name for name in ASKED if name != old):
        emit: Any = ("arrival", "batch")[(number + len(old)) % 2]
        queries = {"q": ASKED[old], **ASKERS}
        options: dict[str, Any] = {"id": "i", "time": "t", "keep": ("y",), "emit": emit}
        table = Scene(queries, []).table
        monitor, oracle = sb.Monitor(queries, **options), Oracle(queries, **options, keyed=("z",))
        events: list[Any] = [rows(0, 9), rows(9, 3), new, rows(12, 5), rows(17, 9), old, rows(26, 9)]
        for place, event in enumerate(events):
            where = f"{old}, {new}, {place}"
            if isinstance(event, str):
                told, expected = monitor.replace("q", ASKED[event]), oracle.replace("q", ASKED[event])
            else:
                told, expected = monitor.push(table(event)), oracle.push(event)
            same_changes(known(told), known(expected), where, net_changes=emit == "batch")
            for name in queries:
                same_rows(known(monitor.answer(name)), known(oracle.answer(name)), f"{where}, answer of {name}")
            monitor = monitor if place % 2 else sb.Monitor.restore(monitor.snapshot(), trusted=False)


def test_a_column_of_another_type_is_refused_before_anything_changes() -> None:
    asked = {"q": ASKED["groups with a count"], "r": sb.TopK(2, "w", source="q")}
    monitor = sb.Monitor(asked, id="i", time="t")
    table = Scene(asked, []).table
    monitor.push(table(rows(0, 6)))
    monitor.replace("q", ASKED["groups with a word"])
    with pytest.raises(BatchError, match=r"'w' holds string"):
        monitor.push(table(rows(6, 6)))
    monitor.replace("q", ASKED["groups with a count"])
    assert monitor.push(table(rows(6, 6))).num_rows
    assert monitor.answer("r").num_rows == 2
