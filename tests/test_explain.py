"""`sb.explain`: the figures against the formula and a real run, the sentences, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import skyband as sb
from skyband.engines import registry
from skyband.explain import _MODELS, explain


def harmonic(n: int) -> float:
    return sum(1 / i for i in range(1, n + 1))


@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 2), (10, 11), (10, 1000), (150, 40_000), (10, 99), (10, 100)])
def test_objects_follow_the_formula(k: int, n: int) -> None:
    found = explain(sb.TopK(k, "x", sb.Last(n)))
    assert found.objects == pytest.approx(k + k * (harmonic(n) - harmonic(k)), rel=1e-9)
    assert found.bytes == round((found.objects or 0) * 48)
    assert found.error == "exact"


def test_a_window_no_larger_than_k_keeps_everything() -> None:
    assert explain(sb.TopK(10, "x", sb.Last(4))).objects == 4


def test_huge_windows_cost_nothing_to_explain() -> None:
    assert 400 < (explain(sb.TopK(10, "x", sb.Last(2**61))).objects or 0) < 450


def test_expected_objects_are_those_of_a_run_in_random_order() -> None:
    query = sb.TopK(10, "x", sb.Last(2000))
    monitor = sb.Monitor(query)
    rng = np.random.default_rng(5)
    monitor.push({"x": rng.random(2000)})
    kept = []
    for _ in range(30):
        monitor.push({"x": rng.random(1000)})
        kept.append(monitor.stats()["queries"]["q0"]["objects"])
    assert np.mean(kept) == pytest.approx(explain(query).objects, rel=0.1)


def test_time_windows_need_rows_or_rate() -> None:
    query = sb.TopK(10, "x", sb.Last("1 hour"))
    unknown = explain(query)
    assert (unknown.objects, unknown.bytes) == (None, None)
    assert "rows=" in str(unknown.notes)
    numpy_number: Any = np.int64(2)
    assert explain(query, rate=numpy_number).objects == explain(query, rows=7200).objects
    assert explain(query, rows=7200).objects == explain(sb.TopK(10, "x", sb.Last(7200))).objects


def test_groups_share_the_rows_of_a_time_window_but_not_of_a_count_window() -> None:
    timed = explain(sb.TopK(10, "x", sb.Last("1 hour"), per="g"), rows=3000, groups=3)
    counted = explain(sb.TopK(10, "x", sb.Last(1000), per="g"), groups=3)
    assert timed.objects == counted.objects == explain(sb.TopK(10, "x", sb.Last(1000))).objects
    assert timed.bytes == counted.bytes == round((timed.objects or 0) * 3 * 48)


@pytest.mark.parametrize(
    ("query", "expected", "said"),
    [
        (sb.TopK(1, "x", sb.Last(9), per="g"), {}, "one group of g"),
        (sb.TopK(1, "x", sb.Last(9)), {"groups": 2}, "no `per`"),
        (sb.TopK(1, "x", sb.Last(9)), {"rows": 2}, "no difference"),
        (sb.TopK(1, "x", sb.Last(9), where="x > 1"), {}, "expect fewer"),
        (sb.TopK(1, "abs(x - 1)", sb.Last(9)), {}, "far ones first"),
    ],
)
def test_notes(query: sb.TopK, expected: dict[str, float], said: str) -> None:
    assert said in " ".join(explain(query, **expected).notes)


@pytest.mark.parametrize(
    ("by", "form", "said"),
    [
        ("x", "column", "a column"),
        ("0.7*x + 0.3*y - 1", "linear", "0.7·x + 0.3·y + -1"),
        ("sqrt((x-1)*(x-1) + y*y)", "distance", "euclidean distance to x=1, y=0"),
        ("exp(x) - ln(y)", "monotone", "rises with x, falls with y"),
        ("x*y", "opaque", "no form"),
        (sb.Nearest({"x": 1}), "distance", "smallest score is best"),
        (sb.Linear({"x": 1}), "linear", "largest score is best"),
        (sb.Product({"x": 1}), "product", "Product"),
        (len, "function", "not known"),
    ],
)
def test_forms(by: Any, form: str, said: str) -> None:
    found = explain(sb.TopK(3, by, sb.Last(9)))
    assert found.form == form
    assert said in found.why[-1]


def test_the_smallest_of_a_typed_distance_draws_no_note() -> None:
    assert "far ones" not in str(explain(sb.TopK(1, "abs(x - 1)", sb.Last(9), largest=False)))


def test_auto_and_by_name() -> None:
    assert "auto" in explain(sb.TopK(1, "x", sb.Last(9))).why[0]
    assert "by name" in explain(sb.TopK(1, "x", sb.Last(9), algorithm="sa")).why[0]


def test_every_engine_has_a_model() -> None:
    assert set(registry._ENGINES["TopK"]) <= set(_MODELS)


def test_text_fits_80_columns_and_data_goes_through_json() -> None:
    found = explain(sb.TopK(10, "0.7*x + 0.3*y", sb.Last("24 hours"), per=["g", "h"], where="x > 0"), rate=50, groups=7)
    text = str(found)
    assert max(map(len, text.splitlines())) <= 80
    for word in ("SA", "linear", "exact", "617,143", "Last('24 hours')", "all 617,143 are kept"):
        assert word in " ".join(text.split())
    data = json.loads(json.dumps(found.to_dict()))
    assert sb.TopK.from_dict(data["query"]) == found.query
    assert data["objects"] == found.objects


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"row": 5}, "rows .*rate .*groups"),
        ({"rows": 5, "rate": 5}, "one of them"),
        ({"rows": 0}, "above 0"),
        ({"rate": float("inf")}, "above 0"),
        ({"rows": True}, "above 0"),
        ({"rows": "many"}, "above 0"),
        ({"groups": 0.5}, "at least 1"),
    ],
)
def test_bad_expectations(expected: dict[str, Any], said: str) -> None:
    with pytest.raises(sb.QueryError, match=said):
        explain(sb.TopK(1, "x", sb.Last("1 hour"), per="g"), **expected)


def test_rate_on_integer_times() -> None:
    with pytest.raises(sb.QueryError, match="no unit of time"):
        explain(sb.TopK(1, "x", sb.Last(span=5)), rate=1)


@pytest.mark.parametrize(
    "query",
    [
        sb.TopKPairs(1, "abs(a.x - b.x)", sb.Last(9)),
        sb.TopK(1, "x", sb.UntilDeleted()),
        "x",
    ],
)
def test_refuses_what_a_monitor_refuses(query: Any) -> None:
    with pytest.raises(sb.QueryError) as explained:
        explain(query)
    if not isinstance(query, str):
        with pytest.raises(sb.QueryError) as monitored:
            sb.Monitor(query)
        assert str(explained.value) == str(monitored.value)


def test_neither_numba_nor_pyspark_is_loaded() -> None:
    code = (
        "import sys, skyband as sb; from skyband.explain import explain; "
        "explain(sb.TopK(1, '2*x', sb.Last(9))); print('numba' in sys.modules, 'pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False", "False"]
