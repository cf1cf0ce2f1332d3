"""The form of a query's scoring, as `explain` describes it."""

from __future__ import annotations

from typing import Any

from skyband.engines.pairs import size_model as pairs
from skyband.query.kinds import Query, TopKGroups, TopKIncomplete, TopKPairs
from skyband.query.scoring import scoring_of


def form_of(query: Query) -> tuple[str, tuple[str, ...], list[str]]:
    """One word, sentences, notes."""
    if isinstance(query, TopKIncomplete):
        word = query.combine if isinstance(query.combine, str) else repr(query.combine)
        return word, () if query.descending else ("The smallest score is best; a missing part counts as its low.",), []
    best = f"The {'largest' if query.descending else 'smallest'} score is best"
    if isinstance(query, TopKGroups):
        return _group_form(query, best)
    if isinstance(query, TopKPairs):
        word, said, _ = pairs.form_of(query)
        return word, (f"{best}; {said}",), []
    word, said, notes = _object_form(query)
    if query.where is not None:  # type: ignore[attr-defined]
        notes.append("Objects that fail `where` are never kept: expect fewer objects and bytes than this.")
    return word, (f"{best}; {said}",), [*notes, "Columns named in keep= come on top of the bytes."]


def _group_form(query: TopKGroups, best: str) -> tuple[str, tuple[str, ...], list[str]]:
    listed = ", ".join(map(str, query.aggregates))
    whose = " and ".join(query.of_columns) or "the Monitor's id column"
    said = [f"{best}; objects are the groups of rows with one value of {whose}, by {listed}."]
    if isinstance(query.by, tuple):
        said[0] = (
            f"({', '.join(query.by)}) is an order of keys: the first decides, the next among its equals; objects are "
            f"the groups of rows with one value of {whose}."
        )
    if query.decides is not None:
        said.append(f"Kept columns are those of the row that has the {query.aggregates[query.decides]}.")
    if query.decay is not None:
        said.append(f"A row counts half as much after {query.decay}, and an object has one number for all its rows.")
    notes = ["Rows that fail `where` count in no aggregate: expect less than this."] if query.where is not None else []
    words = {one.function for one in query.expressions.of(query.score)}
    word = "order" if isinstance(query.by, tuple) else words.pop() if len(words) == 1 else "aggregates"
    return word, tuple(said), [*notes, "Columns named in keep= come on top of the bytes."]


def _object_form(query: Any) -> tuple[str, str, list[str]]:
    scoring = scoring_of(query.by)
    word, said = scoring.recognised()
    far = word == "distance" and query.descending and not scoring.smallest_first
    note = "A typed distance ranks the far ones first. For the near ones: largest=False (--smallest)."
    return word, f"{said}.", [note] if far else []
