"""uvicorn, as the dashboard runs it: silent, and without waiting for connected clients when it stops."""

from __future__ import annotations

import socket

import uvicorn

from skyband.dashboard.app import make_app
from skyband.dashboard.watch import Watch


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, watch: Watch) -> None:
        super().__init__(config)
        self.watch = watch

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.watch.close()
        await super().shutdown(sockets)


def make_server(watch: Watch, token: str | None = None) -> Server:
    """A server that is ready to run."""
    config = uvicorn.Config(
        make_app(watch, token), log_level="warning", timeout_graceful_shutdown=2, lifespan="off", ws="none"
    )
    return Server(config, watch)
