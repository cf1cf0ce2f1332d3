"""Alternatives (x-tuples) and DOM's drop rule: where the stop conditions maintain themselves, and where they do not.

In exact fractions, straight from the definitions. A tuple is (its probability, its group or None); best first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engines.streams import examples
from skyband import Last, Monitor, TopKUncertain
from skyband.engines.uncertain.kernels.rivals import MOST
from skyband.engines.uncertain.rivals import Rivals

Ranking: TypeAlias = Sequence[tuple[Fraction, int | None]]


def sums(ranking: Ranking, without: int | None = None) -> list[Fraction]:
    """The probability of each group of alternatives that one of them exists; without a named group."""
    found: dict[object, Fraction] = {}
    for i, (p, name) in enumerate(ranking):
        if name is None or name != without:
            key = ("alone", i) if name is None else ("group", name)
            found[key] = found.get(key, Fraction(0)) + p
    return list(found.values())


def exactly(groups: Sequence[Fraction], k: int) -> list[Fraction]:
    """The probability that 0, 1, ... k-1 of the groups exist."""
    r = [Fraction(1)] + [Fraction(0)] * (k - 1)
    for p in groups:
        r = [(r[j - 1] * p if j else 0) + r[j] * (1 - p) for j in range(k)]
    return r


def holds(ranking: Ranking, k: int) -> list[list[Fraction]]:
    """Of each tuple the probabilities that it exists and exactly 0, 1, ... k-1 above it do."""
    return [[p * x for x in exactly(sums(ranking[:i], name), k)] for i, (p, name) in enumerate(ranking)]


def pk_topk(ranking: Ranking, k: int) -> bool:
    chances = sorted((sum(one) for one in holds(ranking, k)), reverse=True)
    return len(chances) >= k and chances[k - 1] >= sum(exactly(sums(ranking), k))


def pt_k(ranking: Ranking, k: int) -> bool:
    return sum(exactly(sums(ranking), k)) <= Fraction(3, 10)


def u_kranks(ranking: Ranking, k: int) -> bool:
    """For every rank j + 1: a tuple holds it at least as probably as at most j of the prefix exist."""
    most, found = exactly(sums(ranking), k), holds(ranking, k)
    return len(ranking) >= k and all(max(one[j] for one in found) >= sum(most[: j + 1]) for j in range(k))


def choice(ranking: Ranking, chosen: Sequence[int]) -> Fraction:
    """The probability that just these tuples of a ranking exist; 0 if they exclude each other."""
    names = [ranking[i][1] for i in chosen if ranking[i][1] is not None]
    if len(set(names)) < len(names):
        return Fraction(0)
    rest = [one for i, one in enumerate(ranking) if i not in chosen and (one[1] is None or one[1] not in names)]
    present = prod((ranking[i][0] for i in chosen), start=Fraction(1))
    return prod((1 - p for p in sums(rest)), start=present)


def best_answer(ranking: Ranking, k: int) -> tuple[Fraction, tuple[int, ...]]:
    answers = [(choice(ranking[: c[-1] + 1], c), c) for c in combinations(range(len(ranking)), k)]
    return max(answers, default=(Fraction(0), ()))


def u_topk(ranking: Ranking, k: int) -> bool:
    """The best answer is at least as probable as any choice of fewer than k of the prefix."""
    fewer = [choice(ranking, c) for size in range(k) for c in combinations(range(len(ranking)), size)]
    return best_answer(ranking, k)[0] >= max(fewer)


@st.composite
def rankings(draw: st.DrawFn, size: int = 6) -> list[tuple[Fraction, int | None]]:
    left: dict[int, Fraction] = {}
    found: list[tuple[Fraction, int | None]] = []
    for _ in range(draw(st.integers(1, size))):
        p, name = Fraction(draw(st.sampled_from([1, 3, 5, 8, 10, 12, 16, 20])), 20), draw(st.sampled_from([None, 1, 2]))
        if name is not None and p > left.get(name, Fraction(1)):
            continue
        if name is not None:
            left[name] = left.get(name, Fraction(1)) - p
        found.append((p, name))
    return found


@pytest.mark.parametrize("enough", [pk_topk, pt_k, u_kranks])
@examples(300)
@given(st.integers(1, 3), rankings(7), st.data())
def test_three_conditions_maintain_themselves_with_alternatives(
    enough: object, k: int, ranking: list[tuple[Fraction, int | None]], data: st.DataObject
) -> None:
    """One tuple more, anywhere in a prefix that is enough, leaves it enough (proof: bs.md)."""
    assert callable(enough)
    assume(len(ranking) > 1)
    new = data.draw(st.integers(0, len(ranking) - 1))
    before = [*ranking[:new], *ranking[new + 1 :]]
    assume(enough(before, k))
    assert enough(ranking, k)


@examples(150)
@given(rankings(6), st.data())
def test_the_condition_of_u_topk_maintains_itself_for_the_best_one(
    ranking: list[tuple[Fraction, int | None]], data: st.DataObject
) -> None:
    assume(len(ranking) > 1)
    new = data.draw(st.integers(0, len(ranking) - 1))
    assume(u_topk([*ranking[:new], *ranking[new + 1 :]], 1))
    assert u_topk(ranking, 1)


A, B, M, S = ((Fraction(44, 100), None), (Fraction(44, 100), None), (Fraction(6, 10), 7), (Fraction(4, 10), 7))


def test_the_condition_of_u_topk_does_not_maintain_itself() -> None:
    """An alternative of the third tuple comes on top: answers lose, the choice of that tuple does not."""
    assert u_topk([A, B, M], 2) and not u_topk([S, A, B, M], 2)
    sure = (Fraction(1), None)
    assert best_answer([A, B, M, sure], 2)[1] == (0, 1)
    assert best_answer([S, A, B, M, sure], 2)[1] == (3, 4), "a tuple below the prefix is in the answer"


def test_a_tuple_that_dom_would_drop_enters_the_answer_of_u_topk() -> None:
    monitor = Monitor(TopKUncertain(2, "x", Last(9), semantics="u-topk", group="r"))
    monitor.push({"x": [1.0, 4.0, 3.0, 2.0], "p": [1.0, 0.44, 0.44, 0.6], "r": [None, None, None, "g"]})
    assert monitor.answer()["score"].to_pylist() == [4.0, 3.0], "the three newer ones are enough without it"
    monitor.push({"x": [5.0], "p": [0.4], "r": ["g"]})
    assert monitor.answer()["score"].to_pylist() == [2.0, 1.0]


@pytest.mark.parametrize("turned", [False, True])
def test_of_equally_probable_choices_the_one_with_the_higher_members_counts(turned: bool) -> None:
    """The second of a's alternatives alone, or b alone: .1640625 each, and b ranks higher."""
    rows = [(5.0, 0.125, "a"), (4.0, 0.25, "b"), (3.0, 0.21875, "a"), (1.0, 1.0, None)]
    monitor = Monitor(TopKUncertain(2, "x", Last(9), semantics="u-topk", group="r"))
    x, p, r = zip(*(rows[::-1] if turned else rows), strict=True)
    monitor.push({"x": x, "p": p, "r": r})
    assert monitor.answer().to_pydict()["score"] == [4.0, 1.0]
    assert set(monitor.answer().to_pydict()["probability"]) == {0.1640625}


def test_a_tuple_that_no_answer_needs_still_decides_which_rows_are_rejected() -> None:
    """Why all valid rows that have a name are remembered, whatever is dropped."""
    for algorithm in ("BS", "DOM"):
        monitor = Monitor(TopKUncertain(1, "x", Last(9), group="r", algorithm=algorithm))
        monitor.push({"x": [1.0, 9.0], "p": [0.6, 1.0], "r": ["g", None]})
        monitor.push({"x": [10.0], "p": [0.5], "r": ["g"]})
        assert monitor.stats()["rejected"] == {"probabilities of a group pass 1": 1}
        assert monitor.answer()["score"].to_pylist() == [9.0]


NEAR_ONE = st.integers(-3000, 3000).map(lambda n: 1e-12 + n * 2.0**-53)  # around what they may add up to


@examples(200)
@given(
    st.lists(st.floats(1e-300, 0.4) | st.sampled_from([0.1, 0.2, 0.3, 1e-17, 2.0**-60]), min_size=1, max_size=7),
    NEAR_ONE,
    st.booleans(),
)
def test_the_sum_of_a_name_equals_fsum(chances: list[float], beyond: float, timed: bool) -> None:
    """Rows whose sum is near what a name may have, validated three times with other rows, and undone in between."""
    rest = 1 + beyond - math.fsum(chances)
    p = np.array([*chances, min(max(rest, 1e-300), 1.0), 2.0**-53, 1e-13])
    rivals, size, none = Rivals(50, timed=timed), len(p), np.zeros(0, np.int64)
    expected, sums = [], list[float]()
    for one in p.tolist():
        expected.append(math.fsum([*sums, one]) > MOST)
        sums += [] if expected[-1] else [one]

    def validate(count: int, clock: int) -> list[bool]:
        names, groups, rows = np.full(count, 7), np.zeros(count, np.int64), np.arange(count)
        clocks = np.full(count, clock) if timed else none
        counts = np.full(1, 0 if timed else clock)
        named, times = np.ones(count, np.bool_), clocks
        found = rivals.validate(names, named, p[:count], groups, rows, times, clocks, counts, 50)
        return [bool(one) for one in found]

    validate(size, 0)
    assert validate(size, 0) == expected, "what was not taken is forgotten"
    rivals.keep()
    validate(size, 1000)  # all have expired by then, and then they have not
    again = [math.fsum([*sums, one]) > MOST for one in p[:1].tolist()]
    assert validate(1, size) == again, "what had been let go is there again"


def test_a_rejected_row_lets_no_alternative_expire() -> None:
    """It moves no clock, so a row that is older than it still meets those that would be gone by then."""
    query = TopKUncertain(2, by="x", window=Last(span=6), group="name")
    for cuts in ([[0, 1, 2, 3]], [[0, 1, 2], [3]], [[0], [1], [2], [3]]):
        monitor = Monitor(query, time="t")
        times, names, chances = [6, 11, 12, 11], ["a", "b", "b", "a"], [0.75, 0.75, 0.5, 0.5]
        for cut in cuts:
            batch = pa.table({"t": times, "name": names, "p": chances, "x": [0.0] * 4})
            monitor.push(batch.take(cut))
        assert monitor.stats()["arrivals"] == 2, cuts  # at 11 the first is valid still: it leaves at 12
        assert sorted(monitor.answer().column("time").to_pylist()) == [6, 11]


@pytest.mark.parametrize("more", [[], [TopKUncertain(2, "x", Last(2))]])
def test_a_row_that_deletes_is_no_tuple_beside_a_row_that_passes_1(more: list[TopKUncertain]) -> None:
    rows = {"id": [1, 2, 3], "x": [1.0, 2.0, 5.0], "g": ["a", "a", "b"], "p": [0.7, 0.7, 0.5]}
    monitor = Monitor([TopKUncertain(3, "x", Last(5), group="g"), *more], id="id", op="op")
    monitor.push({**rows, "op": ["insert", "insert", "delete"]})
    assert monitor.answer("q0")["id"].to_pylist() == [1]
    assert monitor.stats()["queries"]["q0"]["arrivals"] == 1
