"""Mutants of SKETCH: each must die of its tests (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies

KERNEL = "engines/groups/kernels/sketch.py"
BOUND = ("tests/groups/test_sketch.py", "-k", "bound or alone or exactly")
TIES = ("tests/groups/test_sketch.py", "-k", "ties")
CODES = ("tests/groups/test_sketch.py", "-k", "codes")
SURE = ("tests/groups/test_sketch.py", "-k", "precision")

MUTANTS: dict[str, Mutant] = {
    "ties: the older row ranks above": (
        KERNEL,
        'one["serial"] > other["serial"]',
        'one["serial"] < other["serial"]',
        TIES,
    ),
    "ties: whatever their times": (
        KERNEL,
        '    if one["stamp"] != other["stamp"]:\n        return bool(one["stamp"] > other["stamp"])\n',
        "",
        TIES,
    ),
    "a pane leaves one instant late": (
        KERNEL,
        'if pane["start"] + summary.width + summary.length <= instant:',
        'if pane["start"] + summary.width + summary.length < instant:',
        BOUND,
    ),
    "a pane leaves before its last row": (
        KERNEL,
        'if pane["start"] + summary.width + summary.length <= instant:',
        'if pane["start"] + summary.length <= instant:',
        BOUND,
    ),
    "the error of a counter counts": (
        KERNEL,
        'objects[counter["code"]]["total"] += counter["count"] - counter["error"]',
        'objects[counter["code"]]["total"] += counter["count"]',
        BOUND,
    ),
    "a counter that is taken over begins anew": (
        KERNEL,
        'counters[at]["error"] = counters[at]["count"]\n',
        'counters[at]["error"] = counters[at]["count"] = 0.0\n',
        BOUND,
    ),
    "a table with a hole": (KERNEL, "table[hole] = table[place]\n            hole = place", "pass", CODES),
    "new codes bring no heap": (
        KERNEL,
        "            lift(counters, heap, j)\n            table",
        "            table",
        CODES,
    ),
    "unseen objects have nothing": (KERNEL, "    other = unseen\n", "    other = 0.0\n", SURE),
}


def test_every_mutant_applies() -> None:
    all_apply(MUTANTS.values())


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(MUTANTS[name], suite, tmp_path)
