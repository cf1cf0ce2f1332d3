"""kill -9 of a process with a Monitor, at random moments, again and again; then all changes against the oracle."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contract.streams import cells
from faults.ledger import ROUNDS, compare
from faults.pusher import BATCHES, batches, get_changes
from kinds import KINDS
from skyband.oracle import Oracle

TESTS = Path(__file__).parents[1]


def start(folder: Path, kind: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    return subprocess.Popen([sys.executable, "-m", "faults.pusher", str(folder), kind], env=env)


def kill_at_random(folder: Path, kind: str, dice: random.Random) -> None:
    """After a few of the batches that are left, at any point of the next."""
    (folder / "begun").unlink(missing_ok=True)
    process = start(folder, kind)
    try:
        deadline = time.monotonic() + 240
        while not (folder / "begun").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.002)
        before = len(list((folder / "changes").iterdir()))
        wanted = min(before + dice.randrange(2 * BATCHES // (3 * ROUNDS)), BATCHES - 2)
        while len(list((folder / "changes").iterdir())) < wanted and process.poll() is None:
            time.sleep(0.0005)
        time.sleep(dice.random() * 0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("kind", KINDS)
def test_kill_9_at_random_moments(kind: str, tmp_path: Path) -> None:
    dice = random.Random(kind)  # noqa: S311
    for _ in range(ROUNDS):
        kill_at_random(tmp_path, kind, dice)
    assert start(tmp_path, kind).wait(240) == 0
    oracle = Oracle(KINDS[kind].queries, **KINDS[kind].options)
    expected = [change for batch in batches(0) for change in oracle.push(batch.to_pylist())]
    found = [row for number in range(BATCHES) for row in cells(get_changes(tmp_path / "changes" / f"{number}"))]
    compare(f"kill -9 of a process with a Monitor: {kind}", ROUNDS, found, expected)
