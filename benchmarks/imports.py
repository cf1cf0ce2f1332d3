"""python -m benchmarks.imports [REPEATS]: what `import skyband` costs, beside `import pyarrow`; prints, stores nothing.

Core-seconds of a whole Python process, medians of alternating repeats. Compiled Python files are used if there are any,
as after an installation: unset PYTHONDONTWRITEBYTECODE.
"""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

CODES = {
    "nothing": "pass",
    "import pyarrow": "import pyarrow",
    "import skyband": "import skyband",
    "a Monitor, before its first push": "import skyband as sb; sb.Monitor(sb.TopK(1, by='x', window=sb.Last(3)))",
}


def core_seconds(code: str) -> float:
    process = subprocess.Popen([sys.executable, "-c", code])
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"{code!r} failed"
    return usage.ru_utime + usage.ru_stime


def main(repeats: int = 10) -> None:
    for code in CODES.values():
        core_seconds(code)  # files into the cache, bytecode onto the disk
    turns = [{name: core_seconds(code) for name, code in CODES.items()} for _ in range(repeats)]
    medians = {name: median(turn[name] for turn in turns) for name in CODES}
    for name, seconds in medians.items():
        print(f"{name:34}{seconds:7.3f} s  {seconds / medians['import pyarrow']:5.2f} of import pyarrow")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
