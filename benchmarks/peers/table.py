"""Stored rows of peers.toml and peers-items.toml as the tables of docs/compare.md, which `make tables` writes."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.peers.chart import checkpoint, per_core_second, per_second
from benchmarks.store import Row

HEAD = ("", "rows", "rows/s", "rows per core-second", "checkpoint", "answers")
PAIRS = (("skyband on Spark", "Flink"), ("skyband embedded", "Flink"), ("skyband embedded", "DuckDB"))


def cells(rows: list[Row]) -> str:
    """A table for each cell: what each contestant did."""
    said = [""]
    for cell in dict.fromkeys(row.cell for row in rows):
        said += ["", f"**{cell}**", "", f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
        said += [_line(row) for row in rows if row.cell == cell]
    return "\n".join(said) + "\n\n"


def compared(rows: list[Row]) -> str:
    """A line for each cell: how many times as fast, by the clock and by processor time."""
    head = [f"{ours} over {theirs} | by core-seconds" for ours, theirs in PAIRS]
    said = ["", "", f"| stream, size/slide | {' | '.join(head)} |", "|---" * 7 + "|"]
    for cell in dict.fromkeys(row.cell for row in rows):
        there = {row.contestant: row for row in rows if row.cell == cell}
        ratios = [_ratio(there, pair, measure) for pair in PAIRS for measure in (per_second, per_core_second)]
        said.append(f"| {cell} | {' | '.join(ratios)} |")
    return "\n".join(said) + "\n\n"


def _ratio(there: dict[str, Row], pair: tuple[str, str], measure: Callable[[Row], float]) -> str:
    if not there.keys() >= set(pair):
        return ""
    ratio = measure(there[pair[0]]) / measure(there[pair[1]])
    return f"{ratio:,.0f} ×" if ratio >= 100 else f"{ratio:.3g} ×"


def _line(row: Row) -> str:
    size = checkpoint(row)
    bytes_said = "" if size is None else f"{size / 1e6:,.2f} MB"
    name = f"**{row.contestant}**" if row.contestant.startswith("skyband") else row.contestant
    figures = f"{row.parameters['rows']:,} | {per_second(row):,.0f} | {per_core_second(row):,.0f}"
    return f"| {name} | {figures} | {bytes_said} | {'right' if row.right else 'WRONG'} |"
