"""An attack from many addresses, found in two steps: the largest flows, then the destination that they share.

    python examples/ddos.py [picture.png]

The question of mouratidis2006, section 1: many of the flows with the most packets lead to one destination while it is
attacked, whatever else is busy. The second query is over the answer of the first.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import skyband as sb

QUESTION = """
    SELECT dest, count(*) FROM
        (SELECT * FROM flows ORDER BY packets DESC LIMIT 100 WINDOW SPAN 60) AS top
    GROUP BY dest ORDER BY count(*) DESC LIMIT 1
"""
SECONDS, RATE, BEGIN, END = 600, 100, 250, 400  # of the stream, flows a second, and of the attack
STEP = 5  # seconds, taken at once
VICTIM = "10.0.0.7"


def main(picture: str | None = None) -> None:
    print("the stream of flows is generated here", file=sys.stderr)
    monitor = sb.Monitor(sb.sql(QUESTION), time="time", keep="dest")
    history: list[tuple[int, str, float]] = []
    for second, flows in generated():
        for change in monitor.push(flows).to_pylist():
            if change["query"] == "q0" and change["diff"] > 0 and change["id"] == VICTIM:
                print(f"{change['time']:>5} s: {VICTIM} has {change['score']:.0f} of the 100 largest flows of a minute")
        (best,) = monitor.answer("q0").to_pylist()
        history.append((second, best["id"], best["score"]))
    print(f"{monitor.stats()['arrivals']:,} flows; at the end {history[-1][1]} has {history[-1][2]:.0f} of the largest")
    if picture:
        draw(history, picture)


def generated() -> Any:
    """The flows of a few seconds each: sizes of a heavy tail to busy destinations, and large ones of the attack."""
    random = np.random.default_rng(7)
    for second in range(0, SECONDS, STEP):
        size, times = STEP * RATE, second + np.arange(STEP * RATE) // RATE
        packets = np.floor(10 * random.pareto(1.2, size)) + 1
        names = [f"10.0.0.{20 + min(number, 200)}" for number in random.zipf(1.4, size)]
        many = (random.random(size) < 0.05) & (times >= BEGIN) & (times < END)
        packets[many] = 3000 + np.floor(2000 * random.random(int(many.sum())))
        names = [VICTIM if attacked else name for attacked, name in zip(many, names, strict=True)]
        yield second, {"time": times, "packets": packets, "dest": names}


def draw(history: list[tuple[int, str, float]], picture: str) -> None:
    """Plot how many of the largest flows the destination has that has most of them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(10, 4), layout="constrained")
    seconds, counts = [second for second, _, _ in history], [count for _, _, count in history]
    under_attack = [name == VICTIM for _, name, _ in history]
    axis.axvspan(BEGIN, END, color="#f3e3d3", label="the attack")
    axis.plot(seconds, counts, color="#1668b8", lw=1.5, label="the destination with most of them")
    shown = [count if attacked else float("nan") for count, attacked in zip(counts, under_attack, strict=True)]
    axis.plot(seconds, shown, color="#d55e00", lw=3, label=VICTIM)
    axis.set_xlabel("seconds")
    axis.set_ylim(0, None)
    axis.set_title("Of the 100 largest flows of the last minute, how many lead to one destination", loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, loc="upper left")
    figure.savefig(picture, dpi=90)


if __name__ == "__main__":
    main(*sys.argv[1:2])
