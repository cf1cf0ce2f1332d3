"""Groups whose objects are gone: they give back their memory, their numbers go on, and nothing else is seen of it."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import skyband as sb
from engines.comparison import cells, same_rows
from engines.playback import check
from skyband.engines.numbers_at_rest import NumbersAtRest
from skyband.errors import BatchError
from skyband.monitor import dormancy
from skyband.oracle import Oracle
from skyband.query.algorithms import algorithms
from skyband.query.kinds import Query
from skyband.tables.groups import Groups

TYPES = {
    "i": pa.string(), "t": pa.int64(), "g": pa.int64(), "h": pa.string(), "x": pa.float64(), "p": pa.float64(),
    "r": pa.string(), "part": pa.string(), "value": pa.float64(),
}  # fmt: skip


def queries(window: Any, **own: Any) -> dict[str, Query]:
    """A query for each algorithm that takes the window and groups."""
    made: dict[str, Query] = {}
    timed = window.timed
    for row in algorithms():
        if (
            ("time" if timed else "count") not in row.windows
            or not row.grouped
            or not row.exact
            or "ranks" in row.takes
        ):
            continue
        more = {"per": "g", **own, "algorithm": row.name}
        by: Any = sb.Nearest({"x": 2.0}) if row.scorings == "nearest" else "x"
        if row.kinds[0] == "TopK":
            made[f"TopK {row.name}"] = sb.TopK(2, by, window, **more)
        elif row.kinds[0] == "TopKPairs":
            made[f"TopKPairs {row.name}"] = sb.TopKPairs(2, "abs(a.x - b.x)", window, **more)
        elif row.kinds[0] == "TopKIncomplete":
            made[f"TopKIncomplete {row.name}"] = sb.TopKIncomplete(2, ["a", "b"], window, **more)
        elif row.kinds[0] == "TopKGroups":
            made[f"TopKGroups {row.name}"] = sb.TopKGroups(2, "sum(x)", window, of="i", **more)
        else:
            made[f"TopKUncertain {row.name}"] = sb.TopKUncertain(2, by, window, **more)
    more = {"per": "g", **own}
    made["Above"] = sb.Above(2.0, "x", window, **more)
    made["TopKIncomplete repeat"] = sb.TopKIncomplete(2, ["a", "b"], window, repeat="last", **more)
    made["TopKUncertain group"] = sb.TopKUncertain(2, "x", window, group="r", **more)
    made["TopKPairs NumPy"] = sb.TopKPairs(2, "a.x / (1 + b.x)", window, symmetric=False, **more)
    return made


TIMED = queries(sb.Last(span=4))


def rows(rng: np.random.Generator, size: int, clock: int, groups: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Rows at and after the clock, some of them late, of these groups and of none."""
    times = clock + np.cumsum(rng.integers(0, 2, size)) - np.where(rng.random(size) < 0.1, rng.integers(0, 7, size), 0)
    made = []
    for n in range(size):
        g = int(rng.choice(groups))
        made.append(
            {
                "i": f"i{rng.integers(0, 9)}",
                "t": int(times[n]),
                "g": None if g == 0 else g,
                "h": None if g % 5 == 1 else f"h{g % 3}",
                "x": float(rng.integers(0, 6)),
                "p": float(rng.choice([0.25, 0.5, 0.75])),
                "r": f"r{rng.integers(0, 4)}",
                "part": str(rng.choice(["a", "b"])),
                "value": float(rng.integers(0, 5)) / 4,
            }
        )
    return made


def table(given: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in given], type_) for name, type_ in TYPES.items()})


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """So many groups without objects are put to rest at once."""
    return lambda number: monkeypatch.setattr(dormancy, "FEWEST", number)


def at_rest(monitor: sb.Monitor) -> int:
    return max(len(adapter.numbering.at_rest) for adapter in monitor._loop.state.standing())


# --- the same answers


def equals_the_oracle(given: dict[str, Query], seed: int, **options: Any) -> None:
    """Passing groups, some of which return, in small pushes, with restores in between."""
    rng, clock, most = np.random.default_rng(seed), 0, 0
    options = {"id": "i", "time": "t", **options}
    monitor, oracle = sb.Monitor(given, **options), Oracle(given, **options)
    for step in range(28):
        here = np.arange(step // 2, step // 2 + 3) if rng.random() < 0.7 else rng.integers(0, 1 + step // 2, 2)
        batch = rows(rng, int(rng.integers(1, 6)), clock, here)
        where = f"push {step}"
        same_rows(cells(monitor.push(table(batch))), oracle.push(batch), where)
        clock = oracle.clock or 0
        if rng.random() < 0.3:
            clock += int(rng.integers(1, 9))
            same_rows(cells(monitor.advance(clock)), oracle.advance(clock), f"{where}, advance")
        if rng.random() < 0.2:
            monitor = sb.Monitor.restore(monitor.snapshot())
        most = max(most, at_rest(monitor))
        check(monitor)
        for name in given:
            same_rows(cells(monitor.answer(name)), oracle.answer(name), f"{where}, answer of {name}")
    assert most > 5, "groups were put to rest"


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("emit", ["arrival", "batch"])
def test_passing_groups_equal_the_oracle(name: str, emit: str, few: Callable[[int], None]) -> None:
    few(-8 if emit == "arrival" else 0)
    equals_the_oracle({"q": TIMED[name]}, seed=len(name), emit=emit)


def test_several_queries_over_passing_groups(few: Callable[[int], None]) -> None:
    """Queries of several lengths and `per` have numbers of their own; one of a count window keeps its groups."""
    few(0)
    given = {
        "short": sb.TopK(1, "x", sb.Last(span=2), per="g"),
        "long": sb.TopK(2, "x", sb.Last(span=6), per="g", where="p > 0.3"),
        "both": sb.TopKPairs(1, "abs(a.x - b.x)", sb.Last(span=3), per=("g", "h")),
        "words": sb.TopKUncertain(1, "x", sb.Last(span=3), per="h"),
    }
    equals_the_oracle(given, seed=5)
    equals_the_oracle({**given, "last": sb.TopK(1, "x", sb.Last(3), per="h")}, seed=6)


def test_a_query_added_later_goes_on_with_numbers_at_rest(few: Callable[[int], None]) -> None:
    few(-8)
    query = sb.TopK(1, "x", sb.Last(span=2), per="g")
    monitor, oracle = sb.Monitor(query, time="t"), Oracle(query, time="t")
    rng = np.random.default_rng(0)
    for clock in range(0, 60, 4):
        batch = rows(rng, 4, clock, np.array([clock % 12 + 1]))
        same_rows(cells(monitor.push(table(batch))), oracle.push(batch), f"at {clock}")
        if clock == 28:
            for one in (monitor, oracle):
                one.add("later", sb.TopK(1, "x", sb.Last(span=3), per="g"))
            monitor.replace("q0", sb.TopK(1, "x", sb.Last(span=1), per="g"))
            oracle.replace("q0", sb.TopK(1, "x", sb.Last(span=1), per="g"))
    assert at_rest(monitor) >= 3


def test_snapshots_hold_numbers_at_rest(few: Callable[[int], None]) -> None:
    few(-8)
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(span=2), per=("h", "g")), time="t")
    for clock in range(0, 400, 3):
        monitor.push({"t": [clock], "g": [clock % 40], "h": [None if clock % 40 == 0 else f"h{clock % 7}"], "x": [1.0]})
    stored = monitor.snapshot()
    other = sb.Monitor.restore(stored)
    assert at_rest(other) == at_rest(monitor) > 100
    assert other.snapshot() == stored
    again = {"t": [400], "g": [0], "h": [None], "x": [1.0]}
    assert monitor.push(again).to_pylist() == other.push(again).to_pylist()


# --- bytes


def passing(begin: int, groups: int, each: int = 3) -> pa.Table:
    """Groups that have not been there before, in pushes of 50 at one time."""
    rng = np.random.default_rng(begin)
    number = np.arange(begin * each, (begin + groups) * each)
    return pa.table(
        {
            "i": [f"id {n}" for n in number],
            "t": number // each // 50 * 10,
            "g": number // each,
            "h": [f"group {n // each}" for n in number],
            "x": rng.random(len(number)),
            "p": np.full(len(number), 0.25),
            "r": [f"r{n % 3}" for n in number],
            "part": np.where(number % each == 1, "b", "a"),
            "value": rng.random(len(number)),
        }
    )


def footprint(monitor: sb.Monitor) -> int:
    """Bytes of everything that is reachable from the state of a Monitor."""
    left: list[Any] = [monitor._loop.state, monitor._loop.dormancy, monitor._loop.forget]
    seen, total = set[int](), 0
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        if isinstance(one, np.ndarray):
            left += [] if one.base is None else [one.base]
            left += one.ravel().tolist() if one.dtype.hasobject else []
        else:
            left += gc.get_referents(one)
    return total


def bytes_for_each(monitor: sb.Monitor, *, deletes: bool = False) -> float:
    """What a group costs after its objects are gone: by the least of two stretches, as dead rows are swept in bulk."""
    used = []
    for begin in (0, 800, 1600):
        given, sizes = passing(begin, 800), []
        for at in range(0, given.num_rows, 300):
            monitor.push(given.slice(at, 300))
            if deletes:
                monitor.delete(given.column("i").slice(at, 300).to_pylist())
            sizes += [footprint(monitor)] if begin else []
        used += [min(sizes)] if begin else []
    return (used[1] - used[0]) / 800


ALL = {
    **queries(sb.Last(span=4), per="h"),
    "TopKIncomplete APPROX": sb.TopKIncomplete(2, ["a", "b"], sb.Last(span=4), per="h", algorithm="APPROX"),
    "TopKIncomplete BUDGET": sb.TopKIncomplete(2, ["a", "b"], sb.Last(span=4), per="h", algorithm="BUDGET"),
}


@pytest.mark.parametrize("name", ALL)
def test_a_gone_group_costs_at_most_100_bytes(name: str, few: Callable[[int], None]) -> None:
    few(40)
    monitor = sb.Monitor(ALL[name], id="i", time="t", keep="x")
    assert bytes_for_each(monitor) <= 100, name


DELETABLE = [sb.TopK(2, "x", sb.UntilDeleted(), per="h"), sb.Above(0.5, "x", sb.UntilDeleted(), per="h")]


@pytest.mark.parametrize("query", DELETABLE, ids=["TopK", "Above"])
def test_a_group_whose_objects_are_deleted_costs_at_most_100_bytes(query: Query, few: Callable[[int], None]) -> None:
    few(40)
    assert bytes_for_each(sb.Monitor(query, id="i", time="t", keep="x"), deletes=True) <= 100


@pytest.mark.parametrize("name", queries(sb.Last(3)))
def test_a_forgotten_group_costs_at_most_100_bytes(name: str, few: Callable[[int], None]) -> None:
    few(40)
    query = queries(sb.Last(3), per="h")[name]
    assert bytes_for_each(sb.Monitor(query, id="i", time="t", keep="x", forget=4)) <= 100, name


def test_groups_of_until_deleted_cost_the_same_however_many_there_are() -> None:
    peaks = []
    for groups in (300, 1200):
        monitor = sb.Monitor(sb.TopK(2, "x", sb.UntilDeleted(), per="g"), id="i")
        given = passing(0, groups)
        monitor.push(given.slice(0, 3))  # compiles
        tracemalloc.start()
        monitor.push(given)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 6 * peaks[0], "linear: 4 times the groups, 4 times the bytes"


# --- no groups without an arrival


def test_rows_that_are_too_late_make_no_groups() -> None:
    for query in TIMED.values():
        monitor = sb.Monitor(query, id="i", time="t")
        monitor.push(passing(5000, 1))
        monitor.push(passing(0, 40))  # a thousand units late
        (groups,) = monitor._loop.state.groups.values()
        assert groups.total == 1, query
        assert monitor.stats()["late"] == 120
        check(monitor)


@pytest.mark.parametrize("name", TIMED)
def test_refused_batches_make_no_groups(name: str) -> None:
    """A row without a time, and one that is refused because of earlier ones."""
    monitor = sb.Monitor(TIMED[name], id="i", time="t", invalid="raise")
    monitor.push(passing(0, 2, each=2))
    stored, (groups,) = monitor.snapshot(), monitor._loop.state.groups.values()
    good = passing(2, 4, each=2).to_pylist()
    bad = [[*good, good[-1] | {"t": None}]]
    if name.startswith("TopKIncomplete") and "repeat" not in name:
        bad.append([*good, good[-1]])
    if name == "TopKUncertain group":
        bad.append([*good, good[-1] | {"p": 0.9}])
    for batch in bad:
        with pytest.raises(BatchError):
            monitor.push(table(batch))
        assert groups.total == 2 and monitor.snapshot() == stored, name
    monitor.push(table(good))
    assert groups.total == 6, name
    check(monitor)


# --- groups and numbers


@pytest.mark.parametrize("names", [("g",), ("h",), ("g", "h"), ("h", "x")])
def test_groups_are_as_if_refused_ones_had_never_been_there(names: tuple[str, ...]) -> None:
    rng = np.random.default_rng(1)
    groups, twin = Groups(names), Groups(names)
    for step in range(30):
        given = table(rows(rng, 40, 0, rng.integers(0, 10 * step + 2, 20)))
        columns = [given.column(name).combine_chunks() for name in names]
        if step % 3:
            assert groups.codes(columns, 40).tolist() == twin.codes(columns, 40).tolist()
        else:
            mark = groups.mark()
            groups.codes(columns, 40)
            groups.revert(mark)
        if step % 7 == 6:
            kept = np.flatnonzero(rng.random(groups.total) < 0.5)
            groups.keep(kept)
            twin.keep(kept)
        assert groups.total == twin.total
        assert [one.all() for one in groups.columns] == [one.all() for one in twin.columns]
        keys, checks = groups.digests(np.arange(groups.total)) if groups.total else (np.empty(0), np.empty(0))
        assert len({*zip(keys.tolist(), checks.tolist(), strict=True)}) == groups.total


def test_numbers_at_rest_are_those_that_were_put_there() -> None:
    """Also of groups that have the same key and another check."""
    rng, known = np.random.default_rng(2), dict[tuple[int, int], list[int]]()
    numbers = NumbersAtRest(2)
    for _ in range(60):
        size = int(rng.integers(1, 40))
        drawn = zip(rng.integers(-50, 50, size).tolist(), rng.integers(0, 3, size).tolist(), strict=True)
        names = set(drawn)
        for name in names:
            first, second = known.get(name, [0, 0])
            known[name] = [first + int(rng.integers(1, 900)), second + int(rng.integers(1, 900))]
        keys, checks = (np.array(part) for part in zip(*names, strict=True))
        numbers.put(keys, checks.astype(np.uint16), np.array([known[name] for name in names]).T)
    every = [(key, check) for key in range(-60, 60) for check in range(4)]
    keys, checks = (np.array(part) for part in zip(*every, strict=True))
    expected = np.array([known.get(name, [0, 0]) for name in every]).T
    assert (numbers.get(keys, checks.astype(np.uint16)) == expected).all()
    assert (numbers.of([1]).get(keys, checks.astype(np.uint16)) == expected[1:]).all()
    largest = NumbersAtRest(1)
    largest.add(numbers)
    assert (largest.get(keys, checks.astype(np.uint16))[0] == expected.max(axis=0)).all()
    copy = NumbersAtRest(2)
    for piece in numbers.arrays():
        copy.put(*piece)
    assert (copy.get(keys, checks.astype(np.uint16)) == expected).all()
