"""Stored rows of the experiments of peers as the tables of docs/compare.md, which `make tables` writes."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.claims.values import said as rounded
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


def frames(rows: list[Row]) -> str:
    """peers-frames.toml: rows per second, a line for each cell."""
    return _crossed("stream, size/slide", rows, lambda row: f"{per_second(row):,.0f}", by_cell=True)


def latency(rows: list[Row]) -> str:
    """peers-latency.toml: the middle and the slowest of a hundred steps, in ms; a line for each contestant."""

    def said(row: Row) -> str:
        p50, p99 = (1e3 * statistics.median(row.counters[name]) for name in ("p50", "p99"))
        return f"{rounded(p50)}, {rounded(p99)} ms"

    return _crossed("p50, p99", rows, said, by_cell=False)


def late(rows: list[Row]) -> str:
    """peers-late.toml: what is wrong with the answers of windows, for each contestant."""
    head = "| | answers | of these lack a row that came late | not given |\n|---|---|---|---|"
    names = ("answers", "apart", "absent")
    lines = [[f"{statistics.median(row.counters[name]):,.0f}" for name in names] for row in rows]
    body = [f"| {_name(row)} | {' | '.join(line)} |" for row, line in zip(rows, lines, strict=True)]
    return "\n".join(["", "", head, *body]) + "\n\n"


def _crossed(corner: str, rows: list[Row], said: Callable[[Row], str], *, by_cell: bool) -> str:
    """Cells and contestants as lines and columns, or the other way round."""
    cells, names = list(dict.fromkeys(row.cell for row in rows)), list(dict.fromkeys(map(_name, rows)))
    found = {(row.cell, _name(row)): said(row) for row in rows}
    lines, columns = (cells, names) if by_cell else (names, cells)
    table = ["", "", f"| {corner} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for line in lines:
        places = [found.get((line, column) if by_cell else (column, line), "") for column in columns]
        table.append(f"| {line} | {' | '.join(places)} |")
    return "\n".join(table) + "\n\n"


def _name(row: Row) -> str:
    return f"**{row.contestant}**" if row.contestant.startswith("skyband") else row.contestant


def _ratio(there: dict[str, Row], pair: tuple[str, str], measure: Callable[[Row], float]) -> str:
    if not there.keys() >= set(pair):
        return ""
    ratio = measure(there[pair[0]]) / measure(there[pair[1]])
    return f"{ratio:,.0f} ×" if ratio >= 100 else f"{ratio:.3g} ×"


def _line(row: Row) -> str:
    size = checkpoint(row)
    bytes_said = "" if size is None else f"{size / 1e6:,.2f} MB"
    figures = f"{row.parameters['rows']:,} | {per_second(row):,.0f} | {per_core_second(row):,.0f}"
    return f"| {_name(row)} | {figures} | {bytes_said} | {'right' if row.right else 'WRONG'} |"
