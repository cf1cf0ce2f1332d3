"""Rows, queries and changes in a short notation, for tests that follow a timeline.

In the timelines a letter is an object and the number after it its score; `reported` writes a change as "at +id" or
"at@time -id", a star marks `first`.
"""

from __future__ import annotations

from typing import Any

import skyband as sb

Row = dict[str, Any]


def objects(text: str, **more: Any) -> list[Row]:
    """'A5 B3' as rows with id and x; 'A5@7' with a time too; 'xA5' in group x."""
    rows = []
    for word in text.split():
        name, _, time = word.partition("@")
        group = name[0] if name[0].islower() else None
        name = name[1:] if group else name
        row: Row = {"id": name[0], "x": None if name[1:] == "null" else float(name[1:]), **more}
        row |= {"g": group} if group else {}
        rows.append(row | {"t": int(time)} if time else row)
    return rows


def reported(changes: Any) -> list[str]:
    """The changes as lines, in the order reported."""
    lines = []
    for row in changes.to_pylist():
        time = f"@{row['time']}" if row.get("time") is not None else ""
        group = row.get("g") or ""
        lines.append(
            f"{row['at']}{time} {'+' if row['diff'] > 0 else '-'}{group}{row['id']}{'*' if row['first'] else ''}"
        )
    return lines


def ids(monitor: sb.Monitor, name: str | None = None, **options: Any) -> list[Any]:
    listed: list[Any] = monitor.answer(name, **options).column("id").to_pylist()
    return listed


def counting(k: int, n: int, **other: Any) -> sb.TopK:
    return sb.TopK(k, by="x", window=sb.Last(n), **other)


def lasting(k: int, span: int, **other: Any) -> sb.TopK:
    return sb.TopK(k, by="x", window=sb.Last(span=span), **other)
