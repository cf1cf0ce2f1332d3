"""Spark's daemon of Python workers, with what they need already imported: `spark.python.daemon.module`.

Spark forks a worker for each Python stage of each task that runs, and each would import pandas, Arrow and Numba for
itself. Forks of this process share them. `sbs.session` sets it on local masters; on a cluster set it where executors
have skyband installed.
"""

from __future__ import annotations

import gc
import sys

import pyspark.daemon

_WORKERS = "pyspark.worker"  # the driver has a daemon too, whose worker only reads the schema of the state


def load() -> None:
    """Import what tasks use; no threads are started."""
    import pandas  # noqa: F401
    import pyspark.worker  # noqa: F401

    import skyband.engines.topk.block  # and with it Numba
    import skyband.spark.merge
    import skyband.spark.operator  # noqa: F401

    gc.freeze()  # a collection after a task would copy all pages that it visits


if __name__ == "__main__":
    if sys.argv[1:2] == [_WORKERS]:
        load()
    pyspark.daemon.manager()
