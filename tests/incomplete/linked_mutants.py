"""Mutants of the engines whose rows are linked: repeats, promises, parts without names, what finds rows."""

from __future__ import annotations

from incomplete.mutated import (
    ENGINES,
    FINDERS,
    FOUND,
    LINKED,
    LINKED_STEPS,
    PROMISED,
    SCENES,
    STORE,
    TOTALS,
    some,
)
from mutation import Mutant

MUTANTS: dict[str, Mutant] = {
    "where: linked rows keep what fails it": (
        LINKED,
        "event == ARRIVES and batch.brings[n]",
        "event == ARRIVES",
        SCENES,
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
}
