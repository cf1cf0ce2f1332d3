"""The choice of which subscriptions of a table become slots of one engine; the others are plain queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.invariants import require
from skyband.engines.numbering import Start
from skyband.engines.numbers_at_rest import NumbersAtRest
from skyband.engines.topk.similar_adapter import SimilarAdapter
from skyband.engines.topk.slot_columns import SlotColumns
from skyband.engines.topk.subscribed_adapter import SubscribedAdapter
from skyband.engines.topk.subscribed_form import SlotForm, VectorForm, slot_form
from skyband.engines.unsubscribed import example_of
from skyband.errors import QueryError
from skyband.monitor.state import State
from skyband.query.kinds import Query, TopK
from skyband.query.scoring import Similar
from skyband.tables.subscription_table import Rows
from skyband.tables.subscriptions import Subscriptions, slots_key

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Prepared:
    """A validated table: which rows are slots, their columns and adapter; the plain queries of the others."""

    rows: Rows
    shared: Bools
    adapter: SubscribedAdapter | None = None
    columns: SlotColumns | None = None
    asked: list[Query] = field(default_factory=list)


def prepare(state: State, subscriptions: Subscriptions, rows: Rows, *, anew: bool = False) -> Prepared:
    """Make slots of the rows that can be, all columns at once; a QueryError names the subscriber.

    anew: in an engine of their own, not in the one that subscriptions of this name have.
    """
    known = None if anew else state.subscribed.get(slots_key(subscriptions.name))
    adapter = adapter_for(state, subscriptions, rows) if known is None else known
    if adapter is None:
        return Prepared(rows, np.zeros(len(rows), np.bool_))
    assert isinstance(adapter, SubscribedAdapter)
    columns = adapter.slot_columns(rows.columns, sizes(subscriptions.query, rows))
    _check_time(state, adapter, columns, subscriptions.name, rows)
    _check_boxes(adapter, columns, subscriptions.name, rows)
    tame = adapter.form.tame(columns)
    return Prepared(rows, tame, adapter, columns if tame.all() else columns.take(tame))


def sizes(query: Query, rows: Rows) -> Ints:
    """Lengths of windows: arrivals, units of an integer time, or nanoseconds."""
    window: Any = query.window
    if window.each is not None:
        found: Ints = rows.columns[window.each.column].to_numpy(zero_copy_only=False).astype(np.int64)
        return found
    return np.broadcast_to(np.int64(window.count or window.nanoseconds or window.span), len(rows))


def why_not(state: State, query: Query, sort: str | None) -> SlotForm | str:
    """The form of a query whose subscriptions can share an engine as slots; else the reason why they cannot."""
    example = example_of(query, sort)
    form = slot_form(query, example)
    if isinstance(form, SlotForm) and state.options.id is None and state.options.timed(example.window):
        return "objects of time windows are known by their numbers where no id column is named, each query's own"
    return form


def adapter_for(state: State, subscriptions: Subscriptions, rows: Rows) -> SubscribedAdapter | None:
    """A new adapter for the query's slots; None: there can be none."""
    form = why_not(state, subscriptions.query, rows.sort)
    types = {name: column.type for name, column in rows.columns.items()}
    kinds = form.kinds(types) if isinstance(form, SlotForm) else None
    _check_device(state, subscriptions.query, form, kinds)
    if kinds is None or not isinstance(form, SlotForm):
        subscriptions.apart = form if isinstance(form, str) else "`where` compares texts by their order"
        return None
    return new_adapter(state, subscriptions, form, kinds, rows.sort)


def _check_device(state: State, query: Query, form: SlotForm | str, kinds: Any) -> None:
    """Refuse subscriptions that compare vectors where a device was asked for and cannot serve them."""
    device, by = state.options.device, getattr(query, "by", None)
    if device is None or not isinstance(by, Similar) or not by.needs:
        return
    why = form if isinstance(form, str) else None
    if isinstance(form, SlotForm) and (kinds is None or form.demands):
        why = "`where` compares with subscriptions' values"
    if why is not None:
        raise QueryError(
            f"device={device!r} serves Similar(column, Each(...)) over Last(...) where all subscriptions ask for the "
            f"same but for vector, k and window: {why}. Leave device= out, or ask for less. Nothing was taken."
        )


def new_adapter(
    state: State, subscriptions: Subscriptions, form: SlotForm, kinds: dict[str, str], sort: str | None
) -> SubscribedAdapter:
    """An adapter without slots."""
    example, groups = example_of(subscriptions.query, sort), state.groups[()]
    assert isinstance(example, TopK)
    start = Start(np.zeros(groups.total, np.int64), NumbersAtRest(1))
    kind = SimilarAdapter if isinstance(form, VectorForm) else SubscribedAdapter
    return kind(subscriptions.name, example, groups, state.options, start, form, kinds)


def restored_slots(state: State, subscriptions: Subscriptions, saved: dict[str, Any]) -> SubscribedAdapter:
    """The adapter of a snapshot, whose engine is not there yet."""
    form, facts = why_not(state, subscriptions.query, subscriptions.sort), saved["own"]
    types = {name: column.type for name, column in subscriptions.columns.items()}
    kinds = form.kinds(types) if isinstance(form, SlotForm) else None
    require(kinds is not None and saved["algorithm"] == "BLOCK", "subscriptions can be slots")
    assert isinstance(form, SlotForm) and kinds is not None
    adapter = new_adapter(state, subscriptions, form, kinds, subscriptions.sort)
    adapter.restore_facts(facts)

    def columns_of(entries: Ints) -> SlotColumns:
        known = (entries >= 0) & (entries < subscriptions.size)
        require(known.all() and not subscriptions.shared[entries].any(), "slots have subscriptions")
        subscriptions.shared[entries] = True
        rows = Rows(subscriptions.subscribers(entries), subscriptions.taken(entries), subscriptions.sort)
        return adapter.slot_columns(rows.columns, sizes(subscriptions.query, rows))

    for entries, number in facts["waiting"]:
        adapter.waiting.append((np.array(entries, np.int64), columns_of(np.array(entries, np.int64)), number))
    slots = np.array(facts["entries"], np.int64)
    adapter.restore_columns(slots, columns_of(slots[slots >= 0]), state.unit)
    return adapter


def _check_time(state: State, adapter: SubscribedAdapter, columns: SlotColumns, name: str, rows: Rows) -> None:
    if not adapter.timed:
        return
    if state.options.time is None:
        raise QueryError(
            f"subscribe({name!r}): subscriber {rows.ids[0].as_py()!r}: the window is one of time: name the time "
            'column, Monitor(..., time="..."). Nothing was taken.'
        )
    if state.options.time not in state.types:
        return  # the first batch will tell
    for place in [0, *np.flatnonzero(columns.length % (state.unit or 1))[:1].tolist()]:
        try:
            adapter.lengths_in(columns.length[place : place + 1], state.unit)
        except QueryError as error:
            who = rows.ids[place].as_py()
            raise QueryError(f"subscribe({name!r}): subscriber {who!r}: {error} Nothing was taken.") from None


def _check_boxes(adapter: SubscribedAdapter, columns: SlotColumns, name: str, rows: Rows) -> None:
    """Ranges that nothing can be in, as in `where` of a plain query."""
    for j, attribute in enumerate(adapter.form.attributes[: columns.lows.shape[1]]):
        if adapter.kinds[attribute] != "number":
            continue
        fixed = adapter.form.fixed_box.get(attribute, (-np.inf, np.inf))
        low, high = np.maximum(columns.lows[:, j], fixed[0]), np.minimum(columns.highs[:, j], fixed[1])
        if (low > high).any():
            place = int(np.argmax(low > high))
            asked = ", ".join(sorted({f"{one.each!r}" for one in adapter.form.demands if one.column == attribute}))
            raise QueryError(
                f"subscribe({name!r}): subscriber {rows.ids[place].as_py()!r}: where demands a {attribute!r} from "
                f"{low[place]:g} up to {high[place]:g} (columns {asked}), so nothing can ever be an answer. "
                "Nothing was taken."
            )
