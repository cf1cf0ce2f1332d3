"""Airlines by total delay over the last 24 hours, in a week with a snow storm.

    python examples/airlines.py [picture.png]

The objects are airlines, not flights: `TopKGroups` ranks them by a sum over the rows of each.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow.compute as pc

import skyband as sb
from skyband.datasets import example

FROM, TO = datetime(2013, 2, 5), datetime(2013, 2, 13)
QUESTION = """
    SELECT carrier, sum(greatest(dep_delay, 0)) / 60, count(*) AS flights, avg(dep_delay) AS mean FROM flights
    GROUP BY carrier ORDER BY 2 DESC LIMIT 5 WINDOW '24 hours'
"""
_CODES = "UA United,B6 JetBlue,EV ExpressJet,DL Delta,AA American,MQ Envoy,US US Airways,9E Endeavor,WN Southwest"
NAMES = {code: name for code, _, name in (airline.partition(" ") for airline in _CODES.split(","))}


def main(picture: str | None = None) -> None:
    flights = example("flights")
    departed = pc.field("dep_delay").is_valid()  # the others were cancelled
    week = flights.filter(departed & (pc.field("time") >= FROM) & (pc.field("time") < TO))
    monitor = sb.Monitor(sb.sql(QUESTION), time="time")
    hour, board = FROM + timedelta(hours=1), defaultdict[str, dict[Any, float]](dict)
    for rows in by_hour(week):
        monitor.push(rows)
        monitor.advance(hour)
        for one in monitor.answer().to_pylist():
            board[one["id"]][hour] = one["score"]
        if hour == datetime(2013, 2, 12):
            print(f"{hour:%d %B, midnight}: the five airlines with the most hours of delay in the last day")
            for one in monitor.answer().to_pylist():
                name, mean = NAMES.get(one["id"], one["id"]), f"{one['mean']:.0f} minutes each"
                print(f"  {one['rank']}. {name:<12}{one['score']:6.0f} h  {one['flights']:4.0f} flights, {mean}")
        hour += timedelta(hours=1)
    stats = monitor.stats()
    print(f"{stats['arrivals']:,} flights, {stats['queries']['q0']['objects']} airlines in the window at the end")
    if picture:
        draw(board, picture)


def by_hour(week: Any) -> list[Any]:
    """The flights of each hour, also where there are none."""
    hours = int((TO - FROM) / timedelta(hours=1))
    bounds = [FROM + timedelta(hours=n) for n in range(hours + 1)]
    return [week.filter((pc.field("time") >= start) & (pc.field("time") < end)) for start, end in pairwise(bounds)]


def draw(board: dict[str, dict[Any, float]], picture: str) -> None:
    """Plot the hours of delay of each airline while it is among the five."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.dates as dates
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(10, 5), layout="constrained")
    colours = ["#1668b8", "#d55e00", "#00805e", "#8c4fb8", "#9a6a00", "#a8326e", "#3d5a6c"]
    ordered = sorted(board, key=lambda carrier: -max(board[carrier].values()))
    hours = sorted({hour for points in board.values() for hour in points})
    for place, carrier in enumerate(ordered):
        points = board[carrier]
        values = [points.get(hour, float("nan")) for hour in hours]
        named = place < len(colours)
        label = NAMES.get(carrier, carrier) if named else "others" if place == len(colours) else None
        axis.plot(hours, values, color=colours[place] if named else "#b9c3cc", lw=2, label=label)
    axis.set_ylabel("hours of delay in the last 24 hours")
    axis.set_ylim(0, None)
    axis.set_title("The five airlines with the most delay over the last day, while they are among the five", loc="left")
    axis.xaxis.set_major_locator(dates.DayLocator())
    axis.xaxis.set_major_formatter(dates.DateFormatter("%d %b"))
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, ncols=2, loc="upper left")
    figure.savefig(picture, dpi=90)


if __name__ == "__main__":
    main(*sys.argv[1:2])
