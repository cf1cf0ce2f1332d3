"""Snapshots of alternatives by version 0.1, whose engine was Python: tuples by age, and answers as reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import recast
from skyband.engines.contract import EVER, NEVER
from skyband.engines.invariants import are_counts, by_run, near, owners, require, within
from skyband.engines.uncertain.invariants import check_answers, check_window
from skyband.engines.uncertain.kernels.records import GROUP, NAMED, RUN, TUPLE, VIEW
from skyband.engines.uncertain.rivals import ENTRY

if TYPE_CHECKING:
    from skyband.engines.uncertain.exclusive import Exclusive

Records = NDArray[Any]
TUPLES = np.dtype([("key", "f8"), ("p", "f8"), ("stamp", "i8"), ("serial", "i8"), ("name", "i8"), ("flags", "i8")])
CLOCKS = np.dtype([("now", "i8"), ("newest", "i8")])
ENTERED = np.dtype([("serial", "i8"), ("rank", "i8"), ("query", "i8")])
NUMBER = np.dtype("i8")
LAYOUT = {
    "tuples": TUPLES, "many": NUMBER, "state": CLOCKS, "answers": TUPLE, "shown": NUMBER, "said": ENTERED,
    "told": NUMBER,
}  # fmt: skip
IS_NAMED, IS_ELIGIBLE = 1, 2  # flags


def is_of_first_version(layout: Mapping[str, str]) -> bool:
    return layout.keys() == LAYOUT.keys()


def converted(engine: Exclusive, state: Mapping[str, Records], *, trusted: bool) -> dict[str, Records]:
    """The arrays that this version stores."""
    tuples, many, shown, said = (state[name] for name in ("tuples", "many", "shown", "told"))
    Q, G = len(engine.specs), len(many)
    require(len(state["state"]) == G == len(said) and len(shown) == Q * G, "groups have their state")
    parts = ((many, tuples), (shown, state["answers"]), (said, state["said"]))
    require(all(are_counts(sizes, len(of)) for sizes, of in parts), "groups have their tuples")
    if not trusted:
        _check(engine, state)
    of, eligible, named = owners(many), tuples["flags"] & IS_ELIGIBLE != 0, tuples["flags"] & IS_NAMED != 0
    past = _named(tuples[eligible])
    past["name"], past["named"] = tuples["name"][eligible], named[eligible]
    sizes = np.bincount(of[eligible], minlength=G)
    entries = np.zeros(int(named.sum()), ENTRY)
    for name in ("name", "stamp", "p"):
        entries[name] = tuples[name][named]
    if max(one.length for one in engine.specs) == EVER:  # alternatives go by numbers there, and none expires
        entries["stamp"] = 0
    answers = _named(recast(state["answers"], TUPLE))
    answers["mark"] = state["answers"]["mark"]
    past["mark"], marks = _marks(engine, state["said"], past["serial"])
    return {
        "past": past,
        "pasts": _runs(sizes),
        "state": _groups(engine, state["state"], sizes),
        "views": _views(engine, state["state"], past, sizes),
        "answers": answers,
        "lanes": _runs(shown),
        "marks": marks.reshape(-1),
        "rivals": entries,
        "named": np.bincount(of[named], minlength=G),
    }


def _check(engine: Exclusive, state: Mapping[str, Records]) -> None:
    tuples, sizes, clocks, said = (state[name] for name in ("tuples", "many", "state", "said"))
    check_window(tuples, sizes)
    require(within(tuples["flags"], 0, IS_NAMED | IS_ELIGIBLE), "tuples have flags")
    known = near(clocks["now"][clocks["now"] > -NEVER]) and near(clocks["newest"][clocks["newest"] > -NEVER])
    newest = by_run(np.maximum, tuples["stamp"], sizes, -NEVER)
    require(known and (clocks["newest"] >= newest).all(), "no tuple is newer")
    Q = len(engine.specs)
    require(within(said["query"], 0, Q - 1) and within(said["rank"], 0, max(engine.own) - 1), "reports are of queries")
    of = np.arange(len(state["shown"])) // Q
    check_answers(recast(state["answers"], TUPLE), state["shown"], of, tuples, owners(sizes), engine.by_rank)


def _named(records: Records) -> Records:
    found = np.zeros(len(records), NAMED)
    for name in ("key", "p", "stamp", "serial"):
        found[name] = records[name]
    return found


def _runs(sizes: Records) -> Records:
    found = np.zeros(len(sizes), RUN)
    found["size"] = found["room"] = sizes
    return found


def _groups(engine: Exclusive, clocks: Records, sizes: Records) -> Records:
    groups = engine.empty_groups(len(clocks))
    groups["now"], groups["newest"] = clocks["now"], clocks["newest"]
    groups["due"] = np.where(sizes > 0, -NEVER, NEVER)
    groups["level"] = np.nan
    return np.asarray(groups, GROUP)


def _views(engine: Exclusive, clocks: Records, past: Records, sizes: Records) -> Records:
    """Views that are read again in the next step."""
    Q, of = len(engine.specs), owners(sizes)
    views = np.zeros(len(clocks) * Q, VIEW)
    views["floor"], views["due"] = -np.inf, np.repeat(np.where(sizes > 0, -NEVER, NEVER), Q)
    for q, one in enumerate(engine.specs):
        low = np.where(clocks["now"] > -NEVER, clocks["now"] - one.length, -NEVER)
        views["low"][q::Q] = low
        views["first"][q::Q] = np.bincount(of[past["stamp"] <= low[of]], minlength=len(clocks))
    return views


def _marks(engine: Exclusive, said: Records, serials: Records) -> tuple[Records, Records]:
    """By tuple its slot or -1, and the rows of bits of those that have one, in order of their tuples."""
    bits: dict[int, int] = {}
    for serial, rank, q in said.tolist():
        bits[serial] = bits.get(serial, 0) | 1 << int(engine.queries["bit"][q]) + rank
    words = engine.words
    slotted = np.isin(serials, list(bits))
    mask = 2**64 - 1
    rows = [[bits[serial] >> (64 * w) & mask for w in range(words)] for serial in serials[slotted].tolist()]
    return np.where(slotted, 0, -1), np.array(rows, np.uint64).reshape(-1, words)
