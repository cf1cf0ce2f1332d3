"""A window that was split from others, since they reject other rows, still lends to related queries that were not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engines.streams import Push, Replace, Restore, Scene, play, row
from skyband import Last, TopK


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("algorithm", ["TMA", "SMA", "TSL"])
def test_a_split_window_gives_a_longer_one(algorithm: Any, restored: bool) -> None:
    queries = {
        "a": TopK(3, by="sqrt(x) * y", window=Last(5), algorithm=algorithm),
        "c": TopK(3, by="x / (y - 1)", window=Last(5), algorithm=algorithm),
        "d": TopK(2, by="sqrt(x) * y", window=Last(2), algorithm=algorithm),
    }
    rows = [row(x=x, y=y) for x, y in ((4.0, 3), (-1.0, 2), (9.0, 2), (1.0, 1), (0.0, 3), (16.0, -1))]
    events = [Push(rows), *[Restore()] * restored, Replace("d", dataclasses.replace(queries["d"], window=Last(4)))]
    play(Scene(queries, [*events, Push(rows), Restore(), Push(rows)]))
