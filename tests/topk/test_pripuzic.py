"""Tables III, VI and VII of pripuzic2015 step by step, and the two lemmas that promise an error and a size.

The example is that of section 2: top-1 of the last 6 of eleven objects, the smallest score is best. Figure 1 is lost;
the tables fix the order of scores (errata) and, through PA's thresholds, a little more: `SCORES` satisfies them all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

import skyband as sb
from skyband import Last, Monitor, TopK
from skyband.engines.arena import runs
from skyband.engines.topk import odds
from skyband.engines.topk.adaptive import rank_sum
from skyband.engines.topk.buffered import Buffered
from skyband.errors import QueryError

#: Best first (errata). Step 6 of Table VI needs s6 > s4, step 8 needs s8 < s4 + (s4 - s5)/2, step 10 needs
#: s10 > s8 + (s8 - s9)/2. All are short in binary: thresholds are compared exactly.
RANKING = ("o2", "o3", "o1", "o7", "o5", "o9", "o4", "o8", "o6", "o11", "o10")
SCORES = dict(zip(RANKING, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.5, 9.0, 10.0, 11.0), strict=True))
OBJECTS = [f"o{i}" for i in range(1, 12)]
GROUP = np.array([0])


def steps(algorithm: str, **tuning: Any) -> Any:
    """The objects one by one through a Monitor; its engine after each step, with the answer checked."""
    query = sb.TopK(1, by="s", window=sb.Last(6), largest=False, algorithm=algorithm, **tuning)
    monitor = sb.Monitor(query, id="name")
    for i, name in enumerate(OBJECTS):
        monitor.push([{"name": name, "s": SCORES[name]}])
        engine = engine_of(monitor)
        engine.check()
        window = OBJECTS[max(0, i - 5) : i + 1]
        assert monitor.answer().column("id").to_pylist() == [min(window, key=SCORES.__getitem__)]
        yield engine


def engine_of(monitor: sb.Monitor) -> Any:
    return monitor._loop.state.standing()[0].engine


def names(records: Any) -> str:
    return " ".join(OBJECTS[serial] for serial in records["serial"])


def kept(engine: Any) -> tuple[str, str]:
    """The top-k tree and the candidate tree."""
    run = runs(engine.objects, engine.groups, GROUP)
    return names(run[:1]), names(run[1:])


# ---------------------------------------------------------------- Table III, SASF

#: The query k-skyband, the strict filter, the threshold, the FIFO buffer (newest first). This is the variant with an
#: index, which shows the query only objects of the cells around its threshold: o4, o6, o8, o10 and o11 are in none.
TABLE_III = [
    ("o1", "o1", "o1", "o1"),
    ("o2", "o2", "o1", "o2 o1"),
    ("o2", "o2 o3", "o1", "o3 o2 o1"),
    ("o2", "o2 o3", "o1", "o4 o3 o2"),
    ("o2", "o3 o5", "o1", "o5 o4 o3"),
    ("o2 o3", "o5", "o5", "o6 o5 o4"),
    ("o2 o3 o7", "o7", "o5", "o7 o6 o5"),
    ("o3 o7", "o7", "o5", "o8 o7 o6"),
    ("o7", "o7 o9", "o5", "o9 o8 o7"),
    ("o7", "o9", "o9", "o10 o9 o8"),
    ("o7", "o9", "o9", "o11 o10 o9"),
]
UNSEEN = {"o4", "o6", "o8", "o10", "o11"}  # outside of the monitored cells

#: By its definition the strict filter is the 1-skyband of the buffer: with no index the unseen ones are in it until a
#: newer one dominates them. They reach the query's skyband no more than in the paper.
FILTERS = ["o1", "o2", "o2 o3", "o2 o3 o4", "o3 o5", "o5 o6", "o7", "o7 o8", "o7 o9", "o9 o10", "o9 o11"]


def test_table_iii_sasf() -> None:
    threshold = -math.inf
    for i, engine in enumerate(steps("SASF", buffer=3)):
        skyband, seen, limit, buffer = TABLE_III[i]
        assert isinstance(engine, Buffered)
        assert names(runs(engine.objects, engine.groups, GROUP)) == skyband, f"step {i + 1}"
        assert names(runs(engine.waiting, engine.queues, GROUP)[::-1]) == buffer, f"step {i + 1}"
        filtered = runs(engine.filters.objects, engine.filters.groups, GROUP)
        assert names(filtered) == FILTERS[i], f"step {i + 1}"
        assert " ".join(name for name in names(filtered).split() if name not in UNSEEN) == seen, f"step {i + 1}"
        # the score of the k-th of the filter, which the paper follows only when it must: when the sphere grows
        threshold = max(threshold, -filtered["key"][0])
        assert threshold == SCORES[limit], f"step {i + 1}"


@pytest.mark.parametrize("algorithm", ["SARF", "SAPF", "RASF", "RARF", "RAPF"])
def test_the_buffer_of_the_others_is_the_same(algorithm: str) -> None:
    """And the k-skyband of Table III is in their runs at each step (Lemma 5.2, Definition 4.7)."""
    for i, engine in enumerate(steps(algorithm, buffer=3)):
        skyband, _, _, buffer = TABLE_III[i]
        assert names(runs(engine.waiting, engine.queues, GROUP)[::-1]) == buffer
        assert set(skyband.split()) <= set(names(runs(engine.objects, engine.groups, GROUP)).split())


# ---------------------------------------------------------------- Table VI, PA

SIGMA = 0.1  # the paper selects some sigma that makes the limit 3
s4, s8, s9 = (SCORES[name] for name in ("o4", "o8", "o9"))

#: The top-k tree, the candidate tree, the threshold.
TABLE_VI = [
    ("o1", "", math.inf),
    ("o2", "o1", math.inf),
    ("o2", "o3 o1", math.inf),
    ("o2", "o3 o1 o4", math.inf),
    ("o2", "o3 o1 o5 o4", s4),
    ("o2", "o3 o1 o5 o4", s4),  # o6 is ignored
    ("o2", "o3 o7 o5 o4", s4),
    ("o3", "o7 o5 o4 o8", s8),  # o8 is worse than s4, but not than s4 + (s4 - s5)/2
    ("o7", "o5 o9 o4 o8", s8),
    ("o7", "o5 o9 o8", s8 + (s8 - s9) / 2),  # o10 is ignored
    ("o7", "o9 o8 o11", math.inf),
]


def test_table_vi_pa() -> None:
    """It is sound as printed. (The text to step 6 says "its score is smaller than s4": larger.)"""
    assert odds.candidates(6, 1, SIGMA) == 3
    for i, engine in enumerate(steps("PA", sigma=SIGMA, additional=1)):
        *trees, threshold = TABLE_VI[i]
        assert engine.rule[0]["limit"] == 3
        assert kept(engine) == tuple(trees), f"step {i + 1}"
        assert -engine.caps[0]["threshold"] == threshold, f"step {i + 1}"


def test_pa_keeps_no_more_than_its_limit() -> None:
    """Beyond Table VI: scores rise, so every arrival is good, and the worst candidate goes."""
    monitor = sb.Monitor(sb.TopK(1, by="s", window=sb.Last(6), algorithm="PA", sigma=SIGMA, additional=1))
    for i in range(12):
        monitor.push([{"s": float(i)}])
        assert engine_of(monitor).groups["size"][0] == min(i + 1, 5)


# ---------------------------------------------------------------- Table VII, RA

#: The top-k tree, the candidate tree without what is struck out, the limit after the step (from the text).
TABLE_VII = [
    ("o1", "", 4),
    ("o2", "o1", 4),
    ("o2", "o3 o1", 4),
    ("o2", "o3 o1 o4", 4),
    ("o2", "o3 o5", 3),
    ("o2", "o3 o5 o6", 5),
    ("o2", "o3 o7 o5 o6", 5),
    ("o3", "o7 o5 o8 o6", 5),
    ("o7", "o5 o9 o8 o6", 5),
    ("o7", "o9 o10", 3),
    ("o7", "o9 o11 o10", 3),
]
#: Step 11 contradicts Alg. 3, line 15: three candidates reach the limit of 3, as they did at step 6, so o10, which
#: the newer o11 dominates, is pruned. (With the text's "becomes larger than the limit" steps 5 and 10 would prune
#: nothing, and step 11 would prune o10 again.)
STEP_11 = ("o7", "o9 o11", 3)


def test_table_vii_ra() -> None:
    for i, engine in enumerate(steps("RA", gamma=0.5)):
        *trees, limit = TABLE_VII[i] if i < 10 else STEP_11
        assert kept(engine) == tuple(trees), f"step {i + 1}"
        assert engine.caps[0]["limit"] == limit, f"step {i + 1}"


# ---------------------------------------------------------------- Lemma 4.6, the errors of PA

ARRIVALS, WINDOW = 50_000, 200


def result_stream(scores: Any, k: int, algorithm: str, limit: int | None = None) -> set[int]:
    """Who is ever reported; with another limit than sigma asks for, if one is given."""
    query = sb.TopK(k, by="x", window=sb.Last(WINDOW), algorithm=algorithm, sigma=0.5, additional=0)
    monitor = sb.Monitor(query)
    monitor.push({"x": scores[:1]})
    if limit is not None:
        engine_of(monitor).rule["limit"] = limit
    changes = monitor.push({"x": scores[1:]}).to_pydict()
    return {0} | {one for one, first in zip(changes["id"], changes["first"], strict=True) if first}


def errors_of_pa(k: int, limit: int | None = None) -> tuple[float, float]:
    """Missed and false ones of a stream in random order, on average."""
    missed, false = [], []
    for seed in range(4):
        scores = np.random.default_rng(seed).random(ARRIVALS)
        exact, found = result_stream(scores, k, "SA"), result_stream(scores, k, "PA", limit)
        missed.append(len(exact - found))
        false.append(len(found - exact))
    return float(np.mean(missed)), float(np.mean(false))


@pytest.mark.parametrize(("k", "few"), [(1, 0), (5, 3), (20, 6)])
def test_lemma_4_6(k: int, few: int) -> None:
    """Under sigma·N/n = 125 are missed, under 1.5·sigma·N/n are false: a tenth of it, as engines/topk/odds.py says.

    With a third of the candidates or fewer more are missed: it is the limit that keeps the promise.
    """
    may_miss, may_be_false = odds.misses(0.5, ARRIVALS, WINDOW), odds.false_ones(0.5, ARRIVALS, WINDOW)
    assert may_miss == pytest.approx(125)
    assert may_be_false == pytest.approx(187.5)
    missed, false = errors_of_pa(k)
    assert 0 < missed < may_miss / 10
    assert false < may_be_false / 10
    assert 3 * few <= odds.candidates(WINDOW, k, 0.5)
    assert errors_of_pa(k, few)[0] > may_miss


# ---------------------------------------------------------------- Lemma 4.9, the size of a relaxed skyband


@pytest.mark.parametrize(("n", "gamma", "size"), [(1000, 0.2, 60.1), (1000, 1.0, 78.3), (2000, 1.0, 88.7)])
def test_lemma_4_9(n: int, gamma: float, size: float) -> None:
    """(1 + gamma/2)·n' - gamma/2·k with n' = k + k·(H_n - H_k), on average over steps 23 apart (n = 1000: 150 windows).

    The paper's n' = k·ln(n/k) is 16 % lower and more, far outside of the tolerance.
    """
    k, apart = 10, 23
    expected = odds.relaxed_size(n, k, gamma)
    assert expected == pytest.approx(size, abs=0.05)
    printed = (1 + gamma / 2) * k * math.log(n / k) - gamma / 2 * k
    scores = np.random.default_rng(n).random(150_000)
    monitor = sb.Monitor(sb.TopK(k, by="x", window=sb.Last(n), algorithm="RA", gamma=gamma))
    monitor.push({"x": scores[: 5 * n]})
    sizes = []
    for begin in range(5 * n, len(scores), apart):
        monitor.push({"x": scores[begin : begin + apart]})
        sizes.append(int(engine_of(monitor).groups["size"][0]))
    assert np.mean(sizes) == pytest.approx(expected, rel=0.02)
    assert np.mean(sizes) > 1.1 * printed


# --- ADAPTIVE


def switching(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Random order, then falling for three windows, then random again, on another scale."""
    falling = np.linspace(1, -4, 3 * n) + 0.02 * rng.random(3 * n)
    return np.concatenate([rng.random(5 * n), falling, 3 * rng.random(6 * n)])


@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_adaptive_loses_nothing_where_pa_loses_thousands(emit: Any) -> None:
    n, k = 1000, 5
    scores = switching(np.random.default_rng(1), n)
    monitors = {
        name: Monitor(TopK(k, by="x", window=Last(n), algorithm=name), emit=emit) for name in ("SA", "PA", "ADAPTIVE")
    }
    result: dict[str, list[int]] = {name: [] for name in monitors}
    turns = []
    for begin in range(0, len(scores), 100):
        for name, monitor in monitors.items():
            told = monitor.push({"x": scores[begin : begin + 100]})
            result[name] += [row["id"] for row in told.to_pylist() if row["first"]]
            if begin % 700 == 0:
                monitors[name] = Monitor.restore(monitor.snapshot())
        engine: Any = monitors["ADAPTIVE"]._loop.state.standing()[0].engine
        engine.check()
        turns.append(int(engine.state[0]))
    assert result["ADAPTIVE"] == result["SA"]
    assert len(set(result["SA"]) - set(result["PA"])) > (1000 if emit == "arrival" else 10)
    changes = np.flatnonzero(np.diff(turns))
    assert len(changes) == 3, "PA answers, then BLOCK, then PA again"
    assert 50 <= changes[1] <= 52, "BLOCK answers within two blocks of the change"


def lost_at_a_switch(n: int, k: int, limit: int, b: int) -> float:
    """Objects of the k-skyband, in random order, that are neither PA's nor among the last b: expected."""
    ages = b / n + (1 - b / n) * (np.arange(500) + 0.5) / 500
    total = 0.0
    for better in range(k + limit, n):
        ways = [math.lgamma(better + 1) - math.lgamma(j + 1) - math.lgamma(better - j + 1) for j in range(k)]
        newer = [np.exp(w + j * np.log(ages) + (better - j) * np.log1p(-ages)) for j, w in enumerate(ways)]
        total += (1 - b / n) * float(np.sum(newer, axis=0).mean())
    return total


def test_a_ring_that_is_shorter_than_the_window_would_lose_what_pa_has_ignored() -> None:
    """Why ADAPTIVE does not switch from PA to an exact algorithm over recent arrivals."""
    n, k = 1000, 5
    limit, rings, lost = odds.candidates(n, k, 0.001), (0, 50, 250), np.zeros((12, 3))
    for seed in range(12):
        random = np.random.default_rng(seed).random(2 * n)
        exact, pa = (Monitor(TopK(k, by="x", window=Last(n), algorithm=name)) for name in ("SA", "PA"))
        for monitor in (exact, pa):
            monitor.push({"x": random})
        held = engine_of(pa).serials()[0]
        later = exact.push({"x": -np.arange(n, dtype=float)})  # all that can become an answer does
        needed = np.unique(later.filter(pc.greater(later["diff"], 0))["id"].to_numpy())
        missing = np.setdiff1d(needed[needed < 2 * n], held)
        lost[seed] = [(missing < 2 * n - ring).sum() for ring in rings]
    expected = [lost_at_a_switch(n, k, limit, ring) for ring in rings]
    assert lost.mean(axis=0) == pytest.approx(expected, rel=0.35, abs=0.15)
    assert min(expected) > 10 * 0.001, "PA misses less than 0.001 in a window"


def test_the_test_of_adaptive_finds_what_it_says() -> None:
    rng = np.random.default_rng(2)
    past = rng.standard_normal((300, 7 * 256))
    same, third, half = (rng.standard_normal((300, 256)) + shift for shift in (0.0, 1 / 3, 0.5))
    found = [np.mean([abs(rank_sum(a, b)) > 4 for a, b in zip(new, past, strict=True)]) for new in (same, third, half)]
    assert found[0] == 0 and 0.6 < found[1] < 0.9 and found[2] > 0.98
    assert abs(rank_sum(np.array([1.0, 1, 2]), np.array([1.0, 2, 2])) + 0.7454) < 1e-3, "ties share their rank"


def test_adaptive_says_where_its_limits_are() -> None:
    with pytest.raises(QueryError, match="Use BLOCK"):
        Monitor(TopK(1, by="x", window=Last(10), per="g", algorithm="adaptive"))
    with pytest.raises(QueryError, match="Last\\(n\\)"):
        Monitor(TopK(1, by="x", window=Last("1 hour"), algorithm="adaptive"), time="t")


def test_pa_does_not_answer_for_a_window_that_it_has_not_kept() -> None:
    monitor = Monitor(TopK(2, by="x", window=Last(50), algorithm="PA"))
    monitor.push({"x": [1.0, 2.0, 3.0]})
    with pytest.raises(QueryError, match="its own window"):
        monitor.answer(window=10)
    assert monitor.answer(k=1).num_rows == 1
