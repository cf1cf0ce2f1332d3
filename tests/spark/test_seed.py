"""A new checkpoint that begins with another's state, without a JVM: `monitor(start_from=...)`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import Row, cells, examples, same_rows
from skyband import Ever, Last, Monitor, TopK, TopKGroups, TopKPairs, UntilDeleted
from skyband.errors import StateError
from skyband.query.kinds import Query
from skyband.spark.seed import carried, spread
from spark import kinds
from spark.kinds import CASES, MAKERS, begin, push, stream_of
from spark.shard_streams import Stream
from spark.shards import Shards, near, pushed, rows, without_numbers


def state_of(old: Shards) -> dict[int, pa.Table]:
    """The stored values by shard, as they are read from a checkpoint."""
    found = {}
    for key, head in old.tester.handle.value_states["head"].state.items():
        held = old.tester.handle.map_states["cells"].state.get(key, {})
        listed = [(-1, -1, head[0]), *((*place, value[0]) for place, value in held.items())]
        found[key] = pa.table({name: [one[i] for one in listed] for i, name in enumerate(("family", "cell", "data"))})
    return found


def start_from(old: Shards, new: Shards) -> Shards:
    """Seed the state of new shards, as Spark does in their first trigger."""
    stored = state_of(old)
    heads = [one["data"][0].as_py() for one in stored.values()]
    plan = dataclasses.replace(new.plan, carried=carried(new.plan, heads).old)
    tester: Any = new.tester
    new.plan = tester.processor.plan = plan
    for table in stored.values():
        seeds = spread(plan, table).to_pandas()
        for key, mine in seeds.groupby("shard"):
            tester.handle.grouping_key = (key,) if isinstance(next(iter(stored)), tuple) else key
            tester.processor.handleInitialState((key,), mine, None)
    return new


def like(old: Shards, queries: Mapping[str, Query], shards: int) -> Shards:
    return Shards(
        queries, old.options, shards, order=old.order, sizes=old.sizes, forget=old.forget, columns=old.columns,
        blocks=old.blocks, whole=old.whole,
    )  # fmt: skip


def told(monitor: Monitor, old: dict[str, Query], queries: dict[str, Query], lenders: dict[str, str]) -> list[Row]:
    """What enters with queries that begin with the windows of others, which then go."""
    tables = [monitor._loop.queries.add_from(lenders[name], name, queries[name]) for name in lenders]
    for name in old:
        monitor.drop(name)
    return [row for table in tables for row in without_numbers(monitor, table)]


_FIRST = [(i, i, float(i * 7 % 11), i % 11) for i in range(44)]
_SECOND = [(i, i, float(i * 5 % 13), i % 11) for i in range(44, 88)]


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 7), (7, 2), (3, 1), (4, 2)])
def test_other_shards_smaller_k_shorter_windows_new_names(before: int, after: int) -> None:
    options: dict[str, Any] = {"id": "i", "time": "t", "keep": ("z",)}
    by: dict[str, Any] = {"by": "x", "per": "g"}
    old: dict[str, Any] = {
        "same": TopK(2, window=Last(5), **by),
        "less": TopK(3, window=Last(span=30), **by),
        "goes": TopK(1, by="y", window=Last(3), per="g"),
        "alone": TopK(2, by="x", window=Last(20)),
        "near": near(3, 1, Last(span=20)),
        "ever": TopK(2, window=Ever(), **by),
        "live": TopK(2, window=UntilDeleted(), **by),
        "sums": TopKGroups(2, by="sum(x)", window=Last(span=30), of="i", per="h"),
    }
    new: dict[str, Any] = {
        "new name": old["same"],
        "less": dataclasses.replace(old["less"], k=2, window=Last(span=20)),
        "alone": dataclasses.replace(old["alone"], k=1),
        **{name: old[name] for name in ("near", "ever", "live", "sums")},
    }
    first, monitor = Shards(old, options, before), Monitor({f"old {name}": one for name, one in old.items()}, **options)
    first.trigger([rows(*_FIRST)])
    monitor.push(rows(*_FIRST))
    second = start_from(first, like(first, new, after))
    lenders = {name: f"old {name}" for name in new} | {"new name": "old same"}
    entering = told(monitor, {f"old {name}": one for name, one in old.items()}, new, lenders)
    found = second.trigger([rows(*_SECOND)])
    same_rows(
        [{**row, "at": None} for row in found],
        [{**row, "at": None} for row in entering + pushed(monitor, [rows(*_SECOND)], ("t", "i"))],
        "first trigger",
    )
    for name in new:
        same_rows(second.answer(name), cells(monitor.answer(name)), name)
    third = [rows(*((i, i, x, g) for i, x, g in ((90, 1.0, 3), (91, 9.0, 4), (200, 1.0, 3))))]
    second.restart()
    same_rows(second.trigger(third), pushed(monitor, third, ("t", "i")), "later")
    for one in second.monitors():
        one._loop.check()


def test_shards_that_met_their_columns_in_another_order_and_count_other_pairs_go_together() -> None:
    """Shards without rows in the first trigger know the clock's type first; pairs without a score are counted."""
    query = {"q": TopKPairs(1, by="abs(a.x - b.x)", window=Last(span=50), per="g")}
    first = Shards(query, {"id": "i", "time": "t"}, 3)
    early, late = (
        rows((1, 1, 1.0, 0), (2, 2, float("inf"), 0)),
        rows(*((i, i, float("inf"), i % 7) for i in range(3, 30))),
    )
    monitor = Monitor(query, id="i", time="t")
    for trigger in ([early], [late]):
        first.trigger(trigger)
        monitor.push(*trigger)
    second = start_from(first, like(first, query, 2))
    second.trigger([rows((40, 40, 1.5, 0))])
    monitor.push(rows((40, 40, 1.5, 0)))
    same_rows(second.answer("q"), cells(monitor.answer("q")), "in two shards")


def test_what_cannot_be_carried_over_is_named() -> None:
    query = TopK(2, by="x", window=Last(5), per="g")
    old = Shards({"q": query, "gone": TopK(1, by="y", window=Last(3))}, {"id": "i", "time": "t"}, 2)
    old.trigger([rows(*_FIRST)])
    heads = [one["data"][0].as_py() for one in state_of(old).values()]

    def fates(queries: dict[str, Query], **options: Any) -> dict[str, str]:
        asked = Shards(queries, {"id": "i", "time": "t", **options}, 3)
        return carried(asked.plan, heads).fates()

    larger = dataclasses.replace(query, k=3)
    assert fates({"q": query, "r": query, "new": larger}, emit="batch") == {
        "q": "is carried over",
        "r": "is carried over from 'q'",
        "new": "starts empty: nothing in the checkpoint keeps what it needs",
        "gone": "is discarded",
    }
    for changed in (larger, dataclasses.replace(query, window=Last(6)), dataclasses.replace(query, where="y > 0")):
        with pytest.raises(StateError, match=r"'q' cannot go on from the query of that name.*Give it a new name"):
            fates({"q": changed})
    with pytest.raises(StateError, match=r"other options \(keep=\[\] there, \['z'\] here\)"):
        fates({"q": query}, keep=("z",))


@examples(40)
@given(st.sampled_from(CASES).flatmap(lambda case: stream_of([(MAKERS[case[0]], case[1])])), st.data())
def test_every_kind_goes_on_with_other_shards(stream: Stream, data: st.DataObject) -> None:
    """Under another name, against a Monitor whose query goes on from the old one."""
    old, monitor = begin(stream)
    cut = data.draw(st.integers(1, len(stream.triggers)))
    for trigger in stream.triggers[:cut]:
        old.trigger(trigger)
        push(monitor, trigger)
    new = {f"new {name}": query for name, query in stream.queries.items()}
    second = like(old, new, data.draw(st.sampled_from([1, 2, 3])))
    second = start_from(old, second)
    carries = {name: name.removeprefix("new ") for name in second.plan.carried}
    entering = told(monitor, dict(stream.queries), new, carries)
    for name in new.keys() - carries.keys():
        monitor.add(name, new[name])
    for number, trigger in enumerate(stream.triggers[cut:]):
        expected = entering + without_numbers(monitor, push(monitor, trigger))
        entering = []
        found = second.trigger(trigger)
        if not carries:  # numbers begin anew
            found, expected = ([{**row, "at": None} for row in many] for many in (found, expected))
        kinds.same(found, expected, f"trigger {number}")
        for name in carries:
            kinds.same(second.answer(name), cells(monitor.answer(name)), f"trigger {number}, {name}")
        for one in second.monitors():
            one._loop.check()
