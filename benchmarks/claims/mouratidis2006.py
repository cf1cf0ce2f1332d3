"""Claims of Mouratidis, Bakiras and Papadias (2006)."""

from __future__ import annotations

from statistics import median

from benchmarks.claims.claim import claims
from benchmarks.claims.values import Finding, Runs, Values, said
from benchmarks.drawing import TABLE_2, TABLE_2_K

CLAIMS, claim = claims()
PAPER = "mouratidis2006"
COMPARED = ("fig15", "fig16", "fig17", "fig18", "fig19-20")
NO_REFILL = "TSL hardly refills its views in so few cycles, so its dear searches are not in this comparison"


def cycle(runs: Runs, name: str) -> Values:
    """Milliseconds of a cycle."""
    seconds, cycles = runs[name, "seconds"], runs[name, "cycles"]
    return seconds * 1e3 / cycles


def per_query(runs: Runs) -> Values:
    """TSL's searches over the number of queries."""
    return Values(
        {at: [one / dict(at)["queries"] for one in some] for at, some in runs["TSL", "searches"].cells.items()}
    )


@claim("Figure 14: 12^4 cells are the best for both, fewer and more are slower", f"{PAPER}-fig14")
def _(runs: Runs) -> Finding:
    best = {name: min(cycle(runs, name).cells.items(), key=lambda one: median(one[1])) for name in ("TMA", "SMA")}
    cells = {name: dict(at)["cells"] for name, (at, _) in best.items()}
    text = ", ".join(f"{name} {cells[name] ** 0.25:.0f}^4 ({said(median(best[name][1]))} ms)" for name in cells)
    scored, visited = runs["TMA", "scored"] / runs["TMA", "cycles"], runs["TMA", "visited"] / runs["TMA", "cycles"]
    counts = f"TMA's scores a cycle {scored:list}, visited cells {visited:list}"
    return f"the best: {text}; 5^4 to 15^4 cells: {counts}", [one == 12**4 for one in cells.values()]


@claim("Figure 14: space grows with the cells", f"{PAPER}-fig14")
def _(runs: Runs) -> Finding:
    space = runs["TMA", "bytes"] / 1e6
    return f"TMA {space} MB from 5^4 to 15^4", runs["TMA", "bytes"].growth("cells") > 1


@claim("Figure 15: all cost more with d", f"{PAPER}-fig15")
def _(runs: Runs) -> Finding:
    grows = {name: cycle(runs, name).growth("d") for name in ("TSL", "TMA", "SMA")}
    text = ", ".join(f"{name} {one.at(data='IND')} (IND), {one.at(data='ANT')} (ANT)" for name, one in grows.items())
    return f"times from d = 2 to 6: {text}", [x > 1 for one in grows.values() for x in one.medians]


for figure in COMPARED:

    @claim(
        f"Figure {figure[3:].replace('-', ' and ')}: TMA is much faster than TSL, in most cases by more than 10 times",
        f"{PAPER}-{figure}",
        no=NO_REFILL,
        partly=NO_REFILL,
    )
    def _(runs: Runs) -> Finding:
        faster = runs["TSL", "seconds"] / runs["TMA", "seconds"]
        searches = runs["TSL", "searches"]
        none = sum(one == 0 for one in searches.medians)
        text = f"IND: {faster.at(data='IND')} times; ANT: {faster.at(data='ANT')}"
        return f"{text}; TSL without a refill in {none} of {len(searches.medians)} cells", faster > 10

    @claim(f"Figure {figure[3:].replace('-', ' and ')}: SMA is faster than TMA, by fewer searches", f"{PAPER}-{figure}")
    def _(runs: Runs) -> Finding:
        faster = runs["TMA", "seconds"] / runs["SMA", "seconds"]
        fewer = [a >= b for a, b in zip(runs["TMA", "searches"].medians, runs["SMA", "searches"].medians, strict=True)]
        return f"IND: {faster.at(data='IND')} times; ANT: {faster.at(data='ANT')}", [
            quick and few for quick, few in zip(faster > 1, fewer, strict=True)
        ]


@claim(
    "section 6: SMA never searches again with uniform data",
    f"{PAPER}-table2",
    data="IND",
    no="arrivals and departures balance only on average",
)
def _(runs: Runs) -> Finding:
    searches = _searches(runs, "SMA")
    return f"searches of a query in a hundred cycles, k = 1 to 100: {searches:list}", searches <= 0


def _searches(runs: Runs, name: str) -> Values:
    """Of one query in a hundred cycles."""
    counted, cycles = runs[name, "searches"], runs[name, "cycles"]
    share = counted / cycles * 100
    queries = {int(dict(at)["queries"]) for at in counted.cells}
    assert len(queries) == 1, "one number of queries"
    return share / queries.pop()


@claim("Figure 16: all grow with N, TSL most; ANT costs more than IND", f"{PAPER}-fig16")
def _(runs: Runs) -> Finding:
    times = {name: cycle(runs, name) for name in ("TSL", "TMA", "SMA")}
    grows = {name: one.growth("n") for name, one in times.items()}
    text = ", ".join(f"{name} {one.at(data='IND')} (IND), {one.at(data='ANT')} (ANT)" for name, one in times.items())
    dearer = [
        x > 1 for name in ("TMA", "SMA") for x in (times[name].at(data="ANT") / times[name].at(data="IND")).medians
    ]
    most = [grows["TSL"].least > max(grows["TMA"].least, grows["SMA"].least)]
    return f"ms of a cycle, N = 25,000 to 100,000: {text}", [
        *(x > 1 for one in grows.values() for x in one.medians),
        *most,
        *dearer,
    ]


@claim("Figure 17: TMA and SMA grow with r, and stay ahead of TSL", f"{PAPER}-fig17")
def _(runs: Runs) -> Finding:
    grows = {name: cycle(runs, name).growth("batch") for name in ("TSL", "TMA", "SMA")}
    text = ", ".join(f"{name} {one} times" for name, one in grows.items())
    ahead = [runs["TSL", "seconds"] / runs[name, "seconds"] for name in ("TMA", "SMA")]
    truths = [x > 1 for name in ("TMA", "SMA") for x in grows[name].medians] + [
        x > 1 for one in ahead for x in one.medians
    ]
    return f"r = 50 to 5,000: {text}; TSL over TMA {ahead[0]}, over SMA {ahead[1]}", truths


@claim("Figure 17: SMA is clearly better than TMA on ANT", f"{PAPER}-fig17", data="ANT")
def _(runs: Runs) -> Finding:
    faster = runs["TMA", "seconds"] / runs["SMA", "seconds"]
    return f"{faster} times", faster > 1.2


@claim("Figure 18: all are at most linear in Q", f"{PAPER}-fig18")
def _(runs: Runs) -> Finding:
    grows = {name: cycle(runs, name).growth("queries") for name in ("TSL", "TMA", "SMA", "auto")}
    text = ", ".join(f"{name} {one}" for name, one in grows.items())
    return f"times from 50 to 400 queries: {text}", [x <= 8 for one in grows.values() for x in one.medians]


@claim("Figure 19: the distance of TMA from SMA grows with k", f"{PAPER}-fig19-20")
def _(runs: Runs) -> Finding:
    more = runs["TMA", "searches"] / runs["SMA", "searches"]
    text = "; ".join(f"{data} {more.at(data=data):list}" for data in ("IND", "ANT"))
    return f"searches of TMA over those of SMA, k = 1 to 100: {text}", more.growth("k") > 1


@claim("Figure 19: at k = 100 on ANT TMA costs almost what TSL does", f"{PAPER}-fig19-20", data="ANT", k=100)
def _(runs: Runs) -> Finding:
    more = runs["TMA", "seconds"] / runs["TSL", "seconds"]
    return f"{more} times it", more.between(0.5, 1.5)


@claim("Figure 20: space grows with k; TSL needs the most", f"{PAPER}-fig19-20")
def _(runs: Runs) -> Finding:
    space = {name: runs[name, "bytes"] / 1e6 for name in ("TSL", "TMA", "SMA")}
    text = ", ".join(f"{name} {one}" for name, one in space.items())
    grows = [x > 1 for one in space.values() for x in one.growth("k").medians]
    return f"{text} MB", grows + [x > 1 for name in ("TMA", "SMA") for x in (space["TSL"] / space[name]).medians]


@claim(
    "Figure 20: SMA needs a little more than TMA",
    f"{PAPER}-fig19-20",
    partly="the former answers that TMA keeps (for `first`) outweigh it",
    no="the former answers that TMA keeps (for `first`) outweigh it",
)
def _(runs: Runs) -> Finding:
    more = runs["SMA", "bytes"] / runs["TMA", "bytes"]
    return f"{more.least - 1:+.1%} to {more.most - 1:+.1%}", more > 1


for contestant, what in (("TSL", "views"), ("SMA", "skybands")):

    @claim(f"Table 2: {contestant}'s {what}", f"{PAPER}-table2", partly="within 5 % in these", holds="within 5 %")
    def _(runs: Runs, contestant: str = contestant) -> Finding:
        text, truths = [], []
        for data in ("IND", "ANT"):
            sizes = runs[contestant, "objects"].at(data=data)
            printed = dict(zip(TABLE_2_K, TABLE_2[data, contestant], strict=True))
            wanted = [printed[dict(at)["k"]] for at in sizes.cells]
            text.append(
                f"{data} {', '.join(f'{one:.1f}' for one in sizes.means)} (printed {', '.join(map(str, wanted))})"
            )
            truths += [abs(a / b - 1) <= 0.05 for a, b in zip(sizes.means, wanted, strict=True)]
        return "; ".join(text), truths


@claim("Figure 21: products and quadratic forms as linear ones: TSL, TMA, SMA in this order", f"{PAPER}-fig21")
def _(runs: Runs) -> Finding:
    first, second = runs["TSL", "seconds"] / runs["TMA", "seconds"], runs["TMA", "seconds"] / runs["SMA", "seconds"]
    text = "; ".join(f"{data}: {first.at(data=data)} and {second.at(data=data)}" for data in ("IND", "ANT"))
    return f"TSL over TMA and TMA over SMA, {text} times", (first > 1) + (second > 1)


for where, queries in (("100 queries", "100"), ("k", "1,000")):

    @claim(
        f"at the paper's N and r, {queries} queries: TMA is much faster than TSL, in most cases by more than 10 times",
        f"paper-{PAPER}",
        where,
    )
    def _(runs: Runs) -> Finding:
        ratio, searches = cycle(runs, "TSL") / cycle(runs, "TMA"), per_query(runs)
        text = "; ".join(f"{one:list}" for one in ratio.each("data"))
        return f"by data: {text}; searches of a TSL query in 100 cycles: {searches}", ratio > 10

    @claim(
        f"at the paper's N and r, {queries} queries: SMA is faster than TMA, by fewer searches",
        f"paper-{PAPER}",
        where,
    )
    def _(runs: Runs) -> Finding:
        ratio = cycle(runs, "TMA") / cycle(runs, "SMA")
        return "by data: " + "; ".join(f"{one:list}" for one in ratio.each("data")), ratio > 1
