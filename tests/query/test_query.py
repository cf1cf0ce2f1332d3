"""Queries, windows and scorings are values: checked when made, equal by value, stored as plain data and read back."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.questions import COMMON, pairings, queries, scorings, windows
from skyband.errors import QueryError
from skyband.query.algorithms import names
from skyband.query.kinds import Query
from skyband.query.options import Options
from skyband.query.scoring import by_from_dict, by_to_dict
from skyband.query.windows import window_from_dict

wrong: Any = sb  # to be called with what its types forbid

# ------------------------------------------------------------------------------- queries


@pytest.mark.parametrize("kind", queries)
@COMMON
@given(data=st.data())
def test_round_trip(kind: str, data: st.DataObject) -> None:
    """Through a dict, through JSON, by the class, and by the parent; equal, and equally hashed."""
    query: Any = data.draw(queries[kind])
    stored = query.to_dict()
    assert stored["kind"] == kind
    for again in (
        type(query).from_dict(stored),
        Query.from_dict(stored),
        Query.from_dict(json.loads(json.dumps(stored))),
        pickle.loads(pickle.dumps(query)),  # noqa: S301
    ):
        assert again == query
        assert hash(again) == hash(query)
        assert type(again) is type(query)
        assert again.to_dict() == stored
        assert repr(again) == repr(query)
    assert query.algorithm in ("auto", *names(kind)), "names are kept in upper case"


@pytest.mark.parametrize("kind", queries)
@COMMON
@given(data=st.data())
def test_equality_is_by_value(kind: str, data: st.DataObject) -> None:
    one, other = data.draw(queries[kind]), data.draw(queries[kind])
    stranger: Any = "a query"
    assert (one == other) == (one.to_dict() == other.to_dict())
    assert one != stranger
    assert len({one, other}) == (1 if one == other else 2)


def test_only_what_differs_is_stored() -> None:
    query = sb.TopK(k=10, by="delay", window=sb.Last("24 hours"), per="origin")
    assert query.to_dict() == {
        "kind": "TopK",
        "k": 10,
        "by": "delay",
        "window": {"last": "24 hours"},
        "per": ["origin"],
    }
    assert query == sb.TopK(10, "delay", sb.Last(timedelta(days=1)), per=["origin"], algorithm="AUTO")
    assert query != sb.TopK(10, "delay", sb.Last("23 hours"), per="origin")


def test_frozen() -> None:
    for value, field in ((sb.TopK(1, "x", sb.Last(1)), "k"), (sb.Last(1), "count"), (sb.Linear({"x": 1}), "terms")):
        with pytest.raises(AttributeError):
            setattr(value, field, 2)


def test_a_function_is_named_and_never_stored() -> None:
    def speed(batch: Any) -> Any:
        return batch["x"]

    query = sb.TopK(1, speed, sb.Last(3))
    stored = query.to_dict()
    assert json.loads(json.dumps(stored))["by"] == {
        "callable": f"{test_a_function_is_named_and_never_stored.__name__}.<locals>.speed"
    }
    with pytest.raises(QueryError, match=r"speed.*never stored.*callables"):
        sb.TopK.from_dict(stored)
    assert sb.TopK.from_dict(stored, call=speed) == query


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (7, "mapping"),
        ({"kind": "Bottom"}, "not a query kind.*TopK"),
        ({"kind": "TopK", "k": 1, "by": "x", "window": {"last": 3}, "colour": "red"}, "TopK has no colour"),
        ({"kind": "TopK", "by": "x", "window": {"last": 3}}, "k"),
        ({"kind": "TopK", "k": 1, "by": "x", "window": {"first": 3}}, "not a window.*last"),
        ({"kind": "TopK", "k": 1, "by": "x", "window": {"last": 3, "span": 3}}, "not a window"),
        ({"kind": "TopK", "k": 1, "by": "x", "window": 3}, "window must say"),
        ({"kind": "TopK", "k": 1, "by": {"cubic": {"x": 1}}, "window": {"last": 3}}, "not a scoring.*linear"),
        ({"kind": "TopK", "k": 1, "by": 7, "window": {"last": 3}}, "scoring"),
        ({"kind": "TopK", "k": 0, "by": "x", "window": {"last": 3}}, "at least 1"),
    ],
)
def test_stored_nonsense(data: Any, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        Query.from_dict(data)


def test_a_class_reads_only_its_own_kind() -> None:
    with pytest.raises(QueryError, match=r"Above.*Use one of TopK"):
        sb.TopK.from_dict(sb.Above(1, "x", sb.Last(3)).to_dict())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: wrong.TopK(1, "x", sb.Last(1), largest="yes"), "largest"),
        (lambda: sb.TopK(1, "x", sb.Last(1), gamma=0), "gamma"),
        (lambda: sb.TopK(1, "x", sb.Last(1), gamma=math.nan), "gamma"),
        (lambda: sb.TopK(1, "x", sb.Last(1), sigma=1), "sigma"),
        (lambda: wrong.TopK(1, "x", sb.Last(1), sigma="0.1"), "sigma"),
        (lambda: sb.TopK(1, "x", sb.Last(1), additional=-1), "additional"),
        (lambda: sb.TopK(1, "x", sb.Last(1), buffer=0), "buffer"),
        (lambda: sb.Above(math.nan, "x", sb.Last(1)), "threshold"),
        (lambda: wrong.Above("1", "x", sb.Last(1)), "threshold"),
        (lambda: sb.Above(True, "x", sb.Last(1)), "threshold"),
        (lambda: sb.Above(10**400, "x", sb.Last(1)), "threshold.*range"),
        (lambda: sb.Nearest({"x": 10**400}), "finite"),
        (lambda: wrong.Nearest({"x": np.timedelta64(1, "s")}), "number"),
        (lambda: sb.Above(1, sb.Nearest({"x": 1}), sb.Last(1)), "Nearest.*abs"),
        (lambda: sb.TopKPairs(1, "a.x - b.x", sb.Last(1)), "symmetric=False"),
        (lambda: sb.TopKPairs(1, "x", sb.Last(1)), "a"),
        (lambda: sb.TopKPairs(1, sb.Linear({"x": 1}), sb.Last(1)), "does not score a pair"),
        (lambda: sb.TopKUncertain(1, "x", sb.UntilDeleted()), "UntilDeleted is for TopK"),
        (lambda: sb.TopKPairs(1, "abs(a.x - b.x)", sb.Ever()), "Use a window that ends"),
        (lambda: wrong.TopKPairs(1, "abs(a.x - b.x)", sb.Last(1), largest=None), "True or False"),
        (lambda: sb.TopKIncomplete(1, [], sb.Last(1)), "parts"),
        (lambda: sb.TopKIncomplete(1, "north", sb.Last(1)), "parts"),
        (lambda: sb.TopKIncomplete(1, ["a", "a"], sb.Last(1)), "twice"),
        (lambda: sb.TopKIncomplete(1, {"a": (1, 0)}, sb.Last(1)), "low < high"),
        (lambda: sb.TopKIncomplete(1, {"a": (-math.inf, 1)}, sb.Last(1)), "finite"),
        (lambda: sb.TopKIncomplete(1, {"*": (0, 1), "a": (0, 1)}, sb.Last(1)), "Name all parts, or none"),
        (lambda: sb.TopKIncomplete(1, "*", sb.Last(1), combine="mean"), "How many parts"),
        (lambda: sb.TopKIncomplete(1, "*", sb.Last(1), combine="a + 1"), "How many parts"),
        (lambda: sb.TopKIncomplete(1, {"*": (1, 2)}, sb.Last(1)), "needs the low 0"),
        (lambda: sb.TopKIncomplete(1, "*", sb.Last(1), repeat="max"), "repeat='max' needs a number"),
        (lambda: sb.TopKIncomplete(1, ["a"], sb.Last(1), combine="median"), "median"),
        (lambda: sb.TopKIncomplete(1, ["a"], sb.Last(1), combine="a + b"), "'b'"),
        (lambda: sb.TopKIncomplete(1, ["a"], sb.Last(1), combine="1 - a"), "rise"),
        (lambda: sb.TopKIncomplete(1, ["a"], sb.Last(1), combine=sb.Linear({"a": -1})), "rise"),
        (lambda: wrong.TopKIncomplete(1, ["a"], sb.Last(1), combine=7), "unknown"),
        (lambda: wrong.TopKIncomplete(1, ["a"], sb.Last(1), repeat="first"), "repeat"),
        (lambda: sb.TopKIncomplete(1, ["a"], sb.UntilDeleted()), "UntilDeleted"),
        (lambda: wrong.TopKUncertain(1, "x", sb.Last(1), semantics="top"), "semantics.*u-topk"),
        (lambda: sb.TopKUncertain(1, "x", sb.Last(1), semantics="pt-k"), "threshold"),
        (lambda: sb.TopKUncertain(1, "x", sb.Last(1), threshold=0.5), "only pt-k"),
        (lambda: sb.TopKUncertain(1, "x", sb.Last(1), semantics="pt-k", threshold=1), "probability"),
        (lambda: sb.TopKUncertain(1, "x", sb.Last(1), probability=""), "probability"),
        (lambda: sb.TopKUncertain(1, "x", sb.UntilDeleted()), "UntilDeleted"),
    ],
)
def test_validation(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(QueryError, match=f"(?s){words}"):
        make()


def test_direction() -> None:
    """Only Nearest turns it."""
    near = sb.Nearest({"x": 0})
    for by, largest_is_best in (("abs(x)", True), ("x", True), (near, False), (sb.Linear({"x": -1}), True)):
        assert sb.TopK(1, by, sb.Last(1)).descending is largest_is_best
        assert sb.TopK(1, by, sb.Last(1), largest=True).descending is True
        assert sb.TopK(1, by, sb.Last(1), largest=False).descending is False
    assert sb.TopKPairs(1, "abs(a.x - b.x)", sb.Last(1)).descending is False


# ------------------------------------------------------------------------------- windows


@COMMON
@given(window=windows)
def test_windows_round_trip(window: sb.Last) -> None:
    stored = json.loads(json.dumps(window.to_dict()))
    assert window_from_dict(stored) == window
    assert hash(window_from_dict(stored)) == hash(window)
    assert eval(repr(window), {"Last": sb.Last}) == window  # noqa: S307
    assert window.timed is (window.count is None)


def test_until_deleted() -> None:
    assert window_from_dict(sb.UntilDeleted().to_dict()) == sb.UntilDeleted()
    assert sb.UntilDeleted() != window_from_dict({"last": 1})
    assert not sb.UntilDeleted().timed


def test_ever() -> None:
    assert window_from_dict(json.loads(json.dumps(sb.Ever().to_dict()))) == sb.Ever()
    assert eval(repr(sb.Ever()), {"Ever": sb.Ever}) == sb.Ever()  # noqa: S307
    assert len({sb.Ever(), sb.Ever(), sb.UntilDeleted()}) == 2
    assert Options(time="t").timed(sb.Ever()) and not Options().timed(sb.Ever())
    assert not Options(time="t").timed(sb.Last(3)) and not Options(time="t").timed(sb.UntilDeleted())
    with pytest.raises(sb.QueryError, match="is not a window"):
        window_from_dict({"ever": False})


@pytest.mark.parametrize("window", [sb.Ever(), sb.Last(3), sb.UntilDeleted(), "1 minute"])
def test_ever_has_no_shorter_windows(window: Any) -> None:
    query = sb.TopK(3, "x", sb.Ever())
    assert query.smaller(k=2) == sb.TopK(2, "x", sb.Ever())
    with pytest.raises(sb.QueryError, match="Ask without window="):
        query.smaller(window=window)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("10 minutes", timedelta(minutes=10)),
        ("10 min", timedelta(minutes=10)),
        ("600 s", timedelta(minutes=10)),
        ("600 seconds", timedelta(minutes=10)),
        ("  10   MINUTES ", timedelta(minutes=10)),
        ("24 hours", timedelta(days=1)),
        ("1 day", timedelta(days=1)),
        ("1h", timedelta(hours=1)),
        ("500 ms", timedelta(milliseconds=500)),
        ("1.5 hours", timedelta(minutes=90)),
        ("0.5 s", timedelta(milliseconds=500)),
        ("2 weeks", timedelta(days=14)),
        ("3 µs", timedelta(microseconds=3)),
    ],
)
def test_durations(text: str, other: timedelta) -> None:
    assert sb.Last(text) == sb.Last(other)


@pytest.mark.parametrize("unit", ["W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_durations_of_numpy(unit: Any) -> None:
    names = {"W": "weeks", "D": "days", "h": "hours", "m": "minutes"}
    assert sb.Last(np.timedelta64(90, unit)) == sb.Last(f"90 {names.get(unit, unit)}")
    assert sb.Last(np.timedelta64(9, (unit, 10))) == sb.Last(f"90 {names.get(unit, unit)}")  # tens of units
    for wrong in (np.timedelta64(0, unit), np.timedelta64(-1, unit), np.timedelta64("NaT", unit)):
        with pytest.raises(QueryError):
            sb.Last(wrong)
    with pytest.raises(QueryError, match="too large"):
        sb.Last(np.timedelta64(2**62, unit))


WITHOUT_UNIT = np.array(5).view("m8")[()]  # np.timedelta64(5), which NumPy 2.5 warns of


@pytest.mark.parametrize("wrong", [WITHOUT_UNIT, np.timedelta64(5, "M"), np.timedelta64(5, "Y")])
def test_durations_of_numpy_without_a_length(wrong: Any) -> None:
    with pytest.raises(QueryError, match=r"np\.timedelta64"):
        sb.Last(wrong)
    with pytest.raises(QueryError, match="units of an integer time column"):
        sb.Last(span=wrong)


def test_windows_of_different_kinds_differ() -> None:
    assert len({sb.Last(300), sb.Last(span=300), sb.Last("300 ns"), sb.Last(300)}) == 3
    assert repr(sb.Last(300)) == "Last(300)"
    assert repr(sb.Last(span=300)) == "Last(span=300)"
    assert repr(sb.Last(timedelta(minutes=10))) == "Last('10 minutes')"
    assert repr(sb.Last("1 day")) == "Last('24 hours')"


# ------------------------------------------------------------------------------ scorings


@COMMON
@given(by=scorings | pairings)
def test_scorings_round_trip(by: Any) -> None:
    stored = json.loads(json.dumps(by_to_dict(by)))
    again = by_from_dict(stored)
    assert again == by
    assert hash(again) == hash(by)
    if not isinstance(by, str):
        names = {name: getattr(sb, name) for name in ("Linear", "Product", "Quadratic", "Nearest", "Global")}
        assert eval(repr(by), names) == by  # noqa: S307


def test_terms_are_in_the_order_given() -> None:
    """0.1 + 0.2 + 0.3 differs from 0.3 + 0.2 + 0.1, so the order is part of the value."""
    one, other = sb.Linear({"x": 0.1, "y": 0.2, "z": 0.3}), sb.Linear({"z": 0.3, "y": 0.2, "x": 0.1})
    ones = {name: np.array([1.0]) for name in "xyz"}
    assert one.key(ones)[0] == 0.1 + 0.2 + 0.3
    assert other.key(ones)[0] == 0.3 + 0.2 + 0.1
    assert one.key(ones)[0] != other.key(ones)[0]
    assert one != other
    assert one.columns == ("x", "y", "z")


def test_what_scorings_compute() -> None:
    """The functions of mouratidis2006, section 8, and three distances."""
    point = {"x": np.array([3.0, -1.0]), "y": np.array([4.0, 0.5])}
    expected: list[tuple[Any, list[float]]] = [
        (sb.Linear({"x": 2, "y": 0.5}), [8.0, -1.75]),
        (sb.Product({"x": 1, "y": 2}), [24.0, 0.0]),
        (sb.Quadratic({"x": 1, "y": -2}), [-23.0, 0.5]),
        (sb.Nearest({"x": 0, "y": 0}), [5.0, math.sqrt(1.25)]),
        (sb.Nearest({"x": 0, "y": 0}, {"x": 4, "y": 0}), [6.0, 2.0]),
        (sb.Nearest({"x": 1, "y": 1}, metric="manhattan"), [5.0, 2.5]),
        (sb.Nearest({"x": 1, "y": 1}, metric="chebyshev"), [3.0, 2.0]),
        (sb.Nearest({"x": 1, "y": 1}, {"x": 2, "y": 1}, metric="chebyshev"), [4.0, 4.0]),
    ]
    for by, values in expected:
        assert by.score(by.key(point)).tolist() == values, by


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sb.Linear({}), "mapping of column to number"),
        (lambda: wrong.Linear(["x"]), "mapping"),
        (lambda: wrong.Linear({"x": "2"}), "number"),
        (lambda: sb.Linear({"x": True}), "number"),
        (lambda: sb.Linear({"x": math.nan}), "finite"),
        (lambda: sb.Linear({"x": math.inf}), "finite"),
        (lambda: sb.Linear({"": 1}), "non-empty"),
        (lambda: wrong.Linear({7: 1}), "non-empty"),
        (lambda: wrong.Nearest({"x": 1}, metric="cosine"), "cosine.*euclidean"),
        (lambda: sb.Nearest({"x": 1}, {"y": 1}), "one weight per column"),
        (lambda: sb.Nearest({"x": 1}, {"x": -1}), "negative"),
        (lambda: sb.Global({}), "mapping"),
        (lambda: wrong.Global({"x": "max"}), "absdiff, sum"),
        (lambda: wrong.Global({"x": "sum"}, combine="min"), "sum.*product"),
        (lambda: sb.Global({"x": "sum"}, combine="euclidean"), "absdiff"),
        (lambda: sb.Global({"x": "absdiff"}, combine="manhattan", weights={"x": -1}), "positive number"),
        (lambda: sb.Global({"x": "absdiff"}, weights={"y": 1}), "no local function"),
        (lambda: sb.Global({"x": "absdiff"}, transform={"x": "x > 1"}), "expression over a row"),
    ],
)
def test_scorings_are_checked(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        make()
