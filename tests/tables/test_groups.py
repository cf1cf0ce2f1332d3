"""Groups and their codes, where a batch that brings more of them is not taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.errors import BatchError
from skyband.kernels import routing
from skyband.tables.columns import Column
from skyband.tables.groups import Groups


def test_groups_stay_known_where_there_is_no_larger_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table was larger and empty: every group would have been a new one in the next batch."""
    groups = Groups(("g",))
    groups.codes([pa.array(range(20))], 20)
    mark = groups.mark()

    def fail(*args: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(routing, "reindex", fail)
        with pytest.raises(MemoryError):
            groups.codes([pa.array(range(100, 200))], 100)
    groups.revert(mark)
    assert groups.codes([pa.array([5, 3, 150])], 3).tolist() == [5, 3, 20]
    assert groups.total == 21


@pytest.mark.parametrize("fails", [1, 2])
@pytest.mark.parametrize("type_", [pa.int64(), pa.string(), pa.null()])
def test_a_column_stays_as_it_was_where_it_cannot_grow(type_: Any, fails: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its values were those of memory that nothing had been written into, or none."""
    column = Column(type_)
    kept = pa.array([None] * 16 if pa.types.is_null(type_) else range(16)).cast(type_)
    column.append(kept)
    made, empty = [0], np.empty

    def fail(*args: Any) -> Any:
        made[0] += 1
        if made[0] == fails:
            raise MemoryError
        return empty(*args)

    with monkeypatch.context() as patch:
        patch.setattr(np, "empty", fail)
        with pytest.raises(MemoryError):
            column.append(pa.array(range(100)).cast(pa.int64() if pa.types.is_null(type_) else type_))
    assert len(column) == 16
    assert column.all().cast(type_) == kept


def test_the_type_of_a_group_is_that_of_batches_that_were_taken() -> None:
    """A refused batch of strings had made a group of null one of strings, and numbers broke the Monitor."""
    monitor = sb.Monitor(sb.TopK(1, "x", sb.Last(9), per="g"), invalid="raise")
    monitor.push({"x": [1.0], "g": pa.nulls(1)})
    before = monitor.snapshot()
    with pytest.raises(BatchError):
        monitor.push({"x": [2.0, None], "g": ["a", "b"]})
    assert monitor.snapshot() == before
    monitor.push({"x": [3.0], "g": [7]})
    assert monitor.answer().select(["g", "score"]).to_pylist() == [{"g": None, "score": 1.0}, {"g": 7, "score": 3.0}]
