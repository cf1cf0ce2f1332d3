"""SA, the strict candidate pruning algorithm (pripuzic2015, sections 3 and 4; the algorithm is in kernels/strict.py).

Keeps exactly the k-skyband: k + k·(H_n - H_k) objects of a window of n in random order, all n when scores fall. Every
arrival is inserted; BLOCK is the same without the arrivals that can never be an answer.

Cost: O(K) amortised for an arrival.
"""

from __future__ import annotations

from skyband.engines.topk.base import SkybandEngine


class SA(SkybandEngine):
    """The strict k-skyband of every group."""

    name = "SA"
