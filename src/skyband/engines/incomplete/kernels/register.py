"""The valid rows by group, id and part: without `repeat` a second row of a part is rejected.

A log of rows in the order in which they came, each linked to the one before it with the same hash of group and id;
of parts that are not named in advance, of the part too, since an id may have any number of them. Nothing is taken
out when it expires; when the log is full, what is still valid begins a new one. So most lookups are of what was
written last. Rows are validated before it is certain that they are taken: the log can be cut again.

Cost: 40 bytes a row and 4 for its hash, two to four times as many as are valid; a look at the last row of the id, and
at those before it only if one of them may have been of the same part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import close, uncounted_kernel
from skyband.kernels.hashes import slot_of

Records = NDArray[Any]
UNKNOWN = -(2**31)
LINE = np.dtype(
    [
        ("name", "i8"),
        ("stamp", "i8"),
        ("group", "i4"),
        ("part", "i4"),
        ("older", "i4"),  # the line before it with the same hash; -1: none
        ("object", "i4"),  # the engine's object; in the batch that is being validated: ~ the row; or UNKNOWN
        ("seen", "i8"),  # bit part % 64: it may be the part of this line, or of one before it with the same id
    ],
    align=True,
)
SIZE, NEXT, BY_PART = range(3)  # of the log; the next row to be validated; 1: hashes are of parts too


class Log(NamedTuple):
    lines: Records
    heads: Records  # by hash: the last line
    facts: Records


class Rows(NamedTuple):
    """A batch that is to be validated."""

    names: Records
    parts: Records
    groups: Records
    rows: Records  # those to be validated, in order
    times: Records  # empty: count windows
    clocks: Records
    counts: Records  # count windows: the next number of each group; goes on
    brings: Records  # by row: whether it brings a part; others only move the window
    rejected: Records  # by row
    most: int  # so many rows of one part may be valid together
    links: Records  # by row: the `object` of the last row of the same id; count windows: valid before this step


@close
def slot_in(log: Log, name: Any, group: Any, part: Any) -> Any:
    """The place of the hash of a row."""
    return slot_of(name ^ (log.facts[BY_PART] * (np.int64(part) << 32)), group, len(log.heads) - 1)


@close
def slot_of_line(log: Log, place: int) -> Any:
    line = log.lines[place]
    return slot_in(log, line["name"], line["group"], line["part"])


@close
def link(log: Log, place: int) -> None:
    slot = slot_of_line(log, place)
    log.lines[place]["older"] = log.heads[slot]
    log.heads[slot] = place


@uncounted_kernel
def validate_rows(log: Log, batch: Rows, length: int, limit: int) -> Any:
    """Reject rows if their (id, part) has as many valid rows as it may; returns False when the log is full.

    limit: time windows; rows as late as this are not validated. The next call goes on from `facts[NEXT]`.
    """
    lines, heads, facts, links = log.lines, log.heads, log.facts, batch.links
    timed, end = len(batch.times) > 0, facts[SIZE]
    for j in range(facts[NEXT], len(batch.rows)):
        if end == len(lines):
            facts[SIZE], facts[NEXT] = end, j
            return False
        r = batch.rows[j]
        if not batch.brings[r]:
            if not timed:
                batch.counts[batch.groups[r]] += 1
            continue
        g, name, p = batch.groups[r], batch.names[r], batch.parts[r]
        if timed:
            now, stamp = max(batch.clocks[r], batch.times[r]), batch.times[r]
            if now - stamp >= limit:
                continue
        else:
            now = stamp = batch.counts[g]
        slot, gone = slot_in(log, name, g, p), now - length + timed  # what is older has gone before this step
        first = place = heads[slot]
        bit = np.int64(1) << (p & 63)
        seen, alike = bit, 0
        while place >= 0:
            line = lines[place]
            if line["group"] == g:
                if line["stamp"] >= gone:
                    if line["name"] == name:
                        if links[r] == UNKNOWN:
                            links[r] = line["object"]
                        seen |= line["seen"]
                        if not line["seen"] & bit:
                            break
                        if line["part"] == p and line["stamp"] > now - length:
                            alike += 1
                            if alike == batch.most:
                                batch.rejected[r] = True
                                break
                elif not timed:  # so have those before it
                    break
            place = line["older"]
        if batch.rejected[r]:
            continue
        line = lines[end]
        line["name"], line["stamp"], line["group"], line["part"] = name, stamp, g, p
        line["older"], line["object"], line["seen"] = first, ~r, seen
        heads[slot] = end
        end += 1
        if not timed:
            batch.counts[g] += 1
    facts[SIZE], facts[NEXT] = end, len(batch.rows)
    return True


@uncounted_kernel
def set_owners(log: Log, begin: int, owners: Records) -> None:
    """Lines of the last batch get the objects that own their rows."""
    for place in range(begin, log.facts[SIZE]):
        row = ~log.lines[place]["object"]
        if 0 <= row < len(owners):
            log.lines[place]["object"] = owners[row]


@uncounted_kernel
def undo(log: Log, size: int, end: int) -> None:
    """Cut the lines from `size` to `end`, as if they had never been written."""
    lines, heads = log.lines, log.heads
    for place in range(end - 1, size - 1, -1):
        heads[slot_of_line(log, place)] = lines[place]["older"]
    log.facts[SIZE] = size


@uncounted_kernel
def copy_valid(lines: Records, bounds: Records, log: Log) -> None:
    """Write the lines that have not expired into an empty log. bounds: by group."""
    size = 0
    for i in range(len(lines)):
        if lines[i]["stamp"] > bounds[lines[i]["group"]]:
            log.lines[size] = lines[i]
            link(log, size)
            size += 1
    log.facts[SIZE] = size
