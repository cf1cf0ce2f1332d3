"""Grids that follow the data: no cell is crowded, whatever the distribution, nor once the data moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skyband import Last, Linear, Monitor, TopK
from skyband.engines.topk.edges import slab_edges

LIVE = 2_000


def numbers(shape: str, size: int) -> Any:
    rng = np.random.default_rng(7)
    uniform = rng.random(size)
    if shape == "Pareto":
        return 1 / (1 - uniform)
    if shape == "one at 1e12":
        uniform[size - LIVE // 2] = 1e12
    if shape == "clustered":
        return rng.choice([0.1, 0.5, 0.9], size) + rng.normal(size=size) / 1_000
    return uniform


SHAPES = ["uniform", "Pareto", "one at 1e12", "clustered"]


@pytest.mark.parametrize("shape", SHAPES)
def test_edges_divide_objects_evenly(shape: str) -> None:
    values = numbers(shape, LIVE)
    edges = slab_edges(values, 20)
    assert edges[0] == values.min()
    assert edges[-1] == values.max()
    counts, _ = np.histogram(values, edges)
    assert counts.max() <= 2 * LIVE / 20


@pytest.mark.parametrize("algorithm", ["TMA", "SMA"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_cell_is_crowded(shape: str, algorithm: str) -> None:
    size = 3 * LIVE
    monitor = Monitor(TopK(3, Linear({"x": 1.0, "y": 1.0}), Last(LIVE), algorithm=algorithm, cells=100))  # type: ignore[arg-type]
    columns = {"x": numbers(shape, size), "y": numbers(shape, size)[::-1]}
    for begin in range(0, size, 250):
        monitor.push({name: column[begin : begin + 250] for name, column in columns.items()})
    (adapter,) = monitor._loop.state.standing()
    cells = adapter.engine.stores[0].cells["count"]  # type: ignore[union-attr]
    assert cells[:-1].max() <= LIVE / 10
    assert cells[-1] <= LIVE / 4, "few are outside"


def test_a_grid_is_cut_anew_once_cells_are_lopsided() -> None:
    """All of the second half lies in a thousandth of the range of the first, so inside the grid."""
    rng = np.random.default_rng(3)
    wide, narrow = rng.random((2, 2 * LIVE)), 0.5 + rng.random((2, 2 * LIVE)) / 1_000
    monitor = Monitor(TopK(3, Linear({"x": 1.0, "y": 1.0}), Last(LIVE), algorithm="TMA", cells=100))
    for x, y in (wide, narrow):
        for begin in range(0, 2 * LIVE, 250):
            monitor.push({"x": x[begin : begin + 250], "y": y[begin : begin + 250]})
    (adapter,) = monitor._loop.state.standing()
    assert adapter.engine.stores[0].cells["count"][:-1].max() <= LIVE / 5  # type: ignore[union-attr]
