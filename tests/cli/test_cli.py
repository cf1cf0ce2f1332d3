"""The command line as a user meets it: exit codes, stdout for data, stderr for talk, one message per mistake."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import skyband as sb
from skyband import datasets
from skyband.cli import demo
from skyband.cli.app import app

PROGRAM = [sys.executable, "-c", "from skyband.cli import app; app()"]
TINY = ["demo", "--rows", "2000", "--fast"]


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin, prog_name="skyband", terminal_width=80)


def failed(result: Result, code: int, said: str) -> None:
    """One message on stderr, nothing on stdout, no traceback."""
    assert result.exit_code == code, result.output
    assert re.search(said, result.stderr), result.stderr
    assert result.stdout == ""
    assert result.exception is None or isinstance(result.exception, SystemExit)


# ---- help


@pytest.mark.parametrize("command", ["", "demo", "run", "explain", "sql", "serve", "datasets", "bench"])
def test_help_fits_one_screen(command: str) -> None:
    result = run(*command.split(), "--help")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24
    assert re.search(r"^  Example: .*skyband", result.stdout, re.MULTILINE) or not command
    assert "\\b" not in result.stdout
    if not command:
        assert all(word in result.stdout for word in ("demo", "run", "explain", "datasets", "bench", "--version"))
        assert "..." not in result.stdout.partition("Commands:")[2]


def test_version() -> None:
    assert run("--version").stdout == f"skyband {sb.__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from skyband.cli import app; app(['--help'], standalone_mode=False); "
        "print({'numba', 'pyspark', 'pandas', 'sqlglot', 'rich', 'starlette', 'skyband.datasets'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    ("typed", "offered"), [("skyband da", "datasets"), ("skyband datasets sens", "sensorscope_luce")]
)
def test_completion(typed: str, offered: str) -> None:
    asked = {"_SKYBAND_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    code = "from skyband.cli import app; app(prog_name='skyband')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, timeout=60, check=False
    )
    assert offered in done.stdout


@pytest.mark.parametrize("arguments", [["nonsense"], ["demo", "--nonsense"], ["demo", "--rows", "many"]])
def test_usage_errors(arguments: list[str]) -> None:
    failed(run(*arguments), 2, "Error: ")


# ---- explain


def test_explain_by_options() -> None:
    result = run("explain", "--k", "10", "--by", "0.7*x + 0.3*y", "--window", "1000")
    assert result.exit_code == 0
    assert "BLOCK" in result.stdout
    assert "55.6" in result.stdout
    assert result.stderr == ""


def test_explain_json_of_every_option() -> None:
    result = run(
        *("explain", "-k", "3", "--by", "x", "--window", "2 hours", "--per", "g", "--per", "h", "--where", "x > 1"),
        *("--smallest", "--algorithm", "sa", "--rate", "2", "--groups", "4", "--json"),
    )
    data = json.loads(result.stdout)
    query = sb.TopK(3, by="x", window=sb.Last("2 hours"), per=["g", "h"], where="x > 1", largest=False, algorithm="SA")
    assert sb.TopK.from_dict(data["query"]) == query
    assert data["error"] == "exact"


def test_explain_a_stored_query(tmp_path: Path) -> None:
    query = sb.TopK(3, by=sb.Nearest({"x": 1}), window=sb.Last(span=300))
    file = tmp_path / "query.json"
    file.write_text(json.dumps(query.to_dict()))
    stored = run("explain", str(file), "--rows", "50", "--json")
    piped = run("explain", "-", "--rows", "50", "--json", stdin=file.read_text())
    assert stored.stdout == piped.stdout
    assert sb.TopK.from_dict(json.loads(stored.stdout)["query"]) == query


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        ([], None, "needs --k, --by, --window"),
        (["--k", "0", "--by", "x", "--window", "9"], None, "k must be at least 1"),
        (["--k", "1", "--by", "sin(x)", "--window", "9"], None, "sin is not allowed"),
        (["--k", "1", "--by", "x", "--window", "9 parsecs"], None, "not a duration"),
        (["--k", "1", "--by", "x", "--window", "0"], None, "at least 1"),
        (["--k", "1", "--by", "x", "--window", "9", "--algorithm", "finest"], None, "unknown"),
        (["--k", "1", "--by", "x", "--window", "1 h", "--rate", "0"], None, "above 0"),
        (["nothing.json"], None, "No such file"),
        (["-"], "{", "not JSON"),
        (["-"], "[]", "mapping"),
        (
            ["-"],
            '{"kind": "TopKUncertain", "k": 1, "by": "x", "window": {"last": 5}, "semantics": "pt-k"}',
            "threshold",
        ),
        (["-", "--k", "1", "--smallest"], "{}", "leave out --k, --smallest"),
    ],
)
def test_explain_bad_questions(arguments: list[str], stdin: str | None, said: str) -> None:
    failed(run("explain", *arguments, stdin=stdin), 2, said)


# ---- datasets


def test_datasets_in_a_pipe_are_tab_separated() -> None:
    lines = [line.split("\t") for line in run("datasets").stdout.splitlines()]
    assert lines[0] == ["name", "rows", "here", "what for"]
    assert [line[0] for line in lines[1:]] == datasets.names()
    assert {len(line) for line in lines} == {4}


def test_a_dataset_to_a_pipe() -> None:
    result = run("datasets", "flights_like", "--rows", "70000", "--seed", "3")
    lines = result.stdout.splitlines()
    assert lines[0] == '"flight","origin","time","delay"'
    assert len(lines) == 70_001
    assert result.stderr == ""


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_dataset_to_a_file(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"points.{ending}"
    result = run("datasets", "uniform", "--rows", "7", "--seed", "2", "--out", str(file))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "7 rows" in result.stderr
    table = pyarrow.parquet.read_table(file) if ending == "parquet" else pyarrow.csv.read_csv(file)
    assert table.equals(datasets.uniform(7, seed=2))


def test_a_real_dataset_cut_short() -> None:
    assert len(run("datasets", "flights", "--rows", "5").stdout.splitlines()) == 6


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["unifrom"], 2, "Did you mean uniform"),
        (["zzz"], 2, "There are: uniform"),
        (["shuffled"], 2, "in Python"),
        (["--rows", "5"], 2, "name the dataset"),
        (["flights", "--seed", "5"], 2, "--seed means nothing"),
        (["uniform", "--out", "x.xlsx"], 2, "parquet or .csv"),
        (["uniform", "--out", "nowhere/x.csv"], 2, "no folder nowhere"),
        (["uniform", "--rows", "-1"], 2, "--rows"),
        (["uniform", "--rows", str(10**14)], 1, "allocate"),
        (["icebergs"], 1, "SKYBAND_DATA"),
    ],
)
def test_datasets_mistakes(monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, said: str) -> None:
    monkeypatch.delenv("SKYBAND_DATA", raising=False)
    failed(run("datasets", *arguments), code, said)


def test_a_reader_that_leaves_early() -> None:
    line = f"{sys.executable} -c 'from skyband.cli import app; app()' datasets uniform --rows 300000 | head -n 1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60, check=True)  # noqa: S602
    assert (done.stdout, done.stderr) == ('"x1","x2"\n', "")


def test_a_warning_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x\n1\n" + "null\n" * 200)
    sentence = "SELECT * FROM s ORDER BY x DESC LIMIT 1 WINDOW 10 ROWS"
    done = subprocess.run(
        [*PROGRAM, "sql", sentence, str(tmp_path / "rows.csv")], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.startswith("skyband: 200 of the 201 rows of a push were rejected: x is null (200).")
    assert ".py" not in done.stderr


# ---- bench


def test_bench_outside_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed(run("bench"), 2, "are in skyband's repository")


def test_bench_hands_arguments_and_exit_code_on(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "run.py").write_text("import sys; print(sys.argv[1:]); sys.exit(7)")
    done = subprocess.run(
        [*PROGRAM, "bench", "first", "--quick"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (7, "['first', '--quick']\n")


# ---- demo


def test_demo_in_a_pipe() -> None:
    result = run(*TINY)
    assert result.exit_code == 0
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert lines[0] == ["origin", "rank", "dep_delay", "carrier", "flight", "dest", "time"]
    assert [line[0] for line in lines[1:]] == ["EWR"] * 10 + ["JFK"] * 10 + ["LGA"] * 10
    assert len(result.stderr.splitlines()) == 1
    assert "2,000 flights replayed" in result.stderr


def test_demo_without_data_generates_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKYBAND_DATA", raising=False)
    monkeypatch.setattr(datasets.loaders, "_packaged_flights", lambda: None)
    result = run(*TINY)
    assert result.exit_code == 0
    assert [line[:3] for line in result.stdout.splitlines()[1:]] == ["EWR"] * 10 + ["JFK"] * 10 + ["LGA"] * 10
    assert "flights is generated here" in result.stderr.splitlines()[0]
    assert 'skyband demo --spark (needs pip install "skyband[spark]", Java 17)' in result.stderr


def test_demo_answers_and_counts_are_right() -> None:
    table = datasets.flights().slice(0, 3000)
    replay = demo.Replay(table)
    while not replay.ended:
        replay.push(700)
    frame = [row for row in table.to_pylist() if row["dep_delay"] is not None]
    last = [row for row in frame if row["time"] > frame[-1]["time"] - demo.SPAN]
    assert replay.in_window == len(last)
    assert replay.cancelled == 3000 - len(frame)
    assert replay.clock == frame[-1]["time"]
    assert 30 <= replay.kept < len(last)
    for airport in demo.AIRPORTS:
        best = sorted((row["dep_delay"] for row in last if row["origin"] == airport), reverse=True)[:10]
        assert [row["score"] for row in replay.answer(airport)] == best


def test_changes_do_not_depend_on_how_the_demo_is_cut() -> None:
    counts = set()
    for chunk in (1, 97, 600):
        replay = demo.Replay(datasets.flights().slice(0, 600))
        while not replay.ended:
            replay.push(chunk)
        counts.add(replay.changes)
    assert len(counts) == 1


def test_new_rows_are_marked_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    replay = demo.Replay(datasets.flights().slice(0, 600))
    screen = demo.Screen(replay)
    marks = []
    for moment, count in [(100.0, 300), (100.5, 0), (101.2, 0), (102.0, 300)]:
        now = moment
        if count:
            replay.push(count)
        console = Console(width=80, file=io.StringIO())
        with console.capture() as drawn:
            console.print(screen.draw())
        marks.append(drawn.get().count(demo.MARK) - 1)  # one explains the mark
    assert marks[:3] == [30, 30, 0]
    assert 0 < marks[3] < 30


def test_the_replay_is_slow_at_its_ends_and_whole() -> None:
    steps = [demo._eased(part / 100) for part in range(101)]
    assert (steps[0], steps[-1]) == (0, 1)
    assert steps == sorted(steps)
    assert steps[10] < 0.002
    assert steps[90] > 0.998


def at_a_terminal(*arguments: str, interrupt: bytes | None = None) -> tuple[int, str]:
    """Run in a terminal of 80 x 24; send Ctrl-C once `interrupt` is on the screen."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(COLUMNS="80", LINES="24", TERM="xterm")
        os.execv(PROGRAM[0], [*PROGRAM, *arguments])  # noqa: S606
    seen, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            more = os.read(terminal, 65_536)
        except OSError:  # Linux's way to say that the other side has closed
            break
        if not more:
            break
        seen += more
        if interrupt and interrupt in seen:
            os.kill(pid, signal.SIGINT)
            interrupt = None
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of forkpty:DeprecationWarning")
class TestAtATerminal:
    @pytest.mark.parametrize("pace", [["--fast"], ["--seconds", "0.5"]])
    def test_demo_draws_and_sums_up(self, pace: list[str]) -> None:
        code, screen = at_a_terminal("demo", "--rows", "3000", *pace)
        assert code == 0
        last = screen[screen.rindex("The ten most delayed") :].splitlines()
        for word in ("EWR Newark", "JFK Kennedy", "LGA LaGuardia", "flights in the window", "3,000 flights"):
            assert word in "\n".join(last)
        assert max(map(len, last)) <= 80
        assert len(last) <= 24
        assert "flights/s through push alone" in last[-3]
        assert "skyband demo --spark" in last[-1]

    def test_demo_stops_cleanly(self) -> None:
        code, screen = at_a_terminal("demo", "--seconds", "300", interrupt=b"LaGuardia")
        assert code == 130
        assert "interrupted" in screen
        assert "Traceback" not in screen

    def test_datasets_are_tables(self) -> None:
        code, screen = at_a_terminal("datasets")
        assert code == 0
        assert "336,776" in screen
        assert max(map(len, screen.splitlines())) <= 80
        code, screen = at_a_terminal("datasets", "flights_like", "--rows", "3")
        assert code == 0
        assert "timestamp[us]" in screen
        assert "3 rows" in screen
