"""Mutants of the uncertain engines: each must die of the contract suite (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

STEPS, FRONT, PREFIX, CHANGES = (
    f"engines/uncertain/kernels/{name}.py" for name in ("steps", "front", "prefix", "changes")
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
STORED = ("tests/uncertain/test_queries.py", "-k", "comes_back")
ALTERNATIVES = (CONTRACT, "-k", "alternatives")
ENDLESS = (CONTRACT, "-k", "windows_without_end")

MUTANTS: dict[str, Mutant] = {
    "ties: the older above": (
        FRONT,
        'one["key"] == key and one["mark"] > pos',
        'one["key"] == key and one["mark"] < pos',
        TIES,
    ),
    "ties in probability: the lower rank": (
        PREFIX,
        "better = chance > best[j]",
        "better = chance >= best[j]",
        scenes("u-kranks and ties"),
    ),
    "ties of answers: the worse member": (
        PREFIX,
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
    "expiry: the front keeps what has left": (
        FRONT,
        "            take_out(front",
        "            pass  # (front",
        DOM,
    ),
    "arrival: only above the floor": (
        STEPS,
        'affected[q] |= key >= view["floor"]\n        if key',
        'affected[q] |= key > view["floor"]\n        if key',
        TIES,
    ),
    "late: before those of its time": (
        FRONT,
        'if window.records[head + middle]["stamp"] <= low:',
        'if window.records[head + middle]["stamp"] < low:',
        LATE,
    ),
    "late: newer positions stay": (STEPS, 'front.records[j]["mark"] += 1', "pass", LATE),
    "dominance: tuples a little above the floor go too": (
        FRONT,
        "key <= floor:\n                free_slot(tuples",
        "key <= floor + 1:\n                free_slot(tuples",
        GOLDEN,
    ),
    "dominance: one short is enough": (PREFIX, "enough = many >= k", "enough = many >= k - 1", GOLDEN),
    "threshold: enough too soon": (
        PREFIX,
        "enough = surely(few, threshold)",
        "enough = surely(few * 0.5, threshold)",
        scenes("pt-k"),
    ),
    "ranks: enough too soon": (
        PREFIX,
        "enough = surely(most, best[k - 1])",
        "enough = surely(most * 0.5, best[k - 1])",
        GOLDEN,
    ),
    "choices: enough too soon": (PREFIX, "enough = surely(most, top)", "enough = surely(most * 0.5, top)", GOLDEN),
    "front: cut between equals": (
        FRONT,
        "size += 1\n    if 0 < size < had",
        "break\n    if 0 < size < had",
        ("tests/uncertain/test_queries.py", "-k", "front_is_cut"),
    ),
    "front: a used up front is taken for the whole window": (
        STEPS,
        'if not enough and group["level"] != -np.inf:',
        "if False:",
        scenes("BS"),
    ),
    "reported: every entry is the first": (
        CHANGES,
        "first = reported.entered[slot, place // 64] & mask == 0",
        "first = True",
        DOM,
    ),
    "reported: ranks are not distinguished": (
        CHANGES,
        "place = bit + max(rank - 1, 0)",
        "place = bit",
        scenes("u-kranks and DOM"),
    ),
    "reported: a slot is not given back": (
        FRONT,
        'free_slot(one["mark"], reported)\n        run',
        "run",
        DOM,
    ),
    "stored: what has entered is lost": (
        UNCERTAIN + "front_engine.py",
        'entered = self.reported.entered[window["mark"][slotted]]',
        'entered = 0 * self.reported.entered[window["mark"][slotted]]',
        STORED,
    ),
    "queue: line 4 is no loop": (
        UNCERTAIN + "csq.py",
        "while (one := self.compact(self.D)) is not None:  # line 4",
        "if (one := self.compact(self.D)) is not None:  # line 4",
        scenes("CSQ-pk"),
    ),
    "queue: one set expires at a time": (
        UNCERTAIN + "csq.py",
        "while sets and _oldest",
        "if sets and _oldest",
        ("tests/uncertain/test_jin.py", "-k", "expire_at_once"),
    ),
    "segments: a merge loses the set": (
        UNCERTAIN + "scsq.py",
        "for t in [*other.between, *other.compact]",
        "for t in [*other.between]",
        scenes("SCSQ"),
    ),
    "buffer: emptied": (UNCERTAIN + "scsq_buffer.py", "self.fresh = by_rank(newest[1:])", "self.fresh = []", QUEUES),
    "alternatives: its own group counts": (
        UNCERTAIN + "exclusive.py",
        "for other in range(at + 1, groups):  # all but its own",
        "for other in range(at, groups):  # with its own",
        ALTERNATIVES,
    ),
    "compact: ties below the set are dropped": (
        UNCERTAIN + "compact.py",
        ">= group.synopsis.floor)",
        "> group.synopsis.floor)",
        ENDLESS,
    ),
    "compact: what ranks below its last but one is dropped": (
        UNCERTAIN + "compact.py",
        "if self.full and t[:3] < self.best[-1][:3]:",
        "if self.full and t[:3] < self.best[-2 if len(self.best) > 1 else -1][:3]:",
        ENDLESS,
    ),
    "alternatives: a full group is no reason": (
        "engines/uncertain/adapter.py",
        "> 1 + SLACK:",
        "> 2 + SLACK:",
        ALTERNATIVES,
    ),
    "alternatives: rows that fail where are not counted": (
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
