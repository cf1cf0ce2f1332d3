"""Workloads: a function of the number of rows, a seed and the cell's parameters; gives columns of the stream.

`score` is what objects are ranked by, `key` the column of the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import skyband.datasets

Stream = dict[str, NDArray[Any]]
Workload = Callable[[int, int, Mapping[str, Any]], Stream]


def random_order(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Scores in random order: the average case."""
    return {"score": skyband.datasets.uniform(rows, seed=seed, dimensions=1)["x1"].to_numpy()}


def falling(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Strictly falling scores: the worst case, everything in the window is kept."""
    return {"score": skyband.datasets.falling(rows, seed=seed)["score"].to_numpy()}


def random_keys(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Scores in random order, each row in one of `keys` groups, all equally likely."""
    rng = np.random.default_rng(seed)
    return {"key": rng.integers(0, p["keys"], rows), "score": rng.random(rows)}


WORKLOADS: dict[str, Workload] = {make.__name__: make for make in (random_order, falling, random_keys)}
