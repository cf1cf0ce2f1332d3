"""Start the server: check the arguments, print the address, serve until Ctrl-C."""

from __future__ import annotations

import ipaddress
import socket
import sys
from pathlib import Path
from typing import Any, BinaryIO

from skyband.dashboard.limits import CONNECTIONS, Settings
from skyband.errors import QueryError, RunError, SkybandError
from skyband.query.kinds import Query

_FILES = 100  # that a server has open besides its connections


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allow_files(needed: int) -> None:
    """Let this process open so many files and connections; where the system does not, say so."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < needed:
        print(
            f"skyband: this system lets a process open {most:,} files, and the connections of this server may need "
            f"{needed:,}. Raise it (ulimit -Hn {needed}), or give fewer --listeners.",
            file=sys.stderr,
        )


def serve(
    chosen: dict[str, Any] | None,
    queries: dict[str, Query],
    *,
    root: Path,
    host: str = "127.0.0.1",
    port: int = 8710,
    token: str | None = None,
    pipe: BinaryIO | None = None,
    settings: Settings | None = None,
) -> None:
    """Serve the page until it is stopped. chosen: the first stream, as PUT /api/stream takes it."""
    settings = settings or Settings()
    if not is_loopback(host) and not token:
        raise QueryError(
            f"--host {host}: others could reach this address, so it needs a token. Give one by --token or "
            "SKYBAND_TOKEN, such as the output of: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if token is not None and len(token) < 8:
        raise QueryError("a token has at least 8 characters.")
    try:
        from skyband.dashboard.server import make_server
        from skyband.dashboard.watch import Watch
    except ImportError as error:
        raise SkybandError(
            f'skyband serve needs Starlette and uvicorn: pip install "skyband[dashboard]" ({error})'
        ) from error
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        raise RunError(f"{host}:{port}: {error.strerror}. Is another server there? Choose another --port.") from None
    name = "" if chosen is None else str(chosen["stream"])
    allow_files(CONNECTIONS + settings.listeners + _FILES)
    watch = Watch(root, pipe, name if name.startswith("kafka://") else None, settings)
    watch.start()
    try:
        if chosen is not None:
            watch.call(watch.choose, chosen, queries)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/" + ("" if token is None else "?token=...")
        print(f"skyband: watching at {address} (Ctrl-C stops)", file=sys.stderr, flush=True)
        make_server(watch, token).run(sockets=[listening])
    finally:
        watch.stop()
        listening.close()
