"""Many scorings in one engine report what each reports alone, with and without a grid (differential tests).

The oracle is compared in tests/engines/test_contract.py ("families"); here streams are long enough for rings, depths
and grids to work.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from engines.streams import KILL, check, cuts, joined
from skyband import Last, Linear, Monitor, Nearest, TopK
from skyband.engines.topk.kernels.block_grid import Block, Grid, edges, lay_grid, sort_block
from skyband.query.algorithms import names

FAMILIES = names("TopK", lambda row: row.family is not None)
ROWS = 1500 if KILL else 3000


def scorings(form: str, d: int, count: int, rng: np.random.Generator) -> list[Any]:
    columns = [f"x{j}" for j in range(d)]
    points = np.round(rng.random((count, d)), 4)
    if form == "linear":
        return [Linear(dict(zip(columns, (2 * point - 1).tolist(), strict=True))) for point in points]
    metric: Any
    metric, _, weighted = form.partition(", ")
    weights = [dict(zip(columns, np.round(rng.random(d) * 2, 1).tolist(), strict=True)) for _ in points]
    return [
        Nearest(dict(zip(columns, point.tolist(), strict=True)), weights=weight if weighted else None, metric=metric)
        for point, weight in zip(points, weights, strict=True)
    ]


def stream(d: int, shape: str, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    data = rng.random((d, ROWS))
    if shape == "coarse":
        data = np.round(data * 6) / 6  # many ties
    elif shape == "drift":
        data = data / 5 + np.linspace(0, 3, ROWS)
    elif shape == "waves":
        data = data / 5 + np.sin(np.arange(ROWS) / 200)
    elif shape == "steps":  # waves with ties, so that depths rise to one
        data = np.round((data / 2 + np.sin(np.arange(ROWS) / 100)) * 6) / 6
    return {f"x{j}": data[j] for j in range(d)}


def told(monitor: Monitor, columns: dict[str, NDArray[Any]], places: Any, restore: bool = False) -> pa.Table:
    pieces = []
    for i, j in itertools.pairwise(places):
        pieces.append(monitor.push({name: column[i:j] for name, column in columns.items()}))
        check(monitor)
        if restore:
            monitor = Monitor.restore(monitor.snapshot(), trusted=False)
    changes = joined(pieces)
    return changes.set_column(0, "query", changes.column("query").cast(pa.string()))  # one dictionary is not another


def same(got: pa.Table, expected: pa.Table, ordered: bool = True) -> None:
    """Compared as columns, shown as rows."""
    if not ordered:
        keys = [(name, "ascending") for name in got.column_names]
        got, expected = got.sort_by(keys), expected.sort_by(keys)
    if not got.equals(expected):
        assert got.to_pylist() == expected.to_pylist()
        raise AssertionError(f"{got.schema} is not {expected.schema}")


CASES = [
    ("euclidean", 2, "random", 3, 300),
    ("euclidean", 2, "coarse", 5, 200),
    ("euclidean, weighted", 3, "drift", 2, 400),
    ("manhattan", 2, "waves", 4, 150),
    ("chebyshev, weighted", 2, "random", 1, 500),
    ("euclidean", 7, "random", 3, 250),
    ("far", 2, "random", 3, 200),
    ("linear", 2, "steps", 5, 150),
    ("linear", 1, "drift", 2, 100),
]


def asked(form: str, d: int, shape: str, k: int, n: int, rng: np.random.Generator) -> tuple[dict[str, TopK], Any]:
    """Twenty queries, and a stream for them."""
    far = form == "far"  # the farthest are best
    scored = scorings("euclidean" if far else form, d, 20, rng)
    queries = {f"q{i}": TopK(k, by=by, window=Last(n), largest=far or None) for i, by in enumerate(scored)}
    return queries, stream(d, shape, rng)


@functools.lru_cache(maxsize=2)  # the engines take turns at one case
def told_alone(algorithm: str, form: str, d: int, shape: str, k: int, n: int) -> pa.Table:
    queries, columns = asked(form, d, shape, k, n, np.random.default_rng([k, n]))
    lone = [Monitor({name: dataclasses.replace(query, algorithm=algorithm)}) for name, query in queries.items()]
    return joined(told(monitor, columns, [0, ROWS]) for monitor in lone)


@pytest.mark.parametrize(
    ("form", "d", "shape", "k", "n", "algorithm", "index"),
    [  # mixed engines take turns
        pytest.param(*case, name, index, id=f"{name}-{'-'.join(map(str, case))}-{'index' if index else 'no index'}")
        for i, case in enumerate(CASES)
        for j, name in enumerate(FAMILIES)
        for index in (True, False)
        if name in ("BLOCK", "PA", "RAPF") or (i + j) % 2 == index
    ],
)
def test_a_family_says_what_each_says_alone(
    algorithm: str, form: str, d: int, shape: str, k: int, n: int, index: bool
) -> None:
    rng = np.random.default_rng([k, n])
    queries, columns = asked(form, d, shape, k, n, rng)
    together = Monitor(
        {
            name: dataclasses.replace(query, algorithm=algorithm, index=index, buffer=64)
            for name, query in queries.items()
        }
    )
    got = told(together, columns, cuts(ROWS, rng, 400))
    assert len(together._loop.state.standing()) == 1, "they are one family"
    by_query = joined(got.filter(pc.field("query") == name) for name in queries)
    same(by_query, told_alone("PA" if algorithm == "PA" else "SA", form, d, shape, k, n))


@pytest.mark.parametrize(
    ("algorithm", "buffer", "seed"),
    [("BLOCK", 300, 9), ("BLOCK", 150, 3), ("PA", None, 9), ("SASF", 300, 9), ("SAPF", 300, 9), ("RARF", 150, 3)],
)
@pytest.mark.parametrize("shape", ["random", "waves"])
@pytest.mark.parametrize("form", ["euclidean", "far", "manhattan, weighted", "linear", "linear, least"])
def test_the_grid_shows_whatever_matters(algorithm: str, buffer: int | None, seed: int, form: str, shape: str) -> None:
    """A coarse grid pays off for few queries: blocks are long enough here, and the grid is used."""
    rng = np.random.default_rng(seed)
    largest = {"far": True, "linear, least": False}.get(form)
    asked = scorings({"far": "euclidean", "linear, least": "linear"}.get(form, form), 2, 6, rng)
    columns = stream(2, shape, rng)
    told_by, engines = [], []
    for index in (True, False):
        monitor = Monitor(
            [
                TopK(2, by=by, window=Last(600), algorithm=algorithm, index=index, buffer=buffer, largest=largest)
                for by in asked
            ]
        )
        told_by.append(told(monitor, columns, range(0, ROWS + 1, 250 if buffer else 550)))
        engines.append(monitor._loop.state.standing()[0].engine)
    assert [engine.work[3] > 0 for engine in engines] == [True, False]  # type: ignore[union-attr]
    same(*told_by)


def in_python(part: Any) -> Any:
    """A part of a kernel as it is written: compiled, only kernels can call it."""
    return getattr(part, "py_func", part)


def test_every_number_lies_within_the_edges_of_its_cell() -> None:
    """Numbers at the borders of cells, where places are rounded."""
    rng = np.random.default_rng(2)
    side = 90
    none, ints = np.empty((0, 0, 0)), np.empty((0, 0), np.int64)
    for _ in range(20):
        data = np.array([[rng.normal() * 10.0 ** rng.integers(-3, 9), 0.0]])
        data[0, 1] = data[0, 0] + rng.random() * 10.0 ** rng.integers(-3, 3)
        grid = Grid(np.empty(1), np.empty(1), side, none, ints, np.empty(0, np.int64), np.empty(0))
        in_python(lay_grid)(data, 0, 2, grid)
        borders = grid.origin[0] + np.arange(1, side) / grid.scale[0]
        beyond = [data.min() - 1e9, data.max() + 1e9]  # the first and the last cell have no ends
        near = np.concatenate([borders, np.nextafter(borders, -np.inf), np.nextafter(borders, np.inf), beyond])[None]
        size = near.shape[1]
        cells, places, starts = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(side + 1, np.int64)
        block = Block(np.empty((1, size)), places, cells, starts, np.empty(1, np.int64), np.empty(2))
        in_python(sort_block)(near, 0, size, grid, block)
        for number, cell in zip(near[0], cells, strict=True):
            low, high = in_python(edges)(grid, 0, cell)
            assert low <= number <= high


@pytest.mark.parametrize(
    ("algorithm", "late", "emit"),
    [  # mixed engines take turns
        pytest.param(name, late, emit, id=f"{emit}-{'late' if late else 'in order'}-{name}")
        for i, name in enumerate(name for name in FAMILIES if name != "PA")
        for late, emit, turn in ((0.0, "arrival", 0), (0.05, "batch", 0), (0.0, "batch", 1), (0.05, "arrival", 1))
        if name in ("BLOCK", "RAPF") or i % 2 == turn
    ],
)
def test_time_windows_restores_and_cuts(algorithm: str, late: float, emit: Any) -> None:
    rng = np.random.default_rng(7)
    columns = stream(2, "coarse", rng)
    times = np.cumsum(rng.choice([0, 0, 1, 3], ROWS))
    columns["t"] = times - np.where(rng.random(ROWS) < late, rng.integers(0, 150, ROWS), 0)
    queries = [
        TopK(3, by=by, window=Last(span=120), where="x0 < 0.9", algorithm=algorithm, buffer=80)
        for by in scorings("euclidean", 2, 18, rng)
    ]
    places = cuts(ROWS, rng, 150)
    got = told(Monitor(queries, time="t", emit=emit), columns, places, restore=True)
    plain = [dataclasses.replace(query, algorithm="SA", buffer=None) for query in queries]
    expected = told(Monitor(plain, time="t", emit=emit), columns, places)
    same(got, expected, ordered=False)


@pytest.mark.parametrize("more", [False, True], ids=["whole", "in parts"])
@pytest.mark.parametrize("shape", ["random", "coarse", "drift", "waves"])
def test_net_changes_of_pushes_shorter_and_longer_than_the_window(shape: str, more: bool) -> None:
    """Of a long push most rows are gone by its end, and nobody looks at them."""
    rng = np.random.default_rng(11)
    columns = stream(2, shape, rng)
    queries = [
        TopK(4, by=by, window=Last(300), where="x0 < 2.5", algorithm="BLOCK", buffer=buffer)
        for by, buffer in itertools.product(scorings("euclidean", 2, 17, rng), (64, 200))
    ]
    places = [0, 50, 900, 1000, ROWS - 250, ROWS]
    said = []
    for algorithm in ("BLOCK", "SA"):
        monitor = Monitor([dataclasses.replace(query, algorithm=algorithm) for query in queries], emit="batch")
        pieces = []
        for i, j in itertools.pairwise(places):
            begin = i
            for end in (i + (j - i) // 3, j) if more else (j,):
                part = {name: column[begin:end] for name, column in columns.items()}
                pieces += monitor.push(part, more=end < j).to_pylist()
                begin = end
            check(monitor)
        said.append(sorted(map(str, pieces)))
    assert said[0] == said[1]


@pytest.mark.parametrize("seed", [9, 77])
def test_a_late_row_that_no_ring_holds_may_be_the_best_in_the_end(seed: int) -> None:
    """Scores come in waves, so that lanes are cut and deepened, and many rows are late."""
    rng = np.random.default_rng(seed)
    size, span = 700, 120
    times = np.cumsum(rng.choice([0, 1], size)) - np.where(rng.random(size) < 0.4, rng.integers(0, span // 2, size), 0)
    columns = {"x": rng.random(size) + np.sin(np.arange(size) / 40), "t": times}
    asked = [TopK(1, by=Nearest({"x": x}), window=Last(span=span), buffer=160) for x in (0.0, 0.5, 1.0)]
    got = told(Monitor(asked, time="t"), columns, [0, size])
    plain = [dataclasses.replace(query, algorithm="SA", buffer=None) for query in asked]
    expected = told(Monitor(plain, time="t"), columns, [0, size])
    same(got, expected, ordered=False)


def test_a_family_stays_whole_when_its_scorings_disagree_about_a_row() -> None:
    """0 times infinity is no score for one of them and a score for the other."""
    queries = [TopK(2, by=Linear({"x": x, "y": 1}), window=Last(3)) for x in (0.0, 1.0, 2.0)]
    monitor, lone = Monitor(queries), [Monitor(query) for query in queries]
    for x, y in [(1.0, 2.0), (3.0, 1.0), (np.inf, 1.0), (2.0, 2.0)]:
        got = monitor.push({"x": [x], "y": [y]}).drop_columns(["query"]).to_pylist()
        expected = [alone.push({"x": [x], "y": [y]}).drop_columns(["query"]).to_pylist() for alone in lone]
        assert got == [change for own in expected for change in own]
        check(monitor)
    assert len(monitor._loop.state.standing()) == 1  # subscriptions: joining and leaving never splits an engine
    assert monitor.stats()["queries"]["q0"]["rejected"] == {"Linear({'x': 0.0, 'y': 1.0}) has no value": 1}


@pytest.mark.parametrize("other", [{"where": "x > 1"}, {"algorithm": "SA"}, {"per": "y"}], ids=str)
def test_a_family_beside_a_query_with_one_of_its_scorings(other: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    columns = {"x": rng.random(300) * 2, "y": rng.integers(0, 3, 300).astype(float)}
    asked = [TopK(2, by=Nearest({"x": x, "y": 1.0}), window=Last(20)) for x in (0.5, 1.5)]
    alone = dataclasses.replace(asked[0], **other)
    together = Monitor({"a": asked[0], "b": asked[1], "c": alone}).push(columns).to_pylist()
    expected = Monitor({"c": alone}).push(columns).to_pylist()
    names = list(expected[0])
    assert [{name: row[name] for name in names} for row in together if row["query"] == "c"] == expected


def test_numbers_that_overflow_in_one_scoring_only() -> None:
    queries = [TopK(2, by=Linear({"x": x, "y": -x}), window=Last(3)) for x in (1.0, 1e120)]
    monitor, lone = Monitor(queries), [Monitor(query) for query in queries]
    for x in (1.0, 1e200, 2.0):
        got = monitor.push({"x": [x], "y": [x]}).drop_columns(["query"]).to_pylist()
        expected = [alone.push({"x": [x], "y": [x]}).drop_columns(["query"]).to_pylist() for alone in lone]
        assert got == [change for own in expected for change in own]


@pytest.mark.parametrize("shape", ["random", "drift"])
@pytest.mark.parametrize("algorithm", FAMILIES)
def test_queries_leave_and_change_and_the_others_go_on(algorithm: str, shape: str) -> None:
    rng = np.random.default_rng(3)
    columns = stream(2, shape, rng)
    asked = scorings("euclidean", 2, 5, rng)
    queries = {f"q{i}": TopK(3, by=by, window=Last(200), algorithm=algorithm) for i, by in enumerate(asked)}
    family, lone = Monitor(queries), {name: Monitor({name: query}) for name, query in queries.items()}

    def both(i: int, j: int) -> None:
        part = pa.table({name: column[i:j] for name, column in columns.items()})
        got = family.push(part).to_pylist()
        assert got == [change for alone in lone.values() for change in alone.push(part).to_pylist()]
        check(family)

    def answers() -> None:
        for name, alone in lone.items():
            assert family.answer(name).equals(alone.answer(name))
            if algorithm != "PA":
                assert family.answer(name, k=1, window=7).equals(alone.answer(name, k=1, window=7))

    both(0, 500)
    answers()  # while they are a family: buffered algorithms split it next
    smaller = dataclasses.replace(queries["q1"], k=2)
    assert family.replace("q1", smaller).to_pylist() == lone["q1"].replace("q1", smaller).to_pylist()
    both(500, 700)
    family.drop("q3")
    del lone["q3"]
    both(700, 1000)
    answers()


def test_objects_of_the_ring_can_be_the_answer_of_a_shorter_window() -> None:
    rng = np.random.default_rng(5)
    columns = stream(2, "random", rng)
    queries = [TopK(3, by=by, window=Last(1000)) for by in scorings("euclidean", 2, 20, rng)]
    monitor, plain = Monitor(queries), Monitor([dataclasses.replace(query, algorithm="SA") for query in queries])
    monitor.push(columns)
    plain.push(columns)
    engine = monitor._loop.state.standing()[0].engine
    lanes = engine.lanes_of(np.arange(20))  # type: ignore[union-attr]
    assert (lanes["depth"] > -np.inf).all(), "or nothing is left out"
    for name in monitor.queries:
        for window in (1, 5, 50, 999):
            assert monitor.answer(name, window=window).equals(plain.answer(name, window=window))
