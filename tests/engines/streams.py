"""Streams that engines break on, how they are played, and differences that can be read.

A scene is a list of events (pushes, advances, deletions, restores, other queries) for some standing queries. `play`
gives it to a Monitor and to the oracle and holds the two against each other after each event: changes as multisets of
rows, their order as far as the contract fixes it, answers with ranks, and the engines' own invariants. `reference` is
a second, faster recomputation of one group for streams that are too long for the oracle.

SKYBAND_FUZZ=20 runs 20 times as many examples, at random instead of the same ones each time.
SKYBAND_KILL=1 runs few examples and does not shrink: tests/mutation.py.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import os
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from skyband import Above, Last, Linear, Monitor, Nearest, Product, Quadratic, TopK, UntilDeleted
from skyband.engines.registry import APPROXIMATE
from skyband.oracle import Oracle
from skyband.oracle.topk import skyband

Row: TypeAlias = dict[str, Any]
Spec: TypeAlias = TopK | Above
Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

FUZZ = int(os.environ.get("SKYBAND_FUZZ", "1"))
KILL = "SKYBAND_KILL" in os.environ
STRICT = ("BLOCK", "SA")  # engines that keep exactly the skyband of Definition 3.8


def examples(number: int) -> settings:
    """Bounded and the same each time, unless SKYBAND_FUZZ asks for more: a third of the number without it."""
    return settings(
        max_examples=max(1, number // 3) if FUZZ == 1 else number * FUZZ,
        derandomize=FUZZ == 1,
        deadline=None,
        database=None,
        phases=(Phase.generate,) if KILL else (Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


# --------------------------------------------------------------------------------- events


@dataclass(frozen=True)
class Push:
    rows: list[Row]


@dataclass(frozen=True)
class Advance:
    by: int  # ticks from the last time seen


@dataclass(frozen=True)
class Restore:
    pass


@dataclass(frozen=True)
class Delete:
    ids: list[Any]


@dataclass(frozen=True)
class Add:
    name: str
    query: Spec
    donor: str | None = None  # whose window it looks at from the beginning


@dataclass(frozen=True)
class Replace:
    name: str
    query: Spec


@dataclass(frozen=True)
class Drop:
    name: str


Event: TypeAlias = Push | Advance | Delete | Restore | Add | Replace | Drop


@dataclass(frozen=True)
class Clockwork:
    """A type of time column: what a tick is, as a value of a row and as a window."""

    type: Any
    tick: timedelta | None = None  # None: integers

    def value(self, ticks: int | None) -> Any:
        if ticks is None or self.tick is None:
            return ticks
        if pa.types.is_date(self.type):
            return date(2024, 2, 27) + ticks * self.tick
        return datetime(2024, 3, 31, 0, 59, 58, tzinfo=UTC if self.type.tz else None) + ticks * self.tick

    def window(self, ticks: int) -> Last:
        return Last(span=ticks) if self.tick is None else Last(ticks * self.tick)


_SECOND, _MILLI, _MICRO, _DAY = (
    timedelta(seconds=1),
    timedelta(milliseconds=1),
    timedelta(microseconds=1),
    timedelta(days=1),
)
INTEGERS = Clockwork(pa.int64())
CLOCKWORKS = {
    "int64": INTEGERS,
    "int16": Clockwork(pa.int16()),
    "uint64": Clockwork(pa.uint64()),
    "s": Clockwork(pa.timestamp("s"), _SECOND),
    "ms": Clockwork(pa.timestamp("ms"), _MILLI),
    "us": Clockwork(pa.timestamp("us"), _MICRO),
    "ns": Clockwork(pa.timestamp("ns"), _MICRO),
    "s, UTC": Clockwork(pa.timestamp("s", "UTC"), _SECOND),
    "ns, Paris": Clockwork(pa.timestamp("ns", "Europe/Paris"), _SECOND),
    "us, hours": Clockwork(pa.timestamp("us", "Europe/Paris"), timedelta(hours=1)),  # summer time begins
    "date32": Clockwork(pa.date32(), _DAY),
    "date64": Clockwork(pa.date64(), _DAY),
}

_TYPES = {
    "i": pa.string(),
    "x": pa.float64(),
    "y": pa.int64(),
    "z": pa.string(),
    "w": pa.list_(pa.int64()),
    "u": pa.timestamp("ns"),
    "g": pa.int64(),
    "h": pa.string(),
}


@dataclass(frozen=True)
class Scene:
    queries: Mapping[str, Any]
    events: Sequence[Any]
    options: dict[str, Any] = field(default_factory=dict)
    clockwork: Clockwork = INTEGERS
    ids: Any = _TYPES["i"]

    @property
    def quiet(self) -> bool:
        return self.options.get("emit") == "batch"

    def table(self, rows: Sequence[Row]) -> Any:
        """Rows as a table, in one type whatever they hold."""
        types = {**_TYPES, "t": self.clockwork.type, "i": self.ids}
        return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()})


def row(**values: Any) -> Row:
    """A row of a scene; what is not given is null, and what can be derived is."""
    made: Row = {"i": None, "t": None, "x": None, "y": 0, "z": None, "g": None, "h": None, **values}
    made["w"] = None if made["z"] is None else [made["y"], 7]
    made["u"] = None if made["z"] is None else datetime(2020, 1, 1) + timedelta(seconds=made["y"])
    return made


# ----------------------------------------------------------------------------- strategies

_SCORES = [0.0, 1.0, 1.0, 2.0, 2.0, 3.0]
_ODD_SCORES = [*_SCORES, 1.5, -0.0, float("inf"), float("-inf"), float("nan"), None]
_SCORINGS: list[Any] = [
    "x + y",
    "abs(x - 1) * 2",
    Linear({"x": 1, "y": 0.5}),
    Product({"x": 1, "y": 2}),
    Quadratic({"x": 1, "y": -1}),
    Nearest({"x": 1, "y": 0}),
    Nearest({"x": 2}, metric="manhattan"),
]


@dataclass(frozen=True)
class Taste:
    """What a strategy may draw."""

    timed: tuple[bool, ...] = (True, False)
    k: int = 4
    n: int = 9
    queries: int = 3
    per: tuple[Any, ...] = (None, None, "g", ("g", "h"))
    by: tuple[Any, ...] = ("x", "x", *_SCORINGS)
    where: tuple[Any, ...] = (None, None, "y > 0")
    emit: tuple[str, ...] = ("arrival", "arrival", "batch")
    late: tuple[str, ...] = ("accept", "drop")
    lateness: tuple[int, ...] = (0, 0, 3, 8)
    scores: tuple[Any, ...] = tuple(_ODD_SCORES)
    edits: bool = True
    restores: bool = True
    rows: int = 12
    events: int = 7
    clockworks: tuple[str, ...] = ("int64",)
    thresholds: tuple[float, ...] = ()  # of Above queries, if there are any
    above: tuple[bool, ...] = (False,)
    deletable: bool = False  # UntilDeleted instead of windows
    ids: tuple[Any, ...] = ("p", "q", None)


def queries_of(
    draw: Draw, taste: Taste, algorithm: str, timed: bool, per: Any, clockwork: Clockwork
) -> dict[str, Spec]:
    by, where, largest = draw(st.sampled_from(taste.by)), draw(st.sampled_from(taste.where)), None
    asked: dict[str, Spec] = {}
    family = isinstance(taste.by[0], Nearest)
    size = (draw(st.integers(1, taste.k)), _window(draw, taste, timed, clockwork))
    for name in ("a", "b", "c", "d", "e")[: draw(st.integers(1, taste.queries))]:
        if asked and family:
            by = draw(st.sampled_from(taste.by))
            if draw(st.integers(0, 3)) == 0:
                size = (draw(st.integers(1, taste.k)), _window(draw, taste, timed, clockwork))
        elif asked and draw(st.integers(0, 3)) == 0:  # else it shares with those before
            by, where = draw(st.sampled_from(taste.by)), draw(st.sampled_from(taste.where))
            largest = draw(st.sampled_from([None, True, False]))
            per = draw(st.sampled_from([per, None]))
            timed = timed and draw(st.integers(0, 3)) > 0
        if not family:
            size = (draw(st.integers(1, taste.k)), _window(draw, taste, timed, clockwork))
        if _is_above(draw, taste):
            asked[name] = Above(
                draw(st.sampled_from(taste.thresholds)),
                by=by,
                window=size[1],
                where=where,
                per=per,
                algorithm=algorithm,
            )
            continue
        asked[name] = TopK(
            size[0],
            by=by,
            window=size[1],
            largest=largest,
            where=where,
            per=per,
            algorithm=algorithm,
        )
    return asked


def _is_above(draw: Draw, taste: Taste) -> bool:
    return taste.above[0] if len(taste.above) == 1 else draw(st.sampled_from(taste.above))


def _window(draw: Draw, taste: Taste, timed: bool, clockwork: Clockwork, most: int | None = None) -> Any:
    if taste.deletable:
        return UntilDeleted()
    size = draw(st.integers(1, min(taste.n, most or taste.n)))
    return clockwork.window(size) if timed else Last(size)


def rows_of(
    draw: Draw, taste: Taste, size: int, clock: int, lateness: int, clockwork: Clockwork
) -> tuple[list[Row], int]:
    """So many rows from `clock` on, and the clock after them."""
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from([0, 0, 1, 1, 2, 5]),
                st.integers(0, lateness),
                st.sampled_from(taste.scores),
                st.sampled_from([1, 0, -1, 2, None]),
                st.sampled_from([None, "u", "v"]),
                st.sampled_from([1, 2, None]),
                st.sampled_from(["m", None]),
                st.sampled_from(taste.ids),
            ),
            min_size=size,
            max_size=size,
        )
    )
    rows = []
    for step, late, x, y, z, g, h, i in drawn:
        clock += step
        ticks = None if y is None and z == "v" else max(0, clock - late)
        y = 0 if y is None else y
        rows.append(row(i=i, t=clockwork.value(ticks), x=x, y=y, z=z, g=g, h=h))
    return rows, clock


@st.composite
def scenes(draw: Draw, algorithm: str, taste: Taste) -> Scene:
    """Standing queries and what happens to them."""
    clockwork = CLOCKWORKS[draw(st.sampled_from(taste.clockworks))]
    timed = not taste.deletable and draw(st.sampled_from(taste.timed)) and algorithm not in APPROXIMATE
    per = draw(st.sampled_from(taste.per))
    queries = queries_of(draw, taste, algorithm, timed, per, clockwork)
    timed = any(query.window.timed for query in queries.values())
    options = {
        "id": "i" if taste.deletable else draw(st.sampled_from([None, "i"])),
        "time": "t" if timed or draw(st.booleans()) else None,
        "keep": draw(st.sampled_from([(), ("z",), ("z", "w", "u")])),
        "emit": draw(st.sampled_from(taste.emit)),
        "late": draw(st.sampled_from(taste.late)),
    }
    lateness = draw(st.sampled_from(taste.lateness))
    kinds = ["push"] * 6 + ["restore"] * 3 * taste.restores + ["advance"] * (options["time"] is not None)
    kinds += ["replace", "replace", "add", "drop"] * taste.edits + ["delete"] * 4 * taste.deletable
    standing, events, clock = dict(queries), list[Event](), 0
    for number in range(draw(st.integers(1, taste.events))):
        kind = draw(st.sampled_from(kinds)) if number else "push"
        if kind == "push":
            rows, clock = rows_of(draw, taste, draw(st.integers(0, taste.rows)), clock, lateness, clockwork)
            events.append(Push(rows))
        elif kind == "restore":
            events.append(Restore())
        elif kind == "advance":
            by = draw(st.integers(0, 5))
            clock += by
            events.append(Advance(by))
        elif kind == "delete":
            events.append(Delete(draw(st.lists(st.sampled_from(taste.ids), max_size=4))))
        elif kind == "replace":
            name = draw(st.sampled_from(sorted(standing)))
            old = standing[name]
            # a longer time window that still fits may find late rows that the shorter one had dropped
            capped = lateness and old.window.timed
            most = _ticks(old.window, clockwork) if capped and isinstance(old.window, Last) else None
            window = draw(st.booleans()) and _window(draw, taste, old.window.timed, clockwork, most)
            standing[name] = _like(draw, taste, dataclasses.replace(old, window=window or old.window))
            events.append(Replace(name, standing[name]))
        elif kind == "add":
            like = standing[draw(st.sampled_from(sorted(standing)))]
            name = f"n{number}"
            standing[name] = _like(draw, taste, like)
            events.append(Add(name, standing[name]))
        elif len(standing) > 1:
            name = draw(st.sampled_from(sorted(standing)))
            del standing[name]
            events.append(Drop(name))
    return Scene(queries, events, options, clockwork, pa.array(taste.ids).type)


def _like(draw: Draw, taste: Taste, query: Spec) -> Spec:
    """The same question for more, or for less."""
    if isinstance(query, Above):
        return dataclasses.replace(query, threshold=draw(st.sampled_from(taste.thresholds)))
    return dataclasses.replace(query, k=draw(st.integers(1, taste.k)))


def _ticks(window: Any, clockwork: Clockwork) -> int:
    if window.count is not None:
        return int(window.count)
    if clockwork.tick is None:
        return int(window.span)
    return int(timedelta(microseconds=window.nanoseconds // 1000) / clockwork.tick)


# ------------------------------------------------------------------------------- playing


def play(scene: Scene, *, strict: bool = False) -> Monitor:
    """Play a scene to a Monitor and to the oracle, hold them against each other after each event."""
    monitor, oracle = Monitor(scene.queries, **scene.options), Oracle(scene.queries, **scene.options)
    for place, event in enumerate(scene.events):
        where = f"event {place}, {type(event).__name__}"
        match event:
            case Push(rows):
                told, expected = monitor.push(scene.table(rows)), oracle.push(rows)
                same_changes(cells(told), expected, where, quiet=scene.quiet)
            case Advance(by):
                if oracle.clock is None:
                    continue
                to = oracle.clock + by * (scene.clockwork.tick or 1)
                told, expected = monitor.advance(to), oracle.advance(to)
                same_changes(cells(told), expected, where, quiet=scene.quiet)
            case Delete(ids):
                if not any(isinstance(query.window, UntilDeleted) for query in oracle.queries.values()):
                    continue
                told, expected = monitor.delete(ids), oracle.delete(ids)
                same_changes(cells(told), expected, where, quiet=scene.quiet)
            case Restore():
                monitor = Monitor.restore(monitor.snapshot())
            case Add(name, query, None):
                monitor.add(name, query)
                oracle.add(name, query)
            case Add(name, query, donor):
                told, expected = monitor.add(name, query, from_window=True), oracle.add(name, query, donor=donor)
                same_rows(cells(told), expected, where)
            case Replace(name, query):
                told, expected = monitor.replace(name, query), oracle.replace(name, query)
                same_rows(cells(told), expected, where)
            case Drop(name):
                monitor.drop(name)
                oracle.drop(name)
        assert monitor.queries == oracle.queries
        stats = monitor.stats()
        assert (stats["arrivals"], stats["late"]) == (oracle.arrivals, oracle.late), where
        assert stats["rejected"].get("unknown id", 0) == oracle.rejected["unknown id"], where
        check(monitor)
        same_answers(monitor, oracle, place, where)
        if strict:
            same_skybands(monitor, oracle, where)
    return monitor


def check(monitor: Monitor) -> None:
    """Every engine's own invariants."""
    for adapter in monitor.state.standing():
        adapter.check()
        if adapter.engine is not None:
            adapter.engine.check()


def same_answers(monitor: Monitor, oracle: Oracle, place: int, where: str) -> None:
    """The answer itself, one of a smaller k and window, and those of single groups."""
    for name, query in oracle.queries.items():
        assert isinstance(query, Spec)
        same_rows(cells(monitor.answer(name)), oracle.answer(name), f"{where}, answer of {name}")
        k, window = place % query.k + 1 if isinstance(query, TopK) else None, query.window
        if isinstance(window, Last) and query.algorithm != "PA":  # PA refuses: it keeps only what its own window needs
            window = _shorter(window, place)
        same_rows(
            cells(monitor.answer(name, k=k, window=window)),
            oracle.answer(name, k=k, window=window),
            f"{where}, answer of {name} for k={k}, window={window}",
        )
        for key in [(None,), (1,)] if len(query.per_columns) == 1 else [(1, "m"), (None, None)] if query.per else []:
            got = cells(monitor.answer(name, key=key))
            same_rows(got, oracle.answer(name, key=key), f"{where}, answer of {name} for key={key}")


def _shorter(window: Last, place: int) -> Last:
    if window.span is not None:
        return Last(span=place % window.span + 1)
    if window.count is not None:
        return Last(place % window.count + 1)
    assert window.nanoseconds is not None
    for unit in (86400 * 10**9, 3600 * 10**9, 10**9, 10**6, 10**3):
        if window.nanoseconds % unit == 0:
            return Last(timedelta(microseconds=(place % (window.nanoseconds // unit) + 1) * unit // 1000))
    raise AssertionError("scenes have windows of whole microseconds")


def same_skybands(monitor: Monitor, oracle: Oracle, where: str) -> None:
    """What is kept is exactly the skyband of the largest k and the largest window."""
    for adapter in monitor.state.standing():
        if (
            adapter.engine is None or adapter.family
        ):  # a family's runs are skybands down to a depth, its ring has the rest
            continue
        names = list(adapter.queries)
        lengths = [asked.length for asked in adapter.asked(monitor.state.unit)]
        widest = lengths.index(max(lengths))
        standing = oracle._standing[names[widest]]
        asked = [query for query in adapter.queries.values() if isinstance(query, TopK)]
        largest = dataclasses.replace(asked[widest], k=max(query.k for query in asked))
        expected = [
            kept.id
            for group in standing.groups.values()
            for kept in skyband(largest, standing.valid(group.arrivals, oracle.clock))
        ]
        serials, _ = adapter.engine.serials()
        assert len(serials) == len(set(serials.tolist())) == len(expected), f"{where}: {len(expected)} should be kept"
        if monitor.state.options.id is not None:
            kept = adapter.kept_columns.read("id", serials).to_pylist()
            same_rows([{"id": id} for id in kept], [{"id": id} for id in expected], f"{where}, kept")


# ---------------------------------------------------------------------------- comparing


def cells(table: Any) -> list[Row]:
    """A table as rows of plain Python values (nanoseconds as microseconds: no scene is finer)."""
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            coarse = table.column(place).cast(pa.timestamp("us", column.type.tz))
            table = table.set_column(place, column.name, coarse)
    rows: list[Row] = table.to_pylist()
    return rows


def plain(value: Any) -> str:
    """A value as text that is equal for equal values only."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=UTC)
    return repr(value)


def line(row: Mapping[str, Any]) -> str:
    return "  ".join(f"{name}={plain(value)}" for name, value in row.items())


def same_rows(got: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]], where: str) -> None:
    """Equal as multisets of rows, columns in the same order; else say which rows are missing and which too many."""
    found, wanted = Counter(map(line, got)), Counter(map(line, expected))
    if found != wanted:
        missing = [f"  missing   {text}" for text in (wanted - found).elements()]
        surplus = [f"  surplus   {text}" for text in (found - wanted).elements()]
        raise AssertionError("\n".join([f"{where}:", *missing, *surplus]))


def same_changes(got: Sequence[Row], expected: Sequence[Row], where: str, *, quiet: bool = False) -> None:
    """Equal as multisets, and in the order of the contract as far as it fixes one."""
    same_rows(got, expected, where)
    if quiet:
        assert [change["query"] for change in got] == [change["query"] for change in expected], where
        for who, steps in by_group(got).items():
            assert [diff for _, _, diff in steps] == sorted(diff for _, _, diff in steps), f"{where}: {who}"
        return
    order = [(change["query"], plain(change.get("time"))) for change in got]
    assert order == [(change["query"], plain(change.get("time"))) for change in expected], f"{where}: order of steps"
    assert by_group(got) == by_group(expected), f"{where}: order of steps within a group"


def by_group(changes: Iterable[Row]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    """By query and group, the sequence of steps."""
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for change in changes:
        who = (change["query"], change.get("g"), change.get("h"))
        groups.setdefault(who, []).append((change["at"], plain(change.get("time")), change["diff"]))
    return groups


def net(changes: Iterable[Row]) -> Counter[str]:
    """Who has entered and left on the whole: query, group and object, signed."""
    total: Counter[str] = Counter()
    for change in changes:
        total[line({name: change.get(name) for name in ("query", "g", "h", "id", "score", "z")})] += change["diff"]
    return Counter({who: diff for who, diff in total.items() if diff})


# ------------------------------------------------------------- one group, recomputed fast

Step: TypeAlias = tuple[int, int, int, int, bool]  # at, time, number of the object, diff, first


def reference(
    keys: NDArray[np.float64],
    k: int,
    length: int,
    *,
    times: NDArray[np.int64] | None = None,
    clocks: NDArray[np.int64] | None = None,
    end: int | None = None,
) -> tuple[Step, ...]:
    """The changes of one group, `in_order`. Engines are asked the same, so each is recomputed once in a process.

    times: for a time window; clocks: the clock after each row; end: the clock at the end. For count windows the
    time of a step is the number of its arrival.
    """
    moments = (None if column is None else tuple(column.tolist()) for column in (times, clocks))
    return _kept(tuple(keys.tolist()), k, length, *moments, end)


def recomputed(
    keys: Sequence[float],
    k: int,
    length: int,
    times: Sequence[int] | None = None,
    clocks: Sequence[int] | None = None,
    end: int | None = None,
) -> tuple[Step, ...]:
    """The window as one sorted list, its last k read after each step."""
    window: list[tuple[float, int, int]] = []
    ages: list[tuple[int, float, int]] = []  # a heap, the oldest first
    shown: set[int] = set()
    ever: set[int] = set()
    steps: list[Step] = []
    number = 0

    def step(at: int, time: int) -> None:
        nonlocal shown
        answer = {who for _, _, who in window[-k:]}
        steps.extend((at, time, who, -1, False) for who in sorted(shown - answer))
        steps.extend((at, time, who, 1, who not in ever) for who in sorted(answer - shown))
        shown = answer
        ever.update(answer)

    def expire(now: int, apart: bool) -> None:
        while ages and ages[0][0] + length <= now:
            instant = ages[0][0] + length
            while ages and ages[0][0] + length == instant:
                stamp, key, who = heapq.heappop(ages)
                del window[bisect_left(window, (key, stamp, who))]
            if apart:
                step(number - 1, instant)

    for place, key in enumerate(keys):
        if times is None or clocks is None:
            stamp = now = number
            expire(now, False)
        else:
            stamp, now = times[place], clocks[place]
            expire(now, True)
            if stamp + length <= now:
                continue
        insort(window, (key, stamp, number))
        heapq.heappush(ages, (stamp, key, number))
        number += 1
        step(number - 1, now)
    if end is not None:
        expire(end, True)
    return tuple(in_order(steps))


_kept = functools.lru_cache(maxsize=128)(recomputed)


def steps_of(changes: Any) -> list[Step]:
    """A table of changes of one query and one group, with ids that are numbers, as `reference` has them."""
    time = changes.column("time" if "time" in changes.column_names else "at").to_pylist()
    columns = [changes.column(name).to_pylist() for name in ("at", "id", "diff", "first")]
    return [
        (at, now, who, diff, first)
        for now, (at, who, diff, first) in zip(time, zip(*columns, strict=True), strict=True)
    ]


def in_order(steps: Iterable[Step]) -> list[Step]:
    """Within a step the order of those who leave, or enter, is free."""
    return sorted(steps, key=lambda step: (step[1], step[0], step[3], step[2]))


def joined(tables: Iterable[Any]) -> Any:
    return pa.concat_tables(tables, promote_options="permissive")


def cuts(size: int, rng: np.random.Generator, mean: int) -> NDArray[np.int64]:
    """Random places to cut a stream of so many rows, pieces of about `mean`."""
    inside = np.flatnonzero(rng.random(size) < 1 / mean)
    return np.unique(np.concatenate([[0], inside, [size]]))
