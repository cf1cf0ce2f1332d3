"""SMA, the skyband monitoring algorithm (mouratidis2006, section 5).

The run of a query is the k-skyband of the objects above its floor, so that it is seldom searched again. With `Nearest`
it is SNN (pripuzic2015, section 2).
"""

from __future__ import annotations

from skyband.engines.topk.kernels import window_state
from skyband.engines.topk.window_engine import Windowed


class SMA(Windowed):
    name, algorithm = "SMA", window_state.SMA
