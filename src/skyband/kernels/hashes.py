"""The place of a name in a table, by a hash of the name and its group."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.kernels.compile import inlined


@inlined
def mix(name: np.int64, group: int) -> Any:
    """63 bits of a hash; in halves, so that no product overflows."""
    bits = np.uint64(name)
    mixed = (
        (bits & np.uint64(0xFFFFFFFF)) * np.uint64(0x9E3779B1)
        ^ (bits >> np.uint64(32)) * np.uint64(0x85EBCA77)
        ^ np.uint64(group) * np.uint64(0xC2B2AE3D)
    )
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(0x7FFFFFFFFFFFFFFF))


@inlined
def slot_of(name: np.int64, group: int, mask: int) -> Any:
    return mix(name, group) & mask
