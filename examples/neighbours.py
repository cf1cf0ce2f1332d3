"""The three power readings of the last 6 hours that look most like a station with empty batteries.

    python examples/neighbours.py [picture.png]

23 stations of the LUCE deployment (EPFL, winter 2006/07), 669,084 readings. The fault is a point in the plane of two
voltages. Every change of its three nearest neighbours is reported, and a station that enters is an alarm.
"""

import sys
from collections import Counter

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import pyarrow as pa
import pyarrow.compute as pc

import skyband as sb
from skyband import datasets

EMPTY = sb.Nearest(
    {"primary_buffer_v": 0.5, "secondary_buffer_v": 3.4}, weights={"primary_buffer_v": 1, "secondary_buffer_v": 9}
)


def main(picture: str = "neighbours.png") -> None:
    readings = datasets.example("sensorscope_luce")
    monitor = sb.Monitor(sb.TopK(3, by=EMPTY, window=sb.Last("6 hours")), id="station", time="time")
    pieces = [monitor.push(readings.slice(start, 50_000)) for start in range(0, readings.num_rows, 50_000)]
    changes = pa.concat_tables(pieces)
    entered = changes.filter(pc.field("first"))
    alarms = entered.filter(pc.field("score") < 0.5)
    print(
        f"{readings.num_rows:,} readings, {changes.num_rows:,} changes of the three nearest, {alarms.num_rows:,} alarms"
    )
    print("objects kept:", monitor.stats()["queries"]["q0"]["objects"])
    for station, count in Counter(alarms["id"].to_pylist()).most_common(3):
        print(f"station {station}: {count:,} readings within 0.5 of an empty one")

    figure, axes = plt.subplots(figsize=(10, 4), dpi=90)
    near = entered.filter(pc.field("score") < 3)
    stations = near["id"].to_numpy()
    for rank, (station, _) in enumerate(Counter(stations.tolist()).most_common()):
        own = stations == station
        color, label = (f"C{rank}", f"station {station}") if rank < 6 else ("#c3ccd4", None)
        axes.scatter(
            near["time"].to_numpy()[own], near["score"].to_numpy()[own], s=5, color=color, label=label, zorder=9 - rank
        )
    axes.axhline(0.5, color="#b22222", linewidth=1)
    axes.annotate("alarm", (near["time"].to_numpy()[0], 0.52), color="#b22222", va="bottom")
    axes.set(ylabel="distance from an empty battery", ylim=(0, 3))
    axes.set_title("The three readings of the last 6 hours nearest to an empty station, as they enter", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, markerscale=3)
    figure.savefig(picture, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
