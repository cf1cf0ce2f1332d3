"""Anything one can do to a Monitor, in any order, for every kind of query, against the oracle."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import skyband as sb
from engines.streams import FUZZ, KILL, cells, check, same_rows
from kinds import KINDS, stream
from skyband.oracle import Oracle

ROWS = stream(400, 9)
DELETED = {
    "deleted": sb.TopK(2, by="x", window=sb.UntilDeleted(), per="g"),
    "deleted above": sb.Above(50, by="x + y", window=sb.UntilDeleted()),
}


class Machine(RuleBasedStateMachine):
    """A Monitor and the oracle, given the same events in any order. Subclasses set `kind`, the kind of query."""

    kind = ""

    @initialize(emit=st.sampled_from(["arrival", "batch"]))
    def begin(self, emit: Any) -> None:
        if self.kind == "deleted":
            queries: dict[str, Any] = dict(DELETED)
            options: dict[str, Any] = {"id": "i", "time": "t"}
        else:
            queries, options = dict(KINDS[self.kind].queries), dict(KINDS[self.kind].options)
        self.first = queries
        self.monitor = sb.Monitor(queries, **options, emit=emit)
        self.oracle = Oracle(queries, **options, emit=emit)
        self.at = 0

    def compare(self, got: Any, expected: Any, where: str) -> None:
        same_rows(cells(got), expected, where)

    @rule(count=st.integers(0, 30))
    def push(self, count: int) -> None:
        rows = ROWS.slice(self.at, count)
        self.at += rows.num_rows
        self.compare(self.monitor.push(rows), self.oracle.push(rows.to_pylist()), "push")

    @rule(place=st.integers(0, 399), back=st.integers(0, 3))
    def push_again(self, place: int, back: int) -> None:
        """A row out of its turn: late, or far ahead."""
        place = max(self.at - 1, 0) if back else min(place, self.at + 20)
        rows = ROWS.slice(place, 1)
        self.compare(self.monitor.push(rows), self.oracle.push(rows.to_pylist()), "push again")

    @precondition(lambda self: self.oracle.clock is not None)
    @rule(by=st.integers(0, 40))
    def advance(self, by: int) -> None:
        to = self.oracle.clock + by
        self.compare(self.monitor.advance(to), self.oracle.advance(to), "advance")

    @precondition(lambda self: self.kind == "deleted")
    @rule(back=st.lists(st.integers(1, 12), max_size=4))
    def delete(self, back: list[int]) -> None:
        ids = [max(self.at - number, 0) for number in back]
        if any(isinstance(query.window, sb.UntilDeleted) for query in self.oracle.queries.values()):
            self.compare(self.monitor.delete(ids), self.oracle.delete(ids), "delete")

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        name = f"n{len(self.oracle.queries)}"
        if name not in self.oracle.queries and len(self.oracle.queries) < 5:
            query = self.like(data)
            self.monitor.add(name, query)
            self.oracle.add(name, query)

    @precondition(lambda self: self.oracle.queries)
    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        """By the same question for more or for fewer (engines/test_contract.py has other windows)."""
        name = data.draw(st.sampled_from(sorted(self.oracle.queries)))
        query = _smaller(self.oracle.queries[name], data)
        self.compare(self.monitor.replace(name, query), self.oracle.replace(name, query), "replace")

    @precondition(lambda self: len(self.oracle.queries) > 1)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.oracle.queries)))
        self.monitor.drop(name)
        self.oracle.drop(name)

    @rule()
    def restore(self) -> None:
        self.monitor = sb.Monitor.restore(self.monitor.snapshot(), trusted=False)

    @rule(cut=st.integers(0, 10))
    def refused(self, cut: int) -> None:
        """What is refused changes nothing."""
        with pytest.raises(sb.errors.SkybandError):
            self.monitor.push({"nothing": [1] * cut})
        with pytest.raises(sb.errors.SkybandError):
            self.monitor.answer("no such query")

    @invariant()
    def same(self) -> None:
        assert self.monitor.queries == self.oracle.queries
        for name in self.oracle.queries:
            same_rows(cells(self.monitor.answer(name)), self.oracle.answer(name), f"answer of {name}")
        check(self.monitor)

    def like(self, data: st.DataObject) -> Any:
        return _smaller(data.draw(st.sampled_from(list(self.first.values()))), data)


def _smaller(query: Any, data: st.DataObject) -> Any:
    if isinstance(query, sb.Above):
        return dataclasses.replace(query, threshold=data.draw(st.sampled_from([20.0, 50.0, 85.0])))
    return dataclasses.replace(query, k=data.draw(st.integers(1, 4)))


@pytest.mark.parametrize("kind", [*KINDS, "deleted"])
def test_anything_in_any_order(kind: str) -> None:
    machine = type("Machine_" + kind, (Machine,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=4 * FUZZ,
            stateful_step_count=12 if KILL else 25,
            derandomize=FUZZ == 1,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
