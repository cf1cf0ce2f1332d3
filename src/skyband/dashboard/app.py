"""The page, the JSON API and server-sent events: a thin layer over the `Watch`."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from skyband.dashboard import limits
from skyband.dashboard.boards import plain
from skyband.dashboard.frames import Subscriber
from skyband.dashboard.openapi import described
from skyband.dashboard.streams import offered
from skyband.dashboard.watch import Watch
from skyband.errors import QueryError, SkybandError
from skyband.explain import explain
from skyband.query.kinds import Query
from skyband.query.sql.parser import sql

LOCAL = ("localhost", "127.0.0.1", "::1")
_COOKIE = "skyband_token"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "html": "text/html"}
_STATIC = ("style.css", "app.js", "plane.js", "api.js", "icon.svg")
_BEAT = 1.0  # seconds between heartbeats


class Refused(Exception):
    """A request that is not served: its status, and why."""

    def __init__(self, status: int, why: str, at: int | None = None) -> None:
        super().__init__(why)
        self.status, self.at = status, at


def make_app(watch: Watch, token: str | None = None) -> Starlette:
    """The web application over a watch; with a token nothing is served without it."""
    api = _Api(watch)
    routes = [
        Route("/", _page("index.html")),
        Route("/docs", _page("api.html")),
        *(Route(f"/static/{name}", _page(name)) for name in _STATIC),
        Route("/openapi.json", _described),
        Route("/api/state", api.state),
        Route("/api/streams", api.streams),
        Route("/api/stream", api.choose, methods=["PUT"]),
        Route("/api/stream", api.control, methods=["PATCH"]),
        Route("/api/check", api.check, methods=["POST"]),
        Route("/api/queries", api.queries, methods=["GET"]),
        Route("/api/queries", api.add, methods=["POST"]),
        Route("/api/queries/{name}", api.query, methods=["GET"]),
        Route("/api/queries/{name}", api.replace, methods=["PUT"]),
        Route("/api/queries/{name}", api.drop, methods=["DELETE"]),
        Route("/api/queries/{name}/answer", api.answer),
        Route("/api/queries/{name}/changes", api.changes),
        Route("/api/events", api.events),
    ]
    app = Starlette(
        routes=routes, exception_handlers={Refused: _refused, SkybandError: _wrong, 404: _missing, 405: _missing}
    )
    app.add_middleware(_Guard, token=token)
    return app


class _Guard:
    """Access by token, or from this machine only; and the headers of every response."""

    def __init__(self, app: Any, token: str | None) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        response = self._answer(request)

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                extra = {"content-security-policy": _POLICY, "x-content-type-options": "nosniff"}
                extra |= {"referrer-policy": "no-referrer", "cache-control": "no-store"}
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in extra.items())]
            await send(message)

        await (self.app if response is None else response)(scope, receive, sent)

    def _answer(self, request: Request) -> Response | None:
        """The response to a request that is refused or redirected; None: let it pass."""
        if self.token is None:
            if _host(request.headers.get("host", "")) not in LOCAL:
                return _error(403, "this server answers only requests from its own machine, to localhost or 127.0.0.1.")
        elif not self._knows(request):
            return _error(401, "a token is needed: open /?token=... once, or send Authorization: Bearer ...")
        if self.token is not None and "token" in request.query_params and request.url.path == "/":
            moved = RedirectResponse("/", 303)
            moved.set_cookie(_COOKIE, self.token, httponly=True, samesite="strict")
            return moved
        if request.method not in ("GET", "HEAD"):
            origin = request.headers.get("origin")
            if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
                return _error(403, "a page of another site may not change anything here.")
            kind = request.headers.get("content-type", "").partition(";")[0].strip()
            if request.method != "DELETE" and kind != "application/json":
                return _error(415, "send JSON, with the header Content-Type: application/json.")
        return None

    def _knows(self, request: Request) -> bool:
        said = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = (said, request.cookies.get(_COOKIE, ""), request.query_params.get("token", ""))
        return any(hmac.compare_digest(one.encode(), str(self.token).encode()) for one in given)


def _host(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _error(status: int, why: str, at: int | None = None) -> JSONResponse:
    return JSONResponse({"error": {"message": why} | ({} if at is None else {"at": at})}, status)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _error(error.status, str(error), error.at)


async def _wrong(_: Request, error: Exception) -> Response:
    return _error(400, str(error), getattr(error, "at", None))


async def _missing(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    why = "there is nothing here" if status == 404 else f"{request.method} is not possible here"
    return _error(status, f"{request.url.path}: {why}. See /docs.")


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    text = files("skyband.dashboard").joinpath("static", name).read_bytes()

    async def page(_: Request) -> Response:
        return Response(text, media_type=_TYPES[name.rpartition(".")[2]] + "; charset=utf-8")

    return page


async def _described(_: Request) -> Response:
    return JSONResponse(described())


class _Api:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    async def _do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await run_in_threadpool(self.watch.call, function, *arguments)

    # --- the stream

    async def state(self, _: Request) -> Response:
        return JSONResponse(await self._do(self.watch.look))

    async def streams(self, _: Request) -> Response:
        found = await run_in_threadpool(offered, self.watch.root)
        if self.watch.pipe is not None:
            found = [{"name": "-", "kind": "stdin"}, *found]
        if self.watch.topic is not None:
            found = [{"name": self.watch.topic, "kind": "topic"}, *found]
        return JSONResponse(found)

    async def choose(self, request: Request) -> Response:
        roles = dict.fromkeys(("stream", "id", "time", "part", "value"), str)
        body = await _body(request, {**roles, "keep": list, "rate": float, "paused": bool})
        if not body.get("stream"):
            raise QueryError('"stream" is missing: name the stream to watch. GET /api/streams lists them.')
        queries = await self._do(self._queries) if request.query_params.get("queries") == "keep" else {}
        await self._do(self.watch.choose, body, queries)
        return JSONResponse(await self._do(self.watch.look))

    def _queries(self) -> dict[str, Query]:
        board = self.watch.board()
        return {} if board.fixed else dict(board.monitor.queries)  # type: ignore[union-attr]

    async def control(self, request: Request) -> Response:
        body = await _body(request, {"rate": float, "paused": bool})
        await self._do(lambda: self.watch.control(paused=body.get("paused"), rate=body.get("rate", "")))
        return JSONResponse(await self._do(self.watch.look))

    # --- queries

    async def check(self, request: Request) -> Response:
        query = _query(await _body(request, {"sql": str, "query": dict}))
        try:
            text = str(explain(query))
        except SkybandError as error:
            text = str(error)
        return JSONResponse({"sql": query.to_sql(), "query": plain(query.to_dict()), "explain": text})

    async def queries(self, _: Request) -> Response:
        return JSONResponse((await self._do(self.watch.look))["queries"])

    async def add(self, request: Request) -> Response:
        body = await _body(request, {"name": str, "sql": str, "query": dict})
        name = body.get("name") or ""
        await self._do(self.watch.add, name, _query(body))
        return JSONResponse(await self._do(self._one, name), 201)

    async def query(self, request: Request) -> Response:
        return JSONResponse(await self._do(self._one, request.path_params["name"]))

    async def replace(self, request: Request) -> Response:
        name = request.path_params["name"]
        query = _query(await _body(request, {"sql": str, "query": dict}))
        await self._do(self._one, name)
        await self._do(self.watch.replace, name, query)
        return JSONResponse(await self._do(self._one, name))

    async def drop(self, request: Request) -> Response:
        name = request.path_params["name"]
        await self._do(self._one, name)
        await self._do(self.watch.drop, name)
        return Response(status_code=204)

    def _one(self, name: str) -> dict[str, Any]:
        board = self.watch.board()
        if name not in board.names:
            raise Refused(404, f"there is no query {name!r}. There are: {', '.join(board.names) or 'none'}.")
        found = next(one for one in board.summaries() if one["name"] == name)
        if not board.fixed:
            found = found | {"query": plain(board.monitor.queries[name].to_dict())}  # type: ignore[union-attr]
        return found

    async def answer(self, request: Request) -> Response:
        name, given = request.path_params["name"], request.query_params
        rows = _number(given.get("rows", str(limits.ROWS)), "rows", limits.API_ROWS)
        key = None
        if "key" in given:
            values = _parsed(given["key"].encode())
            key = tuple(values) if isinstance(values, list) else (values,)
        await self._do(self._one, name)
        return JSONResponse(await self._do(lambda: self.watch.board().answer(name, key, rows)))

    # --- events

    async def events(self, request: Request) -> Response:
        given = request.query_params
        watched = None
        if "watch" in given:
            group = _number(given["group"], "group", 2**31) if "group" in given else None
            watched = (given["watch"], group)
        loop, fresh = asyncio.get_running_loop(), asyncio.Event()
        handle = self.watch.listen(lambda: _soon(loop, fresh.set), watched)
        return _stream(self._frames(fresh, watched, handle))

    async def _frames(self, fresh: asyncio.Event, watched: Any, handle: object) -> AsyncIterator[bytes]:
        try:
            yield b"retry: 1000\n\n"
            while True:
                try:
                    await asyncio.wait_for(fresh.wait(), _BEAT)
                except TimeoutError:
                    yield b"event: beat\ndata: {}\n\n"
                    continue
                if self.watch.closing:
                    return
                fresh.clear()
                frame = self.watch.frame
                detail = frame.details.get(watched, b"null") if watched is not None else b"null"
                yield b'event: frame\nid: %d\ndata: {"head":%b,"detail":%b}\n\n' % (frame.number, frame.head, detail)
        finally:
            self.watch.leave(handle)

    async def changes(self, request: Request) -> Response:
        name = request.path_params["name"]
        await self._do(self._one, name)
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[list[dict[str, Any]]] = asyncio.Queue(limits.QUEUE)
        missed = [0]

        def put(rows: list[dict[str, Any]]) -> None:
            try:
                waiting.put_nowait(rows)
            except asyncio.QueueFull:
                missed[0] += len(rows)

        subscriber = Subscriber(name, lambda rows: _soon(loop, lambda: put(rows)))
        self.watch.subscribe(subscriber)
        return _stream(self._rows(subscriber, waiting, missed))

    async def _rows(
        self, subscriber: Subscriber, waiting: asyncio.Queue[Any], missed: list[int]
    ) -> AsyncIterator[bytes]:
        try:
            yield b"retry: 1000\n\n"
            while True:
                try:
                    rows = await asyncio.wait_for(waiting.get(), _BEAT)
                except TimeoutError:
                    yield b"event: beat\ndata: {}\n\n"
                    continue
                if self.watch.closing:
                    return
                yield b"event: changes\ndata: " + json.dumps(rows, ensure_ascii=False).encode() + b"\n\n"
                if missed[0] and waiting.empty():
                    yield b'event: missed\ndata: {"rows":%d}\n\n' % missed[0]
                    missed[0] = 0
        finally:
            self.watch.unsubscribe(subscriber)


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call in the event loop, from the watch's thread; nothing if the loop has just closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


def _stream(events: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


async def _body(request: Request, fields: dict[str, type]) -> dict[str, Any]:
    """A JSON object with these fields, of these types; null means missing."""
    taken = bytearray()
    async for piece in request.stream():
        taken += piece
        if len(taken) > limits.BODY:
            raise Refused(413, f"a request has at most {limits.BODY:,} bytes.")
    body = _parsed(bytes(taken))
    if not isinstance(body, dict):
        raise QueryError(f"the body is a JSON object with {', '.join(fields)}.")
    if unknown := [key for key in body if key not in fields]:
        raise QueryError(f"{unknown[0]!r} is not expected. The body has: {', '.join(fields)}.")
    for key, value in body.items():
        type_ = fields[key]
        good = (
            isinstance(value, int | float) and not isinstance(value, bool)
            if type_ is float
            else isinstance(value, type_)
        )
        if value is not None and not good:
            raise QueryError(f"{key!r} is a {_TYPE_NAMES[type_]}; got {str(value)[:50]!r}.")
    if body.get("rate") is not None and not 0 < body["rate"] <= 1e9:
        raise QueryError("'rate' is in rows a second, above 0; null is as fast as possible.")
    if not all(isinstance(one, str) for one in body.get("keep") or ()):
        raise QueryError("'keep' is a list of column names.")
    return body


_TYPE_NAMES: dict[type, str] = {str: "text", list: "list", float: "number", bool: "true or false", dict: "object"}


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise QueryError(f"this is not JSON: {str(error)[:100]}.") from None


def _number(text: str, what: str, most: int) -> int:
    if not text.isascii() or not text.isdecimal() or int(text[:12]) > most:
        raise QueryError(f"{what} is a whole number up to {most:,}; got {text[:50]!r}.")
    return int(text)


def _query(body: dict[str, Any]) -> Query:
    if (body.get("sql") is None) == (body.get("query") is None):
        raise QueryError('give one of "sql" (a query in SQL) and "query" (as Query.to_dict() returns it).')
    return sql(body["sql"]) if body.get("sql") is not None else Query.from_dict(body["query"])
