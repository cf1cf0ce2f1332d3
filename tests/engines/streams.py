"""Streams that engines break on, played to a Monitor and to the oracle: everything that test modules import.

A scene is a list of events (pushes, advances, deletions, restores, changed queries) for the queries of one Monitor.
`play` gives it to a Monitor and to the oracle and compares the two after each event: changes as multisets of rows,
their order as far as the contract fixes it, answers with ranks, and the engines' own invariants. `reference` is a
second, faster recomputation of one group for streams that are too long for the oracle.

SKYBAND_FUZZ=20 runs 20 times as many examples, at random instead of the same ones each time.
SKYBAND_KILL=1 runs few examples and does not shrink: tests/mutation.py.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

from engines.comparison import by_group, cells, joined, line, net, plain, same_changes, same_rows
from engines.playback import _shorter, check, play, same_answers, same_skybands
from engines.recompute import Step, cuts, in_order, recomputed, reference, steps_of
from engines.scene import (
    CLOCKWORKS,
    INTEGERS,
    Add,
    Advance,
    Clockwork,
    Delete,
    Drop,
    Event,
    Push,
    Replace,
    Restore,
    Row,
    Scene,
    TopKQuery,
    row,
)
from engines.strategies import APPROXIMATE, Draw, Taste, queries_of, rows_of, scenes

__all__ = [
    "APPROXIMATE",
    "CLOCKWORKS",
    "FUZZ",
    "INTEGERS",
    "KILL",
    "STRICT",
    "Add",
    "Advance",
    "Clockwork",
    "Delete",
    "Draw",
    "Drop",
    "Event",
    "Push",
    "Replace",
    "Restore",
    "Row",
    "Scene",
    "Step",
    "Taste",
    "TopKQuery",
    "_shorter",
    "by_group",
    "cells",
    "check",
    "cuts",
    "examples",
    "in_order",
    "joined",
    "line",
    "net",
    "plain",
    "play",
    "queries_of",
    "recomputed",
    "reference",
    "row",
    "rows_of",
    "same_answers",
    "same_changes",
    "same_rows",
    "same_skybands",
    "scenes",
    "steps_of",
]

FUZZ = int(os.environ.get("SKYBAND_FUZZ", "1"))
KILL = "SKYBAND_KILL" in os.environ
STRICT = ("BLOCK", "SA")  # engines that keep exactly the skyband of Definition 3.8


def examples(number: int) -> settings:
    """Hypothesis settings: a third of `number` examples, always the same; with SKYBAND_FUZZ more, at random."""
    return settings(
        max_examples=max(1, number // 3) if FUZZ == 1 else number * FUZZ,
        derandomize=FUZZ == 1,
        deadline=None,
        database=None,
        phases=(Phase.generate,) if KILL else (Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
