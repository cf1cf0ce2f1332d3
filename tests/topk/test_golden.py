"""What the papers print, step by step and number by number.

pripuzic2015: Pripužić, Podnar Žarko, Aberer: Time- and Space-Efficient Sliding Window Top-k Query Processing.
TODS 2015. What is misprinted there is listed in the project's errata.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import skyband as sb
from skyband import Last, Monitor, TopK
from skyband.oracle import Oracle

# ---------------------------------------------------------------- the size of a skyband


def mean_size(n: int, k: int) -> float:
    """K + k·(H_n - H_k): an object of age a (0 the newest) is kept when fewer than k of the a newer ones are better.

    In random order that has probability min(1, k / (a + 1)). The errata to pripuzic2015 have the paper's slip
    (Lemma 4.9, section 7), which counts only the candidates below the top k.
    """
    return sum(min(1.0, k / (age + 1)) for age in range(n))


def variance_of_size(n: int, k: int) -> float:
    """Whether an object is kept is independent of age to age: its rank among those not older is (Rényi's records)."""
    return sum(p * (1 - p) for p in (min(1.0, k / (age + 1)) for age in range(n)))


@pytest.mark.parametrize(("n", "k", "mean"), [(1000, 10, 55.57), (2000, 5, 34.48), (500, 1, 6.79), (300, 50, 139.17)])
def test_mean_size_in_random_order(n: int, k: int, mean: float) -> None:
    """Within four standard errors: windows n apart share no object, so their sizes are independent.

    240 windows: the error is 0.4 at n=1000, k=10, where the errata measured 55.8.
    """
    assert mean_size(n, k) == pytest.approx(mean, abs=0.005)
    harmonic = [math.fsum(1 / i for i in range(1, m + 1)) for m in (n, k)]
    assert mean_size(n, k) == pytest.approx(k + k * (harmonic[0] - harmonic[1]))
    windows = 60
    sizes = []
    for seed in range(4):
        scores = np.random.default_rng(seed).random((windows, n))
        monitor = sb.Monitor(sb.TopK(k, by="x", window=sb.Last(n)))
        for window in scores:
            monitor.push({"x": window})
            sizes.append(monitor.stats()["queries"]["q0"]["objects"])
    error = math.sqrt(variance_of_size(n, k) / len(sizes))
    assert abs(np.mean(sizes) - mean_size(n, k)) < 4 * error
    # and the sizes vary as much as they should: four standard errors of a variance, sizes being close to normal
    ratio = np.var(sizes, ddof=1) / variance_of_size(n, k)
    assert abs(ratio - 1) < 4 * math.sqrt(2 / (len(sizes) - 1))


def test_the_extremes_of_the_size() -> None:
    """Falling scores keep everything, rising ones only k."""
    for scores, kept in ((-np.arange(500.0), 100), (np.arange(500.0), 7), (np.zeros(500), 7)):
        monitor = sb.Monitor(sb.TopK(7, by="x", window=sb.Last(100)))
        monitor.push({"x": scores})
        assert monitor.stats()["queries"]["q0"]["objects"] == kept


# ------------------------------------------------- the worked example of pripuzic2015, section 2

#: The lost Figure 1: the best object first (errata). The query asks for the nearest neighbour of the last 6 objects.
RANKING = ("o2", "o3", "o1", "o7", "o5", "o9", "o4", "o8", "o6", "o11", "o10")
OBJECTS = [f"o{i}" for i in range(1, 12)]

#: Step i: the top-1 (Table II, CPM/w), and the strict 1-skyband by Definition 3.8: who is better than all newer ones.
STEPS = [
    ("o1", {"o1"}),
    ("o2", {"o2"}),
    ("o2", {"o2", "o3"}),
    ("o2", {"o2", "o3", "o4"}),
    ("o2", {"o2", "o3", "o5"}),
    ("o2", {"o2", "o3", "o5", "o6"}),
    ("o2", {"o2", "o3", "o7"}),
    ("o3", {"o3", "o7", "o8"}),
    ("o7", {"o7", "o9"}),
    ("o7", {"o7", "o9", "o10"}),
    ("o7", {"o7", "o9", "o11"}),
]

#: Table II, SNN: the part of the skyband whose score is within the indexing threshold. The query is indexed with s1
#: until o3 expires (no re-indexing when the threshold could shrink), then with s7: o4 to o8, which are worse than o1,
#: and o9 to o11, worse than o7, are never seen. With o7 unseen at step 8 SNN must recompute at step 9; SA need not.
TABLE_II = [
    *({"o1"}, {"o2"}, {"o2", "o3"}, {"o2", "o3"}, {"o2", "o3"}, {"o2", "o3"}, {"o2", "o3"}, {"o3"}),
    *({"o7"}, {"o7"}, {"o7"}),
]


def example() -> tuple[sb.TopK, dict[str, list[object]]]:
    query = sb.TopK(1, by=sb.Nearest({"x": 0, "y": 0}), window=sb.Last(6))
    distances = [float(RANKING.index(name) + 1) for name in OBJECTS]
    return query, {"name": list(OBJECTS), "x": [0.6 * d for d in distances], "y": [0.8 * d for d in distances]}


def test_worked_example_step_by_step() -> None:
    query, columns = example()
    monitor, oracle = sb.Monitor(query, id="name"), Oracle(query, id="name")
    shown: set[str] = set()
    for i, (top, skyband) in enumerate(STEPS):
        row = {name: column[i] for name, column in columns.items()}
        for change in monitor.push([row]).to_pylist():
            assert change["at"] == i
            (shown.add if change["diff"] > 0 else shown.remove)(change["id"])
        oracle.push([row])
        assert monitor.answer().column("id").to_pylist() == [top]
        assert shown == {top}
        assert set(oracle.skyband()) == skyband
        assert monitor.stats()["queries"]["q0"]["objects"] == len(skyband)
        (adapter,) = monitor._loop.state.standing()
        assert adapter.engine is not None
        assert set(adapter.kept_columns.read("id", adapter.engine.serials()[0]).to_pylist()) == skyband


def test_worked_example_result_stream() -> None:
    """The rows with `first` are the result stream: each object that becomes a top-1, when it does."""
    query, columns = example()
    changes = sb.Monitor(query, id="name").push(columns).to_pylist()
    told = [(row["at"] + 1, row["id"], row["diff"]) for row in changes]
    assert told == [(1, "o1", 1), (2, "o1", -1), (2, "o2", 1), (8, "o2", -1), (8, "o3", 1), (9, "o3", -1), (9, "o7", 1)]
    assert [row["id"] for row in changes if row["first"]] == ["o1", "o2", "o3", "o7"]
    assert [row["score"] for row in changes if row["first"]] == pytest.approx([3, 1, 2, 4])


def test_table_ii_is_the_skyband_within_the_threshold() -> None:
    """What SNN keeps is the strict skyband but for objects that its index does not show it."""
    for step, ((_, skyband), table) in enumerate(zip(STEPS, TABLE_II, strict=True), 1):
        threshold = "o1" if step < 9 else "o7"
        within = {name for name in skyband if RANKING.index(name) <= RANKING.index(threshold)}
        assert table == within, f"step {step}"


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_smaller_k_keeps_only_its_own_skyband(k: int) -> None:
    """Rising scores: each object is dominated by all newer ones, so the k-skyband is the k newest."""
    query = TopK(3, by="x", window=Last(100), algorithm="SA")
    monitor = Monitor(query)
    monitor.push({"x": [1, 2, 3, 4, 5]})
    monitor.replace("q0", dataclasses.replace(query, k=k))
    assert monitor.stats()["queries"]["q0"]["objects"] == k
    monitor._loop.check()
