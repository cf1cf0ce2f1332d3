"""Queries and Monitors in a notebook: HTML without scripts, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from skyband.errors import QueryError
from skyband.query.sql.text import CLAUSES
from skyband.query.sql.writer import sentence

_ROWS = 10  # of an answer
_QUERIES = 5  # with their answers
_CELL = "padding:.15em .8em .15em 0;text-align:left;border-bottom:1px solid rgba(128,128,128,.3)"


def query_html(query: Any) -> str:
    """The query as a sentence in SQL, its clauses in bold."""
    try:
        text = sentence(query)
    except QueryError:  # a Python function
        return f"<code>{escape(repr(query))}</code>"
    return f'<code title="{escape(repr(query), quote=True)}">{_bold(text)}</code>'


def _bold(text: str) -> str:
    words = escape(text, quote=False).split(" ")
    return " ".join(f"<b>{word}</b>" if word in _KEYWORDS else word for word in words)


_KEYWORDS = {
    *CLAUSES,
    "AS",
    "ASC",
    "DESC",
    "ROWS",
    "SPAN",
    "EVER",
    "DECAY",
    "DELETED",
    "PROBABILITY",
    "METRIC",
    "WEIGHTS",
    "TO",
}


def monitor_html(monitor: Any) -> str:
    """The queries, what is kept for each, and the current answers."""
    stats, queries = monitor.stats(), monitor.queries
    rejected = sum(stats["rejected"].values())
    head = (
        f"<p><b>Monitor</b>: {_many(len(queries), 'query', 'queries')}, {stats['arrivals']:,} arrivals, "
        f"{stats['late']:,} late, {rejected:,} rejected</p>"
    )
    own = stats["queries"]
    table = _table(
        ("query", "question", "algorithm", "objects kept", "arrivals"),
        (
            (escape(name), query_html(query), own[name]["algorithm"], *_numbers(own[name]))
            for name, query in list(queries.items())[:50]
        ),
    )
    parts = [head, table if queries else "<p>No query is standing: add one by monitor.add(name, query).</p>"]
    if not stats["arrivals"]:
        return "".join(parts)
    parts += [f"<p><b>{escape(name)}</b> now</p>{_answer(monitor.answer(name))}" for name in list(queries)[:_QUERIES]]
    if (more := len(queries) - _QUERIES) > 0:
        parts.append(f"<p>and {_many(more, 'more answer', 'more answers')}: monitor.answer(name)</p>")
    return "".join(parts)


def _numbers(own: dict[str, Any]) -> tuple[str, str]:
    return f"{own['objects']:,}", f"{own['arrivals']:,}"


def _many(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _answer(answer: Any) -> str:
    if not answer.num_rows:
        return "<p>empty</p>"
    rows = answer.slice(0, _ROWS).to_pylist()
    more = answer.num_rows - len(rows)
    shown = _table(answer.column_names, ([escape(_said(value)) for value in row.values()] for row in rows))
    return shown + (f"<p>and {more:,} more</p>" if more else "")


def _said(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in head)
    body = "".join("<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row) + "</tr>" for row in rows)
    return f'<table style="border-collapse:collapse"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
