"""Streams of pairs, parts, probabilities and groups of rows, played to the mappers and the operator and to one Monitor.

Nothing of these kinds is pruned and a trigger's rows are sorted by time first, so that a trigger gives exactly the rows
of one push of it, late rows or not. Only the clock differs: a row that only the state rejects (a second row of a part)
moves it here, since no shard knows what others reject; so the Monitor is told the clock.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from engines.streams import Clockwork, Row, cells, same_rows
from groups.scenes import HAVING, OTHERS, PICKS, SUMS
from skyband import Ever, Global, Last, Linear, Monitor, TopK, TopKGroups, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.monitor.examination import examine
from skyband.monitor.loop import Loop
from skyband.query.algorithms import names
from skyband.query.kinds import Query
from skyband.query.windows import Window
from skyband.spark.mappers import in_order
from skyband.tables.input import Batch
from spark.shards import CLOCKWORKS, Draw, Shards, Stream, sizes, without_numbers

ORDER = ("t", "n")
OPTIONS: dict[str, Any] = {"id": "i", "part": "part", "value": "value"}
TYPES = {
    "n": pa.int64(),
    "i": pa.string(),
    "x": pa.float64(),
    "y": pa.int32(),
    "z": pa.string(),
    "g": pa.int64(),
    "h": pa.string(),
    "p": pa.float64(),
    "r": pa.string(),
    "part": pa.string(),
    "value": pa.float64(),
}
COMBINES: list[Any] = ["sum", "mean", "min", "max", Linear({"north": 0.5, "south": 2}), "north + 2 * south"]
PAIRINGS: list[Any] = ["abs(a.x - b.x)", Global({"x": "absdiff", "y": "sum"}), "abs(a.x - b.x) * (a.y + b.y)"]


def apart(a: Any, b: Any) -> Any:
    """A scoring by a function: of two batches."""
    return np.abs(a["x"] - b["x"])


def menu(kind: str) -> list[str]:
    """What is built of a kind, exact, and for windows that end; those of ENDLESS are asked over the others too."""
    exact = kind in ("TopKIncomplete", "TopKGroups")
    return names(kind, lambda row: "time" in row.windows and (row.exact or not exact))


# ----------------------------------------------------------------------------- strategies


def pairs(draw: Draw, algorithm: str, window: Window, per: Any) -> TopKPairs:
    choices = PAIRINGS[1:2] if algorithm == "TA" else [*PAIRINGS, apart, "a.x - b.y"]
    by = draw(st.sampled_from(choices))
    return TopKPairs(
        draw(st.integers(1, 4)),
        by=by,
        window=window,
        largest=draw(st.booleans()),
        symmetric=by != "a.x - b.y",
        on=draw(st.sampled_from([None, "a.r <> b.r", "a.x <= b.y"])),
        where=draw(st.sampled_from([None, None, "y > 0"])),
        per=per,
        algorithm=algorithm,
    )


def parts(draw: Draw, algorithm: str, window: Window, per: Any) -> TopKIncomplete:
    if algorithm in ("auto", "SWEEP", "EAA") and draw(st.integers(0, 3)) == 3:
        return TopKIncomplete(
            draw(st.integers(1, 3)),
            parts="*",
            window=window,
            repeat=draw(st.sampled_from([None, "last", "sum"])),
            per=per,
            algorithm=algorithm,
        )
    return TopKIncomplete(
        draw(st.integers(1, 3)),
        parts=draw(st.sampled_from([["north", "south"], {"north": (0, math.inf), "south": (-1, 2), "west": (0, 3)}])),
        window=window,
        combine=draw(st.sampled_from(COMBINES)),
        repeat=draw(st.sampled_from([None, None, "last", "max", "sum"])),
        largest=draw(st.sampled_from([None, False])),
        where=draw(st.sampled_from([None, None, "y > 0"])),
        per=per,
        algorithm=algorithm,
    )


def doubts(draw: Draw, algorithm: str, window: Window, per: Any) -> TopKUncertain:
    semantics = draw(st.sampled_from(["pk-topk", "pt-k", "u-kranks", "u-topk"]))
    return TopKUncertain(
        draw(st.integers(1, 3)),
        by=draw(st.sampled_from(["x", "x + y"])),
        window=window,
        semantics=semantics,
        threshold=0.25 if semantics == "pt-k" else None,
        group=draw(st.sampled_from([None, "r"])) if algorithm in ("auto", "BS") else None,
        largest=draw(st.sampled_from([None, False])),
        where=draw(st.sampled_from([None, None, "y > 0"])),
        per=per,
        algorithm=algorithm,
    )


def groups(draw: Draw, algorithm: str, window: Window, per: Any) -> TopKGroups:
    """Their ids are strings, as those of the kinds beside them; tests/spark/test_groups.py has others."""
    return TopKGroups(
        draw(st.integers(1, 3)),
        by=draw(st.sampled_from([*SUMS, *PICKS, *OTHERS])),
        window=window,
        of=draw(st.sampled_from([None, "r", "z"])),
        having=draw(st.sampled_from(HAVING)),
        largest=draw(st.sampled_from([None, False])),
        where=draw(st.sampled_from([None, None, "y > 0"])),
        per=per,
        algorithm=algorithm,
        select=draw(st.sampled_from([(), {"rows": "count(*)", "total": "sum(x)", "some": "last(z)"}])),
    )


def plainly(draw: Draw, algorithm: str, window: Window, per: Any) -> TopK:
    return TopK(draw(st.integers(1, 3)), by="x", window=window, per=per)


Maker = Callable[[Draw, str, Window, Any], Query]
MAKERS: dict[str, Maker] = {
    "TopKPairs": pairs,
    "TopKIncomplete": parts,
    "TopKUncertain": doubts,
    "TopKGroups": groups,
}
ENDLESS = {"auto", *(name for kind in MAKERS for name in names(kind, lambda row: "ever" in row.windows))}
ENDLESS -= {"BS"}  # which takes it with `group` only; so does auto
CASES = [(kind, algorithm) for kind in MAKERS for algorithm in menu(kind)]


@st.composite
def stream_of(draw: Draw, asked: Sequence[tuple[Maker, str]], *, emit: Sequence[str] = ("arrival", "batch")) -> Stream:
    """Queries of these kinds, and rows for all of them, cut into triggers and partitions; some are late."""
    clockwork = CLOCKWORKS[draw(st.sampled_from(["integer", "TIMESTAMP", "TIMESTAMP_NTZ", "date"]))]
    queries: dict[str, Query] = {}
    for number, (make, algorithm) in enumerate(asked):
        size, sort = draw(st.integers(1, 9)), draw(st.sampled_from(["time", "time", "count", "count", "ever"]))
        window: Window = clockwork.window(size) if sort == "time" else Last(size)
        if sort == "ever" and make is not pairs and algorithm in ENDLESS:
            window = Ever()
        queries[f"q{number}"] = make(draw, algorithm, window, draw(st.sampled_from([None, "g", ("g", "h")])))
    timed = any(query.window.sort != "count" for query in queries.values())
    options = {
        **OPTIONS,
        "time": "t",
        "keep": draw(st.sampled_from([(), ("z",), ("z", "n")])),
        "emit": draw(st.sampled_from(emit)),
        "late": draw(st.sampled_from(["accept", "accept", "drop"])),
    }
    lateness = draw(st.sampled_from([0, 0, 4])) if timed else 0
    triggers = draw_triggers(draw, clockwork, lateness)
    return Stream(queries, options, draw(st.sampled_from([1, 3])), triggers, draw(st.integers(0, 3)), draw(sizes()))


def draw_triggers(draw: Draw, clockwork: Clockwork, lateness: int) -> list[list[Any]]:
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from([0, 0, 1, 1, 2, 5]),  # ticks since the last row
                st.integers(0, lateness),
                st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, None]),
                st.sampled_from([1, 2, 0]),
                st.sampled_from([1, 2, None]),
                st.sampled_from([0.5, 0.25, 0.75, 1.0, 0.0]),
                st.sampled_from(["north", "south", "west"]),
                st.sampled_from([0.0, 0.5, 1.0, 2.0]),
                st.integers(0, 7),
            ),
            min_size=1,
            max_size=30,
        )
    )
    triggers: list[list[list[Row]]] = [[[], []]]
    clock = 0
    for n, (step, late, x, y, g, p, part, value, odd) in enumerate(drawn):
        if odd == 0:
            triggers.append([[], []])
        clock += step
        time = None if odd == 1 and n % 5 == 0 else clockwork.value(max(0, clock - late))
        names = {"i": "abcd"[odd % 4] if odd < 7 else None, "z": "uvw"[n % 3], "h": "mn"[n % 2], "r": "rs"[odd % 2]}
        row = {"n": n, "t": time, "x": x, "y": y, "g": g, "p": p, "part": part, "value": value, **names}
        triggers[-1][odd % 2].append(row)
    types = {**TYPES, "t": clockwork.type}
    return [
        [pa.table({k: pa.array([row[k] for row in rows], type_) for k, type_ in types.items()}) for rows in trigger]
        for trigger in triggers
    ]


# ---------------------------------------------------------------------------------- playing


def begin(stream: Stream, **more: Any) -> tuple[Shards, Monitor]:
    shards = Shards(
        *(stream.queries, stream.options, stream.shards),
        **{"order": ORDER, "columns": (*TYPES, "t"), "seed": stream.seed, "sizes": stream.sizes, **more},
    )
    options = {**stream.options, "emit": "batch"} if more.get("whole") else stream.options
    return shards, Monitor(stream.queries, **options)


def push(monitor: Monitor, trigger: Sequence[Any]) -> Any:
    """The rows of a trigger in order; then time is as late as the latest row that no row by itself rejects."""
    table = in_order(pa.concat_tables(trigger), ORDER)
    examiner = Loop.of(monitor.queries, **dataclasses.asdict(monitor._loop.state.options))
    accepted = table.filter(pa.array(examine(examiner.state, Batch(table)).accepted)).column("t")
    latest = accepted.sort()[-1] if len(accepted := accepted.combine_chunks()) else None
    return monitor.push(table, to=latest)


def rounded(rows: list[Row]) -> list[Row]:
    """Probabilities may differ in their last bits by how a stream is cut."""
    return [{**row, "probability": round(row["probability"], 12)} if row.get("probability") else row for row in rows]


def same(found: list[Row], expected: list[Row], where: str) -> None:
    same_rows(rounded(found), rounded(expected), where)


def play(stream: Stream, data: st.DataObject, **more: Any) -> Shards:
    """Trigger by trigger, with restarts in between."""
    shards, monitor = begin(stream, **more)
    for number, trigger in enumerate(stream.triggers):
        expected = without_numbers(monitor, push(monitor, trigger))
        same(shards.trigger(trigger), expected, f"trigger {number}")
        for name in stream.queries.keys() - shards.plan.blocked.keys():
            same(shards.answer(name), cells(monitor.answer(name)), f"trigger {number}, answer of {name}")
        for one in shards.monitors() if not shards.plan.blocked else ():
            one._loop.check()
        if data.draw(st.booleans()):
            shards.restart()
    return shards
