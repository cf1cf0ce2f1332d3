"""The mappers and the operator against one Monitor, without a JVM ("The same everywhere", DESIGN.md, section 2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import APPROXIMATE, Row, cells, examples, net, same_rows
from skyband import Last, Linear, Monitor, Nearest, Product, Quadratic, TopK
from skyband.engines.topk.adapter import TopKAdapter
from skyband.errors import StateError
from skyband.query.algorithms import names
from skyband.spark import mappers as packing
from skyband.spark.plan import hash_groups
from skyband.spark.plan import shard_of as shard_of_hash
from spark.shards import CLOCKWORKS, Shards, Sizes, Stream, pushed, streams, table_of, without_numbers

INTEGERS = CLOCKWORKS["integer"]


def shard_of(columns: list[Any], shards: int) -> Any:
    return shard_of_hash(hash_groups(columns), shards)


def rows(*listed: tuple[Any, ...], **more: Any) -> Any:
    """(id, time, score, group) as a table."""
    made = [{"i": i, "t": t, "x": x, "g": g, "y": 1, "z": "z", "h": "m", **more} for i, t, x, g in listed]
    return table_of(made, INTEGERS)


def told(changes: list[Row]) -> list[str]:
    """Changes as text: time, group, who."""
    return sorted(f"{row['time']} {row.get('g')} {'+' if row['diff'] > 0 else '-'}{row['id']}" for row in changes)


# ------------------------------------------------------------------- the same everywhere


@examples(120)
@given(streams())
def test_streams_in_order(stream: Stream) -> None:
    shards, monitor = stream.start()
    found = []
    for number, trigger in enumerate(stream.triggers):
        told = shards.trigger(trigger)
        same_rows(told, pushed(monitor, trigger, stream.order), f"trigger {number}")
        found += told
    whole = Monitor(stream.queries, **stream.options)
    same_rows(found, without_numbers(whole, whole.push(stream.table().sort_by("i"))), "all triggers")


@examples(80)
@given(streams(emit=("batch",)))
def test_net_changes_of_streams_in_order(stream: Stream) -> None:
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        same_rows(shards.trigger(trigger), pushed(monitor, trigger, stream.order), f"trigger {number}")
    for name in stream.queries:
        same_rows(shards.answer(name), cells(monitor.answer(name)), f"answer of {name}")


@examples(150)
@given(streams(emit=("arrival", "batch"), lateness=(1, 4, 12)))
def test_streams_with_late_rows(stream: Stream) -> None:
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        found, expected = shards.trigger(trigger), pushed(monitor, trigger, stream.order)
        assert net(found) == net(expected), f"trigger {number}"
        for name in stream.queries:
            same_rows(shards.answer(name), cells(monitor.answer(name)), f"trigger {number}, answer of {name}")


@examples(40)
@given(streams(emit=("arrival", "batch"), lateness=(0, 0, 4), above=True), st.data())
def test_all_above_a_threshold(stream: Stream, data: st.DataObject) -> None:
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        found, expected = shards.trigger(trigger), pushed(monitor, trigger, stream.order)
        assert net(found) == net(expected), f"trigger {number}"
        if is_in_order(stream, number):
            same_rows(found, expected, f"trigger {number}")
        for name in stream.queries:
            same_rows(shards.answer(name), cells(monitor.answer(name)), f"trigger {number}, answer of {name}")
        for one in shards.monitors():
            one._loop.check()
        if data.draw(st.booleans()):
            shards.restart()


def is_in_order(stream: Stream, number: int) -> bool:
    """Up to this trigger, and with no time missing."""
    so_far = pa.concat_tables([part for trigger in stream.triggers[: number + 1] for part in trigger])
    times = [time for time in so_far.sort_by("i").column("t").to_pylist() if time is not None]
    return times == sorted(times)


@examples(60)
@given(streams(emit=("arrival", "batch"), lateness=(0, 4)), st.data())
def test_a_restart_between_any_two_triggers_changes_nothing(stream: Stream, data: st.DataObject) -> None:
    (shards, _), (restarted, _) = stream.start(), stream.start()
    for number, trigger in enumerate(stream.triggers):
        if data.draw(st.booleans()):
            restarted.restart()
        same_rows(restarted.trigger(trigger), shards.trigger(trigger), f"trigger {number}")


@examples(80)
@given(streams(emit=("batch",), lateness=(0, 4)))
def test_answers_of_the_groups_that_changed(stream: Stream) -> None:
    shards, monitor = stream.start(whole=True)
    per = dict.fromkeys(name for query in stream.queries.values() for name in query.per_columns)
    for number, trigger in enumerate(stream.triggers):
        found, changes = shards.trigger(trigger), pushed(monitor, trigger, stream.order)
        changed = {(row["query"], *(row[name] for name in per)) for row in changes}
        expected = []
        for name in stream.queries:
            for row in cells(monitor.answer(name)):
                group = {column: row.get(column) for column in per}
                if (name, *group.values()) in changed:
                    expected.append({"query": name, **group, **row})
        same_rows(found, expected, f"trigger {number}")


@pytest.mark.parametrize("sizes", [Sizes(), Sizes(cell=300, slice=100, memory=5000)], ids=["as they are", "tiny"])
@pytest.mark.parametrize("shards", [1, 7])
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_five_hundred_groups(shards: int, emit: Any, sizes: Sizes) -> None:
    rng = np.random.default_rng(5)
    size = 4000
    table = pa.table(
        {
            "i": np.arange(size),
            "t": np.cumsum(rng.integers(0, 2, size)),
            "x": rng.integers(0, 9, size).astype(float),
            "g": pa.array(rng.integers(0, 500, size), mask=rng.random(size) < 0.01),
        }
    )
    queries = {
        "time": TopK(3, by="x", window=Last(span=700), per="g"),
        "count": TopK(2, by="x", window=Last(4), per="g"),
        "all": TopK(3, by="x", window=Last(span=50)),
    }
    options: dict[str, Any] = {"id": "i", "time": "t", "emit": emit}
    pipeline, monitor = Shards(queries, options, shards, sizes=sizes), Monitor(queries, **options)
    for begin in range(0, size, 800):
        trigger = [table.slice(begin, 500), table.slice(begin + 500, 300)]
        same_rows(pipeline.trigger(trigger), pushed(monitor, trigger, ("t", "i")), f"trigger at {begin}")
    for name in queries:
        same_rows(pipeline.answer(name), cells(monitor.answer(name)), name)
    if sizes.cell:
        cells_ = [len(directory) for shard in pipeline.shards_now() for directory in shard.directories.values()]
        assert sum(cells_) > 400


def test_rows_that_order_does_not_tell_apart_come_by_all_else_they_carry() -> None:
    made = [(1, 5, float(x % 3), None) for x in range(12)]
    query = {"q": TopK(2, by="x", window=Last(5))}
    outcomes = []
    for seed in range(5):
        mixed = np.random.default_rng(seed).permutation(len(made))
        shards = Shards(query, {"id": "i", "time": "t", "keep": "z"}, 1, seed=seed)
        parts = [rows(*[made[i] for i in mixed[:7]]), rows(*[made[i] for i in mixed[7:]])]
        outcomes.append(shards.trigger(parts))
    assert all(outcome == outcomes[0] for outcome in outcomes)


@pytest.mark.parametrize("late", ["accept"])
@examples(60)
@given(st.permutations(range(8)), st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=8, max_size=8), st.data())
def test_an_order_that_is_not_of_time(late: str, times: list[int], scores: list[float], data: st.DataObject) -> None:
    query = {"q": TopK(1, by="x", window=Last(span=3), per="g")}
    options: dict[str, Any] = {"id": "i", "time": "t", "late": late}
    shards, monitor = Shards(query, options, 7, order=("i",)), Monitor(query, **options)
    made = [(i, t, x, i % 2) for i, (t, x) in enumerate(zip(times, scores, strict=True))]
    where = data.draw(st.lists(st.integers(0, 1), min_size=8, max_size=8))
    trigger = [rows(*[row for row, part in zip(made, where, strict=True) if part == p]) for p in (0, 1)]
    assert net(shards.trigger(trigger)) == net(pushed(monitor, trigger, ("i",)))
    same_rows(shards.answer("q"), cells(monitor.answer("q")), "answer")


# ------------------------------------------------------------- every algorithm, and families

NAMES = names("TopK", lambda row: row.grouped)  # it takes no `per`
_OWN_NAMES = [name for name in NAMES if name not in ("CPM/W", "SNN")]  # those of TMA and SMA


@pytest.mark.parametrize("algorithm", NAMES)
@examples(12)
@given(st.data())
def test_every_algorithm_runs_on_shards(algorithm: str, data: st.DataObject) -> None:
    stream = data.draw(streams(emit=("arrival", "batch"), lateness=(0, 0, 4), algorithm=algorithm))
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        found, expected = shards.trigger(trigger), pushed(monitor, trigger, stream.order)
        assert net(found) == net(expected), f"trigger {number}"
        for name in stream.queries:
            same_rows(shards.answer(name), cells(monitor.answer(name)), f"trigger {number}, answer of {name}")
        for one in shards.monitors():
            one._loop.check()
        if data.draw(st.booleans()):
            shards.restart()


def scoring_for(algorithm: str) -> Any:
    return Nearest({"x": 39.5}) if algorithm in ("CPM/W", "SNN") else "x"


def many_rows(seed: int, size: int, groups: int, late: int = 0) -> Any:
    """Rows with two attributes in 0 to 40, some null; `late`: by how much at most."""
    rng = np.random.default_rng(seed)
    clock = np.cumsum(rng.integers(0, 3, size))
    return pa.table(
        {
            "i": np.arange(size),
            "t": np.maximum(clock - rng.integers(0, 1 + late, size) * (rng.random(size) < 0.2), 0),
            "x": pa.array(rng.integers(0, 40, size).astype(float), mask=rng.random(size) < 0.02),
            "y": pa.array(rng.integers(0, 40, size), pa.int32()),
            "z": pa.array(["z"] * size),
            "g": pa.array(rng.integers(0, groups, size)),
            "h": pa.array(["m"] * size),
        }
    )


def cut(table: Any, triggers: int) -> list[list[Any]]:
    """Triggers of two partitions."""
    size = table.num_rows // triggers
    parts = [table.slice(begin, size) for begin in range(0, table.num_rows, size)]
    return [[part.slice(0, size // 3), part.slice(size // 3)] for part in parts]


@pytest.mark.parametrize(
    ("algorithm", "per", "shards"),
    [
        *(("ADAPTIVE", None, 1), ("ADAPTIVE", None, 7), ("SNN", None, 7), ("CPM/W", "g", 1)),
        *((name, per, (1, 7)[(i + j) % 2]) for i, name in enumerate(_OWN_NAMES) for j, per in enumerate((None, "g"))),
    ],
)
def test_every_algorithm_with_longer_windows(algorithm: str, shards: int, per: Any) -> None:
    """Long enough for buffers and filters to fill and to empty, with a restart before every trigger."""
    table = many_rows(3, 1500, 9)
    by = scoring_for(algorithm)
    queries = {"count": TopK(3, by=by, window=Last(90), per=per, algorithm=algorithm, buffer=20)}
    if algorithm not in APPROXIMATE:
        queries["time"] = TopK(2, by=by, window=Last(span=400), per=per, algorithm=algorithm, buffer=20)
        queries["short"] = TopK(2, by=by, window=Last(span=100), per=per, algorithm=algorithm, buffer=20)
    options: dict[str, Any] = {"id": "i", "time": "t", "keep": "y"}
    pipeline, monitor = Shards(queries, options, shards, sizes=Sizes(cell=2000, slice=100)), Monitor(queries, **options)
    for number, trigger in enumerate(cut(table, 6)):
        same_rows(pipeline.trigger(trigger), pushed(monitor, trigger, ("t", "i")), f"trigger {number}")
        pipeline.restart()
    for name in queries:
        same_rows(pipeline.answer(name), cells(monitor.answer(name)), name)
    for one in pipeline.monitors():
        one._loop.check()


@pytest.mark.parametrize("algorithm", names("TopK", lambda row: row.exact))
def test_groups_of_time_windows_go_with_all_that_waits(algorithm: str) -> None:
    by = scoring_for(algorithm)
    query = {"q": TopK(2, by=by, window=Last(span=50), per="g", algorithm=algorithm, buffer=5)}
    shards = Shards(query, {"id": "i", "time": "t"}, 3, sizes=Sizes(cell=300))
    for trigger in cut(many_rows(4, 300, 20), 3):
        shards.trigger(trigger)
    assert sum(one.totals()["groups"] for one in shards.shards_now()) > 10
    shards.trigger([rows((1000, 5000, 1.0, 99))])
    totals = [one.totals() for one in shards.shards_now()]
    assert sum(one["groups"] for one in totals) == 1
    assert 1 <= sum(one["objects"] for one in totals) <= 2


def near(x: float, y: float, window: Last, k: int = 3, **more: Any) -> TopK:
    return TopK(k, by=Nearest({"x": x, "y": y}), window=window, **more)


FAMILIES = [
    (name, window)
    for name in names("TopK", lambda row: row.family is not None)
    for window in (Last(70), Last(span=150))
    if not (window.timed and name in APPROXIMATE)
]


TURNS = [(0, "arrival", 16), (60, "batch", 16), (0, "batch", 0), (60, "arrival", 0)]


@pytest.mark.parametrize(
    ("algorithm", "window", "late", "emit", "few"),
    [  # what all have in common is tried with BLOCK, half with each window; the others take turns
        (name, window, *turn)
        for i, (name, window) in enumerate(FAMILIES)
        for j, turn in enumerate(TURNS)
        if (i + j) % 2 == 0 and (name == "BLOCK" or (i // 2 + i + j) % 4 < 2)
    ],
)
def test_families_resume_and_change(
    algorithm: str, window: Last, late: int, emit: Any, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six over three shards, a restart before every trigger; one goes, another comes. Mappers prune, or do not."""
    monkeypatch.setattr(packing, "_FEW", few)
    points = [(5.0 * i, 40 - 7.0 * i) for i in range(7)]
    named = {f"q{i}": near(x, y, window, algorithm=algorithm, buffer=9) for i, (x, y) in enumerate(points)}
    queries, after = ({name: named[name] for name in names} for names in (list(named)[:6], [*list(named)[1:]]))
    options: dict[str, Any] = {"id": "i", "time": "t", "emit": emit}
    pipeline, monitor = Shards(queries, options, 3, sizes=Sizes(slice=100)), Monitor(queries, **options)
    kinds = []
    for number, trigger in enumerate(cut(many_rows(8, 720, 2, late), 6)):
        if number == 3:
            monitor.drop("q0")
            monitor.add("q6", after["q6"])
        pipeline.restart(queries if number < 3 else after)
        found, expected = pipeline.trigger(trigger), pushed(monitor, trigger, ("t", "i"))
        if number >= 3:  # where the numbers of a new one begin depends on who shares its shard
            found, expected = ([{**row, "at": None} for row in changes] for changes in (found, expected))
        assert net(found) == net(expected), f"trigger {number}"
        if not late:
            same_rows(found, expected, f"trigger {number}")
        for name in monitor.queries:
            same_rows(pipeline.answer(name), cells(monitor.answer(name)), f"trigger {number}, {name}")
        kinds.append({adapter.family for one in pipeline.monitors() for adapter in one._loop.state.standing()})
        for one in pipeline.monitors():
            one._loop.check()
    assert all(True in kind for kind in kinds[:3])


@pytest.mark.parametrize("few", [0, 16])
@pytest.mark.parametrize("window", [Last(span=50), Last(6)], ids=str)
def test_a_family_with_numbers_that_its_scorings_judge_differently(
    window: Last, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They split it: 1e200 squared is too far for a distance, and 1e100 is not."""
    monkeypatch.setattr(packing, "_FEW", few)
    queries = {f"q{i}": near(x, 1.0, window) for i, x in enumerate([0.0, 5.0, 9.0, 30.0, 31.0])}
    options: dict[str, Any] = {"id": "i", "time": "t"}
    pipeline, monitor = Shards(queries, options, 2), Monitor(queries, **options)
    inf = float("inf")
    for begin, scores in ((0, [3.0, 7.0, 1.0]), (10, [2.0, 1e120, 1e200, -1e300, inf, None]), (20, [4.0, 8.0, 30.0])):
        trigger = [rows(*[(begin + i, begin + i, x, 1) for i, x in enumerate(scores)])]
        same_rows(pipeline.trigger(trigger), pushed(monitor, trigger, ("t", "i")), f"from {begin}")
        pipeline.restart()
    for name in queries:
        same_rows(pipeline.answer(name), cells(monitor.answer(name)), name)


def test_a_family_that_nobody_but_the_clock_has_reached() -> None:
    """Shards with queries start when rows come; those that are all rejected leave a family that has not started."""
    queries = {f"q{i}": near(float(i), 1.0, Last(span=50)) for i in range(6)} | {"g": TopK(1, by="y", window=Last(5))}
    options: dict[str, Any] = {"id": "i", "time": "t"}
    pipeline, monitor = Shards(queries, options, 1), Monitor(queries, **options)
    for made in ([(1, 1, None, 1), (2, 2, None, 1)], [(3, 30, 2.0, 1), (4, 31, None, 1)], [(5, 100, 7.0, 2)]):
        trigger = [rows(*made)]
        same_rows(pipeline.trigger(trigger), pushed(monitor, trigger, ("t", "i")), str(made))
        pipeline.restart()


@pytest.mark.parametrize("more", [{"where": "y > 0"}, {"algorithm": "SA"}], ids=str)
def test_a_family_beside_a_query_with_one_of_its_scorings(more: dict[str, Any]) -> None:
    alone = {"c": near(20.0, 20.0, Last(60), **more)}
    queries = {"a": near(20.0, 20.0, Last(60)), "b": near(5.0, 9.0, Last(60)), **alone}
    options: dict[str, Any] = {"id": "i", "time": "t"}
    pipeline, monitor = Shards(queries, options, 1), Monitor(alone, **options)
    for trigger in cut(many_rows(6, 200, 2), 2):
        found = [row for row in pipeline.trigger(trigger) if row["query"] == "c"]
        same_rows(found, pushed(monitor, trigger, ("t", "i")), "trigger")


def test_a_mapper_validates_by_one_query_for_many() -> None:
    """Scores of each of a thousand queries would fill the memory; ineligible rows still stay in the mapper."""
    queries = {f"q{i}": near(float(i % 40), i / 40, Last(span=60), where="y > 20") for i in range(100)}
    queries |= {"odd": near(0.0, 0.0, Last(span=90), where="y > 20"), "few": near(1.0, 1.0, Last(span=60), k=1)}
    options: dict[str, Any] = {"id": "i", "time": "t"}
    pipeline, monitor = Shards(queries, options, 2), Monitor(queries, **options)
    packer = packing.Packer(pipeline.plan)
    assert list(packer.represented) == ["q0"] and len(packer.represented["q0"]) == 99
    assert list(packer.validator.loop.state.queries) == ["q0", "odd", "few"]
    table = many_rows(5, 600, 2)
    for trigger in cut(table, 2):
        same_rows(pipeline.trigger(trigger), pushed(monitor, trigger, ("t", "i")), "trigger")
        pipeline.restart()
    assert pipeline.sent < 1.5 * table.num_rows


# ------------------------------------------------------------------------------- pruning


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


# --------------------------------------------------------------------------------- clock


@pytest.mark.parametrize("shards", [1, 7])
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_idle_groups_expire_with_the_clock_of_others(shards: int, emit: Any) -> None:
    pipeline = Shards(
        {"q": TopK(1, by="x", window=Last(span=10), per="g"), "all": TopK(1, by="x", window=Last(span=10))},
        {"id": "i", "time": "t", "emit": emit},
        shards,
    )
    entered = pipeline.trigger([rows(*[(g, g // 8, 1.0, g) for g in range(16)])])
    assert len([row for row in entered if row["query"] == "q" and row["diff"] > 0]) == 16
    # the clock is at 10 with a row of another group: who came at 0 leaves, who came at 1 stays
    left = [row for row in pipeline.trigger([rows((99, 10, 1.0, None))]) if row["query"] == "q" and row["diff"] < 0]
    assert told(left) == sorted(f"10 {g} -{g}" for g in range(8))
    left = [row for row in pipeline.trigger([rows((100, 30, 1.0, None))]) if row["query"] == "q" and row["diff"] < 0]
    when = 11 if emit == "arrival" else 30
    assert told(left) == sorted([f"{when} {g} -{g}" for g in range(8, 16)] + [f"{20 if when == 11 else 30} None -99"])


def test_the_clock_is_the_largest_time_of_all_chunks() -> None:
    shards = Shards(
        {"q": TopK(1, by="x", window=Last(span=10), per="g")}, {"id": "i", "time": "t"}, 7, sizes=Sizes(chunk=1)
    )
    shards.trigger([rows(*[(g, 0, 1.0, g) for g in range(16)])])
    left = shards.trigger([rows((20, 50, 1.0, 99), (21, 5, 1.0, 98))])
    assert len([row for row in left if row["diff"] < 0 and row["id"] < 20]) == 16
    assert [row["id"] for row in shards.answer("q")] == [20]


def test_a_row_that_every_query_rejects_moves_no_clock() -> None:
    queries = {"g": TopK(1, by="x", window=Last(span=10), per="g"), "y": TopK(1, by="y", window=Last(span=10))}
    shards = Shards(queries, {"id": "i", "time": "t"}, 7)
    assert len(shards.trigger([rows((1, 0, 1.0, 1))])) == 2
    assert shards.trigger([rows((2, 50, None, 1), y=None)]) == []
    # the second query takes this one, so it moves the clock of the first
    assert "10 1 -1" in told(shards.trigger([rows((3, 20, None, 1))]))


def test_a_shard_hears_of_the_clock_before_its_first_row() -> None:
    for clockwork in CLOCKWORKS.values():
        query = {"q": TopK(1, by="x", window=clockwork.window(10), per="g")}
        options: dict[str, Any] = {"id": "i", "time": "t", "late": "drop"}
        shards, monitor = Shards(query, options, 7), Monitor(query, **options)
        for step in ([(20, 0)], [(g, g) for g in range(1, 20)], [(21, g) for g in range(1, 20)]):
            made = [
                {"i": i, "t": clockwork.value(ticks), "x": 1.0, "y": 1, "z": "z", "g": g, "h": None}
                for i, (ticks, g) in enumerate(step)
            ]
            trigger = [table_of(made, clockwork)]
            same_rows(shards.trigger(trigger), pushed(monitor, trigger, ("t", "i")), f"{clockwork}, {step}")


@pytest.mark.parametrize("type_", [pa.timestamp("us", "UTC"), pa.timestamp("us")])
def test_a_time_that_python_cannot_hold(type_: Any) -> None:
    """Seconds read as milliseconds are in the year 50,000, which Spark takes, and datetime does not."""
    query = {"q": TopK(1, by="x", window=Last("1 hour"))}
    far = pa.array([0, 1_700_000_000_000 * 10**6], pa.int64()).cast(type_)
    table = pa.table({"i": [1, 2], "t": far, "x": [2.0, 1.0]})
    options: dict[str, Any] = {"id": "i", "time": "t"}
    shards = Shards(query, options, 1)
    monitor = Monitor(query, **options)
    assert monitor.push(table).num_rows == 3
    assert [told.num_rows for told in shards.tables([table])] == [3]
    (kept,) = shards.monitors()
    assert kept.answer().column("id").to_pylist() == [2]


# ------------------------------------------------------------------------------- restart


def per_group(k: int, n: int, **more: Any) -> TopK:
    return TopK(k, by="x", window=Last(n), per="g", **more)


_FIRST = [(i, i, float(i % 5), i % 11) for i in range(44)]
_SECOND = [(i, i, float(i % 7), i % 11) for i in range(44, 88)]


@pytest.mark.parametrize("shards", [1, 7])
def test_queries_resume_start_empty_and_are_discarded(shards: int) -> None:
    options: dict[str, Any] = {"id": "i", "time": "t"}
    old = {"stays": per_group(2, 5), "goes": per_group(1, 3), "time": TopK(1, by="x", window=Last(span=30), per="g")}
    new = {"stays": old["stays"], "time": old["time"], "comes": per_group(2, 6)}
    pipeline, monitor = Shards(old, options, shards), Monitor(old, **options)
    same_rows(pipeline.trigger([rows(*_FIRST)]), pushed(monitor, [rows(*_FIRST)], ("t", "i")), "before")
    pipeline.restart(new)
    monitor.drop("goes")
    monitor.add("comes", new["comes"])
    same_rows(pipeline.trigger([rows(*_SECOND)]), pushed(monitor, [rows(*_SECOND)], ("t", "i")), "after")
    for name in new:
        same_rows(pipeline.answer(name), cells(monitor.answer(name)), name)
    assert {name for one in pipeline.monitors() for name in one.queries} == set(new)


@examples(40)
@given(streams(emit=("arrival", "batch")), st.data())
def test_queries_come_go_and_change_places_while_cells_are_split(stream: Stream, data: st.DataObject) -> None:
    """Against a Monitor that drops and adds; where a new one's numbers begin depends on who shares its shard."""
    shards, monitor = stream.start()
    queries, fresh = dict(stream.queries), set[str]()
    for number, trigger in enumerate(stream.triggers):
        if number and data.draw(st.booleans()):
            gone = data.draw(st.sets(st.sampled_from(sorted(queries)), max_size=len(queries) - 1))
            like = data.draw(st.lists(st.sampled_from(sorted(stream.queries)), max_size=2))
            new = {f"{name}{number}{i}": stream.queries[name] for i, name in enumerate(like)}
            fresh |= new.keys()
            kept = {name: query for name, query in queries.items() if name not in gone}
            for name in gone:
                monitor.drop(name)
            for name, query in new.items():
                monitor.add(name, query)
            queries = dict(data.draw(st.permutations(list({**kept, **new}.items()))))
            shards.restart(queries)
        found, expected = (
            [{**row, "at": None} if row["query"] in fresh else row for row in changes]
            for changes in (shards.trigger(trigger), pushed(monitor, trigger, stream.order))
        )
        same_rows(
            [{name: row.get(name) for name in sorted(row)} for row in found],
            [{name: row.get(name) for name in sorted(row)} for row in expected],
            f"trigger {number}",
        )
        for name in queries:
            same_rows(shards.answer(name), cells(monitor.answer(name)), f"trigger {number}, answer of {name}")


def test_a_query_that_comes_with_a_trigger_without_rows() -> None:
    """Its engine starts later, in a trigger that touches few cells: the others must not keep their old form."""
    old = {"a": per_group(1, 5)}
    new = {**old, "b": TopK(1, by="y", window=Last(5), per="g")}
    options: dict[str, Any] = {"id": "i", "time": "t"}
    pipeline, monitor = Shards(old, options, 1, sizes=Sizes(cell=60)), Monitor(old, **options)
    triggers = [rows(*_FIRST), rows(*_SECOND), rows((90, None, 1.0, 3)), rows((91, 91, 1.0, 3)), rows((92, 92, 9.0, 4))]
    for number, trigger in enumerate(triggers):
        if number == 2:
            pipeline.restart(new)
            monitor.add("b", new["b"])
        same_rows(pipeline.trigger([trigger]), pushed(monitor, [trigger], ("t", "i")), f"trigger {number}")
    for name in new:
        same_rows(pipeline.answer(name), cells(monitor.answer(name)), name)


def test_queries_in_another_order_find_their_state() -> None:
    """The cells of query sets are numbered in the order in which the queries are given."""
    queries = {"a": per_group(1, 5), "b": TopK(1, by="x", window=Last(span=30), per="g"), "c": per_group(2, 3)}
    options: dict[str, Any] = {"id": "i", "time": "t"}
    pipeline, monitor = Shards(queries, options, 2), Monitor(queries, **options)
    same_rows(pipeline.trigger([rows(*_FIRST)]), pushed(monitor, [rows(*_FIRST)], ("t", "i")), "before")
    pipeline.restart({name: queries[name] for name in ("b", "c", "a")})
    same_rows(pipeline.trigger([rows(*_SECOND)]), pushed(monitor, [rows(*_SECOND)], ("t", "i")), "after")


@pytest.mark.parametrize(
    "by",
    [
        "x",
        "x * 2 + y",
        Linear({"x": 0.1, "y": 2}),
        Product({"x": 1, "y": 2}),
        Quadratic({"x": 1}),
        Nearest({"x": 1, "y": 2}, weights={"x": 0.5, "y": 1}, metric="manhattan"),
        lambda batch: batch["x"] + 1,
    ],
    ids=["column", "expression", "linear", "product", "quadratic", "nearest", "callable"],
)
@pytest.mark.parametrize("per", [None, "g", ("g", "h")])
def test_any_query_resumes(by: Any, per: Any) -> None:
    query = {"q": TopK(2, by=by, window=Last(9), per=per, where="y > 0", largest=False)}
    options: dict[str, Any] = {"id": "i", "time": "t", "keep": ("z",)}
    pipeline, monitor = Shards(query, options, 7), Monitor(query, **options)
    for made in (_FIRST, _SECOND):
        same_rows(pipeline.trigger([rows(*made)]), pushed(monitor, [rows(*made)], ("t", "i")), "trigger")
        pipeline.restart()


@pytest.mark.parametrize("time", ["t", None])
@pytest.mark.parametrize(("before", "after"), [(7, 1), (1, 7), (7, 3)])
def test_changed_shards_are_a_state_error(before: int, after: int, time: str | None) -> None:
    shards = Shards({"q": per_group(2, 5)}, {"id": "i", "time": time}, before)
    shards.trigger([rows(*_FIRST)])
    shards.restart(shards=after)
    with pytest.raises(StateError, match=rf"shards={before}, and groups cannot move.*new checkpoint"):
        shards.trigger([rows(*_SECOND)])


def test_changed_shards_are_a_state_error_where_no_row_was_too() -> None:
    shards = Shards({"q": per_group(2, 5)}, {"id": "i"}, 7)
    lone = [row for row in _FIRST if row[3] == 5]
    assert shard_of([pa.array([5])], 7) != 0
    shards.trigger([rows(*lone)])
    shards.restart(shards=1)
    with pytest.raises(StateError, match="shards=7"):
        shards.trigger([rows(*lone)])


def after_a_change(query: TopK, changed: TopK, shards: int) -> None:
    pipeline = Shards({"q": query}, {"id": "i", "time": "t"}, shards)
    pipeline.trigger([rows(*_FIRST)])
    pipeline.restart({"q": changed})
    with pytest.raises(StateError, match=r"'q' differs from the one in the checkpoint.*new name.*new checkpoint"):
        pipeline.trigger([rows(*_SECOND)])


@pytest.mark.parametrize(
    "change",
    [{"k": 3}, {"window": Last(6)}, {"window": Last(span=5)}, {"by": "-x"}, {"where": "y > 0"}, {"largest": False}],
    ids=str,
)
@pytest.mark.parametrize(("per", "shards"), [("g", 1), ("g", 7), (None, 1)])
def test_a_changed_query_is_a_state_error(per: Any, shards: int, change: dict[str, Any]) -> None:
    query = dataclasses.replace(per_group(2, 5), per=per)
    after_a_change(query, dataclasses.replace(query, **change), shards)


@pytest.mark.parametrize(
    ("per", "change"),
    [
        ("g", {"per": ("g", "h")}),
        ("g", {"per": None}),
        (None, {"per": ("g", "h")}),
        (None, {"by": "-x"}),
        (None, {"largest": False}),
        (None, {"window": Last(span=5)}),
    ],
    ids=str,
)
def test_a_query_that_changes_its_shard_is_a_state_error(per: Any, change: dict[str, Any]) -> None:
    query = dataclasses.replace(per_group(2, 5), per=per)
    after_a_change(query, dataclasses.replace(query, **change), 7)


@pytest.mark.parametrize("shards", [1, 7])
def test_a_dropped_query_that_comes_back_starts_empty(shards: int) -> None:
    both = {"a": TopK(2, by="x", window=Last(50)), "b": per_group(1, 3)}
    pipeline = Shards(both, {"id": "i", "time": "t"}, shards)
    pipeline.trigger([rows((1, 1, 9.0, 1))])
    pipeline.restart({"b": both["b"]})
    pipeline.trigger([rows((2, 2, 5.0, 1))])
    pipeline.restart(both)
    pipeline.trigger([rows((3, 3, 1.0, 1))])
    assert [row["id"] for row in pipeline.answer("a")] == [3]


@pytest.mark.parametrize("change", [{"keep": ("z",)}, {"emit": "batch"}, {"late": "drop"}, {"id": "y"}], ids=str)
def test_other_options_are_a_state_error_or_hold(change: dict[str, Any]) -> None:
    """What resumes must not go on silently with the options of the first run."""
    pipeline = Shards({"q": per_group(1, 5)}, {"id": "i", "time": "t"}, 1)
    pipeline.trigger([rows(*_FIRST)])
    pipeline.restart(**change)
    try:
        pipeline.trigger([rows(*_SECOND)])
    except StateError:
        return
    (monitor,) = pipeline.monitors()
    assert dataclasses.asdict(monitor._loop.state.options).items() >= change.items()


@pytest.mark.parametrize("late", [50, 5])
def test_a_query_that_comes_later_goes_by_the_clock_of_the_stream(late: int) -> None:
    queries = {"a": TopK(1, by="x", window=Last(span=10)), "b": TopK(1, by="x", window=Last(span=10), per="g")}
    options: dict[str, Any] = {"id": "i", "time": "t", "late": "drop"}
    pipeline, monitor = Shards({"a": queries["a"]}, options, 7), Monitor({"a": queries["a"]}, **options)
    first, second = [rows((1, 100, 1.0, 1))], [rows((2, 100 - late, 1.0, 1))]
    assert net(pipeline.trigger(first)) == net(pushed(monitor, first, ("t", "i")))
    pipeline.restart(queries)
    monitor.add("b", queries["b"])
    assert net(pipeline.trigger(second)) == net(pushed(monitor, second, ("t", "i")))


# -------------------------------------------------------------------------------- shards


def test_equal_groups_go_to_one_shard() -> None:
    floats = pa.array([0.0, -0.0, float("nan"), np.frombuffer(b"\x01\0\0\0\0\0\xf8\x7f")[0], None, None])
    where = shard_of([floats], 1000).tolist()
    assert where[0] == where[1] and where[2] == where[3] and where[4] == where[5]
    words = ["a", "b", None, "a", None, "b"]
    coded = [None if word is None else word.encode() for word in words]
    for column in (pa.array(words), pa.array(coded), pa.array(words, pa.large_string())):
        where = shard_of([column], 1000).tolist()
        assert where[0] == where[3] and where[1] == where[5] and where[2] == where[4]
        assert shard_of([column.slice(3)], 1000).tolist() == where[3:]
    assert shard_of([pa.nulls(2, pa.string())], 9).tolist() == shard_of([pa.array([None, "x"])], 9).tolist()[:1] * 2


@pytest.mark.parametrize(
    "column",
    [
        pa.array(range(700)),
        pa.array(range(0, 7_000_000, 10_000)),
        pa.array([f"key {i}" for i in range(700)]),
        pa.array([datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=i) for i in range(700)]),
        pa.array([i / 8 for i in range(700)]),
    ],
    ids=lambda column: str(column.type),
)
def test_groups_spread_over_shards(column: Any) -> None:
    held = np.bincount(shard_of([column], 7), minlength=7)
    assert held.min() > 50
    assert held.max() < 170


def test_shards_are_the_same_on_every_machine() -> None:
    """Part of every checkpoint: these numbers may never change."""
    assert shard_of([pa.array([0, 1, 2, None])], 1000).tolist() == [0, 190, 397, 760]
    assert shard_of([pa.array([0, 1, 2, None]), pa.array(["a", "b", None, ""])], 1000).tolist() == [354, 951, 663, 51]


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
