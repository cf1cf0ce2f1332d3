"""Mutants of the incomplete engines: each must die of the contract suite (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

STEPS, DOMINANCE, REGISTER, COUNTERS, FRONTS, LISTS, LINKED, LINKED_STEPS, STORE, PROMISED, FINDERS = (
    f"engines/incomplete/kernels/{name}.py"
    for name in (
        "sweep_steps",
        "sweep",
        "register",
        "eaa",
        "fronts",
        "sla",
        "linked_batches",
        "linked_steps",
        "linked_store",
        "promised",
        "finders",
    )
)
ENGINES = "engines/incomplete/"
FILES = tuple(
    f"tests/incomplete/test_{name}.py"
    for name in ("contract", "dominance", "steps", "any_parts", "promise", "approximation", "input", "sums", "finders")
)


def some(only: str) -> tuple[str, ...]:
    return (*FILES, "-k", only)


SCENES = some("as_the_oracle and SWEEP")
STREAMS = some("dominated and not EAA and not SLA")
EITHER = some("SWEEP")
LATE = some("late_rows and SWEEP")
AGAIN = some("filled_again and SWEEP")
OF_EAA, OF_SLA = some("as_the_oracle and EAA"), some("as_the_oracle and SLA")
TIE = some("reach_a_tie and SWEEP")
BACK = some("step_of_its_expiry and SWEEP")
WITHIN = some("within_a_batch and SWEEP")
PLACE = some("takes_the_place and SWEEP")
LARGE = some("large_push")
TOTALS = some("(rounded_once or another_order) and SWEEP")
FOUND = some("row_that_counts and not SLA")
BUDGET = some("budget_bounds and None")

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
    "where: linked rows keep what fails it": (
        LINKED,
        "event == ARRIVES and batch.brings[n]",
        "event == ARRIVES",
        SCENES,
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
    "max: the columns of the newest row": (
        STORE,
        'if repeat != MOST:\n        return store.objects[o]["serial"]',
        'if True:\n        return store.objects[o]["serial"]',
        FOUND,
    ),
    "max: a shorter answer has the columns of the newest row": (
        STORE,
        'while repeat == MOST and rows[r]["older"] >= 0',
        "while False",
        some("row_with_the_maximum"),
    ),
    "max: the columns of the first part's row": (
        STORE,
        "if r >= 0 and (found < 0 or is_newer(rows, r, found)):",
        "if r >= 0 and found < 0:",
        FOUND,
    ),
    "max: a row that leaves stays the first": (FINDERS, "if store.firsts[at] == r:", "if False:", FOUND),
    "max: a late row is the last of its queue": (
        FINDERS,
        'while other >= 0 and store.rows[other]["stamp"] > store.rows[r]["stamp"]:',
        "while False:",
        FOUND,
    ),
    "max: a late row is never the first": (
        LINKED_STEPS,
        "                store.firsts[at] = r\n",
        "                pass\n",
        FOUND,
    ),
    "max: what expires stays the first": (
        LINKED_STEPS,
        'store.firsts[at] = store.links[r]["next"]',
        "pass",
        FOUND,
    ),
    "max: a late row that a newer one reaches counts": (
        LINKED_STEPS,
        'if newer >= 0 and rows[newer]["value"] >= rows[r]["value"]:',
        "if False:",
        FOUND,
    ),
    "max: no queues after a restore": (
        LINKED,
        "if queues(queries.repeat):\n                append_to_queue",
        "if False:\n                append_to_queue",
        FOUND,
    ),
    "last: the largest is not that of both": (FINDERS, "> store.rows[one]", "< store.rows[one]", FOUND),
    "last: a row that goes takes those below it along": (
        FINDERS,
        "    while pairs >= 0:\n",
        "    while False:\n",
        FOUND,
    ),
    "last: a row that a newer one replaces is in the heap": (
        LINKED_STEPS,
        "                leave_heap(store, V, o * V + v, r)\n",
        "                pass\n",
        FOUND,
    ),
    "last: a late row replaces a newer one": (
        LINKED_STEPS,
        'if other >= 0 and rows[other]["stamp"] > rows[r]["stamp"]:',
        "if False:",
        FOUND,
    ),
    "last: the table is empty after a restore": (
        ENGINES + "linked_rows.py",
        "        find_lasts(self)\n",
        "",
        FOUND,
    ),
    "SLA: an object is listed without a row of the part": (
        LISTS,
        "return store.firsts[at] >= 0",
        "return True",
        some("row_that_counts and SLA"),
    ),
    "max: an answer has the columns of the newest row": (
        ENGINES + "linked_rows.py",
        "if self.repeat != MOST:",
        "if True:",
        some("row_with_the_maximum"),
    ),
    "any parts: a newer row of a part does not replace the last": (
        LINKED_STEPS,
        "        store.lasts[place] = r\n        if other >= 0:",
        "        store.lasts[place] = r\n        if False:",
        some("any_names"),
    ),
    "sum: a row is added twice": (STORE, "by * value)", "2 * by * value)", TOTALS),
    "sum: a row that expires stays in it": (
        LINKED_STEPS,
        'count_in(store, at, rows[r]["value"], -1)',
        "pass",
        TOTALS,
    ),
    "sum: a row that a newer one replaces stays in it": (
        LINKED_STEPS,
        'count_in(store, o * V + v, store.rows[r]["value"], -1)',
        "pass",
        some("any_names"),
    ),
    "sum: a part without rows is 0": (STORE, "if store.sums[at, 0] == 0:", "if False:", TOTALS),
    "sum: what was there before it is computed anew": (
        STORE,
        "    if adds(repeat):\n        empty(store, at)\n",
        "",
        TOTALS,
    ),
    "sum: numbers stay where they were when words are added": (
        ENGINES + "pools.py",
        "1 + need, lowest - low)",
        "1 + need, 0)",
        TOTALS,
    ),
    "sum: words for the values of the first batch": (
        ENGINES + "linked_rows.py",
        "        self._fit_sums(arrivals.keys)\n",
        "        if not self.facts[ROW_COUNT]:\n            self._fit_sums(arrivals.keys)\n",
        TOTALS,
    ),
    "any parts: names are lost": (
        ENGINES + "any_parts.py",
        'records["part"] = codes[starts[of] + records["part"]]',
        'records["part"] = codes[starts[of]]',
        some("any_names"),
    ),
    "any parts: names are mixed up when some are forgotten": (
        ENGINES + "any_parts.py",
        'self.rows["part"][rows] = moved[parts]',
        "pass",
        some("long_stream"),
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
    "promise: nothing is dropped": (
        PROMISED,
        "highest(combination, promise, o, repeat) < bound",
        "False",
        some("drops_rows and SWEEP"),
    ),
    "promise: no row more will come": (PROMISED, "(before + more *", "(before + 0 *", some("promised_rows and SWEEP")),
    "promise: a maximum stays what it is": (
        PROMISED,
        "            value = combination.highs[p]\n",
        "            value = value\n",
        some("promised_rows and SWEEP"),
    ),
    "promise: the best, not the worst of k": (
        PROMISED,
        "bound = promise.top[0]",
        "bound = promise.top[full - 1]",
        some("promised_rows and SWEEP"),
    ),
    "promise: reported objects are forgotten": (
        PROMISED,
        'if store.objects[o]["newest"] != r or not reported:',
        "if True:",
        some("is_not_new_when and SWEEP"),
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
}


def test_every_mutant_applies() -> None:
    all_apply(MUTANTS.values())


def test_the_package_itself_passes(suite: Suite, tmp_path: Path) -> None:
    passes(some("(SWEEP and oracle) or raises_changes"), suite, tmp_path)


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(MUTANTS[name], suite, tmp_path)
