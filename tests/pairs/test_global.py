"""Every monotone combination of `Global`, by every engine: against the oracle, on streams full of ties."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import skyband as sb
from engines.streams import INTEGERS, Scene, cells, row, same_rows
from skyband.engines.pairs.base import Pairs
from skyband.oracle import Oracle

COMBINES = ("sum", "product", "max", "euclidean", "manhattan")
LOCAL: list[dict[str, str]] = [
    {"x": "absdiff", "y": "absdiff"},
    {"x": "sum", "y": "absdiff"},
    {"x": "sum", "y": "sum"},
]
WEIGHTS: list[dict[str, float]] = [{}, {"x": 2.0, "y": 0.5}, {"x": -1.0, "y": 3.0}, {"x": -0.5, "y": -2.0}]
TRANSFORMS: list[dict[str, str]] = [{}, {"y": "abs(y - 3)"}]


def scorings(combine: str) -> Iterator[Any]:
    for local, weights, transform in product(LOCAL, WEIGHTS, TRANSFORMS):
        if weights and transform:
            continue
        try:
            yield sb.Global(local, combine=combine, weights=weights or None, transform=transform or None)  # type: ignore[arg-type]
        except sb.QueryError:  # distances of points take no sums, and no weights below 0
            assert combine in ("euclidean", "manhattan")


@pytest.fixture(autouse=True)
def small_blocks() -> Iterator[None]:
    """Let TA sort blocks of a few objects, and read them instead of giving up."""
    before, Pairs.least_block = Pairs.least_block, 8
    yield
    Pairs.least_block = before


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("combine", COMBINES)
def test_every_combination_is_monotone_for_ta(combine: str, largest: bool) -> None:
    """Few distinct values, so that scores tie; then values far apart, of which the lists leave most unread.

    TA and SCASE give the same changes; the answers of all windows that end with a push are the oracle's.
    """
    rng = np.random.default_rng(3)
    tied = [row(i=str(n), x=float(rng.integers(-3, 4)), y=int(rng.integers(0, 5))) for n in range(36)]
    apart = [row(i=str(36 + n), x=float(rng.normal(0, 50)), y=int(rng.integers(0, 400))) for n in range(60)]
    bys, n = list(enumerate(scorings(combine))), 24
    assert bys
    queries = {
        name: {str(i): sb.TopKPairs(3, by, sb.Last(n), largest=largest, algorithm=name) for i, by in bys}
        for name in ("TA", "SCASE")
    }
    ta, scase = (sb.Monitor(some, id="i", emit="batch") for some in queries.values())
    scene, rows = Scene(queries["TA"], [], {"id": "i"}, INTEGERS), tied + apart
    for begin in range(0, len(rows), 12):
        part = scene.table(rows[begin : begin + 12])
        assert ta.push(part).equals(scase.push(part)), f"from {begin}"
        if begin in (24, 84):  # the window has ties alone; it has none
            oracle = Oracle(queries["TA"], id="i", emit="batch")
            oracle.push(rows[begin + 12 - n : begin + 12])
            for name in queries["TA"]:
                same_rows(cells(ta.answer(name)), oracle.answer(name), f"{name} from {begin}")
