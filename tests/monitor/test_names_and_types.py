"""Types and names that break a Monitor in the middle of a call, if they are not refused before: found by hand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from monitor.refusals import TOP
from skyband.engines.output import CHANGES, CLOCKS
from skyband.errors import QueryError
from skyband.monitor.over import OP, TIME
from skyband.query.options import ID, OBJECT, OWN
from skyband.query.validation import INSIDE
from skyband.tables.push import AT, STEP

GROUPS = sb.TopKGroups(1, by="count(*)", window=sb.Last(span=5), of="g")


@pytest.mark.parametrize("call", ["add", "replace"])
def test_ids_of_several_types(call: str) -> None:
    """Refused when the query comes: it was found at the next `advance`, when time had moved on."""
    queries = {"q": sb.TopK(2, "x", sb.Last(span=5)), "r": sb.TopK(1, "x", sb.Last(3))}
    monitor = sb.Monitor(queries, id="i", time="t", keep="g")
    monitor.push({"i": [1], "x": [1.0], "t": [1], "g": ["a"]})
    with pytest.raises(QueryError, match="`id` is one column"):
        getattr(monitor, call)("r" if call == "replace" else "s", GROUPS)
    assert monitor.advance(100).num_rows == 1
    monitor.drop("q")
    monitor.replace("r", GROUPS)
    monitor.push({"i": [1], "x": [1.0], "t": [101], "g": ["a"]})
    assert monitor.answer()["id"].to_pylist() == ["a"]


def test_select_of_several_types() -> None:
    """A batch that brings another type for the same name is refused: it was found when it had been taken."""
    ask = {name: replace(GROUPS, select={"m": text}) for name, text in (("q", "max(x)"), ("r", "first(w)"))}
    monitor = sb.Monitor(ask["q"], time="t")
    batch = {"x": [1.0], "t": [1], "g": ["a"], "w": ["b"]}
    monitor.push(batch)
    monitor.add("r", ask["r"])
    before = monitor.snapshot()
    with pytest.raises(QueryError, match="'m' is double in one query and string in another"):
        monitor.push(batch)
    assert monitor.snapshot() == before
    monitor.drop("r")
    monitor.push(batch)


HALF = "\ud800"


@pytest.mark.parametrize(
    "make",
    [
        lambda: sb.TopK(1, f"'{HALF}'", sb.Last(3)),
        lambda: sb.TopK(1, "x", sb.Last(3), where=f"w = '{HALF}'"),
        lambda: sb.TopK(1, "x", sb.Last(3), per=HALF),
        lambda: sb.TopK(1, "x", sb.Last(3), per={HALF: "g"}),
        lambda: sb.TopKGroups(1, by="count(*)", window=sb.Last(3), of="g", select={HALF: "count(*)"}),
        lambda: sb.TopKGroups(1, by="count(*)", window=sb.Last(3), of="g", select=f"sum(`{HALF}`)"),
        lambda: sb.TopKIncomplete(1, [HALF], sb.Last(3)),
        lambda: sb.Monitor(TOP, keep=HALF),
        lambda: sb.Monitor(TOP, id=HALF),
        lambda: sb.Monitor({HALF: TOP}),
        lambda: sb.Monitor(TOP).add(HALF, TOP),
    ],
)
def test_half_characters(make: Any) -> None:
    """They were found by Arrow in the middle of a push."""
    with pytest.raises(QueryError, match="half a character at place"):
        make()


def test_all_names_that_are_inside() -> None:
    assert set(INSIDE) == {OBJECT, ID, OWN, AT, STEP, OP, TIME, CHANGES, CLOCKS, "# version"}


@pytest.mark.parametrize("name", INSIDE)
def test_names_that_are_inside(name: str) -> None:
    """A kept column of such a name was overwritten by skyband's own, or broke the Monitor."""
    for options in ({"keep": {name: "x"}}, {"keep": name}):
        with pytest.raises(QueryError, match="skyband writes itself"):
            sb.Monitor({"q": TOP, "r": sb.TopK(1, "score", source="q")}, **options)
    with pytest.raises(QueryError, match="skyband writes itself"):
        replace(TOP, per=name)
    monitor = sb.Monitor(TOP, keep={"mine": name})
    monitor.push({"x": [1.0], "y": [1.0], name: ["a"]})
    assert monitor.answer()["mine"].to_pylist() == ["a"]


def test_names_have_no_character_0() -> None:
    for keep in ("\0rows", {"mine": "\0rows"}, {"a\0": "x"}):
        with pytest.raises(QueryError, match="has a character 0"):
            sb.Monitor(TOP, keep=keep)


def test_an_id_that_is_inside() -> None:
    with pytest.raises(QueryError, match="Rename the column"):
        sb.Monitor(TOP, id="# object")


@pytest.mark.parametrize("keep", [[("a",)], [("a", "b", "c")]])
def test_pairs_of_names(keep: Any) -> None:
    with pytest.raises(QueryError, match="is no column: give its name, or a pair"):
        sb.Monitor(TOP, keep=keep)


@pytest.mark.parametrize("combine", ["'a'", "a > 0.5"])
def test_combinations_that_are_no_number(combine: str) -> None:
    with pytest.raises(QueryError, match="not a number"):
        sb.TopKIncomplete(1, ["a"], sb.Last(3), combine=combine)


@pytest.mark.parametrize("ids", [[[1]], [None, "\ud800"], [object()], [{}]])
def test_ids_to_delete_that_are_none(ids: Any) -> None:
    monitor = sb.Monitor(sb.TopK(1, "x", sb.UntilDeleted()), id="i")
    monitor.push({"i": pa.array([[1], None], pa.list_(pa.int64())), "x": [1.0, 2.0]})
    with suppress(sb.BatchError):
        monitor.delete(ids)
    monitor.delete(pa.array([[1], None], pa.list_(pa.int64())).to_pylist())
    with suppress(sb.BatchError):
        monitor.delete(pa.array([None, [3]], pa.list_(pa.int64())))
    assert monitor._loop.state.commit.broken is None


@pytest.mark.parametrize("name", [*INSIDE, "\0rows", "\0sum 0", "number0", "=x"])
@pytest.mark.parametrize("values", [[-(2**62), 3], ["a", "b"], [None, None]])
def test_columns_that_are_not_named(name: str, values: Any) -> None:
    """Whoever writes rows may add columns: the numbers and weights of rows were read from those of some names."""
    queries = {
        "timed": sb.TopK(2, "x", sb.Last(span=5), per="g"),
        "counted": sb.TopK(2, ("g", "x"), sb.Last(3)),
        "groups": sb.TopKGroups(2, by="sum(x)", window=sb.Last(3), of="g", select={"n": "count(*)"}),
        "ever": sb.TopKGroups(2, by="count(*)", window=sb.Ever(), of="g"),
        "over": sb.TopKGroups(2, by="sum(score)", of="g", source="timed"),
    }
    batch = {"x": [1.0, 2.0], "g": ["a", "b"], "t": [1, 2]}
    plain, odd = (sb.Monitor(queries, time="t", id="g") for _ in range(2))
    for start in range(0, 8, 2):
        rows = batch | {"t": [start, start + 1]}
        assert plain.push(rows) == odd.push({**rows, name: values})
    assert plain.snapshot() == odd.snapshot()
