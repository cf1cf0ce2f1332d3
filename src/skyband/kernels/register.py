"""Which (id, part) has a valid row: without `repeat` a second one is rejected.

An open-addressing table of objects, by group and id, with the stamp of the last row of each part. Nothing is taken
out when it expires; who has expired goes when the table is laid out anew, so there are at most a few times as many
places as objects with valid rows. Writing is noted, so that it can be undone: rows are judged before it is sure that
they are taken.

Cost: 16 bytes and 8 for each part for each place, two to four places for each valid object; one look a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, uncounted_kernel
from skyband.kernels.pieces import home_of

Records = NDArray[Any]
NAME, GROUP, STAMPS = range(3)  # of a place: its columns; as many stamps as there are parts
FREE = -1  # group of a free place
NEW = np.iinfo(np.int64).min  # stamp of a part that has not come


@close
def entry_of(table: Records, name: np.int64, group: np.int64) -> Any:
    mask = len(table) - 1
    place = home_of(name, group, mask)
    while table[place, GROUP] >= 0 and (table[place, NAME] != name or table[place, GROUP] != group):
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
    log: Records,  # by judged row: the stamp that was written over, and what it was; place -1: none. Empty: no log
) -> Any:
    """Reject rows whose (id, part) has a valid row already, from row `begin` of those to be judged; where it stops."""
    timed, noted, width = len(times) > 0, len(log) > 0, table.shape[1]
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
        place, column = entry_of(table, names[r], g), STAMPS + parts[r]
        if table[place, GROUP] < 0:
            used[0] += 1
            table[place, NAME], table[place, GROUP] = names[r], g
            for i in range(STAMPS, width):
                table[place, i] = NEW
        elif table[place, column] > now - length:
            rejected[r] = True
            continue
        if noted:
            log[j, 0], log[j, 1] = place * width + column, table[place, column]
        table[place, column] = stamp
        if not timed:
            counts[g] += 1
    return len(rows)


@uncounted_kernel
def undo(table: Records, log: Records) -> None:
    """As if the rows had never been judged; new objects stay, without a part. table: flat."""
    for j in range(len(log) - 1, -1, -1):
        if log[j, 0] >= 0:
            table[log[j, 0]] = log[j, 1]


@uncounted_kernel
def lay_out(old: Records, bounds: Records, table: Records) -> Any:
    """The objects that have not expired, in an empty table; bounds: by group; how many there are."""
    used, width = 0, table.shape[1]
    for i in range(len(old)):
        g = old[i, GROUP]
        if g < 0:
            continue
        newest = NEW
        for j in range(STAMPS, width):
            newest = max(newest, old[i, j])
        if newest > bounds[g]:
            place = entry_of(table, old[i, NAME], g)
            for j in range(width):
                table[place, j] = old[i, j]
            used += 1
    return used
