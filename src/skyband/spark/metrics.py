"""Metrics of running queries for Prometheus and the like: OpenMetrics 1.0 over HTTP, on loopback by default.

`skyband run --metrics 9400` serves its own query. For a query of one's own, `Listener` is Spark's listener:

    figures = Figures()
    exporter = Exporter(figures, 9400)
    spark.streams.addListener(Listener(figures))
    sbs.monitor(..., metrics="any name").writeStream.queryName("late")...

`observed(progress)` has them for a listener of one's own, in a classic session and over Spark Connect.
A scrape reads a few numbers and never waits; a query reports them once a trigger.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from skyband.errors import RunError
from skyband.spark.run.view import Report, Trigger
from skyband.spark.run.view import observed as observed

TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LOOPBACK = "127.0.0.1"

#: name, type, unit, help; the values are in `_Query`
_TABLE = (
    ("skyband_running", "gauge", "", "1 while the query runs, 0 after it has ended"),
    ("skyband_rows", "counter", "", "rows read since this process began"),
    ("skyband_trigger_seconds", "summary", "seconds", "how long triggers took"),
    ("skyband_last_trigger_seconds", "gauge", "seconds", "how long the last trigger took"),
    ("skyband_last_trigger_timestamp_seconds", "gauge", "seconds", "when the last trigger ended"),
    ("skyband_last_batch", "gauge", "", "the number of the last trigger of the checkpoint"),
    ("skyband_malformed", "counter", "", "messages that could not be read since this process began"),
    ("skyband_arrivals", "counter", "", "rows that arrived since the checkpoint began"),
    ("skyband_late", "counter", "", "rows that came too late since the checkpoint began, at least: mappers drop some"),
    ("skyband_rejected", "counter", "", "rows that were rejected since the checkpoint began"),
    ("skyband_groups", "gauge", "", "groups in the state"),
    ("skyband_objects", "gauge", "", "objects kept in the state"),
    ("skyband_state_bytes", "gauge", "bytes", "bytes of the state"),
    ("skyband_store_bytes", "gauge", "bytes", "memory of Spark's state store"),
)
_METRICS = {"arrivals": "skyband_arrivals_total", "late": "skyband_late_total", "rejected": "skyband_rejected_total"}
_METRICS |= {"groups": "skyband_groups", "objects": "skyband_objects", "bytes": "skyband_state_bytes"}


@dataclass
class _Query:
    """The samples of one query, by their full name."""

    samples: dict[str, float] = field(default_factory=lambda: {"skyband_running": 1})

    def add(self, name: str, value: float) -> None:
        self.samples[name] = self.samples.get(name, 0) + value


class Figures:
    """The last reported metrics of each query, by its name."""

    def __init__(self) -> None:
        self._queries: dict[str, _Query] = {}
        self._lock = threading.Lock()

    def begin(self, query: str) -> None:
        with self._lock:
            self._queries.setdefault(query, _Query()).samples["skyband_running"] = 1

    def follow(self, query: str, trigger: Trigger) -> None:
        with self._lock:
            mine = self._queries.setdefault(query, _Query())
            mine.add("skyband_rows_total", trigger.rows)
            mine.add("skyband_trigger_seconds_count", 1)
            mine.add("skyband_trigger_seconds_sum", trigger.milliseconds / 1000)
            mine.samples["skyband_last_trigger_seconds"] = trigger.milliseconds / 1000
            mine.samples["skyband_last_trigger_timestamp_seconds"] = round(time.time(), 3)
            mine.samples["skyband_last_batch"] = trigger.batch
            mine.samples["skyband_store_bytes"] = trigger.state
            if "malformed" in trigger.metrics:
                mine.add("skyband_malformed_total", trigger.metrics["malformed"])
            mine.samples |= {full: trigger.metrics[name] for name, full in _METRICS.items() if name in trigger.metrics}

    def end(self, query: str) -> None:
        with self._lock:
            if query in self._queries:
                self._queries[query].samples["skyband_running"] = 0

    def text(self) -> str:
        """All metrics as OpenMetrics text."""
        with self._lock:
            by_query = {_escaped(name): dict(query.samples) for name, query in self._queries.items()}
        lines = []
        for metric, type_, unit, about in _TABLE:
            ends = {"counter": ("_total",), "summary": ("_count", "_sum")}.get(type_, ("",))
            found = [
                f'{metric}{end}{{query="{name}"}} {samples[metric + end]:.15g}'
                for name, samples in by_query.items()
                for end in ends
                if metric + end in samples
            ]
            if found:
                units = [f"# UNIT {metric} {unit}"] if unit else []
                lines += [f"# TYPE {metric} {type_}", *units, f"# HELP {metric} {about}", *found]
        return "\n".join([*lines, "# EOF", ""])


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Listener(StreamingQueryListener):
    """Spark's listener: reports every query of the session that has a name to `figures`."""

    def __init__(self, figures: Figures) -> None:
        self.figures = figures
        self._names: dict[str, str] = {}  # of runs; the end of one does not say its name

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        if event.name is not None:
            self._names[str(event.runId)] = event.name
            self.figures.begin(event.name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        trigger = Trigger.of(event.progress)
        if event.progress.name is not None and trigger is not None:
            self.figures.follow(event.progress.name, trigger)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        name = self._names.pop(str(event.runId), None)
        if name is not None:
            self.figures.end(name)


class Counted:
    """A report that updates `figures` too."""

    def __init__(self, report: Report, figures: Figures, query: str) -> None:
        self.report, self.figures, self.query = report, figures, query
        figures.begin(query)

    def trigger(self, trigger: Trigger) -> None:
        self.figures.follow(self.query, trigger)
        self.report.trigger(trigger)

    def rest(self) -> None:
        self.report.rest()

    def say(self, state: str) -> None:
        self.report.say(state)

    def __enter__(self) -> Self:
        self.report.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.figures.end(self.query)
        self.report.__exit__(*error)


class Exporter:
    """Serves figures on a port until it is closed; port 0 is any that is free, `port` says which."""

    def __init__(self, figures: Figures, port: int, host: str = LOOPBACK) -> None:
        handler = type("Handler", (_Handler,), {"figures": figures})
        try:
            self._server = ThreadingHTTPServer((host, port), handler)
        except (OSError, OverflowError) as error:
            raise RunError(
                f"--metrics: cannot listen on {host}:{port} ({error}). Choose another port; 0 is any that is free."
            ) from None
        self._server.daemon_threads = True
        self.host, self.port = str(self._server.server_address[0]), int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="skyband metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    figures: Figures
    server_version = "skyband"
    sys_version = ""
    timeout = 10  # seconds for a request to come in whole

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(HTTPStatus.NOT_FOUND, "Only /metrics is here")
            return
        body = self.figures.text().encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: stderr is the run's."""


def place(text: str) -> tuple[str, int]:
    """`9400` or `0.0.0.0:9400` as host and port; loopback unless a host is named."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65_535:
        raise RunError(f"--metrics {text}: this is not a port. Use a number up to 65535, or host:port.")
    return host or LOOPBACK, int(port)
