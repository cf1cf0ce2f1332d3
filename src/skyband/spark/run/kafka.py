"""Kafka as source and sink of `skyband run`, through Spark's connector; and where messages go that cannot be read.

Source: the JSON of the values, by the file's schema, beside the message's own columns (`kafka_timestamp`, ...). What is
not such JSON is counted and left out; `dead_letters` sends it, with the reason, to a topic or a folder: by a streaming
query of its own, since one query has one sink, so the topic is read twice.

Sink: a change is a message. Its key is (query, group, id, rank); the value is the whole row as JSON, none (a tombstone)
when the object leaves: the last message of each key is the current answer, which is what a compacted topic keeps. Spark
may write a trigger twice, never less than once; the header `trigger` says which, and `skyband.kafka` drops the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import (
    array,
    call_function,
    coalesce,
    col,
    concat_ws,
    from_json,
    get_json_object,
    lit,
    monotonically_increasing_id,
    struct,
    to_json,
    when,
)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from skyband.errors import RunError
from skyband.pipeline.formats import BROKERS
from skyband.spark.run.sinks import Sink, with_trigger
from skyband.spark.run.sources import CORRUPT, Source

_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


class KafkaSource(Source):
    """The JSON of a topic's messages."""

    def read(self, spark: SparkSession) -> DataFrame:
        """The rows of the messages that can be read; how many cannot is observed."""
        good = self.good(self._parsed(spark), col("reason").isNotNull())
        own = {
            "kafka_timestamp": col("timestamp"),
            "kafka_topic": col("topic"),
            "kafka_partition": col("partition"),
            "kafka_offset": col("offset"),
            "kafka_key": col("key").cast("string"),
            "kafka_id": concat_ws("-", "topic", "partition", "offset"),
        }
        fields = [col(f"row.{_quoted(name)}") for name in self.pipeline.source.declared or {}]
        return good.select(*fields, *[column.alias(name) for name, column in own.items()])

    def _parsed(self, spark: SparkSession) -> DataFrame:
        """The messages, each with its `row`, or the `reason` why it has none."""
        require_connector(spark, f"{self.key}.format")
        options = {"startingOffsets": "earliest", **self.settings["options"]}
        messages = spark.readStream.format("kafka").options(**options).load()
        text = col("value").cast("string")
        schema = f"{self.pipeline.source.schema}, {_quoted(CORRUPT)} string"
        row = from_json(text, schema, {"columnNameOfCorruptRecord": CORRUPT})
        wrong = [
            when(
                col(f"row.{_quoted(name)}").isNull() & get_json_object(text, f"$['{name}']").isNotNull(),
                lit(f"{name} is not {type_}"),
            )
            for name, type_ in (self.pipeline.source.declared or {}).items()
            if "'" not in name
        ]
        mistyped = concat_ws(", ", *wrong)
        reason = (
            when(col("value").isNull(), lit("no value"))
            .when(~call_function("is_valid_utf8", col("value")), lit("not UTF-8"))
            .when(col("row").isNull(), lit("an empty value"))
            .when(col(f"row.{_quoted(CORRUPT)}").isNull(), lit(None))
            .when(mistyped != "", mistyped)
            .otherwise(lit("not a JSON object"))
        )
        return messages.withColumn("row", row).withColumn("reason", reason)

    def start_dead_letters(self, spark: SparkSession, checkpoint: str) -> StreamingQuery | None:
        """Start the query that sends malformed messages to a topic or a folder, if the file names one."""
        letters = self.settings["dead_letters"]
        if letters is None:
            return None
        bad = self._parsed(spark).where(col("reason").isNotNull())
        columns = ["topic", "partition", "offset", "timestamp"]
        if letters["topic"] is not None:
            facts = {name: col(name) for name in ("reason", *columns)}
            bad = bad.select("key", "value", _headers(facts))
            options = {name: value for name, value in self.settings["options"].items() if name.startswith("kafka.")}
            writer = bad.writeStream.format("kafka").option("topic", letters["topic"]).options(**options)
        else:
            bad = bad.select("reason", *columns, "key", "value")
            writer = bad.writeStream.format("parquet").option("path", letters["path"])
        writer = writer.option("checkpointLocation", f"{checkpoint.rstrip('/')}/dead_letters")
        return with_trigger(writer, self.pipeline.run).start()


class KafkaSink(Sink):
    """Changes as messages of a topic, at least once, in order for each key."""

    def start(self, out: DataFrame, writer: DataStreamWriter) -> StreamingQuery:
        require_connector(out.sparkSession, "sink.format")
        return writer.foreachBatch(self._put).start()

    def _put(self, rows: DataFrame, batch: int) -> None:
        topic = self.settings["topic"]
        run = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        per = dict.fromkeys(name for query in self.pipeline.queries.values() for name in query.per_columns)
        out = as_messages(rows, list(per), f"{run} {batch}")
        try:
            out.write.format("kafka").option("topic", topic).options(**self.settings["options"]).save()
        except (PySparkException, Py4JJavaError) as error:
            raise RunError(
                f"trigger {batch} was not written to the topic {topic} ({_innermost(error)}). Are source, broker and "
                "topic there? The same command resumes from the checkpoint."
            ) from None


def as_messages(rows: DataFrame, per: Sequence[str], trigger: str) -> DataFrame:
    """Changes as `key`, `value` and `headers`; `per`: the columns of the group."""
    named = {name: col(_quoted(name)) for name in rows.columns}
    ids = [name for name in ("id", "id_a", "id_b") if name in named]
    group = struct(*[named[name] for name in per]) if per else lit(None).cast("string")
    rank = named.get("rank", lit(None).cast("int"))
    who = [named["subscriber"]] if "subscriber" in named else []
    key = to_json(
        struct(named["query"], *who, group.alias("group"), *[named[i] for i in ids], rank.alias("rank")), _JSON
    )
    value = when(named["diff"] > 0, to_json(struct(*named.values()), _JSON))
    step = [name for name in ("at", "time", "score", "probability", "diff", "first") if name in named]
    headers = {
        "trigger": concat_ws(" ", lit(trigger), monotonically_increasing_id()),
        "change": to_json(struct(*[named[name] for name in step]), _JSON),
    }
    return rows.select(key.alias("key"), value.alias("value"), _headers(headers))


def _headers(values: dict[str, Column]) -> Column:
    """Headers of a message, as text."""
    named = [
        struct(lit(name).alias("key"), coalesce(value.cast("string"), lit("")).cast("binary").alias("value"))
        for name, value in values.items()
    ]
    return array(*named).alias("headers")


def require_connector(spark: SparkSession, key: str) -> None:
    """Raise a RunError if this session has no Kafka connector; making a reader contacts no broker."""
    try:
        spark.read.format("kafka").options(**{BROKERS: "localhost:1", "subscribe": "none"}).load()
    except AnalysisException as error:
        if "KAFKA_DATA_SOURCE_NOT_ENABLED" not in str(error):
            raise
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
        raise RunError(
            f"{key}: Spark has Kafka in a package of its own. Write in [run.spark]: "
            f'"spark.jars.packages" = "{package}".'
        ) from None


def _innermost(error: Any) -> str:
    """The first cause, in one line; the error itself only says where it was noticed."""
    thrown = getattr(error, "java_exception", None)
    if thrown is None:
        return str(error).splitlines()[0]
    while thrown.getCause() is not None:
        thrown = thrown.getCause()
    return str(thrown.toString()).splitlines()[0]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
