"""Claims of Shen, Cheema, Lin, Zhang and Wang (2012)."""

from __future__ import annotations

from benchmarks.claims.claim import claims
from benchmarks.claims.values import Finding, Runs

CLAIMS, claim = claims()
PAPER = "shen2012"
SCALE = "paper-shen2012"  # N up to 10^6, s1 to s4
ARRAYS = "linear reads arrays side by side; a tree pays in short windows of many pairs"


@claim("Figure 7: on the Intel readings SCase beats naive by two to three orders", f"{PAPER}-fig7", "K")
def _(runs: Runs) -> Finding:
    faster = runs["NAIVE"] / runs["SCASE"]
    return f"{faster} times (N = 1,000)", faster >= 100


@claim("Figure 7: SCase stays near supreme", f"{PAPER}-fig7", "N")
def _(runs: Runs) -> Finding:
    ratio = runs["SCASE"] / runs["SUPREME"]
    return f"{ratio:list} × SUPREME at N = 3,000, 10,000, 20,000 (100 queries, scores by NumPy)", ratio <= 3


@claim("Figure 8(a): SCase hardly grows with K, naive does", f"{PAPER}-fig8", "K")
def _(runs: Runs) -> Finding:
    ours, theirs = runs["SCASE"].growth("K"), runs["NAIVE"].growth("K")
    ratios = "; ".join(f"{one}" for one in (runs["NAIVE"] / runs["SCASE"]).each("K"))
    text = f"K = 1 to 100, s1 to s4: SCASE {ours} times, NAIVE {theirs}; NAIVE over SCASE, by K: {ratios}"
    return text, (ours < 5) + (theirs / ours > 5)


@claim("Figure 8(b): SCase stays near supreme as N grows", f"{PAPER}-fig8", "N")
def _(runs: Runs) -> Finding:
    ratio = runs["SCASE"] / runs["SUPREME"]
    text = " and ".join(f"{one}" for one in ratio.each("n"))
    return f"{text} × SUPREME at N = 10,000 and 50,000, s1 to s4", ratio <= 3


@claim("Figure 9(a): naive++, which knows k, wins for k = 1", f"{PAPER}-fig9", "k", no="SCASE always wins here")
def _(runs: Runs) -> Finding:
    faster = runs["naive++"] / runs["SCASE"]
    return f"SCASE {faster:list} times faster at k = 1, 5, 20", [faster.medians[0] < 1]


@claim("Figure 9(b): SCase beats naive++ for short n too", f"{PAPER}-fig9", "n")
def _(runs: Runs) -> Finding:
    faster = runs["naive++"] / runs["SCASE"]
    return f"{faster:list} times at n = 300, 1,000, 3,000", faster > 1


@claim("Figure 9(b): SCase's cost does not depend on n, that of supreme++ does", f"{PAPER}-fig9", "n")
def _(runs: Runs) -> Finding:
    ours, theirs = runs["SCASE"].growth("asked_n"), runs["supreme++"].growth("asked_n")
    text = f"SCASE {runs['SCASE'] * 1e6:list} µs, supreme++ {runs['supreme++'] * 1e6:list}"
    return text, ours.between(0.5, 2) + (theirs > 2)


@claim("Figure 10(a): snapshot beats linear for all K", f"{PAPER}-fig10", "K", no=ARRAYS, partly=ARRAYS)
def _(runs: Runs) -> Finding:
    more = runs["linear"] / runs["snapshot"]
    return f"linear is {more:list} × snapshot at K = 20, 50, 100", more > 1


@claim("Figure 10(c): snapshot beats linear for all k", f"{PAPER}-fig10", "k", no=ARRAYS, partly=ARRAYS)
def _(runs: Runs) -> Finding:
    more = runs["linear"] / runs["snapshot"]
    return f"linear is {more:list} × snapshot at k = 1, 20, 100", more > 1


@claim("Figure 10(b): snapshot scales better with N", f"{PAPER}-fig10", "N")
def _(runs: Runs) -> Finding:
    more = runs["linear"] / runs["snapshot"]
    return f"linear is {more:list} × snapshot at N = 1,000, 10,000, 50,000", more.growth("n") > 1


@claim("Figure 10(d): snapshot is flat in n", f"{PAPER}-fig10", "n")
def _(runs: Runs) -> Finding:
    ours, theirs = runs["snapshot"] * 1e9, runs["linear"] * 1e9
    return f"n = 50 to 10,000: snapshot {ours:list} ns, linear {theirs:list}", [ours.most < 2 * ours.least]


@claim("Figure 10(d): linear wins near n = N", f"{PAPER}-fig10", "n", asked_n=10_000)
def _(runs: Runs) -> Finding:
    ratio = runs["linear"] / runs["snapshot"]
    return f"linear {ratio} × snapshot at n = N", ratio < 1


@claim(
    "Figure 10(a): Algorithm 2 over the paper's own tree beats linear for all K",
    f"{PAPER}-fig10",
    "K",
    no=ARRAYS,
    partly=ARRAYS,
)
def _(runs: Runs) -> Finding:
    more, ours = runs["linear"] / runs["PST"], runs["PST"] / runs["snapshot"]
    return f"linear is {more:list} × PST at K = 20, 50, 100, PST {ours:list} × SCASE's snapshot", more > 1


@claim(
    "Figure 10(c): Algorithm 2 over the paper's own tree beats linear for all k",
    f"{PAPER}-fig10",
    "k",
    no=ARRAYS,
    partly=ARRAYS,
)
def _(runs: Runs) -> Finding:
    more, ours = runs["linear"] / runs["PST"], runs["PST"] / runs["snapshot"]
    return f"linear is {more:list} × PST at k = 1, 20, 100, PST {ours:list} × SCASE's snapshot", more > 1


@claim("Figure 10(b): Algorithm 2 over the paper's own tree scales better with N", f"{PAPER}-fig10", "N")
def _(runs: Runs) -> Finding:
    more = runs["linear"] / runs["PST"]
    return f"linear is {more:list} × PST at N = 1,000, 10,000, 50,000", more.growth("n") > 1


@claim("Figure 10(d): Algorithm 2 over the paper's own tree is flat in n", f"{PAPER}-fig10", "n")
def _(runs: Runs) -> Finding:
    ours = runs["PST"] * 1e9
    return f"n = 50 to 10,000: PST {ours:list} ns", [ours.most < 2 * ours.least]


@claim("Figure 11: continuous beats snapshot and linear for many queries", f"{PAPER}-fig11", "queries")
def _(runs: Runs) -> Finding:
    ratio, linear = runs["snapshot"] / runs["continuous"], runs["linear"] / runs["continuous"]
    text = f"over continuous, 10, 100, 1,000 queries: snapshot {ratio:list}, linear {linear:list}"
    return text, (ratio.at(queries=1_000) > 1) + (linear.at(queries=1_000) > 1)


@claim("Figure 11: the same for all K, 1,000 queries", f"{PAPER}-fig11", "K")
def _(runs: Runs) -> Finding:
    ratio = runs["snapshot"] / runs["continuous"]
    return f"snapshot {ratio:list} × continuous at K = 20, 50, 100", ratio > 1


@claim("Figure 12(a): SCase beats basic", f"{PAPER}-fig12", "K")
def _(runs: Runs) -> Finding:
    ratio = runs["BASIC"] / runs["SCASE"]
    return f"BASIC {ratio:list} × SCASE at K = 1, 20, 50 (N = 5,000)", ratio > 1


@claim(
    "Figure 12(a): TA beats SCase",
    f"{PAPER}-fig12",
    "K",
    no="TA needs longer windows, and SCASE scores in 32 bits first",
)
def _(runs: Runs) -> Finding:
    ratio = runs["TA"] / runs["SCASE"]
    return f"TA {ratio:list} × SCASE at K = 1, 20, 50 (N = 5,000)", ratio < 1


@claim("Figure 12(b): TA beats supreme for large N", f"{PAPER}-fig12", "N", n=100_000)
def _(runs: Runs) -> Finding:
    ratio, ours = runs["TA"] / runs["SUPREME"], runs["SCASE"] / runs["SUPREME"]
    return f"{ratio} × SUPREME at N = 100,000; SCASE, which rounds, {ours}", ratio < 1


@claim("Figure 12(b): TA beats SCase for large N", f"{PAPER}-fig12", "N")
def _(runs: Runs) -> Finding:
    ratio = runs["TA"] / runs["SCASE"]
    return f"TA {ratio:list} × SCASE at N = 10,000, 50,000, 100,000", ratio < 1


@claim(
    "Figure 12(c): TA degrades with d, SCase does not",
    f"{PAPER}-fig12",
    "d",
    no="scoring is SCASE's main cost here, and it rounds up to d = 3 only",
    partly="scoring is SCASE's main cost here, and it rounds up to d = 3 only",
)
def _(runs: Runs) -> Finding:
    ta, scase, supreme = (runs[name].growth("d") for name in ("TA", "SCASE", "SUPREME"))
    return f"d = 2 to 6: TA {ta} times, SCASE {scase}, SUPREME {supreme}", (ta > 1.5) + (scase < 1.5)


@claim("Figure 12(d): SCase beats basic on all data", f"{PAPER}-fig12", "data")
def _(runs: Runs) -> Finding:
    basic, ta = runs["BASIC"] / runs["SCASE"], runs["TA"] / runs["SCASE"]
    return f"BASIC {basic:list} × SCASE, TA {ta:list}", basic > 1


@claim("Figure 12(a), s1 to s4: SCase beats basic", f"{PAPER}-fig12", "K, four scorings")
def _(runs: Runs) -> Finding:
    ratio = runs["BASIC"] / runs["SCASE"]
    text = "; ".join(f"{one}" for one in ratio.each("s"))
    return f"BASIC over SCASE, K = 1 to 50, by s1 to s4: {text}", ratio > 1


@claim("Figure 12(b), s1 to s4: TA beats SCase for N = 100,000", f"{PAPER}-fig12", "N, four scorings", n=100_000)
def _(runs: Runs) -> Finding:
    ratio = runs["TA"] / runs["SCASE"]
    return f"TA {ratio:list} × SCASE by s1 to s4", ratio < 1


@claim("Figure 12(b), s1 to s4: TA beats supreme for N = 100,000", f"{PAPER}-fig12", "N, four scorings", n=100_000)
def _(runs: Runs) -> Finding:
    ratio, ours = runs["TA"] / runs["SUPREME"], runs["SCASE"] / runs["SUPREME"]
    return f"TA {ratio:list} × SUPREME, SCASE {ours:list}, by s1 to s4", ratio < 1


@claim("at the paper's N, Figure 8(b): SCase stays near supreme as N grows", SCALE)
def _(runs: Runs) -> Finding:
    ratio = runs["SCASE"] / runs["SUPREME"]
    text = "; ".join(f"{one:list}" for one in ratio.each("n"))
    return f"× SUPREME by s1 to s4, for each N: {text}", ratio < 3


@claim("at the paper's N, Figure 12(b): TA beats SCase for large N", SCALE, n=[100_000, 1_000_000])
def _(runs: Runs) -> Finding:
    ratio = runs["TA"] / runs["SCASE"]
    return f"TA by s1 to s4, for each N: {'; '.join(f'{one:list}' for one in ratio.each('n'))} × SCASE", ratio < 1


@claim("at the paper's N, Figure 12(b): TA beats supreme for large N", SCALE, n=[100_000, 1_000_000])
def _(runs: Runs) -> Finding:
    ratio = runs["TA"] / runs["SUPREME"]
    return f"TA by s1 to s4, for each N: {'; '.join(f'{one:list}' for one in ratio.each('n'))} × SUPREME", ratio < 1
