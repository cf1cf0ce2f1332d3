"""Small streams and queries that between them call every kernel with every type of arguments: what is compiled ahead.

A kernel or a type that nothing here meets is compiled where it is met. `skyband compile` fails if a kernel is not
called, and the suite with SKYBAND_KERNELS=only fails if a type is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import numpy as np

import skyband as sb
from skyband.engines.groups.kernels.parts import exact_parts
from skyband.engines.topk.adapter import TopKAdapter
from skyband.engines.topk.bounds import bound_of
from skyband.monitor.examination import examine
from skyband.monitor.loop import Loop
from skyband.query.expressions import parse
from skyband.tables.input import Batch, to_table

ROWS = 3000
EACH = "each"  # four groups, in turn
PARTS = ["n", "s", "w"]
DATA: dict[str, Any] = {
    "t": np.arange(ROWS),
    "x": np.linspace(0, 1, ROWS) ** 2 % 0.1,
    "y": np.linspace(0, 1, ROWS) ** 3 % 0.1,
    "p": 0.05 + np.linspace(0, 1, ROWS) ** 2 % 0.9,
    "id": np.arange(ROWS) % 700,
    "often": np.arange(ROWS) % 6,  # always in the same part
    "part": PARTS * (ROWS // 3),
    "value": np.linspace(0, 1, ROWS) ** 3 % 1,
    EACH: np.arange(ROWS) % 4,
}
EMITS: tuple[Literal["arrival", "batch"], ...] = ("arrival", "batch")
COUNTED, TIMED = STREAMS = (sb.Last(50), sb.Last(span=50))


def piece(begin: int, end: int) -> dict[str, Any]:
    return {name: column[begin:end] for name, column in DATA.items()}


def distance(a: Any, b: Any) -> Any:
    return abs(a["x"] - b["x"])


def play(queries: Any, **options: Any) -> None:
    """Call the methods of a Monitor that run kernels; the last push is late."""
    monitor = sb.Monitor(queries, time="t", **options)
    for begin, end in ((0, 2000), (2000, ROWS), (ROWS - 12, ROWS - 6)):
        monitor.push(piece(begin, end))
    monitor = sb.Monitor.restore(monitor.snapshot(), {"distance": distance})
    monitor._loop.check()
    for name, query in monitor.queries.items():
        monitor.answer(name)
        if not isinstance(query, sb.Above) and isinstance(query.window, sb.Last):
            smaller = sb.Last(span=40) if query.window.sort == "time" else sb.Last(40)
            with suppress(sb.QueryError):  # some algorithms answer for their own window only
                monitor.answer(name, k=2, window=smaller)
        monitor.replace(name, query)
    monitor.advance(ROWS + 10)


def both(*algorithms: str, windows: tuple[Any, ...] = STREAMS, by: Any = "x") -> None:
    for algorithm in algorithms:
        for window in windows:
            query = sb.TopK(3, by=by, window=window, algorithm=algorithm)
            play(query)
            play([query, sb.TopK(3, by=by, window=window, algorithm=algorithm, where="y > 0.01")], emit="batch")
            if algorithm != "ADAPTIVE":
                play(sb.TopK(3, by=by, window=window, algorithm=algorithm, per=EACH))


def families(algorithm: str) -> None:
    for by in (sb.Nearest, sb.Linear):
        for window in STREAMS[: 1 if algorithm == "PA" else 2]:
            for emit in EMITS:
                some = [
                    sb.TopK(2, by=by({"x": i / 50, "y": 0.5}), window=window, algorithm=algorithm) for i in range(50)
                ]
                monitor = sb.Monitor(some, time="t", emit=emit)
                monitor.push(piece(0, ROWS))
                monitor = sb.Monitor.restore(monitor.snapshot())
                monitor.push(piece(ROWS - 12, ROWS - 6))
                monitor.answer("q0")


def many() -> None:
    """So many queries of a family that recent arrivals are sorted into cells; one row that some of them reject."""
    for by in (sb.Nearest, sb.Linear):
        some = [sb.TopK(2, by=by({"x": i / 400, "y": i % 7}), window=sb.Last(4000)) for i in range(400)]
        monitor = sb.Monitor(some)
        for _ in range(3):
            monitor.push(DATA)
        monitor.push({"x": [np.inf, 0.5], "y": [0.0, 0.5]})


def readers() -> None:
    """More queries of one scoring than an engine has bits for."""
    for window in (sb.Last, lambda n: sb.Last(span=n)):
        for emit in EMITS:
            for per in (None, EACH):
                play([sb.TopK(1 + i % 3, by="x", window=window(5 + i), per=per) for i in range(33)], emit=emit)


def vectors() -> None:
    """Vectors of subscriptions in both precisions; the best come first, so that depths fall."""
    best_first = np.linspace(1, 0, 700)[:, None] * [1.0, 0.5] + np.linspace(0, 1, 700)[:, None] * [-1.0, 0.5]
    for width in ("f4", "f8"):
        asked = sb.TopK(1, by=sb.Similar("e", sb.Each("v")), window=sb.Last(200), buffer=100)
        monitor = sb.Monitor({"each": asked})
        monitor.subscribe("each", {"subscriber": [1, 2], "v": [[1.0, 0.5], [1.0, 0.6]]})
        for low in range(0, 700, 140):
            monitor.push({"e": best_first[low : low + 140].astype(width)})
        monitor = sb.Monitor.restore(monitor.snapshot())
        monitor.answer("each", window=sb.Last(50))


def lengths() -> None:
    """Windows of several lengths: a late row may be too late for some of them."""
    for per in (None, EACH):
        play([sb.TopK(k, by="x", window=sb.Last(span=span), per=per) for k, span in ((3, 50), (2, 8))])


def grids(algorithm: str) -> None:
    for by in (sb.Linear({"x": 1, "y": 2}), sb.Nearest({"x": 0.2, "y": 0.1})):
        both(algorithm, by=by)
    both(algorithm, by="x * y")
    monitor = sb.Monitor(sb.TopK(3, by="x * y", window=COUNTED, algorithm=algorithm))
    monitor.push(DATA)
    sb.Monitor.restore(monitor.snapshot(), trusted=False)
    bound_of(parse("x * y"), {"x": (0.0, 1.0), "y": (0.0, 1.0)})


def kept() -> None:
    query = sb.TopK(2, by=sb.Linear({"x": 1, "y": 2}), window=sb.UntilDeleted())
    monitor = sb.Monitor([query, sb.Above(0.1, by="x + y", window=sb.UntilDeleted())], id="t")
    monitor.push(DATA)
    monitor.delete([1, 2, 3])


def above() -> None:
    for window in STREAMS:
        for per in (None, EACH):
            play(sb.Above(0.05, by="x", window=window, per=per, where="y > 0.01"))


def refused() -> None:
    """A batch that is refused after its groups were found."""
    for per in (EACH, "part"):
        monitor = sb.Monitor(sb.TopK(2, by="x", window=TIMED, per=per), time="t", invalid="raise")
        monitor.push(piece(0, 1))
        with suppress(sb.BatchError):
            monitor.push({**piece(1, 5), "x": [1.0, 2.0, 3.0, None]})


def pairs() -> None:
    for algorithm in ("SCASE", "TA", "PST", "BASIC", "NAIVE"):
        for window in STREAMS:
            play(sb.TopKPairs(3, by=sb.Global({"x": "absdiff"}), window=window, algorithm=algorithm))
    for combine in ("max", "euclidean"):
        play(sb.TopKPairs(3, by=sb.Global({"x": "absdiff"}, combine=combine, weights={"x": 2}), window=COUNTED))
    for emit in EMITS:
        some = [sb.TopKPairs(k, by="abs(a.x - b.x) * abs(a.y + b.y)", window=TIMED, per=EACH) for k in (3, 2)]
        play(some, emit=emit)
        play(sb.TopKPairs(3, by=distance, window=COUNTED), emit=emit)
    for by in ("abs(a.x - b.x)", "a.x * b.x", distance):
        play(sb.TopKPairs(1, by=by, window=sb.UntilDeleted(), on="a.x <> b.x"), id="id")
    few = sb.Monitor(sb.TopKPairs(1, by="a.x * b.x", window=sb.UntilDeleted()), id="id", time="t")
    few.push(piece(0, 9))
    few._loop.check()  # all pairs are found again
    play(sb.TopKPairs(3, by="a.x / b.x", window=COUNTED, symmetric=False, on="a.x < b.x"))


def parts() -> None:
    for algorithm in ("SWEEP", "EAA", "SLA", "APPROX", "BUDGET"):
        for window in (*STREAMS, sb.Last(1000)):
            play(sb.TopKIncomplete(3, parts=PARTS, window=window, algorithm=algorithm), id="id")
    for algorithm in ("SWEEP", "EAA"):
        for window in STREAMS:
            play(sb.TopKIncomplete(3, parts=PARTS, window=window, algorithm=algorithm), id="often")
    for window in STREAMS:
        play(sb.TopKIncomplete(3, parts=PARTS, window=window, repeat="sum", at_most=2), id="id")
    play(sb.TopKIncomplete(3, parts=PARTS, window=sb.Ever()), id="id")
    for repeat in (None, "last"):
        play(sb.TopKIncomplete(3, parts="*", window=COUNTED, repeat=repeat), id="id")
    for emit in EMITS:
        play(sb.TopKIncomplete(3, parts=PARTS, window=COUNTED, repeat="last"), id="id", emit=emit)
        play(sb.TopKIncomplete(3, parts=PARTS, window=TIMED, repeat="max", where="x > 0.1"), id="id", emit=emit)
        play([sb.TopKIncomplete(k, parts=PARTS, window=TIMED, per=EACH) for k in (3, 2)], id="id", emit=emit)


def doubts() -> None:
    for algorithm in ("DOM", "BS", "CSQ", "CCSQ", "SCSQ", "SCSQ-BUFFER"):
        for window in STREAMS:
            play(sb.TopKUncertain(3, by="x", window=window, algorithm=algorithm, semantics="u-topk"))
    for emit in EMITS:
        for semantics, algorithm in (("u-kranks", "DOM"), ("u-topk", "BS"), ("pt-k", "DOM"), ("pk-topk", "BS")):
            options: Any = {"semantics": semantics, "threshold": 0.3 if semantics == "pt-k" else None}
            play(sb.TopKUncertain(3, by="x", window=TIMED, group=EACH, algorithm=algorithm, **options), emit=emit)
    play(sb.TopKUncertain(3, by="x", window=COUNTED, group=EACH))
    for emit in EMITS:
        play([sb.TopKUncertain(k, by="x", window=TIMED, per=EACH) for k in (3, 2)], emit=emit)


def endless() -> None:
    """Windows without end."""
    for emit in EMITS:
        for per in (None, EACH):
            play([sb.TopK(k, by="x", window=sb.Ever(), per=per) for k in (3, 2)], emit=emit)
            play(sb.Above(0.05, by="x", window=sb.Ever(), per=per), emit=emit)
    loop = Loop.of(sb.TopK(2, by="x", window=sb.Ever()), time="t")  # as a mapper on Spark asks
    examined = examine(loop.state, Batch(to_table(DATA)))
    (adapter,), (validated,) = examined.standing, examined.validated
    assert isinstance(adapter, TopKAdapter) and examined.times is not None
    adapter.needed(validated, np.zeros(ROWS, np.int64), 1, examined.times, examined.times, None)
    play(sb.TopKUncertain(3, by="x", window=sb.Ever()))


def groups() -> None:
    """Groups of rows, by every aggregate; whole numbers and others."""
    aggregates = ("sum(t)", "sum(x * 1e30 + t)", "max(x)", "min(x) + last(y) - first(y)", "count(distinct part)")
    for by in aggregates:
        for window in (*STREAMS, sb.Ever()):
            for emit in EMITS:
                play([sb.TopKGroups(k, by=by, window=window, of="id", where="y > 0.01") for k in (3, 2)], emit=emit)
        play(sb.TopKGroups(3, by=by, window=TIMED, of="id", per=EACH, having="count(*) > 1"))
        monitor = sb.Monitor(sb.TopKGroups(3, by=by, window=sb.UntilDeleted(), of="often", per=EACH), id="id")
        monitor.push(DATA)
        monitor.delete([1, 2, 3])
        sessions = sb.TopKGroups(3, by=by, window=sb.Session(span=5), of="id", where="y > 0.01", per=EACH)
        for emit in EMITS:
            play([sessions, sb.TopKGroups(3, by=(by, "id"), window=sb.Session(span=5), of="id")], emit=emit)
    for window in (*STREAMS, sb.Ever()):
        for emit in EMITS:
            play(sb.TopKGroups(3, by=("count(*)", "last(part)"), window=window, of="id", with_ties=True), emit=emit)
            play(sb.TopKGroups(3, by=("sum(x)", "id"), window=window, of="id", per=EACH, offset=1), emit=emit)
    many = sb.Monitor(sb.TopKGroups(3, by="max(x)", window=TIMED, of="o"), time="t")  # which are above a bound
    numbers = np.arange(4000)
    many.push({"o": numbers, "x": numbers % 3500, "t": np.zeros(4000, np.int64)})
    many.push({"o": numbers[:9], "x": numbers[:9], "t": np.ones(9, np.int64)})
    many.advance(TIMED.span)
    many.snapshot()
    play(sb.TopKGroups(3, by="sum(x)", window=sb.Ever(), of="id", decay=10, offset=1))
    play(sb.TopKGroups(3, by="sum(x)", window=sb.Ever(), of="id", decay=10))
    exact_parts(
        np.zeros(2, np.int64), np.ones(2), np.zeros((1, 1), np.int64), 0, np.zeros((1, 1)), np.zeros(1, np.int64)
    )
    play(sb.TopKGroups(3, by="sum(x)", window=TIMED, of="id", algorithm="SKETCH"))
    play(sb.TopKGroups(3, by="count(*)", window=TIMED, of="id", algorithm="SKETCH"), emit="batch")


def orders() -> None:
    """Several keys, both ties, distinct ids, sessions."""
    for window in (*STREAMS, sb.Ever(), sb.UntilDeleted(), sb.Session(span=5)):
        for emit in EMITS:
            for distinct in (None, "best", "last"):
                some = [
                    sb.TopK(3, by=("part", "x"), largest=(False, True), window=window, per=per, distinct=distinct)
                    for per in (None, EACH)
                ]
                play(some, id="id", emit=emit)
        play(sb.TopK(3, by="x", window=window, ties="oldest", with_ties=True), id="id")
        play(sb.TopK(3, by="x", window=window, offset=2), id="id")
    sb.Monitor(sb.TopK(3, by="part", window=COUNTED)).push({"part": 4 * DATA["part"]})


#: Two lists of tasks of about the same length; tasks that share kernels are in one list.
TASKS: tuple[list[Callable[[], None]], list[Callable[[], None]]] = (
    [
        lambda: both("BLOCK", "SA"),
        lengths,
        refused,
        lambda: families("BLOCK"),
        many,
        readers,
        vectors,
        lambda: both("PA", "ADAPTIVE", windows=STREAMS[:1]),
        lambda: families("PA"),
        doubts,
        endless,
        orders,
    ],
    [
        lambda: both("RA", "SASF", "SARF", "SAPF", "RASF", "RARF", "RAPF"),
        lambda: families("RAPF"),
        lambda: grids("TMA"),
        lambda: grids("SMA"),
        lambda: grids("TSL"),
        above,
        kept,
        pairs,
        parts,
        groups,
    ],
)
