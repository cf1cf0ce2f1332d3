"""What the tests' Spark forks its Python workers from: what each of them would import is imported once, before.

That is three seconds of a core for each worker, and the tests start a hundred. Spark's own daemon imports nothing,
because pyarrow starts a thread; it is what runs under the command, the killed drivers and the cluster.
"""

from __future__ import annotations

from pathlib import Path

import pandas  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import skyband.engines.certain.block  # and with it Numba
import skyband.spark.operator  # noqa: F401

FORKED = {
    "spark.python.daemon.module": "spark.forked",
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
}

if __name__ == "__main__":
    manager()
