"""A client that has `pyspark-client` and no classic Spark: `make client-test` makes its environment and runs this.

The server is a process of this environment, on a port of its own.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import skyband as sb
from spark.frames import QUERIES, flights
from spark.quick import SETTINGS

_SERVER = """
import json, sys
import skyband.spark as sbs
sbs.session("local[2]", **json.loads(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
"""
_CLIENT = """
import json, sys
import pyarrow.parquet as pq
import pyspark
import skyband.spark as sbs
from skyband.query.kinds import Query
try:
    import py4j
    raise SystemExit("this environment has classic Spark")
except ImportError:
    pass
address, folder, queries = sys.argv[1:]
queries = {name: Query.from_dict(one) for name, one in json.loads(queries).items()}
spark = sbs.session(remote=address)
rows = spark.createDataFrame(pq.read_table(folder + "/in/0.parquet"))
table = sbs.monitor(rows, queries, id="flight", time="time", shards=2)
stream = spark.readStream.schema(rows.schema).parquet(folder + "/in")
changes = sbs.monitor(stream, queries, id="flight", time="time", shards=2)
writer = changes.writeStream.format("parquet").option("path", folder + "/out").trigger(availableNow=True)
assert writer.option("checkpointLocation", folder + "/checkpoint").start().awaitTermination(200)
streamed = spark.read.parquet(folder + "/out")
found = [sorted((row["query"], row["id"], row["diff"]) for row in many.collect()) for many in (table, streamed)]
rejected = sbs.rejected(rows, queries, time="time").count()
state = sbs.state(folder + "/checkpoint").collect()
print(json.dumps([pyspark.__version__, *found, rejected, sum(row["objects"] for row in state)]))
"""


def test_a_client_without_classic_spark(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    python = os.environ.get("SKYBAND_CLIENT")
    if python is None:
        pytest.skip("`make client-test` runs this: it needs an environment with pyspark-client alone")
    (tmp_path / "in").mkdir()
    script = tmp_path / "client.py"
    script.write_text(_CLIENT)  # of `python -c` Spark takes a client for its own doctests
    table = flights(200).drop_columns(["note"])
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    monitor = sb.Monitor(QUERIES, id="flight", time="time")
    expected = sorted([row["query"], row["id"], row["diff"]] for row in monitor.push(table).to_pylist())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    plugin = {"spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin"}
    settings = {**SETTINGS, **plugin, "spark.connect.grpc.binding.port": port}
    command = [sys.executable, "-c", _SERVER, json.dumps(settings)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            assert any("ready" in line for line in server.stdout)
            queries = json.dumps({name: query.to_dict() for name, query in QUERIES.items()})
            client = [python, str(script), f"sc://127.0.0.1:{port}", str(tmp_path), queries]
            env = {**os.environ, "PYTHONPATH": str(Path(sb.__file__).parents[1])}
            done = subprocess.run(client, capture_output=True, text=True, timeout=400, check=False, env=env)
        finally:
            server.stdin.close()
            server.wait(60)
    assert done.returncode == 0, done.stderr
    _, batch, stream, rejected, objects = json.loads(done.stdout.splitlines()[-1])
    assert batch == stream == expected
    assert rejected == monitor.stats()["rejected"]["delay is null"]
    assert objects == sum(one["objects"] for one in monitor.stats()["queries"].values())
