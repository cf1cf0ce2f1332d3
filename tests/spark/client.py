"""A user's program over Spark Connect: `python client.py ADDRESS FOLDER`, in an environment with pyspark-client alone.

It reads the files of FOLDER/in and of FOLDER/more, writes down what it has found, and imports nothing of the tests.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import skyband as sb
import skyband.spark as sbs

TOP = {"top": sb.TopK(3, by="delay", window=sb.Last("24 hours"), per="origin")}
OPTIONS: dict[str, Any] = {"id": "flight", "time": "time"}
FILES = ("in", "more")


def rows_of(table: Any) -> list[Any]:
    """What of changes is compared."""
    return sorted([str(row["origin"]), row["id"], row["score"], row["diff"]] for row in table.to_pylist())


def main(address: str, folder: Path) -> dict[str, Any]:
    spark = sbs.session(remote=address)
    found: dict[str, Any] = {"packages": packages_distributions()["pyspark"], "py4j": "py4j" in sys.modules}
    whole = spark.read.parquet(*(str(folder / name) for name in FILES))
    schema = whole.schema
    found["batch"] = rows_of(sbs.monitor(whole, TOP, **OPTIONS).toArrow())
    found["rejected"] = sorted(row["flight"] for row in sbs.rejected(whole, TOP, time="time").toArrow().to_pylist())
    for name in FILES:  # the second resumes from the checkpoint
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "now"))
        for file in sorted((folder / name).glob("*.parquet")):
            file.rename(folder / "now" / file.name)
        writer = sbs.monitor(stream, TOP, **OPTIONS).writeStream.format("parquet").option("path", str(folder / "out"))
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(400)
    found["stream"] = rows_of(spark.read.parquet(str(folder / "out")).toArrow())
    found["groups"] = sum(row["groups"] for row in sbs.state(str(folder / "checkpoint")).toArrow().to_pylist())
    return found


if __name__ == "__main__":
    place = Path(sys.argv[2])
    (place / "found").write_text(json.dumps(main(sys.argv[1], place)))
