"""python -m benchmarks.peers.table: stored rows of peers.toml and peers-items.toml as the tables of docs/compare.md."""

from __future__ import annotations

import sys

from benchmarks import store
from benchmarks.peers.chart import checkpoint, per_core_second, per_second

HEAD = ("", "rows", "rows/s", "rows per core-second", "checkpoint", "answers")


def main() -> int:
    rows = [row for name in ("peers", "peers-items") for row in store.read(name)]
    for cell in dict.fromkeys(row.cell for row in rows):
        print(f"\n**{cell}**\n\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
        for row in rows:
            if row.cell != cell:
                continue
            size = checkpoint(row)
            said = "" if size is None else f"{size / 1e6:,.2f} MB"
            right = "right" if row.right else "WRONG"
            figures = f"{row.parameters['rows']:,} | {per_second(row):,.0f} | {per_core_second(row):,.0f}"
            print(f"| {row.contestant} | {figures} | {said} | {right} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
