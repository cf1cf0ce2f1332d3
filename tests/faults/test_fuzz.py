"""Nonsense in, a typed error or a right answer out: snapshots, pipeline files, expressions, sentences.

SKYBAND_FUZZ=20, as in `make faults`, tries 20 times as many examples.
"""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import examples
from kinds import KINDS, stream
from skyband.errors import QueryError, SkybandError, StateError
from skyband.monitor.archive import pack, unpack
from skyband.pipeline import pipeline_of

EXAMPLES = Path(__file__).parents[2] / "examples"
ODD = [None, True, False, 0, -1, 1, 2**31, 2**63, 2**70, 1.5, float("nan"), "", "x", "TopK", [], {}, [1], {"a": 1}]
many = examples(40)


@cache
def snapshot(kind: str) -> bytes:
    monitor = KINDS[kind].monitor()
    monitor.push(stream(150))
    return monitor.snapshot()


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is anything inside."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield (*before, key)
        yield from paths(one, (*before, key))


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    found = copy.deepcopy(value)
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return found


# ---- snapshots


@many
@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_any_change_of_a_snapshot_is_refused(data: st.DataObject, kind: str) -> None:
    """A bit, a stretch, an end that is missing, a piece of another one."""
    good = snapshot(kind)
    begin = data.draw(st.integers(0, len(good) - 1))
    end = data.draw(st.integers(begin, min(begin + 64, len(good))))
    other = snapshot(data.draw(st.sampled_from(sorted(KINDS))))
    middle = data.draw(st.binary(max_size=8) | st.just(other[begin:end]) | st.just(bytes([good[begin] ^ 1])))
    tail = data.draw(st.just(good[end:]) | st.just(b"") | st.just(good[begin + 1 :]))
    bad = good[:begin] + middle + tail
    if bad == good:
        return
    with pytest.raises(StateError, match=r"[.] (Use|Restore|Upgrade)"):
        sb.Monitor.restore(bad)


@many
@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_facts_that_are_forged_under_a_right_checksum(data: st.DataObject, kind: str) -> None:
    """The checksum is against accidents. Facts (not arrays) that were changed on purpose are looked at, too."""
    facts, _ = unpack(snapshot(kind))
    go_on(kind, data.draw(st.sampled_from(list(paths(facts)))), data.draw(st.sampled_from(ODD)))


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_only_pairs_store(odd: Any) -> None:
    facts, _ = unpack(snapshot("pairs"))
    for path in [path for path in paths(facts) if "own" in path]:
        go_on("pairs", path, odd)


def go_on(kind: str, path: tuple[Any, ...], odd: Any) -> None:
    """From a snapshot with this fact changed: a typed error, or any answer."""
    facts, parts = unpack(snapshot(kind))
    with suppress(SkybandError):
        monitor = sb.Monitor.restore(pack(changed(facts, path, odd), parts))
        monitor.push(stream(20, start=150))
        for name in monitor.queries:
            monitor.answer(name)
        monitor.snapshot()


# ---- pipeline files


@cache
def files() -> list[dict[str, Any]]:
    made = [tomllib.loads(file.read_text()) for file in sorted(EXAMPLES.glob("*.toml"))]
    kafka = {"format": "kafka", "schema": {"x": "double"}, "dead_letters": {"topic": "t"}}
    kafka["options"] = {"kafka.bootstrap.servers": "h:1", "subscribe": "s"}
    query = {"k": 3, "by": {"nearest": {"x": 1}}, "window": 9, "per": ["x"], "where": "x > 1"}
    sink = {"format": "kafka", "topic": "u", "options": {"kafka.bootstrap.servers": "h:1"}}
    run = {"checkpoint": "c", "trigger": "1 second", "spark": {"spark.a": 1}}
    return [*made, {"source": kafka, "queries": {"q": query}, "stream": {"keep": ["x"]}, "sink": sink, "run": run}]


@many
@given(st.data())
def test_pipeline_files(data: st.DataObject) -> None:
    made: Any = data.draw(st.sampled_from(files()))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(paths(made)) or [("x",)]))
        odd = [*ODD, "parquet", "kafka", "upsert", "availableNow", "9 hours", "x" * 50, "\u0000", "é`'\""]
        made = changed(made, path, data.draw(st.sampled_from(odd)))
    with suppress(QueryError):
        pipeline_of(made)


# ---- expressions and sentences

WORDS = [
    "x",
    "y",
    "1",
    "0",
    "2.5",
    "1e308",
    "-",
    "+",
    "*",
    "/",
    "(",
    ")",
    "<",
    "=",
    "!=",
    "and",
    "or",
    "not",
    "between",
]
WORDS += ["in", "is", "null", "case", "when", "then", "else", "end", "abs(", "sqrt(", "power(", "exp(", "ln(", "least("]
WORDS += ["greatest(", "coalesce(", ",", "'a'", "true", "%", "||", "x.y", "`x`", '"x"', ";", "--", "/*", "[", "]", "\\"]
WORDS += ["__import__('os')", "select", "from", "lambda", ":=", "{", "}", "${x}", "\u0000", "é", "9" * 400, "::int"]
ROWS = {"x": np.array([1.0, -2.5, 0.0, np.inf]), "y": np.array([0.0, 3.0, -1.0, 7.0])}


def texts() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join) | st.text(max_size=40)


@many
@given(texts(), texts() | st.none())
def test_expressions(by: str, where: str | None) -> None:
    """Whatever is typed: an answer, or an error that says what is wrong with it."""
    with suppress(SkybandError):
        monitor = sb.Monitor(sb.TopK(2, by=by, window=sb.Last(3), where=where))
        monitor.push(ROWS)
        assert monitor.answer().num_rows <= 2


@many
@given(
    st.lists(
        st.sampled_from(
            [
                *WORDS,
                "SELECT",
                "TOP",
                "FROM",
                "s",
                "OVER",
                "(LAST",
                "10",
                "ROWS)",
                "ORDER BY",
                "x",
                "DESC",
                "LIMIT",
                "5",
            ]
        ),
        max_size=20,
    ).map(" ".join)
    | st.text(max_size=60)
)
def test_sentences(text: str) -> None:
    with suppress(SkybandError):
        sb.sql(text)


def test_nothing_is_executed(tmp_path: Path) -> None:
    """What would leave a trace if any text were run."""
    trace = tmp_path / "trace"
    for by in (f"__import__('pathlib').Path('{trace}').touch()", f"x + open('{trace}', 'w').write('x')"):
        with pytest.raises(QueryError):
            sb.TopK(1, by=by, window=sb.Last(1))
        with pytest.raises(QueryError):
            pipeline_of({"queries": {"q": {"k": 1, "by": by, "window": 1}}})
    facts, parts = unpack(snapshot(next(iter(KINDS))))
    call = json.loads(json.dumps(facts))
    for adapter in call["homes"]:
        for query in adapter["queries"].values():
            query["by"] = {"callable": f"pathlib.Path({str(trace)!r}).touch"}
    with pytest.raises(SkybandError):
        sb.Monitor.restore(pack(call, parts))
    assert not trace.exists()
