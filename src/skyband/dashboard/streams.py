"""Sources of rows: each stream returns tables of at most so many rows, and never waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from skyband.dashboard.readers import KAFKA, Lines, Topic
from skyband.datasets.streams import STREAMS, endless
from skyband.errors import QueryError
from skyband.tables.files import ENDINGS, MALFORMED, format_of, schema, tables
from skyband.tables.lines import Malformed

_DEPTH, _OFFERED = 3, 200


class Stream(Protocol):
    title: str
    paced: bool  # rows can be read at any rate; False: they arrive at the rate of their writer
    ended: bool

    @property
    def columns(self) -> Any:
        """The schema; None: not known yet."""

    def read(self, rows: int) -> Any:
        """The next rows; None: there are none at the moment."""

    def close(self) -> None: ...


class Replay:
    """A file, or several in order: from the first row to the last."""

    paced = True

    def __init__(self, paths: list[Path], title: str, malformed: Malformed | None = None) -> None:
        self.title = title
        self.ended = False
        self.columns = schema(paths[0])
        self.malformed = Malformed() if malformed is None else malformed
        self._tables: Iterator[Any] = (table for path in paths for table in tables(path, malformed=self.malformed))
        self._rest: Any = None

    @property
    def rejected(self) -> dict[str, int]:
        """The number of lines that could not be read, by reason."""
        return {MALFORMED: self.malformed.count} if self.malformed.count else {}

    def read(self, rows: int) -> Any:
        if self._rest is None or not self._rest.num_rows:
            self._rest = next(self._tables, None)
        if self._rest is None:
            self.ended = True
            return None
        taken, self._rest = self._rest.slice(0, rows), self._rest.slice(rows)
        return taken

    def close(self) -> None:
        self._tables = iter(())


class Folder:
    """A folder: the files in it, by name, and those that are added; each is read once, when it is complete.

    A file that is being written should have another ending, or a name that begins with a dot or an underscore.
    """

    paced = True

    def __init__(self, folder: Path, title: str) -> None:
        self.title, self.folder = title, folder
        self.ended = False
        self.columns: Any = None
        self.malformed = Malformed()
        self._seen: set[str] = set()
        self._replay: Replay | None = None
        self._looked = 0.0
        self._look()

    def _look(self) -> None:
        names = sorted(path.name for path in self.folder.iterdir() if _offered(path) and path.is_file())
        fresh = [name for name in names if name not in self._seen]
        if fresh:
            path = self.folder / fresh[0]
            self._seen.add(fresh[0])
            if path.stat().st_size:
                self._replay = Replay([path], self.title, self.malformed)
                self.columns = self._replay.columns

    @property
    def rejected(self) -> dict[str, int]:
        """The number of lines that could not be read, by reason."""
        return {MALFORMED: self.malformed.count} if self.malformed.count else {}

    def read(self, rows: int) -> Any:
        if self._replay is None and time.monotonic() - self._looked > 0.2:
            self._looked = time.monotonic()
            self._look()
        if self._replay is None:
            return None
        table = self._replay.read(rows)
        if table is None:
            self._replay, self._looked = None, 0.0
        return table

    def close(self) -> None:
        self._replay = None


class Endless:
    """A generator of `skyband datasets`, which never ends."""

    paced = True

    def __init__(self, name: str, seed: int = 0) -> None:
        self.title = f"{name} (made up)"
        self.ended = False
        self.name, self.seed, self.at = name, seed, 0
        self.columns = endless(name, 0, 1, seed=seed).schema

    def read(self, rows: int) -> Any:
        table = endless(self.name, self.at, self.at + rows, seed=self.seed)
        self.at += rows
        return table

    def close(self) -> None:
        """Nothing to close."""


def _offered(path: Path) -> bool:
    return not path.name.startswith((".", "_")) and (
        path.suffix.lower() in ENDINGS or (path.suffix == ".gz" and path.with_suffix("").suffix.lower() in ENDINGS)
    )


def inside(root: Path, path: str) -> Path:
    """A path below the root, or a QueryError."""
    base = root.resolve()
    found = (base / path).resolve()
    if not found.is_relative_to(base):
        raise QueryError(f"{path!r} lies outside of {base.name!r}, the folder that is served. Start with --root.")
    if not found.exists():
        raise QueryError(f"{path!r}: there is no such file or folder in {base.name!r}.")
    return found


def open_stream(root: Path, given: str, pipe: BinaryIO | None = None, topic: str | None = None) -> Stream:
    """The stream of a name: `-` (stdin), the topic, a generator, a file or a folder below the root."""
    if given == "-":
        if pipe is None:
            raise QueryError("stdin is read once, by: skyband serve -")
        return Lines(pipe)
    if given.startswith(KAFKA):
        if given != topic:  # a client must not choose the hosts that this server connects to
            raise QueryError("a topic is named where the server is started: skyband serve kafka://host:9092/topic")
        return Topic(given)
    if given in STREAMS:
        return Endless(given)
    path = inside(root, given)
    if path.is_dir():
        return Folder(path, given)
    format_of(path)
    return Replay([path], given)


def offered(root: Path) -> list[dict[str, str]]:
    """The streams to choose from: files and folders below the root, and generators."""
    found: list[dict[str, str]] = []
    base = root.resolve()

    def walk(folder: Path, depth: int) -> None:
        try:
            inner = sorted(folder.iterdir())
        except OSError:
            return
        files = [path for path in inner if path.is_file() and _offered(path)]
        if (folder / "answer.parquet").is_file() or (folder / "_spark_metadata").is_dir():
            found.append({"name": str(folder.relative_to(base)), "kind": "answers"})
        elif files and folder != base:
            found.append({"name": str(folder.relative_to(base)), "kind": "folder"})
        if not (folder / "_spark_metadata").is_dir():
            found.extend({"name": str(path.relative_to(base)), "kind": "file"} for path in files)
        for path in inner:
            if depth and path.is_dir() and not path.name.startswith((".", "_")) and len(found) < _OFFERED:
                walk(path, depth - 1)

    walk(base, _DEPTH)
    return found[:_OFFERED] + [{"name": name, "kind": "made up"} for name in STREAMS]
