"""Scenes of subscriptions: queries with `Each`, the plain query that each row of values stands for, and what happens.

The plain queries are spelled out here by hand, not by `Query.bind`, which is among what is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

import skyband as sb
from skyband import Above, Each, Last, Linear, Nearest, Product, Quadratic, Similar, TopK
from skyband.query.kinds import Query

Row = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
K = st.integers(1, 4)
COUNT = st.integers(1, 6)
NUMBER = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])
CITY = st.sampled_from(["Oslo", "Bergen", "O'Hare \\ x"])


@dataclass(frozen=True)
class Asked:
    """A query with `Each`; what subscriptions bring; the plain query of one."""

    query: Query
    values: dict[str, st.SearchStrategy[Any]]
    plain: Callable[[Row], Query]
    options: dict[str, Any] = field(default_factory=dict)


def near(**more: Any) -> Callable[[Row], Query]:
    return lambda v: TopK(v["k"], by=Nearest({"x": v["px"], "y": v["py"]}), window=Last(4), **more)


def box(v: Row) -> Query:
    return TopK(2, by="x", window=Last(5), where=f"y between {v['low']!r} and {v['low'] + 1!r} and x < 3")


def budget(v: Row) -> Query:
    city = v["city"].replace("\\", "\\\\").replace("'", "\\'")
    return TopK(
        v["k"], by=Linear({"x": 1, "y": 0.5}), window=Last(v["n"]), where=f"y <= ({v['b']!r}) and city = '{city}'"
    )


TIMED = {"time": "t"}
VECTOR = st.sampled_from([[1.0, 0.0], [1.0, 2.0], [-1.0, 1.0], [3.0]])
ASKED: dict[str, Asked] = {
    "nearest": Asked(
        TopK(Each("k"), by=Nearest({"x": Each("px"), "y": Each("py")}), window=Last(4)),
        {"k": K, "px": NUMBER, "py": NUMBER},
        near(),
    ),
    "nearest by group": Asked(
        TopK(Each("k"), by=Nearest({"x": Each("px"), "y": Each("py")}), window=Last(4), per="g"),
        {"k": K, "px": NUMBER, "py": NUMBER},
        near(per="g"),
    ),
    "weights": Asked(
        TopK(
            2,
            by=Nearest({"x": Each("px"), "y": 1}, weights={"x": Each("w"), "y": 2}, metric="manhattan"),
            window=Last(Each("n")),
        ),
        {"px": NUMBER, "w": st.sampled_from([0.0, 1.0, 3.0]), "n": COUNT},
        lambda v: TopK(
            2,
            by=Nearest({"x": v["px"], "y": 1}, weights={"x": v["w"], "y": 2}, metric="manhattan"),
            window=Last(v["n"]),
        ),
        TIMED,
    ),
    "linear": Asked(
        TopK(Each("k"), by=Linear({"x": Each("a"), "y": Each("b")}), window=Last(Each("n")), where="y >= :low"),
        {"k": K, "a": NUMBER, "b": NUMBER, "n": COUNT, "low": NUMBER},
        lambda v: TopK(
            v["k"], by=Linear({"x": v["a"], "y": v["b"]}), window=Last(v["n"]), where=f"y >= ({v['low']!r})"
        ),
    ),
    "product": Asked(
        TopK(3, by=Product({"x": Each("a"), "y": 1}), window=Last(5), largest=False),
        {"a": NUMBER},
        lambda v: TopK(3, by=Product({"x": v["a"], "y": 1}), window=Last(5), largest=False),
    ),
    "quadratic": Asked(
        TopK(Each("k"), by=Quadratic({"x": Each("a"), "y": 1}), window=Last(span=Each("s"))),
        {"k": K, "a": NUMBER, "s": st.integers(1, 5)},
        lambda v: TopK(v["k"], by=Quadratic({"x": v["a"], "y": 1}), window=Last(span=v["s"])),
        TIMED,
    ),
    "column": Asked(
        TopK(Each("k"), by="x", window=Last(span=Each("s")), per="g"),
        {"k": K, "s": st.integers(1, 5)},
        lambda v: TopK(v["k"], by="x", window=Last(span=v["s"]), per="g"),
        TIMED,
    ),
    "similar": Asked(
        TopK(Each("k"), by=Similar("e", Each("v")), window=Last(Each("n"))),
        {"k": K, "v": VECTOR, "n": COUNT},
        lambda v: TopK(v["k"], by=Similar("e", v["v"]), window=Last(v["n"])),
    ),
    "far by time": Asked(
        TopK(2, by=Similar("e", Each("v"), "euclidean"), window=Last(span=Each("s")), largest=True),
        {"v": VECTOR, "s": st.integers(1, 5)},
        lambda v: TopK(2, by=Similar("e", v["v"], "euclidean"), window=Last(span=v["s"]), largest=True),
        TIMED,
    ),
    "dot in a box": Asked(
        TopK(Each("k"), by=Similar("e", Each("v"), "dot"), window=Last(5), where="y <= :b and x >= 0"),
        {"k": K, "v": VECTOR, "b": NUMBER},
        lambda v: TopK(v["k"], by=Similar("e", v["v"], "dot"), window=Last(5), where=f"y <= ({v['b']!r}) and x >= 0"),
    ),
    "above a likeness": Asked(
        Above(Each("t"), by=Similar("e", Each("v")), window=Last(span=3), per="g"),
        {"t": NUMBER, "v": VECTOR},
        lambda v: Above(v["t"], by=Similar("e", v["v"]), window=Last(span=3), per="g"),
        TIMED,
    ),
    "one span": Asked(
        TopK(Each("k"), by=Nearest({"x": Each("px"), "y": 0}), window=Last(span=3)),
        {"k": K, "px": NUMBER},
        lambda v: TopK(v["k"], by=Nearest({"x": v["px"], "y": 0}), window=Last(span=3)),
        TIMED,
    ),
    "expression": Asked(
        TopK(2, by="x * :a + y / (1 - :b)", window=Last(4)),
        {"a": NUMBER, "b": NUMBER},
        lambda v: TopK(2, by=f"x * ({v['a']!r}) + y / (1 - ({v['b']!r}))", window=Last(4)),
    ),
    "above": Asked(
        Above(Each("t"), by=Linear({"x": Each("a"), "y": 1}), window=Last(Each("n"))),
        {"t": NUMBER, "a": NUMBER, "n": COUNT},
        lambda v: Above(v["t"], by=Linear({"x": v["a"], "y": 1}), window=Last(v["n"])),
    ),
    "above a column": Asked(
        Above(Each("t"), by="x", window=Last(span=3), per="g"),
        {"t": NUMBER},
        lambda v: Above(v["t"], by="x", window=Last(span=3), per="g"),
        TIMED,
    ),
    "box": Asked(
        TopK(2, by="x", window=Last(5), where="y between :low and :high and x < 3"),
        {"low": st.sampled_from([0.0, 1.0, 2.0])},  # and high
        box,
    ),
    "budget": Asked(
        TopK(Each("k"), by=Linear({"x": 1, "y": 0.5}), window=Last(Each("n")), where="y <= :b and city = :city"),
        {"k": K, "n": COUNT, "b": NUMBER, "city": CITY},
        budget,
    ),
    "order": Asked(
        TopK(Each("k"), by=("x", "y"), window=Last(Each("n")), largest=(False, True), where="y <= :most"),
        {"k": K, "n": COUNT, "most": NUMBER},
        lambda v: TopK(
            v["k"], by=("x", "y"), window=Last(v["n"]), largest=(False, True), where=f"y <= ({v['most']!r})"
        ),
    ),
    "ties": Asked(
        TopK(Each("k"), by=Linear({"x": Each("a"), "y": 0}), window=Last(span=4), with_ties=True, ties="oldest"),
        {"k": K, "a": NUMBER},
        lambda v: TopK(v["k"], by=Linear({"x": v["a"], "y": 0}), window=Last(span=4), with_ties=True, ties="oldest"),
        TIMED,
    ),
    "ever": Asked(
        TopK(Each("k"), by=Nearest({"x": Each("px"), "y": 0}), window=sb.Ever()),
        {"k": K, "px": NUMBER},
        lambda v: TopK(v["k"], by=Nearest({"x": v["px"], "y": 0}), window=sb.Ever()),
    ),
    "deleted": Asked(
        TopK(Each("k"), by=Linear({"x": Each("a"), "y": 1}), window=sb.UntilDeleted()),
        {"k": K, "a": NUMBER},
        lambda v: TopK(v["k"], by=Linear({"x": v["a"], "y": 1}), window=sb.UntilDeleted()),
    ),
    "offset": Asked(
        TopK(Each("k"), by="x", window=Last(Each("n")), offset=Each("o")),
        {"k": K, "n": COUNT, "o": st.integers(0, 2)},
        lambda v: TopK(v["k"], by="x", window=Last(v["n"]), offset=v["o"]),
    ),
    "session": Asked(
        TopK(Each("k"), by="x", window=sb.Session(span=Each("s")), per="g"),
        {"k": K, "s": st.integers(1, 5)},
        lambda v: TopK(v["k"], by="x", window=sb.Session(span=v["s"]), per="g"),
        TIMED,
    ),
    "groups": Asked(
        sb.TopKGroups(
            Each("k"),
            by="sum(x) * :w",
            window=Last(Each("n")),
            of="city",
            where="y >= :low",
            having="count(*) >= :m",
        ),
        {"k": K, "n": COUNT, "w": NUMBER, "low": NUMBER, "m": st.integers(0, 2)},
        lambda v: sb.TopKGroups(
            v["k"],
            by=f"sum(x) * ({v['w']!r})",
            window=Last(v["n"]),
            of="city",
            where=f"y >= ({v['low']!r})",
            having=f"count(*) >= {v['m']!r}",
        ),
        {"id": "city"},
    ),
    "pairs": Asked(
        sb.TopKPairs(Each("k"), by="abs(a.x - b.x)", window=Last(Each("n"))),
        {"k": K, "n": COUNT},
        lambda v: sb.TopKPairs(v["k"], by="abs(a.x - b.x)", window=Last(v["n"])),
    ),
    "incomplete": Asked(
        sb.TopKIncomplete(Each("k"), parts={"a": (-9, 9), "b": (-9, 9)}, window=Last(Each("n")), repeat="last"),
        {"k": K, "n": COUNT},
        lambda v: sb.TopKIncomplete(v["k"], parts={"a": (-9, 9), "b": (-9, 9)}, window=Last(v["n"]), repeat="last"),
        {"part": "city", "value": "x"},
    ),
    "uncertain": Asked(
        sb.TopKUncertain(Each("k"), by="x", window=Last(Each("n")), semantics="pk-topk"),
        {"k": K, "n": COUNT},
        lambda v: sb.TopKUncertain(v["k"], by="x", window=Last(v["n"]), semantics="pk-topk"),
    ),
}
SPANS = [timedelta(seconds=1), timedelta(seconds=3), "2 seconds", "4000 ms"]


@dataclass(frozen=True)
class Push:
    rows: list[Row]


@dataclass(frozen=True)
class Subscribe:
    rows: list[Row]
    from_window: bool = False


@dataclass(frozen=True)
class Unsubscribe:
    ids: list[str]


@dataclass(frozen=True)
class Restore:
    trusted: bool


Event = Push | Subscribe | Unsubscribe | Restore
ODD = [0.0, 1.0, 1.0, 2.0, 2.0, 3.0, -0.0, None, float("nan"), float("inf"), float("-inf"), 1e200, -1e200]


def subscription(draw: Draw, asked: Asked, who: str) -> Row:
    values = {name: draw(strategy) for name, strategy in asked.values.items()}
    if "low" in values and "n" not in values:
        values["high"] = values["low"] + 1
    return {"subscriber": who, "unused": 0} | values


def rows(draw: Draw, serial: int, asked: Asked, *, wild: bool) -> list[Row]:
    numbers = st.sampled_from(ODD if wild else ODD[:7])
    made = []
    for i in range(draw(st.integers(0, 5))):
        row = {"i": f"i{serial + i}", "x": draw(numbers), "y": draw(numbers), "g": draw(st.sampled_from(["a", None]))}
        parts = "part" in asked.options
        row["city"] = draw(st.sampled_from(["a", "b", "Oslo"])) if parts else draw(CITY)
        row["t"] = serial + draw(st.integers(-4, 2))
        row["e"] = draw(st.sampled_from([[row["x"], row["y"]], [row["y"], 1.0], [1.0, 1.0], [2.0], None]))
        row["p"] = draw(st.sampled_from([0.25, 0.5, 1.0]))
        made.append(row)
    return made


@st.composite
def scenes(draw: Any, names: list[str], *, wild: bool) -> tuple[str, list[Event]]:
    name = draw(st.sampled_from(names))
    asked, serial = ASKED[name], 0
    events: list[Event] = []
    for _ in range(draw(st.integers(2, 8))):
        kind = draw(st.sampled_from(["push", "push", "push", "subscribe", "subscribe", "unsubscribe", "restore"]))
        if kind == "push":
            pushed = Push(rows(draw, serial, asked, wild=wild))
            events.append(pushed)
            serial += len(pushed.rows)
        elif kind == "subscribe":
            who = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=4, unique=True))
            events.append(Subscribe([subscription(draw, asked, one) for one in who]))
        elif kind == "unsubscribe":
            events.append(Unsubscribe(draw(st.lists(st.sampled_from("abcdez"), max_size=3, unique=True))))
        else:
            events.append(Restore(draw(st.booleans())))
    return name, events


# Forms of queries whose subscriptions can begin with their windows, and what may differ from the one that is there
# from the beginning; None: everything.
OWN_STATE = ("k", "n", "s")
BEGINNING: dict[str, tuple[str, ...] | None] = {
    **dict.fromkeys(["nearest", "weights", "linear", "product", "quadratic", "one span", "box", "budget"]),
    **dict.fromkeys(["similar", "far by time", "dot in a box"]),
    **dict.fromkeys(["column", "order", "ever", "pairs", "incomplete", "uncertain", "groups"], OWN_STATE),
    "deleted": ("k", "a"),
    "above": ("t", "a", "n"),
    "above a column": ("t",),
}
LARGEST: Row = {"k": 4, "n": 6, "s": 5, "t": -9.0}


@st.composite
def beginning_scenes(draw: Any, name: str, *, wild: bool) -> list[Event]:
    """One subscription stands from the beginning, with the largest k and window; others come with their windows."""
    asked, serial, free = ASKED[name], 0, BEGINNING[name]
    first = subscription(draw, asked, "z") | {key: LARGEST[key] for key in asked.values if key in LARGEST}
    events: list[Event] = [Subscribe([first])]
    for _ in range(draw(st.integers(2, 7))):
        kind = draw(
            st.sampled_from(["push", "push", "push", "subscribe", "window", "window", "unsubscribe", "restore"])
        )
        who = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
        if kind == "push":
            pushed = Push(rows(draw, serial, asked, wild=wild))
            events.append(pushed)
            serial += len(pushed.rows)
        elif kind in ("subscribe", "window"):
            made = [subscription(draw, asked, one) for one in who]
            if "v" in first:  # those with other numbers of components share nothing
                made = [one | ({} if len(one["v"]) == len(first["v"]) else {"v": first["v"]}) for one in made]
            kept = {} if free is None else {key: value for key, value in first.items() if key not in free}
            # engines of their own that begin later have other numbers, and the oracle cannot tell whose are lent
            back = kind == "window" or (free is not None and serial > 0)
            events.append(Subscribe([one | kept | {"subscriber": one["subscriber"]} for one in made], back))
        elif kind == "unsubscribe":
            events.append(Unsubscribe(who))
        else:
            events.append(Restore(draw(st.booleans())))
    return events
