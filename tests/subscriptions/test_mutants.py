"""Mutants of the bookkeeping of subscriptions: slots taken and freed, numbers, entries, ids; each must die.

tests/mutation.py says how they are made; `make mutants` runs them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

TABLE = "engines/topk/slot_table.py"
SLOTS = "engines/topk/subscribed_slots.py"
ADAPTER = "engines/topk/subscribed_adapter.py"
ENGINE = "engines/topk/slots.py"
ENTRIES = "tables/subscriptions.py"
QUERIES = "monitor/subscriptions.py"
CHURN = "tests/subscriptions/test_churn.py"
COUNT = (CHURN, "-k", "count or many or numbers")
TIME = (CHURN, "-k", "time")
BOTH = (CHURN,)
CHUNKS = (CHURN, "-k", "chunk and count")
WINDOW = ("tests/subscriptions/test_from_window.py", "-k", "best or class or numbers")

MUTANTS: dict[str, Mutant] = {
    # --- slots taken and freed
    "a freed slot still reports": (SLOTS, "        self.slots.leave(slots)\n", "", COUNT),
    "a freed slot is not given again": (ENGINE, "self.free.extend(slots.tolist())", "pass", COUNT),
    "a slot is given twice": (ENGINE, "self.count += m - len(again)", "self.count += m - len(again) - (m > 1)", COUNT),
    "a freed slot keeps its subscription": (TABLE, "        self.entry[slots] = -1\n", "", COUNT),
    "a new subscription has the slot of the first": (
        TABLE,
        "self.slot[entries] = slots",
        "self.slot[entries] = 0",
        COUNT,
    ),
    "a slot that is taken again keeps its old window": (
        TABLE,
        "self.k[slots], self.length[slots] = columns.k, columns.length",
        "self.k[slots] = columns.k",
        TIME,
    ),
    "a lane that is taken again keeps its old point": (
        "engines/topk/chunk.py",
        "self.points[here], self.weights[here] = columns.points, columns.weights",
        "self.weights[here] = columns.weights",
        COUNT,
    ),
    "slots by place have the subscriptions of others": (
        SLOTS,
        "entries, columns = entries[order], columns.take(order)",
        "columns = columns.take(order)",
        CHUNKS,
    ),
    "slots that wait for the first row are not by place": (
        SLOTS,
        "self.waiting.append((entries, columns, number))",
        "self.waiting.append((entries[::-1], columns, number))",
        CHUNKS,
    ),
    "who leaves before the first arrival stays": (
        SLOTS,
        "kept = [(of, ~np.isin(of, entries), columns, number)",
        "kept = [(of, of >= 0, columns, number)",
        BOTH,
    ),
    # --- numbers
    "a late subscriber counts from 0": (
        SLOTS,
        "number - int(self.numbering.next()[0].max(initial=0))",
        "0 - int(self.numbering.next()[0].max(initial=0))",
        BOTH,
    ),
    "a late subscriber sees rows from the first on": (
        QUERIES,
        "adapter.join(entries[prepared.shared], columns, number, self.state.serial)",
        "adapter.join(entries[prepared.shared], columns, number, 0)",
        BOTH,
    ),
    "a slot that is taken again keeps the rows that it rejected": (
        TABLE,
        "self.entry[to], self.offset[to], self.shift[to] = entries, offset, 0",
        "self.entry[slots], self.offset[slots] = entries, offset",
        COUNT,
    ),
    "a rejected row is counted": (ADAPTER, "            self.table.reject(one.slots)\n", "", COUNT),
    "a row that is too late for a slot is counted": (TABLE, "self.offset[: self.size][which] -= 1", "pass", TIME),
    "the longest window is that of the last to join": (
        TABLE,
        "self.longest = max(self.longest, int(columns.length.max(initial=0)))",
        "self.longest = int(columns.length.max(initial=0))",
        TIME,
    ),
    "the longest window stays when it leaves": (TABLE, "if self.longest not in self._lengths:", "if False:", TIME),
    # --- what is there already
    "a new subscriber does not see the best score there is": (
        "engines/topk/kernels/depths.py",
        "and (scratch.found[i] < old or old == np.inf)",
        "and scratch.found[i] < old",
        WINDOW,
    ),
    "a new slot is content with the best scores of earlier batches": (
        "engines/topk/kernels/slots.py",
        "if (above < K or plan.fresh == LOOKING) and",
        "if above < K and",
        WINDOW,
    ),
    "a new subscriber goes on with the engine's numbers": (
        SLOTS,
        "self.table.join(slots, entries, columns, self.table.ahead())",
        "self.table.join(slots, entries, columns, 0)",
        WINDOW,
    ),
    # --- entries and ids
    "an id that is there is not replaced": (
        QUERIES,
        "self._remove(subscriptions, here[here >= 0])",
        "self._remove(subscriptions, here[:0])",
        COUNT,
    ),
    "an id that has left is still known": (ENTRIES, "        self._entry[codes] = -1\n", "", COUNT),
    "entries keep their old slots": (SLOTS, "        self.table.renumber(old)\n", "", COUNT),
    "entries that have left are never given again": (
        ENTRIES,
        "return self.size > 1024 + 2 * self.count",
        "return False",
        COUNT,
    ),
    "a restored slot has the columns of another": (
        SLOTS,
        "self.table.restore(entries, offset, shift, columns)",
        "self.table.restore(entries, offset, shift, columns.take(np.arange(len(columns))[::-1]))",
        BOTH,
    ),
}


def test_the_package_itself_passes(suite: Suite, tmp_path: Path) -> None:
    passes((CHURN, "-k", "time-0"), suite, tmp_path)


def test_every_mutant_applies() -> None:
    all_apply(MUTANTS.values())


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(MUTANTS[name], suite, tmp_path)
