"""The table of algorithms, and the documents that are made from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.algorithm_tables import PAGES, written

from skyband.query.algorithms import algorithms, table

DOCS = Path(__file__).parents[2] / "docs"


def test_every_row_names_what_is_there() -> None:
    for row in algorithms():
        assert row.load(row.engine).__name__ == row.engine.partition(":")[2]
        assert callable(row.load(row.size)), row.name
        assert row.family is None or row.load(row.family)
        assert (DOCS / "engines" / row.page).exists(), row.page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_in_documents_are_those_of_the_rows(page: Path) -> None:
    assert page.read_text() == written(page), "run `make tables`"


def test_names_with_one_page_share_a_line() -> None:
    assert "| [`SASF`, `SARF`, `SAPF`, `RASF`, `RARF`, `RAPF`](docs/engines/topk/buffered.md) | `TopK` |" in table(
        "TopK"
    )
