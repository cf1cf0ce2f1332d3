"""What a query says about how it is answered: values only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """The parameters of pripuzic2015, Table IX."""

    gamma: float = 0.2  # RA: how far a run may outgrow its skyband
    sigma: float = 1e-3  # PA: how much may be missed
    additional: int = 10  # PA: candidates beyond its limit
    buffer: int | None = None  # how many recent arrivals wait
    index: bool | None = None  # of queries, where there are many; None: where it helps
