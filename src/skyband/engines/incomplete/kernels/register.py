"""Which (id, part) has a valid row: without `repeat` a second one is rejected.

A log of rows in the order in which they came, each linked to the one before it with the same hash of group and id.
Nothing is taken out when it expires; when the log is full, what is still valid begins a new one. So what is looked for
is mostly what was written last, and rows are judged before it is sure that they are taken: the log is cut again.

Cost: 40 bytes a row and 4 for its hash, two to four times as many as are valid; a look at the last row of the id, and
at those before it only if one of them may have been of the same part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.incomplete.kernels.rows import home_of
from skyband.kernels.compile import close, uncounted_kernel

Records = NDArray[Any]
NOBODY = -(2**31)
LINE = np.dtype(
    [
        ("name", "i8"),
        ("stamp", "i8"),
        ("group", "i4"),
        ("part", "i4"),
        ("older", "i4"),  # the line before it with the same hash; -1: none
        ("object", "i4"),  # what its object is to the engine; in the batch that is judged: ~ the row; NOBODY: not known
        ("seen", "i8"),  # bit part % 64: maybe it is the part of this line, or of one before it with the same id
    ],
    align=True,
)


@close
def link(log: Records, heads: Records, place: int) -> None:
    adapter = home_of(log[place]["name"], log[place]["group"], len(heads) - 1)
    log[place]["older"] = heads[adapter]
    heads[adapter] = place


@uncounted_kernel
def judge_rows(
    log: Records,
    heads: Records,  # by hash: the last line
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
    size: Records,  # of the log
    rejected: Records,  # by row
    links: Records,  # by row: the `object` of the last row of the same id; count windows: valid before this step
) -> Any:
    """Reject rows whose (id, part) has a valid row already, from row `begin` of those to be judged; where it stops."""
    timed, mask, end = len(times) > 0, len(heads) - 1, size[0]
    for j in range(begin, len(rows)):
        if end == len(log):
            size[0] = end
            return j
        r = rows[j]
        g, name, p = groups[r], names[r], parts[r]
        if timed:
            now, stamp = max(clocks[r], times[r]), times[r]
            if now - stamp >= limit:
                continue
        else:
            now = stamp = counts[g]
        adapter, gone = home_of(name, g, mask), now - length + timed  # what is older has gone before this step
        first = place = heads[adapter]
        bit = np.int64(1) << (p & 63)
        seen = bit
        while place >= 0:
            line = log[place]
            if line["group"] == g:
                if line["stamp"] >= gone:
                    if line["name"] == name:
                        if links[r] == NOBODY:
                            links[r] = line["object"]
                        seen |= line["seen"]
                        if not line["seen"] & bit:
                            break
                        if line["part"] == p and line["stamp"] > now - length:
                            rejected[r] = True
                            break
                elif not timed:  # so have those before it
                    break
            place = line["older"]
        if rejected[r]:
            continue
        line = log[end]
        line["name"], line["stamp"], line["group"], line["part"] = name, stamp, g, p
        line["older"], line["object"], line["seen"] = first, ~r, seen
        heads[adapter] = end
        end += 1
        if not timed:
            counts[g] += 1
    size[0] = end
    return len(rows)


@uncounted_kernel
def own(log: Records, begin: int, end: int, owners: Records) -> None:
    """Lines of the batch that was judged last name what owns their rows."""
    for place in range(begin, end):
        row = ~log[place]["object"]
        if 0 <= row < len(owners):
            log[place]["object"] = owners[row]


@uncounted_kernel
def undo(log: Records, heads: Records, begin: int, end: int) -> None:
    """As if the lines from `begin` to `end` had never been written."""
    for place in range(end - 1, begin - 1, -1):
        heads[home_of(log[place]["name"], log[place]["group"], len(heads) - 1)] = log[place]["older"]


@uncounted_kernel
def lay_out(old: Records, bounds: Records, log: Records, heads: Records) -> Any:
    """The lines that have not expired, in an empty log; bounds: by group; how many there are."""
    size = 0
    for i in range(len(old)):
        if old[i]["stamp"] > bounds[old[i]["group"]]:
            log[size] = old[i]
            link(log, heads, size)
            size += 1
    return size
