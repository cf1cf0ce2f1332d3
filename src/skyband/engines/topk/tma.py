"""TMA, the top-k monitoring algorithm (mouratidis2006, section 4).

The run of a query is its answer; it is searched again when an object of it expires and no arrival takes its place.
With `Nearest` it is CPM/w (pripuzic2015, section 2).
"""

from __future__ import annotations

from skyband.engines.topk.kernels import window_state
from skyband.engines.topk.window_engine import Windowed


class TMA(Windowed):
    name, algorithm = "TMA", window_state.TMA
