"""Servers: one for a file of tests, or one for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from dashboard.served import Client, served, table
from skyband.dashboard.watch import Watch


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    parquet.write_table(table(), folder / "flights.parquet")
    (folder / "days").mkdir()
    parquet.write_table(table(100), folder / "days" / "1.parquet")
    (folder / "notes.txt").write_text("nothing")
    return folder


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[tuple[Client, Watch]]:
    with served(root) as both:
        yield both


@pytest.fixture
def client(server: tuple[Client, Watch]) -> Client:
    return server[0]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[tuple[Client, Watch]]:
    with served(tmp_path) as both:
        yield both
