"""Mutants of the uncertain engines: each must die of the contract suite (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

STEPS, FRONT, PREFIX, CHANGES = (
    f"engines/uncertain/kernels/{name}.py" for name in ("steps", "front", "prefix", "changes")
)
UNCERTAIN = "engines/uncertain/"
KERNELS = UNCERTAIN + "kernels/"
EXCLUSIVE, CHOICES, RIVALS = (KERNELS + name for name in ("exclusive.py", "choices.py", "rivals.py"))
CONTRACT, TWICE = "tests/uncertain/test_contract.py", "tests/uncertain/test_alternatives.py"


def scenes(only: str) -> tuple[str, ...]:
    return (CONTRACT, "-k", f"equals_the_oracle and ({only})")


DOM = scenes("DOM")
LATE = scenes("DOM and late")
IMPROBABLE = ("tests/uncertain/test_small_probabilities.py", "-k", "below_all or whole_window")
TIED = scenes("CSQ and ties")
TIES = scenes("(DOM or BS) and ties")
GOLDEN = ("tests/uncertain/test_jin.py", "-k", "enough or windows_of_400 or letter")
QUEUES = (CONTRACT, "-k", "equals_the_oracle and BUFFER")
LONGER = ("tests/uncertain/test_jin.py", "-k", "with_late_tuples")
STORED = ("tests/uncertain/test_queries.py", "-k", "comes_back")
ALTERNATIVES = (CONTRACT, "-k", "alternatives")
DROPS = (CONTRACT, "-k", "what_dom_drops")
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
    "arrival: a more probable one below the floor": (
        STEPS,
        "            work.affected[q] = True\n    if late",
        "            work.affected[q] |= False\n    if late",
        IMPROBABLE,
    ),
    "arrival: a more probable one below the level": (STEPS, "p[i] <= most and ", "", IMPROBABLE),
    "arrival: the bound of probabilities does not rise": (
        STEPS,
        "kept.most[g] = min(1.0, p + p * MARGIN)",
        "pass",
        IMPROBABLE,
    ),
    "sweep: the bound of probabilities is lost": (FRONT, "most = max(most, p)", "pass", IMPROBABLE),
    "dominance: as if nothing more probable could come": (FRONT, "= 0.0, 1.0  #", "= 0.0, kept.most[g]  #", IMPROBABLE),
    "stored: the bound of probabilities is lost": (
        UNCERTAIN + "front_engine.py",
        'by_run(np.maximum, window["p"], sizes, 0.0)',
        "np.zeros(G)",
        IMPROBABLE,
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
        "enough = surely(times_most(few, out), threshold)",
        "enough = surely(times_most(few, out) * 0.5, threshold)",
        scenes("pt-k"),
    ),
    "ranks: enough too soon": (
        PREFIX,
        "enough = surely(times_most(most, out), best[k - 1])",
        "enough = surely(times_most(most, out) * 0.5, best[k - 1])",
        GOLDEN,
    ),
    "choices: enough too soon": (
        PREFIX,
        "enough = surely(times_most(most, out), top)",
        "enough = surely(most * 0.5, top)",
        GOLDEN,
    ),
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
        KERNELS + "csq.py",
        "appended, size = appended + 1, compact(queue, FRESH)",
        "appended, size = appended + 1, 0",
        scenes("CSQ-pk"),
    ),
    "queue: D does not expire": (
        KERNELS + "csq.py",
        "        leave_valid(queue, FRESH, low)\n    facts[LOW]",
        "        pass\n    facts[LOW]",
        scenes("CSQ"),
    ),
    "queue: the set just appended is changed too": (
        KERNELS + "csq.py",
        "older = facts[END] - appended",
        "older = facts[END]",
        scenes("CSQ-pk"),
    ),
    "queue: equal sets stay": (
        KERNELS + "csq.py",
        "free_set(queue, i)  # line 11",
        "kept -= 0  # line 11",
        scenes("CSQ"),
    ),
    "queue: ties go to the older": (
        KERNELS + "queue.py",
        "    return is_newer(one, other)",
        "    return is_newer(other, one)",
        TIED,
    ),
    "queue: a compact set is longer than it must be": (
        KERNELS + "queue.py",
        "return walk_run(queue, r, -1, 0, EACH) if size and size <= max(guess, queue.rules.k) else size",
        "return size",
        scenes("CSQ"),
    ),
    "queue: a late tuple begins no set": (
        KERNELS + "csq.py",
        "if has(queue.lists, SPARE, t[0]):",
        "if False:",
        LONGER,
    ),
    "queue: the floor of an answer is too high": (
        KERNELS + "queue_steps.py",
        'one["key"] >= view["floor"]',
        'one["key"] > view["floor"]',
        scenes("CSQ and ties"),
    ),
    "queue: an answer is due too late": (
        KERNELS + "queue_steps.py",
        'if not rules.net and view["due"] <= now:',
        'if not rules.net and view["due"] < now:',
        scenes("CSQ"),
    ),
    "compressed: the difference to the set as it was": (
        KERNELS + "ccsq.py",
        'queue = copied(queue, OTHER, source, queue.lists.runs[source]["size"])',
        'queue = copied(queue, OTHER, SPARE, queue.lists.runs[SPARE]["size"])',
        scenes("CCSQ"),
    ),
    "segments: a merge loses the set": (
        KERNELS + "scsq.py",
        'for r in (other["between"], other["run"]):',
        'for r in (other["between"], other["between"]):',
        scenes("SCSQ"),
    ),
    "segments: Lambda keeps what is below": (
        KERNELS + "scsq.py",
        "            leave_above(queue, i)",
        "            pass",
        LONGER,
    ),
    "segments: C(S_W) does not follow": (
        KERNELS + "scsq.py",
        "if is_above_last(queue, queue.arrived[0], CURRENT):",
        "if False:",
        scenes("SCSQ"),
    ),
    "buffer: emptied": (
        KERNELS + "scsq_buffer.py",
        "leave_last(queue, high - 1)",
        "leave_last(queue, 0)",
        QUEUES,
    ),
    "buffer: segments do not hear of it": (
        KERNELS + "scsq_buffer.py",
        "        queue = change_at_once(queue, i)",
        "        pass",
        QUEUES,
    ),
    "buffer: an arrival that touches C(S_W) only waits": (
        KERNELS + "scsq_buffer.py",
        "while i < end and batch.keys[i] < floor and",
        "while i < end and batch.keys[i] <= floor and",
        LONGER,
    ),
    "compact: ties below the set are dropped": (
        KERNELS + "compact.py",
        "batch.keys[i] < floor:",
        "batch.keys[i] <= floor:",
        ENDLESS,
    ),
    "compact: what ranks above its last is dropped": (
        KERNELS + "compact.py",
        "if queue.facts[FULL] and not is_above_last(queue, queue.arrived[0], CURRENT):",
        "if queue.facts[FULL]:",
        ENDLESS,
    ),
    "alternatives: its own group counts": (
        EXCLUSIVE,
        "for other in range(g + 1, groups):",
        "for other in range(g, groups):",
        ALTERNATIVES,
    ),
    "alternatives: its own group counts in u-topk": (
        CHOICES,
        "for other in range(g + 1, groups):",
        "for other in range(g, groups):",
        ALTERNATIVES,
    ),
    "alternatives: a group is not counted again": (
        EXCLUSIVE,
        "for other in range(g, groups):\n                width",
        "for other in range(groups - 1, groups):\n                width",
        ALTERNATIVES,
    ),
    "alternatives: of equals the lowest member": (CHOICES, "if chance >= take:", "if chance > take:", ALTERNATIVES),
    "alternatives: of equals always the one that stays": (
        CHOICES,
        "below = pick > rivals.beyond[g]",
        "below = True",
        (TWICE, "-k", "equally_probable"),
    ),
    "alternatives: the lower of equal choices": (
        CHOICES,
        "return bool(rivals.one[i] < rivals.two[i])",
        "return bool(rivals.one[i] > rivals.two[i])",
        (TWICE, "-k", "equally_probable"),
    ),
    "alternatives: groups before it have no later members": (
        EXCLUSIVE,
        "rivals.beyond[other] = n",
        "pass",
        (TWICE, "-k", "equally_probable"),
    ),
    "alternatives: tuples without a name exclude each other": (
        KERNELS + "records.py",
        'records[to]["named"] = named[i]',
        'records[to]["named"] = True',
        ALTERNATIVES,
    ),
    "alternatives: dropped below fewer than k": (
        EXCLUSIVE,
        "many += out.chances[t] >= few * FIRM\n        return many >= k",
        "many += out.chances[t] >= few * FIRM\n        return many >= k - 1",
        DROPS,
    ),
    "alternatives: dropped where one rank is decided": (
        EXCLUSIVE,
        "return many == k",
        "return many >= 1",
        DROPS,
    ),
    "alternatives: dropped whatever the threshold": (
        EXCLUSIVE,
        "return few * FIRM + LEAST <= threshold",
        "return few * FIRM <= 1",
        DROPS,
    ),
    "alternatives: a full group is no reason": (
        RIVALS,
        "batch.partials) > MOST",
        "batch.partials) > MOST + 1",
        ALTERNATIVES,
    ),
    "alternatives: one that leaves with the step counts": (
        RIVALS,
        'line["stamp"] > gone:\n            total',
        'line["stamp"] >= gone:\n            total',
        ALTERNATIVES,
    ),
    "alternatives: they go a step too early": (
        RIVALS,
        'counts[line["group"]] - 1 - length)',
        'counts[line["group"]] + 1 - length)',
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
