"""Executors that get the package as an archive, and no other skyband, compile nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyband.kernels import shipped
from skyband.spark.shipping import pack
from spark.quick import SETTINGS

#: A cluster within the driver's process, with an executor in a process of its own.
DRIVER = """
import json, os, sys
import pyspark
from pyspark import SparkConf, SparkContext

archive, way, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
if way == "archives":
    from skyband.spark.shipping import ship

    settings |= ship(archive)
conf = SparkConf().setMaster("local-cluster[1,1,1024]").setAll(list(settings.items()))
context = SparkContext(conf=conf)
if way == "py-files":
    context.addPyFile(archive)


def ask(_):
    from numba.core import event
    import skyband as sb

    with event.install_recorder("numba:compile") as compiled:
        last = sb.Last(3)
        monitor = sb.Monitor([sb.TopK(2, by="x", window=last), sb.TopKPairs(1, by="abs(a.x - b.x)", window=last)])
        monitor.push({"x": [1.0, 3.0, 2.5]})
        best = monitor.answer("q0")["score"].to_pylist()
    return sb.__file__, best, len(compiled.buffer)


print(json.dumps(context.parallelize([0], 1).map(ask).collect()))
context.stop()
"""


@pytest.mark.skipif(not shipped.place().is_file(), reason="no kernels were compiled ahead: `make pack` does it")
@pytest.mark.parametrize("way", ["py-files", "archives"])
def test_an_executor_compiles_nothing(java: None, tmp_path: Path, way: str) -> None:
    archive = pack(tmp_path / "skyband.zip")
    settings = {**SETTINGS, "spark.executorEnv.SKYBAND_KERNELS": "only", "spark.executor.memory": "512m"}
    settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(archive), way, json.dumps(settings)],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ((home, best, compiled),) = json.loads(done.stdout.splitlines()[-1])
    assert ("skyband.zip" if way == "py-files" else "skyband-home") in home
    assert (best, compiled) == ([3.0, 2.5], 0)
