"""The machine, versions and commit of a measured row. No hostnames, no paths."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("numpy", "numba", "pyarrow", "pyspark", "skyband"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cpu": _cpu(), "cores": os.cpu_count(), "memory_gib": round(memory, 1)}


def processor_ticks() -> dict[int, int]:
    """Ticks of processor time that this process and all below it have had so far, by process."""
    parents: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended since
            fields = path.read_text().rpartition(")")[2].split()
            ticks[int(path.parent.name)] = int(fields[11]) + int(fields[12])
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    ours = [os.getpid()]
    for number in ours:
        ours += parents.get(number, [])
    return {number: ticks[number] for number in ours if number in ticks}


def processor_seconds(before: dict[int, int]) -> float:
    """Seconds of all cores since then, of processes that are still there: a busy machine changes them little."""
    now = processor_ticks()
    return sum(spent - before.get(number, 0) for number, spent in now.items()) / os.sysconf("SC_CLK_TCK")


def commit() -> tuple[str, bool]:
    """The short hash, and whether the code differs from it; results and figures are no code."""
    code = (".", ":!benchmarks/results", ":!benchmarks/figures")
    try:
        return _git("rev-parse", "--short", "HEAD"), bool(_git("status", "--porcelain", "--", *code))
    except (OSError, subprocess.CalledProcessError):
        return "unknown", True


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
