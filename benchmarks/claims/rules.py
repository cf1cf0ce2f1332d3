"""Rules that documents name: functions of the folder of results and of the words after the name, which return text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import scale, store
from benchmarks.claims import haghani2009, jin2008, mouratidis2006, pripuzic2015, shen2012
from benchmarks.claims.claim import HEAD, Claim, origin
from benchmarks.claims.values import Runs, Values, said
from benchmarks.experiment import load
from benchmarks.goals import HEAD as GOALS
from benchmarks.goals import judge
from benchmarks.peers.table import cells, compared, frames, late, latency
from skyband.explain import spark_load
from skyband.query.algorithms import algorithms

OF_PEERS = {"frames": frames, "latency": latency, "late": late}
PAPERS = {
    "pripuzic2015": pripuzic2015.CLAIMS,
    "mouratidis2006": mouratidis2006.CLAIMS,
    "jin2008": jin2008.CLAIMS,
    "shen2012": shen2012.CLAIMS,
    "haghani2009": haghani2009.CLAIMS,
}


def all_claims() -> list[Claim]:
    return [one for some in PAPERS.values() for one in some]


def claims(folder: Path, paper: str) -> str:
    """A table of a paper's claims."""
    return table(HEAD, [one.line(folder) for one in PAPERS[paper]])


def goals(folder: Path, experiment: str) -> str:
    """A table of an experiment's goals, and where its rows come from."""
    rows = _rows(folder, experiment)
    lines = [one.cells for one in judge(load(experiment), rows)]
    assert lines, "no goals"
    return f"\n\n{origin(experiment, rows)}:{table(GOALS, lines)}"


def run(folder: Path, experiment: str) -> str:
    """The commit, load and repeats of an experiment's rows."""
    return origin(experiment, _rows(folder, experiment))


def ratio(folder: Path, experiment: str, cell: str, of: str, over: str, measure: str = "") -> str:
    """Of two contestants, by seconds per row or a counter: medians of the repeats, the least to the most of cells."""
    runs = Runs(_rows(folder, experiment)).cell(cell)
    return f"{_of(runs, of, measure) / _of(runs, over, measure)}"


def value(folder: Path, experiment: str, cell: str, of: str, measure: str, unit: str = "") -> str:
    """A counter, or seconds; with a unit (ns, µs, ms, MB) in it."""
    scales = {"": 1.0, "ns": 1e9, "µs": 1e6, "ms": 1e3, "MB": 1e-6}
    found = _of(Runs(_rows(folder, experiment)).cell(cell), of, "" if measure == "seconds per row" else measure)
    return f"{found * scales[unit]}" + (f" {unit}" if unit else "")


def changed(folder: Path, experiment: str, cell: str, contestant: str) -> str:
    """How many times as fast as the version before (benchmarks/alternated)."""
    lines = (folder.parent / "alternated" / f"{experiment}.jsonl").read_text(encoding="utf-8").splitlines()
    found = [one for one in map(json.loads, lines) if (one["cell"], one["contestant"]) == (cell, contestant)]
    (row,) = found
    return said(row["ratio"])


def first_answer(folder: Path, cell: str) -> str:
    """Seconds of a fresh process to its first answer, the second slowest of five (benchmarks/shipped.jsonl)."""
    lines = map(json.loads, (folder.parent / "shipped.jsonl").read_text(encoding="utf-8").splitlines())
    (row,) = (one for one in lines if one["what"] == "first answer" and one["cell"] == cell)
    return f"{sorted(row['seconds'])[-2]:.2g} s"


def peers(folder: Path, what: str) -> str:
    """Tables of docs/compare.md: `compared`, `cells`; `frames`, `latency` and `late` have experiments of their own."""
    if what in OF_PEERS:
        return OF_PEERS[what](_rows(folder, f"peers-{what}"))
    rows = store.read("peers", folder) + store.read("peers-items", folder)
    return {"compared": compared, "cells": cells}[what](rows)


def scale_costs(folder: Path, cost: str) -> str:
    """A cost of the model of docs/scale.md. What `explain` uses must be what the rows give."""
    found, used = f"{scale.fitted(_rows(folder, 'scale'))[cost]:.3g}", f"{getattr(spark_load, cost):.3g}"
    assert found == used, f"{cost} is {found} by the stored rows, and {used} in spark_load"
    return found


def scale_errors(folder: Path, which: str) -> str:
    """A table of predictions: of the runs to `check`, or of those to `fit`."""
    rows = _rows(folder, "scale")
    names = {row.contestant for row in rows if row.cell.startswith(which)}
    lines = [
        (run, what, f"{predicted:.3g}", f"{measured:.3g}", f"{predicted / measured - 1:+.0%}")
        for run, what, predicted, measured in scale.compared(rows)
        if run in names
    ]
    return table(("run", "what", "predicted", "measured", "error"), lines)


def scale_error(folder: Path, run: str, what: str) -> str:
    """How far one prediction is off, in percent."""
    ((predicted, measured),) = (
        (one[2], one[3]) for one in scale.compared(_rows(folder, "scale")) if (one[0], one[1]) == (run, what)
    )
    return f"{abs(predicted / measured - 1):.0%}"


def algorithm_count(folder: Path) -> str:
    """How many algorithms there are, by their table."""
    return str(len(algorithms()))


def table(head: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    """Markdown, with the empty lines around it that it needs."""
    return "\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in (head, ("---",) * len(head), *lines)) + "\n\n"


def _of(runs: Runs, contestant: str, measure: str) -> Values:
    return runs[contestant, measure] if measure else runs[contestant]


def _rows(folder: Path, experiment: str) -> list[store.Row]:
    rows = store.read(experiment, folder)
    assert rows, f"no stored rows of {experiment}"
    return rows


RULES: dict[str, Callable[..., str]] = {
    "algorithms": algorithm_count,
    "claims": claims,
    "goals": goals,
    "run": run,
    "ratio": ratio,
    "value": value,
    "changed": changed,
    "first-answer": first_answer,
    "peers": peers,
    "scale-cost": scale_costs,
    "scale-errors": scale_errors,
    "scale-error": scale_error,
}
