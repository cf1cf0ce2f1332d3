"""The register of valid rows, where what was validated is forgotten again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skyband.engines.incomplete import register as module
from skyband.engines.incomplete.kernels.register import undo
from skyband.engines.incomplete.register import Register


def validate(register: Register, names: list[int]) -> Any:
    """One group and one part, an object for each row."""
    size = len(names)
    nothing, every = np.zeros(size, np.int64), np.ones(size, np.bool_)
    counts = np.array([register.size])
    return register.validate(
        np.array(names), nothing, nothing, np.arange(size), None, None, counts, limit=1, brings=every
    )


@pytest.mark.parametrize("rows", [10, 1000])  # within the log, and beyond its end
@pytest.mark.parametrize("late", [False, True])
def test_what_fails_to_be_forgotten_is_forgotten_later(rows: int, late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines stayed linked to themselves: the next batch could be searched for ever."""
    register = Register(10_000, timed=False)
    validate(register, list(range(20)))
    register.keep()
    heads = register.log.heads.copy()
    validate(register, list(range(100, 100 + rows)))

    def fail(*args: Any) -> None:
        """Before it has begun, or after its end."""
        if late:
            undo(*args)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(module, "undo", fail)
        with pytest.raises(MemoryError):
            register.undo()
    register.undo()
    assert register.size == 20
    assert (register.log.heads == heads).all()
    assert validate(register, [5, 100]).tolist() == [True, False]
