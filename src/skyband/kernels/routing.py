"""Routing: the group of a row, its number there, and the order of steps across groups. All linear in the batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import kernel, part, uncounted
from skyband.kernels.prefetch import prefetch

Ints = NDArray[np.int64]
Records = NDArray[Any]


FAR, NEAR = 16, 8  # how many rows ahead memory is fetched
CACHED = 2**14  # so many entries of a table are in the cache anyway


@part
def home_of(key: np.int64, table: Ints) -> np.int64:
    """Where the search for a 64-bit key begins in an open-addressing table of codes."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(len(table) - 1))


@part
def place_of(key: np.int64, table: Ints, keys: Ints) -> np.int64:
    """Where a 64-bit key is, or belongs, in an open-addressing table of codes (-1: free)."""
    mask = len(table) - 1
    place = home_of(key, table)
    while table[place] >= 0 and keys[table[place]] != key:
        place = (place + 1) & mask
    return place


@kernel
def intern(
    wanted: Ints,
    valid: NDArray[np.bool_],  # empty: no nulls
    table: Ints,
    keys: Ints,  # by code
    state: Ints,  # [codes given, the code of null or -1, codes given before these rows]
    codes: Ints,
    seen: Ints,  # for each new code: where it was first seen
    begin: int,
) -> int:
    """Dense codes for 64-bit keys and null, from row `begin` on; returns where there was no room for a new code.

    There is room while the table is at most half full.
    """
    known, start, room = state[0], state[2], min(len(keys), len(table) // 2)
    large = len(table) > CACHED
    for i in range(begin, len(wanted)):
        if large and i + FAR < len(wanted):  # fetch what the rows after this one read
            prefetch(table, home_of(wanted[i + FAR], table), 0)
            code = table[home_of(wanted[i + NEAR], table)]
            if code >= 0:
                prefetch(keys, code, 0)
        if len(valid) and not valid[i]:
            if state[1] < 0:
                if known == room:
                    state[0] = known
                    return i
                state[1] = known
                seen[known - start] = i
                known += 1
            codes[i] = state[1]
            continue
        place = place_of(wanted[i], table, keys)
        if table[place] < 0:
            if known == room:
                state[0] = known
                return i
            table[place] = known
            keys[known] = wanted[i]
            seen[known - start] = i
            known += 1
        codes[i] = table[place]
    state[0] = known
    return len(wanted)


@kernel
def reindex(table: Ints, keys: Ints, state: Ints) -> None:
    """Fill an empty, larger table."""
    for code in range(state[0]):
        if code != state[1]:
            table[place_of(keys[code], table, keys)] = code


@kernel
def drop_last(table: Ints, keys: Ints, state: Ints, size: int) -> None:
    """Know only the first `size` codes again: what came last leaves an open-addressing table as it was before."""
    for code in range(state[0] - 1, size - 1, -1):
        if code == state[1]:
            state[1] = -1
        else:
            table[place_of(keys[code], table, keys)] = -1
    state[0] = size


@kernel
def number(groups: Ints, counts: Ints, out: Ints) -> None:
    """The number of each arrival within its group; `counts` goes on."""
    for i in range(len(groups)):
        out[i] = counts[groups[i]]
        counts[groups[i]] += 1


@kernel
def number_some(groups: Ints, counted: NDArray[np.bool_], counts: Ints, out: Ints) -> None:
    """As `number`, where some rows are not counted: they show the last number given."""
    for i in range(len(groups)):
        counts[groups[i]] += counted[i]
        out[i] = counts[groups[i]] - 1


@kernel
def stable_order(buckets: Ints, size: int) -> Ints:
    """The permutation that sorts by bucket (0 .. size - 1) and keeps the order within each."""
    place = np.zeros(size + 1, np.int64)
    for i in range(len(buckets)):
        place[buckets[i] + 1] += 1
    for b in range(size):
        place[b + 1] += place[b]
    order = np.empty(len(buckets), np.int64)
    for i in range(len(buckets)):
        order[place[buckets[i]]] = i
        place[buckets[i]] += 1
    return order


@kernel
def reorder(records: Records, order: Ints) -> Records:
    """records[order]; NumPy takes 60 ns a record for this."""
    sorted_records = np.empty(len(order), records.dtype)
    for i in range(len(order)):
        sorted_records[i] = records[order[i]]
    return sorted_records


class ChangeColumns(NamedTuple):
    """Changes as columns, one entry for each."""

    query: NDArray[np.int32]
    row: Ints
    instant: Ints
    stamp: Ints
    serial: Ints
    key: NDArray[np.float64]
    diff: NDArray[np.int8]
    first: NDArray[np.bool_]


def empty_columns(size: int) -> ChangeColumns:
    """Columns for so many changes."""
    types = (np.int32, *[np.int64] * 4, np.float64, np.int8, np.bool_)
    columns: Any = [np.empty(size, type_) for type_ in types]
    return ChangeColumns(*columns)


@kernel
def unzip(changes: Records, lanes: int, rows: Ints, begin: int, columns: ChangeColumns) -> None:
    """Write changes into columns, by lane and in order within each; a lane is a query. In blocks they are so already.

    rows: of arrivals whose numbers rise by one, from `begin` on; empty: all changes have their rows.
    """
    if is_by_lane(changes):
        for j in range(len(changes)):
            write_change(changes, j, rows, begin, columns, j)
        return
    pieces = np.empty(len(changes) + 1, np.int64)  # where a stretch of one lane begins
    place, n = np.zeros(lanes + 1, np.int64), 0
    for j in range(len(changes)):
        if j == 0 or changes[j]["visit"] != changes[j - 1]["visit"]:
            pieces[n] = j
            place[changes[j]["visit"] + 1] += 1
            n += 1
    pieces[n] = len(changes)
    for s in range(lanes):
        place[s + 1] += place[s]
    order = np.empty(n, np.int64)
    for piece in range(n):
        s = changes[pieces[piece]]["visit"]
        order[place[s]] = piece
        place[s] += 1
    i = 0
    for to in range(n):
        for j in range(pieces[order[to]], pieces[order[to] + 1]):
            write_change(changes, j, rows, begin, columns, i)
            i += 1


@part
def is_by_lane(changes: Records) -> bool:
    """Whether the changes are in order of lanes."""
    j = 1
    while j < len(changes) and changes[j]["visit"] >= changes[j - 1]["visit"]:
        j += 1
    return j >= len(changes)


@uncounted
def write_change(changes: Records, j: int, rows: Ints, begin: int, columns: ChangeColumns, i: int) -> None:
    """Write change j to row i of the columns."""
    query, row, instant, stamp, serial, key, diff, first = columns
    query[i] = changes[j]["visit"]
    row[i] = changes[j]["row"]
    if len(rows) and changes[j]["row"] < 0:
        row[i] = rows[changes[j]["instant"] - begin]
    instant[i] = changes[j]["instant"]
    stamp[i] = changes[j]["stamp"]
    serial[i] = changes[j]["serial"]
    key[i] = changes[j]["key"]
    diff[i] = changes[j]["diff"]
    first[i] = changes[j]["first"]


@kernel
def lay_out(keys: NDArray[np.float64], stamps: Ints, now: Ints, rows: Ints, order: Ints, out: Records) -> None:
    """Columns as records, in this order (empty: as they are)."""
    for i in range(len(keys)):
        j = order[i] if len(order) else i
        out[i]["key"] = keys[j]
        out[i]["stamp"] = stamps[j]
        out[i]["now"] = now[j]
        out[i]["row"] = rows[j]


@kernel
def find_rows(changes: Records, visits: Records, now: Ints, rows: Ints, joint: bool) -> None:
    """Steps without an arrival of the kernel's own find the row they belong to, within their group's slice.

    Count windows: the arrival whose number the step has. Time windows: the last arrival before the instant, or -1.
    """
    for i in range(len(changes)):
        if changes[i]["row"] < 0:
            begin, high = visits[changes[i]["visit"]]["begin"], visits[changes[i]["visit"]]["end"]
            low = begin
            while low < high:
                middle = (low + high) // 2
                if now[middle] < changes[i]["instant"]:
                    low = middle + 1
                else:
                    high = middle
            if joint:
                changes[i]["row"] = rows[low]
            elif low > begin:
                changes[i]["row"] = rows[low - 1]
