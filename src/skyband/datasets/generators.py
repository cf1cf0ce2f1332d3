"""Seeded streams of any length: the distributions of the papers, and the shapes that break engines.

A generator is a function of the number of rows and of keyword arguments, `seed` among them, and gives a
pyarrow Table; the same arguments give the same table. Attributes are called x1, x2, ... and lie in [0, 1].
10^6 rows cost 0.01 to 0.3 s, but for `appearances`: sequential by nature, 1 s with 3 parts, 2 s with 6.
"""

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.errors import QueryError

Floats = npt.NDArray[np.float64]

_CHUNK = 1 << 16  # points drawn at once where some are thrown away: bounds the memory, not the result
_COLUMNS, _KEYS = 1_000, 10_000_000  # at most: one array has them all
_MINUTES_OPEN = 18 * 60  # flights_like: departures from 05:00 to 23:00


def uniform(rows: int, *, seed: int = 0, dimensions: int = 2) -> pa.Table:
    """Points spread evenly over the unit cube, in random order: the average case (pripuzic2015, section 8).

    Columns: x1 ... xd (float64).

    >>> uniform(3, dimensions=4).column_names
    ['x1', 'x2', 'x3', 'x4']
    """
    rng, rows = _start(rows, seed)
    return _points(rng.random((_at_least("dimensions", dimensions, 1, _COLUMNS), rows)))


def independent(rows: int, *, seed: int = 0, dimensions: int = 4) -> pa.Table:
    """IND, attributes independent of each other (mouratidis2006, section 8; d=4 is its default).

    The same distribution as `uniform`; the name is that of the skyline literature.
    Columns: x1 ... xd (float64).

    >>> independent(5, seed=7).equals(uniform(5, seed=7, dimensions=4))
    True
    """
    return uniform(rows, seed=seed, dimensions=dimensions)


def correlated(rows: int, *, seed: int = 0, dimensions: int = 4) -> pa.Table:
    """COR, a point good in one attribute is likely good in the others (shen2012, section VI).

    Both papers point to Börzsönyi, Kossmann and Stocker (ICDE 2001), where the distribution is described in words:
    choose a plane perpendicular to the diagonal, most likely near its middle, then move off the diagonal
    within the plane. The numbers are those of the authors' generator as published later (randdataset): the
    plane v is the mean of d uniform numbers, each step off it is a bell (mean of 12 uniform numbers) in
    (-l, l), l = min(v, 1 - v), added to one attribute and taken from the next; points outside [0, 1] are
    drawn again.
    Columns: x1 ... xd (float64).

    >>> t = correlated(1000, dimensions=2)
    >>> float(np.corrcoef(t["x1"], t["x2"])[0, 1]) > 0.5
    True
    """

    def draw(rng: np.random.Generator, count: int, d: int) -> Floats:
        plane = rng.random((d, count)).mean(axis=0)
        return _around(plane, _bell(rng, (d, count)) * np.minimum(plane, 1 - plane))

    return _accepted(draw, rows, seed, dimensions)


def anticorrelated(rows: int, *, seed: int = 0, dimensions: int = 4) -> pa.Table:
    """ANT, a point good in one attribute is bad in others (mouratidis2006, section 8; shen2012, section VI).

    As `correlated`, but the plane v is a bell in (0.25, 0.75) and the steps off it are uniform in (-l, l):
    all points lie near the plane through the cube's middle, so very many are on the skyline. Neighbours
    (x1 and x2, ..., xd and x1) are anti-correlated most. Of the points drawn 75% are kept at d=2, 27% at d=6,
    7% at d=12: meant for the papers' d of 2 to 6.
    Columns: x1 ... xd (float64).

    >>> t = anticorrelated(1000, dimensions=2)
    >>> float(np.corrcoef(t["x1"], t["x2"])[0, 1]) < -0.5
    True
    """

    def draw(rng: np.random.Generator, count: int, d: int) -> Floats:
        plane = 0.5 + 0.25 * _bell(rng, (count,))
        return _around(plane, (2 * rng.random((d, count)) - 1) * np.minimum(plane, 1 - plane))

    return _accepted(draw, rows, seed, dimensions)


def clustered(
    rows: int, *, seed: int = 0, dimensions: int = 2, clusters: int = 2, spread: float = 0.1**0.5
) -> pa.Table:
    """Gaussian clusters around random centres, in random order (pripuzic2015, section 8).

    The paper has two randomly chosen centres, variance 0.1 per dimension, values within [0, 1], and does not
    say how they are kept there. Here a value outside is drawn again: cutting it off would put a quarter of
    all values on the border and make ties that the distribution does not have. `spread` is the standard
    deviation; each point belongs to each cluster with the same probability.
    Columns: x1 ... xd (float64).

    >>> clustered(1000, dimensions=3, clusters=5, spread=0.02).shape
    (1000, 3)
    """
    rng, rows = _start(rows, seed)
    if not 0 < spread <= 1:
        raise QueryError(f"spread={spread}: a standard deviation in the unit cube is in (0, 1]. Try 0.3.")
    centres = rng.random((_at_least("dimensions", dimensions, 1, _COLUMNS), _at_least("clusters", clusters, 1, _KEYS)))
    middle = centres[:, rng.integers(0, clusters, rows)].ravel()
    x = rng.normal(middle, spread)
    outside = np.flatnonzero((x < 0) | (x > 1))
    while outside.size:
        x[outside] = rng.normal(middle[outside], spread)
        outside = outside[(x[outside] < 0) | (x[outside] > 1)]
    return _points(x.reshape(dimensions, rows))


def drifting(rows: int, *, seed: int = 0, dimensions: int = 1, period: int = 10_000, noise: float = 0.1) -> pa.Table:
    """Values that rise and fall slowly with time, like a temperature: neither best nor worst case.

    The time-correlated streams of pripuzic2015 (section 4.1.3: daily cycles with small dips; its LUCE data).
    Each attribute is (1 - noise) · a sine of `period` rows and random phase + noise · a uniform number: at
    noise=0 half of the stream falls row by row (engines must keep everything), at noise=1 it is in random
    order, in between falling runs are broken by noise.
    Columns: x1 ... xd (float64).

    >>> x = drifting(10_000, noise=0)["x1"].to_numpy()
    >>> int((np.diff(x) < 0).sum()) in range(4_990, 5_010)
    True
    """
    rng, rows = _start(rows, seed)
    _at_least("period", period, 1)
    if not 0 <= noise <= 1:
        raise QueryError(f"noise={noise}: it is the share of noise in a value, from 0 to 1. Try 0.1.")
    phase = rng.random((_at_least("dimensions", dimensions, 1, _COLUMNS), 1))
    drift = 0.5 + 0.5 * np.sin(2 * np.pi * (np.arange(rows) / period + phase))
    return _points((1 - noise) * drift + noise * rng.random((dimensions, rows)))


def rising(rows: int, *, seed: int = 0) -> pa.Table:
    """Strictly rising scores: the best case, only the k newest are kept (pripuzic2015, section 4.1.3).

    Columns: score (float64), in [0, 1].

    >>> rising(4, seed=1)["score"].to_numpy().round(2)
    array([0.06, 0.37, 0.52, 0.87])
    """
    rng, rows = _start(rows, seed)
    # half a step of jitter at most: strictly rising also after rounding
    return pa.table({"score": (np.arange(rows) + 0.5 * rng.random(rows)) / max(rows, 1)})


def falling(rows: int, *, seed: int = 0) -> pa.Table:
    """Strictly falling scores: the worst case, the whole window is kept (pripuzic2015, section 4.1.3).

    `rising` in reverse order. Columns: score (float64), in [0, 1].

    >>> falling(4, seed=1)["score"].to_numpy().round(2)
    array([0.87, 0.52, 0.37, 0.06])
    """
    return pa.table({"score": rising(rows, seed=seed)["score"].to_numpy()[::-1].copy()})


def shuffled(table: Any, *, seed: int = 0, rows: int | None = None) -> pa.Table:
    """Random order from any table: the average case made from real data.

    pripuzic2015 (section 8) calls it randomized real. `rows` left out: every row once. A number: that many
    rows drawn with replacement, as jin2008 (section 6) makes 10^6 records of 44,440. `table` is a pyarrow
    Table, a DataFrame, or whatever else `pyarrow.table` takes. A time column is shuffled like any other.
    Columns: those of the table.

    >>> shuffled({"a": [1, 2, 3, 4]}, seed=2)["a"].to_pylist()
    [4, 3, 1, 2]
    """
    whole = table if isinstance(table, pa.Table) else pa.table(table)
    rng, count = _start(whole.num_rows if rows is None else rows, seed)
    if rows is None:
        return whole.take(pa.array(rng.permutation(count)))
    if count and not whole.num_rows:
        raise QueryError(f"shuffled(rows={count}): the table is empty, there is nothing to draw from.")
    return whole.take(pa.array(rng.integers(0, max(whole.num_rows, 1), count)))


def flights_like(
    rows: int, *, seed: int = 0, keys: int = 229, exponent: float = 1.0, per_day: int = 16_000
) -> pa.Table:
    """Departures like a country's: Zipf keys, times in minutes, integer delays, ties everywhere.

    Ours; the defaults are near 3·10^6 flights from 229 airports of the USA in half a year. Airport r of
    `keys` has a share proportional to 1/r^exponent. About `per_day` rows fall on a day, between 05:00 and
    23:00. A delay is a bell around -4 minutes; two flights of five are late by a log-normal time on top,
    which gives a median of -1, 48 minutes at 90% and 197 at 99% (New York in 2013: -2, 49 and 191).
    Columns: flight (int64, 0 to rows - 1), origin (string, K001 the busiest), time (timestamp[us], whole
    minutes, never falling), delay (int64, minutes).

    >>> flights_like(3).schema.types
    [DataType(int64), DataType(string), TimestampType(timestamp[us]), DataType(int64)]
    """
    rng, rows = _start(rows, seed)
    if not 0 <= exponent < np.inf:
        raise QueryError(f"exponent={exponent}: Zipf's exponent is at least 0 (all keys alike). Try 1.0.")
    share = np.arange(1, _at_least("keys", keys, 1, _KEYS) + 1, dtype=np.float64) ** -exponent
    codes = np.searchsorted(share.cumsum() / share.sum(), rng.random(rows), side="right")
    labels = pa.array([f"K{r:0{max(3, len(str(keys)))}d}" for r in range(1, keys + 1)])
    day, within = np.divmod(np.sort(rng.random(rows)) * (rows / _at_least("per_day", per_day, 1)), 1.0)
    minute = day.astype(np.int64) * (24 * 60) + 5 * 60 + (within * _MINUTES_OPEN).astype(np.int64)
    late = (rng.random(rows) < 0.4) * rng.lognormal(3.25, 1.05, rows)
    return pa.table(
        {
            "flight": np.arange(rows),
            "origin": labels.take(pa.array(np.minimum(codes, keys - 1))),
            "time": (np.datetime64("2013-01-01T00:00", "m") + minute).astype("datetime64[us]"),
            "delay": np.rint(rng.normal(-4.0, 4.0, rows) + late).astype(np.int64),
        }
    )


def appearances(rows: int, *, seed: int = 0, parts: int = 3, xi: float = 0.5, window: int = 75) -> pa.Table:
    """Objects whose parts arrive in separate streams, with tunable overlap (haghani2009, section 6.1.1).

    Each new row picks, with probability `xi` (ξ), an object that is now among the last `window` (C) rows of
    one of the other streams, and otherwise brings a fresh object. No object comes twice in one stream.

    What the paper leaves open, and what is chosen here:
    - C is not given. With 75 a first measurement came near Table 1's EAA column, averaged over the filling of
      the first window (in the steady state EAA keeps nearly twice as much).
    - Which stream the next row goes to: each with the same probability, independently.
    - What a pick does that was sent in this stream before: it is not a candidate; all other rows in the other
      streams' windows are equally likely (an object in two of them counts twice).
    - What happens when no candidate is left: a fresh object. An object appears in at most `parts` streams,
      so at most a share of 1 - 1/parts of the rows can be picks, however large ξ is: with two streams
      (Figure 5c and d) a ξ above 0.5 makes picks sooner, hardly more of them.
    - The values: uniform in [0, 1), independent of the object, the part and the time.
    - The time: the row's number. A fresh object's id is the next number (the paper: a random one).
    Columns: id (int64), part (string: p1 ... pm), value (float64), time (int64).

    >>> t = appearances(1000, parts=2, xi=0.5)
    >>> sorted(t["part"].unique().to_pylist())
    ['p1', 'p2']
    """
    rng, rows = _start(rows, seed)
    _at_least("parts", parts, 1, _COLUMNS)
    _at_least("window", window, 1)
    if not 0 <= xi <= 1:
        raise QueryError(f"xi={xi}: it is the probability to pick a recent object, from 0 to 1. Try 0.5.")
    stream = rng.integers(0, parts, rows)
    picks = rng.random(rows) < xi
    value = rng.random(rows)
    ids = _appear(stream.tolist(), picks.tolist(), _uniforms(rng), parts, window)
    labels = pa.array([f"p{part}" for part in range(1, parts + 1)])
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": labels.take(pa.array(stream)),
            "value": value,
            "time": np.arange(rows),
        }
    )


def _appear(stream: list[int], picks: list[bool], draws: Iterator[float], parts: int, window: int) -> list[int]:
    ids: list[int] = []
    place: list[int] = []  # of a row: its number within its own stream
    sent = [0] * parts  # rows of each stream so far
    seen: list[int] = []  # of an object: the streams it was sent in, one bit each
    # of a stream: the rows it may pick from; those that no longer qualify go when they are drawn
    pools: list[list[int]] = [[] for _ in range(parts)]
    for row, (part, pick) in enumerate(zip(stream, picks, strict=True)):
        item = -1
        pool = pools[part]
        while pick and pool:
            at = int(next(draws) * len(pool))
            drawn = pool[at]
            pool[at] = pool[-1]
            pool.pop()
            fits = sent[stream[drawn]] - place[drawn] <= window
            if fits and not seen[ids[drawn]] >> part & 1:
                item = ids[drawn]
                break
        if item < 0:
            item = len(seen)
            seen.append(0)
        seen[item] |= 1 << part
        ids.append(item)
        place.append(sent[part])
        sent[part] += 1
        for other, others in enumerate(pools):
            if not seen[item] >> other & 1:
                others.append(row)
    return ids


def _uniforms(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from rng.random(_CHUNK).tolist()


def _accepted(
    draw: Callable[[np.random.Generator, int, int], Floats], rows: int, seed: int, dimensions: int
) -> pa.Table:
    rng, rows = _start(rows, seed)
    _at_least("dimensions", dimensions, 2, _COLUMNS)
    x = np.empty((dimensions, rows))
    done = 0
    while done < rows:
        drawn = draw(rng, _CHUNK, dimensions)
        good = drawn[:, ((drawn >= 0) & (drawn <= 1)).all(axis=0)][:, : rows - done]
        x[:, done : done + good.shape[1]] = good
        done += good.shape[1]
    return _points(x)


def _around(plane: Floats, steps: Floats) -> Floats:
    """Points on the diagonal at `plane`, each step added to one attribute and taken from the next."""
    return plane + steps - np.roll(steps, 1, axis=0)


def _bell(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Numbers in (-1, 1), nearly normal with standard deviation 1/6: the mean of twelve uniform ones."""
    total = rng.random(shape)
    for _ in range(11):
        total += rng.random(shape)
    return total / 6 - 1


def _points(x: Floats) -> pa.Table:
    return pa.table({f"x{number}": column for number, column in enumerate(x, start=1)})


def _start(rows: int, seed: int) -> tuple[np.random.Generator, int]:
    count = _at_least("rows", rows, 0)
    return np.random.Generator(np.random.PCG64(_at_least("seed", seed, 0))), count


def _at_least(name: str, value: int, low: int, most: int | None = None) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise QueryError(f"{name}={value!r}: {name} is a whole number, at least {low}.") from None
    if number < low:
        raise QueryError(f"{name}={number}: {name} must be at least {low}.")
    if most is not None and number > most:
        raise QueryError(f"{name}={number}: an array of that size is made at once, so {name} is at most {most:,}.")
    return number
