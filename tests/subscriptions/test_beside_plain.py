"""Plain queries that are added beside a query with `Each`, or take its place: they share nothing with it."""

from __future__ import annotations

from typing import Any

import pytest

import skyband as sb

PLAIN = sb.TopK(3, "x", sb.Last(9))
EACH: dict[str, Any] = {  # all but for what a subscription brings the same as the plain one
    "k": sb.TopK(sb.Each("k"), "x", sb.Last(9)),
    "n": sb.TopK(3, "x", sb.Last(sb.Each("n"))),
    "where": sb.TopK(3, "x", sb.Last(9), where="x > :k"),
    "threshold": sb.Above(sb.Each("k"), "x", sb.Last(9)),
}
TABLE = {"subscriber": [1, 2], "k": [1, 2], "n": [1, 2]}


def monitor(what: str, subscribed: bool, pushed: bool) -> sb.Monitor:
    found = sb.Monitor({"q": EACH[what]})
    if subscribed:
        found.subscribe("q", TABLE)
    if pushed:
        found.push({"x": [1.0, 2.0, 3.0]})
    return found


@pytest.mark.parametrize("pushed", [False, True])
@pytest.mark.parametrize("subscribed", [False, True])
@pytest.mark.parametrize("what", EACH)
def test_a_plain_query_is_answered(what: str, subscribed: bool, pushed: bool) -> None:
    plain = sb.Above(3, "x", sb.Last(9)) if what == "threshold" else PLAIN
    beside, instead = monitor(what, subscribed, pushed), monitor(what, subscribed, pushed)
    beside.add("r", plain)
    instead.replace("q", plain)
    for one, name in ((beside, "r"), (instead, "q")):
        assert one.push({"x": [4.0, 5.0]}).column("query").to_pylist().count(name) == 2
        for again in (one, sb.Monitor.restore(one.snapshot(), trusted=False)):
            assert again.answer(name).column("score").to_pylist() == [5.0, 4.0]
            again.push({"x": [6.0]})
            assert again.answer(name).column("score").to_pylist()[0] == 6.0
