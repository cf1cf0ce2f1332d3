"""`skyband.kafka`: what comes twice is told once. No broker, no Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import examples
from skyband.errors import BatchError
from skyband.kafka import Reader, change_of, current


@dataclass(frozen=True)
class Message:
    topic: str
    partition: int
    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]]


def message(key: str, diff: int, place: str, partition: int = 0, **more: Any) -> Message:
    change = {"at": None, "time": "t", "score": 1.5, "diff": diff, "first": False, **more}
    named = json.dumps({"query": "q", "group": {"g": "x"}, "id": key, "rank": None})
    value = json.dumps({"query": "q", "g": "x", "id": key, **change}).encode() if diff > 0 else None
    headers = [("trigger", place.encode()), ("change", json.dumps(change).encode())]
    return Message("out", partition, named.encode(), value, headers)


@examples(100)
@given(st.data())
def test_attempts_that_are_cut_short_and_come_again(data: st.DataObject) -> None:
    """Triggers of changes to a few keys, each written some times, whole at last; readers come and go."""
    whole: list[Message] = []
    written: list[Message] = []
    for batch in range(data.draw(st.integers(1, 4))):
        keys = data.draw(st.lists(st.sampled_from("abc"), max_size=6))
        trigger = [
            message(key, data.draw(st.sampled_from([1, -1])), f"run {batch} {row}", partition=ord(key) % 2)
            for row, key in enumerate(keys)
        ]
        for _ in range(data.draw(st.integers(0, 2))):
            written += trigger[: data.draw(st.integers(0, len(trigger)))]
        written += trigger
        whole += trigger
    stop = data.draw(st.integers(0, len(written)))
    first = Reader()
    found = list(first.changes(written[:stop]))
    second = Reader(json.loads(json.dumps(first.state)))
    found += second.changes(written[stop:])
    assert found == [change_of(one) for one in whole]
    one, other = (sorted(current(messages), key=lambda row: row["id"]) for messages in (written, whole))
    assert one == other  # rows of an answer come in no order


def test_a_new_checkpoint_is_another_run() -> None:
    reader = Reader()
    places = ["a 5 0", "a 5 0", "a 4 9", "b 0 0", "b 0 1"]
    assert [reader.new(message("k", 1, place)) for place in places] == [True, False, False, True, True]


def test_rows_of_either_kind() -> None:
    enters, leaves = message("k", 1, "r 0 0", score="Infinity"), message("k", -1, "r 0 1", score="-Infinity")
    row = {"query": "q", "g": "x", "id": "k", "at": None, "time": "t", "score": float("inf"), "diff": 1, "first": False}
    assert change_of(enters) == row
    assert change_of(leaves) == {**row, "score": float("-inf"), "diff": -1}
    assert current([enters]) == [row]
    assert current([enters, leaves]) == []


def test_other_messages_are_counted_and_the_others_read() -> None:
    good = [message("k", 1, "r 0 0"), message("k", -1, "r 0 1"), message("k", 1, "r 1 0")]
    enters, leaves = good[0], good[1]
    bad = [
        replace(enters, headers=[]),
        replace(enters, headers=[("trigger", b"r 0 0")]),
        *(replace(enters, headers=[("trigger", b"r 0 0"), ("change", text)]) for text in JUNK),
        *(replace(enters, headers=[("trigger", text), *enters.headers[1:]]) for text in (*JUNK, b"r 0 x", b"r 0")),
        *(replace(enters, value=text) for text in JUNK),
        *(replace(leaves, key=text) for text in (*JUNK, b"{}", b'{"query": 1, "group": 2, "rank": 3}')),
        replace(enters, value=b'{"score": "high"}'),
    ]
    reader, alone = Reader(), Reader()
    mixed = [one for place, each in enumerate(good) for one in (*bad[place::3], each)]
    assert list(reader.changes(mixed)) == list(alone.changes(good)) != []
    assert (reader.malformed, len(reader.first_malformed)) == (len(bad), 5)
    assert (reader.state, alone.malformed) == (alone.state, 0)
    for one in bad:
        with pytest.raises(BatchError, match="skyband run did not write it"):
            _ = Reader().new(one), change_of(one)


JUNK = [b"", b"\xff", b"null", b"[1]", b"{", b"[" * 100_000]


def test_other_messages_are_refused() -> None:
    with pytest.raises(
        BatchError, match=r"'other' has no header 'trigger', so skyband run did not write it. Read only"
    ):
        Reader().new(Message("other", 0, b"k", b"v", []))
