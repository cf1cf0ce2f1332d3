"""Children of one process that has imported what they need: what runs in a process of its own imports nothing again.

A fresh Python with skyband and its engines is a second and a half of a core, and tests of faults start dozens. No
kernel is loaded before a child is forked.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any


class Child:
    """A function that runs in a fork of the server; its output is read from pipes."""

    def __init__(self, line: socket.socket, call: tuple[str, str, tuple[Any, ...]]) -> None:
        self._line = line
        (out, its_out), (err, its_err) = os.pipe(), os.pipe()
        self.stdout, self.stderr = os.fdopen(out, "rb", 0), os.fdopen(err, "rb", 0)
        socket.send_fds(line, [json.dumps(call).encode() + b"\n"], [its_out, its_err])
        os.close(its_out)
        os.close(its_err)
        self.pid = self._number()

    def _number(self) -> int:
        text = b""
        while not text.endswith(b"\n"):
            more = self._line.recv(1)
            if not more:
                raise RuntimeError("the server of forks has ended")
            text += more
        return int(text)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def finish(self, seconds: float) -> tuple[int, str, str]:
        """Its exit code and what it wrote; it is killed after so many seconds."""
        timer = threading.Timer(seconds, self.kill)
        timer.start()
        with ThreadPoolExecutor(1) as pool:
            err = pool.submit(self.stderr.readall)
            out = self.stdout.readall()
            said = err.result()
        timer.cancel()
        return self.wait(), out.decode(), said.decode(errors="replace")

    def wait(self) -> int:
        """Its exit code, as subprocess gives it. Once; its pipes are closed."""
        code = self._number()
        self.stdout.close()
        self.stderr.close()
        return code


@functools.cache
def _server(environment: tuple[tuple[str, str], ...]) -> socket.socket:
    """The end of a line to a server with these variables, which ends with this process."""
    ours, its = socket.socketpair()
    here = str(Path(__file__).parent)
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, **dict(environment), "PYTHONPATH": path}
    command = [sys.executable, "-X", "faulthandler", "-m", "forks", str(its.fileno())]
    process = subprocess.Popen(command, env=env, cwd=here, pass_fds=[its.fileno()])
    its.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def start(module: str, function: str, *arguments: Any, environment: Mapping[str, str] | None = None) -> Child:
    """Begin `function(*arguments)` of a module below tests/; one child of these variables at a time."""
    return Child(_server(tuple((environment or {}).items())), (module, function, arguments))


def _serve(line: socket.socket) -> None:
    import faults.test_injection  # noqa: F401
    import skyband.engines.topk.block  # noqa: F401  # and with it Numba

    while True:
        request, streams, _, _ = socket.recv_fds(line, 1 << 16, 2)
        while request and not request.endswith(b"\n"):
            request += line.recv(1 << 16)
        if not request:
            return
        if not (child := os.fork()):
            line.close()
            _become(json.loads(request), streams)
        for stream in streams:
            os.close(stream)
        line.sendall(f"{child}\n".encode())
        line.sendall(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())


def _become(call: tuple[str, str, list[Any]], streams: list[int]) -> None:
    code = 1
    try:
        for number, stream in enumerate(streams, 1):
            os.dup2(stream, number)
            os.close(stream)
        module, function, arguments = call
        getattr(importlib.import_module(module), function)(*arguments)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
