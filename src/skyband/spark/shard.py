"""One shard of the state, and one trigger on it.

State: a head (the plan's fingerprint, counters, and of each query set its facts and its directory), and the cells.
A trigger reads the head, loads the cells that it needs into a Monitor of each query set, pushes, and writes them back.
A set with a journal (journal.py) has its facts in a cell, and the head only what metrics need of them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.errors import StateError
from skyband.monitor.archive import pack, unpack
from skyband.monitor.snapshot import cut, describe, join, restore
from skyband.monitor.state import State
from skyband.monitor.subscriptions import close_gaps
from skyband.query.kinds import Query
from skyband.spark.compression import compressed, plain_bytes
from skyband.spark.directory import NEVER, Directory, inventory, refusals
from skyband.spark.forget import SetLoop
from skyband.spark.journal import Journal, has_journal, step_bytes
from skyband.spark.journaled_state import Borrowed, JournaledState
from skyband.spark.mappers import moment_of
from skyband.spark.plan import Plan, QuerySet, compare, hash_groups
from skyband.spark.seed import planted, seeds_of
from skyband.spark.subscriptions import follow, reconcile
from skyband.spark.trees import load_tree, store_tree
from skyband.spark.trigger_rows import TriggerRows, takes_new_form

Ints = NDArray[np.int64]


class Cells(Protocol):
    """Spark's map state: (number of the query set, cell) to bytes."""

    def getValue(self, key: Any, /) -> Any: ...  # noqa: N802
    def updateValue(self, key: Any, value: Any, /) -> None: ...  # noqa: N802
    def removeKey(self, key: Any, /) -> None: ...  # noqa: N802
    def iterator(self) -> Iterator[Any]: ...
    def clear(self) -> None: ...


class Shard:
    """A shard as the last trigger left it."""

    def __init__(self, plan: Plan, number: int, head: bytes | None, cells: Cells) -> None:
        self.plan, self.number, self.cells = plan, number, cells
        self.clock: Any = None  # a table of one row
        self.counts: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.facts: dict[QuerySet, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.directories: dict[QuerySet, Directory] = {}
        self.numbers: dict[QuerySet, int] = {}  # in the keys of cells
        self.stored: dict[str, Any] | None = None  # the fingerprint of the plan that wrote the state
        self.journals: dict[QuerySet, Journal] = {}
        self.loops: dict[QuerySet, SetLoop] = {}  # of the sets with a journal, as this trigger leaves them
        self.whole = False  # whether another worker that takes a trigger is to send answers, not changes
        self.static: dict[str, str] = {}  # digests of the static tables of subscriptions that were taken
        self.touched = 0  # bytes of the cells that this trigger may change
        if head is not None:
            self._read(head)

    # --- the head

    def _read(self, data: bytes) -> None:
        facts, parts = unpack(zlib.decompress(data))
        self.stored = facts["asked"]
        compare(facts["asked"], self.plan.fingerprint)
        self.static = {name: one for name, one in facts.get("static", {}).items() if name in self.plan.subscribed}
        self.counts, self.rejected = Counter(facts["counts"]), Counter(facts["rejected"])
        if "clock" in parts:
            self.clock = parts["clock"]
        for i, (number, *stored) in enumerate(facts["families"]):
            query_set = QuerySet.of(stored)
            self.numbers[query_set] = number
            mine = {name[len(f"{i}.") :]: part for name, part in parts.items() if name.startswith(f"{i}.")}
            self.directories[query_set] = Directory.of(mine)
            self.facts[query_set] = facts["described"][i], mine
            if (journal := facts.get("journals", {}).get(str(number))) is not None:
                self.journals[query_set] = Journal.of(journal)

    def head(self) -> bytes:
        """The head to store."""
        sets = list(self.facts)
        parts = {} if self.clock is None else {"clock": self.clock}
        for i, query_set in enumerate(sets):
            own = {**self.facts[query_set][1], **self.directories[query_set].columns()}
            parts |= {f"{i}.{name}": part for name, part in own.items()}
        facts = {
            "shard": self.number,
            "asked": self.plan.fingerprint,
            "counts": self.counts,
            "rejected": self.rejected,
            "families": [[self.numbers[one], *one.facts()] for one in sets],
            "described": [self.facts[query_set][0] for query_set in sets],
            "static": self.static,
            "journals": {str(self.numbers[one]): journal.facts() for one, journal in self.journals.items()},
        }
        return zlib.compress(pack(facts, parts), 1)

    # --- a trigger

    def take(
        self, arrived: dict[int, TriggerRows], clock: Any, joining: dict[str, list[pa.Table]] | None = None
    ) -> Iterator[tuple[SetLoop | Borrowed, pa.Table]]:
        """Take a trigger's rows, and move the clock; yields each query set's loop with changes, some at a time.

        joining: rows that subscribe and unsubscribe, by query; they come first.
        """
        fingerprint, stored = self.plan.fingerprint, self.stored
        changed = stored is not None and (
            stored != fingerprint or list(stored["queries"]) != list(fingerprint["queries"])  # their order numbers sets
        )
        held = self.held() if changed else {}
        if stored is None and self.plan.carried:
            clock_before, held = planted(self.plan, seeds_of(self.cells))
            self.clock, changed = clock_before, True
        if changed:
            self.cells.clear()  # all of it is written anew
            self.journals.clear()
        known = self.clock
        if clock is not None and (known is None or moment_of(clock) > moment_of(known)):
            self.clock = clock
        now = None if self.clock is None else self.clock.column("clock")[0]
        facts, self.facts = self.facts, {}
        for number, query_set in enumerate(self.plan.query_sets):
            queries = self.plan.members(query_set, self.number)
            if not queries:
                continue
            rows = arrived.get(number, TriggerRows(self.plan.order, query_set.per))
            directory = self.directories.setdefault(query_set, Directory())
            before = len(directory)
            news = [name for name in queries if name in (joining or {})]
            journal, again = self.journals.get(query_set), 0
            everything = changed or bool(news)
            if journal is None and not query_set.root:
                everything |= query_set in facts and takes_new_form(facts[query_set][0], queries, rows)
            touched = self._touched(query_set, directory, rows, everything)
            self.numbers[query_set], self.touched = number, self.touched + int(directory.bytes[touched].sum())
            if journal is None and query_set in facts and query_set.per and not everything and not rows.is_long:
                yield from self._take_portions(
                    query_set, rows, directory.portions(touched, before), facts[query_set], now
                )
                continue
            joined = {name: pa.concat_tables((joining or {})[name]) for name in news}
            if journal is not None and (lent := self._borrow(query_set, directory, rows, joined)) is not None:
                absent = Borrowed(query_set)
                yield from ((absent, changes) for changes in lent)
                continue
            state = None
            if changed:
                state = held.get(query_set)
            elif journal is None and query_set in facts:
                state = self._revive(*facts[query_set], self._load(number, directory, touched))
            if journal is not None:
                loop, again = self._journaled(query_set).resume()
            elif state is not None:
                loop = SetLoop.of(state, query_set, self.plan.forget)
            else:
                options = self.plan.monitor_options(query_set)
                at = None if known is None else known.column("clock")[0]
                loop = SetLoop.begin(query_set, self.plan.forget, queries, options, at)
            if changed:
                for changes in loop.set_queries(queries, self.plan.carried):
                    yield loop, changes
            for name, table in joined.items():
                yield from ((loop, changes) for changes in self._subscribe(loop, name, table))
            if query_set.blocks:
                loop.set_block(self.number, self.plan.shards)
            if rows.is_long:
                loop.expect(rows.pieces())
            waiting: Any = {}
            for i, piece in enumerate(rows.slices()):
                if i:
                    for changes in loop.push(waiting, None, more=True):
                        yield loop, changes
                waiting = self._with_aliases(piece) if query_set.blocks else piece
            for changes in loop.push(waiting, now, more=False):
                yield loop, changes
            if has_journal(query_set, queries):
                step = None if rows.is_long or self._has_static(joined) else self._step(waiting, joined)
                self._enter(loop, directory, step, again)
            else:
                self._store(number, loop, directory, touched)
        for query_set in [one for one in self.directories if one not in self.facts]:
            del self.directories[query_set]
            self.journals.pop(query_set, None)

    def _take_portions(
        self, query_set: QuerySet, rows: TriggerRows, portions: list[Ints], facts: tuple[dict[str, Any], Any], now: Any
    ) -> Iterator[tuple[SetLoop, pa.Table]]:
        """Let some cells after the others take their rows, so that few are in memory: each as a trigger of its own."""
        number, directory, clock = self.numbers[query_set], self.directories[query_set], facts[0]["clock"]
        for cells, mine in zip(portions, rows.among(directory, portions), strict=True):
            state = self._revive({**facts[0], "clock": clock}, facts[1], self._load(number, directory, cells))
            loop = SetLoop.of(state, query_set, self.plan.forget)
            for changes in loop.push(mine, now, more=False):
                yield loop, changes
            self._store(number, loop, directory, cells)
            facts = self.facts[query_set]

    def wants(self, name: str) -> bool:
        """Whether rows of subscriptions matter: those of a stream do, those of a static table if it is another one."""
        digest = self.plan.subscribed[name].digest
        return digest is None or self.static.get(name) != digest

    def _subscribe(self, loop: SetLoop, name: str, table: pa.Table) -> list[pa.Table]:
        """Let subscriptions come and go: those of a static table, or of the rows of a stream."""
        source = self.plan.subscribed[name]
        if source.digest is None:
            return follow(loop.loop, name, source.order, [table])
        self.static[name] = source.digest
        return reconcile(loop.loop, name, table)

    def beginners(self) -> list[str]:
        """Blocked queries that are new in this trigger: nothing may be left of an earlier one by that name."""
        known = {} if self.stored is None else self.stored["queries"]
        return [name for name in self.plan.blocked if self.stored is not None and name not in known]

    def _with_aliases(self, rows: pa.Table) -> pa.Table:
        """The kept columns under the names that blocked queries report."""
        for alias, name in self.plan.aliases.items():
            rows = rows.append_column(alias, rows.column(name))
        return rows

    def _touched(self, query_set: QuerySet, directory: Directory, rows: TriggerRows, everything: bool) -> Ints:
        """The cells that this trigger may change."""
        if not query_set.per or everything:
            return np.arange(len(directory))
        hashes = rows.hashes()
        moving = directory.grow(len(hashes))
        touched = np.zeros(len(directory), np.bool_)
        touched[moving] = touched[directory.address(hashes)] = True
        if self.clock is not None:
            touched[directory.due_by(moment_of(self.clock))] = True
        return np.flatnonzero(touched)

    def _load(self, number: int, directory: Directory, touched: Ints) -> list[bytes]:
        wanted = touched[directory.groups[touched] > 0]
        if len(wanted) > max(8, int((directory.groups > 0).sum()) // 2):  # one scan is cheaper than many lookups
            chosen = set(wanted.tolist())
            mine = (value[0] for key, value in self.cells.iterator() if key[0] == number and key[1] in chosen)
        else:
            mine = (self.cells.getValue((number, cell))[0] for cell in wanted.tolist())
        return list(map(plain_bytes, mine))

    def held(self) -> dict[QuerySet, State]:
        """The whole state."""
        stored: dict[int, dict[int, bytes]] = {}
        for key, value in self.cells.iterator():
            stored.setdefault(key[0], {})[key[1]] = plain_bytes(value[0])
        found = {}
        for one, number in self.numbers.items():
            mine = stored.get(number, {})
            if one in self.journals:
                found[one] = self._journaled(one).read_again(mine.__getitem__)[0].state
            else:
                found[one] = self._revive(*self.facts[one], list(mine.values()))
        return found

    # --- a query set with a journal

    def _journaled(self, query_set: QuerySet) -> JournaledState:
        journal = self.journals.setdefault(query_set, Journal())
        return JournaledState(
            query_set, journal, self.number, self.numbers[query_set], self.cells, self.plan.forget, self._revive
        )

    def _borrow(
        self, query_set: QuerySet, directory: Directory, rows: TriggerRows, joined: dict[str, pa.Table]
    ) -> list[pa.Table] | None:
        """The changes of a trigger that another worker has taken, or its answers; None: this one is to take it."""
        if rows.is_long or self._has_static(joined):
            return None
        state = self._journaled(query_set)
        changes = state.borrow(self._step(next(rows.slices(), {}), joined), directory, whole=self.whole)
        if changes is not None:
            self.facts[query_set] = state.summary, {}
        return changes

    def _has_static(self, joined: dict[str, pa.Table]) -> bool:
        return any(self.plan.subscribed[name].digest is not None for name in joined)

    def _step(self, rows: Any, joined: dict[str, pa.Table]) -> bytes:
        """What this trigger takes."""
        return step_bytes(rows, self.clock, joined, {name: self.plan.subscribed[name].order for name in joined})

    def _enter(self, loop: SetLoop, directory: Directory, step: bytes | None, again: int) -> None:
        """Store what a trigger took, or the state, or both. step: None: only the state has it."""
        state = self._journaled(loop.query_set)
        state.enter(loop, directory, step, again)
        self.facts[loop.query_set] = state.summary, {}
        self.loops[loop.query_set] = loop

    def keep(self) -> None:
        """Let this worker go on with the loops in the next trigger; to be called when all is stored."""
        for query_set, loop in self.loops.items():
            self._journaled(query_set).keep(loop)

    def _lookup(self, name: str, saved: Any) -> Query:
        if isinstance(saved, Query):  # of a subscription
            return saved
        known = self.plan.queries.get(name)
        return Query.from_dict(saved, _dropped) if known is None else known

    def _revive(self, facts: dict[str, Any], parts: dict[str, Any], stored: list[bytes]) -> State:
        if "tree" in facts:
            return load_tree(stored[0], self._lookup)
        state = restore(facts, parts, self._lookup)
        for groups in state.groups.values():
            join(state, groups, stored)
        return state

    def _store(self, number: int, loop: SetLoop, directory: Directory, touched: Ints) -> None:
        """Write the cells that this trigger touched."""
        state, query_set = loop.state, loop.query_set
        if query_set.root:
            facts, cell = store_tree(loop, directory)
            self.facts[query_set] = facts, {}
            self.cells.updateValue((number, 0), (cell,))
            return
        close_gaps(state)
        (groups,) = state.groups.values()
        live, dues, sizes = inventory(state, groups, query_set)
        live[loop.gone] = False
        dues = np.minimum(dues, loop.dues())
        chosen = np.flatnonzero(live)
        places = np.zeros(len(chosen), np.int64)
        if query_set.per and len(chosen):
            places = directory.address(hash_groups([column.take(chosen) for column in groups.columns]))
        chosen, places = chosen[np.argsort(places, kind="stable")], np.sort(places)
        bounds = np.searchsorted(places, np.append(touched, len(directory)))
        assert bounds[-1] - bounds[0] == len(chosen) == np.isin(places, touched).sum(), "groups are of touched cells"
        stored = cut(state, groups, chosen, bounds)
        for cell, data, (begin, end) in zip(touched.tolist(), stored, pairwise(bounds.tolist()), strict=True):
            if begin < end:
                self.cells.updateValue((number, cell), (compressed(data, stored.widths),))
            elif directory.groups[cell]:
                self.cells.removeKey((number, cell))
            mine = chosen[begin:end]
            directory.due[cell] = dues[mine].min() if begin < end else NEVER
            directory.groups[cell], directory.objects[cell] = end - begin, sizes[mine].sum()
            directory.bytes[cell] = len(data) if begin < end else 0
        self.facts[query_set] = describe(state)

    def due(self) -> int:
        """The next time at which something expires."""
        return min((int(one.due.min()) for one in self.directories.values()), default=NEVER)

    def totals(self) -> dict[str, int]:
        """The metrics of the shard."""
        directories = list(self.directories.values())
        late = {one: max(max(adapter["late"]) for adapter in facts["homes"]) for one, (facts, _) in self.facts.items()}
        refused = {one: sum(refusals(facts).values()) for one, (facts, _) in self.facts.items()}
        return {
            "arrivals": self.counts["arrivals"],
            "late": max((count for one, count in late.items() if one.per), default=0),
            "late_anywhere": max(late.values(), default=0),  # sets without `per` count a row once per shard
            "rejected": sum(self.rejected.values()),
            "refused": max((count for one, count in refused.items() if one.per or one.blocks), default=0),
            "refused_anywhere": max(refused.values(), default=0),
            "groups": int(sum(one.groups.sum() for one in directories)),
            "objects": int(sum(one.objects.sum() for one in directories)),
            "bytes": int(sum(one.bytes.sum() for one in directories)),
        }


def _dropped(batch: Any) -> Any:
    """In the place of the callable of a query that is going to be dropped."""
    raise StateError("a dropped query is not scored any more.")
