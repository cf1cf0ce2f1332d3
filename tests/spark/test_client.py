"""pyspark-client alone, in an environment of its own, against a Connect server of this one: `make connect-test`."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyband as sb
from spark.client import FILES, OPTIONS, TOP, main, rows_of
from spark.cluster import HOME, free_port
from spark.frames import flights, write

CLIENT = "pyspark-client==4.2.0"  # the newest: a client may be older than its server
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif("SKYBAND_CLIENT" not in os.environ, reason="an environment: `make connect-test`")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with skyband and pyspark-client, without PySpark."""
    place = tmp_path_factory.mktemp("client") / "venv"
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    assert uv is not None
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(place)], check=True)
    needed = ["-e", str(ROOT), CLIENT, "pandas<3", "protobuf>=6.33.5"]
    command = [uv, "pip", "install", "--quiet", "--python", str(place / "bin" / "python"), *needed]
    subprocess.run(command, check=True, env={**os.environ, "SKYBAND_WHEEL": "plain"})
    return place / "bin" / "python"


@pytest.fixture(scope="module")
def address(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a Connect server on loopback, whose Python workers are this interpreter."""
    port, place = free_port(), tmp_path_factory.mktemp("server")
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 2,
    }
    said = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    what = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(HOME / "bin" / "spark-submit"), "--class", what, "--master", "local[2]", *said, "spark-internal"]
    env = {**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable}
    with (place / "log").open("wb") as log:
        server = subprocess.Popen(command, env=env, cwd=place, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 200
        while not _listens(port):
            assert server.poll() is None and time.monotonic() < deadline, (place / "log").read_text()[-3000:]
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


def test_tables_streams_and_a_restart(python: Path, address: str, tmp_path: Path) -> None:
    table, monitor = flights(90), sb.Monitor(TOP, **OPTIONS)
    for number in range(3):
        write(tmp_path / FILES[number // 2], number, table.slice(30 * number, 30))
    (tmp_path / "now").mkdir()
    expected = rows_of(monitor.push(table))
    program = [str(python), str(Path(main.__code__.co_filename)), address, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    found = json.loads((tmp_path / "found").read_text())
    assert (found["packages"], found["py4j"]) == (["pyspark-client"], False)
    assert found["batch"] == found["stream"] == json.loads(json.dumps(expected))
    missing = [row["flight"] for row in table.to_pylist() if row["delay"] is None]
    assert found["rejected"] == missing and missing
    assert found["groups"] == len(set(monitor.answer("top")["origin"].to_pylist()))
