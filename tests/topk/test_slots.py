"""Queries that come and go as slots of one engine report what plain engines report (differential tests).

Every stream has ties, late rows and wild numbers in turn; k, windows and boxes differ from query to query. SA knows no
families, so it stands for plain queries; the oracle is compared in tests/engines/test_contract.py ("families").
"""

from __future__ import annotations

import dataclasses
import zlib
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.streams import check
from skyband import Last, Linear, Monitor, Nearest, Product, Quadratic, TopK
from skyband.engines.topk import chunk
from skyband.engines.topk.kernels.lane_state import WIDE
from skyband.engines.topk.slots import Slots
from skyband.engines.topk.slots_adapter import SlotsAdapter
from skyband.monitor.families import APART

ROWS = 240
Rng = np.random.Generator
Row = dict[str, Any]


def plain(query: TopK) -> TopK:
    return dataclasses.replace(query, algorithm="SA", buffer=None)


def a_scoring(form: str, rng: Rng) -> Any:
    a, b = (float(number) for number in rng.integers(0, 5, 2))
    if form == "nearest":
        return Nearest({"x": a, "y": b})
    return {"linear": Linear, "quadratic": Quadratic, "product": Product}[form]({"x": a - 2, "y": b})


def a_query(form: str, rng: Rng, timed: bool, boxed: bool = True) -> TopK:
    length = int(rng.choice([3, 7, 20, 60, 90]))
    where = rng.choice(["", "z >= 2", "z between 1 and 2", "z < 1 and x <= 4", "x > 1", "z = 3"]) if boxed else ""
    window = Last(span=length) if timed else Last(length)
    return TopK(int(rng.integers(1, 6)), by=a_scoring(form, rng), window=window, where=where or None, buffer=40)


def a_stream(rng: Rng, wild: bool, late: bool) -> dict[str, NDArray[Any]]:
    x, y = (rng.integers(0, 6, ROWS).astype(np.float64) for _ in "xy")
    z = rng.integers(0, 4, ROWS).astype(np.float64)
    z[rng.random(ROWS) < 0.1] = np.nan
    for column in (x, y) if wild else ():
        some = rng.random(ROWS) < 0.04
        column[some] = rng.choice([np.inf, -np.inf, 1e200, -1e200], some.sum())
    times = np.cumsum(rng.choice([0, 1, 2], ROWS))
    times -= np.where(rng.random(ROWS) < 0.15, rng.integers(0, 12, ROWS), 0) if late else 0
    return {"x": x, "y": y, "z": z, "t": times}


def rows_of(table: Any, ordered: bool) -> list[Row]:
    rows: list[Row] = table.to_pylist()
    return rows if ordered else sorted(rows, key=str)


class Twins:
    """A Monitor with a family of slots, and one with plain queries."""

    def __init__(self, queries: dict[str, TopK], **options: Any) -> None:
        self.ordered = options.get("emit") != "batch" and "time" not in options
        self.family = Monitor(queries, **options)
        self.plain = Monitor({name: plain(query) for name, query in queries.items()}, **options)
        self.queries = dict(queries)

    def push(self, batch: dict[str, Any]) -> None:
        got, expected = self.family.push(batch), self.plain.push(batch)
        assert rows_of(got, self.ordered) == rows_of(expected, self.ordered)
        check(self.family)

    def add(self, name: str, query: TopK) -> None:
        self.family.add(name, query)
        self.plain.add(name, plain(query))
        self.queries[name] = query

    def drop(self, name: str) -> None:
        self.family.drop(name)
        self.plain.drop(name)
        del self.queries[name]

    def replace(self, name: str, query: TopK) -> None:
        got, expected = self.family.replace(name, query), self.plain.replace(name, plain(query))
        assert rows_of(got, False) == rows_of(expected, False)
        self.queries[name] = query

    def restore(self) -> None:
        self.family = Monitor.restore(self.family.snapshot(), trusted=False)

    def compare(self) -> None:
        ours, theirs = self.family.stats()["queries"], self.plain.stats()["queries"]
        for name, query in self.queries.items():
            assert self.family.answer(name).equals(self.plain.answer(name))
            count = getattr(query.window, "count", None)
            smaller = {"k": 1, "window": max(1, count // 2)} if count else {"k": 1}
            assert self.family.answer(name, **smaller).equals(self.plain.answer(name, **smaller))
            for counted in ("arrivals", "late", "rejected"):
                assert ours[name][counted] == theirs[name][counted], (name, counted)


def families(monitor: Monitor) -> list[SlotsAdapter]:
    return [one for one in monitor._loop.state.standing() if isinstance(one, SlotsAdapter)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("windows", ["count", "time"])
@pytest.mark.parametrize("form", ["nearest", "linear", "quadratic", "product"])
def test_queries_come_and_go_and_all_is_as_with_plain_queries(form: str, windows: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(form)])
    timed, wild = windows == "time", seed % 2 == 1
    columns = a_stream(rng, wild, late=timed)
    options: dict[str, Any] = {"time": "t"} if timed else {}
    if seed >= 2:
        options["emit"] = "batch"
    twins = Twins({f"q{i}": a_query(form, rng, timed) for i in range(6)}, **options)
    low, number = 0, 6
    while low < ROWS:
        high = min(ROWS, low + int(rng.choice([1, 2, 9, 40])))
        twins.push({name: column[low:high] for name, column in columns.items()})
        low = high
        act = rng.random()
        if act < 0.25:
            twins.add(f"q{number}", a_query(form, rng, timed))
            number += 1
        elif act < 0.4 and len(twins.queries) > 3:
            twins.drop(str(rng.choice(list(twins.queries))))
        elif act < 0.6:
            name = str(rng.choice(list(twins.queries)))
            query = twins.queries[name]
            fewer = dataclasses.replace(query, k=max(1, int(query.k) - 1))
            twins.replace(name, fewer if rng.random() < 0.5 else a_query(form, rng, timed))
        elif act < 0.75:
            twins.restore()
    twins.compare()
    assert len(families(twins.family)) == len(twins.family._loop.state.standing()) == 1, "they have one engine"


@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_a_long_stream_with_depths_and_a_grid(emit: Any) -> None:
    """Runs are lifted and deepened, and lanes look into cells; some queries come later, some have boxes."""
    rng = np.random.default_rng(5)
    rows = 4000
    columns = {"x": rng.random(rows), "y": rng.random(rows) + np.sin(np.arange(rows) / 300), "z": rng.random(rows)}

    def query() -> TopK:
        where = rng.choice(["", "z < 0.5", "x between 0.2 and 0.7 and z > 0.1"])
        by = Nearest({"x": float(rng.random()), "y": float(rng.random())})
        k, n = int(rng.integers(1, 12)), int(rng.choice([300, 500, 1000]))
        return TopK(k, by=by, window=Last(n), where=where or None, buffer=600, index=True)

    twins = Twins({f"q{i}": query() for i in range(20)}, emit=emit)
    for i, low in enumerate(range(0, rows, 250)):
        twins.push({name: column[low : low + 250] for name, column in columns.items()})
        twins.add(f"late{i}", query())
        twins.drop(list(twins.queries)[int(rng.integers(0, 20))])
    twins.compare()
    (family,) = families(twins.family)
    assert isinstance(family.engine, Slots)
    assert family.engine.work[2] > 0 and family.engine.work[3] > 0, "lanes were deepened, and looked into cells"


def test_ranges_of_cells_that_are_too_many_to_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The more lanes a chunk has the fewer ranges of each are kept: those that no longer fit are found anew."""
    monkeypatch.setattr(chunk, "KEPT_RANGES", 64)
    monkeypatch.setattr(chunk, "FEWEST", 4)
    rng = np.random.default_rng(3)
    names = ["x", "y", "z"]

    def near() -> TopK:
        point = dict(zip(names, map(float, rng.random(3)), strict=True))
        return TopK(3, by=Nearest(point), window=Last(2000), index=True)

    twins = Twins({f"q{i}": near() for i in range(4)})
    (pool,) = (pool for one in families_after(twins, rng, names) for pool in one.slots_engine.pools.values())
    (lanes,) = (one.in_use for one in pool.chunks)
    kept = int(lanes["counts"].max())
    assert chunk.FEWEST < kept <= pool.chunks[0].ranges.shape[1]
    for i in range(4, 16):
        twins.add(f"q{i}", near())
    assert pool.chunks[0].ranges.shape[1] < kept
    families_after(twins, rng, names)
    assert (pool.chunks[0].in_use["counts"] == WIDE).any()
    twins.compare()


def families_after(twins: Twins, rng: Rng, names: list[str]) -> list[SlotsAdapter]:
    """The families of a Monitor after a stream that fills its windows."""
    for _ in range(4):
        twins.push({name: rng.random(600) for name in names})
    return families(twins.family)


@pytest.mark.parametrize("windows", ["count", "time"])
@pytest.mark.parametrize("form", ["nearest", "product"])
def test_queries_that_come_one_by_one_share_an_engine(form: str, windows: str) -> None:
    """The first ones have engines of their own, since each was alone when its first row came."""
    rng, timed = np.random.default_rng(len(form)), windows == "time"
    columns = a_stream(rng, wild=True, late=timed)
    options: dict[str, Any] = {"time": "t"} if timed else {}
    twins = Twins({"q0": a_query(form, rng, timed, False)}, **options)
    for i, low in enumerate(range(0, ROWS, 12)):
        twins.push({name: column[low : low + 12] for name, column in columns.items()})
        twins.add(f"q{i + 1}", a_query(form, rng, timed, boxed=i > 8))
        if i == 10:
            twins.restore()
    assert len(families(twins.family)) <= 3, "without boxes, with boxes on what is scored, and on another column"
    assert len(twins.family._loop.state.standing()) <= 3 + APART < len(twins.queries)
    twins.compare()


def test_a_query_shares_no_engine_with_one_of_another_kind() -> None:
    queries = {"by name": TopK(2, by="name", window=Last(3)), "by x": TopK(2, by="x", window=Last(3))}
    monitor = Monitor(queries)
    for i in range(6):
        monitor.push({"name": [f"n{i}"], "x": [float(i)]})
        monitor.add(f"later by name {i}", queries["by name"])
        monitor.add(f"later by x {i}", TopK(i + 1, by="x", window=Last(3)))
    monitor.push({"name": ["n6"], "x": [6.0]})
    assert monitor.answer("later by name 5").column("key_1").to_pylist() == ["n6"]
    assert monitor.answer("later by x 4").column("score").to_pylist() == [6.0, 5.0]
    assert len(families(monitor)) == 1


def test_a_row_that_one_query_rejects_leaves_the_others_together() -> None:
    """0 times infinity is no score for one of them and a score for the other; windows count what each accepts."""
    queries = {f"q{i}": TopK(2, by=Linear({"x": x, "y": 1}), window=Last(3)) for i, x in enumerate((0.0, 1.0, 2.0))}
    twins = Twins(queries)
    for x, y in [(1.0, 2.0), (3.0, 1.0), (np.inf, 1.0), (2.0, 2.0), (-np.inf, 5.0), (0.0, 0.0), (1.0, 1.0)]:
        twins.push({"x": [x], "y": [y]})
    twins.compare()
    assert len(twins.family._loop.state.standing()) == 1
    assert twins.family.stats()["queries"]["q0"]["rejected"] == {"Linear({'x': 0.0, 'y': 1.0}) has no value": 2}


def test_an_object_that_was_shown_before_is_not_new_when_it_returns() -> None:
    """It falls below the depth of its run, behind older ones that expire before it."""
    k, n = 81, 400
    queries = {f"q{i}": TopK(k, by=Linear({"x": 1.0, "y": i / 100}), window=Last(n), buffer=n) for i in range(2)}
    twins = Twins(queries)
    older, newer = 100 + np.arange(80.0), 100.5 + np.arange(80.0)
    for x in (older, np.array([50.0]), newer, np.arange(100.0) / 1000, np.arange(300.0) / 1000):
        for low in range(0, len(x), 40):
            twins.push({"x": x[low : low + 40], "y": np.zeros(len(x[low : low + 40]))})
    twins.compare()


def test_a_new_query_goes_on_from_the_largest_number() -> None:
    """Another query has counted rows that the family rejects."""
    nearest = {f"q{i}": TopK(2, by=Nearest({"x": float(i)}), window=Last(5)) for i in range(3)}
    monitor = Monitor({**nearest, "other": TopK(1, by="y", window=Last(5))})
    monitor.push({"x": [1.0, None, 2.0], "y": [1.0, 2.0, 3.0]})
    monitor.add("new", TopK(2, by=Nearest({"x": 7.0}), window=Last(5)))
    changes = monitor.push({"x": [3.0], "y": [4.0]}).to_pylist()
    assert {row["query"]: (row["at"], row["id"]) for row in changes if row["diff"] > 0 and row["id"] >= 2} == {
        "q2": (2, 2),
        "other": (3, 3),
        "new": (3, 3),
    }
    assert monitor.answer("new").column("id").to_pylist() == [3]


def test_a_query_that_joins_from_the_window() -> None:
    rng = np.random.default_rng(3)
    columns = {"x": rng.random(500), "y": rng.random(500)}
    queries = {f"q{i}": TopK(3, by=Nearest({"x": i / 10, "y": 0.5}), window=Last(100)) for i in range(5)}
    new = TopK(4, by=Nearest({"x": 0.33, "y": 0.1}), window=Last(80))
    family, alone = Monitor(queries), Monitor({"new": plain(new)})
    first = {name: column[:300] for name, column in columns.items()}
    family.push(first)
    alone.push(first)
    entered = family.add("new", new, from_window=True)
    assert entered is not None
    assert entered.column("diff").to_pylist() == [1] * 4 and all(entered.column("first").to_pylist())
    assert family.answer("new").equals(alone.answer("new"))
    for low in range(300, 500, 50):
        part = {name: column[low : low + 50] for name, column in columns.items()}
        got = [row for row in family.push(part).to_pylist() if row["query"] == "new"]
        expected = alone.push(part).to_pylist()
        names = ("at", "id", "score", "diff")
        assert [[row[name] for name in names] for row in got] == [[row[name] for name in names] for row in expected]
        check(family)


@pytest.mark.parametrize("windows", ["count", "time"])
def test_a_family_of_version_0_1_goes_on(windows: str) -> None:
    """Its snapshot was taken after 600 of these rows, a tenth of them late; runs were cut, and a ring held 80 rows."""
    rng, rows = np.random.default_rng(17), 900
    times = np.cumsum(rng.choice([0, 1, 2], rows))
    times = times - np.where(rng.random(rows) < 0.1, rng.integers(0, 30, rows), 0)
    columns = {"x": np.round(rng.random(rows), 2), "y": np.round(rng.random(rows), 2), "t": times}
    stored = Path(__file__).with_name("families") / f"0.1.0-{windows}.snapshot"
    old = Monitor.restore(zlib.decompress(stored.read_bytes()), trusted=False)
    options: dict[str, Any] = {"time": "t"} if windows == "time" else {}
    new = Monitor({name: plain(cast(TopK, query)) for name, query in old.queries.items()}, **options)
    for low in range(0, rows, 50):
        part = {name: column[low : low + 50] for name, column in columns.items()}
        expected = new.push(part)
        if low >= 600:
            assert rows_of(old.push(part), False) == rows_of(expected, False)
            check(old)
    for name in old.queries:
        assert old.answer(name).equals(new.answer(name))


def test_many_columns_of_boxes_make_several_families() -> None:
    rng = np.random.default_rng(1)
    names = [f"c{i}" for i in range(8)]
    columns = {name: rng.integers(0, 5, 100).astype(float) for name in ("x", *names)}
    queries = {
        f"{name}{i}": TopK(2, by=Linear({"x": i + 1.0}), window=Last(20), where=f"{name} > {i}")
        for name in names
        for i in range(2)
    }
    twins = Twins(queries)
    twins.push(columns)
    twins.compare()
    assert len(families(twins.family)) == 8


def test_registration_is_linear_in_the_number_of_queries() -> None:
    """Counted, not timed: how often a query is looked at while another is registered."""
    looked = 0

    class Counted(TopK):
        @property
        def per_columns(self) -> tuple[str, ...]:
            nonlocal looked
            looked += 1
            return super().per_columns

    counts = []
    for size in (100, 200):
        looked = 0
        Monitor([Counted(2, by=Nearest({"x": float(i)}), window=Last(5)) for i in range(size)])
        counts.append(looked)
    assert counts[1] <= 2.2 * counts[0]


def test_answers_hold_objects_from_before_the_beginning_of_time() -> None:
    queries = {f"q{i}": TopK(2, by=Nearest({"x": i}), window=Last(span=100)) for i in range(4)}
    monitor = Monitor(queries, id="n", time="t")
    monitor.push({"n": [1, 2, 3], "x": [0.0, 1.0, 2.0], "t": [-50, -20, -1]})
    assert monitor.answer("q0").column("id").to_pylist() == [1, 2]
