"""Results as JSON lines: one row per cell and contestant, all repeats. A file holds the last whole run.

A run that was stopped leaves `.part`: another can go on from there. A run that goes on also publishes each cell as it
comes: the file then has fewer cells than the experiment, and documents say how many.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Row:
    experiment: str
    cell: str
    number: int  # of the cell in the experiment: rows of one cell were measured in turns
    contestant: str  # its name in the cell
    call: str  # its function
    workload: str
    parameters: dict[str, Any]
    seed: int  # of the first repeat; repeat r has seed + r
    seconds: list[float]  # of every repeat
    right: bool  # in every repeat
    counters: dict[str, list[float]] = field(default_factory=dict)  # by repeat
    triggers: list[list[dict[str, float]]] = field(default_factory=list)  # by repeat, on Spark: rows, ms by phase
    run: str = ""  # when the run began, UTC
    quick: bool = False
    clock: str = "wall"  # or "process"
    commit: str = "unknown"
    dirty: bool = True
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    load: float = 0.0  # processes that were running before this run, on average of a minute


@contextmanager
def writing(experiment: str, folder: Path = RESULTS, kept: Sequence[Row] = ()) -> Iterator[TextIO]:
    """A file for the rows of a run, called .part till the run is over: then, by number, it takes the old one's place.

    It begins with the `kept` ones, all or none of them: a run that goes on can be stopped at any time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{experiment}.jsonl"
    part, draft = path.with_suffix(".jsonl.part"), path.with_suffix(".jsonl.draft")
    _write_all(draft, kept)
    draft.replace(part)
    with part.open("a", encoding="utf-8") as file:
        yield file
    publish(experiment, folder)
    part.unlink()


def publish(experiment: str, folder: Path = RESULTS) -> None:
    """Let the rows of a run so far take the place of the last run's."""
    path = folder / f"{experiment}.jsonl"
    draft = path.with_suffix(".jsonl.draft")
    _write_all(draft, sorted(_read(path.with_suffix(".jsonl.part")), key=lambda row: row.number))
    draft.replace(path)


def _write_all(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            write(file, row)


def write(file: TextIO, row: Row) -> None:
    file.write(json.dumps(asdict(row)) + "\n")
    file.flush()


def read(experiment: str, folder: Path = RESULTS) -> list[Row]:
    """The rows of the last run; none when there was no run."""
    path = folder / f"{experiment}.jsonl"
    return _read(path) if path.exists() else []


def measured_so_far(experiment: str, folder: Path = RESULTS) -> list[Row]:
    """The rows of a run that was stopped, then those of the last whole one."""
    part = folder / f"{experiment}.jsonl.part"
    return (_read(part) if part.exists() else []) + read(experiment, folder)


def _read(path: Path) -> list[Row]:
    """All rows, without a last line that was cut."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [Row(**json.loads(line)) for line in lines if line.endswith("\n")]
