"""DuckDB over a parquet file, in an environment of its own (.peers/duckdb): a process that waits for a signal.

Argument: JSON with rows and warm (parquet: id, key, ms, score), answers (a file to write), k, size and slide (minutes).
As flink.py: the answers over `warm`, "ready", and at a line on stdin the query over `rows`. Two-level panes in batch:
the k best of each slide and key, then of size/slide of these. A row is one number, its score above its id: the newer
of equals is the larger, and DuckDB's `max(number, k)` has nothing else to compare. With items: the rows of each slide
and key are counted, then those of each window, and the k keys with the most are taken.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import duckdb

ABOVE = 2**32  # ids are smaller
MEMORY = "8GB"
PANES = """
WITH panes AS (
  SELECT key, ms // {slide} AS pane, max(score * {above} + id, {k}) AS best FROM read_parquet('{file}') GROUP BY ALL
), each AS (SELECT key, pane, unnest(best) AS one FROM panes)
SELECT (pane + step + 1) * {slide} AS window_end, key, max(one, {k}) AS best
FROM each, range({wide}) AS steps(step) GROUP BY ALL"""


ITEMS = """
WITH panes AS (
  SELECT key, ms // {slide} AS pane, count(*) AS n, max(id) AS newest FROM read_parquet('{file}') GROUP BY ALL
), each AS (
  SELECT (pane + step + 1) * {slide} AS window_end, key, sum(n) AS n, max(newest) AS newest
  FROM panes, range({wide}) AS steps(step) GROUP BY ALL
)
SELECT window_end, '' AS key, arg_max(key, n * {above} + newest, {k}) AS best FROM each GROUP BY window_end"""


def main() -> None:
    p: dict[str, Any] = json.loads(sys.argv[1])
    minutes = 60_000
    own = {"slide": p["slide"] * minutes, "wide": p["size"] // p["slide"], "k": p["k"], "above": ABOVE}
    duck = duckdb.connect(
        config={"threads": p["parallelism"], "memory_limit": MEMORY, "preserve_insertion_order": False}
    )
    query, id_ = (ITEMS, "unnest(best)") if p["items"] else (PANES, f"unnest(best) & {ABOVE - 1}")
    answers = f"SELECT window_end, key, {id_} AS id FROM ({query.format(file=p['warm'], **own)})"  # noqa: S608
    duck.execute(f"COPY ({answers}) TO '{p['answers']}' (HEADER)")
    print("ready", flush=True)
    sys.stdin.readline()
    sums = f"SELECT count(*), sum(len(best)) FROM ({query.format(file=p['rows'], **own)})"  # noqa: S608
    try:
        found = duck.execute(sums).fetchone()
    except duckdb.OutOfMemoryException:
        print(json.dumps({"failed": f"out of {MEMORY} of memory"}), flush=True)
        return
    assert found is not None
    print(json.dumps({"windows": int(found[0]), "objects": int(found[1])}), flush=True)


if __name__ == "__main__":
    main()
