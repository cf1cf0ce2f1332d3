"""A peer as a process of its own environment: it gets ready, starts at a signal, and prints what it found."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.machine import ROOT
from benchmarks.workloads import Missing

FOLDER = ROOT / ".peers"
HEAP = "4g"  # as much as Spark's driver has
OPENS = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.nio", "java.util")]


class Peer:
    """Started with its script and parameters; `go` is what is timed."""

    def __init__(self, name: str, script: str, p: Mapping[str, Any], log: Path) -> None:
        python = FOLDER / name / "bin" / "python"
        if not python.exists():
            raise Missing(f"no environment of {name}. Run: make bench-peers")
        self._adapter = ExitStack()
        self._script, self._log = script, log
        command = [str(python), str(Path(__file__).with_name(script)), json.dumps(p)]
        self._process = self._adapter.enter_context(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._adapter.enter_context(log.open("w")),
                text=True,
                env=os.environ | {"FLINK_ENV_JAVA_OPTS": " ".join([f"-Xmx{HEAP}", *OPENS])},
            )
        )
        self._line("ready")

    def go(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        said: dict[str, Any] = json.loads(self._line("{"))
        return said

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._adapter.close()

    def _line(self, begins: str) -> str:
        """The next line that begins so; others are chatter."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(begins):
                return line
        raise RuntimeError(f"{self._script} ended. Its last words: {self._log.read_text()[-2000:]}")
