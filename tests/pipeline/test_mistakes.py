"""What is said about every mistake in the file of `skyband run`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.test_pipeline_file import CSV, HERE, KAFKA, PAIRS, good
from skyband.cli.app import app
from skyband.errors import QueryError
from skyband.pipeline import pipeline_of


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        # the top
        ({"outptu": "changes"}, "outptu: is not a key of the file. Did you mean 'output'?"),
        ({"query": {}}, "query: is not a key of the file. Did you mean 'queries'?"),
        ({"output": "answer"}, "output: 'answer' is unknown. Did you mean 'answers'? Use one of changes, answers."),
        ({"source": None}, "source.format: is missing. Use one of parquet, csv, json, rate, synthetic, kafka."),
        ({"sink": 5}, "sink is a table, [sink]; got 5."),
        # source
        (
            {"source__format": "parket"},
            "source.format: 'parket' is unknown. Did you mean 'parquet'? Use one of parquet, csv, json, rate, "
            "synthetic, kafka.",
        ),
        ({"source__format": 7}, "source.format: is a text that is not empty; got 7."),
        ({"source__dataset": "unifrom"}, "source.dataset: 'unifrom' is unknown. Did you mean 'uniform'?"),
        ({"source__dataset": "shuffled"}, "source.dataset: 'shuffled' is unknown."),
        ({"source__rowz": 5}, "source.rowz: is not a key of [source]. Did you mean 'rows'?"),
        ({"source__rows": -1}, "source.rows: is a whole number, at least 0; got -1."),
        ({"source__rows": True}, "source.rows: is a whole number"),
        ({"source__rows": None}, "source.rows: is missing: the stream never ends, and run.trigger is 'availableNow'."),
        ({"source__rows_per_second": 5}, "source.rows_per_second: means nothing with run.trigger = 'availableNow'"),
        ({"source__path": "x"}, "source.path: is for parquet, csv and json. The format is 'synthetic'."),
        ({"source__schema": "x int"}, "source.schema: is for parquet, csv, json and kafka"),
        ({"source__options__key": 5}, "source.options.key: is not an option of flights_like. Did you mean 'keys'?"),
        ({"source__options__keys": 0}, "source.options: keys=0: keys must be at least 1."),
        (
            {"source__options__per_day": 0},
            "source.options: per_day=0: per_day is a whole number from 1 to 10,000,000: a day is made at once.",
        ),
        (
            {"source__options__keys": 2**31},
            "source.options: keys=2147483648: an array of that size is made at once, so keys is at most 10,000,000.",
        ),
        ({"source__options__exponent": "x"}, "source.options: "),
        ({"source__options": 3}, "source.options is a table, [source.options]; got 3."),
        ({"source": {"format": "rate"}}, "source.format: a rate never ends, so run.trigger cannot be 'availableNow'."),
        ({"source": {**CSV, "path": "nowhere"}}, "source.path: there is no folder 'nowhere' here."),
        ({"source": {"format": "csv", "path": HERE}}, "source.schema: is missing. Write a table"),
        ({"source": {"format": "json", "schema": "a int"}}, "source.path: is missing. Name the folder"),
        ({"source": {**CSV, "schema": {"a": "flot"}}}, "source.schema.a: 'flot' is not a type. Did you mean 'float'?"),
        ({"source": {**CSV, "schema": "flight"}}, "source.schema.flight: '' is not a type. Types: byte"),
        ({"source": {**CSV, "files_per_trigger": 0}}, "source.files_per_trigger: is a whole number, at least 1"),
        ({"source": {**CSV, "options": {"sep": [","]}}}, "source.options.sep: is a text, a number, true or false"),
        ({"source": {**KAFKA, "options": {}}}, "source.options: 'kafka.bootstrap.servers' is missing"),
        ({"source": {**KAFKA, "options": {}}}, "source.options: say which topics"),
        ({"source": {**KAFKA, "schema": {"kafka_key": "int"}}}, "schema.kafka_key: is what the message's own key is"),
        ({"source": {**KAFKA, "dead_letters": {"topic": "u", "path": "v"}}}, "dead_letters: name a topic or a folder"),
        ({"source": {**KAFKA, "dead_letters": {"topic": "t"}}}, "dead_letters.topic: 't' is what is read"),
        (
            {"source": {**KAFKA, "dead_letters": {"topic": "u"}}, "run__checkpoint": None, "sink": {"format": "noop"}},
            "run.checkpoint: is missing: dead letters are kept once",
        ),
        ({"source__dead_letters": {"topic": "u"}}, "source.dead_letters: is for kafka"),
        ({"sink": {"format": "kafka"}}, "sink.topic: is missing. Name the topic to write."),
        ({"sink": {"format": "kafka", "topic": "t"}}, "sink.options: 'kafka.bootstrap.servers' is missing"),
        ({"sink": {"format": "kafka", "topic": "t"}, "run__checkpoint": None}, "run.checkpoint: is missing"),
        (
            {"source": {**KAFKA, "dead_letters": {"topic": "u"}}, "sink": {"format": "kafka", "topic": "u"}},
            "source.dead_letters.topic: 'u' is sink.topic",
        ),
        ({"sink": {"format": "kafka", "topic": "t", "options": {"topic": "u"}}}, "sink.options.topic: say sink.topic"),
        ({"sink": {"format": "kafka", "topic": "t"}, "output": "answers"}, "'kafka' takes changes"),
        ({"sink__topic": "t"}, "sink.topic: is for kafka."),
        # queries
        ({"queries": {}}, "queries: name at least one"),
        ({"queries__late": 5}, "queries.late is a table, [queries.late]; got 5."),
        ({"queries__late__kind": "topq"}, "queries.late.kind: 'topq' is unknown. Did you mean 'topk'?"),
        ({"queries__late__k": None}, "queries.late.k: is missing. How many? Such as k = 10."),
        ({"queries__late__k": 0}, "queries.late.k: TopK(k=0): k must be at least 1"),
        ({"queries__late__by": "sin(delay)"}, "queries.late.by: "),
        ({"queries__late__by": "delya"}, "queries.late.by: the source has no column 'delya'. Did you mean 'delay'?"),
        ({"queries__late__by": {"callable": "f"}}, "queries.late.by: a Python function cannot be written in a file."),
        (
            {"queries__late__by": {"linaer": {"delay": 1}}},
            "queries.late.by: {'linaer': {'delay': 1}} is not a scoring.",
        ),
        ({"queries__late__by": {"linear": {"delya": 1}}}, "queries.late.by: the source has no column 'delya'."),
        ({"queries__late__by": 3}, "queries.late.by: 3 is no scoring."),
        ({"queries__late__windw": 9}, "queries.late.windw: is not a key of [queries.late]. Did you mean 'window'?"),
        ({"queries__late__window": "9 parsecs"}, "queries.late.window: Last('9 parsecs') is not a duration."),
        ({"queries__late__window": 0}, "queries.late.window: "),
        ({"queries__late__window": 1.5}, "queries.late.window: 1.5 is not a window."),
        ({"queries__late__window": {"spam": 1}}, "queries.late.window: {'spam': 1} is not a window."),
        ({"queries__late__window": {"span": 9}}, "queries.late.window: Last(span=9) is a bare number"),
        (
            {"queries__late": {"kind": "topkuncertain", "k": 1, "by": "delay", "window": 5}},
            "queries.late.probability: the source has no column 'p'.",
        ),
        (
            {"queries__late": {"kind": "topkincomplete", "k": 1, "parts": ["a"], "window": 5}},
            "stream.part: the source has no column 'part'.",
        ),
        (
            {"queries__late": {"kind": "topkpairs", "k": 1, "by": "abs(a.dela - b.dela)", "window": 5}},
            "queries.late.by: the source has no column 'dela'.",
        ),
        (
            {"queries__late": PAIRS, "sink": {"format": "upsert", "path": "o"}},
            "queries.late.kind: 'upsert' takes the changes of TopK and Above, and this is TopKPairs.",
        ),
        ({"queries__late__per": "orign"}, "queries.late.per: the source has no column 'orign'. Did you mean 'origin'?"),
        ({"queries__late__per": "score"}, "queries.late.per: TopK: per: 'score' is a column that skyband writes"),
        ({"queries__late__where": "delya > 1"}, "queries.late.where: the source has no column 'delya'."),
        ({"queries__late__largest": 3}, "queries.late.largest: TopK: largest is True, False or None"),
        ({"queries__late__algorithm": "worst"}, "queries.late.algorithm: TopK: algorithm 'worst' is unknown."),
        ({"queries__late__where": "delay between 3 and 1"}, "queries.late.where: TopK: where"),
        # stream
        ({"stream__id": None}, "stream.id: is missing. Name the column that labels objects"),
        ({"stream__id": "fligth"}, "stream.id: the source has no column 'fligth'. Did you mean 'flight'?"),
        ({"stream__time": None}, "stream.time: is missing: the window of queries.late, Last('24 hours'), is a time"),
        ({"stream__time": "origin"}, "stream.time: the column 'origin' is string. Time is a timestamp"),
        ({"source": CSV, "queries__late__window": "1 hour"}, "queries.late.window: Last('1 hour') cannot be expressed"),
        ({"stream__keep": ["delay", "zzz"]}, "stream.keep: the source has no column 'zzz'. It has: flight, origin"),
        ({"stream__keep": "time"}, "stream.keep: keep: 'time' is a column that skyband writes itself"),
        ({"stream__keep": "origin"}, "queries.late: 'origin' is in `per` and in `keep`"),
        ({"stream__order": [3]}, "stream.order: names a column, or a list of columns; got [3]."),
        ({"stream__emit": "arival"}, "stream.emit: 'arival' is unknown. Did you mean 'arrival'?"),
        ({"stream__late": "never"}, "stream.late: 'never' is unknown. Use one of accept, drop."),
        (
            {"stream__op": "origin"},
            "stream.op: op='origin' tells which rows delete an object, but no query is over Until",
        ),
        (
            {"stream__op": "orgin", "queries__near__window": "until deleted"},
            "stream.op: the source has no column 'orgin'",
        ),
        ({"stream__shards": 0}, "stream.shards: is a whole number, at least 1; got 0."),
        ({"stream__watermark": "soon"}, "stream.watermark: 'soon' is not a duration"),
        ({"stream__watremark": "1 h"}, "stream.watremark: is not a key of [stream]. Did you mean 'watermark'?"),
        # sink
        ({"sink__format": "parqet"}, "sink.format: 'parqet' is unknown. Did you mean 'parquet'? Use one of console,"),
        ({"sink__path": None}, "sink.path: is missing. Name the folder to write."),
        ({"sink__format": "noop"}, "sink.path: is for parquet, json and upsert. The format is 'noop'."),
        ({"sink__options__checkpointLocation": "x"}, "sink.options.checkpointLocation: say run.checkpoint instead."),
        ({"sink": {"format": "upsert", "path": "s3a://b/x"}}, "sink.path: 's3a://b/x' is not a local folder"),
        ({"sink": {"format": "upsert", "path": "o"}, "output": "answers"}, "sink.format: 'upsert' makes the answer"),
        # run
        ({"run__checkpoint": None}, "run.checkpoint: is missing: the sink parquet resumes where it stopped."),
        ({"sink": {"format": "memory"}}, "run.checkpoint: the sink memory keeps nothing, so it cannot resume"),
        ({"run__trigger": "avalableNow"}, "run.trigger: 'avalableNow' is unknown. Did you mean 'availableNow'?"),
        ({"run__trigger": "10 parsecs"}, "run.trigger: '10 parsecs' is not a duration"),
        ({"run__master": "local[two]"}, "run.master: 'local[two]' is unknown. Use local[*], local[2], spark://"),
        ({"run__mastr": "x"}, "run.mastr: is not a key of [run]. Did you mean 'master'?"),
        ({"run__spark": {"sql": {"x": 1}}}, "run.spark.sql.x: Spark's settings begin with 'spark.'"),
        ({"run__spark": {"spark.master": "x"}}, "run.spark.spark.master: say run.master instead."),
        ({"run__checkpoint": "out/checkpoint"}, "run.checkpoint: 'out/checkpoint' lies in sink.path, 'out'."),
        ({"run__checkpoint": "out"}, "sink.path: 'out' lies in run.checkpoint, 'out'."),
    ],
    ids=str,
)
def test_mistakes(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(QueryError, match=re.escape(says)) as told:
        pipeline_of(good(**changes))
    lines = [line for line in str(told.value).splitlines()[1:] if not line.startswith("    ")]
    assert lines
    assert all(re.match(r"  (source|queries|stream|sink|run|output|outptu|query)\b", line) for line in lines)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(QueryError) as told:
        pipeline_of(good(source__rows=-1, queries__late__k=0, stream__shards=0, sink__path=None, run__trigger="x"))
    assert str(told.value).startswith("the pipeline has 5 mistakes:\n  run.trigger: ")
    assert len(str(told.value).splitlines()) == 6


@pytest.mark.parametrize(
    ("text", "says"), [("[source\n", "is not TOML"), ("a = 1", "a: is not a key of the file"), (None, "No such file")]
)
def test_the_command_says_so_with_exit_code_2(tmp_path: Path, text: str | None, says: str) -> None:
    file = tmp_path / "bad.toml"
    if text is not None:
        file.write_text(text)
    result = CliRunner().invoke(app, ["run", str(file)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert says in result.stderr
