"""Server-sent events: frames for pages, changes for programs, a heartbeat where there is nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from skyband.dashboard import limits
from skyband.dashboard.arguments import number
from skyband.dashboard.delivery import Listener
from skyband.dashboard.frames import Program, Watched
from skyband.dashboard.watch import Watch

_BEAT = 1.0  # seconds between heartbeats
_RETRY, _HEARTBEAT = b"retry: 1000\n\n", b"event: beat\ndata: {}\n\n"
_TYPE = "text/event-stream"


class EventStream(StreamingResponse):
    """Events until the client leaves; then, whatever happened, `leave` is called once."""

    def __init__(self, events: AsyncIterator[bytes], leave: Callable[[], None]) -> None:
        super().__init__(events, media_type=_TYPE, headers={"x-accel-buffering": "no"})
        self.leave = leave

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.leave()


def frames(watch: Watch, request: Request) -> Response:
    """Subscribe to frames of the whole state; a slow page gets the newest."""
    given = request.query_params
    watched: Watched | None = None
    if "watch" in given:
        group = number(given["group"], "group", 2**31 - 1) if "group" in given else None
        watched = (given["watch"][: limits.NAME], group)
    if request.method == "HEAD":
        return Response(media_type=_TYPE)
    loop, fresh = asyncio.get_running_loop(), asyncio.Event()
    handle = watch.listen(lambda: _soon(loop, fresh.set), watched)
    return EventStream(_frames(watch, fresh, watched), lambda: watch.leave(handle))


async def _frames(watch: Watch, fresh: asyncio.Event, watched: Watched | None) -> AsyncIterator[bytes]:
    yield _RETRY
    while not watch.closing:
        if not await _woken(fresh):
            yield _HEARTBEAT
            continue
        frame = watch.frame
        detail = frame.details.get(watched, b"null") if watched is not None else b"null"
        yield b'event: frame\nid: %d\ndata: {"head":%b,"detail":%b}\n\n' % (frame.number, frame.head, detail)


def changes(watch: Watch, request: Request, query: str) -> Response:
    """Subscribe to the changes of a query, each of them once, as far as the program reads them."""
    if request.method == "HEAD":
        return Response(media_type=_TYPE)
    loop, fresh = asyncio.get_running_loop(), asyncio.Event()
    program = Program(query, lambda: _soon(loop, fresh.set))
    watch.programs.join(program)
    return EventStream(_changes(watch, fresh, program), lambda: watch.programs.leave(program))


async def _changes(watch: Watch, fresh: asyncio.Event, program: Program) -> AsyncIterator[bytes]:
    yield _RETRY
    while not watch.closing:
        if not await _woken(fresh):
            yield _HEARTBEAT
            continue
        piece, missed = program.take()
        while piece is not None:
            yield piece
            piece, missed = program.take()
        if missed:
            yield b'event: missed\ndata: {"rows":%d}\n\n' % missed


def followed(watch: Watch, listener: Listener) -> Response:
    """What a listener gets that follows one subscriber."""
    return EventStream(_followed(watch, listener), lambda: watch.delivery.leave(listener))


async def _followed(watch: Watch, listener: Listener) -> AsyncIterator[bytes]:
    yield _RETRY
    while not watch.closing:
        listener.ready = True  # the client has read all that was sent, or the system holds it
        if not await _woken(listener.fresh, limits.BEAT):
            yield listener.beat()
        elif (piece := listener.take()) is not None:
            yield piece


async def _woken(fresh: asyncio.Event, patience: float = _BEAT) -> bool:
    """Whether there is something new; False: not within the time of a heartbeat."""
    try:
        await asyncio.wait_for(fresh.wait(), patience)
    except TimeoutError:
        return False
    fresh.clear()
    return True


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call in the event loop, from the watch's thread; nothing if the loop has just closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)
