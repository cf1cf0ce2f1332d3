"""The expected size of the engines of groups of rows."""

from __future__ import annotations

from collections.abc import Mapping

from skyband.engines.size import Size
from skyband.query.kinds import TopKGroups
from skyband.query.windows import Session

ROW = 24  # bytes of a row, and 8 more for each argument
OBJECT = 40 + 112 + 8 + 8  # an object, its rank, a sum of one word, and its place in the table of codes
NODE = 16 + 16 + 8  # with an order: its place in a tree, its age, and 8 bytes for each key besides the first


PANES, COUNTERS = 35, 4096  # of SKETCH
COUNTER = 40 + 8 + 16  # bytes, with its places in a heap and a table


def sketch_size(name: str, query: TopKGroups, n: int | None, expected: Mapping[str, float]) -> Size:
    why = (
        f"It counts the {COUNTERS:,} largest objects of each of the last {PANES - 2} panes of the window, however many "
        "objects and rows there are."
    )
    error = (
        f"a score lacks at most 1/{COUNTERS:,} of the sum of all rows, and may have rows of 1/32 of the window before "
        "it; stats() has the precision"
    )
    note = "Objects are at most so many: heavy ones have a counter in every pane, and are counted once."
    return Size(float(PANES * COUNTERS), (why,), error, COUNTER, 0, (note,))


def tally_size(name: str, query: TopKGroups, n: int | None, expected: Mapping[str, float]) -> Size:
    arguments = sum(one.argument is not None for one in query.aggregates)
    chains = sum(one.function in ("min", "max", "first") for one in query.aggregates)
    whole = OBJECT + (NODE + 8 * len(query.directions) if query.ordered else 0)
    order = ("Its order ranks objects in a tree of each group: O(log objects) for each that changes.",)
    if query.window.sort == "ever":
        why = "Nothing leaves, so no row is kept: only the aggregates of each object are."
        note = "It is as large as there are objects: rows= is taken for how many of these there are."
        sentences = (why, *order) if query.ordered else (why,)
        return Size(None if n is None else float(n), sentences, "exact", whole, 0, (note,))
    why = "It keeps every valid row until it leaves, because sums are exact, and the aggregates of each object."
    if isinstance(query.window, Session):
        why = "It keeps every row until its session ends, and the aggregates of each object."
    each = ROW + 8 * arguments + 8 * chains
    note = f"What is counted here are valid rows. Each object, a group of them, takes some {whole} bytes besides."
    sentences = (why, *order) if query.ordered else (why,)
    return Size(None if n is None else float(n), sentences, "exact", each, 0, (note,))
