"""The right answers: the oracle's at each window's last instant, and those of skyband's own Monitor.

A window [e - size, e) of a peer holds what is valid at e less a tick, so it is the answer of `Last(size)` then.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import skyband as sb
from benchmarks.workloads import Stream
from skyband.oracle import Oracle

MICROS = {"minute": 60_000_000, "hour": 3_600_000_000}
TICK = 1  # a microsecond
# by window end (microseconds; count windows: 0) and key (items: ""): ids, best first
Answers = dict[tuple[int, str], list[int]]


def micros(said: str) -> int:
    number, unit = said.split()
    return int(number) * MICROS[unit.rstrip("s")]


def query(p: Mapping[str, Any]) -> sb.TopK | sb.TopKGroups:
    """The k best rows of each key; with `items` the k keys with the most rows."""
    if p.get("items"):
        return sb.TopKGroups(p["k"], by="count(*)", window=sb.Last(p["window"]), of="key")
    return sb.TopK(p["k"], by="score", window=sb.Last(p["window"]), per="key")


def first(stream: Stream, rows: int) -> Stream:
    return {name: column[:rows] for name, column in stream.items()}


def expected(stream: Stream, p: Mapping[str, Any]) -> Answers:
    """The oracle's answers."""
    return _walk(Oracle(query(p), id="id", time="time"), stream, p)


def monitored(stream: Stream, p: Mapping[str, Any]) -> Answers:
    """The Monitor's answers, read at the same instants."""
    return _walk(sb.Monitor(query(p), id="id", time="time"), stream, p)


def _walk(machine: Any, stream: Stream, p: Mapping[str, Any]) -> Answers:
    """Rows up to each window's end, then its answers."""
    rows = [
        dict(zip(stream, values, strict=True)) for values in zip(*(c.tolist() for c in stream.values()), strict=True)
    ]
    found: Answers = {}
    if "slide" not in p:
        machine.push(rows)
        return _read(machine, 0, found)
    time = stream["time"].astype("M8[us]").astype(np.int64)
    begin = 0
    for end in _ends(time, p):
        upto = int(np.searchsorted(time, end))
        machine.push(rows[begin:upto])
        machine.advance(np.datetime64(end - TICK, "us").item())
        _read(machine, end, found)
        begin = upto
    return found


def _ends(time: Any, p: Mapping[str, Any]) -> Iterator[int]:
    """The ends of all windows that hold a row."""
    slide, size = micros(p["slide"]), micros(p["window"])
    at = (int(time[0]) // slide + 1) * slide
    while at - size <= int(time[-1]):
        yield at
        at += slide


def _read(machine: Any, end: int, found: Answers) -> Answers:
    table = machine.answer()
    for row in table if isinstance(table, list) else table.to_pylist():
        found.setdefault((end, row.get("key", "")), []).append(row["id"])
    return found


def same(given: Answers, right: Answers) -> bool:
    """Whether all answers were given, and are right. A peer's k best of a window have no order among them."""
    return _sets(given) == _sets(right)


def so_far(given: Answers, right: Answers) -> bool:
    """Whether the given answers are right, and those of all windows up to some instant were given."""
    last = max((end for end, _ in given), default=0)
    return bool(given) and same(given, {place: ids for place, ids in right.items() if place[0] <= last})


def unanswered(given: Answers, right: Answers) -> int:
    """Windows that hold rows and that no answer came for."""
    return len({end for end, _ in right} - {end for end, _ in given})


def _sets(answers: Answers) -> dict[tuple[int, str], list[int]]:
    return {place: sorted(ids) for place, ids in answers.items()}


def gathered(rows: Iterator[tuple[int, str, int]]) -> Answers:
    """Rows of (end, key, id) as answers."""
    found: Answers = {}
    for place, some in itertools.groupby(sorted(rows), key=lambda row: row[:2]):
        found[place] = [row[2] for row in some]
    return found
