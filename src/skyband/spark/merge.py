"""The second operator, where there are pairs by blocks: it merges the shards' answers; other changes pass through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from skyband.spark.mappers import from_bytes, to_bytes
from skyband.spark.pair_blocks import MergedAnswer
from skyband.spark.plan import Plan
from skyband.tables.changes import PAIR

if TYPE_CHECKING:
    import pandas as pd

MERGED = StructType([StructField("blob", BinaryType())])
BEGIN = b""  # in the place of changes: the query starts empty
_QUERY = "query "


def merge_key(name: str) -> str:
    """The key of a blocked query."""
    return _QUERY + name


class Merger(StatefulProcessor):
    """One key per blocked query, and one per shard, whose rows pass through."""

    def __init__(self, plan: Plan, *, whole: bool) -> None:
        self.plan, self.whole = plan, whole

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.kept = handle.getValueState("whole", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        if not key[0].startswith(_QUERY):
            for frame in rows:
                yield frame[["blob"]].dropna()
            return
        blobs = [bytes(blob) for frame in rows for blob in frame["blob"]]
        if BEGIN in blobs:
            self.kept.clear()
        changes = [from_bytes(blob) for blob in blobs if blob != BEGIN]
        if changes:
            import pandas as pd  # as in operator.py

            merged = self._merge(key[0].removeprefix(_QUERY), pa.concat_tables(changes))
            yield pd.DataFrame({"blob": [to_bytes(merged)]})

    def _merge(self, name: str, changes: pa.Table) -> pa.Table:
        query = self.plan.blocked[name]
        kept = self.kept.get()
        stored = None if kept is None else bytes(kept[0])
        merged = MergedAnswer(query, "skyband time" if query.window.sort == "time" else None, stored)
        out = merged.take(changes)
        self.kept.update((merged.snapshot(),))
        if self.whole:
            pairs = merged.answer() if out.num_rows else merged.answer().slice(0, 0)
            if self.plan.options.time is not None:
                pairs = pairs.append_column("time", pairs.column(f"skyband time{PAIR[1]}"))
            out = pairs.append_column("rank", pa.array(range(1, pairs.num_rows + 1), pa.int64()))
        elif query.window.sort == "time":
            out = out.drop_columns(["at"])
        shown = {f"{alias}{end}": alias.removeprefix("skyband ") + end for alias in self.plan.aliases for end in PAIR}
        out = out.drop_columns(["id_a", "id_b", "query"])
        out = out.rename_columns([shown.get(column, column) for column in out.column_names])
        return out.add_column(0, "query", pa.array([name] * out.num_rows, pa.string()))

    def close(self) -> None:
        pass
