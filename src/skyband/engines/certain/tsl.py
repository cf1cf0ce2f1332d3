"""TSL, threshold sorted lists (mouratidis2006, section 3.2): every arrival is scored for every query, and a view of up to
k_max objects is searched again by the threshold algorithm when it has fewer than k."""

from __future__ import annotations

import numpy as np

from skyband.engines.certain.windowed import Windowed
from skyband.engines.contract import Ints
from skyband.index import upkeep

TUNED_K, TUNED_VIEW = (1, 5, 10, 20, 50, 100), (4, 10, 20, 30, 70, 120)  # section 8


class TSL(Windowed):
    name, algorithm = "TSL", upkeep.TSL

    def _views(self, k: Ints) -> Ints:
        if isinstance(self.tuning.view, int):
            return np.maximum(k, self.tuning.view)
        tuned = np.interp(k, TUNED_K, TUNED_VIEW).astype(np.int64)
        tuned = np.where(k > TUNED_K[-1], k + k // 5, tuned)
        return -tuned if self.tuning.view == "dynamic" else tuned

    def _most_views(self) -> Ints:
        return 8 * self.views + 64 if self.tuning.view == "dynamic" else self.views
