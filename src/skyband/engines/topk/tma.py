"""TMA, the top-k monitoring algorithm (mouratidis2006, section 4).

A run is the answer, and searched again when one of it goes and no arrival takes its place. With `Nearest` it is CPM/w
(pripuzic2015, section 2).
"""

from __future__ import annotations

from skyband.engines.topk.kernels import runs
from skyband.engines.topk.window_engine import Windowed


class TMA(Windowed):
    name, algorithm = "TMA", runs.TMA
