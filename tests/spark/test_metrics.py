"""Figures in OpenMetrics: their text, the server, a run and a listener."""

from __future__ import annotations

import json
import re
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import skyband.spark as sbs
from skyband.errors import RunError
from skyband.pipeline import pipeline_of
from skyband.spark import metrics
from skyband.spark.metrics import Exporter, Figures, Listener, place
from skyband.spark.run.command import run
from skyband.spark.run.view import Trigger
from spark.test_run import OPTIONS, QUERIES, data, flights

SAMPLE = re.compile(r'(skyband_\w+)\{query="((?:[^"\\\n]|\\[\\"n])*)"\} (-?[0-9.e+-]+)')


def read(text: str) -> dict[tuple[str, str], float]:
    """The samples of a text, after a check of its grammar: families whole, in the order type, unit, help, samples."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    found: dict[tuple[str, str], float] = {}
    family, seen = "", set[str]()
    for line in lines[:-2]:
        if line.startswith("# TYPE "):
            _, _, family, type_ = line.split(" ")
            assert family not in seen and type_ in ("counter", "gauge", "summary")
            seen.add(family)
        elif line.startswith("# "):
            assert line.split(" ")[1] in ("UNIT", "HELP") and line.split(" ")[2] == family
            if line.startswith("# UNIT"):
                assert family.endswith(line.split(" ")[3])
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample is not None, line
            ends = {"counter": ["_total"], "summary": ["_count", "_sum"], "gauge": [""]}[type_]
            assert sample[1] in [family + end for end in ends]
            found[sample[1], sample[2]] = float(sample[3])
    return found


def scrape(exporter: Exporter) -> dict[tuple[str, str], float]:
    with urllib.request.urlopen(f"http://{exporter.host}:{exporter.port}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"] == metrics.TYPE
        return read(answer.read().decode())


def test_metrics_of_triggers() -> None:
    figures = Figures()
    assert read(figures.text()) == {}
    kept = {"arrivals": 8, "late": 1, "rejected": 1, "groups": 2, "objects": 5, "bytes": 1 << 40}
    figures.follow('a "b" \\', Trigger(0, 10, 20.0, 500, kept, 7))
    figures.follow('a "b" \\', Trigger(1, 5, 20.0, 250, {**kept, "arrivals": 12, "malformed": 3}, 9))
    figures.begin("other")
    figures.end("other")
    found = read(figures.text())
    name = 'a \\"b\\" \\\\'
    assert abs(found.pop(("skyband_last_trigger_timestamp_seconds", name)) - time.time()) < 60
    assert {full.removeprefix("skyband_"): value for (full, query), value in found.items() if query == name} == {
        "running": 1,
        "rows_total": 15,
        "trigger_seconds_count": 2,
        "trigger_seconds_sum": 0.75,
        "last_trigger_seconds": 0.25,
        "last_batch": 1,
        "malformed_total": 3,
        "arrivals_total": 12,
        "late_total": 1,
        "rejected_total": 1,
        "groups": 2,
        "objects": 5,
        "state_bytes": 1 << 40,
        "store_bytes": 9,
    }
    assert found["skyband_running", "other"] == 0


def test_the_server_is_on_loopback_and_has_one_page() -> None:
    with Exporter(Figures(), 0) as exporter:
        assert exporter.host == "127.0.0.1"
        assert scrape(exporter) == {}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/", timeout=10)
        with pytest.raises(RunError, match=r"cannot listen on 127.0.0.1:\d+ .*Choose another port"):
            Exporter(Figures(), exporter.port)
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", exporter.port), 5)


def test_places() -> None:
    assert place("9400") == ("127.0.0.1", 9400)
    assert place("0.0.0.0:1") == ("0.0.0.0", 1)  # noqa: S104
    assert place("[::1]:80") == ("::1", 80)
    for text in ("", "x", "-1", "70000", "host:", "1.5", "²"):
        with pytest.raises(RunError, match=r"this is not a port\. Use a number"):
            place(text)


def test_a_run_is_served_while_it_lasts(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[dict[tuple[str, str], float]] = []

    class Last(Exporter):
        def close(self) -> None:
            served.append(scrape(self))
            super().close()

    monkeypatch.setattr("skyband.spark.run.command.Exporter", Last)
    made = pipeline_of(data(tmp_path, {"format": "noop"}, 1500))
    assert run(made, spark=spark, metrics="0") == 0
    captured = capsys.readouterr()
    assert re.search(r"metrics at http://127.0.0.1:\d+/metrics", captured.err)
    told = [json.loads(line) for line in captured.out.splitlines()]
    (found,) = served
    assert found["skyband_rows_total", "the pipeline"] == 1500
    assert found["skyband_running", "the pipeline"] == 0
    assert found["skyband_objects", "the pipeline"] == told[-1]["objects"] > 0
    assert found["skyband_trigger_seconds_count", "the pipeline"] == len(told) == 2


def test_a_listener_tells_of_queries_with_a_name(spark: SparkSession, tmp_path: Path) -> None:
    figures = Figures()
    listener = Listener(figures)
    (tmp_path / "in").mkdir()
    spark.createDataFrame(flights(300)).write.parquet(str(tmp_path / "in" / "a"))
    rows = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in" / "a")).schema).parquet(
        str(tmp_path / "in" / "a")
    )
    changes = sbs.monitor(rows, QUERIES, shards=2, metrics="any name", **OPTIONS)
    spark.streams.addListener(listener)
    try:
        writer = changes.writeStream.format("noop").queryName("named").trigger(availableNow=True)
        assert writer.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination(240)
        deadline = time.monotonic() + 60
        found: dict[tuple[str, str], Any] = {}
        while found.get(("skyband_running", "named")) != 0 and time.monotonic() < deadline:  # events come behind
            time.sleep(0.1)
            found = read(figures.text())
    finally:
        spark.streams.removeListener(listener)
    assert found["skyband_rows_total", "named"] == 300
    assert found["skyband_objects", "named"] > 0


def test_the_dashboard_shows_what_is_served() -> None:
    board = json.loads((Path(__file__).parents[2] / "docs" / "grafana.json").read_text())
    shown = {name for panel in board["panels"] for target in panel["targets"] for name in names_in(target["expr"])}
    ends = {"counter": ("_total",), "summary": ("_count", "_sum"), "gauge": ("",)}
    served = {name + end for name, type_, *_ in metrics._TABLE for end in ends[type_]}
    assert served - shown == {"skyband_last_batch"}
    assert shown <= served


def names_in(expression: str) -> list[str]:
    return re.findall(r"skyband_\w+", expression)
