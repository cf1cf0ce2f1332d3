"""Groups of a QueueEngine: the arrays of a synopsis and of its answers, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import NEVER, Ints
from skyband.engines.uncertain.kernels.queue import END, FACTS, FIRST, LOW, RUNS, SET, Stored
from skyband.engines.uncertain.kernels.queue_steps import SHOWN
from skyband.engines.uncertain.kernels.records import RUN, TUPLE, Arena

Records = NDArray[Any]


@dataclass
class Group:
    """One group: its synopsis, its clock and its answers."""

    stored: Stored
    clock: Records  # [GROUP]
    views: Records  # SHOWN, by query
    answers: Arena  # as reported, by query
    entered: list[set[tuple[int, int]]]  # by query, serials and ranks (from 0) that have entered
    most: int = field(default=64)  # of these before those that are gone are removed


def nothing() -> Stored:
    """An empty synopsis."""
    facts = np.zeros(FACTS, np.int64)
    facts[LOW] = -NEVER
    return Stored(arena_of(RUNS), np.zeros(0, SET), np.zeros(0, np.int64), facts)


def arena_of(many: int) -> Arena:
    return Arena(np.empty(0, TUPLE), np.zeros(many, RUN), np.zeros(1, np.int64))


def placed(answers: list[Records]) -> Arena:
    """Runs without free places, one after another."""
    arena = arena_of(len(answers))
    arena.runs["size"] = arena.runs["room"] = sizes_of(answers)
    arena.runs["start"] = arena.runs["head"] = np.cumsum(arena.runs["size"]) - arena.runs["size"]
    arena.used[0] = arena.runs["size"].sum()
    return Arena(np.concatenate([np.empty(0, TUPLE), *answers]), arena.runs, arena.used)


def views_of(many: int) -> Records:
    views = np.zeros(many, SHOWN)
    views["low"], views["floor"], views["due"] = -NEVER, -np.inf, NEVER
    return views


def run_of(stored: Stored, r: int) -> Records:
    """The tuples of a run, not a copy."""
    run = stored.lists.runs[r]
    found: Records = stored.lists.records[run["head"] : run["head"] + run["size"]]
    return found


def set_runs(stored: Stored) -> list[int]:
    """The runs of sets, the oldest first, each followed by that of Lambda."""
    sets = stored.sets[stored.facts[FIRST] : stored.facts[END]]
    return [int(r) for one in sets for r in (one["run"], one["between"])]


def shown(group: Group, q: int) -> Records:
    """The answer as it was reported, a copy."""
    run = group.answers.runs[q]
    found: Records = group.answers.records[run["head"] : run["head"] + run["size"]].copy()
    return found


def sizes_of(lists: list[Any]) -> Ints:
    return np.array([len(one) for one in lists], np.int64)
