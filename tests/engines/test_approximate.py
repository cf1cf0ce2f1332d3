"""Approximate engines (PA, ADAPTIVE): exact where they keep all, and independent of cuts."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import (
    APPROXIMATE,
    Taste,
    check,
    cuts,
    examples,
    joined,
    play,
    scenes,
)
from engines.suite import (  # noqa: F401
    ENGINES,
    FAMILY,
    FEW,
    LONG,
    PLAIN,
    SCENES,
    TASTES,
    equal_steps,
    pytest_generate_tests,
    shaped,
    stamped,
)
from skyband import Last, Monitor, TopK


@pytest.mark.parametrize("algorithm", APPROXIMATE)
@examples(60)
@given(data=st.data())
def test_approximate_engines_are_exact_where_they_keep_all(algorithm: str, data: st.DataObject) -> None:
    """In windows of so few objects PA's limit leaves no object out, and ADAPTIVE lets BLOCK answer."""
    taste = dataclasses.replace(Taste(), timed=(False,), per=(None,), edits=False)
    play(data.draw(scenes(algorithm, taste)))


@pytest.mark.parametrize("emit", ["arrival", "batch"])
@pytest.mark.parametrize("algorithm", APPROXIMATE)
def test_approximate_engines_do_not_see_cuts(algorithm: str, emit: Any) -> None:
    """Whatever PA misses, it misses it however the stream is cut; the waves make it miss, and ADAPTIVE switch."""
    rng = np.random.default_rng(4)
    scores = np.concatenate([shaped("random", 4000, rng), shaped("waves", 2000, rng), shaped("random", 6000, rng)])
    query = TopK(4, by="x", window=Last(600), algorithm=algorithm)
    whole, parts = Monitor(query, emit=emit), Monitor(query, emit=emit)
    pieces = []
    for i, j in itertools.pairwise(cuts(len(scores), rng, 300)):
        pieces.append(parts.push({"x": scores[i:j]}))
        check(parts)
        parts = Monitor.restore(parts.snapshot(), trusted=False)
    once = whole.push({"x": scores})
    assert parts.answer().equals(whole.answer())
    if emit == "arrival":
        assert joined(pieces).to_pylist() == once.to_pylist()
        exact = Monitor(dataclasses.replace(query, algorithm="SA")).push({"x": scores})
        assert (once.to_pylist() == exact.to_pylist()) == (algorithm == "ADAPTIVE")
