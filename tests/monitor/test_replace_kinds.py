"""A query replaced by one of another kind: it starts empty, and its old answer is retracted."""

from __future__ import annotations

import pytest

import skyband as sb
from kinds import KINDS, stream


@pytest.mark.parametrize("new", KINDS)
@pytest.mark.parametrize("old", KINDS)
def test_replace_by_any_kind(old: str, new: str) -> None:
    before = {name: query for name, query in KINDS[old].queries.items() if name.endswith("counted")}
    (after,) = (query for name, query in KINDS[new].queries.items() if name.endswith("counted"))
    monitor, (name,) = sb.Monitor(before, id="who", time="t"), before
    monitor.push(stream(100))
    answer = monitor.answer(name).num_rows
    if before[name] == after:
        return
    changes = monitor.replace(name, after)
    assert changes.num_rows == answer and set(changes["diff"].to_pylist()) <= {-1}
    assert monitor.answer(name).num_rows == 0
    monitor.push(stream(50, start=100))
    expected = sb.Monitor({name: after}, id="who", time="t")
    expected.push(stream(50, start=100))
    assert monitor.answer(name)["score"].equals(expected.answer(name)["score"])
