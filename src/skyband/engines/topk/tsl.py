"""TSL, threshold sorted lists (mouratidis2006, section 3.2).

Every arrival is scored for every query. The run of a query is a view of up to k_max objects; when it has fewer than k,
the threshold algorithm searches again.
"""

from __future__ import annotations

import numpy as np

from skyband.engines.contract import Ints
from skyband.engines.topk.kernels import window_state
from skyband.engines.topk.window_engine import Windowed
from skyband.query.tuning import Tuning

TUNED_K, TUNED_VIEW = (1, 5, 10, 20, 50, 100), (4, 10, 20, 30, 70, 120)  # section 8


class TSL(Windowed):
    name, algorithm = "TSL", window_state.TSL

    @staticmethod
    def view_sizes(k: Ints, tuning: Tuning) -> Ints:
        """k_max: as given, or as tuned in the paper; above its largest k, k and a fifth."""
        if isinstance(tuning.view, int):
            return np.maximum(k, tuning.view)
        views = np.interp(k, TUNED_K, TUNED_VIEW).astype(np.int64)
        sizes: Ints = np.where(k > TUNED_K[-1], k + k // 5, views)
        return sizes
