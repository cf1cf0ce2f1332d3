"""Shared by the contract tests: the engines and tastes that they run over, and long streams.

A test module that imports `pytest_generate_tests` runs its tests over every engine of the registry.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.streams import (
    APPROXIMATE,
    FUZZ,
    KILL,
    Step,
    Taste,
    in_order,
    scenes,
)
from skyband import Linear, Nearest
from skyband.query.algorithms import names

OTHERS = (*APPROXIMATE, "CPM/W", "SNN")  # the last two are TMA and SMA by names for Nearest: test_grids.py
ENDLESS = names("TopK", lambda row: "count" not in row.windows)  # tests/topk/test_ever.py
ENGINES = [("TopK", algorithm) for algorithm in names("TopK") if algorithm not in (*OTHERS, *ENDLESS)]
SCENES = {"TopK": scenes}  # by kind of query
LONG = 500 if KILL else 5000  # rows


MIXED = ("RA", "SASF", "SARF", "SAPF", "RASF", "RARF", "SMA", "TSL")  # of parts that RAPF and TMA have too
#: Tastes that every mixed engine runs.
REVEALING = ("everything", "late accepted", "net changes", "families", "queries come and go")
EVERY = ("test_equals_the_oracle", "test_long_count_windows", "test_long_time_windows")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every engine of the registry runs through this file, with SKYBAND_FUZZ the mixed ones through all of it."""
    if "algorithm" not in metafunc.fixturenames or metafunc.function.__name__.startswith("test_approximate"):
        return
    short = FUZZ == 1 and not KILL and metafunc.function.__name__ not in EVERY
    chosen = [(kind, name) for kind, name in ENGINES if not (short and name in MIXED)]
    if short and metafunc.function.__name__ == "test_every_type_of_time":  # times are numbers before any engine
        chosen = [(kind, name) for kind, name in chosen if name in ("SA", "TMA")]
    assert {kind for kind, _ in chosen} <= set(SCENES), "engines of a new kind need a strategy in SCENES"
    if "taste" in metafunc.fixturenames:  # mixed engines take turns at the tastes
        few = FUZZ == 1 and not KILL
        pairs = [
            (name, taste)
            for i, (_, name) in enumerate(chosen)
            for j, taste in enumerate(TASTES)
            if not few or name not in MIXED or taste in REVEALING or i % 4 == j % 4
        ]
        metafunc.parametrize(("algorithm", "taste"), pairs, ids=[f"TopK-{name}-{taste}" for name, taste in pairs])
        return
    metafunc.parametrize("algorithm", [name for _, name in chosen], ids=[f"{kind}-{name}" for kind, name in chosen])


PLAIN = Taste(by=("x",), where=(None,), per=(None,), emit=("arrival",), edits=False, restores=False, queries=1)
FEW = tuple([0.0, 1.0, 2.0] * 4)
FAMILY = (
    *(Nearest({"x": x, "y": y}) for x, y in ((0.0, 0.0), (1.0, 0.0), (2.0, 1.0))),
    *(Nearest({"x": x}, weights={"x": x + 1}, metric="chebyshev") for x in (0.0, 1.0)),
    *(Linear({"x": 1, "y": y}) for y in (-1.0, 0.0, 2.0)),
)
TASTES = {
    "everything": Taste(),
    "sharing, few ties": dataclasses.replace(
        PLAIN,
        queries=3,
        scores=tuple(map(float, range(12))),
        k=2,
        lateness=(0,),
        rows=25,
        timed=(False, False, True),
        where=(None, "y > 0"),
    ),
    "ties": dataclasses.replace(PLAIN, scores=FEW, lateness=(0,), timed=(False,), rows=20, events=3),
    "equal times": dataclasses.replace(PLAIN, scores=FEW, lateness=(0,), timed=(True,), rows=20, events=4),
    "late accepted": dataclasses.replace(
        PLAIN, timed=(True,), lateness=(3, 8), late=("accept",), queries=3, restores=True
    ),
    "late dropped": dataclasses.replace(PLAIN, timed=(True,), lateness=(3, 8), late=("drop",), queries=2),
    "groups": dataclasses.replace(PLAIN, per=("g", ("g", "h")), scores=FEW, emit=("arrival", "batch")),
    "k > n": dataclasses.replace(PLAIN, k=9, n=3, queries=3, emit=("arrival", "batch")),
    "n = 1": dataclasses.replace(PLAIN, n=1, queries=2, emit=("arrival", "batch")),
    "empty batches": dataclasses.replace(PLAIN, rows=1, events=12, per=(None, "g"), restores=True),
    "where": dataclasses.replace(PLAIN, where=("y > 0", "y > 0 and z is not null"), queries=3),
    "scorings": dataclasses.replace(PLAIN, by=Taste().by[2:], queries=3, restores=True),
    "sharing": dataclasses.replace(PLAIN, queries=3, scores=FEW, emit=("arrival", "batch"), restores=True),
    "one batch": dataclasses.replace(PLAIN, queries=3, rows=40, events=1, k=2, scores=FEW, lateness=(0, 2)),
    "net changes": dataclasses.replace(PLAIN, emit=("batch",), queries=3, per=(None, "g"), scores=FEW, rows=20),
    "families": Taste(by=FAMILY, where=(None, "y > 0"), per=(None,), queries=5, rows=20, scores=(*FEW, 1e200)),
    "families, time": dataclasses.replace(PLAIN, by=FAMILY, timed=(True,), queries=4, rows=25, lateness=(0, 0, 3)),
    "queries come and go": Taste(rows=6, events=12, queries=3, by=("x", "x + y"), scores=FEW),
}


def shaped(shape: str, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Scores of a shape: a number of distinct values, random, or in an order that is hard on a skyband."""
    if shape.isdigit():
        return rng.integers(0, int(shape), size).astype(float)
    if shape == "random":
        return rng.random(size)
    if shape == "rising":
        return np.arange(size) / 7 + rng.integers(0, 3, size)
    if shape == "waves":
        return np.round(10 * np.sin(np.arange(size) / 150)) + rng.integers(0, 3, size)
    return -(np.arange(size) // 5).astype(float)  # falling, in steps of equals


def equal_steps(got: list[Step], expected: Sequence[Step]) -> None:
    got = in_order(got)
    wrong = next((i for i, pair in enumerate(zip(got, expected, strict=False)) if pair[0] != pair[1]), None)
    if wrong is not None or len(got) != len(expected):
        first = min(len(got), len(expected)) if wrong is None else wrong
        raise AssertionError(
            f"{len(got)} changes, {len(expected)} expected; the first wrong one is number {first}:\n"
            f"  got      {got[first : first + 4]}\n  expected {expected[first : first + 4]}"
        )


def stamped(size: int, rng: np.random.Generator, steps: list[int], late: float, most: int) -> NDArray[np.int64]:
    """Times with equal ones, and a share of late ones."""
    times = np.cumsum(rng.choice(steps, size))
    return times - np.where(rng.random(size) < late, rng.integers(0, most + 1, size), 0)
