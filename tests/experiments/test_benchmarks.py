"""The benchmark harness from end to end in quick sizes: run, store, plot. What it measures is not tested here."""

import json
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import contestants, gone_groups, plot, run, store
from benchmarks.contestants import Outcome, Ready
from benchmarks.experiment import Cell, ExperimentError, load, names, usual
from benchmarks.measure import measure as measured
from benchmarks.workloads import WORKLOADS, Missing, Stream

from skyband import Monitor
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
PAPERS = ROOT / "benchmarks" / "experiments" / "papers"
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


def rewritten(folder: Path, old: str, new: str) -> None:
    assert old in SMALL
    (folder / "small.toml").write_text(SMALL.replace(old, new))


# ---- the whole path


@pytest.mark.parametrize("name", RUN)
def test_experiments_run_store_and_plot(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, figures = tmp_path / "results", tmp_path / "figures"
    experiment, cells = load(name), QUICK[name].cells
    assert run.main([name, "--quick", "--results", str(results)]) == 0
    said = capsys.readouterr()
    progress = [line for line in said.err.splitlines() if not line.startswith("skyband: compiling")]
    assert len(progress) == len(cells)

    lines = (results / f"{name}.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    numbers = {row["number"] for row in rows}  # cells with real data are skipped where there are none
    assert numbers == {number for number, cell in enumerate(cells) if not _lacks(cell)}
    assert len(rows) == sum(len(cells[number].entrants) for number in numbers)
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
    rewritten(folder, '"random_order"', '"scores"')
    (folder / "small.toml").write_text((folder / "small.toml").read_text().replace("n = [50", 'data = "real", n = [50'))
    assert run.main(["small", "--quick", "--from", str(folder), "--results", str(folder)]) == 0
    said = capsys.readouterr()
    assert said.err.count("skipped: no sensorscope_luce") == 2
    assert "Traceback" not in said.err
    assert store.read("small", folder) == []


def test_some_run_only_when_named(folder: Path) -> None:
    assert usual(folder) == ["small"]
    rewritten(folder, "seed = 3", "default = false")
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
    rewritten(folder, '"numpy_argsort"', '"liar"')
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


def test_a_stopped_run_goes_on_where_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["small", "--quick", "--go-on", "--from", str(folder), "--results", str(folder)]
    rewritten(folder, "quick = { n = 50 }", "quick = { n = [50, 60] }")
    seen: list[tuple[int, int]] = []

    def stop_after(cells: int) -> Any:
        def measure(cell: Cell, *others: Any) -> Any:
            if len(seen) == cells:
                raise KeyboardInterrupt
            seen.append((cell.parameters["n"], cell.parameters["k"]))
            return measured(cell, *others)

        return measure

    for cells in (1, 3):  # stopped twice, the second time in the middle of a line
        monkeypatch.setattr(run, "measure", stop_after(cells))
        with pytest.raises(KeyboardInterrupt):
            run.main(arguments)
        assert {row.number for row in store.read("small", folder)} == set(range(cells))  # stored as they come
    with (folder / "small.jsonl.part").open("a") as part:
        part.write('{"experiment": "sma')
    monkeypatch.setattr(run, "measure", measured)
    before = store.read("small", folder)
    assert run.main(arguments) == 0
    rows = store.read("small", folder)
    assert seen == [(50, 1), (50, 5), (60, 1)]
    assert [row.number for row in rows] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert rows[:9] == before
    assert not (folder / "small.jsonl.part").exists()

    monkeypatch.setattr(run, "measure", stop_after(3))  # nothing is left to measure, until the file says otherwise
    assert run.main(arguments) == 0
    (folder / "small.toml").write_text((folder / "small.toml").read_text().replace("seed = 3", "seed = 4"))
    with pytest.raises(KeyboardInterrupt):
        run.main(arguments)


def test_the_papers_own_sizes_have_a_short_form(tmp_path: Path) -> None:
    there = {name: load(name, folder=PAPERS) for name in usual(PAPERS)}
    assert {name.removeprefix("paper-").rstrip("0123456789") for name in there} == {
        "pripuzic", "mouratidis", "shen", "jin", "haghani",
    }  # fmt: skip
    for experiment in there.values():
        assert experiment.clock == "process"
        assert all(cell.repeats >= 3 for cell in experiment.cells)
    assert run.main(["paper-jin2008", "--quick", "--from", str(PAPERS), "--results", str(tmp_path)]) == 0
    assert (
        plot.main(["paper-jin2008", "--from", str(PAPERS), "--results", str(tmp_path), "--figures", str(tmp_path)]) == 0
    )


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
    rewritten(folder, "quick = { n = 50 }", "quick = false")
    left_out = load("small", folder=folder, quick=True)
    assert not left_out.cells
    assert not left_out.goals


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"random_order"', '"nothing"', "no workload 'nothing'"),
        ('"numpy_argsort"', '"unknown"', "no contestant 'unknown'"),
        ('"numpy_argsort"', '"skyband_push"', "two contestants of one name"),
        ("seed = 3", "speed = 3", r"unknown keys \['speed'\]"),
        ("seed = 3", 'clock = "sun"', 'must be "wall" or "process"'),
        ("repeats = 3", "repeat = 3", r"unknown keys \['repeat'\]"),
        ('about = "small"', "", "lacks about"),
        ('over = "peer"', 'over = "unknown"', "no contestant 'unknown' in a cell 'cell'"),
        ("at_least = 1e9", "", "at_most or at_least"),
        ("seed = 3", "seed = ", "small.toml"),
    ],
)
def test_what_cannot_be_run_says_why(folder: Path, old: str, new: str, says: str) -> None:
    rewritten(folder, old, new)
    with pytest.raises(ExperimentError, match=says):
        load("small", folder=folder)


def test_unknown_experiments_list_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["no-such"]) == 2
    assert plot.main(["no-such"]) == 2
    assert "throughput" in capsys.readouterr().err


def test_every_figure_there_is_has_a_chart() -> None:
    assert {load(name).figure for name in names()} <= {None, *plot.CHARTS}


def test_summaries_read_rows(tmp_path: Path) -> None:
    names = ["mouratidis2006-fig17", "mouratidis2006-table2"]
    assert run.main([*names, "--quick", "--results", str(tmp_path)]) == 0
    assert plot.main([*names, "--results", str(tmp_path), "--figures", str(tmp_path)]) == 0
    text = (tmp_path / "mouratidis2006-fig17.md").read_text()
    assert "| | batch=20 | batch=50 |" in text
    assert text.count("| SMA, searches |") == 2
    assert "| auto, searches" not in text
    assert "| ANT, SMA, Table 2 | 1.1 | 5.9 |" in (tmp_path / "mouratidis2006-table2.md").read_text()


def test_groups_that_are_gone_are_measured() -> None:
    for query, options in gone_groups.cases().values():
        Monitor(query, **options)
    for name in ("TopKGroups TALLY", "UntilDeleted"):
        assert gone_groups.measure(name, groups=6, each=4, at_once=2)["rows"] == 24
