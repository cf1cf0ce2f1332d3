"""The Spark pipeline without a JVM: rows that mappers do not send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engines.streams import cells, net, same_rows
from skyband import Ever, Last, Monitor, TopK, TopKGroups
from skyband.engines.topk.adapter import TopKAdapter
from spark.shards import Shards, pushed, rows


@pytest.fixture(scope="module", autouse=True)
def _no_leftovers() -> Iterator[None]:
    needed = TopKAdapter.needed
    yield
    assert TopKAdapter.needed is needed


@pytest.mark.parametrize("emit", ["arrival", "batch"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_pruning_changes_nothing_and_prunes(k: int, emit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = {True: 0, False: 0}
    for seed in range(8):
        rng = np.random.default_rng([seed, k])
        size = 600
        late = rng.integers(0, 40, size) * (rng.random(size) < 0.1) * (seed % 2)
        table = pa.table(
            {
                "i": np.arange(size),
                "t": np.maximum(np.cumsum(rng.integers(0, 3, size)) - late, 0),
                "x": rng.integers(0, 12, size).astype(float),
                "g": rng.integers(0, 2, size),
            }
        )
        queries = {
            "g": TopK(k, by="x", window=Last(span=int(rng.integers(5, 900))), per="g"),
            "small": TopK(1, by="x", window=Last(span=200), where="x < 9", largest=False, per="g"),
            "all": TopK(k, by="x", window=Last(span=400)),
        }
        options: dict[str, Any] = {"id": "i", "time": "t", "emit": emit}
        monitor = Monitor(queries, **options)
        pruning, plain = (Shards(queries, options, 7, seed=seed) for _ in range(2))
        part = rng.integers(0, 2, size)
        for begin in (0, 250):
            now = np.arange(size) // 250 == begin // 250
            trigger = [table.filter(pa.array(now & (part == p))) for p in (0, 1)]
            found = pruning.trigger(trigger)
            with monkeypatch.context() as patch:
                patch.setattr(
                    TopKAdapter, "needed", lambda self, validated, *rest: np.ones(len(validated.accepted), np.bool_)
                )
                whole = plain.trigger(trigger)
            expected = pushed(monitor, trigger, ("t", "i"))
            assert net(found) == net(whole) == net(expected), f"seed {seed}"
            if seed % 2 == 0:
                same_rows(found, whole, f"seed {seed}, against no pruning")
                same_rows(found, expected, f"seed {seed}, against a Monitor")
            for name in queries:
                same_rows(pruning.answer(name), cells(monitor.answer(name)), f"seed {seed}, {name}")
        sent[True], sent[False] = sent[True] + pruning.sent, sent[False] + plain.sent
    assert sent[True] < 0.7 * sent[False]


@pytest.mark.parametrize("k", [1, 2])
def test_pruning_near_the_ends_of_short_windows(k: int) -> None:
    """Who is K-th to leave at the very instant at which a dominator comes still lets others show."""
    for seed in range(150):
        rng = np.random.default_rng([seed, k])
        times = np.cumsum(rng.integers(0, 3, 24))
        query = {"q": TopK(k, by="x", window=Last(span=int(rng.integers(2, 12))))}
        options: dict[str, Any] = {"id": "i", "time": "t"}
        trigger = [
            rows(
                *[(i, int(t), float(x), 1) for i, (t, x) in enumerate(zip(times, rng.integers(0, 9, 24), strict=True))]
            )
        ]
        expected = pushed(Monitor(query, **options), trigger, ("t", "i"))
        same_rows(Shards(query, options, 1).trigger(trigger), expected, f"seed {seed}")


def test_count_windows_prune_nothing() -> None:
    shards = Shards({"q": TopK(1, by="x", window=Last(1000), per="g")}, {"id": "i", "time": "t"}, 7)
    shards.trigger([rows(*[(i, i, float(-i), i % 3) for i in range(300)])])
    assert shards.sent == 300


def test_rejected_rows_stay_in_the_mapper_and_are_counted() -> None:
    shards = Shards({"q": TopK(1, by="x", window=Last(span=1000), per="g")}, {"id": "i", "time": "t"}, 7)
    made = [(i, i, None if i % 3 == 0 else i * 7 % 13, 1) for i in range(300)]
    shards.trigger([rows(*made[:99]), rows(*made[99:], (300, None, 1.0, 1))])
    totals = [shard.totals() for shard in shards.shards_now()]
    assert sum(one["rejected"] for one in totals) == 101
    assert sum(one["arrivals"] for one in totals) == 200
    assert shards.sent < 100


@pytest.mark.parametrize("lateness", [0, 30])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_pruning_of_many_rows_in_one_group(k: int, lateness: int) -> None:
    """Blocks so long that thresholds decide: ties at the top, trends, windows that end within the block."""
    rng = np.random.default_rng([k, lateness])
    for case in range(8):
        size = 1600
        trend = np.linspace(0, [0, 30, -30, 6][case % 4], size)
        scores = np.floor(rng.integers(0, [2, 12][case // 4], size) + trend)
        times = np.cumsum(rng.integers(0, 2, size)) - rng.integers(0, 1 + lateness, size) * (rng.random(size) < 0.05)
        query = {"q": TopK(k, by="x", window=Last(span=int(rng.integers(300, 700))))}
        options: dict[str, Any] = {"id": "i", "time": "t"}
        table = pa.table({"i": np.arange(size), "t": times, "x": scores})
        shards, monitor = Shards(query, options, 1, order=("i",)), Monitor(query, **options)
        found, expected = shards.trigger([table]), pushed(monitor, [table], ("i",))
        assert net(found) == net(expected)
        if not lateness:
            same_rows(found, expected, f"case {case}")
            assert shards.sent < size
        same_rows(shards.answer("q"), cells(monitor.answer("q")), f"case {case}, answer")
        after = pa.table({"i": [size], "t": [int(times.max()) + 250], "x": [0.0]})  # what was kept comes to light
        assert net(shards.trigger([after])) == net(pushed(monitor, [after], ("i",)))
        same_rows(shards.answer("q"), cells(monitor.answer("q")), f"case {case}, later answer")


def many(k: int, scores: Any, times: Any, span: int) -> Any:
    """One group, long blocks: pruned and not, then a row that lets the best of the ends expire."""
    query, options = {"q": TopK(k, by="x", window=Last(span=span))}, dict[str, Any](id="i", time="t")
    size = len(scores)
    shards, monitor = Shards(query, options, 1, order=("i",)), Monitor(query, **options)
    for table in (
        pa.table({"i": np.arange(size), "t": times, "x": scores}),
        pa.table({"i": [size], "t": [int(times[size // 2]) + span - 1], "x": [-1.0]}),
    ):
        found, expected = shards.trigger([table]), pushed(monitor, [table], ("i",))
        assert net(found) == net(expected)
        if (np.diff(times) >= 0).all():
            same_rows(found, expected, "changes")
        same_rows(shards.answer("q"), cells(monitor.answer("q")), "answer")


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_block_is_no_longer_than_the_window(k: int) -> None:
    """High at both ends of twice the window, low for longer than it in between: there the low ones are the answer."""
    i = np.arange(1200 * k)
    high = (i % (600 * k) < 64 * k) | (i % (600 * k) >= 536 * k)
    many(k, 100.0 * high + np.random.default_rng(k).integers(0, 50, len(i)), i, 300 * k)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_late_rows_are_never_counted_on(k: int) -> None:
    """The best at the end are late, and leave before those in the middle whom they seem to dominate."""
    size = 400 * k
    late = np.arange(size) >= size - 64 * k
    scores = np.random.default_rng(k).integers(0, 50, size) + 100.0 * late + 100.0 * (np.arange(size) < 64 * k)
    many(k, scores, np.where(late, 0, np.arange(size)), 2 * size)


@pytest.mark.parametrize("k", [2, 3])
def test_fewer_than_k_above_are_not_enough(k: int) -> None:
    scores = np.zeros(400 * k)
    scores[: k - 1] = scores[-(k - 1) :] = 100
    scores[200 * k] = 50
    many(k, scores, np.arange(400 * k), 1000 * k)


def test_sums_of_nothing_but_zeros() -> None:
    query, options = (
        {"q": TopKGroups(2, by="sum(x)", window=Ever(), of="g")},
        dict[str, Any](id="i", time="t", emit="batch"),
    )
    shards, trigger = Shards(query, options, 1), [rows((0, 0, 0.0, 1), (1, 1, -0.0, 1), (2, 2, 0.0, 2))]
    same_rows(shards.trigger(trigger), pushed(Monitor(query, **options), trigger, ("t", "i")), "zeros")
    assert shards.sent == 2
