"""SMA, the skyband monitoring algorithm (mouratidis2006, section 5).

A run is the k-skyband of all that rank above the floor, so that it is seldom searched again. With `Nearest` it is SNN
(pripuzic2015, section 2).
"""

from __future__ import annotations

from skyband.engines.topk.kernels import runs
from skyband.engines.topk.window_engine import Windowed


class SMA(Windowed):
    name, algorithm = "SMA", runs.SMA
