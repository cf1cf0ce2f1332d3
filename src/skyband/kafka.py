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

    Attributes
    ----------
    malformed : int
        Messages that `changes` passed over, since `skyband run` did not write them.
    first_malformed : list of str
        What is wrong with the first few of these, with topic, partition and offset.

    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self._at: dict[str, tuple[str, int, dict[str, int]]] = {
            place: (run, batch, dict(rows)) for place, (run, batch, rows) in (state or {}).items()
        }
        self.malformed = 0
        self.first_malformed: list[str] = []

    @property
    def state(self) -> dict[str, Any]:
        """What a later reader needs to resume: values that JSON can hold."""
        return {place: [run, batch, dict(rows)] for place, (run, batch, rows) in self._at.items()}

    def changes(self, messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
        """The changes of these messages, without repeated ones; those of a partition must be in its order.

        A message that `skyband run` did not write is counted in `malformed` and passed over.
        """
        for message in messages:
            try:
                change = change_of(message)
                new = self.new(message)
            except BatchError as error:
                self.malformed += 1
                if len(self.first_malformed) < _NAMED:
                    self.first_malformed.append(str(error))
                continue
            if new:
                yield change

    def new(self, message: Message) -> bool:
        """Whether this message is read for the first time; it is marked as read."""
        run, batch, row = _trigger(message)
        place = f"{message.topic} {message.partition}"
        key = _text(message, message.key)
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
    step = _object(message, _header(message, "change"))
    if message.value is not None:
        found = _object(message, _text(message, message.value))
    else:
        key = _object(message, _text(message, message.key))
        if not {"query", "group", "rank"} <= key.keys() or not isinstance(key["group"] or {}, dict):
            raise _foreign(message, "its key is no key of a change")
        group = key.pop("group") or {}
        rank = key.pop("rank")
        found = {"query": key.pop("query"), **group, **key, **({} if rank is None else {"rank": rank}), **step}
    for name in ("score", "probability"):
        if isinstance(found.get(name), str):  # JSON has no infinity
            try:
                found[name] = float(found[name])
            except ValueError:
                raise _foreign(message, f"its {name} is {found[name]!r}") from None
    return found


def current(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The answer after the messages of a topic, compacted or not: one row for each object in it."""
    last: dict[str, Message] = {}
    for message in messages:
        key = _text(message, message.key)
        if message.value is None:
            last.pop(key, None)
        else:
            last[key] = message
    return [change_of(message) for message in last.values()]


def _trigger(message: Message) -> tuple[str, int, int]:
    try:
        run, batch, row = _header(message, "trigger").split(" ")
        return run, int(batch), int(row)
    except ValueError as error:
        if isinstance(error, BatchError):
            raise
        raise _foreign(message, "its header 'trigger' names no row of a trigger") from None


def _header(message: Message, name: str) -> str:
    for key, value in message.headers or ():
        if key == name:
            return _text(message, value)
    raise _foreign(message, f"has no header {name!r}", "")


def _object(message: Message, text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _foreign(message, f"it is no JSON: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise _foreign(message, "it is no JSON object")
    return found


def _text(message: Message, data: Any) -> str:
    try:
        return data.decode("utf-8") if isinstance(data, bytes) else str(data)
    except UnicodeDecodeError:
        raise _foreign(message, "it is not UTF-8") from None


def _foreign(message: Message, what: str, says: str = "cannot be read: ") -> BatchError:
    offset = getattr(message, "offset", None)
    place = "" if offset is None else f" (partition {message.partition}, offset {offset})"
    return BatchError(
        f"a message of {message.topic!r}{place} {says}{what}, so skyband run did not write it. "
        "Read only topics that a [sink] of format kafka writes."
    )


_NAMED = 5
