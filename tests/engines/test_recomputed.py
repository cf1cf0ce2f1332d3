"""The contract over long streams: every engine against `reference`, which recomputes one group in another way."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engines.streams import (
    KILL,
    Step,
    cells,
    check,
    cuts,
    joined,
    recomputed,
    reference,
    row,
    same_rows,
    steps_of,
)
from engines.suite import (  # noqa: F401
    ENGINES,
    FAMILY,
    FEW,
    LONG,
    PLAIN,
    SCENES,
    TASTES,
    equal_steps,
    pytest_generate_tests,
    shaped,
    stamped,
)
from skyband import Last, Monitor, TopK

LONG_COUNTS = [
    (1, 10, "random"),
    (1, 3000, "5"),
    (3, 10, "3"),
    (3, 100, "random"),
    (3, 3000, "1000"),
    (10, 100, "5"),
    (10, 3000, "random"),
    (2, 50, "rising"),
    (3, 400, "waves"),
    (5, 60, "falling"),
    (10, 40, "random"),
]


@pytest.mark.parametrize(("k", "n", "shape"), LONG_COUNTS)
@pytest.mark.parametrize("mean", [None, 500], ids=["one batch", "batches"])
def test_long_count_windows(algorithm: str, k: int, n: int, shape: str, mean: int | None) -> None:
    """One batch of many arrivals, where an engine may look ahead, and batches that blocks do not fit."""
    rng = np.random.default_rng([k, n])
    scores = shaped(shape, LONG, rng)
    monitor = Monitor(TopK(k, by="x", window=Last(n), algorithm=algorithm))
    places = [0, LONG] if mean is None else cuts(LONG, rng, mean)
    changes = joined(monitor.push({"x": scores[i:j]}) for i, j in itertools.pairwise(places))
    equal_steps(steps_of(changes), reference(scores, k, n))
    check(monitor)


LONG_TIMES = [
    (1, 10, "random", [0, 0, 1], 0.0),
    (3, 10, "3", [0, 0, 0, 1], 0.0),
    (3, 100, "5", [0, 1, 1], 0.05),
    (3, 3000, "1000", [0, 0, 1, 5], 0.02),
    (10, 100, "random", [0, 0, 1, 40], 0.1),
    (10, 3000, "5", [1], 0.0),
    (2, 50, "rising", [0, 1], 0.3),
    (4, 20, "waves", [0, 0, 0, 0, 1], 0.02),
    (5, 40, "falling", [0, 1], 0.05),
]


@pytest.mark.parametrize(("k", "span", "shape", "steps", "late"), LONG_TIMES)
@pytest.mark.parametrize("mean", [None, 500], ids=["one batch", "batches"])
def test_long_time_windows(
    algorithm: str, k: int, span: int, shape: str, steps: list[int], late: float, mean: int | None
) -> None:
    rng = np.random.default_rng([k, span])
    scores, times = shaped(shape, LONG, rng), stamped(LONG, rng, steps, late, 2 * span)
    clocks = np.maximum.accumulate(times)
    monitor = Monitor(TopK(k, by="x", window=Last(span=span), algorithm=algorithm), time="t")
    places = [0, LONG] if mean is None else cuts(LONG, rng, mean)
    pieces = [monitor.push({"x": scores[i:j], "t": times[i:j]}) for i, j in itertools.pairwise(places)]
    end = int(clocks[-1]) + span
    pieces.append(monitor.advance(end))
    expected = reference(scores, k, span, times=times, clocks=clocks, end=end)
    equal_steps(steps_of(joined(pieces)), expected)
    assert monitor.answer().num_rows == 0
    check(monitor)


@pytest.mark.parametrize("timed", [False, True], ids=["count", "time"])
@pytest.mark.parametrize("shape", ["20", "random", "falling", "waves"])
@pytest.mark.parametrize(
    "sizes",
    [
        {"small": (1, 12), "mixed": (8, 12), "wide": (2, 900), "large": (6, 300)},
        {"short": (1, 3), "long": (1, 9)},
        {"few": (2, 30), "many": (5, 70)},
    ],
    ids="-".join,
)
def test_long_streams_of_sharing_queries(
    algorithm: str, timed: bool, shape: str, sizes: dict[str, tuple[int, int]]
) -> None:
    """The largest k and the smallest window decide how far an engine may look ahead."""
    rng = np.random.default_rng(5)
    scores, times = shaped(shape, LONG, rng), stamped(LONG, rng, [0, 0, 1], 0.05, 60)
    clocks = np.maximum.accumulate(times)
    monitor = Monitor(
        {
            name: TopK(k, by="x", window=Last(span=n) if timed else Last(n), algorithm=algorithm)
            for name, (k, n) in sizes.items()
        },
        time="t" if timed else None,
    )
    places = cuts(LONG, rng, 4000)
    changes = joined(monitor.push({"x": scores[i:j], "t": times[i:j]}) for i, j in itertools.pairwise(places))
    names = np.array(changes.column("query").to_pylist())
    for name, (k, n) in sizes.items():
        own = changes.filter(pa.array(names == name))
        moments: dict[str, Any] = {"times": times, "clocks": clocks} if timed else {}
        equal_steps(steps_of(own), reference(scores, k, n, **moments))
    check(monitor)


@pytest.mark.parametrize("timed", [False, True], ids=["count", "time"])
@pytest.mark.parametrize(("k", "n", "shape"), [(1, 10, "5"), (3, 40, "random"), (4, 900, "6"), (5, 60, "falling")])
def test_long_streams_of_net_changes(algorithm: str, timed: bool, k: int, n: int, shape: str) -> None:
    """emit="batch": objects in the answer after a batch and not before it, and the other way round."""
    rng = np.random.default_rng([k, n, 7])
    scores, times = shaped(shape, LONG, rng), stamped(LONG, rng, [0, 0, 1], 0.05, n - 1)
    clocks = np.maximum.accumulate(times)
    query = TopK(k, by="x", window=Last(span=n) if timed else Last(n), algorithm=algorithm)
    monitor = Monitor(query, time="t", emit="batch")
    moments: dict[str, Any] = {"times": times, "clocks": clocks} if timed else {}
    steps = reference(scores, k, n, **moments)
    shown: set[int] = set()
    ever: set[int] = set()
    held: set[int] = set()
    place = 0
    for i, j in itertools.pairwise(cuts(LONG, rng, 700)):
        while place < len(steps) and steps[place][0] < j and steps[place][1] <= (clocks[j - 1] if timed else j - 1):
            (held.add if steps[place][3] > 0 else held.remove)(steps[place][2])
            place += 1
        changes = monitor.push({"x": scores[i:j], "t": times[i:j]})
        expected = [(serial, -1, False) for serial in shown - held] + [
            (serial, 1, serial not in ever) for serial in held - shown
        ]
        got = zip(*(changes.column(name).to_pylist() for name in ("id", "diff", "first")), strict=True)
        assert sorted(got) == sorted(expected), f"rows {i} to {j}"
        assert set(changes.column("at").to_pylist()) <= {j - 1}
        assert sorted(monitor.answer().column("id").to_pylist()) == sorted(held)
        shown = set(held)
        ever |= held
    check(monitor)


@pytest.mark.parametrize("timed", [False, True], ids=["count", "time"])
@pytest.mark.parametrize(("k", "n", "shape"), [(1, 30, "4"), (3, 10, "random"), (4, 200, "6"), (6, 50, "waves")])
def test_row_by_row_equals_one_batch(algorithm: str, timed: bool, k: int, n: int, shape: str) -> None:
    """Differential: pushed in pieces too small to look ahead in, and at once."""
    size = 500
    rng = np.random.default_rng([k, n, 3])
    scores, times = shaped(shape, size, rng), stamped(size, rng, [0, 0, 1], 0.1, n)
    query = TopK(k, by="x", window=Last(span=n) if timed else Last(n), algorithm=algorithm)
    one, other = (Monitor(query, time="t", keep="z") for _ in range(2))
    batch = pa.table({"x": scores, "t": times, "z": [f"z{i}" for i in range(size)]})
    expected = one.push(batch)
    step = 1 if KILL else max(1, k)
    got = joined(other.push(batch.slice(i, step)) for i in range(0, size, step))
    same_rows(cells(got), cells(expected), "all changes")
    assert other.answer().equals(one.answer())


def test_waiting_objects_are_not_lost_when_the_query_changes(algorithm: str) -> None:
    """Scores fall, so no object of a buffer is an answer yet, and each will be."""
    query = TopK(2, by="x", window=Last(30), algorithm=algorithm)
    monitor = Monitor({"q": query})
    monitor.push({"x": -np.arange(50.0)})
    monitor.replace("q", dataclasses.replace(query, k=1, window=Last(25)))
    changes = monitor.push({"x": -np.arange(50.0, 80.0)})
    assert [change["id"] for change in changes.to_pylist() if change["diff"] > 0] == list(range(26, 56))


@pytest.mark.parametrize("timed", [False, True], ids=["count", "time"])
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_hundreds_of_groups(algorithm: str, timed: bool, emit: Any) -> None:
    """Every group against its own recomputation; all expire by the one clock, also those that nothing touches."""
    rng = np.random.default_rng(11)
    size, groups = 2 * LONG, LONG // 3
    keys = np.minimum(rng.zipf(1.3, size), groups) - 1
    scores, times = rng.integers(0, 50, size).astype(float), stamped(size, rng, [0, 0, 0, 1], 0.02, 40)
    clocks = np.maximum.accumulate(times)
    k, n = 3, 60 if timed else 8
    query = TopK(k, by="x", window=Last(span=n) if timed else Last(n), per="g", algorithm=algorithm)
    monitor = Monitor(query, time="t", emit=emit)
    places = cuts(size, rng, 3000)
    pieces = [
        monitor.push({"x": scores[i:j], "t": times[i:j], "g": keys[i:j] * 1_000_003})
        for i, j in itertools.pairwise(places)
    ]
    expected, answers = {}, {}
    for key in np.unique(keys):
        mine = np.flatnonzero(keys == key)
        moments: dict[str, Any] = {
            "times": times[mine].tolist(),
            "clocks": clocks[mine].tolist(),
            "end": int(clocks[-1]),
        }
        expected[int(key) * 1_000_003] = steps = recomputed(scores[mine].tolist(), k, n, **(moments if timed else {}))
        held: dict[int, int] = defaultdict(int)
        for _, _, serial, diff, _ in steps:
            held[serial] += diff
        answers[int(key) * 1_000_003] = sorted(serial for serial, diff in held.items() if diff)
    got: dict[int, list[Step]] = defaultdict(list)
    for table in pieces:
        column = table.column("time" if timed else "at").to_pylist()
        rows = zip(*(table.column(name).to_pylist() for name in ("g", "at", "id", "diff", "first")), strict=True)
        for time, (g, at, serial, diff, first) in zip(column, rows, strict=True):
            got[g].append((at, time, serial, diff, first))
    if emit == "arrival":
        assert len(expected) > (30 if KILL else 700)
        for key, steps in expected.items():
            equal_steps(got[key], steps)
    kept = defaultdict(list)
    answer = monitor.answer()
    for g, serial in zip(answer.column("g").to_pylist(), answer.column("id").to_pylist(), strict=True):
        kept[g].append(serial)
    assert {g: sorted(ids) for g, ids in kept.items()} == {g: ids for g, ids in answers.items() if ids}
    if emit == "batch":
        for key in expected:
            held = defaultdict(int)
            for _, _, serial, diff, _ in got[key]:
                held[serial] += diff
            assert sorted(serial for serial, diff in held.items() if diff) == answers[key]


@pytest.mark.parametrize("shape", ["falling", "rising", "4", "random"])
def test_capacity_grows_and_shrinks(algorithm: str, shape: str) -> None:
    """Groups that grow at different times, from nothing to large and back, with a check after each push."""
    rng = np.random.default_rng(3)
    query = TopK(2, by="x", window=Last(span=40), per="g", algorithm=algorithm)
    monitor = Monitor(query, time="t")
    clock, rows = 0, []
    for round in range(30):
        size = int(rng.integers(1, 60))
        scores = shaped(shape, size, rng)
        keys = rng.integers(round // 3, round // 3 + 3, size)
        times = clock + np.sort(rng.integers(0, 12, size))
        clock = int(times[-1])
        rows += [row(t=int(t), x=float(x), g=int(g)) for t, x, g in zip(times, scores, keys, strict=True)]
        monitor.push({"x": scores, "t": times, "g": keys})
        check(monitor)
        valid = [one for one in rows if one["t"] + 40 > clock]
        for g in {one["g"] for one in valid}:
            mine = sorted((one["x"], one["t"], place) for place, one in enumerate(valid) if one["g"] == g)
            best = [x for x, _, _ in mine[::-1][:2]]
            assert monitor.answer(key=g).column("score").to_pylist() == best
