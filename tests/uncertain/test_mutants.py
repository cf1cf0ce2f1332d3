"""Mutants of the uncertain engines: each must die of the contract suite (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

STEPS, FRONTS, PREFIXES, MARKS = (
    f"engines/uncertain/kernels/{name}.py" for name in ("steps", "front", "prefix", "marks")
)
UNCERTAIN = "engines/uncertain/"
CONTRACT = "tests/uncertain/test_contract.py"


def scenes(only: str) -> tuple[str, ...]:
    return (CONTRACT, "-k", f"equals_the_oracle and ({only})")


DOM = scenes("DOM")
LATE = scenes("DOM and late")
TIES = scenes("(DOM or BS) and ties")
GOLDEN = ("tests/uncertain/test_jin.py", "-k", "enough or windows_of_400 or letter")
QUEUES = ("tests/uncertain/test_jin.py", CONTRACT, "-k", "read_literally or (SCSQ and one)")
STORED = ("tests/uncertain/test_jin.py", "-k", "comes_back")
ALTERNATIVES = (CONTRACT, "-k", "alternatives")

MUTANTS: dict[str, Mutant] = {
    "ties: the older above": (
        FRONTS,
        'one["key"] == key and one["mark"] > pos',
        'one["key"] == key and one["mark"] < pos',
        TIES,
    ),
    "ties in probability: the lower rank": (
        PREFIXES,
        "better = chance > best[j]",
        "better = chance >= best[j]",
        scenes("u-kranks and ties"),
    ),
    "ties of answers: the worse member": (
        PREFIXES,
        "chosen = take > stay ",
        "chosen = take >= stay ",
        scenes("u-topk and ties"),
    ),
    "expiry: a step too late": (STEPS, "if stamp + length > now:", "if stamp + length >= now:", DOM),
    "expiry: of the longest window only": (
        STEPS,
        'view["first"], view["low"] = first, stamp',
        'view["low"] = stamp',
        DOM,
    ),
    "expiry: the front keeps who has left": (
        FRONTS,
        "            take_out(front",
        "            pass  # (front",
        DOM,
    ),
    "arrival: only above the floor": (
        STEPS,
        'affected[o] |= key >= view["floor"]\n                if key',
        'affected[o] |= key > view["floor"]\n                if key',
        TIES,
    ),
    "late: before those of its time": (
        STEPS,
        'if past[head + middle]["stamp"] <= low:',
        'if past[head + middle]["stamp"] < low:',
        LATE,
    ),
    "late: nobody moves on": (STEPS, 'front[j]["mark"] += 1', "pass", LATE),
    "dominance: those a little above the floor go too": (
        FRONTS,
        "key <= floor:\n                forget(past",
        "key <= floor + 1:\n                forget(past",
        GOLDEN,
    ),
    "dominance: one short is enough": (PREFIXES, "enough = many >= k", "enough = many >= k - 1", GOLDEN),
    "threshold: enough too soon": (
        PREFIXES,
        "enough = surely(few, threshold)",
        "enough = surely(few * 0.5, threshold)",
        scenes("pt-k"),
    ),
    "ranks: enough too soon": (
        PREFIXES,
        "enough = surely(most, best[k - 1])",
        "enough = surely(most * 0.5, best[k - 1])",
        GOLDEN,
    ),
    "choices: enough too soon": (PREFIXES, "enough = surely(most, top)", "enough = surely(most * 0.5, top)", GOLDEN),
    "front: cut between equals": (FRONTS, "size += 1\n    if 0 < size < had", "break\n    if 0 < size < had", GOLDEN),
    "front: a used up front is taken for the window": (
        STEPS,
        'if not said[ENOUGH] and state[g]["level"] != -np.inf:',
        "if False:",
        scenes("BS"),
    ),
    "told: everybody enters first": (MARKS, "new = marks[ticket, bit // 64] & mark == 0", "new = True", DOM),
    "told: ranks are not told apart": (
        MARKS,
        "bit = bits + max(rank - 1, 0)",
        "bit = bits",
        scenes("u-kranks and DOM"),
    ),
    "told: a ticket is not given back": (
        FRONTS,
        'forget(one["mark"], free, tally)\n        pasts',
        "pasts",
        DOM,
    ),
    "stored: marks are lost": (
        UNCERTAIN + "synopsis.py",
        'marks = self.marks[past["mark"][told]]',
        'marks = 0 * self.marks[past["mark"][told]]',
        STORED,
    ),
    "queue: D is not asked again": (
        UNCERTAIN + "csq.py",
        "while (one := self.compact(self.fresh)) is not None:  # line 4",
        "if (one := self.compact(self.fresh)) is not None:  # line 4",
        scenes("CSQ-pk"),
    ),
    "queue: one set expires at a time": (
        UNCERTAIN + "csq.py",
        "while sets and _oldest",
        "if sets and _oldest",
        scenes("CCSQ"),
    ),
    "segments: a merge forgets the set": (
        UNCERTAIN + "scsq.py",
        "for t in [*other.more, *other.compact]",
        "for t in [*other.more]",
        scenes("SCSQ"),
    ),
    "buffer: emptied": (UNCERTAIN + "scsq_buffer.py", "self.fresh = by_rank(newest[1:])", "self.fresh = []", QUEUES),
    "alternatives: its own group counts": (
        UNCERTAIN + "exclusive.py",
        "for other in range(at + 1, last + 1):  # all but its own",
        "for other in range(at, last + 1):",
        ALTERNATIVES,
    ),
    "alternatives: a full group is no reason": (
        "engines/uncertain/adapter.py",
        "> 1 + SLACK:",
        "> 2 + SLACK:",
        ALTERNATIVES,
    ),
    "alternatives: who fails where is not counted": (
        UNCERTAIN + "exclusive.py",
        "whole = True",
        "whole = False",
        ALTERNATIVES,
    ),
}


def test_every_mutant_applies() -> None:
    all_apply(MUTANTS.values())


def test_the_package_itself_passes(suite: Suite, tmp_path: Path) -> None:
    passes(scenes("DOM and (anything or late)"), suite, tmp_path)


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(MUTANTS[name], suite, tmp_path)
