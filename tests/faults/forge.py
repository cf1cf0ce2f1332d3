"""Forged snapshots: right digests around hostile arrays and facts, restored and used in a child process.

    python -m faults.forge --scenes 'topk BLOCK' --count 1000 --seed 0     from tests/; without --scenes: all of them
    python -m faults.forge --scenes 'TopKPairs TA' --begin 417 --count 1 --here     one forgery again, in this process

A *scene* is a right snapshot of one kind, algorithm and window. Forgery i of a scene is made from (scene, seed, i)
alone, so that a crash is repeated by its number. The child says which forgery it begins; the parent counts one that
ends the child (a crash), takes too long (a hang), needs too much memory or raises anything but a skyband error, and
goes on with the next. A forgery whose bytes the child has had already is not tried again, and counted apart. With
SKYBAND_LEDGER the counts go into that file, too.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import json
import os
import resource
import select
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import forks
from faults.forgeries import REFUSED, USED, forge, use
from faults.ledger import note
from faults.right_snapshots import right, scenes
from skyband.monitor import dormancy

SECONDS = 20.0  # that one forgery may take; a hang is longer
MEMORY = 1 << 30  # bytes that a child may ask for beyond what it has when it begins
WARM = 600.0  # seconds for a child to load and compile
AGAIN = "again"


def _child(names: list[str], seed: int, begin: int, count: int, trusted: bool) -> None:
    """Go through forgeries; tells on stdout which one begins, and what came of it."""
    faulthandler.enable()
    dormancy.FEWEST = 4  # groups that are gone lose their codes soon
    for name in names:
        right(name), right(name, 7)
        use(name, right(name).data, whole=True)  # kernels are compiled
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    had: set[bytes] = set()
    for number in range(begin, begin + count):
        for name in names:
            what = "not forged yet"
            try:
                what, data = forge(name, seed, number)
                print(json.dumps(["begin", name, number, what]), flush=True)  # and what came of the one before
                digest = hashlib.blake2b(data, digest_size=16, key=name.encode()[:64]).digest()
                came = AGAIN if digest in had else use(name, data, trusted=trusted)
                had.add(digest)
                print(json.dumps([came, name, number]))
            except BaseException:
                print(json.dumps(["error", name, number, what, traceback.format_exc()[-3000:]]))


@dataclass
class Tally:
    """What came of the forgeries."""

    refused: int = 0
    used: int = 0
    again: int = 0  # not tried a second time
    broken: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return self.refused + self.used + len(self.broken)

    def counts(self) -> dict[str, int]:
        return {"tried": self.tried, "refused": self.refused, "broken": len(self.broken), "again": self.again}


def run(names: list[str], seed: int, count: int, begin: int = 0, most: int = 50, *, trusted: bool = False) -> Tally:
    """Forgeries of these scenes in child processes; at most so many broken ones."""
    tally, todo = Tally(), [(names, begin, count)]
    while todo and len(tally.broken) < most:
        some, first, many = todo.pop(0)
        at = _run_child(some, tally, seed, first, many, trusted)
        if at is None:
            continue
        name, number = at  # the child is gone: the rest of this round, then all later rounds
        after = some[some.index(name) + 1 :]
        if after:
            todo.append((after, number, 1))
        if number + 1 < first + many:
            todo.append((some, number + 1, first + many - number - 1))
    return tally


def _run_child(
    names: list[str], tally: Tally, seed: int, begin: int, count: int, trusted: bool
) -> tuple[str, int] | None:
    """Returns the forgery that ended the child, or None."""
    child = forks.start("faults.forge", "_child", names, seed, begin, count, trusted)
    os.set_blocking(child.stderr.fileno(), False)
    current: tuple[str, int] | None = None
    what = ""
    why, buffer, said, limit = "crash", b"", b"", time.monotonic() + WARM
    while True:
        ready, _, _ = select.select([child.stdout, child.stderr], [], [], max(0.0, limit - time.monotonic()))
        if not ready:
            child.kill()
            why = "hang"
            break
        if child.stderr in ready:
            said = (said + (child.stderr.read() or b""))[-4000:]
        chunk = os.read(child.stdout.fileno(), 1 << 16) if child.stdout in ready else None
        if chunk == b"":
            break
        buffer += chunk or b""
        *lines, buffer = buffer.split(b"\n")
        for text in lines:
            kind, name, number, *more = json.loads(text)
            if kind == "begin":
                current, what = (name, number), more[0]
            else:
                current = None
                tally.refused += kind == REFUSED
                tally.used += kind == USED
                tally.again += kind == AGAIN
                if kind == "error":
                    tally.broken.append(f"error: {name!r} seed {seed} number {number}: {more[0]}\n{more[1]}")
            limit = time.monotonic() + SECONDS
    code = child.wait()
    if current is not None:
        tally.broken.append(
            f"{why}: {current[0]!r} seed {seed} number {current[1]}: {what}\n{said.decode(errors='replace')}"
        )
    elif code:
        raise RuntimeError(f"the child failed before any forgery: {said.decode(errors='replace')}")
    return current


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", default="", help="a part of their names; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--count", type=int, default=100, help="forgeries of each scene")
    parser.add_argument("--most", type=int, default=50, help="broken ones before it stops")
    parser.add_argument("--trusted", action="store_true", help="as if they were trusted: it breaks")
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    names = [name for name in scenes() if given.scenes in name]
    if given.here:
        dormancy.FEWEST = 4
        for name in names:
            for number in range(given.begin, given.begin + given.count):
                what, data = forge(name, given.seed, number)
                print(name, number, what, flush=True)
                print(use(name, data, trusted=given.trusted), flush=True)
        return
    begun = time.monotonic()
    tally = run(names, given.seed, given.count, given.begin, given.most, trusted=given.trusted)
    print("\n\n".join(tally.broken))
    kinds = {kind: sum(one.startswith(kind) for one in tally.broken) for kind in ("crash", "hang", "error")}
    print(f"{len(names)} scenes, {tally.tried} forged: {tally.refused} refused, {tally.used} used, {kinds}")
    note({"forged": given.scenes.strip() or "all", **tally.counts()})
    print(f"{(time.monotonic() - begun) / max(1, tally.tried) * 1000:.1f} ms each")
    return


if __name__ == "__main__":
    main()
