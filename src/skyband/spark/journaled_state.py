"""The state of a query set with a journal, in one shard: found where it is cheapest, and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skyband.monitor.archive import unpack
from skyband.monitor.state import State
from skyband.spark import loans
from skyband.spark.compression import plain_bytes
from skyband.spark.directory import Directory
from skyband.spark.forget import SetLoop
from skyband.spark.journal import FACTS, Journal, Left, Step, leave, new_version, take_again
from skyband.spark.plan import QuerySet

if TYPE_CHECKING:
    from skyband.spark.shard import Cells


@dataclass(frozen=True, eq=False)
class Borrowed:
    """In the place of a loop that is in another worker."""

    query_set: QuerySet


@dataclass
class JournaledState:
    """What a trigger does with the state of a query set."""

    query_set: QuerySet
    journal: Journal
    shard: int
    number: int  # in the keys of cells
    cells: Cells
    forget: str | int | None
    revive: Callable[[dict[str, Any], dict[str, Any], list[bytes]], State]
    summary: dict[str, Any] = field(default_factory=dict)  # of what has been written

    def _read(self, cell: int) -> bytes:
        return plain_bytes(self.cells.getValue((self.number, cell))[0])

    # --- where the loop is

    def resume(self) -> tuple[SetLoop, int]:
        """The loop as the last trigger left it, and how many triggers it had to take again."""
        kept = loans.worker.take_away(loans.place_of(self.shard, self.number))
        missed = None if kept is None else self.journal.since(kept.version)
        if kept is None or missed is None:
            return self.read_again(self._read)
        self._take_all(kept.loop, missed, self._read)
        return kept.loop, len(missed)

    def read_again(self, read: Callable[[int], bytes]) -> tuple[SetLoop, int]:
        """The loop from the stored copy, and how many triggers have come since."""
        copied = [read(0)] if self.journal.has_cell else []
        loop = SetLoop.of(self.revive(*unpack(read(FACTS)), copied), self.query_set, self.forget)
        since = self.journal.since(self.journal.copy)
        assert since is not None, "the copy is listed"
        self._take_all(loop, since, read)
        return loop, len(since)

    @staticmethod
    def _take_all(loop: SetLoop, steps: list[Step], read: Callable[[int], bytes]) -> None:
        for step in steps:
            assert step.cell is not None, "only the first of a list is not stored"
            take_again(loop, read(step.cell))

    def borrow(self, step: bytes, directory: Directory, *, whole: bool) -> list[pa.Table] | None:
        """Let the worker that has the loop take a step, and write what it leaves; None: it is here, or nowhere."""
        place = loans.place_of(self.shard, self.number)
        if loans.worker.version(place) == self.journal.version:
            return None
        version, (alone, copies) = new_version(), self.journal.needs(len(step), 0)
        found = loans.borrow(self.journal.version, version, step, copies=copies, whole=whole)
        if found is None:
            return None
        loans.worker.take_away(place)  # an older one
        self._write(directory, None if alone else step, found[1], version)
        return found[0]

    # --- what is written

    def enter(self, loop: SetLoop, directory: Directory, step: bytes | None, again: int) -> None:
        """Store what a trigger took, or the state, or both. step: None: only the state has it."""
        alone, copies = (True, True) if step is None else self.journal.needs(len(step), again)
        self._write(directory, None if alone else step, leave(loop, copies=copies), new_version())

    def _write(self, directory: Directory, step: bytes | None, left: Left, version: str) -> None:
        gone = []
        if step is None:
            gone += self.journal.begin(version)
        else:
            self.cells.updateValue((self.number, self.journal.add(version, len(step))), (step,))
        directory.due[0], directory.groups[0], directory.objects[0] = left.due, left.groups, left.objects
        if left.copy is not None:
            facts, cell = left.copy
            self.cells.updateValue((self.number, FACTS), (facts,))
            self.cells.updateValue((self.number, 0), (cell,))
            directory.bytes[0] = left.bytes
            gone += self.journal.copied(left.bytes, len(facts))
        for old in gone:
            self.cells.removeKey((self.number, old))
        self.summary = left.summary

    def keep(self, loop: SetLoop) -> None:
        """Let this worker go on with the loop in the next trigger. Only a task that has stored everything may do so."""
        if loans.is_followed():
            loans.worker.keep(loans.place_of(self.shard, self.number), self.journal.version, loop)
