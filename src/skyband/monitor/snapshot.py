"""A Monitor's state as bytes: a few facts, and cells of what is kept by group (one for each `per`; on Spark many)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.kinds import adapter_class
from skyband.engines.numbering import Start
from skyband.engines.numbers_at_rest import NumbersAtRest
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.ordered_adapter import OrderedAdapter
from skyband.engines.topk.scorings import BLOCK
from skyband.engines.topk.similar_adapter import slots_kind
from skyband.engines.topk.window_adapter import WindowAdapter, remember_reported
from skyband.engines.unsubscribed import UnsubscribedAdapter
from skyband.errors import QueryError, StateError
from skyband.monitor import cells, strangers
from skyband.monitor.archive import pack, unpack
from skyband.monitor.book import Book
from skyband.monitor.over import Over
from skyband.monitor.slots import restored_slots
from skyband.monitor.sources import names_of, states_of
from skyband.monitor.state import State
from skyband.monitor.subscription_snapshot import (
    describe_subscriptions,
    owner_of_slots,
    restore_queries,
    restore_subscriptions,
    subscriptions_fit,
)
from skyband.monitor.subscriptions import close_gaps
from skyband.query.kinds import Query
from skyband.query.options import Options
from skyband.query.validation import as_stored, column_names, input_name, output_name
from skyband.tables.columns import KeptColumns, as_arrow
from skyband.tables.groups import Groups
from skyband.tables.subscriptions import owner_of

Ints = NDArray[np.int64]
AT_REST = ("keys", "checks", "numbers")  # the arrays of groups without objects
Callables = Mapping[str, Callable[..., Any]]
Lookup = Callable[[str, Any], Any]  # a query from its name and its stored form


def save(state: State) -> bytes:
    close_gaps(state)
    facts, parts = describe(state)
    for i, groups in enumerate(state.groups.values()):
        (cell,) = cut(state, groups, np.arange(groups.total), np.array([0, groups.total]))
        parts[f"cell{i}"] = np.frombuffer(cell, np.uint8)
        for j, adapter in enumerate(_over(state, groups)):
            for k, arrays in enumerate(adapter.numbering.at_rest.arrays()):
                parts |= {f"rest{i}.{j}.{k}.{name}": array for name, array in zip(AT_REST, arrays, strict=True)}
    if state.over:
        facts["standing"] = state.order
        facts["over"] = {}
        for i, (source, over) in enumerate(state.over.items()):
            facts["over"][source], parts[f"members{i}"] = over.described()
            parts[f"over{i}"] = np.frombuffer(save(over.loop.state), np.uint8)
    return pack(facts, parts)


def load(data: bytes, callables: Callables, *, trusted: bool, device: str | None = None) -> State:
    """The inverse of `save`; what is not trusted is checked, so that no array can harm a kernel."""

    def lookup(name: str, stored: dict[str, Any] | Query) -> Query:
        if isinstance(stored, Query):  # of a subscription
            query = stored
        else:
            by = stored.get("by")
            call: Any = callables if isinstance(by, list) else None
            if isinstance(by, dict):
                call = callables.get(name, callables.get(by.get("callable", "")))
            query = Query.from_dict(stored, call)
        if not trusted:
            strangers.check_size(name, query, max(strangers.MOST, len(data)))
        return query

    return revive(data, lookup, trusted=trusted, device=device)


def revive(data: bytes, lookup: Lookup, *, trusted: bool = True, device: str | None = None, deep: int = 0) -> State:
    """The inverse of `save`, with the queries that this finds; deep: in so many other snapshots."""
    facts, parts = unpack(data)
    if not trusted:
        strangers.check_parts(parts, len(data), deep)
    try:
        with np.errstate(all="ignore"):
            state = restore(facts, parts, lookup, device)
            if not trusted:
                strangers.check_queries(state, inner=deep > 0)
            for i, groups in enumerate(state.groups.values()):
                join(state, groups, [parts[f"cell{i}"].tobytes()], trusted=trusted)
                for j, adapter in enumerate(_over(state, groups)):
                    _read_at_rest(adapter, parts, f"rest{i}.{j}")
            _read_over(state, facts, parts, lookup, trusted=trusted, deep=deep + 1)
            state.share_windows(everything=True)
        return state
    except (QueryError, StateError):
        raise
    except Exception as error:  # whatever a forged fact or array leads to
        raise StateError(f"the snapshot's contents do not fit together ({error!r}). Use an intact copy.") from error


def _read_over(state: State, facts: Any, parts: Any, lookup: Lookup, *, trusted: bool, deep: int) -> None:
    """The loops over answers, from a snapshot."""
    from skyband.monitor.loop import Loop

    for i, (source, stored) in enumerate(facts.get("over", {}).items()):
        inner = revive(parts[f"over{i}"].tobytes(), lookup, trusted=trusted, deep=deep)
        inner.source, inner.commit = source, state.commit
        over = state.over[source] = Over(source, Loop(inner, settles=True))
        fit = source in state.adapters and inner.options.inner
        if not fit or not over.restore(stored, parts[f"members{i}"], state.queries[source].per_columns):
            raise StateError("the stored questions over answers do not fit together. Use an intact copy.")
    state.order = list(facts.get("standing", state.order))
    if sorted(state.order) != sorted(names_of(state)) and state.over and not state.options.inner:
        raise StateError("the stored queries and their order do not fit together. Use an intact copy.")
    for inner in states_of(state):
        inner.order, inner.commit = state.order, state.commit


def _over(state: State, groups: Groups) -> list[Adapter]:
    return [adapter for adapter in state.standing() if adapter.groups is groups]


def _read_at_rest(adapter: Adapter, parts: dict[str, Any], name: str) -> None:
    """The numbers of groups without objects, from a snapshot."""
    at_rest, piece = adapter.numbering.at_rest, 0
    while f"{name}.{piece}.keys" in parts:
        keys, checks, numbers = (parts[f"{name}.{piece}.{array}"] for array in AT_REST)
        if not (
            (keys.dtype, checks.dtype, numbers.dtype.kind) == (np.int64, np.uint16, "u")
            and keys.ndim == 1
            and checks.shape == keys.shape
            and numbers.shape == (at_rest.sequences, len(keys))
            and int(numbers.max(initial=0)) < 2**62
            and len(keys)
        ):
            raise StateError("the stored groups without objects do not fit together. Use an intact copy.")
        at_rest.put(keys, checks, numbers)
        piece += 1


def describe(state: State) -> tuple[dict[str, Any], dict[str, Any]]:
    """All but the groups: facts for JSON, and parts. Before it, and before `cut`: `close_gaps`."""
    families = list(state.groups.values())
    facts = {
        "options": state.options.stored,
        "order": list(state.adapters),
        "groups": [as_stored(names) for names in state.groups],
        "homes": [_describe_adapter(adapter, families.index(adapter.groups)) for adapter in state.standing()],
        "clock": state.clock,
        "serial": state.serial,
        "counters": state.counters,
    }
    parts = {"types": pa.table([pa.nulls(0, type_) for type_ in state.types.values()], names=list(state.types))}
    if state.ahead is not None:
        parts["ahead"] = pa.table({"to": [state.ahead]})
    describe_subscriptions(state, facts, parts)
    return facts, parts


def _describe_adapter(adapter: Adapter, groups: int) -> dict[str, Any]:
    none = np.empty(0, np.int64)
    arrays = {} if adapter.engine is None else adapter.engine.snapshot(none)
    return {
        "groups": groups,
        "queries": {
            name: query.to_dict() if owner_of(name) is None else None for name, query in adapter.queries.items()
        },
        "algorithm": adapter.algorithm,
        "started": adapter.engine is not None,
        "family": adapter.family,
        **({"scored": adapter.scored, "born": adapter.born} if isinstance(adapter, WindowAdapter) else {}),
        "arrays": {name: _fields(array.dtype) for name, (array, _) in arrays.items()},
        "lengths": adapter.numbering.lengths,
        "lanes": adapter.sequences().tolist(),
        "arrivals": adapter.numbering.arrivals.tolist(),
        "late": adapter.numbering.late.tolist(),
        "rejected": adapter.rejected,
        "since": adapter.numbering.since,
        "own": adapter.extra_facts(),
    }


@cache
def _fields(dtype: np.dtype[Any]) -> str:
    return str(dtype.descr)


def restore(facts: dict[str, Any], parts: dict[str, Any], lookup: Lookup, device: str | None = None) -> State:
    """The inverse of `describe`; nothing is known of any group yet."""
    _check_counts(facts["counters"])
    if not _whole(facts["serial"]) or not (facts["clock"] is None or _whole(facts["clock"], -(2**63))):
        raise StateError("the stored clock or row number is no number. Use an intact copy.")
    state = State(Options(**facts["options"], device=device))
    state.types = {field.name: field.type for field in parts["types"].schema}
    state.clock, state.serial, state.counters = facts["clock"], facts["serial"], facts["counters"]
    if "ahead" in parts:
        state.ahead = parts["ahead"].column("to")[0].as_py()
    state.groups = {}
    for stored in facts["groups"]:
        names = column_names("per", stored)
        state.groups[names] = Groups(tuple(map(output_name, names)), tuple(map(input_name, names)))
    restore_subscriptions(state, facts, parts, lookup)
    adapters: dict[str, Adapter] = {}
    for saved in facts["homes"]:
        adapter = _restore_adapter(saved, state, lookup)
        if not adapters.keys().isdisjoint(adapter.queries):
            raise StateError("a stored query is there twice. Use an intact copy.")
        adapters |= dict.fromkeys(adapter.queries, adapter)
    state.adapters = Book({name: adapters[name] for name in facts["order"]})
    state.order = list(state.adapters)
    state.subscribed = Book({name: adapter for name, adapter in adapters.items() if owner_of(name) is not None})
    for book in (state.adapters, state.subscribed):
        book.keep_order(adapters.values())
    if not subscriptions_fit(state) or len(state.adapters) + len(state.subscribed) != len(adapters):
        raise StateError("the stored queries and their order do not fit together. Use an intact copy.")
    remember_reported(state.standing())
    return state


def _whole(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


def _check_counts(counters: dict[str, Any]) -> None:
    counts = [counters["arrivals"], counters["late"], *counters["rejected"].values()]
    if not all(map(_whole, counts)):
        raise StateError("a stored counter is no number. Use an intact copy.")


def _check_adapter(saved: dict[str, Any]) -> None:
    """Numbers where kernels rely on numbers; arrays are checked by their engine."""
    lengths, lanes, own = saved["lengths"], saved["lanes"], saved.get("own") or {}
    totals = [saved["arrivals"], saved["late"]]
    fit = all(isinstance(one, list) and all(map(_whole, one)) for one in (lengths, lanes, *totals))
    fit = (
        fit
        and _whole(saved["groups"])
        and isinstance(saved["started"], bool)
        and isinstance(saved["family"], bool)
        and all(map(_whole, [saved.get("since", 0), *saved["rejected"].values(), *own.get("scoreless", {}).values()]))
    )
    fit = fit and len(totals[0]) == len(totals[1]) > 0
    if fit and saved["started"]:
        fit = len(lanes) == len(saved["queries"]) and all(len(one) == len(lengths) > 0 for one in totals)
        fit = fit and max(lanes) < len(lengths)
    if not fit:
        raise StateError("what is stored of a query does not fit together. Use an intact copy.")


def _restore_adapter(saved: dict[str, Any], state: State, lookup: Lookup) -> Adapter:
    _check_adapter(saved)
    if (owner := owner_of_slots(saved)) is not None:
        return _going_on(restored_slots(state, state.subscriptions[owner], saved), saved, state)
    queries = restore_queries(saved, state, lookup)
    groups = list(state.groups.values())[saved["groups"]]
    example = next(iter(queries.values()))
    if any((query.per_columns, query.per_inputs) != (groups.names, groups.inputs) for query in queries.values()):
        raise StateError("a stored query and its groups do not fit together. Use an intact copy.")
    none, algorithm = np.empty(0, np.int64), saved["algorithm"]
    own = saved.get("own") or {}
    kind: Any = UnsubscribedAdapter if example.each else adapter_class(example, algorithm, keyed="keys" in own)
    more: dict[str, Any] = {}
    if example.each:
        more = {"subscriptions": state.subscriptions[next(iter(queries))]}
    elif issubclass(kind, WindowAdapter):
        more = {"algorithm": algorithm, "scored": saved["scored"], "born": saved["born"]}
    elif issubclass(kind, OrderedAdapter):
        more = {"algorithm": algorithm, "keyed": "keys" in own}
    elif saved["family"] and algorithm == BLOCK:
        kind = slots_kind(example)
    elif issubclass(kind, TopKAdapter):
        more = {"family": saved["family"], "reading": own.get("reading") is True if saved["started"] else None}
    adapter: Adapter = kind(example, groups, state.options, Start(none, NumbersAtRest(1)), **more)
    adapter.queries, adapter.algorithm = queries, algorithm
    if own:  # older snapshots have none
        adapter.restore_facts(own)
    return _going_on(adapter, saved, state)


def _going_on(adapter: Adapter, saved: dict[str, Any], state: State) -> Adapter:
    if saved["started"]:
        adapter.start(state.unit)
        adapter.reads_stored(saved["arrays"])
        if _describe_adapter(adapter, 0)["arrays"] != saved["arrays"]:
            raise StateError("the state's arrays have fields that this version does not know. Take a new snapshot.")
    adapter.numbering.lengths, adapter.numbering.of_query = saved["lengths"], np.array(saved["lanes"], np.int64)
    adapter.numbering.arrivals, adapter.numbering.late = np.array(saved["arrivals"]), np.array(saved["late"])
    adapter.numbering.counts = np.zeros((len(adapter.numbering.arrivals), 0), np.int64)
    adapter.numbering.at_rest = NumbersAtRest(len(adapter.numbering.arrivals))
    adapter.rejected, adapter.numbering.since = saved["rejected"], saved.get("since", 0)
    if adapter.numbering.since and not state.options.inner:
        raise StateError("only a query over answers begins with an object of its source. Use an intact copy.")
    return adapter


def cut(state: State, groups: Groups, order: Ints, bounds: Ints) -> cells.Cells:
    """What is known of these groups, as cells: the groups order[bounds[i]:bounds[i + 1]] are in cell i."""
    streams: list[cells.Stream] = []
    for i, type_ in enumerate(_types(state, groups.inputs)):
        column = _cast(groups.columns[i].take(order), type_) if groups.columns else pa.nulls(0, type_)
        streams += cells.column_streams(column, bounds)
    for adapter in _over(state, groups):
        adapter.numbering.widen()
        streams.append(cells.array_stream(adapter.numbering.counts.T[order], bounds))
        if adapter.numbering.dated:
            streams.append(cells.array_stream(adapter.numbering.last_times[order], bounds))
        if adapter.engine is None:
            continue
        for array, sizes in adapter.engine.snapshot(order).values():
            streams.append(cells.array_stream(array, _places(sizes, bounds)))
        serials, sizes = adapter.engine.serials(order)
        kept, places = adapter.kept_columns, _places(sizes, bounds)
        found = kept.places(serials) if kept.columns else serials
        for name, type_ in adapter.kept_types(state.types).items():
            known = name in kept.columns
            column = _cast(kept.columns[name].take(found), type_) if known else pa.nulls(len(serials), type_)
            streams += cells.column_streams(column, places)
    return cells.write(streams, len(bounds) - 1)


def join(state: State, groups: Groups, stored: Sequence[bytes], *, trusted: bool = True) -> None:
    """The inverse of `cut`, into a state that knows no group yet; groups come in the order of the cells.

    Cells on Spark are trusted: they are as safe as the checkpoint that holds them.
    """
    adapters = _over(state, groups)
    types = _types(state, groups.inputs)
    count = sum(map(cells.column_width, types))
    for adapter in adapters:
        count += 1 + adapter.numbering.dated
        if adapter.engine is not None:
            count += len(adapter.engine.snapshot(np.empty(0, np.int64)))
            count += sum(map(cells.column_width, adapter.kept_types(state.types).values()))
    streams = iter(cells.read(stored, count))

    def column(type_: Any) -> Any:
        return cells.join_column([next(streams) for _ in range(cells.column_width(type_))], type_, trusted=trusted)

    columns = [column(type_) for type_ in types]
    if not trusted and any(len(one) > sum(map(len, stored)) for one in columns):  # nulls take no bytes
        raise StateError("there are more stored groups than bytes. Use an intact copy.")
    if columns and len(columns[0]):
        groups.codes(columns, len(columns[0]))
    if any(len(one) != groups.total for one in columns):
        raise StateError("a stored group is there twice. Use an intact copy.")
    for adapter in adapters:
        lanes = len(adapter.numbering.counts)
        adapter.numbering.counts = np.ascontiguousarray(cells.join_array(next(streams), np.int64).reshape(-1, lanes).T)
        if adapter.numbering.dated:
            adapter.numbering.last_times = cells.join_array(next(streams), np.int64).copy()
        if not trusted:
            strangers.check_numbers(state, adapter)
        if adapter.engine is None:
            continue
        layout = adapter.engine.snapshot(np.empty(0, np.int64))
        arrays = {name: cells.join_array(next(streams), array.dtype) for name, (array, _) in layout.items()}
        if not trusted:
            strangers.check_stamps(state, adapter, arrays)
        adapter.engine.restore(arrays, trusted=trusted)
        serials, _ = adapter.engine.serials()
        if len(serials) and not 0 <= serials.min() <= serials.max() < state.serial:
            raise StateError("the stored state has objects that have not arrived yet. Use an intact copy.")
        if len(serials) and adapter.timed and state.clock is None:
            raise StateError("the stored state has objects and no clock. Use an intact copy.")
        rising = np.argsort(serials)
        kept = {name: column(type_) for name, type_ in adapter.kept_types(state.types).items()}
        if any(len(one) != len(serials) for one in kept.values()):
            raise StateError("the stored columns and objects do not fit together. Use an intact copy.")
        kept = {name: one.take(as_arrow(rising)) for name, one in kept.items()}
        adapter.output.kept_columns = KeptColumns()
        if kept:
            adapter.kept_columns.add(serials[rising], kept)
        if not trusted:
            strangers.check_adapter(state, adapter)
        adapter.after_restore()


def _types(state: State, names: Iterable[str]) -> list[Any]:
    """Of the `per` columns; none before the first row."""
    return [state.types[name] for name in names if name in state.types]


def _places(sizes: Ints, bounds: Ints) -> Ints:
    """Where cells begin and end, counted in entries of which each group has so many."""
    return np.concatenate([[0], np.cumsum(sizes)])[bounds]


def _cast(column: Any, type_: Any) -> Any:
    return column if column.type == type_ else column.cast(type_)
