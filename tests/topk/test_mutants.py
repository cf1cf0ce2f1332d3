"""Mutants of the engines of TopK and Above: each must die of the contract suite (tests/mutation.py says how).

`make mutants` runs them all; `make test` every 29th, and looks whether the others still apply. *_mutants.py list them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes
from topk import bound_mutants, family_mutants, pruning_mutants, reader_mutants, run_mutants, window_mutants
from topk.mutated import LEAVE, SA, TABLES, Listed, engines

LISTS = (run_mutants, pruning_mutants, family_mutants, window_mutants, bound_mutants, reader_mutants)

#: name: (file, what it says, what the mutant says, the tests that it must die of: those of SA if none are given)
#: Left out, since any subset of a buffer can be its filter, and what is dominated by K is turned away later: what a
#: filter drops or prunes too early, a second attempt at the bar itself (filters.py, `>`), objects of equal times that
#: stay in a relaxed run (prune.py, `stamp <= recent[0]`), deepening with objects at the old depth (ring.py, `< old`),
#: which are in the run or dominated. `stamp <= bound` of `prune` drops nothing that `purge` has left undominated.
#: Without its margin a limit of odds.py is wrong only where a sum is within 1e-11 of the bound.
#: Left out, since they change only the cost: objects that die within a batch staying in the kept columns (changes.py,
#: `alive[...] = False`), packed runs beginning at their group's start (records.py, `pack`), the side of a run that is
#: shifted (strict.py). Nothing shows: the order of queries in `ordered_changes` (changes are sorted again), and the
#: answers that `refit_skybands` compares (only `replace` reports, and there a query succeeds itself).
MUTANTS: dict[str, Listed] = {name: one for part in LISTS for name, one in part.MUTANTS.items()}


def mutant(name: str) -> Mutant:
    file, said, says, *tests = MUTANTS[name]
    return file, said, says, tests[0] if tests else SA


#: That all tests pass is for the other files to say; here: a copy without a change does not die of being one.
SOUND = (engines("SA", only="everything or short-long"), TABLES, LEAVE)


@pytest.mark.parametrize("tests", SOUND, ids=lambda tests: tests[-1])
def test_the_package_itself_passes(tests: tuple[str, ...], suite: Suite, tmp_path: Path) -> None:
    passes(tests, suite, tmp_path)


def test_every_mutant_applies() -> None:
    all_apply(map(mutant, MUTANTS))


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(mutant(name), suite, tmp_path)


def test_no_two_mutants_have_one_name() -> None:
    assert len(MUTANTS) == sum(len(part.MUTANTS) for part in LISTS)
