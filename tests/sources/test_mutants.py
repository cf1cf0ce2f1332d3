"""Mutants of questions over answers: each must die of its tests (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

OVER, ORDERED = "monitor/over.py", "engines/topk/ordered_adapter.py"
STEPS, RANKS = "engines/groups/kernels/steps.py", "engines/groups/kernels/ranks.py"
RULES = ("tests/sources/test_steps.py",)

#: name: (file, what it says, what the mutant says, the tests that it must die of)
MUTANTS: dict[str, Mutant] = {
    "a member that moves is as new as its move": (
        "engines/adapter.py",
        'stamps = np.asarray(push.columns["id"])[numbered.rows]',
        "stamps = numbers[0, here]",
        RULES,
    ),
    "a member that moves is new": (
        "engines/topk/kernels/ranks.py",
        'arrivals[a + 1]["shown"] = known == SHOWN',
        'arrivals[a + 1]["shown"] = 0',
        RULES,
    ),
    "moves are reported for good": ("monitor/state.py", "adapter.output.sourced = False", "pass", RULES),
    "objects at rest are known by their rows": (
        "engines/output.py",
        "(changes.instant,) if self.options.inner else AT_REST",
        "AT_REST",
        RULES,
    ),
    "a move is a change": (ORDERED, "diff[entered], stays[left]", "stays[left]", RULES),
    "groups do not tell what moves": (RANKS, "        elif moves:\n", "        elif False:\n", RULES),
    "each change is a step": (
        OVER,
        "    steps[order] = np.cumsum(new)\n",
        "    steps[order] = np.arange(len(new))\n",
        RULES,
    ),
    "expiries after the arrivals of their instant": (
        OVER,
        '2 * np.searchsorted(clocks, instant, "left")',
        '2 * np.searchsorted(clocks, instant, "right")',
        RULES,
    ),
    "what enters, in any order": (
        OVER,
        "np.lexsort((entries, ages, diff > 0, steps))",
        "np.lexsort((entries, -ages, diff > 0, steps))",
        RULES,
    ),
    "moves of members that a query has not seen enter": (
        "engines/adapter.py",
        "validated = replace(validated, accepted=validated.accepted & later)",
        "pass",
        RULES,
    ),
    "a step of groups ends with each row": (
        STEPS,
        "            while batch.joined[end - 1]:",
        "            while False:",
        RULES,
    ),
    "a step is told by its first change": (
        OVER,
        "for_last = taken[np.argsort(said[taken])]",
        "for_last = taken[np.argsort(-said[taken])]",
        RULES,
    ),
}


def test_every_mutant_applies() -> None:
    all_apply(MUTANTS.values())


def test_the_package_itself_passes(suite: Suite, tmp_path: Path) -> None:
    passes(RULES, suite, tmp_path)


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(MUTANTS[name], suite, tmp_path)
