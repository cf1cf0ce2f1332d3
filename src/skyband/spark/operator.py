"""The stateful operator: Spark's calls become calls of a `Shard`."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from skyband.spark.directory import NEVER
from skyband.spark.forget import SetLoop, by_query
from skyband.spark.journaled_state import Borrowed
from skyband.spark.mappers import REPORT, from_bytes, moment_of, to_bytes
from skyband.spark.merge import BEGIN, merge_key
from skyband.spark.plan import Plan, labels
from skyband.spark.runs import with_runs, without_runs
from skyband.spark.seed import SEEDS, seeds_of
from skyband.spark.shard import Shard
from skyband.spark.subscriptions import FIRST
from skyband.spark.task import batch_number, release_memory, running, spare_collector
from skyband.spark.trigger_rows import TriggerRows
from skyband.tables.input import time_unit

if TYPE_CHECKING:
    import pandas as pd

_FIGURES = (
    *("arrivals", "late", "late_anywhere", "rejected", "refused", "refused_anywhere"),
    *("groups", "objects", "bytes"),
    *("reports", "shards"),  # whether the row is a shard's first in this trigger, and how many shards there are
)
_FIELDS = [StructField("blob", BinaryType()), *(StructField(name, LongType()) for name in _FIGURES)]
OUTPUT = StructType(_FIELDS)
OUTPUT_TO_MERGE = StructType([StructField("merge", StringType()), *_FIELDS])
_LOG = logging.getLogger("skyband.spark")
_ROWS = 1 << 17  # of changes that are packed together
_LARGE = 1 << 24  # bytes that a task takes, from where on it gives memory back at its end


class Operator(StatefulProcessor):
    """Takes a trigger's rows of a shard in `order`, and moves the clock to the stream's."""

    def __init__(self, plan: Plan, *, whole: bool) -> None:
        self.plan = plan
        self.whole = whole  # report answers, not changes

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_collector()
        self.handle = handle
        self.plan = running(self.plan)
        self.head = handle.getValueState("head", "data binary")
        self.cells = handle.getMapState("cells", "family int, cell int", "data binary")
        self.numbers = {label: number for number, label in enumerate(labels(self.plan.shards))}
        self.reported: set[int] = set()  # shards that have reported their totals in this trigger
        self.taken = 0  # bytes that came, and that cells have

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        shard = self._shard(key)
        sets = list(self.plan.query_sets)
        arrived: dict[int, TriggerRows] = {}
        joining: dict[str, list[pa.Table]] = {}  # rows that subscribe and unsubscribe, by query
        clock = None
        rejected: Counter[str] = Counter()  # by reason, in this trigger; the mappers report them to one shard
        for frame in rows:
            for number, blob in zip(frame["family"], frame["blob"], strict=True):
                self.taken += len(blob)
                if number <= FIRST:
                    name = list(self.plan.subscribed)[FIRST - number]
                    if shard.wants(name):
                        joining.setdefault(name, []).append(from_bytes(blob))
                    continue
                if number != REPORT:
                    arrived.setdefault(number, TriggerRows(self.plan.order, sets[number].per)).add(blob)
                    continue
                report = from_bytes(blob)
                if report.num_rows and (clock is None or moment_of(report) > moment_of(clock)):
                    clock = report
                counts = json.loads((report.schema.metadata or {}).get(b"counts", b"{}"))
                rejected.update(counts.pop("rejected", {}))
                shard.counts.update(counts)
        shard.rejected.update(rejected)
        log_rejected(rejected)
        self.reported.add(shard.number)
        yield from self._take(shard, arrived, clock, Counter(), joining)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802
        """Pieces of another checkpoint, some at a time: they wait in the state for the first trigger's rows."""
        if not self.head.exists():
            begin = len(seeds_of(self.cells))
            for number, blob in enumerate(initialState["blob"], begin):
                self.cells.updateValue((SEEDS, number), (bytes(blob),))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """The watermark has passed the next expiry, and no row has moved the clock there."""
        shard = self._shard(key)
        if shard.clock is not None:
            type_ = shard.clock.schema.field("clock").type
            reached = pa.array([timerValues.getCurrentWatermarkInMs()], pa.timestamp("ms", type_.tz)).cast(type_)
            reported = Counter(shard.totals() | {"reports": 1} if shard.number in self.reported else {})
            self.reported.add(shard.number)
            yield from self._take(shard, {}, pa.table({"clock": reached}), reported)

    def _take(
        self,
        shard: Shard,
        arrived: dict[int, TriggerRows],
        clock: Any,
        reported: Counter[str],
        joining: dict[str, list[pa.Table]] | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Changes, packed; then the shard's totals, less those that this trigger has reported already."""
        yield from (self._row(merge_key(name), blob=BEGIN) for name in shard.beginners())
        for merge, rows in self._outputs(shard.take(arrived, clock, joining or {}), shard.number):
            packed = rows if self.plan.blocked else with_runs(rows)
            for begin in range(0, rows.num_rows, _ROWS):
                yield self._row(merge, blob=to_bytes(packed.slice(begin, _ROWS)))
        self.head.update((shard.head(),))
        shard.keep()
        if self.plan.watermarked and shard.clock is not None:
            self._set_timer(shard)
        totals = {name: total - reported[name] for name, total in (shard.totals() | {"reports": 1}).items()}
        self.taken += shard.touched
        yield self._row(str(shard.number), **totals, shards=self.plan.shards)

    def _set_timer(self, shard: Shard) -> None:
        """Also behind the watermark, which rejected rows may have moved past the clock: it fires at once."""
        for old in list(self.handle.listTimers()):
            self.handle.deleteTimer(old)
        if shard.due() < NEVER:
            unit = time_unit(shard.clock.schema.field("clock").type) or 1
            self.handle.registerTimer(-(-shard.due() * unit // 10**6))

    def _shard(self, key: Any) -> Shard:
        kept = self.head.get()
        shard = Shard(self.plan, self.numbers[key[0]], None if kept is None else bytes(kept[0]), self.cells)
        shard.whole = self.whole
        return shard

    def close(self) -> None:
        if self.taken > _LARGE:
            release_memory()

    def _without_numbers(self, changes: pa.Table) -> pa.Table:
        """Changes with `at` null for time windows: on Spark not every row reaches its shard."""
        timed = [name for name in self.plan.queries if self.plan.timed(name)]
        if not timed:
            return changes
        place = changes.column_names.index("at")
        shown = pa.nulls(changes.num_rows, pa.int64())
        if len(timed) < len(self.plan.queries):
            query, numbers = (without_runs(changes.column(name)) for name in ("query", "at"))
            which = pc.is_in(query.cast(pa.string()), pa.array(timed, pa.string()))
            shown = pc.if_else(which, None, numbers).cast(pa.int64())
        return changes.set_column(place, pa.field("at", pa.int64()), shown)

    def _outputs(
        self, taken: Iterator[tuple[SetLoop | Borrowed, pa.Table]], shard: int
    ) -> Iterator[tuple[str, pa.Table]]:
        """Changes or answers, with the key by which they are merged: only those of blocked queries are."""
        for loop, pushed in groupby(taken, key=itemgetter(0)):
            pieces = (changes for _, changes in pushed if changes.num_rows)
            if isinstance(loop, SetLoop) and loop.query_set.blocks:
                for changes in pieces:
                    for name, mine in by_query(changes, loop.queries):
                        yield merge_key(name), mine
            else:
                rows: Iterable[pa.Table] = pieces  # of a loop that is in another worker: what that has made of them
                if isinstance(loop, SetLoop) and self.whole:
                    rows = loop.answers(list(pieces))
                elif not self.whole:
                    rows = map(self._without_numbers, pieces)
                yield from ((str(shard), table) for table in rows)

    def _row(self, merge: str, **values: Any) -> pd.DataFrame:
        import pandas as pd  # takes a second; the process that only reads the state's schema, at a start, makes no rows

        row = {name: [values.get(name)] for name in ("blob", *_FIGURES)}
        return pd.DataFrame({"merge": [merge], **row} if self.plan.blocked else row)


def log_rejected(rejected: Counter[str]) -> None:
    """One line in the executor's log for a trigger that rejected rows."""
    if count := sum(rejected.values()):
        reasons = ", ".join(f"{reason} ({number:,})" for reason, number in rejected.most_common())
        _LOG.warning("trigger %s: %s rows were rejected: %s", batch_number(), f"{count:,}", reasons)
