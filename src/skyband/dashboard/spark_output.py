"""The output folder of a Spark pipeline, shown like the answers of a Monitor.

The sink upsert of `skyband run` keeps the answer itself; of the sink parquet, which appends changes, the answer is
computed here: the objects that have entered and not left. A file counts once Spark's log of the folder names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.dashboard import limits
from skyband.dashboard.boards import plain, rows_of
from skyband.errors import BatchError, QueryError
from skyband.query.kinds import Query


class AnswersBoard:
    """The folder that `skyband run` writes with the sink upsert: its answer, as it changes."""

    fixed = True

    def __init__(self, folder: Path) -> None:
        self.path = folder / "answer.parquet"
        self.changed: dict[str, int] = {}
        self._table: Any = None
        self._stamp: tuple[int, int] | None = None
        self.look()

    def look(self) -> bool:
        """Read the file if it is new; returns whether it was."""
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp == self._stamp:
                return False
            from pyarrow import parquet

            table = parquet.ParquetFile(self.path).read()
        except (OSError, pa.ArrowException) as error:
            raise BatchError(f"{self.path.parent.name}: {self.path.name} cannot be read ({error}).") from None
        if not {"query", "rank", "score"} <= set(table.column_names):
            raise BatchError(f"{self.path.parent.name}: {self.path.name} is not an answer of skyband run.")
        self._table, self._stamp = table, stamp
        for name in table["query"].unique().to_pylist():
            self.changed[name] = self.changed.get(name, 0) + 1
        return True

    @property
    def names(self) -> list[str]:
        return list(self.changed)

    def add(self, name: str, query: Query) -> None:
        raise _fixed()

    def replace(self, name: str, query: Query) -> None:
        raise _fixed()

    def drop(self, name: str) -> None:
        raise _fixed()

    def head(self) -> dict[str, Any]:
        return {"arrivals": None, "late": None, "rejected": {}, "clock": None}

    def summaries(self) -> list[dict[str, Any]]:
        empty = {"kind": "Spark", "algorithm": None, "kept": None, "window": None, "arrivals": None, "late": None}
        return [
            {"name": name, "sql": "answer of a Spark pipeline", **empty, "rejected": None, "changes": n, "groups": None}
            for name, n in self.changed.items()
        ]

    def _of(self, name: str) -> Any:
        if name not in self.changed:
            raise QueryError(f"there is no query {name!r} in the answer. There are: {', '.join(self.names)}.")
        table = self._table.filter(pc.equal(self._table["query"].cast(pa.string()), name)).drop_columns(["query"])
        used = [column for column in table.column_names if table[column].null_count < max(table.num_rows, 1)]
        return table.select(used)

    def answer(self, name: str, key: tuple[Any, ...] | None, rows: int) -> dict[str, Any]:
        table = self._of(name)
        hidden = [column for column in table.column_names if column.startswith("skyband ")]
        table = table.drop_columns(hidden)
        return {"columns": table.column_names, "rows": rows_of(table.slice(0, rows)), "total": table.num_rows}

    def detail(self, name: str, group: int | None) -> dict[str, Any]:
        return {
            "name": name,
            "group": None,
            "groups": [],
            "per": [],
            "answer": self.answer(name, None, limits.ROWS),
            "plane": self._plane(self._of(name)),
        }

    def _plane(self, table: Any) -> dict[str, Any]:
        empty: dict[str, Any] = {"points": [], "rest": [], "span": None, "from": None, "to": None, "descending": True}
        if "time" not in table.column_names or not table.num_rows:
            return empty
        times = table["time"].combine_chunks()
        stamps = times.cast(pa.int64()) if not pa.types.is_date(times.type) else times.cast(pa.int32()).cast(pa.int64())
        numbers, now = np.asarray(stamps), pc.max(times)
        first = pc.min(times)
        points = zip(numbers, table["score"].to_pylist(), table["rank"].to_pylist(), strict=True)
        last = int(numbers.max())
        shown = [[int(stamp) - last, plain(score), rank] for stamp, score, rank in points][: limits.POINTS]
        return empty | {
            "points": shown,
            "span": int(last - numbers.min()),
            "from": plain(first.as_py()),
            "to": plain(now.as_py()),
        }


class ChangesBoard(AnswersBoard):
    """Changes that are appended. The folder does not say which direction is best: ranks are by score, largest first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._batch, self._files = -1, 0  # the last batch that was read, and the number of files
        self._per: list[str] = []
        self._in: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        super().__init__(folder)

    def look(self) -> bool:
        fresh = self._fresh()
        for batch, names in fresh:
            for name in names:
                self._take(name)
            self._batch, self._files = batch, self._files + len(names)
        if fresh or self._table is None:
            self._table = self._ranked()
        return bool(fresh)

    def _fresh(self) -> list[tuple[int, list[str]]]:
        """Batches that were not read yet, and their files. A log file called compact lists all earlier ones too."""
        try:
            found = {int(path.stem): path for path in (self.folder / LOG).iterdir() if path.stem.isdecimal()}
            whole = max((n for n, path in found.items() if path.suffix == ".compact" and n > self._batch), default=-1)
            fresh = [(whole, _listed_in(found[whole])[self._files :])] if whole >= 0 else []
            later = sorted(n for n in found if n > max(self._batch, whole))
            return fresh + [(n, _listed_in(found[n])) for n in later[:_AT_ONCE]]
        except (OSError, ValueError, KeyError) as error:
            raise BatchError(f"{self.folder.name}: Spark's log {LOG} cannot be read ({error}).") from None

    def _take(self, name: str) -> None:
        from pyarrow import parquet

        try:
            table = parquet.ParquetFile(self.folder / name).read()
        except (OSError, pa.ArrowException) as error:
            raise BatchError(f"{self.folder.name}: {name} cannot be read ({error}).") from None
        names = table.column_names
        if not {"query", "at", "score", "diff"} <= set(names):
            raise BatchError(f"{self.folder.name}: these are not changes of skyband run.")
        self._per = names[names.index("query") + 1 : names.index("at")]
        shown = [name for name in names if name not in ("at", "diff", "first")]
        ids = [name for name in ("id", "id_a", "id_b", "rank") if name in names]
        for row in table.to_pylist():
            self.changed[row["query"]] = self.changed.get(row["query"], 0) + 1
            identity = tuple(row[one] for one in ("query", *self._per, *ids))
            there = self._in.setdefault(identity, [])
            if row["diff"] > 0:
                there.append({name: row[name] for name in shown})
            elif there:  # one id may be in the answer twice
                same = [place for place, one in enumerate(there) if one["score"] == row["score"]]
                there.pop(same[0] if same else 0)
            if not there:
                del self._in[identity]

    def _ranked(self) -> Any:
        rows = sorted((row for rows in self._in.values() for row in rows), key=lambda row: -row["score"])
        if not rows:
            return pa.table({"query": [], "rank": [], "score": []})
        last: dict[Any, int] = {}
        for row in rows:
            group = tuple(row[name] for name in ("query", *self._per))
            last[group] = row["rank"] = last.get(group, 0) + 1
        table = pa.Table.from_pylist(sorted(rows, key=_by_group(self._per)))
        begin = ["query", *self._per, "rank"]
        return table.select([*begin, *(name for name in table.column_names if name not in begin)])


LOG = "_spark_metadata"
_AT_ONCE = 50  # batches


def _by_group(per: list[str]) -> Callable[[dict[str, Any]], Any]:
    return lambda row: (row["query"], [str(row[name]) for name in per], row["rank"])


def _listed_in(log: Path) -> list[str]:
    """The files that a file of Spark's log names, by their names alone: they lie in the folder."""
    version, *lines = log.read_text(encoding="utf-8").splitlines()
    if version != "v1":
        raise ValueError(f"it is of version {version}")
    return [unquote(json.loads(line)["path"].rpartition("/")[2]) for line in lines]


def follow(folder: Path) -> AnswersBoard | None:
    """The board of a pipeline's output; None: the folder is not one."""
    if (folder / "answer.parquet").is_file():
        return AnswersBoard(folder)
    return ChangesBoard(folder) if (folder / LOG).is_dir() else None


def _fixed() -> QueryError:
    return QueryError("these queries stand in a Spark pipeline: change them in its file, and start it again.")
