"""Forged snapshots: right digests around hostile arrays and facts, restored and used in a child process.

    python -m faults.forge --scenes 'topk BLOCK' --count 1000 --seed 0     from tests/; without --scenes: all of them
    python -m faults.forge --scenes 'TopKPairs TA' --begin 417 --count 1 --here     one forgery again, in this process

A *scene* is a right snapshot of one kind, algorithm and window. Forgery i of a scene is made from (scene, seed, i)
alone, so that a crash is repeated by its number. The child says which forgery it begins; the parent counts one that
ends the child (a crash), takes too long (a hang), needs too much memory or raises anything but a skyband error, and
goes on with the next.
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import json
import os
import resource
import select
import subprocess
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.errors import QueryError, SkybandError, SkybandWarning, StateError
from skyband.monitor import cells, dormancy, snapshot
from skyband.monitor.archive import pack, unpack
from skyband.query.algorithms import algorithms
from skyband.query.kinds import Query

SECONDS = 20.0  # that one forgery may take; a hang is longer
MEMORY = 1 << 30  # bytes that a child may ask for beyond what it has when it begins
WARM = 600.0  # seconds for a child to load and compile

# ---- right snapshots

ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    2**31,
    2**40,
    2**62,
    2**63,
    2**70,
    -(2**63),
    1.5,
    float("nan"),
    float("inf"),
]
ODD += ["", "x", "TopK", "g", "t", [], {}, [1], [-1], ["x"], {"a": 1}, [[]], [None]]
INTS = [-1, 0, 1, 2, 3, 7, 31, 32, 255, 256, 2**31 - 1, 2**31, 2**32, 2**40, 2**61, 2**62, 2**63 - 1]
INTS += [-2, -(2**31), -(2**62), -(2**63)]
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324, 0.5, 1.0, 2.0, -1.0, 1e-300]


@dataclass(frozen=True)
class Scene:
    """Queries and options of a Monitor, and how many rows it has seen."""

    queries: Mapping[str, Query]
    options: dict[str, Any] = field(default_factory=dict)
    rows: int = 60

    def monitor(self, later: int = 0) -> sb.Monitor:
        """A Monitor that has seen these rows, and so many later ones."""
        monitor = sb.Monitor(self.queries, **self.options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SkybandWarning)  # of rows that are rejected
            for size, start in ((self.rows * 2 // 3, 0), (self.rows - self.rows * 2 // 3 + later, self.rows * 2 // 3)):
                if self.rows:
                    monitor.push(rows(size, start))
        return monitor


def rows(size: int, start: int = 0) -> pa.Table:
    """Rows that suit every scene; groups come and go, times rise with some equal ones, and some are late."""
    rng = np.random.default_rng(start)
    i = np.arange(start, start + size)
    return pa.table(
        {
            "i": i,
            "word": pa.array([f"w{n % 23}" for n in i]),
            "t": i // 2 - rng.integers(0, 3, size),
            "x": rng.integers(0, 40, size).astype(float),
            "y": rng.integers(0, 40, size).astype(float),
            "g": pa.array(np.array(["a", "b", None, "c", "d"])[rng.integers(0, 4 + (start > 100), size)]),
            "b": i // 2,
            "h": pa.array(rng.integers(0, 2, size)),
            "p": rng.integers(1, 9, size) / 8,
            "e": rng.integers(0, 6, size),
            "who": rng.integers(0, 12, size),
            "part": pa.array(np.array(["a", "b"])[rng.integers(0, 2, size)]),
            "value": rng.integers(0, 9, size) / 8,
            "bag": pa.array([[1, None], [], None, [3]] * size)[:size],
            "op": pa.array([["insert", "delete", "update"][n % 3] if n % 5 == 0 else "insert" for n in i]),
        }
    )


def _windows(row: Any) -> dict[str, Any]:
    every = {"count": sb.Last(25), "time": sb.Last(span=9), "until deleted": sb.UntilDeleted()}
    return {name: every[name] for name in row.windows}


@cache
def scenes() -> dict[str, Scene]:
    """Every kind, algorithm and window, with options that change what is stored."""
    found: dict[str, Scene] = {}
    for row in algorithms():
        for name, window in _windows(row).items():
            for kind in row.kinds:
                found |= _OF_KIND[kind](f"{kind} {row.name} {name}", row, window)
    for name, scene in list(found.items()):
        timed = [query for query in scene.queries.values() if query.window.timed and query.per]
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
    return found


def _options(window: Any, **more: Any) -> dict[str, Any]:
    return ({"time": "t"} if isinstance(window, sb.Last) and window.timed else {}) | more


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
        less = sb.Last(12) if not window.timed else sb.Last(span=5)
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
        less = sb.Last(12) if not window.timed else sb.Last(span=5)
        two = {"q": one, "r": sb.TopK(2, by, less, algorithm=row.name)}
        found[f"{name} related"] = Scene(two, _options(window))
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
    less = sb.Last(12) if not window.timed else sb.Last(span=5)
    shared = {"q": one, "r": sb.TopKPairs(2, ways[0], less, algorithm=row.name)}
    return {
        name: Scene({"q": one}, _options(window)),
        f"{name} grouped": Scene({"q": two}, _options(window, emit="batch", id="i")),
        f"{name} given": Scene({"q": three}, _options(window)),
        f"{name} shared": Scene(shared, _options(window)),
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
        less = sb.Last(12) if not window.timed else sb.Last(span=5)
        other = sb.TopKIncomplete(3, ["a", "b"], less, algorithm=row.name, repeat="last")
        pair = {"q": sb.TopKIncomplete(2, ["a", "b"], window, algorithm=row.name, repeat="last"), "r": other}
        found[f"{name} shared"] = Scene(pair, _options(window, id="word"))
    return found


def _uncertain(name: str, row: Any, window: Any) -> dict[str, Scene]:
    found = {}
    for means in ("pk-topk", "pt-k", "u-kranks", "u-topk"):
        ask = partial(
            sb.TopKUncertain, by="x", semantics=means, threshold=0.3 if means == "pt-k" else None, algorithm=row.name
        )
        less = sb.Last(12) if not window.timed else sb.Last(span=5)
        found[f"{name} {means}"] = Scene({"q": ask(3, window=window), "r": ask(2, window=less)}, _options(window))
        if row.alternatives:
            found[f"{name} {means} groups"] = Scene({"q": ask(2, window=window, group="e")}, _options(window, id="i"))
    grouped = sb.TopKUncertain(2, "x", window, per="g", where="y < 30", algorithm=row.name)
    found[f"{name} grouped"] = Scene({"q": grouped}, _options(window, emit="batch", id="i"))
    return found


_OF_KIND: dict[str, Callable[[str, Any, Any], dict[str, Scene]]] = {
    "TopK": _topk,
    "Above": _above,
    "TopKPairs": _pairs,
    "TopKIncomplete": _incomplete,
    "TopKUncertain": _uncertain,
}


@dataclass(frozen=True)
class Right:
    """A right snapshot, taken apart: facts, parts, and each cell as named arrays."""

    facts: dict[str, Any]
    parts: dict[str, Any]
    arrays: dict[str, list[tuple[str, Any]]]  # by cell: (name, array)


@cache
def right(scene: str, later: int = 0) -> Right:
    data = scenes()[scene].monitor(later).snapshot()
    facts, parts = unpack(data)
    state = snapshot.restore(facts, parts, lambda name, stored: Query.from_dict(stored))
    arrays = {}
    for c, groups in enumerate(state.groups.values()):
        types: list[tuple[str, Any]] = []
        for name in groups.names:
            types += _column(f"per {name}", state.types.get(name))
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
    return Right(facts, parts, arrays)


def _column(name: str, type_: Any) -> list[tuple[str, Any]]:
    if type_ is None:
        return []
    width = cells.column_width(type_)
    inner: Any = np.uint8
    if width == 2 and not pa.types.is_boolean(type_):
        inner = np.dtype(f"i{type_.bit_width // 8}")
    return [
        [(name, np.uint8)],
        [(f"{name} mask", np.uint8), (name, inner)],
        [(f"{name} mask", np.uint8), (f"{name} lengths", np.int64), (name, np.uint8)],
    ][width - 1]


# ---- forgeries


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is anything inside."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield (*before, key)
        yield from paths(one, (*before, key))


def forge(scene: str, seed: int, number: int) -> tuple[str, bytes]:
    """Forgery `number` of a scene: what was done, and the bytes."""
    rng = np.random.default_rng([zlib.crc32(scene.encode()), seed, number])
    good = right(scene)
    facts, parts = good.facts, dict(good.parts)
    arrays = {cell: list(streams) for cell, streams in good.arrays.items()}
    done = []
    for _ in range(1 + int(rng.integers(3)) * int(rng.integers(2))):
        what = rng.random()
        if what < 0.15 or not arrays:
            facts, said = _forge_facts(rng, facts)
        elif what < (0.3 if any(part.startswith("rest") for part in parts) else 0.18):
            parts, said = _forge_parts(rng, parts)
        elif what < 0.4:
            said = _forge_sizes(rng, arrays)
        elif what < 0.5:
            said = _splice(rng, arrays, right(scene, 7))
        else:
            said = _forge_array(rng, arrays)
        done.append(said)
    for cell, streams in arrays.items():
        if cell in parts and streams is not good.arrays[cell]:
            (whole,) = cells.write([[array.tobytes()] for _, array in streams], 1)
            parts[cell] = np.frombuffer(whole, np.uint8)
    if rng.random() < 0.03:
        cell = str(rng.choice([name for name in parts if name.startswith("cell")] or ["types"]))
        if isinstance(parts.get(cell), np.ndarray) and len(parts[cell]):
            parts[cell] = _bytes_changed(rng, parts[cell])
            done.append(f"{cell}: raw bytes")
    return "; ".join(done), pack(facts, parts)


def _forge_facts(rng: np.random.Generator, facts: dict[str, Any]) -> tuple[dict[str, Any], str]:
    every = list(paths(facts))
    path = every[int(rng.integers(len(every)))]
    made = copy.deepcopy(facts)
    place: Any = made
    for key in path[:-1]:
        place = place[key]
    key, old = path[-1], place[path[-1]]
    how, to = rng.random(), copy.deepcopy(ODD[int(rng.integers(len(ODD)))])
    if how < 0.1:
        del place[key]
        return made, f"facts {path} gone"
    if how < 0.2 and isinstance(place, dict):
        place[str(ODD[int(rng.integers(len(ODD)))])] = place.pop(key)
        return made, f"facts {path} renamed"
    if how < 0.3 and isinstance(place, list):
        place.append(copy.deepcopy(old))
        return made, f"facts {path} doubled"
    if how < 0.4 and isinstance(old, int):
        to = old + int(rng.integers(-2, 3))
    elif how < 0.5:  # a value from elsewhere in the facts
        other: Any = facts
        for step in every[int(rng.integers(len(every)))]:
            other = other[step]
        to = copy.deepcopy(other)
    place[key] = to
    return made, f"facts {path} = {to!r:.60}"


def _forge_parts(rng: np.random.Generator, parts: dict[str, Any]) -> tuple[dict[str, Any], str]:
    name, how = str(rng.choice(list(parts))), rng.random()
    made = dict(parts)
    arrays = [one for one in parts if one.startswith("rest") and len(parts[one])]
    if arrays and how < 0.7:  # numbers of groups without objects
        name = str(rng.choice(arrays))
        made[name] = parts[name].copy()
        column = made[name].reshape(-1)
        return made, f"part {name}: {_forge_column(rng, column)}"
    if how < 0.25:
        del made[name]
        return made, f"part {name} gone"
    types = [pa.null(), pa.string(), pa.date32(), pa.bool_(), pa.list_(pa.int8()), pa.timestamp("ns"), pa.int8()]
    types += [pa.dictionary(pa.int8(), pa.string()), pa.decimal128(9, 2), pa.uint64(), pa.float32(), pa.binary(3)]
    types += [pa.list_(pa.null(), 2**30), pa.month_day_nano_interval(), pa.large_string(), pa.string_view()]
    if how < 0.75 and isinstance(parts.get("types"), pa.Table) and parts["types"].num_columns:
        table = parts["types"]
        place = int(rng.integers(table.num_columns))
        type_ = types[int(rng.integers(len(types)))]
        made["types"] = table.set_column(place, table.column_names[place], pa.nulls(0, type_))
        return made, f"part types {table.column_names[place]} is {type_}"
    if how < 0.85:
        made["ahead"] = pa.table({"to": pa.nulls(1, types[int(rng.integers(len(types)))])})
        return made, "part ahead added"
    made[name] = np.arange(int(rng.integers(9)))
    return made, f"part {name} is numbers"


def _forge_sizes(rng: np.random.Generator, arrays: dict[str, list[tuple[str, Any]]]) -> str:
    """A record more or less, and a number somewhere else that counts one more or less: they may fit together."""
    cell = str(rng.choice(list(arrays)))
    streams = arrays[cell] = list(arrays[cell])
    at = int(rng.integers(len(streams)))
    name, array = streams[at]
    if not len(array):
        return _forge_array(rng, arrays)
    more = bool(rng.integers(2))
    place = int(rng.integers(len(array)))
    streams[at] = (name, np.insert(array, place, array[place]) if more else np.delete(array, place))
    said = f"{cell} {name}: one {'more' if more else 'less'}"
    for _ in range(int(rng.integers(1, 4))):
        other = int(rng.integers(len(streams)))
        title, numbers = streams[other][0], streams[other][1].copy()
        column = _ints(rng, numbers)
        if column is not None and len(column):
            entry = int(rng.integers(len(column)))
            with np.errstate(over="ignore"):
                column[entry] += np.array(1).astype(column.dtype) if more else np.array(-1).astype(column.dtype)
            streams[other] = (title, numbers)
            said += f", {title}[{entry}] too"
    return said


def _splice(rng: np.random.Generator, arrays: dict[str, list[tuple[str, Any]]], other: Right) -> str:
    """Arrays of a later moment of the same stream."""
    cell = str(rng.choice(list(arrays)))
    streams = arrays[cell] = list(arrays[cell])
    chosen = {int(at) for at in rng.integers(len(streams), size=1 + int(rng.integers(1 + len(streams))))}
    for at in chosen:
        streams[at] = other.arrays[cell][at]
    return f"{cell}: {', '.join(streams[at][0] for at in sorted(chosen))} of a later moment"


def _ints(rng: np.random.Generator, array: Any) -> Any:
    """A column of whole numbers of an array, or None."""
    if array.dtype.names is None:
        return array if array.dtype.kind in "iu" else None
    names = [name for name in array.dtype.names if array.dtype[name].kind in "iu"]
    return array[names[int(rng.integers(len(names)))]] if names else None


def _forge_array(rng: np.random.Generator, arrays: dict[str, list[tuple[str, Any]]]) -> str:
    cell = str(rng.choice(list(arrays)))
    streams = arrays[cell] = list(arrays[cell])
    filled = [i for i, (_, array) in enumerate(streams) if len(array)]
    at = filled[int(rng.integers(len(filled)))] if filled and rng.random() < 0.95 else int(rng.integers(len(streams)))
    name, array = streams[at]
    array, how, size = array.copy(), int(rng.integers(12)), len(array)
    if not size or how == 0:  # of another length
        longer = int(rng.integers(1, 5))
        array = np.concatenate([array, np.zeros(longer, array.dtype)]) if rng.integers(2) else array[:-longer]
        said = f"length {len(array)}"
    elif how == 1:
        array, said = array[rng.permutation(size)], "shuffled"
    elif how == 2:
        one, other = rng.integers(size, size=2)
        array[[one, other]] = array[[other, one]]
        said = f"{one} and {other} swapped"
    elif how == 3:
        one, other = rng.integers(size, size=2)
        array[one] = array[other]
        said = f"{one} is {other}"
    elif how == 4:
        array = _bytes_changed(rng, array.view(np.uint8).reshape(-1)).view(array.dtype)
        said = "bytes"
    elif how == 5:
        array = array[::-1].copy()
        said = "turned round"
    else:
        names = array.dtype.names
        column = array if names is None else array[names[int(rng.integers(len(names)))]]
        said = _forge_column(rng, column)
        said = said if names is None else f"{[n for n in names if np.shares_memory(array[n], column)][:1]} {said}"
    streams[at] = (name, array)
    return f"{cell} {name}: {said}"


def _forge_column(rng: np.random.Generator, column: Any) -> str:
    size, how = len(column), int(rng.integers(6))
    which = slice(None) if how == 0 else rng.integers(size, size=1 + int(rng.integers(3) == 0) * int(rng.integers(5)))
    if column.dtype.kind == "f":
        to: Any = FLOATS[int(rng.integers(len(FLOATS)))]
    elif how == 1:
        to = column[which] + np.array(int(rng.integers(-2, 3))).astype(column.dtype)
    elif how == 2:
        to = int(rng.integers(0, 2 * size + 3))
    elif how == 3:
        to = column[int(rng.integers(size))]
    else:
        to = INTS[int(rng.integers(len(INTS)))]
    with np.errstate(over="ignore", invalid="ignore"):
        column[which] = np.array(to).astype(column.dtype) if column.dtype.kind == "f" else _wrapped(to, column.dtype)
    return f"{which!r:.30} = {to!r:.40}"


def _wrapped(to: Any, dtype: Any) -> Any:
    """Whole numbers, cut to the bits of a type."""
    if isinstance(to, int):
        return np.array([to & (2**64 - 1)], np.uint64).astype(f"u{dtype.itemsize}").view(dtype)[0]
    return to


def _bytes_changed(rng: np.random.Generator, raw: Any) -> Any:
    raw = raw.copy()
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(raw)))
        raw[place] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))]))
    return raw


# ---- use

REFUSED, USED = "refused", "used"


def use(scene: str, data: bytes, *, trusted: bool = False) -> str:
    """Restore a forged snapshot and use the Monitor; any answer is right, and so is a StateError or QueryError."""
    try:
        monitor = sb.Monitor.restore(data, trusted=trusted)
    except (StateError, QueryError):
        return REFUSED
    start = scenes()[scene].rows
    for step in (
        lambda: [monitor.answer(name) for name in monitor.queries],
        lambda: monitor.push(rows(1, start)),
        lambda: monitor.push(rows(40, start + 1)),
        lambda: [monitor.answer(name, k=1) for name in monitor.queries],
        lambda: monitor.stats(),
        lambda: monitor.snapshot(),
        lambda: monitor.push(rows(7, start + 41), to=start + 60),
        lambda: monitor.advance(start + 100),
        lambda: monitor.delete([0, 1, start, start + 5]),
        lambda: monitor.push(rows(60, start + 48)),
        lambda: [monitor.replace(name, query.smaller(1)) for name, query in monitor.queries.items()],
        lambda: [monitor.answer(name) for name in monitor.queries],
        lambda: sb.Monitor.restore(monitor.snapshot()),
    ):
        with suppress(SkybandError), warnings.catch_warnings():
            warnings.simplefilter("ignore", SkybandWarning)
            step()
    return USED


# ---- child and parent


def _child(names: list[str], seed: int, begin: int, count: int, trusted: bool) -> None:
    """Go through forgeries; tells on stdout which one begins, and what came of it."""
    faulthandler.enable()
    dormancy.FEWEST = 4  # groups that are gone lose their codes soon
    for name in names:
        right(name), right(name, 7)
        use(name, scenes()[name].monitor().snapshot())  # kernels are compiled
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    for number in range(begin, begin + count):
        for name in names:
            print(json.dumps(["begin", name, number]), flush=True)
            what = ""
            try:
                what, data = forge(name, seed, number)
                print(json.dumps(["forged", name, number, what]), flush=True)
                print(json.dumps([use(name, data, trusted=trusted), name, number]), flush=True)
            except BaseException:
                print(json.dumps(["error", name, number, what, traceback.format_exc()[-3000:]]), flush=True)


@dataclass
class Tally:
    """What came of the forgeries."""

    refused: int = 0
    used: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return self.refused + self.used + len(self.broken)


def run(names: list[str], seed: int, count: int, begin: int = 0, most: int = 50, *, trusted: bool = False) -> Tally:
    """Forgeries of these scenes in child processes; at most so many broken ones."""
    tally, todo = Tally(), [(names, begin, count)]
    while todo and len(tally.broken) < most:
        some, first, many = todo.pop(0)
        at = _run_child(some, tally, seed, first, many, trusted)
        if at is None:
            continue
        name, number = at  # the child is gone: the rest of this round, then all later rounds
        after = some[some.index(name) + 1 :]
        if after:
            todo.append((after, number, 1))
        if number + 1 < first + many:
            todo.append((some, number + 1, first + many - number - 1))
    return tally


def _run_child(
    names: list[str], tally: Tally, seed: int, begin: int, count: int, trusted: bool
) -> tuple[str, int] | None:
    """Returns the forgery that ended the child, or None."""
    command = [sys.executable, "-m", "faults.forge", "--child", json.dumps([names, seed, begin, count, trusted])]
    here = Path(__file__).parents[1]
    path = os.pathsep.join([str(here), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=here, env=os.environ | {"PYTHONPATH": path}
    )
    assert child.stdout is not None and child.stderr is not None
    os.set_blocking(child.stderr.fileno(), False)
    current: tuple[str, int] | None = None
    what = ""
    why, buffer, said, limit = "crash", b"", b"", time.monotonic() + WARM
    while True:
        ready, _, _ = select.select([child.stdout, child.stderr], [], [], max(0.0, limit - time.monotonic()))
        if not ready:
            child.kill()
            why = "hang"
            break
        if child.stderr in ready:
            said = (said + (child.stderr.read() or b""))[-4000:]
        chunk = os.read(child.stdout.fileno(), 1 << 16) if child.stdout in ready else None
        if chunk == b"":
            break
        buffer += chunk or b""
        *lines, buffer = buffer.split(b"\n")
        for text in lines:
            kind, name, number, *more = json.loads(text)
            if kind == "begin":
                current, what = (name, number), "not forged yet"
            elif kind == "forged":
                what = more[0]
            else:
                current = None
                tally.refused += kind == REFUSED
                tally.used += kind == USED
                if kind == "error":
                    tally.broken.append(f"error: {name!r} seed {seed} number {number}: {more[0]}\n{more[1]}")
            limit = time.monotonic() + SECONDS
    child.wait()
    if current is not None:
        tally.broken.append(
            f"{why}: {current[0]!r} seed {seed} number {current[1]}: {what}\n{said.decode(errors='replace')}"
        )
    elif child.returncode:
        raise RuntimeError(f"the child failed before any forgery: {said.decode(errors='replace')}")
    child.stdout.close()
    child.stderr.close()
    return current


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", default="", help="a part of their names; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--count", type=int, default=100, help="forgeries of each scene")
    parser.add_argument("--most", type=int, default=50, help="broken ones before it stops")
    parser.add_argument("--trusted", action="store_true", help="as if they were trusted: it breaks")
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return _child(*json.loads(given.child))
    names = [name for name in scenes() if given.scenes in name]
    if given.here:
        dormancy.FEWEST = 4
        for name in names:
            for number in range(given.begin, given.begin + given.count):
                what, data = forge(name, given.seed, number)
                print(name, number, what, flush=True)
                print(use(name, data, trusted=given.trusted), flush=True)
        return None
    begun = time.monotonic()
    tally = run(names, given.seed, given.count, given.begin, given.most, trusted=given.trusted)
    print("\n\n".join(tally.broken))
    kinds = {kind: sum(one.startswith(kind) for one in tally.broken) for kind in ("crash", "hang", "error")}
    print(f"{len(names)} scenes, {tally.tried} forged: {tally.refused} refused, {tally.used} used, {kinds}")
    print(f"{(time.monotonic() - begun) / max(1, tally.tried) * 1000:.1f} ms each")
    return None


if __name__ == "__main__":
    main()
