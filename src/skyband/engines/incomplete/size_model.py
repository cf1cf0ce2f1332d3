"""The expected size of the engines of incomplete streams."""

from __future__ import annotations

from collections.abc import Mapping

from skyband.engines.size import Size
from skyband.query.kinds import TopKIncomplete

ROW = 40 + 4 + 120  # bytes: a row, its place in the order, and its share of an object with scores and values
SKETCH = 256 * 24 * 8  # of one part
USUAL = 20  # budget, times k


def rows_size(name: str, query: TopKIncomplete, n: int | None, expected: Mapping[str, float]) -> Size:
    register = (
        3 * (16 + 8 * len(query.parts)) * (n or 0) if query.repeat is None else 0
    )  # one part for each id, at most
    notes: tuple[str, ...] = ()
    if query.repeat is None:
        notes = ("Besides, each valid row has its id and part registered: a second one of a part is rejected.",)
    if name == "BUDGET":
        budget = float(query.budget or USUAL * query.k)
        why = f"It keeps {budget:.0f} rows and no more, those that are most likely to become answers."
        return Size(budget, (why,), "approximate: stats() has the precision of a sample", ROW, register, notes)
    if name == "APPROX":
        why = "It keeps what is expected to reach the k best; how much depends on how the streams go together."
        sketches = SKETCH * len(query.parts)
        said = "approximate: stats() has the precision of a sample"
        return Size(None if n is None else 0.4 * n, (why,), said, ROW, register + sketches, notes)
    if query.where is not None:
        notes = (*notes, "Rows that fail `where` are never kept: expect fewer rows and bytes than this.")
    if name == "SLA" or query.repeat is not None or query.any_parts or not query.descending:
        why = "It keeps every valid row."
        if not query.descending:
            why = "With largest=False an object would be better without a row that is dropped, so every row is kept."
        elif query.any_parts:
            why = 'With parts="*" a part may come that was never seen, so every row that counts is kept.'
        elif query.repeat is not None:
            why = (
                "With repeat a part may come back with its highest value at any time, so every row that counts is kept."
            )
        return Size(None if n is None else float(n), (why,), "exact", ROW, register, notes)
    if query.unbounded:
        listed = ", ".join(query.unbounded)
        notes = (
            *notes,
            f"An object that lacks one of {listed} may come to any score unless `combine` bounds it: then "
            "its rows are kept. A finite high drops more.",
        )
    why = "It keeps what interval dominance does not drop: a part of the window that grows with it (Lemma 1)."
    return Size(None if n is None else 0.8 * n, (why,), "exact", ROW, register, notes)
