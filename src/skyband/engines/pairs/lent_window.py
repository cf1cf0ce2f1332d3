"""A new query of pairs from the window that another one keeps: its objects are scored with each other, once.

Cost: as if the window's objects arrived again, O(n²) scores for n of them.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.engines.contract import Arrivals, Changes, Ints
from skyband.engines.pairs.fields import can_run
from skyband.engines.specs import length_of
from skyband.query.kinds import TopKPairs

if TYPE_CHECKING:
    from skyband.engines.pairs.adapter import PairsAdapter
    from skyband.engines.pairs.base import Pairs


def borrower(donor: PairsAdapter, name: str, query: TopKPairs, unit: int | None) -> PairsAdapter | None:
    """The adapter of a query that can begin with the donor's window, not started yet; None: it cannot."""
    sorts = query.window.sort, donor.example.window.sort
    if donor.engine is None or donor.kinds is None or donor.deletable or sorts[0] != sorts[1]:
        return None
    if donor.groups.names != query.per_columns or donor.where != query.where or len(donor.numbering.lengths) > 1:
        return None
    if length_of(query, unit) > max(spec.length for spec in donor.specs(unit)):
        return None
    adapter = type(donor)(query, donor.groups, donor.options, donor.numbering.start())
    kinds = {column: donor.kinds.get(column, "") for column in adapter.columns}
    known = "" not in kinds.values() and (adapter.form is not None or adapter.expression is not None)
    if not known or not all(can_run(tree, kinds) for tree in adapter._trees):
        return None
    adapter.queries, adapter.kinds, adapter.codes = {name: query}, kinds, deepcopy(donor.codes)
    return adapter if {*adapter.fields} <= {*donor.fields} else None


def begin(adapter: PairsAdapter, donor: PairsAdapter, unit: int | None, clock: int) -> dict[str, Any]:
    """Let a borrower begin; returns its first answer as columns of changes."""
    adapter.start(unit)
    adapter.go_on_from(donor)
    adapter.rejected = {}
    rows = [donor.fields.index(field) for field in adapter.fields]
    changes = copied(adapter.machine, donor.machine, rows, donor.now(clock))
    return adapter.output.changes_at_rest(changes, clock)


def copied(engine: Pairs, other: Pairs, rows: list[int], now: Ints) -> Changes:
    """Let the valid objects of another engine arrive, the oldest first; returns the first answers."""
    from skyband.engines.pairs.changes import changes_of, difference
    from skyband.engines.pairs.kernels.records import CHANGE, PAIR

    engine.groups.grow(len(other.groups))
    pieces = [np.empty(0, CHANGE)]
    for g, source in other.groups.there():
        stamps, serials = source.window.stamps[source.live], source.window.serials[source.live]
        valid = stamps > now[g] - engine.length[-1]
        if not valid.any():
            continue
        stamps, serials, first = stamps[valid], serials[valid], int(serials[valid].min())
        arrivals = Arrivals(
            rows=serials - first,
            groups=np.full(len(stamps), g),
            keys=np.empty(0),
            stamps=stamps,
            now=stamps,
            eligible=None,
            serial=first,
            size=int(serials.max()) - first + 1,
            clock=int(now[g]),
            clocks=None,
            total=len(engine.groups),
        )
        group = engine.groups[g]
        engine._visit(group, arrivals, source.window.data[rows][:, source.live][:, valid], np.arange(len(stamps)))
        group.now = int(now[g])
        group.band.bits[:] = 0  # nothing has been reported
        pieces.append(difference(engine, group, np.empty(0, PAIR), 0, 0, g, int(now[g])))
        engine.note(g, group)
    engine.scoreless[:] = 0
    out = np.concatenate(pieces)
    return changes_of(out, out["query"].astype(np.int64), out["instant"], np.empty(0, np.bool_))
