"""python -m benchmarks.alternate BEFORE EXPERIMENT ... [--rounds 2]: two checkouts, turn by turn, on one machine.

Runs each experiment, as BEFORE has it, in the checkout BEFORE and in this one, alternating, and compares the seconds of
each contestant: the ratio is before / after (medians), so above 1 is faster now. Yardsticks that do not use skyband
(argsort and the like) are measured too: their ratios say how far noise goes. Rows go to benchmarks/alternated/.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import ROOT

FOLDER = ROOT / "benchmarks" / "alternated"
Key = tuple[str, int, str]  # cell, its number, contestant


def measure(checkout: Path, experiment: str, source: Path) -> dict[Key, list[float]]:
    """One run of an experiment of the folder `source` in a checkout: seconds of all repeats."""
    path = os.pathsep.join([str(checkout / "src"), str(checkout)])
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.run", experiment, "--results", folder, "--from", str(source)]
        env = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{experiment} failed in {checkout}:\n{done.stderr[-4000:]}")
        rows = [json.loads(line) for line in (Path(folder) / f"{experiment}.jsonl").read_text().splitlines()]
    assert all(row["right"] for row in rows), "a wrong answer is no measurement"
    return {(row["cell"], row["number"], row["contestant"]): row["seconds"] for row in rows}


def commit(checkout: Path) -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=checkout, check=True, capture_output=True)
    return done.stdout.decode().strip()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alternate", description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("experiments", nargs="+")
    parser.add_argument("--rounds", type=int, default=2)
    said = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    source = said.before.resolve() / "benchmarks" / "experiments"
    for experiment in said.experiments:
        before: dict[Key, list[float]] = {}
        after: dict[Key, list[float]] = {}
        for _ in range(said.rounds):
            for found, checkout in ((before, said.before.resolve()), (after, ROOT)):
                for key, seconds in measure(checkout, experiment, source).items():
                    found.setdefault(key, []).extend(seconds)
        common = {"before_commit": commit(said.before), "after_commit": commit(ROOT), "load": os.getloadavg()[0]}
        with (FOLDER / f"{experiment}.jsonl").open("w") as file:
            for key in before.keys() & after.keys():
                ratio = statistics.median(before[key]) / statistics.median(after[key])
                row = {"cell": key[0], "number": key[1], "contestant": key[2], "ratio": round(ratio, 3)}
                file.write(json.dumps(row | {"before": before[key], "after": after[key]} | common) + "\n")
                print(f"{experiment:18} {key[0][:34]:34} {key[2][:22]:22} {ratio:6.2f}", flush=True)


if __name__ == "__main__":
    main()
