"""kill -9 of a process with a Monitor of each kind, at random moments, again and again; then all changes against the
oracle.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engines.streams import cells
from faults.ledger import ROUNDS, compare
from faults.pusher import BATCHES, batches, get_changes
from kinds import KINDS
from skyband.oracle import Oracle

TESTS = Path(__file__).parents[1]


@contextmanager
def nursery(folder: Path) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-m", "faults.pusher", str(folder)]
    with subprocess.Popen(command, env=env, stdin=-1, stdout=-1, text=True) as process:
        yield process


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    print(file=process.stdin, flush=True)


def failed(process: subprocess.Popen[str]) -> int:
    """How many of this round, when all have ended."""
    assert process.stdout is not None
    return int(process.stdout.readline())


def pushed(folder: Path, kind: str) -> int:
    return len(list((folder / kind / "changes").glob("[0-9]*")))


def kill_at_random(process: subprocess.Popen[str], folder: Path, dice: random.Random) -> None:
    """Each kind's process after a few of the batches that are left to it, at any point of the next."""
    wanted = {}
    for kind in KINDS:
        (folder / kind / "begun").unlink(missing_ok=True)
        wanted[kind] = min(pushed(folder, kind) + dice.randrange(2 * BATCHES // (3 * ROUNDS)), BATCHES - 2)
    begin(process)
    deadline = time.monotonic() + 240
    while wanted:
        assert process.poll() is None and time.monotonic() < deadline
        for kind in [kind for kind in wanted if (folder / kind / "begun").exists()]:
            if pushed(folder, kind) >= wanted[kind]:
                time.sleep(dice.random() * 0.01)
                os.kill(int((folder / kind / "begun").read_text()), signal.SIGKILL)
                del wanted[kind]
        time.sleep(0.002)  # looking is work, too
    assert failed(process) == 0


def test_kill_9_at_random_moments(tmp_path: Path) -> None:
    for name in KINDS:
        (tmp_path / name).mkdir()
    dice = random.Random(1)  # noqa: S311
    with nursery(tmp_path) as process:
        for _ in range(ROUNDS):
            kill_at_random(process, tmp_path, dice)
        assert all(pushed(tmp_path, name) < BATCHES for name in KINDS)  # the last kill, too, was on the way
        begin(process)
        assert failed(process) == 0
    for name, kind in KINDS.items():
        oracle = Oracle(kind.queries, **kind.options)
        expected = [change for batch in batches(0) for change in oracle.push(batch.to_pylist())]
        files = [tmp_path / name / "changes" / f"{number}" for number in range(BATCHES)]
        found = [row for file in files for row in cells(get_changes(file))]
        compare(f"kill -9 of a process with a Monitor: {name}", ROUNDS, found, expected)
