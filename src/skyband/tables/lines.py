"""Lines of text as blocks of bytes, and the tally of those that cannot be read: one bad line never stops a stream.

A line is at most `LONGEST` bytes long; a longer one is passed over and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

LONGEST = 1 << 20  # bytes of a line
BLOCK = 1 << 20  # bytes that are read at once
BROKEN = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, pa.ArrowKeyError)
NEWLINE = ord("\n")
_NAMED = 5  # malformed lines that are named
Labels = Sequence[int | str]  # of lines: their numbers, or names


class Malformed:
    """Lines that could not be read: how many, and what is wrong with the first few.

    say: called with the description of each of these, as soon as it is known.
    """

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self.count = 0
        self.first: list[str] = []
        self._say = say
        self._lock = Lock()  # a thread that waits for lines adds, too

    def add(self, label: int | str, why: str) -> None:
        what = f"line {label}: {why}" if isinstance(label, int) else f"{label}: {why}"
        with self._lock:
            self.count += 1
            named = self.count <= _NAMED
            self.first += [what] if named else []
        if named and self._say is not None:
            self._say(what)

    def __str__(self) -> str:
        more = self.count - len(self.first)
        return "; ".join([*self.first, *([f"and {more:,} more"] if more else [])])


def blocks(read: Callable[[int], bytes], malformed: Malformed) -> Iterator[tuple[bytes, range]]:
    """Whole lines, as they can be read: bytes that end with a newline, and the numbers of the lines, from 1."""
    number, rest, skipping = 1, [], False  # type: tuple[int, list[bytes], bool]
    while piece := read(BLOCK):
        end = piece.rfind(b"\n") + 1
        if end:
            block = b"".join([*rest, memoryview(piece)[:end]])
            piece, rest = piece[end:], []
            if skipping:
                malformed.add(number, f"longer than {LONGEST:,} bytes")
                number, skipping, block = number + 1, False, block.partition(b"\n")[2]
            numbers = range(number, number + np.count_nonzero(bytes_of(block) == NEWLINE))
            if numbers:
                yield block, numbers
            number = numbers.stop
        if piece and not skipping:
            rest.append(piece)
            if sum(map(len, rest)) > LONGEST:
                rest, skipping = [], True
    if skipping:
        malformed.add(number, f"longer than {LONGEST:,} bytes")
    elif rest:
        yield b"".join([*rest, b"\n"]), range(number, number + 1)


def plain_lines(block: bytes, numbers: range) -> bytes:
    """Without the mark that some programs write before the first line, and with ends of lines as Unix has them."""
    block = block.removeprefix(b"\xef\xbb\xbf") if numbers.start == 1 else block
    return block.replace(b"\r\n", b"\n") if b"\r" in block else block


def bytes_of(block: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(block, np.uint8)


class LineParser:
    """Blocks of lines to tables with one schema: the columns of the first lines, with the types of their first values.

    columns: the schema so far (None: nothing was read yet). Integers may become floats later, and a column that held
    only nulls gets its type with its first value.
    """

    def __init__(self, malformed: Malformed) -> None:
        self.malformed = malformed
        self.columns: Any = None

    def table(self, block: bytes, labels: Labels) -> Any:
        """The rows of whole lines, one label each; None: there are none."""
        if self._is_safe(block, len(labels)):
            try:
                return self._attempt(block, labels)
            except BROKEN:
                pass
        return self._line_by_line(block, labels)

    def _is_safe(self, block: bytes, lines: int) -> bool:
        """Whether Arrow may see all lines at once."""
        return is_utf8(block)

    def _line_by_line(self, block: bytes, labels: Labels) -> Any:
        """As `table`, where some lines are malformed."""
        raise NotImplementedError

    def _split(self, block: bytes, labels: Labels) -> tuple[list[bytes], list[int | str]]:
        """The lines that are text and not blank, with their labels."""
        lines, kept = [], []
        for line, label in zip(block.split(b"\n"), labels, strict=False):
            if not line.strip():
                continue
            if is_utf8(line):
                lines.append(line.rstrip(b"\r"))
                kept.append(label)
            else:
                self.malformed.add(label, "not UTF-8")
        return lines, kept

    def _attempt(self, block: bytes, labels: Labels, *, careful: bool = False) -> Any:
        """As `table`, but what Arrow refuses is its exception, and nothing has changed.

        careful: find bad values without an exception for each, where that is slower.
        """
        raise NotImplementedError

    def _fitting(self, lines: list[bytes], labels: Labels) -> list[Any]:
        """The tables of the lines that Arrow takes: all at once, or by halves, so that a bad line costs log n tries."""
        if not lines:
            return []
        try:
            table = self._attempt(b"\n".join(lines) + b"\n", labels, careful=True)
            return [] if table is None else [table]
        except BROKEN as error:
            if len(lines) == 1:
                self.malformed.add(labels[0], str(error).partition("\n")[0][:200])
                return []
        half = len(lines) // 2
        return self._fitting(lines[:half], labels[:half]) + self._fitting(lines[half:], labels[half:])


def is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def joined(tables: list[Any]) -> Any:
    """One table of several with the same columns, whose types may have become wider on the way; None: of none."""
    return pa.concat_tables(tables, promote_options="permissive") if tables else None
