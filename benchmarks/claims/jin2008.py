"""Claims of Jin, Yi, Chen, Yu and Lin (2008)."""

from __future__ import annotations

from benchmarks.claims.claim import claims
from benchmarks.claims.values import Finding, Runs, Values

CLAIMS, claim = claims()
SYNTHETIC, SEASON = "jin2008-fig4-5", "jin2008-fig6-10"
QUEUES = ("CSQ", "CCSQ", "SCSQ", "SCSQ-BUFFER")


def passed(runs: Runs, name: str) -> Values:
    """Tuples that walks pass, per arrival: k operations each, what the paper's bounds count."""
    return runs[name, "passed"] / runs[name, "rows"]


def stored(runs: Runs, *names: str) -> str:
    return ", ".join(f"{name} {runs[name, 'stored']}" for name in names)


@claim("Figure 3: the compact set is small and linear in k", "jin2008-fig3", holds="2k at p uniform")
def _(runs: Runs) -> Finding:
    sizes = runs["pk-topk", "objects"]
    ks = [dict(at)["k"] for at in sizes.cells]
    others = [runs[name, "objects"] / sizes for name in ("pt-k", "u-kranks", "u-topk")]
    text = ", ".join(f"{name} {one}" for name, one in zip(("pt-k", "u-kranks", "u-topk"), others, strict=True))
    truths = [1.5 < size / k < 3 for size, k in zip(sizes.medians, ks, strict=True)]
    return f"pk-topk {sizes:list} tuples for k = {', '.join(map(str, ks))}; over it {text}", truths


@claim("Figure 4, Table 2: CSQ stores less than the window except for small ones", SYNTHETIC, "pk-topk over W")
def _(runs: Runs) -> Finding:
    share = runs["CSQ", "stored"] / runs["BS", "stored"]
    return f"CSQ {runs['CSQ', 'stored']:list} of W = 1,000, 10,000, 100,000", [
        share.medians[-1] < 1,
        share.medians[0] > 1,
    ]


@claim("Figure 4, Table 2: CCSQ, SCSQ and SCSQ-Buffer are comparable and far smaller", SYNTHETIC, "pk-topk over W")
def _(runs: Runs) -> Finding:
    share = [runs[name, "stored"] / runs["CSQ", "stored"] for name in QUEUES[1:]]
    return f"{stored(runs, *QUEUES, 'DOM')}", [x < 0.5 for one in share for x in one.medians]


@claim("Figure 4: over k CSQ grows as H², the others as H", SYNTHETIC, "pk-topk over k")
def _(runs: Runs) -> Finding:
    text = "; ".join(f"{name} {runs[name, 'stored']:list}" for name in QUEUES)
    square = runs["CSQ", "stored"].growth("k")
    linear = [runs[name, "stored"].growth("k") for name in QUEUES[1:]]
    return f"k = 5, 10, 20: {text}", square.between(8, 24) + [2 <= x <= 6 for one in linear for x in one.medians]


@claim(
    "Figure 5: CSQ and CCSQ are the slowest (cubic in k), then SCSQ (quadratic); SCSQ-Buffer the fastest",
    SYNTHETIC,
    "pk-topk over k",
)
def _(runs: Runs) -> Finding:
    counts = {name: passed(runs, name) for name in QUEUES}
    text = "; ".join(f"{name} {one:list}" for name, one in counts.items())
    order = [counts["CSQ"] / counts["SCSQ"] > 1, counts["CCSQ"] / counts["SCSQ"] > 1]
    order.append(counts["SCSQ"] / counts["SCSQ-BUFFER"] > 1)
    return f"tuples passed per arrival, k = 5, 10, 20: {text}", [x for one in order for x in one]


@claim(
    "Figures 5 to 10: SCSQ-Buffer is faster than BS",
    "jin2008-icebergs",
    no="our BS is a ring and a list, where the paper's has two balanced trees",
    partly="our BS is a ring and a list, where the paper's has two balanced trees",
)
def _(runs: Runs) -> Finding:
    text = ", ".join(f"{name} {runs[name] * 1e6}" for name in ("BS", "DOM", "SCSQ-BUFFER"))
    ratio = runs["SCSQ-BUFFER"] / runs["BS"]
    return f"µs per tuple: {text}; SCSQ-BUFFER over BS {ratio}", ratio < 1


@claim("Figure 5: cost falls or stays as W grows", SYNTHETIC, "pk-topk over W")
def _(runs: Runs) -> Finding:
    counts = {name: passed(runs, name) for name in QUEUES}
    text = "; ".join(f"{name} {one:list}" for name, one in counts.items())
    grows = [one.growth("n") for one in counts.values()]
    return f"tuples passed per arrival, W = 10^3 to 10^5: {text}", [x <= 1.1 for one in grows for x in one.medians]


@claim("Figures 6 to 10: the same order of space on the icebergs, for all four semantics", SEASON, k=5)
def _(runs: Runs) -> Finding:
    runs = Runs([row for row in runs.rows if row.cell.endswith("over W")])
    share = [runs[name, "stored"] / runs["CSQ", "stored"] for name in QUEUES[1:]]
    return f"stored: {stored(runs, *QUEUES)}", [x < 0.5 for one in share for x in one.medians]


@claim("Figures 6 to 10: the same order of cost on the icebergs", SEASON, k=5)
def _(runs: Runs) -> Finding:
    runs = Runs([row for row in runs.rows if row.cell.endswith("over W")])
    counts = {name: passed(runs, name) for name in QUEUES}
    text = ", ".join(f"{name} {one}" for name, one in counts.items())
    order = (counts["CSQ"] / counts["SCSQ"] > 1) + (counts["SCSQ"] / counts["SCSQ-BUFFER"] > 1)
    return f"tuples passed per arrival: {text}", order


@claim("Figures 6 to 10 at the paper's windows, W = 10^3 to 10^5: what is stored stays small", "jin2008-icebergs")
def _(runs: Runs) -> Finding:
    dom = runs["DOM", "stored"]
    share = dom.at(n=100_000) / 100_000
    text = ", ".join(f"{one}" for one in dom.each("n"))
    return f"DOM {text} of W; SCSQ-Buffer {runs['SCSQ-BUFFER', 'stored']}", share < 0.01


@claim("Figures 6 to 10 at the paper's windows: the synopses are fast", "jin2008-icebergs")
def _(runs: Runs) -> Finding:
    text = "; ".join(f"{name} {runs[name] * 1e6}" for name in ("BS", "DOM", "SCSQ-BUFFER"))
    return f"µs per tuple: {text}", runs["DOM"] * 1e6 < 10
