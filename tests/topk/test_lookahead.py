"""The look-ahead by itself: what it marks is exactly what Theorems 3.7 and 5.1 of pripuzic2015 allow in a block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import examples
from skyband.engines.topk.kernels.lookahead import STRIDE, find_hopeful, mark_hopeless
from skyband.kernels.records import ARRIVAL, VISIT


def hopeless(group: Any, K: int, reach: int, net: bool) -> list[bool]:
    """By definition: at least K older ones rank above it, and at least K newer ones dominate it, in one block.

    A block begins where the last one ended and is shorter than the shortest window; the late are no part of it.
    For the net change of a batch the newer ones are enough, wherever they are in it.
    """
    marks = [False] * len(group)
    begin = 0
    while begin < len(group):
        end = begin
        while end < len(group) and (net or group["now"][end] - group["now"][begin] < reach):
            end += 1
        block = [i for i in range(begin, end) if group["stamp"][i] == group["now"][i]]
        for i in block:
            above = sum(j < i and group["key"][j] > group["key"][i] for j in block)
            dominators = sum(j > i and group["key"][j] >= group["key"][i] for j in block)
            marks[i] = (net or above >= K) and dominators >= K
        begin = end
    return marks


@examples(200)
@given(
    sizes=st.lists(st.integers(0, 25), min_size=1, max_size=3),
    K=st.integers(1, 4),
    reach=st.integers(1, 30),
    net=st.booleans(),
    data=st.data(),
)
def test_marks_are_exactly_the_hopeless(sizes: list[int], K: int, reach: int, net: bool, data: st.DataObject) -> None:
    total = sum(sizes)
    row = st.tuples(st.integers(0, 4), st.sampled_from([0, 1, 1, 2]), st.sampled_from([0, 0, 0, 3]))
    drawn = data.draw(st.lists(row, min_size=total, max_size=total))
    arrivals, visits = np.zeros(total, ARRIVAL), np.zeros(len(sizes), VISIT)
    ends = np.cumsum(sizes)
    visits["begin"], visits["end"] = ends - sizes, ends
    expected = []
    for begin, end in zip(visits["begin"], visits["end"], strict=True):
        rows = drawn[begin:end]
        arrivals["key"][begin:end] = [key for key, _, _ in rows]
        arrivals["now"][begin:end] = np.cumsum([step for _, step, _ in rows])
        arrivals["stamp"][begin:end] = arrivals["now"][begin:end] - [late for _, _, late in rows]
        expected += hopeless(arrivals[begin:end], K, reach, net)
    marks = np.zeros(total, np.bool_)
    mark_hopeless(arrivals, visits, K, reach, net, marks)
    assert marks.tolist() == expected


@examples(200)
@given(size=st.integers(0, 25), K=st.integers(1, 4), reach=st.integers(1, 30), net=st.booleans(), data=st.data())
def test_lists_exactly_the_others(size: int, K: int, reach: int, net: bool, data: st.DataObject) -> None:
    row = st.tuples(st.integers(0, 4), st.sampled_from([0, 1, 1, 2]))
    drawn = data.draw(st.lists(row, min_size=size, max_size=size))
    arrivals = np.zeros(size, ARRIVAL)
    arrivals["key"] = [key for key, _ in drawn]
    by_place = data.draw(st.booleans())
    arrivals["now"] = arrivals["stamp"] = np.arange(size) if by_place else np.cumsum([step for _, step in drawn])
    now = np.empty(0, np.int64) if by_place else arrivals["now"].copy()
    found = find_hopeful(arrivals["key"].copy(), now, K, reach, net)
    assert found.tolist() == np.flatnonzero(~np.array(hopeless(arrivals, K, reach, net), np.bool_)).tolist()


@pytest.mark.parametrize("net", [False, True])
@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal", "few"])
def test_lists_what_is_not_passed_in_strides(order: str, net: bool) -> None:
    """As the marks say, over several strides and blocks."""
    draw, size = np.random.default_rng(3), 5 * STRIDE + 7
    for reach in (size, 2 * STRIDE + 1, STRIDE, 10**6):
        keys = {"random": draw.random(size), "rising": np.arange(size) / 3, "falling": -np.arange(size) / 3}.get(
            order, draw.integers(0, 1 if order == "equal" else 30, size).astype(float)
        )
        arrivals, visits, marks = np.zeros(size, ARRIVAL), np.zeros(1, VISIT), np.zeros(size, np.bool_)
        arrivals["key"], visits["end"] = keys, size
        arrivals["now"] = arrivals["stamp"] = np.arange(size)
        mark_hopeless(arrivals, visits, 5, reach, net, marks)
        assert find_hopeful(keys, np.empty(0, np.int64), 5, reach, net).tolist() == np.flatnonzero(~marks).tolist()
        assert marks.any() or order in ("rising", "falling", "equal")
