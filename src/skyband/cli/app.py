"""The command `skyband`. Data goes to stdout, talk to stderr; exit code 2: a bad question, 1: a failed run.

Everything heavy is imported inside the command that needs it, so that help and completion come at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from skyband.errors import BatchError, QueryError, SkybandError


class _Commands(TyperGroup):
    """Turns what a user can cause into one message and an exit code; a bug still shows itself."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader has gone (| head): Typer ends quietly
        except (QueryError, BatchError) as error:
            code, message = 2, str(error)
        except (SkybandError, OSError, MemoryError) as error:
            code, message = 1, str(error) or type(error).__name__
        typer.echo(f"skyband: {message}", err=True)
        raise typer.Exit(code)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
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


@app.command()
def demo(
    seconds: Annotated[
        float | None, typer.Option(min=0.1, metavar="S", help="How long the replay takes, at a terminal. [25]")
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="As fast as possible.")] = False,
    rows: Annotated[int | None, typer.Option(min=1, metavar="N", help="Replay only the first N flights.")] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Through local Spark, as files; leaves a report.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Of --spark. [out/demo]")] = None,
) -> None:
    """Watch the most delayed flights of the last 24 hours.

    Replays a year of flights out of New York through a Monitor: the ten most delayed per airport, as
    they change. In a pipe: at once, and the last answers as tab-separated text.

    Example: skyband demo --seconds 60
    """
    if spark:
        if fast or seconds is not None:
            raise QueryError("--spark goes at Spark's pace: leave out --fast and --seconds, or --spark.")
        try:
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


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="Source, queries, sink: docs/run.md has the keys.")],
    check: Annotated[bool, typer.Option("--check", help="Only say whether the file is good.")] = False,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="PORT", help="Serve OpenMetrics at http://127.0.0.1:PORT/metrics (or HOST:PORT)."),
    ] = None,
) -> None:
    """Run a pipeline from a file on Spark.

    At a terminal: a live view. In a pipe: one line of JSON per trigger. Ctrl-C stops after the running
    trigger (exit code 130); run it again to go on from its checkpoint.

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


def _algorithms(incomplete: str) -> list[str]:
    from skyband.query.algorithms import names

    return [name for name in ("auto", *names("TopK")) if name.upper().startswith(incomplete.upper())]


@app.command()
def explain(
    file: Annotated[
        str | None,
        typer.Argument(metavar="SQL|FILE", help="A question in SQL, or a file of one or of JSON (-: stdin)."),
    ] = None,
    k: Annotated[int | None, typer.Option("--k", "-k", metavar="N", help="How many.")] = None,
    by: Annotated[str | None, typer.Option(metavar="EXPR", help="A column or an expression to rank by.")] = None,
    window: Annotated[str | None, typer.Option(metavar="SIZE", help='Arrivals (1000) or time ("24 hours").')] = None,
    per: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="One answer for each value of it; may be repeated."),
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="EXPR", help="Who can be an answer.")] = None,
    smallest: Annotated[bool, typer.Option("--smallest", help="The smallest score is best.")] = False,
    algorithm: Annotated[
        str | None, typer.Option(metavar="NAME", autocompletion=_algorithms, help="Instead of auto.")
    ] = None,
    rows: Annotated[
        float | None, typer.Option(metavar="N", help="Expected arrivals in a time window, all groups.")
    ] = None,
    rate: Annotated[float | None, typer.Option(metavar="N", help="Expected arrivals per second, all groups.")] = None,
    groups: Annotated[float | None, typer.Option(metavar="N", help="Expected number of groups.")] = None,
    keys: Annotated[float | None, typer.Option(metavar="N", help="The same; with --rate the load on Spark.")] = None,
    queries: Annotated[float | None, typer.Option(metavar="N", help="Expected number of such queries.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Tell how a query would be answered, and what it costs.

    Example: skyband explain "SELECT * FROM s ORDER BY x LIMIT 3 WINDOW 60 ROWS"
    """
    import json

    from skyband.explain import explain as explained

    asked: dict[str, Any] = {"k": k, "by": by, "where": where, "algorithm": algorithm, "per": per or None}
    asked["largest"] = False if smallest else None
    if window is not None:
        asked["window"] = {"last": int(window) if window.strip().isdecimal() else window}
    given = {name: value for name, value in asked.items() if value is not None}
    query = _query(file, given)
    expected = {"rows": rows, "rate": rate, "groups": groups, "keys": keys, "queries": queries}
    found = explained(query, **{name: number for name, number in expected.items() if number is not None})
    typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))


def _query(source: str | None, given: dict[str, Any]) -> Any:
    """The query of a sentence or a file, or the TopK that the options make."""
    import json

    from skyband.query.kinds import Query, TopK
    from skyband.query.sql.parser import is_sql, sql

    if source is None:
        if missing := [f"--{name}" for name in ("k", "by", "window") if name not in given]:
            raise QueryError(
                f"explain needs {', '.join(missing)}, or a question in SQL. For example: "
                "skyband explain --k 10 --by delay --window 1000"
            )
        return TopK.from_dict({"kind": "TopK", **given})
    if given:
        twice = ", ".join(f"--{name}" for name in given).replace("--largest", "--smallest")
        what = "the sentence" if is_sql(source) else source
        raise QueryError(f"{what} holds the whole query: leave out {twice}, or it.")
    if is_sql(source):
        return sql(source)
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
        return sql(text) if is_sql(text) else Query.from_dict(json.loads(text))
    except OSError as error:
        raise QueryError(
            f"{source}: {error.strerror}. Give a question in SQL, or the path of a query stored as JSON."
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise QueryError(
            f"{source} is not JSON ({error}), nor SQL. A query is stored by json.dumps(query.to_dict())."
        ) from None


@app.command()
def sql(
    question: Annotated[str, typer.Argument(metavar="SQL", help="docs/sql.md has the clauses.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Parquet, csv or json lines, in order.")],
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="What labels objects. [their numbers]")] = None,
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="Of time windows. [the only timestamp]")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="To show with an answer; may be repeated. [all]")
    ] = None,
    part: Annotated[str, typer.Option(metavar="COLUMN", help="Of PARTS: which part a row is of.")] = "part",
    value: Annotated[str, typer.Option(metavar="COLUMN", help="Of PARTS: its value.")] = "value",
    changes: Annotated[bool, typer.Option("--changes", help="Every change, rather than the last answer.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Lines of JSON.")] = False,
) -> None:
    """Answer a question over files, as if their rows had just arrived.

    The last answer: as a table at a terminal, as CSV in a pipe.

    Example: skyband sql "SELECT * FROM f ORDER BY delay DESC LIMIT 3 WINDOW '24 hours'" flights.parquet
    """
    from skyband.cli.sql import ask, show

    found = ask(question, files, id=id, time=time, keep=keep, part=part, value=value, changes=changes)
    show(found, as_json=as_json)


@app.command()
def serve(
    stream: Annotated[
        str | None,
        typer.Argument(metavar="STREAM", help="A file, a folder, - (stdin), a dataset, kafka://host/topic."),
    ] = None,
    query: Annotated[
        list[str] | None, typer.Option("--query", "-q", metavar="[NAME=]SQL", help="To begin with; may be repeated.")
    ] = None,
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="What labels objects. [their numbers]")] = None,
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="Of times. [the only timestamp]")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="To show with an answer; may be repeated.")
    ] = None,
    part: Annotated[str | None, typer.Option(metavar="COLUMN", help="Of PARTS: which part a row is of.")] = None,
    value: Annotated[str | None, typer.Option(metavar="COLUMN", help="Of PARTS: its value.")] = None,
    rate: Annotated[
        float, typer.Option(metavar="N", help="Rows a second; 0: all at once. [2000]", show_default=False)
    ] = 2000,
    root: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Below which streams may be chosen. [here]", show_default=False)
    ] = Path(),
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Any but loopback needs a token. [127.0.0.1]", show_default=False)
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="0: any that is free. [8710]", show_default=False)] = 8710,
    token: Annotated[
        str | None, typer.Option(metavar="TEXT", envvar="SKYBAND_TOKEN", help="Whoever asks must know it.")
    ] = None,
) -> None:
    """Watch a stream on a live page, and ask it questions.

    Example: skyband serve flights_like
    """
    from skyband.dashboard import serve as serving
    from skyband.query.sql.parser import is_sql, sql

    asked = {}
    for number, text in enumerate(query or ()):
        name, _, sentence = (f"q{number}", "", text) if is_sql(text) else text.partition("=")
        asked[name] = sql(sentence)
    if asked and stream is None:
        raise QueryError("--query asks about a stream: name it, such as: skyband serve flights_like --query ...")
    if rate < 0 or not 0 <= port <= 65535:
        raise QueryError(f"--rate {rate:g} --port {port}: a rate is 0 or more, a port from 0 to 65535.")
    if not root.is_dir():
        raise QueryError(f"--root {root}: there is no such folder.")
    chosen: dict[str, Any] | None = None
    if stream is not None:
        inside = Path(stream)
        if inside.exists() and not (root / stream).exists():  # a path from here rather than from the root
            root, stream = inside.resolve().parent, inside.resolve().name
        chosen = {"stream": stream, "id": id, "time": time, "part": part, "value": value, "keep": keep or []}
        chosen["rate"] = rate or None
    pipe = sys.stdin.buffer if stream == "-" else None
    serving(chosen, asked, root=root, host=host, port=port, token=token, pipe=pipe)


def _datasets(incomplete: str) -> list[tuple[str, str]]:
    from skyband.datasets import describe

    return [(entry.name, entry.about) for entry in describe() if entry.name.startswith(incomplete)]


@app.command()
def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", autocompletion=_datasets, help="Left out: list them all.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=0, metavar="N", help="How many rows (generators: 1000).")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Of a generator; the same seed, the same rows.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="A file ending in .parquet or .csv.")] = None,
) -> None:
    """List the streams to try with, or write one.

    To a file (--out), or as CSV to a pipe; at a terminal its columns are shown.

    Example: skyband datasets flights_like --rows 100000 --out flights.parquet
    """
    if name is not None:
        table = _dataset(name, rows, seed)
        _write(table, out) if out is not None or not sys.stdout.isatty() else _preview(name, table)
    elif rows is not None or seed is not None or out is not None:
        raise QueryError("name the dataset to write, such as: skyband datasets uniform --rows 1000")
    else:
        _list()


def _list() -> None:
    from skyband.datasets import describe

    lines = [
        (
            entry.name,
            "any" if entry.rows is None else entry.rows,
            "yes" if entry.available else "no",
            entry.about,
        )
        for entry in describe()
    ]
    if not sys.stdout.isatty():
        for line in [("name", "rows", "here", "what for"), *lines]:
            typer.echo("\t".join(map(str, line)))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "rows", "here", "what for", box=None, pad_edge=False, header_style="bold")
    table.columns[0].no_wrap = True
    table.columns[1].justify = "right"
    for name, rows, here, about in lines:
        shown = f"{rows:,}" if isinstance(rows, int) else rows
        table.add_row(name, shown, here, about, style=None if here == "yes" else "dim")
    Console(markup=False).print(table)
    if any(here == "no" for _, _, here, _ in lines):
        typer.echo("Not here: set SKYBAND_DATA to the folder that holds the data.", err=True)


def _dataset(name: str, rows: int | None, seed: int | None) -> Any:
    from difflib import get_close_matches

    from skyband import datasets as room

    kinds = {entry.name: entry.kind for entry in room.describe()}
    if name not in kinds:
        near = get_close_matches(name, kinds)
        instead = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(kinds)}."
        raise QueryError(f"{name!r} is not a dataset. {instead}")
    if name == "shuffled":
        raise QueryError("shuffled reorders a table of yours: use it in Python, skyband.datasets.shuffled(table).")
    make = getattr(room, name)
    if kinds[name] == "generator":
        return make(1000 if rows is None else rows, seed=seed or 0)
    if seed is not None:
        raise QueryError(f"{name} is a real stream: --seed means nothing. Leave it out, or use a generator.")
    table = make()
    return table if rows is None else table.slice(0, rows)


def _write(table: Any, out: Path | None) -> None:
    """To a file by its ending, or to stdout as CSV."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    if out is None:
        for start in range(0, max(table.num_rows, 1), 65_536):
            chunk = pa.BufferOutputStream()  # stdout itself would be closed by pyarrow
            csv.write_csv(table.slice(start, 65_536), chunk, csv.WriteOptions(include_header=start == 0))
            typer.echo(chunk.getvalue().to_pybytes(), nl=False)
        return
    writers = {".parquet": parquet.write_table, ".csv": csv.write_csv}
    if out.suffix not in writers:
        raise QueryError(f"--out {out}: the ending says the format. Use a name that ends in .parquet or .csv.")
    if not out.parent.is_dir():
        raise QueryError(f"--out {out}: there is no folder {out.parent}. Make it first.")
    writers[out.suffix](table, out)
    typer.echo(f"{table.num_rows:,} rows written to {out}", err=True)


def _preview(name: str, table: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table("column", "type", "first values", box=None, pad_edge=False, header_style="bold")
    first = table.slice(0, 5)
    for field in table.schema:
        values = (f"{v:.4g}" if isinstance(v, float) else v for v in first[field.name].to_pylist())
        shown.add_row(field.name, str(field.type), ", ".join("null" if v is None else str(v) for v in values))
    Console(markup=False).print(shown)
    typer.echo(f"{table.num_rows:,} rows. To write them: skyband datasets {name} --out {name}.parquet", err=True)


@app.command(context_settings={"ignore_unknown_options": True})
def bench(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="Handed on to benchmarks.run.")
    ] = None,
) -> None:
    """Run the benchmarks of the repository, from its checkout.

    Example: cd skyband && skyband bench
    """
    import subprocess

    if not Path("benchmarks", "run.py").is_file():
        raise QueryError(
            "the benchmarks are not installed, they live in skyband's repository. Clone it, and run "
            "`skyband bench` (or `make bench`) in its folder."
        )
    command = [sys.executable, "-m", "benchmarks.run", *(arguments or ())]
    raise typer.Exit(subprocess.call(command))  # noqa: S603 (our own program; the user's own arguments)
