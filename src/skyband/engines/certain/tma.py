"""TMA, the top-k monitoring algorithm (mouratidis2006, section 4).

A run is the answer, and searched again when one of it goes and no arrival takes its place. With `Nearest` it is CPM/w
(pripuzic2015, section 2).
"""

from __future__ import annotations

from skyband.engines.certain.windowed import Windowed
from skyband.index import runs


class TMA(Windowed):
    name, algorithm = "TMA", runs.TMA
