"""Changes read back from Kafka: each once, in order. It takes the messages of any Kafka client.

    reader = Reader()
    for change in reader.changes(KafkaConsumer("answers", bootstrap_servers="localhost:9092")):
        ...

`skyband run` writes every change at least once: a trigger that was interrupted is written again, whole. The header
`trigger` of a message holds its run, its trigger and its row. A trigger is only written again before the next one
begins, and it is the same trigger again, so a message is new exactly if it is of a later trigger than all before it in
its partition, or of the same one and a later row than the last of its key. (Comparing (key, time, diff) would drop
almost the same, but lose an object that enters, leaves and enters again at one instant.) So a reader remembers, for
each partition, the keys of one trigger. To resume in another process use `Reader(state)`, with the `state` that was
stored together with the consumer's offsets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from skyband.errors import BatchError


class Message(Protocol):
    """The parts of a message that are read; kafka-python's ConsumerRecord has them."""

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    @property
    def key(self) -> Any: ...

    @property
    def value(self) -> Any: ...

    @property
    def headers(self) -> Any: ...


class Reader:
    """Reads each change once.

    Parameters
    ----------
    state : dict, optional
        The `state` of an earlier reader, to resume where it stopped.

    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self._at: dict[str, tuple[str, int, dict[str, int]]] = {
            place: (run, batch, dict(rows)) for place, (run, batch, rows) in (state or {}).items()
        }

    @property
    def state(self) -> dict[str, Any]:
        """What a later reader needs to resume: values that JSON can hold."""
        return {place: [run, batch, dict(rows)] for place, (run, batch, rows) in self._at.items()}

    def changes(self, messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
        """The changes of these messages, without repeated ones; those of a partition must be in its order."""
        for message in messages:
            if self.new(message):
                yield change_of(message)

    def new(self, message: Message) -> bool:
        """Whether this message is read for the first time; it is marked as read."""
        run, batch, row = _trigger(message)
        place = f"{message.topic} {message.partition}"
        key = _text(message.key)
        current = self._at.get(place)
        if current is None or current[0] != run or batch > current[1]:
            self._at[place] = (run, batch, {key: row})
            return True
        rows = current[2]
        if batch < current[1] or rows.get(key, -1) >= row:
            return False
        rows[key] = row
        return True


def change_of(message: Message) -> dict[str, Any]:
    """A message as a row: the columns of a change; the `keep` columns are missing when the object leaves."""
    step = json.loads(_header(message, "change"))
    if message.value is not None:
        found: dict[str, Any] = json.loads(_text(message.value))
    else:
        key = json.loads(_text(message.key))
        group = key.pop("group") or {}
        rank = key.pop("rank")
        found = {"query": key.pop("query"), **group, **key, **({} if rank is None else {"rank": rank}), **step}
    for name in ("score", "probability"):
        if isinstance(found.get(name), str):  # JSON has no infinity
            found[name] = float(found[name])
    return found


def current(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The answer after the messages of a topic, compacted or not: one row for each object in it."""
    last: dict[str, Message] = {}
    for message in messages:
        if message.value is None:
            last.pop(_text(message.key), None)
        else:
            last[_text(message.key)] = message
    return [change_of(message) for message in last.values()]


def _trigger(message: Message) -> tuple[str, int, int]:
    run, batch, row = _header(message, "trigger").split(" ")
    return run, int(batch), int(row)


def _header(message: Message, name: str) -> str:
    for key, value in message.headers or ():
        if key == name:
            return _text(value)
    raise BatchError(
        f"a message of {message.topic!r} has no header {name!r}, so skyband run did not write it. "
        "Read only topics that a [sink] of format kafka writes."
    )


def _text(data: Any) -> str:
    return data.decode("utf-8") if isinstance(data, bytes) else str(data)
