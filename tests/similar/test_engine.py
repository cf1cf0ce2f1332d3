"""The engine of many vectors: held against plain queries, which are scored row by row; and its error bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import skyband as sb
from engines.comparison import cells, same_rows
from engines.streams import examples
from skyband.engines.contract import Vectors
from skyband.engines.topk.similar import prepared, slack_of
from skyband.engines.topk.slot_columns import Shape
from skyband.errors import QueryError
from skyband.kernels.vectors import sums_of_squares
from skyband.query.scoring.forms import COSINE, DISTANCE, DOT
from skyband.query.scoring.similar import METRICS, Similar, distances, dots

Matrix = NDArray[Any]
ROWS = 800


def stream(rng: Any, order: str, rows: int, queries: Matrix, dtype: str) -> Matrix:
    """Vectors around those of queries: in random order, getting worse (depths must fall), or nearly tied."""
    d = queries.shape[1]
    found = rng.normal(size=(rows, d))
    if order == "worse":
        share = np.linspace(1.0, 0.0, rows)[:, None]
        found = share * queries[rng.integers(len(queries), size=rows)] + (1.02 - share) * found
    elif order == "tied":
        base = rng.integers(-2, 3, size=(3, d)).astype(float)
        base[:, 0] += 3
        found = base[rng.integers(3, size=rows)] + 1e-7 * rng.integers(-2, 3, size=(rows, d))
    elif order == "wild":
        found *= 10.0 ** rng.choice([-170, -30, -20, 0, 0, 20, 30, 140], size=(rows, 1))
    with np.errstate(all="ignore"):
        made: NDArray[Any] = found.astype(dtype)
    return made


def play(
    seed: int, metric: Any, order: str, *, timed: bool, emit: str, largest: bool | None, restores: bool = False
) -> Any:
    """Pushes to a Monitor of subscriptions and to one of plain queries; returns the engine."""
    rng = np.random.default_rng(seed)
    d, lanes, n, k = int(rng.integers(1, 7)), 8, int(rng.integers(60, 400)), int(rng.integers(1, 4))
    queries = rng.integers(-2, 3, size=(lanes, d)) + 0.25
    window = sb.Last(span=n) if timed else sb.Last(n)
    options: Any = {"id": "i", "time": "t" if timed else None, "emit": emit}
    asked = sb.TopK(k, Similar("e", sb.Each("v"), metric), window, largest=largest, buffer=int(rng.integers(40, 300)))
    plain = {
        f"{i}": sb.TopK(k, Similar("e", one, metric), window, largest=largest, algorithm="SA")
        for i, one in enumerate(queries)
    }
    ours, theirs = sb.Monitor({"each": asked}, **options), sb.Monitor(plain, **options)
    ours.subscribe("each", {"subscriber": [*plain], "v": queries})
    shared = sb.Monitor({i: replace(one, algorithm="auto", buffer=asked.buffer) for i, one in plain.items()}, **options)
    serial, rows = 0, stream(rng, order, ROWS, queries, "f8" if order == "wild" else "f4")
    while serial < len(rows):
        size = int(rng.choice([1, 3, 40, 150]))
        some = rows[serial : serial + size]
        some = some.astype("f8") if rng.integers(4) == 0 else some
        times = np.arange(serial, serial + len(some)) - rng.integers(0, 6, size=len(some)) * timed
        batch = {"i": np.arange(serial, serial + len(some)), "t": times, "e": some}
        got, expected = cells(ours.push(batch)), cells(theirs.push(batch))
        same_rows([named(row) for row in got], expected, f"seed {seed}, row {serial}")
        same_rows(cells(shared.push(batch)), expected, f"plain, seed {seed}, row {serial}")
        ours._loop.check()
        shared._loop.check()
        if restores and rng.integers(4) == 0:
            ours = sb.Monitor.restore(ours.snapshot(), trusted=False)
            shared = sb.Monitor.restore(shared.snapshot(), trusted=False)
        serial += size
    assert shared.stats()["queries"]["0"]["rejected"] == theirs.stats()["queries"]["0"]["rejected"]
    engines = len({id(adapter) for adapter in shared._loop.state.adapters.values()})
    distinct = len({tuple(one) for one in queries.tolist()})  # equal ones share a skyband; fewer than 8 are no family
    assert engines == (1 if distinct == lanes else distinct)
    return next(one.engine for one in ours._loop.state.subscribed.values())


def named(row: dict[str, Any]) -> dict[str, Any]:
    """A change of a subscription as one of the plain query of its name."""
    return {"query": row["subscriber"]} | {name: row[name] for name in row if name not in ("query", "subscriber")}


@pytest.mark.filterwarnings("ignore::skyband.errors.SkybandWarning")
@examples(36)
@given(
    seed=st.integers(0, 10**6),
    metric=st.sampled_from(METRICS),
    order=st.sampled_from(["random", "worse", "tied", "wild"]),
    timed=st.booleans(),
    emit=st.sampled_from(["arrival", "arrival", "batch"]),
    largest=st.sampled_from([None, None, True, False]),
)
def test_same_as_plain_queries(seed: int, metric: Any, order: str, timed: bool, emit: str, largest: Any) -> None:
    play(seed, metric, order, timed=timed, emit=emit, largest=largest, restores=True)


@pytest.mark.parametrize("metric", METRICS)
def test_depths_fall_and_most_arrivals_are_left_out(metric: Any) -> None:
    """What the test above must reach: lanes that are deepened, and far fewer scores than lanes times arrivals."""
    work = sum(play(seed, metric, "worse", timed=False, emit="arrival", largest=None).work for seed in (2, 5, 6))
    assert work[2] > 0
    assert work[0] < 3 * 8 * ROWS // 2


@pytest.mark.parametrize("form", [COSINE, DOT, DISTANCE])
@examples(60)
@given(data=st.data())
def test_the_bound_holds(form: int, data: st.DataObject) -> None:
    """A product is never further from the score by the rule than its slack says: near ties, denormals, huge numbers."""
    d, turned = data.draw(st.sampled_from([1, 2, 7, 64, 384])), form == DISTANCE
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    size = 10.0 ** data.draw(st.sampled_from([-44, -38, -20, 0, 15, 30, 100]))
    dtype = data.draw(st.sampled_from(["f4", "f8"])) if size < 1e38 else "f8"
    query = rng.normal(size=d)
    rows = query + rng.choice([0, 1e-8, 1e-7, 1e-3, 1, -2], size=(50, 1)) * rng.normal(size=(50, d))
    rows[::7] *= -1
    rows = (rows * (size if form != DISTANCE else min(size, 1e20))).astype(dtype)
    norms = np.sqrt(sums_of_squares(rows))
    single, weights, offsets, slack = prepared(Vectors(rows, norms), Shape(form, turned, d, 0))
    norm = float(np.sqrt(sums_of_squares(query[None, :]))[0])
    unit = (query if form == DISTANCE else query / norm).astype(np.float32)
    bars = ((single @ unit).astype(np.float64) - offsets) / weights
    with np.errstate(all="ignore"):
        if form == DISTANCE:
            exact = (norm * norm - distances(rows, query)) / 2
            slack = slack + slack_of(d) * norm * norm / 2
        else:
            exact = dots(rows, query) / (norm * norms if form == COSINE else norm)
        wrong = np.abs(bars - exact) * weights
    known = norms > 0
    assert (~(wrong > slack))[known].all()
    assert np.isfinite(slack[(norms > 1e-90) & (norms < 1e14)]).all()


def test_plain_queries_come_and_go() -> None:
    """Families of vectors: queries join, with their window too, ask for less, leave; eight share, seven do not."""
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(10, 5))

    def asked(i: int, k: int = 3, **more: Any) -> Any:
        return sb.TopK(k, Similar("e", vectors[i], "dot"), sb.Last(50), where=f"x >= {i % 6}", **more)

    ours = sb.Monitor({str(i): asked(i) for i in range(8)}, id="i")
    theirs = sb.Monitor({str(i): asked(i, algorithm="SA") for i in range(8)}, id="i")
    few = sb.Monitor({str(i): asked(i) for i in range(7)}, id="i")

    def push(serial: int) -> None:
        rows = rng.normal(size=(40, 5)).astype(np.float32)
        batch = {"i": np.arange(serial, serial + 40), "x": rng.integers(0, 9, 40), "e": rows}
        same_rows(cells(ours.push(batch)), cells(theirs.push(batch)), f"row {serial}")
        few.push(batch)

    push(0)
    assert {ours._loop.state.adapters[str(i)] for i in range(8)} == {ours._loop.state.adapters["0"]}
    assert len({few._loop.state.adapters[str(i)] for i in range(7)}) == 7
    ours.add("8", asked(8))
    theirs.add("8", asked(8, algorithm="SA"))
    push(40)
    entering = ours.add("9", asked(9), from_window=True)
    assert entering is not None and entering.num_rows == 3 and ours.answer("9").num_rows == 3
    ours.drop("9")
    same_rows(
        cells(ours.replace("1", asked(1, 2))), cells(theirs.replace("1", asked(1, 2, algorithm="SA"))), "a smaller k"
    )
    ours.drop("0")
    theirs.drop("0")
    for serial in range(80, 400, 40):
        push(serial)
        ours._loop.check()


@pytest.mark.parametrize("emit", ["arrival", "batch"])
@pytest.mark.parametrize("timed", [False, True])
def test_subscriptions_begin_with_their_windows(emit: str, timed: bool) -> None:
    rng = np.random.default_rng(3)
    window = sb.Last(span=sb.Each("n")) if timed else sb.Last(sb.Each("n"))
    query = sb.TopK(3, Similar("e", sb.Each("v")), window)
    options: Any = {"emit": emit, "id": "i", "time": "t"}
    late, all_along = sb.Monitor({"q": query}, **options), sb.Monitor({"q": query}, **options)
    first = {"subscriber": np.arange(5), "v": rng.normal(size=(5, 6)), "n": np.array([900, 40, 300, 60, 900])}
    more = {"subscriber": np.arange(5, 25), "v": rng.normal(size=(20, 6)), "n": rng.integers(20, 900, 20)}
    late.subscribe("q", first)
    all_along.subscribe("q", {name: np.concatenate([first[name], more[name]]) for name in first})
    for step in range(12):
        serial = np.arange(200 * step, 200 * step + 200)
        batch = {"i": serial, "t": serial - rng.choice([0, 0, 7], 200) * timed, "e": rng.normal(size=(200, 6))}
        if step == 7:
            entering = late.subscribe("q", more, from_window=True)
            answer = [row for row in all_along.answer("q").to_pylist() if row["subscriber"] >= 5]
            assert sorted((row["subscriber"], row["id"], row["score"]) for row in entering.to_pylist()) == sorted(
                (row["subscriber"], row["id"], row["score"]) for row in answer
            )
        got, expected = cells(late.push(batch)), cells(all_along.push(batch))
        if step >= 7:
            drop = ("first",)  # what entered and left before is new to one that comes later
            same_rows(
                [{name: row[name] for name in row if name not in drop} for row in got],
                [{name: row[name] for name in row if name not in drop} for row in expected],
                f"step {step}",
            )
        late._loop.check()


def test_a_window_beyond_what_is_kept_is_refused_with_its_cost() -> None:
    query = sb.TopK(1, Similar("e", sb.Each("v")), sb.Last(50), buffer=20)
    monitor = sb.Monitor({"q": query}, id="i")
    monitor.subscribe("q", {"subscriber": [1], "v": [[1.0, 0.0]]})
    for low in range(0, 90, 30):
        monitor.push({"i": np.arange(low, low + 30), "e": np.random.default_rng(1).normal(size=(30, 2))})
    with pytest.raises(QueryError, match=r"subscriber 2: the vectors .* a window of 50.*buffer=.* 8 bytes each"):
        monitor.subscribe("q", {"subscriber": [2], "v": [[0.0, 1.0]]}, from_window=True)
