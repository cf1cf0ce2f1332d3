"""Right snapshots to be forged: scenes of every kind, algorithm and window, and what their bytes mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from faults import newer_scenes
from faults.scene import Scene
from skyband.monitor import cells, snapshot
from skyband.monitor.archive import unpack
from skyband.query.algorithms import algorithms
from skyband.query.kinds import Query


def _windows(row: Any) -> dict[str, Any]:
    every = {"count": sb.Last(25), "time": sb.Last(span=9), "until deleted": sb.UntilDeleted(), "ever": sb.Ever()}
    return {name: every[name] for name in row.windows}


@cache
def scenes() -> dict[str, Scene]:
    """Every kind, algorithm and window, with options that change what is stored."""
    found: dict[str, Scene] = {}
    for row in algorithms():
        for name, window in _windows(row).items() if row.name != "SORTED" else ():  # newer_scenes has its scenes
            for kind in row.kinds:
                found |= _OF_KIND[kind](f"{kind} {row.name} {name}", row, window)
    for name, scene in list(found.items()):
        timed = [query for query in scene.queries.values() if query.window.sort == "time" and query.per]
        if timed:  # groups whose objects are gone: their numbers are stored apart
            found[f"{name} passing"] = replace(scene, queries={"q": replace(timed[0], per="b")})  # type: ignore[type-var]
    for name, more in (("text id", {"id": "word"}), ("bag", {"keep": ("bag", "word")}), ("net", {"emit": "batch"})):
        found[f"TopK {name}"] = Scene({"q": sb.TopK(3, "x", sb.Last(20), per=("g", "h"))}, more)
        found[f"TopK timed {name}"] = Scene({"q": sb.TopK(3, "x", sb.Last(span=9), per="g")}, {"time": "t"} | more)
    found["TopK empty"] = Scene({"q": sb.TopK(3, "x", sb.Last(20), per="g")}, {"id": "i"}, 0)
    found["mixed"] = Scene(
        {
            "a": sb.TopK(2, "x", sb.Last(span=9), per="g"),
            "b": sb.Above(20, "y", sb.Last(15)),
            "c": sb.TopKPairs(2, "abs(a.x - b.x)", sb.Last(9), per="h"),
            "d": sb.TopKUncertain(2, "x", sb.Last(9)),
        },
        {"time": "t", "id": "i"},
    )
    return found | newer_scenes.scenes()


def _options(window: Any, **more: Any) -> dict[str, Any]:
    return ({"time": "t"} if window.sort in ("time", "ever") else {}) | more


def _less(window: Any) -> Any:
    """A window that shares an engine with this one, shorter where there are lengths."""
    shorter: dict[str, Any] = {"count": sb.Last(12), "time": sb.Last(span=5)}
    return shorter.get(window.sort, window)


def _topk(name: str, row: Any, window: Any) -> dict[str, Scene]:
    by: Any = sb.Nearest({"x": 20, "y": 20}) if row.scorings == "nearest" else "x + 0.5*y"
    id_ = {"id": "i"} if isinstance(window, sb.UntilDeleted) else {}
    more: dict[str, Any] = {"buffer": 6} if row.name[:2] in ("SA", "RA") and len(row.name) == 4 else {}
    long = sb.Last(1024) if row.name == "ADAPTIVE" else window
    one = sb.TopK(3, by, long, algorithm=row.name, **more)
    found = {name: Scene({"q": one}, _options(window, **id_), 400 if row.name == "ADAPTIVE" else 60)}
    if row.grouped:
        per = sb.TopK(2, by, window, algorithm=row.name, per="g", where="y < 30", **more)
        options = _options(window, emit="batch", id="who" if id_ else "i")
        found[f"{name} grouped"] = Scene({"q": per}, options | ({"op": "op"} if id_ else {}))
    if row.shares and not row.keeps_window and not id_:
        less = _less(window)
        two = {"q": one, "r": sb.TopK(5, by, less, algorithm=row.name, **more)}
        found[f"{name} shared"] = Scene(two, _options(window, keep=("word",)))
    if row.family or row.keeps_window:
        points = (
            ((0, 0), (20, 30), (40, 10), (5, 5)) if row.scorings == "nearest" else ((1, 2), (3, 1), (-1, 1), (2, 2))
        )
        ways = [
            sb.Nearest({"x": a, "y": b}) if row.scorings == "nearest" else sb.Linear({"x": a, "y": b})
            for a, b in points
        ]
        queries = {f"q{i}": sb.TopK(2, by, window, algorithm=row.name, index=True, **more) for i, by in enumerate(ways)}
        found[f"{name} family"] = Scene(queries, _options(window, **id_))
    if row.keeps_window and not id_:
        less = _less(window)
        two = {"q": one, "r": sb.TopK(2, by, less, algorithm=row.name)}
        found[f"{name} related"] = Scene(two, _options(window))
    if row.keeps_window and row.scorings != "nearest":
        texts = ("x * y", "abs(x) - 2 * y", "x * y")
        queries = {f"q{i}": sb.TopK(2, by, window, algorithm=row.name, where="x > -9") for i, by in enumerate(texts)}
        found[f"{name} expressions"] = Scene(queries, _options(window, **id_))
    return found


def _above(name: str, row: Any, window: Any) -> dict[str, Scene]:
    id_ = {"id": "i"} if isinstance(window, sb.UntilDeleted) else {}
    queries = {f"q{i}": sb.Above(20 + i, "x + y", window, algorithm=row.name, per="g") for i in range(2)}
    return {name: Scene(queries, _options(window, **id_))}


def _pairs(name: str, row: Any, window: Any) -> dict[str, Scene]:
    ways: tuple[Any, ...] = sb.Global({"x": "absdiff", "y": "absdiff"}), "abs(a.x - b.x)", "a.x*b.x - a.y*b.y"
    one, two, three = (
        sb.TopKPairs(3, by, window, algorithm=row.name, per=per, symmetric=by != ways[2])
        for by, per in zip(
            ways if row.scorings == "any" else (ways[0], ways[1], ways[1]), (None, "g", None), strict=True
        )
    )
    less, id_ = _less(window), {"id": "i"} if isinstance(window, sb.UntilDeleted) else {}
    shared = {"q": one, "r": sb.TopKPairs(2, ways[0], less, algorithm=row.name)}
    other = sb.TopKPairs(2, ways[1], less, algorithm=row.name)
    return {
        name: Scene({"q": one}, _options(window, **id_)),
        f"{name} grouped": Scene({"q": two}, _options(window, emit="batch", id="i")),
        f"{name} given": Scene({"q": three}, _options(window, **id_)),
        f"{name} shared": Scene(shared, _options(window, **id_)),
        f"{name} scorings": Scene({"q": one, "s": other}, _options(window, id="i")),  # which share a window
    }


def _incomplete(name: str, row: Any, window: Any) -> dict[str, Scene]:
    more: dict[str, Any] = {"budget": 30} if row.name == "BUDGET" else {}
    one = sb.TopKIncomplete(2, ["a", "b"], window, algorithm=row.name, per="h", **more)
    two = sb.TopKIncomplete(2, ["a", "b"], window, algorithm=row.name, repeat="sum", combine="max", **more)
    found = {
        name: Scene({"q": one}, _options(window, id="who")),
        f"{name} repeat": Scene({"q": two}, _options(window, id="who", emit="batch")),
    }
    if row.exact:
        less = _less(window)
        other = sb.TopKIncomplete(3, ["a", "b"], less, algorithm=row.name, repeat="last")
        pair = {"q": sb.TopKIncomplete(2, ["a", "b"], window, algorithm=row.name, repeat="last"), "r": other}
        few = sb.TopKIncomplete(2, ["a", "b"], window, algorithm=row.name, repeat="sum", at_most=3, per="h")
        found[f"{name} promised"] = Scene({"q": few}, _options(window, id="who"))
        if row.name != "SLA":
            pairs: list[Any] = [("sum", None), ("max", "last")]
            for combine, repeat in pairs:
                some = sb.TopKIncomplete(2, "*", window, algorithm=row.name, combine=combine, repeat=repeat, per="h")
                found[f"{name} any {combine}"] = Scene({"q": some}, _options(window, id="who"))
        low: Any = sb.TopKIncomplete(2, {"a": (0, math.inf), "b": (0, 9)}, window, algorithm=row.name, largest=False)
        found[f"{name} smallest"] = Scene({"q": replace(low, where="x > 20")}, _options(window, id="who"))
        found[f"{name} shared"] = Scene(pair, _options(window, id="word"))
    return found


def _uncertain(name: str, row: Any, window: Any) -> dict[str, Scene]:
    found = {}
    for means in ("pk-topk", "pt-k", "u-kranks", "u-topk"):
        ask = partial(
            sb.TopKUncertain, by="x", semantics=means, threshold=0.3 if means == "pt-k" else None, algorithm=row.name
        )
        less = _less(window)
        if not (row.alternatives and window.sort == "ever"):  # BS takes that for alternatives only
            found[f"{name} {means}"] = Scene({"q": ask(3, window=window), "r": ask(2, window=less)}, _options(window))
        if row.alternatives and (row.name, means) != ("DOM", "u-topk"):  # which needs the whole window
            found[f"{name} {means} groups"] = Scene({"q": ask(2, window=window, group="e")}, _options(window, id="i"))
    grouped = sb.TopKUncertain(2, "x", window, per="g", where="y < 30", algorithm=row.name)
    if not (row.alternatives and window.sort == "ever"):
        found[f"{name} grouped"] = Scene({"q": grouped}, _options(window, emit="batch", id="i"))
    return found


def _groups(name: str, row: Any, window: Any) -> dict[str, Scene]:
    by = "sum(x)" if row.exact is False else "sum(x) + max(y)"
    one = sb.TopKGroups(3, by, window, of="word", algorithm=row.name)
    found = {name: Scene({"q": one}, _options(window, id="i"))}
    if row.grouped:
        per = sb.TopKGroups(2, by, window, of="word", algorithm=row.name, per="g", where="y < 30")
        found[f"{name} grouped"] = Scene({"q": per}, _options(window, emit="batch", id="i"))
    if row.exact:
        found |= _exact_groups(name, row, window)
    return found


def _exact_groups(name: str, row: Any, window: Any) -> dict[str, Scene]:
    ask = partial(sb.TopKGroups, window=window, algorithm=row.name, of="e")
    keyed = {"id": "i"} if isinstance(window, sb.UntilDeleted) else {}
    less = _less(window)
    found = {
        f"{name} means": Scene(
            {"q": ask(2, by="avg(x / 3)", per="g", where="y < 30")}, _options(window, emit="batch", id="i")
        ),
        f"{name} picks": Scene(
            {"q": ask(2, by="max(x) - min(y)", having="first(y) > 1", select={"w": "last(word)"})},
            _options(window, **keyed),
        ),
        f"{name} best": Scene({"q": ask(3, by="max(x)")}, _options(window, keep=("word",), **keyed)),
        f"{name} distinct": Scene(
            {"q": ask(2, by="count(distinct word) + count(distinct x)", per="h")}, _options(window, **keyed)
        ),
        f"{name} shared": Scene(
            {"q": ask(2, by="sum(x)"), "r": sb.TopKGroups(3, by="sum(x)", window=less, of="e", algorithm=row.name)},
            _options(window, **keyed),
        ),
        f"{name} struct": Scene({"q": replace(ask(2, by="sum(x)"), of=("e", "word"))}, _options(window, **keyed)),
    }
    if window.sort == "ever":
        found[f"{name} decay"] = Scene({"q": ask(2, by="sum(x)", decay=5, per="h")}, _options(window))
    return found


_OF_KIND: dict[str, Callable[[str, Any, Any], dict[str, Scene]]] = {
    "TopK": _topk,
    "Above": _above,
    "TopKGroups": _groups,
    "TopKPairs": _pairs,
    "TopKIncomplete": _incomplete,
    "TopKUncertain": _uncertain,
}


@dataclass(frozen=True)
class Right:
    """A right snapshot, taken apart: facts, parts, each cell as named arrays, and the snapshots inside it."""

    data: bytes
    facts: dict[str, Any]
    parts: dict[str, Any]
    arrays: dict[str, list[tuple[str, Any]]]  # by cell: (name, array)
    inside: dict[str, Right]  # by part: of a loop over answers


def _query(_: str, stored: Any) -> Query:
    """A stored query; one that a subscription's values have made is one already."""
    return stored if isinstance(stored, Query) else Query.from_dict(stored)


@cache
def right(scene: str, later: int = 0) -> Right:
    return _taken_apart(scenes()[scene].monitor(later).snapshot())


def _taken_apart(data: bytes) -> Right:
    facts, parts = unpack(data)
    state = snapshot.restore(facts, parts, _query)
    arrays = {}
    for c, groups in enumerate(state.groups.values()):
        types: list[tuple[str, Any]] = []
        for name, column in zip(groups.names, groups.inputs, strict=True):
            types += _column(f"per {name}", state.types.get(column))
        for a, adapter in enumerate(one for one in state.standing() if one.groups is groups):
            types.append((f"{a} counts", np.int64))
            if adapter.numbering.dated:
                types.append((f"{a} last_times", np.int64))
            if adapter.engine is not None:
                layout = adapter.engine.snapshot(np.empty(0, np.int64))
                types += [(f"{a} {name}", array.dtype) for name, (array, _) in layout.items()]
                for name, type_ in adapter.kept_types(state.types).items():
                    types += _column(f"{a} kept {name}", type_)
        streams = cells.read([parts[f"cell{c}"].tobytes()], len(types))
        arrays[f"cell{c}"] = [
            (name, np.frombuffer(bytes(stream[0]), dtype)) for (name, dtype), stream in zip(types, streams, strict=True)
        ]
    inside = {f"over{i}": _taken_apart(parts[f"over{i}"].tobytes()) for i in range(len(facts.get("over", ())))}
    return Right(data, facts, parts, arrays, inside)


def _column(name: str, type_: Any) -> list[tuple[str, Any]]:
    if type_ is None:
        return []
    width = cells.column_width(type_)
    inner: Any = np.uint8
    if width == 2 and not pa.types.is_boolean(type_):
        inner = np.dtype(f"i{min(8, type_.bit_width // 8)}")
    return [
        [(name, np.uint8)],
        [(f"{name} mask", np.uint8), (name, inner)],
        [(f"{name} mask", np.uint8), (f"{name} lengths", np.int64), (name, np.uint8)],
    ][width - 1]
