"""Files below one folder, and no others: names are checked, resolved once, and opened without following links.

A name is refused if it is absolute, climbs out, holds a control character, a backslash or a drive, or is a device of
Windows. A link may point to another place below the root. What was resolved is opened one folder after the other,
from the root's own descriptor, and no link is followed on the way: one that was put there since is an error.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from skyband.errors import QueryError

_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*([.:].*)?", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")
_WALK = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")  # not on Windows


def plain_name(name: str) -> bool:
    """Whether a name is one that the server takes, whatever lies there: for one file or for a path with slashes."""
    parts = name.split("/")
    return bool(name) and not (
        not name.isprintable()
        or "\\" in name
        or name.startswith("/")
        or _DRIVE.match(name)
        or ".." in parts
        or len(name) > 1_000
        or any(_DEVICES.fullmatch(part) or (part != "." and part.endswith((" ", "."))) for part in parts)
    )


class Root:
    """The folder that is served."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def find(self, name: str) -> Path:
        """The real path of a name below the root, or a QueryError."""
        if not plain_name(name):
            raise QueryError(
                f"{name[:100]!r} lies outside of {self.folder.name!r}, the folder that is served, or is no plain name. "
                "Use names as GET /api/streams lists them, or start with another --root."
            )
        try:
            found = (self.folder / name).resolve(strict=True)
        except FileNotFoundError:
            raise QueryError(
                f"{name!r}: there is no such file or folder in {self.folder.name!r}. GET /api/streams lists them."
            ) from None
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, no permission, too long
            raise QueryError(f"{name!r} cannot be opened ({text_of(error)}). Choose another stream.") from None
        if not found.is_relative_to(self.folder):
            raise QueryError(
                f"{name!r} is a link that lies outside of {self.folder.name!r}, the folder that is served. "
                "Start with --root."
            )
        return found

    def within(self, path: Path) -> Path:
        """The real path of a path that was put together from a found folder and a name in it."""
        return self.find(path.relative_to(self.folder).as_posix())

    def open(self, path: Path) -> BinaryIO:
        """Open a regular file that was found, without following any link."""
        try:
            opened = self._descriptor(path)
        except OSError as error:
            raise QueryError(f"{path.name!r} cannot be opened ({text_of(error)}). Choose it again.") from None
        if not stat.S_ISREG(os.fstat(opened).st_mode):  # a pipe or a device would be waited for
            os.close(opened)
            raise QueryError(f"{path.name!r} is no file. Choose a file or a folder.")
        return os.fdopen(opened, "rb")

    def _descriptor(self, path: Path) -> int:
        flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        if not _WALK:
            if path.resolve(strict=True) != path:
                raise OSError("it has become a link")
            return os.open(path, flags)
        *folders, name = path.relative_to(self.folder).parts
        at = os.open(self.folder, flags | os.O_DIRECTORY)
        try:
            for folder in folders:
                inner = os.open(folder, flags | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = inner
            return os.open(name, flags | os.O_NOFOLLOW, dir_fd=at)
        finally:
            os.close(at)

    def inside(self, folder: Path, most: int) -> Iterator[Path]:
        """The real paths of the first entries of a folder, by name, without those that lead outside."""
        for name in sorted(os.listdir(folder))[:most]:
            with suppress(QueryError):
                yield self.within(folder / name)


def text_of(error: Exception) -> str:
    """An error of the system in its own words, without the path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
