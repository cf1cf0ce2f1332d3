"""Strategies: standing queries, and streams of triggers and partitions for the pipeline of shards.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from engines.streams import APPROXIMATE, Clockwork, Row, TopKQuery
from skyband import Above, Last, Linear, Monitor, Nearest, TopK
from skyband.query.kinds import Query
from skyband.spark import directory, trigger_rows
from spark.shards import CLOCKWORKS, Shards, Sizes, table_of

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Stream:
    queries: Mapping[str, Query]
    options: dict[str, Any]
    shards: int
    triggers: list[list[Any]]  # the partitions of each, as tables
    seed: int  # of the shuffle
    sizes: Sizes

    @property
    def order(self) -> tuple[str, ...]:
        return ("t", "i") if self.options["time"] else ("i",)

    def start(self, *, whole: bool = False) -> tuple[Shards, Monitor]:
        shards = Shards(self.queries, self.options, self.shards, whole=whole, seed=self.seed, sizes=self.sizes)
        return shards, Monitor(self.queries, **self.options)

    def table(self) -> Any:
        return pa.concat_tables([partition for trigger in self.triggers for partition in trigger])


_SCORES = [0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 1.5, float("inf"), None, float("nan")]
_SCORINGS: list[Any] = ["x", "x", "x", "x + y", Linear({"x": 1, "y": 0.5}), Nearest({"x": 1.2})]


@st.composite
def sizes(draw: Draw) -> Sizes:
    """Mostly tiny: a cell for each group and more, slices of few rows, nothing held in memory."""
    return Sizes(
        chunk=draw(st.sampled_from([4, 1, 10, 1000])),
        slice=draw(st.sampled_from([3, 1, 8, trigger_rows.SLICE])),
        memory=draw(st.sampled_from([0, 3000, trigger_rows._MEMORY])),
        cell=draw(st.sampled_from([200, 60, 1000, None])),
        dense=draw(st.sampled_from([1, 4])),
        portion=draw(st.sampled_from([300, 1, 2000, directory.PORTION])),
    )


@st.composite
def streams(
    draw: Draw,
    *,
    emit: tuple[str, ...] = ("arrival",),
    lateness: tuple[int, ...] = (0,),
    algorithm: str = "auto",
    above: bool = False,
) -> Stream:
    """Standing queries, and a stream cut into triggers and partitions; in order when nothing may be late."""
    clockwork = CLOCKWORKS[draw(st.sampled_from(sorted(CLOCKWORKS)))]
    queries: dict[str, TopKQuery] = {}
    for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        size, timed = draw(st.integers(1, 9)), algorithm not in APPROXIMATE and draw(st.integers(0, 3)) > 0
        if above:
            queries[name] = Above(
                draw(st.sampled_from([1.0, 0.0, 2.5])),
                by=draw(st.sampled_from(_SCORINGS[:-1])),
                window=clockwork.window(size) if timed else Last(size),
                where=draw(st.sampled_from([None, None, "y > 0", "x < 3"])),
                per=draw(st.sampled_from([None, "g", "g", ("g", "h")])),
                algorithm=draw(st.sampled_from(["auto", "SMA", "TSL"])),
            )
            continue
        queries[name] = TopK(
            draw(st.integers(1, 3)),
            by=draw(st.sampled_from(_SCORINGS[-1:] if algorithm in ("CPM/W", "SNN") else _SCORINGS)),
            window=clockwork.window(size) if timed else Last(size),
            largest=draw(st.sampled_from([None, None, False])),
            where=draw(st.sampled_from([None, None, "y > 0"])),
            per=draw(st.sampled_from([None, "g", "g", ("g", "h")])),
            algorithm=algorithm,
            buffer=None if algorithm == "auto" else draw(st.sampled_from([None, 1, 3])),
        )
    options = {
        "id": "i",
        "time": "t" if any(query.window.sort == "time" for query in queries.values()) or draw(st.booleans()) else None,
        "keep": draw(st.sampled_from([(), ("z",), ("z", "t")])),
        "emit": draw(st.sampled_from(emit)),
        "late": draw(st.sampled_from(["accept", "drop"])),
    }
    triggers = draw_triggers(draw, clockwork, draw(st.sampled_from(lateness)))
    return Stream(queries, options, draw(st.sampled_from([1, 7])), triggers, draw(st.integers(0, 3)), draw(sizes()))


def draw_triggers(draw: Draw, clockwork: Clockwork, lateness: int) -> list[list[Any]]:
    parts = draw(st.integers(1, 3))
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from([0, 0, 0, 1, 1, 2, 5]),  # ticks since the last row
                st.integers(0, lateness),
                st.sampled_from(_SCORES),
                st.sampled_from([1, 0, -1]),
                st.sampled_from([1, 2, 3, None]),
                st.sampled_from(["m", "n", None]),
                st.integers(0, parts - 1),
                st.integers(0, 7),
            ),
            min_size=1,
            max_size=40,
        )
    )
    triggers: list[list[list[Row]]] = [[[] for _ in range(parts)]]
    clock = 0
    for i, (step, late, x, y, g, h, part, odd) in enumerate(drawn):
        if odd == 0:
            triggers.append([[] for _ in range(parts)])
        clock += step
        time = None if odd == 1 and y < 0 else clockwork.value(max(0, clock - late))
        triggers[-1][part].append({"i": i, "t": time, "x": x, "y": y, "z": "uvw"[i % 3], "g": g, "h": h})
    return [[table_of(rows, clockwork) for rows in trigger] for trigger in triggers]
