"""Subscriptions on Spark keep a journal: whatever worker a trigger finds, and whatever fails, changes are a Monitor's.

Workers, retries and restarts without a JVM: the state store is a dict, a worker is a `loans.Worker`, and they lend each
other loops through real sockets.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Generator, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from engines.comparison import same_rows
from skyband.monitor.loop import Loop
from skyband.query.kinds import Query
from skyband.query.options import Options
from skyband.spark import loans
from skyband.spark.journal import has_journal, step_bytes, take_again
from skyband.spark.mappers import to_bytes
from skyband.spark.plan import Plan, QuerySet
from skyband.spark.shard import Shard
from skyband.spark.subscriptions import Source
from skyband.spark.trigger_rows import TriggerRows

NEAR = sb.TopK(sb.Each("k"), by=sb.Nearest({"x": sb.Each("px"), "y": 1}), window=sb.Last(30))
RECENT = sb.TopK(sb.Each("k"), by=sb.Nearest({"x": sb.Each("px"), "y": 1}), window=sb.Last(span=12))


class Store:
    """The state of one shard: what a trigger writes is there once it is committed."""

    def __init__(self) -> None:
        self.head: bytes | None = None
        self.cells: dict[Any, Any] = {}

    def map_state(self) -> Any:
        held = self.cells
        return SimpleNamespace(
            getValue=held.__getitem__,
            updateValue=held.__setitem__,
            removeKey=held.__delitem__,
            iterator=lambda: iter(list(held.items())),
            clear=held.clear,
        )


def plan_of(queries: dict[str, Query], emit: str = "arrival") -> Plan:
    options = Options(id="i", time="t", part="part", value="value", keep=(), emit=emit, late="accept", invalid="reject")
    source = Source(("subscriber", "k", "px", "op"), (), None)
    return Plan(queries, options, ("t", "i"), 1, ("i", "t", "x", "y"), subscribed=dict.fromkeys(queries, source))


def rows(rng: Any, begin: int, size: int) -> Any:
    ids = np.arange(begin, begin + size)
    return pa.table({"i": ids, "t": ids // 3, "x": rng.integers(0, 9, size) * 1.0, "y": rng.integers(0, 9, size) * 1.0})


def people(rng: Any, names: list[int], op: str) -> Any:
    size = len(names)
    values = {"k": pa.array(rng.integers(1, 4, size)), "px": rng.integers(0, 9, size) * 1.0}
    return pa.table({"subscriber": pa.array(names, pa.int64()), **values, "op": pa.array([op] * size, pa.string())})


def taken(shard: Shard, table: Any, joining: dict[str, list[Any]]) -> Generator[Any, None, None]:
    arrived = TriggerRows(shard.plan.order, ())
    if table.num_rows:
        arrived.add(to_bytes(table))
    clock = table.select(["t"]).slice(table.num_rows - 1).rename_columns(["clock"]) if table.num_rows else None
    for _, changes in shard.take({0: arrived}, clock, joining):
        yield from changes.to_pylist()


def moved(monitor: sb.Monitor, name: str, table: Any) -> None:
    """A trigger's rows that subscribe or unsubscribe, to a Monitor."""
    if table["op"][0].as_py() == "delete":
        monitor.unsubscribe(name, table["subscriber"].to_pylist())
    else:
        monitor.subscribe(name, table.drop_columns(["op"]))


class Chances:
    """Whether attempts of a trigger fail, and where; which worker has it."""

    def __init__(self, seed: int, monkeypatch: Any) -> None:
        self.random, self.patch = random.Random(seed), monkeypatch  # noqa: S311
        self.workers = [loans.Worker() for _ in range(3)]
        self.seen = dict.fromkeys(("here", "lent", "missed", "cold", "steps", "refused"), 0)

    def attempt(self) -> loans.Worker:
        """The worker of an attempt; some die, some do not find each other, some fail while they lend."""
        mine = self.random.choice(self.workers)
        if self.random.random() < 0.05:
            self.random.choice(self.workers).clear()
        self.patch.setattr(loans, "worker", mine)
        self.patch.setattr(loans, "_LENDS", self.random.random() < 0.6)
        self.patch.setattr(loans, "take_again", self.broken if self.random.random() < 0.3 else take_again)
        return mine

    def broken(self, loop: Any, data: bytes) -> Any:
        """Fail in the middle of a trigger that is taken for another worker."""
        self.seen["refused"] += 1
        take_again(loop, data)
        raise MemoryError


@pytest.fixture
def chances(request: Any, monkeypatch: Any) -> Iterator[Chances]:
    made = Chances(request.param, monkeypatch)
    yield made
    for worker in made.workers:
        worker.clear()


@pytest.mark.parametrize("query", [NEAR, RECENT], ids=["count", "time"])
@pytest.mark.parametrize("chances", range(3), indirect=True)
def test_whatever_worker_and_whatever_fails(query: sb.TopK, chances: Chances) -> None:
    """Three workers take turns at random, attempts fail before and after they keep their loop, workers die."""
    chance, seen = chances.random, chances.seen
    rng, store = np.random.default_rng(chance.randrange(99)), Store()
    plan, monitor = plan_of({"near": query}), sb.Monitor({"near": query}, id="i", time="t")
    begin = 0
    for trigger in range(90):
        size = chance.choice([0, 1, 3, 40])
        table, joining = rows(rng, begin, size), {}
        begin += size
        if trigger == 0:
            joining["near"] = [people(rng, list(range(150)), "insert")]
        elif trigger % 7 == 0:
            some = chance.sample(range(200), 5)
            joining["near"] = [people(rng, some, chance.choice(["insert", "delete"]))]
        for fails in [True] * chance.choice([0, 0, 0, 1, 2]) + [False]:
            mine, attempt = chances.attempt(), copy.deepcopy(store)
            shard = Shard(plan, 0, attempt.head, attempt.map_state())
            changes = taken(shard, table, joining)
            if fails and chance.random() < 0.3:
                next(changes, None)
                changes.close()  # in the middle
                continue
            before = copy.deepcopy(next(iter(shard.journals.values()), None))
            here, lent = mine.version(loans.place_of(0, 0)), sum(one.lent for one in chances.workers)
            found = list(changes)
            lent = sum(one.lent for one in chances.workers) - lent
            listed = [] if before is None else [step.version for step in before.steps]
            place = "cold" if here not in listed else "here" if here == listed[-1] else "missed"
            seen["lent" if lent else place] += 1
            attempt.head = shard.head()
            shard.keep()
            if not fails:
                store = attempt
        for one in joining.get("near", []):
            moved(monitor, "near", one)
        same_rows(found, monitor.push(table).to_pylist(), f"trigger {trigger}")
        seen["steps"] += len(next(iter(Shard(plan, 0, store.head, store.map_state()).journals.values())).steps) > 1
    assert min(seen.values()) >= 3, seen  # the test has seen what it is about
    (held,) = Shard(plan, 0, store.head, store.map_state()).held().values()
    answer = sb.Monitor._of(Loop(held)).answer("near")
    same_rows(answer.to_pylist(), monitor.answer("near").to_pylist(), "answer")


def test_a_loop_is_lent_once_and_only_under_its_version(monkeypatch: Any) -> None:
    """Whoever asks for a version that is over, or that another has taken, gets nothing, and no loop changes."""
    plan, rng, store, lender = plan_of({"near": NEAR}), np.random.default_rng(1), Store(), loans.Worker()
    monkeypatch.setattr(loans, "worker", lender)
    shard = Shard(plan, 0, store.head, store.map_state())
    list(taken(shard, rows(rng, 0, 50), {"near": [people(rng, list(range(150)), "insert")]}))
    shard.keep()
    (journal,) = shard.journals.values()
    step, version = step_bytes(rows(rng, 50, 3), None, {}, {}), journal.version
    assert loans.borrow("another", "next", step, copies=False) is None
    found = loans.borrow(version, "next", step, copies=True)
    assert found is not None and found[1].copy is not None and lender.lent == 1
    assert loans.borrow(version, "next again", step, copies=False) is None
    place = loans.place_of(0, 0)
    assert lender.take_away(place, version) is None, "a thread that was about to lend what is gone"
    assert lender.version(place) == "next"
    lender.clear()
    assert loans.borrow("next", "later", step, copies=False) is None


def test_answers_come_from_the_worker_that_has_the_loop(monkeypatch: Any) -> None:
    """Those of the subscribers whose answers change in the trigger, as a Monitor has them."""
    plan, rng, store = plan_of({"near": NEAR}, emit="batch"), np.random.default_rng(2), Store()
    monitor, lender = sb.Monitor({"near": NEAR}, id="i", time="t", emit="batch"), loans.Worker()
    crowd, tables = people(rng, list(range(150)), "insert"), [rows(rng, 0, 50), rows(rng, 50, 3)]
    moved(monitor, "near", crowd)
    monkeypatch.setattr(loans, "worker", lender)
    for i, table in enumerate(tables):
        shard = Shard(plan, 0, store.head, store.map_state())
        shard.whole = True
        found = list(taken(shard, table, {} if i else {"near": [crowd]}))
        store.head = shard.head()
        shard.keep()
        changed = set(monitor.push(table)["subscriber"].to_pylist())
        monkeypatch.setattr(loans, "worker", loans.Worker())
    assert lender.lent == 1 and 0 < len(changed) < 150
    expected = [{"query": "near"} | row for row in monitor.answer("near").to_pylist() if row["subscriber"] in changed]
    same_rows(found, expected, "answers")
    lender.clear()


def test_functions_and_estimates_have_no_journal() -> None:
    """What would not have the same effect again is copied in every trigger."""
    alone = QuerySet((), False)
    assert has_journal(alone, {"near": NEAR})
    assert not has_journal(QuerySet(("g",), False), {"near": NEAR})
    assert not has_journal(alone, {"near": NEAR, "f": sb.TopK(3, by=lambda batch: batch["x"], window=sb.Last(9))})
    assert not has_journal(alone, {"near": NEAR, "f": sb.TopK(3, by="x", window=sb.Last(9), algorithm="PA")})
    assert not has_journal(alone, {"f": sb.TopK(3, by="x", window=sb.Last(9))})
