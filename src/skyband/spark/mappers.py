"""Tables as bytes between the stages, and the mappers that write and read them.

The first mapper sends each shard what it needs of a partition's rows, packed into few large values, and then a report:
the clock (the largest time of any row that any query accepts), and the counts of rejected rows. The last mapper turns
packed changes back into rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType, TimestampType

from skyband.engines.groups.adapter import GroupsAdapter
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.scorings import crowd_key, plain_scoring, tame_for
from skyband.monitor.examination import Examined, examine
from skyband.monitor.loop import Loop
from skyband.query.kinds import Above, Query, TopK
from skyband.spark.group_rows import needed_rows, partial_aggregates
from skyband.spark.plan import Plan, QuerySet, hash_groups, labels, shard_of
from skyband.spark.runs import without_runs
from skyband.spark.subscriptions import FIRST, shares
from skyband.spark.task import is_first, running, spare_collector
from skyband.tables.columns import as_arrow, plain
from skyband.tables.groups import Groups
from skyband.tables.input import Batch, time_unit, times

Bools = NDArray[np.bool_]
Represented = dict[str, list[str]]  # query -> others that differ in the numbers of their scoring only

# family: the number of a query set; types as values, since Declarative Pipelines let nobody read them from text
_PACKED = {"shard": IntegerType(), "family": IntegerType(), "blob": BinaryType(), "moment": TimestampType()}
PACKED = StructType([StructField(name, type_) for name, type_ in _PACKED.items()])
REPORT = -1  # in the place of a query set's number: the blob is a report
_CHUNK = 1 << 16  # rows that are packed together
_FEW, _MOST = 16, 256  # rows are pruned for at most so many such queries per shard, and in all


def to_bytes(table: pa.Table) -> bytes:
    """A table in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: Any) -> pa.Table:
    """The table of such bytes."""
    return pa.ipc.open_stream(data).read_all()


def pack(plan: Plan, batches: Iterator[Any]) -> Iterator[Any]:
    """The mapper before the shuffle."""
    spare_collector()
    plan = running(plan)
    names = list(plan.wanted(plan.queries))
    packer = Packer(plan)
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(in_zone(pa.Table.from_batches([batch]).rename_columns(names), plan.zone))
        rows += batch.num_rows
        if rows >= _CHUNK:
            yield from packer.send(pa.concat_tables(waiting))
            waiting, rows = [], 0
    if rows:
        yield from packer.send(pa.concat_tables(waiting))
    if is_first():
        yield from _static_tables(plan)
    yield packer.report()


def _static_tables(plan: Plan) -> Iterator[Any]:
    """The static tables of subscriptions, to every shard its share, which may be empty."""
    keys = labels(plan.shards)
    for place, (name, source) in enumerate(plan.subscribed.items()):
        if source.table is None:
            continue
        table = source.rows()
        mine = dict(_shares(plan, name, table))
        for shard in range(plan.shards):
            yield _messages([keys[shard]], [FIRST - place], [to_bytes(mine.get(shard, table.slice(0, 0)))])


def pack_subscriptions(plan: Plan, name: str, batches: Iterator[Any]) -> Iterator[Any]:
    """The mapper of rows that subscribe and unsubscribe: each shard gets its share."""
    plan = running(plan)
    source = plan.subscribed[name]
    number, keys = FIRST - list(plan.subscribed).index(name), labels(plan.shards)
    for batch in batches:
        table = in_zone(pa.Table.from_batches([batch]).rename_columns(list(source.columns)), plan.zone)
        for shard, mine in _shares(plan, name, table):
            yield _messages([keys[shard]], [number], [to_bytes(mine)])


def _shares(plan: Plan, name: str, table: Any) -> Iterator[tuple[int, Any]]:
    """The shards that have any of these subscriptions of a query, each with its own."""
    home = plan.shard_by_query.get(name)
    if home is None:
        yield from shares(table, plan.shards, plan.queries[name].per_columns)
    else:  # others ask over its answers
        yield home, table


class Validator:
    """A loop that only validates rows: each query by its own score, except those that represent others (`but`)."""

    def __init__(self, queries: dict[str, Query], options: dict[str, Any], but: Represented | None = None) -> None:
        self.loop = Loop.of(queries, **options)
        self.loop.queries.validate_apart(but=but or {})

    def examine(self, table: pa.Table) -> Examined:
        """Validate rows."""
        batch = Batch(table)
        self.loop.queries.find_keys(batch)
        return examine(self.loop.state, batch)

    def keys(self, table: pa.Table) -> list[list[Any]]:
        """The types of the keys that are reported of rows like these, for each query."""
        examined = self.examine(table)
        pieces: Any = zip(examined.standing, examined.validated, strict=True)
        return [adapter.new_keys(one) for adapter, one in pieces if one.scored.keys is not None]

    def raise_invalid(self, examined: Examined, name: Callable[[int], str]) -> None:
        """Raise the error of the first rejected row, if the options ask for that."""
        if self.loop.state.options.invalid == "raise":
            examined.raise_invalid(name)


class Packer:
    """Selects of a partition's rows what each shard must see."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.labels = labels(plan.shards)
        self.wanted = [list(plan.wanted(queries)) for queries in plan.query_sets.values()]
        self.represented = _represented(plan)
        others = {name for names in self.represented.values() for name in names}
        few = {name: query for name, query in plan.over_rows.items() if name not in others}
        self.validator = Validator(few, plan.monitor_options(), self.represented)
        self.clock: Any = None  # the largest accepted time, as a table of one row
        self.moment: int | None = None  # the largest time of any row
        self.counts: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()  # by reason

    def send(self, rows: pa.Table) -> Iterator[Any]:
        """The messages to shards that these rows make."""
        table = in_order(rows, self.plan.order)
        extreme = self._extreme(table)
        if not extreme.any():
            yield from self._send_part(table, self.represented, self.validator)
            return
        yield from self._send_part(table.filter(as_arrow(~extreme)), self.represented, self.validator)
        every = Validator(self.plan.over_rows, self.plan.monitor_options())
        yield from self._send_part(table.filter(as_arrow(extreme)), {}, every)

    def _extreme(self, table: pa.Table) -> Bools:
        """Rows with numbers so large that queries with other weights may validate them differently."""
        extreme = np.zeros(table.num_rows, np.bool_)
        batch = Batch(table)
        given = (getattr(self.plan.queries[name], "by", None) for name in self.represented)
        scorings: list[Any] = [plain_scoring(by) if isinstance(by, str) else by for by in given]
        for name, most in dict.fromkeys((name, tame_for(by)) for by in scorings for name in by.columns):
            extreme |= np.abs(batch.numbers(name).values) > most
        return extreme

    def _send_part(self, table: pa.Table, represented: Represented, validator: Validator) -> Iterator[Any]:
        examined = validator.examine(table)
        self._count(table, examined)
        for number, query_set in enumerate(self.plan.query_sets):
            yield from self._send_set(number, query_set, table, examined, represented)

    def _count(self, table: Any, examined: Examined) -> None:
        """Count rejected rows, which are sent nowhere, and arrivals; note the clock."""
        rejected: dict[str, Bools] = {}
        for one in examined.validated:
            for reason, which in one.scored.rejected.items():
                rejected[reason] = rejected[reason] | which if reason in rejected else which
        self.validator.raise_invalid(examined, lambda row: f"id {table.column(self.plan.options.id)[row]}")
        self.rejected.update({reason: int(which.sum()) for reason, which in rejected.items()})
        arriving = examined.accepted if examined.deletes is None else examined.accepted & ~examined.deletes
        self.counts["arrivals"] += int(arriving.sum())
        if self.plan.watermarked:
            latest = pc.max(table.column(self.plan.options.time)).value
            self.moment = max((moment for moment in (latest, self.moment) if moment is not None), default=None)
        if examined.times is not None and examined.accepted.any():
            row = int(np.where(examined.accepted, examined.times, np.iinfo(np.int64).min).argmax())
            latest = table.select([self.plan.options.time]).slice(row, 1).rename_columns(["clock"])
            self.clock = latest if self.clock is None else max(latest, self.clock, key=moment_of)

    def _send_set(
        self, number: int, query_set: QuerySet, table: pa.Table, examined: Examined, represented: Represented
    ) -> Iterator[Any]:
        wanted = table.select(self.wanted[number])
        partial = partial_aggregates(self.plan, query_set, wanted, examined)
        if partial is None:
            needed = self._needed(query_set, wanted, examined, represented)
        else:
            wanted, every = partial, np.ones(partial.num_rows, np.bool_)
            needed = dict.fromkeys(self._shards(self.plan.query_sets[query_set]) if not query_set.per else [0], every)
        if query_set.blocks:
            if (rows := needed[0]).any():
                blob = to_bytes(wanted if rows.all() else wanted.filter(as_arrow(rows)))
                yield _messages(list(self.labels), [number] * self.plan.shards, [blob] * self.plan.shards)
            return
        if query_set.per:
            kept = np.flatnonzero(needed[0])
            slim = wanted if len(kept) == wanted.num_rows else wanted.take(as_arrow(kept))
            shards = shard_of(hash_groups([plain(slim.column(name)) for name in query_set.per]), self.plan.shards)
            for shard in range(self.plan.shards):
                mine = np.flatnonzero(shards == shard)
                if len(mine):
                    yield self._message(shard, number, slim.take(as_arrow(mine)) if self.plan.shards > 1 else slim)
            return
        for shard, rows in needed.items():
            if rows.any():
                yield self._message(shard, number, wanted if rows.all() else wanted.filter(as_arrow(rows)))

    def _needed(
        self, query_set: QuerySet, table: pa.Table, examined: Examined, represented: Represented
    ) -> dict[int, Bools]:
        """Shard -> the rows of a query set that it must see (one entry, 0, if it has `per` or all see all).

        Of time windows, what can never be an answer is left out (engines/topk/kernels/lookahead.py has the proof;
        `Above` needs only what is above). Other partitions' rows of the trigger may come between these, which only adds
        objects above and dominators. Not where one query represents others: searching the rows for each would take
        longer than its shard does, with an index, for all. Of groups of rows, those that can change an aggregate are
        sent (group_rows.py). Pairs, parts and probabilities depend on more than the rows at hand: all are sent; so are
        those of a query over whose answers others ask, since these see its answer at every step.
        """
        groups = Groups(query_set.per)
        codes: Any = None
        clocks: Any = None
        needed: dict[int, Bools] = {}
        for adapter, one in zip(examined.standing, examined.validated, strict=True):
            mine = [name for name in adapter.queries if name in self.plan.query_sets[query_set]]
            if not mine:
                continue
            rows = one.accepted
            others = [other for name in adapter.queries for other in represented.get(name, ())]
            if query_set.root or (query_set.can_forget and self.plan.forget is not None):
                pass  # of the latter: a row that can never be an answer still ends a group's silence
            elif adapter.timed and others:
                rows = rows if one.eligible is None else rows & one.eligible
            elif adapter.timed and rows.any() and isinstance(adapter, TopKAdapter):
                assert examined.times is not None
                if codes is None:
                    codes = groups.codes_where(examined.accepted, [examined.per[name] for name in query_set.per])
                    clocks = np.maximum.accumulate(examined.times)
                unit = time_unit(table.schema.field(self.plan.options.time).type)
                rows = adapter.needed(one, codes, groups.total, examined.times, clocks, unit)
            elif adapter.timed and isinstance(adapter, GroupsAdapter):
                rows = needed_rows(adapter, one, examined, table)
            together = bool(query_set.per) or query_set.blocks
            for shard in {0} if together else self._shards([*mine, *others]):
                needed[shard] = needed[shard] | rows if shard in needed else rows
        return needed

    def _shards(self, names: Iterable[str]) -> set[int]:
        """The shards that have these queries; subscriptions are everywhere."""
        shards = {self.plan.shard_by_query.get(name, -1) for name in names}
        return set(range(self.plan.shards)) if -1 in shards else shards

    def report(self) -> Any:
        """The message to every shard that ends a trigger: the clock. The counts go to the first shard."""
        clock = pa.table({}) if self.clock is None else self.clock
        counts = json.dumps({**self.counts, "rejected": self.rejected}).encode()
        blobs = [to_bytes(clock)] * self.plan.shards
        blobs[0] = to_bytes(clock.replace_schema_metadata({b"counts": counts}))
        shards = list(self.labels)
        moments: list[int | None] = [None] * self.plan.shards
        if self.moment is not None:  # alone: Spark drops what is behind its watermark, and nothing else may be lost
            shards, blobs, moments = [*shards, shards[0]], [*blobs, to_bytes(pa.table({}))], [*moments, self.moment]
        return _messages(shards, [REPORT] * len(shards), blobs, moments)

    def _message(self, shard: int, number: int, table: pa.Table) -> Any:
        return _messages([self.labels[shard]], [number], [to_bytes(table)])


def _represented(plan: Plan) -> Represented:
    """Of very many queries that differ only in the numbers of their scoring, one that represents the others."""
    found: dict[Any, list[str]] = {}
    for name, query in plan.queries.items():
        alone = bool(query.each) or name in plan.roots
        key = crowd_key(query) if isinstance(query, TopK | Above) and not alone else None
        if key is not None:
            found.setdefault(key, []).append(name)
    few = min(_FEW * plan.shards, _MOST)
    return {
        first: others
        for first, *others in found.values()
        if others and (len(others) >= few or not plan.options.timed(plan.queries[first].window))
    }  # count windows: nothing to prune


def _messages(shards: list[int], numbers: list[int], blobs: list[bytes], moments: list[Any] | None = None) -> Any:
    arrays = [
        pa.array(shards, pa.int32()),
        pa.array(numbers, pa.int32()),
        pa.array(blobs, pa.binary()),
        pa.array(moments or [None] * len(shards), pa.timestamp("us", "UTC")),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["shard", "family", "blob", "moment"])


def moment_of(clock: Any) -> int:
    """A clock, which is a table of one row, as a number."""
    return int(times(plain(clock.column("clock")), 0)[0][0])


def in_order(table: pa.Table, order: tuple[str, ...]) -> pa.Table:
    """Rows in order of arrival; rows that are equal in `order`, by all their other columns."""
    ties = [name for name in table.column_names if name not in order and sortable(table.schema.field(name).type)]
    keys = [*order, *ties]
    if _is_sorted(table, keys):
        return table
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in keys]))


def _is_sorted(table: Any, keys: list[str]) -> bool:
    """Whether the rows rise by these columns, the first that differs deciding; False if there is a null."""
    if table.num_rows < 2:
        return True
    left, right = table.slice(0, table.num_rows - 1), table.slice(1)
    for name in keys:
        before, after = plain(left.column(name)), plain(right.column(name))
        if before.null_count or after.null_count:
            return False
        if not pc.all(pc.less_equal(before, after)).as_py():
            return False
        equal = pc.equal(before, after)
        if not pc.any(equal).as_py():
            return True
        left, right = left.filter(equal), right.filter(equal)
    return True


def sortable(type_: Any) -> bool:
    """Whether rows can be sorted by a column of this type."""
    return not (pa.types.is_nested(type_) or pa.types.is_null(type_) or pa.types.is_interval(type_))


def unpack(schema: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """The mapper after the operator: packed changes as rows of the output's schema."""
    spare_collector()
    for batch in batches:
        for blob in batch.column(0):
            if not blob.is_valid:
                continue
            table = from_bytes(blob.as_buffer())
            arrays = [
                without_runs(table.column(field.name)).cast(field.type)
                if field.name in table.column_names
                else pa.nulls(table.num_rows, field.type)
                for field in schema
            ]
            yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=_CHUNK)


def reject(
    queries: dict[str, Any], options: dict[str, Any], names: tuple[str, ...], zone: str | None, batches: Iterator[Any]
) -> Iterator[Any]:
    """A mapper of its own: the rows that some query rejects, with the reason."""
    validator = Validator(queries, options)
    for batch in batches:
        table = pa.Table.from_batches([batch]).rename_columns(list(names))
        examined = validator.examine(in_zone(table, zone))
        because: dict[str, list[tuple[str, Bools]]] = {}
        for adapter, one in zip(examined.standing, examined.validated, strict=True):
            for reason, rows in one.scored.rejected.items():
                because.setdefault(reason, []).extend((name, rows) for name in adapter.queries)
        for reason, found in because.items():
            rejecting = np.stack([rows for _, rows in found], axis=1)
            places = np.flatnonzero(rejecting.any(axis=1))
            named = [[name for (name, _), no in zip(found, line, strict=True) if no] for line in rejecting[places]]
            reasons = pa.array([reason] * len(places), pa.string())
            columns = [reasons, pa.array(named, pa.list_(pa.string())), *table.take(as_arrow(places)).columns]
            yield from pa.table(columns, names=["reason", "queries", *names]).to_batches()


def in_zone(table: pa.Table, zone: str | None) -> pa.Table:
    """Times with a zone in this one; None: in UTC, so that state does not depend on the session's zone."""
    zone = zone or "UTC"
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz not in (None, zone):
            moved = pa.timestamp(field.type.unit, zone)
            table = table.set_column(i, pa.field(field.name, moved), table.column(i).cast(moved))
    return table
