"""Subscriptions that begin with what is in their windows, against a Monitor where they have been all along."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband import Each, Last, Linear, Nearest, TopK, TopKPairs
from skyband.errors import QueryError

NEAR = TopK(Each("k"), by=Nearest({"x": Each("px"), "y": Each("py")}), window=Last(Each("n")), where="z <= :z")


def people(rng: np.random.Generator, first: int, size: int, **more: Any) -> dict[str, Any]:
    made = {"subscriber": np.arange(first, first + size), "k": rng.integers(1, 6, size), "z": rng.random(size)}
    return made | {"px": rng.random(size), "py": rng.random(size), "n": rng.integers(300, 3000, size)} | more


def told(table: Any, least: int = 0) -> list[tuple[Any, ...]]:
    rows = [row for row in table.to_pylist() if row["subscriber"] >= least]
    return sorted((row["subscriber"], row["at"], row["id"], row["score"], row["diff"]) for row in rows)


@pytest.mark.parametrize("emit", ["arrival", "batch"])
@pytest.mark.parametrize("timed", [False, True])
def test_many_go_on_as_if_they_had_been_there(emit: str, timed: bool) -> None:
    rng = np.random.default_rng(5)
    window = Last(span=Each("n")) if timed else Last(Each("n"))
    query = TopK(NEAR.k, by=NEAR.by, window=window, where=NEAR.where)
    options: dict[str, Any] = {"emit": emit, "id": "i"} | ({"time": "t"} if timed else {})
    late, all_along = sb.Monitor({"q": query}, **options), sb.Monitor({"q": query}, **options)
    first, more = people(rng, 0, 40), people(rng, 40, 60)
    first["n"][0] = 3000
    moved = {name: np.append(column, more[name][:1]) for name, column in people(rng, 7, 1).items()}  # and 7 moves
    late.subscribe("q", first)
    all_along.subscribe("q", {name: np.concatenate([first[name], more[name]]) for name in first})
    for step in range(8):
        low, size = 1000 * step, 1000
        rows = {name: rng.random(size).round(2) for name in ("x", "y", "z")} | {"i": np.arange(low, low + size)}
        rows |= {"t": np.arange(low, low + size) - rng.choice([0, 0, 5], size)} if timed else {}
        if step == 5:
            entering = late.subscribe("q", more, from_window=True)
            answer = all_along.answer("q").to_pylist()
            assert entering.column("diff").to_pylist() == [1] * entering.num_rows
            assert all(entering.column("first").to_pylist())
            assert set(entering.column("at").to_pylist()) == {low - 1}
            assert sorted((row["subscriber"], row["id"]) for row in entering.to_pylist()) == sorted(
                (row["subscriber"], row["id"]) for row in answer if row["subscriber"] >= 40
            )
        got, expected = late.push(rows), all_along.push(rows)
        if step >= 5:
            assert told(got) == told(expected)
        late._loop.check()
    entering = late.subscribe("q", moved, from_window=True)
    assert {7, 40} == set(entering.column("subscriber").to_pylist())
    assert late.stats()["queries"]["q"]["subscriptions"] == 100


def test_the_best_score_there_is() -> None:
    """Of objects with an infinite score the newest is best, for new slots in small batches of net changes too."""
    query = TopK(1, by=Linear({"x": Each("a")}), window=Last(5))
    monitor = sb.Monitor({"q": query}, id="i", emit="batch", time="t")
    spans = sb.Monitor({"q": TopK(1, by=query.by, window=Last(span=50))}, id="i", emit="batch", time="t")
    for one in (monitor, spans):
        one.subscribe("q", {"subscriber": [1], "a": [1.0]})
        for place in range(3):
            one.push({"x": [np.inf, 1.0], "i": [2 * place, 2 * place + 1], "t": [place, place]})
            assert one.answer("q").column("id").to_pylist() == [2 * place]
    entering = spans.subscribe("q", {"subscriber": [2], "a": [2.0]}, from_window=True)
    assert entering.column("id").to_pylist() == [4]


@pytest.mark.parametrize("by", [Linear({"x": Each("a")}), sb.Similar("e", Each("v"), "dot")])
@pytest.mark.parametrize("window", [Last(300), Last(span=300)])
def test_texts_that_nobody_asked_for_when_they_came(by: Any, window: Any) -> None:
    """Also where so many have come and gone that some were let go, and after a restore."""
    query = TopK(3, by=by, window=window, where="city = :city")
    monitor = sb.Monitor({"q": query}, id="i", time="t")
    one: dict[str, Any] = {"subscriber": ["first"], "a": [1.0], "v": [[1.0]], "city": ["home"]}
    monitor.subscribe("q", one)
    for begin in range(0, 6000, 100):
        i = np.arange(begin, begin + 100)
        x = (i % 7).astype(float)
        cities = pa.array(["home" if place % 50 == 0 else f"c{place // 2}" for place in i.tolist()])
        monitor.push({"i": i, "t": i, "x": x, "e": pa.array([[value] for value in x.tolist()]), "city": cities})
        monitor = sb.Monitor.restore(monitor.snapshot()) if begin % 1000 == 500 else monitor
        asked = [f"c{place // 2}" for place in (begin + 99, begin + 20, max(begin - 180, 1))] + [f"c{begin // 2 - 150}"]
        table = one | {"subscriber": list("abcd"), "a": [1.0] * 4, "v": [[1.0]] * 4, "city": asked}
        found = monitor.subscribe("q", table, from_window=True).select(["subscriber", "id"]).to_pylist()
        wanted = {(name, place) for name, city in zip("abcd", asked, strict=True) for place in range(begin + 100)
                  if place >= begin - 200 and place % 50 and city == f"c{place // 2}"}  # fmt: skip
        assert {(row["subscriber"], row["id"]) for row in found} == wanted
    (adapter,) = [one for one in monitor._loop.state.standing() if hasattr(one, "words")]
    assert len(adapter.words["city"].codes) < 1500


def test_a_window_of_another_class() -> None:
    monitor = sb.Monitor({"q": TopK(2, by=Linear({"x": Each("a")}), window=Last(Each("n")))}, id="i")
    monitor.subscribe("q", {"subscriber": [1], "a": [1.0], "n": [100]})
    monitor.push({"x": [9.0, 1.0, 5.0, 2.0, 3.0, 4.0], "i": [1, 2, 3, 4, 5, 6]})
    entering = monitor.subscribe("q", {"subscriber": [2, 3], "a": [1.0, -1.0], "n": [4, 4]}, from_window=True)
    assert entering.select(["subscriber", "id"]).to_pydict() == {"subscriber": [2, 2, 3, 3], "id": [3, 6, 4, 5]}
    left = [row for row in monitor.push({"x": [0.0], "i": [7]}).to_pylist() if row["subscriber"] == 2]
    assert [(row["id"], row["diff"]) for row in left] == [(3, -1), (5, 1)]


def test_numbers_go_on_with_the_largest() -> None:
    query = TopK(2, by=Linear({"x": Each("a")}), window=Last(5))
    monitor = sb.Monitor({"all": TopK(1, by="0", window=Last(3)), "q": query}, id="i")
    monitor.subscribe("q", {"subscriber": [1], "a": [1.0]})
    monitor.push({"x": [1.0, None], "i": [1, 2]})
    monitor.subscribe("q", {"subscriber": [2], "a": [1.0]})
    changes = monitor.push({"x": [5.0], "i": [3]}).to_pylist()
    assert {row["subscriber"]: row["at"] for row in changes} == {None: 2, 1: 1, 2: 2}
    entering = monitor.subscribe("q", {"subscriber": [3], "a": [1.0]}, from_window=True)
    assert entering.column("at").to_pylist() == [2, 2]


@pytest.mark.parametrize("by", [Linear({"x": Each("a")}), "x * :a"])
def test_those_who_come_again_and_again_are_told_under_their_names(by: Any) -> None:
    """More than a thousand entries of subscriptions that have ended are given back in between."""
    monitor = sb.Monitor({"q": TopK(Each("k"), by=by, window=Last(8))}, id="i")
    table = {"subscriber": np.arange(100), "k": np.arange(100) % 2 + 1, "a": np.ones(100)}
    monitor.subscribe("q", {"subscriber": [100], "k": [3], "a": [1.0]})
    monitor.subscribe("q", table)
    monitor.subscribe("q", table)
    monitor.push({"x": [1.0, 2.0], "i": [1, 2]})
    wanted = sorted((who, 1, i, float(i), 1) for who in range(100) for i in (2, 1)[: who % 2 + 1])
    for _ in range(12):
        assert told(monitor.subscribe("q", table, from_window=True)) == wanted


def test_what_cannot_begin() -> None:
    query = TopK(Each("k"), by=Linear({"x": Each("a"), "y": 1.0}), window=Last(Each("n")), buffer=4)
    monitor = sb.Monitor({"q": query, "p": TopKPairs(Each("k"), by="abs(a.x - b.x)", window=Last(8))})
    one = {"subscriber": [1], "k": [2], "a": [1.0], "n": [8]}
    assert monitor.subscribe("q", one, from_window=True).num_rows == 0  # nothing has arrived
    monitor.subscribe("p", {"subscriber": [1], "k": [2]})
    monitor.push({"x": np.arange(20.0), "y": np.arange(20.0)})
    before = monitor.snapshot()
    two = one | {"subscriber": [2]}
    with pytest.raises(QueryError, match=r"subscriber 2: .* does not reach back over a window of 8.*buffer="):
        monitor.subscribe("q", two, from_window=True)
    with pytest.raises(QueryError, match=r"subscriber 2: no other subscription keeps what .* k and the window"):
        monitor.subscribe("p", {"subscriber": [2], "k": [3]}, from_window=True)
    monitor.push({"x": [np.inf], "y": [0.0]})
    with pytest.raises(QueryError, match=r"subscriber 3: its window holds a row with numbers that are infinite"):
        monitor.subscribe("q", two | {"subscriber": [3], "n": [3], "a": [0.0]}, from_window=True)
    assert len(before) and monitor.stats()["queries"]["q"]["subscriptions"] == 1
    monitor.unsubscribe("q", [1])
    with pytest.raises(QueryError, match="nobody subscribes to it yet"):
        monitor.subscribe("q", two, from_window=True)
    assert monitor.subscribe("p", {"subscriber": [2], "k": [1]}, from_window=True).num_rows == 1


def test_a_plain_query_begins_with_the_same_question() -> None:
    pairs = TopKPairs(3, by="abs(a.x - b.x)", window=Last(6))
    monitor = sb.Monitor({"three": pairs}, id="i")
    monitor.push({"x": [1.0, 4.0, 4.5, 9.0], "i": [1, 2, 3, 4]})
    entering = monitor.add("one", TopKPairs(1, by="abs(a.x - b.x)", window=Last(5)), from_window=True)
    assert entering is not None
    assert entering.select(["query", "id_a", "id_b", "diff", "first"]).to_pylist() == [
        {"query": "one", "id_a": 2, "id_b": 3, "diff": 1, "first": True}
    ]
    assert [row["query"] for row in monitor.push({"x": [9.1], "i": [5]}).to_pylist()].count("one") == 2


@pytest.mark.parametrize(
    "more", [{"with_ties": True}, {"distinct": "best"}, {"offset": 1}, {"window": sb.Session(span=5)}]
)
def test_what_sorted_answers_shares_nothing(more: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"by": "x", "window": Last(5)} | more
    monitor = sb.Monitor({"plain": TopK(3, **asked), "q": TopK(Each("k"), **asked)}, id="i", time="t")
    monitor.subscribe("q", {"subscriber": [1], "k": [3]})
    monitor.push({"x": [1.0, 2.0], "i": [1, 2], "t": [1, 2]})
    before = monitor.snapshot()
    with pytest.raises(QueryError, match=r"new: SORTED answers .* none that is added later"):
        monitor.add("new", TopK(2, **asked), from_window=True)
    with pytest.raises(QueryError, match=r"subscriber 2: SORTED answers .* none that come later"):
        monitor.subscribe("q", {"subscriber": [2], "k": [2]}, from_window=True)
    assert monitor.snapshot() == before
