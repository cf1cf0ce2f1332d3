"""The state of another checkpoint as the beginning of a new one: `monitor(start_from=...)`.

Each shard of the old checkpoint is read as a whole, and what each new shard needs of it goes there: of a set with `per`
the groups that hash there, of a set without it the queries. The old queries come under names of their own; the new ones
begin with what these keep, as with `Monitor.add(from_window=True)`, in the first trigger, and then the old ones go.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.pairs.adapter import PairsAdapter
from skyband.errors import StateError
from skyband.monitor import cells as streams_of
from skyband.monitor.archive import pack, unpack
from skyband.monitor.book import Book
from skyband.monitor.loop import Loop
from skyband.monitor.snapshot import cut, describe, join, restore
from skyband.monitor.state import State
from skyband.monitor.subscriptions import close_gaps
from skyband.query.kinds import Query
from skyband.spark.compression import plain_bytes
from skyband.spark.plan import Plan, QuerySet, hash_groups, labels, old_name, shard_of, shard_of_query

SEED = "shard int, blob binary"
OLD = old_name("")
SEEDS = -2  # in the place of a query set's number in the keys of cells: a piece of another checkpoint
_FREE = ("emit", "invalid", "order", "forget", "blocks")  # options that are not part of what the state means

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Carried:
    """Which old query each new one begins with; why the others do not."""

    old: dict[str, str]  # by new name
    empty: dict[str, str]  # new name -> why it starts empty
    discarded: tuple[str, ...]

    def fates(self) -> dict[str, str]:
        """In words."""
        words = {new: "is carried over" + (f" from {old!r}" if old != new else "") for new, old in self.old.items()}
        words |= {new: f"starts empty: {why}" for new, why in self.empty.items()}
        return words | dict.fromkeys(self.discarded, "is discarded")


def carried(plan: Plan, heads: Iterable[bytes]) -> Carried:
    """What a plan can take over from the state with these heads; a StateError names what it cannot and should."""
    stored: dict[str, Any] = {}
    lenders: dict[str, set[str]] = {name: set() for name in plan.queries}
    refusing: dict[str, set[str]] = {name: set() for name in plan.queries}
    for head in heads:
        facts, _ = unpack(zlib.decompress(head))
        stored = facts["asked"]
        _compare_options(stored["options"], plan)
        for query_set, state in _states(plan, head, {}, None):
            _split(state)
            for name in plan.query_sets.get(query_set, {}):
                for old, adapter in state.adapters.items():
                    if adapter.engine is None:
                        continue  # nothing has come here
                    able = adapter.can_lend(plan.queries[name], state.unit)
                    (lenders if able else refusing)[name].add(old.removeprefix(OLD))
    found: dict[str, str] = {}
    empty: dict[str, str] = {}
    for name, query in plan.queries.items():
        fit = [old for old in stored["queries"] if old in lenders[name] - refusing[name]]
        same = [old for old in fit if stored["queries"][old] == query.to_dict()]
        chosen = name if name in fit else next(iter(same or fit), None)
        if chosen is not None:
            found[name] = chosen
        elif name in stored["queries"] and name in refusing[name] | _apart(plan, stored):
            raise StateError(
                f"start_from: {name!r} cannot go on from the query of that name in the checkpoint "
                f"({stored['queries'][name]}): it needs the same question with at least its k and its window, no "
                "subscriptions, no pairs by blocks, and nobody asks over answers. Give it a new name, and it starts "
                "empty."
            )
        else:
            empty[name] = "nothing in the checkpoint keeps what it needs"
    return Carried(found, empty, tuple(old for old in stored["queries"] if old not in found.values()))


def _apart(plan: Plan, stored: dict[str, Any]) -> set[str]:
    """Queries that are never carried over."""
    return {
        name
        for name, query in plan.queries.items()
        if name in stored["queries"] and (query.each or name in plan.blocked or name in plan.roots)
    }


def _compare_options(stored: Mapping[str, Any], plan: Plan) -> None:
    given = plan.fingerprint["options"]
    names = [name for name in {**stored, **given} if name not in _FREE]
    other = [name for name in names if stored.get(name) != given.get(name)]
    if other:
        listed = ", ".join(f"{name}={stored.get(name)!r} there, {given.get(name)!r} here" for name in sorted(other))
        raise StateError(f"start_from: the checkpoint was written with other options ({listed}). Run with those.")


def pieces(plan: Plan, head: bytes, stored: Mapping[tuple[int, int], bytes]) -> Iterator[tuple[int, bytes]]:
    """What each new shard needs of an old shard: (its number, bytes)."""
    _, parts = unpack(zlib.decompress(head))
    clock = {"clock": parts["clock"]} if "clock" in parts else {}
    for shard in range(plan.shards):
        yield shard, pack({"set": None}, clock)
    wanted = {OLD + name for name in plan.carried.values()}
    for query_set, state in _states(plan, head, stored, plan.carried):
        if not wanted & state.adapters.keys() or query_set not in plan.query_sets:
            continue
        _split(state)
        _keep(state, wanted)
        if query_set.per:
            yield from _by_group(plan, query_set, state)
        else:
            yield from _by_query(plan, query_set, state)


def _by_group(plan: Plan, query_set: QuerySet, state: State) -> Iterator[tuple[int, bytes]]:
    (groups,) = state.groups.values()
    if not groups.total:
        return
    close_gaps(state)
    facts, parts = describe(state)
    shards = shard_of(hash_groups([column.take(np.arange(groups.total)) for column in groups.columns]), plan.shards)
    order = np.argsort(shards, kind="stable")
    bounds = np.searchsorted(shards[order], np.arange(plan.shards + 1))
    for shard, cell in enumerate(cut(state, groups, order, bounds)):
        if bounds[shard] < bounds[shard + 1]:
            yield shard, _packed(query_set, facts, parts, cell)


def _by_query(plan: Plan, query_set: QuerySet, state: State) -> Iterator[tuple[int, bytes]]:
    targets = {name: shard_of_query(query, plan.shards) for name, query in state.queries.items()}
    for shard in sorted(set(targets.values())):
        mine = _copy(state)
        _keep(mine, {name for name, target in targets.items() if target == shard})
        (groups,) = mine.groups.values()
        close_gaps(mine)
        facts, parts = describe(mine)
        (cell,) = cut(mine, groups, np.arange(groups.total), np.array([0, groups.total]))
        yield shard, _packed(query_set, facts, parts, cell)


def _packed(query_set: QuerySet, facts: dict[str, Any], parts: dict[str, Any], cell: bytes) -> bytes:
    facts = json.loads(json.dumps(facts))
    return pack({"set": query_set.facts(), "facts": facts}, {**parts, "cell": np.frombuffer(cell, np.uint8)})


def _copy(state: State) -> State:
    close_gaps(state)
    (groups,) = state.groups.values()
    (cell,) = cut(state, groups, np.arange(groups.total), np.array([0, groups.total]))
    facts, parts = describe(state)
    copy = restore(json.loads(json.dumps(facts)), parts, lambda name, _: state.queries[name])
    (fresh,) = copy.groups.values()
    join(copy, fresh, [cell])
    return copy


def seeds_of(cells: Any) -> list[bytes]:
    """The pieces that a new shard was given."""
    return [value[0] for key, value in cells.iterator() if key[0] == SEEDS]


def planted(plan: Plan, blobs: Iterable[bytes]) -> tuple[Any, dict[QuerySet, State]]:
    """The clock (a table of one row, or None) and the states of a new shard, from the pieces that came there."""
    clock: Any = None
    found: dict[QuerySet, list[tuple[State, bytes]]] = {}
    for blob in sorted(map(bytes, blobs)):
        facts, parts = unpack(blob)
        if facts["set"] is None:
            if "clock" in parts and (clock is None or _later(parts["clock"], clock)):
                clock = parts["clock"]
            continue
        state = restore(facts["facts"], parts, _lookup(plan, plan.carried))
        found.setdefault(QuerySet.of(facts["set"]), []).append((state, parts["cell"].tobytes()))
    return clock, {one: _joined(one, states) for one, states in found.items()}


def _later(one: pa.Table, other: pa.Table) -> bool:
    return bool(one.column("clock")[0].as_py() > other.column("clock")[0].as_py())


def _joined(query_set: QuerySet, given: list[tuple[State, bytes]]) -> State:
    """One state of several: of the same queries in other groups, or without `per` of other queries."""
    for state, cell in given[1:] if not query_set.per else ():
        (groups,) = state.groups.values()
        join(state, groups, [cell])
    first = given[0][0]
    serials = [state.serial for state, _ in given]
    first.serial = sum(serials)
    first.clock = max(state.clock for state, _ in given)
    (groups,) = first.groups.values()
    if not query_set.per:
        join(first, groups, [given[0][1]])
        for state, _ in given[1:]:
            for name, adapter in state.adapters.items():
                adapter.groups = adapter.numbering.groups = groups
                first.adapters[name] = adapter
                first.order.append(name)
            first.types |= state.types
        return first
    forms = [_form(state) for state, _ in given]
    if any(form != forms[0] for form in forms):
        raise StateError(
            "start_from: the shards of the checkpoint keep their groups in different forms, which cannot be put "
            "together. Use as many shards as it has, or a multiple."
        )
    shifts = (np.cumsum(serials) - serials).tolist()
    parts = [_shifted(state, cell, shift) for (state, cell), shift in zip(given, shifts, strict=True)]
    join(first, groups, parts)
    return first


def _form(state: State) -> Any:
    """What must be equal for cells to be read together."""
    facts, parts = describe(state)
    counted = ("arrivals", "late", "rejected", "since")
    homes = [{name: fact for name, fact in home.items() if name not in counted} for home in facts["homes"]]
    for home in homes:
        home["own"] = {name: fact for name, fact in (home["own"] or {}).items() if name != "scoreless"}  # a counter too
    types = sorted(map(str, parts["types"].schema))  # in the order in which a shard has met them: the clock, or rows
    return json.dumps([homes, facts["groups"], types])


def _shifted(state: State, cell: bytes, shift: int) -> bytes:
    """A cell whose objects have serials beyond those of other cells."""
    if not shift:
        return cell
    (groups,) = state.groups.values()
    wide = [streams_of.column_width(state.types[name]) for name in groups.inputs if name in state.types]
    kinds: list[Any] = [None] * sum(wide)  # of each stream the type of its records, where these have serials
    for adapter in state.standing():
        kinds += [None] * (1 + adapter.numbering.dated)
        if adapter.engine is None:
            continue
        for array, _ in adapter.engine.snapshot(np.empty(0, np.int64)).values():
            kinds.append((array.dtype, _serials(adapter, array.dtype)))
        kinds += [None] * sum(map(streams_of.column_width, adapter.kept_types(state.types).values()))
    read = streams_of.read([cell], len(kinds))
    for stream, kind in zip(read, kinds, strict=True):
        if kind is not None and kind[1]:
            records = np.frombuffer(stream[0], kind[0]).copy()
            for name in kind[1]:
                records[name] += np.where(records[name] >= 0, shift, 0)
            stream[0] = records.tobytes()
    (shifted,) = streams_of.write(read, 1)
    return shifted


def _serials(adapter: Any, dtype: np.dtype[Any]) -> list[str]:
    names = ("serial", "older", "newer") if isinstance(adapter, PairsAdapter) else ("serial",)
    return [name for name in names if name in (dtype.names or ())]


def _states(
    plan: Plan, head: bytes, stored: Mapping[tuple[int, int], bytes], old: Mapping[str, str] | None
) -> Iterator[tuple[QuerySet, State]]:
    """The states of an old shard, under the names of old queries; without cells, if there are none."""
    facts, parts = unpack(zlib.decompress(head))
    for i, (number, *saved) in enumerate(facts["families"]):
        query_set = QuerySet.of(saved)
        described = facts["described"][i]
        if (
            query_set.blocks
            or query_set.root
            or str(number) in facts.get("journals", {})  # subscriptions
            or described.get("subscriptions")
            or any(name for name in described["order"] if _each(facts, name))
        ):
            continue
        described["options"] |= {name: plan.monitor_options(query_set)[name] for name in ("emit", "invalid")}
        own = {name[len(f"{i}.") :]: part for name, part in parts.items() if name.startswith(f"{i}.")}
        state = restore(described, own, _lookup(plan, old))
        for groups in state.groups.values():
            join(state, groups, [stored[place] for place in sorted(stored) if place[0] == number])
        yield query_set, _renamed(state)


def _each(facts: dict[str, Any], name: str) -> bool:
    return bool(Query.from_dict(facts["asked"]["queries"][name], _nothing).each)


def _lookup(plan: Plan, old: Mapping[str, str] | None) -> Any:
    """Old queries from their stored form, with the functions of the queries that go on from them."""

    def lookup(name: str, saved: Any) -> Query:
        plain = name.removeprefix(OLD)
        heirs = [plain, *(plan.queries if old is None else [new for new, one in old.items() if one == plain])]
        by = [getattr(plan.queries[heir], "by", None) for heir in heirs if heir in plan.queries]
        call = next((one for one in by if callable(one)), _nothing)
        return Query.from_dict(saved, call)

    return lookup


def _nothing(batch: Any) -> Any:
    raise StateError("a query that is not carried over is not scored any more.")


def _renamed(state: State) -> State:
    names = {name: OLD + name for name in state.adapters}
    for adapter in state.standing():
        adapter.rename(names)
    state.adapters = Book({names[name]: adapter for name, adapter in state.adapters.items()})
    state.order, state.query_names = list(state.adapters), None
    return state


def _split(state: State) -> None:
    """Give each query of a family an engine of its own, from which others can go on."""
    with state.commit:
        Loop(state).queries.split(lambda adapter: adapter.family and not adapter.keeps_window)


def _keep(state: State, names: set[str]) -> None:
    loop = Loop(state)
    for name in [one for one in state.adapters if one not in names]:
        loop.queries.drop(name)


def spread(plan: Plan, frame: pa.Table) -> pa.Table:
    """The rows of one old shard (family, cell, data; -1 is the head) as pieces for the new ones."""
    stored = {(row["family"], row["cell"]): plain_bytes(row["data"]) for row in frame.to_pylist()}
    head = stored.pop((-1, -1))
    keys = labels(plan.shards)
    found = [(keys[shard], blob) for shard, blob in pieces(plan, head, stored)]
    arrays = [pa.array([shard for shard, _ in found], pa.int32()), pa.array([blob for _, blob in found], pa.binary())]
    return pa.table(arrays, names=["shard", "blob"])
