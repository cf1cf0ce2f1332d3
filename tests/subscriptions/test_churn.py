"""Long churn: subscriptions that come, go, return and are replaced report what plain queries report, of SA.

Deterministic streams with ties, late rows and wild numbers in turn. Mutants of the slots' bookkeeping die of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import skyband as sb
from engines.streams import check
from skyband import Each, Last, Nearest, TopK
from skyband.engines.topk import slot_columns
from skyband.engines.topk.chunk import Chunk
from skyband.engines.topk.subscribed_adapter import SubscribedAdapter
from skyband.tables.subscriptions import slots_key

Rng = np.random.Generator
Row = dict[str, Any]
ROWS = 12  # of a push
COUNTER = {"all": TopK(1, by="0", window=Last(3), algorithm="SA")}  # takes every row: all numbers go on from its own
WHO = "abcdef"


def asked(timed: bool) -> TopK:
    window = Last(span=Each("n")) if timed else Last(Each("n"))
    by = Nearest({"x": Each("px"), "y": Each("py")}, weights={"x": Each("w"), "y": 1})  # 0 * inf: some reject it
    return TopK(Each("k"), by=by, window=window, where="z <= :most")


def plain(row: Row, timed: bool) -> TopK:
    window = Last(span=row["n"]) if timed else Last(row["n"])
    by = Nearest({"x": row["px"], "y": row["py"]}, weights={"x": row["w"], "y": 1})
    return TopK(row["k"], by=by, window=window, where=f"z <= ({row['most']!r})", algorithm="SA")


def a_subscription(rng: Rng, who: str) -> Row:
    return {
        "subscriber": who,
        "k": int(rng.integers(1, 5)),
        "px": float(rng.integers(0, 4)),
        "py": float(rng.choice([-np.float64(1e300), 1e120])) if rng.random() < 0.05 else float(rng.integers(0, 4)),
        "w": float(rng.integers(0, 3)),
        "n": int(rng.choice([2, 5, 9, 30])),
        "most": float(rng.integers(0, 3)),
    }


def a_batch(rng: Rng, serial: int, wild: bool) -> Row:
    x, y, z = (rng.integers(0, 5, ROWS).astype(np.float64) for _ in "xyz")
    z[rng.random(ROWS) < 0.1] = np.nan
    if wild:
        x[rng.random(ROWS) < 0.06] = rng.choice([np.inf, -np.inf, 1e200])
        y[rng.random(ROWS) < 0.06] = np.inf
    times = serial + np.arange(ROWS) // 2 - np.where(rng.random(ROWS) < 0.2, rng.integers(0, 12, ROWS), 0)
    return {"i": [f"i{serial * 2 + i}" for i in range(ROWS)], "x": x, "y": y, "z": z, "t": times}


class Twins:
    """A Monitor with subscriptions, and one to which each is added as a plain query when it subscribes."""

    def __init__(self, timed: bool, emit: Any) -> None:
        options: dict[str, Any] = {"id": "i", "emit": emit} | ({"time": "t"} if timed else {})
        self.timed = timed
        self.ours = sb.Monitor(COUNTER | {"each": asked(timed)}, **options)
        self.theirs = sb.Monitor(COUNTER, **options)
        self.rows: dict[str, Row] = {}

    def push(self, batch: Row) -> None:
        got = self.ours.push(batch).to_pylist()
        expected = self.theirs.push(batch).to_pylist()
        for row in expected:
            row["subscriber"] = None if row["query"] == "all" else row["query"]
            row["query"] = "all" if row["query"] == "all" else "each"
        assert sorted(got, key=key) == sorted(expected, key=key)
        check(self.ours)

    def subscribe(self, rows: list[Row]) -> None:
        assert self.ours.subscribe("each", rows).num_rows == 0
        for row in rows:
            if row["subscriber"] in self.rows:
                self.theirs.drop(row["subscriber"])
            self.theirs.add(row["subscriber"], plain(row, self.timed))
            self.rows[row["subscriber"]] = row

    def unsubscribe(self, ids: list[str]) -> None:
        self.ours.unsubscribe("each", ids)
        for who in ids:
            if self.rows.pop(who, None) is not None:
                self.theirs.drop(who)

    def compare(self) -> None:
        order = list(dict.fromkeys(self.ours.answer("each").column("subscriber").to_pylist()))
        assert order == [who for who in order if who in self.rows]
        for who in WHO:
            found = self.ours.answer("each", subscriber=who).drop_columns(["subscriber"])
            if who not in self.rows:
                assert found.num_rows == 0
                continue
            assert found.to_pylist() == self.theirs.answer(who).to_pylist()
            small: dict[str, Any] = {"k": 1, "window": Last(span=1) if self.timed else 1}
            smaller = self.ours.answer("each", subscriber=who, **small).drop_columns(["subscriber"])
            assert smaller.to_pylist() == self.theirs.answer(who, **small).to_pylist()
        assert self.ours.stats()["queries"]["each"]["subscriptions"] == len(self.rows)


def key(row: Row) -> str:
    return str(sorted(row.items(), key=lambda item: item[0]))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("windows", ["count", "time"])
def test_subscriptions_come_and_go_and_all_is_as_with_plain_queries(windows: str, seed: int) -> None:
    rng, serial = np.random.default_rng([seed, len(windows)]), 0
    twins = Twins(windows == "time", "arrival" if seed < 2 else "batch")
    for turn in range(14):
        for _ in range(int(rng.integers(0, 3))):
            some = sorted(rng.choice(list(WHO), int(rng.integers(1, 4)), replace=False).tolist())
            if rng.random() < 0.6:
                twins.subscribe([a_subscription(rng, who) for who in some])
            else:
                twins.unsubscribe(some)
        if rng.random() < 0.3:
            twins.ours = sb.Monitor.restore(twins.ours.snapshot(), trusted=bool(seed % 2))
        twins.push(a_batch(rng, serial, wild=seed % 2 == 1))
        serial += ROWS // 2
        if turn % 3 == 1:
            twins.compare()
    stats = twins.ours.stats()["queries"]["each"]
    assert stats["engines"] <= 1 + stats["subscriptions"] - stats["shared"], "what can be a slot is one"


@pytest.mark.parametrize("windows", ["count", "time"])
def test_tables_of_more_than_a_chunk_are_worked_on_by_place(monkeypatch: pytest.MonkeyPatch, windows: str) -> None:
    """Slots of a large table are numbered by place; wild rows come before there is an engine."""
    monkeypatch.setattr(slot_columns, "TOGETHER", 4)
    monkeypatch.setattr(Chunk, "most", 4)
    rng, twins = np.random.default_rng(len(windows)), Twins(windows == "time", "arrival")
    many = [f"s{i}" for i in range(40)]
    twins.subscribe([a_subscription(rng, who) for who in many])
    for serial in range(6):
        twins.push(a_batch(rng, serial * 6, wild=True))
        twins.unsubscribe([str(who) for who in rng.choice(many, 5)])
        twins.subscribe([a_subscription(rng, who) for who in many[serial : serial + 11]])
        if serial == 2:
            twins.ours = sb.Monitor.restore(twins.ours.snapshot(), trusted=False)
    for who in many:
        found = twins.ours.answer("each", subscriber=who).drop_columns(["subscriber"])
        assert found.to_pylist() == (twins.theirs.answer(who).to_pylist() if who in twins.rows else [])
    adapter = twins.ours._loop.state.subscribed[slots_key("each")]
    assert isinstance(adapter, SubscribedAdapter)
    assert (np.diff(adapter.table.entry[: adapter.table.size]) < 0).any(), "slots are not in order of subscription"


def test_many_come_and_go_and_what_is_kept_is_of_those_that_are_there() -> None:
    twins = Twins(False, "arrival")
    rng = np.random.default_rng(5)
    twins.subscribe([a_subscription(rng, "a")])  # stays, and so does the engine
    twins.push(a_batch(rng, 0, wild=False))
    for i in range(60):  # more than 1,024 entries: they are numbered anew
        twins.ours.subscribe("each", [a_subscription(rng, f"{i}.{j}") for j in range(40)])
        twins.ours.unsubscribe("each", [f"{i}.{j}" for j in range(40)])
    twins.subscribe([a_subscription(rng, who) for who in WHO])
    for serial in range(1, 4):
        twins.push(a_batch(rng, serial * 6, wild=False))
    twins.compare()
    subscriptions = twins.ours._loop.state.subscriptions["each"]
    assert subscriptions.size < 1_200, "entries of those that have left are given again"
    adapter = twins.ours._loop.state.subscribed[slots_key("each")]
    assert isinstance(adapter, SubscribedAdapter) and adapter.slots.count <= 41, "slots are given again"


def test_numbers_go_on_from_those_of_the_slots_that_are_there() -> None:
    """A slot that has rejected a row is behind; the slot that it frees is not. (By hand: no other query counts.)"""
    by = Nearest({"x": 0, "y": 0}, weights={"x": Each("w"), "y": 1})
    monitor = sb.Monitor({"each": TopK(1, by=by, window=Last(3))}, id="i")
    pushed = 0

    def push(x: float) -> dict[str, int]:
        """The number of the row for each subscriber, nearer than all before it."""
        nonlocal pushed
        pushed += 1
        changes = monitor.push({"i": [pushed], "x": [x], "y": [1 / pushed]}).to_pylist()
        return {row["subscriber"]: row["at"] for row in changes if row["diff"] > 0}

    def subscribe(who: str, w: float) -> None:
        monitor.subscribe("each", {"subscriber": [who], "w": [w]})

    subscribe("a", 0.0)
    subscribe("b", 1.0)
    assert push(np.inf) == {"b": 0}, "0 * inf is no score: a rejects it"
    monitor.unsubscribe("each", ["b"])
    assert push(0.0) == {"a": 0}
    subscribe("c", 1.0)
    assert push(0.0) == {"a": 1, "c": 1}
    monitor.unsubscribe("each", ["a"])
    subscribe("d", 1.0)  # takes the slot of a
    assert push(0.0) == {"c": 2, "d": 2}
    monitor.unsubscribe("each", ["c"])
    assert push(0.0) == {"d": 3}
    monitor = sb.Monitor.restore(monitor.snapshot())  # how far slots are behind is counted anew
    subscribe("e", 1.0)
    assert push(0.0) == {"d": 4, "e": 4}


def test_replace_lets_subscriptions_start_anew_in_one_engine() -> None:
    twins = Twins(False, "arrival")
    rng = np.random.default_rng(6)
    rows = [a_subscription(rng, who) | {"py": 0.0} for who in WHO]
    twins.subscribe(rows)
    twins.push(a_batch(rng, 0, wild=False))
    members = twins.ours.answer("each")
    left = twins.ours.replace("each", asked(False))
    assert sorted(zip(left["subscriber"].to_pylist(), left["id"].to_pylist(), strict=True)) == sorted(
        zip(members["subscriber"].to_pylist(), members["id"].to_pylist(), strict=True)
    )
    assert members.num_rows and set(left["diff"].to_pylist()) == {-1}
    for who in WHO:  # a plain query starts empty too
        twins.theirs.drop(who)
        twins.theirs.add(who, plain(twins.rows[who], False))
    for serial in range(1, 4):
        twins.push(a_batch(rng, serial * 6, wild=False))
    twins.compare()
    stats = twins.ours.stats()["queries"]["each"]
    assert (stats["engines"], stats["shared"]) == (1, len(WHO))


def test_answers_are_of_their_own_subscribers_after_others_have_left() -> None:
    query = TopK(Each("k"), by="x", window=Last(10), where="y > :low", offset=Each("skip"))
    monitor = sb.Monitor(query, id="id")
    monitor.subscribe("q0", [{"subscriber": who, "k": 1, "skip": 0, "low": low} for low, who in enumerate("abc")])
    monitor.push({"id": [1, 2, 3], "x": [3, 2, 1], "y": [1, 2, 3]})
    monitor.unsubscribe("q0", ["a"])
    monitor.subscribe("q0", [{"subscriber": "d", "k": 2, "skip": 0, "low": 0}])  # in the place that "a" had
    monitor.push({"id": [4], "x": [0], "y": [3]})
    answers = {who: monitor.answer("q0", subscriber=who)["id"].to_pylist() for who in "abcd"}
    assert answers == {"a": [], "b": [2], "c": [3], "d": [4]}
    assert monitor.answer("q0").select(["subscriber", "id"]).to_pylist() == [
        {"subscriber": who, "id": one} for who, ids in answers.items() for one in ids
    ]
