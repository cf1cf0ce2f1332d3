"""What one server takes at most. Beyond it there is a clear error, and what runs goes on."""

QUERIES = 200
K = 10_000  # of a query
NAME = 100  # characters
BODY = 64 * 1024  # bytes of a request
CLIENTS = 64  # pages and programs that listen
ROWS = 100  # of an answer, on the page; the API takes `rows=` up to API_ROWS
API_ROWS = 10_000
POINTS = 500  # of a plane, and as many of the rest of the window
GROUPS = 200  # to choose from
BATCH = 20_000  # rows pushed at once
RATE = 20  # frames per second
QUEUE = 256  # pieces of changes that wait for a slow program; then it is told that it has missed some
