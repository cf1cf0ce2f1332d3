"""The API, described for programs (OpenAPI 3.1) and for the page /docs."""

from __future__ import annotations

from typing import Any

from skyband.dashboard import limits
from skyband.dashboard.guard import ARROW, JSON

_QUERY = {
    "type": "object",
    "properties": {
        "sql": {"type": "string", "examples": ["SELECT * FROM s ORDER BY x DESC LIMIT 10 WINDOW 1000 ROWS"]},
        "query": {"type": "object", "description": "In place of sql: as Query.to_dict() gives it."},
    },
}
_TABLE = {
    "oneOf": [
        {"type": "array", "items": {"type": "object"}},
        {"type": "object", "additionalProperties": {"type": "array"}, "description": "Columns instead of rows."},
    ],
    "examples": [[{"subscriber": "ann", "k": 3, "x": 0.5}], {"subscriber": ["ann"], "k": [3], "x": [0.5]}],
}
_IDS = {"type": "array", "examples": [["ann", "bob"]]}
_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "maxLength": limits.NAME}}


def _json(description: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema or {"type": "object"}}}}


def _events(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"text/event-stream": {"schema": {"type": "string"}}}}


def _operation(
    about: str,
    answer: dict[str, Any],
    *,
    status: str = "200",
    body: Any = None,
    parameters: Any = (),
    arrow: bool = False,
) -> dict[str, Any]:
    wrong = {"$ref": "#/components/schemas/Error"}
    made: dict[str, Any] = {
        "summary": about,
        "responses": {status: answer, "4XX": _json("What is wrong, why, and what instead.", wrong)},
    }
    if body is not None:
        content = {JSON: {"schema": body}} | ({ARROW: {"schema": {"type": "string"}}} if arrow else {})
        made["requestBody"] = {"required": True, "content": content}
    if parameters:
        made["parameters"] = list(parameters)
    return made


def _parameter(name: str, type_: str, about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": {"type": type_}, "description": about}


def described() -> dict[str, Any]:
    """The whole document."""
    from skyband import __version__

    summary = {"$ref": "#/components/schemas/Summary"}
    roles: dict[str, Any] = {role: {"type": "string"} for role in ("id", "time", "part", "value")}
    roles["keep"] = {"type": "array", "items": {"type": "string"}}
    pace = {
        "rate": {"type": ["number", "null"], "description": "Rows a second; null: as fast as possible."},
        "paused": {"type": "boolean"},
    }
    roles["emit"] = {"enum": ["arrival", "batch"], "description": "Changes of each row, or the net ones of a batch."}
    stream = {"type": "object", "required": ["stream"], "properties": {"stream": {"type": "string"}, **roles, **pace}}
    named = {**_QUERY, "required": ["name"], "properties": {"name": {"type": "string"}, **_QUERY["properties"]}}  # type: ignore[dict-item]
    keep = _parameter("queries", "string", '"keep": the queries stay, and start empty.')
    key = _parameter("key", "string", 'The group as JSON, such as "EWR" or ["EWR", 3]; left out: all groups.')
    rows = _parameter("rows", "integer", f"At most so many rows, up to {limits.API_ROWS:,}.")
    watch = _parameter("watch", "string", "A query: its answer and its plane are part of each frame.")
    subscriber = _parameter("subscriber", "string", "Of a query with `:name`: one subscriber, by its id as text.")
    ids = _parameter("id", "string", "The column of the subscribers' ids; left out: subscriber.")
    last = {"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"}}
    last["description"] = "The id of the last event of this subscriber that has come."
    one = {"name": "subscriber", "in": "path", "required": True, "schema": {"type": "string"}}
    group = _parameter("group", "integer", "One of its groups, by its place in the list of groups.")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "skyband",
            "version": __version__,
            "description": "Top-k queries over one stream. "
            f"Limits: {limits.QUERIES} queries, k up to {limits.K:,}, count windows up to {limits.WINDOW:,}, "
            f"{limits.BODY:,} bytes a request, {limits.CLIENTS} pages and as many programs that listen.",
        },
        "paths": {
            "/api/health": {
                "get": _operation(
                    "Failures that the server survived, with the last reason of each part; status 503 if its thread is "
                    "stuck.",
                    _json("status (ok, stopped, stuck), thread, stream, listeners, parts."),
                ),
            },
            "/api/state": {"get": _operation("The stream and all queries now.", _json("As in a frame."))},
            "/api/streams": {
                "get": _operation("The streams to choose from.", _json("Names and kinds.", {"type": "array"})),
            },
            "/api/stream": {
                "put": _operation("Watch another stream.", _json("The new state."), body=stream, parameters=[keep]),
                "patch": _operation(
                    "Pause, resume, change the rate.",
                    _json("The new state."),
                    body={"type": "object", "properties": pace},
                ),
            },
            "/api/check": {
                "post": _operation(
                    "Check a query, and explain how it would be answered.",
                    _json("The query and its explanation."),
                    body=_QUERY,
                ),
            },
            "/api/queries": {
                "get": _operation("The queries.", _json("Summaries.", {"type": "array", "items": summary})),
                "post": _operation("Add a query.", _json("Its summary.", summary), status="201", body=named),
            },
            "/api/queries/{name}": {
                "parameters": [_NAME],
                "get": _operation("One query.", _json("Its summary and value.", summary)),
                "put": _operation("Replace a query under the same name.", _json("Its summary.", summary), body=_QUERY),
                "delete": _operation("Drop a query.", {"description": "It is dropped."}, status="204"),
            },
            "/api/queries/{name}/answer": {
                "parameters": [_NAME],
                "get": _operation(
                    "Its answer now, best first.", _json("columns, rows, total."), parameters=[key, rows, subscriber]
                ),
            },
            "/api/queries/{name}/subscriptions": {
                "parameters": [_NAME],
                "post": _operation(
                    "Subscribe: one row of the table is one subscription, with the columns that the query writes as "
                    "`:name`. All rows are taken, or none; an id that is there is replaced.",
                    _json("taken, subscriptions."),
                    body=_TABLE,
                    parameters=[ids],
                    arrow=True,
                ),
            },
            "/api/queries/{name}/subscriptions/{subscriber}": {
                "parameters": [_NAME, one],
                "delete": _operation("Unsubscribe one.", _json("ended, subscriptions.")),
            },
            "/api/queries/{name}/unsubscribe": {
                "parameters": [_NAME],
                "post": _operation(
                    "Unsubscribe many, by their ids; unknown ones are counted and ignored.",
                    _json("ended, subscriptions."),
                    body=_IDS,
                    arrow=True,
                ),
            },
            "/api/queries/{name}/changes": {
                "parameters": [_NAME],
                "get": _operation(
                    "Subscribe to its changes: events `changes` (rows as Monitor.push gives them); `missed` after a "
                    "client was too slow; `beat` every second when there is nothing. With `subscriber`: those of one "
                    "subscriber; first its `answer`, then `changes`, each with an id. A client that comes back with "
                    "Last-Event-ID gets what it has missed, or `reset` (why it cannot) and the `answer`, which "
                    "comes again when the subscription begins anew, `gone` when it ends.",
                    _events("Server-sent events, without end."),
                    parameters=[subscriber, last],
                ),
            },
            "/api/events": {
                "get": _operation(
                    f"Subscribe to frames of the whole state, up to {limits.RATE} a second; the newest wins.",
                    _events("Events `frame` and `beat`."),
                    parameters=[watch, group],
                ),
            },
        },
        "components": {
            "schemas": {
                "Error": {
                    "type": "object",
                    "properties": {
                        "error": {
                            "type": "object",
                            "required": ["message", "what", "why", "instead"],
                            "properties": {
                                "message": {"type": "string", "description": "All in one text."},
                                "what": {"type": "string", "description": "The request."},
                                "why": {"type": "string", "description": "The reason why it is refused."},
                                "instead": {"type": "string", "description": "What to do instead."},
                                "at": {"type": "integer", "description": "Where in the SQL."},
                            },
                        }
                    },
                },
                "Summary": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "kind": {"type": "string"},
                        "sql": {"type": "string"},
                        "algorithm": {"type": ["string", "null"]},
                        "kept": {"type": ["integer", "null"], "description": "Objects kept."},
                        "window": {"type": ["integer", "null"], "description": "Objects in the window (time: about)."},
                        "arrivals": {"type": ["integer", "null"]},
                        "late": {"type": ["integer", "null"]},
                        "rejected": {"type": ["integer", "null"]},
                        "changes": {"type": "integer", "description": "Changes of the answer so far."},
                        "groups": {"type": ["integer", "null"]},
                        "each": {"type": "array", "description": "The columns that subscriptions bring."},
                        "subscriptions": {"type": ["integer", "null"]},
                    },
                },
            }
        },
    }
