"""Scenes of queries over the answers of others: all three kinds on both sides, up to three deep."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as st

from engines.scene import CLOCKWORKS, Add, Advance, Delete, Drop, Push, Replace, Restore
from engines.strategies import Draw
from orders.scenes import OrderScene, rows_of
from skyband import Above, Ever, Last, Session, TopK, TopKGroups, UntilDeleted

SELECT = ((), {"sel": "sum(y)"}, {"sel": "max(x) - min(x)"})
ORDERS: tuple[dict[str, Any], ...] = ({}, {}, {"with_ties": True}, {"offset": 1}, {"ties": "oldest"})
ROWS = ("count(*)", "sum(y)", "max(x)", "sum(y) / count(*)", "-min(x)")


def over_rows(draw: Draw, windows: Any) -> Any:
    """A query over rows."""
    more: dict[str, Any] = {"per": draw(st.sampled_from([None, "g"])), "where": draw(st.sampled_from([None, "y > 0"]))}
    kind = draw(st.sampled_from(["TopK", "Above", "TopKGroups", "TopKGroups"]))
    if kind == "TopKGroups":
        of, select = draw(st.sampled_from(["i", "s"])), draw(st.sampled_from(SELECT))
        by: Any = draw(st.sampled_from(ROWS))
        if draw(st.integers(0, 2)) == 0:
            by, more = draw(st.sampled_from([(by, "id"), ("count(*)", by)])), more | draw(st.sampled_from(ORDERS))
        return TopKGroups(draw(st.integers(1, 3)), by=by, window=windows, of=of, select=select, **more)
    if kind == "Above":
        return Above(0.5, by="x", window=windows, **more)
    nulls, by = draw(st.sampled_from(["reject", "last"])), draw(st.sampled_from(["x", ("s",), ("b", "x")]))
    offset = draw(st.integers(0, 1))
    return TopK(draw(st.integers(1, 3)), by=by, window=windows, nulls=nulls, offset=offset, **more)


def over_answers(draw: Draw, source: str, asked: Any) -> Any:
    """A query over the answers of another one."""
    selects = ["sel"] * bool(getattr(asked, "select", ())) + ["key_1"] * (
        isinstance(asked, TopKGroups) and isinstance(asked.by, tuple)
    )
    per, where = draw(st.sampled_from([None, None, {"h": "y"}])), draw(st.sampled_from([None, None, "y > 0"]))
    more: dict[str, Any] = {"source": source, "per": per, "where": where}
    kind, k = draw(st.sampled_from(["TopK", "Above", "TopKGroups"])), draw(st.integers(1, 3))
    if kind == "Above":
        return Above(0.25, by=draw(st.sampled_from(["score", "score * 2 - y", *selects])), **more)
    if kind == "TopKGroups":
        arguments = ["score", "y", *selects]
        by = draw(st.sampled_from(["count(*)", "sum({})", "max({})", "first({})", "last({}) + 1"]))
        having = draw(st.sampled_from([None, None, "count(*) > 1"]))
        select = draw(st.sampled_from([(), {"sel": "sum(y)"}]))
        by, of = by.format(draw(st.sampled_from(arguments))), draw(st.sampled_from(["s", "id", "y"]))
        if draw(st.integers(0, 3)) == 0:
            by, more = ("count(*)", by), more | draw(st.sampled_from(ORDERS))
        return TopKGroups(k, by=by, of=of, having=having, select=select, **more)
    by = draw(st.sampled_from(["score", ("score", "s"), ("m", "id"), ("s",), (), *selects]))
    more |= draw(st.sampled_from(ORDERS))
    if draw(st.integers(0, 5)) == 0:
        return TopK("y", k_max=2, by=by, nulls="last", **more)
    return TopK(k, by=by, nulls=draw(st.sampled_from(["reject", "last"])), **more)


@st.composite
def scenes_over_answers(draw: Draw) -> OrderScene:
    """Scenes of queries over the answers of others, up to three deep; some come, go and change on the way."""
    clockwork = CLOCKWORKS["int64"]
    sort = draw(st.sampled_from(["time", "time", "count", "until deleted", "ever", "session"]))
    size = draw(st.integers(1, 6))
    timed = sort in ("time", "session") or draw(st.booleans())
    windows: dict[str, Any] = {"time": clockwork.window(size), "count": Last(size), "session": Session(span=size)}
    windows |= {"until deleted": UntilDeleted(), "ever": Ever()}
    first = over_rows(draw, windows[sort])
    if isinstance(first, TopKGroups) and sort == "until deleted":
        first = dataclasses.replace(first, of="s")
    queries: dict[str, Any] = {"a": first}
    for name, source in (("b", "a"), ("c", "b"), ("d", "a"), ("e", "c")):
        queries[name] = over_answers(draw, source, queries[source])
    later = {name: queries.pop(name) for name in draw(st.sampled_from([(), (), ("e",), ("d",), ("e", "c")]))}
    if draw(st.booleans()):
        queries = dict(sorted(queries.items(), reverse=True))
    options = {
        "id": "i",
        "time": "t" if timed else None,
        "keep": ("s", "m", "y"),
        "emit": draw(st.sampled_from(["arrival", "arrival", "batch"])),
        "late": draw(st.sampled_from(["accept", "accept", "drop"])),
    }
    kinds = ["push", "push", "push", "restore"] + ["advance"] * timed + ["delete"] * (sort == "until deleted")
    kinds += ["add"] * bool(later) + ["replace", "drop"]
    lateness, clock, events = draw(st.sampled_from([0, 0, 3])), 0, list[Any]()
    standing = dict(queries)
    for number in range(draw(st.integers(2, 7))):
        kind = draw(st.sampled_from(kinds)) if number else "push"
        if kind == "push":
            rows, clock = rows_of(draw, draw(st.integers(0, 10)), clock, lateness, clockwork)
            events.append(Push(rows))
        elif kind == "restore":
            events.append(Restore())
        elif kind == "advance":
            by_ticks = draw(st.integers(0, 5))
            clock += by_ticks
            events.append(Advance(by_ticks))
        elif kind == "delete":
            events.append(Delete(draw(st.lists(st.sampled_from(["p", "q", "r", "none"]), max_size=4))))
        elif kind == "add" and later:
            name = min(later)
            standing[name] = later.pop(name)
            events.append(Add(name, standing[name]))
        elif kind == "drop":
            free = [one for one in standing if not any(other.source == one for other in standing.values())]
            if "a" not in free and number > 2:
                name = draw(st.sampled_from(free))
                later[name] = standing.pop(name)
                events.append(Drop(name))
        elif kind == "replace" and not lateness:
            name = draw(st.sampled_from(["a", *standing]))
            if isinstance(getattr(standing[name], "k", None), int):
                standing[name] = dataclasses.replace(standing[name], k=draw(st.integers(1, 3)))
                events.append(Replace(name, standing[name]))
    return OrderScene(queries, events, options, clockwork, keyed=("s", "d", "b", "w"))
