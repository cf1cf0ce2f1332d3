"""The server by its API: the same answers as a Monitor, clear errors, limits, the newest frame for the slow."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot as plt
from typer.testing import CliRunner

import skyband as sb
from dashboard.browser import wait
from dashboard.served import LAST, LATE, ROWS, Client, ask, ended, served, table, watch_file
from skyband.cli.app import app
from skyband.dashboard import limits
from skyband.dashboard.boards import MonitorBoard
from skyband.dashboard.values import plain
from skyband.dashboard.watch import Watch
from skyband.query.kinds import KINDS as EVERY_KIND


def test_before_anything_is_chosen(root: Path) -> None:
    with served(root) as (client, _):
        assert client.get("/api/state") == {"stream": None, "queries": []}
        offered = client.get("/api/streams")
        assert offered[:3] == [
            {"name": "flights.parquet", "kind": "file"},
            {"name": "days", "kind": "folder"},
            {"name": "days/1.parquet", "kind": "file"},
        ]
        assert {"name": "flights_like", "kind": "made up"} in offered
        status, message = client.wrong("POST", "/api/queries", {"name": "x", "sql": LAST})
        assert (status, "no stream is chosen yet" in message) == (400, True)
        with client.events("/api/events") as events:
            assert next(events) == ("frame", {"head": {"stream": None, "queries": []}, "detail": None})


def test_answers_and_counts_are_a_monitors(client: Client) -> None:
    watch_file(client, paused=True)
    ask(client, "late", LATE)
    assert ask(client, "last", LAST)["query"]["k"] == 4
    client.send("PATCH", "/api/stream", {"paused": False})
    state = ended(client)
    monitor = sb.Monitor({"late": sb.sql(LATE), "last": sb.sql(LAST)}, id="flight", time="due", keep="due")
    changes = monitor.push(table())
    for name in ("late", "last"):
        result, answer = client.get(f"/api/queries/{name}/answer"), monitor.answer(name)
        assert result["columns"] == answer.column_names
        assert result["rows"] == [[plain(value) for value in row.values()] for row in answer.to_pylist()]
        own = next(one for one in state["queries"] if one["name"] == name)
        assert own["changes"] == sum(row["query"] == name for row in changes.to_pylist())
        assert own["arrivals"] == ROWS and own["rejected"] == own["late"] == 0
    assert (state["stream"]["arrivals"], state["stream"]["clock"]) == (ROWS, "1970-01-01 01:23:19")
    windows = {one["name"]: one["window"] for one in state["queries"]}
    assert windows["last"] == 500 and windows["late"] == pytest.approx(600, rel=0.2)
    one = client.get("/api/queries/late/answer?key=%22EWR%22&rows=2")
    assert [row[0] for row in one["rows"]] == ["EWR", "EWR"] and one["total"] == 3


def test_the_detail_of_a_frame(client: Client) -> None:
    watch_file(client, paused=True)
    ask(client, "late", LATE)
    with client.events("/api/events?watch=late") as events:
        first = next(data for name, data in events if name == "frame")
        assert first["detail"]["answer"]["rows"] == [] and first["detail"]["plane"]["points"] == []
    with client.events("/api/events?watch=late&group=1") as events:
        client.send("PATCH", "/api/stream", {"paused": False})
        for name, data in events:
            if name == "frame" and data["head"]["stream"]["ended"]:
                break
    detail = data["detail"]
    assert detail["group"] == 1 and len(detail["groups"]) == 3 and detail["per"] == ["origin"]
    key = detail["groups"][1][0]
    assert [row[0] for row in detail["answer"]["rows"]] == [key] * 3
    plane = detail["plane"]
    top = [point for point in plane["points"] if point[2]]
    assert [point[2] for point in top] == [1, 2, 3]
    place = detail["answer"]["columns"].index("score")
    assert [point[1] for point in top] == [row[place] for row in detail["answer"]["rows"]]
    assert plane["span"] == 600_000 and all(-600_000 < point[0] <= 0 for point in plane["points"] + plane["rest"])
    assert plane["to"] == "1970-01-01 01:23:19" and len(plane["rest"]) > 10


def test_changes_for_programs(client: Client) -> None:
    watch_file(client, paused=True)
    ask(client, "late", LATE)
    monitor = sb.Monitor({"late": sb.sql(LATE)}, id="flight", time="due", keep="due")
    expected = [plain(row) for row in monitor.push(table()).to_pylist()]
    got: list[Any] = []
    with client.events("/api/queries/late/changes") as events:
        client.send("PATCH", "/api/stream", {"paused": False})
        for name, data in events:
            got += data if name == "changes" else []
            if len(got) >= len(expected):
                break
    assert got == expected


def test_change_and_drop_while_it_runs(client: Client) -> None:
    watch_file(client, rate=500)
    ask(client, "best", "SELECT * FROM f ORDER BY delay DESC LIMIT 5 WINDOW 300 ROWS")
    wait(lambda: client.get("/api/queries/best/answer")["total"] == 5)
    status, result = client.send(
        "PUT", "/api/queries/best", {"sql": "SELECT * FROM f ORDER BY delay DESC LIMIT 2 WINDOW 300 ROWS"}
    )
    assert status == 200 and result["query"]["k"] == 2
    assert client.get("/api/queries/best/answer")["total"] == 2  # the state was kept
    assert client.send("DELETE", "/api/queries/best")[0] == 204
    assert client.get("/api/queries") == []
    assert client.wrong("GET", "/api/queries/best")[0] == 404
    status, result = client.send("POST", "/api/queries", {"name": "by value", "query": sb.sql(LAST).to_dict()})
    assert status == 201 and result["sql"] == sb.sql(LAST).to_sql()
    assert client.get("/api/queries/by%20value")["name"] == "by value"


def test_another_stream_with_the_same_queries(client: Client) -> None:
    watch_file(client, paused=True)
    ask(client, "last", LAST)
    status, result = client.send("PUT", "/api/stream?queries=keep", {"stream": "days/1.parquet", "rate": None})
    assert status == 200 and [one["name"] for one in result["queries"]] == ["last"]
    assert ended(client)["stream"]["arrivals"] == 100
    client.wrong("PUT", "/api/stream", {"stream": "nowhere.parquet"})
    assert client.get("/api/state")["stream"]["arrivals"] == 100  # an error changes nothing


def test_a_threshold_that_json_cannot_hold(client: Client) -> None:
    watch_file(client, paused=True)
    assert ask(client, "all", "SELECT * FROM f ABOVE -INFINITY BY delay WINDOW 10 ROWS")["query"]["threshold"] == "-inf"


def test_how_it_would_be_answered(client: Client) -> None:
    status, result = client.send("POST", "/api/check", {"sql": LAST})
    assert status == 200 and result["query"] == sb.sql(LAST).to_dict() and "BLOCK" in result["explain"]


WRONG: list[tuple[str, str, Any, int, str]] = [
    (
        "POST",
        "/api/queries",
        {"name": "x", "sql": "SELECT * FROM f ORDER BY delay DESC LIMT 3"},
        400,
        "Did you mean LIMIT",
    ),
    ("POST", "/api/queries", {"name": "", "sql": LAST}, 400, "a query's name has 1 to 100"),
    ("POST", "/api/queries", {"name": "x" * 101, "sql": LAST}, 400, "a query's name has 1 to 100"),
    ("POST", "/api/queries", {"name": "a/b", "sql": LAST}, 400, "no slash"),
    ("POST", "/api/queries", {"name": "x"}, 400, 'one of "sql"'),
    ("POST", "/api/queries", {"name": "x", "sql": LAST, "query": {}}, 400, 'one of "sql"'),
    ("POST", "/api/queries", {"name": "x", "query": {"kind": "TopK", "k": 1}}, 400, "missing"),
    (
        "POST",
        "/api/queries",
        {"name": "x", "query": {"kind": "TopK", "by": {"callable": "os.system"}}},
        400,
        "never stored",
    ),
    ("POST", "/api/queries", {"name": "x", "sql": LAST.replace("4", "10001")}, 400, "k up to 10,000"),
    ("POST", "/api/queries", {"name": "x", "sql": LAST.replace("delay", "dely")}, 400, "Did you mean 'delay'"),
    ("POST", "/api/queries", {"name": "x", "sql": LATE.replace("origin", "orig in")}, 400, "no clause begins"),
    ("POST", "/api/queries", {"name": "x", "sql": LATE.replace("PER origin", "PER carrier")}, 400, "'carrier'"),
    ("POST", "/api/queries", {"name": 5, "sql": LAST}, 400, "'name' is a text"),
    ("POST", "/api/queries", [], 400, "a JSON object"),
    ("POST", "/api/queries", {"name": "x", "sql": LAST, "what": 1}, 400, "'what' is not expected"),
    ("POST", "/api/queries", b"{", 400, "not JSON"),
    ("POST", "/api/queries", b"[" * 60_000, 400, "not JSON"),
    ("POST", "/api/queries", b" " * (limits.BODY + 1), 413, "at most 65,536 bytes"),
    ("PUT", "/api/queries/none", {"sql": LAST}, 404, "there is no query 'none'"),
    ("DELETE", "/api/queries/none", None, 404, "there is no query 'none'"),
    ("GET", "/api/queries/none/changes", None, 404, "there is no query 'none'"),
    ("GET", "/api/queries/last/answer?rows=many", None, 400, "rows is a whole number"),
    ("GET", "/api/queries/last/answer?rows=99999", None, 400, "up to 10,000"),
    ("GET", "/api/queries/last/answer?key=EWR", None, 400, "not JSON"),
    ("GET", "/api/queries/last/answer?key=1", None, 400, "0 `per` columns"),
    ("GET", "/api/events?watch=last&group=x", None, 400, "group is a whole number"),
    ("PUT", "/api/stream", {}, 400, '"stream" is missing'),
    ("PUT", "/api/stream", {"stream": "../secret.parquet"}, 400, "lies outside"),
    ("PUT", "/api/stream", {"stream": "/etc/passwd"}, 400, "lies outside"),
    ("PUT", "/api/stream", {"stream": "notes.txt"}, 400, "the ending says the format"),
    ("PUT", "/api/stream", {"stream": "-"}, 400, "skyband serve -"),
    ("PUT", "/api/stream", {"stream": "flights.parquet", "id": "fligt"}, 400, "no column 'fligt'"),
    ("PUT", "/api/stream", {"stream": "flights.parquet", "keep": [1]}, 400, "list of column names"),
    ("PATCH", "/api/stream", {"rate": -1}, 400, "rows a second"),
    ("PATCH", "/api/stream", {"rate": True}, 400, "'rate' is a number"),
    ("PATCH", "/api/stream", {"paused": 1}, 400, "'paused' is a true or false"),
    ("GET", "/nowhere", None, 404, "nothing here"),
    ("PUT", "/api/state", {}, 405, "not possible here"),
]


@pytest.fixture(scope="module")
def standing(server: tuple[Client, Watch]) -> Client:
    watch_file(server[0], paused=True)
    ask(server[0], "last", LAST)
    return server[0]


@pytest.mark.parametrize(("method", "path", "body", "status", "said"), WRONG)
def test_errors(standing: Client, method: str, path: str, body: Any, status: int, said: str) -> None:
    if not any(one["name"] == "last" for one in standing.get("/api/queries")):
        watch_file(standing, paused=True)
        ask(standing, "last", LAST)
    got, result = standing.send(method, path, body)
    assert got == status, result
    assert said in result["error"]["message"]


def test_an_error_says_where(client: Client) -> None:
    _, result = client.send("POST", "/api/check", {"sql": "SELECT * FROM s WHERE log(x) > 1"})
    assert result["error"]["at"] == 22


def test_a_question_that_the_stream_cannot_answer(client: Client) -> None:
    """Of no column: refused. Of words as numbers: the stream waits until the question is changed, and goes on."""
    watch_file(client, paused=True)
    status, message = client.wrong("POST", "/api/queries", {"name": "x", "sql": LAST.replace("delay", "dely")})
    assert status == 400 and "no column 'dely'. Did you mean 'delay'?" in message
    ask(client, "x", LAST.replace("delay", "origin * 2"))
    client.send("PATCH", "/api/stream", {"paused": False})
    assert "origin" in wait(lambda: client.get("/api/state")["stream"]["error"])
    client.send("PUT", "/api/queries/x", {"sql": LAST})
    assert ended(client)["stream"]["arrivals"] == ROWS


def test_access(client: Client) -> None:
    assert client.wrong("GET", "/api/state", Host="evil.example")[0] == 403
    assert client.wrong("GET", "/api/state", Host="")[0] == 403
    assert client.get("/api/state", Host="localhost:1")["stream"]
    assert client.wrong("POST", "/api/check", {"sql": LAST}, Origin="http://evil.example")[0] == 403
    assert client.wrong("DELETE", "/api/queries/last", Origin="http://evil.example")[0] == 403
    status, message = client.wrong("POST", "/api/check", {"sql": LAST}, Content_Type="text/plain")
    assert (status, "send JSON" in message) == (415, True)


def test_a_token(root: Path) -> None:
    with served(root, "open sesame") as (client, _):
        for path in ("/", "/api/state", "/api/events", "/static/app.js", "/openapi.json"):
            assert client.wrong("GET", path)[0] == 401
        assert client.wrong("GET", "/api/state", Authorization="Bearer open")[0] == 401
        assert client.get("/api/state", Authorization="Bearer open sesame", Host="any.example") == {
            "stream": None,
            "queries": [],
        }
        assert client.get("/api/state", Cookie='skyband_token="open sesame"')["stream"] is None
        status, _ = client.send("GET", "/?token=open%20sesame")
        assert status == 303


def test_other_addresses_need_a_token() -> None:
    run = CliRunner().invoke
    result = run(app, ["serve", "--host", "0.0.0.0", "--port", "0"])  # noqa: S104
    assert result.exit_code == 2 and "needs a token" in result.stderr
    result = run(app, ["serve", "--token", "short"])
    assert result.exit_code == 2 and "at least 8 characters" in result.stderr
    result = run(app, ["serve", "--query", LAST])
    assert result.exit_code == 2 and "name it" in result.stderr
    result = run(app, ["serve", "--port", "65536"])
    assert result.exit_code == 2 and "from 0 to 65535" in result.stderr
    result = run(app, ["serve", "nothing.parquet", "--port", "0"])
    assert result.exit_code == 2 and "no such file" in result.stderr


def test_limits(client: Client, server: tuple[Client, Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    watch_file(client, paused=True)
    monkeypatch.setattr(limits, "QUERIES", 3)
    for n in range(3):
        ask(client, f"q{n}", LAST)
    status, message = client.wrong("POST", "/api/queries", {"name": "one more", "sql": LAST})
    assert (status, "3 queries run already" in message) == (400, True)
    monkeypatch.setattr(limits, "CLIENTS", 2)
    handles = [server[1].listen(lambda: None) for _ in range(2)]
    assert "2 pages are connected already" in client.wrong("GET", "/api/events")[1]
    for handle in handles:
        server[1].leave(handle)
    client.send("DELETE", "/api/queries/q0")


def test_the_newest_wins(client: Client) -> None:
    """A slow page misses frames, and then sees the latest; the server keeps nothing for it."""
    client.send("PUT", "/api/stream", {"stream": "uniform", "rate": 5000})
    ask(client, "best", "SELECT * FROM f ORDER BY x1 DESC LIMIT 5 WINDOW 300 ROWS")
    wait(lambda: client.get("/api/state")["stream"]["arrivals"] > 1000, 60)
    with client.events("/api/events?watch=best") as events:
        seen = [data for name, data in (next(events) for _ in range(10)) if name == "frame"]
        rows = [data["head"]["stream"]["rows"] for data in seen]
        assert rows == sorted(rows) and rows[-1] > rows[0]
    client.send("PATCH", "/api/stream", {"paused": True})
    rows = client.get("/api/state")["stream"]["rows"]
    with client.events("/api/events") as events:
        assert next(events)[1]["head"]["stream"]["rows"] == rows


def test_a_hundred_queries_are_drawn_twenty_times_a_second(server: tuple[Client, Watch]) -> None:
    """By CPU time, since the machine may be busy: a push and a frame take less than a twentieth of a second."""
    client, watch = server
    client.send("PUT", "/api/stream", {"stream": "uniform", "paused": True})
    for n in range(100):
        ask(client, f"q{n}", sb.TopK(n % 9 + 1, by=f"{n / 100}*x1 + x2", window=sb.Last(1000)).to_sql())

    def cost() -> float:
        """On the thread itself: pushes of 100 rows, each with a frame."""
        board, stream = watch.board(), watch._now.stream
        assert isinstance(board, MonitorBoard) and stream is not None
        best = float("inf")
        for _ in range(8):
            begin = time.thread_time()
            board.push(stream.read(100), {("q0", None)})
            json.dumps([watch.look(), board.detail("q0", None)])
            best = min(best, time.thread_time() - begin)
        return best

    assert watch.call(cost) < 0.05


mpl.use("Agg")
KINDS = {
    "TopK": "SELECT * FROM s ORDER BY x DESC LIMIT 3 WINDOW 50 ROWS",
    "Above": "SELECT * FROM s ABOVE 0.9 BY x WINDOW 50 ROWS",
    "TopKGroups": "SELECT part, sum(x), count(*) FROM s GROUP BY part ORDER BY sum(x) DESC LIMIT 3 WINDOW 50 ROWS",
    "TopKPairs": "SELECT * FROM s a, s b ORDER BY abs(a.x - b.x) LIMIT 3 WINDOW 50 ROWS",
    "TopKIncomplete": "SELECT * FROM s PARTS (n, s) COMBINE sum LIMIT 3 WINDOW 50 ROWS REPEAT last",
    "TopKUncertain": "SELECT * FROM s ORDER BY x DESC LIMIT 3 WINDOW 50 ROWS WITH PROBABILITY p SEMANTICS 'u-kranks'",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_shown(kind: str) -> None:
    """The answer on the page is the Monitor's; on the plane it is on top of what is kept."""
    rng = np.random.default_rng(3)
    rows = pa.table(
        {
            "i": rng.integers(0, 30, 200),
            "x": rng.random(200),
            "p": rng.random(200) / 2 + 0.25,
            "part": rng.choice(["n", "s"], 200),
            "value": rng.random(200),
        }
    )
    monitor = sb.Monitor({}, id="i")
    assert KINDS.keys() == EVERY_KIND.keys()
    board = MonitorBoard(monitor, rows.column_names)
    board.add("q", sb.sql(KINDS[kind]))
    board.push(rows, {("q", None)})
    detail, answer = board.detail("q", None), monitor.answer("q")
    assert detail["answer"]["columns"] == answer.column_names and answer.num_rows
    assert detail["answer"]["rows"] == [[plain(value) for value in row.values()] for row in answer.to_pylist()]
    points = detail["plane"]["points"]
    assert [point[1] for point in points if point[2]] == answer["score"].to_pylist()
    assert len([point for point in points if not point[2]]) > 0 if kind in ("TopK", "TopKPairs") else True
    assert all(-50 < point[0] <= 0 for point in points)
    assert json.dumps(board.summaries(), allow_nan=False) and board.summaries()[0]["window"] == 50
    assert sb.plot.plane(monitor).get_legend() is not None
    assert "q" in monitor._repr_html_()
    plt.close("all")


def test_memory_is_bounded() -> None:
    monitor = sb.Monitor({"q": sb.TopK(3, by="x", window=sb.Last("1 second"))}, time="t")
    board = MonitorBoard(monitor)
    for n in range(700):
        rows = {"x": [1.0, 2.0], "t": pa.array([2 * n, 2 * n + 1], pa.timestamp("ms"))}
        board.push(pa.table(rows), {("q", None)})
    assert len(board._pace) <= 600 and len(board._rest[("q", None)]) == limits.POINTS
    assert board.summaries()[0]["window"] == pytest.approx(1000, abs=5)  # a second of milliseconds


# --- the rest


def test_the_description_fits_the_server(client: Client, server: tuple[Client, Watch]) -> None:
    result = client.get("/openapi.json")
    assert result["openapi"] == "3.1.0" and result["info"]["version"] == sb.__version__
    for path, operations in result["paths"].items():
        for verb in operations.keys() - {"parameters"}:
            status, answer = (
                client.send(
                    verb.upper(),
                    path.replace("{name}", "none").replace("{subscriber}", "x"),
                    None if verb == "get" else {},
                )
                if ("events" not in path)
                else (200, None)
            )
            assert status != 405 and not (status == 404 and "nothing here" in str(answer)), (verb, path)


def test_the_page_needs_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/").decode() + client.get("/follow").decode()
    for name in ("style.css", "app.js", "plane.js", "api.js", "follow.js", "icon.svg"):
        text = client.get(f"/static/{name}").decode()
        page += text
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "innerHTML" not in page and "eval(" not in page and " style=" not in page and "<script>" not in page
    status, _ = client.send("GET", "/static/../app.py")
    assert status == 404
