"""The ten most delayed flights of each New York airport over the last 24 hours, in a week with a snow storm, on Spark.

    python examples/flights.py [picture.png]

Run the same query as in one process over a DataFrame. A streaming DataFrame gives the same rows.
"""

import sys
import tempfile
from bisect import insort
from datetime import datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import pyarrow.compute as pc
import pyarrow.parquet as pq

import skyband as sb
import skyband.spark as sbs
from skyband import datasets

FROM, TO = datetime(2013, 2, 5), datetime(2013, 2, 13)
AIRPORTS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "LaGuardia"}


def main(picture: str = "flights.png") -> None:
    flights = datasets.example("flights")
    week = flights.filter((pc.field("time") >= FROM) & (pc.field("time") < TO))
    top = sb.TopK(10, by="dep_delay", window=sb.Last("24 hours"), per="origin")
    with tempfile.TemporaryDirectory() as folder, sbs.session("local[2]") as spark:
        pq.write_table(week, Path(folder) / "week.parquet")
        rows = spark.read.parquet(folder)
        changes = sbs.monitor(rows, top, id="flight", time="time", order=["time", "carrier", "flight"]).toArrow()
    changes = changes.sort_by([("time", "ascending"), ("diff", "descending")])  # within a moment, entering first
    print(f"{week.num_rows:,} flights, {changes.num_rows:,} changes")

    figure, axes = plt.subplots(3, 1, figsize=(9, 6), dpi=80, sharex=True, sharey=True)
    for (code, name), panel in zip(AIRPORTS.items(), axes, strict=True):
        times, most, least = _bounds(changes.filter(pc.field("origin") == code))
        panel.fill_between(times, least, most, step="post", color="#9fc5e8", linewidth=0)
        panel.plot(times, most, drawstyle="steps-post", color="#1668b8", linewidth=1)
        panel.set_title(f"{name}: up to {max(most) / 60:.1f} hours", loc="left", fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_ylabel("minutes")
    figure.suptitle("Delays of the ten most delayed flights of the last 24 hours")
    figure.savefig(picture, bbox_inches="tight")


def _bounds(changes: Any) -> tuple[list[Any], list[float], list[float]]:
    """Compute the largest and the smallest delay of the answer at each moment, from the changes alone."""
    answer: list[float] = []
    bounds: dict[Any, tuple[float, float]] = {}
    for time, score, diff in zip(*(changes[name].to_pylist() for name in ("time", "score", "diff")), strict=True):
        if diff > 0:
            insort(answer, score)
        else:
            answer.remove(score)
        if answer:
            bounds[time] = answer[-1], answer[0]  # overwritten until the moment's last change
    most, least = zip(*bounds.values(), strict=True)
    return list(bounds), list(most), list(least)


if __name__ == "__main__":
    main(*sys.argv[1:])
