"""Arguments of any kind to the calls of a Monitor, copies of it, and scoring functions that call it back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import skyband as sb
from faults.ledger import note
from faults.subjects import rows, started, subscribers
from query.test_odd_values import ODD
from skyband.errors import BatchError, SkybandError, StateError

CALLS: dict[str, Any] = {
    "push": lambda m, name, odd: m.push(odd),
    "push to": lambda m, name, odd: m.push(rows(60, 3), to=odd),
    "push more": lambda m, name, odd: m.push(rows(60, 3), more=odd),
    "advance": lambda m, name, odd: m.advance(odd),
    "delete": lambda m, name, odd: m.delete([odd]),
    "delete all": lambda m, name, odd: m.delete(odd),
    "add": lambda m, name, odd: m.add("another", odd),
    "add name": lambda m, name, odd: m.add(odd, sb.TopK(1, "x", sb.Last(3))),
    "replace": lambda m, name, odd: m.replace(name, odd),
    "replace name": lambda m, name, odd: m.replace(odd, sb.TopK(1, "x", sb.Last(3))),
    "drop": lambda m, name, odd: m.drop(odd),
    "answer name": lambda m, name, odd: m.answer(odd),
    "answer key": lambda m, name, odd: m.answer(name, key=odd),
    "answer keys": lambda m, name, odd: m.answer(name, keys=[odd, (odd,)]),
    "answer k": lambda m, name, odd: m.answer(name, k=odd),
    "answer window": lambda m, name, odd: m.answer(name, window=odd),
    "answer subscriber": lambda m, name, odd: m.answer(name, subscriber=odd),
    "subscribe": lambda m, name, odd: m.subscribe(name, odd),
    "subscribe name": lambda m, name, odd: m.subscribe(odd, subscribers(40, 2)),
    "subscribe id": lambda m, name, odd: m.subscribe(name, subscribers(40, 2), id=odd),
    "subscribe k": lambda m, name, odd: m.subscribe(name, {"subscriber": [7], "k": [odd], "n": [3], "v": [[1.0] * 3]}),
    "unsubscribe": lambda m, name, odd: m.unsubscribe(name, [odd]),
    "restore": lambda m, name, odd: sb.Monitor.restore(odd),
    "restore callables": lambda m, name, odd: sb.Monitor.restore(m.snapshot(), odd),
    "restore trusted": lambda m, name, odd: sb.Monitor.restore(m.snapshot(), trusted=odd),
}


@pytest.mark.parametrize("kind", ["topk", "orders", "sources", "subscriptions"])
@pytest.mark.filterwarnings("ignore::skyband.errors.SkybandWarning")
def test_arguments_of_calls(kind: str) -> None:
    """Each is an answer or one of skyband's errors, and the Monitor can be used after it."""
    start = started(kind)
    start.push(rows(0, 30))
    data, tried = start.snapshot(), 0
    name = next(iter(start.queries))
    for call in CALLS.values():
        monitor = sb.Monitor.restore(data)
        for odd in ODD:
            tried += 1
            with suppress(SkybandError):
                call(monitor, name, odd)
                monitor = sb.Monitor.restore(data)
        monitor.snapshot()
        monitor.answers()
    note({"odd arguments": kind, "tried": tried})


@pytest.mark.parametrize(
    "option", ["id", "time", "part", "value", "keep", "emit", "late", "invalid", "op", "forget", "threads", "device"]
)
@pytest.mark.filterwarnings("ignore::skyband.errors.SkybandWarning")
def test_options_of_a_monitor(option: str) -> None:
    """Each is refused, or makes a Monitor that can be used and stored."""
    queries = [sb.TopK(2, "x", sb.Last(5), per="g"), sb.TopK(1, "y", sb.UntilDeleted()), sb.TopK(1, "x", sb.Ever())]
    odd_names = [["x", odd] for odd in ODD] + [[(odd, "x")] for odd in ODD] + [{"u": odd} for odd in ODD]
    for odd in [*ODD, *(odd_names if option == "keep" else [])]:
        with suppress(SkybandError):
            monitor = sb.Monitor(queries, **{"id": "i", "time": "t", option: odd})
            for call in (
                lambda monitor: monitor.push({}),
                lambda monitor: monitor.push(rows(0, 30)),
                lambda monitor: monitor.advance(10**6),
                lambda monitor: monitor.answers(),
                lambda monitor: monitor.stats(),
                lambda monitor: sb.Monitor.restore(monitor.snapshot(), trusted=False),
            ):
                with suppress(SkybandError):
                    call(monitor)
            assert monitor._loop.state.commit.broken is None


def test_copies_say_what_to_do_instead() -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3)))
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(StateError, match=r"Monitor\.restore\(monitor\.snapshot\(\)\)"):
            call(monitor)
    query = sb.TopK(sb.Each("k"), sb.Similar("v", [1.0, 2.0]), sb.Last(3))
    assert pickle.loads(pickle.dumps(query)) == query == copy.deepcopy(query)  # noqa: S301


def test_a_source_of_batches_that_fails() -> None:
    """What came before the failure is not taken either."""
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3)))

    def batches() -> Iterator[Any]:
        yield {"x": [1.0]}
        raise ValueError("mine")

    with pytest.raises(SkybandError, match="mine"):
        monitor.push(batches())
    assert monitor.stats()["arrivals"] == 0


class Lazy:
    """A column, or a row, that is read when it is asked for, and fails."""

    def __arrow_c_stream__(self, *schema: Any) -> Any:
        raise ZeroDivisionError("mine")

    def __iter__(self) -> Iterator[Any]:
        yield 1.0
        raise ZeroDivisionError("mine")


class Row(dict[str, Any]):
    def get(self, *name: Any) -> Any:
        raise ZeroDivisionError("mine")


@pytest.mark.parametrize("batch", [{"x": Lazy()}, {"x": iter(Lazy())}, [Row(x=1.0)], Lazy(), iter(Lazy())])
def test_columns_that_fail_when_they_are_read(batch: Any) -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(3)))
    with pytest.raises(BatchError, match=r"mine|is no batch"):
        monitor.push(batch)
    assert monitor.stats()["arrivals"] == 0


@pytest.mark.parametrize("call", ["push", "add", "drop", "replace"])
def test_a_scoring_function_that_changes_its_monitor(call: str) -> None:
    """The batch is refused, and what the function did is whole."""
    monitor: sb.Monitor
    inner: dict[str, Any] = {
        "push": lambda: monitor.push({"x": [9.0]}),
        "add": lambda: monitor.add("z", sb.TopK(1, "x", sb.Last(3))),
        "drop": lambda: monitor.drop("q0"),
        "replace": lambda: monitor.replace("q0", sb.TopK(1, "x", sb.Last(3))),
    }

    def score(columns: Any) -> Any:
        if len(columns["x"]) > 1:
            inner[call]()
        return np.asarray(columns["x"])

    monitor = sb.Monitor({"q0": sb.TopK(2, score, sb.Last(5)), "other": sb.TopK(1, "x", sb.Last(5))})
    monitor.push({"x": [1.0]})
    with pytest.raises(StateError, match="scoring function"):
        monitor.push({"x": [2.0, 3.0]})
    assert monitor.answer("other")["score"].to_pylist() == [9.0 if call == "push" else 1.0]
    monitor.push({"x": [4.0]})
