"""python -m benchmarks.documents [--check]: the measured numbers of documents, from stored rows (`make tables`).

A document names the rule of a number in a comment before it, and the number ends at the next comment:

    <!-- measured: ratio first-engine; one TopK; skyband_push; numpy_argsort -->0.26<!-- / --> of one `np.argsort`

`--check` (`make check`) is 1 if a document and the stored rows differ, if a stored row is wrong, of a quick run or not
what its experiment says now, or if a document has a measured number without a rule. What is quoted or a parameter is
listed in `quoted_numbers.toml`.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import store
from benchmarks.claims.claim import folder_of
from benchmarks.claims.rules import RULES, all_claims
from benchmarks.experiment import load, names
from benchmarks.machine import ROOT

QUOTED = Path(__file__).parent / "quoted_numbers.toml"
REMARKS = "benchmarks/claims"  # where quoted_numbers.toml has the numbers in remarks of claims
_MARKED = re.compile(r"(<!-- measured: ([^>]+?) -->)(.*?)(<!-- / -->)", re.DOTALL)
_BEGINS_A_LINE = re.compile(r"^ *<!-- measured: [^>]+ -->[^\n]", re.MULTILINE)
_UNREAD = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)", re.DOTALL)
_NUMBER = r"(?<![\w.^/-])\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
_UNITS = (
    "times|ns|µs|us|ms|s|(?:micro|milli|nano|core-)?seconds?|[kKMG]i?B|M rows|rows/s|rows (?:a|per) (?:core-)?second|x"
)
_WITH_UNIT = re.compile(rf"{_NUMBER}\s?(?:%|×|(?:{_UNITS})\b)")
_SMALL = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|fifty|a hundred|a thousand"
_IN_WORDS = re.compile(
    rf"\b(?:twice|half|(?:{_SMALL}) times) (?:as (?:fast|slow|cheap|dear)|faster|slower|less|fewer)\b", re.IGNORECASE
)
_DECIMAL = re.compile(r"(?<![\w.,^/·*-])(?<!= )(?<!=)(?<!≤ )(?<!< )(?<!> )\d[\d,]*\.\d+(?![\w.]*[·*^])")
_CITED = re.compile(
    r"(?:[Ss]ections?|Definitions?|Theorems?|Lemmas?|Examples?|Eq\.|Figures?|Tables?|Algorithms?|[Vv]ersions?|Python|Zipf)"
    r" [\d.]+(?:(?:, | and | to )[\d.]+)*"
)


def documents() -> list[Path]:
    """The documents whose numbers are checked."""
    docs = ROOT / "docs"
    pages = [ROOT / "README.md", docs / "reproduce.md", docs / "compare.md", docs / "scale.md"]
    return pages + [
        page for folder in ("papers", "engines", "guides") for page in sorted((docs / folder).rglob("*.md"))
    ]


def written(text: str, folder: Path = store.RESULTS) -> str:
    """A document with the numbers that the stored rows give."""
    return _MARKED.sub(lambda found: f"{found[1]}{_measured(found[2], folder)}{found[4]}", text)


def _measured(rule: str, folder: Path) -> str:
    name, _, rest = rule.partition(" ")
    arguments = [one.strip() for one in rest.split(";")] if rest else []
    if name not in RULES:
        raise ValueError(f"measured: {rule}: there is no rule {name!r}. There are: {', '.join(RULES)}.")
    try:
        return RULES[name](folder, *arguments)
    except (KeyError, ValueError, AssertionError, TypeError) as error:
        raise ValueError(f"measured: {rule}: {error}") from error


def unmarked(text: str, quoted: Sequence[str] = ()) -> list[str]:
    """Numbers that look measured and have no rule, each with the words around it."""
    text = _MARKED.sub("", text)
    for phrase in quoted:
        text = re.sub(re.escape(phrase).replace(r"\ ", r"\s+"), "", text)
    text = _CITED.sub("", " ".join(_UNREAD.sub(" ", text).split()))
    places = sorted({found.start() for form in (_WITH_UNIT, _DECIMAL, _IN_WORDS) for found in form.finditer(text)})
    return [text[max(0, at - 40) : at + 40].strip() for at in places]


def outdated(rows: Sequence[store.Row]) -> list[str]:
    """The cells of stored rows that their experiment does not have, or has with other parameters or repeats."""
    folder = folder_of(rows[0].experiment)
    if rows[0].experiment not in names(folder):  # gpu.py has no experiment file
        return []
    experiment = load(rows[0].experiment, folder=folder)
    known = [
        (cell.name, cell.repeats, one.name, one.call, one.parameters)
        for cell in experiment.cells
        for one in cell.entrants
    ]
    found = ((row.cell, len(row.seconds), row.contestant, row.call, row.parameters) for row in rows)
    return list(dict.fromkeys(one[0] for one in found if one not in known))


def faults(folder: Path = store.RESULTS) -> Iterator[str]:
    """Everything that is wrong with stored rows and documents, in words."""
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem == "soak":  # a series over time, which has no answers
            continue
        rows = store.read(path.stem, folder)
        yield from (f"{path.stem}: {row.contestant} in {row.cell} was wrong" for row in rows if not row.right)
        if any(row.quick for row in rows):
            yield f"{path.stem}: stored rows of a quick run"
        yield from (f"{path.stem}: {cell} is not what its experiment says now: run it again" for cell in outdated(rows))
    quoted: dict[str, list[str]] = tomllib.loads(QUOTED.read_text(encoding="utf-8"))
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in documents()}
    for name, text in texts.items():
        if _BEGINS_A_LINE.search(text):
            yield f"{name}: a number begins a line, where its comment ends the paragraph: put a word before it"
        try:
            if written(text, folder) != text:
                yield f"{name}: not what the stored rows give. Run: make tables"
        except ValueError as error:
            yield f"{name}: {error}"
    texts[REMARKS] = "\n\n".join(remark for claim in all_claims() for remark in claim.remarks.values())
    for name, text in texts.items():
        flat = " ".join(text.split())
        yield from (
            f"quoted_numbers.toml: {name} has no {one!r}"
            for one in quoted.get(name, [])
            if " ".join(one.split()) not in flat
        )
        yield from (
            f"{name}: a measured number without a rule: ... {one} ..." for one in unmarked(text, quoted.get(name, []))
        )
    yield from (f"quoted_numbers.toml: no document {name}" for name in quoted.keys() - texts.keys())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.documents", description="Numbers from stored rows.")
    parser.add_argument("--check", action="store_true", help="write nothing, list what is wrong")
    if parser.parse_args(arguments).check:
        found = list(faults())
        print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
        return int(bool(found))
    for path in documents():
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
