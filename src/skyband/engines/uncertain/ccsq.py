"""CCSQ, the compressed compact set queue: of each compact set only its difference to the next newer one (jin2008, 4.2).

C(S_i) has at most one tuple that C(S_(i-1)) has not, its oldest; and a tuple that has disappeared never comes back
(Lemma 4.3), so all differences together have O(H log W) tuples. The steps are in kernels/ccsq.py.

Cost: sets are restored one after the other, changed and compressed again: O(k H^2) per arrival; memory
O(H (k + log W)).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.uncertain.csq import CSQ
from skyband.engines.uncertain.kernels.ccsq import take_ccsq
from skyband.engines.uncertain.queue_groups import Group

Records = NDArray[Any]


class CCSQ(CSQ):
    name = "CCSQ"
    kernel = staticmethod(take_ccsq)

    def sets(self, group: Group) -> list[Records]:
        """The compact sets, the oldest first, restored from the newest on."""
        differences = super().sets(group)
        found = differences[-1:]
        for one in reversed(differences[:-1]):
            added, removed = one[:1], one[1:]
            stay = found[-1][~np.isin(found[-1]["serial"], removed["serial"])]
            assert len(stay) + len(removed) == len(found[-1]), "what is removed was there"
            both = np.concatenate([stay, added])
            found.append(both[np.lexsort((-both["serial"], -both["stamp"], -both["key"]))])
        return found[::-1]
