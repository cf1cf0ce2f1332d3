"""Counts of what was tried and what came of it, printed as tables: `python -m faults.ledger FILE`."""

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


def tables(text: str) -> str:
    """A table for each sort of entries, which their first key names; entries of one name are added up."""
    sums: dict[str, dict[str, Counter[str]]] = {}
    for entry in map(json.loads, text.splitlines()):
        sort, name = next(iter(entry.items()))
        if isinstance(name, str):
            counts = sums.setdefault(sort, {}).setdefault(name, Counter())
            counts.update({key: value for key, value in entry.items() if isinstance(value, int)})
    return "\n\n".join(_table(sort, rows) for sort, rows in sums.items())


def _table(sort: str, rows: Mapping[str, Counter[str]]) -> str:
    columns = list(dict.fromkeys(key for counts in rows.values() for key in counts))
    lines = [f"| {' | '.join([sort, *columns])} |", "|---|" + "---:|" * len(columns)]
    lines += [f"| {' | '.join([name, *(f'{counts[key]:,}' for key in columns)])} |" for name, counts in rows.items()]
    if len(rows) > 1:
        whole = [f"{sum(counts[key] for counts in rows.values()):,}" for key in columns]
        lines.append(f"| {' | '.join(['all', *whole])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(tables(Path(sys.argv[1]).read_text()))
