"""The Spark pipeline without a JVM: restarts with the same and with other queries, shards and options."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import cells, examples, net, same_rows
from skyband import Last, Linear, Monitor, Nearest, Product, Quadratic, TopK
from skyband.errors import StateError
from spark.shard_streams import Stream, streams
from spark.shards import Shards, Sizes, pushed, rows, shards_of


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
    assert shards_of([pa.array([5])], 7) != 0
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
