"""The contract suite finds what breaks an engine: each mutant here must die of it.

A mutant is a copy of the package with one exact replacement in one file. The suite runs over it in a process of its
own (forked, so that importing costs nothing), with the kernels as plain Python (NUMBA_DISABLE_JIT: no compiling) and
few examples (SKYBAND_KILL), and stops at the first failure. A pattern that does not occur exactly once fails loudly:
code has moved, mend the mutant.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

REPOSITORY = Path(__file__).parents[1]
PATIENCE = 90  # seconds; a mutant that never ends is a dead one
STRICT = "kernels/strict.py"
AHEAD = "kernels/lookahead.py"
READING = "kernels/reading.py"
RECORDS = "kernels/records.py"
ROUTING = "kernels/routing.py"
ENGINE = "engines/certain/sa.py"

#: name: (file, what it says, what the mutant says)
#: Left out, since they change only the cost: objects that die within a batch staying on the shelf until it is swept
#: (strict.py, `alive[...] = False`), packed runs beginning at their group's start (records.py, `pack`), which side of a
#: run is shifted (strict.py). Nothing shows: the order of queries in `SA._ordered` (changes.py sorts again), and whose
#: answers `refit_bands` compares (only `replace` reports, and there each query is its own heir).
MUTANTS: dict[str, tuple[str, str, str]] = {
    # --- ties
    "tie rule turned": (
        STRICT,
        'objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] <= stamp',
        'objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] > stamp',
    ),
    "equal times: the earlier arrival first": (
        STRICT,
        'objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] <= stamp',
        'objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] < stamp',
    ),
    "ties by arrival, whatever their times": (
        STRICT,
        'or (objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] <= stamp)',
        'or objects[head + p - 1]["key"] == key',
    ),
    # --- expiry
    "time windows are one longer": (
        STRICT,
        'while views[v]["oldest"] <= now - length:',
        'while views[v]["oldest"] < now - length:',
    ),
    "count windows are one longer": (
        STRICT,
        'if views[v]["oldest"] <= bound:',
        'if views[v]["oldest"] < bound:',
    ),
    "candidates count at the bound": (
        STRICT,
        '        if objects[i]["stamp"] > bound:\n            enter',
        '        if objects[i]["stamp"] >= bound:\n            enter',
    ),
    "arrivals count at the bound": (
        STRICT,
        "                    if stamp > bound:\n                        fresh",
        "                    if stamp >= bound:\n                        fresh",
    ),
    "the largest window is one longer": (
        STRICT,
        "    bound = now - longest\n",
        "    bound = now - longest - 1\n",
    ),
    "the largest window is one shorter": (
        STRICT,
        "    bound = now - longest\n",
        "    bound = now - longest + 1\n",
    ),
    "answers at the bound": (
        READING,
        'if objects[i]["stamp"] > now[g] - length:',
        'if objects[i]["stamp"] >= now[g] - length:',
    ),
    "due is not noticed at its instant": (STRICT, 'if groups[g]["due"] <= now:', 'if groups[g]["due"] < now:'),
    "arrival and expiry are two steps": (STRICT, "K, g, now - joint, alive", "K, g, now, alive"),
    # --- dominance
    "dominance bound k - 1": (
        STRICT,
        '                if objects[i]["dom"] >= K:',
        '                if objects[i]["dom"] >= K - (K > 1):',
    ),
    "dominance bound k + 1": (
        STRICT,
        '                if objects[i]["dom"] >= K:',
        '                if objects[i]["dom"] >= K + 1:',
    ),
    "a late arrival needs k + 1 dominators": (STRICT, "if dominators >= K:", "if dominators >= K + 1:"),
    "a late arrival needs k - 1 dominators": (STRICT, "if dominators >= K:", "if dominators >= K - 1:"),
    "equal times do not dominate": (
        STRICT,
        '            if objects[i]["stamp"] <= stamp:\n                objects[i]["dom"] += 1',
        '            if objects[i]["stamp"] < stamp:\n                objects[i]["dom"] += 1',
    ),
    "a late arrival dominates everybody below": (
        STRICT,
        '            if objects[i]["stamp"] <= stamp:\n                objects[i]["dom"] += 1',
        '            if True:\n                objects[i]["dom"] += 1',
    ),
    "dominators of equal time are not counted": (
        STRICT,
        'dominators += objects[i]["stamp"] >= stamp',
        'dominators += objects[i]["stamp"] > stamp',
    ),
    "only the late look for dominators": (
        STRICT,
        'if stamp <= groups[g]["newest"]:',
        'if stamp < groups[g]["newest"]:',
    ),
    "the skyband of the first query's k": (
        STRICT,
        '        K = max(K, queries[q]["k"])\n    for visit',
        '        K = queries[0]["k"]\n    for visit',
    ),
    "refit forgets the dominated": (READING, 'if objects[i]["dom"] >= K:', 'if objects[i]["dom"] >= K + 1:'),
    # --- the clock
    "idle groups do not expire": (
        ENGINE,
        'np.flatnonzero(self.groups["due"] <= arrivals.clock)',
        'np.flatnonzero(self.groups["due"] < -NEVER)',
    ),
    "the clock is not carried from push to push": (
        "monitor.py",
        "self.state.clock, self.state.ahead = clock, None\n        self.state.serial",
        "self.state.serial",
    ),
    "the clock is not carried from group to group": (
        "standing.py",
        "now=push.clocks[rows] if push.clocks is not None and self.timed else",
        "now=push.times[rows] if push.times is not None and self.timed else",
    ),
    "the clock does not pass rows that are rejected": (
        "monitor.py",
        "np.where(seen.accepted, seen.moments, BEGINNING)",
        "seen.moments",
    ),
    "no expiry after the last arrival": (
        ENGINE,
        'visits["last"] = arrivals.clock if self.timed else',
        'visits["last"] = arrivals.clock - 1 if self.timed else',
    ),
    "late rows are never too late": ("standing.py", "timely = ages < max(limits)", "timely = ages >= 0"),
    "the shortest window decides what is too late": (
        "standing.py",
        "timely = ages < max(limits)",
        "timely = ages < min(limits)",
    ),
    "a little late is not late": ("standing.py", "else [1] * len(self.lengths)", "else [2] * len(self.lengths)"),
    # --- bookkeeping
    "due forgets the arrival": (STRICT, 'groups[g]["due"] = min(groups[g]["due"], stamp + shortest)', "pass"),
    "due by the largest window only": (
        STRICT,
        'due = min(due, views[v]["oldest"] + queries[v - g * Q]["length"])',
        "pass",
    ),
    "due forgets the promoted": (
        STRICT,
        'groups[g]["due"] = min(groups[g]["due"], objects[i]["stamp"] + queries[q]["length"])',
        "pass",
    ),
    "due forgets the unseen": (STRICT, "due = oldest + longest if oldest < NEVER else NEVER", "due = NEVER"),
    "oldest forgets the arrival": (STRICT, 'views[v]["oldest"] = min(views[v]["oldest"], stamp)', "pass"),
    "oldest forgets the promoted": (
        STRICT,
        'views[v]["oldest"] = min(views[v]["oldest"], objects[i]["stamp"])',
        "pass",
    ),
    "oldest forgets who stays": (
        STRICT,
        '                oldest = min(oldest, objects[i]["stamp"])\n    views',
        "                pass\n    views",
    ),
    "the edge stays where somebody is dropped": (
        STRICT,
        '                        views[v]["edge"] -= w < views[v]["edge"]',
        "                        pass",
    ),
    "the edge stays where somebody expires": (
        STRICT,
        '            views[v]["edge"] -= p < views[v]["edge"]',
        "            pass",
    ),
    "the edge moves one too early": (
        STRICT,
        '            views[v]["edge"] -= p < views[v]["edge"]',
        '            views[v]["edge"] -= p <= views[v]["edge"]',
    ),
    "the edge does not come back": (STRICT, "while edge > p and not", "while False and edge > p and not"),
    "promotion passes the arrival": (STRICT, "v, q, g, bound, p, out", "v, q, g, bound, -1, out"),
    "newest is the last stamp": (
        STRICT,
        'groups[g]["newest"] = max(groups[g]["newest"], stamp)',
        'groups[g]["newest"] = stamp',
    ),
    "first is every time": (STRICT, 'diff > 0 and not objects[i]["shown"] & BITS[q]', "diff > 0"),
    "quiet batches lose the dropped": (
        STRICT,
        '                    if objects[i]["was"]:\n                        lose(objects, i, out, tally, step)',
        "                    pass",
    ),
    "quiet batches lose the expired": (
        STRICT,
        '        if objects[head + p]["was"]:\n            lose(objects, head + p, out, tally, step)',
        "        pass",
    ),
    "a run loses its last record when it moves": (
        RECORDS,
        "for i in range(size - 1, -1, -1):",
        "for i in range(size - 2, -1, -1):",
    ),
    "steps at an instant find a later row": (
        ROUTING,
        'if now[middle] < changes[i]["instant"]:',
        'if now[middle] <= changes[i]["instant"]:',
    ),
    "numbers do not go on": ("standing.py", "self.counts = before.copy()", "self.counts = 0 * before"),
    "numbers of a new query do not go on": (
        "monitor.py",
        "numbers[: len(most)] = np.maximum(numbers[: len(most)], most)",
        "pass",
    ),
    "expiries after the arrivals of their instant": (ENGINE, 'out["instant"], "left")', 'out["instant"], "right")'),
    "who fails where is an answer": (ENGINE, "chosen, slices = _thin(chosen, slices, eligible)", "pass"),
    "null is no group of its own": (ROUTING, "if len(valid) and not valid[i]:", "if False:"),
    "distances are squares": (
        "standing.py",
        "return self.by.score(value) if isinstance(self.by, Nearest) else value",
        "return value",
    ),
    "refit forgets who was shown": (READING, 'objects[i]["shown"] = shown', 'objects[i]["shown"] = 0'),
    # --- looking ahead
    "look-ahead: an older tie counts": (
        AHEAD,
        'hopeless[i] &= size == K and best[0] > arrivals[i]["key"]',
        'hopeless[i] &= size == K and best[0] >= arrivals[i]["key"]',
    ),
    "look-ahead: a newer tie does not count": (
        AHEAD,
        'hopeless[i] = size == K and best[0] >= arrivals[i]["key"]',
        'hopeless[i] = size == K and best[0] > arrivals[i]["key"]',
    ),
    "look-ahead: K - 1 older ones": (
        AHEAD,
        "    best = np.empty(K)\n",
        "    best = np.empty(max(1, K - 1))\n",
    ),
    "look-ahead: no older ones": (AHEAD, "                if not net:\n", "                if False:\n"),
    "look-ahead: no newer ones": (
        AHEAD,
        'hopeless[i] = size == K and best[0] >= arrivals[i]["key"]',
        "hopeless[i] = True",
    ),
    "look-ahead: older ones for net changes too": (
        AHEAD,
        "                if not net:\n",
        "                if True:\n",
    ),
    "look-ahead: net changes for each arrival": (
        ENGINE,
        "K, reach, self.quiet, hopeless)",
        "K, reach, True, hopeless)",
    ),
    "look-ahead: a block one too long": (
        AHEAD,
        'arrivals[high]["now"] - arrivals[low]["now"] < reach',
        'arrivals[high]["now"] - arrivals[low]["now"] <= reach',
    ),
    "look-ahead: blocks without end": (
        AHEAD,
        'while high < end and arrivals[high]["now"] - arrivals[low]["now"] < reach:',
        "while high < end:",
    ),
    "look-ahead: late ones are left out too": (
        AHEAD,
        'if arrivals[i]["stamp"] == arrivals[i]["now"]:\n            hopeless[i] = ',
        'if arrivals[i]["stamp"] <= arrivals[i]["now"]:\n            hopeless[i] = ',
    ),
    "look-ahead: late ones are counted on": (
        AHEAD,
        'if arrivals[i]["stamp"] == arrivals[i]["now"]:\n            hopeless[i] &= ',
        'if arrivals[i]["stamp"] <= arrivals[i]["now"]:\n            hopeless[i] &= ',
    ),
    "look-ahead: the smallest k": (
        ENGINE,
        'K, reach = int(self.queries["k"].max()), int(self.queries["length"].min())',
        'int(self.queries["k"].min()), int(self.queries["length"].min())',
    ),
    "look-ahead: the largest window": (
        ENGINE,
        'K, reach = int(self.queries["k"].max()), int(self.queries["length"].min())',
        'int(self.queries["k"].max()), int(self.queries["length"].max())',
    ),
    "look-ahead: the heap loses its order": (
        AHEAD,
        "if child + 1 < size and best[child + 1] < best[child]:",
        "if False:",
    ),
    # --- snapshots
    "snapshot: no views": (
        ENGINE,
        "        views = self.views.reshape(-1, Q)[groups].reshape(-1)",
        "        views = _views(Q * len(groups))",
    ),
    "snapshot: no objects' marks": (
        ENGINE,
        "        self.tally[:] = len(objects), 0",
        '        self.tally[:] = len(objects), 0\n        self.objects["shown"] = self.objects["inside"]',
    ),
    "snapshot: no groups' newest": (
        ENGINE,
        'chosen["room"] = chosen["size"]\n',
        'chosen["room"] = chosen["size"]\n        chosen["newest"] = -NEVER\n',
    ),
    "snapshot: no due": (
        ENGINE,
        'chosen["room"] = chosen["size"]\n',
        'chosen["room"] = chosen["size"]\n        chosen["due"] = NEVER\n',
    ),
    "snapshot: no counts": (
        "storing.py",
        "array_stream(home.counts.T[order], bounds)",
        "array_stream(0 * home.counts.T[order], bounds)",
    ),
    "snapshot: no moments": (
        "storing.py",
        "array_stream(home.moments[order], bounds)",
        "array_stream(0 * home.moments[order], bounds)",
    ),
    "snapshot: no clock": ("storing.py", '"clock": state.clock', '"clock": -(2**62)'),
    "snapshot: no serial": ("storing.py", '"serial": state.serial', '"serial": 0'),
    "snapshot: no groups": ("storing.py", "    if columns and len(columns[0]):\n", "    if False:\n"),
    "snapshot: no lanes": ("storing.py", '"lanes": home.lanes.tolist()', '"lanes": [0] * len(home.lanes)'),
    "snapshot: no order of queries": (
        "storing.py",
        '"order": list(state.homes)',
        '"order": sorted(state.homes, reverse=True)',
    ),
}


#: Loads what all runs need and forks a run for each line it reads: a copy of the package, and where to write.
NURSERY = """
import os, signal, sys
import hypothesis, numba, numpy, pyarrow.compute, pytest, sqlglot

for line in sys.stdin:
    source, log = line.rstrip("\\n").split("\\t")
    if not (child := os.fork()):
        signal.alarm(PATIENCE)
        written = os.open(log, os.O_WRONLY | os.O_CREAT)
        os.dup2(written, 1)
        os.dup2(written, 2)
        sys.path.insert(0, source)
        os.environ["MUTANT"] = source
        code = pytest.main(sys.argv[1:])
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
# hashes overflow on purpose, which only plain Python warns about; and what is loaded is not rewritten
QUIET = ("RuntimeWarning", "pytest.PytestAssertRewriteWarning")
ARGUMENTS = ["-x", "-q", "--tb=line", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
ARGUMENTS += [word for kind in QUIET for word in ("-W", f"ignore::{kind}")]

Suite: TypeAlias = Callable[[Path], tuple[int, str]]


@pytest.fixture(scope="module")
def suite() -> Iterator[Suite]:
    """Runs the contract suite over a copy of the package; returns the exit code and what was written."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "SKYBAND_KILL": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    code = NURSERY.replace("PATIENCE", str(PATIENCE))
    command = [
        sys.executable,
        "-c",
        code,
        *ARGUMENTS,
        "tests/contract/test_lookahead.py",
        "tests/contract/test_engines.py",
    ]
    with subprocess.Popen(
        command, env=environment, cwd=REPOSITORY, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        asks, answers = nursery.stdin, nursery.stdout

        def run(source: Path) -> tuple[int, str]:
            log = source / "log"
            print(source, log, sep="\t", file=asks, flush=True)
            return int(answers.readline()), log.read_text()

        yield run
        asks.close()


def copy_of_the_package(to: Path) -> Path:
    shutil.copytree(REPOSITORY / "src" / "skyband", to / "skyband", ignore=shutil.ignore_patterns("__pycache__"))
    return to


def test_the_package_itself_passes(suite: Suite, tmp_path: Path) -> None:
    code, written = suite(copy_of_the_package(tmp_path))
    assert code == 0, written[-4000:]


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    file, said, says = MUTANTS[name]
    mutated = copy_of_the_package(tmp_path) / "skyband" / file
    text = mutated.read_text()
    assert text.count(said) == 1, f"{file} says this {text.count(said)} times, not once: {said}"
    mutated.write_text(text.replace(said, says))
    code, written = suite(tmp_path)
    if code != -signal.SIGALRM:
        assert code == 1, f"{name} lives:\n{written[-2000:]}"
        assert "1 failed" in written, written[-2000:]
        assert "test_every_engine_of_the_registry_is_here" not in written, "it died of being a copy"
