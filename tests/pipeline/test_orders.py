"""Orders of keys and sessions in a pipeline file."""

from __future__ import annotations

import skyband as sb
from pipeline.test_pipeline_file import good
from skyband.pipeline import pipeline_of


def test_orders_of_keys_and_sessions() -> None:
    more = {"by": ["delay", "flight"], "largest": [True, False], "window": {"session": "30 minutes"}, "nulls": "last"}
    made = pipeline_of(good(**{f"queries__late__{name}": value for name, value in more.items()}))
    assert made.queries["late"] == sb.TopK(
        3, by=("delay", "flight"), largest=(True, False), window=sb.Session("30 minutes"), per="origin", nulls="last"
    )
