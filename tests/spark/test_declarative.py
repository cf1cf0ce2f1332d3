"""The example of Declarative Pipelines, run by `spark-pipelines` in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from skyband import Last, Monitor, TopK
from spark.quick import SETTINGS

EXAMPLE = Path(__file__).parents[2] / "examples" / "declarative"


def test_the_example_completes(java: None, tmp_path: Path) -> None:
    if importlib.util.find_spec("grpc") is None and "CI" not in os.environ:
        pytest.skip('Declarative Pipelines need Spark Connect: pip install "skyband[connect]"; CI demands it')
    shutil.copytree(EXAMPLE, tmp_path / "project")
    spec = tmp_path / "project" / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("/tmp/delays", str(tmp_path)))  # noqa: S108
    rng = np.random.default_rng(4)
    moments = pa.array(np.arange(400) * 600 * 10**6, pa.timestamp("us", "UTC"))
    columns = {"origin": rng.choice(["JFK", "LGA"], 400), "delay": rng.integers(0, 90, 400).astype(float)}
    flights = pa.table({"flight": np.arange(400), "time": moments, **columns})
    (tmp_path / "flights").mkdir()
    pq.write_table(flights.append_column("gate", pa.array(["A"] * 400)), tmp_path / "flights" / "a.parquet")

    home = Path(pyspark.__file__).parent
    (tmp_path / "conf").mkdir()
    settings = {**SETTINGS, "spark.connect.grpc.binding.address": "127.0.0.1"}
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    (tmp_path / "conf" / "spark-defaults.conf").write_text(lines)
    env = {**os.environ, "SPARK_HOME": str(home), "SPARK_CONF_DIR": str(tmp_path / "conf")}
    env |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [str(home / "bin" / "spark-pipelines"), "run", "--spec", str(spec)],
        env=env, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    monitor = Monitor(TopK(3, by="delay", window=Last("24 hours"), per="origin"), id="flight", time="time")
    pushed = monitor.push(flights).to_pylist()
    expected = [(row["origin"], row["time"], row["id"], row["score"], row["diff"]) for row in pushed]
    (changes,) = tmp_path.rglob("spark-warehouse/changes")
    table = pq.read_table(changes)
    moments = table.column("time").cast(pa.timestamp("us", "UTC"))  # Spark writes them without a zone
    written = table.set_column(table.column_names.index("time"), "time", moments).to_pylist()
    assert sorted((row["origin"], row["time"], row["id"], row["score"], row["diff"]) for row in written) == sorted(
        expected
    )
    (newcomers,) = tmp_path.rglob("spark-warehouse/newcomers")
    entered = [(row["origin"], row["id"], row["score"]) for row in pushed if row["diff"] == 1 and row["first"]]
    assert sorted(tuple(row.values()) for row in pq.read_table(newcomers).to_pylist()) == sorted(entered)
