"""The only clock: contestants take turns, and each turn has its own seed.

Work that is an iterator is timed step by step, too: counters `p50`, `p99` and `slowest` are seconds of a step.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.contestants import CONTESTANTS, Outcome
from benchmarks.experiment import Cell, Entrant
from benchmarks.machine import processor_seconds, processor_ticks
from benchmarks.workloads import WORKLOADS

CLOCKS = {"wall": time.perf_counter, "process": time.process_time}


@dataclass
class Measured:
    """One contestant in one cell: a value per repeat."""

    entrant: Entrant
    seconds: list[float] = field(default_factory=list)
    counters: dict[str, list[float]] = field(default_factory=dict)
    triggers: list[list[dict[str, float]]] = field(default_factory=list)  # on Spark
    right: bool = True


def measure(cell: Cell, seed: int, tick: Callable[[], None] = lambda: None, clock: str = "wall") -> list[Measured]:
    """A B A B ...: repeat r of every contestant has the stream of seed + r; warm-ups are not kept."""
    measured = [Measured(entrant) for entrant in cell.entrants]
    gc.collect()
    for turn in range(-cell.warmups, cell.repeats):
        for one in measured:
            seconds, spent, outcome, right = _run(cell.workload, one.entrant, seed + max(turn, 0), CLOCKS[clock])
            tick()
            if turn < 0:
                continue
            one.seconds.append(seconds)
            one.right &= right
            if outcome.triggers:
                one.triggers.append(outcome.triggers)
            for name, value in ({"cpu_seconds": spent} | outcome.counters).items():
                one.counters.setdefault(name, []).append(value)
    return measured


def _run(workload: str, entrant: Entrant, seed: int, clock: Callable[[], float]) -> tuple[float, float, Outcome, bool]:
    p = entrant.parameters
    stream = WORKLOADS[workload](p.get("fill", 0) + p["rows"], seed, p)
    ready = CONTESTANTS[entrant.call](stream, p)
    gc.disable()
    try:
        before = processor_ticks()
        began = clock()
        result = ready.work()
        steps, result = _stepped(result, clock) if isinstance(result, Iterator) else ({}, result)
        seconds = clock() - began
        spent = processor_seconds(before)
    finally:
        gc.enable()
    outcome = ready.after(result)
    outcome.counters.update(steps)
    return seconds, spent, outcome, outcome.check(stream, p, outcome.answer)


def _stepped(work: Iterator[Any], clock: Callable[[], float]) -> tuple[dict[str, float], list[Any]]:
    """Percentiles of the seconds from the beginning of a step to its result, and all results."""
    results, laps = [], []
    began = clock()
    for one in work:
        laps.append(clock() - began)
        results.append(one)
        began = clock()
    p50, p99, slowest = np.percentile(laps, [50, 99, 100]).tolist()
    return {"p50": p50, "p99": p99, "slowest": slowest, "steps": len(laps)}, results
