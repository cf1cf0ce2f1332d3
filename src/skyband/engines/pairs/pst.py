"""PST: snapshot answers from the priority search tree of the paper (shen2012, section IV-A, Algorithms 1 and 2).

Pairs are found and kept as by SCASE. `answer(k=, window=)` reads the tree: O(log s + k) nodes of s kept pairs, whatever
the window. To compare with: SCASE's flat tree and lists answer the same (kernels/answers.py).

Departure: the paper inserts and deletes pairs in the tree one by one; here it is built, O(s log s), when it is read for
the first time after the pairs have changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.engines.contract import Spec
from skyband.engines.pairs.base import Pairs
from skyband.engines.pairs.group import Group, Records
from skyband.engines.pairs.kernels.records import PAIR, READS, SIZE
from skyband.engines.pairs.kernels.search_tree import HEIGHT, build_tree, empty_tree, read_tree


class PST(Pairs):
    name = "PST"

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.tree = empty_tree(0)  # of the group `listed`, if that has been read since its pairs changed

    def _read(self, group: Group, spec: Spec, now: int) -> Records:
        self._flush(group)
        size = int(group.facts[SIZE])
        k = min(spec.k, size)
        if not k:
            return np.empty(0, PAIR)
        if self.listed is not group or not group.facts[READS]:
            if size > len(self.tree.rank):
                self.tree = empty_tree(2 * size)
            build_tree(group.facts, group.band, self.tree)
            self.listed, group.facts[READS] = group, 1
        out = np.empty(k + 2 * HEIGHT, np.int32)
        best: Records = group.band.pairs[
            out[: read_tree(group.facts, group.band, self.tree, k, now - spec.length, out)]
        ]
        return best

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(int(array.nbytes) for array in self.tree)
