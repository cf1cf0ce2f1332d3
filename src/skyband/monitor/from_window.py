"""Queries and subscriptions that begin with what is in their windows: whose state they share, and what enters.

They are as old as those that they share it with: they see what of their windows these have seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa

from skyband.engines.adapter import Adapter, Columns
from skyband.engines.registry import choose
from skyband.engines.topk.scorings import window_key
from skyband.engines.topk.subscribed_adapter import SubscribedAdapter
from skyband.engines.topk.window_adapter import WindowAdapter, remember_reported
from skyband.errors import QueryError
from skyband.monitor.slots import Prepared
from skyband.monitor.state import State
from skyband.query.kinds import Above, Query, TopK
from skyband.tables.changes import change_table
from skyband.tables.input import from_times
from skyband.tables.subscriptions import Subscriptions, key_of, owner_of, slots_key


def lender_of(
    adapters: Iterable[Adapter], query: Query, unit: int | None, lent: Mapping[Adapter, int] | None = None
) -> Adapter | None:
    """The adapter with whose state a new query can begin; one of the algorithm that it asks for, if there is one.

    Of several the one that has seen the most arrivals: it keeps the most of the window.
    lent: how many other new queries are about to begin with it.
    """
    more = lent or {}
    able = [
        adapter
        for adapter in adapters
        if adapter.can_lend(query, unit)
        and (isinstance(adapter, WindowAdapter) or len(adapter.queries) + more.get(adapter, 0) < adapter.most)
    ]
    same = [adapter for adapter in able if query.algorithm == "auto" or adapter.algorithm == choose(query)]
    return max(same or able, key=lambda one: int(one.numbering.arrivals.max(initial=0)), default=None)


def no_lender(name: str, query: Query) -> QueryError:
    """Why a plain query cannot begin with what is in its window."""
    if choose(query) == "SORTED":
        return QueryError(
            f"{name}: SORTED answers {query!r}, and such queries share their state with none that is added later. Add "
            "it without from_window: it sees what arrives from now on."
        )
    return QueryError(
        f"{name}: no standing query keeps a window that this one could look at: the same columns, `per` and `where` "
        f"(but for ranges), and at least {query.window!r}, by TMA, SMA or TSL, a family of queries whose history is as "
        "long, or the same question with at least its k and window. Add it without from_window, or let such a query "
        "stand first."
    )


def lend(lender: Adapter, name: str, query: Query, unit: int | None, clock: int) -> tuple[Adapter, Columns]:
    """Let a query begin with the state of this adapter; returns its own, and what enters its answer."""
    if not isinstance(lender, WindowAdapter):
        return lender, lender.lend({name: query}, unit, clock)
    asked = cast("TopK | Above", query)
    algorithm = lender.algorithm if query.algorithm == "auto" else choose(query)
    adapter = adapter_over(lender, name, asked, algorithm, unit, clock)
    return adapter, adapter.join(name, asked, unit, clock, {})


def adapter_over(
    donor: WindowAdapter, name: str, query: TopK | Above, algorithm: str, unit: int | None, clock: int
) -> WindowAdapter:
    """The donor if the query can share its engine, else an adapter with a copy of its window."""
    if window_key(query, algorithm) == window_key(donor.example, donor.algorithm):
        return donor
    return donor.offshoot(name, query, algorithm, unit, clock)


@dataclass
class Begun:
    """Subscriptions of a table that have begun with their windows, and what enters their answers."""

    pieces: list[Columns] = field(default_factory=list)
    adapters: list[Adapter] = field(default_factory=list)
    names: list[Sequence[str]] = field(default_factory=list)  # of plain queries, as they were then

    def add(self, adapter: Adapter, piece: Columns, clock: int) -> None:
        """Note what enters, at the clock."""
        if piece:
            if "time" in piece:
                piece = piece | {"time": from_times(np.full(len(piece["time"]), clock), piece["time"].type)}
            self.pieces.append(piece)
            self.adapters.append(adapter)
            self.names.append(list(adapter.names_in_order))

    def table(self, state: State) -> pa.Table:
        """What enters, as changes."""
        known = state.known_names()
        labels = [
            state.labels(adapter, known) if isinstance(adapter, SubscribedAdapter) else known.labels(names)
            for adapter, names in zip(self.adapters, self.names, strict=True)
        ]
        return change_table(self.pieces, known, labels, state.change_types())


def must_look_back(state: State, subscriptions: Subscriptions) -> bool:
    """Whether anything has arrived that a new subscription could see; a QueryError, if nothing of it was kept."""
    if subscriptions.name in state.over:
        raise QueryError(
            f"subscribe({subscriptions.name!r}, from_window=True): queries ask over its answers, and they hear of what "
            "enters with a step of the stream only. Subscribe without from_window."
        )
    if not state.adapters[subscriptions.name].numbering.arrivals.any():
        return False
    if not subscriptions.count:
        raise QueryError(
            f"subscribe({subscriptions.name!r}, from_window=True): nobody subscribes to it yet, so nothing keeps what "
            "has arrived. Subscribe without from_window."
        )
    names = dict.fromkeys([*subscriptions.names(), slots_key(subscriptions.name)])
    known = {state.subscribed[name] for name in names if name in state.subscribed}
    return any(adapter.numbering.arrivals.any() for adapter in known)


def check_lenders(state: State, subscriptions: Subscriptions, prepared: Prepared) -> None:
    """A QueryError, if a subscription of a table cannot begin with what is in its window."""
    name, adapter, columns = subscriptions.name, prepared.adapter, prepared.columns
    what = f"subscribe({name!r}, from_window=True)"
    if adapter is not None and columns is not None and len(columns):
        why = adapter.cannot_lend(columns, state.clock)
        if why is not None:
            who = prepared.rows.ids.filter(pa.array(prepared.shared))[why[0]].as_py()
            raise QueryError(f"{what}: subscriber {who!r}: {why[1]} Nothing was taken.")
    others, lent = _others(state, name), Counter[Adapter]()
    for place, query in zip(np.flatnonzero(~prepared.shared).tolist(), prepared.asked, strict=True):
        lender = lender_of(others, query, state.unit, lent)
        if lender is not None:
            lent[lender] += 1
        else:
            who = prepared.rows.ids[place].as_py()
            if choose(query) == "SORTED":
                raise QueryError(
                    f"{what}: subscriber {who!r}: SORTED answers {query!r}, and such subscriptions share their state "
                    "with none that come later. Nothing was taken; subscribe without from_window."
                )
            raise QueryError(
                f"{what}: subscriber {who!r}: no other subscription keeps what {query!r} needs: the same question but "
                "for k and the window, with at least its k and its window, and with fewer than 32 that share its "
                "state. Nothing was taken; subscribe without from_window, or let one with the largest k and window "
                "stand from the beginning."
            )


def begin(state: State, subscriptions: Subscriptions, prepared: Prepared) -> Begun:
    """Let the subscriptions of a table begin, whose entries will be the next ones."""
    begun, first = Begun(), subscriptions.size
    entries = np.arange(first, first + len(prepared.rows))
    adapter, columns = prepared.adapter, prepared.columns
    if adapter is not None and columns is not None and len(columns):
        piece = adapter.join_from_window(entries[prepared.shared], columns, state.serial, state.clock)
        begun.add(adapter, piece, state.clock)
    others, lent, unit, clock = _others(state, subscriptions.name), Counter[Adapter](), state.unit, state.clock
    together: dict[Adapter, dict[str, Query]] = {}
    for entry, query in zip(entries[~prepared.shared].tolist(), prepared.asked, strict=True):
        lender, key = lender_of(others, query, unit, lent), key_of(subscriptions.name, entry)
        assert lender is not None, "check_lenders has found one"
        lent[lender] += 1
        if isinstance(lender, WindowAdapter):
            state.subscribed[key], piece = lend(lender, key, query, unit, clock)
            begun.add(state.subscribed[key], piece, clock)
        else:
            together.setdefault(lender, {})[key] = query
    for lender, queries in together.items():
        piece = lender.lend(queries, unit, clock)
        state.subscribed |= dict.fromkeys(queries, lender)
        begun.add(lender, piece, clock)
    remember_reported(state.standing())
    return begun


def _others(state: State, name: str) -> list[Adapter]:
    """The adapters of a query's subscriptions that are plain queries."""
    return [
        adapter
        for adapter in state.subscribed.each_once()
        if owner_of(next(iter(adapter.queries))) == name and not isinstance(adapter, SubscribedAdapter)
    ]
