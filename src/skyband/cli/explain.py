"""`skyband explain`: how a query would be answered, and what it costs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from skyband.errors import QueryError


def _algorithms(incomplete: str) -> list[str]:
    from skyband.query.algorithms import names

    return [name for name in ("auto", *names("TopK")) if name.upper().startswith(incomplete.upper())]


def explain(
    file: Annotated[
        str | None,
        typer.Argument(metavar="SQL|FILE", help="A query in SQL, or a file of SQL or JSON (-: stdin)."),
    ] = None,
    *,
    k: Annotated[int | None, typer.Option("--k", "-k", metavar="N", help="Size of the answer.")] = None,
    by: Annotated[str | None, typer.Option(metavar="EXPR", help="A column or an expression to rank by.")] = None,
    window: Annotated[str | None, typer.Option(metavar="SIZE", help='Arrivals (1000) or time ("24 hours").')] = None,
    per: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="One answer per value; may be repeated."),
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="EXPR", help="Which rows can be an answer.")] = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain how a query would be answered, and its cost.

    Example: skyband explain "SELECT * FROM s ORDER BY x LIMIT 3 WINDOW 60 ROWS"
    """
    from skyband.explain import explain as explain_query

    options: dict[str, Any] = {"k": k, "by": by, "where": where, "algorithm": algorithm, "per": per or None}
    options["largest"] = False if smallest else None
    if window is not None:
        options["window"] = {"last": int(window) if window.strip().isdecimal() else window}
    given = {name: value for name, value in options.items() if value is not None}
    query = _query(file, given)
    expected = {"rows": rows, "rate": rate, "groups": groups, "keys": keys, "queries": queries}
    found = explain_query(query, **{name: number for name, number in expected.items() if number is not None})
    typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))


def _query(source: str | None, given: dict[str, Any]) -> Any:
    """The query of an SQL text or a file, or the TopK of the options."""
    from skyband.query.kinds import Query, TopK
    from skyband.query.sql.parser import sql
    from skyband.query.sql.text import is_sql

    if source is None:
        if missing := [f"--{name}" for name in ("k", "by", "window") if name not in given]:
            raise QueryError(
                f"explain needs {', '.join(missing)}, or a query in SQL. For example: "
                "skyband explain --k 10 --by delay --window 1000"
            )
        return TopK.from_dict({"kind": "TopK", **given})
    if given:
        twice = ", ".join(f"--{name}" for name in given).replace("--largest", "--smallest")
        what = "the SQL" if is_sql(source) else source
        raise QueryError(f"{what} holds the whole query: leave out {twice}, or it.")
    if is_sql(source):
        return _asked(sql(source))
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
        return _asked(sql(text)) if is_sql(text) else Query.from_dict(json.loads(text))
    except OSError as error:
        raise QueryError(
            f"{source}: {error.strerror}. Give a query in SQL, or the path of a query stored as JSON."
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise QueryError(
            f"{source} is not JSON ({error}), nor SQL. A query is stored by json.dumps(query.to_dict())."
        ) from None


def _asked(found: Any) -> Any:
    """The innermost question of a sentence, which is the one over rows."""
    return next(iter(found.values())) if isinstance(found, dict) else found
