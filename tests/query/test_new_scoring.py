"""The recipe of CONTRIBUTING.md for a scoring: one class in a file, and one row in SCORINGS, added here at run time."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import Taste, examples, play, same_rows, scenes
from skyband.errors import QueryError
from skyband.oracle import Oracle
from skyband.oracle.scores import KEYS
from skyband.query.kinds import Query
from skyband.query.scoring import SCORINGS, scoring_of
from skyband.query.scoring.base import EVERYTHING, Box, Columns, Floats, Scoring, Weighted, interval, scaled, total


@dataclass(frozen=True, init=False, repr=False)
class Roots(Weighted):
    """The sum of w·√(|x| + shift). It has a bound and SQL, and no kernel form: engines keep its objects by score."""

    word = "roots"
    options: ClassVar[Mapping[str, Any]] = {"shift": 1}
    shift: float

    def __init__(self, weights: Mapping[str, float], shift: float = 0.0) -> None:
        super().__init__(weights)
        object.__setattr__(self, "shift", float(shift))

    def key(self, columns: Columns) -> Floats:
        return total([w * np.sqrt(np.abs(columns[name]) + self.shift) for name, w in self.terms])

    def bound(self, box: Box) -> tuple[float, float]:
        return interval([scaled(w, *self._root(*box.get(name, EVERYTHING))) for name, w in self.terms], total)

    def _root(self, low: float, high: float) -> tuple[float, float]:
        near = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        return math.sqrt(near + self.shift), math.sqrt(max(abs(low), abs(high)) + self.shift)

    def to_dict(self) -> dict[str, Any]:
        return {"roots": self.weights, **({"shift": self.shift} if self.shift else {})}

    def __repr__(self) -> str:
        return f"Roots({self.weights!r}, shift={self.shift!r})"


@dataclass(frozen=True, init=False, repr=False)
class Fourth(Weighted):
    """The distance in L4, ranked by the sum of fourth powers. The smallest is best; nothing bounds it."""

    word = "fourth"

    @property
    def smallest_first(self) -> bool:
        return True

    def key(self, columns: Columns) -> Floats:
        squares = [(columns[name] - at) * (columns[name] - at) for name, at in self.terms]
        return total([square * square for square in squares])

    def score(self, key: Floats) -> Floats:
        return np.sqrt(np.sqrt(key))


@dataclass(frozen=True)
class Largest(Scoring):
    """A scoring of pairs, by NumPy: the largest |a.x - b.x|."""

    word = "largest"
    scores_objects = False
    scores_pairs = True
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    def pair_key(self, older: Mapping[str, Any], newer: Mapping[str, Any]) -> Any:
        return np.max([np.abs(older[name] - newer[name]) for name in self.names], axis=0)

    def to_dict(self) -> dict[str, Any]:
        return {"largest": dict.fromkeys(self.names, 1)}


def roots(by: Roots, xs: list[float]) -> float:
    """The oracle's own arithmetic."""
    score = 0.0
    for (_, w), x in zip(by.terms, xs, strict=True):
        score = score + w * math.sqrt(abs(x) + by.shift)
    return score


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCORINGS, "roots", Roots)
    monkeypatch.setitem(SCORINGS, "fourth", Fourth)
    monkeypatch.setitem(SCORINGS, "largest", Largest)
    monkeypatch.setitem(KEYS, "roots", roots)


BY: Any = Roots({"x": 0.5, "y": 2}, shift=1)
COLUMNS = {
    "i": list(range(12)),
    "x": [3, -1, 4, 1, -5, 9, 2, 6, 5, 3, None, 8],
    "y": [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, -5],
}
ROWS = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]


@pytest.mark.parametrize("algorithm", ["BLOCK", "SA", "TMA", "SMA", "TSL"])
def test_the_contract_suite_takes_it(algorithm: str) -> None:
    @examples(25)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        play(data.draw(scenes(algorithm, Taste(by=(BY, Roots({"x": 1})), rows=10, events=4))))

    run()


@pytest.mark.parametrize(
    "query",
    [
        sb.TopK(3, BY, sb.Last(5)),
        sb.TopK(3, BY, sb.Last(5), largest=False, where="y > 1", algorithm="TMA"),
        sb.TopK(3, BY, sb.Last(5), algorithm="SMA"),
        sb.Above(4.0, BY, sb.Last(5)),
        sb.Above(4.0, BY, sb.UntilDeleted(), algorithm="TSL"),
        sb.TopKUncertain(2, BY, sb.Last(5), probability="one"),
    ],
    ids=repr,
)
def test_answers_and_snapshots(query: Query) -> None:
    """Queries with other numbers stand beside it: they cannot share its engine, and must not."""
    queries = {"one": query, "other": sb.TopK(2, Roots({"x": 3, "y": -1}), sb.Last(4))}
    monitor, oracle = sb.Monitor(queries, id="i"), Oracle(queries, id="i")
    for begin in range(0, len(ROWS), 5):
        push = [{**row, "one": 0.9} for row in ROWS[begin : begin + 5]]
        changes = monitor.push(push)
        same_rows(changes.to_pylist(), oracle.push(push), f"row {begin}")
        monitor = sb.Monitor.restore(monitor.snapshot(), trusted=False)
        for name in queries:
            assert monitor.answer(name).column("score").to_pylist() == [row["score"] for row in oracle.answer(name)]
    assert monitor.queries == queries
    assert monitor.stats()["rejected"] == {"x is null": 1}


def test_the_value_is_stored_and_read_back() -> None:
    query = sb.TopK(3, BY, sb.Last(5))
    assert query.to_dict()["by"] == {"roots": {"x": 0.5, "y": 2.0}, "shift": 1.0}
    assert Query.from_dict(json.loads(json.dumps(query.to_dict()))) == query
    assert pickle.loads(pickle.dumps(query)) == query  # noqa: S301
    assert query.reads == {"by": ("x", "y"), "per": ()}
    text = "SELECT * FROM s ORDER BY roots(x = 0.5, y = 2) SHIFT 1 DESC LIMIT 3 WINDOW 5 ROWS"
    assert query.to_sql("s") == text
    assert sb.sql(text) == query
    assert sb.sql("SELECT * FROM s ORDER BY fourth(x = 1) ASC LIMIT 3 WINDOW 5 ROWS").largest is None


def test_explain_and_errors_take_it() -> None:
    explained = sb.explain(sb.TopK(3, BY, sb.Last(100)))
    assert (explained.algorithm, explained.form) == ("BLOCK", "roots")
    assert any("Roots({'x': 0.5, 'y': 2.0}, shift=1.0) says its form itself" in why for why in explained.why)
    with pytest.raises(QueryError, match=r'not a scoring.*"roots"'):
        Query.from_dict({"kind": "TopK", "k": 1, "by": {"rots": {"x": 1}}, "window": {"last": 3}})
    with pytest.raises(QueryError, match=r"no scoring.*sb\.Roots"):
        sb.TopK(3, 7, sb.Last(5))  # type: ignore[arg-type]
    with pytest.raises(QueryError, match=r"roots\(x = 0\.7\)"):
        sb.sql("SELECT * FROM s ORDER BY roots(x) LIMIT 3 WINDOW 5 ROWS")


def test_one_without_a_bound_is_refused_where_bounds_are_needed() -> None:
    near = sb.TopK(2, Fourth({"x": 1}), sb.Last(5))
    assert not near.descending
    monitor = sb.Monitor(near, id="i")
    monitor.push(COLUMNS)
    assert monitor.answer().select(["id", "score"]).to_pylist() == [{"id": 6, "score": 1.0}, {"id": 9, "score": 2.0}]
    with pytest.raises(QueryError, match=r"fourth does not bound its scores, so SMA cannot bound it.*BLOCK"):
        sb.Monitor(sb.TopK(2, Fourth({"x": 1}), sb.Last(5), algorithm="SMA"))
    with pytest.raises(QueryError, match="Fourth ranks the smallest first"):
        sb.Above(2, Fourth({"x": 1}), sb.Last(5))


def test_one_of_pairs() -> None:
    """The oracle gets a function of its own."""
    queries = [
        sb.TopKPairs(3, by, sb.Last(6)) for by in (Largest(("x", "y")), "greatest(abs(a.x - b.x), abs(a.y - b.y))")
    ]
    monitor, oracle = sb.Monitor(queries[0], id="i"), Oracle(queries[1], id="i")
    rows = [row for row in ROWS if row["x"] is not None]
    for begin in range(0, len(rows), 4):
        same_rows(monitor.push(rows[begin : begin + 4]).to_pylist(), oracle.push(rows[begin : begin + 4]), f"{begin}")
        monitor = sb.Monitor.restore(monitor.snapshot(), trusted=False)
    with pytest.raises(QueryError, match="Largest scores pairs of objects"):
        sb.TopK(3, Largest(("x",)), sb.Last(6))
    with pytest.raises(QueryError, match=r"does not score a pair.*sb\.Largest"):
        sb.TopKPairs(3, BY, sb.Last(6))
    assert sb.explain(queries[0]).form == "typed"


SCORES: list[Any] = [
    BY,
    sb.Linear({"x": -2, "y": 0.5, "z": 0}),
    sb.Product({"x": -0.5, "y": 2, "z": 1}),
    sb.Quadratic({"x": 3, "y": -1, "z": 0}),
    *(sb.Nearest({"x": 1, "y": 0, "z": -2}, metric=metric) for metric in ("euclidean", "manhattan", "chebyshev")),
    sb.Nearest({"x": 1, "y": 0, "z": -2}, weights={"x": 0, "y": 2, "z": 1}),
    *("2*x - y", "sqrt(x*x + y*y)", "least(x, y) - z", "abs(x - 1) + abs(y)", "3*x + 0*y - z"),
]


@pytest.mark.parametrize("by", SCORES, ids=repr)
@examples(60)
@given(data=st.data())
def test_a_bound_holds_for_every_object_of_a_box(by: Any, data: st.DataObject) -> None:
    scoring, number = scoring_of(by), st.floats(-100, 100).map(lambda x: x + 0.0)  # no -0.0
    box: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for name in data.draw(st.lists(st.sampled_from("xyz"), unique=True)):
        box[name] = tuple(sorted((data.draw(number), data.draw(number))))
    for name in "xyz":
        columns[name] = np.array([data.draw(st.floats(*box.get(name, (-1e3, 1e3))))])
    bound = scoring.bound(box)
    assert bound is not None
    assert bound[0] <= scoring.key(columns)[0] <= bound[1]
