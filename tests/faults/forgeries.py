"""Forgeries of right snapshots, each made from (scene, seed, number) alone, and the use of a forged one."""

from __future__ import annotations

import base64
import copy
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from faults.right_snapshots import Right, right, scenes
from faults.scene import rows, subscribers
from skyband.errors import QueryError, SkybandError, SkybandWarning, StateError
from skyband.monitor import cells
from skyband.monitor.archive import pack

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
ODD += ["\ud800", "a\0b", "q\0slots", "# id", "# object", "*", 10**400]
INTS = [-1, 0, 1, 2, 3, 7, 31, 32, 255, 256, 2**31 - 1, 2**31, 2**32, 2**40, 2**61, 2**62, 2**63 - 1]
INTS += [-2, -(2**31), -(2**62), -(2**63)]
TYPES = [pa.null(), pa.string(), pa.date32(), pa.bool_(), pa.list_(pa.int8()), pa.timestamp("ns"), pa.int8()]
TYPES += [pa.dictionary(pa.int8(), pa.string()), pa.decimal128(9, 2), pa.uint64(), pa.float32(), pa.binary(3)]
TYPES += [pa.list_(pa.null(), 2**30), pa.month_day_nano_interval(), pa.large_string(), pa.string_view(), pa.float64()]
SCHEMAS = ("keys", "key_types")  # facts that are schemas, as text
TABLES = ("rest", "subscri", "members")  # parts that are forged value by value
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324, 0.5, 1.0, 2.0, -1.0, 1e-300]


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is anything inside."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield (*before, key)
        yield from paths(one, (*before, key))


def forge(scene: str, seed: int, number: int) -> tuple[str, bytes]:
    """Forgery `number` of a scene: what was done, and the bytes, which are not those of the right snapshot."""
    rng, good = np.random.default_rng([zlib.crc32(scene.encode()), seed, number]), right(scene)
    while True:
        what, data = _forged(rng, good, partial(right, scene, 7))
        if data != good.data:  # the value that was there may have been drawn, and the places of equal records swapped
            return what, data


def _forged(rng: np.random.Generator, good: Right, later: Callable[[], Right]) -> tuple[str, bytes]:
    """What was done to a right snapshot, and its bytes then; later: one of a later moment."""
    facts, parts = good.facts, dict(good.parts)
    arrays = {cell: list(streams) for cell, streams in good.arrays.items()}
    done = []
    tables = any(part.startswith(TABLES) for part in parts)
    for _ in range(1 + int(rng.integers(3)) * int(rng.integers(2))):
        what = rng.random()
        if good.inside and rng.random() < 0.5:
            name = str(rng.choice(list(good.inside)))
            said, data = _forged(rng, good.inside[name], lambda name=name: later().inside[name])  # type: ignore[misc]
            parts[name], said = np.frombuffer(data, np.uint8), f"{name}: {said}"
        elif what < 0.15 or not arrays:
            facts, said = _forge_facts(rng, facts)
        elif what < (0.3 if tables else 0.18):
            parts, said = _forge_parts(rng, parts)
        elif what < 0.4:
            said = _forge_sizes(rng, arrays)
        elif what < 0.5:
            said = _splice(rng, arrays, later())
        else:
            said = _forge_array(rng, arrays)
        done.append(said)
    for cell, streams in arrays.items():
        if cell in parts and any(a is not b for a, b in zip(streams, good.arrays[cell], strict=True)):
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
    if key in SCHEMAS and isinstance(old, str) and rng.random() < 0.7:
        place[key], said = _forge_schema(rng, old)
        return made, f"facts {path}: {said}"
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


def _forge_schema(rng: np.random.Generator, stored: str) -> tuple[str, str]:
    """Types of keys: another one, one more, one less."""
    types = [field.type for field in pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))]
    how, place = int(rng.integers(5)), int(rng.integers(len(types) + 1))
    if how == 0:
        types = types[:place]
    elif how == 1 or place == len(types):
        types.insert(place, TYPES[int(rng.integers(len(TYPES)))])
    else:
        types[place] = TYPES[int(rng.integers(len(TYPES)))]
    schema = pa.schema([pa.field(f"key_{i + 1}", type_) for i, type_ in enumerate(types)])
    return base64.b64encode(schema.serialize().to_pybytes()).decode(), f"{types}"


def _forge_parts(rng: np.random.Generator, parts: dict[str, Any]) -> tuple[dict[str, Any], str]:
    name, how = str(rng.choice(list(parts))), rng.random()
    made = dict(parts)
    arrays = [one for one in parts if one.startswith("rest") and len(parts[one])]
    if arrays and how < 0.7:  # numbers of groups without objects
        name = str(rng.choice(arrays))
        made[name] = parts[name].copy()
        column = made[name].reshape(-1)
        return made, f"part {name}: {_forge_column(rng, column)}"
    tables = [one for one in parts if one.startswith(TABLES[1:])]
    if tables and how < 0.7:
        name = str(rng.choice(tables))
        made[name], said = _forge_table(rng, parts[name])
        return made, f"part {name}: {said}"
    if how < 0.25:
        del made[name]
        return made, f"part {name} gone"
    if how < 0.75 and isinstance(parts.get("types"), pa.Table) and parts["types"].num_columns:
        table = parts["types"]
        place = int(rng.integers(table.num_columns))
        type_ = TYPES[int(rng.integers(len(TYPES)))]
        made["types"] = table.set_column(place, table.column_names[place], pa.nulls(0, type_))
        return made, f"part types {table.column_names[place]} is {type_}"
    if how < 0.85:
        made["ahead"] = pa.table({"to": pa.nulls(1, TYPES[int(rng.integers(len(TYPES)))])})
        return made, "part ahead added"
    made[name] = np.arange(int(rng.integers(9)))
    return made, f"part {name} is numbers"


def _forge_table(rng: np.random.Generator, table: Any) -> tuple[Any, str]:
    """Subscriptions: a row more or less, a value, a type, a name."""
    how, place = int(rng.integers(7)), int(rng.integers(table.num_columns))
    name, column = table.column_names[place], table.column(place)
    if how == 6:
        rows = (1 << int(rng.integers(32))) - 1
        nulls = pa.Array.from_buffers(pa.null(), rows, [None])
        return pa.table([nulls] * table.num_columns, names=table.column_names), f"{rows} rows of nulls"
    if how == 0:
        return table.slice(int(rng.integers(2)), max(0, table.num_rows - int(rng.integers(3)))), "fewer rows"
    if how == 1:
        return pa.concat_tables([table, table.slice(0, 1)]), "a row twice"
    if how == 2:
        return table.rename_columns([*table.column_names[:place], "other", *table.column_names[place + 1 :]]), "a name"
    if how == 3 or not table.num_rows:
        type_ = [pa.null(), pa.string(), pa.float64(), pa.int8(), pa.bool_(), pa.duration("ns")][int(rng.integers(6))]
        with suppress(pa.ArrowException):
            return table.set_column(place, name, column.cast(type_)), f"{name} is {type_}"
        return table.set_column(place, name, pa.nulls(table.num_rows, type_)), f"{name} is null, {type_}"
    values, row = column.to_pylist(), int(rng.integers(table.num_rows))
    values[row] = ODD[int(rng.integers(16))] if how == 4 else values[int(rng.integers(len(values)))]
    with suppress(pa.ArrowException, OverflowError, TypeError):
        return table.set_column(place, name, pa.array(values, column.type)), f"{name}[{row}] = {values[row]}"
    return table.drop_columns([name]), f"{name} gone"


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


REFUSED, USED = "refused", "used"


def use(scene: str, data: bytes, *, trusted: bool = False, whole: bool = False) -> str:
    """Restore a forged snapshot and use the Monitor; any answer is right, and so is a StateError or QueryError.

    Some calls in an order that the bytes choose, so that each meets what was forged; or all of them.
    """
    try:
        monitor = sb.Monitor.restore(data, trusted=trusted)
    except (StateError, QueryError):
        return REFUSED
    steps, last = _steps(monitor, scenes()[scene].rows)
    if not whole:
        rng = np.random.default_rng(zlib.crc32(data))
        steps = [steps[i] for i in rng.permutation(len(steps))[:7]]
        last = [step for step in last if rng.random() < 0.5]
    for step in (*steps, *last):
        with suppress(SkybandError), warnings.catch_warnings():
            warnings.simplefilter("ignore", SkybandWarning)
            step()
    return USED


def _steps(monitor: sb.Monitor, start: int) -> tuple[list[Callable[[], Any]], list[Callable[[], Any]]]:
    """Calls in any order, and those after which little of what was restored is left."""
    first: Any = next(iter(monitor.queries.values()), None)
    steps: list[Callable[[], Any]] = [
        lambda: [monitor.answer(name) for name in monitor.queries],
        lambda: monitor.push(rows(1, start)),
        lambda: monitor.push(rows(40, start + 1)),
        lambda: [monitor.answer(name, k=1) for name in monitor.queries],
        lambda: monitor.stats(),
        lambda: [monitor.answer(name, key=key) for name in monitor.queries for key in ("a", None)],
        lambda: monitor.add("another", first, from_window=True),
        lambda: [monitor.subscribe(name, subscribers(9, 4)) for name, one in monitor.queries.items() if one.each],
        lambda: [monitor.unsubscribe(name, [4, 5, 6]) for name, one in monitor.queries.items() if one.each],
        lambda: [monitor.answer(name, subscriber=5) for name, one in monitor.queries.items() if one.each],
        lambda: [monitor.subscribe(name, subscribers(3, 20), from_window=True) for name in monitor.queries],
        lambda: monitor.snapshot(),
        lambda: monitor.push(rows(7, start + 41), to=start + 60),
        lambda: monitor.advance(start // 2 + 4),
        lambda: monitor.delete([0, 1, start, start + 5]),
        lambda: monitor.push(rows(60, start + 48)),
        lambda: monitor.answers(),
        lambda: sb.Monitor.restore(monitor.snapshot()),
    ]
    last: list[Callable[[], Any]] = [
        lambda: monitor.advance(start + 100),
        lambda: [monitor.replace(name, query.smaller(1)) for name, query in monitor.queries.items()],
        lambda: [monitor.drop(name) for name in reversed(monitor.queries)],
        lambda: monitor.push(rows(3, start + 108)),
    ]
    return steps, last
