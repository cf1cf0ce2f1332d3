"""Questions over the answers of a query: its changes, step by step, are the rows of a loop of their own.

An object that enters the source's answer arrives in that loop, one that leaves it is deleted, and all that happens in
one step of the source is one step there. The inner loop knows objects by a number that lasts as long as they are in the
source's answer; ids, times and the other columns are those of the source's answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import Changes
from skyband.engines.output import CHANGES, CLOCKS, OWN
from skyband.query.kinds import Query
from skyband.query.options import Options
from skyband.tables.columns import as_arrow
from skyband.tables.input import Batch
from skyband.tables.push import AT, STEP

Ints = NDArray[np.int64]
OBJECT, OP, ID, TIME = "# object", "# op", "# id", "# time"  # columns of the inner loop, besides AT and STEP


class Over:
    """The queries over the answers of one source, and the inner loop that answers them."""

    def __init__(self, source: str, loop: Any) -> None:
        self.source = source
        self.loop = loop
        self.numbers: dict[int, int] = {}  # of the objects in the source's answer, by their serials there
        self.next = 0

    def check(self, types: dict[str, Any]) -> None:
        """Refuse columns that the queries cannot rank by, before anything is changed; types: of the source's answer."""
        self.loop.examine_whole(Batch(_no_rows(types)))

    def take(self, piece: dict[str, Any], place: int, types: dict[str, Any], inner: bool) -> pa.Table:
        """Let the inner loop take what has changed in the source's answer; returns its changes.

        place: which of the piece's queries the source is; types: of the columns of its answer; inner: it is a question
        over answers itself.
        """
        changes: Changes = piece[CHANGES]
        mine = np.flatnonzero(np.asarray(changes.query) == place)
        net = self.loop.state.options.emit == "batch"
        steps = np.ones(len(mine), np.int64) if net else _steps(changes, mine, piece[CLOCKS])
        last = mine[np.searchsorted(steps, steps, "right") - 1]  # a step is known by its last change
        mine = mine[np.lexsort((changes.serial[mine], changes.diff[mine], steps))]  # what enters, as it arrived
        objects = self._objects(changes, mine)
        known = objects >= 0
        mine, objects, steps, last = mine[known], objects[known], steps[known], last[known]
        here = as_arrow(mine)
        found = {name: piece[name] for name in types if name in piece}
        found |= {"id": piece[ID if inner else "id"], OBJECT: as_arrow(objects)}
        if "time" in types:
            found["time"] = piece[OWN]
        columns = {name: column if name == OBJECT else column.take(here) for name, column in found.items()}
        columns[OP] = pa.array(["insert" if diff > 0 else "delete" for diff in changes.diff[mine]], pa.string())
        columns |= {STEP: as_arrow(steps), AT: piece["at"].take(as_arrow(last))}
        if "time" in types:
            columns[TIME] = piece["time"].take(as_arrow(last))
        whole = {
            field.name: columns[field.name].cast(field.type)
            if field.name in columns
            else pa.nulls(len(mine), field.type)
            for field in _no_rows(types).schema
        }
        table: pa.Table = self.loop.push_whole(Batch(pa.table(whole)), None, False)
        return table

    def _objects(self, changes: Changes, mine: Ints) -> Ints:
        """Numbers of the objects: new for those that enter, forgotten for those that leave.

        -1: it entered before anyone asked over these answers.
        """
        found = np.empty(len(mine), np.int64)
        for i, row in enumerate(mine.tolist()):
            serial = int(changes.serial[row])
            if changes.diff[row] > 0:
                self.numbers[serial] = self.next
                self.next += 1
                found[i] = self.numbers[serial]
            else:
                found[i] = self.numbers.pop(serial, -1)
        return found


def inner_options(outer: Options, source: Query) -> Options:
    """The options of the loop over the answers of a query."""
    kept = {name: name for name in (*visible(outer), *source.per_columns)}
    kept |= {ID: "id"} | ({} if outer.time is None else {OWN: "time"})
    return Options(id=OBJECT, time=None if outer.time is None else TIME, keep=kept, op=OP, emit=outer.emit)


def is_inner(options: Options) -> bool:
    """Whether a loop is over the answers of a query."""
    return options.id == OBJECT


def visible(options: Options) -> list[str]:
    """The kept columns that are the user's."""
    return [name for name in options.kept if not name.startswith("#")]


def shown(table: pa.Table) -> pa.Table:
    """A table of an inner loop with the source's ids and, in answers, its objects' own times."""
    columns = {name: table.column(name) for name in table.column_names}
    columns["id"] = columns.pop(ID)
    own = columns.pop(OWN, None)
    if own is not None and "diff" not in columns:
        columns["time"] = own
    return pa.table({name: columns[name] for name in table.column_names if name in columns})


def _no_rows(types: dict[str, Any]) -> pa.Table:
    """A table of no rows, in the columns that the inner loop reads."""
    ours = {OBJECT: pa.int64(), OP: pa.string(), AT: pa.int64(), STEP: pa.int64()}
    return pa.table({name: pa.nulls(0, type_) for name, type_ in (types | ours | _time(types)).items()})


def _time(types: dict[str, Any]) -> dict[str, Any]:
    return {TIME: types["time"]} if "time" in types else {}


def _steps(changes: Changes, mine: Ints, clocks: Any) -> Ints:
    """The number of the source's step, for each of these changes: an arrival, or all that expires at one instant."""
    if isinstance(clocks, tuple):  # of a question over answers: the steps of its own source
        return np.cumsum(np.diff(clocks[0][mine], prepend=-1) != 0)
    row, instant = changes.row[mine], changes.instant[mine]
    arrival = np.full(len(mine), clocks is None)  # count windows: every step has one
    if clocks is not None and not isinstance(clocks, str) and len(clocks):
        arrival = (row >= 0) & (clocks[np.maximum(row, 0)] == instant)
    new = np.ones(len(mine), np.bool_)
    same = np.where(arrival[1:], row[1:] == row[:-1], instant[1:] == instant[:-1])
    new[1:] = ~(same & (arrival[1:] == arrival[:-1]))
    return np.cumsum(new)
