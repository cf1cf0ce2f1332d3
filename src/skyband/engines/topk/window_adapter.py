"""Standing queries whose engine keeps the whole window.

They come and go over objects that are there, and objects may be deleted by their ids.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter, length_of, spec_of
from skyband.engines.contract import Arrivals, Changes, Scorings
from skyband.engines.registry import choose, row_of
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.scorings import box_of, own_score, plain_scoring, scorings_of, window_key, with_boxes
from skyband.query.kinds import Above, Query, TopK
from skyband.query.options import Options
from skyband.query.windows import UntilDeleted
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated

if TYPE_CHECKING:
    from skyband.engines.topk.window_engine import Windowed

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class WindowAdapter(TopKAdapter):
    """One engine that keeps a window, and the queries that look at it."""

    keeps_window = True

    def __init__(
        self,
        query: TopK | Above,
        groups: Groups,
        options: Options,
        counts: Ints,
        *,
        algorithm: str | None = None,
        scored: bool = False,
        born: int = 0,
    ) -> None:
        super().__init__(query, groups, options, counts, family=True)
        self.algorithm = algorithm or choose(query)
        self.born = born  # the first row that it saw
        plain = plain_scoring(query.by)
        self.scored = scored or plain is None  # objects are kept by their score, since they differ in who has one
        if plain is not None and not self.scored:
            self.by, self.where = plain, box_of(query, plain)[1]
        self.ids = Groups(("id",)) if isinstance(query.window, UntilDeleted) else None

    @property
    def machine(self) -> Windowed:
        return cast("Windowed", self.engine)

    @property
    def share(self) -> tuple[Any, ...]:
        """Homes with equal shares can be one."""
        own = (id(self.by) if callable(self.by) else self.by, self.where) if self.scored else ()  # one score serves one
        return (self.scored, self.born, own, *window_key(self.example, self.algorithm))

    def scorings(self) -> Scorings:
        return self._scorings(list(self.queries.values()))

    def _scorings(self, queries: list[TopK | Above]) -> Scorings:
        return own_score(len(queries)) if self.scored else with_boxes(scorings_of(queries), queries)

    def validate(self, batch: Batch, cache: dict[Any, Scored], bad_times: dict[str, Bools | None]) -> Validated:
        if self.ids is not None and self.options.id is not None:
            null = batch.array(self.options.id).is_null()
            bad_times = {**bad_times, "id is null": np.asarray(null, np.bool_) if batch.rows else None}
        return super().validate(batch, cache, bad_times)

    def needed(
        self, validated: Validated, codes: Ints, total: int, times: Ints, clocks: Ints, unit: int | None
    ) -> Bools:
        (query,) = self.queries.values()
        if not isinstance(query, Above):
            return super().needed(validated, codes, total, times, clocks, unit)
        above: Bools = validated.accepted & (validated.scored.key > query.threshold)
        return above if validated.eligible is None else above & validated.eligible

    def run(self, arrivals: Arrivals, push: Push) -> Changes:
        names = None
        if self.ids is not None and len(arrivals.rows):
            column = push.columns["id"]
            whole = len(arrivals.rows) == len(column)
            names = self.ids.codes([column if whole else column.take(arrivals.rows)], len(arrivals.rows))
        attributes = (arrivals.keys,) if self.scored else arrivals.attributes
        deletes = None if push.deletes is None else push.deletes[arrivals.rows]
        changes = self.machine.take(replace(arrivals, attributes=attributes, names=names, deletes=deletes))
        if self.machine.unknown:
            self.rejected["unknown id"] = self.rejected.get("unknown id", 0) + len(self.machine.unknown)
        return changes

    def take(self, push: Push, validated: Validated, codes: Ints) -> tuple[dict[str, Any], Bools, Bools]:
        taken = super().take(push, validated, codes)
        if self.ids is not None:
            self.tidy()
        return taken

    # --- deletions

    def delete(self, ids: Any, push: Push) -> tuple[dict[str, Any], NDArray[np.bool_]]:
        """Delete objects by id, one step each; returns the changes as columns, and which ids were known."""
        assert self.ids is not None
        known = np.zeros(len(ids), np.bool_)
        if self.engine is None:
            return {}, known
        if self.ids.columns:
            codes = self.ids.codes([ids.cast(self.ids.columns[0].type)], len(ids))
            changes, known = self.machine.delete(codes)
            piece = self.output.changes_at_rest(changes, push.clock, deleted=True)
            self.tidy()
            return piece, known
        return {}, known

    def tidy(self) -> None:
        """Forget the ids of objects that are gone, once they are many."""
        assert self.ids is not None
        if self.ids.total > 1024 + 4 * int(self.machine.kept.sum()):
            self.name_again()

    def after_restore(self) -> None:
        self.name_again()

    def name_again(self) -> None:
        """Codes for the ids of the objects that there are."""
        if self.ids is None or self.engine is None:
            return
        self.ids = Groups(("id",))
        serials, sizes = self.machine.serials()
        column = self.kept_columns.read("id", serials)
        codes = self.ids.codes([column], len(serials)) if len(serials) else serials
        self.machine.rename(serials, codes, sizes, self.ids.total)

    # --- queries come and go

    def leave(self, name: str, unit: int | None, clock: int) -> None:
        place = self.place(name)
        del self.queries[name]
        if self.engine is not None:
            self.machine.drop_lane(place)
            self.numbering.of_query = np.zeros(len(self.queries), np.int64)

    def join(
        self, name: str, query: TopK | Above, unit: int | None, clock: int, told: dict[int, Ints], was: Any = None
    ) -> dict[str, Any]:
        """One query more, answered at once; returns how its answer differs from what it was, as columns.

        told: by group, the objects that were told under its name.
        """
        if name not in self.queries:
            self.queries[name] = query
            self.machine.add_lane(spec_of(query, unit), self._scorings([query]))
        self.numbering.of_query = np.zeros(len(self.queries), np.int64)
        place = len(self.queries) - 1
        changes = self.machine.search(place, told, self.numbering.now(clock))
        if was is not None:
            changes = _difference(changes, was, place)
        changes = replace(changes, instant=np.full(len(changes.query), clock))
        return self.output.changes_at_rest(changes, clock)

    def offshoot(self, name: str, query: TopK | Above, algorithm: str, unit: int | None, clock: int) -> WindowAdapter:
        """An adapter over the part of this window that the query sees."""
        adapter = WindowAdapter(
            query,
            self.groups,
            self.options,
            self.numbering.counts[0],
            algorithm=algorithm,
            scored=self.scored,
            born=self.born,
        )
        adapter.queries = {name: query}
        adapter.start(unit)
        adapter.go_on_from(self)
        columns = [0] if self.scored else [self.by.columns.index(name) for name in adapter.by.columns]
        adapter.machine.take_over(self.machine, self.numbering.now(clock), columns)
        adapter.name_again()
        return adapter

    def told_of(self, name: str) -> dict[int, Ints]:
        """By group, the valid objects that were told of under this name."""
        return {} if self.engine is None else self.machine.told_of(self.place(name))

    def can_lend(self, query: TopK | Above, unit: int | None) -> bool:
        """Does the window that is kept hold all that the query would look at?"""
        if self.engine is None or self.groups.names != query.per_columns or self.timed != query.window.timed:
            return False
        mine, theirs = self.example.window, query.window
        if isinstance(mine, UntilDeleted) != isinstance(theirs, UntilDeleted):
            return False
        if length_of(query, unit) > self.machine.length:
            return False
        plain = plain_scoring(query.by)
        if self.scored or plain is None:
            same = query.by is self.example.by or query.by == self.example.by
            return self.scored and same and query.where == self.where and query.descending == self.descending
        return set(plain.columns) == set(self.by.columns) and box_of(query, plain)[1] == self.where

    def split(self, unit: int | None, clock: int) -> dict[str, Adapter]:
        """Each query with a window of its own, kept by its score: who has one may differ from now on."""
        adapters: dict[str, Adapter] = {}
        for place, (name, query) in enumerate(self.queries.items()):
            adapter = WindowAdapter(
                query,
                self.groups,
                self.options,
                self.numbering.counts[0],
                algorithm=self.algorithm,
                scored=True,
                born=self.born,
            )
            adapter.queries = {name: query}
            adapters[name] = adapter
            if self.engine is not None:
                adapter.start(unit)
                adapter.go_on_from(self)
                adapter.machine.inherit(self.machine, place)
                adapter.name_again()
        return adapters

    @property
    def is_fresh(self) -> bool:
        return False

    def can_serve(self, query: Query, unit: int | None) -> bool:
        return False


def is_related(one: TopK | Above, other: TopK | Above) -> bool:
    """Do they ask the same, but for how much?"""
    if type(one) is not type(other) or one.by != other.by or one.where != other.where:
        return False
    same = (one.descending, one.per_columns, one.window.timed, type(one.window))
    return same == (other.descending, other.per_columns, other.window.timed, type(other.window))


def donor_of(
    adapters: list[Adapter], old: WindowAdapter, name: str, query: TopK | Above, unit: int | None
) -> WindowAdapter | None:
    """Whose window a query that replaces `name` can go on with: it asks for no more than its relatives do."""
    family = [
        (adapter, other)
        for adapter in adapters
        if isinstance(adapter, WindowAdapter)
        and adapter.born == old.born
        and adapter.scored == old.scored
        and adapter.engine is not None
        for other in adapter.queries.values()
        if is_related(other, query)
    ]
    asked = [spec_of(other, unit) for _, other in family]
    wanted = spec_of(query, unit)
    if not is_related(old.queries[name], query) or not asked:
        return None
    if query.algorithm != "auto" and not row_of(query).keeps_window:
        return None
    lowest = min((-np.inf if one.threshold is None else one.threshold) for one in asked)
    lower = wanted.threshold is not None and wanted.threshold < lowest
    if wanted.k > max(one.k for one in asked) or wanted.length > max(one.length for one in asked) or lower:
        return None
    if old.engine is not None and wanted.length <= old.machine.length:
        return old  # its arrivals have the query's own numbers
    return max((adapter for adapter, _ in family), key=lambda adapter: adapter.machine.length)


def _difference(changes: Changes, was: Any, place: int) -> Changes:
    """From an answer that was to the one that all enter: who leaves, and who enters."""
    new = ~np.isin(changes.serial, was.serial)
    gone = ~np.isin(was.serial, changes.serial)
    size = int(gone.sum())
    return Changes(
        query=np.concatenate([np.full(size, place), changes.query[new]]),
        group=np.concatenate([was.group[gone], changes.group[new]]),
        row=np.full(size + int(new.sum()), -1),
        instant=np.zeros(size + int(new.sum()), np.int64),
        stamp=np.concatenate([was.stamp[gone], changes.stamp[new]]),
        serial=np.concatenate([was.serial[gone], changes.serial[new]]),
        key=np.concatenate([was.key[gone], changes.key[new]]),
        diff=np.concatenate([np.full(size, -1, np.int8), changes.diff[new]]),
        first=np.concatenate([np.zeros(size, np.bool_), changes.first[new]]),
        alive=changes.alive,
    )
