"""Limits of one server. Beyond them there is a clear error, and everything else keeps running."""

QUERIES = 200
K = 10_000  # of a query
NAME = 100  # characters
BODY = 64 * 1024  # bytes of a request
CLIENTS = 64  # pages and programs that are connected
ROWS = 100  # of an answer, on the page; the API takes `rows=` up to API_ROWS
API_ROWS = 10_000
POINTS = 500  # of a plane, and as many of the rest of the window
GROUPS = 200  # to choose from
BATCH = 20_000  # rows pushed at once
RATE = 20  # frames per second
QUEUE = 256  # pieces of changes that wait for a slow program; beyond, it gets the number of missed rows
