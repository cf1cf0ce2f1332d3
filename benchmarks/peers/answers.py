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
    return walked(Oracle(query(p), id="id", time="time"), stream, p)


def monitored(stream: Stream, p: Mapping[str, Any]) -> Answers:
    """The Monitor's answers, read at the same instants."""
    return walked(sb.Monitor(query(p), id="id", time="time"), stream, p)


def in_time(stream: Stream) -> Stream:
    """The rows by time, as they would have come had none been late."""
    order = np.argsort(stream["time"], kind="stable")
    return {name: column[order] for name, column in stream.items()}


def walked(machine: Any, stream: Stream, p: Mapping[str, Any]) -> Answers:
    """Rows until one reaches a window's end, then the answers of that window; late rows come when they come."""
    rows = rows_of(stream)
    found: Answers = {}
    if "slide" not in p:
        machine.push(rows)
        return _read(machine, 0, found)
    clock = np.maximum.accumulate(_times(stream))
    begin = 0
    for end in ends(stream, p):
        upto = int(np.searchsorted(clock, end))
        machine.push(rows[begin:upto])
        machine.advance(np.datetime64(end - TICK, "us").item())
        _read(machine, end, found)
        begin = upto
    return found


def at_arrivals(stream: Stream, p: Mapping[str, Any]) -> Answers:
    """The Monitor's answers of a key at each instant at which a row of that key came."""
    monitor = sb.Monitor(query(p), id="id", time="time")
    rows, times = rows_of(stream), _times(stream)
    found: Answers = {}
    for time, some in itertools.groupby(zip(times.tolist(), rows, strict=True), key=lambda one: one[0]):
        came = [row for _, row in some]
        monitor.push(came)
        for key in {row["key"] for row in came}:
            found[time, key] = monitor.answer(key=key)["id"].to_pylist()
    return found


def rows_of(stream: Stream) -> list[dict[str, Any]]:
    columns = (column.tolist() for column in stream.values())
    return [dict(zip(stream, values, strict=True)) for values in zip(*columns, strict=True)]


def _times(stream: Stream) -> Any:
    return stream["time"].astype("M8[us]").astype(np.int64)


def ends(stream: Stream, p: Mapping[str, Any]) -> Iterator[int]:
    """The ends of all windows that hold a row."""
    slide, size, times = micros(p["slide"]), micros(p["window"]), _times(stream)
    at = (int(times.min()) // slide + 1) * slide
    while at - size <= int(times.max()):
        yield at
        at += slide


def sampled(given: Answers, stream: Stream, p: Mapping[str, Any], places: int = 200) -> bool:
    """Whether a sample of the answers is what NumPy finds in [end - size, end), rows in order of time and of id."""
    times, size, code = _times(stream), micros(p["window"]), stream["score"] * 2**32 + stream["id"]
    chosen = np.random.default_rng(0).choice(len(given), min(places, len(given)), replace=False)
    asked = [place for number, place in enumerate(given) if number in set(chosen.tolist())]
    for end, key in asked:
        low, high = np.searchsorted(times, [end - size, end])
        mine = code[low:high][stream["key"][low:high] == key]
        if sorted(given[end, key]) != sorted((np.sort(mine)[-p["k"] :] % 2**32).tolist()):
            return False
    return bool(asked)


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


def judged(given: Answers, stream: Stream, p: Mapping[str, Any]) -> tuple[bool, dict[str, float]]:
    """Whether answers are right; of a stream with late rows, whether they lack nothing else, and how many lack some."""
    if not p.get("late"):
        return same(given, expected(stream, p)), {}
    right = _sets(expected(in_time(stream), p))
    times = _times(stream)
    late = set(stream["id"][times < np.maximum.accumulate(times)].tolist())
    lacking = {place: set(ids) - set(given[place]) for place, ids in right.items() if place in given}
    counters: dict[str, float] = {
        "answers": len(right),
        "late_rows": len(late),
        "apart": sum(map(bool, lacking.values())),
        "absent": len(right) - len(lacking),
    }
    return all(one <= late for one in lacking.values()), counters


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
