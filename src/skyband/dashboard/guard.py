"""Access: by token, or from this machine only. Every error is JSON that says what, why and what instead."""

from __future__ import annotations

import hmac
import re
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from skyband.dashboard.health import Health, text_of
from skyband.dashboard.values import encoded
from skyband.dashboard.watch import Busy

LOCAL = ("localhost", "127.0.0.1", "::1")
JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
_COOKIE = "skyband_token"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z`'\"(/])")


def takes_tables(request: Request) -> bool:
    """Whether a request may bring a table of Arrow."""
    return bool(request.scope["path"].endswith(("/subscriptions", "/unsubscribe")))


def kind_of(request: Request) -> str:
    """The content type of a request."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


class Refused(Exception):
    """A request that is not served: its status, why, and what to do instead."""

    def __init__(self, status: int, why: str, instead: str = "See /docs.") -> None:
        super().__init__(f"{why} {instead}")
        self.status, self.why, self.instead = status, why, instead


class Json(JSONResponse):
    """JSON of any values: half a character becomes a question mark."""

    def render(self, content: Any) -> bytes:
        return encoded(content)


class Guard:
    """Middleware: refuse requests without access, add headers to every response, and answer for what fails inside."""

    def __init__(self, app: Any, token: str | None, health: Health) -> None:
        self.app, self.token, self.health = app, token, health

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, started = Request(scope), False

        async def sent(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                extra = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        try:
            response = self._response(request)
            await (self.app if response is None else response)(scope, receive, sent)
        except ClientDisconnect:
            return
        except Exception as error:  # a bug: counted, and the server keeps running
            self.health.failed("request", error)
            if started:
                raise
            await failure(request, 500, text_of(error), "This is a bug of skyband: please report it.")(
                scope, receive, sent
            )

    def _response(self, request: Request) -> Response | None:
        """The response to a request that is refused or redirected; None: let it pass."""
        if self.token is None:
            if _host(request.headers.get("host", "")) not in LOCAL:
                why = "this server answers only requests from its own machine."
                return failure(request, 403, why, "Ask localhost or 127.0.0.1, or start with --host and --token.")
        elif not self._knows(request):
            why = "a token is needed."
            return failure(request, 401, why, "Open /?token=... once, or send Authorization: Bearer ...")
        elif "token" in request.query_params and request.scope["path"] == "/":
            moved = RedirectResponse("/", 303)
            moved.set_cookie(_COOKIE, self.token, httponly=True, samesite="strict")
            return moved
        if request.method not in ("GET", "HEAD"):
            origin = request.headers.get("origin")
            if origin is not None and _netloc(origin) != request.headers.get("host"):
                why = "a page of another site may not change anything here."
                return failure(request, 403, why, "Use the page of this server, or send no Origin.")
            kind = kind_of(request)
            if request.method != "DELETE" and kind != JSON and not (kind == ARROW and takes_tables(request)):
                return failure(request, 415, "send JSON.", "Add the header Content-Type: application/json.")
        return None

    def _knows(self, request: Request) -> bool:
        said = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = (said, request.cookies.get(_COOKIE, ""), request.query_params.get("token", ""))
        return any(hmac.compare_digest(one.encode(errors="replace"), str(self.token).encode()) for one in given)


def _host(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


# --- errors


def failure(
    request: Request, status: int, why: str, instead: str, *, message: str | None = None, at: int | None = None
) -> Response:
    """An error as JSON. `message` is for people: why and what instead, in one text."""
    what = f"{request.method} {request.scope['path']}"[:200]
    error = {"message": message or f"{why} {instead}", "what": what, "why": why, "instead": instead}
    headers = {"retry-after": "1"} if status == 503 else None
    return Json({"error": error | ({} if at is None else {"at": at})}, status, headers)


async def refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return failure(request, error.status, error.why, error.instead)


async def wrong(request: Request, error: Exception) -> Response:
    """An error of skyband: its first sentence says what is wrong, the others what to do."""
    why, *instead = _SENTENCE.split(getattr(error, "said", str(error)), maxsplit=1)
    status = 503 if isinstance(error, Busy) else 400
    at = getattr(error, "at", None)
    return failure(request, status, why, " ".join(instead) or "See /docs.", message=str(error), at=at)


async def missing(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    why = "there is nothing here." if status == 404 else f"{request.method} is not possible here."
    return failure(request, status, f"{request.scope['path'][:200]}: {why}", "See /docs.")
