"""The recipe of CONTRIBUTING.md for an algorithm: one file and one row, added here at run time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import Taste, examples, play, scenes
from skyband.errors import QueryError
from skyband.query.algorithms import Algorithm, names, register, table, unregister

#: The one file: an engine that is SA under another name, and the model behind `explain`.
FILE = '''
"""TOY, the strict k-skyband once more (an example)."""

from skyband.engines.topk.sa import SA
from skyband.engines.topk.size_model import strict_size


class TOY(SA):
    name = "TOY"


def size(name, query, n, expected):
    return strict_size(name, query, n, expected)
'''
ROW = Algorithm("TOY", ("TopK",), "toy_engine:TOY", "an example", "topk/sa.md", "toy_engine:size")


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "toy_engine.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    register(ROW)
    yield
    unregister("TOY")
    sys.modules.pop("toy_engine", None)


@pytest.mark.usefixtures("toy")
def test_the_contract_suite_takes_it() -> None:
    @examples(60)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        taste = Taste(by=("x",), rows=12, events=4, scores=(0.0, 1.0, 2.0))
        play(data.draw(scenes("TOY", taste)))

    run()


@pytest.mark.usefixtures("toy")
def test_queries_explain_and_errors_take_it() -> None:
    query = sb.TopK(3, by="x", window=sb.Last(100), algorithm="toy")
    assert query.algorithm == "TOY"
    assert sb.TopK.from_dict(query.to_dict()) == query
    explained = sb.explain(query)
    assert (explained.algorithm, explained.why[0]) == ("TOY", "TOY is asked for by name.")
    assert explained.objects == sb.explain(sb.TopK(3, by="x", window=sb.Last(100), algorithm="SA")).objects
    monitor = sb.Monitor(query)
    monitor.push({"x": [1, 2, 3, 4]})
    monitor = sb.Monitor.restore(monitor.snapshot())
    assert monitor.answer().column("id").to_pylist() == [3, 2, 1]
    assert monitor.stats()["queries"]["q0"]["algorithm"] == "TOY"
    with pytest.raises(QueryError, match=r"SA, RA.*TOY"):
        sb.TopK(3, by="x", window=sb.Last(100), algorithm="nosuch")
    with pytest.raises(QueryError, match="TOY forgets objects"):
        sb.Monitor(sb.TopK(3, by="x", window=sb.UntilDeleted(), algorithm="TOY"), id="x")
    assert "`TOY`" in table("TopK")
    with pytest.raises(QueryError, match="TOY is there for TopK already"):
        register(ROW)


def test_it_is_gone_again() -> None:
    assert "TOY" not in names("TopK")
