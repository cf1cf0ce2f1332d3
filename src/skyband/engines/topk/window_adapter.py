"""The adapter of engines that keep whole windows: queries join and leave them, and objects are deleted by id."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.contract import Arrivals, Changes, Scorings
from skyband.engines.id_codes import IdCodes
from skyband.engines.invariants import require
from skyband.engines.numbering import Start
from skyband.engines.registry import choose, row_of
from skyband.engines.specs import length_of, spec_of
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.scorings import (
    OverAxes,
    box_of,
    distinct_texts,
    must_part,
    own_score,
    scores_of,
    scorings_of,
    window_key,
    window_scoring,
    with_boxes,
)
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
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class WindowAdapter(IdCodes, TopKAdapter):
    """One engine that keeps a window, and the queries over it."""

    keeps_window = True

    def __init__(
        self,
        query: TopK | Above,
        groups: Groups,
        options: Options,
        start: Start,
        *,
        algorithm: str | None = None,
        scored: bool = False,
        born: int = 0,
    ) -> None:
        super().__init__(query, groups, options, start, family=True)
        self.algorithm = algorithm or choose(query)
        self.born = born  # the first row that it saw
        plain = window_scoring(query.by)
        self.scored = scored or plain is None  # objects are kept by their score, not by their attributes
        self.typed = isinstance(plain, OverAxes) and not self.scored  # attributes, and scores of expressions
        if plain is not None and not self.scored:
            self.by, self.where = plain, box_of(query, plain)[1]
        self.texts: list[str] | None = None  # while objects have scores of expressions whose last query has left
        self.ids = self._no_ids() if isinstance(query.window, UntilDeleted) else None

    @property
    def machine(self) -> Windowed:
        return cast("Windowed", self.engine)

    @property
    def share(self) -> tuple[Any, ...]:
        """Adapters with equal shares can be joined."""
        by = id(self.by) if callable(self.by) else self.by
        own = (by, self.where) if self.scored else ()  # a score serves one scoring only
        return (self.scored, self.born, own, *window_key(self.example, self.algorithm))

    def scorings(self) -> Scorings:
        return self._scorings(list(self.queries.values()))

    def _scorings(self, queries: list[TopK | Above]) -> Scorings:
        if self.scored:
            return own_score(len(queries))
        if self.typed:
            from skyband.engines.topk.bounds import expressions_of  # it loads kernels, which a plan needs not

            return with_boxes(expressions_of(queries, self._texts), queries)
        return with_boxes(scorings_of(queries), queries)

    # --- rows: expressions are scored here, and share a window as long as they reject the same rows

    def score(self, batch: Batch, cache: dict[Any, Scored]) -> Scored:
        if not self.typed:
            return super().score(batch, cache)
        first = scores_of(batch, self._asked)[0]
        return Scored(first.key, dict(first.rejected))

    @property
    def _texts(self) -> list[str]:
        """The expressions whose scores objects have, each once."""
        return self._asked if self.texts is None else self.texts

    @property
    def _asked(self) -> list[str]:
        """The expressions of the queries, each once."""
        return distinct_texts(list(self.queries.values()))

    def _forget_texts(self) -> None:
        """Remove the scores of expressions whose last query has left."""
        before, self.texts = self._texts, None
        columns = self.machine.queries.keep_expressions([before.index(text) for text in self._texts])
        for _, store in self.machine.stores.there():
            store.data = np.ascontiguousarray(store.data[:, columns])

    def extra_facts(self) -> dict[str, Any]:
        return super().extra_facts() | ({} if self.texts is None else {"texts": self.texts})

    def restore_facts(self, facts: dict[str, Any]) -> None:
        super().restore_facts(facts)
        if (texts := facts.get("texts")) is not None:
            known = isinstance(texts, list) and all(isinstance(text, str) for text in texts) and self.typed
            axes = {self.by.columns}
            known = known and all(one is not None and one.columns in axes for one in map(window_scoring, texts))
            known = known and all(isinstance(window_scoring(text), OverAxes) for text in texts)
            require(
                known and len({*texts}) == len(texts) and {*texts} >= {*self._texts}, "objects have scores of queries"
            )
            self.texts = list(texts)

    def _attributes(self, batch: Batch, rows: Ints) -> tuple[Floats, ...]:
        numbers = super()._attributes(batch, rows)
        if not self.typed:
            return numbers
        if not batch.rows:
            return (*numbers, *(np.empty(0) for _ in self._texts))
        all_rows = len(rows) == batch.rows  # then nothing is copied
        keys = [one.key if all_rows else one.key[rows] for one in scores_of(batch, self._texts)]
        return (*numbers, *map(self.keys, keys))

    def must_split(self, batch: Batch) -> bool:
        return must_part(batch, self._asked, self.by.columns) if self.typed else super().must_split(batch)

    def needed(
        self, validated: Validated, codes: Ints, total: int, times: Ints, clocks: Ints, unit: int | None
    ) -> Bools:
        (query,) = self.queries.values()
        if not isinstance(query, Above):
            return super().needed(validated, codes, total, times, clocks, unit)
        above: Bools = validated.accepted & (validated.scored.key > query.threshold)
        return above if validated.eligible is None else above & validated.eligible

    def run(self, arrivals: Arrivals, push: Push) -> Changes:
        names = self.names_of(arrivals.rows, arrivals.groups, push)
        attributes = (arrivals.keys,) if self.scored else arrivals.attributes
        deletes = None if push.deletes is None else push.deletes[arrivals.rows]
        changes = self.machine.take(replace(arrivals, attributes=attributes, names=names, deletes=deletes))
        self.count_unknown()
        if self.texts is not None:
            self._forget_texts()
        return changes

    # --- queries join and leave

    def leave(self, name: str, unit: int | None, clock: int) -> None:
        place, texts = self.place(name), self._texts if self.typed else None
        del self.queries[name]
        if self.engine is not None:
            self.texts = texts  # a query that takes its place may need them
            self.machine.drop_query(place)
            self.numbering.of_query = np.zeros(len(self.queries), np.int64)

    def join(
        self, name: str, query: TopK | Above, unit: int | None, clock: int, reported: dict[int, Any], was: Any = None
    ) -> dict[str, Any]:
        """Serve one query more, answered at once; returns how its answer differs from `was`, as columns.

        reported: by group, the objects that were reported under its name.
        """
        if name not in self.queries:
            self.queries[name] = query
            self.machine.add_query(spec_of(query, unit), self._scorings([query]))
        self.numbering.of_query = np.zeros(len(self.queries), np.int64)
        place = len(self.queries) - 1
        changes = self.machine.search(place, reported, self.numbering.now(clock))
        if was is not None:
            changes = _difference(changes, was, place)
        changes = replace(changes, instant=np.full(len(changes.query), clock))
        return self.output.changes_at_rest(changes, clock)

    def offshoot(self, name: str, query: TopK | Above, algorithm: str, unit: int | None, clock: int) -> WindowAdapter:
        """A new adapter over a copy of the part of this window that the query sees."""
        adapter = self._sibling(name, query, algorithm, self.scored)
        adapter.start(unit)
        adapter.go_on_from(self)
        columns = [0] if self.scored else [self.by.columns.index(name) for name in adapter.by.columns]
        if self.typed:
            columns.append(len(columns) + self._texts.index(str(query.by)))
        adapter.machine.copy_objects(self.machine, self.numbering.now(clock), columns)
        adapter.machine.remember(max(self.machine.length, self.machine.memory.length))
        adapter.rebuild_ids()
        return adapter

    def _sibling(self, name: str, query: TopK | Above, algorithm: str, scored: bool) -> WindowAdapter:
        start = self.numbering.start()
        adapter = WindowAdapter(
            query, self.groups, self.options, start, algorithm=algorithm, scored=scored, born=self.born
        )
        adapter.queries = {name: query}
        return adapter

    def reported_of(self, name: str) -> dict[int, Any]:
        """By group, the objects that were reported under this name, as far as they may be reported again."""
        return {} if self.engine is None else self.machine.reported_of(self.place(name))

    def can_lend(self, query: TopK | Above, unit: int | None) -> bool:
        """Whether this window holds all objects that the query needs."""
        if self.engine is None or self.groups.names != query.per_columns or query.demands:
            return False  # an order of keys, ranks and ties are SORTED's
        if query.window.sort != self.example.window.sort or length_of(query, unit) > self.machine.length:
            return False
        plain = window_scoring(query.by)
        if self.scored or plain is None:
            same = query.by is self.example.by or query.by == self.example.by
            return self.scored and same and query.where == self.where and query.descending == self.descending
        if self.typed != isinstance(plain, OverAxes) or (self.typed and query.descending != self.descending):
            return False
        known = not self.typed or query.by in self._texts
        return known and set(plain.columns) == set(self.by.columns) and box_of(query, plain)[1] == self.where

    def split(self, unit: int | None, clock: int) -> dict[str, Adapter]:
        """Give each query a window of its own, kept by its score: from now on rows may lack a score for some only."""
        adapters: dict[str, Adapter] = {}
        for place, (name, query) in enumerate(self.queries.items()):
            adapter = adapters[name] = self._sibling(name, query, self.algorithm, scored=True)
            if self.engine is not None:
                adapter.start(unit)
                adapter.go_on_from(self)
                adapter.machine.copy_query(self.machine, place)
                adapter.rebuild_ids()
        return adapters

    @property
    def is_fresh(self) -> bool:
        return False

    def can_serve(self, query: Query, unit: int | None) -> bool:
        return False


def _relation(query: TopK | Above) -> tuple[Any, ...]:
    """Equal for queries that differ in k, threshold and length of the window only."""
    return (type(query), query.by, query.where, query.descending, query.per_columns, query.window.sort)


def remember_reported(adapters: list[Adapter]) -> None:
    """Let each engine remember what it has reported, as far back as the longest window of a related query.

    `donor_of` may give its queries that window.
    """
    windows = [adapter for adapter in adapters if isinstance(adapter, WindowAdapter) and adapter.engine is not None]
    longest: dict[Any, int] = {}
    relations = [{(one.born, *_relation(query)) for query in one.queries.values()} for one in windows]
    for adapter, keys in zip(windows, relations, strict=True):
        for key in keys:
            longest[key] = max(adapter.machine.length, longest.get(key, 0))
    for adapter, keys in zip(windows, relations, strict=True):
        adapter.machine.remember(max(longest[key] for key in keys))


def donor_of(
    adapters: list[Adapter], old: WindowAdapter, name: str, query: TopK | Above, unit: int | None
) -> WindowAdapter | None:
    """The adapter whose window a query that replaces `name` can use: it asks for no more than its relatives do."""
    family = [
        (adapter, other)
        for adapter in adapters
        if isinstance(adapter, WindowAdapter) and adapter.born == old.born and adapter.engine is not None
        for other in adapter.queries.values()
        if _relation(other) == _relation(query)
    ]
    specs = [spec_of(other, unit) for _, other in family]
    wanted = spec_of(query, unit)
    if query.demands or _relation(old.queries[name]) != _relation(query) or not specs:
        return None  # an order of keys, ranks and ties are SORTED's
    if query.algorithm != "auto" and not row_of(query).keeps_window:
        return None
    lowest = min((-np.inf if one.threshold is None else one.threshold) for one in specs)
    lower = wanted.threshold is not None and wanted.threshold < lowest
    if wanted.k > max(one.k for one in specs) or wanted.length > max(one.length for one in specs) or lower:
        return None
    if old.engine is not None and wanted.length <= old.machine.length:
        return old  # its arrivals have the query's own numbers
    return max((adapter for adapter, _ in family), key=lambda adapter: adapter.machine.length)


def _difference(changes: Changes, was: Any, place: int) -> Changes:
    """The changes from an old answer to a new one, given that all objects of the new one enter."""
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
