"""A model of what engines of incomplete streams keep, for `explain`."""

from __future__ import annotations

from dataclasses import dataclass

from skyband.query.kinds import TopKIncomplete

ROW = 40 + 4 + 120  # bytes: a row, its place in the order, and its share of an object with scores and values
SKETCH = 256 * 24 * 8  # of one part
USUAL = 20  # budget, times k


@dataclass(frozen=True)
class Expected:
    rows: float | None
    why: str
    error: str
    each: int = ROW
    besides: float = 0.0
    notes: tuple[str, ...] = ()


def row_model(query: TopKIncomplete, algorithm: str, n: int | None) -> Expected:
    """The rows kept of a group of n valid ones (None: not known)."""
    register = 3 * (16 + 8 * len(query.parts)) * (n or 0) if query.repeat is None else 0  # at most: a part for each id
    notes: tuple[str, ...] = ()
    if query.repeat is None:
        notes = ("Besides, each valid row has its id and part registered: a second one of a part is rejected.",)
    if algorithm == "BUDGET":
        budget = float(query.budget or USUAL * query.k)
        why = f"It keeps {budget:.0f} rows and no more, those that are most likely to become answers."
        return Expected(budget, why, "approximate: stats() tells the precision of a sample", ROW, register, notes)
    if algorithm == "APPROX":
        why = "It keeps what is expected to reach the k best; how much depends on how the streams go together."
        sketches = SKETCH * len(query.parts)
        said = "approximate: stats() tells the precision of a sample"
        return Expected(None if n is None else 0.4 * n, why, said, ROW, register + sketches, notes)
    if algorithm == "SLA" or query.repeat is not None:
        why = "It keeps every valid row."
        if query.repeat is not None:
            why = (
                "With repeat a part may come back with its highest value at any time, so every row that counts is kept."
            )
        return Expected(None if n is None else float(n), why, "exact", ROW, register, notes)
    why = "It keeps what interval dominance does not drop: a part of the window that grows with it (Lemma 1)."
    return Expected(None if n is None else 0.8 * n, why, "exact", ROW, register, notes)
