"""shen2012: its examples and sizes, long streams, and thousands of queries at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from skyband.engines.contract import Spec
from skyband.engines.pairs.base import Pairs
from skyband.engines.pairs.kernels.programs import CHUNK
from skyband.engines.pairs.kernels.records import PAIR, SIZE, STAIRS, SUM, Scoring
from skyband.engines.pairs.kernels.search_tree import HEIGHT, build_tree, empty_tree, read_tree
from skyband.engines.pairs.programs import no_program
from skyband.engines.pairs.pst import PST
from skyband.engines.pairs.scase import SCASE
from skyband.engines.pairs.size_model import expected_pairs
from skyband.oracle import Oracle
from skyband.query.tuning import Tuning

S1 = sb.Global({"x": "absdiff", "y": "absdiff", "z": "absdiff"})
S3 = sb.Global({"x": "absdiff", "y": "absdiff", "z": "absdiff"}, combine="product")
TWO = sb.Global({"x": "absdiff", "y": "absdiff"})
FAST = ("SCASE", "TA", "BASIC")


@pytest.fixture(autouse=True)
def small_blocks() -> Iterator[None]:
    before, Pairs.least_block, Pairs.patience = (Pairs.least_block, Pairs.patience), 16, 1
    yield
    Pairs.least_block, Pairs.patience = before


# --- the paper's examples


def band_of(pairs: dict[int, float], K: int, N: int, kind: type[Pairs] = SCASE) -> tuple[Pairs, Any]:
    """An engine that holds these pairs, by age with their scores, as the paper draws them."""
    scoring = Scoring(SUM, np.zeros(1, np.int8), -1.0, 1e9, no_program(), np.empty(0))
    engine = kind((Spec(K, N),), Tuning(), timed=False, net=False, scoring=scoring)
    made = np.zeros(len(pairs), PAIR)
    ages = sorted(pairs, key=lambda age: (pairs[age], age))
    made["key"] = [-pairs[age] for age in ages]
    made["old"] = made["older"] = made["place"] = [100 - age for age in ages]
    made["new"] = made["newer"] = 200 + np.arange(len(pairs))
    engine.groups.grow(1)
    group = engine.groups[0]
    group.fill_band(made, np.zeros((len(pairs), 1), np.uint64))
    group.facts[1] = 100  # the next ordinal
    engine._prune(group, 0)
    return engine, group


def test_figure_1_the_2_skyband_leaves_out_what_two_pairs_dominate() -> None:
    # six pairs, p_i: p6 is dominated by p3 and p4
    _, group = band_of({1: 6.0, 2: 5.0, 3: 3.0, 4: 2.0, 5: 1.0, 6: 4.0}, K=2, N=99)
    assert sorted(100 - group.pairs["old"]) == [1, 2, 3, 4, 5]


def test_figure_5_a_step_has_the_score_of_one_pair_and_the_age_of_another() -> None:
    _, group = band_of({1: 6.0, 2: 5.0, 4: 3.0, 8: 2.0, 16: 1.0}, K=2, N=99)
    steps = [
        (float(-group.band.stair_key[i]), int(100 - group.band.stair_place[i])) for i in range(group.facts[STAIRS])
    ]
    # by score: the first two -> (2, age 16); the third -> (3, age of the second); and so on
    assert steps == [(2.0, 16), (3.0, 8), (5.0, 4), (6.0, 2)]


#: Ages and scores with which Algorithm 1 makes the tree of Figure 4, as Example 1 and section IV-A tell of it.
FIGURE_4 = {8: 1.0, 7: 2.0, 5: 3.0, 6: 4.0, 4: 5.0, 1: 6.0, 3: 7.0, 2: 8.0}


@pytest.mark.parametrize("kind", [SCASE, PST])
def test_example_1_the_top_2_of_a_window_of_7(kind: Any) -> None:
    engine, group = band_of(FIGURE_4, K=2, N=99, kind=kind)
    assert len(group.pairs) == 8  # all are in the 2-skyband
    best = engine._read(group, Spec(2, 8), 100)  # valid: older members above 100 - 8, of age at most 7
    assert (100 - best["old"]).tolist() == [7, 5]


def test_figure_4_the_priority_search_tree() -> None:
    engine, group = band_of(FIGURE_4, K=2, N=99, kind=PST)
    engine._read(group, Spec(2, 8), 100)
    tree = engine.tree  # type: ignore[attr-defined]

    def children(e: int) -> tuple[Any, ...]:
        left, right = (e + 1, int(tree.split[e])), (int(tree.split[e]), int(tree.end[e]))
        return (100 - int(tree.old[e]), *(children(begin) if begin < end else None for begin, end in (left, right)))

    leaf = (None, None)
    assert children(0) == (1, (5, (7, (8, *leaf), None), (6, *leaf)), (2, (3, (4, *leaf), None), None))


@given(data=st.data())
def test_the_priority_search_tree_gives_what_a_scan_gives(data: st.DataObject) -> None:
    ages = data.draw(st.lists(st.integers(1, 30), max_size=60))
    band, facts = group_of_ages(ages)
    tree = empty_tree(len(ages))
    build_tree(facts, band, tree)
    for e in range(len(ages)):  # a heap by age, split by score
        left, right = tree.rank[e + 1 : tree.split[e]], tree.rank[tree.split[e] : tree.end[e]]
        assert (tree.old[e : tree.end[e]] <= tree.old[e]).all()
        assert not len(left) or not len(right) or left.max() < right.min()
        assert -1 <= len(left) - len(right) <= 2  # by the median: so the height is logarithmic
    for k in {1, 2, 7, len(ages)} - {0}:
        for n in range(32):
            out = np.empty(k + 2 * HEIGHT, np.int32)
            found = read_tree(facts, band, tree, k, 100 - n, out)
            assert out[:found].tolist() == np.flatnonzero(band.old[: len(ages)] > 100 - n)[:k].tolist()


def group_of_ages(ages: list[int]) -> tuple[Any, Any]:
    """A band of pairs of these ages, best first."""
    group = band_of({}, K=2, N=99)[1]
    group.grow_band(max(1, len(ages)))
    group.band.old[: len(ages)] = 100 - np.array(ages, np.int64)
    group.band.slot[: len(ages)] = np.arange(len(ages))
    group.facts[SIZE] = len(ages)
    return group.band, group.facts


@pytest.mark.parametrize("older", ["better", "any"])
def test_lists_have_what_the_band_has(older: str) -> None:
    scores = {age: 100.0 - age if older == "better" else age * 37 % 101 for age in range(1, 100)}
    engine, group = band_of(scores, K=3, N=99)
    for k in (1, 2, 3):
        for n in range(1, 102):  # older members above 100 - n; that of the first comes from the band itself
            best = engine._read(group, Spec(k, n), 100)
            assert best.tolist() == group.pairs[group.pairs["old"] > 100 - n][:k].tolist()


def test_the_skyband_is_as_large_as_the_corrected_theorem_3_says() -> None:
    N, K, sizes = 1000, 20, []

    def luck(one: Any, other: Any) -> Any:
        mixed = (one["i"] * 2_654_435_761 ^ other["i"] * 2_654_435_761) * 11_400_714_819_323_198_485
        return (mixed >> np.uint64(11)).astype(float)

    monitor = sb.Monitor(sb.TopKPairs(K, luck, sb.Last(N)), emit="batch")
    for begin in range(0, 4 * N, 250):
        monitor.push({"i": np.arange(begin, begin + 250).astype(np.uint64)})
        if begin >= N:
            monitor.snapshot()  # what is groupd is pruned
            sizes.append(monitor.stats()["queries"]["q0"]["pairs"])
    assert np.mean(sizes) == pytest.approx(expected_pairs(N, K), rel=0.1)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 99, 100, 2000])
@pytest.mark.parametrize("k", [1, 2, 3, 20, 10**6])
def test_the_expected_size_is_a_sum_over_ages(n: int, k: int) -> None:
    assert expected_pairs(n, k) == pytest.approx(sum(min(x - 1, 2 * k / x) for x in range(2, n + 1)), rel=1e-7)


def test_the_expected_size_of_an_endless_window() -> None:
    """`explain` once added up 2^60 terms."""
    assert expected_pairs(2**60 - 1, 1) == pytest.approx(2 * 60 * np.log(2), rel=0.02)
    assert "1,152,921,504,606,846,975" in str(sb.explain(sb.TopKPairs(1, "abs(a.x - b.x)", sb.Last(2**60 - 1))))


# --- long streams


def stream(kind: str, rows: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    data = rng.random((3, rows))
    if kind == "ties":
        data = np.round(data * 4)
    elif kind == "closer":  # new pairs are better and better: many last
        data *= np.linspace(1, 0.01, rows)
    elif kind == "odd":
        data[:, rng.random(rows) < 0.02] = np.nan
        data[0, rng.random(rows) < 0.01] = np.inf
    return {"t": np.sort(rng.integers(0, rows, rows)), **dict(zip("xyz", data, strict=True))}


def pushed(monitor: sb.Monitor, data: dict[str, Any], sizes: tuple[int, ...] = (7, 150, 1, 60)) -> Counter[str]:
    changes: Counter[str] = Counter()
    begin, turn = 0, 0
    while begin < len(data["x"]):
        end = begin + sizes[turn % len(sizes)]
        changes.update(map(str, monitor.push({name: column[begin:end] for name, column in data.items()}).to_pylist()))
        begin, turn = end, turn + 1
        monitor._loop.check()
    return changes


@pytest.mark.parametrize("kind", ["uniform", "ties", "closer", "odd"])
@pytest.mark.parametrize(("by", "largest"), [(S1, False), (S1, True), (S3, False), (S3, True)])
def test_all_engines_report_the_same_of_long_streams(by: Any, largest: bool, kind: str) -> None:
    data = stream(kind, 700, seed=3)
    sizes = [(12, sb.Last(150)), (3, sb.Last(20)), (12, sb.Last(2)), (5, sb.Last(149))]
    changes = {}
    for name in (*FAST, "NAIVE"):
        queries = {f"q{i}": sb.TopKPairs(k, by, n, largest=largest, algorithm=name) for i, (k, n) in enumerate(sizes)}
        monitor = sb.Monitor(queries)
        changes[name] = pushed(monitor, data)
        answer = monitor.answer("q0").to_pylist()
        changes[name].update(map(str, answer))
    assert changes["SCASE"] and all(others == changes["SCASE"] for others in changes.values())


def best_of(data: dict[str, Any], begin: int, end: int, k: int, by: Any, largest: bool) -> list[tuple[int, int]]:
    """All pairs of data[begin:end], by score and then the newest, as far as k."""
    i, j = np.triu_indices(end - begin, 1)
    x, y, z = (abs(data[name][begin + i] - data[name][begin + j]) for name in "xyz")
    scores = x + y + z if by is S1 else x * y * z
    order = np.lexsort((-j, -i, -scores if largest else scores))[:k]
    return list(zip((begin + i[order]).tolist(), (begin + j[order]).tolist(), strict=True))


@pytest.mark.parametrize(
    ("by", "largest", "kind"),
    [(S1, False, "uniform"), (S1, False, "ties"), (S1, True, "uniform"), (S3, False, "uniform"), (S3, True, "ties")],
    ids=["near", "near-ties", "far", "product", "far-product-ties"],
)
@pytest.mark.parametrize("algorithm", [*FAST, "NAIVE"])
def test_short_steps_agree_with_brute_force(algorithm: str, by: Any, largest: bool, kind: str) -> None:
    """Small enough for kernels that run as plain Python (test_mutants.py)."""
    data, n, k = stream(kind, 160, seed=8), 36, 3
    monitor = sb.Monitor(sb.TopKPairs(k, by, sb.Last(n), largest=largest, algorithm=algorithm))
    for begin in range(0, 160, 10):
        end = begin + 10
        monitor.push({name: column[begin:end] for name, column in data.items()})
        monitor._loop.check()  # a pair that is not kept has k dominators, or is none of the k best of its newer member
        got = monitor.answer().to_pydict()
        best = best_of(data, max(0, end - n), end, k, by, largest)
        assert list(zip(got["id_a"], got["id_b"], strict=True)) == best


@pytest.mark.parametrize("algorithm", ["SCASE", "TA"])
def test_a_window_of_several_chunks(algorithm: str) -> None:
    n = CHUNK + 100
    x = 1e6 + 1000.0 * np.arange(n + 1)
    x[:2] = 0, 1  # the best pair, of the oldest object
    x[500] = x[499] + 500  # one whose step all older objects have to pass
    x[600] = x[20] + 499.99  # and one that does, but not in 32 bits: the best once the first has gone
    monitor = sb.Monitor(sb.TopKPairs(1, sb.Global({"x": "absdiff"}), sb.Last(n), algorithm=algorithm))
    best = []
    for begin, end in ((0, 600), (600, n), (n, n + 1)):
        monitor.push({"x": x[begin:end]})
        best += [(one["id_a"], one["id_b"]) for one in monitor.answer().to_pylist()]
        monitor = sb.Monitor.restore(monitor.snapshot())
    assert best == [(0, 1), (0, 1), (20, 600)]


@pytest.mark.parametrize(
    ("algorithm", "by"),
    [*((name, TWO) for name in (*FAST, "NAIVE")), ("SCASE", "power(abs(a.x - b.x) + abs(a.y - b.y), 2)")],
    ids=[*FAST, "NAIVE", "given"],
)
def test_short_steps_with_late_rows(algorithm: str, by: Any) -> None:
    rng = np.random.default_rng(4)
    clock = np.cumsum(rng.integers(0, 3, 120))
    times = clock - np.where(rng.random(120) < 0.4, rng.integers(0, 12, 120), 0)
    rows = [
        {"t": int(t), "x": float(x), "y": float(y)}
        for t, x, y in zip(times, *np.round(rng.random((2, 120)) * 6), strict=True)
    ]
    queries = {f"q{k}": sb.TopKPairs(k, by, sb.Last(span=n), algorithm=algorithm) for k, n in ((4, 30), (2, 11))}
    monitor, oracle = sb.Monitor(queries, time="t"), Oracle(queries, time="t")
    for begin in range(0, 120, 12):
        batch = rows[begin : begin + 12]
        changes, expected = monitor.push(pa.Table.from_pylist(batch)).to_pylist(), oracle.push(batch)
        assert Counter(map(str, changes)) == Counter(map(str, expected))
        monitor._loop.check()
        if begin % 36 == 0:
            monitor = sb.Monitor.restore(monitor.snapshot())


@pytest.mark.parametrize("algorithm", ["SCASE", "TA"])
def test_pairs_by_brute_force_at_the_end_of_a_long_stream(algorithm: str) -> None:
    data = stream("uniform", 1200, seed=5)
    monitor = sb.Monitor(sb.TopKPairs(25, S1, sb.Last(700), algorithm=algorithm))
    pushed(monitor, data)
    got = monitor.answer().to_pydict()
    assert list(zip(got["id_a"], got["id_b"], strict=True)) == best_of(data, 500, 1200, 25, S1, False)
    apart = [abs(data[name][got["id_a"]] - data[name][got["id_b"]]) for name in "xyz"]
    assert got["score"] == (apart[0] + apart[1] + apart[2]).tolist()
    for n in (2, 7, 30, 90, 200, 450, 699):  # from lists, and beyond their ends
        best = best_of(data, 1200 - n, 1200, 25, S1, False)
        for k in (1, 9, 25):
            got = monitor.answer(k=k, window=sb.Last(n)).to_pydict()
            assert list(zip(got["id_a"], got["id_b"], strict=True)) == best[:k]


def test_two_thousand_queries_share_one_skyband() -> None:
    rng = np.random.default_rng(1)
    sizes = {f"q{i}": (int(rng.integers(1, 9)), int(rng.integers(1, 61))) for i in range(2000)}
    monitor = sb.Monitor({name: sb.TopKPairs(k, S1, sb.Last(n)) for name, (k, n) in sizes.items()})
    assert len(monitor._loop.state.standing()) == 1
    data = stream("ties", 130, seed=2)
    changes = monitor.push(data)
    for name in ("q0", "q77", "q1999"):
        alone = sb.Monitor({name: monitor.queries[name]})
        mine = changes.filter(pa.compute.equal(changes["query"].cast(pa.string()), name))
        assert sorted(map(str, mine.to_pylist())) == sorted(map(str, alone.push(data).to_pylist()))
        assert monitor.answer(name).equals(alone.answer())
        monitor.drop(name)
    monitor._loop.check()


def test_a_million_places_are_enough() -> None:
    with pytest.raises(sb.QueryError, match="at most 1,000,000"):
        sb.Monitor(sb.TopKPairs(2_000_000, "abs(a.x - b.x)", sb.Last(5000)))
    assert sb.Monitor(sb.TopKPairs(2_000_000, "abs(a.x - b.x)", sb.Last(10))).push({"x": [1, 3, 2]}).num_rows == 3
