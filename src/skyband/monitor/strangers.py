"""Snapshots of strangers: checks of everything that is not an engine's own, before a kernel sees it.

Engines check their own arrays (`Engine.restore`, `Engine.check`). Cost: O(n log n), without a loop over objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.engines.invariants import FAR, require, within
from skyband.engines.registry import choose, choose_for_keys
from skyband.engines.topk.ordered_adapter import OrderedAdapter
from skyband.engines.topk.scorings import family_key, window_key
from skyband.engines.topk.subscribed_adapter import SubscribedAdapter
from skyband.engines.topk.window_adapter import WindowAdapter
from skyband.engines.unsubscribed import UnsubscribedAdapter
from skyband.monitor.queries import StandingQueries
from skyband.monitor.state import State
from skyband.query.kinds import Query
from skyband.query.options import ALL
from skyband.query.tuning import Tuning
from skyband.tables.input import is_time
from skyband.tables.push import BEGINNING

MOST = 1 << 20  # of k, and of each number of a query that says how much memory to take; more, if so many bytes came
DEEPEST = 16  # snapshots within snapshots: each takes memory for all that is in it
STAMPS = ("stamp", "old", "new")


def check_parts(parts: Mapping[str, Any], size: int, deep: int) -> None:
    """Parts of a snapshot of so many bytes, in so many others, that are no larger when they are read."""
    require(deep <= DEEPEST, f"questions over answers are at most {DEEPEST} deep")
    tables = [part for part in parts.values() if isinstance(part, pa.Table)]
    require(all(table.num_rows <= size for table in tables), "stored tables have no more rows than bytes")


def check_size(name: str, query: Query, most: int) -> None:
    """A query whose engine takes no more than so many places, before there is one."""
    sizes = [getattr(query, "k", 0), *(getattr(query.tuning, field.name) for field in fields(Tuning)[2:-1])]
    require(all(size <= most for size in sizes if isinstance(size, int)), f"{name} keeps no more than {most:,}")


def check_queries(state: State, *, inner: bool) -> None:
    """Queries that this Monitor would take, and that can share the engines that they share.

    inner: they ask over the answers of another query.
    """
    require(state.options.inner == inner, "columns have names that are free")
    time = state.types.get(str(state.options.time))
    require(time is None or is_time(time), "the time column holds times")
    started = any(adapter.engine is not None for adapter in state.standing())
    require(not started or state.options.keep != (ALL,), "columns that are kept have names")
    require(all(map(_is_plain, state.types.values())), "columns have types that snapshots of strangers may have")
    low, high = time_range(state)
    require(state.clock == BEGINNING or low <= state.clock <= high, "the clock is a time")
    require(state.serial < FAR, "rows are numbered")
    standing = StandingQueries(state)
    for name, query in state.queries.items():
        standing.checked(name, query)
    for adapter in state.standing():
        _check_shared(adapter)
        types = getattr(adapter, "key_types", ())
        require(all(map(_is_plain, types)), "keys have types that snapshots of strangers may have")
        if adapter.engine is not None:
            numbering, lengths = adapter.numbering, adapter.lengths(state.unit)
            require([numbering.lengths[i] for i in numbering.of_query] == lengths, "queries have their numbers")
            require(adapter.timed or len(numbering.lengths) == 1, "count windows have one number")


def _check_shared(adapter: Adapter) -> None:
    queries, algorithm = list(adapter.queries.values()), adapter.algorithm
    if isinstance(adapter, UnsubscribedAdapter):
        require(choose(adapter.validates) == algorithm, "a query has its algorithm")
        return
    if isinstance(adapter, SubscribedAdapter):
        return  # made from its query, and checked then
    keyed = isinstance(adapter, OrderedAdapter) and adapter.labels  # a column that is no number is a key
    for query in queries:
        if keyed and choose_for_keys(query) == algorithm:
            continue
        if choose(query) != algorithm:  # queries that auto lets share a window, and the widest of uncertain ones
            choose(replace(query, algorithm=algorithm))
        require(query.algorithm in ("auto", algorithm), "a query has its algorithm")
    require(len({query.kind for query in queries} - {"TopK", "Above"}) <= 1, "queries of one kind share an engine")
    keys: list[Any]
    if isinstance(adapter, WindowAdapter):
        keys = [(window_key(_named(query), algorithm), adapter.scored and _named(query).by) for query in queries]
    elif adapter.family:
        keys = [family_key(query) for query in queries]
        require(None not in keys, "queries of a family have one form")
    else:
        require(len(queries) <= adapter.most, "an engine serves so many queries")
        keys = [adapter.key(_named(query)) for query in queries]
    require(all(key == keys[0] for key in keys), "queries that share an engine can share it")


def _named(query: Any) -> Any:
    """The query with one function for all: which one it is, a snapshot does not say."""
    return replace(query, by=_any_score) if callable(getattr(query, "by", None)) else query


def _any_score(batch: Mapping[str, Any], *others: Any) -> Any:
    raise NotImplementedError


def time_range(state: State) -> tuple[int, int]:
    """The first and the last instant that the time column can hold, with the longest window after it."""
    type_ = state.types.get(str(state.options.time))
    low, high = 1 - FAR, FAR - 1
    if type_ is not None:
        reach = [adapter.reach(state.unit) for adapter in state.standing()]
        kind = "u" if pa.types.is_unsigned_integer(type_) else "i"
        limits = np.iinfo(f"{kind}{type_.bit_width // 8}")
        low, high = max(low, int(limits.min)), min(high, int(limits.max) - max(reach, default=0))
    return low, high


def check_numbers(state: State, adapter: Adapter) -> None:
    """The numbers of groups, and the times of their last arrivals."""
    numbering, total = adapter.numbering, adapter.groups.total
    require(numbering.counts.shape == (len(numbering.arrivals), total), "every group has its numbers")
    require(within(numbering.counts.reshape(-1), 0, FAR), "numbers of arrivals are counts")
    if numbering.dated:
        known = numbering.last_times[numbering.last_times != BEGINNING]
        require(len(numbering.last_times) == total and within(known, *time_range(state)), "last arrivals have times")


def check_stamps(state: State, adapter: Adapter, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Stamps that the time column can hold; of count windows: numbers that have been given. Serials of rows so far."""
    low, high = time_range(state) if adapter.timed else (0, max(int(adapter.numbering.counts.max(initial=0)) - 1, 0))
    high = FAR if state.options.inner else high  # there they are numbers of objects
    for array in arrays.values():
        for name in array.dtype.names or ():
            if name == "serial":  # in samples too: kernels take those from here on for places in a batch
                require(within(array[name], -1, state.serial - 1), "rows have arrived")
            if name in STAMPS and array.dtype[name].kind == "i":
                known = array[name][(array[name] != 0) & (array[name] != -FAR)]
                require(within(known, low, high), "objects have stamps of the stream")


def check_adapter(state: State, adapter: Adapter) -> None:
    """An adapter whose engine and columns are there: every group is, and every object that may be reported."""
    assert adapter.engine is not None
    now = None if adapter.still or state.options.inner else adapter.now(state.clock)
    adapter.engine.check(deep=False, now=now)
    require(len(adapter.engine.kept) == adapter.groups.total, "every group is in its engine")
    if adapter.kept_columns.columns:
        known = np.isin(adapter.live_serials(), adapter.kept_columns.serials)
        require(known.all(), "the columns of objects are there")
    for name, column in adapter.kept_columns.columns.items():
        require(not name.startswith("number") or not column.all().null_count, "objects have numbers")


def _is_plain(type_: Any) -> bool:
    """A type whose values take memory that is a multiple of their bytes."""
    if isinstance(type_, pa.BaseExtensionType):
        return _is_plain(type_.storage_type)
    kinds = pa.types
    if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_map(type_):
        inner = [type_.key_type, type_.item_type] if kinds.is_map(type_) else [type_.value_type]
        return all(map(_is_plain, inner)) and not any(map(kinds.is_null, inner))
    if kinds.is_fixed_size_list(type_):
        return type_.list_size > 0 and not kinds.is_null(type_.value_type) and _is_plain(type_.value_type)
    if kinds.is_struct(type_):
        return type_.num_fields > 0 and all(_is_plain(type_.field(i).type) for i in range(type_.num_fields))
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary)
    return kinds.is_null(type_) or kinds.is_primitive(type_) or any(kind(type_) for kind in (*texts, kinds.is_decimal))
