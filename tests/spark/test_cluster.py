"""skyband on a cluster of processes, shipped as users ship it, with a worker killed in mid-run: `make cluster-test`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engines.streams import cells, same_rows
from kinds import KINDS, stream
from skyband.spark.shipping import pack
from spark.cluster import Cluster, cluster, committed, read_out, start_driver
from spark.shards import changes_of

TRIGGERS, ROWS = 6, 300
NEEDED = ("numpy", "numba", "pyarrow", "pandas", "sqlglot", "protobuf")

pytestmark = pytest.mark.skipif(
    "SKYBAND_CLUSTER" not in os.environ, reason="six JVMs: `make cluster-test` runs this, `make test` does not"
)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment for executors with what skyband needs, and without skyband."""
    place = tmp_path_factory.mktemp("python")
    root = Path(__file__).parents[2]
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    assert uv is not None
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(place / "venv")], check=True)
    found = place / "venv" / "bin" / "python"
    command = [uv, "pip", "install", "--quiet", "--python", str(found), "-c", str(root / "constraints.txt"), *NEEDED]
    subprocess.run(command, check=True)
    without = subprocess.run([str(found), "-c", "import skyband"], capture_output=True, cwd=place, check=False)
    assert b"No module named 'skyband'" in without.stderr
    return found


def put_rows(folder: Path) -> None:
    (folder / "in").mkdir()
    for number in range(TRIGGERS):
        file = folder / "in" / f"{number}.parquet"
        pq.write_table(stream(ROWS, start=number * ROWS), file)
        os.utime(file, (1_700_000_000 + number,) * 2)


def kill_a_worker(found: Cluster, folder: Path, driver: subprocess.Popen[bytes], kind: str) -> None:
    """By its id, when the kind's second trigger has been committed; its executor follows it, and a new one comes."""
    deadline = time.monotonic() + 400
    while committed(folder, kind) < 2:
        assert driver.poll() is None and time.monotonic() < deadline, (folder / "driver.log").read_text()
        time.sleep(0.02)
    victim = found.workers.pop(0)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    found.workers.append(found.hire())


def play(folder: Path, python: Path, archive: Path, *, kill: bool) -> None:
    put_rows(folder)
    with cluster(folder, python) as found:
        driver = start_driver(folder, found, archive, python)
        try:
            for kind in KINDS if kill else ():  # the driver takes one after the other
                kill_a_worker(found, folder, driver, kind)
            assert driver.wait(900) == 0, (folder / "driver.log").read_text()[-3000:]
        finally:
            driver.kill()
            driver.wait()


def test_a_worker_is_killed_and_nothing_is_lost_doubled_or_wrong(python: Path, tmp_path: Path) -> None:
    play(tmp_path, python, pack(tmp_path / "skyband.zip"), kill=True)
    homes = json.loads((tmp_path / "homes").read_text())
    assert all(Path(home).is_relative_to(tmp_path) for home in homes), homes  # not the driver's
    for name, kind in KINDS.items():
        monitor = kind.monitor()
        found = read_out(tmp_path, name)
        assert len(found) == TRIGGERS
        for number, table in enumerate(found):
            expected = changes_of(monitor, stream(ROWS, start=number * ROWS))
            same_rows([] if table is None else cells(table), expected, f"{name}, trigger {number}")


@pytest.mark.skipif(os.environ.get("SKYBAND_CLUSTER") != "costs", reason="a measurement: SKYBAND_CLUSTER=costs")
def test_what_a_cold_start_costs(python: Path, tmp_path: Path) -> None:
    """The first trigger with compiled kernels in the archive, and without; printed for docs/spark.md."""
    for kernels in (True, False):
        folder = tmp_path / str(kernels)
        folder.mkdir()
        play(folder, python, pack(folder / "skyband.zip", kernels=kernels), kill=False)
        for name in KINDS:
            times = json.loads((folder / name / "times").read_text())
            print(f"{'with' if kernels else 'without'} kernels, {name}: triggers {times} ms")
