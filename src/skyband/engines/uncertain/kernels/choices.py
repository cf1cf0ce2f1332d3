"""u-topk among alternatives: the best choice of j groups, and of a member of each, after each group in turn.

Of equally probable choices the one whose worst member ranks higher counts, then its second worst, and so on: of two
sets of one size the one without the lowest member that only one of them has. Rows have -1 where there is no choice.

Cost: O(k) a group and member; O(d + k^2) where two choices are equally probable and their members interlace.
"""

from __future__ import annotations

from typing import Any

from skyband.engines.uncertain.kernels.prefix import FOUND
from skyband.engines.uncertain.kernels.records import Ints, Records, Rivals, Walk
from skyband.kernels.compile import uncounted


@uncounted
def members(rivals: Rivals, g: int, j: int, K: int, without: int, into: Ints) -> int:
    """The members of the best choice of j of the groups before g, but one; returns how many."""
    many = 0
    for h in range(g - 1, -1, -1):
        if j == 0:
            break
        if h == without:
            continue
        picks = rivals.others if 0 <= without < h else rivals.picked
        member = picks[h * K + j]
        if member >= 0:
            into[many] = member
            many += 1
            j -= 1
    return many


@uncounted
def fall(numbers: Ints, size: int) -> None:
    """Sort a few numbers, the largest first."""
    for i in range(1, size):
        value, j = numbers[i], i
        while j > 0 and numbers[j - 1] < value:
            numbers[j] = numbers[j - 1]
            j -= 1
        numbers[j] = value


@uncounted
def stays(rivals: Rivals, g: int, j: int, K: int, without: int, member: int) -> bool:
    """Of two equally probable choices of j: does the one without group g rank above the one with this member of it?"""
    members(rivals, g, j, K, without, rivals.one)
    size = members(rivals, g, j - 1, K, without, rivals.two)
    rivals.two[size] = member
    fall(rivals.one, j)
    fall(rivals.two, j)
    for i in range(j):
        if rivals.one[i] != rivals.two[i]:
            return bool(rivals.one[i] < rivals.two[i])
    return True


@uncounted
def next_choices(
    rivals: Rivals, front: Records, head: int, places: Ints, g: int, width: int, K: int, without: int
) -> int:
    """The best choices with group g more, over a row that is `width` wide; returns how wide it is.

    without: -1, or the group that is left out; then the row is `own`.
    """
    aside, wide, above = without >= 0, min(K, width + 1), -1.0
    rows, picks = rivals.own if aside else rivals.rows, rivals.others if aside else rivals.picked
    begin, to = 0 if aside else g * K, 0 if aside else (g + 1) * K
    absent = max(0.0, 1.0 - rivals.sums[g])
    for j in range(wide):
        own = rows[begin + j] if j < width else -1.0
        best, pick, take, member = own * absent, -1, -1.0, rivals.last[g]
        while member >= 0 and above >= 0:  # of equals the member that ranks highest
            chance = above * front[head + places[member]]["p"]
            if chance >= take:
                take, pick = chance, member
            member = rivals.before[member]
        if own >= 0 and pick >= 0:
            below = pick > rivals.beyond[g]  # all others
            if best > take or (best == take and (below or stays(rivals, g, j, K, without, pick))):
                pick = -1
        rows[to + j] = take if pick >= 0 else (best if own >= 0 else -1.0)
        picks[g * K + j] = pick
        above = own
    return wide


@uncounted
def see_choice(
    rivals: Rivals, front: Records, head: int, places: Ints, g: int, groups: int, k: int, K: int, n: int, top: float
) -> Any:
    """Note tuple n as the worst member of an answer; returns the probability of the best answer so far."""
    width = min(K, g + 1)
    for j in range(width):
        rivals.own[j] = rivals.rows[g * K + j]
    for other in range(g + 1, groups):
        width = next_choices(rivals, front, head, places, other, width, K, g)
    if k > width or rivals.own[k - 1] < 0:
        return top
    chance = rivals.own[k - 1] * front[head + places[n]]["p"]
    if chance > top:
        members(rivals, groups, k - 1, K, g, rivals.best)
        rivals.best[k - 1] = n
        return chance
    return top


@uncounted
def leave_choice(rivals: Rivals, k: int, top: float, out: Walk) -> None:
    """The best answer, in order of rank."""
    out.result[FOUND] = 0
    if top > 0:
        fall(rivals.best, k)
        out.result[FOUND] = k
        for j in range(k):
            out.at[j], out.rank[j], out.chance[j] = out.places[rivals.best[k - 1 - j]], 0, top
