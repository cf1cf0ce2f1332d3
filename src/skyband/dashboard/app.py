"""The page and the JSON API: a thin layer over the `Watch`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from skyband.dashboard import events, limits
from skyband.dashboard.arguments import body as body_of
from skyband.dashboard.arguments import number, parsed, query_of, received
from skyband.dashboard.boards import MonitorBoard
from skyband.dashboard.cost import affordable
from skyband.dashboard.delivery import Key, Listener
from skyband.dashboard.guard import Guard, Json, Refused, kind_of, missing, refused, wrong
from skyband.dashboard.openapi import described
from skyband.dashboard.request_tables import ids_of, table_of
from skyband.dashboard.streams import offered
from skyband.dashboard.values import plain
from skyband.dashboard.watch import PATIENCE, Busy, Watch
from skyband.errors import QueryError, SkybandError
from skyband.explain import explain
from skyband.query.kinds import Query

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "html": "text/html"}
_SHOWN = 20  # names in an error
_STATIC = ("style.css", "app.js", "plane.js", "api.js", "follow.js", "icon.svg")


def make_app(watch: Watch, token: str | None = None) -> Starlette:
    """The web application over a watch; with a token nothing is served without it."""
    api = _Api(watch)
    routes = [
        Route("/", _page("index.html")),
        Route("/docs", _page("api.html")),
        Route("/follow", _page("follow.html")),
        *(Route(f"/static/{name}", _page(name)) for name in _STATIC),
        Route("/openapi.json", _described),
        Route("/api/health", api.health),
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
        Route("/api/queries/{name}/subscriptions", api.subscribe, methods=["POST"]),
        Route("/api/queries/{name}/subscriptions/{subscriber}", api.unsubscribe_one, methods=["DELETE"]),
        Route("/api/queries/{name}/unsubscribe", api.unsubscribe, methods=["POST"]),
        Route("/api/queries/{name}/answer", api.answer),
        Route("/api/queries/{name}/changes", api.changes),
        Route("/api/events", api.events),
    ]
    app = Starlette(
        routes=routes, exception_handlers={Refused: refused, SkybandError: wrong, 404: missing, 405: missing}
    )
    app.router.redirect_slashes = False
    app.add_middleware(Guard, token=token, health=watch.health)
    return app


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    text = files("skyband.dashboard").joinpath("static", name).read_bytes()

    async def page(_: Request) -> Response:
        return Response(text, media_type=_TYPES[name.rpartition(".")[2]] + "; charset=utf-8")

    return page


async def _described(_: Request) -> Response:
    return Json(described())


class _Api:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._receiving = 0  # bytes of tables that are on their way

    async def _do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on the watch's thread; this one goes on with other requests."""
        future = asyncio.wrap_future(self.watch.submit(function, *arguments))
        try:
            return await asyncio.wait_for(future, PATIENCE)
        except TimeoutError:
            raise Busy("the stream is busy (the first use of an engine compiles it). Try again.") from None

    async def health(self, _: Request) -> Response:
        report = self.watch.report()
        return Json(report, 503 if report["status"] == "stuck" else 200)

    # --- the stream

    async def state(self, _: Request) -> Response:
        return Json(await self._do(self.watch.look))

    async def streams(self, _: Request) -> Response:
        found = await run_in_threadpool(offered, self.watch.root)
        if self.watch.pipe is not None:
            found = [{"name": "-", "kind": "stdin"}, *found]
        if self.watch.topic is not None:
            found = [{"name": self.watch.topic, "kind": "topic"}, *found]
        return Json(found)

    async def choose(self, request: Request) -> Response:
        roles = dict.fromkeys(("stream", "id", "time", "part", "value", "emit"), str)
        body = await body_of(request, {**roles, "keep": list, "rate": float, "paused": bool})
        if not body.get("stream"):
            raise QueryError('"stream" is missing: name the stream to watch. GET /api/streams lists them.')
        keep = request.query_params.get("queries") == "keep"
        return Json(await self._do(self._chosen, body, keep))

    def _chosen(self, body: dict[str, Any], keep: bool) -> dict[str, Any]:
        board = self.watch.board() if keep else None
        self.watch.choose(body, dict(board.monitor.queries) if isinstance(board, MonitorBoard) else {})
        return self.watch.look()

    async def control(self, request: Request) -> Response:
        body = await body_of(request, {"rate": float, "paused": bool})
        await self._do(lambda: self.watch.control(paused=body.get("paused"), rate=body.get("rate", "")))
        return Json(await self._do(self.watch.look))

    # --- queries

    async def check(self, request: Request) -> Response:
        body = await body_of(request, {"sql": str, "query": dict})
        return Json(await run_in_threadpool(_explained, body))

    async def queries(self, _: Request) -> Response:
        return Json((await self._do(self.watch.look))["queries"])

    async def add(self, request: Request) -> Response:
        body = await body_of(request, {"name": str, "sql": str, "query": dict})
        query = await run_in_threadpool(query_of, body)
        return Json(await self._do(self._changed, self.watch.add, body.get("name") or "", query), 201)

    async def query(self, request: Request) -> Response:
        return Json(await self._do(self._one, request.path_params["name"]))

    async def replace(self, request: Request) -> Response:
        query = await run_in_threadpool(query_of, await body_of(request, {"sql": str, "query": dict}))
        return Json(await self._do(self._replaced, request.path_params["name"], query))

    async def drop(self, request: Request) -> Response:
        await self._do(self._dropped, request.path_params["name"])
        return Response(status_code=204)

    def _changed(self, change: Callable[[str, Query], None], name: str, query: Query) -> dict[str, Any]:
        change(name, query)
        return self._one(name)

    def _replaced(self, name: str, query: Query) -> dict[str, Any]:
        self._one(name)
        return self._changed(self.watch.replace, name, query)

    def _dropped(self, name: str) -> None:
        self._one(name)
        self.watch.drop(name)

    def _one(self, name: str) -> dict[str, Any]:
        board = self.watch.board()
        if name not in board.names:
            known = ", ".join(board.names[:_SHOWN]) or "none"
            raise Refused(404, f"there is no query {name[: limits.NAME]!r}.", f"There are: {known}.")
        found = next(one for one in board.summaries() if one["name"] == name)
        if isinstance(board, MonitorBoard):
            found = found | {"query": plain(board.monitor.queries[name].to_dict())}
        return found

    async def answer(self, request: Request) -> Response:
        name, given = request.path_params["name"], request.query_params
        rows = number(given.get("rows", str(limits.ROWS)), "rows", limits.API_ROWS)
        key = None
        if "key" in given:
            values = parsed(given["key"].encode())
            key = tuple(values) if isinstance(values, list) else (values,)
        return Json(await self._do(self._answer, name, key, rows, given.get("subscriber")))

    def _answer(self, name: str, key: tuple[Any, ...] | None, rows: int, subscriber: str | None) -> dict[str, Any]:
        self._one(name)
        board = self.watch.board()
        if subscriber is None or not isinstance(board, MonitorBoard):
            return board.answer(name, key, rows)
        board.subscribed.known(name)
        if (value := board.subscribed.find(name, subscriber)) is None:
            raise _no_subscriber(name, subscriber)
        return board.answer(name, key, rows, value[0].as_py())

    # --- subscriptions

    async def _table(self, request: Request, read: Callable[[bytes, str, int], Any]) -> Any:
        """What a request brings, read on another thread; `_receiving` bounds what all of them hold in memory."""
        most, mine = self.watch.settings.table, 0

        def count(size: int) -> None:
            nonlocal mine
            if self._receiving + size > limits.RECEIVED * most:
                raise Busy("too many tables are being sent at once. Try again in a moment.")
            mine += size
            self._receiving += size

        try:
            instead = f"Send fewer rows, or start the server with --table {2 * most // limits.MIB}."
            data = await received(request, most, instead, count)
            return await run_in_threadpool(read, data, kind_of(request), self.watch.settings.subscriptions)
        finally:
            self._receiving -= mine

    async def subscribe(self, request: Request) -> Response:
        name, id = request.path_params["name"], request.query_params.get("id", "subscriber")
        await self._do(self._one, name)
        table = await self._table(request, partial(table_of, id))
        return Json(await self._do(self._subscribed, name, table, id))

    def _subscribed(self, name: str, table: Any, id: str) -> dict[str, Any]:
        self._one(name)
        return {"taken": table.num_rows, "subscriptions": self.watch.subscribe(name, table, id)}

    async def unsubscribe(self, request: Request) -> Response:
        name = request.path_params["name"]
        await self._do(self._one, name)
        ids = await self._table(request, ids_of)
        return Json(await self._do(self._unsubscribed, name, ids))

    async def unsubscribe_one(self, request: Request) -> Response:
        return Json(await self._do(self._unsubscribed_one, *map(request.path_params.get, ("name", "subscriber"))))

    def _unsubscribed_one(self, name: str, subscriber: str) -> dict[str, Any]:
        self._one(name)
        board = self.watch.board()
        value = board.subscribed.find(name, subscriber) if isinstance(board, MonitorBoard) else None
        if value is None:
            raise _no_subscriber(name, subscriber)
        return self._unsubscribed(name, value)

    def _unsubscribed(self, name: str, ids: Any) -> dict[str, Any]:
        self._one(name)
        before, after = self.watch.unsubscribe(name, ids)
        return {"ended": before - after, "subscriptions": after}

    # --- events

    async def events(self, request: Request) -> Response:
        return events.frames(self.watch, request)

    async def changes(self, request: Request) -> Response:
        name, subscriber = request.path_params["name"], request.query_params.get("subscriber")
        await self._do(self._one, name)
        if subscriber is None or request.method == "HEAD":
            return events.changes(self.watch, request, name)
        listener = Listener(Key(name, subscriber), request.headers.get("last-event-id") or None)
        if len(subscriber) > limits.SUBSCRIBER or not await self._do(self.watch.follow, listener):
            raise _no_subscriber(name, subscriber)
        return events.followed(self.watch, listener)


def _no_subscriber(name: str, subscriber: str) -> Refused:
    return Refused(
        404, f"{name} has no subscriber {subscriber[:100]!r}.", "POST a row of it to /api/queries/NAME/subscriptions."
    )


def _explained(body: dict[str, Any]) -> dict[str, Any]:
    query = query_of(body)
    affordable(query)
    return {"sql": query.to_sql(), "query": plain(query.to_dict()), "explain": str(explain(query))}
