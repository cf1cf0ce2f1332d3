"""The page of the demo, from values: what it says, and that it is one whole file."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from skyband.cli.demo import AIRPORTS
from skyband.cli.report import Facts, Sample, Size, page

BEGIN = datetime(2013, 1, 1, 6)


def answer(best: float, place: int) -> list[dict[str, Any]]:
    return [
        {"rank": i + 1, "id": i, "score": best - i, "carrier": "<A", "flight": place, "dest": "LAX", "time": BEGIN}
        for i in range(10)
    ]


def sample(quarter: int) -> Sample:
    answers = {airport: answer(300.0 + quarter % 7, quarter) for airport in AIRPORTS}
    return Sample(BEGIN + quarter * timedelta(hours=6), answers, 100 + quarter % 20, 900 + quarter % 100)


FACTS = Facts(
    flights=336_776,
    cancelled=8_255,
    changes=49_432,
    files=36,
    seconds=40.0,
    samples=[sample(i) for i in range(4 * 365 - 1)],
    sizes=[Size(timedelta(hours=h), 40.0 * h, 30.0 + h) for h in (3, 24, 96)],
    folder="out/demo",
    made="<today>",
)


class Outline(HTMLParser):
    """Fails on tags that do not close; collects what the page loads, its words and its paths."""

    EMPTY = frozenset({"meta"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.paths: list[str] = []
        self.places: list[float] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        told = dict(attrs)
        assert not {"src", "href", "onclick"} & told.keys()
        self.paths += [told["d"] or ""] if tag == "path" else []
        self.places += [float(place) for place in re.findall(r"(?:left|top):(-?[\d.]+)%", told.get("style") or "")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_is_one_file_and_whole() -> None:
    text = page(FACTS)
    outline = Outline(text)
    assert not {"script", "link", "img", "iframe"} & set(outline.tags)
    assert "http" not in text
    assert "url(" not in text
    assert outline.tags.count("svg") == 5  # three airports, kept over time, kept by size
    assert outline.tags.count("tr") == 3 * 11
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text


def test_the_page_says_what_was_measured() -> None:
    words = " ".join(Outline(page(FACTS)).words)
    for told in ("336,776", "8,255", "49,432", "40 s", "8,419", "119", "999", "36 triggers", "out/demo/changes"):
        assert told in words, told
    assert "31 December 2013" in words
    assert "<today>" in words  # escaped on its way
    assert "<A 6 to LAX" in words  # the worst of EWR, drawn and named


def test_lines_stay_within_their_plots_and_tell_the_values() -> None:
    outline = Outline(page(FACTS))
    for path in outline.paths:
        numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", path)]
        assert min(numbers) >= 0
        assert max(numbers) <= 1000
    assert all(0 <= place <= 100 for place in outline.places)
    by_day = [path for path in outline.paths if path.count("L") == 364]
    assert len(by_day) == 3  # the worst of each airport at the end of each day
    heights = [float(point.split()[1]) for point in by_day[0][1:].split("L")]
    days = {sample.time.date(): sample.answers["EWR"][0]["score"] for sample in FACTS.samples}
    scores = list(days.values())
    order = sorted(range(365), key=lambda day: scores[day])
    assert [heights[day] for day in order] == sorted(heights, reverse=True)  # up means later


@pytest.mark.parametrize(
    "facts",
    [
        replace(FACTS, samples=[], sizes=[], flights=0, seconds=0.0),
        replace(FACTS, samples=FACTS.samples[:1], sizes=FACTS.sizes[:1]),
        replace(FACTS, samples=[Sample(BEGIN, {"EWR": answer(-3.0, 1)[:2], "JFK": [], "LGA": []}, 2, 2)]),
        replace(FACTS, samples=FACTS.samples[:30]),
    ],
)
def test_short_replays_have_a_page_too(facts: Facts) -> None:
    outline = Outline(page(facts))
    for path in outline.paths:
        assert "nan" not in path
