"""A scene played to a Monitor and to the oracle, compared after each event."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

from engines.comparison import cells, same_changes, same_rows
from engines.scene import Add, Advance, Delete, Drop, Push, Replace, Restore, Scene
from skyband import Above, Ever, Last, Monitor, TopK, UntilDeleted
from skyband.oracle import Oracle
from skyband.oracle.topk import skyband


def play(scene: Scene, *, strict: bool = False) -> Monitor:
    """Play a scene to a Monitor and to the oracle, hold them against each other after each event."""
    monitor, oracle = Monitor(scene.queries, **scene.options), Oracle(scene.queries, **scene.options, keyed=scene.keyed)
    for place, event in enumerate(scene.events):
        where = f"event {place}, {type(event).__name__}"
        match event:
            case Push(rows):
                told, expected = monitor.push(scene.table(rows)), oracle.push(rows)
                same_changes(cells(told), expected, where, net_changes=scene.net_changes)
            case Advance(by):
                if oracle.clock is None:
                    continue
                to = oracle.clock + by * (scene.clockwork.tick or 1)
                told, expected = monitor.advance(to), oracle.advance(to)
                same_changes(cells(told), expected, where, net_changes=scene.net_changes)
            case Delete(ids):
                if not any(isinstance(query.window, UntilDeleted) for query in oracle.queries.values()):
                    continue
                told, expected = monitor.delete(ids), oracle.delete(ids)
                same_changes(cells(told), expected, where, net_changes=scene.net_changes)
            case Restore():
                monitor = Monitor.restore(monitor.snapshot(), trusted=False)
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
    for adapter in monitor._loop.state.standing():
        adapter.check()
        if adapter.engine is not None:
            adapter.engine.check()


def same_answers(monitor: Monitor, oracle: Oracle, place: int, where: str) -> None:
    """The answer itself, one of a smaller k and window, and those of single groups."""
    for name, query in oracle.queries.items():
        same_rows(cells(monitor.answer(name)), oracle.answer(name), f"{where}, answer of {name}")
        k, window = None if isinstance(query, Above) else place % most_of(query) + 1, query.window
        if isinstance(window, Last) and query.algorithm != "PA":  # PA refuses: it keeps only what its own window needs
            window = _shorter(window, place)
        asked = None if isinstance(window, Ever) else window
        same_rows(
            cells(monitor.answer(name, k=k, window=asked)),
            oracle.answer(name, k=k, window=asked),
            f"{where}, answer of {name} for k={k}, window={window}",
        )
        for key in [(None,), (1,)] if len(query.per_columns) == 1 else [(1, "m"), (None, None)] if query.per else []:
            got = cells(monitor.answer(name, key=key))
            same_rows(got, oracle.answer(name, key=key), f"{where}, answer of {name} for key={key}")


def most_of(query: Any) -> int:
    """The k of a query, or the largest that a column may ask for."""
    return int(query.most if isinstance(query, TopK) else query.k)


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
    for adapter in monitor._loop.state.standing():
        if (
            adapter.engine is None or adapter.family
        ):  # a family's runs are skybands down to a depth, its ring has the rest
            continue
        names = list(adapter.queries)
        lengths = [spec.length for spec in adapter.specs(monitor._loop.state.unit)]
        widest = lengths.index(max(lengths))
        stream = oracle._streams[names[widest]]
        asked = [query for query in adapter.queries.values() if isinstance(query, TopK)]
        largest = dataclasses.replace(asked[widest], k=max(query.k for query in asked))
        expected = [
            kept.id
            for group in stream.groups.values()
            for kept in skyband(largest, stream.valid(group.arrivals, oracle.clock))
        ]
        serials, _ = adapter.engine.serials()
        assert len(serials) == len(set(serials.tolist())) == len(expected), f"{where}: {len(expected)} should be kept"
        if monitor._loop.state.options.id is not None:
            kept = adapter.kept_columns.read("id", serials).to_pylist()
            same_rows([{"id": id} for id in kept], [{"id": id} for id in expected], f"{where}, kept")
