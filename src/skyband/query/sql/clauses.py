"""The clauses of each kind of query in SQL: which it takes, which it needs, and what to write instead of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from skyband.errors import QueryError
from skyband.query.kinds import Above, Query, TopK, TopKGroups, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.query.windows import Last

_COMMON = {"FROM", "PER", "WINDOW", "UNTIL", "USING", "OPTIONS"}
_RANKED = _COMMON | {"WHERE", "ORDER", "LIMIT"}
COMBINES = ("SUM", "MEAN", "MIN", "MAX")
TAKES: dict[type[Query], set[str]] = {  # the clauses of a kind
    TopK: _RANKED | {"APPROXIMATE", "OFFSET", "FETCH", "QUALIFY"},
    Above: _COMMON | {"WHERE", "ABOVE"},
    TopKGroups: _RANKED | {"GROUP BY", "HAVING", "OFFSET", "FETCH", "QUALIFY"},
    TopKPairs: _RANKED | {"ON"},
    TopKIncomplete: _COMMON | {"WHERE", "LIMIT", "PARTS", "COMBINE", "REPEAT"},
    TopKUncertain: _RANKED | {"WITH", "SEMANTICS", "THRESHOLD", "GROUP"},
}
NEEDS = {  # what a kind cannot do without, and what to write
    "by": "ORDER BY is missing: what to rank by? Such as ORDER BY delay DESC; ORDER BY () is by arrival, newest first",
    "k": "LIMIT is missing: how many? Such as LIMIT 10",
    "window": "WINDOW is missing: how long do objects count? Such as WINDOW 1000 ROWS or WINDOW '24 hours'",
}
INSTEAD = {
    "PARTITION": "For one answer per value write PER column.",
    "JOIN": "Pairs are FROM s a, s b; join other tables before rows are pushed.",
    **dict.fromkeys(
        ("UNION", "ALL", "SELECT"), "A sentence is of one stream: put rows together before they are pushed."
    ),
    **dict.fromkeys(
        ("#", ":"), "Esper's s#length(1000) is FROM s ... WINDOW 1000 ROWS, s#time(5 min) is WINDOW '5 minutes'."
    ),
    "TABLE": "Windows slide row by row: FROM s ... WINDOW '10 minutes'.",
    "ILIKE": "Write lower(name) LIKE 'a%'.",
    "COLLATE": "Strings rank by their UTF-8 bytes; ORDER BY lower(name) ranks without regard to case.",
    "EMIT": "Leave it out: a Monitor reports every change.",
    "OVER": "Row numbers are QUALIFY row_number() OVER (PARTITION BY g ORDER BY x DESC) <= 10.",
    ",": "Rank by one expression, such as 0.7*x + 0.3*y.",
    "TOP": "Write LIMIT 10.",
    **dict.fromkeys(("%", "PERCENT"), "Say how many: LIMIT 10. A share of the window would move with every row."),
    "FILTER": "Write the condition into the aggregate: sum(case when x > 1 then 1 else 0 end).",
    **dict.fromkeys(
        ("EXCLUDE", "EXCEPT", "REPLACE", "RENAME"),
        "Write SELECT *: an answer has the columns that Monitor(keep=[...]) names, renamed as {name: column}.",
    ),
}
SAID = (  # arguments with a clause of their own
    *("k", "by", "window", "where", "on", "per", "threshold", "parts", "combine", "repeat"),
    *("k_max", "offset"),
    *("probability", "semantics", "group", "algorithm", "of", "having", "decay", "select"),
)
ASKED: dict[type[Query], str] = {
    TopK: "a top-k question (ORDER BY ... LIMIT)",
    Above: "ABOVE",
    TopKGroups: "groups of rows (GROUP BY)",
    TopKPairs: "pairs (FROM s a, s b)",
    TopKIncomplete: "PARTS",
    TopKUncertain: "WITH PROBABILITY",
}


def options_of(kind: type[Query]) -> list[str]:
    """The arguments of a kind that OPTIONS can name."""
    return [field.name for field in dataclasses.fields(kind) if field.name not in SAID]  # type: ignore[arg-type]


def culprit(kind: type[Query], values: Mapping[str, Any]) -> str | None:
    """Find the argument to blame: without its value the query would be valid."""
    by = {TopKPairs: "abs(a.x - b.x)", TopKGroups: "count(*)"}.get(kind, "x")
    good = {"k": 1, "by": by, "window": Last(1), "threshold": 1.0, "parts": ["p"]}
    for key in values:
        tried = {name: value for name, value in values.items() if name != key}
        if key in good:
            tried[key] = good[key]
        try:
            kind(**tried)
        except (QueryError, TypeError):
            continue
        return key
    return None
