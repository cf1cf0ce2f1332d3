"""`skyband run`: a pipeline file on Spark."""

from skyband.spark.run.command import run

__all__ = ["run"]
