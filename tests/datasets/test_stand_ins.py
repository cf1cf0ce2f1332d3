"""Stand-ins for the real streams: their columns and types, in order, and what the demo and the gallery look for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skyband import datasets
from skyband.datasets import loaders, stand_ins
from skyband.errors import QueryError

NAMES = tuple(stand_ins._MAKE)
by_name = pytest.mark.parametrize("name", NAMES)


@by_name
def test_columns_and_types_are_those_of_the_real_stream(name: str) -> None:
    expected = [(ours, kind) for ours, (_, kind) in loaders.SOURCES[name].columns.items()]
    expected += [("p", pa.float64())] if name == "icebergs_2021" else []
    made = datasets.stand_in(name)
    assert [(field.name, field.type) for field in made.schema] == expected
    if loaders.available(name):
        assert made.schema == getattr(datasets, name)().schema


@by_name
def test_a_seed_gives_one_table_and_time_never_falls(name: str) -> None:
    made = datasets.stand_in(name, seed=3)
    assert made.equals(datasets.stand_in(name, seed=3))
    assert not made.equals(datasets.stand_in(name, seed=4))
    if "time" in made.column_names:
        assert (np.diff(made["time"].to_numpy()) >= np.timedelta64(0, "us")).all()


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(QueryError, match=r"'nonsense' has no stand-in. These have: flights, "):
        datasets.stand_in("nonsense")


def test_real_where_it_is_and_generated_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = datasets.example("mote_locations", folder=tmp_path)
    assert made.equals(datasets.stand_in("mote_locations"))
    assert capsys.readouterr().err.startswith("skyband: mote_locations is generated here, 54 rows")
    (tmp_path / "intel_lab").mkdir()
    (tmp_path / "intel_lab" / "mote_locs.csv").write_text("moteid,x,y\n7,1.5,2\n")
    real = datasets.example("mote_locations", folder=tmp_path)
    assert real.to_pylist() == [{"moteid": 7, "x": 1.5, "y": 2.0}]
    assert capsys.readouterr().err == ""


def test_flights_are_a_year_of_three_airports_with_ties_cancellations_and_storms() -> None:
    flights = datasets.stand_in("flights")
    assert sorted(flights["origin"].unique().to_pylist()) == ["EWR", "JFK", "LGA"]
    assert flights["time"][0].as_py().year == flights["time"][-1].as_py().year == 2013
    delay = flights["dep_delay"]
    assert 0.005 < delay.null_count / len(delay) < 0.05
    median, tenth = np.percentile(delay.drop_null().to_numpy(), [50, 90])
    assert -5 <= median <= 3
    assert 15 <= tenth <= 60  # New York in 2013: -2 and 49
    storm = flights.filter(pc.equal(pc.day_of_year(flights["time"]), 39))
    assert pc.mean(storm["dep_delay"]).as_py() > 3 * pc.mean(delay).as_py()
