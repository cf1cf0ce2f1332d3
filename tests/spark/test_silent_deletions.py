"""Objects that stay until they are deleted, and `forget=`: silent groups go with what they hold, for any cut."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import Row, examples, same_rows
from skyband import Last, TopK
from spark.shards import Shards
from spark.test_deletions import ALIVE, Stream, rows, streams, told


def test_groups_that_are_silent_are_forgotten_with_their_objects() -> None:
    query = {
        "q": TopK(1, by="x", window=ALIVE, per="g"),
        "last": TopK(1, by="x", window=Last(9), per="g", algorithm="TMA"),
    }
    shards = Shards(query, {"id": "i", "time": "t", "op": "op"}, 2, forget=10)
    shards.trigger([rows((0, "insert", "p", 1.0, 1), (1, "insert", "q", 2.0, 2), (2, "insert", "o", 0.0, 1))])
    assert told(shards.trigger([rows((9, "delete", "p", None, 1))])) == ["9 1 +o", "9 1 -p"]
    assert told(shards.trigger([rows((13, "insert", "r", 3.0, 3))])) == [
        *("11 2 -q", "11 2 -q"),  # of both queries
        *("12 1 -o", "12 1 -p"),  # the deletion was no sign of life
        *("13 3 +r", "13 3 +r"),
    ]
    assert sum(one.totals()["objects"] for one in shards.shards_now()) == 2


@examples(15)
@given(streams(emit=("arrival",), lateness=(0,)), st.integers(1, 6))
def test_what_is_forgotten_does_not_depend_on_cuts(stream: Stream, forget: int) -> None:
    whole = [pa.concat_tables([part for trigger in stream.triggers for part in trigger]).sort_by("n")]
    told: list[list[Row]] = []
    for triggers in (stream.triggers, [whole]):
        shards = Shards(stream.queries, stream.options, stream.shards, order=("n",), sizes=stream.sizes, forget=forget)
        told.append([row for trigger in triggers for row in shards.trigger(trigger)])
    same_rows(told[0], told[1], "in many triggers and in one")


@pytest.mark.parametrize("size", [1, 5])
def test_a_deletion_tells_its_own_clock_when_others_are_forgotten(size: int) -> None:
    """In one trigger, group 2 is forgotten between its rows, and these come in rounds: none sees the other's clock."""
    shards = Shards({"q": TopK(1, by="x", window=ALIVE, per="g")}, {"id": "i", "time": "t", "op": "op"}, 1, forget=10)
    made = [(0, "insert", "p", 1.0, 2), (20, "insert", "q", 1.0, 2), (23, "delete", "q", None, 2)]
    made += [(29, "insert", "r", 0.0, 1), (30, "insert", "s", 1.0, 2)]
    triggers = [made[begin : begin + size] for begin in range(0, 5, size)]
    changes = [row for trigger in triggers for row in shards.trigger([rows(*trigger)])]
    assert told(changes) == ["0 2 +p", "10 2 -p", "20 2 +q", "23 2 -q", "29 1 +r", "30 2 +s"]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_deletion_is_no_sign_of_life(size: int) -> None:
    shards = Shards({"q": TopK(1, by="x", window=ALIVE, per="g")}, {"id": "i", "time": "t", "op": "op"}, 1, forget=10)
    made = [(0, "insert", "p", 1.0, 1), (9, "delete", "q", None, 1), (13, "insert", "r", 0.0, 1)]
    triggers = [made[begin : begin + size] for begin in range(0, 3, size)]
    changes = [row for trigger in triggers for row in shards.trigger([rows(*trigger)])]
    assert told(changes) == ["0 1 +p", "10 1 -p", "13 1 +r"]
