"""The page in a real browser: ask, watch the answer change, lose the connection, come back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dashboard.browser import CHROMIUM, DRIVER, MISSING, Browser, free_port, wait
from dashboard.served import served

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=MISSING)
AXE = Path(os.environ.get("SKYBAND_AXE", Path(__file__).parents[2] / "build" / "axe.min.js"))
SQL = "SELECT * FROM f ORDER BY delay DESC LIMIT 5 PER origin WINDOW '2 hours'"

COLOURS = """
const canvas = document.getElementById("plane");
const drawn = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
return new Set(new Uint32Array(drawn.buffer)).size;
"""
PAINTED = "return performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime)[0]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    with Browser(folder) as opened:
        yield opened


def begin(browser: Browser, port: int) -> None:
    browser.open(f"http://127.0.0.1:{port}/")
    wait(lambda: browser.text("#link") == "live")


def first_paint(browser: Browser, port: int) -> float:
    """Open the page; returns the milliseconds until there was something to see."""
    begin(browser, port)
    return float(wait(lambda: browser.run(PAINTED)))


def audit(browser: Browser) -> None:
    """axe-core's automated checks, where it is there."""
    if not AXE.is_file():
        return  # the test has said so
    browser.run(AXE.read_text(encoding="utf-8"))
    found: Any = browser.run_async("const done = arguments[0]; axe.run(document).then((r) => done(r.violations))")
    assert [(one["id"], [node["html"][:100] for node in one["nodes"]]) for one in found] == []


def picture(browser: Browser, name: str) -> None:
    """For people: SKYBAND_PICTURES names a folder."""
    if "SKYBAND_PICTURES" in os.environ:
        browser.picture(Path(os.environ["SKYBAND_PICTURES"], f"{name}.png"))


def fits(browser: Browser) -> bool:
    return bool(browser.run("return document.documentElement.scrollWidth <= innerWidth"))


def test_from_nothing_to_an_answer_and_back_again(browser: Browser, folder: Path, subtests: pytest.Subtests) -> None:
    with subtests.test("axe-core's checks"):
        if not AXE.is_file():
            pytest.skip(f"no {AXE.name} in {AXE.parent.name}/: `make axe` fetches it (npm), SKYBAND_AXE names another")
    port = free_port()
    with served(folder, port=port) as (client, _):
        assert any(first_paint(browser, port) < 1000 for _ in range(3)), "of three times, on a machine with other work"

        # nothing yet: the page says what to do
        wait(lambda: browser.text("#stream-name") == "None is chosen.")
        assert browser.shown("#choose")
        assert "Choose a stream" in browser.text("#nothing") and not browser.shown("#detail")
        audit(browser)
        picture(browser, "empty")

        # choose a stream
        wait(lambda: browser.run("return document.querySelectorAll('#choice option').length > 3"))
        browser.run("document.getElementById('choice').value = 'flights_like'")
        browser.type("#choose [name=id]", "nothing")
        browser.click("#choose [type=submit]")
        wait(lambda: "no column 'nothing'" in browser.text("#choose-error"))
        picture(browser, "error")
        browser.run("document.querySelector('#choose [name=id]').value = 'flight'")
        browser.click("#choose [type=submit]")
        wait(lambda: "running" in browser.text("#stream-name"))
        wait(lambda: browser.shown("#query-form"))
        assert "Columns: flight (int64)" in browser.text("#examples")

        # ask: first with a mistake
        browser.type("#query-name", "late")
        browser.type("#query-sql", SQL.replace("LIMIT", "LIMT"))
        browser.click("#query-form [type=submit]")
        wait(lambda: "Did you mean LIMIT?" in browser.text("#query-error"))
        assert browser.text("#query-error").rstrip().endswith("^")
        audit(browser)
        browser.run("document.getElementById('query-sql').value = arguments[0]", SQL)
        browser.click("#check")
        wait(lambda: "BLOCK" in browser.text("#query-explanation"))
        browser.click("#query-form [type=submit]")
        wait(lambda: browser.text("#shown-title") == "late")

        # the answer comes, and changes
        wait(lambda: browser.run("return document.querySelectorAll('#rows tr').length") == 5, 90)
        before = browser.text("#rows")
        wait(lambda: browser.text("#rows") != before, 30)
        assert browser.run("return document.querySelectorAll('#group option').length") > 2
        wait(lambda: browser.run(COLOURS) > 4)
        assert "in the answer" in browser.run("return document.getElementById('plane').getAttribute('aria-label')")
        wait(lambda: int(browser.text("#changes").replace(",", "")) > 5)
        kept, window = (int(word.replace(",", "")) for word in browser.text("#kept").split(" of "))
        assert 0 < kept <= window
        audit(browser)
        picture(browser, "light")
        browser.click("#theme")
        browser.click("#theme")
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 24, 30)"
        audit(browser)
        picture(browser, "dark")

        # by keyboard: pause; / opens the form
        browser.run("document.activeElement.blur()")
        browser.press("p")
        wait(lambda: "paused" in browser.text("#stream-name"))
        browser.press("/")
        assert browser.run("return document.activeElement.id") == "query-sql"
        browser.type("#query-name", "last")
        browser.type("#query-sql", "SELECT * FROM f ORDER BY delay DESC LIMIT 2 WINDOW 100 ROWS")
        browser.click("#query-form [type=submit]")
        wait(lambda: browser.text("#shown-title") == "last" and "The answer is empty" in browser.text("#empty"))
        browser.run("document.querySelector('#list [aria-current=true]').focus()")
        browser.press("\ue013")  # arrow up
        wait(lambda: browser.text("#shown-title") == "late")

        # change, and drop
        browser.click("#change")
        browser.run("document.getElementById('query-sql').value = arguments[0]", SQL.replace("5", "2"))
        browser.click("#query-form [type=submit]")
        wait(lambda: browser.run("return document.querySelectorAll('#rows tr').length") == 2)
        assert "LIMIT 2" in browser.text("#shown-sql")
        browser.click("#drop")
        wait(lambda: browser.text("#shown-title") == "last")
        assert [one["name"] for one in client.get("/api/queries")] == ["last"]

        # at a phone's width
        browser.resize(390, 800)
        wait(lambda: fits(browser))
        audit(browser)
        picture(browser, "phone")
        assert [said for said in browser.complaints() if "status of 400" not in said] == []  # our two mistakes

    # the server is gone: what was known stays, and the page says so
    wait(lambda: browser.text("#link") == "disconnected")
    assert "The connection is lost" in browser.text("#lost") and browser.text("#shown-title") == "last"
    audit(browser)
    picture(browser, "lost")

    # and is there again
    with served(folder, port=port) as (client, _):
        wait(lambda: browser.text("#link") == "live", 30)
        wait(lambda: browser.text("#stream-name") == "None is chosen.")
        assert not browser.shown("#lost") and not browser.shown("#detail")
        browser.complaints()  # of lost connections

        # a line that is no row is counted; a stream that cannot be read any more stops with an error
        (folder / "bad.csv").write_text("a,b\n" + "1,2\n" * 1_000 + "1,2,3\n")
        client.send("PUT", "/api/stream", {"stream": "bad.csv", "rate": None})
        wait(lambda: "malformed line: 1" in browser.text("#reasons"))
        parquet.write_table(pa.table({"a": np.random.default_rng(1).random(100_000)}), folder / "cut.parquet")
        data = bytearray((folder / "cut.parquet").read_bytes())
        data[1_000:500_000] = bytes(499_000)
        (folder / "cut.parquet").write_bytes(data)
        client.send("PUT", "/api/stream", {"stream": "cut.parquet", "rate": None})
        wait(lambda: "cut.parquet cannot be read as parquet" in browser.text("#stream-error"))
        assert "stopped by an error" in browser.text("#stream-name")
        browser.open(f"http://127.0.0.1:{port}/docs")
        wait(lambda: "/api/queries/{name}/changes" in browser.text("#paths"))
        wait(lambda: fits(browser))
        audit(browser)
        assert browser.complaints() == []


def test_one_subscriber(browser: Browser, tmp_path: Path) -> None:
    """Its page shows the answer as the API has it, on a map too; it loses the server, and comes back."""
    rng, port = np.random.default_rng(1), free_port()
    taxis = pa.table({"taxi": np.arange(2_000), "x": rng.random(2_000), "y": rng.random(2_000)})
    parquet.write_table(taxis, tmp_path / "taxis.parquet")
    browser.resize(1200, 900)
    body = {"stream": "taxis.parquet", "id": "taxi", "keep": ["x", "y"], "rate": 1_000, "paused": True}
    with served(tmp_path, port=port) as (client, _):
        client.send("PUT", "/api/stream", body)
        sentence = "SELECT * FROM s ORDER BY nearest(x = :px, y = :py) LIMIT 4 WINDOW 500 ROWS"
        client.send("POST", "/api/queries", {"name": "near", "sql": sentence})
        client.send("POST", "/api/queries/near/subscriptions", [{"subscriber": "ann", "px": 0.5, "py": 0.5}])
        browser.open(f"http://127.0.0.1:{port}/follow?query=near&subscriber=ann&x=x&y=y&px=0.5&py=0.5")
        wait(lambda: browser.text("#link") == "live")
        client.send("PATCH", "/api/stream", {"paused": False})
        wait(lambda: client.get("/api/state")["stream"]["ended"], 30)
        answer = client.get("/api/queries/near/answer?subscriber=ann")
        wanted = [str(row[answer["columns"].index("id")]) for row in answer["rows"]]
        ids = "return [...document.querySelectorAll('#rows tr td:nth-child(2)')].map((cell) => cell.textContent)"
        wait(lambda: browser.run(ids) == wanted)
        assert len(wanted) == 4 and browser.run("return document.querySelectorAll('#map .member').length") == 4
        audit(browser)
        assert browser.complaints() == []
        client.send("DELETE", "/api/queries/near/subscriptions/ann")
        wait(lambda: "no such subscriber" in browser.text("#said"))
    wait(lambda: browser.text("#link") == "disconnected")
