"""Subscriptions in a snapshot: their values as a table, and the queries that these make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skyband.errors import StateError
from skyband.monitor.state import State
from skyband.query.kinds import Query
from skyband.tables.subscriptions import Subscriptions, entry_of, key_of, owner_of, slots_key


def describe_subscriptions(state: State, facts: dict[str, Any], parts: dict[str, Any]) -> None:
    """Put all subscriptions into a snapshot's facts and parts."""
    if state.subscriptions:
        facts["subscriptions"] = {
            name: {"sort": one.sort, "unknown": one.unknown} for name, one in state.subscriptions.items()
        }
    parts |= {f"subscriptions{i}": one.table() for i, one in enumerate(state.subscriptions.values())}
    if state.subscriber_type is not None:
        parts["subscribers"] = pa.table({"": pa.nulls(0, state.subscriber_type)})


def subscriptions_fit(state: State) -> bool:
    """Whether every stored subscription has an adapter, and no other adapter of subscriptions is there."""
    keys = {key for one in state.subscriptions.values() for key in one.names()}
    keys |= {slots_key(name) for name, one in state.subscriptions.items() if one.shared.any()}
    return state.subscribed.keys() == keys and state.subscriptions.keys() <= state.adapters.keys()


def restore_subscriptions(state: State, facts: dict[str, Any], parts: dict[str, Any], lookup: Any) -> None:
    """The inverse of `describe_subscriptions`."""
    stored = {name: query for saved in facts["homes"] for name, query in saved["queries"].items()}
    for i, (name, known) in enumerate(facts.get("subscriptions", {}).items()):
        query = lookup(name, stored[name])
        if not query.each or known["sort"] not in (None, "count", "duration") or not is_whole(known["unknown"]):
            raise StateError("the stored subscriptions and their query do not fit together. Use an intact copy.")
        subscriptions = state.subscriptions[name] = Subscriptions(name, query)
        subscriptions.sort, subscriptions.unknown = known["sort"], known["unknown"]
        subscriptions.restored(parts[f"subscriptions{i}"])
    if "subscribers" in parts:
        state.subscriber_type = parts["subscribers"].schema.field(0).type
    if any(one.ids is not None and one.ids.type != state.subscriber_type for one in state.subscriptions.values()):
        raise StateError("the stored ids of subscribers are of several types. Use an intact copy.")


def restore_queries(saved: dict[str, Any], state: State, lookup: Any) -> dict[str, Query]:
    """The queries of an adapter; subscriptions have theirs from their values."""
    names = list(saved["queries"])
    owners = {owner_of(name) for name in names}
    if owners == {None}:
        return {name: lookup(name, stored) for name, stored in saved["queries"].items()}
    (owner,) = owners
    subscriptions = state.subscriptions[str(owner)]
    entries = np.array([entry_of(name) for name in names])
    if any(name != key_of(str(owner), entry) for name, entry in zip(names, entries.tolist(), strict=True)):
        raise StateError("a stored subscription has no entry. Use an intact copy.")
    if not 0 <= entries.min() <= entries.max() < subscriptions.size:
        raise StateError("a stored subscription is not there. Use an intact copy.")
    bound = [subscriptions.query.bind(values) for values in subscriptions.values(entries)]
    return {name: lookup(name, query) for name, query in zip(names, bound, strict=True)}


def owner_of_slots(saved: dict[str, Any]) -> str | None:
    """The query whose subscriptions are slots of this adapter."""
    name = next(iter(saved["queries"]))
    owner = owner_of(name)
    return owner if owner is not None and name == slots_key(owner) else None


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
