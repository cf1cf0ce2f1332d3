"""SMA, the skyband monitoring algorithm (mouratidis2006, section 5).

A run is the k-skyband of all that rank above the floor, so that it is seldom searched again. With `Nearest` it is SNN
(pripuzic2015, section 2).
"""

from __future__ import annotations

from skyband.engines.certain.windowed import Windowed
from skyband.index import runs


class SMA(Windowed):
    name, algorithm = "SMA", runs.SMA
