"""A server from which the tests' Spark forks its Python processes: what each would import is imported once, before.

Spark starts `python -m MODULE` for every stream, source and kind of worker: two to four seconds of a core for each. In
the place of `python` it gets a script that asks a server for a fork of itself, with the caller's arguments, environment
and streams. Spark's own Python is what runs under the command in a pipe, and in a cluster.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

SCRIPT = f"""#!/bin/sh
[ "$1" = -m ] || exec {sys.executable} "$@"
exec {sys.executable} -I -S -c '
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    request = json.dumps([sys.argv[3:], dict(os.environ)]).encode()
    socket.send_fds(line, [request], [0, 1, 2])
    line.shutdown(socket.SHUT_WR)
    line.recv(1)  # returns when the other has ended
' SOCKET "$@"
"""


@contextmanager
def forking_python() -> Iterator[str]:
    """The path of the script, while the server runs."""
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    with TemporaryDirectory() as folder:  # the path of a socket must be short
        script, place = Path(folder, "python"), Path(folder, "socket")
        script.write_text(SCRIPT.replace("SOCKET", str(place)))
        script.chmod(0o755)
        command = [sys.executable, "-m", "spark.forked", str(place)]
        with subprocess.Popen(command, env=env, stdin=subprocess.PIPE) as server:
            yield str(script)
            assert server.stdin is not None
            server.stdin.close()  # ends it


def serve(place: str) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen(64)
        import pandas  # noqa: F401
        import pyspark.worker  # noqa: F401

        import skyband.engines.topk.block  # and with it Numba
        import skyband.spark.merge
        import skyband.spark.operator  # noqa: F401

        gc.freeze()  # so that forks share what they only read
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # their exit codes are not read
        while server.fileno() in select.select([server.fileno(), 0], [], [])[0]:
            caller, _ = server.accept()
            request, streams, _, _ = socket.recv_fds(caller, 1 << 20, 3)
            while more := caller.recv(1 << 20):
                request += more
            if os.fork() == 0:
                server.close()
                arguments, environment = json.loads(request)
                become(arguments, environment, streams)
            for stream in streams:
                os.close(stream)
            caller.close()


def become(arguments: list[str], environment: dict[str, str], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
    with suppress(OSError, ValueError):  # who was a daemon has closed it
        sys.stdout.flush()
    os._exit(0)  # to take a large heap apart is half a second


if __name__ == "__main__":
    serve(sys.argv[1])
