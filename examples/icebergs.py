"""Four semantics of 'the ten icebergs that have drifted longest', among sightings that may be wrong.

    python examples/icebergs.py [picture.png]

Sightings of the International Ice Patrol, season 2021, over the last 30 days, ranked by days since the first sighting.
The probability of a sighting depends on its method: radar and visual .8, a distant satellite .3 (jin2008, section 6).
"""

import sys
from datetime import datetime
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.dates import DateFormatter, MonthLocator, date2num

import skyband as sb
from skyband import datasets

FROM, TO = datetime(2021, 3, 1), datetime(2021, 7, 1)
MEANINGS = {
    "pk-topk": "pk-topk: the ten most likely to be among the first ten",
    "pt-k": "pt-k: all that are so with a probability above 0.5",
    "u-kranks": "u-kranks: the most likely of each rank",
    "u-topk": "u-topk: the most likely ten together",
}


def main(picture: str = "icebergs.png") -> None:
    sightings = datasets.example("icebergs_2021")
    queries = {
        name: sb.TopKUncertain(
            10, by="days", window=sb.Last("30 days"), semantics=name, threshold=0.5 if name == "pt-k" else None
        )
        for name in MEANINGS
    }
    monitor = sb.Monitor(queries, time="time")
    changes = monitor.push(sightings)
    print(f"{sightings.num_rows:,} sightings, {changes.num_rows:,} changes")
    for name, stats in monitor.stats()["queries"].items():
        print(f"{name}: {stats['algorithm']} keeps {stats['objects']} of them")

    figure, axes = plt.subplots(2, 2, figsize=(10, 6.4), dpi=80, sharex=True, sharey=True, layout="constrained")
    shade = plt.Normalize(0, 1)
    for panel, (name, title) in zip(axes.flat, MEANINGS.items(), strict=True):
        panel.scatter(sightings["time"].to_pylist(), sightings["days"], s=2, color="#d5d8dc", linewidths=0)
        stays = _stays(changes, name)
        lines = LineCollection([[(a, y), (b, y)] for a, b, y, _ in stays], cmap="viridis_r", norm=shade, linewidths=1.6)
        lines.set_array([p for *_, p in stays])
        panel.add_collection(lines)
        panel.set_title(title, loc="left", fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_xlim(FROM, TO)
        panel.set_ylim(0, 135)
        panel.xaxis.set_major_locator(MonthLocator())
        panel.xaxis.set_major_formatter(DateFormatter("%b"))
    for panel in axes[:, 0]:
        panel.set_ylabel("days since the first sighting")
    figure.colorbar(lines, ax=axes, shrink=0.6, label="probability when it entered")
    figure.suptitle("Icebergs of season 2021: sightings in the 'top ten' of the last 30 days, and when")
    figure.savefig(picture)


def _stays(changes: Any, query: str) -> list[tuple[float, float, float, float]]:
    """Intervals in which each sighting was in the answer, with its score and its probability when it entered."""
    inside: dict[tuple[int, int | None], tuple[datetime, float]] = {}
    stays = []
    for row in changes.to_pylist():
        if row["query"] != query:
            continue
        place = (row["id"], row["rank"])
        if row["diff"] > 0:
            inside[place] = row["time"], row["probability"]
        else:
            began, p = inside.pop(place)
            stays.append((date2num(began), date2num(row["time"]), row["score"], p))
    return stays


if __name__ == "__main__":
    main(*sys.argv[1:])
