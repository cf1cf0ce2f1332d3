"""`skyband serve`: one process that runs queries over a stream and shows their answers on a live page.

    root.py          files below the served folder, and no others
    streams.py       sources of rows: a file to replay, a folder, a generator
    readers.py       stdin and Kafka
    intake.py        rows into a Monitor: bad ones are left out, a broken Monitor is restored
    boards.py        the content of the page: a Monitor over such a stream
    spark_output.py  the same for the output folder of a Spark pipeline
    cost.py          the work that a query may cause
    subscriptions.py tables of subscriptions, within the limits; delivery.py: each subscriber's changes, to listeners
    watch.py         the thread that owns a board, reads its stream and publishes frames; the newest wins
    page_state.py    its state, and what a page shows of it
    pace.py          how fast it reads
    health.py        failures and restarts, counted
    frames.py        messages to pages and programs
    values.py        values as JSON
    guard.py         access and errors
    arguments.py     the arguments of a request; request_tables.py: tables in JSON or Arrow
    app.py           the page and the JSON API, with Starlette; events.py: server-sent events
    openapi.py       the description of the API
    server.py        uvicorn with time-outs; start.py: the command
    limits.py        all limits

Loopback only, unless a token is given. Nothing that a user sends is executed: queries are SQL or plain data.
"""

__all__ = ["Settings", "serve"]

from skyband.dashboard.limits import Settings
from skyband.dashboard.start import serve
