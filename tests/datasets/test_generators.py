"""Generators: shape, seed, and the property that each is named after."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband import datasets
from skyband.errors import QueryError

POINTS = [datasets.uniform, datasets.independent, datasets.correlated, datasets.anticorrelated,
          datasets.clustered, datasets.drifting]  # fmt: skip
GENERATORS = [*POINTS, datasets.rising, datasets.falling, datasets.flights_like, datasets.appearances]

by_name = pytest.mark.parametrize("make", GENERATORS, ids=lambda make: make.__name__)


def columns(table: pa.Table) -> Any:
    return np.array([column.to_numpy() for column in table.columns])


# ---- every generator


@by_name
def test_same_seed_same_table(make: Callable[..., Any]) -> None:
    assert make(500, seed=3).equals(make(500, seed=3))
    assert not make(500, seed=3).equals(make(500, seed=4))


@by_name
@pytest.mark.parametrize("rows", [0, 1, 2, 70_000])  # 70,000: more than one chunk
def test_rows_as_asked_without_nulls_and_types_do_not_depend_on_rows(make: Callable[..., Any], rows: int) -> None:
    table = make(rows)
    assert table.num_rows == rows
    assert table.schema == make(10).schema
    assert all(column.null_count == 0 for column in table.columns)


@by_name
@pytest.mark.parametrize("bad", [{"rows": -1}, {"rows": 1.5}, {"rows": 3, "seed": -1}, {"rows": 3, "seed": "a"}])
def test_bad_rows_and_seeds_are_refused(make: Callable[..., Any], bad: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="at least 0"):
        make(**bad)


@by_name
def test_numpy_integers_are_numbers_of_rows(make: Callable[..., Any]) -> None:
    assert make(np.int64(5), seed=np.int32(1)).equals(make(5, seed=1))


@pytest.mark.parametrize("make", POINTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("dimensions", [2, 3, 6])
def test_points_lie_in_the_unit_cube_and_have_no_ties(make: Callable[..., Any], dimensions: int) -> None:
    table = make(20_000, dimensions=dimensions)
    assert table.column_names == [f"x{i}" for i in range(1, dimensions + 1)]
    x = columns(table)
    assert x.dtype == np.float64
    assert x.min() >= 0
    assert x.max() <= 1
    assert all(len(np.unique(row)) == 20_000 for row in x)


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        (datasets.uniform, {"dimensions": 0}),
        (datasets.correlated, {"dimensions": 1}),
        (datasets.anticorrelated, {"dimensions": 1}),
        (datasets.clustered, {"clusters": 0}),
        (datasets.clustered, {"spread": 0.0}),
        (datasets.clustered, {"spread": 2.0}),
        (datasets.drifting, {"noise": 1.5}),
        (datasets.drifting, {"noise": float("nan")}),
        (datasets.drifting, {"period": 0}),
        (datasets.flights_like, {"keys": 0}),
        (datasets.flights_like, {"per_day": 0}),
        (datasets.flights_like, {"exponent": -1.0}),
        (datasets.appearances, {"parts": 0}),
        (datasets.appearances, {"window": 0}),
        (datasets.appearances, {"xi": -0.1}),
    ],
)
def test_a_parameter_out_of_range_is_named(make: Callable[..., Any], bad: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match=next(iter(bad))):
        make(10, **bad)


# ---- what each is named after


def test_uniform_fills_the_cube_evenly() -> None:
    x = columns(datasets.uniform(100_000, dimensions=2))
    tenths = (x * 10).astype(np.int64)
    counts = np.bincount(tenths[0] * 10 + tenths[1])
    assert len(counts) == 100
    assert counts.min() > 850  # 1,000 expected, standard deviation 32
    assert counts.max() < 1_150


@pytest.mark.parametrize("d", [2, 4, 6])
def test_cor_and_ant_have_the_sign_of_their_names(d: int) -> None:
    cor = np.corrcoef(columns(datasets.correlated(20_000, dimensions=d)))
    ant = np.corrcoef(columns(datasets.anticorrelated(20_000, dimensions=d)))
    ind = np.corrcoef(columns(datasets.independent(20_000, dimensions=d)))
    off = ~np.eye(d, dtype=bool)
    assert cor[off].min() > 0.35
    assert np.abs(ind[off]).max() < 0.03
    assert ant[off].mean() < -0.1
    neighbours = [ant[i, (i + 1) % d] for i in range(d)]
    assert max(neighbours) < -0.2
    assert np.mean(neighbours) <= ant[off].mean()


def test_ant_has_the_largest_skyline_and_cor_the_smallest() -> None:
    def skyline(table: pa.Table) -> int:
        x = columns(table).T
        beaten = (x[None] >= x[:, None]).all(axis=2) & (x[None] > x[:, None]).any(axis=2)
        return int((~beaten.any(axis=1)).sum())

    cor, ind, ant = (
        skyline(make(1_000, dimensions=3))
        for make in (datasets.correlated, datasets.independent, datasets.anticorrelated)
    )
    assert cor * 2 < ind
    assert ind * 2 < ant


def test_clusters_are_where_their_centres_are() -> None:
    table = datasets.clustered(30_000, dimensions=2, clusters=3, spread=0.001, seed=5)
    places = Counter(zip(*columns(table).round(1).tolist(), strict=True))
    assert sum(count for _, count in places.most_common(12)) == 30_000  # 3 centres, each at most 4 places
    default = columns(datasets.clustered(100_000, dimensions=1))
    assert default.min() > 0  # redrawn, not cut off: nothing piles up on the border
    assert default.max() < 1


def test_drift_goes_from_falling_runs_to_random_order_by_the_noise() -> None:
    def longest_fall(noise: float) -> int:
        x = datasets.drifting(5_000, period=1_000, noise=noise)["x1"].to_numpy()
        rises = np.flatnonzero(np.diff(x) >= 0)
        return int(np.diff(rises).max())

    assert longest_fall(0.0) >= 499
    assert 3 < longest_fall(0.05) < 100
    assert longest_fall(1.0) < 15

    def memory(noise: float) -> float:
        x = datasets.drifting(5_000, period=1_000, noise=noise)["x1"].to_numpy()
        return float(np.corrcoef(x[1:], x[:-1])[0, 1])

    assert memory(0.1) > 0.95
    assert abs(memory(1.0)) < 0.05


def test_attributes_of_a_drift_have_phases_of_their_own() -> None:
    x = columns(datasets.drifting(1_000, dimensions=3, period=1_000, noise=0))
    assert len(set(x.argmax(axis=1).tolist())) == 3


def test_rising_and_falling_are_strict() -> None:
    up = datasets.rising(100_000)["score"].to_numpy()
    down = datasets.falling(100_000)["score"].to_numpy()
    assert (np.diff(up) > 0).all()
    assert (np.diff(down) < 0).all()
    assert 0 <= up[0] <= up[-1] <= 1


def test_shuffled_keeps_every_row_whole() -> None:
    table = pa.table({"a": range(1_000), "b": [str(a) for a in range(1_000)], "c": [None, 1.5] * 500})
    mixed = datasets.shuffled(table, seed=1)
    assert mixed.schema == table.schema
    assert not mixed.equals(table)
    assert mixed.sort_by("a").equals(table)
    assert mixed.equals(datasets.shuffled(table, seed=1))
    assert not mixed.equals(datasets.shuffled(table, seed=2))
    assert datasets.shuffled(table.slice(0, 0)).num_rows == 0


def test_shuffled_draws_with_replacement_when_rows_are_given() -> None:
    table = pa.table({"a": [1, 2, 3]})
    drawn = Counter(datasets.shuffled(table, rows=9_000)["a"].to_pylist())
    assert sorted(drawn) == [1, 2, 3]
    assert all(2_750 < count < 3_250 for count in drawn.values())
    with pytest.raises(QueryError, match="empty"):
        datasets.shuffled(table.slice(0, 0), rows=1)


def test_flights_like_is_zipf_with_ties_and_equal_times() -> None:
    rows = 100_000
    table = datasets.flights_like(rows, keys=229, per_day=10_000)
    assert table.column_names == ["flight", "origin", "time", "delay"]
    assert table["flight"].to_pylist() == list(range(rows))
    assert table["time"].type == pa.timestamp("us")

    counts = Counter(table["origin"].to_pylist())
    assert len(counts) == 229
    harmonic = sum(1 / r for r in range(1, 230))
    for r in (1, 2, 3, 10):
        expected = rows / r / harmonic
        assert abs(counts[f"K{r:03d}"] - expected) < 5 * expected**0.5

    time = table["time"].to_numpy()
    assert (np.diff(time) >= np.timedelta64(0, "us")).all()
    assert (time.astype("datetime64[m]") == time).all()
    assert len(np.unique(time)) < rows / 5
    days = Counter(time.astype("datetime64[D]").tolist())
    assert len(days) == 10
    assert all(9_500 < count < 10_500 for count in days.values())
    hours = (time - time.astype("datetime64[D]")) // np.timedelta64(1, "h")
    assert (hours.min(), hours.max()) == (5, 22)

    delay = table["delay"].to_numpy()
    assert len(np.unique(delay)) < 1_000
    assert -3 <= np.median(delay) <= 1
    assert 150 < np.quantile(delay, 0.99) < 250
    assert delay.max() > 600


def test_flights_like_takes_any_number_of_keys() -> None:
    assert set(datasets.flights_like(50, keys=1)["origin"].to_pylist()) == {"K001"}
    even = Counter(datasets.flights_like(40_000, keys=4, exponent=0.0)["origin"].to_pylist())
    assert all(9_500 < count < 10_500 for count in even.values())
    assert {len(key) for key in datasets.flights_like(100, keys=10_000)["origin"].to_pylist()} == {6}


# ---- haghani2009's appearances


def replay(table: pa.Table, parts: int, window: int) -> tuple[int, int]:
    """Check the paper's rules row by row; (fresh rows, fresh rows that had a candidate)."""
    sent: dict[str, list[int]] = {f"p{p}": [] for p in range(1, parts + 1)}
    known: set[int] = set()
    fresh = avoidable = 0
    for id_, part in zip(table["id"].to_pylist(), table["part"].to_pylist(), strict=True):
        recent = {i for other, ids in sent.items() if other != part for i in ids[-window:]}
        assert id_ not in sent[part]  # no object twice in one stream
        if id_ in known:
            assert id_ in recent  # a pick is in the other streams' windows
        else:
            fresh += 1
            avoidable += bool(recent - set(sent[part]))
        sent[part].append(id_)
        known.add(id_)
    return fresh, avoidable


@settings(max_examples=40, deadline=None)
@given(
    parts=st.integers(1, 5),
    window=st.integers(1, 20),
    xi=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_appearances_follow_the_papers_rules(parts: int, window: int, xi: float, seed: int) -> None:
    table = datasets.appearances(300, seed=seed, parts=parts, xi=xi, window=window)
    fresh, avoidable = replay(table, parts, window)
    if xi == 0 or parts == 1:
        assert fresh == 300
    if xi == 1:
        assert avoidable == 0  # fresh only when there was nothing to pick


def test_appearances_columns() -> None:
    table = datasets.appearances(20_000, parts=4)
    assert table.schema == pa.schema({"id": pa.int64(), "part": pa.string(), "value": pa.float64(), "time": pa.int64()})
    counts = Counter(table["part"].to_pylist())
    assert sorted(counts) == ["p1", "p2", "p3", "p4"]
    assert all(4_700 < count < 5_300 for count in counts.values())
    value = table["value"].to_numpy()
    assert 0 <= value.min() < 0.001
    assert 0.999 < value.max() < 1
    assert table["time"].to_pylist() == list(range(20_000))


def test_a_larger_xi_means_fewer_objects_seen_in_more_streams() -> None:
    objects = [len(datasets.appearances(20_000, parts=3, xi=xi)["id"].unique()) / 20_000 for xi in (0.0, 0.2, 0.5)]
    assert objects == pytest.approx([1.0, 0.8, 0.5], abs=0.02)


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_at_most_a_share_of_one_minus_one_by_parts_can_be_picks(parts: int) -> None:
    table = datasets.appearances(20_000, parts=parts, xi=1.0, window=500)
    assert len(table["id"].unique()) / 20_000 == pytest.approx(1 / parts, abs=0.02)


def test_candidates_are_equally_likely() -> None:
    # how far back in the other stream a pick lies, over rows with all but one candidate used up or not:
    # with a small xi nearly every row of the window is a candidate, so the distance is uniform in 1..C
    table = datasets.appearances(60_000, parts=2, xi=0.05, window=10)
    place: dict[int, tuple[str, int]] = {}
    sent = Counter[str]()
    back = Counter[int]()
    for id_, part in zip(table["id"].to_pylist(), table["part"].to_pylist(), strict=True):
        if id_ in place:
            other, at = place[id_]
            back[sent[other] - at] += 1
        place[id_] = (part, sent[part])
        sent[part] += 1
    assert sorted(back) == list(range(1, 11))
    mean = back.total() / 10
    assert all(abs(count - mean) < 0.25 * mean for count in back.values())
