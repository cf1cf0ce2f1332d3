"""Requests to the application without a socket: one event loop, one task per request."""

from __future__ import annotations

import asyncio
from typing import Any

Headers = list[tuple[bytes, bytes]]


async def send(
    app: Any, method: str, path: str, query: bytes = b"", headers: Headers | None = None, body: bytes = b""
) -> tuple[int, bytes]:
    """The status and the first 100,000 bytes of a response; of events only the first, then the client leaves."""
    given = [(b"host", b"localhost"), (b"content-type", b"application/json")] if headers is None else headers
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(errors="replace"),
        "root_path": "",
        "scheme": "http",
        "query_string": query,
        "headers": given,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8710),
    }
    status, found, left, sent = 0, bytearray(), asyncio.Event(), False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        await left.wait()
        return {"type": "http.disconnect"}

    async def take(message: dict[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            return
        if len(found) < 100_000:
            found.extend(message.get("body", b""))
        left.set()

    await app(scope, receive, take)
    return status, bytes(found)
