"""Pairs of motes that are close together and disagree most, over the last ten minutes.

    python examples/motes.py [picture.png]

52 motes on the floor of the Intel Research Lab in Berkeley (2004) each send a reading about every 31 s. The score of a
pair of readings is their difference in degrees per metre between the motes (plus three metres, so that neighbours do
not always win). The query keeps the five best pairs of the last ten minutes. Lines on the floor plan are pairs that
were among them.
"""

import sys
from collections import defaultdict

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import skyband as sb
from skyband import datasets

APART = "sqrt((a.x - b.x)*(a.x - b.x) + (a.y - b.y)*(a.y - b.y))"
DISAGREE = f"case when a.moteid = b.moteid then 0 else abs(a.temperature - b.temperature) / (3 + {APART}) end"
ROWS = 100_000  # the first day


def main(picture: str = "motes.png", rows: str | int = ROWS) -> None:
    floor = datasets.example("mote_locations")
    readings = datasets.example("intel_lab").slice(0, int(rows))
    readings = readings.join(floor, "moteid").combine_chunks()
    readings = readings.take(pc.sort_indices(readings, [("time", "ascending"), ("moteid", "ascending")]))
    pairs = sb.TopKPairs(
        5, by=DISAGREE, window=sb.Last("10 minutes"), largest=True, where="temperature between 5 and 45"
    )
    monitor = sb.Monitor(pairs, id="moteid", time="time", keep="temperature", emit="batch")
    pieces = [monitor.push(readings.slice(start, 5_000)) for start in range(0, readings.num_rows, 5_000)]
    entered = pa.concat_tables(pieces).filter(pc.field("diff") > 0)
    stats = monitor.stats()["queries"]["q0"]
    print(f"{readings.num_rows:,} readings; {stats['objects']:,} objects and {stats['pairs']:,} pairs are kept")

    met: dict[tuple[int, int], list[float]] = defaultdict(list)
    columns = ("id_a", "id_b", "temperature_a", "temperature_b")
    for a, b, warm, cold in zip(*(entered[name].to_pylist() for name in columns), strict=True):
        met[min(a, b), max(a, b)].append(abs(warm - cold))
    often = sorted(met, key=lambda pair: -len(met[pair]))
    for a, b in often[:3]:
        print(f"motes {a} and {b}: {len(met[a, b])} times, {np.mean(met[a, b]):.1f} degrees apart on average")
    draw(floor, met, often[:14], picture)


def draw(floor: pa.Table, met: dict[tuple[int, int], list[float]], often: list[tuple[int, int]], picture: str) -> None:
    place = dict(zip(floor["moteid"].to_pylist(), zip(*(floor[c].to_pylist() for c in "xy"), strict=True), strict=True))
    figure, axes = plt.subplots(figsize=(9, 6.2), dpi=90)
    mean = {pair: float(np.mean(met[pair])) for pair in often}
    shade = plt.Normalize(min(mean.values()), max(mean.values()))
    for a, b in reversed(often):
        (x0, y0), (x1, y1) = place[a], place[b]
        width = 1.5 + 7 * len(met[a, b]) / len(met[often[0]])
        axes.plot([x0, x1], [y0, y1], color=plt.cm.YlOrRd(0.25 + 0.75 * shade(mean[a, b])), linewidth=width, zorder=1)
    for mote, (x, y) in place.items():
        axes.scatter(x, y, s=150, color="white", edgecolor="#46535e", linewidth=0.8, zorder=2)
        axes.annotate(str(mote), (x, y), ha="center", va="center", fontsize=7, zorder=3)
    bar = figure.colorbar(plt.cm.ScalarMappable(shade, mpl.colors.ListedColormap(
        plt.cm.YlOrRd(np.linspace(0.25, 1, 64)))), ax=axes, shrink=0.6)  # fmt: skip
    bar.set_label("degrees apart, on average")
    bar.outline.set_visible(False)
    axes.set_title("Motes that stand close and disagree: the wider, the more often among the five best", loc="left")
    axes.set(xlabel="metres", aspect="equal")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
