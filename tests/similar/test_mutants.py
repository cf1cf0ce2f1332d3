"""Mutants of subscriptions on a device: each must die of its tests, on the stand-in (tests/mutation.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

TURNS, POOL, ADAPTER = (f"engines/topk/{name}.py" for name in ("device_turns", "device_pool", "similar_adapter"))
LONG = ("tests/similar/test_device.py", "-k", "long or shorter")
SAID = ("tests/similar/test_device.py", "-k", "does_not_serve")
RETURNS = ("tests/similar/test_device.py", "-k", "later_net_batch")
RANDOM = ("tests/similar/test_device.py", "-k", "processor")

#: name: (file, what it says, what the mutant says, the tests that it must die of)
MUTANTS: dict[str, Mutant] = {
    "no depth falls": (
        TURNS,
        "        settle(lanes, known, block)\n        and lanes.find",
        "        lanes.find",
        LONG,
    ),
    "a depth that falls counts what expires": (TURNS, "keys[some][stamps[some] > bound]", "keys[some]", LONG),
    "a bar is a little too high": (
        TURNS,
        "bars = depths / norms if form == DOT else depths + 0.0",
        "bars = depths / norms + 0.5 if form == DOT else depths + 0.1",
        LONG,
    ),
    "the smallest best is not turned": (TURNS, "-1.0 if turned != (form == DISTANCE) else 1.0", "1.0", RANDOM),
    "a late step has a row of its own": (POOL, "np.where(found.at >= 0, found.at - serial, -1)", "-1", RANDOM),
    "net changes are all changes": (POOL, "net = every[begins[diffs != 0]]", "net = every[begins]", RANDOM),
    "what has been shown is new again": (POOL, "            self.lanes.mark_shown()\n", "", RETURNS),
    "a snapshot forgets what has been shown": (POOL, "(flags & 2) > 0", "flags > 9", RANDOM),
    "rows that some reject are taken": (
        ADAPTER,
        "if self.options.device is not None:\n            raise BatchError(",
        "if False:\n            raise BatchError(",
        SAID,
    ),
}


def test_every_mutant_applies() -> None:
    all_apply(MUTANTS.values())


def test_the_package_itself_passes(suite: Suite, tmp_path: Path) -> None:
    passes(SAID, suite, tmp_path)


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(MUTANTS[name], suite, tmp_path)
