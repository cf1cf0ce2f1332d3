"""The best flights of the last day for each of a thousand travellers with their own weights.

    python examples/preferences.py [picture.png]

Each traveller weighs a short time in the air, a small delay and a long distance differently. One Monitor answers all
thousand queries over one window, and reports every change of every answer.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import skyband as sb
from skyband import datasets

USERS = 1000


def main(picture: str = "preferences.png") -> None:
    flights = datasets.example("flights")
    flights = flights.filter(pc.field("arr_delay").is_valid() & pc.field("air_time").is_valid()).slice(0, 40_000)
    weights = np.random.default_rng(3).dirichlet([1, 1, 1], USERS).round(4)
    wishes = {
        f"user {i}": sb.TopK(
            3,
            by=sb.Linear({"arr_delay": -float(delay), "air_time": -float(air), "distance": 0.1 * float(far)}),
            window=sb.Last("24 hours"),
        )
        for i, (delay, air, far) in enumerate(weights)
    }
    monitor = sb.Monitor(wishes, time="time", keep=["dest", "carrier"], emit="batch")
    changes = 0
    for start in range(0, flights.num_rows, 2_000):
        changes += monitor.push(flights.slice(start, 2_000)).num_rows
    best = pa.concat_tables([monitor.answer(name).slice(0, 1) for name in wishes])
    print(f"{flights.num_rows:,} flights, {USERS:,} users, {changes:,} net changes")
    destinations, counts = np.unique(best["dest"].to_numpy(zero_copy_only=False), return_counts=True)
    order = np.argsort(-counts)
    for dest, count in zip(destinations[order], counts[order], strict=True):
        print(f"{dest}: best for {count} users")

    figure, axes = plt.subplots(figsize=(7, 5), dpi=90)
    chosen = best["dest"].to_numpy(zero_copy_only=False)
    x, y = (
        weights[:, 0] + weights[:, 2] / 2,
        weights[:, 2] * np.sqrt(3) / 2,
    )  # corners: delay right, air left, distance top
    for rank, dest in enumerate(destinations[order]):
        own = chosen == dest
        axes.scatter(x[own], y[own], s=14, color=f"C{rank % 10}", label=f"{dest} ({own.sum()})" if rank < 10 else None)
    for label, place, align in (
        ("little time\nin the air", (0, -0.02), "center"),
        ("little delay", (1, -0.02), "center"),
    ):
        axes.annotate(label, place, ha=align, va="top")
    axes.annotate("a long way", (0.5, np.sqrt(3) / 2 + 0.01), ha="center", va="bottom")
    axes.plot([0, 1, 0.5, 0], [0, 0, np.sqrt(3) / 2, 0], color="#c3ccd4", linewidth=1, zorder=0)
    axes.set_title("The best flight of the last day, for each of a thousand users", pad=22)
    axes.axis("off")
    axes.legend(title="goes to", loc="upper left", frameon=False, bbox_to_anchor=(0.85, 1))
    figure.savefig(picture, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
