"""Programs of typed expressions and conditions on pairs: the same bits as NumPy, the same pairs as the oracle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from engines.streams import INTEGERS, Advance, Push, Restore, Scene, cells, row, same_changes, same_rows
from pairs.test_contract import BY_ORDER, play
from skyband.engines.pairs.fields import can_run, fields_of
from skyband.engines.pairs.inputs import Codes, evaluated, kinds_of, operand_arrays, row_of
from skyband.engines.pairs.kernels.programs import run_once
from skyband.engines.pairs.programs import note_nulls, program_of
from skyband.oracle import Oracle
from skyband.query.expressions import member_columns, parse
from skyband.tables.input import Batch

PROGRAMS = [
    "a.x - b.x",
    "abs(a.x - b.x) + abs(a.y - b.y) - abs(a.y + b.x)",
    "sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y))",
    "-a.x / b.y + (a.x - b.x) * (a.x - b.x)",
    "least(a.x, b.x, 1.5) - greatest(b.y, a.y) * 2",
    "coalesce(a.x, b.x, a.y)",
    "case when a.x < b.x then a.x when a.s = 'u' then b.y end",
    "case a.s when 'u' then 1 when b.s then 2 else a.x end",
    "a.x",
]
CONDITIONS = [
    "a.s <> b.s",
    "a.x >= b.x and not a.f or b.f",
    "a.x between b.x and b.y",
    "a.s in ('u', 'w') or a.f",
    "a.s is null or b.x is not null and a.x = b.x",
    "b.f",
]
ODD = [0.0, -0.0, 1.0, 1.5, -2.0, 1e308, np.inf, -np.inf, np.nan, None]


@pytest.mark.parametrize("text", [*PROGRAMS, *CONDITIONS])
@pytest.mark.parametrize("nulls", [False, True])
def test_a_program_gives_numpys_bits(text: str, nulls: bool) -> None:
    rng = np.random.default_rng(5)
    odd = ODD if nulls else ODD[:-1]
    some = [None, "u", "v", "w"] if nulls else ["u", "v", "w"]
    columns = {
        "x": pa.array([odd[i] for i in rng.integers(0, len(odd), 14)], pa.float64()),
        "y": pa.array([odd[i] for i in rng.integers(0, len(odd), 14)], pa.float64()),
        "s": pa.array([some[i] for i in rng.integers(0, len(some), 14)], pa.string()),
        "f": pa.array([[True, False, None][i] for i in rng.integers(0, 2 + nulls, 14)], pa.bool_()),
    }
    batch, expression, codes = Batch(pa.table(columns)), parse(text, members=("a", "b")), Codes()
    names = member_columns(expression)
    kinds = kinds_of(batch, names)
    assert kinds is not None and can_run(expression.tree, kinds)
    fields = fields_of(expression.tree, kinds)
    program = program_of(expression.tree, {field: i for i, field in enumerate(fields)}, kinds, codes.literal)
    data = np.stack([row_of(field, batch, codes) for field in fields])
    note_nulls((program,), data)
    older, newer = (places.ravel() for places in np.meshgrid(np.arange(14), np.arange(14)))
    arrays = operand_arrays(batch, names)
    one, other = ({name: array[places] for name, array in arrays.items()} for places in (older, newer))
    wanted = evaluated(expression, {name: batch.operand(name) for name in names}, one, other)
    values = wanted.values.astype(np.float64)
    expected = values if wanted.valid is None else np.where(wanted.valid, values, np.nan)
    got = np.array([run_once(program, data[:, [a]], data[:, [b]]) for a, b in zip(older, newer, strict=True)])
    real = ~np.isnan(expected)
    assert (np.isnan(got) == ~real).all()
    assert (got[real].view(np.int64) == expected[real].view(np.int64)).all()


def test_what_has_no_program() -> None:
    kinds = {"s": "string", "x": "number"}
    for text in (
        "exp(a.x) < b.x",
        "a.s < b.s",
        "case when true then a.s else b.s end between 'u' and 'v'",
        "a.x % b.x = 0",
    ):
        assert not can_run(parse(text, members=("a", "b")).tree, kinds)


ON = ["a.z <> b.z", "a.z = b.z", "a.x < b.x", "a.y = 1 or b.z is null", BY_ORDER]


BYS = ["abs(a.x - b.x)", "(a.x - 2 * b.x) / abs(a.y - b.y)"]
CASES = [(name, by, on) for name in ("SCASE", "BASIC", "NAIVE") for by in BYS for on in ON]
CASES += [("TA", BYS[0], on) for on in ON if on != BY_ORDER]


@pytest.mark.parametrize(("algorithm", "by", "on"), CASES)
def test_conditions_on_pairs_with_late_rows(algorithm: str, by: str, on: str) -> None:
    rng = np.random.default_rng(7)
    times = np.arange(36) - 9 * (rng.random(36) < 0.25)
    rows = [
        row(t=int(t), x=float(rng.integers(0, 6)), y=int(rng.integers(0, 2)), z=[None, "b", "c"][rng.integers(3)])
        for t in times
    ]
    query = sb.TopKPairs(2, by, sb.Last(span=11), on=on, symmetric="/" not in by, algorithm=algorithm)
    short = sb.TopKPairs(3, by, sb.Last(span=5), on=on, symmetric="/" not in by, algorithm=algorithm)
    events = [Push(rows[:14]), Restore(), Push(rows[14:30]), Push(rows[30:]), Advance(3)]
    play(Scene({"q": query, "s": short}, events, {"time": "t", "keep": ("z",)}, INTEGERS))


def test_a_condition_that_no_kernel_tests_is_refused_by_ta() -> None:
    near = sb.Global({"x": "absdiff"})
    with pytest.raises(sb.QueryError, match="one of SCASE, BASIC, NAIVE"):
        sb.Monitor(sb.TopKPairs(1, near, sb.Last(9), on="ln(a.x) < b.x", algorithm="TA"))
    monitor = sb.Monitor(sb.TopKPairs(1, near, sb.Last(9), on="a.s < b.s", algorithm="TA"))
    with pytest.raises(sb.BatchError, match="strings by their order"):
        monitor.push({"x": [1.0], "s": ["u"]})


@pytest.mark.parametrize(
    ("on", "said"), [("a.x + b.x", "neither true nor false"), (1, "condition over a"), ("x > 1", "a.x")]
)
def test_what_is_no_condition_on_a_pair(on: object, said: str) -> None:
    with pytest.raises(sb.QueryError, match=said):
        sb.TopKPairs(1, "abs(a.x - b.x)", sb.Last(9), on=on)  # type: ignore[arg-type]


def test_columns_keep_their_kind_and_strings_that_are_gone_lose_their_code() -> None:
    monitor = sb.Monitor(sb.TopKPairs(1, "abs(a.x - b.x)", sb.Last(3), on="a.s = b.s"))
    with pytest.raises(sb.BatchError, match="neither true nor false"):
        sb.Monitor(sb.TopKPairs(1, "abs(a.x - b.x)", sb.Last(3), on="b.x")).push({"x": [1.0]})
    monitor.push({"x": np.arange(3000.0), "s": [str(i) for i in range(3000)]})
    (adapter,) = monitor._loop.state.standing()
    assert len(adapter.codes.known) == 3  # type: ignore[attr-defined]
    monitor.push({"x": [7.0], "s": [None]})
    with pytest.raises(sb.BatchError, match="it held strings before"):
        monitor.push({"x": [1.0], "s": [2.0]})
    changes = monitor.push({"x": [1.0], "s": ["2999"]})
    assert changes["score"].to_pylist() == [2998.0]


def test_a_condition_may_have_values_of_subscriptions() -> None:
    query = sb.TopKPairs(1, "abs(a.x - b.x)", sb.Last(9), on="a.x + b.x > :least and a.s <> b.s")
    assert query.each == ("least",)
    monitor = sb.Monitor({"q": query})
    monitor.subscribe("q", {"subscriber": [1, 2], "least": [0, 10]})
    monitor.push({"x": [1.0, 2.0, 7.0, 8.0], "s": ["u", "v", "u", "v"]})
    assert monitor.answer("q")["score"].to_pylist() == [1.0, 1.0]
    assert monitor.answer("q", subscriber=2)["id_a"].to_pylist() == [2]


@pytest.mark.parametrize("algorithm", ["SCASE", "PST", "BASIC", "NAIVE"])
def test_a_score_that_reads_no_column(algorithm: str) -> None:
    """Every pair ties, and the newest are best."""
    query = sb.TopKPairs(2, "1", sb.Last(4), algorithm=algorithm)
    monitor, oracle = sb.Monitor(query), Oracle({"q0": query})
    rows = [{"x": float(n)} for n in range(9)]
    for begin in (0, 4):
        same_changes(cells(monitor.push(rows[begin : begin + 5])), oracle.push(rows[begin : begin + 5]), f"{begin}")
        monitor = sb.Monitor.restore(monitor.snapshot(), trusted=False)
        same_rows(cells(monitor.answer()), oracle.answer("q0"), f"{begin}")
