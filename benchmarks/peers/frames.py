"""Peers of the same process: data frames (Polars, pandas) in batch, and the model of an incremental view (whole.py).

Frames have all rows before they begin, in memory; what they answer over the first `check` rows must be the oracle's,
every window and key, and of the timed rows a sample is computed again. A row is one number, its score above its id, as
in duck.py. They sort by time first, within the timed part, so that no row is late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import skyband as sb
from benchmarks import checks
from benchmarks.contestants import Outcome, Ready
from benchmarks.peers import answers
from benchmarks.peers.answers import Answers
from benchmarks.peers.whole import WholeWindow
from benchmarks.workloads import Stream

ABOVE = 2**32  # ids are smaller


def polars_dynamic(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """group_by_dynamic: windows of `window` every `slide`, the k largest of each."""
    size, slide = answers.micros(p["window"]), answers.micros(p["slide"])

    def query(frame: pl.DataFrame) -> pl.DataFrame:
        windows = frame.sort("time").group_by_dynamic(
            "time", every=f"{slide}us", period=f"{size}us", offset=f"-{size - slide}us",
            closed="left", label="left", group_by="key",
        )  # fmt: skip
        return windows.agg(pl.col("number").top_k(p["k"])).with_columns(pl.col("time") + pl.duration(microseconds=size))

    return _in_batch(query, _polars(stream), _lists, stream, p)


def polars_rolling(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """rolling: the k largest of the last `window` at every row, as a Monitor has them."""

    def query(frame: pl.DataFrame) -> pl.DataFrame:
        windows = frame.sort("time").rolling("time", period=f"{answers.micros(p['window'])}us", group_by="key")
        return windows.agg(pl.col("number").top_k(p["k"]))

    return _in_batch(query, _polars(stream), _lists, stream, p, at_rows=True)


def pandas_windows(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """A loop over the windows: their rows, sorted, and the first k of each key."""
    size = answers.micros(p["window"])

    def query(frame: pd.DataFrame) -> list[tuple[int, pd.DataFrame]]:
        frame = frame.sort_values("time", kind="stable")
        time, found = frame["time"].to_numpy(), []
        for end in answers.ends({"time": time}, p):
            low, high = np.searchsorted(time, [end - size, end])
            rows = frame.iloc[low:high].sort_values("number", ascending=False)
            found.append((end, rows.groupby("key", sort=False, observed=True).head(p["k"])))
        return found

    def lists(found: list[tuple[int, pd.DataFrame]]) -> Answers:
        rows = (
            (end, key, number % ABOVE)
            for end, best in found
            for key, number in zip(best["key"], best["number"], strict=True)
        )
        return answers.gathered((int(end), str(key), int(id_)) for end, key, id_ in rows)

    frame = pd.DataFrame(numbered(stream)).astype({"key": "category"})
    return _in_batch(query, frame, lists, stream, p)


def whole_window(stream: Stream, p: Mapping[str, Any]) -> Ready:
    """The model of an incremental view, row by row; all its changes must be those of the Monitor."""
    small = answers.first(stream, p["check"])
    span = answers.micros(p["window"])
    given = answers.walked(WholeWindow(p["k"], span), small, p)
    as_oracle, lateness = given == answers.expected(small, p), answers.judged(given, small, p)[1]
    view, rows = WholeWindow(p["k"], span), answers.rows_of(stream)

    def work() -> Any:
        return view.push(rows)

    def after(changes: Any) -> Outcome:
        monitor = sb.Monitor(answers.query(p), id="id", time="time")
        told = monitor.push(stream)

        def check(stream: Stream, p: Mapping[str, Any], _: Any) -> bool:
            theirs = zip(told["key"].to_pylist(), told["id"].to_pylist(), told["diff"].to_pylist(), strict=True)
            return as_oracle and sorted(changes) == sorted(theirs)

        stored = 28 * view.rows  # as arrays: key, id, time and score of each row
        counters = {"rows": p["rows"], "changes": len(changes), "kept": view.rows, "checkpoint_bytes": stored}
        return Outcome(None, check, counters | lateness)

    return Ready(work, after)


def _in_batch(
    query: Callable[[Any], Any],
    frame: Any,
    lists: Callable[[Any], Answers],
    stream: Stream,
    p: Mapping[str, Any],
    *,
    at_rows: bool = False,
) -> Ready:
    small = answers.first(stream, p["check"])
    given = lists(query(frame[: p["check"]]))
    lateness: dict[str, float] = {}
    if at_rows:
        as_oracle = answers.same(given, answers.at_arrivals(small, p))
    else:
        as_oracle, lateness = answers.judged(given, small, p)

    def after(found: Any) -> Outcome:
        given, ordered = lists(found), answers.in_time(stream)
        shifted = {(end + answers.TICK, key): ids for (end, key), ids in given.items()} if at_rows else given
        sums = {"windows": len(given), "objects": sum(map(len, given.values()))}

        def check(stream: Stream, p: Mapping[str, Any], _: Any) -> bool:
            whole = at_rows or checks.closes_windows(stream, p, np.datetime64("2262-01-01", "us"), sums)
            return as_oracle and whole and answers.sampled(shifted, ordered, p)

        return Outcome(None, check, {"rows": p["rows"]} | lateness)

    return Ready(lambda: query(frame), after)


def numbered(stream: Stream) -> Stream:
    """Times in microseconds, and the number of a row: its score above its id."""
    time = stream["time"].astype("M8[us]").astype(np.int64)
    return {"key": stream["key"], "time": time, "number": stream["score"].astype(np.int64) * ABOVE + stream["id"]}


def _polars(stream: Stream) -> pl.DataFrame:
    return pl.DataFrame(numbered(stream)).with_columns(
        pl.col("time").cast(pl.Datetime("us")), pl.col("key").cast(pl.String)
    )


def _lists(found: pl.DataFrame) -> Answers:
    """By instant and key, the last of equal ones: with it all rows of the instant are there."""
    found = found.with_columns(pl.col("time").cast(pl.Int64))
    columns = (found[name].to_list() for name in ("time", "key", "number"))
    return {(time, str(key)): [one % ABOVE for one in best] for time, key, best in zip(*columns, strict=True)}
