"""Arrivals of uncertain streams by group, and answers as the contract wants them: in order of rank, or as changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Answer, Arrivals, Bools, Changes, Floats, Ints, Spec
from skyband.engines.grouped import Visited, by_step, visits_of
from skyband.engines.uncertain.kernels.changes import Columns, write_columns
from skyband.engines.uncertain.kernels.records import CHANGE
from skyband.kernels.routing import find_rows, stable_order

Records = NDArray[Any]


class Serving(Visited, Protocol):
    """What is read of an engine here."""

    specs: tuple[Spec, ...]
    by_rank: bool  # the rank held is part of the answer


@dataclass(frozen=True)
class Taken:
    """The arrivals of a batch, group by group."""

    keys: Floats
    probabilities: Floats
    stamps: Ints
    now: Ints
    rows: Ints
    names: Ints
    named: Bools
    eligible: Bools  # empty: all are
    visits: Records  # each group's slice
    all_now: Ints  # of all arrivals, those among them that are not eligible
    all_rows: Ints
    all_visits: Records


def taken(engine: Serving, arrivals: Arrivals, *, whole: bool = False) -> Taken:
    """The arrivals of a batch by group; groups where time alone changes an answer have a visit too.

    Arrivals that are not eligible are left out, unless the whole batch is wanted.
    """
    order = slice(None) if arrivals.total == 1 else stable_order(arrivals.groups, arrivals.total)
    assert arrivals.probabilities is not None
    now, rows, groups = arrivals.now[order], arrivals.rows[order], arrivals.groups[order]
    columns: list[Any] = [arrivals.keys[order], arrivals.probabilities[order], arrivals.stamps[order], now, rows]
    names = np.empty(0, np.int64) if arrivals.names is None else arrivals.names[order]
    named = np.empty(0, np.bool_)
    if arrivals.names is not None:
        named = np.ones(len(rows), np.bool_) if arrivals.named is None else arrivals.named[order]
    visits = all_visits = visits_of(engine, groups, now, arrivals)
    eligible = np.empty(0, np.bool_)
    if arrivals.eligible is not None and whole:
        eligible = arrivals.eligible[order]
    elif arrivals.eligible is not None:
        kept = arrivals.eligible[order]
        before = np.concatenate([[0], np.cumsum(kept)])
        visits = all_visits.copy()
        visits["begin"], visits["end"] = before[all_visits["begin"]], before[all_visits["end"]]
        columns = [column[kept] for column in columns]
        if len(names):
            names, named = names[kept], named[kept]
    keys, ps, stamps, when, which = (np.ascontiguousarray(column) for column in columns)
    return Taken(keys, ps, stamps, when, which, names, named, eligible, visits, now, rows, all_visits)


def ordered(
    engine: Serving, out: Records, batch: Taken, arrivals: Arrivals, alive: Bools, *, idle: bool = True
) -> Changes:
    """Changes by query, then by step: what happens before row r goes to place 2r, the arrival itself to 2r + 1.

    idle: there may be steps without an arrival.
    """
    visits, Q = batch.all_visits, len(engine.specs)
    alone = out["row"] < 0 if idle else np.zeros(len(out), np.bool_)
    if engine.net:
        out["instant"] = visits["last"][out["visit"]]
        ends = visits["end"][out["visit"]]
        rows = np.append(batch.all_rows, -1)[ends - 1]
        out["row"] = np.where(ends > visits["begin"][out["visit"]], rows, -1)
    elif idle and alone.any():
        now, rows = np.ascontiguousarray(batch.all_now), np.ascontiguousarray(batch.all_rows)
        find_rows(out, visits, now, rows, not engine.timed)
    if len(visits) > 1 or Q > 1:
        out = by_step(engine, out, alone, arrivals, Q)
    groups = np.zeros(len(out), np.int64) if arrivals.total == 1 else visits["group"][out["visit"]]
    return _changes(engine, out, groups, alive)


def at_rest(engine: Serving, pieces: list[Records]) -> Changes:
    """Changes between two batches, by query; their visits are the groups."""
    out = np.concatenate([np.empty(0, CHANGE), *pieces])
    out = out[np.argsort(out["query"], kind="stable")]
    return _changes(engine, out, out["visit"].astype(np.int64), np.empty(0, np.bool_))


def _changes(engine: Serving, out: Records, groups: Ints, alive: Bools) -> Changes:
    n, single = len(out), len(engine.specs) == 1
    types = (*[np.int64] * 5, *[np.float64] * 2, np.int8, np.bool_)
    columns = Columns(*(np.empty(n, type_) for type_ in types))
    if n:
        write_columns(out, columns)
    return Changes(
        query=np.zeros(n, np.int64) if single else out["query"].astype(np.int64),
        group=groups,
        row=columns.row,
        instant=columns.instant,
        stamp=columns.stamp,
        serial=columns.serial,
        key=columns.key,
        diff=columns.diff,
        first=columns.first,
        alive=alive,
        rank=columns.rank if engine.by_rank else None,
        probability=columns.probability,
    )


def differences(
    old: Records, new: Records, query: int, group: int, entered: set[tuple[int, int]], by_rank: bool
) -> Records:
    """Changes from one answer to the next, by a step without an arrival; `entered` knows what entered before."""

    def identities(records: Records) -> list[tuple[int, int]]:
        ranks = (records["mark"] - 1).tolist() if by_rank else [0] * len(records)
        return list(zip(records["serial"].tolist(), ranks, strict=True))

    before, after = identities(old), identities(new)
    leaving = old[[one not in set(after) for one in before]] if before else old
    entering = new[[one not in set(before) for one in after]] if after else new
    changes = np.zeros(len(leaving) + len(entering), CHANGE)
    for name, of in (("key", "key"), ("probability", "p"), ("stamp", "stamp"), ("serial", "serial"), ("rank", "mark")):
        changes[name] = np.concatenate([leaving[of], entering[of]])
    changes["query"], changes["visit"], changes["row"] = query, group, -1
    changes["diff"] = [-1] * len(leaving) + [1] * len(entering)
    changes["first"] = [False] * len(leaving) + [one not in entered for one in identities(entering)]
    entered.update(after)
    return changes


def ranked(found: Records, groups: Ints, sizes: Ints, spec: Spec) -> Answer:
    """The answers of these groups, each best first: the most probable one, where probabilities choose the answer."""
    place = np.arange(1, len(found) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    if spec.semantics in ("pk-topk", "pt-k"):
        found = found[np.lexsort((place, -found["p"], np.repeat(np.arange(len(sizes)), sizes)))]
    return Answer(
        group=np.repeat(groups, sizes),
        rank=np.ascontiguousarray(found["mark"]) if spec.semantics == "u-kranks" else place,
        stamp=np.ascontiguousarray(found["stamp"]),
        serial=np.ascontiguousarray(found["serial"]),
        key=np.ascontiguousarray(found["key"]),
        probability=np.ascontiguousarray(found["p"]),
    )
