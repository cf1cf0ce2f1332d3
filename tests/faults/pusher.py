"""Processes to be killed: one for each kind pushes a stream, batch by batch, and leaves changes and a snapshot of each.

`python -m faults.pusher FOLDER` loads what they need, once, and forks them for each line that it reads; when they have
ended it writes how many failed. `<kind>/begun` names the process,
`<kind>/changes/<number>` a batch's changes, `<kind>/snapshot` the Monitor and how many batches it has seen; all take
their place by a rename, changes before the snapshot. So after a kill the last batch may be pushed again, and must bring
the same.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from faults.ledger import ROUNDS
from kinds import KINDS, stream

BATCHES = 20 + 6 * ROUNDS
ROWS = 6 * BATCHES


def batches(seed: int) -> list[Any]:
    """A stream cut at random places."""
    ends = np.sort(np.random.default_rng(seed).choice(np.arange(1, ROWS), BATCHES - 1, replace=False))
    rows = stream(ROWS, seed)
    return [rows.slice(begin, end - begin) for begin, end in zip([0, *ends], [*ends, ROWS], strict=True)]


def put(file: Path, *data: bytes) -> None:
    """In one step, and for good."""
    beside = file.with_name(f".{file.name}")
    with beside.open("wb") as out:
        for piece in data:
            out.write(piece)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(file)


def put_changes(file: Path, table: Any) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    put(file, sink.getvalue().to_pybytes())


def get_changes(file: Path) -> Any:
    with pa.memory_map(str(file)) as data:
        return pa.ipc.open_file(data).read_all()


def play(folder: Path, name: str) -> None:
    done, monitor = 0, KINDS[name].monitor()
    if (folder / "snapshot").exists():
        data = (folder / "snapshot").read_bytes()
        done, monitor = int.from_bytes(data[:4], "big"), sb.Monitor.restore(data[4:])
    (folder / "changes").mkdir(parents=True, exist_ok=True)
    put(folder / "begun", b"%d" % os.getpid())
    for number, batch in enumerate(batches(0)):
        if number >= done:
            put_changes(folder / "changes" / f"{number}", monitor.push(batch))
            put(folder / "snapshot", (number + 1).to_bytes(4, "big"), monitor.snapshot())


def fork(folder: Path, name: str) -> None:
    if os.fork() == 0:
        code = 1
        try:
            play(folder / name, name)
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)


def main(folder: Path) -> None:
    first, second = batches(0)[:2]
    for kind in KINDS.values():
        monitor = kind.monitor()
        monitor.push(first)
        sb.Monitor.restore(monitor.snapshot()).push(second)
    for _ in sys.stdin:
        for name in KINDS:
            fork(folder, name)
        ends = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in KINDS]
        print(sum(end not in (0, -signal.SIGKILL) for end in ends), flush=True)  # to be killed is no failure


if __name__ == "__main__":
    main(Path(sys.argv[1]))
