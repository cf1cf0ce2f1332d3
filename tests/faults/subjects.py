"""Monitors into which faults are injected, and the calls that may change their state: every kind, and what asks more.

Beside the common kinds (tests/kinds.py): deletions, orders, sessions, questions over answers, subscriptions, vectors,
and the engines that no common kind takes.
"""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from kinds import KINDS, Kind, stream

Call = Callable[[sb.Monitor], Any]
_HOUR = sb.Last(span=60)
_LIVE = {"id": "i", "time": "t", "op": "op", "keep": "y"}
_NEAR = sb.Nearest({"x": sb.Each("px"), "y": 40})
_PAIRS = sb.Global({"x": "absdiff"})
_MORE = {
    "until deleted": Kind(
        {"deleted": sb.TopK(3, by="x", window=sb.UntilDeleted(), per="g"), "best": sb.TopK(2, "y", sb.Last(30))}, _LIVE
    ),
    "orders": Kind(
        {
            "orders timed": sb.TopK(3, ("x", "g"), _HOUR, nulls="last", ties="oldest"),
            "orders counted": sb.TopK(2, ("y", "x"), sb.Last(40), offset=1, per="g"),
            "orders session": sb.TopK(3, "x", sb.Session(span=1), per="g"),
            "orders distinct": sb.TopK(2, "x", _HOUR, distinct="last"),
        },
        {"id": "who", "time": "t", "keep": "y"},
    ),
    "sources": Kind(
        {
            "source": sb.TopK(4, "x", _HOUR, per="g"),
            "asker": sb.TopK(2, ("score", "y"), source="source"),
            "group asker": sb.TopKGroups(2, by="sum(score)", of="g", source="source"),
            "deep asker": sb.Above(50, "score", source="group asker"),
        },
        {"id": "i", "time": "t", "keep": "y"},
    ),
    "subscriptions": Kind(
        {
            "slots": sb.TopK(sb.Each("k"), _NEAR, sb.Last(sb.Each("n")), where="y >= :low"),
            "alone": sb.TopK(sb.Each("k"), "x", sb.Last(span=sb.Each("n")), per="g"),
            "plain": sb.TopK(3, "y", _HOUR),
        }
    ),
    "vectors": Kind(
        {
            "similar": sb.TopK(sb.Each("k"), sb.Similar("v", sb.Each("v")), sb.Last(50)),
            "one vector": sb.TopK(3, sb.Similar("v", [1, 0, 2], "euclidean"), _HOUR),
        }
    ),
    "ever": Kind(
        {
            "ever best": sb.TopK(3, "x", sb.Ever(), per="g"),
            "ever above": sb.Above(90, "x", sb.Ever()),
            "ever likely": sb.TopKUncertain(2, "x", sb.Ever(), per="g"),
            "pairs tree": sb.TopKPairs(3, _PAIRS, sb.Last(25), algorithm="PST"),
        }
    ),
    "live pairs": Kind(
        {"pairs live": sb.TopKPairs(3, _PAIRS, sb.UntilDeleted(), per="g", on="a.y <> b.y")}, _LIVE | {"id": "who"}
    ),
    "any parts": Kind(
        {
            "parts any": sb.TopKIncomplete(2, "*", _HOUR, per="g", repeat="last"),
            "parts sum": sb.TopKIncomplete(2, ["a", "b"], sb.Last(60), repeat="sum", at_most=3),
            "alternatives": sb.TopKUncertain(2, "x", sb.Last(span=20), group="who"),
        },
        {"id": "who", "time": "t"},
    ),
    "compact": Kind(
        {
            "compact queue": sb.TopKUncertain(2, "x", sb.Last(span=20), algorithm="SCSQ-BUFFER", per="g"),
            "compact one": sb.TopKUncertain(2, "y", sb.Last(20), algorithm="CSQ", semantics="u-kranks"),
        }
    ),
}
SUBJECTS = KINDS | {name: kind for name, kind in _MORE.items() if KINDS.keys() >= {"topk", "groups"}}


def rows(start: int, size: int, *, groups: str = "abc") -> Any:
    """Rows of the common stream, with groups that have not been seen before, vectors, and some deletions."""
    table = stream(size, start=start)
    names = pa.array([groups[i % len(groups)] for i in range(size)])
    table = table.set_column(table.schema.get_field_index("g"), "g", names)
    table = table.append_column("v", pa.array([[i % 5 - 2.0, 1.0, i % 3] for i in range(size)], pa.list_(pa.float64())))
    return table.append_column("op", pa.array(["delete" if i % 7 == 3 else "insert" for i in range(size)]))


def subscribers(start: int, size: int) -> Any:
    """Subscriptions of any query here with `Each`."""
    i = np.arange(start, start + size)
    vectors = [[n % 3 - 1.0, 1.0, n % 2] for n in i]
    return pa.table({"subscriber": i, "k": 1 + i % 3, "n": 5 + i % 30, "px": i % 90, "low": i % 40, "v": vectors})


def started(kind: str, **more: Any) -> sb.Monitor:
    """A Monitor of this kind that has taken no row yet, with subscriptions where its queries have `Each`."""
    monitor = SUBJECTS[kind].monitor(**more)
    for name, query in monitor.queries.items():
        if query.each:
            monitor.subscribe(name, subscribers(0, 20))
    return monitor


def calls(kind: str) -> dict[str, Call]:
    """The calls of a Monitor that can change its state."""
    subject = SUBJECTS[kind]
    name, query = next(iter(subject.queries.items()))
    found: dict[str, Call] = {
        "push": lambda m: m.push(rows(40, 60, groups="abcde")),
        "push of many groups": lambda m: m.push(rows(40, 60, groups=ascii_letters)),
        "advance": lambda m: m.advance(10**6),
        "answer": lambda m: m.answer(name),
        "snapshot": lambda m: m.snapshot(),
        "add": lambda m: m.add("another", sb.TopK(1, "x", sb.Last(5))),
        "replace": lambda m: m.replace(name, sb.TopK(1, "x", sb.Last(5), per="g" if kind == "sources" else None)),
    }
    if kind != "sources":  # no source is dropped
        found["drop"] = lambda m: m.drop(name)
    else:
        found["add asker"] = lambda m: m.add("another asker", sb.TopK(2, "score", source="deep asker"))
        found["drop asker"] = lambda m: m.drop("deep asker")
        found["move asker"] = lambda m: m.replace("asker", sb.TopK(2, "x", _HOUR))
        found["move to a source"] = lambda m: m.replace("deep asker", sb.TopK(2, "score", source="asker"))
    if query.per_columns:
        found["answer a group"] = lambda m: m.answer(name, keys=["a", "z"])
    if kind in ("topk", "pairs", "until deleted", "ever", "live pairs"):
        found["begin with a window"] = lambda m: m.add("another", query.smaller(1), from_window=True)
    if "op" in subject.options:
        found["delete"] = lambda m: m.delete([5, 6, 7])
    if query.each:
        found["subscribe"] = lambda m: m.subscribe(name, subscribers(15, 10))
        found["unsubscribe"] = lambda m: m.unsubscribe(name, [3, 4, 99])
        found["answer a subscriber"] = lambda m: m.answer(name, subscriber=98)
        found["subscribe with a window"] = lambda m: m.subscribe(name, subscribers(30, 4), from_window=True)
    return found
