"""Shared by all tests: one Spark session, however many workers; what runs mutants, one for each worker."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

from mutation import Suite, nursery

_FILES = (
    "pipeline",
    "demo",
    "run",
    "faults",
    "functions",
    "session",
    "shipping",
    "kafka",
    "kill",
    "metrics",
    "cluster",
    "connect",
    "disks",
    "upgrade",
    "rounds",
    "spark_benchmarks",
    "start_from",
    "subscriptions",
    "partitions",
    "recipes",
    "schema",
    "lakehouse",
    "client",
    "declarative",
    "late_rows",
    "postgres",
)
STARTS_SPARK = (
    *(f"spark/test_{name}.py" for name in _FILES),
    "::test_three_kinds_in_spark",
    "::test_groups_in_spark",
    "::test_trees_in_spark",
)

# Tests that share a server, or the trees of all sources; of a few mutants a nursery each is most of the work
TOGETHER = ["faults/test_injection.py", "faults/test_forged.py", "test_house.py"]
TOGETHER += [] if "SKYBAND_MUTANTS" in os.environ else ["mutants.py"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """Tests that start Spark, and those that share another server, stay on one worker; others are dealt out one by one.

    (`--dist loadgroup` ignores its groups with pytest 9.2 and xdist 3.8: pytest-xdist issue 1386.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneSession(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if any(file in nodeid for file in STARTS_SPARK):
                return "spark"
            return next((shared for shared in TOGETHER if shared in nodeid), nodeid)

    return OneSession(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A second session would be a second JVM for the same two cores."""
    fixtures = {item.nodeid: getattr(item, "fixturenames", ()) for item in items}
    apart = [one for one in fixtures if "spark" in fixtures[one] and not any(file in one for file in STARTS_SPARK)]
    if apart:
        raise pytest.UsageError(f"{apart[0]} starts Spark: name its file in tests/conftest.py, beside the others.")


def pytest_collection_finish() -> None:
    """What all tests share is nothing to collect: a look at it takes 0.3 s, and some tests look a hundred times."""
    import numba  # noqa: F401  # most of it

    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def suite() -> Iterator[Suite]:
    with nursery() as run:
        yield run
