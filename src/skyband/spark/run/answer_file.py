"""The upsert sink: a folder with one parquet file, which is the current answer.

A trigger's answer is written beside the file, and replaces it in one step, a rename. The file itself names its last
batch and its query. So a crash cannot separate data and progress: before the rename the folder is as if the batch had
never run, and the batch runs again; after it the file says that the batch is done, and when it runs again nothing
changes.

Cost: a trigger that changes anything rewrites the whole answer, k objects a group.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skyband.errors import RunError
from skyband.query.kinds import Query, TopKUncertain

FILE = "answer.parquet"
_STAMP = b"skyband"
_ROW = "skyband row"


class AnswerFile:
    """The file of one streaming query: `update` it with each batch's changes, in order."""

    def __init__(self, folder: str | Path, queries: dict[str, Query], order: Sequence[str] = ()) -> None:
        self.path = Path(folder, FILE)
        self.queries = queries
        self.order = order  # columns of the changes that say which of two objects came first

    def stamp(self) -> dict[str, Any] | None:
        """The query and the last batch of the file; None: there is no file."""
        try:
            found = pq.read_schema(self.path).metadata or {}
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError) as error:
            raise RunError(f"{self.path} cannot be read ({error}). Is it another program's?") from None
        if _STAMP not in found:
            raise RunError(f"{self.path} was not written by skyband run. Give sink.path another folder.")
        stamp: dict[str, Any] = json.loads(found[_STAMP])
        return stamp

    def read(self) -> pa.Table:
        """The answer."""
        return pq.ParquetFile(self.path).read()

    def update(self, query: str, batch: int, changes: Any) -> bool:
        """Apply the changes of a batch. False: they were applied before, and nothing is done."""
        stamp = self.stamp()
        before = -1 if stamp is None else stamp["batch"]
        if stamp is not None and stamp["query"] != query:
            raise RunError(
                f"{self.path} is the answer of another run, with another checkpoint. Use its checkpoint, or give "
                "sink.path another folder."
            )
        if batch <= before:
            return False
        if batch != before + 1:
            raise RunError(
                f"{self.path} {'is gone' if stamp is None else f'ends at batch {before}'}, and batch {batch} comes "
                "next: the answer cannot be computed. Restore the file, or start with a new run.checkpoint."
            )
        changed = in_utc(changes)
        answer = None if stamp is None else self.read()
        if answer is None or changed.num_rows:
            answer = answer_after(answer, changed, self.queries, self.order)
        self._replace(answer.replace_schema_metadata({_STAMP: json.dumps({"query": query, "batch": batch})}))
        return True

    def _replace(self, answer: Any) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{FILE}.new")  # readers of a folder skip names that begin with a dot
        with beside.open("wb") as file:
            pq.write_table(answer, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)
        if os.name == "posix":  # so that the rename survives a power cut
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def answer_after(
    answer: pa.Table | None, changes: pa.Table, queries: dict[str, Query], order: Sequence[str] = ()
) -> pa.Table:
    """An answer (None: nothing yet) after some changes: `query`, `per`, `rank`, the rest; best first, group by group.

    A leaving object is found by all its columns, so `time` must be the object's own, not the step's. Objects with equal
    scores are ranked by `order`, the newer above. Incomplete and uncertain objects, whose scores and probabilities
    change, are shown with those at which they entered; `held` is the rank of an uncertain one.
    """
    per = list(dict.fromkeys(name for query in queries.values() for name in query.per_columns))
    changes = changes.rename_columns(["held" if name == "rank" else name for name in changes.column_names])
    parts = [changes.drop_columns([name for name in ("at", "first") if name in changes.column_names])]
    if answer is not None:
        before = answer.drop_columns(["rank"])
        parts.insert(0, before.append_column("diff", pa.array(np.ones(before.num_rows, np.int8))))
    table = pa.concat_tables(parts, promote_options="permissive").combine_chunks()
    table = table.append_column(_ROW, pa.array(np.arange(table.num_rows)))
    keys = [f.name for f in table.schema if f.name not in ("diff", _ROW) and not pa.types.is_nested(f.type)]
    counted = _settled(table, queries).group_by(keys, use_threads=False).aggregate([("diff", "sum"), (_ROW, "max")])
    valid = np.maximum(counted.column("diff_sum").to_numpy(), 0)
    rows = np.repeat(counted.column(f"{_ROW}_max").to_numpy(), valid)  # equal objects keep their number
    objects = table.take(pa.array(np.sort(rows))).drop_columns(["diff", _ROW])
    ranked = [_ranked(objects, name, query, len(per), order) for name, query in queries.items()]
    return pa.concat_tables(ranked).combine_chunks()


def _settled(table: Any, queries: dict[str, Query]) -> Any:
    """The changes without the numbers that change while an object stays."""
    moving = [name for name, query in queries.items() if query.scores_move]
    if not moving:
        return table
    moves = pc.is_in(table.column("query"), pa.array(moving, pa.string()))
    for name in ("score", "probability"):
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, pc.if_else(moves, pa.scalar(None, pa.float64()), table.column(name)))
    return table


def _ranked(objects: Any, name: str, query: Query, groupings: int, order: Sequence[str]) -> Any:
    mine = objects.filter(pc.equal(objects.column("query"), name))
    best = "descending" if getattr(query, "descending", True) else "ascending"
    groups = [(column, "ascending") for column in query.per_columns]
    timed = query.window.sort in ("time", "ever") and "time" in mine.column_names
    newer = [(column, "descending") for column in dict.fromkeys(["time", *order] if timed else order)]
    above = [("held", "ascending"), ("probability", "descending")] if isinstance(query, TopKUncertain) else []
    mine = mine.take(pc.sort_indices(mine, sort_keys=[*groups, *above, ("score", best), *newer]))
    starts = np.zeros(mine.num_rows, np.bool_)
    starts[:1] = True
    for column in query.per_columns:
        coded = pc.dictionary_encode(mine.column(column).combine_chunks(), null_encoding="encode")
        codes = coded.indices.to_numpy()
        starts[1:] |= codes[1:] != codes[:-1]
    rows = np.arange(mine.num_rows)
    rank = rows - np.maximum.accumulate(np.where(starts, rows, 0)) + 1
    return mine.add_column(1 + groupings, "rank", pa.array(rank, pa.int64()))


def in_utc(table: pa.Table) -> pa.Table:
    """Times with a zone as UTC, so that the file does not depend on the session's zone; no dictionaries."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz not in (None, "UTC"):
            table = table.set_column(place, field.name, table.column(place).cast(pa.timestamp(field.type.unit, "UTC")))
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(field.type.value_type))
    return table
