"""The Spark pipeline without a JVM: every algorithm, and families of queries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import APPROXIMATE, cells, examples, net, same_rows
from skyband import Last, Monitor, Nearest, TopK
from skyband.query.algorithms import names
from skyband.spark import mappers as packing
from spark.shard_streams import streams
from spark.shards import Shards, Sizes, cut, many_rows, near, pushed, rows

NAMES = names("TopK", lambda row: "count" in row.windows and "ranks" not in row.takes and row.grouped)
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


@pytest.mark.parametrize("algorithm", [name for name in NAMES if name not in APPROXIMATE])
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
