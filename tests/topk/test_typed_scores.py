"""Typed expressions scored together by a kernel: the bits that NumPy gives, or none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import examples
from skyband import Last, Monitor, TopK
from skyband.engines.topk import bounds, scorings
from skyband.engines.topk.bounds import scores_together
from skyband.engines.topk.scorings import scores_of
from skyband.query.expressions import Operand, evaluation, parse
from skyband.tables.input import Batch
from skyband.tables.scores import score

NUMBERS = [0.0, -0.0, 0.1, 1 / 3, -2.5, 7.0, 1e16, 5e-324, -1e-310, 1e308, np.inf, -np.inf]


@st.composite
def texts(draw: Any, depth: int = 3) -> str:
    """Expressions over x and y of operations that kernels compute to the last bit."""
    if depth == 0:
        return draw(st.sampled_from(["x", "y", "0.1", "3", "x", "y"]))  # type: ignore[no-any-return]
    one, other = draw(texts(depth - 1)), draw(texts(depth - 1))
    shapes = ["({} + {})", "({} - {})", "({} * {})", "({} / {})", "least({}, {})", "greatest({}, {})"]
    shapes += ["power({}, {})"]
    singles = ["abs({})", "sqrt(abs({}))", "-({})", "({0} * {0})", "{}", "exp({})", "ln(abs({}))", "power({}, 2)"]
    shape = draw(st.sampled_from(shapes + singles))
    return str(shape.format(one, other))


def batch_of(columns: Any) -> Batch:
    return Batch(pa.table(columns))


@examples(60)
@given(data=st.data())
def test_the_same_bits(data: Any) -> None:
    rows = data.draw(st.integers(1, 600))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    columns = {name: rng.choice([*NUMBERS, *rng.normal(size=8)], rows) for name in ("x", "y")}
    asked = tuple(f"x + y + {draw}" for draw in data.draw(st.lists(texts(), min_size=1, max_size=4, unique=True)))
    expected = [score(batch_of(columns), text).key for text in asked]
    found = scores_together(asked, ("x", "y"), [columns["x"], columns["y"]])
    if any(np.isnan(one).any() for one in expected):
        assert found is None, "a row without a score is for the caller"
    else:
        assert found is not None
        assert [one.tobytes() for one in found] == [one.tobytes() for one in expected]


@pytest.mark.parametrize(
    "text", ["x - y", "x * x / y", "least(x, y) - 1", "exp(x / 99) - ln(y)", "power(y, 0.3) + x", "power(x, 2) * y"]
)
def test_the_same_bits_of_many_rows(text: str) -> None:
    columns = {"x": np.arange(1_000.0), "y": np.arange(1_000.0)[::-1] + 0.1}
    (found,) = scores_together((text,), ("x", "y"), list(columns.values()))  # type: ignore[misc]
    assert found.tobytes() == score(batch_of(columns), text).key.tobytes()


@pytest.mark.parametrize("text", ["least(x, y)", "greatest(x, y)"])
def test_of_equal_numbers_the_first_stays(text: str) -> None:
    columns = {"x": np.array([0.0, -0.0]), "y": np.array([-0.0, 0.0])}
    (found,) = scores_together((text,), ("x", "y"), list(columns.values()))  # type: ignore[misc]
    assert found.tobytes() == columns["x"].tobytes() == score(batch_of(columns), text).key.tobytes()


@pytest.mark.parametrize("text", ["exp(x) + y", "y + ln(x)", "power(x, y) - 1"])
def test_functions_of_another_library_are_for_the_caller(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Intel's vectors of exp differ in the last bit, where Numba finds them."""
    asked, columns = (text,), [np.array([0.5, 2.0]), np.array([1.0, 3.0])]
    bounds._exact_programs.cache_clear()
    monkeypatch.setattr(bounds, "has_same_functions", lambda: False)
    assert scores_together(asked, ("x", "y"), columns) is None
    assert scores_together(("x + y + 0",), ("x", "y"), columns) is not None
    bounds._exact_programs.cache_clear()


def test_functions_are_compared_with_the_librarys() -> None:
    assert bounds.has_same_functions()
    bounds.has_same_functions.cache_clear()
    exp = evaluation._OPERATIONS["exp"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(evaluation._OPERATIONS, "exp", lambda args: Operand(np.nextafter(exp(args).values, 0)))
        assert not bounds.has_same_functions()
    bounds.has_same_functions.cache_clear()


@pytest.mark.parametrize("text", ["x % y", "floor(x) + y", "x + null"])
def test_other_functions_are_for_the_caller(text: str) -> None:
    assert parse(text).columns
    assert scores_together((text,), ("x", "y"), [np.ones(3), np.ones(3)]) is None


@pytest.mark.parametrize("wrong", [None, np.nan, 2**53 + 1])
def test_rows_without_a_number_are_rejected_as_before(wrong: Any) -> None:
    columns = {"x": [1, 2, wrong], "y": [1.0, 2.0, 3.0]}
    columns["x"] = [float(one) if one == 1 and wrong is np.nan else one for one in columns["x"]]
    asked = ["x + y + 0", "x * y"]
    found, expected = scores_of(batch_of(columns), asked), [score(batch_of(columns), text) for text in asked]
    for one, other in zip(found, expected, strict=True):
        assert {name: rows.tolist() for name, rows in one.rejected.items()} == {
            name: rows.tolist() for name, rows in other.rejected.items()
        }
        assert one.rejected


def test_windows_are_scored_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expressions over one window are never scored one by one, as long as every row has a score."""
    asked: list[str] = []

    def noted(batch: Any, text: str) -> Any:
        asked.append(text)
        return score(batch, text)

    monkeypatch.setattr(scorings, "score", noted)
    queries = [TopK(2, f"{w} * x + y + 0", Last(9), algorithm="SMA") for w in (0.5, 2)]
    monitor = Monitor(queries)
    monitor.push({"x": [1.0, 2.0, 4.0], "y": [1.0, 1.0, 1.0]})
    assert not asked
    assert [one["score"].to_pylist() for one in monitor.answers().values()] == [[3.0, 2.0], [9.0, 5.0]]
