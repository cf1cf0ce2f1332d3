"""The tables at the end of `make faults`: every sort of entry that a test notes, added up by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.ledger import compare, note, tables


def test_every_sort_of_entry_has_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYBAND_LEDGER", str(tmp_path / "ledger"))
    compare("kill -9: topk", 2, [{"diff": 1}], [{"diff": 1}])
    note({"lines of calls": "topk", "untouched": 3, "broken": 1})
    note({"lines of calls": "topk", "untouched": 4, "done": 2})
    note({"lines of calls": "above", "done": 1})
    note({"recovery": [0.5, 0.25]})
    killed, lines = tables((tmp_path / "ledger").read_text()).split("\n\n")
    assert killed.splitlines()[-1] == "| kill -9: topk | 2 | 1 | 0 | 0 | 0 |"
    assert lines.splitlines() == [
        "| lines of calls | untouched | broken | done |",
        "|---|---:|---:|---:|",
        "| topk | 7 | 1 | 2 |",
        "| above | 0 | 0 | 1 |",
        "| all | 7 | 1 | 3 |",
    ]
