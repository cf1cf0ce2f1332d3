"""The Spark pipeline without Spark: its mappers and its operator in one process, with a shuffle of our own.

A stream is a list of triggers, a trigger a list of partitions, a partition a table: just what Spark hands to the code.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from engines.streams import Clockwork, Row, cells
from skyband import Last, Monitor, Nearest, TopK, TopKGroups
from skyband.monitor.loop import Loop
from skyband.query.kinds import Query
from skyband.query.options import Options
from skyband.spark import directory, trigger_rows
from skyband.spark import mappers as packing
from skyband.spark.mappers import REPORT, Validator, from_bytes, in_order, pack, unpack
from skyband.spark.merge import Merger
from skyband.spark.operator import Operator
from skyband.spark.plan import Plan, hash_groups, labels, shard_of
from skyband.spark.schema import _id_type, _shown_types
from skyband.spark.shard import Shard
from skyband.tables.changes import answer_names, change_names, key_names, of_pair

CLOCKWORKS = {
    "integer": Clockwork(pa.int64()),
    "short": Clockwork(pa.int16()),
    "TIMESTAMP": Clockwork(pa.timestamp("us", "UTC"), timedelta(seconds=1)),
    "TIMESTAMP in Paris": Clockwork(pa.timestamp("us", "Europe/Paris"), timedelta(hours=1)),  # summer time begins
    "TIMESTAMP_NTZ": Clockwork(pa.timestamp("us"), timedelta(microseconds=1)),
    "date": Clockwork(pa.date32(), timedelta(days=1)),
}
_TYPES = {"i": pa.int64(), "x": pa.float64(), "y": pa.int32(), "z": pa.string(), "g": pa.int64(), "h": pa.string()}
_OURS = {
    "query": pa.string(),
    "at": pa.int64(),
    "rank": pa.int64(),
    "score": pa.float64(),
    "probability": pa.float64(),
    "diff": pa.int8(),
    "first": pa.bool_(),
}


def table_of(rows: Sequence[Row], clockwork: Clockwork) -> Any:
    types = {**_TYPES, "t": clockwork.type}
    return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()})


@dataclass(frozen=True)
class Sizes:
    """How much is packed, unpacked, kept in memory and stored together; tiny ones bring many of each."""

    chunk: int = 1 << 16  # rows that a mapper takes together
    slice: int = trigger_rows.SLICE
    memory: int = trigger_rows._MEMORY
    cell: int | None = None  # None: as they are
    dense: int = 1  # times as large where a trigger has rows for most
    portion: int = directory.PORTION

    @contextmanager
    def hold(self) -> Iterator[None]:
        places: list[tuple[Any, str, int]] = [
            (packing, "_CHUNK", self.chunk),
            (trigger_rows, "SLICE", self.slice),
            (trigger_rows, "_MEMORY", self.memory),
            (directory, "PORTION", self.portion),
        ]
        if self.cell is not None:
            places += [(directory, "CELL", self.cell), (directory, "_WHOLE", 0), (directory, "_DENSE", self.dense)]
        with ExitStack() as stack:
            for module, name, value in places:
                stack.enter_context(patch.object(module, name, value))
            yield


_SIZES = Sizes()


class Shards:
    """What a call of `skyband.spark.monitor` or `answers` runs, trigger by trigger; state lives in `tester`."""

    def __init__(
        self,
        queries: Mapping[str, Query],
        options: dict[str, Any],
        shards: int,
        *,
        order: tuple[str, ...] | None = None,
        whole: bool = False,
        seed: int = 0,
        sizes: Sizes = _SIZES,
        forget: str | int | None = None,
        watermarked: bool = False,
        columns: tuple[str, ...] = (*_TYPES, "t"),
        blocks: bool | None = None,
    ) -> None:
        self.columns, self.blocks = columns, blocks  # of the input
        self.sizes, self.forget, self.watermarked = sizes, forget, watermarked
        self.options, self.shards, self.order, self.whole = options, shards, order, whole
        self.random = random.Random(seed)  # noqa: S311
        self.plan = self._plan(queries)
        mode: dict[str, Any] = {"timeMode": "EventTime", "eventTimeExtractor": _moment} if watermarked else {}
        from pyspark.sql.streaming.tws_tester import TwsTester  # from 4.2 on; others here run with 4.1 too

        self.tester = TwsTester(Operator(self.plan, whole=whole), **mode)
        vars(self.tester.handle)["setWatermark"] = lambda _: (
            None
        )  # it would refuse timers behind it, which Spark fires at once
        self.merger = TwsTester(Merger(self.plan, whole=whole))
        self.types: dict[str, Any] = {}  # of the last trigger's columns
        self.sent = 0  # rows that left the mappers

    def _plan(self, queries: Mapping[str, Query]) -> Plan:
        defaults = {"time": None, "part": "part", "value": "value", "keep": (), "emit": "arrival"}
        options = Options(**{**defaults, "late": "accept", "invalid": "reject", **self.options})
        assert options.id is not None
        order = self.order or tuple(name for name in (options.time, options.id) if name is not None)
        plan = Plan(dict(queries), options, order, self.shards, self.columns, self.forget, self.watermarked)
        return dataclasses.replace(plan, blocks=self.blocks)

    def restart(self, queries: Mapping[str, Query] | None = None, *, shards: int | None = None, **options: Any) -> None:
        """A new operator over the state that there is."""
        self.shards = shards or self.shards
        self.options = {**self.options, **options}
        self.plan = self._plan(self.plan.queries if queries is None else queries)
        self.tester.processor = Operator(self.plan, whole=self.whole)
        self.tester.processor.init(self.tester.handle)
        self.merger.processor = Merger(self.plan, whole=self.whole)
        self.merger.processor.init(self.merger.handle)

    def trigger(self, partitions: Iterable[Any]) -> list[Row]:
        """One micro-batch: the rows that come out."""
        return [row for table in self.tables(partitions) for row in cells(table)]

    def tables(self, partitions: Iterable[Any]) -> list[Any]:
        with self.sizes.hold():
            return self._tables(partitions)

    def _tables(self, partitions: Iterable[Any]) -> list[Any]:
        messages: list[Row] = []
        for partition in partitions:
            self.types = {field.name: field.type for field in partition.schema}
            needed = partition.select(list(self.plan.wanted(self.plan.queries)))
            for batch in pack(self.plan, iter(needed.to_batches(max_chunksize=min(7, self.sizes.chunk)))):
                messages += batch.to_pylist()
        self.sent += sum(from_bytes(message["blob"]).num_rows for message in messages if message["family"] != REPORT)
        self.random.shuffle(messages)  # a shuffle keeps no order
        out: list[Any] = []
        for label in dict.fromkeys(message["shard"] for message in messages):
            frame = pd.DataFrame([message for message in messages if message["shard"] == label])
            out.append(self.tester.testInPandas(label, frame))
        if self.plan.blocked:
            told = pd.concat(out)
            out = [self.merger.testInPandas(key, told[told["merge"] == key]) for key in told["merge"].unique()]
        return [table for frame in out for table in self._unpacked(frame)]

    def watermark(self, moment: int) -> list[Row]:
        """Spark's watermark moves on to so many milliseconds: the rows that come out."""
        with self.sizes.hold():
            return [row for table in self._unpacked(self.tester.setWatermark(moment)) for row in cells(table)]

    def _unpacked(self, out: Any) -> list[Any]:
        blobs = [blob for blob in out["blob"] if blob is not None] if len(out) else []
        batches = [pa.RecordBatch.from_pydict({"blob": [blob]}) for blob in blobs]
        return [pa.Table.from_batches([batch]) for batch in unpack(self._schema(), iter(batches))]

    def _schema(self) -> Any:
        options, types = self.plan.options, self.types
        asked, timed = self.plan.queries.values(), options.time is not None
        validator = Validator(self.plan.queries, self.plan.monitor_options())
        keys = [None, *validator.keys(pa.schema(list(types.items())).empty_table())][-1] or []
        answer = ["query", *answer_names(asked, options.kept, timed, len(keys))]
        names = answer if self.whole else change_names(asked, options.kept, timed, len(keys))
        roles = {role: types[name] for role, name in options.roles.items()}
        pairs = {end: type_ for role, type_ in roles.items() for end in of_pair(role)}
        reported = dict(zip(key_names(len(keys)), keys, strict=True))
        known = {**types, **pairs, **roles, **_OURS, **reported, **self._of_groups()}
        return pa.schema([pa.field(name, known[name]) for name in names])

    def _of_groups(self) -> dict[str, Any]:
        """The types that only queries of groups have, of `id` and of `select`, as the DataFrame has them."""
        groups = [query for query in self.plan.queries.values() if isinstance(query, TopKGroups)]
        read = {name for query in groups for names in query.reads.values() for name in names}
        fields = {name: type_ for name, type_ in self.types.items() if name in read}
        schema, found = from_arrow_schema(pa.schema(list(fields.items()))), dict[str, Any]()
        for query in groups:
            shown = _shown_types(schema, query)
            found |= {name: to_arrow_type(type_) for name, type_ in shown.items()}
            if query.of_columns:
                found["id"] = to_arrow_type(_id_type(schema, query.of_columns))
        return found

    def shards_now(self) -> list[Shard]:
        """The state as the last trigger left it."""
        heads = self.tester.handle.value_states["head"].state
        numbers = {label: number for number, label in enumerate(labels(self.shards))}
        found = []
        for key, head in heads.items():
            held = self.tester.handle.map_states["cells"].state.get(key, {})
            found.append(Shard(self.plan, numbers[key], head[0], SimpleNamespace(iterator=held.items)))
        return found

    def monitors(self) -> list[Monitor]:
        """The state: a Monitor for each query set of each shard."""
        return [Monitor._of(Loop(state)) for shard in self.shards_now() for state in shard.held().values()]

    def answer(self, name: str) -> list[Row]:
        """The answer that is in the state, of all shards."""
        tables = [monitor.answer(name) for monitor in self.monitors() if name in monitor.queries]
        return [row for table in tables for row in cells(table)]


def _moment(message: Any) -> float:
    """The event time of a message in milliseconds; most have none, and Spark never drops those."""
    return float("inf") if pd.isna(message["moment"]) else pd.Timestamp(message["moment"]).timestamp() * 1000


def pushed(monitor: Monitor, partitions: Sequence[Any], order: tuple[str, ...]) -> list[Row]:
    """The same trigger to a Monitor: rows in order, `at` unknown in time windows."""
    table = pa.concat_tables(partitions)
    return without_numbers(monitor, monitor.push(in_order(table, order)))


def changes_of(monitor: Monitor, trigger: Any) -> list[Row]:
    """Rows of `kinds.stream` to a Monitor, and its clock to the last of them.

    On Spark rows that earlier ones forbid move the clock, too (docs/spark.md).
    """
    changes = [monitor.push(trigger), monitor.advance(trigger["t"][-1].as_py())]
    return [row for table in changes for row in without_numbers(monitor, table)]


def without_numbers(monitor: Monitor, changes: Any) -> list[Row]:
    options = monitor._loop.state.options
    timed = {name for name, query in monitor.queries.items() if options.timed(query.window)}
    return [{**row, "at": None} if row["query"] in timed else row for row in cells(changes)]


# ----------------------------------------------------------------------------- given rows

INTEGERS = CLOCKWORKS["integer"]


def rows(*listed: tuple[Any, ...], **more: Any) -> Any:
    """(id, time, score, group) as a table."""
    made = [{"i": i, "t": t, "x": x, "g": g, "y": 1, "z": "z", "h": "m", **more} for i, t, x, g in listed]
    return table_of(made, INTEGERS)


def as_text(changes: list[Row]) -> list[str]:
    """Changes as sorted text: time, group, + or - and id."""
    return sorted(f"{row['time']} {row.get('g')} {'+' if row['diff'] > 0 else '-'}{row['id']}" for row in changes)


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


def near(x: float, y: float, window: Last, k: int = 3, **more: Any) -> TopK:
    return TopK(k, by=Nearest({"x": x, "y": y}), window=window, **more)


def shards_of(columns: list[Any], shards: int) -> Any:
    return shard_of(hash_groups(columns), shards)
