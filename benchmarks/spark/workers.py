"""Python processes below this one: their processor time, and the memory that they take together."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROC = Path("/proc")
_EVERY = 1.0  # seconds: to look at a process takes milliseconds


def processes() -> dict[int, float]:
    """The seconds of processor time that each has used."""
    parents: dict[int, tuple[int, float, bool]] = {}
    for entry in _PROC.glob("[0-9]*"):
        try:
            before, _, after = (entry / "stat").read_text().rpartition(")")
        except OSError:
            continue
        fields = after.split()
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        parents[int(entry.name)] = (int(fields[1]), used, "python" in before)
    below = {os.getpid()}
    while more := {pid for pid, (parent, *_) in parents.items() if parent in below} - below:
        below |= more
    return {pid: parents[pid][1] for pid in below if pid != os.getpid() and parents[pid][2]}


def memory() -> int:
    """Bytes of all together: a page that several share counts once."""
    return sum(map(_share, processes()))


def _share(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


@contextmanager
def watching(found: dict[str, float]) -> Iterator[None]:
    """Note the most memory that they had together at any look, as `workers_bytes`."""
    ended = threading.Event()
    found["workers_bytes"] = float(memory())

    def look() -> None:
        while not ended.wait(_EVERY):
            found["workers_bytes"] = max(found["workers_bytes"], float(memory()))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
