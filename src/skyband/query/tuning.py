"""The options of single algorithms, as one value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """The parameters of pripuzic2015, Table IX, and those of engines that keep the window or approximate."""

    gamma: float = 0.2  # RA: how far a run may outgrow its skyband
    sigma: float = 1e-3  # PA: how much may be missed
    additional: int = 10  # PA: candidates beyond its limit
    buffer: int | None = None  # how many recent arrivals wait
    index: bool | None = None  # of queries, where there are many; None: where it helps
    cells: int | None = None  # of a grid over objects or arrivals; None: as many as were found best
    view: int | str | None = None  # TSL: how many a view holds at most, or "dynamic"; None: as tuned there
    repeats: int | None = None  # APPROX, BUDGET: how often one part of an object comes; None: estimated
    budget: int | None = None  # BUDGET: how many rows are kept, those of its sample among them
    seed: int = 0  # of sketches and samples
