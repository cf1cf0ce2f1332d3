"""One broker in KRaft mode on loopback, its data in a folder of the test."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from broker.fetch import LOCK, there

JARS = Path(__file__).parents[2] / ".kafka"
# Spark 4.1 needs a connector of its own; with 4.3, for which there is none yet, that of 4.2 works
_OLD = pyspark.__version__.startswith("4.1")
_CONNECTOR, _LOCK = ("connector-4.1", LOCK.with_name("spark-4.1.lock")) if _OLD else ("connector", LOCK)

_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={logs}
log.retention.ms=-1
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=8388608
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""


def connector() -> dict[str, str]:
    """Spark's setting that brings the Kafka connector; empty where it has not been fetched."""
    if not there(JARS, _LOCK):
        return {}
    return {"spark.jars": ",".join(str(jar) for jar in sorted((JARS / _CONNECTOR).glob("*.jar")))}


def needs_kafka() -> bool:
    """Whether the jars are there, or SKYBAND_KAFKA says that they must be, as .ci/run does."""
    return (there(JARS) and there(JARS, _LOCK)) or os.environ.get("SKYBAND_KAFKA") == "needed"


def require_kafka() -> None:
    """Skip where the jars are missing; fail where they must be there."""
    said = "Kafka's jars are not in .kafka: run `make kafka`, which needs a way to Maven Central"
    if not needs_kafka():
        pytest.skip(said)
    if not (there(JARS) and there(JARS, _LOCK)):
        pytest.fail(said)


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Start a broker and stop it by its process; gives its address."""
    port, control = _free(), _free()
    logs = folder / "logs"
    logs.mkdir(parents=True)
    facts = {"version": 1, "cluster.id": _name(), "node.id": 1, "directory.id": _name()}
    (logs / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in facts.items()))
    settings = folder / "server.properties"
    settings.write_text(_PROPERTIES.format(port=port, control=control, logs=logs))
    talk = folder / "talk"
    thrift = [
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    ]
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    command = [str(java), *thrift, "-cp", str(JARS / "broker" / "*"), "kafka.Kafka", str(settings)]
    with talk.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + 60
        while not _listens(port):
            assert process.poll() is None and time.monotonic() < deadline, f"the broker: {talk.read_text()}"
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _name() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
