"""The form of a query's scoring, as `explain` describes it."""

from __future__ import annotations

from typing import Any

from skyband.engines.pairs import size_model as pairs
from skyband.query.expressions import Form, parse, recognise
from skyband.query.kinds import Query, TopKIncomplete, TopKPairs
from skyband.query.scoring import Nearest


def form_of(query: Query) -> tuple[str, tuple[str, ...], list[str]]:
    """One word, sentences, notes."""
    if isinstance(query, TopKIncomplete):
        return (query.combine if isinstance(query.combine, str) else repr(query.combine)), (), []
    best = f"The {'largest' if query.descending else 'smallest'} score is best"
    if isinstance(query, TopKPairs):
        word, said, _ = pairs.form_of(query)
        return word, (f"{best}; {said}",), []
    word, said, notes = _object_form(query)
    if query.where is not None:  # type: ignore[attr-defined]
        notes.append("Objects that fail `where` are never kept: expect fewer objects and bytes than this.")
    return word, (f"{best}; {said}",), [*notes, "Columns named in keep= come on top of the bytes."]


def _object_form(query: Any) -> tuple[str, str, list[str]]:
    if callable(query.by):
        return "function", "the form of a Python function is not known.", []
    if not isinstance(query.by, str):
        word = "distance" if isinstance(query.by, Nearest) else type(query.by).__name__.lower()
        return word, f"{query.by!r} says its form itself.", []
    form, notes = recognise(parse(query.by)), []
    if form.kind == "distance" and query.descending:
        notes = ["A typed distance ranks the far ones first. For the near ones: largest=False (--smallest)."]
    return form.kind, f"in {query.by!r} {_recognised(form)}.", notes


def _recognised(form: Form) -> str:
    weighed = " + ".join(f"{weight:g}·{name}" for name, weight in form.weights)
    match form.kind:
        case "column":
            return "skyband recognises a column"
        case "linear":
            constant = f" + {form.constant:g}" if form.constant else ""
            return f"skyband recognises a linear form, {weighed}{constant}"
        case "distance":
            centre = ", ".join(f"{name}={at:g}" for name, at in form.centre)
            return f"skyband recognises the {form.metric} distance to {centre}"
        case "monotone":
            words = {1: "rises", -1: "falls"}
            ways = ", ".join(f"{words[way]} with {name}" for name, way in form.directions)
            return f"skyband recognises a monotone form: it {ways}"
    return "skyband recognises no form that an engine could use"
