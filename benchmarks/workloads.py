"""Workloads: a function of the number of rows, a seed and the cell's parameters; gives columns of the stream.

`score` is what objects are ranked by, `key` the column of the groups; `id` and `time` as one would call them.
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


def flights(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Flights as half a year of a country's: 229 Zipf keys, 16,000 a day, times in minutes, delays with ties."""
    table = skyband.datasets.flights_like(rows, seed=seed)
    origin = table["origin"].combine_chunks().dictionary_encode()
    return {
        "id": table["flight"].to_numpy(),
        "key": origin.dictionary.to_numpy(zero_copy_only=False)[origin.indices.to_numpy()],
        "time": table["time"].to_numpy(),
        "score": table["delay"].to_numpy(),
        **_kept(rows, p),
    }


def timed_keys(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """`random_keys` with ids, and times at an even pace of `per_day` rows a day."""
    return {"id": np.arange(rows), "time": _evenly(rows, 24 * 60, p["per_day"]), **random_keys(rows, seed, p)}


def numbered_keys(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """`random_keys` with ids, and the row's number as its time."""
    return {"id": np.arange(rows), "time": np.arange(rows), **random_keys(rows, seed, p), **_kept(rows, p)}


def timed_points(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Points, uniform in the unit square, at an even pace of `per_10_minutes`."""
    table = skyband.datasets.uniform(rows, seed=seed, dimensions=2)
    points = {name: table[name].to_numpy() for name in ("x1", "x2")}
    return {"id": np.arange(rows), "time": _evenly(rows, 10, p["per_10_minutes"]), **points}


def query_points(p: Mapping[str, Any]) -> NDArray[np.float64]:
    """Where the Nearest queries stand: the same in every repeat."""
    return np.random.default_rng(0).random((p["queries"], 2))


def _kept(rows: int, p: Mapping[str, Any]) -> Stream:
    """Integer columns that are only carried along, where a contestant keeps them."""
    return {name: np.arange(rows) for name in p.get("keep", ())}


def _evenly(rows: int, minutes: int, count: int) -> NDArray[Any]:
    """`count` times in so many minutes, in microseconds."""
    return np.datetime64("2024-01-01", "us") + (np.arange(rows) * (minutes * 60_000_000 / count)).astype("m8[us]")


WORKLOADS: dict[str, Workload] = {
    make.__name__: make
    for make in (random_order, falling, random_keys, flights, timed_keys, numbered_keys, timed_points)
}
