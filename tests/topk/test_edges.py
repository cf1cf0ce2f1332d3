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


def test_only_heavy_tails_have_finer_slabs() -> None:
    """Of uniform data all slabs are much the same, at its ends too: finer ones would multiply the cells of a search."""
    slabs = np.diff(slab_edges(numbers("uniform", 20_000), 20))
    assert len(slabs) == 20
    assert slabs.max() < 1.5 * slabs.min()
    values = numbers("Pareto", 20_000)
    edges = slab_edges(values, 24)
    counts, _ = np.histogram(values, edges)
    assert counts[0] > len(values) / 24
    assert counts[-1] < len(values) / 24 / 4
    assert (values < edges[0]).sum() == 0 < (values > edges[-1]).sum()


def test_a_heavy_tail_rules_no_cell_in() -> None:
    """A search looks at no more cells than with uniform data, though nearly all cells of a tail are empty."""
    size, rng = 20_000, np.random.default_rng(1)
    queries = [TopK(5, Linear({"x": w, "y": 1.0, "z": 1.0}), Last(size), algorithm="TMA") for w in (0.5, 1.0, 2.0)]
    work = []
    for data in (rng.random((3, size)), 1 / (1 - rng.random((3, size)))):
        monitor = Monitor(queries[:1], emit="batch")
        monitor.push(dict(zip("xyz", data, strict=True)))
        for number, query in enumerate(queries[1:]):
            monitor.add(f"more {number}", query, from_window=True)
        (adapter,) = monitor._loop.state.standing()
        work.append(adapter.engine.work)  # type: ignore[union-attr]
    assert work[0]["searches"] == work[1]["searches"] > 0
    assert work[1]["visited"] <= 2 * work[0]["visited"]
    assert work[1]["scored"] <= 3 * work[0]["scored"]


@pytest.mark.parametrize("shape", SHAPES)
def test_lists_reach_as_far_whatever_the_best_is(shape: str) -> None:
    """A query is not compared with all objects because its best one is far above the others."""
    monitor = Monitor(TopK(4, Linear({"x": 1.0, "y": 1.0}), Last(LIVE), algorithm="TMA", cells=400))
    columns = {"x": numbers(shape, 2 * LIVE), "y": numbers(shape, 2 * LIVE)[::-1].copy()}
    if shape == "one at 1e12":
        columns["x"][-LIVE // 2] = columns["y"][-LIVE // 2] = 1e12
    for begin in range(0, 2 * LIVE, 250):
        monitor.push({name: column[begin : begin + 250] for name, column in columns.items()})
    (adapter,) = monitor._loop.state.standing()
    store: Any = adapter.engine.stores[0]  # type: ignore[union-attr]
    assert not store.state["unlisted"][0]
    assert store.state["listed"][0] <= len(store.cells) / 10


@pytest.mark.parametrize("algorithm", ["TMA", "SMA"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_cell_is_crowded(shape: str, algorithm: str) -> None:
    size = 3 * LIVE
    monitor = Monitor(TopK(3, Linear({"x": 1.0, "y": 1.0}), Last(LIVE), algorithm=algorithm, cells=100))
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
