"""The same queries on Spark: a DataFrame in, a DataFrame of changes out, batch or streaming.

    import skyband as sb
    import skyband.spark as sbs

    spark = sbs.session("local[2]")
    changes = sbs.monitor(flights, sb.TopK(10, by="delay", window=sb.Last("24 hours"), per="origin"),
                          id="flight", time="time")
    changes.writeStream.format("parquet").option("path", "out").option("checkpointLocation", "checkpoint").start()

This is the only package that imports pyspark.
"""

from __future__ import annotations

import os
import sys

try:
    import pyspark
except ImportError as error:
    raise ImportError('skyband.spark needs PySpark: pip install "skyband[spark]"') from error

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers must have skyband too

from skyband.spark.checkpoint import check, state
from skyband.spark.failure import reason
from skyband.spark.late_rows import late
from skyband.spark.pipeline import answers, monitor, rejected
from skyband.spark.session import session

__all__ = ["answers", "check", "late", "monitor", "pyspark", "reason", "rejected", "session", "state"]
