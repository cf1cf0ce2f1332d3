"""Orders of keys on Spark, without a JVM: several keys of many types, nulls, ties, offsets, distinct ids, sessions."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.scene import Push
from engines.streams import cells, examples, net, same_rows
from orders.scenes import OrderScene, scenes
from skyband import Above, Ever, Last, Monitor, Session, TopK, TopKGroups
from skyband.query.kinds import Query
from spark.shards import Shards, Sizes, pushed


@pytest.mark.parametrize("ranks", [False, True])
@pytest.mark.parametrize("window", ["count", "time", "session", "until deleted"])
@examples(60)
@given(data=st.data())
def test_orders_as_one_monitor(window: str, ranks: bool, data: st.DataObject) -> None:
    scene: OrderScene = data.draw(scenes(ranks=ranks, window=window))
    (query,) = scene.queries.values()
    query = dataclasses.replace(query, per="g" if query.per else None)
    options = {**scene.options, "keep": ("s", "m")}
    order = ("t", "j") if options["time"] else ("j",)
    shards, monitor = data.draw(st.integers(1, 4)), Monitor(query, **options)
    first = next(event for event in scene.events if isinstance(event, Push))
    columns = (*scene.table(first.rows).column_names, "j")
    spark = Shards({"q0": query}, options, shards, order=order, columns=columns, sizes=Sizes(cell=300, slice=5))
    arrived = 0
    for number, event in enumerate(event for event in scene.events if isinstance(event, Push)):
        table = scene.table(event.rows)
        table = table.append_column("j", pa.array(range(arrived, arrived + len(table)), pa.int64()))
        arrived += len(table)
        cut = data.draw(st.integers(0, len(table)))
        trigger = [table.slice(0, cut), table.slice(cut)]
        found, expected = spark.trigger(trigger), pushed(monitor, trigger, order)
        assert net(found) == net(expected), f"trigger {number}"
        same_rows(spark.answer("q0"), cells(monitor.answer("q0")), f"trigger {number}, answer")
        if data.draw(st.booleans()):
            spark.restart()


def table(*listed: tuple[str, int, int, int, int]) -> pa.Table:
    """(id, time, y, k, group) as a table."""
    columns = zip(*listed, strict=True)
    return pa.table(dict(zip("ityng", columns, strict=True)) | {"x": [float(row[1]) for row in listed]})


KINDS: list[Query] = [
    TopK(2, by="x", window=Session(span=3), where="y > 0", per="g"),
    Above(-1, by="x", window=Session(span=3), where="y > 0", per="g"),
    TopKGroups(2, by="count(*)", of="i", window=Session(span=3), where="y > 0", per="g"),
    TopK("n", k_max=9, by="x", window=Session(span=3), where="y > 0", per="g"),
    TopK("n", k_max=9, by="x", window=Last(span=3), where="y > 0", per="g"),
    TopK("n", k_max=9, by="x", window=Ever(), where="y > 0", per="g"),
]
EMPTIED = {
    "a session of rows that fail `where`": [
        table(("a", 2, 0, 2, 1)),
        table(("b", 0, 1, 1, 1), ("d", 3, 0, 2, 1)),
        table(("e", 4, 1, 2, 2)),
    ],
    "a session that has ended": [
        table(("a", 5, 1, 1, 1)),
        table(("b", 8, 1, 1, 2)),
        table(("late", 6, 1, 3, 1)),
        table(("c", 9, 1, 1, 2)),
    ],
    "a k of no object": [table(("a", 5, 0, 1, 1)), table(("b", 4, 1, 3, 1), ("c", 3, 1, 3, 1))],
}


@pytest.mark.parametrize("query", KINDS, ids=lambda query: f"{query.kind} {query.window}")
@pytest.mark.parametrize("triggers", EMPTIED.values(), ids=EMPTIED)
def test_a_group_without_objects_is_known_as_long_as_late_rows_can_come(query: Query, triggers: list[Any]) -> None:
    options: dict[str, Any] = {"id": "i", "time": "t"}
    spark = Shards({"q0": query}, options, 2, order=("t", "i"), columns=tuple(triggers[0].column_names))
    monitor = Monitor(query, **options)
    for number, trigger in enumerate(triggers):
        found, expected = spark.trigger([trigger]), pushed(monitor, [trigger], ("t", "i"))
        same_rows(found, expected, f"trigger {number}")
        same_rows(spark.answer("q0"), cells(monitor.answer("q0")), f"trigger {number}, answer")
        spark.restart()


@pytest.mark.parametrize("query", KINDS[:5], ids=lambda query: f"{query.kind} {query.window}")
def test_a_group_without_objects_is_forgotten_once_late_rows_cannot_come(query: Query) -> None:
    spark = Shards({"q0": query}, {"id": "i", "time": "t"}, 1, order=("t", "i"), columns=tuple("ityngx"))
    for trigger in (table(("a", 2, 0, 2, 1)), table(("b", 7, 1, 1, 2)), table(("c", 8, 1, 1, 2))):
        spark.trigger([trigger])
    (shard,) = spark.shards_now()
    (directory,) = shard.directories.values()
    assert directory.groups.sum() == 1
