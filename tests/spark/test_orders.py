"""Orders of keys on Spark, without a JVM: several keys of many types, nulls, ties, offsets, distinct ids, sessions."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.scene import Push
from engines.streams import cells, examples, net, same_rows
from orders.scenes import OrderScene, scenes
from skyband import Monitor
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
