"""Smog in Beijing: the five worst days of the last quarter, over twelve stations that report with gaps.

The score of a day is the mean of its PM2.5 at all stations. Stations do not report together: each sends the mean of its
day when the day is over or up to two days later, and often not at all. The query is answered at once from what is known
(a station that has not reported counts as 0), as rows arrive.

    python examples/smog.py [picture.png]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.datasets import example

DAYS = 90


def reports(seed: int = 0) -> Any:
    """One row for each station and day that has measurements, in the order in which they arrive."""
    table = example("beijing_air")
    day = table["time"].to_numpy().astype("datetime64[D]").astype(np.int64)
    stations, which = np.unique(table["station"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    dust = table["pm25"].to_numpy(zero_copy_only=False)
    first, known = day.min(), ~np.isnan(dust)
    cell = which[known] * 10_000 + day[known] - first
    sums, hours = np.bincount(cell, dust[known]), np.bincount(cell)
    there = np.flatnonzero(hours >= 12)  # days with fewer hours are not reported
    days = there % 10_000 + first
    came = (days + 1) * 24 + np.random.default_rng(seed).exponential(12, len(there)).clip(max=48)
    order = np.argsort(came)
    return pa.table(
        {
            "day": days[order].astype("datetime64[D]"),
            "part": stations[there // 10_000][order],
            "value": np.minimum(sums[there] / hours[there], 1000.0)[order],
            "arrived": (came[order] * 3600).astype("datetime64[s]"),
        }
    )


def main(picture: str | None = None) -> None:
    rows = reports()
    stations = sorted(set(rows["part"].to_pylist()))
    worst = sb.TopKIncomplete(5, dict.fromkeys(stations, (0, 1000)), sb.Last(f"{DAYS} days"), combine="mean")
    monitor = sb.Monitor(worst, id="day", time="arrived")
    changes = monitor.push(rows)
    print(f"{rows.num_rows:,} reports of {len(stations)} stations, {changes.num_rows:,} changes; now:")
    for one in monitor.answer().to_pylist():
        print(f"  {one['rank']}. {one['id']}  {one['score']:.0f} µg/m³")
    entered = changes.filter(pa.compute.equal(changes["first"], True))
    print(f"{len(set(entered['id'].to_pylist()))} days were among the five worst of their quarter at some time.")
    if picture:
        draw(rows, changes, stations, picture)


def draw(rows: Any, changes: Any, stations: list[str], picture: str) -> None:
    """Plot when days entered and left the answer, above the number of stations that reported each day."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (top, bottom) = plt.subplots(2, 1, figsize=(10, 6), sharex=True, height_ratios=(3, 1), layout="constrained")
    days, place = np.unique(rows["day"].to_numpy(), return_inverse=True)
    dust = dict(zip(days.tolist(), np.bincount(place, rows["value"].to_numpy()) / len(stations), strict=True))
    since, end = {}, max(rows["arrived"].to_pylist())
    spans = []  # of a day: the time in which it was among the worst
    for change in changes.select(["id", "time", "diff"]).to_pylist():
        if change["diff"] > 0:
            since[change["id"]] = change["time"]
        else:
            spans.append((change["id"], since.pop(change["id"]), change["time"]))
    spans += [(day, begin, end) for day, begin in since.items()]
    for day, begin, until in spans:
        top.plot([begin, until], [dust[day]] * 2, color="#b2182b", lw=1.6, alpha=0.7)
        top.plot(begin, dust[day], ".", color="#b2182b", ms=4)
    top.set_ylabel("PM2.5 of the day, mean of the stations (µg/m³)")
    top.set_title(f"The five worst days of the last {DAYS} days: each line is a day, while it was among them")
    bottom.fill_between(days, np.bincount(place), step="mid", color="#4393c3", lw=0)
    bottom.set_ylabel(f"stations that\nreported (of {len(stations)})")
    bottom.set_ylim(0, len(stations))
    for axis in (top, bottom):
        axis.spines[["top", "right"]].set_visible(False)
    fig.savefig(picture, dpi=90)


if __name__ == "__main__":
    main(*sys.argv[1:2])
