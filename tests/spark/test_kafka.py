"""`skyband run` from topics of a real broker, produced by a Kafka client; killed in the middle: test_kill.py."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import skyband as sb
from broker.server import connector
from engines.streams import Row
from skyband.dashboard.readers import Topic
from skyband.dashboard.watch import Watch
from skyband.errors import QueryError, RunError
from skyband.oracle import Oracle
from skyband.pipeline import pipeline_of
from skyband.query.kinds import Query
from skyband.spark.run.command import run
from skyband.spark.run.kafka import require_connector
from spark.quick import SETTINGS

QUERIES: dict[str, Query] = {
    "hour": sb.TopK(2, by="delay", window=sb.Last("1 hour"), per="origin"),
    "all": sb.TopK(3, by="delay", window=sb.Last(40)),
}
MORE: dict[str, Query] = {  # kinds that the sink upsert does not take
    "alarm": sb.Above(45, by="delay", window=sb.Last("1 hour"), per="origin"),
    "alike": sb.TopKPairs(2, by="abs(a.delay - b.delay)", window=sb.Last(20)),
}
START = datetime(2013, 7, 1, tzinfo=UTC)
SCHEMA = {"origin": "string", "time": "timestamp", "delay": "double"}
BAD = {
    b'{"origin": "JFK", "delay"': "not a JSON object",
    b'{"origin": "JFK", "time": "2013-07-01T00:00:00Z", "delay": "late"}': "delay is not double",
    b"[1, 2]": "not a JSON object",
    b"": "an empty value",
    b'{"origin": "\xff"}': "not UTF-8",
    None: "no value",
}


def create(address: str, *names: str, **settings: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=address)
    try:
        admin.create_topics([NewTopic(name, 2, 1, topic_configs=settings) for name in names])
    finally:
        admin.close()


def produce(address: str, topic: str, values: Iterable[bytes | None], start: int = 0) -> None:
    """One message a minute, to either partition."""
    dice = random.Random(start)  # noqa: S311
    producer = KafkaProducer(bootstrap_servers=address)
    try:
        for number, value in enumerate(values, start):
            at = START + timedelta(minutes=number)
            milliseconds = int(at.timestamp() * 1000)
            producer.send(topic, value, key=b"%d" % number, partition=dice.randrange(2), timestamp_ms=milliseconds)
        producer.flush()
    finally:
        producer.close()


def consume(address: str, topic: str) -> list[Any]:
    """All messages of a topic, those of a partition in order."""
    consumer = KafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest", group_id=None)
    try:
        consumer.poll(timeout_ms=1000, max_records=1)
        places = consumer.assignment()
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        found: list[Any] = []
        while any(consumer.position(place) < ends[place] for place in places):
            for records in consumer.poll(timeout_ms=200).values():
                found += records
        return found
    finally:
        consumer.close()


def compact(address: str, topic: str, count: int) -> list[Any]:
    """Let the broker compact a topic of so many messages; what is left of them."""
    admin = KafkaAdminClient(bootstrap_servers=address)
    try:
        settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001"}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=settings)])
    finally:
        admin.close()
    deadline = time.monotonic() + 30
    left = consume(address, topic)
    while len(left) == count and time.monotonic() < deadline:
        time.sleep(0.2)
        left = consume(address, topic)
    return left


def flight(dice: random.Random, number: int) -> bytes:
    """The `time` of some is behind that of others before: late rows."""
    minutes = number - dice.choice([0, 0, 0, 5, 90])
    row = {
        "origin": dice.choice(["JFK", "LGA", None]),
        "time": (START + timedelta(minutes=minutes)).isoformat(),
        "delay": dice.choice([None, *map(float, range(-10, 60))]),
    }
    return json.dumps(row).encode()


def data(
    folder: Path, address: str, sink: dict[str, Any], topic: str, more: Mapping[str, Query] = {}, **source: Any
) -> dict[str, Any]:
    servers = {"kafka.bootstrap.servers": address}
    if sink["format"] == "kafka":
        sink = {**sink, "options": servers}
    return {
        "source": {
            "format": "kafka",
            "schema": SCHEMA,
            "options": {**servers, "subscribe": topic, "maxOffsetsPerTrigger": 200},
            **source,
        },
        "queries": {
            "hour": {"k": 2, "by": "delay", "window": "1 hour", "per": "origin"},
            "all": {"k": 3, "by": "delay", "window": 40},
            **{name: query.to_sql() for name, query in more.items()},
        },
        "stream": {"time": "time", "shards": 2},
        "sink": sink,
        "run": {
            "checkpoint": str(folder / "checkpoint"),
            "trigger": "availableNow",
            "spark": {**SETTINGS, **connector()},
            "master": "local[2]",
        },
    }


def triggers(folder: Path, messages: list[Any]) -> list[list[Row]]:
    """The good messages of each trigger, by the checkpoint's own word, in order of arrival."""
    rows = {}
    for message in messages:
        if message.value in BAD:
            continue
        row = json.loads(message.value)
        row["time"] = datetime.fromisoformat(row["time"])
        row["order"] = (message.timestamp, message.partition, message.offset)
        row["kafka_id"] = f"{message.topic}-{message.partition}-{message.offset}"
        rows[message.partition, message.offset] = row
    found, before = [], {0: 0, 1: 0}
    for number in range(len(list((folder / "checkpoint" / "offsets").glob("[0-9]*")))):
        told = (folder / "checkpoint" / "offsets" / str(number)).read_text().splitlines()[-1]
        (ends,) = json.loads(told).values()
        now = {int(partition): end for partition, end in ends.items()}
        fresh = [
            rows[partition, offset]
            for partition, end in now.items()
            for offset in range(before[partition], end)
            if (partition, offset) in rows
        ]
        found.append(sorted(fresh, key=lambda row: row["order"]))
        before = now
    return found


def named(row: Row) -> tuple[Any, ...]:
    """An object, or a pair of them."""
    return row.get("id"), row.get("id_a"), row.get("id_b")


def net(changes: Iterable[Row], query: str) -> Counter[tuple[Any, ...]]:
    total: Counter[tuple[Any, ...]] = Counter()
    for row in changes:
        if row["query"] == query:
            total[row.get("origin"), *named(row), row["score"]] += row["diff"]
    return Counter({key: count for key, count in total.items() if count})


def test_dead_letters_in_a_folder_and_the_answer_in_a_file(
    address: str, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create(address, "more")
    dice = random.Random(4)  # noqa: S311
    produce(address, "more", [*(flight(dice, number) for number in range(60)), *BAD])
    sink = {"format": "upsert", "path": str(tmp_path / "answer")}
    made = data(tmp_path, address, sink, "more", dead_letters={"path": str(tmp_path / "dead")})
    assert run(pipeline_of(made), spark=spark) == 0
    (told,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (told["rows"], told["malformed"]) == (66, 6)
    found = spark.read.parquet(str(tmp_path / "dead")).collect()
    assert Counter((None if row["value"] is None else bytes(row["value"]), row["reason"]) for row in found) == Counter(
        BAD.items()
    )
    assert sorted((row["partition"], row["offset"]) for row in found) == sorted(
        (m.partition, m.offset) for m in consume(address, "more") if m.value in BAD
    )
    oracle = Oracle(QUERIES, id="kafka_id", time="time")
    (rows,) = triggers(tmp_path, consume(address, "more"))
    oracle.push(rows)
    answer = spark.read.parquet(str(tmp_path / "answer")).collect()
    for name in QUERIES:
        mine = {(row["origin"], row["rank"], row["id"]) for row in answer if row["query"] == name}
        assert mine == {(row.get("origin"), row["rank"], row["id"]) for row in oracle.answer(name)}


def test_a_session_without_the_connector_is_told_which_package() -> None:
    spark = MagicMock()
    spark.read.format().options().load.side_effect = AnalysisException("[KAFKA_DATA_SOURCE_NOT_ENABLED] ...")
    with pytest.raises(RunError, match=r"^sink.format: .* a package of its own.*spark-sql-kafka-0-10_2.13:4\."):
        require_connector(spark, "sink.format")


def test_a_topic_on_the_live_page(address: str, tmp_path: Path) -> None:
    """`skyband serve kafka://...`: what is there and what comes, against a Monitor; what is no JSON is counted."""
    create(address, "watched")
    dice = random.Random(9)  # noqa: S311
    first, more = ([flight(dice, number) for number in range(start, start + 60)] for start in (0, 60))
    produce(address, "watched", [*first, b"no JSON", None])
    url = f"kafka://{address}/watched"
    watch = Watch(tmp_path, topic=url)
    watch.start()
    try:
        watch.call(watch.choose, {"stream": url, "time": "time", "id": "time"}, {"all": QUERIES["all"]})
        deadline = time.monotonic() + 60
        while watch.call(watch.look)["stream"]["rows"] < 60 and time.monotonic() < deadline:
            time.sleep(0.1)
        produce(address, "watched", more, start=62)
        while watch.call(watch.look)["stream"]["rows"] < 120 and time.monotonic() < deadline:
            time.sleep(0.1)
        stream = watch.call(watch.look)["stream"]
        assert (stream["rows"], stream["error"], sum(stream["rejected"].values())) == (
            120,
            None,
            2 + sum(b'"delay": null' in value for value in first + more),
        )
        assert watch.call(lambda: watch.board().answer("all", None, 9))["total"] == 3
    finally:
        watch.stop()
    with pytest.raises(QueryError, match="there is no topic 'nothing'"):
        Topic(f"kafka://{address}/nothing")
