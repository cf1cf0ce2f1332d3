"""Questions over answers on Spark: a query over rows, with all that is asked over its answers, as one piece of state.

Everything that happens to one of them in a step follows from that step of the query over rows, in whatever group, so
they stand in one shard, which sees all rows, in a loop like that of a Monitor. Its state is one cell, a snapshot.
Cost: every trigger reads and writes that snapshot, which is as large as what the query over rows keeps of all groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.monitor.snapshot import Lookup, revive, save
from skyband.monitor.sources import all_queries
from skyband.monitor.state import State
from skyband.spark.directory import Directory, inventory
from skyband.spark.forget import SetLoop
from skyband.spark.journal import summary


def load_tree(cell: bytes, lookup: Lookup) -> State:
    """The state from its cell."""
    return revive(cell, lookup)


def store_tree(loop: SetLoop, directory: Directory) -> tuple[dict[str, Any], bytes]:
    """What the head needs of the state, and its cell."""
    state, query_set = loop.state, loop.query_set
    cell = save(state)
    (groups,) = state.groups.values()
    _, dues, sizes = inventory(state, groups, query_set)
    directory.due[0] = dues.min(initial=np.iinfo(np.int64).max)
    directory.groups[0], directory.objects[0] = max(1, groups.total), sizes.sum()
    directory.bytes[0] = len(cell)
    return summary(state) | {"order": list(all_queries(state)), "tree": True}, cell
