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

from skyband.spark.shipping import ship

archive, settings = sys.argv[1], json.loads(sys.argv[2])
os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
settings |= ship(archive)
conf = SparkConf().setMaster("local-cluster[1,1,1024]").setAll(list(settings.items()))
context = SparkContext(conf=conf)


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


#: What an executor does that gets the archive by --py-files: it goes on the path. (An executor is the start of a JVM.)
FROM_ZIP = """
import json, sys

sys.path.insert(0, sys.argv[1])
{ask}
print(json.dumps([ask(0)]))
"""


def checked(done: subprocess.CompletedProcess[str], home: str) -> None:
    assert done.returncode == 0, done.stderr[-3000:]
    ((found, best, compiled),) = json.loads(done.stdout.splitlines()[-1])
    assert home in found
    assert (best, compiled) == ([3.0, 2.5], 0)


@pytest.mark.skipif(not shipped.place().is_file(), reason="no kernels were compiled ahead: `make pack` does it")
def test_an_archive_on_the_path_compiles_nothing(tmp_path: Path) -> None:
    code = FROM_ZIP.format(ask=DRIVER[DRIVER.index("def ask") : DRIVER.index("print(")])
    command = [sys.executable, "-c", code, str(pack(tmp_path / "skyband.zip"))]
    env = {**os.environ, "SKYBAND_KERNELS": "only"}
    checked(subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False), "skyband.zip")


@pytest.mark.skipif(not shipped.place().is_file(), reason="no kernels were compiled ahead: `make pack` does it")
def test_an_executor_compiles_nothing(java: None, tmp_path: Path) -> None:
    archive = pack(tmp_path / "skyband.zip")
    settings = {**SETTINGS, "spark.executorEnv.SKYBAND_KERNELS": "only", "spark.executor.memory": "512m"}
    settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(archive), json.dumps(settings)],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    checked(done, "skyband-home")
