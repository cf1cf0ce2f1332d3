"""A Monitor's state as a snapshot, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.columns import Column, Shelf, plain
from skyband.errors import QueryError, StateError
from skyband.groups import Groups
from skyband.options import Options
from skyband.query import TopK
from skyband.snapshot import pack, unpack
from skyband.standing import Standing, State


def save(state: State) -> bytes:
    standing = state.standing()
    parts: dict[str, Any] = {
        "types": pa.table([pa.nulls(0, type_) for type_ in state.types.values()], names=list(state.types)),
    }
    if state.ahead is not None:
        parts["ahead"] = pa.table({"to": [state.ahead]})
    for i, groups in enumerate(state.groups.values()):
        parts[f"groups{i}"] = _table(groups.names, groups.columns)
    homes = []
    for i, home in enumerate(standing):
        homes.append(_save_home(home, list(state.groups.values()).index(home.groups)))
        parts[f"{i}.counts"], parts[f"{i}.moments"] = home.counts, home.moments
        if home.engine is not None:
            parts |= {f"{i}.engine.{name}": array for name, array in home.engine.snapshot().items()}
            home.shelf.sweep(home.engine.serials())
        parts[f"{i}.serials"] = home.shelf.serials
        parts[f"{i}.shelf"] = _table(home.shelf.columns, list(home.shelf.columns.values()))
    facts = {
        "options": asdict(state.options),
        "order": list(state.homes),
        "groups": [list(names) for names in state.groups],
        "homes": homes,
        "clock": state.clock,
        "serial": state.serial,
        "counters": state.counters,
    }
    return pack(facts, parts)


def _save_home(home: Standing, groups: int) -> dict[str, Any]:
    return {
        "groups": groups,
        "queries": {name: query.to_dict() for name, query in home.queries.items()},
        "algorithm": home.algorithm,
        "started": home.engine is not None,
        "lengths": home.lengths,
        "lanes": home.lanes.tolist(),
        "arrivals": home.arrivals.tolist(),
        "late": home.late.tolist(),
        "rejected": home.rejected,
    }


def load(data: bytes, callables: Mapping[str, Callable[..., Any]]) -> State:
    facts, parts = unpack(data)
    try:
        return _load(facts, parts, callables)
    except (KeyError, IndexError, TypeError, ValueError, pa.ArrowException) as error:
        if isinstance(error, QueryError | StateError):
            raise
        raise StateError(f"the snapshot's contents do not fit together ({error!r}). Use an intact copy.") from error


def _load(facts: dict[str, Any], parts: dict[str, Any], callables: Mapping[str, Callable[..., Any]]) -> State:
    state = State(Options(**facts["options"]))
    state.types = {field.name: field.type for field in parts["types"].schema}
    state.clock, state.serial, state.counters = facts["clock"], facts["serial"], facts["counters"]
    if "ahead" in parts:
        state.ahead = parts["ahead"].column("to")[0].as_py()
    for i, names in enumerate(facts["groups"]):
        groups = Groups(tuple(names))
        table = parts[f"groups{i}"]
        if table.num_rows:
            groups.codes([column.combine_chunks() for column in table.columns], table.num_rows)
        state.groups[groups.names] = groups
    homes: dict[str, Standing] = {}
    for i, saved in enumerate(facts["homes"]):
        home = _load_home(saved, parts, i, list(state.groups.values()), state.options, state.unit, callables)
        homes |= dict.fromkeys(home.queries, home)
    state.homes = {name: homes[name] for name in facts["order"]}
    return state


def _load_home(
    saved: dict[str, Any],
    parts: dict[str, Any],
    i: int,
    groups: list[Groups],
    options: Options,
    unit: int | None,
    callables: Mapping[str, Callable[..., Any]],
) -> Standing:
    queries = {name: _load_query(name, stored, callables) for name, stored in saved["queries"].items()}
    home = Standing(next(iter(queries.values())), groups[saved["groups"]], options, np.empty(0, np.int64))
    home.queries, home.algorithm = queries, saved["algorithm"]
    if saved["started"]:
        home.start(unit)
        assert home.engine is not None
        prefix = f"{i}.engine."
        home.engine.restore({name[len(prefix) :]: part for name, part in parts.items() if name.startswith(prefix)})
    home.counts, home.moments = parts[f"{i}.counts"], parts[f"{i}.moments"]
    home.lengths, home.lanes = saved["lengths"], np.array(saved["lanes"], np.int64)
    home.arrivals, home.late = np.array(saved["arrivals"]), np.array(saved["late"])
    home.rejected = saved["rejected"]
    table = parts[f"{i}.shelf"]
    home.shelf = Shelf()
    home.shelf.add(parts[f"{i}.serials"], {name: plain(table.column(name)) for name in table.column_names})
    return home


def _load_query(name: str, stored: dict[str, Any], callables: Mapping[str, Callable[..., Any]]) -> TopK:
    by = stored.get("by")
    call = callables.get(name, callables.get(by.get("callable", ""))) if isinstance(by, dict) else None
    return TopK.from_dict(stored, call)


def _table(names: Any, columns: list[Column]) -> Any:
    """Columns as a table; a table of no columns for groups that were never seen."""
    return pa.table([column.all() for column in columns], names=list(names)[: len(columns)])
