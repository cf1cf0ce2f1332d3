"""Uncertain objects in the oracle: the examples of jin2008, and all possible worlds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.rows import brief, ids, objects
from skyband.oracle import Oracle
from skyband.oracle.objects import Arrival
from skyband.oracle.uncertain import (
    most_probable_top_k,
    rank_probabilities,
    rank_probabilities_by_worlds,
    top_k_probabilities_by_worlds,
)
from skyband.query.kinds import TopKUncertain
from skyband.query.windows import Last

Row = dict[str, Any]


RADAR = [(5, 0.8), (6, 0.5), (8, 0.4), (2, 0.4)]  # jin2008, Table 1: speed, probability


@pytest.mark.parametrize(
    ("semantics", "threshold", "expected"),
    [
        ("u-topk", None, [(1, 6, 0.24), (2, 5, 0.24)]),
        ("u-kranks", None, [(1, 8, 0.4), (2, 5, 0.6 * 0.5 * 0.8 + 0.4 * 0.5 * 0.8)]),
        ("pt-k", 0.3, [(1, 5, 0.64), (2, 6, 0.5), (3, 8, 0.4)]),
        ("pk-topk", None, [(1, 5, 0.64), (2, 6, 0.5)]),
    ],
)
def test_worked_example_of_jin2008(semantics: Any, threshold: float | None, expected: list[Any]) -> None:
    query = TopKUncertain(2, by="s", window=Last(4), semantics=semantics, threshold=threshold)
    o = Oracle(query, id="s")
    changes = o.push([{"s": s, "p": p} for s, p in RADAR])
    assert list(changes[0]) == ["query", "at", "id", "score", "rank", "probability", "diff", "first"]
    answer = o.answer()
    assert [(r["rank"], r["id"]) for r in answer] == [(rank, id) for rank, id, _ in expected]
    assert [r["probability"] for r in answer] == pytest.approx([p for *_, p in expected])


def test_worked_example_of_jin2008_slides() -> None:
    o = Oracle(TopKUncertain(2, by="s", window=Last(3)), id="s")
    o.push([{"s": s, "p": p} for s, p in RADAR[:3]])
    assert set(ids(o)) == {6, 5}
    changes = o.push([{"s": 2, "p": 0.4}])  # 5 expires
    assert brief(changes) == ["3 -5", "3 +8*"]
    assert [c["probability"] for c in changes] == pytest.approx([0.64, 0.4])  # of 5 the last it had
    assert ids(o) == [6, 8]


def test_u_kranks_changes_are_of_object_and_rank() -> None:
    #  A alone holds rank 1. B on top: B is most probable at rank 1, A keeps .5 for rank 2.
    o = Oracle(TopKUncertain(2, by="s", window=Last(2), semantics="u-kranks"), id="id")
    assert brief(o.push(objects("A1", p=1.0))) == ["0 +A#1*"]  # nobody can hold rank 2
    assert brief(o.push(objects("B2", p=0.75))) == ["1 -A#1", "1 +B#1*", "1 +A#2*"]
    assert [(r["rank"], r["id"], r["probability"]) for r in o.answer()] == [(1, "B", 0.75), (2, "A", 0.75)]


def test_u_topk_ties_and_too_few_objects() -> None:
    o = Oracle(TopKUncertain(2, by="s", window=Last(2), semantics="u-topk", where="s < 9"), id="id")
    assert o.push(objects("A3", p=0.5) + objects("Z9", p=0.5)) == []
    assert o.push(objects("B3", p=0.5)) == []  # A expires
    assert brief(o.push(objects("C4", p=0.5))) == ["3 +C*", "3 +B*"]
    o = Oracle(TopKUncertain(1, by="s", window=Last(4), semantics="u-topk"), id="id")
    o.push(objects("A3", p=0.5) + objects("B2", p=1.0))  # A first: .5; B first: .5
    assert ids(o) == ["A"]


def test_alternatives_exclude_each_other() -> None:
    #  A9 .5 and B8 .5 are alternatives: exactly one exists. C7 exists always, so it is second for sure.
    o = Oracle(TopKUncertain(2, by="s", window=Last(3), group="x"), id="id")
    rows = objects("A9 B8", x=1, p=0.5) + objects("C7", x=None, p=1.0)
    o.push(rows)
    assert [(r["id"], r["probability"]) for r in o.answer()] == [("C", 1.0), ("A", 0.5)]
    o.push(objects("D9", x=1, p=0.5))  # A goes as D comes: their sum is never above 1
    assert [(r["id"], r["probability"]) for r in o.answer()] == [("C", 1.0), ("D", 0.5)]
    o.push(objects("E9", x=1, p=0.75))
    assert o.rejected == {"probabilities of a group pass 1": 1}
    o = Oracle(TopKUncertain(2, by="s", window=Last(3), group="x", semantics="u-topk"), id="id")
    o.push(rows)
    assert [(r["id"], r["probability"]) for r in o.answer()] == [("A", 0.5), ("C", 0.5)]


probable = st.tuples(st.sampled_from([0.125, 0.25, 0.5, 0.75, 1.0, 0.1, 0.9]), st.sampled_from([None, None, "x", "y"]))


@settings(deadline=None, max_examples=60)
@given(st.lists(probable, max_size=7), st.integers(1, 4))
def test_probabilities_equal_those_over_all_possible_worlds(drawn: list[tuple[float, str | None]], k: int) -> None:
    ranking: list[Arrival] = []
    for i, (p, rival) in enumerate(drawn):
        taken = sum(o.probability for o in ranking if rival is not None and o.rival == rival)
        if p + taken <= 1:
            ranking.append(Arrival({}, i, None, number=i, probability=p, rival=rival))
    by_worlds = rank_probabilities_by_worlds(ranking, k)
    for o, held in rank_probabilities(ranking, k).items():
        assert held == pytest.approx(by_worlds[o], abs=1e-12)
    answers = {first: p for first, p in top_k_probabilities_by_worlds(ranking, k).items() if p > 0}
    best = most_probable_top_k(ranking, k)
    if not answers:
        assert best == []
        return
    chosen = tuple(member.objects[0] for member in best)
    most = max(answers.values())
    assert answers[chosen] == pytest.approx(most, abs=1e-12)
    assert best[0].probability == pytest.approx(most, abs=1e-12)
    if all(p in (0.125, 0.25, 0.5, 0.75, 1.0) for p, _ in drawn):  # exact in floats: ties are ties

        def worst_first(first: tuple[Arrival, ...]) -> list[int]:
            return [o.number for o in reversed(first)]

        assert chosen == min((first for first, p in answers.items() if p == most), key=worst_first)
