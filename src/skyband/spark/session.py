"""A SparkSession with what skyband needs, and a check of one that was made elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from functools import cache
from typing import Any

from pyspark.errors import PySparkImportError
from pyspark.sql import SparkSession

from skyband.errors import QueryError
from skyband.spark.task import PARTITIONS

_PYTHON = "spark.pyspark.python"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_SETTINGS = {
    _PROVIDER: _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",  # a trigger writes what it changed
}
_DAEMON = {
    "spark.python.daemon.module": "skyband.spark.daemon",  # workers share what they import
    # Spark sets it for mappers and not for operators, which gives each kind a daemon and workers of its own
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}
_CLASSIC = {"spark.ui.showConsoleProgress": "false"}  # which Spark Connect warns of


def session(master: str | None = None, *, remote: str | None = None, **settings: Any) -> SparkSession:
    """A SparkSession with the RocksDB state store; settings are Spark's own, and come before skyband's.

    `session("local[2]", **{"spark.sql.shuffle.partitions": "4"})`

    On a local master there are as many shuffle partitions as cores, unless something says a number: a trigger opens and
    commits a state store for each of them, and Spark's 200 make it many times as long.

    Parameters
    ----------
    master : str, optional
        Where Spark runs, as "local[2]" or "spark://host:7077" (default: Spark's own choice).
    remote : str, optional
        In the place of `master`, the address of a Spark Connect server, as "sc://host:15002"; "local[2]" starts one.
        A server of your own must have skyband for its Python workers. It needs `pip install "skyband[connect]"`.
    **settings : Any
        Spark's settings by name.

    """
    if master is not None and remote is not None:
        raise QueryError(f"session({master!r}, remote={remote!r}): Spark runs in one place. Leave one of them out.")
    builder = SparkSession.builder
    remote = os.environ.get("SPARK_REMOTE") if remote is None and master is None else remote
    for name, value in (_SETTINGS | _CLASSIC if remote is None else _SETTINGS).items():
        builder = builder.config(name, value)
    if master is not None:
        builder = builder.master(master)
    if remote is not None:
        builder = builder.remote(remote)
    if (master or remote or "").startswith("local"):
        for name in ("spark.driver.bindAddress", "spark.driver.host", "spark.connect.grpc.binding.address"):
            builder = builder.config(name, "127.0.0.1")
        if _is_this_python(str(settings.get(_PYTHON, os.environ["PYSPARK_PYTHON"]))):
            for name, value in _DAEMON.items():
                builder = builder.config(name, value)
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    try:
        with warnings.catch_warnings():
            if (remote or "").startswith("local"):  # the server was started with all of them, and Spark tries again
                warnings.filterwarnings("ignore", "Failed to set ", UserWarning)
            spark = builder.getOrCreate()
    except PySparkImportError as error:
        raise ImportError(f'Spark Connect needs more: pip install "skyband[connect]" ({error})') from error
    cores = _cores(remote or spark.conf.get("spark.master", "") or "")
    if cores is not None and not _said(spark, settings):
        spark.conf.set(PARTITIONS, cores)
    return spark


def partitions_of(spark: SparkSession) -> int:
    """The number of shuffle partitions."""
    return int(spark.conf.get(PARTITIONS) or 200)


def check(spark: SparkSession, *, streaming: bool) -> None:
    """Refuse a session that would fail when the first job runs; one that is merely slow is left alone."""
    if streaming:
        _check_provider(spark)
    context = _context(spark)
    if context is not None and _cores(context.master or "") and not context.listFiles:  # which may bring skyband
        _check_workers(context.pythonExec)


def _context(spark: SparkSession) -> Any:
    """The SparkContext of a session in this process; None: the session is one of Spark Connect."""
    return getattr(spark, "sparkContext", None)


def _cores(master: str) -> int | None:
    """The cores of a master of this machine; None: it is another one."""
    found = re.match(r"local(?:\[(\d+|\*)|$)", master)
    if found is None:
        return None
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


def _said(spark: SparkSession, settings: dict[str, Any]) -> bool:
    """Whether somebody has set the number of shuffle partitions; over Connect, 200 is taken for Spark's default."""
    context = _context(spark)
    configured = context is not None and context.getConf().contains(PARTITIONS)
    return configured or PARTITIONS in settings or partitions_of(spark) != 200


def _check_provider(spark: SparkSession) -> None:
    provider = spark.conf.get(_PROVIDER, "") or ""
    if provider.rpartition(".")[2] != _ROCKSDB.rpartition(".")[2]:  # vendors have their own, by the same name
        raise QueryError(
            f"this SparkSession keeps streaming state in {provider or 'the default provider'}, which cannot run "
            f"skyband's operator. Set {_PROVIDER}={_ROCKSDB}, or use skyband.spark.session()."
        )


def _check_workers(python: str) -> None:
    wrong = _wrong_with(python)
    if wrong is not None:
        raise QueryError(
            f"Spark's Python workers run {python}, which {wrong}. They take PYSPARK_PYTHON as it is when the session "
            f"starts: set it to {sys.executable}, or import skyband.spark before that, which sets it where it is unset."
        )


def _is_this_python(python: str) -> bool:
    """Whether a command is the interpreter that runs this, with what is installed beside it."""
    found = shutil.which(python)
    if found is None or os.path.dirname(found) != os.path.dirname(sys.executable):
        return False
    return os.path.samefile(found, sys.executable)


@cache
def _wrong_with(python: str) -> str | None:
    """Why an interpreter of this machine cannot run skyband's workers; None: it can."""
    found = shutil.which(python)
    if found is None:
        return "is not there"
    if _is_this_python(found):
        return None
    code = "import sys, skyband, pandas, pyarrow; print(*sys.version_info[:2], sep='.')"
    try:
        done = subprocess.run([found, "-c", code], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({error})"
    if done.returncode:
        output = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return f"cannot import what they need ({output[-1]})"
    here = ".".join(map(str, sys.version_info[:2]))
    return None if done.stdout.strip() == here else f"is Python {done.stdout.strip()}, and this is Python {here}"
