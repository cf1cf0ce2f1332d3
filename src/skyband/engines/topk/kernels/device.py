"""Kernels of a GPU, in Triton: products that never reach memory, exact keys, and the runs of lanes.

A lane's run is C places in any order; a free place has the stamp `FREE`. No multiplication is fused with an addition
(`enable_fp_fusion=False` where these are launched): keys are the contract's to the last bit.
"""

from __future__ import annotations

import triton
import triton.language as tl

FREE = tl.constexpr(-9223372036854775807)
NEVER = tl.constexpr(9223372036854775807)


@triton.jit
def sieve(
    unit: tl.tensor, half: tl.tensor, terms: tl.tuple, words: tl.tensor, sizes: tl.tuple, D: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WEIGHTED: tl.constexpr, GROUP: tl.constexpr,
    COPIES: tl.constexpr,
) -> None:  # fmt: skip
    """One bit for each pair of lane and row: whether their product reaches the lane's bar. Products stay in registers.

    COPIES: `unit` and `half` are descriptors, for the bulk copies of newer GPUs.
    """
    bars, weights, floors = terms
    low, rows, lanes = sizes
    pid, tiles, strips = tl.program_id(0), tl.cdiv(rows, BN), tl.cdiv(lanes, BM)
    # rows of a push stay in the cache; each lane's vector is read once for all of them
    first = pid // (GROUP * tiles) * GROUP
    size = min(strips - first, GROUP)
    m = first + pid % (GROUP * tiles) % size
    n = pid % (GROUP * tiles) // size
    lane, row, deep = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN), tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    if COPIES:
        for at in range(0, D, BK):
            sums = tl.dot(unit.load([m * BM, at]), half.load([low + n * BN, at]).T, sums)
    else:
        a = unit + lane.to(tl.int64)[:, None] * D + deep[None, :]
        b = half + (low + row).to(tl.int64)[None, :] * D + deep[:, None]
        for _ in range(0, D, BK):
            sums = tl.dot(tl.load(a), tl.load(b), sums)
            a += BK
            b += BK
    bar, floor = tl.load(bars + lane), tl.load(floors + low + row)
    if WEIGHTED:
        weight = tl.load(weights + low + row)
        limit = bar[:, None] * weight[None, :] + floor[None, :]
    else:
        limit = bar[:, None] + floor[None, :]
    bit = tl.where(row < rows, 1 << (row % 32), 0)
    hits = tl.where(sums < limit, 0, bit[None, :])
    packed = tl.sum(tl.reshape(hits, (BM, BN // 32, 32)), 2)
    word = n * (BN // 32) + tl.arange(0, BN // 32)
    wide = tiles * (BN // 32)
    packed = tl.where((bar == float("inf"))[:, None], 0, packed)
    tl.store(words + lane.to(tl.int64)[:, None] * wide + word[None, :], packed)


@triton.jit
def bits_in(word: tl.tensor) -> tl.tensor:
    """How many bits are set."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    word = word + (word >> 8)
    return (word + (word >> 16)) & 63


@triton.jit
def unpack(
    words: tl.tensor, pairs: tl.tensor, count: tl.tensor, most: tl.tensor, low: tl.tensor, wide: tl.tensor,
    total: tl.tensor, S: tl.constexpr,
) -> None:  # fmt: skip
    """The bits that are set as pairs (lane << 32) + row, in any order."""
    i = tl.program_id(0) * S + tl.arange(0, S)  # fewer than 2**30
    word = tl.load(words + i, mask=i < total, other=0).to(tl.uint32, bitcast=True)
    if tl.max((word != 0).to(tl.int32), 0) > 0:
        many = bits_in(word).to(tl.int32)
        place = tl.atomic_add(count, tl.sum(many, 0).to(tl.int64), sem="relaxed") + tl.cumsum(many, 0) - many
        pair = ((i // wide).to(tl.int64) << 32) + low + (i % wide) * 32
        while tl.max((word != 0).to(tl.int32), 0) > 0:
            lowest = word & (~word + 1)
            here = (word != 0) & (place < most)
            tl.store(pairs + place, pair + bits_in(lowest - 1).to(tl.int64), mask=here)
            place += (word != 0).to(tl.int64)
            word = word & (word - 1)


@triton.jit
def products(
    unit: tl.tensor, half: tl.tensor, some: tl.tensor, out: tl.tensor, low: tl.tensor, rows: tl.tensor,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
) -> None:  # fmt: skip
    """The products of some lanes with rows from `low` on."""
    i, row = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    deep, lane = tl.arange(0, BK), tl.load(some + i)
    a = unit + lane[:, None] * D + deep[None, :]
    b = half + (low + row).to(tl.int64)[None, :] * D + deep[:, None]
    sums = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, D, BK):
        sums = tl.dot(tl.load(a), tl.load(b), sums)
        a += BK
        b += BK
    tl.store(out + i.to(tl.int64)[:, None] * rows + row[None, :], sums, mask=(row < rows)[None, :])


@triton.jit
def score(
    pairs: tl.tuple, vectors: tl.tuple, norms: tl.tuple, keys: tl.tensor, size: tl.tensor, d: tl.tensor,
    D: tl.constexpr, S: tl.constexpr, FORM: tl.constexpr, TURNED: tl.constexpr,
) -> None:  # fmt: skip
    """Exact keys of pairs: products in the order of the components, summed from left to right, in float64."""
    lane_of, row_of = pairs
    points, matrix = vectors
    lane_norms, row_norms = norms
    i = tl.program_id(0).to(tl.int64) * S + tl.arange(0, S)
    there = i < size
    lane, row = tl.load(lane_of + i, mask=there, other=0), tl.load(row_of + i, mask=there, other=0)
    four = tl.arange(0, 4)
    a, b = matrix + row[:, None] * D + four[None, :], points + lane[:, None] * D + four[None, :]
    total = tl.full((S,), -0.0, tl.float64)
    for j in range(0, d, 4):
        x, y = tl.load(a + j).to(tl.float64), tl.load(b + j).to(tl.float64)
        if FORM == 8:
            away = x - y
            term = away * away
        else:
            term = x * y
        term = tl.where((j + four < d)[None, :], term, -0.0)
        even, odd = tl.split(tl.reshape(term, (S, 2, 2)))
        t0, t2 = tl.split(even)
        t1, t3 = tl.split(odd)
        total = total + t0
        total = total + t1
        total = total + t2
        total = total + t3
    if FORM == 6:
        norm = tl.load(row_norms + row) * tl.load(lane_norms + lane)
        total = total / norm
    if TURNED:
        total = -total
    tl.store(keys + i, total, mask=there)


@triton.jit
def outlast(
    stamps: tl.tensor, ks: tl.tensor, lengths: tl.tensor, depths: tl.tensor, found: tl.tensor, bound_of_left: tl.tensor,
    last: tl.tensor, lanes: tl.tensor, L: tl.constexpr, C: tl.constexpr,
) -> None:  # fmt: skip
    """Whether lanes have depths, and fewer than k objects that outlast a block."""
    lane, o = tl.program_id(0).to(tl.int64) * L + tl.arange(0, L), tl.arange(0, C)
    there = lane < lanes
    k, length = tl.load(ks + lane, mask=there, other=0), tl.load(lengths + lane, mask=there, other=0)
    depth = tl.load(depths + lane, mask=there, other=float("-inf"))
    stamp = tl.load(stamps + lane[:, None] * C + o[None, :], mask=there[:, None], other=FREE)
    bound = tl.maximum(last - length, bound_of_left)
    lasting = tl.sum((stamp > bound[:, None]).to(tl.int32), 1)
    tl.store(found + lane, ((k > 0) & (depth > float("-inf")) & (lasting < k)).to(tl.int8), mask=there)


@triton.jit
def tidy(
    some: tl.tensor, runs: tl.tuple, lanes: tl.tuple, instants: tl.tuple, C: tl.constexpr
) -> None:  # fmt: skip
    """Drop what has expired or is dominated by k; lift the depth to the wanted-th best of what outlasts the block."""
    keys, stamps, serials, flags = runs
    ks, wants, lengths, depths, counts = lanes
    before, bound_of_left, last = instants
    lane = tl.load(some + tl.program_id(0))
    o = tl.arange(0, C)
    base = lane * C
    k, want, length = tl.load(ks + lane), tl.load(wants + lane), tl.load(lengths + lane)
    key, stamp, serial = tl.load(keys + base + o), tl.load(stamps + base + o), tl.load(serials + base + o)
    flag = tl.load(flags + base + o)
    depth = tl.load(depths + lane)
    alive = (stamp > FREE) & (stamp > before - length)
    bound = tl.maximum(last - length, bound_of_left)
    drop = alive == 0
    # what ranks above each entry, one other entry at a time: C steps of C comparisons
    dominators, above = tl.zeros((C,), tl.int32), tl.zeros((C,), tl.int32)
    for i in range(C):
        other_key, other_stamp = tl.load(keys + base + i), tl.load(stamps + base + i)
        other_serial = tl.load(serials + base + i)
        other_alive = (other_stamp > FREE) & (other_stamp > before - length)
        newer = (other_stamp > stamp) | ((other_stamp == stamp) & (other_serial > serial))
        ranks = (other_key > key) | ((other_key == key) & newer)
        dominators += (other_alive & ranks & (other_stamp >= stamp)).to(tl.int32)
        above += (other_alive & (other_key >= key) & (other_stamp > bound)).to(tl.int32)
    drop = drop | (dominators >= k)
    good = alive & (stamp > bound) & (above >= want)
    best = tl.max(tl.where(good, key, float("-inf")), 0)
    depth = tl.maximum(depth, best)
    drop = drop | (key < depth)
    tl.store(stamps + base + o, tl.where(drop, FREE, stamp))
    tl.store(flags + base + o, tl.where(drop, 0, flag).to(tl.int8))
    tl.store(depths + lane, depth)
    tl.store(counts + lane, tl.sum((drop == 0).to(tl.int32), 0))


@triton.jit
def emit(
    out: tl.tuple, most: tl.tensor, lane: tl.tensor, run: tl.tuple, bits: tl.tensor, step: tl.tuple, which: tl.tensor
) -> None:  # fmt: skip
    """Write the entries of a mask as changes; bits: 1 enters, 2 has been shown."""
    out_lane, out_key, out_whole, out_bits, count = out
    key, stamp, serial = run
    instant, at = step
    many = which.to(tl.int64)
    base = tl.atomic_add(count, tl.sum(many, 0), sem="relaxed")
    place = base + tl.cumsum(many, 0) - many
    fits = which & (place < most)
    tl.store(out_lane + place, lane.to(tl.int32), mask=fits)
    tl.store(out_key + place, key, mask=fits)
    tl.store(out_bits + place, bits, mask=fits)
    tl.store(out_whole + 4 * place, stamp, mask=fits)
    tl.store(out_whole + 4 * place + 1, serial, mask=fits)
    tl.store(out_whole + 4 * place + 2, instant, mask=fits)
    tl.store(out_whole + 4 * place + 3, at, mask=fits)


@triton.jit
def replay(
    some: tl.tensor, spans: tl.tuple, hits: tl.tuple, rows: tl.tuple, runs: tl.tuple, lanes: tl.tuple, out: tl.tuple,
    most: tl.tensor, last: tl.tensor, C: tl.constexpr, TIMED: tl.constexpr, NET: tl.constexpr,
) -> None:  # fmt: skip
    """Let one lane take its hits of a block in their order, and time go on to `last`; write what enters and leaves."""
    begins, ends = spans
    hit_keys, hit_rows = hits
    row_stamps, row_serials, row_now = rows
    keys, stamps, serials, flags = runs
    ks, lengths, dues, counts = lanes
    pid = tl.program_id(0)
    lane = tl.load(some + pid)
    h, end = tl.load(begins + pid), tl.load(ends + pid)
    k, length = tl.load(ks + lane), tl.load(lengths + lane)
    o = tl.arange(0, C)
    base = lane * C
    key, stamp, serial = tl.load(keys + base + o), tl.load(stamps + base + o), tl.load(serials + base + o)
    flag = tl.load(flags + base + o).to(tl.int32)
    shown = 1 if NET else 3  # of net changes, members at the end of a batch have been shown
    due = NEVER + tl.zeros((), tl.int64)
    more = tl.full((), 1, tl.int32)
    while more > 0:
        inside = (flag & 1) > 0
        oldest = tl.min(tl.where(inside, stamp, NEVER), 0)
        due = tl.where(oldest < NEVER, tl.minimum(oldest, NEVER - length) + length, NEVER)
        coming = NEVER + tl.zeros((), tl.int64)
        row = tl.zeros((), tl.int64)
        if h < end:
            row = tl.load(hit_rows + h)
            coming = tl.load(row_now + row)
        step = tl.minimum(due, coming)
        more = ((step <= last) & (step < NEVER)).to(tl.int32)
        if more > 0:
            if TIMED:  # what leaves at an instant leaves before its arrivals
                takes = coming < due
            else:
                takes = coming == step
            old = (stamp > FREE) & (stamp <= step - length)
            gone = old & inside
            at = tl.full((), -1, tl.int64)
            if takes:
                at = tl.load(row_serials + row)
            if tl.sum(gone.to(tl.int32), 0) > 0:
                emit(out, most, lane, (key, stamp, serial), (flag & 2).to(tl.int8), (step, at), gone)
            stamp, flag = tl.where(old, FREE, stamp), tl.where(old, 0, flag)
            fresh = o < 0
            if takes:
                new_stamp = tl.load(row_stamps + row)
                if new_stamp > step - length:
                    place = tl.min(tl.where(stamp == FREE, o, C), 0)
                    fresh = o == place
                    key = tl.where(fresh, tl.load(hit_keys + h), key)
                    stamp = tl.where(fresh, new_stamp, stamp)
                    serial = tl.where(fresh, at, serial)
                    flag = tl.where(fresh, 0, flag)
                h += 1
            members = tl.sum(flag & 1, 0)
            waiting = (stamp > FREE) & ((flag & 1) == 0)
            promoted = tl.zeros((), tl.int32)
            left = tl.minimum(k - members, tl.sum(waiting.to(tl.int32), 0))
            while left > 0:  # the best of the others
                best = tl.max(tl.where(waiting, key, float("-inf")), 0)
                equal = waiting & (key == best)
                newest = tl.max(tl.where(equal, stamp, FREE), 0)
                equal = equal & (stamp == newest)
                which = equal & (serial == tl.max(tl.where(equal, serial, -1), 0))
                emit(out, most, lane, (key, stamp, serial), (1 | (flag & 2)).to(tl.int8), (step, at), which)
                flag = tl.where(which, shown | flag, flag)
                waiting = waiting & (which == 0)
                promoted += 1
                left -= 1
            coming_in = waiting & fresh
            if (promoted == 0) & (tl.sum(coming_in.to(tl.int32), 0) > 0):  # against the worst member
                inside = (flag & 1) > 0
                worst = tl.min(tl.where(inside, key, float("inf")), 0)
                equal = inside & (key == worst)
                oldest = tl.min(tl.where(equal, stamp, NEVER), 0)
                equal = equal & (stamp == oldest)
                loser = equal & (serial == tl.min(tl.where(equal, serial, NEVER), 0))
                my_key = tl.max(tl.where(fresh, key, float("-inf")), 0)
                my_stamp = tl.max(tl.where(fresh, stamp, FREE), 0)
                newer = (my_stamp > oldest) | ((my_stamp == oldest) & (at > tl.max(tl.where(loser, serial, -1), 0)))
                if (my_key > worst) | ((my_key == worst) & newer):
                    emit(out, most, lane, (key, stamp, serial), (flag & 2).to(tl.int8), (step, at), loser)
                    emit(out, most, lane, (key, stamp, serial), (1 | (flag & 2)).to(tl.int8), (step, at), fresh)
                    flag = tl.where(loser, flag & 2, tl.where(fresh, shown | flag, flag))
    tl.store(keys + base + o, key)
    tl.store(stamps + base + o, stamp)
    tl.store(serials + base + o, serial)
    tl.store(flags + base + o, flag.to(tl.int8))
    tl.store(dues + lane, due)
    tl.store(counts + lane, tl.sum((stamp > FREE).to(tl.int32), 0))
