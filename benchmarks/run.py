"""python -m benchmarks.run [EXPERIMENT ...] [--quick] [--go-on]: measure, store, and say which goals were met.

With --go-on cells that are stored already are not measured again, and each new one is stored as it comes: a run that
was stopped goes on where it was.

A missed goal is data: the exit code is 0. It is 1 for a wrong answer, 2 for an experiment that cannot be run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import store
from benchmarks.experiment import EXPERIMENTS, Cell, Experiment, ExperimentError, load, usual
from benchmarks.goals import HEAD, judge
from benchmarks.machine import ROOT, commit, machine, versions
from benchmarks.measure import measure
from benchmarks.workloads import Missing

QUICK = ROOT / "out" / "bench-quick"  # quick figures say nothing: they never replace stored results


def run(experiment: Experiment, folder: Path, *, quick: bool = False, go_on: bool = False) -> list[store.Row]:
    """Measure every cell, or with `go_on` those that are not stored yet, and store its rows as they come."""
    stored = store.measured_so_far(experiment.name, folder) if go_on else []
    kept = {
        number: [replace(row, number=number) for row in rows_of(cell, experiment, stored, quick)]
        for number, cell in enumerate(experiment.cells)
    }
    found, dirty = commit()
    common: dict[str, Any] = {
        "run": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "clock": experiment.clock,
        "commit": found,
        "dirty": dirty,
        "versions": versions(),
        "machine": machine(),
        "load": round(os.getloadavg()[0], 1),
    }
    rows: list[store.Row] = []
    console = Console(stderr=True)
    turns = sum((cell.warmups + cell.repeats) * len(cell.entrants) for cell in experiment.cells)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with (
        store.writing(experiment.name, folder, [row for some in kept.values() for row in some]) as file,
        Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress,
    ):
        task = progress.add_task(experiment.name, total=turns)
        for number, cell in enumerate(experiment.cells):
            progress.update(task, description=f"{experiment.name}: {cell.name} {_point(cell)}".rstrip())
            if kept[number]:
                progress.advance(task, (cell.warmups + cell.repeats) * len(cell.entrants))
                rows += kept[number]
                continue
            try:
                done = measure(cell, experiment.seed, lambda: progress.advance(task), experiment.clock)
            except Missing as missing:
                print(f"{cell.name} {_point(cell)}: skipped: {missing}", file=sys.stderr, flush=True)
                continue
            for one in done:
                row = store.Row(
                    experiment=experiment.name,
                    cell=cell.name,
                    number=number,
                    contestant=one.entrant.name,
                    call=one.entrant.call,
                    workload=cell.workload,
                    parameters=one.entrant.parameters,
                    seed=experiment.seed,
                    seconds=one.seconds,
                    right=one.right,
                    counters=one.counters,
                    triggers=one.triggers,
                    **common,
                )
                store.write(file, row)
                rows.append(row)
            if go_on:
                store.publish(experiment.name, folder)
            if not console.is_terminal:
                print(_line(cell, rows, number), file=sys.stderr, flush=True)
    return rows


def rows_of(cell: Cell, experiment: Experiment, stored: list[store.Row], quick: bool) -> list[store.Row]:
    """The stored rows of a cell, if there is one for each contestant, measured as the experiment now says."""
    found = []
    for one in cell.entrants:
        wanted = (cell.name, one.name, one.call, cell.workload, one.parameters, experiment.seed, cell.repeats, quick)
        said = [row for row in stored if wanted == _identity(row) and row.clock == experiment.clock and row.right]
        found += said[:1]
    return found if len(found) == len(cell.entrants) else []


def _identity(row: store.Row) -> tuple[Any, ...]:
    return row.cell, row.contestant, row.call, row.workload, row.parameters, row.seed, len(row.seconds), row.quick


def report(experiment: Experiment, rows: list[store.Row]) -> None:
    """What came out, on stdout."""
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    if not rows:
        return
    verdicts = judge(experiment, rows)
    if verdicts:
        table = Table(*HEAD, title=f"{experiment.name}: {experiment.about}", title_justify="left")
        for one in verdicts:
            table.add_row(*one.cells, style=None if one.met else "bold red")
        console.print(table)
        missed = [one for one in verdicts if not one.met]
        small = " Quick sizes: these figures say nothing." if rows[0].quick else ""
        console.print(f"{len(verdicts) - len(missed)} of {len(verdicts)} goals met.{small}")
        for one in missed:
            console.print(f"MISSED: {one.says}: {one.said(one.measured)}, {one.limit}", style="bold red")
    busy, cores = rows[0].load, rows[0].machine["cores"]
    if busy > cores / 2:
        console.print(f"The machine was busy (load {busy} on {cores} cores): trust ratios, not seconds.")
    for row in rows:
        if not row.right:
            console.print(f"WRONG ANSWER: {row.contestant} in {row.cell} {row.parameters}", style="bold red")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Measure and store.")
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="default: all but the `default = false`")
    parser.add_argument("--quick", action="store_true", help="small sizes, stored in out/bench-quick")
    parser.add_argument("--go-on", action="store_true", help="measure only the cells that are not stored yet")
    parser.add_argument("--results", type=Path, help="folder for the rows (default: benchmarks/results)")
    parser.add_argument("--from", type=Path, default=EXPERIMENTS, dest="source", help="folder of experiments")
    said = parser.parse_args(arguments)
    folder = said.results or (QUICK if said.quick else store.RESULTS)
    pa.set_cpu_count(1)  # one core, like the yardsticks
    wrong = False
    try:
        chosen = said.experiments or usual(said.source)
        for experiment in [load(name, quick=said.quick, folder=said.source) for name in chosen]:
            if not experiment.measured:
                print(f"{experiment.name}: nothing to measure. Run: python -m benchmarks.plot", file=sys.stderr)
                continue
            rows = run(experiment, folder, quick=said.quick, go_on=said.go_on)
            report(experiment, rows)
            wrong |= not all(row.right for row in rows)
    except ExperimentError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    return int(wrong)


def _line(cell: Cell, rows: list[store.Row], number: int) -> str:
    times = ", ".join(
        f"{row.contestant} {statistics.median(row.seconds):.3g} s" for row in rows if row.number == number
    )
    return f"{cell.name} {_point(cell)}: {times}"


def _point(cell: Cell) -> str:
    return " ".join(f"{name}={value}" for name, value in cell.parameters.items())


if __name__ == "__main__":
    sys.exit(main())
