"""A task and its run: the number of shards, where the plan does not fix one; Python's collector and memory.

Spark keeps the number of partitions of streaming state in the checkpoint: whatever the session says at a restart, a
query goes on with the number that it began with, and tells its tasks. Mappers and operator both follow it, so that
the same program goes on with more or fewer cores. Batch queries have no checkpoint, and their plan's number holds.
"""

from __future__ import annotations

import ctypes
import gc
from dataclasses import replace

import pyarrow as pa
from pyspark.taskcontext import TaskContext

from skyband.spark.plan import MOST_SHARDS, Plan

PARTITIONS = "spark.sql.shuffle.partitions"
_STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions"  # of Spark 4.3; earlier ones have the other


def running(plan: Plan) -> Plan:
    """The plan as this task runs it."""
    task = TaskContext.get()
    if task is None or not plan.follows:
        return plan
    said = task.getLocalProperty(_STATE_PARTITIONS) or task.getLocalProperty(PARTITIONS)
    return plan if said is None or int(said) == plan.shards else replace(plan, shards=min(int(said), MOST_SHARDS))


def is_first() -> bool:
    """Whether this task has the first partition."""
    task = TaskContext.get()
    return task is None or task.partitionId() == 0


def batch_number() -> str:
    """The number of the trigger; "-" in a batch query."""
    task = TaskContext.get()
    return (task and task.getLocalProperty("streaming.sql.batchId")) or "-"


_tasks = 0  # of this worker


def spare_collector() -> None:
    """Take what a worker has loaded out of Python's garbage collection. To be called where a task begins.

    After each task Spark's worker runs `gc.collect()`, over the more than 100,000 objects of Numba and the kernels:
    most of a worker's time where triggers are small. Its first task has loaded them, and its garbage is collected by
    now. What later tasks load is frozen at the 4th, 8th, 16th ...: few times, since the objects of the running task
    are frozen too, and never collected if they are in cycles.
    """
    global _tasks
    _tasks += 1
    if _tasks > 1 and _tasks & (_tasks - 1) == 0 and TaskContext.get() is not None:
        gc.freeze()


def release_memory() -> None:
    """Give back what a large trigger has used: allocators keep it, and the worker may have none like it for long."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)
