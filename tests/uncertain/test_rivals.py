"""The ring of valid alternatives, where a batch that is validated needs another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skyband.engines.uncertain import rivals as module
from skyband.engines.uncertain.rivals import Rivals


def validate(rivals: Rivals, names: list[int], probability: float) -> Any:
    """Rows of one group."""
    size = len(names)
    one, every = np.zeros(size, np.int64), np.ones(size, np.bool_)
    p = np.full(size, probability)
    return rivals.validate(np.array(names), every, p, one, np.arange(size), None, None, np.zeros(1, np.int64), 1)


def test_no_line_is_lost_where_there_is_no_memory_for_another_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would be wrong with the Monitor, and alternatives would pass 1."""
    rivals = Rivals(1000, timed=False)
    validate(rivals, [1, 2, 3], 0.75)
    rivals.keep()
    before = rivals.lines.copy()

    def fail(*args: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(module, "LAST", 4)  # the numbers of lines end: they begin anew
    with monkeypatch.context() as patch:
        patch.setattr(module, "copy_lines", fail)
        with pytest.raises(MemoryError):
            validate(rivals, [4, 5], 0.5)
    assert (rivals.lines == before).all()
    assert validate(rivals, [4, 2], 0.5).tolist() == [False, True]
