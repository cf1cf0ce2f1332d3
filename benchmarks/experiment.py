"""Experiment files: cells to measure, their workloads and contestants, and goals. Values only."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import contestants, tables, workloads

HERE = Path(__file__).parent
EXPERIMENTS = HERE / "experiments"
Parameters = dict[str, Any]


class ExperimentError(ValueError):
    """An experiment file says something that cannot be run."""


@dataclass(frozen=True)
class Entrant:
    """A contestant in a cell: its name there, its function in contestants.py, all its parameters."""

    name: str
    call: str
    parameters: Parameters


@dataclass(frozen=True)
class Cell:
    """Contestants that take turns on one workload: each repeat runs every one of them once."""

    name: str
    workload: str
    parameters: Parameters
    entrants: tuple[Entrant, ...]
    repeats: int = 5
    warmups: int = 1


@dataclass(frozen=True)
class Goal:
    """A measure of one contestant, or its ratio to another's in the same repeat, has a limit."""

    says: str
    cell: str
    of: str
    measure: str = "seconds"  # "seconds", "seconds per row", "rows per second", or the name of a counter
    over: str | None = None
    at_most: float | None = None
    at_least: float | None = None


@dataclass(frozen=True)
class Experiment:
    name: str
    about: str
    cells: tuple[Cell, ...]
    goals: tuple[Goal, ...] = ()
    figure: str | None = None  # a function of charts.py
    table: str | None = None  # a function of tables.py: computed, so there are no cells
    seed: int = 0
    default: bool = True  # False: run only when named
    clock: str = "wall"  # or "process": contestants of one thread on a machine that others use

    @property
    def measured(self) -> bool:
        """Whether there is something to run; what is computed is only drawn."""
        return bool(self.cells)


def names(folder: Path = EXPERIMENTS) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml"))


def usual(folder: Path = EXPERIMENTS) -> list[str]:
    """Those that run when none is named: measured, and not `default = false`."""
    there = [load(name, folder=folder) for name in names(folder)]
    return [one.name for one in there if one.default and one.measured]


def load(name: str, *, quick: bool = False, folder: Path = EXPERIMENTS) -> Experiment:
    """Read `folder/name.toml`. `quick` shrinks it by its own `quick` tables, to a run of seconds."""
    path = folder / f"{name}.toml"
    if not path.is_file():
        raise ExperimentError(f"there is no experiment {name!r}. There are: {', '.join(names(folder))}.")
    try:
        return _experiment(tomllib.loads(path.read_text(encoding="utf-8")), path, quick)
    except (tomllib.TOMLDecodeError, ExperimentError) as error:
        raise ExperimentError(f"{path.name}: {error}") from error


def _experiment(said: Mapping[str, Any], path: Path, quick: bool) -> Experiment:
    computed = "computed" in said
    known = (
        {"about", "figure", "table", "computed"}
        if computed
        else {"about", "seed", "figure", "default", "clock", "cells", "goals"}
    )
    _known("the experiment", said, known, {"about"} if computed else {"about", "cells"})
    if said.get("clock", "wall") not in ("wall", "process"):
        raise ExperimentError(f'clock = {said["clock"]!r} must be "wall" or "process".')
    if "table" in said:
        _function("table", said["table"], tables.TABLES)
    cells = tuple(cell for one in said.get("cells", ()) for cell in _cells(one, quick))
    goals = tuple(_goal(one) for one in said.get("goals", ()))
    left_out = {one["name"] for one in said.get("cells", ())} - {cell.name for cell in cells}
    for goal in goals:
        for name in (goal.of, goal.over):
            if name is not None and goal.cell not in left_out and not _takes_part(name, goal.cell, cells):
                raise ExperimentError(f"goal {goal.says!r}: no contestant {name!r} in a cell {goal.cell!r}.")
    return Experiment(
        name=path.stem,
        about=said["about"],
        cells=cells,
        goals=tuple(goal for goal in goals if goal.cell not in left_out),
        figure=said.get("figure"),
        table=said.get("table"),
        default=said.get("default", True),
        seed=said.get("seed", 0),
        clock=said.get("clock", "wall"),
    )


def _cells(said: Mapping[str, Any], quick: bool) -> list[Cell]:
    """One cell for each point of the grid: a parameter that is a list is an axis."""
    known = {"name", "workload", "parameters", "contestants", "repeats", "warmups", "quick"}
    _known(f"cell {said.get('name')!r}", said, known, {"name", "workload", "contestants"})
    smaller = said.get("quick", {})
    if quick and smaller is False:
        return []
    _function("workload", said["workload"], workloads.WORKLOADS)
    parameters = said.get("parameters", {}) | (smaller if quick else {})
    axes = {name: value if isinstance(value, list) else [value] for name, value in parameters.items()}
    repeats, warmups = said.get("repeats", 5), said.get("warmups", 1)
    cells = []
    for point in itertools.product(*axes.values()):
        at = dict(zip(axes, point, strict=True))
        entrants = tuple(_entrant(one, at, quick) for one in said["contestants"])
        if len({one.name for one in entrants}) < len(entrants):
            raise ExperimentError(f'cell {said["name"]!r} has two contestants of one name. Use as = "...".')
        if quick:
            repeats, warmups = 1, 0
        cells.append(Cell(said["name"], said["workload"], _resolved(at), entrants, repeats, warmups))
    return cells


def _entrant(said: str | Mapping[str, Any], at: Parameters, quick: bool) -> Entrant:
    """A function's name, or a table: call, as (its name here), quick, and parameters of its own."""
    own: Parameters = {"call": said} if isinstance(said, str) else dict(said)
    call, smaller = own.pop("call", ""), own.pop("quick", {})
    _function("contestant", call, contestants.CONTESTANTS)
    name = own.pop("as", call)
    return Entrant(name, call, _resolved(at | own | (smaller if quick else {})))


def _resolved(parameters: Parameters) -> Parameters:
    """Parameters, where the name of another parameter stands for its value: fill = "n"."""
    return {
        name: parameters.get(value, value) if isinstance(value, str) else value for name, value in parameters.items()
    }


def _goal(said: Mapping[str, Any]) -> Goal:
    known = {"says", "cell", "of", "measure", "over", "at_most", "at_least"}
    _known(f"goal {said.get('says')!r}", said, known, {"says", "cell", "of"})
    if ("at_most" in said) == ("at_least" in said):
        raise ExperimentError(f"goal {said['says']!r}: give at_most or at_least.")
    return Goal(**said)


def _takes_part(name: str, where: str, cells: Iterable[Cell]) -> bool:
    return any(cell.name == where and any(one.name == name for one in cell.entrants) for cell in cells)


def _known(what: str, said: Mapping[str, Any], known: set[str], needed: set[str]) -> None:
    if unknown := sorted(set(said) - known):
        raise ExperimentError(f"{what} has unknown keys {unknown}. Known: {', '.join(sorted(known))}.")
    if missing := sorted(needed - set(said)):
        raise ExperimentError(f"{what} lacks {', '.join(missing)}.")


def _function(kind: str, name: Any, there: Mapping[str, Any]) -> None:
    if name not in there:
        raise ExperimentError(f"there is no {kind} {name!r}. There are: {', '.join(there)}.")
