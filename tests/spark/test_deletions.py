"""Objects that stay until they are deleted: the mappers and the operator against one Monitor, without a JVM.

Rows carry `op`; they arrive in the order of `n`, which tells rows with one id apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import Row, TopKQuery, cells, examples, net, same_rows
from skyband import Above, Last, Linear, Monitor, Nearest, TopK, TopKPairs, UntilDeleted
from skyband.errors import StateError
from skyband.spark import mappers as packing
from spark.shard_streams import Draw, sizes
from spark.shards import Shards, Sizes, pushed

_TYPES = {
    "n": pa.int64(),
    "t": pa.int64(),
    "i": pa.string(),
    "op": pa.string(),
    "x": pa.float64(),
    "y": pa.int32(),
    "z": pa.string(),
    "g": pa.int64(),
    "h": pa.string(),
}
ALIVE = UntilDeleted()


def table_of(rows: list[Row]) -> Any:
    made = [{"y": 1, "z": None, "g": None, "h": "m", **row} for row in rows]
    return pa.table({name: pa.array([row[name] for row in made], type_) for name, type_ in _TYPES.items()})


def rows(*listed: tuple[Any, ...]) -> Any:
    """(n, op, id, score, group) as a table; the time is n."""
    return table_of([{"n": n, "t": n, "op": op, "i": i, "x": x, "g": g} for n, op, i, x, g in listed])


def told(changes: list[Row]) -> list[str]:
    """Changes as text: time, group, who."""
    return sorted(f"{row['time']} {row.get('g')} {'+' if row['diff'] > 0 else '-'}{row['id']}" for row in changes)


@dataclass(frozen=True)
class Stream:
    queries: dict[str, TopKQuery]
    options: dict[str, Any]
    order: tuple[str, ...]
    shards: int
    triggers: list[list[Any]]
    sizes: Sizes
    ordered: bool  # times never go back

    def start(self, *, whole: bool = False) -> tuple[Shards, Monitor]:
        shards = Shards(self.queries, self.options, self.shards, order=self.order, whole=whole, sizes=self.sizes)
        return shards, Monitor(self.queries, **self.options)


_SCORES = [0.0, 1.0, 2.0, 2.0, 3.0, 1e120, None, float("nan")]
_OPS = ["insert", "insert", "update", "Insert", "delete", "delete", "DELETE", "upsert", None]


@st.composite
def queries(draw: Draw) -> dict[str, TopKQuery]:
    """At least one over UntilDeleted(); others beside it have windows."""
    asked: dict[str, TopKQuery] = {}
    for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        more: dict[str, Any] = {
            "where": draw(st.sampled_from([None, None, "y > 0", "x < 2.5"])),
            "per": draw(st.sampled_from([None, "g", "g", ("g", "h")])),
        }
        window: Any = draw(st.sampled_from([ALIVE, ALIVE, Last(4), Last(span=5)])) if asked else ALIVE
        if draw(st.integers(0, 4)) == 0:
            on = draw(st.sampled_from([None, "a.z <> b.z"]))
            asked[name] = TopKPairs(draw(st.integers(1, 3)), "abs(a.x - b.x)", ALIVE, on=on, **more)  # type: ignore[assignment]
            continue
        by = draw(st.sampled_from(["x", "x", "x + y", Linear({"x": 1, "y": 0.5}), "abs(x - 1) * 2"]))
        if draw(st.integers(0, 2)) == 0:
            asked[name] = Above(draw(st.sampled_from([0.0, 1.0])), by=by, window=window, **more)
            continue
        by = draw(st.sampled_from([by, Nearest({"x": 1.2, "y": 0})]))
        grids = window == ALIVE and by != "abs(x - 1) * 2"
        algorithm = draw(st.sampled_from(["auto", "TMA", "TSL"])) if grids else "auto"
        asked[name] = TopK(draw(st.integers(1, 3)), by=by, window=window, algorithm=algorithm, **more)
    return asked


@st.composite
def streams(
    draw: Draw, *, emit: tuple[str, ...] = ("arrival", "batch"), lateness: tuple[int, ...] = (0, 0, 4)
) -> Stream:
    parts, latest = draw(st.integers(1, 3)), draw(st.sampled_from(lateness))
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from([0, 0, 1, 3]),
                st.integers(0, latest),
                st.sampled_from(_OPS),
                st.sampled_from(["p", "q", "r", "s", None]),
                st.sampled_from(_SCORES),
                st.sampled_from([1, 1, 0]),
                st.sampled_from([1, 2, None]),
                st.sampled_from(["m", "n"]),
                st.integers(0, parts - 1),
                st.integers(0, 7),
            ),
            min_size=12,
            max_size=40,
        )
    )
    triggers: list[list[list[Row]]] = [[[] for _ in range(parts)]]
    clock = 0
    for n, (step, late, op, i, x, y, g, h, part, odd) in enumerate(drawn):
        if odd == 0:
            triggers.append([[] for _ in range(parts)])
        clock += step
        time = None if odd == 1 and y == 0 else max(0, clock - late)
        row = {"n": n, "t": time, "op": op, "i": i, "x": x, "y": y, "g": g, "h": h, "z": "uvw"[n % 3]}
        triggers[-1][part].append(row)
    options: dict[str, Any] = {
        "id": "i",
        "time": "t",
        "op": "op",
        "keep": draw(st.sampled_from([(), ("z",)])),
        "emit": draw(st.sampled_from(emit)),
    }
    return Stream(
        draw(queries()),
        options,
        draw(st.sampled_from([("n",), ("t", "n")])) if latest == 0 else ("t", "n"),
        draw(st.sampled_from([1, 7])),
        [[table_of(part) for part in trigger] for trigger in triggers],
        draw(sizes()),
        ordered=latest == 0,
    )


# ------------------------------------------------------------------- the same everywhere


@examples(24)
@given(streams(), st.data())
def test_inserts_updates_and_deletions(stream: Stream, data: st.DataObject) -> None:
    """Live and unknown ids, ids named twice in a trigger, null ids, words that nobody knows; restarts in between."""
    shards, monitor = stream.start()
    for number, trigger in enumerate(stream.triggers):
        found, expected = shards.trigger(trigger), pushed(monitor, trigger, stream.order)
        assert net(found) == net(expected), f"trigger {number}"
        if stream.ordered:
            same_rows(found, expected, f"trigger {number}")
        for name in stream.queries:
            same_rows(shards.answer(name), cells(monitor.answer(name)), f"trigger {number}, answer of {name}")
        for one in shards.monitors():
            one._loop.check()
        if data.draw(st.booleans()):
            shards.restart()


@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_a_trigger_in_slices(emit: Any) -> None:
    """The last step of a group is a deletion, and rows of other groups come in later slices: its time is told."""
    query: dict[str, TopKQuery] = {
        "a": TopK(1, by="x", window=ALIVE, per="g"),
        "b": Above(0.5, by="x", window=ALIVE, per="g"),
    }
    options: dict[str, Any] = {"id": "i", "time": "t", "op": "op", "emit": emit}
    shards, monitor = Shards(query, options, 1, order=("t", "n"), sizes=Sizes(slice=1)), Monitor(query, **options)
    for trigger in (
        [rows((0, "insert", "p", 1.0, 1), (1, "insert", "q", 2.0, 1), (2, "insert", "q", 3.0, 2))],
        [rows((5, "delete", "q", None, 1), (6, "insert", "q", 2.0, 2), (7, "insert", "r", 1.0, 3))],
    ):
        found = shards.trigger(trigger)
        same_rows(found, pushed(monitor, trigger, ("t", "n")), "trigger")
    assert told([row for row in found if row["g"] == 1]) == ["5 1 +p", "5 1 -q", "5 1 -q"]


@examples(12)
@given(streams(emit=("batch",)))
def test_answers_of_the_groups_that_changed(stream: Stream) -> None:
    shards, monitor = stream.start(whole=True)
    per = dict.fromkeys(name for query in stream.queries.values() for name in query.per_columns)
    for number, trigger in enumerate(stream.triggers):
        found, changes = shards.trigger(trigger), pushed(monitor, trigger, stream.order)
        changed = {(row["query"], *(row[name] for name in per)) for row in changes}
        answers = [
            {"query": name, **{column: row.get(column) for column in per}, **row}
            for name in stream.queries
            for row in cells(monitor.answer(name))
        ]
        expected = [row for row in answers if (row["query"], *(row[name] for name in per)) in changed]
        same_rows(map(without_nulls, found), map(without_nulls, expected), f"trigger {number}")


def without_nulls(row: Row) -> Row:
    """A row without the columns that its query does not have."""
    return {name: value for name, value in row.items() if value is not None}


def test_an_id_is_deleted_in_the_group_of_the_row() -> None:
    shards = Shards({"q": TopK(2, by="x", window=ALIVE, per="g")}, {"id": "i", "time": "t", "op": "op"}, 7)
    shards.trigger([rows(*[(g, "insert", "p", 1.0, g) for g in range(9)])])
    shards.restart()
    assert told(shards.trigger([rows((20, "delete", "p", None, 4), (21, "Delete", "p", 9.0, 7))])) == [
        "20 4 -p",
        "21 7 -p",
    ]
    assert sorted(row["g"] for row in shards.answer("q")) == [0, 1, 2, 3, 5, 6, 8]


@pytest.mark.parametrize("per", ["g", None])
def test_deletions_are_no_arrivals_and_unknown_ids_are_counted(per: Any) -> None:
    query = {"q": TopK(2, by="x", window=ALIVE, per=per)}
    options: dict[str, Any] = {"id": "i", "time": "t", "op": "op"}
    shards, monitor = Shards(query, options, 3), Monitor(query, **options)
    for made in (
        [(n, "insert", f"i{n}", 1.0, n % 5) for n in range(20)],
        [(20 + n, "delete", f"i{n}", None, n % 5) for n in range(10)],
        [(40 + n, "delete", f"i{n}", None, n % 5) for n in range(10, 13)],
        [(60 + n, "delete", f"i{n}", None, n % 5) for n in range(14)],
        [(80, "upsert", "i0", 1.0, 0), (81, None, "i0", 1.0, 0), (82, "insert", None, 1.0, 0)],
    ):
        trigger = [rows(*made)]
        same_rows(shards.trigger(trigger), pushed(monitor, trigger, ("t", "i")), str(made[0]))
        shards.restart()
    totals = [one.totals() for one in shards.shards_now()]
    assert sum(one["arrivals"] for one in totals) == monitor.stats()["arrivals"] == 20
    assert sum(one["rejected"] for one in totals) == 3
    unknown = sum(one["refused"] for one in totals) if per else max(one["refused_anywhere"] for one in totals)
    assert unknown == monitor.stats()["rejected"]["unknown id"] == 13
    assert sum(one["objects"] for one in totals) == 6


# ------------------------------------------------------------------------------- restart


@pytest.mark.parametrize("shards", [1, 7])
@pytest.mark.parametrize("per", ["g", None])
def test_queries_resume_start_empty_and_are_discarded(shards: int, per: Any) -> None:
    """A new one knows no earlier object, so that it cannot delete one."""
    rng = np.random.default_rng(3)
    first = TopK(3, by="x", window=ALIVE, per=per)
    old: dict[str, TopKQuery] = {"stays": first, "goes": Above(2.0, by="x", window=ALIVE, per=per)}
    new: dict[str, TopKQuery] = {
        "comes": TopK(2, by="x + y", window=ALIVE, per=per),
        "stays": first,
        "above": Above(1.0, by="x", window=Last(span=9), per=per),
    }
    options: dict[str, Any] = {"id": "i", "time": "t", "op": "op"}
    pipeline = Shards(old, options, shards, order=("n",), sizes=Sizes(cell=300))
    monitor = Monitor(old, **options)
    ops = ["insert", "insert", "update", "delete"]
    for number in range(6):
        if number == 3:
            pipeline.restart(new)
            monitor.drop("goes")
            for name in ("comes", "above"):
                monitor.add(name, new[name])
        made = [
            (
                30 * number + n,
                ops[rng.integers(4)],
                f"i{rng.integers(12)}",
                float(rng.integers(6)),
                int(rng.integers(5)),
            )
            for n in range(30)
        ]
        trigger = [rows(*made[:11]), rows(*made[11:])]
        found, expected = (  # where the numbers of a new one begin depends on who shares its shard
            [{name: row.get(name) for name in sorted(row) if name != "at"} for row in changes]
            for changes in (pipeline.trigger(trigger), pushed(monitor, trigger, ("n",)))
        )
        same_rows(found, expected, f"trigger {number}")
        for name in monitor.queries:
            same_rows(pipeline.answer(name), cells(monitor.answer(name)), f"trigger {number}, {name}")


@pytest.mark.parametrize("change", [{"window": Last(9)}, {"k": 3}, {"algorithm": "TSL"}], ids=str)
def test_a_changed_question_is_a_state_error(change: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"k": 2, "by": "x", "window": ALIVE, "per": "g"}
    keeps = {"keeps": TopK(1, by="x", window=ALIVE)}
    shards = Shards({"q": TopK(**asked), **keeps}, {"id": "i", "time": "t", "op": "op"}, 1)
    shards.trigger([rows((0, "insert", "p", 1.0, 1))])
    shards.restart({"q": TopK(**asked | change), **keeps})
    with pytest.raises(StateError, match="'q' differs from the one in the checkpoint"):
        shards.trigger([rows((1, "insert", "p", 1.0, 1))])


def test_another_op_is_a_state_error() -> None:
    shards = Shards({"q": TopK(1, by="x", window=ALIVE)}, {"id": "i", "time": "t"}, 1)
    shards.trigger([rows((0, "delete", "p", 1.0, 1))])
    assert [row["id"] for row in shards.answer("q")] == ["p"]  # nobody has said that the column means something
    assert "op" not in shards.plan.fingerprint["options"]  # as in checkpoints from before there was one
    shards.restart(op="op")
    with pytest.raises(StateError, match="written with other options"):
        shards.trigger([rows((1, "delete", "p", 1.0, 1))])


# ------------------------------------------------------------------------- shared windows


def weighted(number: int, window: Any, **more: Any) -> TopK:
    return TopK(2, by=Linear({"x": 1.0, "y": 0.1 * number}), window=window, algorithm="TMA", **more)


@pytest.mark.parametrize("few", [0, 16])
@pytest.mark.parametrize("per", ["g", None])
@pytest.mark.parametrize("window", [ALIVE, Last(5), Last(span=30)], ids=str)
def test_queries_that_look_at_one_window(window: Any, per: Any, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapper takes one for all; where a number is too large for some, their windows part, also in other cells."""
    monkeypatch.setattr(packing, "_FEW", few)
    queries: dict[str, TopKQuery] = {f"q{i}": weighted(i, window, per=per) for i in range(4)}
    queries |= {"above": Above(3.5, by=Linear({"x": 1, "y": 1}), window=window, per=per, where="y < 5")}
    queries |= {"alive": Above(3.5, by=Linear({"x": 1, "y": 1}), window=ALIVE, per=per)}
    options: dict[str, Any] = {"id": "i", "time": "t", "op": "op"}
    pipeline, monitor = Shards(queries, options, 2, sizes=Sizes(cell=60)), Monitor(queries, **options)
    others = ["q1", "q2", "q3", "above", *(["alive"] if window == ALIVE else [])]
    pruned = few > 0 and window.timed
    assert packing.Packer(pipeline.plan).represented == ({} if pruned else {"q0": others})
    rng = np.random.default_rng(2)
    ops = ["insert", "insert", "insert", "delete"]
    for number in range(6):
        size = 40 if number != 3 else 3
        made = [
            (
                100 * number + n,
                ops[rng.integers(4)],
                f"i{rng.integers(30)}",
                float(rng.integers(6)),
                int(rng.integers(8)),
            )
            for n in range(size)
        ]
        if number == 3:
            made[1] = (301, "insert", "i3", 1e200, 1)
        trigger = [rows(*made[: size // 3]), rows(*made[size // 3 :])]
        same_rows(pipeline.trigger(trigger), pushed(monitor, trigger, ("t", "i")), f"trigger {number}")
        pipeline.restart()
    for name in queries:
        same_rows(pipeline.answer(name), cells(monitor.answer(name)), name)


def test_mappers_send_only_what_is_above() -> None:
    query = {"q": Above(90.0, by="x", window=Last(span=1000), per="g")}
    shards = Shards(query, {"id": "i", "time": "t"}, 3)
    shards.trigger([rows(*[(n, None, str(n), float(n % 100), n % 7) for n in range(400)])])
    assert shards.sent == 36
