"""Counts of changes tried, lost, doubled and wrong, printed as a table: `python -m faults.ledger FILE`."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engines.streams import line

#: Kills of each kind: two in `make test`, 50 in `make faults`.
ROUNDS = int(os.environ.get("SKYBAND_ROUNDS", "2"))


def compare(what: str, rounds: int, found: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]]) -> None:
    """Lost, doubled and wrong changes; all must be none. Noted in the file that SKYBAND_LEDGER names."""
    got, wanted = Counter(map(line, found)), Counter(map(line, expected))
    surplus = got - wanted
    entry = {
        "what": what,
        "rounds": rounds,
        "changes": wanted.total(),
        "lost": (wanted - got).total(),
        "doubled": sum(count for text, count in surplus.items() if text in wanted),
        "wrong": sum(count for text, count in surplus.items() if text not in wanted),
    }
    note(entry)
    shown = [f"lost {text}" for text in wanted - got] + [f"surplus {text}" for text in surplus]
    assert (entry["lost"], entry["doubled"], entry["wrong"]) == (0, 0, 0), "\n".join([f"{entry}", *shown[:10]])


def note(entry: dict[str, Any]) -> None:
    if (file := os.environ.get("SKYBAND_LEDGER")) is not None:
        with Path(file).open("a") as ledger:
            ledger.write(json.dumps(entry) + "\n")


def table(file: Path) -> str:
    entries = [row for row in map(json.loads, file.read_text().splitlines()) if "what" in row]
    columns = ("what", "rounds", "changes", "lost", "doubled", "wrong")
    lines = ["| " + " | ".join(columns) + " |", "|---|" + "---:|" * (len(columns) - 1)]
    lines += ["| " + " | ".join(f"{row[c]:,}" if c != "what" else row[c] for c in columns) + " |" for row in entries]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
