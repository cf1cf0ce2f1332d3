"""The contract suite finds what breaks an engine: each mutant here must die of it.

A mutant is a copy of the package with one exact replacement in one file. The suite runs over it in a process of its
own, with the kernels as plain Python (NUMBA_DISABLE_JIT: no compiling) and few examples (SKYBAND_KILL), and stops at
the first failure. A pattern that does not occur exactly once fails loudly: code has moved, mend the mutant.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PATIENCE = 200  # seconds; a mutant that never ends is a dead one
STRICT = "kernels/strict.py"
AHEAD = "kernels/lookahead.py"
READING = "kernels/reading.py"
RECORDS = "kernels/records.py"
ROUTING = "kernels/routing.py"
ENGINE = "engines/certain/sa.py"

#: name: (file, what it says, what the mutant says)
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
    "expiry looks one too late": (STRICT, "if oldest <= now - length:", "if oldest < now - length:"),
    "count windows are one longer": (
        STRICT,
        'if views[v]["oldest"] <= bound:',
        'if views[v]["oldest"] < bound:',
    ),
    "members stay at the bound": (STRICT, 'if objects[i]["stamp"] <= bound:', 'if objects[i]["stamp"] < bound:'),
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
        'np.union1d(touched, np.flatnonzero(self.groups["due"] <= arrivals.clock)) if self.timed else touched',
        "touched",
    ),
    "the clock is not carried from push to push": (
        "monitor.py",
        "self._state.clock, self._state.ahead = clock, None",
        "self._state.ahead = None",
    ),
    "the clock is not carried from group to group": (
        "standing.py",
        "now=push.clocks[rows] if push.clocks is not None and self.timed else",
        "now=push.times[rows] if push.times is not None and self.timed else",
    ),
    "the clock does not pass rows that are rejected": (
        "monitor.py",
        "np.where(accepted, moments, BEGINNING)",
        "np.where(True, moments, BEGINNING)",
    ),
    "no expiry after the last arrival": (
        ENGINE,
        'visits["last"] = arrivals.clock if self.timed else',
        'visits["last"] = arrivals.clock - 1 if self.timed else',
    ),
    "late rows are never too late": ("standing.py", "too_late[rows[ages >= limit]] = True\n", "limit += 1\n"),
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
    "dropped objects stay alive": (
        STRICT,
        '                        alive[objects[i]["serial"] - serial] = False',
        "                        pass",
    ),
    "a run loses its last record when it moves": (
        RECORDS,
        "for i in range(size - 1, -1, -1):",
        "for i in range(size - 2, -1, -1):",
    ),
    "packing forgets where the run was": (
        RECORDS,
        'to = tally[0] + groups[g]["head"] - groups[g]["start"]',
        "to = tally[0]",
    ),
    "steps at an instant find a later row": (
        ROUTING,
        'if now[middle] < changes[i]["instant"]:',
        'if now[middle] <= changes[i]["instant"]:',
    ),
    "numbers do not go on": ("standing.py", "self.counts = before.copy()", "self.counts = 0 * before"),
    # --- looking ahead
    "look-ahead: an older tie counts": (
        AHEAD,
        'hopeless[i] = size == K and best[0] > arrivals[i]["key"]',
        'hopeless[i] = size == K and best[0] >= arrivals[i]["key"]',
    ),
    "look-ahead: a newer tie does not count": (
        AHEAD,
        'size == K and best[0] >= arrivals[i]["key"]',
        'size == K and best[0] > arrivals[i]["key"]',
    ),
    "look-ahead: K - 1 older ones": (
        AHEAD,
        "    best = np.empty(K)\n",
        "    best = np.empty(max(1, K - 1))\n",
    ),
    "look-ahead: no older ones": (
        AHEAD,
        'hopeless[i] = size == K and best[0] > arrivals[i]["key"]',
        "hopeless[i] = True",
    ),
    "look-ahead: no newer ones": (
        AHEAD,
        'hopeless[i] = hopeless[i] and size == K and best[0] >= arrivals[i]["key"]',
        "hopeless[i] = hopeless[i]",
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
        '                if arrivals[i]["stamp"] == arrivals[i]["now"]:\n                    hopeless[i] = size',
        '                if arrivals[i]["stamp"] <= arrivals[i]["now"]:\n                    hopeless[i] = size',
    ),
    "look-ahead: late ones are counted on": (
        AHEAD,
        '                if arrivals[i]["stamp"] == arrivals[i]["now"]:\n                    hopeless[i] = hopeless[i]',
        '                if arrivals[i]["stamp"] <= arrivals[i]["now"]:\n                    hopeless[i] = hopeless[i]',
    ),
    "look-ahead: the smallest k": (
        ENGINE,
        'int(self.queries["k"].max()), int(self.queries["length"].min())',
        'int(self.queries["k"].min()), int(self.queries["length"].min())',
    ),
    "look-ahead: the largest window": (
        ENGINE,
        'int(self.queries["k"].max()), int(self.queries["length"].min())',
        'int(self.queries["k"].max()), int(self.queries["length"].max())',
    ),
    "look-ahead: the heap loses its order": (
        AHEAD,
        "if child + 1 < size and best[child + 1] < best[child]:",
        "if False:",
    ),
    # --- snapshots
    "snapshot: no views": (ENGINE, '"views": self.views.copy()', '"views": _views(len(self.views))'),
    "snapshot: no objects' marks": (
        ENGINE,
        "self.objects, self.groups, self.views = objects.copy(), groups.copy(), views.copy()",
        'self.objects, self.groups, self.views = objects.copy(), groups.copy(), views.copy()\n        self.objects["shown"] = self.objects["inside"]',
    ),
    "snapshot: no groups' newest": (
        ENGINE,
        'groups["room"] = groups["size"]\n',
        'groups["room"] = groups["size"]\n        groups["newest"] = -NEVER\n',
    ),
    "snapshot: no due": (
        ENGINE,
        'groups["room"] = groups["size"]\n',
        'groups["room"] = groups["size"]\n        groups["due"] = NEVER\n',
    ),
    "snapshot: no counts": (
        "storing.py",
        "= home.counts, home.moments\n",
        "= 0 * home.counts, home.moments\n",
    ),
    "snapshot: no moments": (
        "storing.py",
        "= home.counts, home.moments\n",
        "= home.counts, 0 * home.moments\n",
    ),
    "snapshot: no clock": ("storing.py", '"clock": state.clock', '"clock": -(2**62)'),
    "snapshot: no serial": ("storing.py", '"serial": state.serial', '"serial": 0'),
    "snapshot: no groups": ("storing.py", "        if table.num_rows:\n", "        if False:\n"),
    "snapshot: no lanes": ("storing.py", '"lanes": home.lanes.tolist()', '"lanes": [0] * len(home.lanes)'),
    "snapshot: no order of queries": (
        "storing.py",
        '"order": list(state.homes)',
        '"order": sorted(state.homes, reverse=True)',
    ),
}


def run_suite(source: Path) -> subprocess.CompletedProcess[str] | None:
    """The contract suite over this copy of the package; None: it did not end."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "NUMBA_DISABLE_JIT": "1",
        "SKYBAND_KILL": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MUTANT": str(source),
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
    # hashes overflow on purpose, which only plain Python warns about
    command += ["-W", "ignore::RuntimeWarning", "--tb=line", "tests/contract/test_engines.py"]
    try:
        return subprocess.run(
            command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return None


def copy_of_the_package(to: Path) -> Path:
    shutil.copytree(REPOSITORY / "src" / "skyband", to / "skyband", ignore=shutil.ignore_patterns("__pycache__"))
    return to


def test_the_package_itself_passes(tmp_path: Path) -> None:
    done = run_suite(copy_of_the_package(tmp_path))
    assert done is not None
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_dies(name: str, tmp_path: Path) -> None:
    file, said, says = MUTANTS[name]
    mutated = copy_of_the_package(tmp_path) / "skyband" / file
    text = mutated.read_text()
    assert text.count(said) == 1, f"{file} says this {text.count(said)} times, not once: {said}"
    mutated.write_text(text.replace(said, says))
    done = run_suite(tmp_path)
    if done is not None:
        assert done.returncode == 1, f"{name} lives:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert "1 failed" in done.stdout, done.stdout[-2000:]
        assert "test_every_engine_of_the_registry_is_here" not in done.stdout, "it died of being a copy"
