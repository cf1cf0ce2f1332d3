"""Groups and their codes, where a batch that brings more of them is not taken."""

from __future__ import annotations

import pyarrow as pa
import pytest

from skyband.kernels import routing
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
