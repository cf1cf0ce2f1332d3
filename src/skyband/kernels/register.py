"""Which (id, part) has a valid row: without `repeat` a second one is rejected.

An open-addressing table of the last row of each, by group, id and part. Nothing is taken out when it expires; what
has expired goes when the table is laid out anew, so there are at most a few times as many entries as valid rows.
Writing is noted, so that it can be undone: rows are judged before it is sure that they are taken.

Cost: 24 bytes for each place, two to eight places for each valid row; one look a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, inlined, uncounted_kernel

Records = NDArray[Any]
ENTRY = np.dtype([("name", "i8"), ("stamp", "i8"), ("group", "i4"), ("part", "i4")], align=True)
NONE = -1  # part of a free place


@inlined
def hash_of(name: np.int64, group: np.int64, part: np.int64, mask: int) -> Any:
    mixed = (np.uint64(name) ^ (np.uint64(group) << np.uint64(40)) ^ (np.uint64(part) << np.uint64(33))) * np.uint64(
        0x9E3779B97F4A7C15
    )
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))


@close
def entry_of(table: Records, name: np.int64, group: np.int64, part: np.int64) -> Any:
    mask = len(table) - 1
    place = hash_of(name, group, part, mask)
    while table[place]["part"] >= 0 and (
        table[place]["name"] != name or table[place]["part"] != part or table[place]["group"] != group
    ):
        place = (place + 1) & mask
    return place


@uncounted_kernel
def judge_rows(
    table: Records,
    names: Records,
    parts: Records,
    groups: Records,
    rows: Records,  # those to be judged, in order
    times: Records,  # empty: count windows
    clocks: Records,
    counts: Records,  # count windows: the next number of each group; goes on
    length: int,
    limit: int,  # time windows: who is so late is not judged
    begin: int,
    used: Records,  # places in use, and how many may be
    rejected: Records,  # by row
    log: Records,  # by judged row: its place and the stamp that was there; place -1: none. Empty: nothing is noted
) -> Any:
    """Reject rows whose (id, part) has a valid row already, from row `begin` of those to be judged; where it stops."""
    timed, noted = len(times) > 0, len(log) > 0
    for j in range(begin, len(rows)):
        if used[0] >= used[1]:
            return j
        r = rows[j]
        g = groups[r]
        if noted:
            log[j, 0] = -1
        if timed:
            now, stamp = max(clocks[r], times[r]), times[r]
            if now - stamp >= limit:
                continue
        else:
            now = stamp = counts[g]
        place = entry_of(table, names[r], g, parts[r])
        was = np.iinfo(np.int64).min
        if table[place]["part"] >= 0:
            was = table[place]["stamp"]
            if was > now - length:
                rejected[r] = True
                continue
        else:
            used[0] += 1
            table[place]["name"], table[place]["group"], table[place]["part"] = names[r], g, parts[r]
        if noted:
            log[j, 0], log[j, 1] = place, was
        table[place]["stamp"] = stamp
        if not timed:
            counts[g] += 1
    return len(rows)


@uncounted_kernel
def undo(table: Records, log: Records) -> None:
    """As if the rows had never been judged; new entries stay, and count as expired."""
    for j in range(len(log) - 1, -1, -1):
        if log[j, 0] >= 0:
            table[log[j, 0]]["stamp"] = log[j, 1]


@uncounted_kernel
def lay_out(old: Records, bounds: Records, table: Records) -> Any:
    """The entries that have not expired, in an empty table; bounds: by group; how many there are."""
    used = 0
    for i in range(len(old)):
        if old[i]["part"] >= 0 and old[i]["stamp"] > bounds[old[i]["group"]]:
            place = entry_of(table, old[i]["name"], old[i]["group"], old[i]["part"])
            table[place] = old[i]
            used += 1
    return used
