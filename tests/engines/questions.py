"""Any query value, for tests of what queries are: strategies by kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

import skyband as sb
from skyband.query.algorithms import names as known
from skyband.query.kinds import Query
from skyband.query.validation import RESERVED

COMMON = settings(max_examples=150, deadline=None, derandomize=True, database=None)

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=5).filter(
    lambda name: name not in RESERVED
)
columns = st.sampled_from(["x", "y", "z", "delay", "Ünï"])
numbers = st.floats(-1e9, 1e9) | st.integers(-(10**6), 10**6)
weights = st.dictionaries(columns, numbers, min_size=1, max_size=3)
windows = st.one_of(
    st.integers(1, 2**62 - 1).map(sb.Last),
    st.integers(1, 2**62 - 1).map(lambda span: sb.Last(span=span)),
    st.timedeltas(timedelta(microseconds=1), timedelta(days=36500)).map(sb.Last),
    st.builds(
        lambda number, unit: sb.Last(f"{number} {unit}"),
        st.integers(1, 500),
        st.sampled_from(["ns", "us", "ms", "s", "minutes", "hours", "days", "weeks"]),
    ),
)


@st.composite
def nearest(draw: Callable[..., Any]) -> sb.Nearest:
    point = draw(weights)
    factors = {name: draw(st.floats(0, 9)) for name in point} if draw(st.booleans()) else None
    return sb.Nearest(point, factors, draw(st.sampled_from(["euclidean", "manhattan", "chebyshev"])))


scorings = st.one_of(
    st.sampled_from(["x", "0.7*x + 0.3*y", "abs(x - 2) / greatest(y, 1)", "case when x > 0 then x else -x end"]),
    weights.map(sb.Linear),
    weights.map(sb.Product),
    weights.map(sb.Quadratic),
    nearest(),
)
pairings = st.one_of(
    st.sampled_from(["abs(a.x - b.x)", "a.x * b.x", "abs(a.x - b.x) + abs(a.y - b.y)"]),
    st.builds(
        sb.Global,
        st.dictionaries(columns, st.sampled_from(["absdiff", "sum"]), min_size=1, max_size=3),
        st.sampled_from(["sum", "product", "max"]),
    ),
    st.sampled_from(
        [
            sb.Global({"x": "absdiff", "y": "sum"}, weights={"y": -0.5}, transform={"x": "ln(`Ünï`) - x"}),
            sb.Global({"x": "absdiff"}, combine="euclidean", weights={"x": 2}, transform={"x": "y"}),
        ]
    ),
)
pers = st.none() | names | st.lists(names, max_size=3, unique=True).map(tuple)
wheres = st.none() | st.sampled_from(["x > 0", "z = 'a' or y between 1 and 2", "x is not null"])
largest = st.sampled_from([None, True, False])


def algorithms(kind: str) -> st.SearchStrategy[str]:
    return st.sampled_from(["auto", "AUTO", *known(kind), *map(str.lower, known(kind))])


@st.composite
def groups(draw: Callable[..., Any]) -> sb.TopKGroups:
    """Groups of rows, some of which fade."""
    columns = names.filter(lambda name: name.isprintable())
    common = {"of": draw(names | st.lists(names, min_size=1, max_size=3, unique=True)), "largest": draw(largest)}
    common |= {"where": draw(wheres), "per": draw(pers)}
    if draw(st.booleans()):
        by = draw(st.sampled_from(["sum(x)", "count(*)", "2 * sum(x / 3) - count(*)"]))
        half_life = draw(st.sampled_from(["1 hour", "90 s"]) | st.floats(1e-9, 1e9) | st.integers(1, 10**9))
        return sb.TopKGroups(draw(ks), by, sb.Ever(), decay=half_life, **common)
    texts = ["sum(x)", "SUM(`order`)", "avg(x) - min(y)", "count(distinct z)", "last(x) / count(*)", "max(x -- why\n)"]
    select = draw(st.dictionaries(columns, st.sampled_from(texts), max_size=3))
    select = {name: text for name, text in select.items() if name not in (common["per"] or ())}
    having = draw(st.none() | st.sampled_from(["count(*) > 3", "last(z) = 'GROUP' or sum(x) between 1 and 2"]))
    window = draw(windows | st.just(sb.Ever()) | st.just(sb.UntilDeleted()))
    return sb.TopKGroups(draw(ks), draw(st.sampled_from(texts)), window, having=having, select=select, **common)


ks = st.integers(1, 2**31 - 1)
queries: dict[str, st.SearchStrategy[Query]] = {
    "TopK": st.builds(
        sb.TopK,
        ks,
        scorings,
        windows | st.just(sb.UntilDeleted()),
        largest=largest,
        where=wheres,
        per=pers,
        algorithm=algorithms("TopK"),
        gamma=st.floats(0, 9, exclude_min=True),
        sigma=st.floats(0, 1, exclude_min=True, exclude_max=True),
        additional=st.integers(0, 99),
        buffer=st.none() | st.integers(1, 9999),
    ),
    "Above": st.builds(
        sb.Above,
        numbers | st.sampled_from([math.inf, -math.inf]),
        scorings.filter(lambda by: not isinstance(by, sb.Nearest)),
        windows | st.just(sb.UntilDeleted()),
        where=wheres,
        per=pers,
        algorithm=algorithms("Above"),
    ),
    "TopKGroups": groups(),
    "TopKPairs": st.builds(
        sb.TopKPairs,
        ks,
        pairings,
        windows | st.just(sb.UntilDeleted()),
        largest=st.booleans(),
        symmetric=st.booleans(),
        where=wheres,
        on=st.none() | st.sampled_from(["a.x <> b.x", "a.z = 'a' or b.y between 1 and 2"]),
        per=pers,
        algorithm=algorithms("TopKPairs"),
    ),
    "TopKIncomplete": st.builds(
        sb.TopKIncomplete,
        ks,
        st.sampled_from([["north", "south"], {"north": (0, math.inf), "south": (-2.5, 7)}, ("south", "north", "west")]),
        windows,
        combine=st.sampled_from(
            ["sum", "mean", "min", "max", "north + 2*south", sb.Linear({"north": 2, "south": 0.5})]
        ),
        repeat=st.sampled_from([None, "last", "max", "sum"]),
        largest=st.sampled_from([None, True, False]),
        where=wheres,
        per=pers,
        algorithm=algorithms("TopKIncomplete"),
        seed=st.integers(0, 99),
    )
    | st.builds(
        sb.TopKIncomplete,
        ks,
        st.sampled_from(["*", {"*": (0, 9)}]),
        windows,
        combine=st.sampled_from(["sum", "max"]),
        repeat=st.sampled_from([None, "last"]),
    )
    | st.builds(
        sb.TopKIncomplete,
        ks,
        st.just(["north", "south"]),
        windows,
        repeat=st.sampled_from(["max", "sum"]),
        at_most=st.integers(1, 9),
    )
    | st.builds(
        sb.TopKIncomplete,
        st.integers(1, 9),
        st.just(["north", "south"]),
        windows,
        repeat=st.just("last"),
        algorithm=st.just("BUDGET"),
        repeats=st.none() | st.integers(1, 9),
        budget=st.none() | st.integers(9, 999),
    ),
    "TopKUncertain": st.builds(
        lambda semantics, threshold, **other: sb.TopKUncertain(
            semantics=semantics, threshold=threshold if semantics == "pt-k" else None, **other
        ),
        st.sampled_from(["pk-topk", "pt-k", "u-kranks", "u-topk"]),
        st.floats(0, 1, exclude_max=True),
        k=ks,
        by=scorings,
        window=windows,
        probability=names,
        group=st.none() | names,
        largest=largest,
        where=wheres,
        per=pers,
        algorithm=algorithms("TopKUncertain"),
    ),
}
