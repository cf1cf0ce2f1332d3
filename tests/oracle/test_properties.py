"""Properties of the oracle: changes depend on no cut, and add up to the answer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.rows import ids
from skyband.oracle import Oracle
from skyband.query.kinds import Above, Query, TopK, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.query.windows import Last

Row = dict[str, Any]


row = st.fixed_dictionaries(
    {
        "id": st.sampled_from("AB"),
        "s": st.sampled_from([0.0, 1.0, 2.0, None]),
        "u": st.sampled_from([0.5, 1.5]),
        "p": st.sampled_from([0.5, 1.0]),
        "g": st.sampled_from(["x", None]),
        "t": st.integers(0, 9),
        "part": st.sampled_from("ab"),
        "value": st.sampled_from([0.0, 1.0]),
    }
)
MAKERS: list[Callable[[Any], Query]] = [
    lambda window: TopK(2, by="s", window=window, per="g"),
    lambda window: Above(0, by="s", window=window, where="u > 1"),
    lambda window: TopKPairs(2, by="abs(a.u - b.u)", window=window),
    lambda window: TopKIncomplete(2, ["a", "b"], window),
    lambda window: TopKUncertain(2, by="s", window=window, semantics="u-kranks"),
]


@settings(deadline=None, max_examples=40)
@given(st.lists(row, max_size=14), st.lists(st.integers(0, 2), min_size=14, max_size=14))
def test_changes_do_not_depend_on_who_carries_the_clock(rows: list[Row], steps: list[int]) -> None:
    queries = [make(Last(span=3)) for make in MAKERS]
    quiet, ticking = (Oracle(queries, id="id", time="t") for _ in range(2))
    rows = [r | {"s": r["s"] or 0.0} for r in sorted(rows, key=lambda r: int(r["t"]))]
    changes: dict[Oracle, list[Row]] = {quiet: [], ticking: []}
    for r, before in zip(rows, steps, strict=False):
        if ticking.clock is not None and ticking.clock <= r["t"] - before:
            changes[ticking] += ticking.advance(r["t"] - before)
        changes[ticking] += ticking.push([r])
        changes[quiet] += quiet.push([r])
    for name in quiet.queries:
        assert [c for c in changes[quiet] if c["query"] == name] == [c for c in changes[ticking] if c["query"] == name]


@settings(deadline=None, max_examples=40)
@given(st.lists(row, max_size=20), st.sampled_from([Last(4), Last(span=4)]), st.integers(1, 3))
def test_the_skyband_begins_with_the_answer(rows: list[Row], window: Last, k: int) -> None:
    o = Oracle(TopK(k, by="s", window=window, where="u > 1"), time="t")
    for r in rows:
        o.push([r])
        assert o.skyband("q0")[:k] == ids(o)


@settings(deadline=None, max_examples=40)
@given(st.lists(row, max_size=14), st.sets(st.integers(0, 14)), st.sampled_from(["arrival", "batch"]))
def test_changes_do_not_depend_on_cuts_and_add_up_to_the_answer(rows: list[Row], cuts: set[int], emit: str) -> None:
    queries = [make(window) for make in MAKERS for window in (Last(3), Last(span=3))]
    whole, cut = (Oracle(queries, id="id", time="t", emit=emit) for _ in range(2))
    together = whole.push(rows)
    edges = sorted({0, len(rows)} | {c for c in cuts if c < len(rows)})
    apart = [c for a, b in pairwise(edges) for c in cut.push(rows[a:b])]
    for name in whole.queries:
        assert whole.answer(name) == cut.answer(name)
        if emit == "arrival":
            assert [c for c in together if c["query"] == name] == [c for c in apart if c["query"] == name]
        for changes in (together, apart):
            count: dict[Any, int] = {}
            for c in changes:
                if c["query"] == name:
                    who = (c["g"], c["id"], c["id_a"], c["id_b"], c["rank"])
                    count[who] = count.get(who, 0) + c["diff"]
            assert all(n >= 0 for n in count.values())
            assert sum(count.values()) == len(whole.answer(name))
