"""Mutants of the engines of pairs: each must fail the contract suite (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

BAND, SEARCH, STEPS, REPORTS, ANSWERS, SCORES, NAIVE, PROGRAMS = (
    f"engines/pairs/kernels/{name}.py"
    for name in ("band", "search", "steps", "reports", "answers", "scores", "naive", "programs")
)
BY_BLOCKS, SNAPSHOT, ADAPTER = (f"engines/pairs/{name}.py" for name in ("given_scores", "snapshot", "adapter"))
LIVE, REFILL, LIVE_STORED = (f"engines/pairs/{name}.py" for name in ("live", "refill", "live_snapshot"))
SEARCH_TREE, GROUP = "engines/pairs/kernels/search_tree.py", "engines/pairs/group.py"
LIVE_KERNEL = "engines/pairs/kernels/live.py"
SHARED_WINDOW, SHARING_ADAPTER = (f"engines/pairs/{name}.py" for name in ("shared_window", "sharing_adapter"))
SHARED_LATE, SHARED_PART, PARTED, SWEPT = (
    ("tests/pairs/test_shared_window.py", "-k", test)
    for test in ("late_rows", "part_of_the_attributes", "a_row_that", "restored")
)
GLOBAL = ("tests/pairs/test_global.py",)
TREE = ("tests/pairs/test_shen.py", "-k", "priority_search or example_1")
ALIVE = ("tests/pairs/test_live.py",)
CONTRACT = "tests/pairs/test_contract.py"


def scenes(only: str, test: str = "every_engine") -> tuple[str, ...]:
    return (CONTRACT, "-k", f"{test} and ({only})")


ANY = scenes("SCASE")
SMALL = ("tests/pairs/test_small_steps.py",)
LONG = ("tests/pairs/test_shen.py", "-k", "short_steps and near")
LISTS = ("tests/pairs/test_shen.py", "-k", "short_steps and TA")
CHUNKS = ("tests/pairs/test_shen.py", "-k", "several_chunks and SCASE")
LISTED = ("tests/pairs/test_shen.py", "-k", "lists_have")
BEST_OF_EACH = ("tests/pairs/test_shen.py", "-k", "short_steps and NAIVE")
EDGE = scenes("SCASE or BASIC", "edge")
LATE = ("tests/pairs/test_shen.py", "-k", "late_rows")
GIVEN = scenes("SCASE", "scored_by_blocks")
JOINED = ("tests/pairs/test_programs.py", "-k", "late_rows and SCASE")
BITS = ("tests/pairs/test_programs.py", "-k", "numpys_bits")
CALLED = scenes("SCASE", "functions")
FAILING = ("tests/pairs/test_failing_scorings.py", "-k", "fails_on_the_way or bad_scorings")
GOLDEN = ("tests/pairs/test_shen.py", "-k", "figure or example")

#: Left out, since nothing but the cost changes: steps of the staircase with K - 1 of K pairs (`thin` drops them, unless
#: there are no more pairs: that one is here), `heap[top] > last` (`thin` again), where BASIC stops counting dominators,
#: and NAIVE's heads of windows after a late object (it would only look at an expired object twice).
MUTANTS: dict[str, Mutant] = {
    "ties: the older of the older members above": (
        BAND,
        'return bool(one[i]["old"] > other[j]["old"])',
        'return bool(one[i]["old"] < other[j]["old"])',
        ANY,
    ),
    "ties: the older of the newer members above": (
        BAND,
        'return bool(one[i]["new"] > other[j]["new"])',
        'return bool(one[i]["new"] < other[j]["new"])',
        ANY,
    ),
    "ties: equal keys have no order": (
        BAND,
        'if one[i]["older"] != other[j]["older"]:',
        "if False:",
        SMALL,
    ),
    "dominance: those of one arrival more": (
        BAND,
        "held == K and heap[top] >= place",
        "held == K and heap[top] + 1 >= place",
        LONG,
    ),
    "BASIC: one dominator less": (
        BAND,
        'dominated = band.pairs[slot]["dom"] >= K',
        'dominated = band.pairs[slot]["dom"] >= K - 1',
        LONG,
    ),
    "dominance: of those with the same older member only the newest": (
        BAND,
        "held == K and heap[top] >= place",
        "held >= 1 and heap[top] >= place",
        LONG,
    ),
    "staircase: K - 1 are enough": (BAND, "if held == K and heap[top] > last:", "if held >= K - 1:", EDGE),
    "staircase: newer than the newest": (
        BAND,
        "            last = heap[top]\n",
        "            last = heap[top] + 1\n",
        EDGE,
    ),
    "staircase: one step too far": (
        SEARCH,
        "places[stair - 1] >= base + min(high, at):",
        "places[stair - 1] >= base + min(high, at) - 1:",
        EDGE,
    ),
    "staircase: the strictest of a chunk": (
        SEARCH,
        "skip(buffer, scoring, window, low, right, values, steps[stair])",
        "skip(buffer, scoring, window, low, right, values, steps[0])",
        CHUNKS,
    ),
    "rounded: as if it were not": (SCORES, "slack = widest * 2.0**-21", "slack = 0.0 * widest", CHUNKS),
    "rounded: late ones stay where they are": (STEPS, "window.rough[j, i] = window.rough[j, i - 1]", "pass", LATE),
    "late: the places do not move": (STEPS, 'one["place"] += one["place"] >= late', 'one["place"] += 0', LATE),
    "late: before those of its time": (
        STEPS,
        "window.stamps[at - 1] > stamp:",
        "window.stamps[at - 1] >= stamp:",
        LATE,
    ),
    "expiry: answers keep expired pairs": (
        REPORTS,
        "low, size = views.k[view], now - views.length[view], facts[SIZE]",
        "low, size = views.k[view], now - views.length[view] - 1, facts[SIZE]",
        ANY,
    ),
    "expiry: no answer is due": (STEPS, "(not timed and views.due[view] <= now)", "(not timed and False)", SMALL),
    "expiry: the tree passes over too much": (
        BAND,
        "if band.newest[node] <= low:",
        "if band.newest[node] <= low + 1:",
        ANY,
    ),
    "lists: expired pairs": (ANSWERS, "found += int(old[i] > low)", "found += int(old[i] >= low)", LISTED),
    "lists: of a shorter window": (ANSWERS, "which += lists.low[j] <= low", "which += lists.low[j] <= low + 1", ANY),
    "lists: out of date": (BAND, "    facts[READS] = 0\n", "", ANY),
    "lists: nothing after a full one": (ANSWERS, "lists.end[which], found, k", "facts[SIZE], found, k", LISTED),
    "marking: ties reach no answer": (STEPS, "best >= views.kth[view]", "best > views.kth[view]", ANY),
    "reported: an entering pair was there": (REPORTS, "old[i] > was and ticks[slot] != tick", "old[i] > was", ANY),
    "reported: an expired pair stays": (
        REPORTS,
        "after = found < k and old[i] > low",
        "after = found < k and old[i] >= low",
        SMALL,
    ),
    "reported: the oldest is not": (
        REPORTS,
        "now - length, due - length - 1",
        "now - length, due - length",
        ANY,
    ),
    "reported: every pair enters first": (REPORTS, "first = band.bits[slot, word] & bit == 0", "first = True", LATE),
    "reported: bits of a slot are not cleared": (BAND, "band.bits[slot, j] = 0", "band.bits[slot, j] += 0", LATE),
    "pending: they are not put into the band": (
        STEPS,
        "        if affected and not net:\n            flush(facts, band, scratch)\n",
        "        if affected and not net:\n",
        ANY,
    ),
    "net: a touched answer is saved again": (REPORTS, "    views.touched[view] = 1\n", "", ANY),
    "scoreless: for all windows": (SEARCH, "if views.length[middle] > age:", "if True:", ANY),
    "TA: stops a step too soon": (SEARCH, "sign * total <= bound or", "sign * total <= bound + 0.2 or", LISTS),
    "TA: far ones stop a step too soon": (SEARCH, "sign * total <= bound or", "sign * total * 0.5 <= bound or", LISTS),
    "TA: the near ones only half": (
        SEARCH,
        "if x[middle] - value >= most:",
        "if x[middle] - value >= 0.5 * most:",
        LISTS,
    ),
    "TA: a late row leaves the lists as they were": (STEPS, "        blocks.sorted[block] = 0\n", "", LATE),
    "BASIC: one dominator less is enough": (
        SEARCH,
        "        if dominators < rules.K:\n",
        "        if dominators < rules.K - 1:\n",
        LONG,
    ),
    "NAIVE: a lost pair is not replaced": (
        NAIVE,
        'if pair["older"] == window.serials[gone]:',
        "if False:",
        BEST_OF_EACH,
    ),
    "NAIVE: a late object makes no pairs with newer ones": (
        NAIVE,
        "    end = kept\n",
        "    end, kept = kept, 0\n",
        BEST_OF_EACH,
    ),
    "NAIVE: one of the K best too few": (NAIVE, "if keys[i] >= bound:", "if keys[i] > bound:", BEST_OF_EACH),
    "NAIVE: a pair is kept twice": (NAIVE, "if _is_kept(facts, band, slot):", "if False:", BEST_OF_EACH),
    "scores: the sum is a product": (SCORES, "        elif scoring.form == SUM:\n", "        elif False:\n", LATE),
    "given: one score is off": (SEARCH, "arrival.begin + low + i]", "arrival.begin + low]", CALLED),
    "given: late columns stay where they are": (BY_BLOCKS, "column[place] = late", "pass", LATE),
    "stored: shown bits are lost": (
        SNAPSHOT,
        "group.band.bits[slots].reshape(-1)",
        "0 * group.band.bits[slots].reshape(-1)",
        EDGE,
    ),
    "on: a null is true": (PROGRAMS, "out[i] = out[i] if valid[i] else np.nan", "out[i] = 1.0 + 0.0 * out[i]", JOINED),
    "on: an arrival is never the older": (
        SEARCH,
        "size, turned, scratch.gathered",
        "size, False, scratch.gathered",
        JOINED,
    ),
    "on: what is no pair is counted": (SEARCH, "if passes and keys[i] != keys[i]:", "if keys[i] != keys[i]:", JOINED),
    "on: it is not asked when K best are found again": (
        NAIVE,
        "found = keep_joined(facts, window, state.views, rules.on, scratch, arrival, found)",
        "pass",
        ("tests/pairs/test_programs.py", "-k", "late_rows and NAIVE"),
    ),
    "on: NumPy's is not asked": (BY_BLOCKS, "joined, scores = engine", "joined, scores = ~engine", JOINED),
    "programs: the larger is the least": (PROGRAMS, "y[i] if y[i] < x[i] or", "y[i] if y[i] > x[i] or", BITS),
    "programs: a null is not skipped": (
        PROGRAMS,
        "valid[i] = p[i] or q[i]\n    elif op == AND",
        "valid[i] = p[i] and q[i]\n    elif op == AND",
        BITS,
    ),
    "programs: a case without its condition": (
        PROGRAMS,
        "out[i] = y[i] if x[i] == 1.0 else z[i]",
        "out[i] = y[i]",
        BITS,
    ),
    "live: of equal pairs the older one": (
        LIVE,
        '-pairs["newer"], -pairs["older"]',
        '-pairs["newer"], pairs["older"]',
        ALIVE,
    ),
    "live: ties with the floor are left out": (LIVE, "(keys > key) | ((keys == key) & tied)", "keys > key", ALIVE),
    "live: ties with the floor are not found again": (LIVE_KERNEL, "found += key >= bar", "found += key > bar", ALIVE),
    "live: a pair that comes back is new": (REFILL, "not group.is_shown(pair, query)", "True", ALIVE),
    "live: the view is too short": (REFILL, "or len(group.pairs) >= self.K:", "or len(group.pairs) >= 1:", ALIVE),
    "live: a replaced object stays": (
        REFILL,
        "                group.remove(held)\n            serial",
        "                pass\n            serial",
        ALIVE,
    ),
    "live: reported under another name": (REFILL, "bits >> was & 1", "bits >> query & 1", ALIVE),
    "live: ineligible objects are members": (
        LIVE,
        "np.flatnonzero(self.eligible[: self.size - 1])",
        "np.arange(self.size - 1)",
        ALIVE,
    ),
    "live: what is found again need be no pair": (
        LIVE_KERNEL,
        "        if len(rules.on.code):\n",
        "        if False:\n",
        ALIVE,
    ),
    "live: the floor is not stored": (LIVE_STORED, 'None if head["whole"] else', "None if True else", ALIVE),
    "TA: a negative weight is read from the wrong end": (
        SEARCH,
        "closest = (scoring.sign * scoring.weights[j] if weighted else scoring.sign) < 0\n",
        "closest = scoring.sign < 0\n",
        GLOBAL,
    ),
    "scores: a square without its weight": (SCORES, "out[i] += weight * (term", "out[i] += (term", ANY),
    "scores: the largest is the last": (
        SCORES,
        "out[i] = term if term > out[i] or",
        "out[i] = term if True or",
        GLOBAL,
    ),
    "shared: a late row moves what others read": (
        SHARED_WINDOW,
        "if late or not _are_there",
        "if not _are_there",
        SHARED_LATE,
    ),
    "shared: what differs is overwritten": (
        SHARED_WINDOW,
        "if late or not _are_there(",
        "if late or not bool(",
        PARTED,
    ),
    "shared: windows with other numbers are one": (
        SHARED_WINDOW,
        "if place is not None and _has_last(holder, group, place):",
        "if place is not None:",
        PARTED,
    ),
    "shared: rows of data are not told apart": (
        SHARED_WINDOW,
        "if others[i : i + len(rows)] == rows",
        "if True",
        SHARED_PART,
    ),
    "shared: the places of pairs stay": (
        GROUP,
        "end + shift, self.facts[BASE] - shift\n",
        "end + shift, self.facts[BASE]\n",
        SHARED_LATE,
    ),
    "shared: lists stay where they were": (
        GROUP,
        "_moved(array, head, end, size, head + shift) for array in (self.blocks",
        "_moved(array, head, end, size) for array in (self.blocks",
        SHARED_LATE,
    ),
    "shared: columns that others need are swept": (
        SHARING_ADAPTER,
        "for one in self._with_columns()]))",
        "for one in self._with_columns()[:1]]))",
        SWEPT,
    ),
    "shared: the whole is counted for each": (
        SHARING_ADAPTER,
        "whole.nbytes // max(1, having)",
        "whole.nbytes",
        SHARED_PART,
    ),
    "tree: what is not split at the median": (
        SEARCH_TREE,
        "split = median + 1 + (youngest > median)",
        "split = end",
        TREE,
    ),
    "tree: the oldest on top": (SEARCH_TREE, "if old[i] > old[youngest]:", "if old[i] < old[youngest]:", TREE),
    "tree: expired subtrees on the left": (SEARCH_TREE, "and old[e + 1] > low:", "and old[e + 1] >= low:", TREE),
    "tree: expired subtrees on the right": (SEARCH_TREE, "and old[split[e]] > low:", "and old[split[e]] >= low:", TREE),
    "tree: marked nodes are no candidates": (SEARCH_TREE, "        if stack[i] < 0:\n", "        if False:\n", TREE),
    "tree: out of date": ("engines/pairs/pst.py", "or not group.facts[READS]", "", scenes("PST")),
    "functions: no rehearsal": (
        ADAPTER,
        "return self.function is not None and self.own is None",
        "return False",
        FAILING,
    ),
    "functions: not called both ways": (ADAPTER, "if self.unsampled and any(", "if False and any(", FAILING),
}


def test_every_mutant_applies() -> None:
    all_apply(MUTANTS.values())


@pytest.mark.parametrize("tests", [scenes("SCASE"), GIVEN], ids=["kernels", "given"])
def test_the_package_itself_passes(tests: tuple[str, ...], suite: Suite, tmp_path: Path) -> None:
    passes(tests, suite, tmp_path)


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(MUTANTS[name], suite, tmp_path)
