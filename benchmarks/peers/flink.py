"""Apache Flink's SQL over files, in an environment of its own (.peers/flink): a process that waits for a signal.

Argument: JSON with rows and warm (folders of CSV: id, key, ms, score), answers (a file to write), checkpoints (a
folder), port (of Flink's REST), parallelism, k, and size and slide (minutes) or n and check_n (count windows, of rows
and of warm), items (whether the k keys with the most rows are wanted). It answers the query over `warm`, which
compiles what Flink compiles, and writes those answers down; prints "ready"; at a line on stdin it runs the query over
`rows` into Flink's blackhole and prints what it knows as JSON. It has no clock: its caller measures the time.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import urllib.request
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

EVERY = "10 s"  # a checkpoint
POLL = 0.3  # seconds between looks at the checkpoints

# what is best is said to the last tie: the newer of equals first, and ids are in order of arrival
BEST = "ORDER BY score DESC, id DESC"
# Flink's own way for hopping windows: each row is copied into size/slide windows, and each of them keeps its k best
WINDOW_TOP_N = f"""
SELECT window_end, `key`, id FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, `key` {BEST}) AS place
  FROM TABLE(HOP(TABLE {{table}}, DESCRIPTOR(ts), INTERVAL '{{slide}}' MINUTES(5), INTERVAL '{{size}}' MINUTES(5)))
) WHERE place <= {{k}}"""  # noqa: S608
# the last n of a key, and the best k of these
NESTED_TOP_N = f"""
SELECT `key`, id FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY `key` {BEST}) AS place FROM (
    SELECT * FROM (
      SELECT *, ROW_NUMBER() OVER (PARTITION BY `key` ORDER BY id DESC) AS age FROM {{table}}
    ) WHERE age <= {{n}}
  )
) WHERE place <= {{k}}"""  # noqa: S608
# the keys with the most rows of each window, of equals the one with the newest row; Flink counts by slides
WINDOW_ITEMS = """
SELECT window_end, '' AS `key`, CAST(`key` AS BIGINT) AS id FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC, newest DESC) AS place FROM (
    SELECT window_start, window_end, `key`, COUNT(*) AS n, MAX(id) AS newest
    FROM TABLE(HOP(TABLE {table}, DESCRIPTOR(ts), INTERVAL '{slide}' MINUTES(5), INTERVAL '{size}' MINUTES(5)))
    GROUP BY window_start, window_end, `key`
  )
) WHERE place <= {k}"""
SETTINGS = {
    "table.local-time-zone": "UTC",
    "pipeline.object-reuse": "true",
    "state.backend.type": "hashmap",  # on the heap: its fastest
}


def main() -> None:
    p: dict[str, Any] = json.loads(sys.argv[1])
    flink = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    own = {
        "parallelism.default": str(p["parallelism"]),
        "rest.port": str(p["port"]),
        "rest.bind-port": str(p["port"]),
        "execution.checkpointing.dir": f"file://{p['checkpoints']}",
    }
    for name, value in (SETTINGS | own).items():
        flink.get_config().set(name, value)
    for table in ("warm", "rows"):
        flink.execute_sql(f"""CREATE TABLE {table}_table (
            id BIGINT, `key` STRING, ms BIGINT, score BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts
        ) WITH ('connector' = 'filesystem', 'path' = 'file://{p[table]}', 'format' = 'csv')""")
    timed = "n" not in p
    columns = "window_end TIMESTAMP(3), `key` STRING, id BIGINT" if timed else "`key` STRING, id BIGINT"
    flink.execute_sql(f"CREATE TABLE nowhere ({columns}) WITH ('connector' = 'blackhole')")
    query = WINDOW_ITEMS if p["items"] else WINDOW_TOP_N if timed else NESTED_TOP_N

    small = p | {"table": "warm_table", "n": p.get("check_n")}
    found = flink.sql_query(query.format(**small)).to_pandas()  # retractions applied
    found.to_csv(p["answers"], index=False)

    print("ready", flush=True)
    sys.stdin.readline()
    flink.get_config().set("execution.checkpointing.interval", EVERY)  # not before: what is collected would wait for it
    over = threading.Event()
    sizes: list[int] = []
    watch = threading.Thread(target=watched, args=(p["port"], over, sizes))
    watch.start()
    flink.execute_sql(f"INSERT INTO nowhere {query.format(table='rows_table', **p)}").wait()
    over.set()
    print(json.dumps({"checkpoints": len(set(sizes)), "state_bytes": max(sizes, default=0)}), flush=True)
    watch.join()


def watched(port: int, over: threading.Event, sizes: list[int]) -> None:
    """The sizes of the checkpoints that the running job has completed."""
    there = f"http://127.0.0.1:{port}/jobs"
    while not over.wait(POLL):
        with contextlib.suppress(OSError, KeyError, TypeError, ValueError):
            running = [job["id"] for job in fetch(there)["jobs"] if job["status"] == "RUNNING"]
            sizes += [fetch(f"{there}/{job}/checkpoints")["latest"]["completed"]["state_size"] for job in running]


def fetch(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=5) as reply:  # noqa: S310 (loopback)
        return json.load(reply)


if __name__ == "__main__":
    main()
