"""Streams to try, test and measure with: seeded generators, and loaders for the real ones.

Generators need nothing; loaders read the folder that SKYBAND_DATA names. `describe()` lists them all. `example(name)`
is a real stream where it is here, else a generated stand-in with the same columns.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skyband.datasets.generators import (
    anticorrelated,
    appearances,
    clustered,
    correlated,
    drifting,
    falling,
    flights_like,
    independent,
    rising,
    shuffled,
    uniform,
)
from skyband.datasets.loaders import (
    SOURCES,
    available,
    beijing_air,
    flights,
    icebergs,
    icebergs_2021,
    intel_lab,
    intel_lab_temperature,
    mote_locations,
    sensorscope_luce,
)
from skyband.datasets.stand_ins import example, stand_in
from skyband.datasets.streams import endless

__all__ = [
    "Dataset",
    "anticorrelated",
    "appearances",
    "available",
    "beijing_air",
    "clustered",
    "correlated",
    "describe",
    "drifting",
    "endless",
    "example",
    "falling",
    "flights",
    "flights_like",
    "icebergs",
    "icebergs_2021",
    "independent",
    "intel_lab",
    "intel_lab_temperature",
    "mote_locations",
    "names",
    "rising",
    "sensorscope_luce",
    "shuffled",
    "stand_in",
    "uniform",
]

_GENERATORS: tuple[Callable[..., Any], ...] = (
    uniform, independent, correlated, anticorrelated, clustered, drifting, rising, falling, shuffled,
    flights_like, appearances,
)  # fmt: skip
_LOADERS: tuple[Callable[..., Any], ...] = (
    flights, intel_lab, intel_lab_temperature, mote_locations, sensorscope_luce, icebergs, icebergs_2021,
    beijing_air,
)  # fmt: skip


@dataclass(frozen=True)
class Dataset:
    """One line of `skyband datasets`. `rows` is None where the caller says how many."""

    name: str
    kind: Literal["generator", "loader"]
    rows: int | None
    about: str
    available: bool


def names() -> list[str]:
    """The names of all generators and loaders; each is a function of this module.

    >>> names()[:3]
    ['uniform', 'independent', 'correlated']
    """
    return [make.__name__ for make in _GENERATORS + _LOADERS]


def describe(*, folder: str | Path | None = None) -> list[Dataset]:
    """Every dataset: its kind, number of rows, purpose, and whether its data is here.

    >>> describe()[0]
    Dataset(name='uniform', kind='generator', rows=None, about='Points ...', available=True)
    """
    made = [Dataset(make.__name__, "generator", None, _about(make), True) for make in _GENERATORS]
    real = [
        Dataset(
            load.__name__,
            "loader",
            SOURCES[load.__name__].rows,
            _about(load),
            available(load.__name__, folder=folder),
        )
        for load in _LOADERS
    ]
    return made + real


def _about(make: Callable[..., Any]) -> str:
    return (inspect.getdoc(make) or "").partition("\n")[0]
