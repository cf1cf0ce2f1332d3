"""Mutants of the incomplete engines: each must die of the contract suite (tests/mutation.py says how).

Those of linked rows are in linked_mutants.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from incomplete import linked_mutants
from incomplete.mutated import (
    AGAIN,
    BACK,
    BUDGET,
    COUNTERS,
    DOMINANCE,
    EITHER,
    ENGINES,
    FRONTS,
    LARGE,
    LATE,
    LISTS,
    OF_EAA,
    PLACE,
    REGISTER,
    SCENES,
    STEPS,
    STREAMS,
    TIE,
    TOTALS,
    WITHIN,
    some,
)
from mutation import Mutant, Suite, all_apply, chosen, dies, passes

#: name: (file, what it says, what the mutant says, the tests that it must die of)
MUTANTS: dict[str, Mutant] = {
    "ties: the older above": (
        FRONTS,
        'higher = other["stamp"] > one["stamp"]',
        'higher = other["stamp"] < one["stamp"]',
        EITHER,
    ),
    "ties of EAA: the older above": (
        FRONTS,
        'higher = other["stamp"] > one["stamp"]',
        'higher = other["stamp"] < one["stamp"]',
        some("EAA and as_the_oracle"),
    ),
    "NaN: a best score that is none is in order": (
        COUNTERS,
        "best if best == best else np.inf",
        "best",
        some("without_a_score and EAA"),
    ),
    "NaN: a current score that is none is in order": (
        COUNTERS,
        "current if current == current else -np.inf",
        "current",
        some("without_a_score and EAA"),
    ),
    "-inf: an object of this score is not taken out of the front": (
        DOMINANCE,
        "if not before:",
        'if score["best"] > -np.inf:',
        some("minus_infinity and SWEEP"),
    ),
    "expiry: count windows are one longer": (
        STEPS,
        "            bound = now - length\n",
        "            bound = now - length - joint\n",
        EITHER,
    ),
    "expiry: rows stay in the run": (
        STEPS,
        '["stamp"] <= bound:\n        number =',
        '["stamp"] < bound:\n        number =',
        EITHER,
    ),
    "expiry: a front is filled without waiting arrivals": (
        STEPS,
        "join(store, combination, batch, g, a + 1, bound)",
        "pass",
        AGAIN,
    ),
    "expiry: time fills a front without waiting arrivals": (
        STEPS,
        "join(store, combination, batch, g, a, bound)",
        "pass",
        AGAIN,
    ),
    "expiry: the front keeps what has lost a row": (STEPS, "if oldest <= bound:", "if oldest < bound:", EITHER),
    "expiry: time windows are one longer": (
        STEPS,
        'while front["next"] <= until - length:',
        'while front["next"] < until - length:',
        EITHER,
    ),
    "expiry: a front is never filled again": (
        STEPS,
        'front["stamp"] > NOWHERE:\n        refill',
        "False:\n        refill",
        AGAIN,
    ),
    "dominance: equals go too": (
        DOMINANCE,
        'row["stamp"], combination.highs) < bound',
        'row["stamp"], combination.highs) <= bound',
        TIE,
    ),
    "dominance: what a part may become is forgotten": (
        DOMINANCE,
        'row["stamp"], combination.highs)',
        'row["stamp"], combination.lows)',
        STREAMS,
    ),
    "dominance: an instance has its older rows": (
        DOMINANCE,
        'o, row["stamp"], combination.highs)',
        "o, NOWHERE + 1, combination.highs)",
        STREAMS,
    ),
    "dominance: an object counts as often as it has rows": (
        DOMINANCE,
        'mine["score"] if mine["sweep"] == number else -np.inf',
        "-np.inf",
        some("two_rows and SWEEP"),
    ),
    "dominance of EAA: equals go too": (
        COUNTERS,
        'if not each[q]["best"] < current:',
        'if not each[q]["best"] <= current:',
        some("EAA"),
    ),
    "threshold: one short is enough": (
        DOMINANCE,
        "if full == k else bound",
        "if full >= k - 1 else bound",
        STREAMS,
    ),
    "threshold: the best, not the worst of k": (
        DOMINANCE,
        "bound = store.top[0]",
        "bound = store.top[full - 1]",
        STREAMS,
    ),
    "threshold: reported objects are forgotten": (
        DOMINANCE,
        '(not one["shown"] and not one["reported"])',
        "True",
        STREAMS,
    ),
    "repeats: valid a step longer": (
        REGISTER,
        'line["stamp"] > now - length:',
        'line["stamp"] >= now - length:',
        EITHER,
    ),
    "repeats: of any part": (REGISTER, 'line["part"] == p and', "True and", EITHER),
    "repeats: parts of lines before the last are forgotten": (REGISTER, 'seen |= line["seen"]', "pass", EITHER),
    "repeats: what was validated is not undone": (
        REGISTER,
        'heads[slot_of_line(log, place)] = lines[place]["older"]',
        "pass",
        some("raises_changes_nothing"),
    ),
    "repeats: a new log loses some": (
        REGISTER,
        '["stamp"] > bounds[lines[i]["group"]]:',
        '["stamp"] > bounds[lines[i]["group"]] + 2:',
        LARGE,
    ),
    "late: at the end of the run": (STEPS, 'rows[place - 1]["stamp"] > stamp:', "False:", LATE),
    "late: the newest of its object": (STEPS, 'if stamp >= objects[o]["stamp"]:', "if True:", LATE),
    "reports: always for the first time": (STEPS, 'not one["shown"] & bit', "True", EITHER),
    "reports: an object that returns is not new": (STEPS, 'objects[o]["shown"] = 0', "pass", PLACE),
    "reports: an expiring row leads to no object": (REGISTER, "now - length + timed", "now - length + 1", BACK),
    "reports: an expired object is not found": (STEPS, 'if front["since"] <= bound:', "if False:", WITHIN),
    "reports: gone in the step in which it returns": (STEPS, "<= bound - joint:", "<= bound:", BACK),
    "reports: as it is now": (
        STEPS,
        '-1, False, was["score"],',
        '-1, False, store.scores[was["object"]]["score"],',
        EITHER,
    ),
    "stored: what was shown is lost": (
        ENGINES + "sweep.py",
        '"shown": (self.objects["shown"][objects], counts)',
        '"shown": (0 * self.objects["shown"][objects], counts)',
        EITHER,
    ),
    "where: a row that fails it brings its part to SWEEP": (
        STEPS,
        "if batch.brings[a]:\n                o =",
        "if True:\n                o =",
        SCENES,
    ),
    "where: a row that fails it is kept by SWEEP": (STEPS, "if not batch.brings[a]:", "if False:", SCENES),
    "where: a row that fails it is registered": (REGISTER, "if not batch.brings[r]:", "if False:", SCENES),
    "where: a row that fails it has no number": (
        REGISTER,
        "batch.counts[batch.groups[r]] += 1",
        "pass",
        some("only_move and SWEEP"),
    ),
    "where: EAA keeps what fails it": (COUNTERS, "event == ARRIVES and batch.brings[a]", "event == ARRIVES", OF_EAA),
    "where: SLA keeps what fails it": (
        LISTS,
        "event == ARRIVES and batch.brings[n]",
        "event == ARRIVES",
        some("only_move and SLA"),
    ),
    "smallest: the largest": (ENGINES + "combine.py", "not query.descending,", "False,", SCENES),
    "smallest: SLA reads from the worse end": (
        LISTS,
        "down if combination.turned else",
        "down if False else",
        some("few_have_one_part and SLA"),
    ),
    "smallest: SLA takes missing parts for worse ones": (
        LISTS,
        "other[q] = combination.lows[q]",
        "other[q] = depth[q]",
        some("filled_again_from_below and SLA"),
    ),
    "front: TA forgets objects above the threshold": (
        LISTS,
        '                while front["size"] > 0 and not last_above',
        '                front["size"] = most\n                while front["size"] > 0 and not last_above',
        some("filled_again_from_below and SLA"),
    ),
    "SLA: an object is listed without a row of the part": (
        LISTS,
        "return store.firsts[at] >= 0",
        "return True",
        some("row_that_counts and SLA"),
    ),
    "sum: numbers stay where they were when words are added": (
        ENGINES + "pools.py",
        "1 + need, lowest - low)",
        "1 + need, 0)",
        TOTALS,
    ),
    "any parts: the register mixes up names when some are forgotten": (
        ENGINES + "register.py",
        'lines["part"], lines["seen"] = moved[lines["part"]], -1',
        "pass",
        some("long_stream"),
    ),
    "any parts: the register looks where the old names were": (
        ENGINES + "register.py",
        "self._renew(lines, len(self.log.lines), np.full(groups, np.iinfo(np.int64).min))",
        "pass",
        some("long_stream"),
    ),
    "promise: one row more": (
        REGISTER,
        "if alike == batch.most:",
        "if alike > batch.most:",
        some("breaks_the_promise"),
    ),
    "smallest: rows are dominated": (
        ENGINES + "eaa.py",
        "self.repeat == ONCE and not self.combination.turned",
        "self.repeat == ONCE",
        some("(never_missed or from_below) and EAA"),
    ),
    "unbounded: an infinite value is in range": (
        ENGINES + "adapter.py",
        " | np.isinf(values)",
        "",
        some("infinite_value"),
    ),
    "budget: a tenth more": (
        ENGINES + "budget.py",
        "self.budget - shadows)",
        "self.budget + self.budget // 10)",
        BUDGET,
    ),
    "budget: pruned too late": (
        ENGINES + "budget.py",
        "return max(1, (self._capacity(group) - self._instances(group)) // 2)",
        "return max(1, 2 * self._capacity(group) - self._instances(group))",
        BUDGET,
    ),
    **linked_mutants.MUTANTS,
}


def test_every_mutant_applies() -> None:
    all_apply(MUTANTS.values())


def test_the_package_itself_passes(suite: Suite, tmp_path: Path) -> None:
    passes(some("(SWEEP and oracle) or raises_changes"), suite, tmp_path)


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(MUTANTS[name], suite, tmp_path)
