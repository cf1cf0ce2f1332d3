"""`skyband serve`: one process that runs queries over a stream and shows their answers on a live page.

    streams.py       sources of rows: a file to replay, a folder, a generator
    readers.py       stdin and Kafka
    boards.py        the content of the page: a Monitor over such a stream
    spark_output.py  the same for the output folder of a Spark pipeline
    watch.py         the thread that owns a board, reads its stream and publishes frames; the newest wins
    app.py           the page, the JSON API and server-sent events, with Starlette
    openapi.py       the description of the API

Loopback only, unless a token is given. Nothing that a user sends is executed: queries are SQL or plain data.
"""

__all__ = ["serve"]

from skyband.dashboard.start import serve
