"""Scenes to be forged of what 0.2 has added: orders and sessions, questions over answers, subscriptions, options."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import skyband as sb
from faults.scene import Scene

KEYED = {"id": "i", "time": "t"}


def scenes() -> dict[str, Scene]:
    return _orders() | _ranked_groups() | _sources() | _subscriptions() | _vectors() | _pairs() | _options()


def windows() -> dict[str, Any]:
    """A session's window is a time window to engines."""
    return {
        "count": sb.Last(25),
        "time": sb.Last(span=9),
        "time session": sb.Session(span=2),
        "ever": sb.Ever(),
        "until deleted": sb.UntilDeleted(),
    }


def _orders() -> dict[str, Scene]:
    """Orders that one score cannot say: SORTED has them all."""
    found: dict[str, Scene] = {}
    for name, window in windows().items():
        ask = partial(sb.TopK, window=window)
        op = {"op": "op"} if name == "until deleted" else {}
        keyed, who = KEYED | op, {"id": "who", "time": "t"} | op
        ways: dict[str, tuple[Any, dict[str, Any]]] = {
            "": (ask(3, by=("e", "x"), ties="oldest"), keyed),
            " grouped": (
                ask(2, by=("word", "m"), largest=(False, True), nulls="last", per="g", where="y < 30"),
                keyed | {"emit": "batch", "keep": ("word", "bag")},
            ),
            " ties": (ask(2, by="e", with_ties=True, per="h"), keyed),
            " offset": (ask(2, by=("x", "i"), offset=2), keyed),
            " best": (ask(3, by="x", distinct="best"), who),
            " last": (ask(3, by=("x",), distinct="last", nulls="first", where="y > 5"), who),
            " k": (ask("l", k_max=2, by="x", per="g"), keyed),
            " words": (ask(3, by="word", per="kind"), keyed),
            " arrival": (ask(4, by=(), offset=1), keyed),
        }
        found |= {f"TopK SORTED {name}{way}": Scene({"q": query}, more) for way, (query, more) in ways.items()}
        if name == "time":
            found["TopK SORTED time passing"] = Scene({"q": ask(2, by=("x", "y"), per="b")}, keyed)
            found["TopK SORTED time several"] = Scene(
                {"q": ask(2, by=("x", "y")), "r": ask(3, by=("x", "y"), offset=1), "s": ask(1, by="word")}, keyed
            )
        if name == "time session":
            found["TopK SORTED time session plain"] = Scene({"q": ask(3, by="x", per="g")}, keyed)
            found["Above SORTED time session"] = Scene({"q": sb.Above(20, "x", window, per="g", where="y < 30")}, keyed)
    return found


def _ranked_groups() -> dict[str, Scene]:
    """Orders of groups, and groups in sessions."""
    found: dict[str, Scene] = {}
    for name, window in windows().items():
        ask = partial(sb.TopKGroups, window=window, of="e")
        ways: dict[str, Any] = {
            " ranked": ask(2, by=("count(*)", "max(x)"), largest=(True, False), ties="oldest", per="g"),
            " offset": ask(2, by="sum(x)", offset=1, nulls="last"),
            " ties": ask(2, by=("count(*)",), with_ties=True, having="max(y) > 3", select={"m": "first(m)"}),
            " names": ask(3, by=("count(*)", "id")),
        }
        if isinstance(window, sb.Session):
            ways[""] = ask(2, by="avg(x)", per="g", where="y < 30", select={"n": "count(distinct word)"})
        found |= {f"TopKGroups TALLY {name}{way}": Scene({"q": query}, KEYED) for way, query in ways.items()}
    return found


def _sources() -> dict[str, Scene]:
    """Questions over the answers of others, up to three deep."""
    best = sb.TopK(4, "x", sb.Last(span=9), per="g")
    groups = sb.TopKGroups(4, by="sum(x)", window=sb.Last(20), of="word", select={"n": "count(*)"})
    over = partial(sb.TopK, source="q")
    kept = KEYED | {"keep": ("word", "y")}
    near = sb.Nearest({"x": sb.Each("px"), "y": 20})
    each = sb.TopK(sb.Each("k"), near, sb.Last(sb.Each("n")))
    return {
        "sources best": Scene({"q": best, "r": over(2, by="score")}, kept),
        "sources groups": Scene({"q": groups, "r": over(2, by=("n", "score")), "s": sb.Above(30, "score", source="q")}),
        "sources groups over": Scene(
            {"q": best, "r": sb.TopKGroups(2, by="sum(score)", of="word", having="count(*) > 0", source="q")}, kept
        ),
        "sources deep": Scene(
            {
                "q": best,
                "r": over(3, by=("y", "score"), offset=1, nulls="last"),
                "s": sb.TopKGroups(2, by="count(*)", of="word", source="r"),
                "u": sb.Above(0, "score", source="s"),
            },
            kept | {"emit": "batch"},
        ),
        "sources above": Scene(
            {"q": sb.Above(15, "x", sb.Session(span=2), per="g"), "r": over(2, by="score", per="word", ties="oldest")},
            kept,
        ),
        "sources deleted": Scene(
            {"q": sb.TopK(9, "x", sb.UntilDeleted()), "r": over(2, by="y", with_ties=True)}, kept | {"op": "op"}
        ),
        "sources subscriptions": Scene(
            {"q": each, "r": over(3, by="score", per={"whose": "subscriber"})}, kept, 60, 12
        ),
    }


def _subscriptions() -> dict[str, Scene]:
    near = sb.Nearest({"x": sb.Each("px"), "y": 20}, weights={"x": sb.Each("w"), "y": 1})
    ask = partial(sb.TopK, sb.Each("k"), where="word >= 'w1' and word != :word")
    found: dict[str, Scene] = {}
    for name, window in (("count", sb.Last(sb.Each("n"))), ("time", sb.Last(span=sb.Each("n")))):
        slots = sb.TopK(sb.Each("k"), near, window, where="part = 'a' and word = :word")
        linear = sb.Linear({"x": 1, "y": sb.Each("w")})
        ways: dict[str, dict[str, Any]] = {
            "slots": {"q": slots, "r": replace(slots, where=None)},
            "alone": {"q": ask("x", window, per="g")},
            "grouped": {"q": sb.TopK(sb.Each("k"), linear, window, per="g"), "r": sb.TopK(2, near, window, per="h")},
            "above": {"q": sb.Above(sb.Each("limit"), "x + y", window, per="g")},
            "vectors": {"q": sb.TopK(sb.Each("k"), sb.Similar("v", sb.Each("v")), window)},
            "groups": {"q": sb.TopKGroups(sb.Each("k"), by="sum(x)", window=window, of="word", having="max(y) > :w")},
            "offset": {"q": sb.TopK(2, ("x", "y"), window, offset=sb.Each("w"))},
        }
        if name == "time":
            ways["session"] = {"q": sb.TopK(sb.Each("k"), "x", sb.Session(span=sb.Each("k")), per="g")}
        found |= {f"subscriptions {way} {name}": Scene(queries, KEYED, 60, 12) for way, queries in ways.items()}
    found["subscriptions waiting"] = Scene({"q": sb.TopK(2, near, sb.Last(9))}, {}, 0, 12)
    found["subscriptions none"] = Scene({"q": ask("x", sb.Last(sb.Each("n"))), "r": sb.TopK(1, "x", sb.Last(9))})
    return found


def _vectors() -> dict[str, Scene]:
    ways: Any = {"cosine": None, "dot": True, "euclidean": None}
    return {
        f"TopK BLOCK similar {metric}": Scene(
            {
                "q": sb.TopK(3, sb.Similar("v", [1, 0, 2], metric), sb.Last(25), per="g", largest=largest),
                "r": sb.TopK(2, sb.Similar("v", [0, 1, 2], metric), sb.Last(span=9)),
            },
            KEYED,
        )
        for metric, largest in ways.items()
    }


def _pairs() -> dict[str, Scene]:
    """Pairs with a condition, and transforms with weights."""
    found: dict[str, Scene] = {}
    weighted = sb.Global({"x": "absdiff", "y": "sum"}, weights={"y": 0.5}, transform={"x": "sqrt(x)"})
    for name, window in (("count", sb.Last(25)), ("time", sb.Last(span=9)), ("until deleted", sb.UntilDeleted())):
        for algorithm in ("REFILL",) if name == "until deleted" else ("SCASE", "PST", "NAIVE", "BASIC"):
            ask = partial(sb.TopKPairs, window=window, algorithm=algorithm)
            ways = {
                "on": {"q": ask(3, by="abs(a.x - b.x)", on="a.word <> b.word and a.y < b.y", per="h")},
                "weights": {"q": ask(3, by=weighted), "r": ask(2, by=weighted)},
                "largest": {"q": ask(2, by="abs(a.x - b.x) * a.y", largest=True, symmetric=False, where="y > 3")},
            }
            more = KEYED | ({"op": "op", "id": "who"} if name == "until deleted" else {})
            found |= {f"TopKPairs {algorithm} {name} {way}": Scene(queries, more) for way, queries in ways.items()}
    return found


def _options() -> dict[str, Scene]:
    """Options of the Monitor that change what is stored."""
    one = sb.TopK(3, "x", sb.Last(20), per={"of": "g"})
    moments = {"id": "word", "time": "moment"}
    return {
        "options forget": Scene({"q": one, "r": sb.Above(20, "x", sb.UntilDeleted(), per="b")}, KEYED | {"forget": 8}),
        "options renamed": Scene({"q": one}, {"keep": {"text": "word", "many": "bag", "list": "v", "cost": "m"}}),
        "options moments": Scene(
            {"q": sb.TopK(2, "x", sb.Last("5 seconds"), per="kind"), "r": sb.TopK(2, ("moment", "m"), sb.Last(9))},
            moments | {"late": "drop", "emit": "batch"},
        ),
        "options fading": Scene(
            {"q": sb.TopKGroups(2, by="sum(x)", window=sb.Ever(), of=("g", "kind"), decay="3 seconds")}, moments
        ),
    }
