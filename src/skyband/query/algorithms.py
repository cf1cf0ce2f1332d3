"""The table of algorithms: one row says everything about one of them.

Names that a query accepts, the choice of `auto`, the errors that list names, `explain`, which queries share an engine,
and the tables in README and docs/guides/choosing.md all come from here. A new algorithm is its file and its row
(CONTRIBUTING.md; tests/engines/test_new_algorithm.py does it).

Rows name classes and functions as "module:name" and import nothing: this is a table of values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

from skyband.errors import QueryError
from skyband.query.windows import Sort

Scorings = Literal["any", "bounded", "nearest", "local", "additive", "listed", "estimated"]


@dataclass(frozen=True)
class Algorithm:
    """One row of the table.

    Parameters
    ----------
    name
        As the paper has it, in upper case.
    kinds
        The kinds of query that it answers.
    engine
        The engine's class.
    what
        What it does, for tables.
    page
        Its page below docs/engines.
    size
        The model behind `explain`: a function of name, query, arrivals in a window and what is expected of the stream.
    answers
        How exact it is, for tables.
    windows
        The kinds of window that it takes.
    scorings
        "any"; "bounded": those that can be bounded over a box; "nearest": `Nearest` only; "local": sums and products
        of |a.x - b.x| and a.x + b.x; "additive": of groups, count(*) or sum(x) alone; "listed": of parts that are
        named in advance; "estimated": these, where the largest score is best and each part has a highest value.
    exact
        Whether every answer is right.
    shares
        Whether queries with another k and window share one engine of it.
    family
        The engine's class for many scorings of one form at once; None: it has none.
    many
        The engine's class for more queries of one scoring than `engine` takes; None: several engines serve them.
    keeps_window
        Whether it keeps every valid object: queries join it and leave it, and objects can be deleted.
    grouped
        Whether it takes `per`.
    alternatives
        Whether it takes `group=`: alternatives that exclude each other.
    takes
        Which demands of a query it meets: "keys" (orders of keys of any type), "ranks" (offsets, ties, distinct ids,
        a k from a column).
    small
        Auto takes it for count windows up to this length.
    auto
        Why auto takes it otherwise.

    """

    name: str
    kinds: tuple[str, ...]
    engine: str
    what: str
    page: str
    size: str
    answers: str = "exact"
    windows: tuple[Sort, ...] = ("count", "time")
    scorings: Scorings = "any"
    exact: bool = True
    shares: bool = True
    family: str | None = None
    many: str | None = None
    keeps_window: bool = False
    grouped: bool = True
    alternatives: bool = False
    takes: tuple[str, ...] = ()
    small: int = 0
    auto: str = ""

    def load(self, reference: str) -> Any:
        """The class or function behind one of its references."""
        module, _, name = reference.partition(":")
        return getattr(import_module(module), name)


_ROWS: dict[tuple[str, str], Algorithm] = {}  # by kind and name; the first of a kind is what auto takes


@cache
def algorithms(kind: str | None = None) -> tuple[Algorithm, ...]:
    """The rows of a kind of query, the one that auto takes first; of all kinds without one."""
    return tuple(dict.fromkeys(row for (of, _), row in _ROWS.items() if kind in (None, of)))


def register(row: Algorithm) -> None:
    """Add a row to the table."""
    for kind in row.kinds:
        if (kind, row.name) in _ROWS:
            raise QueryError(f"an algorithm called {row.name} is there for {kind} already. Use another name.")
        _ROWS[kind, row.name] = row
    algorithms.cache_clear()


def unregister(name: str) -> None:
    """Remove a row from the table, for all kinds."""
    for key in [key for key in _ROWS if key[1] == name]:
        del _ROWS[key]
    algorithms.cache_clear()


def algorithm(kind: str, name: str) -> Algorithm:
    """The row of a name."""
    return _ROWS[kind, name]


def names(kind: str, which: Callable[[Algorithm], bool] = lambda row: True) -> list[str]:
    """The names that a kind of query accepts, of the rows that satisfy a condition."""
    return [row.name for row in algorithms(kind) if which(row)]


def algorithm_name(kind: str, name: object) -> str:
    """The name in upper case, or "auto"."""
    if isinstance(name, str):
        if (upper := name.upper()) == "AUTO":
            return "auto"
        if (kind, upper) in _ROWS:
            return upper
    raise QueryError(f"{kind}: algorithm {name!r} is unknown. Use auto or one of {', '.join(names(kind))}.")


def table(kind: str | None = None, pages: str = "docs/engines/") -> str:
    """The rows as a table in Markdown; names with one page and one description share a line."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for row in algorithms(kind):
        kinds = ", ".join(f"`{name}`" for name in row.kinds)
        lines.setdefault((row.page, kinds, row.what, row.answers), []).append(f"`{row.name}`")
    body = [
        f"| [{', '.join(names)}]({pages}{page}) | {kinds} | {what} | {answers} |"
        for (page, kinds, what, answers), names in lines.items()
    ]
    return "\n".join(["| algorithm | kind of query | what it does | answers |", "|---|---|---|---|", *body])


# --- the table: the first row of a kind is what auto takes


def _row(name: str, folder: str, kinds: str, module: str, what: str, size: str, page: str = "", **more: Any) -> None:
    engines = f"skyband.engines.{folder}"
    others: dict[str, Any] = {name: f"{engines}.{more.pop(name)}" for name in ("family", "many") if name in more}
    register(
        Algorithm(
            name,
            tuple(kinds.split()),
            f"{engines}.{module}",
            what,
            f"{folder}/{page or module.partition(':')[0]}.md",
            f"{engines}.size_model:{size}",
            **others,
            **more,
        )
    )


def _topk(name: str, module: str, what: str, size: str, **more: Any) -> None:
    _row(name, "topk", "TopK", module, what, size, **more)


_topk("BLOCK", "block:BLOCK", "the strict k-skyband, fed by blocks of arrivals", "block_size",
      family="slots:Slots", many="readers:ReaderBLOCK", takes=("keys",),
      auto="exact on any stream, and most arrivals of a push cost it two comparisons")  # fmt: skip
_topk("SA", "sa:SA", "the strict k-skyband, arrival by arrival", "strict_size", takes=("keys",))
_topk("RA", "ra:RA", "the relaxed k-skyband, pruned now and then", "relaxed_size", takes=("keys",))
_approximate: dict[str, Any] = {"windows": ("count",), "exact": False, "shares": False}
_topk("PA", "pa:PA", "the k best and a few candidates, by their odds", "probabilistic_size", family="family:PAFamily",
      answers="a bounded error in random order", **_approximate)  # fmt: skip
_topk("ADAPTIVE", "adaptive:ADAPTIVE", "PA, and BLOCK when a test finds another order", "adaptive_size",
      answers="as PA, or exact", grouped=False, **_approximate)  # fmt: skip
for _name in ("SASF", "SARF", "SAPF", "RASF", "RARF", "RAPF"):
    _topk(_name, f"buffered:{_name}", "a buffer and a filter before SA or RA", "buffered_size",
          family=f"family:{_name}Family")  # fmt: skip

_topk("BEST", "best:BEST", "the k best of all that arrived, for windows without end", "best_size", windows=("ever",),
      auto="nothing expires, so no other object can become an answer")  # fmt: skip
_any_window, _moving = ("count", "time", "until deleted"), ("count", "time")
_whole: dict[str, Any] = {"size": "window_size", "keeps_window": True}
_row("TMA", "topk", "TopK Above", "tma:TMA", "the whole window in a grid, searched again when an answer expires",
     windows=_any_window, scorings="bounded", **_whole,
     auto="an object is compared only with queries whose cells it is in")  # fmt: skip
_row("SMA", "topk", "TopK Above", "sma:SMA", "the whole window in a grid, and a skyband of each query's best",
     windows=_moving, scorings="bounded", **_whole)  # fmt: skip
_row("TSL", "topk", "TopK Above", "tsl:TSL", "the whole window in sorted lists",
     windows=_any_window, scorings="bounded", **_whole)  # fmt: skip
_row("LIST", "topk", "Above", "list:LIST", "all that arrived above the threshold, for windows without end", "list_size",
     page="best", windows=("ever",), auto="nothing leaves the answer, so no other object is needed")  # fmt: skip
_topk("CPM/W", "tma:TMA", "TMA for nearest neighbours", windows=_any_window, scorings="nearest", **_whole)
_topk("SNN", "sma:SMA", "SMA for nearest neighbours", windows=_moving, scorings="nearest", **_whole)

_row("SORTED", "topk", "TopK Above", "sorted:SORTED", "what can still become an answer, ranked anew at each step",
     "sorted_size", windows=("count", "time", "ever", "until deleted"), shares=False,
     takes=("keys", "ranks"))  # fmt: skip
_row("TALLY", "groups", "TopKGroups", "tally:TALLY", "exact aggregates of every object, kept up row by row",
     "tally_size", windows=("count", "time", "ever", "until deleted"),
     auto="exact over every window, at a cost that does not depend on how many rows an object has")  # fmt: skip
_row("SKETCH", "groups", "TopKGroups", "sketch:SKETCH", "counts and sums of more objects than memory holds",
     "sketch_size", windows=("time",), scorings="additive", answers="`stats()` has the precision", exact=False,
     shares=False, grouped=False)  # fmt: skip

_row("SCASE", "pairs", "TopKPairs", "scase:SCASE", "one K-skyband behind a K-staircase, for every k and window",
     "pairs_size", auto="any scoring, and one pass over the window an arrival")  # fmt: skip
_row("TA", "pairs", "TopKPairs", "ta:TA", "the same, fed by sorted lists of attributes", "pairs_size",
     scorings="local")  # fmt: skip
_row("BASIC", "pairs", "TopKPairs", "basic:BASIC", "dominators counted one by one; to compare", "pairs_size")
_row("NAIVE", "pairs", "TopKPairs", "naive:NAIVE", "the K best of each object, sorted; to compare", "pairs_size",
     page="basic")  # fmt: skip
_row("PST", "pairs", "TopKPairs", "pst:PST", "SCASE, with the paper's priority search tree for `answer(k=, window=)`",
     "pairs_size")  # fmt: skip
_row("REFILL", "pairs", "TopKPairs", "refill:REFILL", "all live objects, and a view of their best pairs", "pairs_size",
     windows=("until deleted",))  # fmt: skip

for _name, _what, _parts in (
    ("SWEEP", "interval dominance by a lazy sweep", "any"),
    ("EAA", "interval dominance by counters", "any"),
    ("SLA", "every valid row, in sorted lists", "listed"),
):
    _row(_name, "incomplete", "TopKIncomplete", f"{_name.lower()}:{_name}", _what, "rows_size", scorings=_parts,
         windows=("count", "time", "ever"), auto="exact, and the fastest of them")  # fmt: skip
for _name, _what in (
    ("APPROX", "best scores by how likely parts are to come"),
    ("BUDGET", "a fixed number of rows, the most likely to matter"),
):
    _row(_name, "incomplete", "TopKIncomplete", f"{_name.lower()}:{_name}", _what, "rows_size", page="approx",
         answers="`stats()` has the precision", scorings="estimated", exact=False, shares=False)  # fmt: skip

_row("DOM", "uncertain", "TopKUncertain", "dom:DOM", "drops what newer, better ones replace",
     "synopsis_size", alternatives=True,
     auto="exact on any stream; it drops tuples that newer, better ones make superfluous")  # fmt: skip
_row("COMPACT", "uncertain", "TopKUncertain", "compact:COMPACT", "the compact set, for windows without end",
     "compact_size", windows=("ever",),
     auto="nothing expires, so no tuple below the compact set can matter again")  # fmt: skip
_row("BS", "uncertain", "TopKUncertain", "bs:BS", "the window itself, and a list of its best",
     "synopsis_size", windows=("count", "time", "ever"), alternatives=True, small=1024,
     auto="rows that exclude each other are remembered anyway")  # fmt: skip
for _name, _module, _what in (
    ("CSQ", "csq:CSQ", "the compact sets of all suffixes of the window"),
    ("CCSQ", "ccsq:CCSQ", "CSQ, compressed"),
    ("SCSQ", "scsq:SCSQ", "CSQ by segments"),
    ("SCSQ-BUFFER", "scsq_buffer:SCSQBUFFER", "SCSQ, updated a buffer at a time"),
):
    _row(_name, "uncertain", "TopKUncertain", _module, _what, "synopsis_size", page="csq")
