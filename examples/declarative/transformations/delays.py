"""Two tables of Declarative Pipelines: the changes of each airport's most delayed flights, and who entered first.

A stateful operator's input must be there when the pipeline is defined (Spark looks it up): files, Kafka or a table that
exists, not another table of the same pipeline.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType

import skyband as sb
import skyband.spark as sbs

FLIGHT = StructType(
    [
        StructField("flight", LongType()),
        StructField("time", TimestampType()),
        StructField("origin", StringType()),
        StructField("delay", DoubleType()),
    ]
)

spark = SparkSession.active()
folder = spark.conf.get("delays.flights")


@dp.table
def changes() -> DataFrame:
    flights = spark.readStream.schema(FLIGHT).parquet(folder)
    query = sb.TopK(3, by="delay", window=sb.Last("24 hours"), per="origin")
    return sbs.monitor(flights, query, id="flight", time="time", schema=FLIGHT)


@dp.table
def newcomers() -> DataFrame:
    return spark.readStream.table("changes").where("diff = 1 and first").select("origin", "id", "score")
