"""Pictures hold what the Monitor holds; HTML escapes what a user named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot as plt

import skyband as sb
from skyband.errors import QueryError
from skyband.plot.views import plane_of

mpl.use("Agg")
ROWS = 300
SCORES = np.random.default_rng(5).integers(0, 200, ROWS).astype(float)  # with ties


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def stream() -> Any:
    return pa.table(
        {
            "x": SCORES,
            "t": pa.array(np.arange(ROWS), pa.timestamp("s")),
            "i": [f"o{i}" for i in range(ROWS)],
            "g": ["ab"[i % 2] for i in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def watched(stream: Any) -> tuple[sb.Monitor, list[Any], list[Any]]:
    queries = {
        "best": sb.TopK(5, by="x", window=sb.Last(100)),
        "low": sb.TopK(3, by="x", window=sb.Last("90 seconds"), largest=False, per="g"),
        "high": sb.Above(150, by="x", window=sb.Last(50)),
    }
    monitor = sb.Monitor(queries, time="t", id="i")
    changes, stats = [], []
    for start in range(0, ROWS, 50):
        changes.append(monitor.push(stream.slice(start, 50)))
        stats.append(monitor.stats())
    return monitor, changes, stats


def offsets(ax: Any, label: str) -> Any:
    found = [dots for dots in ax.collections if str(dots.get_label()).startswith(label)]
    assert len(found) == 1
    return found[0].get_offsets()


def skyband(scores: Any, k: int) -> list[int]:
    """By definition: fewer than k newer ones rank above."""
    return [i for i in range(len(scores)) if (scores[i + 1 :] >= scores[i]).sum() < k]


def test_the_plane_holds_answer_skyband_and_the_rest(watched: Any, stream: Any) -> None:
    monitor, *_ = watched
    ax: Any = sb.plot.plane(monitor, "best", rows=stream)
    kept = [200 + i for i in skyband(SCORES[200:], 5)]
    answer = [int(name[1:]) for name in monitor.answer("best")["id"].to_pylist()]
    assert sorted(offsets(ax, "the answer now")[:, 0]) == sorted(answer)
    assert [SCORES[int(x)] for x in offsets(ax, "the answer now")[:, 0]] == offsets(ax, "the answer now")[:, 1].tolist()
    assert set(offsets(ax, "skyband")[:, 0]) | set(answer) >= set(kept)  # BLOCK may hold a few that wait
    assert len(offsets(ax, "may be forgotten")) == ROWS - len(offsets(ax, "skyband")) - len(answer)
    assert ax.patches[0].get_x() == 199 and ax.patches[0].get_width() == 100


def test_the_plane_of_a_strict_skyband_is_exact() -> None:
    monitor = sb.Monitor(sb.TopK(3, by="x", window=sb.Last(100), algorithm="SA"))
    monitor.push({"x": SCORES})
    seen = plane_of(monitor)
    assert sorted(seen.stamps.tolist()) == [200 + i for i in skyband(SCORES[200:], 3)]
    assert sorted(seen.rank.tolist())[-3:] == [1, 2, 3] and (seen.now, seen.begin) == (299, 199)


def test_the_plane_of_a_group_and_of_time(watched: Any) -> None:
    monitor, *_ = watched
    seen = plane_of(monitor, "low", key="a")
    answer = monitor.answer("low", key="a")
    best = {int(rank): i for i, rank in enumerate(seen.rank) if rank}
    assert [seen.scores[best[rank]] for rank in (1, 2, 3)] == answer["score"].to_pylist()
    assert seen.times(seen.stamps[[best[1]]]).to_pylist() == answer["time"].to_pylist()[:1]
    assert seen.length == 90 and seen.key == ("a",)
    ax: Any = sb.plot.plane(monitor, "low", key="a")
    assert ax.get_xlabel() == "time" and "low of a: the last 90 seconds" in ax.get_title("left")
    assert len(plane_of(monitor, "low", key="z").stamps) == 0


def test_above_shows_its_answer(watched: Any) -> None:
    monitor, *_ = watched
    assert sorted(plane_of(monitor, "high").scores) == sorted(SCORES[250:][SCORES[250:] > 150])


def test_the_answers_through_time(watched: Any) -> None:
    monitor, changes, _ = watched
    ax: Any = sb.plot.answers(changes, "best")
    lines, now = ax.collections[0], ax.collections[1]
    entered = sum(1 for table in changes for row in table.to_pylist() if row["query"] == "best" and row["diff"] > 0)
    assert len(lines.get_segments()) == entered
    assert sorted(now.get_offsets()[:, 1]) == sorted(monitor.answer("best")["score"].to_pylist())
    groups: Any = sb.plot.answers(changes, "low")
    assert [text.get_text() for text in groups.get_legend().get_texts()] == ["a", "b"]
    one: Any = sb.plot.answers(changes, "low", key="a")
    assert one.get_legend() is None and len(one.collections) == 2


def test_the_state(watched: Any) -> None:
    monitor, _, stats = watched
    bars: Any = sb.plot.state(stats[-1])
    assert [label.get_text() for label in bars.get_yticklabels()] == ["best", "low", "high"]
    kept = [bar.get_width() for bar in bars.patches[3:]]
    assert kept == [monitor.stats()["queries"][name]["objects"] for name in ("best", "low", "high")]
    lines: Any = sb.plot.state(stats)
    assert lines.lines[0].get_ydata().tolist() == [one["queries"]["best"]["objects"] for one in stats]


def test_before_anything_arrives() -> None:
    monitor = sb.Monitor(sb.TopK(3, by="x", window=sb.Last(100)))
    assert sb.plot.plane(monitor).texts[0].get_text() == "nothing has arrived yet"
    assert sb.plot.answers(monitor.push({"x": []})).texts[0].get_text() == "no changes"
    assert "Monitor" in monitor._repr_html_() and "now" not in monitor._repr_html_()
    assert "No query is standing" in sb.Monitor({})._repr_html_()


def test_bad_questions(watched: Any) -> None:
    monitor, changes, _ = watched
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: sb.plot.plane(monitor), "name the query: best, low, high"),
        (lambda: sb.plot.plane(monitor, "worst"), "there is no query 'worst'"),
        (lambda: sb.plot.plane(monitor, "low"), "2 groups of g: choose one by key=, such as 'a', 'b'"),
        (lambda: sb.plot.plane(monitor, "low", key=("a", 1)), "gives 2 values"),
        (lambda: sb.plot.answers(changes), "choose one of best, low, high"),
        (lambda: sb.plot.answers(changes, "worst"), "no changes of 'worst'"),
        (lambda: sb.plot.answers(monitor.answer("best")), "draws changes"),
        (lambda: sb.plot.state([]), "Monitor.stats()"),
        (lambda: sb.plot.state({}), "Monitor.stats()"),
    ]
    for draw, said in wrong:
        with pytest.raises(QueryError, match=said.replace("(", r"\(").replace(")", r"\)")):
            draw()


def test_notebooks(watched: Any) -> None:
    monitor, *_ = watched
    html = monitor._repr_html_()
    assert html.count("<table") == 4 and html.count("<tr>") == 1 + 3 + (1 + 5) + (1 + 6) + 1 + min(
        10, monitor.answer("high").num_rows
    )
    assert "<b>ORDER</b> <b>BY</b> x <b>DESC</b>" in html
    evil = sb.TopK(1, by="`<script>`", window=sb.Last(3), where="y = '<b>'")
    other = sb.Monitor({"<i>": evil}, id="id")
    other.push({"id": ["<u>"], "<script>": [1.0], "y": ["<b>"]})
    for shown in (evil._repr_html_(), other._repr_html_()):
        assert "<script>" not in shown and "'<b>'" not in shown and "<i>" not in shown and "<u>" not in shown
    assert "lambda" in sb.TopK(1, by=lambda batch: batch["x"], window=sb.Last(3))._repr_html_()


def test_nothing_is_drawn_before_it_is_asked_for() -> None:
    """Importing skyband loads no matplotlib; without it the error says what to install."""
    code = """
import sys
import skyband as sb
assert not any(name.split(".")[0] == "matplotlib" for name in sys.modules)
sys.modules["matplotlib"] = None
try:
    sb.plot.state({"arrivals": 0, "queries": {}})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == 'skyband.plot needs matplotlib: pip install "skyband[plot]"\n'
