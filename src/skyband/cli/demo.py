"""`skyband demo`: a year of flights through a Monitor, the ten most delayed per airport over the last 24 hours.

`Replay` feeds and measures, `Screen` draws, `play` joins them: a live view at a terminal, a table in a pipe.
`skyband demo --spark` (cli/spark_demo.py) has the same query and the same screen. The flights are New York's of 2013
where their data is here, else generated.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow.compute as pc

from skyband.datasets import example
from skyband.monitor.monitor import Monitor
from skyband.query.kinds import TopK
from skyband.query.windows import Last

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

AIRPORTS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "LaGuardia"}
SPAN = timedelta(hours=24)
FRAME = 1 / 12  # seconds between two pictures
MARK = "«"  # an object that has just entered an answer
CHUNK = 4096  # flights per push without a screen
ON_SPARK = 'on Spark: skyband demo --spark (needs pip install "skyband[spark]", Java 17)'


def play(*, rows: int | None = None, seconds: float | None = None) -> bool:
    """Replay the first `rows` flights (None: all) in `seconds` (None: at once). False: it was interrupted."""
    watched = sys.stdout.isatty()
    if watched:
        print("skyband demo: reading flights (the first time: compiling kernels, too) ...", file=sys.stderr)
    table = example("flights")
    table = table if rows is None else table.slice(0, rows)
    Replay(table).push(min(100, table.num_rows))  # compiles or loads kernels, before the clock runs
    replay = Replay(table)
    finished = True
    try:
        if watched:
            _watch(replay, seconds)
        else:
            while not replay.ended:
                replay.push(CHUNK)
    except KeyboardInterrupt:
        finished = False
    if not watched:
        print_answers(replay)
    talk = [*([] if finished else ["interrupted"]), *replay.summary(), ON_SPARK]
    print("skyband demo:", ("\n  " if watched else "; ").join(talk), file=sys.stderr)
    return finished


def demo_query(span: timedelta = SPAN) -> TopK:
    return TopK(10, by="dep_delay", window=Last(span), per="origin")


class Shown(Protocol):
    """What the screen draws: the progress of a replay, and its figures."""

    @property
    def total(self) -> int: ...
    @property
    def done(self) -> int: ...
    @property
    def cancelled(self) -> int: ...
    @property
    def changes(self) -> int: ...
    @property
    def kept(self) -> int: ...
    @property
    def in_window(self) -> int: ...
    @property
    def when(self) -> str: ...
    @property
    def pace(self) -> str: ...
    def answer(self, airport: str) -> list[dict[str, Any]]: ...


class Replay:
    """A table of flights, pushed through a Monitor step by step, with figures about it."""

    def __init__(
        self,
        table: Any,
        *,
        span: timedelta = SPAN,
        id: str | None = None,
        time: str = "time",
        keep: tuple[str, ...] = ("carrier", "flight", "dest"),
    ) -> None:
        self.monitor = Monitor(demo_query(span), id=id, time=time, keep=keep)
        self.table = table
        self.total = int(table.num_rows)
        self.done = 0  # flights pushed
        self.changes = 0
        self.seconds = 0.0  # spent in push alone
        self._span = np.timedelta64(span)
        self._times = table.filter(pc.is_valid(table["dep_delay"]))[time].to_numpy()

    @property
    def ended(self) -> bool:
        return self.done >= self.total

    def push(self, count: int) -> Any:
        """Push the next `count` flights; returns the changes."""
        batch = self.table.slice(self.done, count)
        start = time.perf_counter()
        changes = self.monitor.push(batch)
        self.seconds += time.perf_counter() - start
        self.changes += changes.num_rows
        self.done += batch.num_rows
        return changes

    @property
    def clock(self) -> Any:
        """The time of the last flight that has departed, or None."""
        flown = self.flown
        return self._times[flown - 1].astype("datetime64[m]").item() if flown else None

    @property
    def flown(self) -> int:
        return int(self.monitor.stats()["arrivals"])

    @property
    def cancelled(self) -> int:
        return int(sum(self.monitor.stats()["rejected"].values()))

    @property
    def kept(self) -> int:
        return int(self.monitor.stats()["queries"]["q0"]["objects"])

    @property
    def in_window(self) -> int:
        """Flights in the window: what would be kept without a skyband."""
        flown = self.flown
        if not flown:
            return 0
        gone = self._times[flown - 1] - self._span
        return flown - int(np.searchsorted(self._times, gone, side="right"))

    @property
    def speed(self) -> float:
        return self.done / self.seconds if self.seconds else 0.0

    @property
    def when(self) -> str:
        return shown_time(self.clock) if self.clock else "before the first"

    @property
    def pace(self) -> str:
        return f"{self.speed:,.0f} flights/s"

    def answer(self, airport: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.monitor.answer(key=airport).to_pylist()
        return rows

    def summary(self) -> list[str]:
        return [
            f"{self.done:,} flights replayed, {self.cancelled:,} rejected (cancelled, so no delay)",
            f"{self.changes:,} changes of the answers, {self.speed:,.0f} flights/s through push alone",
            f"at the end {self.kept:,} objects kept, of {self.in_window:,} flights in the last 24 hours",
        ]


class Screen:
    """The live view: three airports side by side where they fit, else one below the other."""

    def __init__(self, replay: Shown) -> None:
        self.replay = replay
        self._entered: dict[tuple[str, int], float] = {}  # airport, number in its stream -> when first drawn

    def draw(self) -> RenderableType:
        from rich.columns import Columns
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        replay, now = self.replay, time.monotonic()
        answers = {airport: replay.answer(airport) for airport in AIRPORTS}
        shown = [(airport, row["id"]) for airport, rows in answers.items() for row in rows]
        self._entered = {flight: self._entered.get(flight, now) for flight in shown}
        status = Table.grid(padding=(0, 2))
        status.add_row(
            Text(replay.when, "bold cyan"),
            ProgressBar(total=replay.total, completed=replay.done, width=52),
        )
        return Group(
            Text("The ten most delayed flights per airport, over the last 24 hours", "bold"),
            status,
            "",
            Columns([self._list(*entry, now) for entry in answers.items()], padding=(0, 2)),
            Text.assemble(
                "Kept: ",
                (f"{replay.kept:,}", "bold green"),
                f" objects, of {replay.in_window:,} flights in the window. ({MARK} has just entered)",
            ),
            Text(
                f"{replay.done:,} flights, {replay.cancelled:,} cancelled; {replay.changes:,} changes; {replay.pace}",
                "dim",
            ),
        )

    def _list(self, airport: str, rows: list[dict[str, Any]], now: float) -> Text:
        """The list of one airport, always 24 columns and 12 lines, so that nothing jumps."""
        from rich.text import Text

        text = Text(no_wrap=True)
        text.append(f"{airport} {AIRPORTS[airport]}".ljust(24) + "\n", "bold")
        text.append(" min flight  to  due    \n", "dim")
        for row in rows:
            new = now - self._entered[airport, row["id"]] < 1
            flight = f"{row['carrier']:2} {row['flight']:<4} {row['dest']} {row['time']:%H:%M}"
            line = f"{row['score']:4.0f} {flight} {MARK if new else ' '}\n"
            text.append(line, "yellow" if new else "default")
        text.append("\n" * (10 - len(rows)))
        return text


def _watch(replay: Replay, seconds: float | None) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console()
    screen = Screen(replay)
    total, start = replay.total, time.monotonic()
    with Live(screen.draw(), console=console, auto_refresh=False) as live:
        while not replay.ended:
            drawn = time.monotonic()
            if seconds is None:
                while not replay.ended and time.monotonic() - drawn < FRAME:
                    replay.push(CHUNK)
            else:
                due = total if drawn - start >= seconds else int(total * _eased((drawn - start) / seconds))
                if due > replay.done:
                    replay.push(due - replay.done)
            live.update(screen.draw(), refresh=True)
            if seconds is not None and not replay.ended:
                time.sleep(max(0.0, FRAME - (time.monotonic() - drawn)))


def _eased(part: float) -> float:
    """The part of the year that is over after this part of the time: slow at both ends, so that it can be read."""
    ends = 16 * part**5 if part < 0.5 else 1 - 16 * (1 - part) ** 5
    return 0.01 * part + 0.99 * ends


def shown_time(clock: datetime) -> str:
    return f"{clock:%a %d %b %Y %H:%M}"


def print_answers(replay: Shown) -> None:
    """The last answers as tab-separated text, for a pipe."""
    print("origin", "rank", "dep_delay", "carrier", "flight", "dest", "time", sep="\t")
    for airport in AIRPORTS:
        for row in replay.answer(airport):
            values = (row[name] for name in ("carrier", "flight", "dest", "time"))
            print(airport, row["rank"], f"{row['score']:.0f}", *values, sep="\t")
