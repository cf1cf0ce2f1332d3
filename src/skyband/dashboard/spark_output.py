"""The output folder of a Spark pipeline, shown like the answers of a Monitor.

The sink upsert of `skyband run` keeps the answer itself; of the sink parquet, which appends changes, the answer is
computed here: the objects that have entered and not left. A file counts once Spark's log of the folder names it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.dashboard import limits
from skyband.dashboard.boards import answer_of
from skyband.dashboard.root import Root, plain_name
from skyband.dashboard.values import listed, plain
from skyband.errors import BatchError, QueryError
from skyband.query.kinds import Query


class AnswersBoard:
    """The folder that `skyband run` writes with the sink upsert: its answer, as it changes."""

    fixed = True

    def __init__(self, folder: Path, root: Root | None = None) -> None:
        self.root = root or Root(folder)
        self.path = folder.resolve() / "answer.parquet"
        self.changed: dict[str, int] = {}
        self.rejected: dict[str, int] = {}  # lines of Spark's log that name no file
        self._bad: set[str] = set()
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
            table = _read(self.root, self.root.within(self.path))
        except (OSError, QueryError) as error:
            raise BatchError(f"{self.path.parent.name}: {self.path.name} cannot be read ({error}).") from None
        if not _fits(table, {"query": _is_text, "rank": pa.types.is_integer, "score": pa.types.is_floating}):
            raise BatchError(f"{self.path.parent.name}: {self.path.name} is not an answer of skyband run.")
        self._table, self._stamp = table, stamp
        for name in listed(table["query"].unique()):
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
        return {"arrivals": None, "late": None, "rejected": dict(self.rejected), "clock": None}

    def summaries(self) -> list[dict[str, Any]]:
        empty = {"kind": "Spark", "algorithm": None, "kept": None, "window": None, "arrivals": None, "late": None}
        return [
            {"name": name, "sql": "answer of a Spark pipeline", **empty, "rejected": None, "changes": n, "groups": None}
            for name, n in self.changed.items()
        ]

    def oversized(self) -> str | None:
        """Why nothing more is read: never here."""
        return None

    def _of(self, name: str) -> Any:
        if name not in self.changed:
            raise QueryError(f"there is no query {name!r} in the answer. There are: {', '.join(self.names)}.")
        table = self._table.filter(pc.equal(self._table["query"].cast(pa.string()), name)).drop_columns(["query"])
        used = [column for column in table.column_names if table[column].null_count < max(table.num_rows, 1)]
        return table.select(used)

    def answer(self, name: str, key: tuple[Any, ...] | None, rows: int) -> dict[str, Any]:
        if key is not None:
            raise QueryError("key=: the answers of a Spark pipeline are given for all groups. Leave it out.")
        return answer_of(self._shown(self._of(name)), rows)

    def _shown(self, table: Any) -> Any:
        return table.drop_columns([column for column in table.column_names if column.startswith("skyband ")])

    def detail(self, name: str, group: int | None) -> dict[str, Any]:
        table = self._of(name)
        return {
            "name": name,
            "group": None,
            "groups": [],
            "per": [],
            "answer": answer_of(self._shown(table), limits.ROWS, limits.CELL),
            "plane": self._plane(table),
        }

    def _plane(self, table: Any) -> dict[str, Any]:
        empty: dict[str, Any] = {"points": [], "rest": [], "span": None, "from": None, "to": None, "descending": True}
        if "time" not in table.column_names or not table.num_rows:
            return empty
        table = table.filter(pc.is_valid(table["time"]))
        times = table["time"].combine_chunks()
        if not len(times) or not (pa.types.is_temporal(times.type) or pa.types.is_integer(times.type)):
            return empty
        stamps = times.cast(pa.int32()) if pa.types.is_date32(times.type) else times
        numbers = np.asarray(stamps.cast(pa.int64()))
        points = zip(numbers, table["score"].to_pylist(), table["rank"].to_pylist(), strict=True)
        last = int(numbers.max())
        first, now = listed(times.take(pa.array([int(numbers.argmin()), int(numbers.argmax())])))
        shown = [[int(stamp) - last, plain(score), rank or 0] for stamp, score, rank in points][: limits.POINTS]
        return empty | {"points": shown, "span": int(last - numbers.min()), "from": first, "to": now}


class ChangesBoard(AnswersBoard):
    """Changes that are appended. The folder does not say which direction is best: ranks are by score, largest first."""

    def __init__(self, folder: Path, root: Root | None = None) -> None:
        self.folder = folder.resolve()
        self._batch, self._files = -1, 0  # the last batch that was read, and the number of files
        self._per: list[str] = []
        self._in: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        super().__init__(folder, root)

    def look(self) -> bool:
        fresh = self._fresh()
        for batch, names in fresh:
            for table in [self._read(name) for name in names]:  # all of a batch, or none
                self._take(table)
            self._batch, self._files = batch, self._files + len(names)
        if fresh or self._table is None:
            self._table = self._ranked()
        return bool(fresh)

    def _fresh(self) -> list[tuple[int, list[str]]]:
        """Batches that were not read yet, and their files. A log file called compact lists all earlier ones too."""
        try:
            found = {int(path.stem): path for path in (self.folder / LOG).iterdir() if _BATCH.fullmatch(path.stem)}
            whole = max((n for n, path in found.items() if path.suffix == ".compact" and n > self._batch), default=-1)
            fresh = [(whole, self._named(found[whole])[self._files :])] if whole >= 0 else []
            later = sorted(n for n in found if n > max(self._batch, whole))
            return fresh + [(n, self._named(found[n])) for n in later[:_AT_ONCE]]
        except (OSError, ValueError, RecursionError) as error:
            raise BatchError(f"{self.folder.name}: Spark's log {LOG} cannot be read ({error}).") from None

    def _named(self, log: Path) -> list[str]:
        """The files that a file of Spark's log names, by their names alone: they lie in the folder."""
        with self.root.open(self.root.within(log)) as file:
            version, *lines = file.read(_LOG_BYTES).decode().splitlines() or [""]
        if version != "v1":
            raise ValueError(f"it is of version {version[:50]}")
        return [name for line in lines if (name := self._file(line)) is not None]

    def _file(self, line: str) -> str | None:
        """The file that a line names; None: it names none of this folder, and is counted."""
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        path = entry.get("path") if isinstance(entry, dict) else None
        name = unquote(path.rpartition("/")[2]) if isinstance(path, str) else ""
        if "/" not in name and plain_name(name):
            return name
        if len(self._bad) < _LINES:
            self._bad.add(line[:200])
        self.rejected[_NO_FILE] = len(self._bad)
        return None

    def _read(self, name: str) -> Any:
        try:
            table = _read(self.root, self.root.within(self.folder / name))
        except (OSError, QueryError) as error:
            raise BatchError(f"{self.folder.name}: {name} cannot be read ({error}).") from None
        numbers = {"score": pa.types.is_floating, "diff": pa.types.is_integer}
        if not _fits(table, {"query": _is_text, "at": lambda type_: True, **numbers}):
            raise BatchError(f"{self.folder.name}: {name} is not a file of changes of skyband run.")
        return table

    def _take(self, table: Any) -> None:
        names = table.column_names
        self._per = names[names.index("query") + 1 : names.index("at")]
        shown = [name for name in names if name not in ("at", "diff", "first")]
        ids = [name for name in ("id", "id_a", "id_b", "rank") if name in names]
        columns = [_values(column) for column in table.columns]
        for row in (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)):
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
        rows = sorted((row for rows in self._in.values() for row in rows), key=lambda row: -float(row["score"]))
        if not rows:
            return pa.table({"query": [], "rank": [], "score": []})
        last: dict[Any, int] = {}
        for row in rows:
            group = tuple(row[name] for name in ("query", *self._per))
            last[group] = row["rank"] = last.get(group, 0) + 1
        try:
            table = pa.Table.from_pylist(sorted(rows, key=_by_group(self._per)))
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise BatchError(f"{self.folder.name}: its files have different columns ({error}).") from None
        begin = ["query", *self._per, "rank"]
        return table.select([*begin, *(name for name in table.column_names if name not in begin)])


LOG = "_spark_metadata"
_NO_FILE, _LINES = "lines of Spark's log that name no file of the folder", 1_000
_BATCH = re.compile(r"[0-9]{1,18}")  # the name of a log file
_AT_ONCE, _LOG_BYTES = 50, 64 * 2**20  # batches; bytes of a log file


def _by_group(per: list[str]) -> Callable[[dict[str, Any]], Any]:
    return lambda row: (row["query"], [str(row[name]) for name in per], row["rank"])


def _read(root: Root, path: Path) -> Any:
    from pyarrow import parquet

    try:
        with root.open(path) as file:
            table = parquet.ParquetFile(file).read()
            if "query" in table.column_names:  # names are compared; other texts are shown whatever they hold
                table.select(["query"]).validate(full=True)
            return table
    except pa.ArrowException as error:
        raise QueryError(str(error)) from None


def _fits(table: Any, wanted: dict[str, Callable[[Any], bool]]) -> bool:
    """Whether a table has these columns, of these types and without nulls (but `at`), and no name twice."""
    names = set(table.column_names)
    return len(names) == table.num_columns and all(
        name in names and fits(table[name].type) and (name == "at" or not table[name].null_count)
        for name, fits in wanted.items()
    )


def _values(column: Any) -> list[Any]:
    """Values that make a column again; texts where Python cannot hold one of them."""
    try:
        found: list[Any] = column.to_pylist()
        return found
    except Exception:  # pyarrow raises errors of many libraries here
        return listed(column)


def _is_text(type_: Any) -> bool:
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner))


def follow(folder: Path, root: Root | None = None) -> AnswersBoard | None:
    """The board of a pipeline's output; None: the folder is not one."""
    if (folder / "answer.parquet").is_file():
        return AnswersBoard(folder, root)
    return ChangesBoard(folder, root) if (folder / LOG).is_dir() else None


def _fixed() -> QueryError:
    return QueryError("these queries run in a Spark pipeline: change them in its file, and start it again.")
