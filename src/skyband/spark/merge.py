"""The second operator, where there are pairs by blocks: it puts shards' answers together, and lets all else pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from skyband.spark.mappers import from_bytes, to_bytes
from skyband.spark.pair_blocks import Whole
from skyband.spark.plan import Plan
from skyband.tables.changes import PAIR

if TYPE_CHECKING:
    import pandas as pd

MERGED = "blob binary"
BEGIN = b""  # in the place of changes: the query starts empty
_QUERY = "query "


def merge_key(name: str) -> str:
    return _QUERY + name


class Merger(StatefulProcessor):
    """A key for each blocked query, and one for each shard, whose rows pass."""

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

    def _merge(self, name: str, changes: Any) -> Any:
        query = self.plan.blocked[name]
        kept = self.kept.get()
        stored = None if kept is None else bytes(kept[0])
        whole = Whole(query, "skyband time" if query.window.timed else None, stored)
        told = whole.take(changes)
        self.kept.update((whole.snapshot(),))
        if self.whole:
            pairs = whole.answer() if told.num_rows else whole.answer().slice(0, 0)
            if self.plan.options.time is not None:
                pairs = pairs.append_column("time", pairs.column(f"skyband time{PAIR[1]}"))
            told = pairs.append_column("rank", pa.array(range(1, pairs.num_rows + 1), pa.int64()))
        elif query.window.timed:
            told = told.drop_columns(["at"])
        shown = {f"{alias}{end}": alias.removeprefix("skyband ") + end for alias in self.plan.aliases for end in PAIR}
        told = told.drop_columns(["id_a", "id_b", "query"])
        told = told.rename_columns([shown.get(column, column) for column in told.column_names])
        return told.add_column(0, "query", pa.array([name] * told.num_rows, pa.string()))

    def close(self) -> None:
        pass
