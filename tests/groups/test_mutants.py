"""Mutants of the engine of groups: each must die of its tests (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

SUMS = "kernels/sums.py"
CHAINS, OBJECTS, STEPS, RANKS, VALUES, QUIET, PARTS, BOUND = (
    f"engines/groups/kernels/{name}.py"
    for name in ("chains", "objects", "steps", "ranks", "values", "quiet", "parts", "bound")
)
ENGINES = "engines/groups/"
FILES = ("tests/groups/test_steps.py", "tests/groups/test_contract.py")


def some(only: str) -> tuple[str, ...]:
    return (*FILES, "-k", only)


RULES = ("tests/groups/test_steps.py",)
STREAMS = ("tests/groups/test_quiet.py",)
BOUNDS = ("tests/groups/test_bound.py",)
PARTIAL = ("tests/spark/test_groups.py", "-k", "partial")
MOVING = some("moving or newest")
PICKED = some("picked or decides")
DELETIONS = some("deletions or deleted")

#: name: (file, what it says, what the mutant says, the tests that it must die of)
MUTANTS: dict[str, Mutant] = {
    "quiet: an object inside may fall, one outside may rise": (
        QUIET,
        'return inside == above and (inside or one["place"] == OUTSIDE)',
        'return inside or one["place"] == OUTSIDE',
        STREAMS,
    ),
    "quiet: late rows are in order": (QUIET, "or stamp < last:", "or False:", STREAMS),
    "quiet: what an object was before a step of several rows is forgotten": (
        QUIET,
        'if several and one["saved"] != step:',
        "if False:",
        STREAMS,
    ),
    "quiet: the number of a row that is not quiet stays in its sum": (
        QUIET,
        "add(state.words, s, 0, words, lowest, -value)",
        "pass",
        STREAMS,
    ),
    "quiet: the largest stays when its row goes": (
        QUIET,
        "return live.sign * state.values[state.links[r, chain + 1], 0]",
        'return one["key"]',
        STREAMS,
    ),
    "quiet: another row decides, unnoticed": (
        QUIET,
        'one["decider"] = row["serial"]',
        "pass",
        STREAMS,
    ),
    "bound: a row that is as large waits": (QUIET, "cold = value < bound and", "cold = value <= bound and", BOUNDS),
    "bound: rows of objects above it that are below it join, and the newest of these go first": (
        QUIET,
        "if value < bound:\n                note",
        "if cold:\n                note",
        BOUNDS,
    ),
    "bound: an object whose last row above it goes keeps its score": (
        QUIET,
        'if slot["count"] == 1 or (covers and _is_last(state, s, r)):',
        'if slot["count"] == 1:',
        BOUNDS,
    ),
    "bound: an object that is gone has been shown": (
        QUIET,
        'slot["cold"] = one["shown"] = 0',
        'slot["cold"] = 0',
        BOUNDS,
    ),
    "bound: cold objects that come are ranked by what is there": (
        QUIET,
        'slot["cold"], slot["group"], one["key"] = 1, g, np.nan',
        'slot["cold"], slot["group"] = 1, g',
        BOUNDS,
    ),
    "bound: it stays where too few are above it": (
        OBJECTS,
        'live.heads[0]["size"] < live.k',
        'live.heads[0]["size"] < live.k - 1',
        BOUNDS,
    ),
    "bound: rows below it are in chains of the general loop": (
        CHAINS,
        "if value < state.bound[0]:",
        "if value < state.bound[0] and empty:",
        BOUNDS,
    ),
    "bound: an object without a row above it is not cold": (
        CHAINS,
        'state.slots[s]["cold"] = state.slots[s]["count"] > 0',
        'state.slots[s]["cold"] = 0',
        BOUNDS,
    ),
    "bound: columns of rows below it are not kept": (
        QUIET,
        "note(window, batch, serial, True)\n            elif function == MOST:",
        "note(window, batch, serial, False)\n            elif function == MOST:",
        BOUNDS,
    ),
    "bound: a larger one leaves rows below it in chains": (
        BOUND,
        "state.values[newest, column] < bound:",
        "state.values[newest, column] < bound and links[newest, chain] < 0:",
        BOUNDS,
    ),
    "bound: objects above a smaller one are not ranked": (
        BOUND,
        "if np.isnan(live",
        "if False and np.isnan(live",
        BOUNDS,
    ),
    "bound: one that rises leaves too few above it": (
        ENGINES + "bound.py",
        "bound = float(np.partition(keys, len(keys) - self.wanted)[-self.wanted])\n        if bound > store",
        "bound = float(np.partition(keys, len(keys) - 1)[-1])\n        if bound > store",
        BOUNDS,
    ),
    "bound: two queries have one": (ENGINES + "bound.py", "one = len(view.rankings) == 1 and", "one = ", BOUNDS),
    "bound: groups have one": (ENGINES + "bound.py", "and len(store.groups) == 1", "", BOUNDS),
    "bound: columns of equal rows are kept": (
        BOUND,
        "not (values[r, column] <= largest[s])",
        "not (values[r, column] < largest[s])",
        BOUNDS,
    ),
    "mappers: a row that stands for others counts once": (
        OBJECTS,
        "np.int64(1) if len(batch.weights) == 0 else batch.weights[i]",
        "np.int64(1)",
        PARTIAL,
    ),
    "mappers: a sum of many parts is cut": (PARTS, "counts[s] = n if rest == 0.0 else -1", "counts[s] = n", PARTIAL),
    "mappers: copies bring no part": (
        "spark/group_rows.py",
        "np.minimum(place[carries], _PARTS - 1)",
        "np.where(place[carries] > 0, _PARTS - 1, 0)",
        PARTIAL,
    ),
    "deletions: an object leaves with the score that it has then": (
        STEPS,
        "changed(state, window, events, live, other, row, now, True)  # the",
        "changed(state, window, events, live, other, row, now, end > i + 1)  # the",
        RULES,
    ),
    "ties: the older above": (
        RANKS,
        'return stamp > other["recorded_stamp"]',
        'return stamp < other["recorded_stamp"]',
        MOVING,
    ),
    "ties: the earlier arrival above": (
        RANKS,
        'return serial > other["recorded_serial"]',
        'return serial < other["recorded_serial"]',
        MOVING,
    ),
    "ties: a late row is the newest": (
        OBJECTS,
        "    if window.keeps == ALL:\n        note(window, batch, serial, True)\n    elif",
        "    newest = True\n    if window.keeps == ALL:\n        note(window, batch, serial, True)\n    elif",
        RULES,
    ),
    "ties: of equal largest rows the older decides": (
        CHAINS,
        "state.values[older, column] <= value:\n        if decides",
        "state.values[older, column] < value:\n        if decides",
        PICKED,
    ),
    "boundary: an object outside may rise above it without a move": (
        RANKS,
        'one["recorded"] = ahead',
        'one["recorded"] = worst + 100.0',
        MOVING,
    ),
    "expiry: time windows are one longer": (
        STEPS,
        "stamp + window.length > now:",
        "stamp + window.length >= now:",
        MOVING,
    ),
    "expiry: count windows are one longer": (
        STEPS,
        'rows[oldest]["stamp"] <= now - window.length:',
        'rows[oldest]["stamp"] < now - window.length:',
        MOVING,
    ),
    "expiry: a late row is never too late": (
        STEPS,
        "if timed and batch.stamps[i] <= now - window.length:",
        "if False:",
        RULES,
    ),
    "expiry: the latest of late rows first": (
        STEPS,
        'rows[late[child + 1]]["stamp"] < rows[late[child]]["stamp"]',
        'rows[late[child + 1]]["stamp"] > rows[late[child]]["stamp"]',
        RULES,
    ),
    "sums: two words round half away from even": (
        SUMS,
        "    leading |= np.int64((below << gap) != np.uint64(0))\n",
        "",
        some("rounded_once"),
    ),
    "sums: what is below the leading words is lost": (
        SUMS,
        "if rest != np.uint64(0) or least < top - 1:",
        "if rest != np.uint64(0):",
        RULES,
    ),
    "sums: a borrow is lost": (SUMS, "part = high + np.uint64(before < low)", "part = high", some("rounded_once")),
    "sums: a carry is lost": (SUMS, "part = high + carry", "part = high + np.uint64(0)", some("rounded_once")),
    "sums: one word for everything": (
        SUMS,
        "if low < lowest or",
        "if",
        some("rounded_once"),
    ),
    "largest: a newer one that is as large is not looked at": (
        CHAINS,
        "if newer >= 0 and state.values[newer, column] >= value:",
        "if False:",
        RULES,
    ),
    "largest: the next is not picked": (CHAINS, "        pick(state, m, s, newer)\n", "        pass\n", PICKED),
    "deletions: the heap keeps a row": (
        CHAINS,
        "    if top == r:\n        top = rest",
        "    if False:\n        top = rest",
        DELETIONS,
    ),
    "deletions: a replaced row stays": (
        STEPS,
        "    if r >= 0:\n        other = np.int64(state.rows[r]",
        "    if False:\n        other = np.int64(state.rows[r]",
        DELETIONS,
    ),
    "distinct: entries behind a gap are lost": (
        VALUES,
        "if ((place - home) & mask) >= ((place - free) & mask):",
        "if False:",
        some("distinct"),
    ),
    "boundary: one more inside": (
        RANKS,
        'if head["size"] == k:\n            if not',
        'if head["size"] == k + 1:\n            if not',
        MOVING,
    ),
    "boundary: the best outside is not looked at": (
        RANKS,
        'if not valid or (other >= 0 and not ranks_above(one["key"], one["stamp"], one["serial"], ranks[other])):',
        "if not valid:",
        RULES,
    ),
    "boundary: who rises outside is not compared": (
        RANKS,
        'if head["size"] < k or ranks_above(one["key"], one["stamp"], one["serial"], ranks[head["inside"]]):',
        'if head["size"] < k:',
        RULES,
    ),
    "boundary: who falls is not recorded": (
        RANKS,
        '        _record(one)\n        head["inside"] = _raised(ranks, head["inside"], s, False)\n',
        "        pass\n",
        MOVING,
    ),
    "reports: always for the first time": (RANKS, '1 - ranks[s]["shown"]', "1", MOVING),
    "reports: an object that returns is not new": (
        RANKS,
        '            one["shown"] = 0\n',
        "            pass\n",
        RULES,
    ),
    "reports: the score as it is now": (
        RANKS,
        'ranks[s]["old_key"] if old else ranks[s]["key"]',
        'ranks[s]["key"]',
        RULES,
    ),
    "stored: what was shown is lost": (
        ENGINES + "snapshot.py",
        'shown = (kept["shown"] & BITS[q]) != 0',
        'shown = (kept["shown"] & BITS[q]) != 2',
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
