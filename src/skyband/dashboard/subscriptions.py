"""Subscriptions of a board's queries: tables of them are taken within the limits of the server."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyband.dashboard import limits
from skyband.dashboard.cost import most_of
from skyband.dashboard.intake import Intake
from skyband.errors import BatchError, QueryError
from skyband.explain import explain
from skyband.query.kinds import Query
from skyband.tables.subscription_table import Rows
from skyband.tables.subscription_table import ids_of as column_of
from skyband.tables.subscriptions import read


class Subscribed:
    """The subscriptions of all queries of a board."""

    def __init__(self, intake: Intake, settings: limits.Settings) -> None:
        self.intake, self.settings = intake, settings

    @property
    def _state(self) -> Any:
        return self.intake.monitor._loop.state

    def count(self, name: str) -> int:
        """The number of subscriptions of a query; 0 of a plain one."""
        return self._state.subscriptions[name].count if name in self._state.subscriptions else 0

    def known(self, name: str) -> Any:
        """The subscriptions of a query; of a plain one a QueryError."""
        return self.intake.monitor._loop.queries.subscribed.of(name)

    def subscribe(self, name: str, table: Any, id: str) -> tuple[Any, Any]:
        """Take a table of them, or nothing of it; returns their ids, and changes."""
        known = self.known(name)
        try:
            rows = read(table, known, id, self._state.subscriber_type)
        except BatchError as error:
            raise QueryError(str(error)) from None
        self._check(known, rows)
        changes = self.intake.change(lambda monitor: monitor.subscribe(name, table, id=id))
        return rows.ids, changes

    def _check(self, known: Any, rows: Rows) -> None:
        """Refuse what would take too much of the server."""
        new = len(rows) - int((known.find(rows.ids) >= 0).sum())
        total, most = sum(one.count for one in self._state.subscriptions.values()), self.settings.subscriptions
        if total + new > most:
            raise QueryError(
                f"{total:,} subscriptions stand already, and with these {new:,} they are more than the {most:,} that "
                f"this server takes. Start it with --subscriptions {total + new}, or unsubscribe some."
            )
        if known.count + new > limits.ALONE and not shares(known.query):
            raise QueryError(
                f"{known.name}: a server takes {limits.ALONE:,} subscriptions of a query where each is a plain query "
                "of its own. POST /api/check says why they are."
            )
        for need in known.query.needs:
            limit = most_of(known.query, "count" if need.role == "size" and rows.sort == "count" else need.role)
            worst = None if limit is None or not len(rows) else pc.max(rows.columns[need.column]).as_py()
            if limit is not None and worst is not None and worst > limit:
                place = pc.index(rows.columns[need.column], worst).as_py()
                raise QueryError(
                    f"subscriber {rows.ids[place].as_py()!r}: {need.column}={worst:,}: this server takes up to "
                    f"{limit:,}. Use a smaller one. Nothing was taken."
                )

    def unsubscribe(self, name: str, ids: Any) -> Any:
        """End subscriptions; returns the ids as a column."""
        self.known(name)
        column = column_of(name, ids, self._state.subscriber_type)
        self.intake.change(lambda monitor: monitor.unsubscribe(name, column))
        return column

    def find(self, name: str, text: str) -> Any:
        """The id of a subscriber, whose text this is, as an array of one; None: there is no such subscriber."""
        type_ = self._state.subscriber_type
        if type_ is None or name not in self._state.subscriptions:
            return None
        try:
            value = pa.array([text], pa.string()).cast(type_)
        except (pa.ArrowException, UnicodeError):
            return None
        return value if int(self._state.subscriptions[name].find(value)[0]) >= 0 else None

    def first(self, name: str, most: int) -> list[Any]:
        """The ids of the first subscribers."""
        known = self._state.subscriptions[name]
        return list(known.subscribers(known.entries[:most]).to_pylist())


def shares(query: Query) -> bool:
    """Whether subscriptions of this query share one engine as columns."""
    return any(text.startswith("Subscriptions share one engine") for text in explain(query).why)
