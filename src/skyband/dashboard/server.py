"""uvicorn, as the dashboard runs it: silent, with limits on connections, without waiting for clients when it stops.

uvicorn itself has no time-out for headers or for a client that does not read. So each connection notes since when it
waits for something, and the server looks at all of them ten times a second: some 20 µs for 100 connections.
"""

from __future__ import annotations

import asyncio
import socket
import time

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from skyband.dashboard import limits
from skyband.dashboard.app import make_app
from skyband.dashboard.health import Health
from skyband.dashboard.watch import Watch


class Connection(H11Protocol):
    """A connection that is closed when its client keeps the server waiting."""

    since = 0.0  # when the wait began that is going on
    unread = 0  # bytes that waited for the client when it last read something
    listeners = 0  # that the server takes besides

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = time.monotonic()
        if (connected := transport.get_extra_info("socket")) is not None:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.UNREAD)
        if len(self.connections) > limits.CONNECTIONS + self.listeners:
            late = [one for one in self.connections if isinstance(one, Connection) and one.incomplete]
            min(late, key=lambda one: one.since).drop()  # at worst this one, which has sent nothing yet

    def on_response_complete(self) -> None:
        self.since = time.monotonic()
        super().on_response_complete()

    @property
    def silent(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def incomplete(self) -> bool:
        """Whether the client has not sent the whole of a request."""
        return not self.transport.is_closing() and (self.silent or bool(self.cycle.more_body))

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:  # a request has begun
            self.since = time.monotonic()

    def overdue(self, now: float) -> str | None:
        """The reason to close it, if there is one."""
        unread = self.transport.get_write_buffer_size()
        if self.flow.write_paused:
            if unread < self.unread or not self.unread:
                self.since, self.unread = now, unread
            return "a client does not read" if now - self.since > limits.READ_IN else None
        if self.unread:
            self.since, self.unread = now, 0
        if self.silent:
            return "a request has no end of its headers" if now - self.since > limits.HEADERS_IN else None
        late = self.cycle.more_body and now - self.since > limits.BODY_IN
        return "a request has no end" if late else None

    def drop(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # what waits for the client is not sent any more
        else:
            self.transport.close()


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, watch: Watch) -> None:
        super().__init__(config)
        self.watch = watch

    async def on_tick(self, counter: int) -> bool:
        drop_overdue(list(self.server_state.connections), self.watch.health)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.watch.close()
        await super().shutdown(sockets)


def drop_overdue(connections: list[object], health: Health) -> None:
    """Close the connections that keep the server waiting, and count them."""
    now = time.monotonic()
    for one in connections:
        try:
            if isinstance(one, Connection) and (reason := one.overdue(now)) is not None:
                one.drop()
                if not one.silent:  # keep-alive connections end like this, too
                    health.failed("connection", reason)
        except Exception as error:  # looked at again at the next tick
            health.failed("connection", error)


def make_server(watch: Watch, token: str | None = None) -> Server:
    """A server that is ready to run."""
    listeners = watch.settings.listeners
    config = uvicorn.Config(
        make_app(watch, token),
        http=type("Connection", (Connection,), {"listeners": listeners}),
        log_level="error",
        timeout_graceful_shutdown=2,
        timeout_keep_alive=int(limits.HEADERS_IN),
        limit_concurrency=4 * (limits.CONNECTIONS + listeners),  # many may come at once, before the first is closed
        lifespan="off",
        ws="none",
    )
    return Server(config, watch)
