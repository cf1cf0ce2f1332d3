"""TSL, threshold sorted lists (mouratidis2006, section 3.2).

Every arrival is scored for every query, and a view of up to k_max objects is searched again by the threshold algorithm
when it has fewer than k.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Ints
from skyband.engines.topk.kernels import runs
from skyband.engines.topk.window_engine import Windowed

TUNED_K, TUNED_VIEW = (1, 5, 10, 20, 50, 100), (4, 10, 20, 30, 70, 120)  # section 8


class TSL(Windowed):
    name, algorithm = "TSL", runs.TSL

    def _views(self, k: Ints) -> Ints:
        views: Ints
        if isinstance(self.tuning.view, int):
            views = np.maximum(k, self.tuning.view)
        else:
            views = np.interp(k, TUNED_K, TUNED_VIEW).astype(np.int64)
            views = np.where(k > TUNED_K[-1], k + k // 5, views)
        return -views if self.tuning.view == "dynamic" else views

    def _most_views(self) -> Ints:
        most: Ints = 8 * self.views + 64 if self.tuning.view == "dynamic" else self.views
        return most
