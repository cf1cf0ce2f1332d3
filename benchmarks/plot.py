"""python -m benchmarks.plot [EXPERIMENT ...]: figures, tables of goals and of cycles, from stored rows alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib

from benchmarks import charts, drawing, store, synopses, tables
from benchmarks.experiment import EXPERIMENTS, Experiment, ExperimentError, load, names
from benchmarks.goals import HEAD, judge
from benchmarks.summaries import SUMMARIES

FIGURES = Path(__file__).parent / "figures"
CHARTS = charts.CHARTS | synopses.CHARTS


def plot(experiment: Experiment, rows: list[store.Row], folder: Path) -> list[Path]:
    """Draw the experiment's figure, and write its goals as a table; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    if experiment.figure is not None:
        if experiment.figure not in CHARTS:
            there = ", ".join(CHARTS)
            raise ExperimentError(f"{experiment.name}: no chart {experiment.figure!r}. There are: {there}.")
        path = folder / f"{experiment.name}.png"
        with matplotlib.rc_context(drawing.STYLE):
            figure = CHARTS[experiment.figure](experiment, rows)
            figure.savefig(path, metadata={"Software": None})
        made.append(path)
    if experiment.table is not None:
        path = folder / f"{experiment.name}.md"
        path.write_text(tables.TABLES[experiment.table](), encoding="utf-8")
        made.append(path)
    if experiment.figure in SUMMARIES:
        path = folder / f"{experiment.name}.md"
        lines = [experiment.about, "", drawing.origin(rows), *SUMMARIES[experiment.figure](rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        made.append(path)
    verdicts = judge(experiment, rows)
    if verdicts:
        path = folder / f"{experiment.name}.md"
        table = [HEAD, ("---",) * len(HEAD), *(one.cells for one in verdicts)]
        lines = [experiment.about, "", drawing.origin(rows), ""] + [f"| {' | '.join(line)} |" for line in table]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        made.append(path)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plot", description="Draw what is stored.")
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="default: all")
    parser.add_argument("--results", type=Path, default=store.RESULTS, help="folder of the rows")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="folder for the figures")
    parser.add_argument("--from", type=Path, default=EXPERIMENTS, dest="source", help="folder of experiments")
    said = parser.parse_args(arguments)
    matplotlib.use("Agg")
    try:
        for name in said.experiments or names(said.source):
            experiment = load(name, folder=said.source)
            rows = store.read(name, said.results)
            if not rows and experiment.measured:
                print(f"{name}: no results yet. Run: python -m benchmarks.run {name}", file=sys.stderr)
                continue
            for path in plot(experiment, rows, said.figures):
                print(path.name, file=sys.stderr)
    except ExperimentError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
