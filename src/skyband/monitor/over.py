"""Questions over the answers of a query: its changes, step by step, are the rows of a loop of their own.

An object that enters the source's answer arrives in that loop, one that leaves it is deleted, and one that stays with
another score or other columns is replaced; all that happens in one step of the source is one step there. The inner loop
knows objects by a number that lasts as long as they are in the source's answer, and says when they entered it.

Cost: O(1) in Python for each change of the source's answer, besides what the engines of the inner loop do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.output import CHANGES, CLOCKS
from skyband.query.kinds import Query
from skyband.query.options import ID, OBJECT, OWN, Options
from skyband.tables.columns import KeptColumns, as_arrow, bits_of, key_bits, valid_of
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import AT, STEP

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
FEWEST = 1024  # members that are gone before it is worth the while to look for them
OP, TIME = "# op", "# time"  # columns of the inner loop, besides those of `Options` and `Push`


@dataclass(frozen=True)
class Reported:
    """Changes that one engine has reported, for the source or for some of its subscriptions."""

    piece: dict[str, Any]
    rows: Ints  # of the piece: those that are the source's
    entries: Ints  # of each of these rows, which subscription it is of; 0: the source is a plain query
    subscribers: Any = None  # and the id of its subscriber

    def column(self, name: str, type_: Any) -> Any:
        """A column of the source's answer, for these rows."""
        column = self.subscribers if name == "subscriber" else self.piece.get(OWN if name == "time" else name)
        if column is None:
            return pa.nulls(len(self.rows), type_)
        mine = column if name == "subscriber" else column.take(as_arrow(self.rows))
        return mine if mine.type == type_ or pa.types.is_null(type_) else mine.cast(type_)

    @property
    def ages(self) -> Ints:
        """When objects came to the source: of a query over answers, when they entered these."""
        changes = self.piece[CHANGES]
        inner = isinstance(self.piece[CLOCKS], tuple) and changes.object is None
        ages: Ints = (changes.stamp if inner else changes.serial)[self.rows]
        return ages


class Over:
    """The queries over the answers of one source, and the inner loop that answers them."""

    def __init__(self, source: str, loop: Any) -> None:
        self.source = source
        self.loop = loop
        self.next = 0  # object
        self.version = 0  # of an object, as it enters or moves
        self.members: dict[tuple[int, int], tuple[int, int]] = {}  # subscription and key -> object and version
        self.kept = KeptColumns()  # by version: members of the source's answer as the inner loop knows them
        self.names: Groups | None = None  # of a source whose objects are groups of rows: what their keys stand for

    def check(self, types: dict[str, Any]) -> None:
        """Refuse columns that the queries cannot rank by, before anything is changed; types: of the source's answer."""
        self.loop.examine_whole(Batch(no_rows(types)))

    def take(self, reported: list[Reported], types: dict[str, Any], per: tuple[str, ...]) -> pa.Table:
        """Let the inner loop take what has changed in the source's answer; returns its changes.

        types: of the columns of its answer; per: which of them tell its groups apart.
        """
        net = self.loop.state.options.emit == "batch"
        steps = _steps(reported, net=net)
        diff = np.concatenate([one.piece[CHANGES].diff[one.rows] for one in reported])
        if (diff < 0).all():  # the source may have been replaced by a query whose answers have other columns
            types = {name: column.type for name, column in self.kept.columns.items()} or types
        ages = np.concatenate([one.ages for one in reported])
        entries = np.concatenate([one.entries for one in reported])
        order = np.lexsort((entries, ages, diff > 0, steps))  # what enters in one step, as it arrived there
        dated = {AT: pa.concat_arrays([one.piece["at"].take(as_arrow(one.rows)) for one in reported])}
        if "time" in types:
            dated[TIME] = pa.concat_arrays([one.piece["time"].take(as_arrow(one.rows)) for one in reported])
        said = np.arange(len(order))  # the places in which the source reports them
        if net or reported[0].subscribers is not None:  # in no order: a step has the largest number of its changes
            said[np.lexsort([bits_of(column) for column in reversed(dated.values())])] = np.arange(len(order))
        diff, steps, ages, entries, said = diff[order], steps[order], ages[order], entries[order], said[order]
        here = as_arrow(order)
        fresh = {
            name: pa.concat_arrays([one.column(name, type_) for one in reported]).take(here)
            for name, type_ in types.items()
        }
        types = {name: column.type for name, column in fresh.items()}  # of a source that is replaced: as they were
        self._know(types)
        groups = reported[0].piece[CHANGES].object is not None
        keys = self._keys([fresh[name] for name in (*per, "id")]) if groups else ages
        objects, old = self._follow(diff, keys, entries)
        taken = np.flatnonzero(objects >= 0)
        taken = taken[(diff[taken] != 0) | self._moved(fresh, taken, old)]
        rows = np.repeat(taken, 1 + (diff[taken] == 0))  # what moves is deleted and arrives again
        again = np.append(False, rows[1:] == rows[:-1])
        arrives = (diff[rows] > 0) | again
        versions = np.where(arrives, self.version + rows, old[rows])
        last = np.zeros(int(steps.max(initial=0)) + 1, np.int64)  # a step is known by its last change
        for_last = taken[np.argsort(said[taken])]
        last[steps[for_last]] = for_last
        moments = as_arrow(order[last[steps[rows]]])
        columns = {name: self.kept.read(name, versions, column, self.version) for name, column in fresh.items()}
        columns |= {OBJECT: as_arrow(objects[rows]), STEP: as_arrow(steps[rows])}
        columns[OP] = pa.array(np.where(arrives, "insert", "delete").tolist(), pa.string())
        columns |= {name: column.take(moments) for name, column in dated.items()}
        ours = no_rows(types).schema
        table: pa.Table = self.loop.push_whole(
            Batch(pa.table({field.name: columns[field.name].cast(field.type) for field in ours})), None, False
        )
        self._keep(fresh, np.flatnonzero((diff >= 0) & (objects >= 0)), len(diff))
        return table

    def _follow(self, diff: Any, keys: Ints, entries: Ints) -> tuple[Ints, Ints]:
        """The objects of changes, new for those that enter, and the versions that they had before (-1: none).

        Objects that entered before anyone asked over these answers are -1.
        """
        objects, old = np.full(len(diff), -1), np.full(len(diff), -1)
        for i, (way, *member) in enumerate(zip(diff.tolist(), entries.tolist(), keys.tolist(), strict=True)):
            key = (member[0], member[1])
            if way > 0:
                objects[i] = self.next
                self.next += 1
            elif key in self.members:
                objects[i], old[i] = self.members[key]
            else:
                continue
            if way < 0:
                del self.members[key]
            else:
                self.members[key] = (int(objects[i]), self.version + i)
        return objects, old

    def _know(self, types: dict[str, Any]) -> None:
        """Keep these columns of members; those that the source's answers did not have are null."""
        kept = self.kept
        if not len(kept) or {name: column.type for name, column in kept.columns.items()} == types:
            return
        found, serials = {}, kept.serials.copy()
        for name, type_ in types.items():
            column = kept.read(name, serials) if name in kept.columns else pa.nulls(len(serials), type_)
            alike = column.type == type_ or pa.types.is_null(column.type)
            found[name] = column.cast(type_) if alike else pa.nulls(len(serials), type_)
        self.kept = KeptColumns()
        self.kept.add(serials, found)

    def renumber(self, old: Ints) -> None:
        """Know subscriptions by other numbers; old: by the new one, the one before."""
        new = {before: now for now, before in enumerate(old.tolist())}
        self.members = {(new[entry], key): known for (entry, key), known in self.members.items()}

    def _keys(self, columns: list[Any]) -> Ints:
        """Numbers for objects that are known by these values."""
        if self.names is None:
            self.names = Groups(tuple(map(str, range(len(columns)))))
        return self.names.codes(columns, len(columns[0]))

    def _moved(self, fresh: dict[str, Any], rows: Ints, old: Ints) -> Bools:
        """Whether these members have other columns than before."""
        moved = old[rows] < 0
        there = np.flatnonzero(~moved)
        for column, name in ((column, name) for name, column in fresh.items() if len(there)):
            before = self.kept.read(name, old[rows[there]], column, self.version)
            moved[there] |= _differ(before, column.take(as_arrow(rows[there])))
        return moved

    def _keep(self, fresh: dict[str, Any], arrived: Ints, size: int) -> None:
        """Keep the columns of what has arrived; those of members that are gone are swept out once they are many."""
        here = as_arrow(arrived)
        self.kept.add(self.version + arrived, {name: column.take(here) for name, column in fresh.items()})
        self.version += size
        self.loop.state.entered = self.next
        if not self.members:
            self.kept = KeptColumns()
        elif len(self.kept) > FEWEST + 2 * len(self.members):
            self.kept.sweep(np.array([version for _, version in self.members.values()], np.int64))
        if self.names is not None and self.names.total > FEWEST + 2 * len(self.members):
            self._rename()

    def _rename(self) -> None:
        """Give numbers to the objects of members only."""
        assert self.names is not None
        members = list(self.members.items())
        codes = np.array([key for (_, key), _ in members], np.int64)
        columns = [column.take(codes) for column in self.names.columns]
        self.names = None
        keys = self._keys(columns).tolist() if members else []
        self.members = {(one[0][0], key): one[1] for one, key in zip(members, keys, strict=True)}

    # --- snapshots

    def described(self) -> tuple[dict[str, Any], pa.Table]:
        """What a snapshot keeps besides the inner loop: facts, and the members with their columns."""
        versions = np.array([version for _, version in self.members.values()], np.int64)
        order = np.argsort(versions)
        columns = {name: self.kept.read(name, versions[order]) for name in self.kept.columns}
        members = [[*member, *known] for member, known in self.members.items()]
        facts = {"next": self.next, "version": self.version, "named": self.names is not None, "members": members}
        return facts, pa.table({"# version": as_arrow(versions[order]), **columns})

    def restore(self, facts: dict[str, Any], table: pa.Table, per: tuple[str, ...]) -> bool:
        """Take what `described` returned; returns whether that fits together."""
        from skyband.tables.columns import plain

        columns = {name: plain(table.column(name)) for name in table.column_names}
        versions = np.asarray(columns.pop("# version").cast(pa.int64()))
        self.next, self.version = facts["next"], facts["version"]
        self.members = {(entry, key): (object, version) for entry, key, object, version in facts["members"]}
        numbers = [number for member, known in self.members.items() for number in (*member, *known)]
        fit = all(isinstance(one, int) and 0 <= one < 2**62 for one in (self.next, self.version, *numbers))
        known = list(self.members.values())
        fit = fit and len({object for object, _ in known}) == len(known) == len(facts["members"])
        fit = fit and all(object < self.next and version < self.version for object, version in known)
        if not fit or sorted(version for _, version in known) != versions.tolist():
            return False
        self.kept.add(versions, columns)
        self.loop.state.entered = self.next
        if facts["named"]:
            members = sorted(self.members.items(), key=lambda one: one[1][1])
            keys = self._keys([columns[name] for name in (*per, "id")]).tolist() if members else []
            self.members = {(one[0][0], key): one[1] for one, key in zip(members, keys, strict=True)}
        return len(self.members) == len(known)


def inner_options(outer: Options, source: Query) -> Options:
    """The options of the loop over the answers of a query."""
    kept = {name: name for name in (*outer.kept, *source.per_columns)}
    kept |= {ID: "id"} | ({} if outer.time is None else {OWN: "time"})
    return Options(id=OBJECT, time=None if outer.time is None else TIME, keep=kept, op=OP, emit=outer.emit)


def no_rows(types: dict[str, Any]) -> pa.Table:
    """A table of no rows, in the columns that the inner loop reads."""
    ours = {OBJECT: pa.int64(), OP: pa.string(), AT: pa.int64(), STEP: pa.int64()}
    ours |= {TIME: types["time"]} if "time" in types else {}
    return pa.table({name: pa.nulls(0, type_) for name, type_ in (types | ours).items()})


def _steps(reported: list[Reported], *, net: bool) -> Ints:
    """The number of the source's step, for each change: an arrival, or all that expires at one instant."""
    if net:
        return np.ones(sum(len(one.rows) for one in reported), np.int64)
    both = [_moments(one) for one in reported]
    places, instants = (np.concatenate(parts) for parts in zip(*both, strict=True))
    order = np.lexsort((instants, places))
    new = (np.diff(places[order], prepend=-1) != 0) | (np.diff(instants[order], prepend=0) != 0)
    steps = np.empty(len(order), np.int64)
    steps[order] = np.cumsum(new)
    return steps


def _moments(one: Reported) -> tuple[Ints, Ints]:
    """Where a change is among the rows of its push, and when: expiries are before the rows of their instant."""
    changes, clocks = one.piece[CHANGES], one.piece[CLOCKS]
    none = np.zeros(len(one.rows), np.int64)
    if isinstance(clocks, tuple):  # of a question over answers: the steps of its own source, or at rest
        return clocks[0][one.rows], none
    row, instant = changes.row[one.rows], changes.instant[one.rows]
    if clocks is None:  # count windows, and objects that are deleted: every step has a row
        return 2 * row + 1, none
    if isinstance(clocks, str) or not len(clocks):
        return none, instant
    arrival = (row >= 0) & (clocks[np.maximum(row, 0)] == instant)
    early = 2 * np.searchsorted(clocks, instant, "left")
    return np.where(arrival, 2 * row + 1, early), np.where(arrival, 0, instant)


def _differ(one: Any, other: Any) -> Bools:
    """Where two columns of one type differ; null equals null, and NaN equals NaN."""
    bits = key_bits(one)
    if bits is None:
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.array([x != y for x, y in pairs], np.bool_)
    valid, there = valid_of(one), valid_of(other)
    none = np.ones(len(one), np.bool_)
    valid, there = none if valid is None else valid, none if there is None else there
    return np.asarray((valid != there) | (valid & (bits != key_bits(other))), np.bool_)
