"""Limits of one server. Beyond them there is a clear error, and everything else keeps running.

Those that a user may need to change are `Settings`, each an option of `skyband serve`; the others are fixed.
"""

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True)
class Settings:
    """Limits of subscriptions, which `skyband serve` takes as options."""

    subscriptions: int = 100_000  # of all queries together
    listeners: int = 1_000  # that follow one subscriber each
    table: int = 32 * MIB  # bytes of a table of subscriptions, in one request
    resume: int = 64 * MIB  # bytes of changes that are kept for listeners that come back


# --- a query and its estimated cost
QUERIES = 200
K = 10_000  # of a query
K_PAIRS = 1_000  # of pairs and of uncertain objects, where an arrival costs as many steps
WINDOW = 10**8  # arrivals of a count window
WINDOW_PAIRS = 20_000  # each arrival is compared with all of them
SPAN = 100 * 365 * 86_400 * 10**9  # nanoseconds of a time window: 100 years
NUMBER = 10**6  # of any other whole number of a query (buffer, cells, view, budget, ...)
COLUMNS = 100  # columns of `per`, parts, weights of a scoring, kept columns
BYTES = 256 * 2**20  # that `explain` expects of a query, one group of it
STATE = 2 * 2**30  # bytes that all queries keep; then nothing more is read until one is changed
SQL = 512 * 1024  # characters of all queries together: each frame has them
NAME = 100  # characters of a query's name

# --- a request and its response
BODY = 64 * 1024  # bytes
TEXT = 8 * 1024  # characters of SQL
DEPTH = 50  # brackets within brackets, in JSON and in SQL
ROWS = 100  # of an answer, on the page; the API takes `rows=` up to API_ROWS
API_ROWS = 10_000
ANSWER = 8 * 2**20  # bytes of these rows
CELL = 500  # characters of a value on the page
POINTS = 500  # of a plane, and as many of the rest of the window
GROUPS = 200  # to choose from

# --- connections
CONNECTIONS = 512  # besides those of listeners; when there are more, the one that has been silent longest is closed
HEADERS_IN = 10.0  # seconds for the headers of a request, from the begin of the connection or the response before
BODY_IN = 30.0  # seconds for the whole of a request
UNREAD = 256 * 1024  # bytes that the system keeps for a client that has not read them
READ_IN = 15.0  # seconds in which a client reads something of what waits for it
CLIENTS = 64  # pages that listen to frames, and as many programs that listen to changes
WAITING = 2 * 2**20  # bytes of changes that wait for a slow program; beyond, it gets the number of missed rows
PIECE, PIECE_BYTES = 500, 256 * 1024  # changes in one event

# --- subscriptions
ALONE = 1_000  # of one query whose subscriptions share no engine: each costs what a query costs
ASKED = 100  # subscribers whose answers are given together; with more, one has to be named
SHOWN = 20  # subscribers whose answers are on the page, where there are more than ASKED
SUBSCRIBER = 1_000  # characters of an id in an address
RECEIVED = 4  # tables as long as `Settings.table` that may be on their way at once
RESUME = 600.0  # seconds for which the changes of a subscriber are kept after its last listener left
DELIVERED = 50_000  # changes that are given to listeners at once
BEAT = 10.0  # seconds without an event, after which a listener gets a heartbeat

# --- the stream
BATCH = 20_000  # rows pushed at once
BAD_ROWS = 100  # that are searched for one by one in a batch; beyond, the stretch with them is rejected as a whole
RATE = 20  # frames per second
JOURNAL = 32 * 2**20  # bytes of rows since the last snapshot
SNAPSHOT = 5.0  # seconds between snapshots, at least
SNAPSHOT_BYTES = 256 * 2**20  # of the state; a larger one has no snapshot, and is not restored
