"""kill -9 of a driver in the middle of a trigger, once: files to files, and beside them `skyband run`, Kafka to Kafka.

Each goes on from its checkpoint; nothing is lost, doubled or wrong. (A driver is the start of a JVM: one serves both.)
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skyband as sb
from broker.server import needs_kafka
from engines.streams import Row, same_rows
from skyband.kafka import Reader, change_of, current
from skyband.oracle import Oracle
from skyband.pipeline import pipeline_of
from skyband.spark.run.command import run
from spark import faulty
from spark.faulty import DAY
from spark.frames import flights, read, write
from spark.shards import pushed
from spark.test_faults import cut, finish, told
from spark.test_kafka import BAD, MORE, QUERIES, compact, consume, create, data, flight, named, net, produce, triggers
from spark.test_run import toml


def _joins(*rows: tuple[str, int, float]) -> dict[str, Any]:
    names, sizes, places = zip(*rows, strict=True)
    return {"subscriber": list(names), "k": list(sizes), "d": list(places)}


# of each trigger: its rows, and what a Monitor is told: who comes (in time with the rows), and who goes
PEOPLE: list[tuple[list[tuple[str, int, float, str]], dict[str, Any], list[str]]] = [
    (
        [("ann", 2, 3.0, "insert"), ("bob", 1, 20.0, "insert"), ("cleo", 3, 11.0, "insert")],
        _joins(("ann", 2, 3.0), ("bob", 1, 20.0), ("cleo", 3, 11.0)),
        [],
    ),
    (
        [("ann", 1, 30.0, "update"), ("bob", 1, 20.0, "delete"), ("dan", 2, 7.0, "insert")],
        _joins(("ann", 1, 30.0), ("dan", 2, 7.0)),
        ["bob"],
    ),
    ([("dan", 2, 7.0, "delete"), ("bob", 2, 5.0, "insert")], _joins(("bob", 2, 5.0)), ["dan"]),
]


def messages() -> list[bytes | None]:
    dice = random.Random(3)  # noqa: S311
    stream: list[bytes | None] = [flight(dice, number) for number in range(600)]
    for place, bad in zip(range(60, 600, 37), list(BAD) * 3, strict=False):
        stream.insert(place, bad)
    return stream


def asked(folder: Path, address: str) -> dict[str, Any]:
    sink = {"format": "kafka", "topic": "answers"}
    return data(folder / "kafka", address, sink, "flights", MORE, dead_letters={"topic": "dead"})


@pytest.fixture(scope="module")
def killed(java: None, python: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder: a task of the files' second trigger had told all and sat in a trap, two of Kafka's were told."""
    folder = tmp_path_factory.mktemp("killed")
    table = flights(300, zone=None)
    cut(folder, table, 3)
    for number, (rows, _, _) in enumerate(PEOPLE):
        when = pa.array([table["time"][0].as_py()] * len(rows), pa.timestamp("us"))
        columns = dict(zip(("subscriber", "k", "d", "op"), zip(*rows, strict=True), strict=True))
        write(
            folder / "people",
            number,
            pa.table({name: list(values) for name, values in columns.items()} | {"time": when}),
        )
    lines = 0
    if needs_kafka():
        address = request.getfixturevalue("address")
        create(address, "flights", "dead")
        create(address, "answers", **{"segment.ms": "200"})
        produce(address, "flights", messages()[:450])
        (folder / "run.toml").write_text(toml(asked(folder, address)))
        lines = 2
    sprung = faulty.arm(folder, "after", 1, "sleep")
    paths = [str(Path(__file__).parents[1]), *(str(Path(path).resolve()) for path in sys.path if path)]
    said, out = folder / "said", folder / "lines"
    with said.open("wb") as errors, out.open("wb") as written:
        driver = subprocess.Popen(
            [sys.executable, "-m", "spark.faulty", str(folder)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": python},
            stdout=written,
            stderr=errors,
            start_new_session=True,
        )
    try:
        until(lambda: sprung.exists() and out.read_text().count('{"batch"') >= lines, driver, said)
        if not lines:
            time.sleep(0.5)  # the trigger's other task ends, with its state and its file
    finally:
        os.killpg(driver.pid, signal.SIGKILL)  # with its JVM; Spark's Python workers follow
        driver.wait()
    return folder


def until(happened: Callable[[], bool], driver: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 240
    while not happened():
        assert driver.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def test_files_in_the_middle_of_a_trigger(spark: SparkSession, killed: Path) -> None:
    assert [(killed / "checkpoint" / "commits" / name).exists() for name in "01"] == [True, False]
    assert list((killed / "checkpoint" / "state" / "0").glob("*/2.*"))  # some state went ahead
    finish(faulty.to_parquet(faulty.changes(spark, killed, DAY), killed))
    table = flights(300, zone=None)
    pieces = [table.slice(begin, 100) for begin in (0, 100, 200)]
    expected = [row | {"subscriber": None} for rows in told(pieces, DAY) for row in rows]
    monitor = sb.Monitor({"near": faulty.NEAR}, **faulty.OPTIONS)
    for piece, (_, come, gone) in zip(pieces, PEOPLE, strict=True):
        monitor.unsubscribe("near", gone)
        monitor.subscribe("near", come)
        expected += pushed(monitor, [piece], ("time", "flight"))
    found = read(spark.read.parquet(str(killed / "out")))
    same_rows(found, [{name: row.get(name) for name in found[0]} for row in expected], "each change once")


def test_kafka_to_kafka(address: str, spark: SparkSession, killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, made, stream = killed / "kafka", asked(killed, address), messages()
    produce(address, "flights", stream[450:], 450)
    assert run(pipeline_of(made), spark=spark) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])["batch"]
    for name in (f"{last}", f".{last}.crc"):  # as if the driver had died between the sink and the checkpoint
        (folder / "checkpoint" / "commits" / name).unlink()
    assert run(pipeline_of(made), spark=spark) == 0
    assert [json.loads(line)["batch"] for line in capsys.readouterr().out.splitlines()] == [last]

    answered = consume(address, "answers")
    reader, again = Reader(), Reader()
    fresh = [message for message in answered if reader.new(message)]
    assert len(fresh) < len(answered)  # the last trigger came twice
    assert [change_of(message) for message in fresh] == list(again.changes(answered))
    batches = triggers(folder, consume(address, "flights"))
    queries = QUERIES | MORE
    oracle = Oracle(queries, id="kafka_id", time="time")
    for number, rows in enumerate(batches):
        expected = oracle.push(rows)
        mine = [m for m in fresh if int(dict(m.headers)["trigger"].split()[1]) == number]
        found = [change_of(message) for message in mine]
        for query in queries:
            assert net(found, query) == net(expected, query), (number, query)
        # of count windows every change, each key's in order
        keys = {(change["query"], *named(change)) for change in found if change["query"] in ("all", "alike")}
        for key in keys:
            steps, wanted = (
                [(c["at"], c["score"], c["diff"]) for c in changes if (c["query"], *named(c)) == key]
                for changes in (found, expected)
            )
            assert steps == wanted, key
    assert sum(len(rows) for rows in batches) == 600

    def answers(rows: list[Row]) -> None:
        for name in queries:
            found, wanted = (
                [{"origin": r.get("origin"), "id": str(named(r)), "score": r["score"]} for r in some]
                for some in ([r for r in rows if r["query"] == name], oracle.answer(name))
            )
            same_rows(found, wanted, f"the current answer of {name}")

    answers(current(answered))
    kept = compact(address, "answers", len(answered))
    assert len(kept) < len(answered)
    answers(current(kept))
    letters = consume(address, "dead")
    put = Counter(value for value in stream if value in BAD)
    assert {letter.value for letter in letters} == set(put)
    for letter in letters:
        headers = dict(letter.headers)
        assert headers["reason"].decode() == BAD[letter.value]
        assert headers["topic"] == b"flights"
    places = Counter((dict(m.headers)["partition"], dict(m.headers)["offset"]) for m in letters)
    assert len(places) == put.total()
