"""The answers that a Spark pipeline writes (the sink upsert of `skyband run`), shown like those of a Monitor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.dashboard import limits
from skyband.dashboard.boards import plain, rows_of
from skyband.errors import BatchError, QueryError
from skyband.query import Query


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
        """Is there a newer answer?"""
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
            raise QueryError(f"no query called {name!r} is in the answer. There are: {', '.join(self.names)}.")
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


def _fixed() -> QueryError:
    return QueryError("these queries stand in a Spark pipeline: change them in its file, and start it again.")
