"""Sources of rows: each stream returns tables of at most so many rows, and never waits for them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from skyband.dashboard.health import text_of
from skyband.dashboard.readers import KAFKA, Lines, Topic
from skyband.dashboard.root import Root
from skyband.datasets.streams import STREAMS, endless
from skyband.errors import QueryError, SkybandError
from skyband.tables.files import ENDINGS, MALFORMED, format_of, only_time, schema, tables
from skyband.tables.lines import Malformed

_DEPTH, _OFFERED, _ENTRIES, _REASONS, _SHOWN = 3, 200, 5_000, 50, 100


class Stream(Protocol):
    title: str
    paced: bool  # rows can be read at any rate; False: they arrive at the rate of their writer
    ended: bool

    @property
    def rejected(self) -> dict[str, int]:
        """The number of lines and files that were left out, by reason."""

    @property
    def columns(self) -> Any:
        """The schema; None: not known yet."""

    def read(self, rows: int) -> Any:
        """The next rows; None: there are none at the moment."""

    def close(self) -> None: ...


class Replay:
    """A file: from the first row to the last."""

    paced = True

    def __init__(self, root: Root, path: Path, title: str, malformed: Malformed | None = None) -> None:
        self.title = title
        self.ended = False
        self.malformed = Malformed() if malformed is None else malformed
        self._path = path
        with self._titled():
            self.columns = schema(path, root.open)
        self._tables = tables(path, malformed=self.malformed, open=root.open)
        self._rest: Any = None

    @property
    def rejected(self) -> dict[str, int]:
        """The number of lines that could not be read, by reason."""
        return {MALFORMED: self.malformed.count} if self.malformed.count else {}

    @contextmanager
    def _titled(self) -> Iterator[None]:
        """Errors with the name that was asked for, instead of a path of this machine."""
        try:
            yield
        except SkybandError as error:
            raise type(error)(str(error).replace(str(self._path), self.title)) from None

    def read(self, rows: int) -> Any:
        if self._rest is None or not self._rest.num_rows:
            with self._titled():
                self._rest = next(self._tables, None)
        if self._rest is None:
            self.ended = True
            return None
        taken, self._rest = self._rest.slice(0, rows), self._rest.slice(rows)
        return taken

    def close(self) -> None:
        self._tables.close()


class Folder:
    """A folder: the files in it, by name, and those that are added; each is read once, when it is complete.

    A file that is being written should have another ending, or a name that begins with a dot or an underscore. A file
    that cannot be read is counted, and the next one follows.
    """

    paced = True

    def __init__(self, root: Root, folder: Path, title: str) -> None:
        self.title, self.root, self.folder = title, root, folder
        self.ended = False
        self.columns: Any = None
        self.malformed = Malformed()
        self._files: dict[str, int] = {}  # that could not be read, by reason
        self._seen: set[str] = set()
        self._replay: Replay | None = None
        self._looked = 0.0
        self._look()

    def _look(self) -> None:
        """Open the next file."""
        try:
            name = min(name for name in os.listdir(self.folder) if name not in self._seen and _offered(Path(name)))
        except ValueError:
            return
        except OSError as error:  # the folder may come back
            self._reject(error)
            return
        self._seen.add(name)
        try:
            path = self.root.within(self.folder / name)
            if path.is_file() and path.stat().st_size:
                self._replay = Replay(self.root, path, self.title, self.malformed)
                self.columns = self._replay.columns
        except Exception as error:  # of the readers of many formats
            self._reject(error)

    def _reject(self, error: Exception) -> None:
        reason = f"cannot be read: {text_of(error)[:200]}"
        if reason not in self._files and len(self._files) >= _REASONS:
            reason = "other files cannot be read"
        self._files[reason] = self._files.get(reason, 0) + 1

    @property
    def rejected(self) -> dict[str, int]:
        """The number of lines and files that could not be read, by reason."""
        return ({MALFORMED: self.malformed.count} if self.malformed.count else {}) | self._files

    def read(self, rows: int) -> Any:
        if self._replay is None and time.monotonic() - self._looked > 0.2:
            self._looked = time.monotonic()
            self._look()
        if self._replay is None:
            return None
        try:
            table = self._replay.read(rows)
        except Exception as error:
            self._reject(error)
            table = None
        if table is None:
            self._replay, self._looked = None, 0.0
        return table

    def close(self) -> None:
        if self._replay is not None:
            self._replay.close()


class Endless:
    """A generator of `skyband datasets`, which never ends."""

    paced = True

    def __init__(self, name: str, seed: int = 0) -> None:
        self.title = f"{name} (made up)"
        self.ended = False
        self.rejected: dict[str, int] = {}
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


def roles_of(given: dict[str, Any], columns: Any) -> dict[str, Any]:
    """The roles of columns, as a Monitor takes them; `time` defaults to the only column of times."""
    roles = {role: given.get(role) for role in ("id", "time")} | {"keep": given.get("keep") or ()}
    roles |= {role: given[role] for role in ("part", "value", "emit") if given.get(role)}
    if columns is None:
        return roles
    if roles["time"] is None:
        roles["time"] = given["time"] = only_time(columns)
    for role in ("id", "time"):
        if roles[role] is not None and roles[role] not in columns.names:
            shown = ", ".join(columns.names[:_SHOWN])
            raise QueryError(f"{role}: the stream has no column {roles[role]!r}. It has: {shown}.")
    return roles


def open_stream(root: Root, given: str, pipe: BinaryIO | None = None, topic: str | None = None) -> Stream:
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
    path = root.find(given)
    if path.is_dir():
        return Folder(root, path, given)
    format_of(Path(path.name))
    return Replay(root, path, given)


def offered(root: Root) -> list[dict[str, str]]:
    """The streams to choose from: files and folders below the root, and generators."""
    found: list[dict[str, str]] = []
    base, left = root.folder, _ENTRIES

    def walk(folder: Path, depth: int) -> None:
        nonlocal left
        try:
            inner = [path for path in root.inside(folder, left) if path.parent == folder]  # not through links
            left -= len(inner) + 1
            files = [path for path in inner if path.is_file() and _offered(path)]
        except OSError:
            return
        if (folder / "answer.parquet").is_file() or (folder / "_spark_metadata").is_dir():
            found.append({"name": folder.relative_to(base).as_posix(), "kind": "answers"})
        elif files and folder != base:
            found.append({"name": folder.relative_to(base).as_posix(), "kind": "folder"})
        if not (folder / "_spark_metadata").is_dir():
            found.extend({"name": path.relative_to(base).as_posix(), "kind": "file"} for path in files)
        for path in inner:
            if depth and path.is_dir() and not path.name.startswith((".", "_")) and len(found) < _OFFERED and left > 0:
                walk(path, depth - 1)

    walk(base, _DEPTH)
    return found[:_OFFERED] + [{"name": name, "kind": "made up"} for name in STREAMS]
