"""One shard of the state, and one trigger on it.

State: a head (what was asked, counters, and of each family its facts and its directory), and cells of groups. A trigger
reads the head, loads the cells that it needs into a Loop of each family, pushes, and writes them back.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.scorings import plain_scoring, validate_family
from skyband.errors import StateError
from skyband.monitor.archive import pack, unpack
from skyband.monitor.loop import Loop
from skyband.monitor.snapshot import cut, describe, join, restore
from skyband.monitor.state import State
from skyband.query.kinds import Query
from skyband.spark.directory import NEVER, Directory
from skyband.spark.forget import Forgetting
from skyband.spark.mappers import moment_of
from skyband.spark.plan import Family, Plan, hash_groups
from skyband.spark.trigger_rows import Pile
from skyband.tables.groups import Groups
from skyband.tables.input import Batch

Ints = NDArray[np.int64]
_BY_STATE = (
    *("unknown id", "second row of the same part", "probabilities of a group pass 1"),  # rows
    "pair without a score",
)  # as reasons end; some begin with a column


class Cells(Protocol):
    """Spark's map state."""

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
        self.facts: dict[Family, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.directories: dict[Family, Directory] = {}
        self.numbers: dict[Family, int] = {}  # in the keys of cells
        self.asked: dict[str, Any] | None = None
        if head is not None:
            self._read(head)

    # --- the head

    def _read(self, data: bytes) -> None:
        facts, parts = unpack(zlib.decompress(data))
        self.asked = facts["asked"]
        compare(facts["asked"], self.plan.fingerprint)
        self.counts, self.rejected = Counter(facts["counts"]), Counter(facts["rejected"])
        if "clock" in parts:
            self.clock = parts["clock"]
        for i, (number, names, timed, *blocks) in enumerate(facts["families"]):
            family = Family(tuple(names), timed, *blocks)
            self.numbers[family] = number
            mine = {name[len(f"{i}.") :]: part for name, part in parts.items() if name.startswith(f"{i}.")}
            self.directories[family] = Directory.of(mine)
            self.facts[family] = facts["described"][i], mine

    def head(self) -> bytes:
        families = list(self.facts)
        parts = {} if self.clock is None else {"clock": self.clock}
        for i, family in enumerate(families):
            own = {**self.facts[family][1], **self.directories[family].columns()}
            parts |= {f"{i}.{name}": part for name, part in own.items()}
        facts = {
            "shard": self.number,
            "asked": self.plan.fingerprint,
            "counts": self.counts,
            "rejected": self.rejected,
            "families": [[self.numbers[one], list(one.per), one.timed, one.blocks] for one in families],
            "described": [self.facts[family][0] for family in families],
        }
        return zlib.compress(pack(facts, parts), 1)

    # --- a trigger

    def take(self, piles: dict[int, Pile], clock: Any) -> Iterator[tuple[Forgetting, Any]]:
        """Take a trigger's rows, and move the clock; yields each family's holder with changes, some at a time."""
        asked = self.plan.fingerprint
        changed = self.asked is not None and (
            self.asked != asked or list(self.asked["queries"]) != list(asked["queries"])  # which numbers the families
        )
        held = self.held() if changed else {}
        if changed:
            self.cells.clear()  # all is going to be written anew
        known = self.clock
        if clock is not None and (known is None or moment_of(clock) > moment_of(known)):
            self.clock = clock
        now = None if self.clock is None else self.clock.column("clock")[0]
        facts, self.facts = self.facts, {}
        for number, family in enumerate(self.plan.families):
            queries = self.plan.members(family, self.number)
            if not queries:
                continue
            pile = piles.get(number, Pile(self.plan.order, family.per))
            directory = self.directories.setdefault(family, Directory())
            everything = changed or (family in facts and _takes_new_form(facts[family][0], queries, pile))
            touched = self._touched(family, directory, pile, everything)
            if changed:
                state = held.get(family)
            else:
                stored = self._load(number, directory, touched)
                state = None if family not in facts else self._revive(*facts[family], stored)
            monitor = Loop(state) if state is not None else self._begin(family, queries, known)
            if changed:
                _ask(monitor, queries)
            if family.blocks:
                for adapter in monitor.state.standing():
                    adapter.block = (self.number, self.plan.shards)
            if pile.is_long:
                monitor.queries.expect(pile.pieces())
            forgetting = Forgetting(monitor, family, self.plan.forget)
            waiting = None
            for piece in pile.slices():
                rows = self._dressed(piece) if family.blocks else piece
                if waiting is not None:
                    for changes in forgetting.push(waiting, None, more=True):
                        yield forgetting, changes
                waiting = rows
            for changes in forgetting.push({} if waiting is None else waiting, now, more=False):
                yield forgetting, changes
            self._store(number, family, monitor, directory, touched, forgetting)
            self.numbers[family] = number
        for family in [family for family in self.directories if family not in self.facts]:
            del self.directories[family]

    def beginners(self) -> list[str]:
        """Blocked queries that the last trigger did not know: of an earlier one by that name nothing must be left."""
        known = {} if self.asked is None else self.asked["queries"]
        return [name for name in self.plan.blocked if self.asked is not None and name not in known]

    def _dressed(self, rows: Any) -> Any:
        """What is told of objects under the names that blocked queries tell it."""
        for alias, name in self.plan.aliases.items():
            rows = rows.append_column(alias, rows.column(name))
        return rows

    def _begin(self, family: Family, queries: dict[str, Query], clock: Any) -> Loop:
        """Queries that start empty, at the stream's clock."""
        monitor = Loop.of(queries, **self.plan.monitor_options(family))
        if clock is not None:
            monitor.push({}, to=clock.column("clock")[0])
        return monitor

    def _touched(self, family: Family, directory: Directory, pile: Pile, everything: bool) -> Ints:
        """The cells that this trigger may change."""
        if not family.per or everything:
            return np.arange(len(directory))
        moving = directory.grow()
        due = directory.due_by(moment_of(self.clock)) if self.clock is not None else moving
        return np.unique(np.concatenate([moving, due, directory.address(pile.hashes())]))

    def _load(self, number: int, directory: Directory, touched: Ints) -> list[bytes]:
        wanted = touched[directory.groups[touched] > 0]
        if 2 * len(wanted) > int((directory.groups > 0).sum()) and len(wanted) > 8:  # reading on is cheaper than asking
            chosen = set(wanted.tolist())
            return [value[0] for key, value in self.cells.iterator() if key[0] == number and key[1] in chosen]
        return [self.cells.getValue((number, cell))[0] for cell in wanted.tolist()]

    def held(self) -> dict[Family, State]:
        """All of the state."""
        stored: dict[int, list[bytes]] = {}
        for key, value in self.cells.iterator():
            stored.setdefault(key[0], []).append(value[0])
        return {
            family: self._revive(*self.facts[family], stored.get(number, [])) for family, number in self.numbers.items()
        }

    def _revive(self, facts: dict[str, Any], parts: dict[str, Any], stored: list[bytes]) -> State:
        def lookup(name: str, saved: dict[str, Any]) -> Query:
            known = self.plan.queries.get(name)
            return Query.from_dict(saved, _nobody) if known is None else known

        state = restore(facts, parts, lookup)
        for groups in state.groups.values():
            join(state, groups, stored)
        return state

    def _store(
        self, number: int, family: Family, monitor: Loop, directory: Directory, touched: Ints, forgetting: Forgetting
    ) -> None:
        state = monitor.state
        (groups,) = state.groups.values()
        live, dues, sizes = _inventory(state, groups, family)
        live[forgetting.gone] = False
        dues = np.minimum(dues, forgetting.dues())
        chosen = np.flatnonzero(live)
        places = np.zeros(len(chosen), np.int64)
        if family.per and len(chosen):
            places = directory.address(hash_groups([column.take(chosen) for column in groups.columns]))
        chosen, places = chosen[np.argsort(places, kind="stable")], np.sort(places)
        bounds = np.searchsorted(places, np.append(touched, len(directory)))
        assert bounds[-1] - bounds[0] == len(chosen) == np.isin(places, touched).sum(), "groups are of touched cells"
        stored = cut(state, groups, chosen, bounds)
        for cell, data, (begin, end) in zip(touched.tolist(), stored, pairwise(bounds.tolist()), strict=True):
            if begin < end:
                self.cells.updateValue((number, cell), (data,))
            elif directory.groups[cell]:
                self.cells.removeKey((number, cell))
            mine = chosen[begin:end]
            directory.due[cell] = dues[mine].min() if begin < end else NEVER
            directory.groups[cell], directory.objects[cell] = end - begin, sizes[mine].sum()
            directory.bytes[cell] = len(data) if begin < end else 0
        self.facts[family] = describe(state)

    def due(self) -> int:
        """When time takes something next."""
        return min((int(one.due.min()) for one in self.directories.values()), default=NEVER)

    def totals(self) -> dict[str, int]:
        """What there is to tell of the shard."""
        directories = list(self.directories.values())
        late = {
            family: max(max(adapter["late"]) for adapter in facts["homes"]) for family, (facts, _) in self.facts.items()
        }
        refused = {family: sum(refusals(facts).values()) for family, (facts, _) in self.facts.items()}
        return {
            "arrivals": self.counts["arrivals"],
            "late": max((count for family, count in late.items() if family.per), default=0),
            "late_anywhere": max(late.values(), default=0),  # families without `per` count a row once per shard
            "rejected": sum(self.rejected.values()),
            "refused": max((count for family, count in refused.items() if family.per or family.blocks), default=0),
            "refused_anywhere": max(refused.values(), default=0),
            "groups": int(sum(one.groups.sum() for one in directories)),
            "objects": int(sum(one.objects.sum() for one in directories)),
            "bytes": int(sum(one.bytes.sum() for one in directories)),
        }


def _takes_new_form(described: dict[str, Any], queries: dict[str, Query], pile: Pile) -> bool:
    """Will what is stored of every group look different? When engines start, or a shared window cannot stay so."""
    for adapter in described["homes"]:
        if not adapter["started"] and pile.rows:
            return True
        if adapter.get("scored", True):
            continue
        by = plain_scoring(getattr(queries[next(iter(adapter["queries"]))], "by", None))
        if any(validate_family(Batch(piece), by) is None for piece in pile.pieces()):
            return True
    return False


def refusals(described: dict[str, Any]) -> dict[str, int]:
    """By reason, what only the state could reject; all else mappers have counted."""
    rejected: dict[str, int] = described["counters"]["rejected"]
    return {reason: count for reason, count in rejected.items() if reason.endswith(_BY_STATE)}


def _inventory(state: State, groups: Groups, family: Family) -> tuple[NDArray[np.bool_], Ints, Ints]:
    """Per group: does it matter still, when does time take something from it, how many objects does it keep."""
    sizes = np.zeros(groups.total, np.int64)
    dues = np.full(groups.total, NEVER)
    for adapter in state.standing():
        if adapter.engine is not None and len(adapter.engine.kept):
            sizes += adapter.engine.kept
            if adapter.timed:
                dues = np.minimum(dues, np.where(adapter.engine.kept > 0, adapter.engine.due, NEVER))
    dead = (sizes == 0) & family.timed & bool(family.per)  # nobody asks for the numbers of time windows here
    return ~dead, dues, sizes


def _ask(monitor: Loop, queries: dict[str, Query]) -> None:
    """Other queries than last time: the same name and value goes on."""
    for name in monitor.state.queries.keys() - queries.keys():
        monitor.queries.drop(name)
    for name in queries:
        if name not in monitor.state.queries:
            monitor.queries.add(name, queries[name])


def _nobody(batch: Any) -> Any:
    """In the place of the callable of a query that is going to be dropped."""
    raise StateError("a dropped query is scored no more.")


def compare(stored: dict[str, Any], asked: dict[str, Any]) -> None:
    """State goes on only with what it was made by; new and dropped queries are no change."""
    if stored["shards"] != asked["shards"]:
        raise StateError(
            f"the checkpoint was written with shards={stored['shards']}, and groups cannot move. "
            f"Run with shards={stored['shards']}, or start from a new checkpoint."
        )
    if stored["options"] != asked["options"]:
        raise StateError(
            f"the checkpoint was written with other options ({stored['options']}, now {asked['options']}). "
            "Run with those, or start from a new checkpoint."
        )
    for name, data in stored["queries"].items():
        if asked["queries"].get(name, data) != data:
            raise StateError(
                f"the query {name!r} differs from the one in the checkpoint ({data}). "
                "Give the new question a new name, or start from a new checkpoint."
            )
