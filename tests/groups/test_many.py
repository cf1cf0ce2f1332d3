"""Many objects: what kernels do only then."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb


@pytest.mark.parametrize("by", ["sum(x)", "max(x)"])
def test_more_objects_than_a_cache_holds(by: str) -> None:
    """Kernels look ahead then, and objects go and come back under codes that were given back."""
    rng = np.random.default_rng(24)
    size, span = 30_000, 9_000
    owners, numbers = rng.integers(0, 12_000, size), rng.integers(-50, 50, size)
    table = pa.table({"t": np.arange(size), "o": owners, "x": numbers})
    m = sb.Monitor(sb.TopKGroups(5, by=by, window=sb.Last(span=span), of="o"), time="t")
    for begin in range(0, size, 2_500):
        m.push(table.slice(begin, 2_500))
        end = begin + 2_500
        valid: dict[int, list[int]] = {}
        for row in range(max(end - span, 0), end):
            valid.setdefault(int(owners[row]), []).append(row)
        score = sum if by.startswith("sum") else max
        ranks = [(score(int(numbers[row]) for row in held), held[-1], owner) for owner, held in valid.items()]
        best = sorted(ranks, reverse=True)[:5]
        answer = m.answer().to_pydict()
        assert list(zip(answer["score"], answer["id"], strict=True)) == [(float(s), o) for s, _, o in best]
