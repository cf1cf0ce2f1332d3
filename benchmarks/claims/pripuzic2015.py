"""Claims of Pripužić, Podnar Žarko and Aberer (2015)."""

from __future__ import annotations

from benchmarks.claims.claim import claims
from benchmarks.claims.values import Finding, Runs, Values
from skyband.engines.topk.odds import strict_size

CLAIMS, claim = claims()
RANDOM = ["uniform", "clustered", "randomised real"]
EIGHT, NINE, TEN = "pripuzic2015-fig8", "pripuzic2015-fig9", "pripuzic2015-fig10"
ELEVEN, TWELVE = "pripuzic2015-fig11", "pripuzic2015-fig12"
PAPER = "paper-pripuzic2015"  # n = 40,000, N = 10^6, 400 queries
FILTERED = ("SAPF", "RAPF", "PA, no index")


def per_query(values: Values, queries: int) -> Values:
    """Nanoseconds per object and query."""
    return values * (1e9 / queries)


@claim("section 4, corrected: the k-skyband holds k + k·(H_n - H_k) objects in random order", "throughput")
def _(runs: Runs) -> Finding:
    kept = runs["skyband_push", "objects"].at(k=[10, 100])
    share = Values(
        {at: [one / strict_size(dict(at)["n"], dict(at)["k"]) for one in some] for at, some in kept.cells.items()}
    )
    return f"{share} of it, k = 10 and 100, n = 10^3 to 10^6", share.between(0.8, 1.25)


@claim("section 4.1.3: when scores fall, all n are kept", "first-engine", "falling scores")
def _(runs: Runs) -> Finding:
    kept = [runs[f"n={n:,}", "objects"] / n for n in (1_000, 10_000, 100_000)]
    slower = runs["n=100,000"] / runs["n=1,000"]
    return f"all n kept; an arrival at n = 10^5 costs {slower} times one at 10^3", [one.least == 1 for one in kept]


@claim("Figure 8: misses stay far below σ·N/n a query, false ones below 1.5·σ·N/n", EIGHT)
def _(runs: Runs) -> Finding:
    missed, false = runs["PA", "missed_of_bound"], runs["PA", "false_of_bound"]
    text = f"missed: {missed.at(sigma=0.001)} of the bound at σ = 0.001, {missed.at(sigma=0.5)} at 0.5; "
    return text + f"false: {false.at(sigma=0.001)} and {false.at(sigma=0.5)}", (missed < 0.1) + (false < 0.1)


@claim("Figure 8: no error at all for k = 1", EIGHT, k=1)
def _(runs: Runs) -> Finding:
    missed, false = runs["PA", "missed"], runs["PA", "false"]
    text = f"{missed} missed and {false} false a query"
    return text, [a + b == 0 for a, b in zip(missed.medians, false.medians, strict=True)]


@claim("Figure 8: far fewer false ones than missed ones", EIGHT, sigma=0.5)
def _(runs: Runs) -> Finding:
    missed, false = sum(runs["PA", "missed"].medians), sum(runs["PA", "false"].medians)
    return f"{false:.3g} against {missed:.3g} a query, all cells together, σ = 0.5", [false < missed / 2]


@claim("Figure 9(a-c), random order, with index: PA is the fastest", NINE, data=RANDOM, partly="BLOCK is faster")
def _(runs: Runs) -> Finding:
    others = [runs[name] / runs["PA"] for name in ("RAPF2", "RAPF", "SASF", "CPM/w", "SNN")]
    text = ", ".join(f"{name} {per_query(runs[name], 100)}" for name in ("PA", "RAPF2", "RAPF", "BLOCK"))
    return f"ns per object and query: {text}", [one > 1 for other in others for one in other.medians]


@claim("Figure 9(a-c): PA beats RAPF", NINE, data=RANDOM)
def _(runs: Runs) -> Finding:
    faster = runs["RAPF"] / runs["PA"]
    return f"{faster} times, by k: " + "; ".join(f"{one}" for one in faster.each("k")), faster > 1


@claim("Figure 9: RAPF2, with the largest buffer, is faster than RAPF", NINE, data=RANDOM)
def _(runs: Runs) -> Finding:
    faster = runs["RAPF"] / runs["RAPF2"]
    return f"{faster} times", faster > 1


@claim("Figure 9: SASF is the slowest", NINE, data=RANDOM)
def _(runs: Runs) -> Finding:
    slower = [runs["SASF"] / runs[name] for name in ("PA", "RAPF", "RAPF2")]
    return (
        f"{min(one.least for one in slower):.2g} to {max(one.most for one in slower):.2g} times PA, RAPF and RAPF2",
        [one > 1 for other in slower for one in other.medians],
    )


@claim("Figure 9: PA, RAPF2 and RAPF scale well with k, PA best", NINE, data=RANDOM)
def _(runs: Runs) -> Finding:
    pa, large, small = (runs[name].growth("k") for name in ("PA", "RAPF2", "RAPF"))
    best = [a < min(b, c) for a, b, c in zip(pa.medians, large.medians, small.medians, strict=True)]
    return f"k = 1 to 81: PA {pa} times, RAPF2 {large}, RAPF {small}", best


@claim("Figure 9: clustered data cost more than uniform data", NINE)
def _(runs: Runs) -> Finding:
    more = [runs[name].at(data="clustered") / runs[name].at(data="uniform") for name in ("PA", "RAPF", "RAPF2")]
    return f"{min(one.least for one in more):.2g} to {max(one.most for one in more):.2g} times", [
        one > 1 for other in more for one in other.medians
    ]


@claim("Figure 9(d), real data, correlated in time: all are much slower", NINE)
def _(runs: Runs) -> Finding:
    more = {
        name: runs[name].at(data="real") / runs[name].at(data="randomised real")
        for name in ("RAPF", "RAPF2", "SASF", "BLOCK")
    }
    text = ", ".join(f"{name} {values}" for name, values in more.items())
    return f"times the same data in random order: {text}", [x > 1.5 for one in more.values() for x in one.medians]


@claim("Figure 9(d), real data: RAPF2 and RAPF stay ahead of SASF", NINE, data="real")
def _(runs: Runs) -> Finding:
    ahead, large = runs["SASF"] / runs["RAPF"], runs["SASF"] / runs["RAPF2"]
    return f"RAPF {ahead} times, RAPF2 {large}", (ahead > 1) + (large > 1)


@claim("Figure 9(a-c): CPM/w and SNN are level with RAPF2 at k = 1 and 3", NINE, data=RANDOM, k=[1, 3])
def _(runs: Runs) -> Finding:
    cpm, snn = runs["CPM/w"] / runs["RAPF2"], runs["SNN"] / runs["RAPF2"]
    return f"CPM/w {cpm} times RAPF2's time, SNN {snn}", cpm.between(0.5, 2) + snn.between(0.5, 2)


@claim("Figure 9(a-c): CPM/w and SNN scale poorly with k: RAPF2 is 4 to 8 times faster", NINE, data=RANDOM, k=81)
def _(runs: Runs) -> Finding:
    cpm, snn = runs["CPM/w"] / runs["RAPF2"], runs["SNN"] / runs["RAPF2"]
    return f"k = 81: than CPM/w {cpm} times, than SNN {snn}", (cpm >= 4) + (snn >= 4)


@claim("Figure 9(d), real data: RAPF2 up to 10 times faster than CPM/w and up to 100 times than SNN", NINE, data="real")
def _(runs: Runs) -> Finding:
    cpm, snn = runs["CPM/w"] / runs["RAPF2"], runs["SNN"] / runs["RAPF2"]
    return f"{cpm} and {snn} times", [cpm.most >= 10, snn.most >= 100]


@claim(
    "Figure 10, no index: SA, SASF, RASF are the slowest group, then RA, SARF, RARF, then PA, SAPF, RAPF",
    TEN,
    partly="with arrays the first two groups change places: shifting records is cheaper than keeping dominated ones",
)
def _(runs: Runs) -> Finding:
    groups = [("SA", "SASF", "RASF"), ("RA", "SARF", "RARF"), FILTERED]
    slow, middle, fast = (
        [sum(some) / 3 for some in zip(*(per_query(runs[name], 40).medians for name in group), strict=True)]
        for group in groups
    )
    first = [a / b for a, b in zip(slow, middle, strict=True)]
    second = [a / b for a, b in zip(middle, fast, strict=True)]
    text = f"means of groups: the first {min(first):.2g} to {max(first):.2g} times the second, "
    return text + f"the second {min(second):.2g} to {max(second):.2g} times the third", [
        one > 1 for one in first + second
    ]


@claim("Figure 10, no index: the dataset makes almost no difference", TEN)
def _(runs: Runs) -> Finding:
    most = {name: max(_over_data(runs[name])) for name in ("SA", "RA", *FILTERED)}
    text = ", ".join(f"{name} {value:.2g}" for name, value in most.items())
    return f"the slowest dataset over the fastest, at most: {text}", [value < 1.5 for value in most.values()]


def _over_data(values: Values) -> list[float]:
    return [one.most / one.least for one in values.each("k")]


@claim("Figure 10: the cost of PA hardly changes with k", TEN, no="insertions cost more than comparisons here")
def _(runs: Runs) -> Finding:
    grows = runs["PA, no index"].growth("k")
    return f"k = 1 to 81: {grows} times", grows < 2


@claim("Figure 10: SASF is only a little faster than SA, a probabilistic filter almost 10 times", TEN)
def _(runs: Runs) -> Finding:
    strict, odds = runs["SA"] / runs["SASF"], runs["SA"] / runs["SAPF"]
    return f"SASF {strict} times, SAPF {odds}", strict.between(0.5, 2) + (odds > 4)


@claim("Figure 10: of the paper's exact ones RAPF is the fastest at k = 81", TEN, k=81, partly="level with SAPF")
def _(runs: Runs) -> Finding:
    others = {name: runs[name] / runs["RAPF"] for name in ("SA", "SASF", "SARF", "SAPF", "RA", "RASF", "RARF")}
    six = min(one.least for name, one in others.items() if name != "SAPF")
    text = f"SAPF {others['SAPF']} times its time, the other six {six:.2g}"
    return f"{text} or more; BLOCK {runs['BLOCK'] / runs['RAPF']}", [
        x >= 1 for one in others.values() for x in one.medians
    ]


@claim("Figure 10: an index gains", TEN, no="with 40 queries in 4 dimensions scoring is not the main cost")
def _(runs: Runs) -> Finding:
    pa, block = runs["PA, no index"] / runs["PA"], runs["BLOCK, no index"] / runs["BLOCK"]
    return f"PA {pa} times, BLOCK {block}", (pa > 1) + (block > 1)


@claim("Figure 11(a): with d all grow at most linearly", ELEVEN, "dimensions d")
def _(runs: Runs) -> Finding:
    grows = {name: runs[name].growth("d") for name in ("PA", "SAPF", "RAPF", "SA", "RA", "BLOCK")}
    text = ", ".join(f"{name} {value}" for name, value in grows.items())
    return f"d = 2 to 10: {text} times", [x < 5 for one in grows.values() for x in one.medians]


@claim("Figure 11(b): the best grid resolution is 9 or 10", ELEVEN, "cells of the index")
def _(runs: Runs) -> Finding:
    cost = per_query(runs["BLOCK"], 40)
    best = min(cost.cells, key=lambda at: Values({at: cost.cells[at]}).medians[0])
    across = dict(best)["cells"] ** 0.25
    cells = ", ".join(f"{dict(at)['cells'] ** 0.25:.0f}" for at in cost.cells)
    return f"BLOCK {cost:list} ns at a resolution of {cells}: the best is {across:.0f}", [across in (9, 10)]


@claim("Figure 11(c): all grow linearly with the number of queries, PA is the best", ELEVEN, "queries u")
def _(runs: Runs) -> Finding:
    grows = {name: runs[name].growth("queries") / 16 for name in ("PA", "SA", "RAPF", "BLOCK")}
    text = ", ".join(f"{name} {value}" for name, value in grows.items())
    behind = [(runs[name] / runs["PA"]).least > 1 for name in ("SA", "SASF", "SAPF", "RA", "RASF", "RAPF", "BLOCK")]
    return f"cost per query, 160 queries over 10: {text}; {sum(behind)} of 7 are behind PA throughout", [
        *(x < 1.5 for one in grows.values() for x in one.medians),
        all(behind),
    ]


@claim("Figure 11(d): a larger buffer is faster, with little gain beyond 2,000", ELEVEN, "buffer b")
def _(runs: Runs) -> Finding:
    names = ("SAPF", "RAPF", "BLOCK")
    text = ", ".join(f"{name} {per_query(runs[name], 40):list}" for name in names)
    gain = [runs[name].at(buffer=250) / runs[name].at(buffer=2_000) for name in names]
    beyond = [runs[name].at(buffer=2_000) / runs[name].at(buffer=5_000) for name in names]
    truths = [x > 1 for one in gain for x in one.medians] + [x < 1.25 for one in beyond for x in one.medians]
    return f"b = 250 to 5,000: {text} ns", truths


@claim("Figure 11(e): a larger γ is faster, with little gain beyond 0.2", ELEVEN, "pruning coefficient γ")
def _(runs: Runs) -> Finding:
    cost = per_query(runs["RA"], 40)
    first, beyond = cost.at(gamma=0.05) / cost.at(gamma=0.2), cost.at(gamma=0.2) / cost.at(gamma=0.8)
    return f"RA {cost:list} ns at γ = 0.05 to 0.8; RAPF {per_query(runs['RAPF'], 40):list}", (first > 1.1) + (
        beyond < 1.25
    )


@claim("Figure 11(f): PA gets faster with n, all others a little slower", ELEVEN, "window n")
def _(runs: Runs) -> Finding:
    others = {name: runs[name].growth("n") for name in ("SA", "SAPF", "RA", "RAPF", "BLOCK")}
    text = ", ".join(f"{name} {value}" for name, value in others.items())
    truths = (runs["PA"].growth("n") < 1) + [0.9 < x < 2 for one in others.values() for x in one.medians]
    return f"n = 2,500 to 40,000: PA {runs['PA'].growth('n')} times, {text}", truths


@claim(
    "Figure 12(a): SA, RA, SASF, SAPF and RAPF store similar numbers of distinct objects",
    TWELVE,
    "distinct",
    partly="filters keep objects out of the queries at small k; the buffer that they wait in is not counted",
)
def _(runs: Runs) -> Finding:
    others = {
        name: runs[name, "distinct_objects"] / runs["SA", "distinct_objects"] for name in ("RA", "SASF", "SAPF", "RAPF")
    }
    text = ", ".join(f"{name} {value}" for name, value in others.items())
    return f"over SA's, k = 1 to 81: {text}", [0.5 < x < 2 for one in others.values() for x in one.medians]


@claim("Figure 12(a): at k = 1 PA stores more distinct objects than exact ones", TWELVE, "distinct", k=1)
def _(runs: Runs) -> Finding:
    ours, theirs = runs["PA", "distinct_objects"], runs["SA", "distinct_objects"]
    return f"{ours} a query against {theirs}", ours / theirs > 1


@claim("Figure 12(a): as k grows all approach n/u = 100 objects a query", TWELVE, "distinct", k=81)
def _(runs: Runs) -> Finding:
    found = {name: runs[name, "distinct_objects"] for name in ("SA", "RA", "PA", "SASF", "SAPF", "RAPF")}
    text = ", ".join(f"{name} {value}" for name, value in found.items())
    return f"k = 81: {text}", [50 < x <= 100 for one in found.values() for x in one.medians]


@claim("Figure 12(b): at k = 81 PA refers to a quarter of SA's objects", TWELVE, "kept", k=81)
def _(runs: Runs) -> Finding:
    ours, theirs = runs["PA", "objects"], runs["SA", "objects"]
    return f"{ours} of {theirs}, {ours / theirs} of them (n = 10^4)", (ours / theirs).between(0.15, 0.35)


@claim("Figure 12: at small k PA refers to more than the exact ones", TWELVE, "kept", k=1)
def _(runs: Runs) -> Finding:
    ours, theirs = runs["PA", "objects"], runs["SA", "objects"]
    return f"{ours} against {theirs} at k = 1", ours / theirs > 1


@claim("Figure 12(b): RA refers to about 10 % more than SA (γ = 0.2)", TWELVE, "kept")
def _(runs: Runs) -> Finding:
    more = runs["RA", "objects"] / runs["SA", "objects"]
    return f"{more.least - 1:.0%} to {more.most - 1:.0%}", more.between(1.0, 1.15)


@claim("Figure 12(b): with filters SA and RA refer to fewer", TWELVE, "kept", k=81)
def _(runs: Runs) -> Finding:
    sa, sapf, rapf = (runs[name, "objects"] for name in ("SA", "SAPF", "RAPF"))
    return f"SAPF {sapf} and RAPF {rapf} against {sa} at k = 81", (sapf / sa < 1) + (rapf / sa < 1)


@claim("at the paper's n, N and u, Figure 9(a-c): PA is the fastest", PAPER, data=RANDOM, partly="BLOCK and RAPF are")
def _(runs: Runs) -> Finding:
    names = ("RAPF2", "RAPF", "SASF", "CPM/w", "SNN")
    text = ", ".join(f"{name} {per_query(runs[name], 400)}" for name in ("PA", *names, "BLOCK"))
    return f"ns per object and query: {text}", [one > 1 for name in names for one in (runs[name] / runs["PA"]).medians]


@claim("at the paper's size, Figure 9: RAPF2, with the largest buffer, is faster than RAPF", PAPER, data=RANDOM)
def _(runs: Runs) -> Finding:
    faster = runs["RAPF"] / runs["RAPF2"]
    return f"{faster} times", faster > 1


@claim("at the paper's size, Figure 9: SASF is the slowest", PAPER, data=RANDOM)
def _(runs: Runs) -> Finding:
    slower = [runs["SASF"] / runs[name] for name in ("PA", "RAPF", "RAPF2", "CPM/w", "SNN")]
    text = ", ".join(f"{one}" for one in slower)
    return f"times PA, RAPF, RAPF2, CPM/w and SNN: {text}", [one > 1 for other in slower for one in other.medians]


@claim("at the paper's size, Figure 9: PA, RAPF2 and RAPF scale well with k, PA best", PAPER, data="uniform")
def _(runs: Runs) -> Finding:
    pa, large, small = (runs[name].growth("k") for name in ("PA", "RAPF2", "RAPF"))
    best = [a < min(b, c) for a, b, c in zip(pa.medians, large.medians, small.medians, strict=True)]
    return f"uniform, k = 1 to 81: PA {pa} times, RAPF2 {large}, RAPF {small}", best


@claim("at the paper's size, Figure 9(a-c): RAPF2 is 4 to 8 times faster than CPM/w and SNN", PAPER, data=RANDOM, k=81)
def _(runs: Runs) -> Finding:
    cpm, snn = runs["CPM/w"] / runs["RAPF2"], runs["SNN"] / runs["RAPF2"]
    return f"k = 81: than CPM/w {cpm} times, than SNN {snn}", (cpm >= 4) + (snn >= 4)
