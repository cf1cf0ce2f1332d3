"""Mutants of the incomplete engines: each must die of the contract suite (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

OBJECTS, STEPS, SWEEPING, REGISTER, COUNTING, LEADERS = (
    f"engines/incomplete/kernels/{name}.py" for name in ("objects", "gather", "sweep", "register", "eaa", "leaders")
)
ENGINES = "engines/incomplete/"
CONTRACT = "tests/incomplete/test_contract.py"


def some(only: str) -> tuple[str, ...]:
    return (CONTRACT, "-k", only)


SCENES = some("as_the_oracle and SWEEP")
STREAMS = some("dominated and not EAA and not SLA")
EITHER = some("SWEEP")
LATE = some("late_rows and SWEEP")
ANEW = some("filled_anew and SWEEP")
TIE = some("reach_a_tie and SWEEP")
BACK = some("step_of_its_expiry and SWEEP")
WITHIN = some("within_a_batch and SWEEP")
PLACE = some("takes_the_place and SWEEP")
LARGE = some("large_push")
BUDGET = some("budget_bounds and None")

#: name: (file, what it says, what the mutant says, the tests that it must die of)
MUTANTS: dict[str, Mutant] = {
    "ties: the older above": (
        OBJECTS,
        'higher = other["stamp"] > one["stamp"]',
        'higher = other["stamp"] < one["stamp"]',
        EITHER,
    ),
    "ties of EAA: the older above": (
        LEADERS,
        'higher = store.rows[last]["stamp"] > stamp',
        'higher = store.rows[last]["stamp"] < stamp',
        some("EAA and as_the_oracle"),
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
    "expiry: a front is filled without those that wait": (
        STEPS,
        "join(store, recipe, arrivals, g, a + 1, bound)",
        "pass",
        ANEW,
    ),
    "expiry: time fills a front without those that wait": (
        STEPS,
        "join(store, recipe, arrivals, g, a, bound)",
        "pass",
        ANEW,
    ),
    "expiry: the front keeps who has lost a row": (STEPS, "if oldest <= bound:", "if oldest < bound:", EITHER),
    "expiry: time windows are one longer": (
        STEPS,
        'while group["next"] <= until - asked.length:',
        'while group["next"] < until - asked.length:',
        EITHER,
    ),
    "expiry: nobody fills a front again": (
        STEPS,
        'group["stamp"] > NOWHERE:\n        refill',
        "False:\n        refill",
        ANEW,
    ),
    "dominance: equals go too": (
        SWEEPING,
        'row["stamp"], recipe.highs) < bound',
        'row["stamp"], recipe.highs) <= bound',
        TIE,
    ),
    "dominance: what a part may become is forgotten": (
        SWEEPING,
        'row["stamp"], recipe.highs)',
        'row["stamp"], recipe.lows)',
        STREAMS,
    ),
    "dominance: an instance has its older rows": (
        SWEEPING,
        'o, row["stamp"], recipe.highs)',
        "o, NOWHERE + 1, recipe.highs)",
        STREAMS,
    ),
    "dominance: an object counts as often as it has rows": (
        SWEEPING,
        'note["held"] if note["sweep"] == number else -np.inf',
        "-np.inf",
        some("two_rows and SWEEP"),
    ),
    "dominance of EAA: equals go too": (
        COUNTING,
        'if not counters[q]["best"] < current:',
        'if not counters[q]["best"] <= current:',
        some("EAA"),
    ),
    "threshold: one short is enough": (
        SWEEPING,
        "if full == asked.k else bound",
        "if full >= asked.k - 1 else bound",
        STREAMS,
    ),
    "threshold: the best, not the worst of k": (
        SWEEPING,
        "bound = store.top[0]",
        "bound = store.top[full - 1]",
        STREAMS,
    ),
    "threshold: who was shown is forgotten": (
        SWEEPING,
        '(not one["shown"] and not one["told"])',
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
        'heads[home_of(log[place]["name"], log[place]["group"], len(heads) - 1)] = log[place]["older"]',
        "pass",
        some("raises_changes_nothing"),
    ),
    "repeats: a table laid out anew loses some": (
        REGISTER,
        '["stamp"] > bounds[old[i]["group"]]:',
        '["stamp"] > bounds[old[i]["group"]] + 2:',
        LARGE,
    ),
    "late: at the end of the run": (STEPS, 'rows[place - 1]["stamp"] > stamp:', "False:", LATE),
    "late: the newest of its object": (STEPS, 'if stamp >= objects[o]["stamp"]:', "if True:", LATE),
    "told: always for the first time": (STEPS, 'not one["shown"] & bit', "True", EITHER),
    "told: gone and come back is not new": (STEPS, 'objects[o]["shown"] = 0', "pass", PLACE),
    "told: an expiring row leads to no object": (REGISTER, "now - length + timed", "now - length + 1", BACK),
    "told: who has gone is not found": (STEPS, 'if group["since"] <= bound:', "if False:", WITHIN),
    "told: gone in the step in which it comes back": (STEPS, "<= bound - joint:", "<= bound:", BACK),
    "told: as it is now": (STEPS, 'tell(was["score"],', 'tell(objects[was["object"]]["score"],', EITHER),
    "stored: who was shown is lost": (
        ENGINES + "sweep.py",
        '"shown": (self.objects["shown"][things], counts)',
        '"shown": (0 * self.objects["shown"][things], counts)',
        EITHER,
    ),
    "budget: a tenth more": (
        ENGINES + "budget.py",
        "self.budget - shadows)",
        "self.budget + self.budget // 10)",
        BUDGET,
    ),
    "budget: looked at too late": (
        ENGINES + "budget.py",
        "return max(1, (self._room(group) - self._instances(group)) // 2)",
        "return max(1, 2 * self._room(group) - self._instances(group))",
        BUDGET,
    ),
}


def test_every_mutant_applies() -> None:
    all_apply(MUTANTS.values())


def test_the_package_itself_passes(suite: Suite, tmp_path: Path) -> None:
    passes(some("(SWEEP and oracle) or raises_changes"), suite, tmp_path)


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(MUTANTS[name], suite, tmp_path)
