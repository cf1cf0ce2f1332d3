"""Fronts and answers over linked rows: which objects belong to a front, and how changes of the answers are reported."""

from __future__ import annotations

from typing import Any

from skyband.engines.incomplete.kernels.batches import TOUCHED, Output, Queries
from skyband.engines.incomplete.kernels.fronts import above_floor, clear, insert, raise_floor, rank_in, report
from skyband.engines.incomplete.kernels.linked_store import Store, decisive
from skyband.kernels.compile import uncounted
from skyband.kernels.records import BITS


@uncounted
def belongs(store: Store, f: int, o: int, i: int) -> Any:
    """Whether object o, with its score at place i, has a valid row and ranks above the floor of front f."""
    return store.scores[i]["count"] > 0 and above_floor(store, f, o, i)


@uncounted
def cut(store: Store, queries: Queries, g: int, v: int, silent: bool, output: Output) -> None:
    """A front that has grown to twice its length keeps the best; the others have left the answers for sure."""
    V, most = len(queries.views), queries.views[v]["most"]
    front = store.fronts[g * V + v]
    if front["size"] < 2 * most:
        return
    for place in range(front["start"] + most, front["start"] + front["size"]):
        i = store.members[place] * V + v
        for q in range(0 if silent else len(queries.each)):
            if queries.each[q]["view"] == v and store.scores[i]["inside"] & BITS[q]:
                report_leave(store, q, i, output)
    raise_floor(store, g * V + v, v, most)


@uncounted
def refill(store: Store, queries: Queries, g: int, v: int, output: Output) -> None:
    """Fill the front from all objects of the group. Its members are among the best, so none is lost."""
    V, head = len(queries.views), store.groups[g]["head"]
    clear(store, g * V + v)
    for place in range(head, head + store.groups[g]["size"]):
        r = store.order[place]
        o = store.rows[r]["object"]
        if o >= 0 and store.objects[o]["newest"] == r and belongs(store, g * V + v, o, o * V + v):
            insert(store, g * V + v, v, o)
            cut(store, queries, g, v, True, output)


@uncounted
def report_leave(store: Store, q: int, i: int, output: Output) -> None:
    """An object leaves the answer of query q, with the score that was last reported. i: of its score."""
    was = store.reported[i]
    report(output, store.facts, q, -1, False, was["score"], was["stamp"], was["serial"])
    store.scores[i]["inside"] &= ~BITS[q]


@uncounted
def report_enter(store: Store, q: int, o: int, i: int, repeat: int, output: Output) -> None:
    """Object o enters the answer of query q."""
    score, stamp, serial = store.scores[i], store.objects[o]["stamp"], decisive(store, o, i, repeat)
    report(output, store.facts, q, 1, not score["shown"] & BITS[q], score["score"], stamp, serial)
    score["inside"] |= BITS[q]
    score["shown"] |= BITS[q]


@uncounted
def remember(store: Store, o: int, i: int, repeat: int) -> None:
    """Note what is reported of object o."""
    was, stamp, serial = store.reported[i], store.objects[o]["stamp"], decisive(store, o, i, repeat)
    was["score"], was["stamp"], was["serial"] = store.scores[i]["score"], stamp, serial


@uncounted
def compare(store: Store, queries: Queries, g: int, v: int, output: Output) -> None:
    """Report how the answers differ from those before this step."""
    V, scores = len(queries.views), store.scores
    front = store.fronts[g * V + v]
    start, size = front["start"], front["size"]
    for q in range(len(queries.each)):
        k = queries.each[q]["k"]
        if queries.each[q]["view"] != v or front["changed"] >= k:
            continue
        for t in range(store.facts[TOUCHED]):
            o = store.touched[t]
            if scores[o * V + v]["inside"] & BITS[q] and not belongs(store, g * V + v, o, o * V + v):
                report_leave(store, q, o * V + v, output)
        for place in range(start + min(k, size), start + size):
            o = store.members[place]
            if scores[o * V + v]["inside"] & BITS[q]:
                report_leave(store, q, o * V + v, output)
        for place in range(start, start + min(k, size)):
            o = store.members[place]
            if not scores[o * V + v]["inside"] & BITS[q]:
                report_enter(store, q, o, o * V + v, queries.repeat, output)
                remember(store, o, o * V + v, queries.repeat)


@uncounted
def compare_all(store: Store, queries: Queries, g: int, output: Output) -> None:
    """Report how the answers of a group differ from those last reported, whatever has happened since."""
    V, scores = len(queries.views), store.scores
    head, size = store.groups[g]["head"], store.groups[g]["size"]
    for q in range(len(queries.each)):
        v, k = queries.each[q]["view"], queries.each[q]["k"]
        f = g * V + v
        for place in range(head, head + size):
            o = store.rows[store.order[place]]["object"]
            if o < 0 or store.objects[o]["newest"] != store.order[place] or not scores[o * V + v]["inside"] & BITS[q]:
                continue
            if not belongs(store, f, o, o * V + v) or rank_in(store, f, v, o) >= k:
                report_leave(store, q, o * V + v, output)
        for place in range(store.fronts[f]["start"], store.fronts[f]["start"] + min(k, store.fronts[f]["size"])):
            o = store.members[place]
            if not scores[o * V + v]["inside"] & BITS[q]:
                report_enter(store, q, o, o * V + v, queries.repeat, output)
            scores[o * V + v]["shown"] |= BITS[q]
    for v in range(V):
        front = store.fronts[g * V + v]
        for place in range(front["start"], front["start"] + front["size"]):
            remember(store, store.members[place], store.members[place] * V + v, queries.repeat)
