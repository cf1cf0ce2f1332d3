"""The answer in PostgreSQL, exactly once: a server of Debian's packages, on a socket in a folder, while tests run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from pyspark.sql import DataFrame, SparkSession

import skyband as sb
import skyband.spark as sbs
from engines.streams import cells
from spark.frames import flights, stream, write

TOP = {"top": sb.TopK(3, by="delay", window=sb.Last("24 hours"), per="origin")}
OPTIONS: dict[str, Any] = {"id": "flight", "time": "time"}
TABLES = """
CREATE TABLE top (origin text, id bigint, score float8);
CREATE UNIQUE INDEX ON top (origin, id) NULLS NOT DISTINCT;
CREATE TABLE done (batch bigint PRIMARY KEY);
"""
UPSERT = """
BEGIN;
CREATE TEMP TABLE net (origin text, id bigint, score float8, diff int) ON COMMIT DROP;
COPY net FROM STDIN (FORMAT csv);
{rows}\\.
DELETE FROM net WHERE EXISTS (SELECT FROM done WHERE batch = {batch});
DELETE FROM top USING net WHERE diff < 0 AND top.origin IS NOT DISTINCT FROM net.origin AND top.id = net.id;
INSERT INTO top SELECT origin, id, score FROM net WHERE diff > 0;
INSERT INTO done VALUES ({batch}) ON CONFLICT DO NOTHING;
COMMIT;
"""


def programs() -> Path | None:
    """The folder of initdb and postgres, which Debian keeps out of the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    named = shutil.which("postgres")
    return found[-1].parent if found else None if named is None else Path(named).parent


def psql(place: Path, text: str) -> str:
    command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", str(place), "-U", "postgres", "postgres"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """The folder of its socket."""
    folder = programs()
    if folder is None or shutil.which("psql") is None:
        pytest.skip("NOT TESTED: no PostgreSQL here (Debian: apt-get install postgresql)")
    owner: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}  # it refuses root
    with tempfile.TemporaryDirectory(prefix="pg") as name:  # the path of a socket must be short
        place = Path(name)
        place.chmod(0o755)
        if owner:
            shutil.chown(place, **owner)
        setup = [str(folder / "initdb"), "-D", str(place / "data"), "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run(setup, check=True, capture_output=True, timeout=120, cwd=place, **owner)
        run = [str(folder / "postgres"), "-D", str(place / "data"), "-k", str(place), "-h", "", "-F"]
        with subprocess.Popen(run, stderr=subprocess.DEVNULL, cwd=place, **owner) as process:
            try:
                deadline = time.monotonic() + 60
                while not (place / ".s.PGSQL.5432").exists() and time.monotonic() < deadline:
                    time.sleep(0.1)
                yield place
            finally:
                process.terminate()


def upsert_into(place: Path, *, crash_after: set[int]) -> Callable[[DataFrame, int], None]:
    """The recipe: net changes of a trigger and its number in one transaction; a second time, it changes nothing."""

    def upsert(changes: DataFrame, batch: int) -> None:
        rows = changes.select("origin", "id", "score", "diff").toArrow()
        sink = pa.BufferOutputStream()
        pa.csv.write_csv(rows, sink, pa.csv.WriteOptions(include_header=False))
        psql(place, UPSERT.format(rows=sink.getvalue().to_pybytes().decode(), batch=batch))
        if batch in crash_after:
            crash_after.remove(batch)
            raise RuntimeError("the trigger is written, and Spark does not know it")

    return upsert


def test_the_answer_in_postgresql_exactly_once(spark: SparkSession, server: Path, tmp_path: Path) -> None:
    psql(server, TABLES)
    table, monitor = flights(90), sb.Monitor(TOP, **OPTIONS)
    for number in range(3):
        write(tmp_path / "in", number, table.slice(30 * number, 30))
        monitor.push(table.slice(30 * number, 30))
    rows = stream(spark, tmp_path / "in", spark.read.parquet(str(tmp_path / "in")).schema)
    upsert, failures = upsert_into(server, crash_after={1}), 0
    for _ in range(2):
        changes = sbs.monitor(rows, TOP, emit="batch", shards=2, **OPTIONS)
        writer = changes.writeStream.foreachBatch(upsert).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(240)
        except Exception as error:
            failures += "Spark does not know it" in str(error)
    assert failures == 1
    assert psql(server, "SELECT batch FROM done ORDER BY batch").split() == ["0", "1", "2"]
    found = psql(server, "SELECT coalesce(origin, '-') || ' ' || id || ' ' || score FROM top").splitlines()
    answer = cells(monitor.answer("top"))
    assert sorted(found) == sorted(f"{row['origin'] or '-'} {row['id']} {row['score']:g}" for row in answer)
