"""`skyband serve`: one process that watches a stream and shows its standing queries on a live page.

    streams.py   where rows come from: a file to replay, a folder, a generator
    lines.py     stdin and Kafka
    boards.py    what is shown: a Monitor over such a stream; followed.py: the output folder of a Spark pipeline
    watch.py     the thread that owns a board, reads its stream and publishes frames; the newest wins
    app.py       the page, the JSON API and server-sent events, with Starlette
    openapi.py   the description of the API

Loopback only, unless a token is given. Nothing that a user sends is executed: questions are SQL or plain data.
"""

__all__ = ["serve"]

from skyband.dashboard.start import serve
