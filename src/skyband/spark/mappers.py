"""Tables as bytes between the stages, and the two mappers that write and read them.

The first mapper sends each shard what it needs of a partition's rows, packed into few large values, and then a report:
the clock (the largest time of any row that any query accepts), and what was rejected. The last mapper turns packed
changes back into rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.scorings import crowd_key, plain_scoring, tame_for
from skyband.monitor.loop import Loop
from skyband.monitor.state import Examined
from skyband.query.kinds import Above, Query, TopK
from skyband.spark.plan import Family, Plan, hash_groups, labels, shard_of
from skyband.tables.columns import as_arrow, plain
from skyband.tables.groups import Groups
from skyband.tables.input import Batch, time_unit, times

Bools = NDArray[np.bool_]
Crowds = dict[str, list[str]]

PACKED = "shard int, family int, blob binary, moment timestamp_ltz"  # plain "timestamp" may be said to mean NTZ
REPORT = -1  # in the place of a family: the blob is a report
_CHUNK = 1 << 16  # rows that are packed together
_FEW, _MOST = 16, 256  # queries that differ in numbers only: rows are pruned for so many per shard, and in all


def to_bytes(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: Any) -> Any:
    return pa.ipc.open_stream(data).read_all()


def pack(plan: Plan, batches: Iterator[Any]) -> Iterator[Any]:
    """The mapper before the shuffle."""
    names = list(plan.wanted(plan.queries))
    packer = Packer(plan)
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(_in_utc(pa.Table.from_batches([batch]).rename_columns(names)))
        rows += batch.num_rows
        if rows >= _CHUNK:
            yield from packer.send(pa.concat_tables(waiting))
            waiting, rows = [], 0
    if rows:
        yield from packer.send(pa.concat_tables(waiting))
    yield packer.report()


class Packer:
    """What of a partition's rows which shard must see."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.labels = labels(plan.shards)
        self.wanted = [list(plan.wanted(queries)) for queries in plan.families.values()]
        self.crowds = _crowds(plan)
        spoken_for = {name for names in self.crowds.values() for name in names}
        few = {name: query for name, query in plan.queries.items() if name not in spoken_for}
        self.examiner = self._examiner(few, self.crowds)
        self.clock: Any = None  # the largest accepted time, as a table of one row
        self.moment: int | None = None  # the largest time of any row
        self.counts: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()  # by reason

    def _examiner(self, queries: dict[str, Query], crowds: Crowds) -> Loop:
        """Judges rows for these queries: by their scores, but for those that speak for a crowd."""
        examiner = Loop.of(queries, **self.plan.monitor_options())
        examiner.queries.validate_apart(but=crowds)
        return examiner

    def send(self, rows: Any) -> Iterator[Any]:
        table = in_order(rows, self.plan.order)
        wild = self._wild(table)
        if wild.any():
            for part, crowds, examiner in (
                (table.filter(as_arrow(~wild)), self.crowds, self.examiner),
                (table.filter(as_arrow(wild)), {}, self._examiner(self.plan.queries, {})),
            ):
                yield from self._send_part(part, crowds, examiner)
        else:
            yield from self._send_part(table, self.crowds, self.examiner)

    def _wild(self, table: Any) -> Bools:
        """Rows with numbers so large that the queries of a crowd may judge them differently."""
        wild = np.zeros(table.num_rows, np.bool_)
        batch = Batch(table)
        said = (getattr(self.plan.queries[name], "by", None) for name in self.crowds)
        scorings: list[Any] = [plain_scoring(by) if isinstance(by, str) else by for by in said]
        for name, most in dict.fromkeys((name, tame_for(by)) for by in scorings for name in by.columns):
            wild |= np.abs(batch.numbers(name).values) > most
        return wild

    def _send_part(self, table: Any, crowds: Crowds, examiner: Loop) -> Iterator[Any]:
        seen = examiner.examine(Batch(table))
        self._count(table, seen)
        for number, family in enumerate(self.plan.families):
            yield from self._send_family(number, family, table, seen, crowds)

    def _count(self, table: Any, seen: Examined) -> None:
        """Rejected rows stay here, as numbers."""
        rejected: dict[str, Bools] = {}
        for one in seen.validated:
            for reason, which in one.scored.rejected.items():
                rejected[reason] = rejected[reason] | which if reason in rejected else which
        self.examiner.raise_invalid(seen.validated, lambda row: f"id {table.column(self.plan.options.id)[row]}")
        self.rejected.update({reason: int(which.sum()) for reason, which in rejected.items()})
        arriving = seen.accepted if seen.deletes is None else seen.accepted & ~seen.deletes
        self.counts["arrivals"] += int(arriving.sum())
        if self.plan.watermarked:
            latest = pc.max(table.column(self.plan.options.time)).value
            self.moment = max((moment for moment in (latest, self.moment) if moment is not None), default=None)
        if seen.times is not None and seen.accepted.any():
            row = int(np.where(seen.accepted, seen.times, np.iinfo(np.int64).min).argmax())
            latest = table.select([self.plan.options.time]).slice(row, 1).rename_columns(["clock"])
            self.clock = latest if self.clock is None else max(latest, self.clock, key=moment_of)

    def _send_family(self, number: int, family: Family, table: Any, seen: Examined, crowds: Crowds) -> Iterator[Any]:
        wanted = table.select(self.wanted[number])
        needed = self._needed(family, wanted, seen, crowds)
        if family.blocks:
            if (rows := needed[0]).any():
                blob = to_bytes(wanted if rows.all() else wanted.filter(as_arrow(rows)))
                yield _messages(list(self.labels), [number] * self.plan.shards, [blob] * self.plan.shards)
            return
        if family.per:
            kept = np.flatnonzero(needed[0])
            slim = wanted if len(kept) == wanted.num_rows else wanted.take(as_arrow(kept))
            shards = shard_of(hash_groups([plain(slim.column(name)) for name in family.per]), self.plan.shards)
            for shard in range(self.plan.shards):
                mine = np.flatnonzero(shards == shard)
                if len(mine):
                    yield self._message(shard, number, slim.take(as_arrow(mine)) if self.plan.shards > 1 else slim)
            return
        for shard, rows in needed.items():
            if rows.any():
                yield self._message(shard, number, wanted if rows.all() else wanted.filter(as_arrow(rows)))

    def _needed(self, family: Family, table: Any, seen: Examined, crowds: Crowds) -> dict[int, Bools]:
        """Which rows each shard of a family must see (0 stands for all if it has `per`, or all see all).

        Of time windows, what can never be an answer is left out (kernels/lookahead.py has the proof; `Above` asks
        only for what is above). Other partitions' rows of the trigger may come between these, which only adds
        objects above and dominators. Not for crowds: to look through the rows for each query would take longer
        than its shard does, with an index, for all. Pairs, parts and probabilities depend on more than
        the rows at hand: all are sent.
        """
        groups = Groups(family.per)
        codes: Any = None
        clocks: Any = None
        needed: dict[int, Bools] = {}
        for adapter, one in zip(seen.standing, seen.validated, strict=True):
            mine = [name for name in adapter.queries if name in self.plan.families[family]]
            if not mine:
                continue
            rows = one.accepted
            crowd = [other for name in adapter.queries for other in crowds.get(name, ())]
            if adapter.timed and crowd:
                rows = rows if one.eligible is None else rows & one.eligible
            elif adapter.timed and rows.any() and isinstance(adapter, TopKAdapter):
                assert seen.times is not None
                if codes is None:
                    codes = groups.codes_where(seen.accepted, [seen.per[name] for name in family.per])
                    clocks = np.maximum.accumulate(seen.times)
                unit = time_unit(table.schema.field(self.plan.options.time).type)
                rows = adapter.needed(one, codes, groups.total, seen.times, clocks, unit)
            together = bool(family.per) or family.blocks
            for shard in {0} if together else {self.plan.adapters[name] for name in (*mine, *crowd)}:
                needed[shard] = needed[shard] | rows if shard in needed else rows
        return needed

    def report(self) -> Any:
        """To every shard, at each trigger: how late it is. What was counted goes to the first."""
        clock = pa.table({}) if self.clock is None else self.clock
        counts = json.dumps({**self.counts, "rejected": self.rejected}).encode()
        told = [to_bytes(clock)] * self.plan.shards
        told[0] = to_bytes(clock.replace_schema_metadata({b"counts": counts}))
        shards = list(self.labels)
        moments: list[int | None] = [None] * self.plan.shards
        if self.moment is not None:  # alone: Spark drops what is behind its watermark, and nothing else may be lost
            shards, told, moments = [*shards, shards[0]], [*told, to_bytes(pa.table({}))], [*moments, self.moment]
        return _messages(shards, [REPORT] * len(shards), told, moments)

    def _message(self, shard: int, family: int, table: Any) -> Any:
        return _messages([self.labels[shard]], [family], [to_bytes(table)])


def _crowds(plan: Plan) -> Crowds:
    """Where very many queries differ only in the numbers of their scoring: one that speaks for the others."""
    found: dict[Any, list[str]] = {}
    for name, query in plan.queries.items():
        key = crowd_key(query) if isinstance(query, TopK | Above) else None
        if key is not None:
            found.setdefault(key, []).append(name)
    few = min(_FEW * plan.shards, _MOST)
    return {
        first: others
        for first, *others in found.values()
        if others and (len(others) >= few or not plan.queries[first].window.timed)  # count windows: nothing to prune
    }


def _messages(shards: list[int], families: list[int], blobs: list[bytes], moments: list[Any] | None = None) -> Any:
    arrays = [
        pa.array(shards, pa.int32()),
        pa.array(families, pa.int32()),
        pa.array(blobs, pa.binary()),
        pa.array(moments or [None] * len(shards), pa.timestamp("us", "UTC")),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["shard", "family", "blob", "moment"])


def moment_of(clock: Any) -> int:
    """A clock, which is a table of one row, as a number."""
    return int(times(plain(clock.column("clock")), 0)[0][0])


def in_order(table: Any, order: tuple[str, ...]) -> Any:
    """Rows in order of arrival; those that `order` does not tell apart, by all else that they carry."""
    ties = [name for name in table.column_names if name not in order and _sortable(table.schema.field(name).type)]
    keys = [*order, *ties]
    if _is_sorted(table, keys):
        return table
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in keys]))


def _is_sorted(table: Any, keys: list[str]) -> bool:
    """Do the rows rise by these columns, the first that differs deciding? A null says no, to be on the safe side."""
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


def _sortable(type_: Any) -> bool:
    return not (pa.types.is_nested(type_) or pa.types.is_null(type_))


def unpack(schema: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """The mapper after the operator: packed changes as rows of the output's schema."""
    for batch in batches:
        for blob in batch.column(0):
            if not blob.is_valid:
                continue
            table = from_bytes(blob.as_buffer())
            arrays = [
                plain(table.column(field.name)).cast(field.type)
                if field.name in table.column_names
                else pa.nulls(table.num_rows, field.type)
                for field in schema
            ]
            yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=_CHUNK)


def reject(
    queries: dict[str, Any], options: dict[str, Any], names: tuple[str, ...], batches: Iterator[Any]
) -> Iterator[Any]:
    """A mapper of its own: the rows that some query rejects, with the reason."""
    examiner = Loop.of(queries, **options)
    examiner.queries.validate_apart()
    for batch in batches:
        table = pa.Table.from_batches([batch]).rename_columns(list(names))
        seen = examiner.examine(Batch(_in_utc(table)))
        because: dict[str, list[tuple[str, Bools]]] = {}
        for adapter, one in zip(seen.standing, seen.validated, strict=True):
            for reason, rows in one.scored.rejected.items():
                because.setdefault(reason, []).extend((name, rows) for name in adapter.queries)
        for reason, who in because.items():
            rejecting = np.stack([rows for _, rows in who], axis=1)
            places = np.flatnonzero(rejecting.any(axis=1))
            refused = [[name for (name, _), no in zip(who, line, strict=True) if no] for line in rejecting[places]]
            reasons = pa.array([reason] * len(places), pa.string())
            columns = [reasons, pa.array(refused, pa.list_(pa.string())), *table.take(as_arrow(places)).columns]
            yield from pa.table(columns, names=["reason", "queries", *names]).to_batches()


def _in_utc(table: Any) -> Any:
    """Times with a zone as UTC, so that state does not depend on the session's zone."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz not in (None, "UTC"):
            utc = pa.timestamp(field.type.unit, "UTC")
            table = table.set_column(i, pa.field(field.name, utc), table.column(i).cast(utc))
    return table
