"""Depths on a GPU that fall: what of the window may be among a lane's best (docs/engines/topk/similar.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from skyband.engines.topk.device_turns import distance_error, ring_stretches
from skyband.engines.topk.kernels import device as kernels
from skyband.query.scoring.forms import DISTANCE

Array = NDArray[Any]
SLAB = 1 << 28  # products that are in memory at once


def near(lanes: Any, places: Array, begin: int, end: int, left: int, last: int) -> tuple[Array, Array, Array]:
    """For each of these lanes, what of the arrivals begin..end may be among the wanted best that outlast the block.

    Returns places in `places`, arrivals and exact keys.
    """
    step = max(16, SLAB // max(1, end - begin) // 16 * 16)
    pieces = [
        _near(lanes, lanes._put(places[low : low + step]), begin, end, left, last, low)
        for low in range(0, len(places), step)
    ]
    which, arrivals, keys = zip(*pieces, strict=True)
    return np.concatenate(which), np.concatenate(arrivals), np.concatenate(keys)


def _near(lanes: Any, at: Any, begin: int, end: int, left: int, last: int, first: int) -> tuple[Array, Array, Array]:
    c, ring, total = lanes.columns, lanes.ring, end - begin
    padded = torch.cat([at, at[:1].expand(-len(at) % 16)]).contiguous()
    lower = torch.empty((len(padded), total), dtype=torch.float32, device=lanes.device)
    done = 0
    for stretch in ring_stretches(begin, end, lanes.rows):
        many = stretch.stop - stretch.start
        out = torch.empty((len(padded), many), dtype=torch.float32, device=lanes.device)
        kernels.products[(-(-many // 128), len(padded) // 16)](
            c["unit"], ring["half"], padded, out, stretch.start, many, D=lanes.wide, BM=16, BN=128, BK=64,
            num_warps=4,
        )  # fmt: skip
        lower[:, done : done + many] = out
        done += many
    values = lower[: len(at)]
    rows = torch.cat([torch.arange(s.start, s.stop, device=lanes.device) for s in
                      ring_stretches(begin, end, lanes.rows)])  # fmt: skip
    weights, offsets, slack = ring["weights"][rows], ring["offsets"][rows], ring["slack"][rows]
    births, wants = c["birth"][at], c["want"][at]
    there = ring["serials"][rows][None, :] >= births[:, None]
    bound = torch.clamp(last - c["length"][at], min=left)
    lasting = there & (ring["stamps"][rows][None, :] > bound[:, None])
    error = distance_error(lanes.d) if lanes.form == DISTANCE else 0.0
    twice = (c["norms"][at] ** 2 * error).to(torch.float32)
    least = torch.where(lasting, (values - offsets - slack) / weights, float("-inf"))
    least = torch.nan_to_num(least, nan=float("-inf"), neginf=float("-inf"))
    most = min(int(wants.max()), total)
    best = torch.topk(least, most, dim=1).values if most else least
    bars = torch.full((len(at),), float("-inf"), device=lanes.device)
    enough = (wants <= total) & (lasting.sum(1) > 2 * wants)
    if bool(enough.any()):
        found = best.gather(1, (torch.clamp(wants, max=most) - 1)[:, None])[:, 0]
        bars = torch.where(enough, found, bars)
    bars = bars - twice
    bars = bars - bars.abs() * 2.0**-20  # float32 of what is compared
    good = there & ~((values - offsets + slack) / weights < bars[:, None])
    which, place = torch.nonzero(good, as_tuple=True)
    keys = lanes._score(at[which], rows[place])
    return (which + first).cpu().numpy(), (place + begin).cpu().numpy(), keys.cpu().numpy()
