"""The benchmark harness from end to end in quick sizes: run, store, plot. What it measures is not tested here."""

import json
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import checks, contestants, machine, plot, run, store, tables, yardsticks
from benchmarks.contestants import Outcome, Ready
from benchmarks.experiment import Cell, Entrant, Experiment, ExperimentError, Goal, load, names, usual
from benchmarks.goals import judge
from benchmarks.measure import measure
from benchmarks.workloads import WORKLOADS, Missing, Stream, query_points, sites, weights

from skyband.datasets.loaders import available

ROOT = Path(__file__).parents[2]
HERE = usual()  # those on Spark: tests/spark
QUICK = {name: load(name, quick=True) for name in HERE}


def drawing(name: str) -> tuple[Any, ...]:
    return QUICK[name].figure, bool(QUICK[name].goals)


def few() -> Iterator[str]:
    """Experiments until every contestant has met every workload it meets, and every kind of chart has been drawn."""
    brings = {
        name: {drawing(name), *((cell.workload, one.call) for cell in experiment.cells for one in cell.entrants)}
        for name, experiment in QUICK.items()
    }
    met: set[tuple[Any, ...]] = set()
    for name in sorted(brings, key=lambda name: -len(brings[name])):
        if not brings[name] <= met:
            yield name
        met |= brings[name]


RUN = list(few())
DRAWN = {drawing(name): name for name in RUN}
COMPUTED = [name for name in names() if not load(name).measured]
SMALL = """
about = "small"
seed = 3
figure = "kept_and_throughput"

[[cells]]
name = "cell"
workload = "random_order"
repeats = 3
parameters = { n = [50, 100], k = [1, 5], fill = "n", rows = 1_000, batch = 300 }
contestants = ["skyband_push", "numpy_argsort", { call = "sortedcontainers_window", as = "peer", rows = 200 }]
quick = { n = 50 }

[[goals]]
says = "not slower"
cell = "cell"
measure = "rows per second"
of = "skyband_push"
over = "peer"
at_least = 1e9
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path


def mended(folder: Path, old: str, new: str) -> None:
    assert old in SMALL
    (folder / "small.toml").write_text(SMALL.replace(old, new))


# ---- the whole path


@pytest.mark.parametrize("name", RUN)
def test_experiments_run_store_and_plot(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, figures = tmp_path / "results", tmp_path / "figures"
    experiment, cells = load(name), QUICK[name].cells
    assert run.main([name, "--quick", "--results", str(results)]) == 0
    said = capsys.readouterr()
    told = [line for line in said.err.splitlines() if not line.startswith("skyband: compiling")]
    assert len(told) == len(cells)

    lines = (results / f"{name}.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    measured = {row["number"] for row in rows}  # cells with real data are skipped where there are none
    assert measured == {number for number, cell in enumerate(cells) if not _lacks(cell)}
    assert len(rows) == sum(len(cells[number].entrants) for number in measured)
    for row in rows:
        assert row["right"] is True
        assert row["quick"] is True
        assert len(row["seconds"]) == cells[row["number"]].repeats
        assert all(seconds > 0 for seconds in row["seconds"])
        assert all(len(values) == len(row["seconds"]) for values in row["counters"].values())
        assert set(row["versions"]) == {"python", "numpy", "numba", "pyarrow", "pyspark", "skyband"}
        assert set(row["machine"]) == {"cpu", "cores", "memory_gib"}
        assert row["seed"] == experiment.seed
        assert row["commit"]
        assert isinstance(row["dirty"], bool)
        if row["call"] == "skyband_push":
            assert set(row["counters"]) == {"rows", "changes", "objects", "bytes", "cpu_seconds"}
    text = "\n".join(lines)
    assert str(ROOT) not in text
    assert str(Path.home()) not in text
    assert not platform.node() or f'"{platform.node()}"' not in text

    if experiment.goals:
        assert "goals met" in said.out
        assert "Quick sizes" in said.out
    if name not in DRAWN.values():
        return
    assert plot.main([name, "--results", str(results), "--figures", str(figures)]) == 0
    if experiment.figure is not None and rows:
        assert (figures / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    if experiment.goals:
        assert "| goal |" in (figures / f"{name}.md").read_text()


REAL = {"sightings": "icebergs", "readings": "intel_lab", "smog": "beijing_air"}  # what workloads read


def _lacks(cell: Cell) -> bool:
    if cell.workload in REAL:
        return not available(REAL[cell.workload])
    return "real" in cell.parameters.get("data", "") and not available("sensorscope_luce")


def test_what_is_computed_is_only_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([*COMPUTED, "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().err.count("nothing to measure") == len(COMPUTED)
    assert plot.main([*COMPUTED, "--results", str(tmp_path), "--figures", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"pripuzic2015-fig13.png", "pripuzic2015-tables.md"}
    assert (tmp_path / "pripuzic2015-tables.md").read_text().count("Of the paper's 36 cells, 36 are the same") == 2


def test_real_data_that_are_not_there_are_skipped(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYBAND_DATA", str(folder))
    with pytest.raises(Missing, match="SKYBAND_DATA"):
        WORKLOADS["points"](10, 0, {"data": "real"})
    mended(folder, '"random_order"', '"scores"')
    (folder / "small.toml").write_text((folder / "small.toml").read_text().replace("n = [50", 'data = "real", n = [50'))
    assert run.main(["small", "--quick", "--from", str(folder), "--results", str(folder)]) == 0
    said = capsys.readouterr()
    assert said.err.count("skipped: no sensorscope_luce") == 2
    assert "Traceback" not in said.err
    assert store.read("small", folder) == []


def test_some_run_only_when_named(folder: Path) -> None:
    assert usual(folder) == ["small"]
    mended(folder, "seed = 3", "default = false")
    assert usual(folder) == []
    assert load("small", folder=folder).measured
    assert not [name for name in HERE if name.startswith("spark")]


def test_a_missed_goal_is_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["small", "--from", str(folder), "--results", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "0 of 4 goals met" in said
    assert "MISSED: not slower (n=50, k=1, fill=50)" in said
    assert "Quick" not in said


def test_a_wrong_answer_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def liar(stream: Stream, p: Mapping[str, Any]) -> Ready:
        ready = contestants.skyband_push(stream, p)

        def after(result: Any) -> Outcome:
            outcome = ready.after(result)
            return replace(outcome, answer=replace(outcome.answer, id=outcome.answer.id + 1))

        return replace(ready, after=after)

    monkeypatch.setitem(contestants.CONTESTANTS, "liar", liar)
    mended(folder, '"numpy_argsort"', '"liar"')
    assert run.main(["small", "--quick", "--from", str(folder), "--results", str(folder)]) == 1
    assert "WRONG ANSWER: liar in cell" in capsys.readouterr().out
    assert {row.contestant: row.right for row in store.read("small", folder)} == {
        "skyband_push": True,
        "liar": False,
        "peer": True,
    }


def test_an_interrupted_run_keeps_the_old_results(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["small", "--quick", "--from", str(folder), "--results", str(folder)]
    assert run.main(arguments) == 0
    before = (folder / "small.jsonl").read_text()

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "measure", stop)
    with pytest.raises(KeyboardInterrupt):
        run.main(arguments)
    assert (folder / "small.jsonl").read_text() == before
    assert (folder / "small.jsonl.part").exists()


def test_no_results_no_figure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plot.main(["--from", str(folder), "--results", str(folder), "--figures", str(folder)]) == 0
    assert "python -m benchmarks.run small" in capsys.readouterr().err
    assert not list(folder.glob("*.png"))


# ---- experiment files


def test_a_list_is_an_axis_and_a_name_stands_for_its_value(folder: Path) -> None:
    cells = load("small", folder=folder).cells
    assert [(cell.parameters["n"], cell.parameters["k"]) for cell in cells] == [(50, 1), (50, 5), (100, 1), (100, 5)]
    assert all(cell.parameters["fill"] == cell.parameters["n"] for cell in cells)
    assert [one.parameters["rows"] for one in cells[0].entrants] == [1000, 1000, 200]


def test_quick_is_smaller(folder: Path) -> None:
    cells = load("small", folder=folder, quick=True).cells
    assert [cell.parameters["n"] for cell in cells] == [50, 50]
    assert {(cell.repeats, cell.warmups) for cell in cells} == {(1, 0)}
    mended(folder, "quick = { n = 50 }", "quick = false")
    left_out = load("small", folder=folder, quick=True)
    assert not left_out.cells
    assert not left_out.goals


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"random_order"', '"nothing"', "no workload 'nothing'"),
        ('"numpy_argsort"', '"nobody"', "no contestant 'nobody'"),
        ('"numpy_argsort"', '"skyband_push"', "two contestants of one name"),
        ("seed = 3", "speed = 3", r"unknown keys \['speed'\]"),
        ("seed = 3", 'clock = "sun"', 'must be "wall" or "process"'),
        ("repeats = 3", "repeat = 3", r"unknown keys \['repeat'\]"),
        ('about = "small"', "", "lacks about"),
        ('over = "peer"', 'over = "somebody"', "no contestant 'somebody' in a cell 'cell'"),
        ("at_least = 1e9", "", "at_most or at_least"),
        ("seed = 3", "seed = ", "small.toml"),
    ],
)
def test_what_cannot_be_run_says_why(folder: Path, old: str, new: str, says: str) -> None:
    mended(folder, old, new)
    with pytest.raises(ExperimentError, match=says):
        load("small", folder=folder)


def test_unknown_experiments_list_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["no-such"]) == 2
    assert plot.main(["no-such"]) == 2
    assert "throughput" in capsys.readouterr().err


def test_every_figure_there_is_has_a_chart() -> None:
    assert {load(name).figure for name in names()} <= {None, *plot.CHARTS}


# ---- measuring and judging


def test_contestants_take_turns_on_the_same_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, float]] = []

    def witness(name: str) -> Any:
        def enter(stream: Stream, p: Mapping[str, Any]) -> Ready:
            seen.append((name, float(stream["score"][0])))
            return Ready(lambda: None, lambda _: Outcome(None, lambda *_: True, {"rows": p["rows"]}))

        return enter

    for name in "AB":
        monkeypatch.setitem(contestants.CONTESTANTS, name, witness(name))
    entrants = tuple(Entrant(name, name, {"rows": 10}) for name in "AB")
    measured = measure(Cell("c", "random_order", {}, entrants, repeats=2, warmups=1), seed=7)
    first, second = (float(WORKLOADS["random_order"](10, seed, {})["score"][0]) for seed in (7, 8))
    assert seen == [("A", first), ("B", first), ("A", first), ("B", first), ("A", second), ("B", second)]
    assert [len(one.seconds) for one in measured] == [2, 2]
    spent = measured[0].counters.pop("cpu_seconds")
    assert len(spent) == 2 and all(0 <= one < 60 for one in spent)
    assert measured[0].counters == {"rows": [10, 10]}


def test_goals_are_medians_of_ratios_within_a_repeat() -> None:
    goal = Goal("ratio", "c", "A", over="B", at_most=2)
    experiment = Experiment("e", "about", (), (goal, replace(goal, says="own", over=None, at_most=3)))
    row = store.Row("e", "c", 0, "A", "f", "w", {}, 0, [1.0, 4.0, 9.0], True)
    rows = [row, replace(row, contestant="B", seconds=[1.0, 1.0, 9.0])]
    ratio, own = judge(experiment, rows)
    assert ratio.values == [1, 4, 1]
    assert ratio.measured == 1
    assert ratio.met
    assert ratio.cells == ("ratio", "at most 2 ×", "1 ×", "1 × to 4 ×", "yes")
    assert own.measured == 4
    assert not own.met
    assert own.cells == ("own", "at most 3 s", "4 s", "1 s to 9 s", "MISSED")


def test_what_was_not_measured_is_not_met() -> None:
    experiment = Experiment("e", "about", (), (Goal("counted", "c", "A", measure="objects", at_most=2),))
    (verdict,) = judge(experiment, [store.Row("e", "c", 0, "A", "f", "w", {}, 0, [1.0, 4.0], True)])
    assert not verdict.met
    assert verdict.cells[-1] == "MISSED"


def test_rows_survive_the_file(tmp_path: Path) -> None:
    row = store.Row("e", "c", 0, "A", "f", "w", {"n": 1}, 0, [0.5], True, {"rows": [3]}, versions={"a": "1"})
    with store.writing("e", tmp_path) as file:
        store.write(file, row)
    assert store.read("e", tmp_path) == [row]
    assert asdict(row)["parameters"] == {"n": 1}


def test_the_machine_has_no_name() -> None:
    assert set(machine.machine()) == {"cpu", "cores", "memory_gib"}
    assert len(machine.commit()[0]) >= 7


# ---- checks: they must notice


def test_best_of_last_by_hand() -> None:
    #  key 0:  5 . 9 . 5     last 2: 9 5
    #  key 1:  . 1 . 1 .     the newer of equals first
    stream: Stream = {"key": np.array([0, 1, 0, 1, 0]), "score": np.array([5.0, 1, 9, 1, 5])}
    best = checks.best_of_last(stream, n=2, k=2)
    assert (best.group.tolist(), best.id.tolist(), best.score.tolist()) == ([0, 0, 1, 1], [1, 2, 1, 0], [9, 5, 1, 1])
    assert checks.is_topk(stream, {"n": 2, "k": 2}, best)
    assert not checks.is_topk(stream, {"n": 3, "k": 3}, best)


def test_changes_must_add_up() -> None:
    answer = checks.Answer(np.array([0]), np.array([2]), np.array([9.0]))
    told = {"group": np.zeros(3, np.int64), "id": np.array([1, 1, 2]), "diff": np.array([1, -1, 1])}
    assert checks.adds_up(told, answer)
    assert not checks.adds_up({**told, "diff": np.array([1, 1, 1])}, answer)
    assert not checks.adds_up({**told, "id": np.array([1, 1, 3])}, answer)


def test_orders_must_sort() -> None:
    column = np.array([2, 1, 1])
    for stable, order, right in ((True, [1, 2, 0], True), (True, [2, 1, 0], False), (False, [2, 1, 0], True),
                                 (False, [0, 1, 2], False), (False, [1, 1, 0], False)):  # fmt: skip
        assert checks.sorts(column, stable=stable)({}, {}, np.array(order)) is right


def test_nearest_must_be_the_nearest() -> None:
    #  x         0 1 2 3 4     last 4; the query stands at one of them; 1 and 3 are as far from 2: the newer first
    stream: Stream = {"x1": np.arange(5.0)}
    p = {"queries": 1, "n": 4, "k": 2}
    (point,) = sites(stream, p)[0]
    far = np.abs(stream["x1"] - point)
    best = sorted(range(1, 5), key=lambda row: (far[row], -row))[:2]
    right = checks.Answer(np.zeros(2, np.int64), np.array(best), far[best])
    assert checks.is_nearest(stream, p, right)
    assert checks.is_near(stream, p, right)
    assert checks.lacking(stream, p, right) == 0
    other = sorted(range(1, 5), key=lambda row: (far[row], -row))[1:3]
    near = replace(right, id=np.array(other), score=far[other])
    assert not checks.is_nearest(stream, p, near)
    assert checks.is_near(stream, p, near)
    assert checks.lacking(stream, p, near) == 1
    for wrong in (
        replace(near, score=near.score + 1),
        replace(near, id=near.id[::-1], score=near.score[::-1]),
        replace(near, id=np.zeros(2, np.int64), score=far[[0, 0]]),
    ):
        assert not checks.is_near(stream, p, wrong)


def test_an_object_has_some_rank() -> None:
    for l, n, s in ((35, 1000, 0), (35, 1000, 1), (35, 1000, 500), (35, 1000, 999), (1, 10, 4), (10, 10, 9)):  # noqa: E741
        chances = tables.rank_chances(l, n, s)
        assert chances.sum() == pytest.approx(1)
        assert chances[0] == 0
    # last of two; the other leaves: it is first if the next one is after it, in one of three orders
    assert tables.rank_chances(2, 2, 1).tolist() == pytest.approx([0, 1 / 3, 2 / 3])


@pytest.mark.parametrize("d", [2, 4])
def test_the_yardstick_computes_all_scores(d: int) -> None:
    data, points = np.random.default_rng(d).random((d, 700)), np.random.default_rng(9).random((5, d))
    far = ((data[:, None, :] - points.T[:, :, None]) ** 2).sum(axis=0)
    assert yardsticks.count_near(data, points, 0.1) == (far < 0.1).sum() > 0


def test_sums_of_changes_must_be_those_of_the_answers() -> None:
    #  row      0 1 2 3 4
    #  key a:   5 . 9 . 5     last 2: 9 5      last 3 minutes (from row 2 on): 9 5
    #  key b:   . 1 . 1 .     last 2: 1 1      last 3 minutes: 1
    stream: Stream = {
        "id": np.arange(10, 15),
        "key": np.array(["a", "b", "a", "b", "a"], object),
        "time": np.datetime64("2024-01-01", "us") + np.arange(5).astype("m8[m]").astype("m8[us]"),
        "score": np.array([5.0, 1, 9, 1, 5]),
    }
    assert checks.best_rows(stream, {"window": 2, "k": 2}).tolist() == [2, 4, 3, 1]
    assert checks.best_rows(stream, {"window": 2, "k": 1}).tolist() == [2, 3]
    assert checks.best_rows(stream, {"window": "3 minutes", "k": 2}).tolist() == [2, 4, 3]
    p = {"window": "3 minutes", "k": 1}
    assert checks.sums_to_best(stream, p, {"objects": 2, "ids": 12 + 13, "squares": 144 + 169})
    assert not checks.sums_to_best(stream, p, {"objects": 2, "ids": 11 + 14, "squares": 121 + 196})


def test_nearest_rows_by_hand() -> None:
    stream = WORKLOADS["timed_points"](300, 1, {"per_10_minutes": 100})
    p = {"queries": 3, "window": "10 minutes", "k": 2}
    point = query_points(p)[2]
    far = [(x - point[0]) ** 2 + (y - point[1]) ** 2 for x, y in zip(stream["x1"], stream["x2"], strict=True)]
    assert sorted(checks.nearest_rows(stream, p)[4:]) == sorted(sorted(range(200, 300), key=far.__getitem__)[:2])


def test_windows_that_close_by_hand() -> None:
    #  minutes  0 1 2 3 4 5    windows of 4 minutes that end at 2, 4, 6, 8: rows 0-1, 0-3, 2-5, 4-5
    stream: Stream = {
        "key": np.array([0, 0, 0, 0, 0, 1]),
        "time": np.datetime64("2024-01-01", "us") + np.arange(6).astype("m8[m]").astype("m8[us]"),
    }
    p = {"window": "4 minutes", "slide": "2 minutes", "k": 3}
    mark = np.datetime64("2024-01-01T00:06", "us")
    assert checks.closes_windows(stream, p, mark, {"windows": 3 + 1, "objects": 2 + 3 + 3 + 1})
    assert not checks.closes_windows(stream, p, mark, {"windows": 3, "objects": 8})
    assert checks.closes_windows(stream, p, mark - np.timedelta64(1, "us"), {"windows": 2, "objects": 5})


def test_preferences_must_be_the_best() -> None:
    #  x1        0 1 2 3 4 5     one query, weight w: the largest x1 is the best, in any form; of equals the newer
    stream: Stream = {"x1": np.array([0.0, 5, 2, 5, 4, 1])}
    p = {"queries": 1, "d": 1, "k": 2, "n": 5}
    ((weight,),) = weights(p).tolist()
    for form, score in (("linear", weight * 5), ("product", weight + 5), ("quadratic", weight * 25)):
        best = checks.Answer(np.zeros(2, np.int64), np.array([3, 1]), np.array([score, score]))
        assert checks.is_preferred(stream, p | {"form": form}, best, np.arange(1, 6))
        assert not checks.is_preferred(stream, p | {"form": form}, best, np.array([0, 2, 3]))
        for wrong in (replace(best, id=np.array([1, 3])), replace(best, score=best.score + 1)):
            assert not checks.is_preferred(stream, p | {"form": form}, wrong, np.arange(1, 6))


def test_the_first_weights_of_more_queries_are_the_same() -> None:
    few, more = (weights({"queries": queries, "d": 4}) for queries in (3, 9))
    assert (more[:3] == few).all()


def test_summaries_read_rows(tmp_path: Path) -> None:
    names = ["mouratidis2006-fig17", "mouratidis2006-table2"]
    assert run.main([*names, "--quick", "--results", str(tmp_path)]) == 0
    assert plot.main([*names, "--results", str(tmp_path), "--figures", str(tmp_path)]) == 0
    text = (tmp_path / "mouratidis2006-fig17.md").read_text()
    assert "| | batch=20 | batch=50 |" in text
    assert text.count("| SMA, searches |") == 2
    assert "| auto, searches" not in text
    assert "| ANT, SMA, Table 2 | 1.1 | 5.9 |" in (tmp_path / "mouratidis2006-table2.md").read_text()
