"""jin2008: the paper's example, its definitions, algorithms and errata, and windows too long for the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engines.streams import examples
from skyband import Last, Monitor, TopKUncertain
from skyband.engines.contract import Arrivals, Spec
from skyband.engines.registry import load
from skyband.engines.uncertain.ccsq import CCSQ
from skyband.engines.uncertain.csq import CSQ
from skyband.engines.uncertain.kernels.queue import CURRENT
from skyband.engines.uncertain.queue_engine import QueueEngine
from skyband.engines.uncertain.queue_groups import run_of, set_runs
from skyband.engines.uncertain.scsq import SCSQ
from skyband.engines.uncertain.semantics import (
    SEMANTICS,
    PkTopk,
    Place,
    Prefix,
    Semantics,
    UkRanks,
    UTopk,
    semantics_of,
)
from skyband.query.tuning import Tuning
from uncertain.letter import Buffer, CorrectedBuffer, CorrectedQueue, Queue, first_wrong

SYNOPSES = ("DOM", "BS", "CSQ", "CCSQ", "SCSQ", "SCSQ-BUFFER")
RADAR = {"id": [1, 2, 3, 4], "speed": [5, 6, 8, 2], "p": [0.8, 0.5, 0.4, 0.4]}  # Table 1


def radar(semantics: Any, algorithm: str, window: int = 10) -> Monitor:
    threshold = 0.3 if semantics == "pt-k" else None
    query = TopKUncertain(2, "speed", Last(window), semantics=semantics, threshold=threshold, algorithm=algorithm)
    monitor = Monitor(query, id="id")
    monitor.push(RADAR)
    return monitor


def shown(monitor: Monitor) -> list[tuple[float, float]]:
    answer = monitor.answer()
    return list(zip(answer.column("score").to_pylist(), answer.column("probability").to_pylist(), strict=True))


# ------------------------------------------------------------------------ Table 1


@pytest.mark.parametrize("algorithm", ["auto", *SYNOPSES])
@pytest.mark.parametrize(
    ("semantics", "expected"),
    [
        ("u-topk", [(6, 0.24), (5, 0.24)]),
        ("u-kranks", [(8, 0.4), (5, 0.4)]),
        ("pt-k", [(5, 0.64), (6, 0.5), (8, 0.4)]),
        ("pk-topk", [(5, 0.64), (6, 0.5)]),
    ],
)
def test_the_radar_readings(algorithm: str, semantics: str, expected: list[tuple[float, float]]) -> None:
    found = shown(radar(semantics, algorithm))
    assert [score for score, _ in found] == [score for score, _ in expected]
    assert [p for _, p in found] == pytest.approx([p for _, p in expected], abs=1e-12)


@pytest.mark.parametrize("algorithm", SYNOPSES)
def test_a_window_of_three_after_the_fourth_reading(algorithm: str) -> None:
    """Section 1: 8 was no answer before, and 5 has expired."""
    assert [score for score, _ in shown(radar("pk-topk", algorithm, window=3))] == [6, 8]


def test_the_compact_set_of_the_radar_readings() -> None:
    """Example 3.1: {8, 6, 5}, and the r of Eq. 2."""
    passed, enough, _ = PkTopk(2).read([0.4, 0.5, 0.8, 0.4])
    assert (passed, enough) == (3, True)
    prefix = Prefix(2)
    seen = []
    for p in (0.4, 0.5, 0.8):
        prefix.add(p)
        seen.append(prefix.exactly)
    assert seen == [pytest.approx([0.6, 0.4]), pytest.approx([0.3, 0.5]), pytest.approx([0.06, 0.34])]


# -------------------------------------------------------------------- definitions

chances = st.lists(st.sampled_from([0.1, 0.25, 0.4, 0.5, 0.5, 0.8, 0.9, 0.97, 1.0]), min_size=1, max_size=12)
all_semantics = st.builds(
    lambda name, k, tau: SEMANTICS[name](k, tau if name == "pt-k" else None),
    st.sampled_from(sorted(SEMANTICS)),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.05, 0.3]),
)


def prefix_of(semantics: Semantics, ps: Sequence[float]) -> Prefix:
    prefix = Prefix(semantics.k)
    for p in ps:
        prefix.add(p)
    return prefix


@examples(400)
@given(all_semantics, chances)
def test_enough_is_sufficient(semantics: Semantics, ps: list[float]) -> None:
    """Theorem 3.1 and its like: the answer from a prefix that is enough is the answer from all."""
    passed, enough, answer = semantics.read(ps)
    assume(enough)
    assert answer == semantics.answer(prefix_of(semantics, ps)), "and the kernel says what the class says"
    assert passed == next(d for d in range(1, len(ps) + 1) if semantics.enough(prefix_of(semantics, ps[:d])))


@examples(400)
@given(all_semantics, chances, st.floats(0.01, 1), st.data())
def test_enough_maintains_itself(semantics: Semantics, ps: list[float], p: float, data: st.DataObject) -> None:
    """Theorems 3.2, 5.1 to 5.3: with one tuple more above its end, a prefix is enough and need not be longer."""
    passed, enough, _ = semantics.read(ps)
    assume(enough)
    at = data.draw(st.integers(0, passed - 1))
    longer = [*ps[:at], p, *ps[at:passed]]
    again, still, _ = semantics.read(longer)
    assert still and again <= passed + 1


@examples(200)
@given(all_semantics, chances)
def test_a_prefix_enough_for_k_is_enough_for_fewer(semantics: Semantics, ps: list[float]) -> None:
    """Why queries of several k share one engine."""
    passed, enough, _ = semantics.read(ps)
    assume(enough and semantics.k > 1)
    fewer = type(semantics)(semantics.k - 1, semantics.threshold)
    again, still, _ = fewer.read(ps[:passed])
    assert still and again <= passed


def distribution(ps: Sequence[Fraction], k: int) -> list[Fraction]:
    r = [Fraction(1)] + [Fraction(0)] * (k - 1)
    for p in ps:
        r = [(r[j - 1] * p if j else 0) + r[j] * (1 - p) for j in range(k)]
    return r


def equation_8(ps: Sequence[Fraction], k: int, *, corrected: bool) -> bool:
    """For each rank j a tuple holds it at least as probably as the right side: max over l <= k; corrected, l <= j."""
    r = distribution(ps, k)
    holds = [[p * chance for chance in distribution(ps[:i], k)] for i, p in enumerate(ps)]
    return all(max(one[j] for one in holds) >= max(r[: j + 1] if corrected else r) for j in range(k))


def test_equation_8_as_printed_does_not_maintain_itself() -> None:
    """Erratum: k = 2, p = (.4, .4, .8), and .2 on top; corrected it holds after as before."""
    before = [Fraction(2, 5), Fraction(2, 5), Fraction(4, 5)]
    after = [Fraction(1, 5), *before]
    assert equation_8(before, 2, corrected=False)
    assert not equation_8(after, 2, corrected=False)
    assert equation_8(before, 2, corrected=True) and equation_8(after, 2, corrected=True)


def test_u_topk_asks_for_less_than_equation_12() -> None:
    """Two certain tuples: Eq. 12 needs them and no more, nor do we; with k = 1 and p = .9 the best tuple is enough."""
    assert UTopk(2).read([1.0, 1.0, 0.5])[:2] == (2, True)
    passed, enough, places = UTopk(1).read([0.9, 0.9, 0.9, 0.9])
    assert (passed, enough, places) == (1, True, [Place(0, 0, 0.9)])


def test_ties_in_probability_go_to_the_higher_rank() -> None:
    """By id a compact set can disagree with the whole window; by rank it cannot."""
    ps = [0.5, 1.0, 0.5]
    assert [place.at for place in PkTopk(2).read(ps)[2]] == [0, 1]


def test_u_kranks_lets_one_object_hold_several_ranks() -> None:
    places = UkRanks(2).read([0.1, 0.1, 0.9])[2]
    assert [(place.at, place.rank) for place in places] == [(2, 1), (2, 2)]
    assert [place.probability for place in places] == pytest.approx([0.729, 0.162])


# ------------------------------------------------------- Example 4.1 and Figure 2


def _segments(engine: SCSQ) -> list[tuple[set[float], set[float]]]:
    """C(S_l) and Lambda of each segment, the newest first."""
    (group,) = engine.groups
    runs = [set(run_of(group.stored, r)["key"].tolist()) for r in set_runs(group.stored)]
    return list(zip(runs[0::2], runs[1::2], strict=True))[::-1]


def _pushed(engine: QueueEngine, keys: Sequence[float], start: int = 0) -> None:
    engine.take(arrivals(np.array(keys, float), np.ones(len(keys)), start))
    engine.check()


@pytest.mark.parametrize("older", [(7, 9, 2), (2, 9, 7), (9, 2, 7)])
@pytest.mark.parametrize("newer", [(6, 1), (1, 6)])
def test_example_4_1_maintaining_the_scsq(older: tuple[int, ...], newer: tuple[int, ...]) -> None:
    """Figure 2 is lost, but the example gives the stream away, up to places that do not matter.

    A compact set is the 3 highest ranked tuples, as the example has it: so it is for k = 3 and sure tuples. 8 expires
    when the ninth comes, so it is the first of eight; 3 begins S4, and 5 is the oldest of C(S4) after it; what is left
    of 1 to 9 is 2, which is in no set, and 4, which comes. Erratum: the new C(S3) cannot be {5, 6, 1}, since 4 has come
    and 5 is the fourth newest, as the merge says; it is {6, 4, 1}.
    """
    engine = SCSQ((Spec(3, 8, None, "pk-topk"),), Tuning(), timed=False, net=False)
    _pushed(engine, (8, *older, 3, 5, *newer))
    assert _segments(engine) == [({5, 6, 1}, set()), ({3, 5, 6}, {8, 7, 9})], "Figure 2 (a)"
    _pushed(engine, (4,), 8)
    assert _segments(engine) == [({6, 4, 1}, {7, 9, 5})], "Figure 2 (b)"
    assert run_of(engine.groups[0].stored, CURRENT)["key"].tolist() == [9, 7, 6]


@pytest.mark.parametrize("semantics", ["pk-topk", "u-topk"])
@pytest.mark.parametrize("name", SYNOPSES[2:])
def test_the_sets_of_a_stream_with_late_tuples_and_of_one_with_ties(name: str, semantics: str) -> None:
    """Longer than the contract suite's, so that segments have tuples between them; every set is looked at."""
    draw = np.random.default_rng(3)
    for scores, size, back in ((40, 7, (0, 0, 0, 3, 25)), (5, 28, (0,))):
        engine = load("TopKUncertain", name)((Spec(3, 40, None, semantics),), Tuning(), timed=True, net=False)
        for start in range(0, 140, size):
            clock = np.arange(start, start + size)
            some = arrivals(
                draw.integers(0, scores, size).astype(float), draw.choice([0.3, 0.5, 0.7, 0.9], size), start
            )
            engine.take(replace(some, stamps=clock - draw.choice(back, size), now=clock))
            engine.check()


# ------------------------------------------------- algorithms 1 and 2, read literally


def test_algorithm_1_read_literally_is_wrong() -> None:
    stream = [(6.0, 0.9), (6.0, 0.8)]
    assert first_wrong(Queue(PkTopk(1)), 3, stream) == 1
    assert first_wrong(CorrectedQueue(PkTopk(1)), 3, stream) is None


def test_algorithm_2_read_literally_loses_tuples() -> None:
    stream = [(6.0, 0.5), (2.0, 0.4), (1.0, 0.4)]
    assert first_wrong(Buffer(PkTopk(1)), 2, stream) == 2
    assert first_wrong(CorrectedBuffer(PkTopk(1)), 2, stream) is None


@pytest.mark.parametrize("queue", [CSQ, CCSQ])
def test_several_compact_sets_expire_at_once(queue: type[CSQ]) -> None:
    """Erratum: with time windows lines 14-16 of Algorithm 1 are a loop."""
    engine = queue((Spec(1, 4, None, "pk-topk"),), Tuning(), timed=True, net=False)
    _pushed(engine, [0.0, -1.0, -2.0, -3.0])  # falling and certain: each is a compact set
    (group,) = engine.groups
    assert [one["stamp"].tolist() for one in engine.sets(group)] == [[0], [1], [2], [3]]
    late = arrivals(np.array([-4.0]), np.ones(1), 5)
    engine.take(late)
    assert [one["stamp"].tolist() for one in engine.sets(group)] == [[2], [3], [5]]
    engine.check()


def test_how_often_the_letter_is_wrong() -> None:
    draw, wrong = np.random.default_rng(7), 0
    for _ in range(300):
        size = draw.integers(3, 10)
        scores, ps = draw.integers(1, 7, size).tolist(), draw.choice([0.2, 0.4, 0.5, 0.8, 0.9], size).tolist()
        k, window = int(draw.integers(1, 3)), int(draw.integers(2, 6))
        stream = list(zip(scores, ps, strict=True))
        wrong += first_wrong(Queue(PkTopk(k)), window, stream) is not None
        assert first_wrong(CorrectedQueue(PkTopk(k)), window, stream) is None
    assert wrong > 60


# -------------------------------------------------------- long streams, whole windows


def arrivals(keys: Any, ps: Any, start: int) -> Arrivals:
    numbers = np.arange(start, start + len(keys))
    return Arrivals(
        rows=np.arange(len(keys)),
        groups=np.zeros(len(keys), np.int64),
        keys=keys,
        stamps=numbers,
        now=numbers,
        eligible=None,
        serial=start,
        size=len(keys),
        clock=0,
        clocks=None,
        total=1,
        probabilities=ps,
    )


@pytest.mark.parametrize("shape", ["random", "rising", "falling", "tiny", "sure", "ties"])
@pytest.mark.parametrize("semantics", SEMANTICS)
def test_windows_of_400(semantics: str, shape: str) -> None:
    """All engines over 3,000 arrivals, against BS in all changes and against the dynamic program at times."""
    draw = np.random.default_rng(5)
    keys, ps = draw.random(3000), 1 - draw.random(3000)
    keys = {"rising": np.sort(keys), "falling": -np.sort(keys), "ties": keys.round(1)}.get(shape, keys)
    ps = {"tiny": ps * 1e-2, "sure": np.where(ps < 0.3, 1.0, np.where(ps < 0.4, 1e-12, ps))}.get(shape, ps)
    spec = Spec(7, 400, 0.25 if semantics == "pt-k" else None, semantics)
    engines = [load("TopKUncertain", name)((spec,), Tuning(), timed=False, net=False) for name in SYNOPSES]
    for start in range(0, 3000, 250):
        here = slice(start, start + 250)
        changes = [engine.take(arrivals(keys[here], ps[here], start)) for engine in engines]
        for name in ("serial", "row", "diff", "first", "probability"):
            for one in changes:
                assert (getattr(one, name) == getattr(changes[1], name)).all()
        window = np.arange(max(0, start + 250 - 400), start + 250)
        order = window[np.lexsort((-window, -keys[window]))]
        read = semantics_of(spec)
        places = read.answer(prefix_of(read, ps[order].tolist()))
        for engine in engines:
            engine.check(deep=engine in engines[:2] or start == 2750)
            ranked = engine.answer(0, spec, np.array([start + 249]), None)
            assert ranked.probability is not None
            mine = sorted(zip(ranked.serial.tolist(), ranked.probability.tolist(), strict=True))
            whole = sorted((int(order[place.at]), place.probability) for place in places)
            assert [serial for serial, _ in mine] == [serial for serial, _ in whole]
            assert [p for _, p in mine] == pytest.approx([p for _, p in whole], abs=1e-9)
    kept = engines[0].size_of(0)
    assert kept + engines[0].buffer == 400 if shape in ("falling", "tiny") else kept < 200
