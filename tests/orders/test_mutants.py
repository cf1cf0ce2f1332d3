"""Mutants of orders, of objects and of groups: each must die of its tests (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

LISTS, TABLES = "engines/topk/kernels/ranks.py", "tables/orders.py"
TREES, ENDS, ORDER = (f"engines/groups/{name}.py" for name in ("kernels/ordered", "kernels/sessions", "order"))
RULES, GROUPS = ("tests/orders/test_rules.py",), ("tests/groups/test_orders.py",)
PLAYED = ("tests/groups/test_contract.py", "-k", "orders or sessions")

#: name: (file, what it says, what the mutant says, the tests that it must die of)
MUTANTS: dict[str, Mutant] = {
    "ties: the oldest is the newest": (
        LISTS,
        "    if oldest:\n        return bool(",
        "    if not oldest:\n        return bool(",
        RULES,
    ),
    "ties: equal times are newer": (
        LISTS,
        'objects[i]["stamp"] <= stamp)\n    return',
        'objects[i]["stamp"] < stamp)\n    return',
        RULES,
    ),
    "ranks: one too many": (
        LISTS,
        'rule["offset"] < count <= rule["offset"] + k',
        'rule["offset"] < count <= rule["offset"] + k + 1',
        RULES,
    ),
    "ranks: one too early": (LISTS, 'member = rule["offset"] < count', 'member = rule["offset"] <= count', RULES),
    "ranks: what an offset leaves out dominates": (
        LISTS,
        'if dom >= rule["k"] + rule["offset"]:',
        'if dom >= rule["k"]:',
        RULES,
    ),
    "with ties: only the k-th": (
        LISTS,
        "                    member = better < k\n",
        "                    member = count <= k\n",
        RULES,
    ),
    "sessions: one instant longer": (
        LISTS,
        'groups[g]["last"] + rule["gap"] <= now:',
        'groups[g]["last"] + rule["gap"] < now:',
        RULES,
    ),
    "keys: nulls the other way": (
        TABLES,
        "~valid if way.nulls_first else valid",
        "valid if way.nulls_first else ~valid",
        RULES,
    ),
    "keys: directions the other way": (TABLES, "    if not way.descending:\n", "    if way.descending:\n", RULES),
    "groups: the oldest is the newest": (ORDER, "~age if self.oldest else age", "age if self.oldest else ~age", GROUPS),
    "groups: nulls the other way": (
        ORDER,
        "MOST if way.nulls_first else LEAST",
        "LEAST if way.nulls_first else MOST",
        GROUPS,
    ),
    "groups: words in any order": (ORDER, "self.flags[i] = 1 if way.descending else -1", "self.flags[i] = 0", GROUPS),
    "groups: no room between words": (ORDER, "crowded = not low < self.labels[code] < high", "crowded = False", GROUPS),
    "groups: keys in the wrong order": (TREES, "return 1 if x > y else -1", "return 1 if x < y else -1", GROUPS),
    "groups: ranks begin one too early": (
        TREES,
        'ranked(live.nodes, head["root"], offset)',
        'ranked(live.nodes, head["root"], max(offset - 1, 0))',
        GROUPS,
    ),
    "groups: one more inside": (TREES, "min(offset + k, count) - 1)", "min(offset + k + 1, count) - 1)", GROUPS),
    "groups: ties stay outside": (TREES, "        if live.rule[2]:\n", "        if False:\n", GROUPS),
    "groups: what the new end leaves behind stays": (TREES, "    if had:  # what", "    if False:  # what", GROUPS),
    "groups: what is above the old end does not enter": (
        TREES,
        "compared(live, keys, s, edges, 2 * g, width) > 0):",
        "compared(live, keys, s, edges, 2 * g, width) > 9):",
        PLAYED,
    ),
    "groups: what is below the old end does not enter": (
        TREES,
        "    s = np.int64(last) if had else np.int64(-1)\n",
        "    s = np.int64(-1)\n",
        GROUPS,
    ),
    "groups: an object that changes stays where it is": (
        TREES,
        "moves = moves or keys[e, c] != live.keys[s, c]",
        "moves = moves",
        GROUPS,
    ),
    "groups: subtrees are not counted": (TREES, '        nodes[parent]["size"] -= 1\n', "        pass\n", GROUPS),
    "groups: sessions are one instant longer": (
        ENDS,
        "stamp + window.length > now:",
        "stamp + window.length >= now:",
        GROUPS,
    ),
    "groups: a session ends with its first row": (ENDS, '["waiting"] == 1 else -1', '["waiting"] >= 1 else -1', GROUPS),
    "groups: an ended session leaves its sums": (ENDS, "state.words[s, i] = 0", "state.words[s, i] += 0", GROUPS),
    "groups: a row that fails where ends a session": (
        ENDS,
        'groups[g]["waiting"] += 1',
        'groups[g]["waiting"] += int(counts)',
        GROUPS,
    ),
}


def test_every_mutant_applies() -> None:
    all_apply(MUTANTS.values())


def test_the_package_itself_passes(suite: Suite, tmp_path: Path) -> None:
    passes((*RULES, *GROUPS), suite, tmp_path)


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(MUTANTS[name], suite, tmp_path)
