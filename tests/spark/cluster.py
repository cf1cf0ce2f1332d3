"""A standalone cluster on loopback, a master and workers out of pip's PySpark, each a process that is ended by its id;
and a driver for it (`python -m spark.cluster FOLDER MASTER ARCHIVE PYTHON`).

The driver answers all questions of `kinds`: of each file of `in` a trigger, the changes of each kind to parquet.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql.streaming.query import StreamingQuery

import skyband.spark as sbs
from kinds import KINDS
from skyband.spark.shipping import ship
from spark.quick import SETTINGS

HOME = Path(pyspark.__file__).parent
TESTS = Path(__file__).parents[1]
_DEPLOY = "org.apache.spark.deploy"


@dataclass
class Cluster:
    master: str
    workers: list[subprocess.Popen[bytes]]
    hire: Callable[[], subprocess.Popen[bytes]]  # one worker more


@contextmanager
def cluster(folder: Path, python: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers of one core each. `python`: what executors run."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    env = {**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": str(python), "SPARK_NO_DAEMONIZE": "1"}
    env |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    env.pop("PYTHONPATH", None)  # nothing of ours comes to executors but what is shipped
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    started: list[subprocess.Popen[bytes]] = []

    def hire() -> subprocess.Popen[bytes]:
        number = len(started) - 1
        place = ["--cores", "1", "--memory", "2g", "--work-dir", str(folder / f"work{number}")]
        return start(f"worker{number}", "worker.Worker", *place, url)

    def start(name: str, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (folder / f"{name}.log").open("wb") as log:
            command = [str(HOME / "bin" / "spark-class"), f"{_DEPLOY}.{what}", *here, *arguments]
            started.append(subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log))
        return started[-1]

    try:
        start("master", "master.Master", "--port", str(port))
        hired = [hire() for _ in range(workers)]
        _await(lambda: (folder / "master.log").read_text().count("Registering worker") == workers, folder)
        yield Cluster(url, hired, hire)
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def _await(happened: Any, folder: Path) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline, [log.read_text() for log in folder.glob("*.log")]
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def start_driver(folder: Path, found: Cluster, archive: Path, python: Path) -> subprocess.Popen[bytes]:
    arguments = [str(folder), found.master, str(archive), str(python)]
    env = {**os.environ, "PYTHONPATH": str(TESTS), "PYSPARK_PYTHON": str(python)}
    env["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with (folder / "driver.log").open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "spark.cluster", *arguments], env=env, stdout=log, stderr=log)


def committed(folder: Path, kind: str, log: str = "commits") -> int:
    """How many triggers a kind's checkpoint has committed (`offsets`: begun). Spark keeps the last hundred."""
    return 1 + max((int(file.stem) for file in (folder / kind / "checkpoint" / log).glob("[0-9]*")), default=-1)


def read_out(folder: Path, kind: str) -> list[Any]:
    """The rows of each trigger, by the sink's own log."""
    log = folder / kind / "out" / "_spark_metadata"
    found: dict[int, Any] = {}
    seen: set[str] = set()
    for entry in sorted(log.glob("[0-9]*"), key=lambda path: int(re.match(r"\d+", path.name)[0])):  # type: ignore[index]
        names = [unquote(json.loads(line)["path"]) for line in entry.read_text().splitlines()[1:]]
        fresh = [name for name in names if name not in seen]
        seen.update(fresh)
        tables = [pq.ParquetFile(name.removeprefix("file://")).read() for name in fresh]
        found[int(re.match(r"\d+", entry.name)[0])] = pa.concat_tables(tables) if tables else None  # type: ignore[index]
    return [found[number] for number in sorted(found)]


def homes(batches: Iterator[Any]) -> Iterator[Any]:
    """Where an executor has skyband from."""
    import skyband

    yield from (pa.RecordBatch.from_pydict({"home": [str(skyband.__file__)]}) for _ in batches)


def drive(folder: Path, master: str, archive: str, python: str) -> None:
    """All kinds, one streaming query after the other; how long each trigger took goes to `<kind>/times`."""
    os.environ["PYSPARK_PYTHON"] = python
    given = {**SETTINGS, **ship(archive), "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    given |= {"spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "2", "spark.cores.max": "2"}
    given["spark.executor.extraJavaOptions"] = given["spark.driver.extraJavaOptions"]
    spark = sbs.session(master, **given)
    told = spark.range(2, numPartitions=2).mapInArrow(homes, "home string").collect()
    (folder / "homes").write_text(json.dumps([row["home"] for row in told]))
    schema = spark.read.parquet(str(folder / "in")).schema
    for name, kind in KINDS.items():
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        changes = sbs.monitor(rows, dict(kind.queries), shards=2, order=kind.order, **kind.options)
        writer = changes.writeStream.format("parquet").option("path", str(folder / name / "out"))
        writer = writer.option("checkpointLocation", str(folder / name / "checkpoint")).trigger(availableNow=True)
        query: StreamingQuery = writer.start()
        query.awaitTermination()
        times = [one["durationMs"]["triggerExecution"] for one in query.recentProgress if one["numInputRows"]]
        (folder / name / "times").write_text(json.dumps(times))
    spark.stop()


if __name__ == "__main__":
    drive(Path(sys.argv[1]), *sys.argv[2:])
