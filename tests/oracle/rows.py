"""Rows and changes in short for the tests of the oracle.

In the timelines a letter is an object, the number after it its score. `brief` writes a change as "at +id" or
"at@time -id"; a star marks `first`.
"""

from __future__ import annotations

from typing import Any

from skyband.oracle import Oracle

Row = dict[str, Any]


def brief(changes: list[Row]) -> list[str]:
    lines = []
    for c in changes:
        time = f"@{c['time']}" if c.get("time") is not None else ""
        label = c["id"] if c.get("id_a") is None else f"{c['id_a']}{c['id_b']}"
        rank = f"#{c['rank']}" if c.get("rank") is not None else ""
        lines.append(f"{c['at']}{time} {'+' if c['diff'] > 0 else '-'}{label}{rank}{'*' if c['first'] else ''}")
    return lines


def objects(text: str, **more: Any) -> list[Row]:
    """'A5 B3' as rows with id and s; 'A5@7' with a time too."""
    rows = []
    for word in text.split():
        name, _, time = word.partition("@")
        row = {"id": name[0], "s": None if name[1:] == "null" else float(name[1:]), **more}
        rows.append(row | {"t": int(time)} if time else row)
    return rows


def ids(oracle: Oracle, name: str | None = None, **smaller: Any) -> list[Any]:
    return [row["id"] for row in oracle.answer(name, **smaller)]
