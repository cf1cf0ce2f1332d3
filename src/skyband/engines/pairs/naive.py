"""NAIVE: the K best pairs of each object with older ones, all of them sorted (shen2012, section VI-B).

To compare with: O(K ln(n/K) n) scores and moves of O(K n) pairs an arrival. Each window length of a query has K best
pairs of its own; an answer for another length computes them from scratch. Scorings that no kernel computes get the
paper's simplest algorithm, which keeps all O(n²) pairs sorted.

Errata: the paper does not say to which of its members a pair belongs; here to the newer. A late object becomes the
older member of pairs whose newer members have their K best already: all of these pairs are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from skyband.engines.contract import Spec
from skyband.engines.pairs.base import Pairs
from skyband.engines.pairs.group import Group, Records
from skyband.engines.pairs.invariants import is_pair, key_of
from skyband.engines.pairs.kernels import records
from skyband.engines.pairs.kernels.naive import complete_pairs
from skyband.engines.pairs.kernels.records import BASE, END, HEAD, NEED, NEVER, REPORTED
from skyband.errors import StateError

_NONE = np.empty(0, np.int64)
_NOTHING = records.Stream(
    stamps=_NONE,
    now=_NONE,
    rows=_NONE,
    eligible=np.empty(0, np.bool_),
    values=np.empty((0, 0)),
    given=np.empty(0),
    begins=_NONE,
    unsafe=False,
    joined=np.empty(0, np.bool_),
    serial=0,
    scored=np.empty(0, np.bool_),
)


class NAIVE(Pairs):
    name, algorithm = "NAIVE", records.NAIVE

    def __init__(self, *args: Any, given: Any = None, **more: Any) -> None:
        if given is not None:
            self.algorithm = records.WHOLE
        super().__init__(*args, given=given, **more)

    def _complete(self, group: Group, now: int) -> None:
        """Add the K best pairs for window lengths that the group has not served."""
        group.set_heads(now)
        group.facts[HEAD] = group.views.head[-1] - group.facts[BASE]
        self._flush(group)
        self._grow_scratch(group)
        at, end = 0, int(group.facts[END])
        while (at := complete_pairs(group.state, self.rules, self.scratch, at)) < end:
            group.grow_band(int(group.facts[NEED]))

    def _drop_expired(self, group: Group, now: int) -> None:
        if self.algorithm == records.WHOLE:  # else the kernel does, since it replaces their pairs
            super()._drop_expired(group, now)

    def let_go(self, group: Group, now: int) -> None:
        if self.algorithm == records.NAIVE and now > -NEVER:
            group.facts[REPORTED] = 0
            self._run(group, _NOTHING, now)  # no answer changes: it would have been due
        super().let_go(group, now)

    def _prune(self, group: Group, now: int) -> None:
        if self.algorithm == records.NAIVE:
            self._complete(group, now)
        super()._prune(group, now)

    def _read(self, group: Group, spec: Spec, now: int) -> Records:
        if self.algorithm == records.NAIVE and spec.length not in self.length:
            group = deepcopy(group)
            group.set_queries(self.rules.K, np.array([spec.k]), np.array([spec.length]))
            self._complete(group, now)
        return super()._read(group, spec, now)

    def restore(self, state: Mapping[str, Records], *, trusted: bool = True) -> None:
        if "sizes" not in state:
            raise StateError("NAIVE's snapshots of version 0.1 cannot be read. Push the window's rows again.")
        super().restore(state, trusted=trusted)

    def _check_all(self, group: Group, pairs: Records) -> None:
        if self.algorithm == records.WHOLE:
            return super()._check_all(group, pairs)
        base, end = int(group.facts[BASE]), int(group.facts[END])
        for head in set((group.views.head - base).tolist()):
            for at in range(head, end):
                olders = [older for older in range(head, at) if is_pair(self, group, older, at)]
                keys = [key_of(self, group, older, at) for older in olders]
                best = sorted((key for key in keys if key == key), reverse=True)[: self.rules.K]
                mine = pairs[(pairs["newer"] == group.window.serials[at]) & (pairs["place"] >= base + head)]
                assert mine["key"][: self.rules.K].tolist() == best, "each object has its K best pairs with older ones"
        return None
