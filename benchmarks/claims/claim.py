"""A claim: what a paper says, the experiment, and a rule that computes what was measured and whether it holds.

    @claim("Figure 9: RAPF2 is faster than RAPF", "pripuzic2015-fig9", data="uniform", no="why it does not")
    def _(runs: Runs) -> Finding:
        faster = runs["RAPF"] / runs["RAPF2"]
        return f"{faster} times", faster > 1

The rule returns a text and one truth for each cell (or for each part of the claim): all true, the claim holds; some, it
holds partly; none, it does not. `holds`, `partly` and `no` are remarks that are shown with that verdict only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import store
from benchmarks.claims.values import Rule, Runs, fits
from benchmarks.experiment import EXPERIMENTS, Experiment, load, names

HEAD = ("claim", "measured", "verdict", "run")


@dataclass(frozen=True)
class Claim:
    says: str
    experiment: str
    rule: Rule
    cell: str | None
    parameters: dict[str, Any]
    remarks: dict[str, str]

    def line(self, folder: Path) -> tuple[str, ...]:
        """A line of a table under HEAD."""
        rows = store.read(self.experiment, folder)
        runs = Runs([row for row in rows if self.cell in (None, row.cell)]).at(**self.parameters)
        if not runs.rows:
            self._must_be_in(load(self.experiment, folder=folder_of(self.experiment)))
            return self.says, "", "no stored run", f"`{self.experiment}`"
        try:
            measured, truths = self.rule(runs)
        except (KeyError, ValueError, AssertionError) as error:
            raise ValueError(f"{self.experiment}, {self.says!r}: {error}") from error
        verdict = verdict_of(truths)
        remark = self.remarks.get(verdict.partition(" ")[0], "")
        return self.says, measured, f"**{verdict}**" + (f": {remark}" if remark else ""), origin(self.experiment, rows)

    def _must_be_in(self, experiment: Experiment) -> None:
        """A claim about cells that the experiment does not have is a mistake, not a run to come."""
        cells = [cell for cell in experiment.cells if self.cell in (None, cell.name)]
        if not any(fits(one.parameters, self.parameters) for cell in cells for one in cell.entrants):
            raise ValueError(f"{self.experiment} has no cell {self.cell or ''} {self.parameters} for {self.says!r}")


def verdict_of(truths: list[bool]) -> str:
    assert truths, "a rule must say something"
    if all(truths):
        return "holds"
    return f"partly ({sum(truths)} of {len(truths)})" if any(truths) else "does not hold"


def origin(experiment: str, rows: list[store.Row]) -> str:
    """The experiment, the commit, load and repeats of its run, in a few words."""
    commits = ", ".join(dict.fromkeys(row.commit + ("+" if row.dirty else "") for row in rows))
    loads, repeats = ({row.load for row in rows}, {len(row.seconds) for row in rows})
    load = f"{min(loads):g}" if len(loads) == 1 else f"{min(loads):g} to {max(loads):g}"
    count = f"{min(repeats)}" if len(repeats) == 1 else f"{min(repeats)} to {max(repeats)}"
    once = "repeat" if repeats == {1} else "repeats"
    clock = ", processor time" if rows[0].clock == "process" else ""
    return f"`{experiment}`: {commits}, load {load}, {count} {once}{clock}{_so_far(experiment, rows)}"


def _so_far(experiment: str, rows: list[store.Row]) -> str:
    """How many cells are stored, where a run that goes on has not come to its end; gpu.py has no experiment file."""
    folder = folder_of(experiment)
    if experiment not in names(folder):
        return ""
    there, all_ = len({row.number for row in rows}), len(load(experiment, folder=folder).cells)
    return f", {there} of {all_} cells" if there < all_ else ""


def folder_of(experiment: str) -> Path:
    """Where its file is."""
    return EXPERIMENTS / "papers" if experiment in names(EXPERIMENTS / "papers") else EXPERIMENTS


def claims() -> tuple[list[Claim], Callable[..., Callable[[Rule], Rule]]]:
    """An empty list of claims, and the decorator that adds a rule to it."""
    found: list[Claim] = []

    def claim(
        says: str,
        experiment: str,
        cell: str | None = None,
        /,
        *,
        holds: str = "",
        partly: str = "",
        no: str = "",
        **at: Any,
    ) -> Callable[[Rule], Rule]:
        def add(rule: Rule) -> Rule:
            found.append(Claim(says, experiment, rule, cell, at, {"holds": holds, "partly": partly, "does": no}))
            return rule

        return add

    return found, claim
